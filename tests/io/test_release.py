import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rekindle as rk
from rekindle.io import read_published, read_release, write_release
from rekindle.io.tables.release import WITHHELD
from rekindle.model import Release

places = rk.Locations([[0.5, 0.5], [1.5, 0.5], [2.5, 0.5]], ["(0, 0)", "(0, 1)", "(0, 2)"])
calendar = rk.Calendar("2024-03-01 02:00", "1h")
nan = np.nan


def same(one, other):
    return np.array_equal(one.values, other.values, equal_nan=True) and one.calendar == other.calendar


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["long", "wide"])
@pytest.mark.parametrize(
    "values",
    [
        [[1, nan, 0], [nan, nan, 7]],
        [[1.25, nan, -3.5], [1e-17, 2.5, 0]],
        [[nan, nan, nan], [1, 2, 3]],
        [[1, 2, 3], [4, 5, 6]],
    ],
)
def test_what_is_written_is_read(tmp_path, ending, form, values):
    release = Release(values, places, calendar)
    write_release(tmp_path / f"r.{ending}", release, form=form)
    found = read_release(tmp_path / f"r.{ending}", places)
    assert same(found, release)
    assert found.locations == places
    assert found.defences == ()


@settings(max_examples=50, deadline=None)
@given(
    values=hnp.arrays(
        np.float64, (4, 3), elements=st.one_of(st.just(nan), st.floats(-1e9, 1e9), st.integers(0, 99).map(float))
    ).filter(lambda values: not np.isnan(values).all()),
    ending=st.sampled_from(["csv", "parquet"]),
    form=st.sampled_from(["long", "wide"]),
)
def test_any_numbers_come_back(tmp_path_factory, values, ending, form):
    release = Release(values, places, calendar)
    path = tmp_path_factory.mktemp("releases") / f"r.{ending}"
    write_release(path, release, form=form)
    assert same(read_release(path), release)


def test_whole_numbers_have_no_decimals(tmp_path):
    write_release(tmp_path / "r.csv", Release([[1, nan, 0]], places, calendar), form="wide")
    assert (tmp_path / "r.csv").read_text().splitlines()[1] == "2024-03-01 02:00:00,1,,0"


def test_withheld_marks(tmp_path):
    (tmp_path / "r.csv").write_text(
        'datetime,"(0, 0)","(0, 1)","(0, 2)"\n2024-03-01 02:00,NA, * ,[REDACTED]\n2024-03-01 03:00,-1.5,,12\n'
    )
    assert same(read_release(tmp_path / "r.csv"), Release([[nan] * 3, [-1.5, nan, 12]], places, calendar))
    (tmp_path / "r.csv").write_text('datetime,"(0, 0)","(0, 1)"\n2024-03-01 02:00,few,4\n2024-03-01 03:00,Few,5\n')
    found = read_release(tmp_path / "r.csv", withheld=["few"])
    assert found.withheld.tolist() == [[True, False], [True, False]]
    with pytest.raises(
        rk.errors.InvalidFile, match=r"row 1, column '\(0, 0\)': 'few' is neither a number nor a mark"
    ):
        read_release(tmp_path / "r.csv")


@pytest.mark.parametrize(
    "mark", ["<10", "< 5", "≤3", "<=3", "*", "..", ".", "c", "C", "[c]", "x", ":", "-", "suppressed"]
)
@pytest.mark.parametrize("separator", [",", ";"])
def test_usual_marks_of_withheld_numbers(tmp_path, mark, separator):
    rows = [["datetime", "location", "count"], ["2024-03-01 02:00", "a", mark], ["2024-03-01 02:00", "b", "12"]]
    rows += [["2024-03-01 03:00", "a", "11"], ["2024-03-01 03:00", "b", "13"]]
    (tmp_path / "r.csv").write_text("".join(separator.join(row) + "\n" for row in rows))
    found = read_published(tmp_path / "r.csv", rk.Locations([[0.0, 0.0], [1.0, 0.0]], ["a", "b"]))
    assert found.data.withheld.tolist() == [[True, False], [False, False]]
    assert "1 is withheld" in found.note
    assert rk.check(tmp_path / "r.csv") is not None


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_told_from_names(tmp_path, separator):
    names = ["a|b;c|d", "(0, 1)", "e;f;g"]
    header = [f'"{name}"' if separator in name else name for name in names]
    rows = [["datetime", *header], ["2024-03-01 02:00", "1", "", "3"], ["2024-03-01 03:00", "4", "5", "6"]]
    (tmp_path / "r.csv").write_text("".join(separator.join(row) + "\n" for row in rows))
    found = read_release(tmp_path / "r.csv", rk.Locations(places.xy_km, names))
    assert found.withheld.tolist() == [[False, True, False], [False] * 3]


def test_every_mark_is_in_the_guide():
    guide = (Path(__file__).parents[2] / "docs/guides/datasets.md").read_text()
    assert [mark for mark in WITHHELD if mark and f"`{mark}`" not in guide] == []


def test_locations_beside_the_table_are_found(tmp_path):
    there = rk.Locations([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]], ["(0, 0)", "(0, 1)", "c"])
    release = Release([[1, nan, 2], [3, 4, nan]], there, calendar)
    write_release(tmp_path / "r.csv", release)
    with pytest.raises(rk.errors.InvalidFile, match=r"`locations`, or put them beside it as r\.locations\.csv"):
        read_release(tmp_path / "r.csv")
    rk.write_locations(tmp_path / "r.locations.csv", there)
    assert read_release(tmp_path / "r.csv").locations == there
    other = rk.Locations([[0.0, 0.0], [9.0, 9.0], [1.0, 0.0]], ["(0, 0)", "(0, 1)", "c"])
    assert read_release(tmp_path / "r.csv", other).locations == other  # what is given comes first


def test_absent_rows_are_withheld_or_zero(tmp_path):
    (tmp_path / "r.csv").write_text(
        'datetime,location,count\n2024-03-01 02:00,"(0, 0)",5\n2024-03-01 03:00,"(0, 2)",\n2024-03-01 05:00,"(0, 0)",6\n'
    )
    found = read_release(tmp_path / "r.csv", places)
    assert same(found, Release([[5, nan, nan], [nan] * 3, [nan] * 3, [6, nan, nan]], places, calendar))
    found = read_release(tmp_path / "r.csv", places, absent="zero", step="1h")
    assert same(found, Release([[5, 0, 0], [0, 0, nan], [0, 0, 0], [6, 0, 0]], places, calendar))


def test_places_that_are_not_in_a_wide_file_are_withheld(tmp_path):
    (tmp_path / "r.csv").write_text('datetime,"(0, 1)"\n2024-03-01 02:00,5\n2024-03-01 03:00,6\n')
    assert same(read_release(tmp_path / "r.csv", places), Release([[nan, 5, nan], [nan, 6, nan]], places, calendar))


def test_locations_from_a_file(tmp_path):
    rk.write_locations(tmp_path / "places.csv", places)
    write_release(tmp_path / "r.csv", Release([[1, nan, 3], [1, 1, 1]], places, calendar))
    assert read_release(tmp_path / "r.csv", tmp_path / "places.csv").locations == places


def test_parquet_with_nulls_and_nan(tmp_path):
    table = pl.DataFrame(
        {"datetime": ["2024-03-01 02:00", "2024-03-01 03:00"], "(0, 0)": [None, 1.5], "(0, 1)": [nan, 2.0]}
    )
    table.write_parquet(tmp_path / "r.parquet")
    assert read_release(tmp_path / "r.parquet").withheld.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("a,b\n1,2\n", "no column of a, b is known as the one of times"),
        ("datetime\n2024-03-01\n", "no column but 'datetime'"),
        ("datetime,x\n2024-03-01 00:00,1\n2024-03-01 01:00,1\n", "where its locations are is unknown"),
        ('datetime,"(0, 0)"\n2024-03-01 00:00,inf\n2024-03-01 01:00,1\n', "'inf' is neither"),
        ('datetime,"(0, 0)"\n2024-03-01 00:00,\n2024-03-01 01:00,\n', "All 2 numbers are withheld"),
        (
            'datetime,"(0, 0)"\n2024-03-01 00:00,1\n2024-03-01 00:00,1\n2024-03-01 01:00,1\n',
            "the step is listed twice",
        ),
        ('datetime,"(0, 0)"\n2024-03-01 00:00,1\n', "single time"),
        (
            'datetime,"(0, 0)"\n2024-03-01 00:00,1\n2024-03-01 01:00,1\n2024-03-01 02:00,1\n2024-03-01 02:30,1\n',
            "row 4: 2024-03-01 02:30:00 is not a whole number of steps",
        ),
        (
            'datetime,location,count\n2024-03-01 00:00,"(0, 0)",1\n2024-03-01 00:00,"(0, 0)",1\n2024-03-01 01:00,"(0, 0)",1\n',
            r"location '\(0, 0\)' is listed twice",
        ),
    ],
)
def test_refuses(tmp_path, text, problem):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(rk.errors.InvalidFile, match=problem) as error:
        read_release(tmp_path / "r.csv")
    assert "r.csv" in str(error.value)


def test_refuses_settings_and_files_that_are_there(tmp_path):
    release = Release([[1, nan, 0]], places, calendar)
    write_release(tmp_path / "r.csv", release)
    with pytest.raises(rk.errors.OutputExists):
        write_release(tmp_path / "r.csv", release)
    write_release(tmp_path / "r.csv", release, overwrite=True)
    with pytest.raises(rk.errors.InvalidSetting, match="`form` is 'tall'"):
        write_release(tmp_path / "s.csv", release, form="tall")
    with pytest.raises(rk.errors.InvalidSetting, match="`absent` is 'none'"):
        read_release(tmp_path / "r.csv", places, absent="none")
    clash = Release([[1]], rk.Locations([[0, 0]], ["datetime"]), calendar)
    with pytest.raises(rk.errors.InvalidData, match="named 'datetime'"):
        write_release(tmp_path / "s.csv", clash, form="wide")
    with pytest.raises(rk.errors.InvalidData, match=r"use .csv or .parquet"):
        write_release(tmp_path / "r.json", release)


def test_a_published_file_can_be_attacked(tmp_path):
    truth = rk.SyntheticCity(people=20, days=1, step="2h").trajectories()
    write_release(tmp_path / "r.csv", Release.of(truth.counts()))
    assert rk.repair(read_release(tmp_path / "r.csv", truth.locations)) == truth.counts()


def test_defences_are_read_with_the_numbers(tmp_path):
    release = rk.Chain([rk.Suppress(below=2), rk.Round(to=2)])(Release([[1, 4, 0], [2, 3, 7]], places, calendar))
    write_release(tmp_path / "r.csv", release)
    assert read_release(tmp_path / "r.csv") == release


def test_a_table_without_a_statement_has_unknown_defences(tmp_path):
    write_release(tmp_path / "r.csv", Release([[1, nan, 0], [2, 3, 7]], places, calendar))
    (tmp_path / "r.csv.defences.json").unlink()
    (found,) = read_release(tmp_path / "r.csv").defences
    assert (found.name, found.exact, found.label) == ("Unknown", False, "Read from r.csv")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ({"sha256": "0", "defences": []}, "does not belong to r.csv"),
        ({"defences": 1}, "no list of defences"),
        ({"defences": [{"name": 1}]}, "object with a name"),
    ],
)
def test_refuses_a_statement_that_is_wrong(tmp_path, statement, problem):
    write_release(tmp_path / "r.csv", Release([[1, nan, 0], [2, 3, 7]], places, calendar))
    path = tmp_path / "r.csv.defences.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | statement))
    with pytest.raises(rk.errors.InvalidFile, match=problem):
        read_release(tmp_path / "r.csv")
