from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.assignment.sparse import (
    Candidates,
    SparseAssignment,
    _Auction,
    assign_by_paths,
    assign_sparse,
    cheapest,
    in_threads,
    reassign,
    shortlist,
)
from rekindle.errors import Stopped


@dataclass
class Matrix:
    """Costs from a matrix, listed as sparsely as asked."""

    costs: NDArray[np.float64]
    listed: int
    scans: int = 0
    rows: int = 0

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        self.scans += 1
        self.rows += len(rows)
        values = self.costs[rows] + prices
        order = np.argsort(values, axis=1, kind="stable")
        best = order[:, : self.listed]
        bound = np.full(len(rows), np.inf)
        if self.listed < len(prices):
            bound = np.take_along_axis(values, order[:, self.listed : self.listed + 1], axis=1)[:, 0]
        return Candidates(best.astype(np.int32), np.take_along_axis(self.costs[rows], best, axis=1), bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.costs[np.ix_(rows, columns)]

    def prove(self, prices: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.costs + prices).min(axis=1))


def optimum(costs: NDArray[np.float64], supply: NDArray[np.int64], capacity: NDArray[np.int64]) -> float:
    full = np.repeat(np.repeat(costs, supply, axis=0), capacity, axis=1)
    return float(full[linear_sum_assignment(full)].sum())


def check(
    found: SparseAssignment, costs: NDArray[np.float64], supply: NDArray[np.int64], capacity: NDArray[np.int64]
) -> None:
    best = optimum(costs, supply, capacity)
    rows = np.repeat(np.arange(len(supply)), supply)
    np.testing.assert_array_equal(np.bincount(found.columns, minlength=len(capacity)), capacity)
    assert found.cost == pytest.approx(costs[rows, found.columns].sum())
    assert found.bound <= best + 1e-9
    assert best <= found.cost + 1e-9


@st.composite
def problems(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    seed = draw(st.integers(0, 2**32 - 1))
    units, levels = draw(st.integers(1, 25)), draw(st.integers(1, 8))
    rng = np.random.default_rng(seed)
    supply = np.bincount(rng.integers(0, draw(st.integers(1, units)), units))
    capacity = np.bincount(rng.integers(0, draw(st.integers(1, units)), units))
    supply, capacity = supply[supply > 0], capacity[capacity > 0]
    return rng.integers(0, levels + 1, (len(supply), len(capacity))) / levels, supply, capacity


@settings(deadline=None, max_examples=150)
@given(problems(), st.integers(1, 6))
def test_whole_costs_are_solved_exactly(
    problem: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], listed: int
) -> None:
    costs, supply, capacity = problem
    found = assign_sparse(Matrix(costs, listed), supply, capacity, gap=0.0, scale=1.0, finest=1e-4)
    check(found, costs, supply, capacity)
    assert found.cost == pytest.approx(optimum(costs, supply, capacity))


@settings(deadline=None, max_examples=50)
@given(problems(), st.floats(0.001, 0.5))
def test_gap_is_proven_and_small_enough(
    problem: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], gap: float
) -> None:
    costs, supply, capacity = problem
    costs = costs + 0.1
    found = assign_sparse(Matrix(costs, 3), supply, capacity, gap=gap, scale=1.0)
    check(found, costs, supply, capacity)
    assert found.gap <= gap


@settings(deadline=None, max_examples=50)
@given(problems(), st.floats(0.001, 0.5))
def test_gap_is_proven_where_lists_are_used_beyond_their_bounds(
    problem: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], gap: float
) -> None:
    costs, supply, capacity = problem
    costs = costs + 0.1
    matrix = Matrix(costs, 3)
    found = assign_sparse(matrix, supply, capacity, gap=gap, scale=1.0, prove=matrix.prove)
    check(found, costs, supply, capacity)
    assert found.gap <= gap


def test_a_proof_saves_scans() -> None:
    here, there = np.random.default_rng(6).random((2, 1000, 2)) ** [[[1.0, 1.0]], [[1.5, 1.5]]]
    costs = np.hypot(*(here[:, None] - there).transpose(2, 0, 1))
    ones = np.ones(1000, np.int64)
    matrices = Matrix(costs, 10), Matrix(costs, 10)
    for matrix, prove in zip(matrices, (None, matrices[1].prove), strict=True):
        found = assign_sparse(matrix, ones, ones, gap=0.05, scale=0.05, prove=prove)
        check(found, costs, ones, ones)
        assert found.gap <= 0.05
    assert matrices[1].rows < 0.7 * matrices[0].rows


@settings(deadline=None, max_examples=150)
@given(problems(), st.integers(1, 6), st.booleans())
def test_paths_solve_costs_exactly(
    problem: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], listed: int, guessed: bool
) -> None:
    costs, supply, capacity = problem
    matrix = Matrix(costs, listed)
    prices = np.random.default_rng(0).random(len(capacity)) if guessed else None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rekindle.assignment.sparse.DRAWN", 1)
        found = assign_by_paths(matrix, supply, capacity, gap=0.0, prove=matrix.prove, prices=prices)
    check(found, costs, supply, capacity)
    assert found.cost == pytest.approx(optimum(costs, supply, capacity))


def test_paths_leave_the_lists_of_rows_that_are_as_good_for_one_as_for_another() -> None:
    # Costs of a row and a column add up, so that all rows list the same columns; one row has units for half of all.
    rng = np.random.default_rng(8)
    supply = np.append(np.ones(300, np.int64), 300)
    costs = np.append(rng.random(300), 0.0)[:, None] + rng.random(600)
    costs[:100, :100] -= 0.5 * rng.random((100, 100))
    ones = np.ones(600, np.int64)
    matrix = Matrix(costs.clip(0), 10)
    found = assign_by_paths(matrix, supply, ones, gap=1e-3, prove=matrix.prove)
    check(found, matrix.costs, supply, ones)
    assert found.gap <= 1e-3
    assert matrix.rows <= 6 * 301  # each list is scanned a few times


def test_paths_end_when_asked_to_stop_and_tell_how_far_they_are() -> None:
    costs = np.random.default_rng(9).random((1200, 1200))
    ones, matrix = np.ones(1200, np.int64), Matrix(costs, 40)
    told: list[tuple[int, int]] = []
    found = assign_by_paths(matrix, ones, ones, gap=0.5, prove=matrix.prove, progress=lambda *at: told.append(at))
    assert told[:3] == [(0, 1200), (500, 1200), (1000, 1200)]
    check(found, costs, ones, ones)
    with pytest.raises(Stopped, match="Stopped with 700 of 1200 people"):
        assign_by_paths(matrix, ones, ones, gap=0.5, prove=matrix.prove, stop=iter((False, True)).__next__)


def test_real_costs_close_the_gap() -> None:
    costs = np.random.default_rng(3).random((120, 120))
    ones = np.ones(120, np.int64)
    found = assign_sparse(Matrix(costs, 5), ones, ones, gap=1e-5, scale=1.0)
    check(found, costs, ones, ones)
    assert found.gap <= 1e-5


def test_equal_rows_and_columns_need_no_price_war() -> None:
    supply, capacity = np.array([300, 200]), np.array([200, 300])
    costs = np.array([[0.0, 1.0], [0.0, 1.0]])
    matrix = Matrix(costs, 1)
    found = assign_sparse(matrix, supply, capacity, gap=1e-4, scale=1.0)
    check(found, costs, supply, capacity)
    assert matrix.scans < 50


def test_work_ends_when_asked_to_stop() -> None:
    costs = np.random.default_rng(4).random((80, 80)) + 0.5
    ones = np.ones(80, np.int64)
    with pytest.raises(Stopped, match="of 80 people"):
        assign_sparse(Matrix(costs, 2), ones, ones, gap=0.0, scale=1.0, stop=lambda: True)


def test_what_is_left_over_is_assigned_in_parts() -> None:
    costs = np.random.default_rng(4).random((80, 80)) + 0.5
    ones = np.ones(80, np.int64)
    auction = _Auction(Matrix(costs, 2), ones, ones, np.zeros(80))
    found = auction.complete(leave=30)
    check(found, costs, ones, ones)
    assert found.gap > 0


def test_progress_counts_units() -> None:
    told: list[tuple[int, int | None]] = []
    costs = np.random.default_rng(5).random((50, 50))
    ones = np.ones(50, np.int64)
    assign_sparse(Matrix(costs, 2), ones, ones, gap=1e-3, scale=1.0, progress=lambda *at: told.append(at))
    assert told
    assert all(0 <= done <= 50 and total == 50 for done, total in told)


def test_same_input_gives_the_same_assignment() -> None:
    costs = np.random.default_rng(6).integers(0, 4, (60, 60)) / 4
    ones = np.ones(60, np.int64)
    first, second = (assign_sparse(Matrix(costs, 4), ones, ones, gap=1e-3, scale=1.0) for _ in range(2))
    np.testing.assert_array_equal(first.columns, second.columns)


@settings(deadline=None, max_examples=50)
@given(problems(), st.integers(0, 2**32 - 1))
def test_any_guess_of_the_prices_will_do(
    problem: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], seed: int
) -> None:
    costs, supply, capacity = problem
    guess = np.random.default_rng(seed).random(len(capacity))
    found = assign_sparse(Matrix(costs, 2), supply, capacity, gap=0.0, scale=1.0, finest=1e-4, prices=guess)
    check(found, costs, supply, capacity)
    assert found.cost == pytest.approx(optimum(costs, supply, capacity))
    assert found.bound == pytest.approx(found.worth @ supply - found.prices @ capacity)


@settings(deadline=None, max_examples=50)
@given(problems(), st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.0, 0.5))
def test_any_assignment_can_be_improved(
    problem: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]], seed: int, listed: int, spare: float
) -> None:
    costs, supply, capacity = problem
    costs = np.repeat(costs, supply, axis=0)
    ones = np.ones(len(costs), np.int64)
    rng = np.random.default_rng(seed)
    held = rng.permutation(np.repeat(np.arange(len(capacity)), capacity))
    guess = rng.random(len(capacity))
    found = reassign(Matrix(costs, listed), held, capacity, steps=(0.05, 0.01), spare=spare, prices=guess)
    check(found, costs, ones, capacity)
    if (
        spare * len(costs) < 1
    ):  # nobody is left over: each has their best, but for a step and the half that lists may miss
        assert found.cost <= optimum(costs, ones, capacity) + 0.015 * len(costs) + 1e-9


def test_who_would_choose_the_same_again_keeps_it() -> None:
    costs = np.random.default_rng(7).random((60, 60))
    ones = np.ones(60, np.int64)
    best = assign_sparse(Matrix(costs, 6), ones, ones, gap=0.0, scale=1.0, finest=1e-4)
    matrix = Matrix(costs, 6)
    again = reassign(matrix, best.columns, ones, steps=(0.01,), prices=best.prices)
    np.testing.assert_array_equal(again.columns, best.columns)
    assert matrix.scans == 1


@pytest.mark.parametrize("scans", [0, 1, 3])
def test_lists_are_scanned_again_only_so_often(scans: int) -> None:
    rng = np.random.default_rng(scans)
    base = rng.random(200)  # all rows want the same columns
    costs = np.tile(base, (200, 1)) + 0.01 * rng.random((200, 200))
    held, ones = rng.permutation(200), np.ones(200, np.int64)
    matrix = Matrix(costs, 3)
    found = reassign(matrix, held, ones, steps=(0.01,), scans=scans)
    check(found, costs, ones, ones)
    assert matrix.scans == 1 + scans
    # Nobody bid for the worst columns: who held one of these and has nothing else keeps it.
    wanted = np.argsort(base)[:100]
    assert (found.columns == held)[~np.isin(held, wanted) & ~np.isin(found.columns, wanted)].mean() > 0.9


def test_an_improvement_ends_when_asked_to_stop() -> None:
    costs = np.random.default_rng(4).random((80, 80)) + 0.5
    with pytest.raises(Stopped, match="of 80 people"):
        reassign(Matrix(costs, 2), np.arange(80), np.ones(80, np.int64), steps=(0.01,), stop=lambda: True)


def test_cost_of_zero_has_no_gap() -> None:
    ones = np.ones(3, np.int64)
    assert assign_sparse(Matrix(np.zeros((3, 3)), 1), ones, ones, gap=0.0, scale=1.0).gap == 0


@pytest.mark.parametrize("items", [0, 1, 7, 20])
def test_threads_cover_all_items_once(items: int) -> None:
    seen = np.zeros(items, int)

    def work(part: slice) -> None:
        seen[part] += 1

    in_threads(work, items, chunk=3)
    assert (seen == 1).all()


@dataclass
class Apart:
    """Rows and columns of which most have nothing in common: those cost 1."""

    costs: NDArray[np.float64]

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        size = len(prices)
        columns = np.full((len(rows), 4), -1, np.int32)
        costs = np.full((len(rows), 4), np.inf)
        bound = np.empty(len(rows))
        by_price, equal = cheapest(prices, slack)
        for at, row in enumerate(rows):
            common = np.flatnonzero(self.costs[row] < 1)
            found, cost = np.empty(size, np.int64), np.empty(size)
            found[: len(common)], cost[: len(common)] = common, self.costs[row, common]
            bound[at] = shortlist(
                at, len(common), found, cost, self.costs[row] < 1, 1.0, prices, by_price, equal, np.empty(size),
                columns[at], costs[at],
            )  # fmt: skip
            values = np.delete(self.costs[row] + prices, columns[at][columns[at] >= 0])
            assert values.min(initial=np.inf) >= bound[at] - slack
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.costs[np.ix_(rows, columns)]


@pytest.mark.parametrize("size", [1, 2, 5, 16, 17, 18, 40])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_short_lists_have_what_is_in_common_and_the_cheapest_of_the_rest(size: int, share: float) -> None:
    rng = np.random.default_rng(size)
    costs = np.where(rng.random((size, size)) < share, rng.random((size, size)), 1.0)
    one = np.ones(size, np.int64)
    found = assign_sparse(Apart(costs), one, one, gap=1e-4, scale=1.0)
    assert sorted(found.columns) == list(range(size))
    assert found.cost <= optimum(costs, one, one) * (1 + 1e-3)
