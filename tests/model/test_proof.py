"""Corners of the model that the other tests leave out."""

import numpy as np

import rekindle as rk
from rekindle.model import Release


def test_nothing_is_equal_to_what_it_is_not():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]])
    truth = rk.Trajectories(np.array([[0, 1], [1, 1]]), places, rk.Calendar("2024-03-01", "1h"))
    counts = truth.counts()
    release = Release.of(counts)
    for noun in (places, truth, counts, release):
        assert noun != "other"
        assert noun == noun
    assert counts != rk.Counts(counts.values[::-1], places, counts.calendar)


def test_nouns_say_what_they_are():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]])
    truth = rk.Trajectories(np.array([[0, 1], [1, 1]]), places, rk.Calendar("2024-03-01", "1h"))
    assert repr(places) == "Locations(2 places)"
    assert repr(truth.counts()) == "Counts(2 people, 2 steps from 2024-03-01 00:00:00, 2 places)"
    assert hash(places) == hash(rk.Locations([[0.0, 0.0], [1.0, 0.0]]))
