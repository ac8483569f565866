"""Trajectories: who was where, and who was away."""

import numpy as np
import pytest
from hypothesis import given
from tests.model.nouns import AWAY_TRUTH, HOURLY, LOCATIONS, refuses
from tests.small import truths

import rekindle as rk


def test_trajectories_are_a_read_only_view():
    cells = np.array([[0, 1], [1, 1]])
    found = rk.Trajectories(cells, LOCATIONS, HOURLY)
    assert np.shares_memory(found.cells, cells)
    assert cells.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        found.cells[0, 0] = 1
    with pytest.raises(AttributeError):
        found.cells = cells
    assert found.xy_km().tolist() == [[[0, 0], [3, 4]], [[3, 4], [3, 4]]]
    assert found.people_ids == ("0", "1")


@given(truths())
def test_people_are_conserved(truth):
    counts = truth.counts()
    assert counts.people == truth.people
    assert (counts.values.sum(axis=1) == truth.people).all()
    for place in range(len(truth.locations)):
        assert (counts.values[:, place] == (truth.cells == place).sum(axis=0)).all()
    assert truth.xy_km().shape == (truth.people, truth.steps, 2)
    day = list(truth.calendar.days())[-1]
    assert truth.part(day).counts() == counts.part(day)


def test_no_steps_yet():
    found = rk.Trajectories(np.empty((3, 0), int), LOCATIONS, HOURLY)
    assert (found.people, found.steps, found.xy_km().shape) == (3, 0, (3, 0, 2))
    refuses(["(0, 2)"], found.counts)


@pytest.mark.parametrize(
    ("cells", "settings", "words"),
    [
        ([[0, 2]], {}, ["Person 0", "index 2", "step 1"]),
        ([[0, -2]], {}, ["-2", "-1 for people who are away"]),
        ([[0.0, 1.0]], {}, ["float64"]),
        ([[0], [0, 1]], {}, ["Trajectories"]),
        ([0, 1], {}, ["(2,)"]),
        ([], {}, ["(0,)"]),
        ([[0], [1]], {"people_ids": ["x"]}, ["1 names for 2"]),
        ([[0], [1]], {"people_ids": ["x", "x"]}, ["same name"]),
    ],
)
def test_trajectories_refuse(cells, settings, words):
    refuses(words, rk.Trajectories, cells, LOCATIONS, HOURLY, **settings)


def test_trajectories_need_their_calendar():
    refuses(["1 columns", "2 steps"], rk.Trajectories, [[0]], LOCATIONS, HOURLY.closed_at(2))


def test_equal_means_equal_in_everything():
    one = rk.Trajectories([[0, 1]], LOCATIONS, HOURLY)
    assert one == rk.Trajectories([[0, 1]], LOCATIONS, HOURLY)
    assert one != rk.Trajectories([[0, 0]], LOCATIONS, HOURLY)
    assert one != rk.Trajectories([[0, 1]], LOCATIONS, HOURLY, ["x"])
    assert one != rk.Trajectories([[0, 1]], LOCATIONS, rk.Calendar("2024-01-02", "1h"))
    assert one != "no trajectories"
    assert one.counts() != rk.Trajectories([[0, 0]], LOCATIONS, HOURLY).counts()
    with pytest.raises(TypeError):
        hash(one)
    assert "1 people, 2 steps" in repr(one)


def test_nothing_is_equal_to_what_it_is_not():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]])
    truth = rk.Trajectories(np.array([[0, 1], [1, 1]]), places, rk.Calendar("2024-03-01", "1h"))
    counts = truth.counts()
    release = rk.Release.of(counts)
    for noun in (places, truth, counts, release):
        assert noun != "other"
        assert noun == noun
    assert counts != rk.Counts(counts.values[::-1], places, counts.calendar)


def test_nouns_say_what_they_are():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]])
    truth = rk.Trajectories(np.array([[0, 1], [1, 1]]), places, rk.Calendar("2024-03-01", "1h"))
    assert repr(places) == "Locations(2)"
    assert repr(truth.counts()) == "Counts(2 people, 2 steps from 2024-03-01 00:00:00, 2 locations)"
    assert hash(places) == hash(rk.Locations([[0.0, 0.0], [1.0, 0.0]]))


def test_people_may_be_away():
    counts = AWAY_TRUTH.counts()
    assert counts.values.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert (counts.people, counts.totals.tolist(), counts.away.tolist()) == (3, [2, 0, 1], [1, 3, 2])
    assert AWAY_TRUTH.counted.sum() == 3
    assert np.isnan(AWAY_TRUTH.xy_km()).all(axis=2).tolist() == (~AWAY_TRUTH.counted).tolist()
    assert repr(counts).startswith("Counts(3 people, up to 3 away")
    assert repr(AWAY_TRUTH).startswith("Trajectories(3 people, 67% away")


def test_observed_points_are_kept():
    part = AWAY_TRUTH.part(slice(0, 2))
    assert np.array_equal(np.asarray(part.observed)[0], [True, False])
    assert part != rk.Trajectories(part.cells, LOCATIONS, HOURLY)
    same = rk.Trajectories(AWAY_TRUTH.cells, LOCATIONS, HOURLY, observed=AWAY_TRUTH.observed)
    assert same == AWAY_TRUTH
    for observed, words in ((np.ones((3, 3), bool), ["step 1", "away"]), ([[1, 0, 0]], ["int64", "(1, 3)"])):
        refuses(words, rk.Trajectories, AWAY_TRUTH.cells, LOCATIONS, HOURLY, observed=observed)
