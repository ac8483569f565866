import json
import re

import polars as pl
import pytest
from tests.cli.calling import call
from tests.sources.raw import some_points, some_porto_rows, write_cabs, write_geolife, write_porto, zipped

from rekindle.io import read_dataset


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments):
    return call("prepare", *arguments)


def test_geolife_from_folder_and_zip(tmp_path):
    raw = write_geolife(tmp_path / "raw")
    options = (
        "--step",
        "10min",
        "--months",
        1,
        "--box",
        "5,95",
        "--cell-km",
        1,
        "--fill",
        "nearest",
        "--min-days",
        4,
    )
    shown = run("geolife", raw, tmp_path / "one", *options)
    assert shown.code == 0
    assert re.search(r"points filled, not observed +│ +\d+\.\d%", shown.out)
    assert re.search(r"longest gap filled \(--max-gap\) +│ +any", shown.out)
    run("geolife", zipped(raw, tmp_path / "raw.zip"), tmp_path / "two", *options)
    for name in ("counts.parquet", "truth.parquet", "dataset.json", "grid.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    info = read_dataset(tmp_path / "one").info
    assert info["preparation"]["fill"] == "nearest"
    assert info["preparation"]["places"] == {
        "kind": "grid",
        "cell_km": 1.0,
        "box": [5.0, 95.0],
        "outside": "edge",
    }
    assert info["preparation"]["max_gap"] is None


def test_porto_and_cabspotting(tmp_path):
    train = write_porto(tmp_path / "train.csv.gz", some_porto_rows())
    assert run("porto", train, tmp_path / "porto", "--days", 2).code == 0
    assert read_dataset(tmp_path / "porto").calendar.steps == 289
    cabs = write_cabs(tmp_path / "cabs")
    assert run("cabspotting", cabs, tmp_path / "cab", "--days", 2, "--min-coverage", 0.2).code == 0
    assert read_dataset(tmp_path / "cab").people == 3


def test_points_with_names_and_skipping(tmp_path):
    table = some_points().rename({"uid": "who", "datetime": "when"})
    table.with_columns(lat=pl.when(pl.int_range(pl.len()) == 5).then(500.0).otherwise("lat")).write_csv(
        tmp_path / "points.csv"
    )
    names = ("--person", "who", "--time", "when")
    refused = run("points", tmp_path / "points.csv", tmp_path / "out", *names)
    assert refused.code == 2
    assert re.search(r"points\.csv: line 7: coordinates out of range.*--skip-bad", refused.err)
    assert not (tmp_path / "out").exists()
    shown = run("points", tmp_path / "points.csv", tmp_path / "out", *names, "--skip-bad")
    assert "skipped: coordinates out of range" in shown.out
    assert json.loads((tmp_path / "out" / "dataset.json").read_text())["skipped"] == {"coordinates out of range": 1}


def test_how_much_is_filled_is_said(tmp_path):
    some_points().write_csv(tmp_path / "points.csv")
    auto = run("points", tmp_path / "points.csv", tmp_path / "auto")
    chosen = read_dataset(tmp_path / "auto").info
    assert re.search(rf"longest gap filled \(--max-gap\) +│ +{chosen['preparation']['max_gap']}", auto.out)
    assert re.search(rf"points away, not counted +│ +{chosen['points']['away']:.1%}", auto.out)
    carried = run("points", tmp_path / "points.csv", tmp_path / "carried", "--max-gap", "none", "--step", "2min")
    share = read_dataset(tmp_path / "carried").info["points"]
    assert share["away"] == 0
    assert share["filled"] > 0.5
    assert f"Warning: {share['filled']:.0%} of the points that are counted were filled" in carried.err
    assert "--max-gap" in carried.err
    some = run("points", tmp_path / "points.csv", tmp_path / "some", "--max-gap", "10min")
    assert "Warning" not in some.err
    assert "most of what an attack is scored on was observed" in some.err
    left = run("points", tmp_path / "points.csv", tmp_path / "left", "--outside", "away", "--box", "20,80")
    assert left.code == 0
    assert read_dataset(tmp_path / "left").info["points"]["away"] > chosen["points"]["away"]


def test_an_existing_dataset_is_kept_unless_asked(tmp_path):
    some_points().write_parquet(tmp_path / "points.parquet")
    run("points", tmp_path / "points.parquet", tmp_path / "out")
    before = (tmp_path / "out" / "counts.parquet").read_bytes()
    refused = run("points", tmp_path / "points.parquet", tmp_path / "out", "--step", "1h")
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    assert (tmp_path / "out" / "counts.parquet").read_bytes() == before
    assert run("points", tmp_path / "points.parquet", tmp_path / "out", "--step", "1h", "--overwrite").code == 0
    assert (tmp_path / "out" / "counts.parquet").read_bytes() != before


def test_call_records_with_towers(tmp_path):
    pl.DataFrame({"location": ["A", "B"], "lat": [48.8, 48.9], "lng": [2.3, 2.3]}).write_csv(tmp_path / "towers.csv")
    some_points().select("uid", "datetime", cell=pl.lit("B")).write_csv(tmp_path / "calls.csv")
    shown = run("points", tmp_path / "calls.csv", tmp_path / "out", "--towers", tmp_path / "towers.csv")
    assert shown.code == 0
    dataset = read_dataset(tmp_path / "out")
    assert dataset.locations.ids == ("A", "B")
    assert (dataset.counts.values[:, 1] == dataset.counts.totals).all()
    assert dataset.counts.totals.max() == 3
    refused = run("points", tmp_path / "calls.csv", tmp_path / "out2", "--location", "cell")
    assert "--location names towers; give the file that says where they are with --towers." in refused.err
    refused = run("points", tmp_path / "calls.csv", tmp_path / "out2")
    assert "These points name a location; give the towers, which say where it is, as --towers." in refused.err


def test_towers_with_other_names(tmp_path):
    (tmp_path / "towers.csv").write_text("cell_id;latitude;longitude\nA;48,8;2,3\nB;48,9;2,3\n")
    (tmp_path / "masts.csv").write_text("mast,north,east\nA,48.8,2.3\nB,48.9,2.3\n")
    some_points().select("uid", "datetime", cell=pl.lit("B")).write_csv(tmp_path / "calls.csv", separator=";")
    calls = ("points", tmp_path / "calls.csv", tmp_path / "out", "--overwrite", "--location", "cell")
    assert run(*calls, "--towers", tmp_path / "towers.csv").code == 0
    names = ("--tower-location", "mast", "--tower-lat", "north", "--tower-lng", "east")
    refused = run(*calls, "--towers", tmp_path / "masts.csv", *names[:2])
    assert re.search(r"masts\.csv: no column .* is known as the latitude; .* name it with --tower-lat\.", refused.err)
    assert run(*calls, "--towers", tmp_path / "masts.csv", *names).code == 0
    assert read_dataset(tmp_path / "out").locations.ids == ("A", "B")


def test_a_file_as_europe_writes_it(tmp_path):
    """Semicolons, decimal commas, day first, in no order."""
    rows = ["a;05.03.2024 08:30;59,92;10,7", "a;04.03.2024 23:30;59,91;10,7", "b;04.03.2024 00:10;59,9;10,8"]
    (tmp_path / "points.csv").write_text("\n".join(["uid;datetime;lat;lng", *rows]) + "\n")
    refused = run("points", tmp_path / "points.csv", tmp_path / "out")
    assert refused.code == 2
    assert "time '05.03.2024 08:30'" in refused.err
    assert "--time-format '%d.%m.%Y %H:%M'" in refused.err
    shown = run(
        "points", tmp_path / "points.csv", tmp_path / "out", "--time-format", "%d.%m.%Y %H:%M", "--step", "1h"
    )
    assert shown.code == 0, shown.err
    calendar = read_dataset(tmp_path / "out").calendar
    assert (str(calendar.start), calendar.steps) == ("2024-03-04 00:00:00", 33)


def test_offsets_across_a_clock_change(tmp_path):
    rows = ["a,2024-03-31T01:30:00+01:00,59.9,10.7", "a,2024-03-31T03:30:00+02:00,59.91,10.7"]
    (tmp_path / "points.csv").write_text("\n".join(["uid,datetime,lat,lng", *rows]) + "\n")
    command = ("points", tmp_path / "points.csv", tmp_path / "out", "--step", "30min", "--skip-bad")
    asked = run(*command)
    assert (asked.code, "--timezone Europe/Oslo" in asked.err) == (2, True)
    shown = run(*command, "--timezone", "Europe/Oslo")
    assert shown.code == 0
    assert re.search(r"clock change +.*2024-03-31 02:00:00 becomes 03:00", shown.out)
    info = read_dataset(tmp_path / "out").info
    assert (info["skipped"], info["timezone"]) == ({}, "Europe/Oslo")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--box", "5"), "--box"),
        (("--towers", "x.csv", "--h3", 8), "two ways"),
        (("--fill", "spline"), "spline"),
        (("--engine", "abacus"), "abacus"),
        (("--start", "soon"), "--start"),
        (("--max-gap", "soon"), "--max-gap is 'soon'"),
        (("--outside", "away", "--h3", 8), "only a grid has an outside"),
    ],
)
def test_wrong_settings(tmp_path, options, problem):
    some_points().write_csv(tmp_path / "points.csv")
    refused = run("points", tmp_path / "points.csv", tmp_path / "out", *options)
    assert refused.code == 2
    assert problem in refused.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["geolife", "porto", "cabspotting", "points"])
def test_help(command):
    shown = run(command, "--help")
    assert shown.code == 0
    assert "--skip-bad" in shown.out
    assert "Where people are at steps without a record: last, where they were last seen" in shown.out
    assert "`" not in shown.out
    assert "See " not in shown.out
