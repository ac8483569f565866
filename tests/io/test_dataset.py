"""Datasets and tables: what is written is read again; what is wrong is named."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.io.tables.trajectories import read_trajectories

LOCATIONS = rk.Locations([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]], ["a", "b", "c"])
TRUTH = rk.Trajectories(
    [[0, 0, 1, 1], [1, 1, 1, 2]], LOCATIONS, rk.Calendar("2024-01-01 03:20", "1h"), ["Ann", "Ben"]
)
COUNTS = TRUTH.counts()
# No quotation marks: polars does not read its own in the header of a csv.
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"'), min_size=1).filter(
    lambda name: name == name.strip()
)


def rename(truth, place_names, people_names):
    places = rk.Locations(truth.locations.xy_km, place_names[: len(truth.locations)])
    return rk.Trajectories(truth.cells, places, truth.calendar, people_names[: truth.people])


@st.composite
def named_truths(draw):
    place_names = draw(st.lists(NAMES, min_size=7, max_size=7, unique=True))
    people_names = draw(st.lists(NAMES, min_size=7, max_size=7, unique=True))
    return rename(draw(truths(away=True)), place_names, people_names)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(truth=named_truths())
def test_round_trips(tmp_path, truth):
    counts, locations, step = truth.counts(), truth.locations, truth.calendar.step
    rk.write_dataset(tmp_path / "data", counts=counts, truth=truth, info={"licence": "none"}, overwrite=True)
    data = rk.read_dataset(tmp_path / "data")
    assert (data.counts, data.truth, data.info) == (counts, truth, {"licence": "none"})
    assert (data.locations, data.calendar, data.people) == (locations, truth.calendar, truth.people)
    for ending in ("csv", "parquet"):
        places = tmp_path / f"locations.{ending}"
        rk.write_locations(places, locations, overwrite=True)
        assert rk.read_locations(places) == locations
        rk.write_trajectories(tmp_path / f"truth.{ending}", truth, overwrite=True)
        assert read_trajectories(tmp_path / f"truth.{ending}", locations, truth.calendar) == truth
        for form in ("long", "wide"):
            if form == "wide" and {"datetime", "location", "count"} & set(locations.ids):
                continue
            rk.write_counts(tmp_path / f"counts.{ending}", counts, form=form, overwrite=True)
            read = rk.read_counts(tmp_path / f"counts.{ending}", places, step=step)
            assert np.array_equal(read.values, counts.values)  # a table does not say how many people there are in all
            assert (read.calendar, read.locations, read.people) == (counts.calendar, locations, counts.totals.max())


def test_degrees_are_kept(tmp_path):
    locations = rk.Locations.from_lat_lng([[41.15, -8.61], [41.2, -8.7]])
    for ending in ("csv", "parquet"):
        path = tmp_path / f"locations.{ending}"
        rk.write_locations(path, locations)
        found = rk.read_locations(path)
        assert found == locations
        assert np.array_equal(found.lat_lng, locations.lat_lng)
    pl.DataFrame({"location": ["0", "1"], "lat": [41.15, 41.2], "lng": [-8.61, -8.7]}).write_csv(tmp_path / "d.csv")
    assert rk.read_locations(tmp_path / "d.csv") == locations


GRID = """index,ID,towerlocation,bottomleft,topright
0,"(0, 0)","(4700.0, -715.0)","(4699.0, -716.0)","(4701.0, -714.0)"
1,"(0, 1)","(4700.0, -713.0)","(4699.0, -714.0)","(4701.0, -712.0)"
2,"(1, 0)","(4702.0, -715.0)","(4701.0, -716.0)","(4703.0, -714.0)"
"""
WIDE = """"datetime","(0, 0)","(0, 1)","(1, 0)"
2014-05-01 00:00:00,5,6,15
2014-05-01 00:10:00,5,5,16
2014-05-01 00:20:00,0,10,16
"""


def test_the_papers_files(tmp_path):
    (tmp_path / "wide.csv").write_text(WIDE)
    (tmp_path / "grid.csv").write_text(GRID)
    counts = rk.read_counts(tmp_path / "wide.csv", tmp_path / "grid.csv")
    assert counts.people == 26
    assert counts.values.tolist() == [[5, 6, 15], [5, 5, 16], [0, 10, 16]]
    assert counts.calendar == rk.Calendar("2014-05-01", "10min", 3)
    assert counts.locations.xy_km.tolist() == [[-715, 4700], [-713, 4700], [-715, 4702]]  # east, north
    # Without the grid file, rows and columns are squares of that side.
    alone = rk.read_counts(tmp_path / "wide.csv", cell_km=2)
    assert np.array_equal(alone.values, counts.values)
    assert np.array_equal(alone.locations.distances, counts.locations.distances)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_by_pandas(tmp_path, ending):
    """Nanoseconds, plain text or numbers as names, in any order, and an index."""
    steps, places = np.nonzero(COUNTS.values)
    frame = pd.DataFrame(
        {
            "datetime": COUNTS.calendar.times()[steps].astype("datetime64[ns]"),
            "location": [7 * place for place in places],
            "count": COUNTS.values[steps, places].astype(float),
        }
    ).sample(frac=1, random_state=0)
    numbered = rk.Locations(LOCATIONS.xy_km, ["0", "7", "14"])
    truth = TRUTH.xy_km()  # any array of the right length
    people = pd.DataFrame(
        {
            "person": pd.Categorical(np.repeat(["Ann", "Ben"], TRUTH.steps)),
            "datetime": np.tile(TRUTH.calendar.times().astype("datetime64[ns]"), 2),
            "location": [LOCATIONS.ids[cell] for cell in TRUTH.cells.ravel()],
            "more": truth.reshape(-1, 2)[:, 0],
        }
    )
    for name, table in (("counts", frame), ("truth", people)):
        if ending == "csv":
            table.to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            table.to_parquet(tmp_path / f"{name}.parquet")
    expected = rk.Counts(COUNTS.values, numbered, COUNTS.calendar)
    assert rk.read_counts(tmp_path / f"counts.{ending}", numbered) == expected
    assert read_trajectories(tmp_path / f"truth.{ending}", LOCATIONS, TRUTH.calendar) == TRUTH


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffdatetime,a,b,c\r\n2024-01-01 00:00,1,1,0\r\n2024-01-01 01:00,2,0,0\r\n",
        "datetime,b,a,c\n2024-01-01T00:00:00,1,1,0\n2024-01-01T01:00:00,0, 2 ,0\n",
        "datetime,a,b,c\n2024-01-01,1.0,1.0,0\n2024-01-01 01:00:00.000,2,0,0\n",
        "location,count,datetime\na,2,2024-01-01 01:00\nb,1,2024-01-01\na,1,2024-01-01\n",
    ],
)
def test_forms_of_csv(tmp_path, text):
    (tmp_path / "counts.csv").write_bytes(text.encode())
    counts = rk.read_counts(tmp_path / "counts.csv", LOCATIONS)
    assert counts == rk.Counts([[1, 1, 0], [2, 0, 0]], LOCATIONS, rk.Calendar("2024-01-01", "1h"))


HEAD = "datetime,a,b,c\n2024-01-01 00:00:00,1,1,0\n"
LONG = "datetime,location,count\n2024-01-01 00:00:00,a,2\n2024-01-01 01:00:00,b,2\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "2024-01-01 01:00:00,3,-1,0\n", ["row 2", "'b'", "whole number of at least 0", "'-1'"]),
        (HEAD + "2024-01-01 01:00:00,1.5,0.5,0\n", ["row 2", "'a'", "whole number", "'1.5'"]),
        (HEAD + "2024-01-01 01:00:00,1,1,\n", ["row 2", "'c'", "nothing"]),
        (HEAD + "2024-01-01 01:00:00,1,1\n", ["row 2", "'c'", "nothing"]),
        (HEAD + "2024-01-01 01:00:00,1,nan,1\n", ["row 2", "'b'", "nan"]),
        (HEAD + '2024-01-01 01:00:00,1,"1,000",1\n', ["row 2", "'b'", "'1,000'"]),
        (HEAD + "2024-01-01 01:00:00,99999999999999999999,1,1\n", ["row 2", "'a'", "99999999999999999999"]),
        (HEAD + "2024-01-01 01:00:00,1,1,0,5\n", ["csv"]),
        (HEAD + "2024-01-01 00:00:00,1,1,0\n2024-01-01 01:00:00,1,1,0\n", ["row 2", "00:00:00", "twice"]),
        (HEAD + "2024-01-01 01:00:00,1,1,0\n2024-01-01 03:00:00,1,1,0\n", ["01:00:00", "03:00:00", "1:00:00", "missing"]),
        (HEAD + "2023-12-31 23:00:00,1,1,0\n", ["row 2", "23:00:00", "after a later"]),
        (HEAD + "2024-01-01 00:07:00,1,1,0\n", ["0:07:00", "24 hours"]),
        (HEAD + "noon,1,1,0\n", ["row 2", "'datetime'", "'noon'", "2014-05-01 00:10:00"]),
        (HEAD + ",1,1,0\n", ["row 2", "'datetime'", "nothing"]),
        (HEAD + "2024-01-01 01:00:00.5,1,1,0\n", ["row 2", "whole seconds", "01:00:00.5"]),
        (HEAD + "2024-01-01 01:00:00+01:00,1,1,0\n", ["row 2", "local clock time", "+01:00"]),
        (HEAD, ["single time", "step"]),
        (HEAD.replace("b", "x") + "2024-01-01 01:00:00,1,1,0\n", ["'x'", "3 known locations"]),
        (HEAD.replace("c", "b") + "2024-01-01 01:00:00,1,1,0\n", ["two columns 'b'"]),
        (HEAD.replace("datetime", "moment"), ["'datetime'", "moment, a, b"]),
        (HEAD.replace(",", "~"), ["'datetime'", "datetime~a~b"]),
        (HEAD.replace("1,1,0", "0,0,0") + "2024-01-01 01:00:00,0,0,0\n", ["nobody"]),
        ("datetime\n2024-01-01\n", ["no column but"]),
        ("datetime,a,b,c\n", ["no rows"]),
        ("", ["empty"]),
        ("\n\n", ["csv"]),
        (LONG + "2024-01-01 01:00:00,x,1\n", ["row 3", "'location'", "'x'", "3 known names"]),
        (LONG + "2024-01-01 01:00:00,a,0\n2024-01-01 01:00:00,,1\n", ["row 4", "'location'", "nothing"]),
        (LONG + "2024-01-01 01:00:00,b,2\n", ["'b'", "twice", "2024-01-01 01:00:00"]),
        (LONG + "2024-01-01 01:00:00,c,-1\n", ["row 3", "'count'", "'-1'"]),
        (LONG + "2024-01-01 02:00:00,c,\n", ["row 3", "'count'", "nothing"]),
        (LONG + "2024-01-01 03:00:00,c,2\n", ["03:00:00", "missing"]),
    ],
)  # fmt: skip
def test_bad_counts(tmp_path, text, words):
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_counts(path, LOCATIONS)
    assert_names(error, path, words)


def assert_names(error, path, words):
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert error.value.path == path
    for word in words:
        assert word in message.removeprefix(str(path))
    assert "\n" not in message
    assert message.count(". ") <= 1  # two sentences at the most


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("counts.parquet", HEAD.encode(), ["not a parquet file", "'.parquet'"]),
        ("counts.parquet", b"PAR1 and then nothing", ["parquet"]),
        ("counts.csv", b"PAR1....", ["a parquet file", "'.csv'"]),
        ("counts.csv", b"\x89PNG\r\n\x1a\n\xff\xfe\x00\x00", []),
        ("counts.csv", b"PK\x03\x04" + bytes(range(256)), []),
    ],
)
def test_not_what_the_name_says(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_counts(tmp_path / name, LOCATIONS)
    assert_names(error, tmp_path / name, words)


def test_no_file_or_a_folder(tmp_path):
    for path, words in ((tmp_path / "no.csv", ["does not exist"]), (tmp_path, ["folder"])):
        with pytest.raises(rk.errors.InvalidFile) as error:
            rk.read_counts(path, LOCATIONS)
        assert_names(error, path, words)


def test_locations_must_be_known(tmp_path):
    (tmp_path / "counts.csv").write_text(HEAD)
    with pytest.raises(rk.errors.InvalidFile, match=r"'a'.*give `locations`"):
        rk.read_counts(tmp_path / "counts.csv")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pl.Series("count", [True, True]), ["'count'", "Boolean"]),
        (pl.Series("count", [1.5, 1.0]), ["row 1", "1.5"]),
        (pl.Series("count", [2, -2]), ["row 2", "-2"]),
        (pl.Series("count", [2, 2**64 - 1], dtype=pl.UInt64), ["row 2", str(2**64 - 1)]),
        (pl.Series("count", [2, None]), ["row 2", "nothing"]),
        (pl.Series("datetime", [1, 2]), ["'datetime'", "Int64"]),
        (pl.Series("datetime", ["2024-01-01", None]).str.to_datetime(), ["row 2", "nothing"]),
        (pl.Series("datetime", ["2024-01-01", "2024-01-02"]).str.to_datetime(time_zone="UTC"), ["zone UTC"]),
        (pl.Series("location", ["a", "z"], dtype=pl.Categorical), ["row 2", "'z'"]),
        (pl.Series("location", [["a"], ["b"]]), ["'location'", "List"]),
    ],
)
def test_bad_parquet(tmp_path, column, words):
    path = tmp_path / "counts.parquet"
    table = pl.read_csv(LONG.encode()).with_columns(pl.col("datetime").str.to_datetime())
    table.with_columns(column).write_parquet(path)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_counts(path, LOCATIONS)
    assert_names(error, path, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("location,x_km,y_km\na,1,2\na,3,4\n", ["'a'", "twice"]),
        ("location,x_km,y_km\na,1,\n", ["row 1", "'y_km'", "nothing"]),
        ("location,x_km,y_km\na,1,two\n", ["row 1", "'y_km'", "'two'"]),
        ("location,x_km,y_km\na,1,inf\n", ["'a'", "inf"]),
        ("location,x_km,y_km\n,1,2\n", ["row 1", "'location'", "nothing"]),
        ("location,x_km\na,1\n", ["'y_km'"]),
        ("place,x_km,y_km\na,1,2\n", ["'location'", "place"]),
        ("location,lat,lng\na,116,39\n", ["116", "exchanged"]),
        ("location,lat,lng\na,39,116\nb,39,\n", ["row 2", "'lng'", "nothing"]),
        ("ID,towerlocation\na,here\n", ["row 1", "'towerlocation'", "'here'", "north"]),
        ("ID,towerlocation\na,\"(--1, 2)\"\n", ["not a number"]),
    ],
)  # fmt: skip
def test_bad_locations(tmp_path, text, words):
    path = tmp_path / "locations.csv"
    path.write_text(text)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_locations(path)
    assert_names(error, path, words)


PEOPLE = "person,datetime,location\n" + "".join(
    f"{person},{time},{LOCATIONS.ids[cell]}\n"
    for person, cells in zip(TRUTH.people_ids, TRUTH.cells, strict=True)
    for time, cell in zip(TRUTH.calendar.times(), cells, strict=True)
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Ben,2024-01-01T05", "Ben,2024-01-01T04"), ["row 5", "twice", "2024-01-01 04:20:00"]),
        (("person,", "name,"), ["'person'"]),
        (("Ben,2024-01-01T05", ",2024-01-01T05"), ["row 7", "'person'", "nothing"]),
        (("Ben,2024-01-01T05:20:00,b", "Ben,2024-01-01T05:20:00,z"), ["row 7", "'z'"]),
        (("Ben,2024-01-01T05:20", "Ben,2024-01-01T05:21"), ["row 7", "05:21", "calendar"]),
        (("Ben,2024-01-01T05", "Ben,2024-01-01T23"), ["row 7", "calendar", "06:20"]),
    ],
)
def test_bad_trajectories(tmp_path, change, words):
    path = tmp_path / "truth.csv"
    path.write_text(PEOPLE)
    assert read_trajectories(path, LOCATIONS, TRUTH.calendar) == TRUTH
    path.write_text(PEOPLE.replace(*change, 1))
    with pytest.raises(rk.errors.InvalidFile) as error:
        read_trajectories(path, LOCATIONS, TRUTH.calendar)
    assert_names(error, path, words)


# The dataset folder


@pytest.fixture
def folder(tmp_path):
    rk.write_dataset(tmp_path / "data", counts=COUNTS, truth=TRUTH)
    return tmp_path / "data"


def change_json(path, **changes):
    value = json.loads(path.read_text())
    value.update(changes)
    path.write_text(json.dumps(value))


CALENDAR = COUNTS.calendar.to_json()


def test_people_of_a_dataset_who_are_not_in_its_counts(folder):
    change_json(folder / "dataset.json", people=3)
    assert rk.read_dataset(folder, truth=False).counts.away.tolist() == [1, 1, 1, 1]
    with pytest.raises(rk.errors.InvalidFile, match="The truth has 2 people, the counts have 3"):
        rk.read_dataset(folder)
    change_json(folder / "dataset.json", people=1)
    with pytest.raises(rk.errors.InvalidFile, match=r"counts\.parquet: `people` is 1.*2 people"):
        rk.read_dataset(folder)


def test_a_person_without_a_row_is_away(tmp_path):
    path = tmp_path / "truth.csv"
    rk.write_trajectories(path, TRUTH)
    path.write_text(path.read_text().replace("Ben,2024-01-01T05:20:00,b\n", "").replace("04:20:00,b", "04:20:00,"))
    assert read_trajectories(path, LOCATIONS, TRUTH.calendar).cells.tolist() == [[0, 0, 1, 1], [1, rk.AWAY, 1, 2]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"people": None}, ["'people' is None"]),
        ({"calendar": None}, ["'calendar'", "None"]),
        ({"calendar": CALENDAR | {"start": 5}}, ["start and step as text"]),
        ({"calendar": CALENDAR | {"start": "2024-01-01 00:00:00.5"}}, ["whole second"]),
        ({"calendar": CALENDAR | {"steps": None}}, ["number of steps"]),
        ({"calendar": CALENDAR | {"steps": "4"}}, ["'4'"]),
    ],
)
def test_bad_description(folder, changes, words):
    change_json(folder / "dataset.json", **changes)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_dataset(folder)
    assert_names(error, folder / "dataset.json", words)


@pytest.mark.parametrize(
    ("calendar", "words"),
    [
        ({"steps": 3}, ["row", "06:20:00", "to 2024-01-01 05:20:00"]),
        ({"steps": 5}, ["2024-01-01 07:20:00", "missing"]),
        ({"steps": 10**7}, ["2024-01-01 07:20:00", "missing"]),  # and no memory for as many steps
        ({"start": "2024-01-01 03:00"}, ["row 1", "03:20:00"]),
    ],
)
def test_counts_of_another_calendar(folder, calendar, words):
    change_json(folder / "dataset.json", calendar=CALENDAR | calendar)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_dataset(folder)
    assert_names(error, folder / "counts.parquet", words)


def test_a_truth_that_does_not_fit(folder):
    other = rk.Trajectories(TRUTH.cells[:, ::-1], LOCATIONS, TRUTH.calendar)
    rk.write_trajectories(folder / "truth.parquet", other, overwrite=True)
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_dataset(folder)
    assert_names(error, folder / "truth.parquet", ["2024-01-01 03:20:00", "'a'", "counts say 1", "truth has 0"])
    with pytest.raises(rk.errors.InvalidData, match="does not fit"):
        rk.Dataset(COUNTS, other)
    with pytest.raises(rk.errors.InvalidData, match="1 people"):
        rk.Dataset(COUNTS, rk.Trajectories(TRUTH.cells[:1], LOCATIONS, TRUTH.calendar))
    with pytest.raises(rk.errors.InvalidData, match="calendar"):
        rk.Dataset(COUNTS, rk.Trajectories(TRUTH.cells, LOCATIONS, rk.Calendar("2024-01-02", "1h")))
    with pytest.raises(rk.errors.InvalidData, match="locations"):
        rk.Dataset(COUNTS, rk.Trajectories(TRUTH.cells, rk.Locations(LOCATIONS.xy_km), TRUTH.calendar))


@pytest.mark.parametrize("name", ["counts.parquet", "locations.parquet", "dataset.json"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(rk.errors.InvalidFile, match=name):
        rk.read_dataset(folder)


def test_no_dataset(tmp_path):
    with pytest.raises(rk.errors.InvalidFile, match="does not exist"):
        rk.read_dataset(tmp_path / "no")
    (tmp_path / "file").touch()
    with pytest.raises(rk.errors.InvalidFile, match="is a file"):
        rk.read_dataset(tmp_path / "file")


def content(folder: Path):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_there_is_kept(folder):
    before = content(folder)
    other = rk.Counts([[5, 0, 0]], LOCATIONS, TRUTH.calendar.closed_at(1))
    with pytest.raises(rk.errors.OutputExists, match="left as it is"):
        rk.write_dataset(folder, counts=other)
    for bad in ({"x": object()}, {"people": 7}):
        with pytest.raises(rk.errors.InvalidData):
            rk.write_dataset(folder, counts=other, info=bad, overwrite=True)
    with pytest.raises(rk.errors.InvalidData):
        rk.write_dataset(folder, counts=other, truth=TRUTH, overwrite=True)
    assert content(folder) == before
    rk.write_dataset(folder, counts=other, overwrite=True)
    assert "truth.parquet" not in content(folder)
    assert rk.read_dataset(folder) == rk.Dataset(other)
    assert [path.name for path in folder.parent.iterdir()] == ["data"]


def test_other_folders_are_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(rk.errors.InvalidFile, match=r"no rekindle\.json"):
        rk.write_dataset(tmp_path, counts=COUNTS, overwrite=True)
    assert content(tmp_path) == {"thesis.tex": b"years of work"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_in_the_middle_leaves_nothing(tmp_path, monkeypatch, overwrite):
    folder = tmp_path / "data"
    if overwrite:
        rk.write_dataset(folder, counts=COUNTS)
    before = content(tmp_path)

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rekindle.io.dataset.trajectories_table", fail)
    with pytest.raises(OSError, match="No space"):
        rk.write_dataset(folder, counts=COUNTS, truth=TRUTH, overwrite=overwrite)
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["data"] * overwrite


def test_the_same_bytes_each_time(tmp_path):
    for name in ("one", "two"):
        rk.write_dataset(tmp_path / name, counts=COUNTS, truth=TRUTH)
    assert content(tmp_path / "one") == content(tmp_path / "two")


# GeoJSON


@pytest.mark.parametrize("degrees", [False, True])
def test_geojson(tmp_path, degrees):
    """As RFC 7946 asks: longitude first and within 180 degrees, lines of two points at least."""
    truth = random_truth(np.random.default_rng(0), people=9, places=4, steps=6, stay=0.8)
    if degrees:
        places = rk.Locations.from_lat_lng([[41.1, 351.4], [41.2, -8.6], [41.1, -8.5], [41.2, -8.5]])
        truth = rk.Trajectories(truth.cells, places, truth.calendar)
    rk.write_trajectories(tmp_path / "people.geojson", truth)
    found = json.loads((tmp_path / "people.geojson").read_text(encoding="utf-8"))
    assert found["type"] == "FeatureCollection"
    assert "crs" not in found
    assert len(found["features"]) == truth.people
    kinds = set()
    for feature, cells in zip(found["features"], truth.cells, strict=True):
        assert feature["type"] == "Feature"
        points, more = feature["geometry"]["coordinates"], feature["properties"]
        kinds.add(feature["geometry"]["type"])
        assert feature["geometry"]["type"] == ("LineString" if len(points) > 1 else "MultiPoint")
        assert all(abs(lng) <= 180 and abs(lat) <= 90 for lng, lat in points)
        steps = [list(map(str, truth.calendar.times())).index(time) for time in more["times"]]
        rebuilt = np.repeat(more["locations"], np.diff([*steps, truth.steps])).astype(int)
        assert rebuilt.tolist() == cells.tolist()
        if degrees:
            assert points[0] == pytest.approx([[-8.6, 41.1], [-8.6, 41.2], [-8.5, 41.1], [-8.5, 41.2]][cells[0]])
    assert kinds == {"LineString", "MultiPoint"}
    assert ("note" in found) is not degrees


def geojson(tmp_path, cells, form):
    places = rk.Locations.from_lat_lng([[41.1, -8.6], [41.2, -8.5]], ["a", "b"])
    people = rk.Trajectories(cells, places, rk.Calendar("1970-01-02 00:00", "1h"))
    rk.write_trajectories(tmp_path / "people.geojson", people, form=form)
    return [
        (one["properties"], one["geometry"]["type"], one["geometry"]["coordinates"])
        for one in json.loads((tmp_path / "people.geojson").read_text())["features"]
    ]


def test_no_line_is_drawn_across_the_time_away(tmp_path):
    found = geojson(tmp_path, [[0, 1, -1, -1, 0, 0], [-1, -1, -1, -1, -1, -1]], "paths")
    assert [(one[0]["locations"], one[1]) for one in found] == [(["a", "b"], "LineString"), (["a"], "MultiPoint")]
    assert found[1][0]["times"] == ["1970-01-02T04:00:00"]


def test_trips_for_kepler(tmp_path):
    """A line with the time in each point, where a stay begins and where it ends."""
    found = geojson(tmp_path, [[0, 0, 0, 1, -1, 1]], "trips")
    hour, day = 3600, 86_400
    a, b = [-8.6, 41.1, 0], [-8.5, 41.2, 0]
    assert [one[1:] for one in found] == [
        ("LineString", [[*a, day], [*a, day + 2 * hour], [*b, day + 3 * hour]]),
        ("LineString", [[*b, day + 5 * hour], [*b, day + 6 * hour]]),
    ]
    assert {one[0]["person"] for one in found} == {"0"}
    with pytest.raises(rk.errors.InvalidFile, match=r"trips are written to \.geojson"):
        rk.write_trajectories(tmp_path / "people.csv", TRUTH, form="trips")
    with pytest.raises(rk.errors.InvalidSetting, match="form"):
        rk.write_trajectories(tmp_path / "people.geojson", TRUTH, form="kepler")


def test_only_known_endings(tmp_path):
    for write in (rk.write_trajectories, rk.write_counts, rk.write_locations):
        with pytest.raises(rk.errors.InvalidFile, match=r"'\.xlsx'; use \.csv"):
            write(tmp_path / "a.xlsx", {rk.write_trajectories: TRUTH, rk.write_counts: COUNTS}.get(write, LOCATIONS))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("public", [True, False, None])
def test_whether_locations_are_public_is_kept(tmp_path, public):
    counts = rk.Counts([[1, 2]], rk.Locations([[0, 0], [1, 0]], public=public), rk.Calendar("2024-03-01", "1h"))
    rk.write_dataset(tmp_path / "d", counts=counts)
    assert rk.read_dataset(tmp_path / "d").locations.public is public
    about = json.loads((tmp_path / "d" / "dataset.json").read_text()) | {"public_locations": "yes"}
    (tmp_path / "d" / "dataset.json").write_text(json.dumps(about))
    with pytest.raises(rk.errors.InvalidFile, match="'public_locations' is 'yes'"):
        rk.read_dataset(tmp_path / "d")
