"""Accuracy by confidence and claims, on cases computed by hand."""

import numpy as np
import pytest
from tests.small import line

import rekindle as rk
from rekindle.evaluation import assess_confidence, map_people, precision_curve

LOCATIONS = rk.Locations([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0], [9.0, 0.0]])


def people(*rows):
    return rk.Trajectories(np.array(rows), LOCATIONS, rk.Calendar("2024-03-01", "6h", len(rows[0])))


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
        (np.ones((2, 4)), {"level": 0}, "`level` is 0"),
        (np.ones((2, 4)), {"bins": 0}, "`bins` is 0"),
    ],
)
def test_refuses_what_makes_no_sense(sure, settings, message):
    with pytest.raises(rk.errors.RekindleError, match=message):
        assess_confidence(TRUTH, sure, TRUTH, **settings)


def test_refuses_no_steps():
    empty = TRUTH.part(slice(0, 0))
    with pytest.raises(rk.errors.InvalidData, match="no step"):
        assess_confidence(empty, np.empty((2, 0)), empty)


def test_one_bin_of_confidence():
    truth = line([0, 1], [3, 3])
    found = assess_confidence(truth, np.full((2, 2), 0.75), truth, bins=1, level=0.75)
    assert (found.share.tolist(), found.accuracy.tolist(), found.confidence.tolist()) == ([1.0], [1.0], [0.75])
    assert found.calibration_error == pytest.approx(0.25)
    assert (found.claims.points, found.claims.points_right, found.claims.people) == (1.0, 1.0, 1.0)


def test_people_claimed_almost_wholly():
    truth = line([0] * 20, [1] * 20, [2] * 20)
    sure = np.full((3, 20), 0.95)
    sure[0, 0] = 0.1  # 95% of the points are claimed
    sure[1, :2] = 0.1  # 90%, which is not more than 90%
    sure[2] = 0.89
    claims = assess_confidence(truth, sure, truth).claims
    assert claims.people == pytest.approx(1 / 3)
    assert claims.people_right == 1


def test_claims_are_of_points_at_which_people_are_counted():
    truth = line([0, 0, -1, -1], [-1, 3, 3, 3])
    found = line([0, 1, 1, -1], [-1, -1, 3, 3], [-1, -1, -1, -1])
    # Where a recovered person is away, it does not matter what the attack says.
    sure = [[0.9, 0.3, 0.9, np.nan], [1.0, 1.0, 0.9, 0.95], [1.0] * 4]
    result = assess_confidence(found, sure, truth, bins=2)
    # Five points; where the true person is away, nothing is right.
    assert result.share.tolist() == [0.2, 0.8]
    assert result.accuracy.tolist() == [0, 0.75]
    claims = result.claims
    assert (claims.points, claims.points_right) == (0.8, 0.75)
    assert (claims.people, claims.people_right) == (0.5, 1)  # of the two who are counted
    assert precision_curve(found, sure, truth, points=5).precision[-1] == 3 / 5
    with pytest.raises(rk.errors.InvalidData, match="No recovered person is counted"):
        assess_confidence(line([-1, -1]), np.ones((1, 2)), line([0, 0]))


def test_precision_falls_with_the_share_that_is_claimed():
    truth = line([0, 0, 0, 0], [1, 1, 1, 1])
    found = line([0, 0, 0, 2], [1, 1, 2, 2])
    sure = [[0.9, 0.8, 0.7, 0.1], [0.6, 0.6, 0.6, 0.2]]
    curve = precision_curve(found, sure, truth, points=8)
    assert curve.claimed.tolist() == [at / 8 for at in range(1, 9)]
    # Three are surely right; of the next three, which are alike, two; the last two are wrong.
    right = [1, 2, 3, 3 + 2 / 3, 3 + 4 / 3, 5, 5, 5]
    assert curve.precision == pytest.approx([one / at for at, one in enumerate(right, 1)])
    assert curve.most_at(0.9) == 4 / 8
    assert curve.most_at(1.0) == 3 / 8
    wrong = precision_curve(found, 1 - np.array(sure), truth, points=8)
    assert (wrong.precision[0], wrong.most_at(0.9)) == (0, 0)
    # All points: the accuracy, whatever the confidence.
    assert curve.precision[-1] == wrong.precision[-1] == rk.evaluate(found, truth).accuracy
    whole = assess_confidence(found, sure, truth)
    assert len(whole.curve.claimed) == 20
    assert whole.to_json()["curve"] == whole.curve.to_json()


def test_a_mapping_is_handed_on(monkeypatch):
    truth = line([0, 0], [1, 1])
    known = map_people(truth, truth)
    monkeypatch.setattr("rekindle.evaluation.mapping.map_people", None)
    sure = np.full((2, 2), 0.5)
    assert assess_confidence(truth, sure, truth, mapping=known).accuracy[5] == 1
    assert precision_curve(truth, sure, truth, mapping=known).precision[0] == 1
