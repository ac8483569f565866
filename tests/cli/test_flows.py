"""Flows at the command line: prepare, attack, evaluate, defend and audit, as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.calling import call
from tests.small import random_truth
from tests.sources.raw import some_points

import rekindle as rk

TRUTH = random_truth(np.random.default_rng(5), people=8, places=4, steps=36, step="2h", start="2024-03-01 04:00")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def data(tmp_path):
    flows = [TRUTH.flows(), TRUTH.flows("4h")]
    rk.write_dataset(tmp_path / "data", counts=TRUTH.counts(), truth=TRUTH, flows=flows)
    return tmp_path / "data"


def test_prepare_writes_them(tmp_path):
    some_points().write_csv("points.csv")
    options = ("--step", "1h", "--min-coverage", 0, "--max-gap", "none", "--flows")
    called = call("prepare", "points", "points.csv", "out", *options)
    assert called.code == 0, called.err
    found = rk.read_dataset("out")
    assert found.flows == (found.truth.flows(),)


@pytest.mark.parametrize("options", [(), ("--release", "flows"), ("--window", "4h")])
def test_what_is_recovered_has_the_flows(data, options):
    assert call("attack", data, "--out", "recovery", *options).code == 0
    found = rk.read_recovery("recovery").trajectories
    window = "4h" if "4h" in options else None
    assert found.flows().first_difference(TRUTH.flows(window)) is None
    shown = call("evaluate", "recovery", data, "--seeds", 2)
    assert "flows of order 1" in shown.out
    assert "flows of order 1" in json.loads((data.parent / "recovery" / "evaluation.json").read_text())


def test_counts_alone_and_a_part(data):
    assert call("attack", data, "--out", "counts", "--release", "counts").code == 0
    assert call("attack", data, "--out", "part", "--from", "2024-03-02", "--to", "2024-03-03").code == 0
    found = rk.read_recovery("part").trajectories
    part = TRUTH.during(found.calendar)
    assert found.flows().first_difference(part.flows()) is None
    refused = call("attack", data, "--out", "none", "--window", "6h")
    assert refused.code == 2
    assert "There are no flows of 6h in this dataset (2h, 4h), and no ground truth was read" in " ".join(
        refused.err.split()
    )


def test_a_table_of_flows(data):
    rk.write_flows("flows.csv", TRUTH.flows())
    rk.write_locations("locations.csv", TRUTH.locations)
    assert call("attack", "flows.csv", "--locations", "locations.csv", "--out", "recovery").code == 0
    assert rk.read_recovery("recovery").trajectories.flows().first_difference(TRUTH.flows()) is None


def test_defend_and_audit_the_file(data):
    called = call(
        "defend", data, "--release", "flows", "--window", "4h", "--suppress-below", 2, "--out", "release.csv"
    )
    assert called.code == 0, called.err
    release = rk.read_release("release.csv", TRUTH.locations)
    assert np.array_equal(release.values, rk.Suppress(below=2).of_flows(TRUTH, "4h").values, equal_nan=True)
    options = ("--attack", "enhanced", "--defence", "none", "--seeds", 1, "--brief", "--workers", 1)
    assert call("audit", "release.csv", "--truth", data, "--out", "gate", *options).code == 0
    numbers = json.loads((data.parent / "gate" / "audit.json").read_text())
    assert numbers["settings"]["release"] == "flows"
    assert call("defend", data, "--release", "both", "--round-to", 5, "--out", "both.csv").code == 2


def test_a_table_of_flows_is_defended_as_flows(data):
    rk.write_flows("od.csv", TRUTH.flows("2h"))
    rk.write_locations("od.locations.csv", TRUTH.locations)
    for release, columns in (
        ((), "datetime,origin,destination,count"),
        (("--release", "counts"), "datetime,location,count"),
    ):
        assert call("defend", "od.csv", "--round-to", 2, "--out", "out.csv", "--overwrite", *release).code == 0
        assert Path("out.csv").read_text().startswith(f"{columns}\n")


@pytest.mark.parametrize(("release", "said"), [(None, "both"), ("flows", "flows"), ("counts", "counts")])
def test_audit(data, release, said):
    options = ("--attack", "enhanced", "--defence", "suppress:below=2", "--seeds", 1, "--workers", 1)
    options += () if release is None else ("--release", release)
    called = call("audit", data, "--out", "audit", *options)
    assert called.code == 0, called.err
    numbers = json.loads((data.parent / "audit" / "audit.json").read_text())
    assert numbers["settings"]["release"] == said
    page = (data.parent / "audit" / "report.html").read_text()
    assert ("Counts against flows" in page) == (said != "counts")
    given = numbers["releases"][0]["attacks"]
    assert ("mixed" in given) == (said != "counts")
    if said == "flows":
        assert {one["published"] for one in numbers["windows"]} == {"counts", "flows", "flows, all windows"}
        assert given["mixed"]["accuracy"]["value"] > given["chance"]["accuracy"]["value"]


def test_check_takes_the_flows_of_a_folder(data):
    called = call("check", data)
    assert called.code == 3
    for table in ("counts.parquet", "flows.parquet (2h)", "flows.parquet (4h)"):
        assert f"{table}, rows" in called.out
    assert "2 tables checked" in called.out
    assert "origin-destination pairs" in called.out
