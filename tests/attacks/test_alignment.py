"""People of several answers, put in one order."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from tests.attacks.habits.made import problem_of
from tests.small import random_truth

from rekindle.attacks import alignment
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.track import track


def test_alignment_undoes_any_order():
    tracks = random_truth(np.random.default_rng(5), people=10, places=9, steps=96, step="1h", stay=0.8).cells
    random = np.random.default_rng(0)
    answers = [tracks, *(tracks[random.permutation(len(tracks))] for _ in range(3))]
    aligned = alignment.align(answers, 0, lengths=np.ones(96, np.int64), places=9)
    for answer in aligned:
        assert np.array_equal(answer, tracks)


def test_alignment_by_lists_finds_nearly_the_best_order(monkeypatch):
    truth = random_truth(np.random.default_rng(3), people=40, places=16, steps=80, step="1h", stay=0.8, away=0.1)
    made = problem_of(truth)
    one, other = (relink(made, track(made, seed), seed, segments_per_day=2) for seed in range(2))
    together = ((one[:, None] == other[None]) * made.lengths).sum(axis=2)
    best = together[linear_sum_assignment(-together)].sum()
    monkeypatch.setattr(alignment, "DENSE_UP_TO", 0)
    first, second = alignment.align([one, other], 0, lengths=made.lengths, places=made.counts.shape[1], rounds=1)
    assert np.array_equal(first, one)
    assert sorted(map(bytes, second)) == sorted(map(bytes, other))
    assert ((first == second) * made.lengths).sum() >= 0.99 * best


def test_a_crowd_does_not_tell_who_is_who(monkeypatch):
    monkeypatch.setattr(alignment, "DENSE_UP_TO", 0)
    monkeypatch.setattr(alignment, "MEETINGS", 1)  # a few ticks only
    tracks = np.zeros((6, 30), np.int32)
    tracks[3:, 10:] = 1
    for answer in alignment.align([tracks, tracks[::-1]], 0, lengths=np.ones(30, np.int64), places=2):
        assert sorted(map(bytes, answer)) == sorted(map(bytes, tracks))
