"""Which recovered person is which true person: the matching that an evaluation compares them under."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.attacks.assignment.sparse import (
    Candidates,
    assign_sparse,
    compiled,
    compiled_sum,
    in_threads,
    relative_gap,
)
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Trajectories

__all__ = ["Mapping", "map_people"]

Progress = Callable[[int, int | None], None]

ROWS_AT_ONCE = 256
LISTED = 64
BLOCKS = 28
LEAF = 128


@dataclass(frozen=True, eq=False)
class Mapping:
    """Who is who.

    Parameters
    ----------
    matched
        (recovered people,) int64, the true person of each recovered person; -1 where none is left.
    total_error_km
        Sum of the distances between the points of recovered people and those of their true people, km.
    gap
        The part of the total error that a better matching might save at most; 0 where this one is optimal.
    """

    matched: NDArray[np.int64]
    total_error_km: float
    gap: float = 0.0


def map_people(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    method: Literal["optimal", "greedy"] = "optimal",
    dense_up_to: int = 5000,
    gap: float = 5e-3,
    progress: Progress | None = None,
) -> Mapping:
    """Match each recovered person with a true person of their own.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same places and steps. Where one has fewer people, the rest of the other is left over.
    method
        "optimal" for the least total error; "greedy" for the mapping of Xu et al. (2017): each recovered person in
        turn takes the true person with the least error who is still free.
    dense_up_to
        The optimal matching is exact for up to so many people, with memory that grows with their square. For more,
        the memory grows with the people, and the gap is proven.
    gap
        For more people than that: a gap that is small enough.
    progress
        Called with the number of people matched so far and of all.
    """
    if recovered.locations != truth.locations:
        raise InvalidData("The recovered and the true trajectories are over different places; they must be the same.")
    if recovered.steps != truth.steps:
        raise InvalidData(
            f"The recovered trajectories have {recovered.steps} steps, the true ones {truth.steps}; they must be the same."
        )
    errors = _Errors(recovered, truth)
    if method == "greedy":
        return _greedy(errors, progress)
    if method != "optimal":
        raise InvalidSetting(f"The mapping method is {method!r}; choose 'optimal' or 'greedy'.")
    if max(recovered.people, truth.people) <= dense_up_to:
        matrix = errors.of_rows(0, recovered.people)
        rows, columns = linear_sum_assignment(matrix)
        matched = np.full(recovered.people, -1, np.int64)
        matched[rows] = columns
        return Mapping(matched, float(matrix[rows, columns].sum()))
    if recovered.people != truth.people:
        raise InvalidData(
            f"There are {recovered.people} recovered and {truth.people} true people; beyond {dense_up_to} people the "
            "optimal mapping needs as many of both. Use method='greedy', or raise dense_up_to if the memory allows."
        )
    return _sparse(errors, gap, progress)


def _greedy(errors: _Errors, progress: Progress | None) -> Mapping:
    people, columns = errors.people
    matched = np.full(people, -1, np.int64)
    taken = np.zeros(columns, bool)
    total = 0.0
    for begin in range(0, min(people, columns), ROWS_AT_ONCE):
        block = errors.of_rows(begin, min(begin + ROWS_AT_ONCE, people, columns))
        block[:, taken] = np.inf
        for at, row in enumerate(block):
            matched[begin + at] = chosen = int(row.argmin())
            total += float(row[chosen])
            taken[chosen] = True
            block[at + 1 :, chosen] = np.inf
        if progress is not None:
            progress(begin + len(block), people)
    return Mapping(matched, total)


def _sparse(errors: _Errors, gap: float, progress: Progress | None) -> Mapping:
    row_of, rows = _group(errors.xy, errors.recovered)
    column_of, columns = _group(errors.xy, errors.truth)
    bounded = _BoundedErrors(errors, rows, columns)

    def tell(part: float) -> None:
        if progress is not None:
            progress(int(part * len(row_of)), len(row_of))

    found = assign_sparse(
        bounded, np.bincount(row_of), np.bincount(column_of), gap=gap, scale=errors.typical(), progress=tell
    )
    by_row = np.argsort(row_of, kind="stable")
    by_column = np.argsort(found.columns, kind="stable")
    matched = np.empty(len(row_of), np.int64)
    matched[by_row[by_column]] = np.argsort(column_of, kind="stable")
    total = errors.of_pairs(matched)
    return Mapping(matched, total, relative_gap(total, found.bound))


def _group(xy: NDArray[np.float64], cells: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find people with the same trajectory: the group of each person, and one person of each group.

    Similar groups come one after the other.
    """
    cells = np.ascontiguousarray(cells)
    whole = cells.view(np.dtype((np.void, cells.dtype.itemsize * cells.shape[1]))).ravel()
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    points = _block_sums(xy, cells[first])
    order = _similar_together(points.reshape(-1, len(first)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], first[order].astype(np.int64)


class _Errors:
    """Sums of distances between recovered and true trajectories, computed where they are needed."""

    def __init__(self, recovered: Trajectories, truth: Trajectories) -> None:
        self.recovered, self.truth = recovered.cells, truth.cells
        # Around the middle, where single precision is best.
        self.xy = truth.locations.xy_km - truth.locations.xy_km.mean(axis=0)
        self.people = recovered.people, truth.people
        self.steps = truth.steps

    def of_rows(self, begin: int, end: int) -> NDArray[np.float64]:
        """Errors of some recovered people with all true people: (end - begin, true people) float64, km."""
        return self.between(np.arange(begin, end), np.arange(self.people[1]))

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Errors of some recovered people with some true people: (len(rows), len(columns)) float64, km."""
        errors = np.zeros((len(rows), len(columns)))
        # Steps in parts, so that coordinates of all people over very many steps are never held at once.
        part = max(1, 2**24 // max(len(rows), len(columns)))
        for begin in range(0, self.steps, part):
            there = self.xy[self.truth[columns, begin : begin + part].T].transpose(2, 0, 1).copy()
            here = self.xy[self.recovered[rows, begin : begin + part].T].transpose(2, 0, 1).copy()

            def work(some: slice, here: NDArray[np.float64] = here, there: NDArray[np.float64] = there) -> None:
                _add_distances(here[:, :, some], there, errors[some])

            in_threads(work, len(rows), chunk=ROWS_AT_ONCE)
        return errors

    def of_pairs(self, matched: NDArray[np.int64]) -> float:
        """Total error of a matching, km."""
        total = 0.0
        for begin in range(0, len(matched), 4096):
            part = slice(begin, begin + 4096)
            gap = self.xy[self.recovered[part]] - self.xy[self.truth[matched[part]]]
            total += float(np.hypot(gap[..., 0], gap[..., 1]).sum())
        return total

    def typical(self) -> float:
        """An error between two people who have nothing to do with each other, km."""
        some = np.linspace(0, min(self.people) - 1, 200).astype(np.int64)
        return max(float(self.between(some, some).mean()), 1e-9)


class _BoundedErrors:
    """Errors in single precision, never above the true ones, of true people in an order that keeps similar ones together.

    The sum of the distances over a block of steps is at least the distance between the sums of the points. Leaves of
    similar people have a box around those sums, so that a search can pass over most of them.
    """

    def __init__(self, errors: _Errors, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        self.errors, self.rows, self.columns = errors, rows, columns
        self.here = self._points(errors.recovered[rows])
        self.there = self._points(errors.truth[columns])
        self.here_blocks, self.there_blocks = (
            self._blocks(errors.recovered[rows]),
            self._blocks(errors.truth[columns]),
        )
        self.leaves = np.append(np.arange(0, len(columns), LEAF), len(columns))
        self.low = np.minimum.reduceat(self.there_blocks, self.leaves[:-1], axis=2)
        self.high = np.maximum.reduceat(self.there_blocks, self.leaves[:-1], axis=2)
        # Rounding of single precision: of every sum, and of the coordinates themselves.
        self.shrink = 1 - (errors.steps + 8) * 2.0**-23
        self.less = errors.steps * float(np.abs(errors.xy).max()) * 2.0**-21

    def _points(self, cells: NDArray[np.integer]) -> NDArray[np.float32]:
        """(2, people, steps) float32, km."""
        xy = self.errors.xy.astype(np.float32)
        return np.stack([xy[:, 0][cells], xy[:, 1][cells]])

    def _blocks(self, cells: NDArray[np.integer]) -> NDArray[np.float32]:
        return _block_sums(self.errors.xy, cells)

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        columns = np.full((len(rows), LISTED), -1, np.int32)
        costs = np.full((len(rows), LISTED), np.inf)
        bound = np.empty(len(rows))
        cheapest = np.minimum.reduceat(prices, self.leaves[:-1])

        def work(part: slice) -> None:
            _scan_errors(rows[part], self.here, self.there, self.here_blocks, self.there_blocks, self.leaves, self.low,
                         self.high, cheapest, prices, self.shrink, self.less, columns[part], costs[part], bound[part])  # fmt: skip

        in_threads(work, len(rows), chunk=64)
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.errors.between(self.rows[rows], self.columns[columns])


def _block_sums(xy: NDArray[np.float64], cells: NDArray[np.integer]) -> NDArray[np.float32]:
    """Sums of the points over blocks of steps: (2, blocks, people) float32, km."""
    people, steps = cells.shape
    begin = np.linspace(0, steps, min(BLOCKS, steps), endpoint=False).astype(np.int64)
    sums = np.empty((2, len(begin), people), np.float32)
    for at in range(0, people, 4096):
        part = slice(at, at + 4096)
        sums[:, :, part] = np.add.reduceat(xy[cells[part]], begin, axis=1).transpose(2, 1, 0)
    return sums


def _similar_together(points: NDArray[np.float32]) -> NDArray[np.int64]:
    """Order people such that leaves of LEAF people in a row are similar.

    Parameters
    ----------
    points
        (dimensions, people) float32.
    """
    order = np.arange(points.shape[1])
    todo = [(0, len(order))]
    while todo:
        begin, end = todo.pop()
        leaves = -(-(end - begin) // LEAF)
        if leaves <= 1:
            continue
        part = points[:, order[begin:end]]
        widest = int(part.std(axis=1).argmax())
        order[begin:end] = order[begin:end][np.argsort(part[widest], kind="stable")]
        middle = begin + leaves // 2 * LEAF
        todo += [(begin, middle), (middle, end)]
    return order


@compiled
def _add_distances(here: NDArray[np.floating], there: NDArray[np.floating], sums: NDArray[np.floating]) -> None:
    """Add to sums[i, j] the distances of here[:, t, i] and there[:, t, j] over all t."""
    # In tiles that stay in the nearest cache.
    for left in range(0, sums.shape[1], 256):
        for top in range(0, sums.shape[0], 8):
            for step in range(here.shape[1]):
                east, north = there[0, step, left : left + 256], there[1, step, left : left + 256]
                for row in range(top, min(top + 8, sums.shape[0])):
                    x, y = here[0, step, row], here[1, step, row]
                    tile = sums[row, left : left + 256]
                    for column in range(len(tile)):
                        dx, dy = east[column] - x, north[column] - y
                        tile[column] += math.sqrt(dx * dx + dy * dy)


@compiled_sum
def _distance(
    x: NDArray[np.float32], y: NDArray[np.float32], to_x: NDArray[np.float32], to_y: NDArray[np.float32]
) -> float:
    """Sum of the distances between the points of two trajectories."""
    total = np.float32(0.0)
    for step in range(len(x)):
        east, north = to_x[step] - x[step], to_y[step] - y[step]
        total += np.float32(math.sqrt(east * east + north * north))
    return float(total)


@compiled
def _scan_errors(
    rows: NDArray[np.int64],
    here: NDArray[np.float32],
    there: NDArray[np.float32],
    here_blocks: NDArray[np.float32],
    there_blocks: NDArray[np.float32],
    leaves: NDArray[np.int64],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    cheapest: NDArray[np.float64],
    prices: NDArray[np.float64],
    shrink: float,
    less: float,
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    bound: NDArray[np.float64],
) -> None:
    """List the best columns of each row: leaf after leaf, from the most promising on, until no other can be better."""
    blocks, length = low.shape[1], min(columns.shape[1], len(prices))
    reach = np.empty(len(cheapest), np.float32)
    lower = np.empty(LEAF, np.float32)
    least = np.empty(len(cheapest))
    value = np.empty(length)
    zero = np.float32(0.0)
    for at in range(len(rows)):
        row = rows[at]
        reach[:] = zero
        for block in range(blocks):
            x, y = here_blocks[0, block, row], here_blocks[1, block, row]
            west, east, south, north = low[0, block], high[0, block], low[1, block], high[1, block]
            for leaf in range(len(reach)):
                dx = max(west[leaf] - x, x - east[leaf], zero)
                dy = max(south[leaf] - y, y - north[leaf], zero)
                reach[leaf] += math.sqrt(dx * dx + dy * dy)
        for leaf in range(len(reach)):
            least[leaf] = max(reach[leaf] * shrink - less, 0.0) + cheapest[leaf]
        filled, last, worst = 0, 0, np.inf
        for leaf in np.argsort(least, kind="mergesort"):
            if least[leaf] >= worst:
                break
            first, end = leaves[leaf], leaves[leaf + 1]
            lower[:] = zero
            for block in range(blocks):
                x, y = here_blocks[0, block, row], here_blocks[1, block, row]
                to_x, to_y = there_blocks[0, block, first:end], there_blocks[1, block, first:end]
                for one in range(len(to_x)):
                    dx, dy = to_x[one] - x, to_y[one] - y
                    lower[one] += math.sqrt(dx * dx + dy * dy)
            for column in range(first, end):
                if max(lower[column - first] * shrink - less, 0.0) + prices[column] >= worst:
                    continue
                sum_of_distances = _distance(here[0, row], here[1, row], there[0, column], there[1, column])
                cost = max(sum_of_distances * shrink - less, 0.0)
                if cost + prices[column] >= worst:
                    continue
                if filled < length:
                    last = filled
                    filled += 1
                columns[at, last], costs[at, last], value[last] = column, cost, cost + prices[column]
                if filled == length:
                    last = int(value.argmax())
                    worst = value[last]
        bound[at] = worst if length < len(prices) else np.inf
