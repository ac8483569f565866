"""More protection, less exposure: with growing noise and growing thresholds the strongest attack falls towards chance."""

from itertools import pairwise

import pytest

import rekindle as rk

SWEEPS = {
    "noise": [rk.GeometricNoise(epsilon=epsilon, per="event") for epsilon in (1.0, 0.1, 0.01)],
    "threshold": [rk.Suppress(below=k) for k in (2, 4, 8)],
}


@pytest.mark.parametrize("name", SWEEPS)
def test_exposure_and_use_fall_together(name):
    truth = rk.SyntheticCity(people=40, days=4, step="20min", seed=3).trajectories()
    dataset = rk.Dataset(truth.counts(), truth)
    found = rk.audit(dataset, attacks=[rk.Habits(effort="low")], defences=SWEEPS[name], seeds=2, workers=1)
    risks = [release.strongest for release in found.releases]
    for milder, stronger in pairwise(risks):
        assert stronger.advantage.value <= milder.advantage.high
    errors = [release.utility["count_error"] for release in found.releases]
    assert errors == sorted(errors)
    assert errors[0] == 0
    # From most of the way to little of it.
    assert risks[0].advantage.value > 0.6
    assert risks[-1].advantage.value < 0.4
    assert risks[-1].advantage.value < risks[0].advantage.value / 2
