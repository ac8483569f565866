from datetime import UTC, datetime, timedelta, timezone

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.raw import some_points

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.model import Locations
from rekindle.prepare import prepare_points
from rekindle.sources import points_from_frame, read_points
from rekindle.sources.engine import collect
from rekindle.sources.points import month_of

HEAD = "uid,datetime,lat,lng\n"


def seconds(text, **settings):
    """The seconds that one time column becomes."""
    frame = pl.DataFrame({"person": ["a"] * len(text), "time": text, "lat": 1.0, "lng": 2.0})
    points = points_from_frame(frame, **settings)
    return points, collect(points.frame)["time"].to_list()


# Many times in one table: a table takes far longer than a time.
@settings(deadline=None, max_examples=8)
@given(
    st.lists(
        st.tuples(
            st.datetimes(datetime(1970, 1, 3), datetime(2200, 1, 1)),
            st.sampled_from(["seconds", "minutes", "microseconds"]),
            st.integers(-14 * 60, 14 * 60),
            st.sampled_from("T "),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_iso_times_are_read_as_python_reads_them(times):
    zoned = [
        when.replace(tzinfo=timezone(timedelta(minutes=offset))).isoformat(separator, precision)
        for when, precision, offset, separator in times
    ]
    assert seconds(zoned, timezone="UTC")[1] == [datetime.fromisoformat(text).timestamp() // 1 for text in zoned]
    local = [when.isoformat(separator, precision) for when, precision, _, separator in times]
    points, found = seconds(local)
    assert found == [datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() // 1 for text in local]
    assert points.timezone is None


@settings(deadline=None, max_examples=8)
@given(st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2400, 1, 1)), min_size=1, max_size=40))
def test_months_are_those_of_the_calendar(moments):
    instants = [0, *(int(moment.replace(tzinfo=UTC).timestamp()) for moment in moments)]
    frame = nw.from_native(pl.DataFrame({"time": instants}).lazy())
    of_1970, *found = collect(frame.select(month_of(nw.col("time"))))["time"].to_list()
    assert [month - of_1970 for month in found] == [(one.year - 1970) * 12 + one.month - 1 for one in moments]


def test_other_forms_of_time():
    noon = datetime(2020, 3, 2, 12)
    moment = int(noon.replace(tzinfo=UTC).timestamp())
    assert seconds(["2020-03-02"])[1] == [moment - 43_200]
    for written in (
        "2020-03-02 12:00:00,5",
        "2020-03-02 13:00+01",
        "2020-03-02T12:00:00.25Z",
    ):  # ... and as Postgres writes
        assert seconds([written], timezone=None if "," in written else "UTC")[1] == [moment]
    assert seconds([str(moment)], timezone="UTC")[1] == [moment]
    assert seconds([moment], timezone="UTC")[1] == [moment]
    assert seconds([moment * 1000], time_unit="ms", timezone="UTC")[1] == [moment]
    assert seconds([noon])[1] == [moment]
    local, found = seconds([noon])
    assert (local.timezone, found) == (None, [moment])
    zoned, found = seconds([noon.replace(tzinfo=UTC)], timezone="Asia/Shanghai")
    assert (zoned.timezone, found) == ("Asia/Shanghai", [moment])
    assert seconds(["2020-03-02T12:00:00"], utc=True, timezone="Asia/Shanghai")[0].timezone == "Asia/Shanghai"
    with pytest.raises(InvalidSetting, match="`utc=True`"):
        seconds([noon], timezone="Asia/Shanghai")


def test_missing_numbers_of_pandas():
    frame = pl.DataFrame({"person": ["a", "b"], "time": [5.5, float("nan")], "lat": [1.0, 1.0], "lng": [2.0, 2.0]})
    with pytest.raises(InvalidData, match=r"The frame, position 1: time missing \(person 'b', time nan"):
        points_from_frame(frame, timezone="UTC")
    assert collect(points_from_frame(frame, timezone="UTC", skip_bad=True).frame)["time"].to_list() == [5]


def test_mixed_offsets_are_exact_instants():
    times = ["2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00", "2024-03-31T02:30:00Z"]
    for skip_bad in (False, True):
        points, found = seconds(times, timezone="Europe/Oslo", skip_bad=skip_bad)
        assert [moment - found[0] for moment in found] == [0, 3_600, 7_200]
        assert (points.timezone, points.info["skipped"]) == ("Europe/Oslo", {})


@pytest.mark.parametrize(
    "times",
    [
        ["2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00"],
        ["2024-03-31T01:30:00Z"],
        [1_711_848_600],
        ["1711848600"],
    ],
)
def test_instants_without_a_zone_are_asked_about(times):
    for skip_bad in (False, True):
        with pytest.raises(InvalidSetting, match=r"which local clock.*`timezone='Europe/Oslo'`"):
            seconds(times, skip_bad=skip_bad)


def test_times_with_and_without_a_zone_are_not_mixed():
    """The few are bad rows, not those that differ from the first."""
    times = ["2020-03-02T12:00:00", "2020-03-02T12:00:00+01:00", "2020-03-02T13:00:00+01:00"]
    with pytest.raises(InvalidData, match=r"position 0: time without a zone, unlike most rows"):
        seconds(times, timezone="Europe/Paris")
    assert len(seconds(times, timezone="Europe/Paris", skip_bad=True)[1]) == 2
    with pytest.raises(InvalidData, match=r"position 1: time with a zone, unlike most rows"):
        seconds([*times[:2], *times[:1]])


OSLO = [datetime(2024, 3, 4, 23, 30, tzinfo=UTC), datetime(2024, 3, 5, 12, tzinfo=UTC)]
"""Half past midnight and 13:00 of 5 March in Oslo; in UTC there would be another day."""


def oslo_frames(folder):
    table = pl.DataFrame({"uid": "a", "datetime": OSLO, "lat": 59.9, "lng": 10.7}).with_columns(
        pl.col("datetime").dt.convert_time_zone("Europe/Oslo")
    )
    yield points_from_frame(table)
    yield points_from_frame(table.lazy())
    yield points_from_frame(table.to_arrow())
    yield points_from_frame(table.to_pandas())
    yield points_from_frame(table.to_pandas().set_index("datetime"))
    table.write_parquet(folder / "oslo.parquet")
    yield read_points(folder / "oslo.parquet")


def test_a_column_keeps_its_zone(tmp_path):
    for points in oslo_frames(tmp_path):
        assert points.timezone == "Europe/Oslo"
        calendar = prepare_points(points, step="30min").truth.calendar
        assert calendar.start == datetime(2024, 3, 5)
        assert calendar.number_of_days == 1
    for points in oslo_frames(tmp_path):
        assert collect(points.frame)["time"].to_list() == [int(one.timestamp()) for one in OSLO]


@pytest.mark.parametrize("offset", ["+01:00", "+05:30"])
def test_a_column_with_an_offset_alone_has_no_zone(offset):
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime([f"2024-03-31T01:30:00{offset}", f"2024-03-31T02:30:00{offset}"])
    frame = pandas.DataFrame({"uid": "a", "datetime": times, "lat": 59.9, "lng": 10.7})
    with pytest.raises(InvalidSetting, match="`timezone`"):
        points_from_frame(frame)
    points = points_from_frame(frame, timezone="Europe/Oslo")
    assert collect(points.frame)["time"].to_list() == [int(one.timestamp()) for one in times]


def test_a_column_of_objects_with_mixed_offsets():
    pandas = pytest.importorskip("pandas")
    times = [datetime.fromisoformat(f"2024-03-31T{time}") for time in ("01:30:00+01:00", "03:30:00+02:00")]
    frame = pandas.DataFrame({"uid": "a", "datetime": pandas.Series(times, dtype=object), "lat": 59.9, "lng": 10.7})
    with pytest.raises(InvalidSetting, match="`timezone`"):
        points_from_frame(frame)
    points = points_from_frame(frame, timezone="Europe/Oslo")
    assert collect(points.frame)["time"].to_list() == [int(one.timestamp()) for one in times]


FORMS = [
    ("%d.%m.%Y %H:%M", "04.03.2024 13:05", "4.3.2024 13:05"),
    ("%m/%d/%Y %I:%M %p", "03/04/2024 01:05 PM", "3/4/2024 1:05 pm"),
    ("%d-%b-%y %H:%M", "04-MAR-24 13:05", "4-March-24 13:05"),
    ("%Y%m%d%H%M%S", "20240304130559", "20240304130500"),
    ("%F %T.%f", "2024-03-04 13:05:00.25", "2024-03-04 13:05:00.999999"),
]


@pytest.mark.parametrize(("form", "one", "other"), FORMS)
def test_times_in_another_form(form, one, other):
    for written in (one, other):
        (found,) = seconds([written], time_format=form)[1]
        assert found // 60 * 60 == datetime(2024, 3, 4, 13, 5, tzinfo=UTC).timestamp()
    form = form.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    assert datetime.strptime(one, form).replace(second=0, microsecond=0) == datetime(2024, 3, 4, 13, 5)
    with pytest.raises(InvalidData, match=r"not of the form %.*'yesterday'"):
        seconds(["yesterday"], time_format=form)


def test_noon_and_midnight_of_twelve_hours():
    times = ["3/4/2024 12:05 AM", "3/4/2024 12:05 PM", "3/4/2024 11:05 am"]
    found = seconds(times, time_format="%m/%d/%Y %I:%M %p")[1]
    assert [moment % 86_400 // 3_600 for moment in found] == [0, 12, 11]


def test_forms_with_an_offset_and_forms_that_are_none():
    (found,) = seconds(["04/03/2024 13:05+0100"], time_format="%d/%m/%Y %H:%M%z", timezone="UTC")[1]
    assert found == datetime(2024, 3, 4, 12, 5, tzinfo=UTC).timestamp()
    for form, problem in (("%d.%m", "year, month and day"), ("%d %q", "'%q' is none of")):
        with pytest.raises(InvalidSetting, match=problem):
            seconds(["04.03."], time_format=form)
    with pytest.raises(InvalidSetting, match="`time_format` is for text"):
        seconds([datetime(2024, 3, 4)], time_format="%Y")


def frames():
    table = some_points()
    pandas = pytest.importorskip("pandas")
    assert pandas
    yield "polars", table
    yield "polars lazy", table.lazy()
    yield "pandas", table.to_pandas()
    yield "pyarrow", table.to_arrow()


def test_any_frame_gives_the_same_points():
    expected = collect(read_frame(some_points()))
    for name, frame in frames():
        assert collect(read_frame(frame)).equals(expected), name


def test_duckdb():
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB: pip install duckdb")
    relation = duckdb.from_arrow(some_points().to_arrow())
    assert (
        collect(read_frame(relation))
        .sort("person", "time", "lat")
        .equals(collect(read_frame(some_points())).sort("person", "time", "lat"))
    )


def test_the_zone_of_a_duckdb_session_is_not_that_of_the_data():
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB: pip install duckdb")
    with duckdb.connect() as session:
        session.execute("set timezone = 'America/New_York'")
        relation = session.sql("select 'a' uid, timestamptz '2024-03-05 00:30:00+01' datetime, 59.9 lat, 10.7 lng")
        with pytest.raises(InvalidSetting, match="`timezone`"):
            points_from_frame(relation)
        points = points_from_frame(relation, timezone="Europe/Oslo")
    assert collect(points.frame)["time"].to_list() == [int(OSLO[0].timestamp())]


def test_geopandas_attribute_columns():
    pandas = pytest.importorskip("pandas")
    table = some_points().to_pandas()
    table["geometry"] = pandas.Series([object()] * len(table), dtype=object)  # what Polars could not read
    assert collect(read_frame(table)).height == 600


def read_frame(frame):
    return points_from_frame(frame).frame


@pytest.mark.parametrize(
    "columns",
    [
        ("uid", "datetime", "lat", "lng"),  # scikit-mobility
        ("user_id", "tracked_at", "latitude", "longitude"),  # trackintel
        ("traj_id", "t", "y", "x"),  # movingpandas
        ("User", "Timestamp", "LAT", "Lon"),
        ("subscriber", "timestamp", "lat", "lng"),  # operators
        ("IMSI", "timestamp", "lat", "lng"),
    ],
)
def test_known_columns(tmp_path, columns):
    some_points().rename(dict(zip(["uid", "datetime", "lat", "lng"], columns, strict=True))).write_csv(
        tmp_path / "points.csv"
    )
    assert collect(read_points(tmp_path / "points.csv").frame).height == 600


def test_columns_by_name_and_missing_columns(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("who,when,a,b,time\nx,2020-01-01,1,2,nonsense\n")
    found = read_points(file, person="who", time="when", lat="a", lng="b")
    assert collect(found.frame).row(0)[2:] == (1.0, 2.0)
    with pytest.raises(
        InvalidFile, match=r"points.csv: no column .* person; call it 'person', or name it with `person`"
    ):
        read_points(file)
    with pytest.raises(InvalidFile, match="`person` is 'nobody', but the columns are"):
        read_points(file, person="nobody")
    file.write_text("uid,user,time,lat,lng\na,b,2020-01-01,1,2\n")
    with pytest.raises(InvalidFile, match=r"\['uid', 'user'\] could each be the person"):
        read_points(file)
    file.write_text("device_id,subscriber_id,traj_id,time,lat,lng\nx,ann,y,2020-01-01,1,2\n")
    assert collect(read_points(file).frame)["person"].to_list() == ["ann"]


def test_files_folders_globs_and_parquet(tmp_path):
    table = some_points()
    expected = collect(read_frame(table))
    for number, part in enumerate(table.partition_by("uid", maintain_order=True)):
        part.write_csv(tmp_path / f"part{number}.csv")
    (tmp_path / "parquet").mkdir()
    table.write_parquet(tmp_path / "parquet" / "all.parquet")
    assert collect(read_points(str(tmp_path / "part*.csv")).frame).equals(expected)
    assert collect(read_points(tmp_path / "parquet").frame).equals(expected)
    with pytest.raises(InvalidFile, match="one kind"):
        read_points(tmp_path)
    with pytest.raises(InvalidFile, match="no such file"):
        read_points(tmp_path / "nothing*.csv")
    (tmp_path / "other.parquet").write_text("this is text")
    with pytest.raises(InvalidFile, match=r"other.parquet: it cannot be read as parquet"):
        read_points(tmp_path / "other.parquet")
    (tmp_path / "points.xlsx").write_text("x")
    with pytest.raises(InvalidFile, match="one kind"):
        read_points(tmp_path / "points.xlsx")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (",2020-01-01T10:00,1,2", "person missing"),
        ("a,,1,2", "time missing"),
        ("a,yesterday,1,2", "time that is neither ISO nor a number"),
        ("a,2020-02-30T10:00,1,2", "time that is neither ISO nor a number"),
        ("a,2020-01-01T25:00,1,2", "time that is neither ISO nor a number"),
        ("a,2020-01-01T10:00Z,1,2", "time with a zone, unlike most rows"),
        ("a,2020-01-01T10:00,,2", "coordinates missing or not a number"),
        ("a,2020-01-01T10:00,north,2", "coordinates missing or not a number"),
        ("a,2020-01-01T10:00,91,2", "coordinates out of range"),
        ("a,2020-01-01T10:00,1,-181", "coordinates out of range"),
    ],
)
def test_bad_row(tmp_path, row, problem):
    (tmp_path / "a.csv").write_text(HEAD + "b,2020-01-01T09:30,1,2\n")
    (tmp_path / "b.csv").write_text(HEAD + "a,2020-01-01T09:30,1,2\n" + row + "\na,2020-01-01T10:00,1,2\n")
    with pytest.raises(InvalidFile, match=rf"b.csv: line 3: {problem}.*`skip_bad=True`"):
        read_points(tmp_path)
    found = read_points(tmp_path, skip_bad=True)
    assert found.info["skipped"] == {problem: 1}
    assert collect(found.frame).height == 3


def test_rows_in_any_order_are_sorted(tmp_path):
    rows = ["a,2020-01-01T09:30,1,2", "b,2020-01-01T10:00,5,6", "a,2020-01-01T09:00,3,4", "b,2020-01-01T09:00,7,8"]
    found = []
    for number, order in enumerate((rows, sorted(rows), rows[::-1])):
        (tmp_path / f"{number}.csv").write_text(HEAD + "\n".join(order) + "\n")
        found.append(prepare_points(read_points(tmp_path / f"{number}.csv"), step="30min"))
    assert found[0].truth == found[1].truth == found[2].truth
    assert found[0].info["skipped"] == {}


def test_bad_values_are_shown_as_they_stand_in_the_file(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(HEAD + "a,04.03.2024 00:00,north,2\n")
    with pytest.raises(
        InvalidFile, match=r"time '04\.03\.2024 00:00', lat 'north', lng '2'.*`time_format='%d"
    ) as refused:
        read_points(file)
    assert {"time_format", "skip_bad"} <= set(refused.value.settings)
    file.write_text(HEAD + "a,2024-03-04,,2\n")
    with pytest.raises(InvalidFile, match=r"lat missing, lng '2'"):
        read_points(file)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators(tmp_path, mark):
    expected = collect(read_frame(some_points()))
    some_points().write_csv(tmp_path / "points.csv", separator=mark)
    assert collect(read_points(tmp_path / "points.csv").frame).equals(expected)


def test_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text('uid;datetime;lat;lng;note\na;2024-03-04 10:00;59,91;"-10,5";"a, b"\n')
    assert collect(read_points(tmp_path / "a.csv").frame).row(0)[2:] == (59.91, -10.5)
    (tmp_path / "a.csv").write_text("uid;datetime;lat;lng\na;2024-03-04 10:00;59,913,9;2\n")
    with pytest.raises(InvalidFile, match="lat '59,913,9'"):
        read_points(tmp_path / "a.csv")


def test_milliseconds_are_not_taken_for_seconds():
    with pytest.raises(InvalidData, match=r"time out of range.*`time_unit`"):
        seconds([1_583_150_400_000_000], timezone="UTC")


def test_call_records(tmp_path):
    towers = Locations.from_lat_lng(np.array([[1.0, 2.0], [1.1, 2.0]]), ["A", "B"])
    file = tmp_path / "calls.csv"
    file.write_text("person,time,cell\nx,2020-01-01T10:00,A\nx,2020-01-01T11:00,C\n")
    with pytest.raises(InvalidFile, match="line 3: location that is not among the towers"):
        read_points(file, location="cell", towers=towers)
    found = read_points(file, location="cell", towers=towers, skip_bad=True)
    assert collect(found.frame)["location"].to_list() == ["A"]


def test_what_is_no_frame():
    with pytest.raises(InvalidData, match="A list is not a table of points; give a data frame"):
        points_from_frame([1, 2, 3])


def test_the_frame_that_is_handed_in_stays_as_it_is():
    table = some_points().to_pandas()
    before = table.copy()
    collect(read_frame(table))
    assert table.equals(before)


def test_call_records_are_recognised_where_there_are_no_coordinates():
    calls = pl.DataFrame({"subscriber": ["a"], "timestamp": ["2024-03-04 08:00"], "Cell_ID": ["A"]})
    assert collect(points_from_frame(calls).frame)["location"].to_list() == ["A"]
    both = calls.with_columns(lat=59.9, lng=10.7)
    assert "location" not in points_from_frame(both).frame.collect_schema().names()
    assert collect(points_from_frame(both, location="Cell_ID").frame)["location"].to_list() == ["A"]
    with pytest.raises(InvalidData, match="known as the longitude"):
        points_from_frame(calls.with_columns(lat=59.9))
    with pytest.raises(InvalidData, match="known as the latitude"):
        points_from_frame(calls.rename({"Cell_ID": "id"}))
