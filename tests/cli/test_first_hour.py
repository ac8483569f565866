"""The first hour of five users, from the command line or a notebook, on small data: each ends with an answer."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest
from tests.cli.calling import call as run

import rekindle as rk

pytestmark = pytest.mark.slow

QUICK = ("--attack", "enhanced", "--seeds", "2", "--workers", "1")


def call_records(path, people=25, days=3):
    """Calls at all hours of people in a city, in any order, with the zone in the column and one that is silent for a day."""
    rng = np.random.default_rng(4)
    city = rk.SyntheticCity(people=people, days=days, step="30min", width_km=5, height_km=5, start="2024-03-04")
    truth = city.trajectories()
    rows = [
        (person, step) for person in range(people) for step in np.sort(rng.choice(truth.steps, 40, replace=False))
    ]
    rows = [row for row in rows if row[0] or row[1] < 48 or row[1] >= 96]
    person, step = np.array(rng.permutation(rows)).T
    when = pl.Series(truth.calendar.times()[step].astype("datetime64[ms]"))
    pl.DataFrame(
        {
            "subscriber": [f"subscriber-{one}" for one in person],
            "timestamp": when.dt.replace_time_zone("Europe/Oslo"),
            "cell_id": [f"mast {cell}" for cell in truth.cells[person, step]],
        }
    ).write_parquet(path / "calls.parquet")
    xy = truth.locations.xy_km
    pl.DataFrame(
        {
            "cell_id": [f"mast {cell}" for cell in range(len(xy))],
            "latitude": 59.9 + xy[:, 1] / 111,
            "longitude": 10.7 + xy[:, 0] / 56,
        }
    ).write_csv(path / "masts.csv")


def test_an_operator_with_call_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call_records(tmp_path)
    made = run("prepare", "points", "calls.parquet", "data", "--towers", "masts.csv", "--step", "1h")
    assert made.code == 0, made.err
    data = rk.read_dataset("data")
    assert data.calendar.start.isoformat() == "2024-03-04T00:00:00"  # no day more because of the zone
    assert data.truth is not None
    assert data.truth.observed is not None
    assert (data.truth.cells[data.truth.people_ids.index("subscriber-0")] == rk.AWAY).any()
    found = run("audit", "data", "--out", "audit", *QUICK, "--defence", "suppress:below=3")
    assert found.code == 0, found.err
    page = (tmp_path / "audit/report.html").read_text()
    assert "subscriber-" not in page
    assert "were filled in" in page
    assert json.loads((tmp_path / "audit/audit.json").read_text())["settings"]["observed"] < 1


def test_a_transit_agency_whose_totals_vary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    stations = rk.Locations([[0.0, 0.0], [2.0, 0.0], [4.0, 1.0]], ["North", "Centre", "South"])
    hours = np.concatenate([np.full(5, 0), [4, 20, 40, 30, 20, 20, 25, 30, 25, 20, 25, 40, 45, 30, 15, 8, 4, 2, 0]])
    values = rng.multinomial(np.tile(hours, 2), [0.3, 0.5, 0.2])
    rk.write_counts("riders.csv", rk.Counts(values, stations, rk.Calendar("2024-03-04", "1h")))
    rk.write_locations("stations.csv", stations)
    found = run("audit", "riders.csv", "--locations", "stations.csv", "--out", "audit", *QUICK, "--defence", "none")
    assert found.code == 0, found.err
    assert "exact counts of 0 to 45 people" in found.err
    told = json.loads((tmp_path / "audit/audit.json").read_text())
    assert told["settings"]["people_from"] == "largest total"
    assert told["verdict"]["level"] == "unknown"
    assert "This is an estimate, not a measurement." in (tmp_path / "audit/report.html").read_text()


def test_a_statistical_office_and_its_gate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = rk.SyntheticCity(people=30, days=2, step="2h", width_km=4, height_km=4).trajectories()
    rk.write_dataset("data", counts=truth.counts(), truth=truth)
    assert run("defend", "data", "--suppress-below", "5", "--out", "release.csv").code == 0
    gate = ("--truth", "data", "--out", "gate", *QUICK, "--defence", "none")
    found = run("audit", "release.csv", *gate, "--fail-above", "0.99")
    assert found.code == 0, found.err
    again = run("audit", "release.csv", *gate[:2], "--out", "gate2", *gate[4:], "--fail-above", "0.0")
    assert again.code == 3


def test_a_researcher_in_a_notebook():
    truth = rk.SyntheticCity(people=12, days=2, step="2h", width_km=3, height_km=3).trajectories()
    frame = truth.to_frame("pandas")
    places = truth.locations.xy_km[truth.cells.ravel()]
    points = frame.assign(lat=41.1 + places[:, 1] / 111, lng=-8.6 + places[:, 0] / 83)[
        ["person", "datetime", "lat", "lng"]
    ]
    found = rk.audit(points, step="2h", cell_km=1.0, attacks=[rk.Enhanced()], defences=[], seeds=2, workers=1)
    assert found.given.strongest.accuracy.value > 0
    assert len(repr(found)) < 300
    assert "<table" in found._repr_html_()
    assert found.to_frame("pandas").shape[0] > 0


def test_a_pipeline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = rk.SyntheticCity(people=20, days=2, step="2h", width_km=4, height_km=4).trajectories()
    rk.write_dataset("data", counts=truth.counts(), truth=truth)
    found = run(
        "audit", "data", "--out", "gate", *QUICK, "--defence", "none", "--fail-above", "0.0", "--format", "junit"
    )
    assert found.code == 3
    cases = list(ET.fromstring(found.out).iter("testcase"))
    assert any(case.find("failure") is not None for case in cases)
    budget = run("audit", "data", "--out", "soon", "--time-budget", "2min", "--workers", "1")
    assert budget.code == 0, budget.err
    assert (tmp_path / "soon/report.html").exists()
