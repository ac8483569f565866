import pytest

import rekindle as rk


@pytest.fixture(scope="module")
def truth():
    return rk.SyntheticCity(people=12, days=2, step="1h", width_km=4, height_km=3).trajectories()


@pytest.fixture(scope="module")
def recoveries(truth):
    attacks = {"baseline": rk.Baseline, "enhanced": rk.Enhanced}
    return {name: [kind(seed=seed).recover(truth.counts()) for seed in range(2)] for name, kind in attacks.items()}


@pytest.fixture(scope="module")
def evaluations(truth, recoveries):
    return {name: [rk.evaluate(one.trajectories, truth) for one in found] for name, found in recoveries.items()}
