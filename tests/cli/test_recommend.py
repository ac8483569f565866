"""`rekindle recommend`, as a user types it."""

import json
import shlex

import numpy as np
import pytest
from tests.cli.calling import call, plain

import rekindle as rk
from rekindle.auditing import search


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "city"
    truth = rk.SyntheticCity(people=30, days=1, step="2h", width_km=3, height_km=3, seed=2).trajectories()
    rk.write_dataset(path, counts=truth.counts(), truth=truth)
    return path


def run(city, out, *arguments):
    quick = [
        "--attack",
        "enhanced",
        "--seeds",
        "1",
        "--family",
        "coarser-time",
        "--max-advantage",
        "1",
        "--workers",
        "1",
    ]
    return call("recommend", city, "--out", out, *quick, *arguments)


def test_writes_the_release_its_evidence_and_how_to_repeat_it(city, tmp_path):
    out = tmp_path / "out"
    found = run(city, out, "--max-exposed", "5")
    assert found.code == 0, found.err
    names = ["audit.json", "recommend.html", "recommend.json", "rekindle.json"]
    names += ["release.csv", "release.csv.defences.json", "release.locations.csv", "report.html", "tasks"]
    assert sorted(path.name for path in out.iterdir()) == names
    numbers = json.loads((out / "recommend.json").read_text())
    chosen = numbers["chosen"]["defence"]
    assert chosen.startswith("coarser-time:step=")
    assert numbers["chosen"]["exposed"] <= 5
    assert "Only the release and its locations are for publication." in found.out
    assert "The frontier of risk and utility" in found.out
    page = (out / "recommend.html").read_text()
    assert "<svg" in page
    assert f'<p class="verdict">{numbers["chosen"]["label"]}</p>' in page
    assert "people are exposed" in numbers["answer"]
    assert found.out.count("To repeat the") == 3

    evidence = json.loads((out / "audit.json").read_text())
    assert [one["label"] for one in evidence["releases"]] == ["As given", numbers["chosen"]["label"]]
    assert evidence["settings"]["seed"] == 1000
    assert evidence["identity"]["command"].startswith("rekindle recommend")

    commands = {name: shlex.split(line) for name, line in numbers["commands"].items()}
    again = call(*commands["release"][1:-1], tmp_path / "again.csv")
    assert again.code == 0, again.err
    assert (tmp_path / "again.csv").read_bytes() == (out / "release.csv").read_bytes()
    again = call(*commands["evidence"][1:-1], tmp_path / "again", "--workers", "1")
    assert again.code == 0, again.err
    repeated = json.loads((tmp_path / "again/audit.json").read_text())
    for one, other in zip(evidence["releases"], repeated["releases"], strict=True):
        assert {name: risk["accuracy"] for name, risk in one["attacks"].items()} == {
            name: risk["accuracy"] for name, risk in other["attacks"].items()
        }

    release = rk.read_release(out / "release.csv", locations=out / "release.locations.csv")
    truth = rk.read_dataset(city).truth
    step = chosen.partition("=")[2]
    assert np.array_equal(release.values, rk.CoarserTime(step=step)(truth.counts()).values)

    refused = run(city, out, "--max-exposed", "5")
    assert refused.code == 2
    assert "exists already" in plain(refused.err)
    assert run(city, out, "--max-exposed", "5", "--overwrite").code == 0


def test_writes_a_release_of_flows(city, tmp_path):
    out = tmp_path / "out"
    found = run(city, out, "--window", "4h", "--max-exposed", "3")
    assert found.code == 0, found.err
    numbers = json.loads((out / "recommend.json").read_text())
    assert (numbers["release"], numbers["measure"]) == ("flows", "flow_error")
    assert "error of the published flows" in (out / "recommend.html").read_text()
    release = rk.read_release(out / "release.csv", locations=out / "release.locations.csv")
    assert release.pairs is not None
    commands = {name: shlex.split(line) for name, line in numbers["commands"].items()}
    assert numbers["chosen"]["defence"] == "coarser-time:step=8h"
    assert call(*commands["release"][1:-1], tmp_path / "again.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (out / "release.csv").read_bytes()
    again = call(*commands["evidence"][1:-1], tmp_path / "again", "--workers", "1")
    assert again.code == 0, again.err
    evidence, repeated = (
        json.loads((path / "audit.json").read_text())["releases"] for path in (out, tmp_path / "again")
    )
    assert [one["attacks"]["enhanced"]["accuracy"] for one in evidence] == [
        one["attacks"]["enhanced"]["accuracy"] for one in repeated
    ]


def test_limits_that_nothing_meets_leave_the_frontier_alone(city, tmp_path):
    found = run(city, tmp_path / "out", "--max-advantage", "0", "--format", "json")
    assert found.code == 3
    numbers = json.loads(found.out)
    assert numbers["chosen"] is None
    assert numbers["answer"].startswith("Nothing that was tried meets the limits")
    assert numbers["commands"] == {}
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["recommend.html", "recommend.json", "rekindle.json", "tasks"]


def test_an_older_release_does_not_outlive_limits_that_nothing_meets(city, tmp_path):
    assert run(city, tmp_path / "out", "--max-exposed", "30").code == 0
    assert run(city, tmp_path / "out", "--max-advantage", "0", "--overwrite").code == 3
    assert not list((tmp_path / "out").glob("release*"))
    assert not (tmp_path / "out/audit.json").exists()


def test_stopped_work_is_kept(city, tmp_path, monkeypatch):
    usual = search.audit

    def stop(*data, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "audit", stop)
    found = run(city, tmp_path / "out", "--max-exposed", "5")
    assert found.code == 130
    assert "Run the same command again to resume" in plain(found.err)
    assert json.loads((tmp_path / "out/recommend.json").read_text())["tried"]
    assert not (tmp_path / "out/release.csv").exists()
    monkeypatch.setattr(search, "audit", usual)
    assert run(city, tmp_path / "out", "--max-exposed", "5").code == 0


def test_says_what_cannot_be(city, tmp_path):
    outside = tmp_path / "outside"
    rk.write_dataset(outside, counts=rk.read_dataset(city).counts)
    found = run(outside, tmp_path / "out")
    assert found.code == 2
    assert "no truth.parquet" in plain(found.err)
    found = run(city, tmp_path / "out", "--family", "magic")
    assert found.code == 2
    assert "--family has 'magic'" in plain(found.err)
    found = run(city, tmp_path / "out", "--locations", city / "locations.parquet")
    assert found.code == 2
    assert "--public-locations" in plain(found.err)
    assert not (tmp_path / "out").exists()
