"""What a recovery gives away of each person, against plain loops and cases with a known answer."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import line, random_truth, shuffled, truths

import rekindle as rk
from rekindle.evaluation import map_people
from rekindle.evaluation.exposure import agreement, day_steps, expose, night_steps, usual_location

LINE = rk.Locations([[0, 0], [1, 0], [2, 0], [3, 0]])


def of(cells, step="6h", start="2024-01-01", locations=LINE, names=None):
    cells = np.array(cells)
    return rk.Trajectories(cells, locations, rk.Calendar(start, step, cells.shape[1]), names)


@settings(max_examples=50, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_is_the_evaluation_where_both_have_the_same_people(truth, seed):
    recovered = rk.Chance(seed=seed).recover(truth.counts()).trajectories
    found, plain = expose(recovered, truth), rk.evaluate(recovered, truth)
    assert found.accuracy.mean() == pytest.approx(plain.accuracy)
    assert found.accuracy.tolist() == plain.per_person.accuracy.tolist()
    assert found.error_km.mean() == pytest.approx(plain.mean_error_km)
    assert sorted(found.matched) == list(range(truth.people))


@settings(max_examples=50, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_by_hour_and_by_location_add_up_to_the_accuracy(truth, seed):
    found = expose(rk.Chance(seed=seed).recover(truth.counts()).trajectories, truth)
    hours = np.array([int(str(time)[11:13]) for time in truth.calendar.times()])
    share_of_hour = np.bincount(hours, minlength=24) / truth.steps
    share_of_location = np.bincount(truth.cells.ravel(), minlength=len(truth.locations)) / truth.cells.size
    for shares, weights in ((found.by_hour, share_of_hour), (found.by_location, share_of_location)):
        assert np.array_equal(np.isnan(shares), weights == 0)
        assert np.nansum(shares * weights) == pytest.approx(found.accuracy.mean())


@settings(max_examples=50, deadline=None)
@given(truth=truths(away=True), seed=st.integers(0, 99), people=st.none() | st.integers(1, 9))
def test_is_the_evaluation_of_people_who_come_and_go(truth, seed, people):
    rng = np.random.default_rng(seed)
    seen = (rng.random(truth.cells.shape) < 0.5) & truth.counted
    truth = rk.Trajectories(truth.cells, truth.locations, truth.calendar, observed=seen)
    recovered = shuffled(truth, rng, people)
    found, plain = expose(recovered, truth, draws=2), rk.evaluate(recovered, truth)
    for name in ("matched", "accuracy", "precision", "accuracy_observed", "error_km", "points", "points_observed"):
        assert np.array_equal(getattr(found, name), getattr(plain.per_person, name), equal_nan=True)
    assert found.people_recovered == recovered.people
    assert found.points_recovered == plain.per_person.points_recovered
    # By hour and by location they add up to the points that are right.
    right = np.nansum(found.accuracy * truth.counted.sum(axis=1))
    at = np.array([int(str(time)[11:13]) for time in truth.calendar.times()])
    points_at = np.bincount(at, weights=truth.counted.sum(axis=0), minlength=24)
    points_in = truth.counts().values.sum(axis=0)
    for shares, points in ((found.by_hour, points_at), (found.by_location, points_in)):
        assert np.array_equal(np.isnan(shares), points == 0)
        assert np.nansum(shares * points) == pytest.approx(right)


def test_people_who_come_and_go_by_hand():
    # A night and a working day: the first is away at night, the second by day, the third always.
    night, day = [2] * 6 + [-1] * 18, [-1] * 9 + [1] * 5 + [0] * 3 + [-1] * 7
    truth = line(day, night, [-1] * 24)
    found = expose(line([2] * 5 + [0] * 1 + [-1] * 18, [-1] * 9 + [0] * 5 + [1] * 3 + [-1] * 7), truth)
    assert found.matched.tolist() == [1, 0, -1]
    assert found.accuracy.tolist() == pytest.approx([0, 5 / 6, np.nan], nan_ok=True)
    assert found.error_km.tolist() == pytest.approx([1, 2 / 6, np.nan], nan_ok=True)
    assert found.home.tolist() == pytest.approx([np.nan, 1, np.nan], nan_ok=True)
    assert found.work.tolist() == pytest.approx([0, np.nan, np.nan], nan_ok=True)
    assert found.by_hour.tolist() == pytest.approx([1] * 5 + [0] + [np.nan] * 3 + [0] * 8 + [np.nan] * 7, nan_ok=True)
    assert found.by_location.tolist() == pytest.approx([0, 0, 5 / 6, np.nan, np.nan], nan_ok=True)
    assert np.isnan(found.accuracy_observed).all()
    assert found.looked_up == 2
    assert repr(found) == "Exposure(3 people, accuracy 0.357)"
    # A home that is not among the recovered points is not found.
    never = expose(line([-1] * 6 + [2] * 18), line(night))
    assert never.home.tolist() == [0]
    assert usual_location(truth, night_steps(truth.calendar)).tolist() == [-1, 2, -1]
    with pytest.raises(rk.errors.InvalidData, match="Nobody in the truth is counted"):
        expose(line([0, 0]), line([-1, -1]))


def test_agreement_is_over_counted_points():
    one = line([0, 0, -1, -1], [-1, -1, -1, 3])
    assert agreement(one, one) == 1
    assert agreement(one, line([-1, -1, 3, 3], [0, -1, -1, -1])) == pytest.approx(2 / 3)
    assert agreement(one, line([0, 0, 1, 1], [-1, -1, -1, 3])) == pytest.approx(3 / 5)


def test_people_who_are_left_over_score_nothing():
    truth = of([[0, 0, 0, 0], [3, 3, 3, 3]])
    fewer = expose(of([[0, 0, 0, 0]]), truth)
    assert fewer.matched.tolist() == [0, -1]
    assert fewer.accuracy.tolist() == [1, 0]
    assert np.isnan(fewer.error_km[1])
    assert fewer.home.tolist() == [1, 0]
    more = expose(of([[3, 3, 3, 3], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]), truth)
    assert more.matched.tolist() == [1, 0]
    assert more.accuracy.tolist() == [1, 1]
    # People whom the attacker invented do not count against the attack.
    assert more.accuracy.mean() == 1
    assert more.home.mean() == 1


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
    assert usual_location(truth, day_steps(calendar)).tolist() == [2]
    found = expose(rk.Trajectories([[0, 1, 1, 1, 0, 1, 3, 1]], LINE, calendar), truth)
    assert (found.home.tolist(), found.work.tolist()) == ([1], [0])
    no_night = expose(
        of([[0]], step="24h", start="2024-01-05 06:00"), of([[0]], step="24h", start="2024-01-05 06:00")
    )
    assert np.isnan(no_night.home).all()
    assert np.isnan(no_night.work).all()


def test_agreement():
    truth = random_truth(np.random.default_rng(0), people=9, places=9, steps=24)
    shuffled = rk.Trajectories(truth.cells[::-1], truth.locations, truth.calendar)
    assert agreement(truth, shuffled) == 1
    assert agreement(truth, rk.Trajectories(truth.cells[:3], truth.locations, truth.calendar)) == pytest.approx(1 / 3)
    chance = rk.Chance().recover(truth.counts()).trajectories
    assert 0 < agreement(truth, chance) < 1
    by_name = np.mean(chance.cells == truth.cells)
    assert agreement(truth, chance, mapping="names") == pytest.approx(by_name)


def test_refuses_other_times():
    with pytest.raises(rk.errors.InvalidData, match="calendar"):
        expose(of([[0, 0]]), of([[0, 0]], step="12h"))
    with pytest.raises(rk.errors.InvalidData, match="no steps"):
        expose(of(np.empty((1, 0), int)), of(np.empty((1, 0), int)))


def test_an_exposure_by_hand():
    hours = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0]
    truth = line(hours, [4] * 24)
    found = expose(line([4] * 24, [0] * 6 + [1] * 3 + [3] * 8 + [1] * 3 + [0] * 4), truth)
    assert found.matched.tolist() == [1, 0]
    assert found.accuracy.tolist() == [pytest.approx(16 / 24), 1.0]
    assert found.error_km.tolist() == [pytest.approx(8 / 24), 0.0]
    assert found.home.tolist() == [1.0, 1.0]
    assert found.work.tolist() == [0.0, 1.0]
    assert found.by_hour.tolist() == [1.0] * 9 + [0.5] * 8 + [1.0] * 7
    assert found.by_location.tolist() == pytest.approx([1.0, 1.0, 0.0, np.nan, 1.0], nan_ok=True)
    assert (found.people_recovered, found.looked_up) == (2, 2)
    assert found.reidentified.shape == (2, 5)
    assert found.reidentified[1].tolist() == [1.0] * 5
    assert found.learnt[1].tolist() == [1.0] * 5
    assert 0.5 < found.learnt[0, 4] < 0.75
    assert set(found.arrays()) == {field.name for field in dataclasses.fields(found)}


def test_other_numbers_of_people():
    truth = line([0] * 4, [2] * 4)
    more = expose(line([0] * 4, [2] * 4, [4] * 4), truth)
    assert more.matched.tolist() == [0, 1]
    assert more.accuracy.tolist() == [1.0, 1.0]
    fewer = expose(line([2, 2, 2, 1]), truth)
    assert fewer.matched.tolist() == [-1, 0]
    assert fewer.accuracy.tolist() == [0.0, 0.75]
    assert fewer.error_km.tolist() == pytest.approx([np.nan, 0.25], nan_ok=True)
    assert np.isnan(fewer.work).all()
    assert fewer.home.tolist() == [0.0, 1.0]
    assert agreement(truth, line([0, 0, 0, 1])) == pytest.approx(3 / 8)
    assert agreement(truth, truth) == 1


def test_which_steps_are_night_and_work():
    friday = rk.Calendar("2024-03-01", "1h", 24)
    assert np.flatnonzero(night_steps(friday)).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.flatnonzero(day_steps(friday)).tolist() == list(range(9, 17))
    three = rk.Calendar("2024-03-01", "1h", 72)
    assert np.flatnonzero(day_steps(three)).tolist() == list(range(9, 17))  # Friday, not the weekend
    saturday = rk.Calendar("2024-03-02", "1h", 24)
    assert np.flatnonzero(day_steps(saturday)).tolist() == list(range(9, 17))
    assert usual_location(line([1, 3, 3, 1], [4, 2, 2, 2]), np.array([True, True, True, True])).tolist() == [1, 2]


def test_a_mapping_is_handed_on(monkeypatch):
    truth = line([0] * 4, [2] * 4)
    recovered = line([2] * 4, [0] * 4)
    known = map_people(recovered, truth)
    monkeypatch.setattr("rekindle.evaluation.mapping.map_people", None)
    assert expose(recovered, truth, mapping=known).accuracy.tolist() == [1, 1]


def test_results_stay_as_they_are():
    truth = line([0, 1], [1, 1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        expose(truth, truth).people_recovered = 3
