"""`rekindle evaluate`, as a user types it."""

import json

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.cli import main
from rekindle.io import RecoveryFolder

TRUTH = random_truth(np.random.default_rng(3), people=6, places=4, steps=24, step="2h", start="2024-03-01 00:00")


def evaluated(folder, confidence):
    rk.write_dataset(folder / "data", counts=TRUTH.counts(), truth=TRUTH)
    recovery = RecoveryFolder(
        folder / "out",
        attack="Mine",
        settings={},
        locations=TRUTH.locations,
        calendar=TRUTH.calendar,
        people=TRUTH.people,
    )
    for day in TRUTH.calendar.days():
        part = TRUTH.part(day)
        sure = None if confidence is None else confidence[:, day]
        recovery.add(part, confidence=sure)
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(folder / "out"), str(folder / "data"), "--seeds", "0"])
    assert not stop.value.code
    return json.loads((folder / "out" / "evaluation.json").read_text())


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
