"""Where nobody is ever away, every attack gives the bytes that it gave before people could come and go.

The digests were recorded just before. A later change that is meant to alter results renews them.
"""

import hashlib

import llvmlite.binding
import numpy as np
import pytest

import rekindle as rk

CITIES = {
    "small": rk.SyntheticCity(people=20, days=4, step="30min", seed=3),
    "large": rk.SyntheticCity(people=40, days=3, step="10min", seed=5, share_without_routine=0.5),
}
DIGESTS = [
    ("small", rk.Chance(seed=1), "77be243782ae2537fe96"),
    ("small", rk.Naive(seed=1), "7d0bfe13985f7eeacae0"),
    ("small", rk.Baseline(), "1d6262d7fb427bff7dbd"),
    ("small", rk.Baseline(seed=2), "81726418105fe9e11d56"),
    ("small", rk.Enhanced(), "b0bfef6f9599bf151db5"),
    ("small", rk.Enhanced(seed=2), "0dc14b5cc8e993f67fb1"),
    ("large", rk.Chance(seed=1), "0b0f4d4f352fa81fef78"),
    ("large", rk.Naive(seed=1), "69a40fba732ed39d9473"),
    ("large", rk.Baseline(), "c8de2c26b605c4954370"),
    ("large", rk.Baseline(seed=2), "d708f9031b87ea7ebb07"),
    ("large", rk.Enhanced(), "8234a451de4cc2f01871"),
    ("large", rk.Enhanced(seed=2), "5c6004fc6656d6e327f7"),
]
HABITS = [(0, "f479e03e98b582131ced", "42b70f697be0b62cf923"), (4, "7d4c97b03d3fdeac4179", "32cdc70f9acc4a5e7270")]
PROCESSOR = "znver4"
"""Habits decides by sums of logarithms, whose last bit is the processor's own."""


def digest(array, dtype):
    return hashlib.sha256(np.ascontiguousarray(array, dtype=dtype).tobytes()).hexdigest()[:20]


@pytest.mark.parametrize(("city", "attack", "expected"), DIGESTS)
def test_the_paths_are_as_before(city, attack, expected):
    found = attack.recover(CITIES[city].trajectories().counts())
    assert digest(found.trajectories.cells, "<i8") == expected


@pytest.mark.skipif(llvmlite.binding.get_host_cpu_name() != PROCESSOR, reason="recorded on another processor")
@pytest.mark.parametrize(("seed", "paths", "confidence"), HABITS)
def test_the_paths_and_the_confidence_of_habits_are_as_before(seed, paths, confidence):
    found = rk.Habits(effort="low", seed=seed).recover(CITIES["small"].trajectories().counts())
    assert digest(found.trajectories.cells, "<i8") == paths
    assert digest(found.confidence, "<f4") == confidence
