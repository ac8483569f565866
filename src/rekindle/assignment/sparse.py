"""Assignment of very many rows to as many columns, without ever holding rows x columns.

An auction over short lists: every row keeps its few best columns and a bound that no unlisted column is below. Prices
only rise, so the bound stays true; a row whose list is used up is scanned again, at the prices of the day. Rows that
are alike share one list, columns that are alike one price. The prices are a dual solution, so that every answer comes
with a proven gap, and rows that are left over when the gap is small enough are assigned among themselves. Where a scan
takes long and the gap is proven by a search of its own, the last rows rather use their lists beyond the bounds.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.assignment.kernels import compiled
from rekindle.errors import Stopped
from rekindle.progress import Progress

__all__ = [
    "Candidates",
    "Costs",
    "SparseAssignment",
    "assign_by_paths",
    "assign_sparse",
    "bid",
    "cheapest",
    "in_threads",
    "in_turn",
    "reassign",
    "shortlist",
]

CHEAPEST = 16
"""How many of the cheapest columns are listed for every row."""
NEIGHBOURS = 100
"""How many rows that are left over with lists used up share what is left among themselves."""
SLACK, LEAST_SLACK, LAST_SLACK = 0.1, 2.0, 500.0
"""How many steps worse than one that is not listed a column may be in an auction that is proven: the first number over
the share of units that are left, but at least the second; for the last units the third."""
LATE, LAST = 0.02, 0.002
"""Which share of the units is left in an auction that is proven when prices no longer enter the proof, as those of wars
for a few columns say little of others; and which share is placed last, by the lists alone."""

DRAWN, WIDE = 32, 48
"""How many columns are listed at random for every row, beside the best, when units take paths; and from which supply on, or a
thousandth of the columns, a row lists all columns."""
PATHS_AT_ONCE = 500
"""Paths between two reports of the progress."""

PROGRESS = 0.1
"""Where the gap did not shrink by this share from one auction to the next, prices of the last units enter the proof after all."""


def in_threads(work: Callable[[slice], None], items: int, *, chunk: int) -> None:
    """Call `work` on slices of at most `chunk` items; the outcome must not depend on their order."""
    slices = [slice(begin, min(begin + chunk, items)) for begin in range(0, items, chunk)]
    workers = min(
        len(slices), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if workers <= 1:
        for part in slices:
            work(part)
        return
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, slices):
            pass


@dataclass(frozen=True)
class Candidates:
    """The best columns of some rows at the prices of a scan.

    Parameters
    ----------
    columns
        (rows, length) int32, the listed columns; -1 where a list is shorter.
    costs
        (rows, length) float64, their costs without price; inf where a list is shorter.
    bound
        (rows,) float64, cost plus price of no unlisted column is below it. It must not be below the best of the list.
    """

    columns: NDArray[np.int32]
    costs: NDArray[np.float64]
    bound: NDArray[np.float64]


class Costs(Protocol):
    """Costs that are computed where they are needed."""

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        """List the best columns of each row at those prices; the bound may be missed by up to `slack`."""

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Costs of each of the rows with each of the columns: (len(rows), len(columns)) float64."""


Prove = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class SparseAssignment:
    """An assignment with a proof of how good it is.

    Parameters
    ----------
    columns
        (units,) int64, the column of each unit of supply; the units of row 0 come first, then those of row 1, ...
    cost
        The sum of all costs.
    bound
        No assignment costs less.
    prices
        (columns,) float64, what the last place in each column cost, beside the cost itself.
    worth
        (rows,) float64, least cost plus price of each row. The bound is worth x supply - prices x capacity.
    """

    columns: NDArray[np.int64]
    cost: float
    bound: float
    prices: NDArray[np.float64]
    worth: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """The part of the cost that a better assignment might save at most; 0 where this one is optimal."""
        return relative_gap(self.cost, self.bound)


def relative_gap(cost: float, bound: float) -> float:
    """(cost - bound) / cost, and 0 for a cost of 0."""
    return max(0.0, cost - bound) / cost if cost > 0 else 0.0


def assign_sparse(
    costs: Costs,
    supply: NDArray[np.int64],
    capacity: NDArray[np.int64],
    *,
    gap: float,
    scale: float,
    finest: float = 1e-7,
    leave: int = 1000,
    prices: NDArray[np.float64] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    prove: Prove | None = None,
) -> SparseAssignment:
    """Assign all units of supply to columns at (nearly) the least total cost.

    Parameters
    ----------
    costs
        Gives candidates at prices, and costs between given rows and columns. Costs are at least 0.
    supply
        (rows,) int64, how many interchangeable units each row has.
    capacity
        (columns,) int64, how many units each column takes; as many as the supply in all.
    gap
        Stop as soon as the relative gap is proven to be no more than this.
    scale
        How far costs differ, in their own unit: the first and coarsest auction raises prices in steps of a twentieth.
    finest
        The step of the last and finest auction, as a part of `scale`; it stops there even if the gap is larger.
    leave
        Up to this many units are assigned among themselves at the end rather than by auction.
    prices
        (columns,) float64, a guess of the prices to begin with; 0 for all by default.
    progress
        Called with the number of units that are placed and of all; it falls again when a finer auction begins.
    stop
        Asked between rounds; where it says True, the work ends with `Stopped`.
    prove
        Given prices and the least cost plus price of each row over its list, that over all columns. Then bounds of
        `costs.scan` may be guesses, and rows are scanned again far less often: the fewer units are left, the further beyond
        its bound a list may be used, because few lose little in all.
    """
    auction = _Auction(costs, supply, capacity, np.zeros(len(capacity)) if prices is None else prices)
    step = scale / 20
    allowed = min(leave, auction.units // 1000) if prove is None else int(LAST * auction.units)
    least = np.inf
    while True:
        late: NDArray[np.float64] | None = None
        for left in auction.rounds(step, hasty=prove is not None):
            if progress is not None:
                progress(auction.units - left, auction.units)
            if stop is not None and stop():
                raise Stopped(f"Stopped with {left} of {auction.units} people still to be assigned, as asked.")
            if late is None and left <= LATE * auction.units:
                late = auction.price.copy()
            if left <= allowed:
                break
        if prove is None or late is None:
            result = auction.complete(leave)
        else:
            last = auction.place_last(step)
            result = auction.prove_at(late, prove, leave)
            # Where few bid, earlier prices may be those before the auction.
            if max(gap, least * (1 - PROGRESS)) < result.gap:
                result = auction.prove_at(last, prove, leave)
        if result.gap <= gap or step <= finest * scale:
            return result
        least = min(least, result.gap)
        step /= 5
        allowed //= 5
        auction.release(step)


def assign_by_paths(
    costs: Costs,
    supply: NDArray[np.int64],
    capacity: NDArray[np.int64],
    *,
    gap: float,
    prove: Prove,
    leave: int = 1000,
    prices: NDArray[np.float64] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> SparseAssignment:
    """Assign all units of supply to columns at (nearly) the least total cost, each by the cheapest path of exchanges.

    For rows that have the same best columns at nearly the same prices: in an auction these bid against each other in small
    steps, while here one search places each unit. As the lists of such rows are alike, too, every row also lists some columns
    at random, so that a path can leave them; a row of many units, or from which no path led to a free place, lists all.

    Parameters
    ----------
    costs, supply, capacity, gap, leave, prices, progress, stop
        As in `assign_sparse`. Lists may be guesses.
    prove
        As there. Rows whose list turns out to lack the best column are scanned again, and their units placed once more, until
        the gap is small enough or no list lacks any.
    """
    auction = _Auction(costs, supply, capacity, np.zeros(len(capacity)) if prices is None else prices)
    price, worth = auction.prices().copy(), np.empty(len(supply))
    more = _more_columns(costs, supply, len(capacity))
    while True:
        starts, columns, listed = auction.lists(more)
        left = []
        for begin in range(0, len(auction.free), PATHS_AT_ONCE):
            if progress is not None:
                progress(auction.units - len(auction.free) + begin, auction.units)
            if stop is not None and stop():
                waiting = len(auction.free) - begin
                raise Stopped(f"Stopped with {waiting} of {auction.units} people still to be assigned, as asked.")
            units = auction.free[begin : begin + PATHS_AT_ONCE]
            left.append(
                _take_paths(units, auction.row, starts, columns, listed, auction.begin, price, worth, auction.owner)
            )
        auction.price = np.repeat(price, capacity)
        least = np.minimum.reduceat(listed + price[columns], starts[:-1])
        auction.proven = prove(price, least)
        result = auction.complete(leave)
        again, lost = auction.proven < least, np.unique(auction.row[np.concatenate([*left, auction.free[:0]])])
        if result.gap <= gap or not (again.any() or len(lost)):
            return result
        for row in np.flatnonzero(again):  # nothing is forgotten, or the same columns would be missing in turn
            more[row] = auction.listed_beside(row, more[row])
        for row in lost:  # without a path to a free place
            more[row] = _with_costs(costs, row, np.arange(len(capacity)))
        auction.vacate(again)


def _more_columns(
    costs: Costs, supply: NDArray[np.int64], columns: int
) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
    """Columns that each row lists beside the best, and their costs."""
    drawn = np.random.default_rng(0).integers(columns, size=(len(supply), DRAWN))
    whole, wide = np.arange(columns), max(WIDE, columns // 1000)
    return [_with_costs(costs, row, whole if supply[row] >= wide else drawn[row]) for row in range(len(supply))]


def _with_costs(
    costs: Costs, row: int | np.int64, columns: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    return columns.astype(np.int32), costs.between(np.array([row]), columns)[0]


def reassign(
    costs: Costs,
    held: NDArray[np.int64],
    capacity: NDArray[np.int64],
    *,
    steps: Sequence[float],
    leave: int = 1000,
    spare: float = 0.01,
    scans: int | None = None,
    prices: NDArray[np.float64] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SparseAssignment:
    """Improve an assignment of one unit a row: only those bid who would not choose again what they hold.

    Parameters
    ----------
    costs, capacity, leave, prices, stop
        As in `assign_sparse`.
    held
        (rows,) int64, the column that each row has.
    steps
        By how much prices rise in each of the auctions, one after the other. No gap is asked for.
    spare
        Up to this share of the rows is left over, and assigned among itself in the end: the last rows take most of the
        rounds, and each round takes time that grows with all columns.
    scans
        At most how often lists that are used up are scanned again in each auction; None: until few rows are left. Then more
        rows are left over: they keep what they hold where nobody has bid for it, and share the rest among neighbours.
    """
    auction = _Auction(
        costs, np.ones(len(held), np.int64), capacity, np.zeros(len(capacity)) if prices is None else prices
    )
    auction.owner = np.argsort(held, kind="stable")
    for step in steps:
        auction.release(step)
        for turn, left in enumerate(auction.rounds(step)):
            if stop is not None and stop():
                raise Stopped(f"Stopped with {left} of {auction.units} people still to be assigned, as asked.")
            if left <= min(leave, spare * auction.units) or turn == scans:
                break
    if scans is None:
        return auction.complete(leave)
    auction.keep(held)
    return auction.complete(NEIGHBOURS, held)


class _Auction:
    """Prices, owners and lists of an auction under way."""

    def __init__(
        self, costs: Costs, supply: NDArray[np.int64], capacity: NDArray[np.int64], prices: NDArray[np.float64]
    ) -> None:
        self.costs = costs
        self.row = np.repeat(np.arange(len(supply)), supply)
        self.begin = np.concatenate([[0], np.cumsum(capacity)])
        self.units = len(self.row)
        self.supply, self.capacity = supply, capacity
        self.price = np.repeat(prices, capacity)  # of each place in a column, a heap within the column
        self.owner = np.full(self.units, -1, np.int64)
        self.free = np.arange(self.units)
        listed = costs.scan(np.arange(len(supply)), self.prices(), 0.0)
        self.columns, self.listed, self.bound = listed.columns, listed.costs, listed.bound
        self.proven: NDArray[np.float64] | None = None  # least cost plus price of each row at these prices

    def prices(self) -> NDArray[np.float64]:
        """(columns,) float64, what a place costs in each column."""
        return np.asarray(self.price[self.begin[:-1]])

    def rounds(self, step: float, *, hasty: bool = False) -> Iterator[int]:
        """Bid, and scan the rows whose lists are used up, until all units are placed; yields how many are not."""
        slack = step / 2
        self.proven = None
        while len(self.free):
            if hasty:
                slack = step * max(SLACK * self.units / len(self.free), LEAST_SLACK)
            self._bid(step, slack)
            yield len(self.free)
            if len(self.free):
                self._scan(np.unique(self.row[self.free]), slack)

    def place_last(self, step: float) -> NDArray[np.float64]:
        """Place what is left by the lists alone: the prices of all places then."""
        self._bid(step, LAST_SLACK * step)
        return self.price

    def prove_at(self, prices: NDArray[np.float64], prove: Prove, leave: int) -> SparseAssignment:
        """Go on from these prices of all places, and prove how good the assignment is by them."""
        self.price = prices
        self.proven = prove(self.prices(), self.listed_best())
        return self.complete(leave)

    def _bid(self, step: float, slack: float) -> None:
        self.free = bid(
            self.free, self.row, self.columns, self.listed, self.bound,
            self.begin, self.price, self.owner, step, slack,
        )  # fmt: skip

    def _scan(self, rows: NDArray[np.int64], slack: float) -> None:
        listed = self.costs.scan(rows, self.prices(), slack)
        self.columns[rows], self.listed[rows], self.bound[rows] = listed.columns, listed.costs, listed.bound

    def release(self, step: float) -> None:
        """Free the units that the smaller step does not bear, to bid again at the same prices."""
        if self.proven is not None:
            self._scan(np.flatnonzero(self.proven < self.listed_best()), 0.0)
        column = np.repeat(np.arange(len(self.capacity)), self.capacity)
        held = np.flatnonzero(self.owner >= 0)
        _release(
            held, column, self.row, self.columns, self.listed, self._best(), self.begin, self.price, self.owner, step
        )
        placed = np.zeros(self.units, bool)
        placed[self.owner[self.owner >= 0]] = True
        self.free = np.flatnonzero(~placed)
        # Free places go for the price of their column: to the top of its heap, which stays a heap when sorted.
        self.price[self.owner < 0] = self.prices()[column[self.owner < 0]]
        order = np.lexsort((self.owner >= 0, self.price, column))
        self.price, self.owner = self.price[order], self.owner[order]

    def lists(
        self, more: Sequence[tuple[NDArray[np.int32], NDArray[np.float64]]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """All lists, one after the other, each with more columns: where each begins, its columns and their costs."""
        columns, costs = zip(*(self.listed_beside(row, its) for row, its in enumerate(more)), strict=True)
        starts = np.concatenate([[0], np.cumsum([len(its) for its in columns])])
        return starts, np.concatenate(columns), np.concatenate(costs)

    def listed_beside(
        self, row: int | np.int64, more: tuple[NDArray[np.int32], NDArray[np.float64]]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The list of a row with more columns: its columns and their costs."""
        filled = self.columns[row] >= 0
        return np.append(self.columns[row][filled], more[0]), np.append(self.listed[row][filled], more[1])

    def vacate(self, rows: NDArray[np.bool_]) -> None:
        """Scan some rows again, and free all their units."""
        self._scan(np.flatnonzero(rows), 0.0)
        self.owner[(self.owner >= 0) & rows[self.row[self.owner]]] = -1
        self.free = np.setdiff1d(np.arange(self.units), self.owner)

    def keep(self, held: NDArray[np.int64]) -> None:
        """Give units that are left over what they held, while there is any of it."""
        places = np.flatnonzero(self.owner < 0)
        column = np.repeat(np.arange(len(self.capacity)), self.capacity)[places]
        free = np.setdiff1d(np.arange(self.units), self.owner)
        free = free[np.argsort(held[free], kind="stable")]
        # The n-th unit that held a column takes the n-th place that is left in it.
        nth = np.arange(len(free)) - np.searchsorted(held[free], held[free])
        first, last = (np.searchsorted(column, held[free], side) for side in ("left", "right"))
        kept = first + nth < last
        self.owner[places[(first + nth)[kept]]] = free[kept]

    def _best(self) -> NDArray[np.float64]:
        """(rows,) float64, least cost plus price of every row over all columns, or less: the dual of the prices."""
        return np.minimum(self.listed_best(), self.bound) if self.proven is None else self.proven

    def listed_best(self) -> NDArray[np.float64]:
        """(rows,) float64, least cost plus price of every row over the listed columns."""
        best = np.empty(len(self.supply))
        prices = np.append(self.prices(), 0.0)
        for begin in range(0, len(best), 4096):
            part = slice(begin, begin + 4096)
            best[part] = (self.listed[part] + prices[self.columns[part]]).min(axis=1, initial=np.inf)
        return best

    def complete(self, leave: int, held: NDArray[np.int64] | None = None) -> SparseAssignment:
        """Assign what is left among itself, so many at a time, by what they held; and prove how good the whole is."""
        column = np.repeat(np.arange(len(self.capacity)), self.capacity)
        result = np.full(self.units, -1, np.int64)
        taken = self.owner >= 0
        result[self.owner[taken]] = column[taken]
        cost = 0.0
        placed = np.flatnonzero(result >= 0)
        left, places = np.flatnonzero(result < 0), column[~taken]
        if held is not None:
            left = left[np.argsort(held[left], kind="stable")]
        for begin in range(0, len(left), max(leave, 1)):
            part = slice(begin, begin + max(leave, 1))
            between = self.costs.between(self.row[left[part]], places[part])
            rows, chosen = linear_sum_assignment(between)
            result[left[part][rows]] = places[part][chosen]
            cost += float(between[rows, chosen].sum())
        for begin in range(0, len(placed), 4096):
            units = placed[begin : begin + 4096]
            cost += float(self._cost_of(self.row[units], result[units]).sum())
        worth, prices = self._best(), self.prices()
        return SparseAssignment(result, cost, float(worth @ self.supply - prices @ self.capacity), prices, worth)

    def _cost_of(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        found = self.columns[rows] == columns[:, None]
        costs = np.where(found.any(axis=1), self.listed[rows, found.argmax(axis=1)], np.nan)
        for unit in np.flatnonzero(np.isnan(costs)):
            costs[unit] = self.costs.between(rows[unit : unit + 1], columns[unit : unit + 1])[0, 0]
        return costs


def cheapest(prices: NDArray[np.float64], slack: float) -> tuple[NDArray[np.int64], int]:
    """Give the columns with the lowest prices, by price, and how many of them are as good as the cheapest; see `shortlist`."""
    by_price = np.flatnonzero(prices <= prices.min() + slack)
    equal = len(by_price)
    if equal <= CHEAPEST:
        last = min(CHEAPEST, len(prices) - 1)
        by_price = np.flatnonzero(prices <= np.partition(prices, last)[last])
    return by_price[np.argsort(prices[by_price], kind="stable")], equal


@compiled()
def in_turn(
    turn: int, prices: NDArray[np.float64], by_price: NDArray[np.int64], equal: int
) -> tuple[int, int, float]:
    """Which of the cheapest columns a row is given, as the begin and end of their ranks, and the least price of all others."""
    begin = 0 if equal <= CHEAPEST else turn * CHEAPEST % equal
    other = 0 if begin > 0 else CHEAPEST
    price = prices[by_price[other]] if other < len(by_price) else np.inf
    return begin, min(begin + CHEAPEST, len(by_price)), price


@compiled()
def shortlist(
    turn: int,
    known: int | np.int64,
    found: NDArray[np.int64],
    cost: NDArray[np.float64],
    met: NDArray[np.bool_],
    farthest: float,
    prices: NDArray[np.float64],
    by_price: NDArray[np.int64],
    equal: int,
    value: NDArray[np.float64],
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
) -> float:
    """List the best columns of a row: those that it has something in common with, and the cheapest of all others; gives the bound.

    Parameters
    ----------
    turn
        The number of the row: any of the cheapest columns will do for rows that have nothing in common with them, so they are
        given in turn.
    known, found, cost, met
        How many columns have something in common with the row, which, at what cost, and whether each does; `met` is cleared.
    farthest
        What all others cost.
    prices, by_price, equal
        Prices of all columns; see `cheapest`.
    value
        Room for as many numbers as there are columns.
    columns, costs
        (length,) to be filled.
    """
    length = len(columns)
    begin, end, other = in_turn(turn, prices, by_price, equal)
    bound = farthest + other
    for rank in range(begin, end):
        column = by_price[rank]
        if not met[column]:
            found[known] = column
            cost[known] = farthest
            known += 1
    for one in range(known):
        met[found[one]] = False
        value[one] = cost[one] + prices[found[one]]
    limit = np.inf
    if known > length:
        limit = float(np.partition(value[:known], length)[length])
        bound = min(bound, limit)
    filled = 0
    for one in range(known):
        if value[one] < limit:
            columns[filled], costs[filled] = found[one], cost[one]
            filled += 1
    for one in range(known):
        if value[one] == limit and filled < length:
            columns[filled], costs[filled] = found[one], cost[one]
            filled += 1
    return bound


@compiled()
def bid(
    free: NDArray[np.int64],
    row_of: NDArray[np.int64],
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    bound: NDArray[np.float64],
    begin: NDArray[np.int64],
    price: NDArray[np.float64],
    owner: NDArray[np.int64],
    step: float,
    slack: float,
) -> NDArray[np.int64]:
    """Let units bid until all are placed or parked for want of a good enough list; gives the parked ones."""
    size = len(row_of)
    queue = np.empty(size, np.int64)
    queue[: len(free)] = free
    head, waiting = 0, len(free)
    parked = np.empty(size, np.int64)
    parked_count = 0
    length = columns.shape[1]
    while waiting > 0:
        unit = queue[head]
        head = (head + 1) % size
        waiting -= 1
        row = row_of[unit]
        best, second, chosen = np.inf, np.inf, -1
        for at in range(length):
            column = columns[row, at]
            if column < 0:
                break
            value = costs[row, at] + price[begin[column]]
            if value < best:
                best, second, chosen = value, best, column
            elif value < second:
                second = value
        if best > bound[row] + slack:
            parked[parked_count] = unit
            parked_count += 1
            continue
        second = max(best, min(second, bound[row]))
        top, end = begin[chosen], begin[chosen + 1]
        rise = second - best if second < np.inf else 0.0
        new_price, evicted = price[top] + rise + step, owner[top]
        # Sift the place down the column's heap: equal places of a column are never bid up one against the other.
        here = 0
        places = end - top
        while True:
            child = 2 * here + 1
            if child >= places:
                break
            if child + 1 < places and price[top + child + 1] < price[top + child]:
                child += 1
            if price[top + child] >= new_price:
                break
            price[top + here], owner[top + here] = price[top + child], owner[top + child]
            here = child
        price[top + here], owner[top + here] = new_price, unit
        if evicted >= 0:
            queue[(head + waiting) % size] = evicted
            waiting += 1
    return parked[:parked_count].copy()


@compiled()
def _release(
    held: NDArray[np.int64],
    column_of: NDArray[np.int64],
    row_of: NDArray[np.int64],
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    best: NDArray[np.float64],
    begin: NDArray[np.int64],
    price: NDArray[np.float64],
    owner: NDArray[np.int64],
    step: float,
) -> None:
    """Take away the places of units that would not choose them again."""
    for place in held:
        column = column_of[place]
        row = row_of[owner[place]]
        keep = False
        for at in range(columns.shape[1]):
            if columns[row, at] == column:
                keep = costs[row, at] + price[begin[column]] <= best[row] + step
                break
        if not keep:
            owner[place] = -1


@compiled()
def _take_paths(
    units: NDArray[np.int64],
    row_of: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    begin: NDArray[np.int64],
    price: NDArray[np.float64],
    worth: NDArray[np.float64],
    owner: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Place units one by one along shortest augmenting paths; gives those that no path leads to a free place.

    Every placed unit has what is best for its row along its list at these prices: `worth` is cost plus price of that, and
    what is worse by d is an edge of length d. Prices and worth rise such that this holds for all after each path.
    """
    size, rows = len(price), len(worth)
    far, via, done = np.full(size, np.inf), np.empty(size, np.int64), np.zeros(size, np.bool_)
    row_far, given_up, reached = np.full(rows, np.inf), np.empty(rows, np.int64), np.empty(rows, np.int64)
    touched = np.empty(size, np.int64)
    room = np.zeros(size, np.int64)
    for column in range(size):
        for place in range(begin[column], begin[column + 1]):
            room[column] += owner[place] < 0
    left, lost = np.empty(len(units), np.int64), 0
    for unit in units:
        first = row_of[unit]
        worth[first] = np.inf
        for at in range(starts[first], starts[first + 1]):
            worth[first] = min(worth[first], costs[at] + price[columns[at]])
        row_far[first], reached[0] = 0.0, first
        known, looked, seen, end, length = 1, 0, 0, np.int64(-1), 0.0
        heap = [(0.0, np.int64(-1))]
        while len(heap) > 0:
            while looked < known:
                row = reached[looked]
                looked += 1
                for at in range(starts[row], starts[row + 1]):
                    column = columns[at]
                    way = row_far[row] + max(costs[at] + price[column] - worth[row], 0.0)
                    if way < far[column]:
                        if far[column] == np.inf:
                            touched[seen] = column
                            seen += 1
                        far[column], via[column] = way, row
                        heapq.heappush(heap, (way, np.int64(column)))
            length, nearest = heapq.heappop(heap)
            if nearest < 0 or done[nearest]:
                continue
            done[nearest] = True
            if room[nearest] > 0:
                end = nearest
                break
            for place in range(begin[nearest], begin[nearest + 1]):
                row = row_of[owner[place]]
                if row_far[row] == np.inf:
                    row_far[row], given_up[row], reached[known] = length, place, row
                    known += 1
        if end < 0:
            left[lost] = unit
            lost += 1
        else:
            for row in reached[:known]:
                worth[row] += length - row_far[row]
            for column in touched[:seen]:
                if done[column]:
                    price[column] += length - far[column]
            room[end] -= 1
            place = begin[end]
            while owner[place] >= 0:
                place += 1
            row = via[end]
            while row != first:
                other = given_up[row]
                owner[place] = owner[other]
                place = other
                row = via[np.searchsorted(begin, place, side="right") - 1]
            owner[place] = unit
        for column in touched[:seen]:
            far[column], done[column] = np.inf, False
        for row in reached[:known]:
            row_far[row] = np.inf
    return left[:lost].copy()
