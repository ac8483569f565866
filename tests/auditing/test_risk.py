"""Intervals and verdicts."""

import numpy as np
import pytest

from rekindle.auditing.risk import Estimate, estimate, estimate_share, judge


def test_no_spread_gives_no_interval():
    found = estimate(np.full((3, 20), 0.25))
    assert found.value == 0.25
    assert found.low == pytest.approx(0.25)
    assert found.high == pytest.approx(0.25)


def test_covers_the_mean_of_independent_people():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        found = estimate(rng.beta(2, 3, (1, 50)))
        hits += found.low <= 0.4 <= found.high
    assert hits / 200 == pytest.approx(0.94, abs=0.04)


def test_row_orders_widen_the_interval():
    rng = np.random.default_rng(0)
    people = rng.random(500)
    steady = estimate(np.tile(people, (5, 1)))
    shifted = estimate(people + np.array([-0.2, -0.1, 0, 0.1, 0.2])[:, None])
    assert shifted.high - shifted.low > 2 * (steady.high - steady.low)


def test_people_who_were_not_measured_are_left_out():
    table = np.array([[0.5, np.nan, 0.7]])
    assert estimate(table).value == pytest.approx(0.6)
    assert np.isnan(estimate(np.full((2, 2), np.nan)).value)


def test_many_people_as_few():
    rng = np.random.default_rng(0)
    many = rng.random((1, 6000))
    found = estimate(many)
    half_width = 1.96 * many.std() / np.sqrt(6000)
    assert found.high - found.low == pytest.approx(2 * half_width, rel=0.15)


def test_share_of_the_way():
    chance = np.full((2, 30), 0.2)
    assert estimate_share(np.full((3, 30), 1.0), chance).value == 1
    assert estimate_share(chance, chance).value == 0
    assert estimate_share(np.full((3, 30), 0.6), chance).value == pytest.approx(0.5)
    assert estimate_share(np.full((3, 30), 0.1), chance).value == pytest.approx(-0.125)
    perfect = np.ones((2, 30))
    assert estimate_share(perfect, perfect) == Estimate(0, 0, 0)


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [
        (-0.01, 0.9, "no better than guessing"),
        (0.0, 0.05, "no better than guessing"),
        (0.01, 0.0999, "low"),
        (0.01, 0.1, "moderate"),
        (0.2, 0.3, "high"),
        (0.5, 0.6, "very high"),
        (1.0, 1.0, "very high"),
    ],
)
def test_verdict(low, high, level):
    found = judge(Estimate((low + high) / 2, low, high))
    assert found.level == level
    assert "30%" in found.rule


def test_no_verdict_without_the_truth():
    assert judge(None).level == "unknown"


def test_shares_stay_shares():
    rare, common = np.zeros((1, 9)), np.ones((1, 9))
    rare[0, 0], common[0, 0] = 1, 0
    assert estimate(rare).low == 0
    assert estimate(common).high == 1
    assert judge(estimate_share(common, rare)).level == "very high"
