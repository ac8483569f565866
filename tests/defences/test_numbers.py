"""What defences do, on numbers that can be checked by hand."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.defences import (
    Cap,
    CoarserSpace,
    NothingLeft,
    Round,
    Sample,
    Suppress,
)

row = rk.Locations(np.column_stack([np.arange(6) + 0.5, np.full(6, 0.5)]))
counts = rk.Counts([[0, 1, 2, 3, 7, 12], [1, 0, 3, 4, 8, 9]], row, rk.Calendar("2024-03-01", "6h"))


def values(release):
    return [[None if np.isnan(value) else value for value in line] for line in release.values.tolist()]


def test_suppress():
    assert values(Suppress(below=3)(counts)) == [[None, None, None, 3, 7, 12], [None, None, 3, 4, 8, 9]]
    assert values(Suppress(below=3, zeros=False)(counts)) == [[0, None, None, 3, 7, 12], [None, 0, 3, 4, 8, 9]]


def test_round_half_up():
    assert values(Round(to=5)(counts)) == [[0, 0, 0, 5, 5, 10], [0, 0, 5, 5, 10, 10]]
    assert values(Round(to=2)(counts)) == [[0, 2, 2, 4, 8, 12], [2, 0, 4, 4, 8, 10]]


def test_cap():
    assert values(Cap(at=4)(counts)) == [[0, 1, 2, 3, 4, 4], [1, 0, 3, 4, 4, 4]]


def test_withheld_stays_withheld():
    release = Suppress(below=3)(counts)
    for defence in (Round(to=5), Cap(at=4), Suppress(below=2)):
        assert np.array_equal(defence(release).withheld, release.withheld)


def test_defences_that_would_leave_nothing():
    truth = rk.Trajectories([[0, 0], [1, 1]], row, rk.Calendar("2024-03-01", "6h"))
    for defence, problem in (
        (Suppress(below=13), "withhold all 12 numbers: the largest is 12"),
        (Round(to=50), "turn every number into 0: the largest is 12"),
        (CoarserSpace(km=10), "merge all 6 locations into one"),
    ):
        with pytest.raises(NothingLeft, match=problem):
            defence(counts)
    with pytest.raises(NothingLeft, match="none of the 2 people"):
        Sample(share=0.001)(truth)
    with pytest.raises(NothingLeft, match="none of the 2 people"):
        Sample(share=0.1, fixed_size=True)(truth)
