"""The pieces of the solvers one by one: where a wrong piece would only cost time, or break a tie in another way.

They are looked at as plain Python, and some sizes are lowered so that small problems take the ways of large ones, which a
compiled kernel would not notice: ``NUMBA_DISABLE_JIT=1``, as `tests.proof.coverage` runs them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.reference import plain

from rekindle.assignment import step_kernel
from rekindle.assignment.sparse import Candidates, relative_gap
from rekindle.assignment.step_kernel import EXTRAPOLATE, POPULAR
from rekindle.assignment.steps import recover_day
from rekindle.assignment.transport import transport
from rekindle.attacks import linking
from rekindle.attacks.linking import _Gains, _Profiles, gain_matrix, link_by_gain

Floats = Any

pytestmark = pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="looks into kernels: set NUMBA_DISABLE_JIT=1")


def check_list(found: Candidates, costs: Floats, prices: Floats, slack: float = 0.0) -> None:
    """A scan lists true costs, and no column that it left out is better than its bound."""
    assert found.columns.shape == found.costs.shape
    for row, (columns, listed, bound) in enumerate(zip(found.columns, found.costs, found.bound, strict=True)):
        kept = columns[columns >= 0]
        assert len(set(kept.tolist())) == len(kept)
        assert listed[columns >= 0] == pytest.approx(costs[row, kept], abs=1e-9)
        assert np.isinf(listed[columns < 0]).all()
        left = np.setdiff1d(np.arange(len(prices)), kept)
        values = costs[row] + prices
        assert bound >= values[kept].min(initial=np.inf) - slack - 1e-9
        if len(left):
            assert bound <= values[left].min() + slack + 1e-9


@pytest.mark.parametrize("listed", [2, 5, 64])
@pytest.mark.parametrize("past_days", [1, 3])
def test_a_scan_of_gains_lists_the_best(monkeypatch: pytest.MonkeyPatch, listed: int, past_days: int) -> None:
    monkeypatch.setattr(linking, "LISTED", listed)
    rng = np.random.default_rng(listed)
    people, places = 40, 15
    days = [rng.integers(0, places, (people, 4 + number)) for number in range(past_days + 1)]
    now, past = _Profiles.of(days[0], places), [_Profiles.of(day, places) for day in days[1:]]
    costs = np.min([gain_matrix(day, days[0], places) for day in days[1:]], axis=0)
    rows = np.array([3, 0, 17, 39])
    for prices in (np.zeros(people), rng.random(people), rng.integers(0, 3, people) / 4.0):
        found = _Gains(past, now).scan(rows, prices, 0.0)
        assert found.columns.shape == (4, listed)
        check_list(found, costs[rows], prices, slack=1e-12 if listed < people else 0.0)
    between = _Gains(past, now).between(rows, np.array([5, 1]))
    assert between == pytest.approx(costs[np.ix_(rows, [5, 1])], abs=1e-12)


def test_profiles_count_steps() -> None:
    found = _Profiles.of(np.array([[2, 0, 2], [1, 1, 1]]), 4)
    assert found.begin.tolist() == [0, 2, 3]
    assert found.place.tolist() == [0, 2, 1]
    assert found.count.tolist() == [1, 2, 3]
    begin, person, steps = found.by_place
    assert begin.tolist() == [0, 1, 2, 3, 3]
    assert person.tolist() == [0, 1, 0]
    assert steps.tolist() == [1, 3, 2]


def test_short_lists_of_gains_find_the_same_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "LISTED", 3)
    rng = np.random.default_rng(2)
    homes = rng.integers(0, 12, (40, 1))
    past, today = (np.where(rng.random((40, 6)) < 0.3, rng.integers(0, 12, (40, 6)), homes) for _ in range(2))
    exact = link_by_gain([past], today, 12)
    found = link_by_gain([past], today, 12, gap=1e-6)
    assert found.cost == pytest.approx(exact.cost, rel=1e-5)
    assert 0 <= found.gap <= 1e-6


def test_gap_of_a_cost() -> None:
    assert relative_gap(10.0, 9.0) == pytest.approx(0.1)
    assert relative_gap(10.0, 11.0) == 0
    assert relative_gap(0.0, -1.0) == 0


@pytest.fixture
def geometry() -> Any:
    """Six places on a lattice, four groups: two aim at a point alone, two at popular places too."""
    x, y = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0]), np.array([0.0, 0.0, 0.0, 3.0, 3.0, 3.0])
    indptr, indices = np.array([0, 2, 2, 3, 3, 3, 3]), np.array([5, 1, 4])
    shown = np.array([4, 0, 2])
    group = np.array([0.2, 1.7, -1.0, 2.0]), np.array([0.1, 2.0, 0.5, 2.5]), np.array([-1, 0, 2, -1], np.int32)
    return (x[shown], y[shown], *group, indptr, indices, x, y, np.array([-1]), 0.0)


def test_a_cost_is_the_distance_to_the_nearest_target(geometry: Any) -> None:
    place_x, place_y, group_x, group_y, group_at, indptr, indices, x, y = geometry[:9]
    rows = np.empty((3, 3))
    step_kernel.distances(1, 4, 3, geometry, rows)
    for group in range(4):
        at = group_at[group]
        near = indices[indptr[at] : indptr[at + 1]] if at >= 0 else []
        targets = [(group_x[group], group_y[group]), *((x[place], y[place]) for place in near)]
        for place in range(3):
            expected = min(np.hypot(place_x[place] - tx, place_y[place] - ty) for tx, ty in targets)
            assert step_kernel.pair_cost(group, place, geometry) == pytest.approx(expected, abs=1e-12)
            if group:
                assert rows[group - 1, place] == pytest.approx(expected, abs=1e-12)


def test_to_leave_and_to_return_cost_the_same_from_anywhere(geometry: Any) -> None:
    place_x, place_y, group_x, group_y, _, *rest = geometry[:9]
    group_at = np.array([-1, step_kernel.IS_AWAY, 2, -1], np.int32)
    away = (place_x, place_y, group_x, group_y, group_at, *rest, np.array([2]), 7.5)
    rows = np.empty((4, 3))
    step_kernel.distances(0, 4, 3, away, rows)
    assert rows[1].tolist() == [7.5, 7.5, 0.0]
    assert rows[[0, 2, 3], 2].tolist() == [7.5, 7.5, 7.5]
    for group, place in np.ndindex(4, 3):
        assert step_kernel.pair_cost(group, place, away) == pytest.approx(rows[group, place], abs=1e-12)
    for group, place in ((0, 0), (2, 1), (3, 0)):
        plain = (place_x, place_y, group_x, group_y, group_at, *rest, np.array([-1]), 7.5)
        assert rows[group, place] == pytest.approx(step_kernel.pair_cost(group, place, plain))


def test_the_cheapest_place_is_the_first_of_several(geometry: Any) -> None:
    table = np.array([[3.0, 1.0, 2.0], [2.0, 5.0, 2.0]])
    prices, row, none = np.array([0.0, -1.0, 0.5]), np.empty((1, 3)), np.empty((0, 0))
    for group, expected in ((0, (2, 1.5)), (1, (2, 1.5))):
        assert step_kernel.cheapest_in_table(group, 3, prices, table) == expected
        assert step_kernel.cheapest(group, 3, prices, row, table, geometry) == expected
        assert row[0].tolist() == (table[group] - prices).tolist()
    tied = np.array([[2.0, 1.0, 1.0]])
    assert step_kernel.cheapest_in_table(0, 3, np.zeros(3), tied) == (1, 1.0)
    assert step_kernel.cheapest(0, 3, np.zeros(3), row, tied, geometry) == (1, 1.0)
    place, least = step_kernel.cheapest(2, 3, prices, row, none, geometry)
    costs = np.array([step_kernel.pair_cost(2, place, geometry) for place in range(3)])
    assert row[0] == pytest.approx(costs - prices)
    assert (place, least) == (int((costs - prices).argmin()), pytest.approx((costs - prices).min()))


@pytest.mark.parametrize("seed", range(6))
def test_a_short_list_has_the_least_values_and_their_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places, most = 20, 4
    row = rng.integers(0, 9, (1, places)) * 1.0
    prices = rng.random(places)
    best, choice, cost = np.empty(most), np.empty(most, np.int32), np.empty(most)
    step_kernel.shortlist(places, prices, row, best, choice, cost)
    assert best.tolist() == np.sort(row[0])[:most].tolist()
    assert choice.tolist() == np.argsort(row[0], kind="stable")[:most].tolist()
    assert cost == pytest.approx(best + prices[choice])


def test_chains_of_children() -> None:
    tree = np.full((7, 6), -1, np.int32)
    tree[step_kernel.PARENT, :4] = 5
    tree[step_kernel.LINKED] = 0

    def children() -> list[int]:
        found, child = [], tree[step_kernel.CHILD, 5]
        while child >= 0:
            found.append(int(child))
            child = tree[step_kernel.AFTER, child]
        return found

    for node in (2, 1, 3, 0):
        step_kernel.link(node, tree)
    assert children() == [0, 3, 1, 2]
    assert tree[step_kernel.BEFORE, :4].tolist() == [-1, 3, 1, 0]
    for node, left in ((3, [0, 1, 2]), (0, [1, 2]), (2, [1]), (1, [])):
        step_kernel.unlink(node, tree)
        assert children() == left
        assert not tree[step_kernel.LINKED, node]
        assert tree[step_kernel.LINKED].sum() == len(left)
        if left:
            assert tree[step_kernel.BEFORE, left].tolist() == [-1, *left[:-1]]


@pytest.mark.parametrize("seed", range(4))
def test_large_problems_work_with_short_lists(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(step_kernel, "WIDE_CELLS", 100)
    monkeypatch.setattr(step_kernel, "NARROW_BLOCK", 3)
    rng = np.random.default_rng(seed)
    cost = rng.random((30, 24)) if seed % 2 else rng.integers(0, 4, (30, 24)) * 1.0
    supply = rng.integers(1, 4, 30)
    demand = np.bincount(rng.integers(0, 24, supply.sum()), minlength=24)
    found = transport(cost, supply, demand)
    matrix = np.repeat(np.repeat(cost, supply, axis=0), demand, axis=1)
    assert found.cost == pytest.approx(matrix[linear_sum_assignment(matrix)].sum(), abs=1e-9)
    assert 0 <= found.gap < 1e-9


def lattice(side: int, spacing: float, offset: float) -> Any:
    return np.stack(np.divmod(np.arange(side * side), side), axis=1) * spacing + offset


def two_at_one_place(xy: Any, path: list[int], aim: int, spare: int, kind: int, popular: Any = None) -> list[int]:
    """Two people want one place that has room for one: where they go, of whom the first came by a path."""
    walk = np.array([path, [aim] * len(path)]).T
    counts = np.stack([np.bincount(row, minlength=len(xy)) for row in [*walk, np.array([spare, aim])]])
    kinds = np.full(len(path), kind, np.uint8)
    kinds[:-1] = 0
    day = recover_day(counts, walk[0].astype(np.int32), xy, kinds, popular)
    assert day.cells[:, : len(path)].tolist() == walk.T.tolist()
    return [int(cell) for cell in day.cells[:, -1]]


@pytest.mark.parametrize(("spacing", "offset"), [(1.0, 0.0), (0.1, 0.3), (2.5, -7.0), (1000.0, 40.0)])
def test_whoever_goes_on_to_a_place_is_one_group_with_who_stays_there(spacing: float, offset: float) -> None:
    """One group is dealt its places by index; two groups would be served by distance, the first member first."""
    side = 5
    xy = lattice(side, spacing, offset)
    for aim in range(side * side):
        row, column = divmod(aim, side)
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1)):
            before, begin = (row - down, column - right), (row - 2 * down, column - 2 * right)
            if not all(0 <= at < side for at in (*before, *begin)):
                continue
            path = [begin[0] * side + begin[1], before[0] * side + before[1]]
            for spare in {0, side * side - 1} - {aim, *path}:
                found = two_at_one_place(xy, path, aim, spare, EXTRAPOLATE)
                assert found == sorted([aim, spare])


def test_whose_only_popular_place_is_where_he_goes_is_of_that_group() -> None:
    xy = lattice(4, 1.0, 0.0)
    followers = {5: [6], 4: [], 6: []}
    rows = [followers.get(place, [place]) for place in range(16)]
    popular = np.concatenate([[0], np.cumsum([len(row) for row in rows])]), np.concatenate(rows).astype(np.int64)
    assert two_at_one_place(xy, [4, 5], 6, 15, EXTRAPOLATE | POPULAR, popular) == [6, 15]
    # With another popular place he is a group of his own, and who only wants to stay does.
    rows[5] = [6, 9]
    popular = np.concatenate([[0], np.cumsum([len(row) for row in rows])]), np.concatenate(rows).astype(np.int64)
    assert two_at_one_place(xy, [4, 5], 6, 15, EXTRAPOLATE | POPULAR, popular) == [15, 6]


def test_sets_of_targets_are_compared_as_sets() -> None:
    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4)
    indptr, indices = np.array([0, 2, 3, 5, 5]), np.array([1, 2, 2, 1, 2])

    def same(at: int, qx: float, other: int, other_x: float, other_y: float = 0.0) -> bool:
        return step_kernel.same_targets(at, qx, 0.0, other, other_x, other_y, indptr, indices, x, y)

    assert same(-1, 1.0, -1, 1.0)
    assert not same(-1, 1.0, -1, 1.5)
    assert not same(-1, 1.0, -1, 1.0, 0.5)
    assert same(0, 3.0, 0, 3.0)
    assert same(0, 3.0, 2, 3.0)  # the same popular places by another name
    assert same(0, 1.0, 0, 2.0)  # both points are popular places themselves
    assert not same(0, 1.0, 0, 3.0)
    assert same(1, 1.0, 0, 2.0)  # {2} and 1, {1, 2} and 2
    assert same(0, 2.0, 1, 1.0)
    assert not same(1, 3.0, 0, 3.0)
    assert not same(0, 3.0, 1, 3.0)
    assert same(3, 2.0, 1, 2.0)  # no popular place, or only the point itself
    assert not same(-1, 2.0, 0, 2.0)


def test_places_are_found_by_their_point() -> None:
    x, y = np.array([0.0, 1.0, 1.0, 3.0, 0.0]), np.array([0.0, 1.0, 1.0, 3.0, 3.0])
    # Two by two cells, each 2 km wide: places 0, 1, 2 in the first, 4 in the second, 3 in the last.
    starts, places = np.array([0, 3, 4, 4, 5]), np.array([0, 1, 2, 4, 3])
    box = (0.0, 0.0, 2.0, 2.0, 2.0)

    def find(qx: float, qy: float) -> int:
        return step_kernel.find_place(qx, qy, x, y, box, starts, places)

    assert [find(a, b) for a, b in zip(x, y, strict=True)] == [0, 1, 1, 3, 4]
    assert find(1.0 + 1e-12, 1.0 - 1e-12) == 1
    assert find(-1e-12, 3.0 + 1e-12) == 4
    for qx, qy in ((1.0, 1.1), (1.1, 1.0), (0.5, 0.5), (-1.0, 0.0), (0.0, -9.0), (5.0, 3.0), (3.0, 5.0), (2.0, 2.0)):
        assert find(qx, qy) == -1


def test_a_step_deals_places_in_order_without_the_compiler() -> None:
    groups = np.array([1, 0, 1, 1, 0])
    flow = np.array([[0, 1, 1], [2, 0, 1]])
    assert plain.deal(groups, flow).tolist() == [0, 1, 0, 2, 2]
    first, numbered = plain.first_seen(np.array([7, 3, 7, 9, 3]))
    assert first.tolist() == [0, 1, 3]
    assert numbered.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.parametrize("followers", [[], [2], [3], [2, 3]])
def test_targets_make_groups(followers: list[int]) -> None:
    """On a line: the first goes on from 1 to 2, where the second stays; there is room for one, and one at 4."""
    xy = np.stack([np.arange(5.0), np.zeros(5)], axis=1)
    rows = [[0], followers, [2], [], []]
    popular = (
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        np.array([place for row in rows for place in row], np.int64),
    )
    previous, current = np.array([0, 2], np.int32), np.array([1, 2], np.int32)
    counts = np.array([0, 0, 1, 0, 1])
    moved, cost = plain.step_to_targets(previous, current, counts, xy, popular)
    # One target: one group, dealt by index. Several: a group of its own, and who only wants to stay does.
    assert (moved.tolist(), cost) == (([2, 4], 2.0) if followers in ([], [2]) else ([4, 2], 1.0))
    alone, without = plain.step_to_targets(previous, current, counts, xy, None)
    assert (alone.tolist(), without) == ([2, 4], 2.0)
    stayed, near = plain.step_to_targets(None, current, counts, xy, None)
    assert (stayed.tolist(), near) == ([4, 2], 3.0)
