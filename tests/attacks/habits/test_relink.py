"""Segments go to the people they resemble."""

import numpy as np
from tests.attacks.habits.made import line, problem_of

import rekindle as rk
from rekindle.attacks.habits.problem import count
from rekindle.attacks.habits.relink import POWER, SEAM, relink
from rekindle.attacks.habits.track import track


def test_segments_go_to_whom_they_resemble():
    """Two people whose tracks were exchanged on the third of five days get their own day back."""
    one, other = ([0] * 12 + [1] * 12) * 5, ([3] * 12 + [4] * 12) * 5
    truth = line(one, other)
    made = problem_of(truth)
    mixed = track(made, 0)
    by_place = mixed[np.argsort(mixed[:, 0])].copy()
    day_three = (made.starts[:-1] >= 48) & (made.starts[:-1] < 72)
    by_place[:, day_three] = by_place[::-1, day_three]
    found = made.expand(relink(made, by_place, 0, segments_per_day=1))
    assert sorted(found.tolist()) == sorted([one, other])


def with_day_three_exchanged(one, other):
    """The tracks of two people over five days, as they are and with their third days exchanged; and their problem.

    A third person moves at midnight, so that the counts change and the days can be cut there.
    """
    third = ([5] * 24 + [6] * 24) * 2 + [5] * 24
    made = problem_of(line(one, other, third))
    index = {place: number for number, place in enumerate(made.places.tolist())}
    right = np.vectorize(index.get)(np.array([one, other, third])[:, made.starts[:-1]]).astype(np.int32)
    mixed = right.copy()
    day_three = (made.starts[:-1] >= 48) & (made.starts[:-1] < 72)
    mixed[:2, day_three] = mixed[1::-1, day_three]
    return right, mixed, made


def test_a_short_stay_tells_people_of_one_home_apart():
    """By time alone, a day out would go to the person who is mostly out, though the hour in place 1 says whose it is."""
    one, other = [0] * 12 + [1] + [0] * 11, [0] * 3 + [3] * 18 + [0] * 3
    right, mixed, made = with_day_three_exchanged(
        one * 2 + [0] * 2 + [4] * 19 + [1] + [0] * 2 + one * 2, other * 2 + [0] * 12 + [3] + [0] * 11 + other * 2
    )
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1, power=POWER), right)
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1), mixed)


def test_segments_begin_where_the_person_was():
    """Two people with the same time in two places, each at home at midnight, are told apart by that alone."""
    right, mixed, made = with_day_three_exchanged(
        ([0] * 6 + [1] * 12 + [0] * 6) * 5, ([1] * 5 + [0] * 12 + [1] * 7) * 5
    )
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1, seam=SEAM), right)
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1), mixed)


def test_links_keep_the_counts(problem, tracks):
    for cuts in (1, 2, 4):
        assert np.array_equal(
            count(relink(problem, tracks, 1, segments_per_day=cuts), problem.counts.shape[1]), problem.counts
        )


def test_links_see_where_people_were_more_than_that_they_were_away():
    """Two people with their days exchanged once; one is mostly away on that day, as the other was on all others."""
    one = ([0] * 12 + [1] * 12) * 2 + [rk.AWAY] * 23 + [0] + ([0] * 12 + [1] * 12) * 2
    other = ([rk.AWAY] * 12 + [3] * 12) * 2 + [3] * 12 + [4] * 12 + ([rk.AWAY] * 12 + [3] * 12) * 2
    made = problem_of(line(one, other, [2] * 120))
    index = {place: number for number, place in enumerate(made.places.tolist())}
    right = np.vectorize(index.get)(np.array([one, other, [2] * 120])[:, made.starts[:-1]]).astype(np.int32)
    mixed = right.copy()
    day_three = (made.starts[:-1] >= 48) & (made.starts[:-1] < 72)
    mixed[:2, day_three] = mixed[1::-1, day_three]
    found = made.expand(relink(made, mixed, 0, segments_per_day=1))
    assert sorted(found.tolist()) == sorted(made.expand(right).tolist())
