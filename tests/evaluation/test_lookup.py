"""Looking people up by known points, against plain loops and cases with a known answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import oracle
from tests.small import line, truths

import rekindle as rk
from rekindle.evaluation import KNOWN_POINTS, look_up, lookup, unique_points


def test_someone_is_found_only_where_nobody_else_fits_as_well():
    truth = line([0] * 20, [0] * 20, [3] * 20)
    found = look_up(truth, truth, np.arange(3))
    assert found.reidentified.tolist() == [[0] * 5, [0] * 5, [1] * 5]
    # The best match is somebody else: unique, but not right.
    assert look_up(truth, truth, np.array([0, 1, 0])).reidentified[2].tolist() == [0] * 5
    # What is learnt does not ask who is right.
    assert found.learnt.tolist() == [[1] * 5] * 3
    assert look_up(truth, truth, np.full(3, -1)).learnt.tolist() == found.learnt.tolist()


def test_what_is_learnt_is_at_the_other_points():
    # The only path fits half of the steps, 10 of 20: what is known and fits is not counted again.
    truth, path = line([0] * 20), line([0] * 10 + [1] * 10)
    found = look_up(path, truth, np.zeros(1, int), draws=400)
    assert found.learnt[0, :4] == pytest.approx([0.5] * 4, abs=0.05)
    # Twenty known points of twenty-one, all of which fit the wrong path better than the right one at one step.
    short = look_up(line([0] * 17), line([0] * 16 + [1]), np.zeros(1, int), draws=200)
    assert short.learnt[0, 4] == pytest.approx(16 / 17, abs=0.06)


def test_ties_are_broken_at_random_by_the_seed():
    # Two paths fit the first step alike; one of them is right everywhere else, the other nowhere.
    truth = line([0, 0])
    paths = line([0, 0], [1, 1])
    both = line([0, 0], [0, 1], [0, 2], [0, 3])
    assert look_up(paths, truth, np.zeros(1, int)).learnt[0, 0] == 1
    found = [look_up(both, truth, np.zeros(1, int), draws=500, seed=seed).learnt[0, 0] for seed in (1, 1, 2)]
    # Where the first step is known, one of four paths is right; where the second, only one fits, and it is right.
    assert found[0] == pytest.approx((0.25 + 1) / 2, abs=0.07)
    assert found[0] == found[1] != found[2]


@settings(max_examples=60, deadline=None)
@given(truth=truths(max_steps=24, away=True), seed=st.integers(0, 99), people=st.integers(1, 9))
def test_against_plain_loops(truth, seed, people):
    rng = np.random.default_rng(seed)
    cells = rng.integers(-1 if seed % 2 else 0, len(truth.locations), (people, truth.steps))
    recovered = rk.Trajectories(cells, truth.locations, truth.calendar)
    right = rng.integers(-1, people, truth.people)
    found = look_up(recovered, truth, right, draws=4, seed=seed)
    assert found.reidentified.shape == found.learnt.shape == (truth.people, len(KNOWN_POINTS))
    for person in range(truth.people):
        counted = np.flatnonzero(truth.counted[person])
        points = [number for number in KNOWN_POINTS if number <= len(counted)]
        assert np.isnan(found.reidentified[person, len(points) :]).all()
        assert np.isnan(found.learnt[person, len(points) :]).all()
        if not points:
            continue
        random = np.random.default_rng([seed, person])
        known = [random.choice(counted, points[-1], replace=False) for _ in range(4)]
        lots = random.random((4, len(points)))
        for at, number in enumerate(points):
            results = oracle.look_up(cells.tolist(), truth.cells[person].tolist(), known, lots[:, at], number)
            assert found.reidentified[person, at] == np.mean([best == [right[person]] for best, _ in results])
            assert found.learnt[person, at] == pytest.approx(np.mean([learnt for _, learnt in results]), nan_ok=True)


def test_only_points_at_which_a_person_is_counted_are_known():
    truth = line([0, -1, 0, -1, -1, 1], [-1] * 6, [-1, 2, -1, -1, -1, -1])
    paths = line([0, -1, 0, -1, 4, 4], [-1] * 6, [3, 2, 3, 3, 3, 3])
    found = look_up(paths, truth, np.arange(3), draws=300)
    # Three points, of which the first two are right: two known points fit the first path best, whichever they are.
    assert found.reidentified[0, 1] == 1
    assert found.learnt[0, 1] == pytest.approx((0 + 1 + 1) / 3, abs=0.08)
    # Being away at the same steps is no fit: nobody else is, and nothing is known of who is never counted.
    assert np.isnan(found.reidentified[0, 2:]).all()
    assert np.isnan(found.reidentified[1]).all()
    assert np.isnan(found.learnt[1]).all()
    # One point is all there is: nothing more is learnt from it.
    assert found.reidentified[2, 0] == 1
    assert np.isnan(found.learnt[2]).all()


def test_unique_points_are_those_that_fit_nobody_else():
    truth = line([0, 0, 0], [0, 0, 1])
    # One point tells them apart where it is the third; two where it is among them.
    found = unique_points(truth, draws=900)
    assert found[:, 0] == pytest.approx(1 / 3, abs=0.06)
    assert found[:, 1] == pytest.approx(2 / 3, abs=0.06)
    assert np.isnan(found[:, 2:]).all()


def test_more_known_points_tell_more_people_apart():
    truth = rk.SyntheticCity(people=40, days=3, step="1h").trajectories()
    found = unique_points(truth).mean(axis=0)
    assert (np.diff(found) > 0).all()
    assert found[-1] > 0.9


def test_at_most_so_many_are_looked_up(monkeypatch):
    truth = line(*([place, place] for place in range(5)))
    monkeypatch.setattr(lookup, "MOST_LOOKED_UP", 3)
    found = look_up(truth, truth, np.arange(5), draws=2).reidentified
    assert np.flatnonzero(~np.isnan(found[:, 0])).tolist() == [0, 2, 4]
    assert (found[[0, 2, 4], :2] == 1).all()
    # Many recovered paths through a point: fewer people, but at least one.
    monkeypatch.setattr(lookup, "MOST_COMPARED", 2 * 2 * 16)
    assert np.flatnonzero(~np.isnan(look_up(truth, truth, np.arange(5), draws=2).learnt[:, 0])).tolist() == [0, 4]
    monkeypatch.setattr(lookup, "MOST_COMPARED", 1)
    assert np.flatnonzero(~np.isnan(look_up(truth, truth, np.arange(5), draws=2).learnt[:, 0])).tolist() == [0]


def test_refuses_what_makes_no_sense():
    truth = line([0, 0])
    with pytest.raises(rk.errors.InvalidSetting, match="`draws` is 0"):
        look_up(truth, truth, np.zeros(1, int), draws=0)
    with pytest.raises(rk.errors.InvalidSetting, match="`seed` is -1"):
        look_up(truth, truth, np.zeros(1, int), seed=-1)
