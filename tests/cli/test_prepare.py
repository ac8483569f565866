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
    assert "steps filled, not observed" in shown.out
    run("geolife", zipped(raw, tmp_path / "raw.zip"), tmp_path / "two", *options)
    for name in ("counts.parquet", "truth.parquet", "dataset.json", "grid.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    info = read_dataset(tmp_path / "one").info
    assert info["preparation"]["fill"] == "nearest"
    assert info["preparation"]["places"] == {"kind": "grid", "cell_km": 1.0, "box": [5.0, 95.0]}


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
    shown = run(
        "points", tmp_path / "calls.csv", tmp_path / "out", "--location", "cell", "--towers", tmp_path / "towers.csv"
    )
    assert shown.code == 0
    dataset = read_dataset(tmp_path / "out")
    assert dataset.locations.ids == ("A", "B")
    assert (dataset.counts.values[:, 1] == 3).all()
    refused = run("points", tmp_path / "calls.csv", tmp_path / "out2", "--location", "cell")
    assert "--location names towers; give the file that says where they are with --towers." in refused.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--box", "5"), "--box"),
        (("--towers", "x.csv", "--h3", 8), "two ways"),
        (("--fill", "spline"), "spline"),
        (("--engine", "abacus"), "abacus"),
        (("--start", "soon"), "--start"),
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
