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
from rekindle.sources import points_from_frame, read_points
from rekindle.sources.points import collect, month_of

HEAD = "uid,datetime,lat,lng\n"


def seconds(text, **settings):
    """The seconds that one time column becomes."""
    frame = pl.DataFrame({"person": ["a"] * len(text), "time": text, "lat": 1.0, "lng": 2.0})
    points = points_from_frame(frame, **settings)
    return points, collect(points.frame)["time"].to_list()


@settings(deadline=None, max_examples=50)
@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)),
    st.sampled_from(["seconds", "minutes", "microseconds"]),
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from("T "),
)
def test_iso_times_are_read_as_python_reads_them(when, precision, offset, separator):
    zoned = when.replace(tzinfo=timezone(timedelta(minutes=offset))).isoformat(separator, precision)
    expected = datetime.fromisoformat(zoned).timestamp() // 1
    if expected >= 0:
        assert seconds([zoned])[1] == [expected]
    local = when.isoformat(separator, precision)
    points, found = seconds([local])
    assert found == [datetime.fromisoformat(local).replace(tzinfo=UTC).timestamp() // 1]
    assert points.timezone is None


@settings(deadline=None, max_examples=50)
@given(st.dates(datetime(1970, 1, 1).date(), datetime(2400, 1, 1).date()), st.integers(0, 86_399))
def test_months_are_those_of_the_calendar(day, second):
    moment = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) + second
    frame = nw.from_native(pl.DataFrame({"time": [moment, 0]}).lazy())
    found, of_1970 = collect(frame.select(month_of(nw.col("time"))))["time"].to_list()
    assert found - of_1970 == (day.year - 1970) * 12 + day.month - 1


def test_other_forms_of_time():
    noon = datetime(2020, 3, 2, 12)
    moment = int(noon.replace(tzinfo=UTC).timestamp())
    assert seconds(["2020-03-02"])[1] == [moment - 43_200]
    assert seconds([str(moment)])[1] == [moment]
    assert seconds([moment])[1] == [moment]
    assert seconds([moment * 1000], time_unit="ms")[1] == [moment]
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
    with pytest.raises(InvalidFile, match="time missing"):
        points_from_frame(frame)
    assert collect(points_from_frame(frame, skip_bad=True).frame)["time"].to_list() == [5]


def test_mixed_zones():
    times = ["2020-03-02T12:00:00+01:00", "2020-03-02T12:00:00+02:00"]
    with pytest.raises(InvalidFile, match=r"another zone.*`mixed_zones=True`"):
        seconds(times)
    points, found = seconds(times, mixed_zones=True)
    assert found[0] - found[1] == 3600
    assert points.info["skipped"] == {}
    with pytest.raises(InvalidFile, match="another zone"):
        seconds([times[0], "2020-03-02T12:00:00"], mixed_zones=True)
    assert len(seconds(times, skip_bad=True)[1]) == 1


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
    with pytest.raises(InvalidFile, match=r"points.csv: no column .* person; name it with --person"):
        read_points(file)
    with pytest.raises(InvalidFile, match="there is no column 'nobody' for the person"):
        read_points(file, person="nobody")
    file.write_text("uid,user,time,lat,lng\na,b,2020-01-01,1,2\n")
    with pytest.raises(InvalidFile, match=r"\['uid', 'user'\] could each be the person"):
        read_points(file)


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
        ("a,2020-01-01T10:00Z,1,2", "time in another zone than the first row"),
        ("a,2020-01-01T09:00,1,2", "time out of order"),
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


def test_unsorted_rows_pass_if_asked(tmp_path):
    (tmp_path / "a.csv").write_text(HEAD + "a,2020-01-01T09:30,1,2\na,2020-01-01T09:00,1,2\n")
    with pytest.raises(InvalidFile, match="`unsorted=True`"):
        read_points(tmp_path)
    assert collect(read_points(tmp_path, unsorted=True).frame).height == 2


def test_milliseconds_are_not_taken_for_seconds():
    with pytest.raises(InvalidFile, match=r"time out of range.*`time_unit`"):
        seconds([1_583_150_400_000_000])


def test_call_records(tmp_path):
    towers = Locations.from_lat_lng(np.array([[1.0, 2.0], [1.1, 2.0]]), ["A", "B"])
    file = tmp_path / "calls.csv"
    file.write_text("person,time,cell\nx,2020-01-01T10:00,A\nx,2020-01-01T11:00,C\n")
    with pytest.raises(InvalidFile, match="line 3: location that is not among the towers"):
        read_points(file, location="cell", towers=towers)
    found = read_points(file, location="cell", towers=towers, skip_bad=True)
    assert collect(found.frame)["location"].to_list() == ["A"]


def test_what_is_no_frame():
    with pytest.raises(InvalidData, match="data frame"):
        points_from_frame([1, 2, 3])


def test_the_frame_that_is_handed_in_stays_as_it_is():
    table = some_points().to_pandas()
    before = table.copy()
    collect(read_frame(table))
    assert table.equals(before)
