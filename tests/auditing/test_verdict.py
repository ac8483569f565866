"""The verdict: by the upper limit, and by people."""

import pytest

from rekindle.auditing.risk import Estimate
from rekindle.auditing.verdict import LEVELS, by_people, judge


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [
        (-0.05, 0.0199, "no better than guessing"),
        (-0.01, 0.02, "low"),
        (0.0, 0.0999, "low"),
        (0.02, 0.1, "moderate"),
        (0.019, 0.1, "cannot tell"),
        (-0.13, 0.85, "cannot tell"),
        (0.2, 0.3, "high"),
        (0.0999, 0.3, "cannot tell"),
        (0.3, 0.6, "very high"),
        (1.0, 1.0, "very high"),
    ],
)
def test_the_level_is_that_of_the_upper_limit(low, high, level):
    found = judge(Estimate((low + high) / 2, low, high))
    assert found.level == found.by_mean == level
    assert found.by_people is None
    assert "30%" in found.rule


@pytest.mark.parametrize(
    ("exposed", "people", "level"),
    [
        (0, 300, None),
        (1, 300, "moderate"),
        (2, 300, "moderate"),
        (3, 300, "high"),
        (29, 300, "high"),
        (30, 300, "very high"),
        (1, 5, "very high"),
    ],
)
def test_level_by_people(exposed, people, level):
    assert by_people(exposed, people) == level


def test_the_higher_level_holds():
    little = Estimate(0.02, 0.01, 0.04)
    assert judge(little, 0, 300).level == "low"
    assert judge(little, 8, 300).level == "high"
    much = Estimate(0.5, 0.4, 0.55)
    assert judge(much, 1, 300).level == "high"
    assert judge(much, 100, 300).level == "very high"


def test_people_decide_where_the_mean_cannot_tell_only_if_they_reach_its_upper_limit():
    wide = Estimate(0.25, -0.13, 0.85)
    assert judge(wide, 1, 5).level == "very high"
    assert judge(wide, 1, 300).level == "cannot tell"
    assert judge(wide, 1, 300).by_people == "moderate"


def test_no_verdict_without_the_truth():
    found = judge(None)
    assert found.level == "unknown"
    assert found.level not in dict(LEVELS).values()
