"""Several answers of people in one order, counted."""

import numpy as np
import pytest

from rekindle.attacks.habits.consensus import decode
from rekindle.attacks.habits.problem import count
from rekindle.attacks.habits.track import track


def test_consensus_follows_the_majority_with_exact_counts(problem, tracks):
    other = tracks.copy()
    other[[0, 1]] = other[[1, 0]]
    found, share = decode(problem, [tracks, tracks, other])
    assert np.array_equal(found, tracks)
    assert share[2:].min() == 1
    assert share[:2].min() == pytest.approx(2 / 3)
    mixed, _ = decode(problem, [track(problem, seed) for seed in range(5)])
    assert np.array_equal(count(mixed, problem.counts.shape[1]), problem.counts)
