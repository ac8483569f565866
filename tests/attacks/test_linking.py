from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from tests.reference.oracle import link_cost

from rekindle.attacks import linking
from rekindle.attacks.linking import InformationGain, Link, _Gains, _Profiles, gain_matrix, link, link_by_gain
from rekindle.errors import InvalidData, Stopped
from rekindle.model import AWAY

Days = list[NDArray[np.int32]]


def entropy(cells: NDArray[np.int32]) -> float:
    share = np.unique(cells, return_counts=True)[1] / len(cells)
    return float(-(share * np.log2(share)).sum())


def gain(before: NDArray[np.int32], now: NDArray[np.int32]) -> float:
    """The paper's definition, word for word."""
    both = np.concatenate([before, now])
    apart = (len(before) * entropy(before) + len(now) * entropy(now)) / len(both)
    return entropy(both) - apart


def plain_costs(past: Days, today: NDArray[np.int32]) -> NDArray[np.float64]:
    return np.array([[min(gain(day[u], now) for day in past) for now in today] for u in range(len(today))])


@st.composite
def days(draw: st.DrawFn) -> tuple[Days, NDArray[np.int32], int]:
    people, locations = draw(st.integers(1, 14)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    homes = rng.integers(0, locations, (people, 1))

    def day(steps: int) -> NDArray[np.int32]:
        away = rng.random((people, steps)) < 0.3
        return np.where(away, rng.integers(0, locations, (people, steps)), homes).astype(np.int32)

    lengths = draw(st.lists(st.integers(1, 8), min_size=2, max_size=4))
    return [day(steps) for steps in lengths[1:]], day(lengths[0])[rng.permutation(people)], locations


def check(link: Link, costs: NDArray[np.float64]) -> None:
    best = costs[linear_sum_assignment(costs)].sum()
    np.testing.assert_array_equal(np.sort(link.order), np.arange(len(costs)))
    assert link.cost == pytest.approx(costs[np.arange(len(costs)), link.order].sum(), abs=1e-9)
    assert best - 1e-9 <= link.cost
    assert link.cost * (1 - link.gap) <= best + 1e-9


@settings(deadline=None, max_examples=60)
@given(days())
def test_gain_is_the_papers(case: tuple[Days, NDArray[np.int32], int]) -> None:
    past, today, locations = case
    for day in past:
        np.testing.assert_allclose(gain_matrix(day, today, locations), plain_costs([day], today), atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(days())
def test_few_people_are_linked_exactly(case: tuple[Days, NDArray[np.int32], int]) -> None:
    past, today, locations = case
    found, costs = link(InformationGain(), past, today, locations), plain_costs(past, today)
    check(found, costs)
    assert found.gap == 0
    assert found.cost == pytest.approx(costs[linear_sum_assignment(costs)].sum(), abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(days(), st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_many_people_are_linked_within_the_gap(case: tuple[Days, NDArray[np.int32], int], gap: float) -> None:
    past, today, locations = case
    found = link_by_gain(past, today, locations, gap=gap)
    check(found, plain_costs(past, today))
    # The finest auction steps are 1e-7 a person: where days are nearly alike, that is more than the gap asked for.
    assert found.gap <= gap or found.gap * found.cost <= 1e-7 * len(today)


@pytest.mark.parametrize("past_days", [1, 3])
def test_hundreds_of_people_are_linked_the_same_way_with_and_without_a_matrix(past_days: int) -> None:
    rng = np.random.default_rng(8)
    homes, works = rng.integers(0, 60, (2, 300, 1))
    week = [
        np.where(
            rng.random((300, 12)) < 0.15, rng.integers(0, 60, (300, 12)), np.where(np.arange(12) < 7, homes, works)
        )
        for _ in range(past_days + 1)
    ]
    past, today = week[:-1], week[-1][rng.permutation(300)]
    exact = link(InformationGain(), past, today, 60)
    sparse = link_by_gain(past, today, 60, gap=1e-5)
    assert sparse.gap <= 1e-5
    assert exact.cost == pytest.approx(sparse.cost, rel=1e-5)
    again = link_by_gain(past, today, 60, gap=1e-5)
    np.testing.assert_array_equal(sparse.order, again.order)


def test_people_who_share_no_place_with_anyone_are_still_linked() -> None:
    past = np.arange(200, dtype=np.int32)[:, None].repeat(4, axis=1)
    found = link_by_gain([past], past + 200, 400)
    np.testing.assert_array_equal(np.sort(found.order), np.arange(200))
    assert found.cost == pytest.approx(200)
    assert found.gap <= 1e-3


def test_people_who_are_alike_keep_their_order() -> None:
    past = np.array([[0, 0], [1, 1], [0, 0], [1, 1]], np.int32)
    today = np.array([[1, 1], [1, 1], [0, 0], [0, 0]], np.int32)
    found = link_by_gain([past], today, 2)
    np.testing.assert_array_equal(found.order, [2, 0, 3, 1])
    assert found.cost == 0
    assert found.gap == 0


def test_work_ends_when_asked_to_stop() -> None:
    past, today = np.random.default_rng(1).integers(0, 30, (2, 100, 6)).astype(np.int32)
    with pytest.raises(Stopped):
        link_by_gain([past], today, 30, stop=lambda: True)


def test_information_gain_by_hand():
    past, today = np.array([[0, 0, 1, 1], [2, 2, 2, 2]], np.int32), np.array([[0, 1], [2, 3]], np.int32)
    found = InformationGain()(past, today, 4)
    # Alike in shares: 0 bits. Nothing shared: the entropy of four steps of one day and two of the other.
    apart = -(4 / 6) * np.log2(4 / 6) - (2 / 6) * np.log2(2 / 6)
    both = -(5 / 6) * np.log2(5 / 6) - (1 / 6) * np.log2(1 / 6) - 2 / 6 * 1.0
    assert found == pytest.approx(np.array([[0.0, apart], [apart, both]]), abs=1e-12)
    linked = link(InformationGain(), [past], today, 4)
    assert linked.order.tolist() == [0, 1]
    assert linked.cost == pytest.approx(both)


def test_a_link_takes_the_best_of_the_days_looked_back_on():
    alike, other = np.array([[0, 0], [1, 1]], np.int32), np.array([[2, 2], [3, 3]], np.int32)
    found = link(InformationGain(), [other, alike], alike[::-1].copy(), 4)
    assert found.order.tolist() == [1, 0]
    assert found.cost == 0
    with pytest.raises(InvalidData, match="linking cost gave a matrix"):
        link(lambda past, today, locations: np.zeros((1, 2)), [alike], alike, 4)
    with pytest.raises(InvalidData, match="without NaN"):
        link(lambda past, today, locations: np.full((2, 2), np.nan), [alike], alike, 4)


def some_away(cells: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """The same people, of whom some are away at times, and some throughout."""
    away = rng.random(cells.shape) < 0.4
    away[:: max(2, len(cells) // 2)] = True
    return np.where(away, np.int32(AWAY), cells)


@settings(deadline=None, max_examples=40)
@given(case=days(), seed=st.integers(0, 99), fewer=st.integers(0, 3), gap=st.sampled_from([0.0, 1e-3]))
def test_people_who_come_and_go_are_linked_by_what_was_seen_of_them(case, seed, fewer, gap) -> None:
    past, today, locations = case
    rng = np.random.default_rng(seed)
    past, today = [some_away(day, rng) for day in past], some_away(today, rng)[min(fewer, len(today) - 1) :]
    plain = np.array(
        [[min(link_cost(list(day[u]), list(now)) for day in past) for now in today] for u in range(len(past[0]))]
    )
    matrix = np.min([gain_matrix(day, today, locations) for day in past], axis=0)
    np.testing.assert_allclose(matrix, plain, atol=1e-12)
    exact = link(InformationGain(), past, today, locations)
    linked = np.flatnonzero(exact.order >= 0)
    assert sorted(exact.order[linked]) == list(range(len(today)))
    assert exact.cost == pytest.approx(plain[linked, exact.order[linked]].sum(), abs=1e-9)
    assert exact.cost == pytest.approx(plain[linear_sum_assignment(plain)].sum(), abs=1e-9)
    found = link_by_gain(past, today, locations, gap=gap)
    linked = np.flatnonzero(found.order >= 0)
    assert sorted(found.order[linked]) == list(range(len(today)))
    # Those who are linked with nobody cost as much as days that share no location, whoever they are.
    most = min(link_cost([0] * day.shape[1], [1] * today.shape[1]) for day in past)
    nobody = (len(past[0]) - len(today)) * most
    assert found.cost - nobody == pytest.approx(plain[linked, found.order[linked]].sum(), abs=1e-9)
    assert found.cost * (1 - found.gap) <= exact.cost + nobody + 1e-9


def plain_gains(past: Days, today: NDArray[np.int32]) -> NDArray[np.float64]:
    """All costs, of people who are away at times too."""
    return np.array(
        [[min(link_cost(list(day[u]), list(now)) for day in past) for now in today] for u in range(len(past[0]))]
    )


@settings(deadline=None, max_examples=120)
@given(
    case=days(),
    seed=st.integers(0, 99),
    away=st.booleans(),
    levels=st.sampled_from([0, 2, 100]),
    listed=st.sampled_from([1, 2, 5, 32]),
    block=st.sampled_from([1, 2, 3, 16]),
    slack=st.sampled_from([0.0, 0.1]),
)
def test_lists_have_the_best_and_nothing_else_is_below_their_bound(
    case: tuple[Days, NDArray[np.int32], int], seed, away, levels, listed, block, slack
) -> None:
    past, today, locations = case
    rng = np.random.default_rng(seed)
    if away:
        past, today = [some_away(day, rng) for day in past], some_away(today, rng)
    today = np.concatenate([today, today[: seed % 3]])
    plain, prices = plain_gains(past, today), rng.integers(0, levels + 1, len(today)) / max(levels, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linking, "BLOCK", block)
        patch.setattr(linking, "LISTED", listed)
        costs = _Gains([_Profiles.of(day, locations) for day in past], _Profiles.of(today, locations))
        rows = rng.permutation(len(plain))
        found = costs.scan(rows, prices, slack)
    for row, columns, its, bound in zip(rows, found.columns, found.costs, found.bound, strict=True):
        kept = columns[columns >= 0]
        assert len(set(kept)) == len(kept) <= listed
        np.testing.assert_allclose(its[columns >= 0], plain[row, kept], atol=1e-12)
        assert np.isinf(its[columns < 0]).all()
        values = plain[row] + prices
        assert bound >= values[kept].min(initial=np.inf) - slack - 1e-9
        assert bound <= np.delete(values, kept).min(initial=np.inf) + slack + 1e-9
        # None but the cheapest, of which any will do, could be left out for a worse one.
        assert (
            values[kept].max(initial=0.0)
            <= max(bound, 1.0 + np.sort(prices)[: linking.CHEAPEST].max()) + slack + 1e-9
        )
    np.testing.assert_allclose(costs.between(rows, np.arange(len(today))), plain[rows], atol=1e-12)
