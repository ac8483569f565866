"""`rekindle evaluate`, as a user types it."""

import json

import numpy as np
import pytest
from tests.small import line, random_truth

import rekindle as rk
from rekindle.cli import main
from rekindle.io import RecoveryFolder

TRUTH = random_truth(np.random.default_rng(3), people=6, places=4, steps=24, step="2h", start="2024-03-01 00:00")


def evaluated(folder, confidence, truth=TRUTH, found=None):
    found = truth if found is None else found
    rk.write_dataset(folder / "data", counts=truth.counts(), truth=truth)
    recovery = RecoveryFolder(
        folder / "out",
        attack="Mine",
        settings={},
        locations=found.locations,
        calendar=found.calendar,
        people=found.people,
    )
    for day in found.calendar.days():
        part = found.part(day)
        sure = None if confidence is None else confidence[:, day]
        recovery.add(part, confidence=sure)
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(folder / "out"), str(folder / "data"), "--seeds", "0"])
    assert not stop.value.code
    return json.loads((folder / "out" / "evaluation.json").read_text())


def test_a_long_comparison_is_announced(tmp_path, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr("rekindle.assignment.kernels.completion_mark", lambda: None)
    monkeypatch.setattr(
        "rekindle.cli.evaluate.evaluating",
        lambda counts, references: asked.append((counts.steps, references)) or 90.0,
    )
    evaluated(tmp_path, None)
    assert capsys.readouterr().err == "The comparison takes about 2 min on one core.\n"
    assert asked == [(24, 0)]


def test_claims_are_shown(tmp_path, capsys):
    sure = np.full(TRUTH.cells.shape, 0.5, np.float32)
    sure[:, :6] = 0.95
    sure[0] = 1.0
    claims = evaluated(tmp_path, sure)["confidence"]["claims"]
    assert claims == {
        "level": 0.9,
        "points": pytest.approx((5 * 6 + 24) / (6 * 24)),
        "points_right": 1.0,
        "people": pytest.approx(1 / 6),
        "people_right": 1.0,
    }
    shown = capsys.readouterr().out
    assert "claims with 90% confidence" in shown
    assert "37.5%" in shown
    assert "16.7%" in shown


def test_who_claims_nothing(tmp_path, capsys):
    confidence = evaluated(tmp_path, np.zeros(TRUTH.cells.shape, np.float32))["confidence"]
    assert confidence["claims"]["points_right"] is None
    assert confidence["accuracy"][1:] == [None] * 9
    assert "0.0%" in capsys.readouterr().out


def test_who_does_not_say(tmp_path, capsys):
    assert "confidence" not in evaluated(tmp_path, None)
    assert "confidence" not in capsys.readouterr().out


def test_nobody_is_scored_by_a_name_that_nobody_gave(tmp_path, capsys):
    evaluated(tmp_path, None)
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(tmp_path / "out"), str(tmp_path / "data"), "--mapping", "names"])
    assert stop.value.code == 2
    assert "--mapping is 'names', but this recovery does not say who is who" in capsys.readouterr().err


def test_precision_stands_beside_accuracy_and_observed_beside_all(tmp_path, capsys):
    seen = [[True, False] * 12, [True] * 12 + [False] * 12, [False] * 24]
    cells = [[0, 1] * 12, [4] * 12 + [-1] * 12, [-1] * 24]
    truth = rk.Trajectories(cells, line([0]).locations, rk.Calendar("2024-03-01", "1h"), observed=seen)
    numbers = evaluated(tmp_path, None, truth, line([0] * 24, [4] * 9 + [-1] * 15))
    # 21 points are right, of 36 true and 33 recovered ones; all of them were observed, as 24 were.
    assert numbers["result"]["accuracy"] == pytest.approx(21 / 36)
    assert numbers["result"]["precision"] == pytest.approx(21 / 33)
    assert numbers["result"]["accuracy_observed"] == pytest.approx(21 / 24)
    assert numbers["result"]["missed"] == pytest.approx(3 / 36)
    assert numbers["per_person"]["accuracy"] == [0.5, 0.75, None]
    assert numbers["per_person"]["precision"] == [0.5, 1.0, None]
    assert numbers["per_person"]["accuracy_observed"] == [1.0, 0.75, None]
    assert numbers["per_person"]["mean_error_km"] == [0.5, 0.0, None]
    shown = capsys.readouterr().out.splitlines()
    for name, value in (
        ("accuracy", "0.583"),
        ("precision", "0.636"),
        ("accuracy observed", "0.875"),
        ("missed", "0.083"),
    ):
        assert any(line.split(" (")[0].strip(" │") == name and value in line for line in shown)


def test_what_says_nothing_is_not_shown(tmp_path, capsys):
    numbers = evaluated(tmp_path, None)
    assert (numbers["result"]["accuracy_observed"], numbers["result"]["missed"]) == (None, 0.0)
    shown = capsys.readouterr().out
    assert "precision" in shown
    assert "observed" not in shown
    assert "missed" not in shown
