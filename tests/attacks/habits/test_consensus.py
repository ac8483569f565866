"""Several answers, put in one order and counted."""

import numpy as np
import pytest

from rekindle.attacks.habits.consensus import align, decode
from rekindle.attacks.habits.problem import count
from rekindle.attacks.habits.track import track


def test_alignment_undoes_any_order(problem, tracks):
    random = np.random.default_rng(0)
    answers = [tracks, *(tracks[random.permutation(len(tracks))] for _ in range(3))]
    aligned = align(answers, 0, lengths=problem.lengths, places=problem.counts.shape[1])
    for answer in aligned:
        assert np.array_equal(answer, tracks)


def test_consensus_follows_the_majority_with_exact_counts(problem, tracks):
    other = tracks.copy()
    other[[0, 1]] = other[[1, 0]]
    found, share = decode(problem, [tracks, tracks, other])
    assert np.array_equal(found, tracks)
    assert share[2:].min() == 1
    assert share[:2].min() == pytest.approx(2 / 3)
    mixed, _ = decode(problem, [track(problem, seed) for seed in range(5)])
    assert np.array_equal(count(mixed, problem.counts.shape[1]), problem.counts)
