"""What a recovery gives away of each person, against plain loops and cases with a known answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.evaluation.exposure import agreement, day_steps, expose, night_steps, reidentify, usual_place

LINE = rk.Locations([[0, 0], [1, 0], [2, 0], [3, 0]])


def of(cells, step="6h", start="2024-01-01", locations=LINE, names=None):
    cells = np.array(cells)
    return rk.Trajectories(cells, locations, rk.Calendar(start, step, cells.shape[1]), names)


@settings(max_examples=50, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_is_the_evaluation_where_both_have_the_same_people(truth, seed):
    recovered = rk.deal_at_random(truth.counts(), seed=seed)
    found, plain = expose(recovered, truth), rk.evaluate(recovered, truth)
    assert found.mean_accuracy == pytest.approx(plain.accuracy)
    assert found.error_km.mean() == pytest.approx(plain.mean_error_km)
    assert sorted(found.matched) == list(range(truth.people))


@settings(max_examples=50, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_by_hour_and_by_place_add_up_to_the_accuracy(truth, seed):
    found = expose(rk.deal_at_random(truth.counts(), seed=seed), truth)
    hours = np.array([int(str(time)[11:13]) for time in truth.calendar.times()])
    share_of_hour = np.bincount(hours, minlength=24) / truth.steps
    share_of_place = np.bincount(truth.cells.ravel(), minlength=len(truth.locations)) / truth.cells.size
    for shares, weights in ((found.by_hour, share_of_hour), (found.by_place, share_of_place)):
        assert np.array_equal(np.isnan(shares), weights == 0)
        assert np.nansum(shares * weights) == pytest.approx(found.accuracy.mean())


def test_people_who_are_left_over_score_nothing():
    truth = of([[0, 0, 0, 0], [3, 3, 3, 3]])
    fewer = expose(of([[0, 0, 0, 0]]), truth)
    assert fewer.matched.tolist() == [0, -1]
    assert fewer.accuracy.tolist() == [1, 0]
    assert fewer.mean_accuracy == 0.5
    assert np.isnan(fewer.error_km[1])
    assert fewer.home.tolist() == [1, 0]
    more = expose(of([[3, 3, 3, 3], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]), truth)
    assert more.matched.tolist() == [1, 0]
    assert more.accuracy.tolist() == [1, 1]
    # Two invented people count against the attacker.
    assert more.mean_accuracy == 0.5


def test_error_is_measured_at_the_original_resolution():
    original = of([[0, 1, 2, 3]], step="6h")
    halves = rk.Locations([[0.5, 0], [2.5, 0]])
    recovered = of([[0, 1]], step="12h", locations=halves)
    coarse = of([[0, 1]], step="12h", locations=halves)
    found = expose(recovered, coarse, original=original)
    assert found.accuracy.tolist() == [1]
    assert found.error_km.tolist() == [0.5]


def test_home_and_work():
    # Every 6 hours from a Friday on: 00:00 is night, 12:00 is working time, but not on Saturday.
    calendar = rk.Calendar("2024-01-05", "6h", 8)
    assert night_steps(calendar).tolist() == [True, False, False, False] * 2
    assert day_steps(calendar).tolist() == [False, False, True, False] + [False] * 4
    weekend = rk.Calendar("2024-01-06", "6h", 8)
    assert day_steps(weekend).tolist() == [False, False, True, False] * 2
    truth = rk.Trajectories([[0, 1, 2, 1, 0, 1, 3, 1]], LINE, calendar)
    assert usual_place(truth, day_steps(calendar)).tolist() == [2]
    found = expose(rk.Trajectories([[0, 1, 1, 1, 0, 1, 3, 1]], LINE, calendar), truth)
    assert (found.home.tolist(), found.work.tolist()) == ([1], [0])
    no_night = expose(
        of([[0]], step="24h", start="2024-01-05 06:00"), of([[0]], step="24h", start="2024-01-05 06:00")
    )
    assert np.isnan(no_night.home).all()
    assert np.isnan(no_night.work).all()


def test_someone_is_found_only_where_nobody_else_fits_as_well():
    truth = of([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [3, 3, 3, 3, 3, 3]])
    found = reidentify(truth, truth, np.arange(3))
    assert found.tolist() == [[0] * 5, [0] * 5, [1] * 5]
    # The best match is somebody else: unique, but not right.
    assert reidentify(truth, truth, np.array([0, 1, 0]))[2].tolist() == [0] * 5


@settings(max_examples=30, deadline=None)
@given(truth=truths(max_steps=12), seed=st.integers(0, 99))
def test_looking_up_against_plain_loops(truth, seed):
    recovered = rk.deal_at_random(truth.counts(), seed=seed)
    matched = np.arange(truth.people)
    found = reidentify(recovered, truth, matched, draws=4, seed=seed)
    assert found.shape == (truth.people, min(5, truth.steps))
    for person in range(truth.people):
        random = np.random.default_rng([seed, person])
        draws = [random.choice(truth.steps, found.shape[1], replace=False) for _ in range(4)]
        for points in range(1, found.shape[1] + 1):
            hits = 0
            for steps in draws:
                agreed = [sum(row[t] == truth.cells[person, t] for t in steps[:points]) for row in recovered.cells]
                best = [row for row, score in enumerate(agreed) if score == max(agreed)]
                hits += best == [person]
            assert found[person, points - 1] == hits / 4


def test_more_known_points_find_more_in_the_truth():
    truth = rk.SyntheticCity(people=40, days=3, step="1h").trajectories()
    found = reidentify(truth, truth, np.arange(40)).mean(axis=0)
    assert (np.diff(found) > 0).all()
    assert found[-1] > 0.6


def test_agreement():
    truth = random_truth(np.random.default_rng(0), people=9, places=9, steps=24)
    shuffled = rk.Trajectories(truth.cells[::-1], truth.locations, truth.calendar)
    assert agreement(truth, shuffled) == 1
    assert agreement(truth, rk.Trajectories(truth.cells[:3], truth.locations, truth.calendar)) == pytest.approx(1 / 3)
    chance = rk.deal_at_random(truth.counts())
    assert 0 < agreement(truth, chance) < 1


def test_refuses_other_times():
    with pytest.raises(rk.InvalidData, match="calendar"):
        expose(of([[0, 0]]), of([[0, 0]], step="12h"))
    with pytest.raises(rk.InvalidData, match="no steps"):
        expose(of(np.empty((1, 0), int)), of(np.empty((1, 0), int)))
