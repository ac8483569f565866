"""Following people through a day, against cases worked out by hand."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.attacks.habits.made import line, problem_of

import rekindle as rk
from rekindle.attacks.habits.problem import count
from rekindle.attacks.habits.track import assign, track


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_assignment_is_optimal(size):
    cost = np.random.default_rng(size).integers(0, 20, (size, size)).astype(float)
    chosen = assign(cost)
    assert sorted(chosen) == list(range(size))
    rows, columns = linear_sum_assignment(cost)
    assert cost[np.arange(size), chosen].sum() == pytest.approx(cost[rows, columns].sum())


def test_last_in_first_out():
    """Someone passes a place where another has long been: it is the passer who goes on."""
    truth = line([1] * 12, [0] * 8 + [1] + [2] * 3)
    for backwards in (False, True):
        found = problem_of(truth).expand(track(problem_of(truth), 0, backwards=backwards))
        assert sorted(found.tolist()) == sorted(truth.cells.tolist())


def test_who_was_seen_last_in_a_place_returns_there():
    """Two phones are off at night, each at home; they are on again in the other order."""
    one = [0] * 4 + [rk.AWAY] * 4 + [0] * 4
    other = [4] * 3 + [rk.AWAY] * 4 + [4] * 5
    truth = line(one, other)
    for backwards in (False, True):
        found = problem_of(truth).expand(track(problem_of(truth), 0, backwards=backwards))
        assert sorted(found.tolist()) == sorted(truth.cells.tolist())


def test_one_goes_away_while_another_returns_far_off():
    """The number of those who are away does not change, but nobody jumps over the whole line."""
    truth = line([0] * 6 + [rk.AWAY] * 6, [rk.AWAY] * 6 + [30] * 6, [1] * 12)
    found = problem_of(truth).expand(track(problem_of(truth), 0))
    assert sorted(found.tolist()) == sorted(truth.cells.tolist())


def test_tracks_have_the_counts(problem):
    for seed in range(4):
        found = track(problem, seed, backwards=bool(seed % 2), noise=1.0)
        assert np.array_equal(count(found, problem.counts.shape[1]), problem.counts)
