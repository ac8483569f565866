"""A published table is read as what it is, and the reader says which."""

import re

import numpy as np
import pytest

import rekindle as rk
from rekindle.io import read_published, write_release
from rekindle.model import Release

PLACES = rk.Locations([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]], ["a", "b", "c"])  # two sectors on one mast
RANDOM = np.random.default_rng(3)
VALUES = RANDOM.multinomial(8, [0.5, 0.3, 0.2], size=24)
CALENDAR = rk.Calendar("2024-03-01", "1h")


def written(path, values, form="long"):
    write_release(path, Release(values, PLACES, CALENDAR), form=form)
    return path


@pytest.mark.parametrize("form", ["long", "wide"])
def test_an_exact_table_is_read_as_counts(tmp_path, form):
    found = read_published(written(tmp_path / "a.csv", VALUES, form), PLACES)
    assert found.data == rk.Counts(VALUES, PLACES, CALENDAR)
    assert found.note == "a.csv was read as exact counts of 8 people at each step."


@pytest.mark.parametrize("form", ["long", "wide"])
def test_totals_that_vary_are_people_who_come_and_go(tmp_path, form):
    changed = VALUES.copy()
    changed[7, 1] += 8
    found = read_published(written(tmp_path / "a.csv", changed, form), PLACES)
    assert found.data == rk.Counts(changed, PLACES, CALENDAR)
    assert found.data.away.max() == 8
    assert "exact counts of 8 to 16 people" in found.note
    assert "away" in found.note


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values: np.where(values < 2, np.nan, values), r"of 72 numbers \d+ are withheld\."),
        (lambda values: np.where(np.arange(72).reshape(24, 3) == 5, np.nan, values), "of 72 numbers 1 is withheld"),
        (lambda values: values - 2 * (values == values.min()), "are negative"),
        (lambda values: values + 0.25, "of 72 numbers 72 are not whole"),
        (lambda values: np.round(values / 5) * 5, "all numbers are multiples of 5"),
    ],
)
def test_protected_numbers_are_a_release_and_the_note_says_why(tmp_path, change, words):
    changed = change(VALUES.astype(float))
    found = read_published(written(tmp_path / "a.csv", changed), PLACES)
    np.testing.assert_array_equal(found.data.values, changed)
    assert isinstance(found.data, Release)
    assert re.search(rf"^a\.csv was read as a release.*{words}", found.note)


def test_rows_left_out(tmp_path):
    """Zeros need no row; where everything but small numbers adds up, what is missing was withheld."""
    rk.write_counts(tmp_path / "exact.csv", rk.Counts(VALUES, PLACES, CALENDAR))
    assert isinstance(read_published(tmp_path / "exact.csv", PLACES).data, rk.Counts)
    rows = ["datetime,location,count"]
    rows += [f"{CALENDAR.time(t)},{PLACES.ids[p]},{VALUES[t, p]}" for t, p in np.argwhere(VALUES > 2)]
    (tmp_path / "cut.csv").write_text("\n".join(rows))
    found = read_published(tmp_path / "cut.csv", PLACES)
    assert "rows are left out, no number is between 0 and 3" in found.note
    assert np.isnan(found.data.values).sum() == (VALUES <= 2).sum()
    assert read_published(tmp_path / "cut.csv", PLACES, absent="zero").data.values.sum() == VALUES[VALUES > 2].sum()


def test_a_missing_step_is_withheld_and_said(tmp_path):
    lines = written(tmp_path / "whole.csv", VALUES).read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join(line for line in lines if "01 05:00" not in line))
    found = read_published(tmp_path / "a.csv", PLACES)
    assert found.note.endswith(
        "after 2024-03-01 04:00:00 comes 2024-03-01 06:00:00, so that steps are missing. 3 numbers have no row and are taken to be "
        "withheld, unless you set `absent='zero'`."
    )
    assert np.isnan(found.data.values).sum(axis=1).nonzero()[0].tolist() == [5]
    with pytest.raises(rk.errors.InvalidFile, match="none may be missing"):
        read_published(tmp_path / "a.csv", PLACES, read_as="counts")


def test_rows_without_a_number_are_counted(tmp_path):
    """A flow of nobody has no row in most tables: taken for withheld, it makes them look safer than they are."""
    rows = [f"2024-03-01 0{hour}:00,{flow}" for hour in range(4) for flow in ("a,a,7", "b,c,<5")]
    (tmp_path / "a.csv").write_text("\n".join(["datetime,origin,destination,count", *rows[:-1]]))
    for absent, words in (
        ("withheld", "1 number has no row and is taken to be withheld, unless you set `absent='zero'`."),
        ("zero", "1 number has no row and is taken to be 0, unless you set `absent='withheld'`."),
    ):
        found = read_published(tmp_path / "a.csv", PLACES, absent=absent)
        assert found.note.endswith(f"of 7 numbers 3 are withheld. {words}")
    header, *wide = written(tmp_path / "wide.csv", VALUES + 0.5, "wide").read_text().splitlines()
    (tmp_path / "b.csv").write_text("\n".join([header, *wide[:3], *wide[4:]]))
    assert read_published(tmp_path / "b.csv", PLACES).note.endswith(
        "3 numbers have no row and are taken to be withheld."
    )


def test_the_location_that_is_unknown_is_named(tmp_path):
    rows = [f'2024-03-01 0{hour}:00,"{name}",1' for hour in range(3) for name in ("(0, 0)", "(0, 1)", "Total")]
    (tmp_path / "a.csv").write_text("\n".join(["datetime,location,count", *rows]))
    with pytest.raises(rk.errors.InvalidFile, match=r"unknown \(such as 'Total'\)"):
        read_published(tmp_path / "a.csv")


def test_a_code_for_withheld_numbers_is_asked_about(tmp_path):
    path = written(tmp_path / "a.csv", np.where(VALUES < 2, -9, VALUES))
    (tmp_path / "a.csv.defences.json").unlink()
    assert re.search(
        r"is -9 \(the first of \d+ numbers below 0\).* leave its field empty", read_published(path, PLACES).note
    )


def test_a_point_between_thousands_is_asked_about(tmp_path):
    rows = [f"2024-03-01 0{hour}:00,a,{number}" for hour, number in enumerate(("950", "1.200", "1.350"))]
    (tmp_path / "a.csv").write_text("\n".join(["datetime,location,count", *rows]))
    with pytest.raises(rk.errors.InvalidFile, match=r"'1\.200' may be a decimal, or have a point between thousands"):
        read_published(tmp_path / "a.csv", PLACES)


def test_columns_that_are_not_told_apart_are_named(tmp_path):
    rows = [f"{CALENDAR.time(t)},{PLACES.ids[p]},{VALUES[t, p]},{VALUES[t, p]}" for t, p in np.ndindex(VALUES.shape)]
    for header, words in (
        (
            "datetime,zone,visitors,people",
            r"\['visitors', 'people'\] could each hold the counts; call the one that does 'count'",
        ),
        ("Zeitpunkt,zone,age,people", "no column of Zeitpunkt, zone, age, people is known as the one of times"),
    ):
        (tmp_path / "a.csv").write_text("\n".join([header, *rows]))
        with pytest.raises(rk.errors.InvalidFile, match=words):
            read_published(tmp_path / "a.csv", PLACES)
    (tmp_path / "a.csv").write_text("\n".join(["datetime,zone,age,people", *rows, *(row[:-1] + "0" for row in rows)]))
    with pytest.raises(rk.errors.InvalidFile, match=r"listed twice at .* differ in 'age', add their counts up"):
        read_published(tmp_path / "a.csv", PLACES, read_as="counts")


def test_what_is_said_is_kept_to(tmp_path):
    path = written(tmp_path / "a.csv", VALUES + 0.5)
    with pytest.raises(rk.errors.InvalidFile, match="whole number") as error:
        read_published(path, PLACES, read_as="counts")
    assert error.value.settings == ()
    with pytest.raises(rk.errors.InvalidSetting, match="`read_as` is 'noise'"):
        read_published(path, PLACES, read_as="noise")
    assert isinstance(read_published(written(tmp_path / "b.csv", VALUES), PLACES, read_as="release").data, Release)


def test_a_number_that_no_count_is(tmp_path):
    """Found by fuzzing: it was cast to a whole number to find what all are multiples of."""
    rows = [f"2024-03-01 0{hour}:00:00,a,{number}" for hour, number in ((0, "5"), (1, "1e300"))]
    (tmp_path / "x.csv").write_text("\n".join(["datetime,location,count", *rows, ""]))
    with pytest.raises(rk.errors.InvalidFile, match=r"within 2\^53"):
        read_published(tmp_path / "x.csv", PLACES)


def test_names_and_dates_that_others_use_are_understood_and_said(tmp_path):
    path = tmp_path / "a.csv"
    rows = [
        f"{1 + step // 24:02d}.03.2024 {step % 24:02d}:00;{name};{number}"
        for step, line in enumerate(VALUES)
        for name, number in zip("abc", line, strict=True)
    ]
    path.write_text("\n".join(["Time;District;Visitors", *rows]))
    found = read_published(path, PLACES)
    assert found.data == rk.Counts(VALUES, PLACES, CALENDAR)
    assert found.note.startswith(
        "a.csv (with 'Time' as datetime, 'District' as location, 'Visitors' as count) was read"
    )


def lines(when):
    """The table of counts with times as written by `when`."""
    times = [when(1 + step // 24, step % 24) for step in range(len(VALUES))]
    return [
        f"{time};{name};{n}"
        for time, line in zip(times, VALUES, strict=True)
        for name, n in zip("abc", line, strict=True)
    ]


@pytest.mark.parametrize(
    ("header", "when"),
    [
        ("fecha;periodo;zona;personas", lambda day, hour: f"202403{day:02d};{hour}"),
        ("Datum;Uhrzeit;Bezirk;Anzahl", lambda day, hour: f"{day:02d}.03.2024;{hour:02d}:00"),
        ("date;time;zone;visitors", lambda day, hour: f"2024-03-{day:02d};{hour:02d}:00:00"),
        ("date_time;zone;n_crisis", lambda day, hour: f"2024-03-{day:02d} {hour:02d}00"),
        ("time;zone;visitors", lambda day, hour: f"2024-03-{day:02d}T{hour:02d}:00:00+01:00"),
        ("time;zone;visitors", lambda day, hour: f"2024-03-{day:02d} {hour:02d}:00Z"),
    ],
)
def test_times_as_others_write_them(tmp_path, header, when):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *lines(when)]))
    assert read_published(path, PLACES).data == rk.Counts(VALUES, PLACES, CALENDAR)


def test_a_date_and_an_hour_in_two_columns_are_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["fecha;periodo;zona;personas", *lines(lambda day, hour: f"202403{day:02d};{hour}")]))
    assert (
        "(with 'fecha and periodo' as datetime, 'zona' as location, 'personas' as count)"
        in read_published(path, PLACES).note
    )


@pytest.mark.parametrize("hour", ["24", "7:60", "noon"])
def test_an_hour_that_is_none(tmp_path, hour):
    path = tmp_path / "a.csv"
    path.write_text(f"date;hour;zone;count\n2024-03-01;0;a;1\n2024-03-01;{hour};a;1\n")
    with pytest.raises(
        rk.errors.InvalidFile, match=f"data row 2, column 'hour': expected an hour from 0 to 23.*{hour}"
    ):
        read_published(path, PLACES)


def test_a_change_of_the_clock_is_not_passed_over(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"2024-03-31T0{hour}:00:00+0{1 + (hour > 1)}:00,a,1" for hour in (0, 1, 3)]
    path.write_text("\n".join(["datetime,location,count", *rows]))
    with pytest.raises(rk.errors.InvalidFile, match=r"row 3.*same offset from UTC as in row 1 \(\+01:00\)"):
        read_published(path, PLACES)


def test_flows_as_others_name_their_columns(tmp_path):
    truth = rk.SyntheticCity(people=9, days=1, step="1h", width_km=2, height_km=2).trajectories()
    flows, path = truth.flows(), tmp_path / "a.csv"
    rk.write_flows(path, flows)
    text = path.read_text().replace("datetime,origin,destination,count", "date_time,start_tile,end_tile,n_crisis", 1)
    path.write_text(text)
    assert read_published(path, truth.locations).data == flows
    assert rk.read_flows(path, truth.locations) == flows


def test_flows_by_which_people_get_lost_are_a_release(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"2024-03-01 0{hour}:00,{a},{b},{3 + hour}" for hour in range(3) for a in "abc" for b in "abc"]
    path.write_text("\n".join(["datetime,origin,destination,count", *rows]))
    found = read_published(path, PLACES)
    assert isinstance(found.data, Release)
    assert "not exact flows of people. The flows do not fit each other: at 2024-03-01 01:00:00" in found.note
    with pytest.raises(rk.errors.InvalidFile, match="do not fit each other"):
        read_published(path, PLACES, read_as="counts")


def test_categories_are_named_where_a_flow_is_listed_twice(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"2024-03-01 0{hour}:00,a,b,{age},<10" for hour in range(3) for age in ("young", "old")]
    path.write_text("\n".join(["hour,from_zone,to_zone,age,trips", *rows]))
    with pytest.raises(rk.errors.InvalidFile, match=r"listed twice at .* differ in 'age', add their counts up"):
        read_published(path, PLACES)


def test_names_of_locations_in_wide_form_are_theirs(tmp_path):
    stations = rk.Locations(PLACES.xy_km, ["station", "n", "zone"])
    path = tmp_path / "a.csv"
    write_release(path, Release(VALUES, stations, CALENDAR), form="wide")
    assert read_published(path, stations).data == rk.Counts(VALUES, stations, CALENDAR)


def test_a_date_with_slashes_may_be_two_days(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("datetime,location,count\n04/03/2024,a,1\n05/03/2024,a,1\n")
    with pytest.raises(rk.errors.InvalidFile, match="such as 2014-05-01 00:10:00, found '04/03/2024'"):
        read_published(path, PLACES)
