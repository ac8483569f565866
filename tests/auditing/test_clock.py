"""When an audit was made: by the clock, or as the environment says."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing import clock


def test_the_environment_may_fix_the_time(monkeypatch):
    monkeypatch.setenv(clock.FIXED, "86400")
    assert clock.now() == "1970-01-02T00:00:00Z"
    assert clock.processor_time() is None


def test_otherwise_the_clock_tells(monkeypatch):
    monkeypatch.delenv(clock.FIXED)
    assert abs(datetime.fromisoformat(clock.now()) - datetime.now(UTC)) < timedelta(minutes=1)
    assert clock.processor_time() > 0


@pytest.mark.parametrize("fixed", [True, False])
def test_processor_time_is_measured_unless_bytes_must_be_the_same(monkeypatch, fixed):
    if not fixed:
        monkeypatch.delenv(clock.FIXED)
    truth = random_truth(np.random.default_rng(0), people=4, places=4, steps=12)
    found = rk.audit(truth, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1, membership="none")
    seconds = found.given.attacks["baseline"].seconds
    assert seconds is None if fixed else 0 < seconds < 60
    cost = next(one for one in found.to_json()["evidence"] if one["heading"] == "Cost")
    assert json.loads(json.dumps(cost))["numbers"]["processor_seconds"] == found.given.strongest.seconds
