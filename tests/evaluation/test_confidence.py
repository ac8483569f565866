"""Accuracy by confidence and claims, on cases computed by hand."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.evaluation.confidence import assess_confidence

PLACES = rk.Locations([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0], [9.0, 0.0]])


def people(*rows):
    return rk.Trajectories(np.array(rows), PLACES, rk.Calendar("2024-03-01", "6h", len(rows[0])))


TRUTH = people([0, 0, 1, 1], [3, 3, 3, 3])


def test_claims_are_the_points_at_or_above_the_level():
    # The rows are exchanged; one point of each person is wrong.
    found = people([3, 3, 3, 2], [0, 0, 1, 0])
    sure = [[0.95, 0.9, 0.9, 0.95], [1.0, 0.5, 0.2, 0.1]]
    claims = assess_confidence(found, sure, TRUTH, level=0.9).claims
    assert claims.points == 5 / 8
    assert claims.points_right == 4 / 5
    assert claims.people == 1 / 2
    assert claims.people_right == 3 / 4


def test_bins_and_calibration_error():
    found = people([0, 0, 1, 0], [3, 3, 3, 3])
    sure = [[0.25, 0.25, 0.25, 0.25], [1.0, 1.0, 1.0, 1.0]]
    result = assess_confidence(found, sure, TRUTH, bins=2)
    assert result.edges.tolist() == [0.0, 0.5, 1.0]
    assert result.share.tolist() == [0.5, 0.5]
    assert result.confidence.tolist() == [0.25, 1.0]
    assert result.accuracy.tolist() == [0.75, 1.0]
    assert result.calibration_error == pytest.approx(0.25)


def test_who_claims_nothing_is_silent_not_right():
    result = assess_confidence(TRUTH, np.full((2, 4), 0.3), TRUTH)
    assert result.claims.points == 0
    assert np.isnan(result.claims.points_right)
    assert np.isnan(result.accuracy).sum() == 9


@pytest.mark.parametrize(
    ("sure", "settings", "message"),
    [
        (np.ones((2, 3)), {}, r"shape \(2, 3\)"),
        (np.full((2, 4), 1.5), {}, "from 0 to 1"),
        (np.full((2, 4), np.nan), {}, "from 0 to 1"),
        (np.ones((2, 4)), {"level": 0}, "level is 0"),
        (np.ones((2, 4)), {"bins": 0}, "bins is 0"),
    ],
)
def test_refuses_what_makes_no_sense(sure, settings, message):
    with pytest.raises(rk.RekindleError, match=message):
        assess_confidence(TRUTH, sure, TRUTH, **settings)


def test_refuses_no_steps():
    empty = TRUTH.part(slice(0, 0))
    with pytest.raises(rk.InvalidData, match="no step"):
        assess_confidence(empty, np.empty((2, 0)), empty)
