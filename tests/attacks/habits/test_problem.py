"""What the parts of Habits see of the counts."""

import numpy as np
import pytest
from tests.attacks.habits.made import line, problem_of

import rekindle as rk
from rekindle.attacks.habits.problem import spacing


def test_problem_keeps_used_places_and_changes_only():
    made = problem_of(line([0, 0, 0, 3, 3], [1, 1, 1, 1, 1]))
    assert made.places.tolist() == [0, 1, 3]
    assert made.starts.tolist() == [0, 3, 5]
    assert made.counts.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert made.expand(np.array([[0, 2], [1, 1]])).tolist() == [[0, 0, 0, 3, 3], [1, 1, 1, 1, 1]]
    with pytest.raises(rk.errors.InvalidData, match="counts"):
        made.check(np.array([[0, 0], [1, 1]]))
    with pytest.raises(rk.errors.InvalidData, match="shape"):
        made.check(np.array([[0, 2]]))


def test_away_is_one_more_place_where_somebody_ever_is():
    made = problem_of(line([0, 0, rk.AWAY, 3, 3], [1, 1, 1, 1, 1], [rk.AWAY] * 5))
    assert made.places.tolist() == [0, 1, 3, rk.AWAY]
    assert (made.away, made.people, len(made.xy)) == (3, 3, 3)
    assert made.counts.tolist() == [[1, 1, 0, 1], [0, 1, 0, 2], [0, 1, 1, 1]]
    assert made.expand(np.array([[0, 3, 2]])).tolist() == [[0, 0, rk.AWAY, 3, 3]]
    assert problem_of(line([0, 0, 3], [1, 1, 1])).away == -1


def test_spacing_is_the_least_distance_between_different_centres():
    xy = np.random.default_rng(0).uniform(0, 10, (40, 2))
    gaps = np.hypot(*(xy[:, None] - xy).T)
    assert spacing(np.concatenate([xy, xy[:1]])) == pytest.approx(gaps[gaps > 0].min())
    assert spacing(xy[:1]) == 1.0
