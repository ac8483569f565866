"""Habits within a day: where most moves are not seen there is nothing to track, and nothing to repeat."""

import numpy as np
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.habits.doubt import seen_share
from rekindle.attacks.habits.problem import Problem

CROWD = random_truth(np.random.default_rng(1), people=40, places=4, steps=48, step="30min")


def test_a_crowd_within_a_day_is_left_to_the_rules():
    counts = CROWD.counts()
    assert seen_share(Problem.of(counts.values, counts.locations, counts.calendar)) < 0.5
    found = rk.Habits(effort="low", seed=3).recover(counts)
    np.testing.assert_array_equal(found.trajectories.cells, rk.Enhanced(seed=3).recover(counts).trajectories.cells)
    assert found.trajectories.counts() == counts
    assert isinstance(found.attack, rk.Habits)
    assert found.confidence.dtype == np.float32
    assert 0 < found.confidence.max() < 0.5


def test_one_who_walks_alone_is_seen():
    cells = np.zeros((2, 6), np.int32)
    cells[0, 3:] = 1
    problem = Problem.of(
        rk.Trajectories(cells, CROWD.locations, CROWD.calendar.closed_at(6)).counts().values,
        CROWD.locations,
        CROWD.calendar.closed_at(6),
    )
    assert seen_share(problem) == 1.0
