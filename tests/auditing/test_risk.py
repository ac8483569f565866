"""Intervals, and the verdict: by the upper limit, and by people."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import betabinom, binom

from rekindle.auditing.risk import (
    DESIGN_EFFECT,
    LEVELS,
    MOST_PEOPLE,
    Estimate,
    by_people,
    clearly_above_chance,
    estimate,
    estimate_advantage,
    estimate_exposed,
    judge,
)


def shares(smallest_people=1):
    return arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(smallest_people, 40)),
        elements=st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
    )


@given(shares())
def test_limits_hold_the_value_and_are_shares(table):
    found = estimate(table)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.value == pytest.approx(table.mean())


@given(shares())
def test_what_is_not_recovered_is_the_complement(table):
    found, other = estimate(table), estimate(1 - table)
    assert (found.low, found.high) == pytest.approx((1 - other.high, 1 - other.low))


@given(shares(), st.randoms(use_true_random=False))
def test_people_and_row_orders_have_no_order(table, random):
    orders, people = list(range(len(table))), list(range(table.shape[1]))
    random.shuffle(orders)
    random.shuffle(people)
    again = estimate(table[orders][:, people])
    assert (again.low, again.high) == pytest.approx((estimate(table).low, estimate(table).high))


@given(shares(smallest_people=2), st.floats(0, 1))
def test_a_higher_score_moves_the_value_up(table, score):
    better = np.maximum(table, score)
    assert estimate(better).value >= estimate(table).value - 1e-12


@given(shares())
def test_more_people_alike_give_a_narrower_interval(table):
    few, many = estimate(table), estimate(np.tile(table, 4))
    assert many.value == pytest.approx(few.value)
    assert many.high - many.low <= few.high - few.low + 1e-12


def test_people_who_all_score_the_same_are_no_proof_for_others():
    for score in (0.0, 0.25, 1.0):
        few, many = estimate(np.full((3, 20), score)), estimate(np.full((3, 2000), score))
        assert few.value == score
        assert 0.1 < few.high - few.low < 0.5
        assert many.high - many.low < 0.1


@pytest.mark.parametrize("people", [2, 5, 30, 300])
def test_more_people_exposed_move_both_limits_up(people):
    found = [estimate(np.array([[1.0] * number + [0.0] * (people - number)])) for number in range(people + 1)]
    for limit in ("low", "high"):
        assert (np.diff([getattr(one, limit) for one in found]) >= -1e-12).all()
    assert found[0].low == 0
    assert found[-1].high == 1


@pytest.mark.parametrize("people", [5, 30, 61, 300])
@pytest.mark.parametrize("design_effect", [1, 1.5])
def test_covers_rare_people_too(people, design_effect):
    """Whatever the true share of exposed people, independent or clustered in releases: exact, from the distribution."""
    number = np.arange(people + 1)
    found = [estimate(np.repeat([[1.0, 0.0]], [one, people - one], axis=1)) for one in number]
    low, high = np.array([(one.low, one.high) for one in found]).T
    for share in (0.003, 0.01, 0.016, 0.03, 0.1, 0.2, 0.35, 0.5, 0.9, 0.97):
        if design_effect == 1:
            chance = binom.pmf(number, people, share)
        else:
            alike = (people - 1) / (design_effect - 1) - 1
            chance = betabinom.pmf(number, people, share * alike, (1 - share) * alike)
        assert chance[(low <= share) & (share <= high)].sum() >= 0.93


def test_one_person_says_nothing_about_others():
    assert estimate(np.array([[0.7], [0.7]])) == Estimate(0.7, 0, 1)
    alone = estimate_advantage(np.array([[0.7]]), np.array([[0.5]]))
    assert (alone.value, alone.low, alone.high) == pytest.approx((0.4, -1, 1))


def test_covers_the_mean_of_people_who_move_together():
    """Each release shifts all of its people: their mean varies twice as much as that of independent people."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        shift = rng.normal(0, 0.2 / np.sqrt(50))
        found = estimate(np.clip(rng.normal(0.4 + shift, 0.2, (1, 50)), 0, 1))
        hits += found.low <= 0.4 <= found.high
    assert hits / 400 >= 0.93


def test_row_orders_widen_the_interval():
    rng = np.random.default_rng(0)
    people = rng.random(500)
    steady = estimate(np.tile(people, (5, 1)))
    shifted = estimate(people + np.array([-0.2, -0.1, 0, 0.1, 0.2])[:, None])
    assert shifted.high - shifted.low > 2 * (steady.high - steady.low)


def test_people_who_were_not_measured_are_left_out():
    table = np.array([[0.5, np.nan, 0.7]])
    assert estimate(table).value == pytest.approx(0.6)
    sampled = np.array([[0.5, np.nan, 0.7], [0.3, np.nan, np.nan]])
    assert estimate(sampled).value == pytest.approx((0.4 + 0.7) / 2)
    assert estimate_advantage(sampled, np.zeros((1, 3))).value == pytest.approx((0.4 + 0.7) / 2)
    assert np.isnan(estimate(np.full((2, 2), np.nan)).value)


def test_many_people_as_few():
    rng = np.random.default_rng(0)
    many = rng.random((1, 6000))
    found = estimate(many)
    variance = DESIGN_EFFECT * many.var() / 6000 + many.mean() * (1 - many.mean()) / MOST_PEOPLE
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.01)


@given(shares(), st.data())
def test_limits_of_the_advantage(attack, data):
    chance = data.draw(arrays(np.float64, attack.shape, elements=st.floats(0, 1)))
    found = estimate_advantage(attack, chance)
    assert found.low <= found.value <= found.high <= 1 + 1e-12
    if chance.mean() < 0.999:
        assert found.value == pytest.approx((attack.mean() - chance.mean()) / (1 - chance.mean()), abs=1e-9)


def test_advantage_without_chance_is_the_share():
    table = np.random.default_rng(0).random((3, 20))
    found, share = estimate_advantage(table, np.zeros((2, 20))), estimate(table)
    assert (found.low, found.high) == pytest.approx((share.low, share.high))


def test_exposed_means_clearly_more_than_chance():
    chance = np.array([[0.1, 0.1, 0.45, 0.95, 0.1], [0.2, 0.1, 0.35, 0.95, np.nan]])
    attack = np.array([[0.6, 0.5, 0.48, 1.00, 0.9], [0.4, 0.96, 0.56, 1.00, np.nan]])
    np.testing.assert_array_equal(clearly_above_chance(attack, chance, 1000), [True, True, True, False, True])
    assert estimate_exposed(attack, chance, 1000).value == pytest.approx(3 / 5)
    assert estimate_exposed(attack, chance, 1000, 0.7).value == pytest.approx(2 / 5)
    few_steps = np.array([1000, 1000, 20, 1000, 1000])
    assert estimate_exposed(attack, chance, few_steps).value == pytest.approx(2 / 5)
    found = estimate_exposed(attack, chance, 1000)
    assert found.low < found.value < found.high


def test_nobody_measured():
    nobody = np.full((2, 3), np.nan)
    for found in (estimate(nobody), estimate_advantage(nobody, nobody), estimate_exposed(nobody, nobody, 9)):
        assert np.isnan([found.value, found.low, found.high]).all()
    assert not clearly_above_chance(nobody, nobody, 9).any()


def test_one_person_alone_in_a_crowd_is_seen():
    """60 people at chance and one who is recovered wholly: the share of people cannot be told to be 0 or large."""
    chance = np.full((3, 61), 0.1)
    attack = chance.copy()
    attack[:, -1] = 1
    found = estimate_exposed(attack, chance, 144, 0.9)
    assert found.value == pytest.approx(1 / 61)
    assert 0.03 < found.high < 0.2
    assert estimate_exposed(chance, chance, 144).value == 0


def test_advantage():
    chance = np.full((2, 30), 0.2)
    assert estimate_advantage(np.full((3, 30), 1.0), chance).value == 1
    assert estimate_advantage(chance, chance).value == 0
    assert estimate_advantage(np.full((3, 30), 0.6), chance).value == pytest.approx(0.5)
    assert estimate_advantage(np.full((3, 30), 0.1), chance).value == pytest.approx(-0.125)
    perfect = np.ones((2, 30))
    assert estimate_advantage(perfect, perfect) == Estimate(0, 0, 0)


def test_people_who_are_counted_more_often_weigh_more():
    rng = np.random.default_rng(1)
    table, chance = rng.random((3, 40)), 0.1 * rng.random((2, 40))
    points = rng.integers(1, 300, 40)
    found, mean = estimate(table, points), table.mean(axis=0)
    assert found.value == pytest.approx((mean * points).sum() / points.sum())
    assert found.low < found.value < found.high
    guess = (chance.mean(axis=0) * points).sum() / points.sum()
    assert estimate_advantage(table, chance, points).value == pytest.approx((found.value - guess) / (1 - guess))
    # The same number for everyone changes nothing, to the last bit; a person who is all that counts says little.
    assert estimate(table, np.full(40, 7)) == estimate(table)
    assert estimate_advantage(table, chance, np.full(40, 7)) == estimate_advantage(table, chance)
    one = np.where(np.arange(40) == 0, 100_000, 1)
    assert estimate(table, one).high - estimate(table, one).low > 2 * (estimate(table).high - estimate(table).low)
    # Who was not measured has no weight.
    table[:, 5] = np.nan
    known = np.delete(np.arange(40), 5)
    assert estimate(table, points) == estimate(table[:, known], points[known])


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
