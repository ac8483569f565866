"""Compiled mapping of many people: errors by kernel, and the matching of very many without a people x people matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.assignment.sparse import (
    Candidates,
    assign_sparse,
    in_threads,
    relative_gap,
)
from rekindle.evaluation.mapping import visits
from rekindle.model import AWAY, Trajectories
from rekindle.progress import Progress

ROWS_AT_ONCE = 256
LISTED = 64
BLOCKS = 28
LEAF = 128
SAMPLE = 1500


def match_sparsely(errors: Errors, gap: float, progress: Progress | None) -> tuple[NDArray[np.int64], float, float]:
    """Match recovered with true people: the true person of each or -1, the total error in km, and its proven gap."""
    row_of, rows = _group(errors.nearby, errors.recovered)
    column_of, columns = _group(errors.nearby, errors.truth)
    bounded = _Bounded(errors, rows, columns)
    supply, capacity, scale = np.bincount(row_of), np.bincount(column_of), errors.typical()
    prices = None
    if min(len(rows), len(columns)) > 4 * SAMPLE:
        # With prices that are nearly right, the auction can begin with finer steps.
        prices, scale = _guess_prices(bounded, scale), scale / 25
    # People who are left over cost something too: the gap is asked of the others.
    asked = gap * (min(errors.people) / max(errors.people))
    found = assign_sparse(bounded, supply, capacity, gap=asked, scale=scale, prices=prices, progress=progress)
    by_row = np.argsort(row_of, kind="stable")
    by_column = np.argsort(found.columns, kind="stable")
    matched = np.empty(len(row_of), np.int64)
    matched[by_row[by_column]] = np.argsort(column_of, kind="stable")
    matched, unmatched = matched[: errors.people[0]], matched[errors.people[0] :]
    matched[matched >= errors.people[1]] = -1
    total = errors.of_pairs(matched)
    left_over = errors.left_over(errors.recovered[: len(matched)][matched < 0]).sum()
    left_over += errors.left_over(errors.truth[unmatched]).sum()
    return matched, total, min(1.0, relative_gap(total, found.bound - float(left_over)))


def _guess_prices(bounded: _Bounded, scale: float) -> NDArray[np.float64]:
    """Guess the prices of all columns from those among an even sample of rows and columns: (columns,) float64, km."""
    rows = np.linspace(0, len(bounded.rows) - 1, SAMPLE).astype(np.int64)
    columns = np.linspace(0, len(bounded.columns) - 1, SAMPLE).astype(np.int64)
    ones = np.ones(SAMPLE, np.int64)
    sample = _Bounded(bounded.errors, bounded.rows[rows], bounded.columns[columns])
    found = assign_sparse(sample, ones, ones, gap=0.01, scale=scale)
    prices = np.empty(len(bounded.columns))
    for begin in range(0, len(prices), 4096):
        some = np.arange(begin, min(begin + 4096, len(prices)))
        prices[some] = (found.worth[:, None] - bounded.between(rows, some)).max(axis=0)
    return np.asarray(prices - prices.min())


def _group(points: NDArray[np.float64], cells: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find people with the same trajectory: the group of each person, and one person of each group.

    Similar groups come one after the other.
    """
    cells = np.ascontiguousarray(cells)
    whole = cells.view(np.dtype((np.void, cells.dtype.itemsize * cells.shape[1]))).ravel()
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    sums = _block_sums(points, cells[first])
    order = _similar_together(sums.reshape(-1, len(first)))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], first[order].astype(np.int64)


class Errors:
    """Sums of distances between recovered and true trajectories, computed where they are needed.

    A step at which only one of the two is away costs `price`, one at which both are away nothing.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same locations and steps.
    padded
        Whether to make both as many, with people who are always away.

    Attributes
    ----------
    price
        Mean distance between two random counted points of the truth, km: being away wrongly, or not being away, is as
        wrong as a random guess. 0 where nobody is away.
    xy
        (locations, 2) float64, km; where somebody is away, also a last row, which is farther than `limit` from all others.
    nearby
        Like `xy`, but at most `price` from the row of people who are away, and none further apart than in `xy` or at
        `price`: moved onto the circle around the mean counted point where they lie outside. `xy` where nobody is away.
    """

    def __init__(self, recovered: Trajectories, truth: Trajectories, *, padded: bool = False) -> None:
        self.people = recovered.people, truth.people
        self.steps = truth.steps
        self.recovered, self.truth = (
            _padded(cells, max(self.people)) if padded else cells for cells in (recovered.cells, truth.cells)
        )
        # Around the middle, where single precision is best.
        self.xy = truth.locations.xy_km - truth.locations.xy_km.mean(axis=0)
        self.farthest = float(np.abs(self.xy).max())
        self.price, self.limit, self.nearby = 0.0, np.inf, self.xy
        if min(self.recovered.min(initial=0), self.truth.min(initial=0)) == AWAY:
            self._let_be_away(truth)

    def _let_be_away(self, truth: Trajectories) -> None:
        weight = visits(truth).astype(np.float64)
        visited = np.flatnonzero(weight)
        x, y = self.xy[visited].T.copy()
        # Where all are in the same location, any price lets those be matched who are counted at the same steps.
        self.price = _mean_distance(x, y, weight[visited] / max(weight.sum(), 1.0)) or 1.0
        self.limit = 5 * (self.farthest + 1)
        around = self.xy - (np.average(self.xy, axis=0, weights=weight) if len(visited) else 0.0)
        far = np.hypot(*around.T)
        self.nearby = np.vstack([around * np.minimum(1.0, self.price / np.maximum(far, 1e-300))[:, None], [0.0, 0.0]])
        self.xy = np.vstack([self.xy, np.full(2, 2 * self.limit)])  # index -1 is the last row

    def of_rows(self, rows: slice) -> NDArray[np.float64]:
        """Errors of some recovered people with all true people: (rows, true people) float64, km."""
        return self.between(np.arange(self.people[0])[rows], np.arange(self.people[1]))

    def left_over(self, cells: NDArray[np.integer]) -> NDArray[np.float64]:
        """Errors of people with somebody who is always away: (people,) float64, km."""
        return np.asarray(self.price * (cells != AWAY).sum(axis=1))

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Errors of some recovered people with some true people: (len(rows), len(columns)) float64, km."""
        errors = np.zeros((len(rows), len(columns)))
        # Steps in parts, so that coordinates of all people over very many steps are never held at once.
        part = max(1, 2**24 // max(len(rows), len(columns)))
        for begin in range(0, self.steps, part):
            there = self.xy[self.truth[columns, begin : begin + part].T].transpose(2, 0, 1).copy()
            here = self.xy[self.recovered[rows, begin : begin + part].T].transpose(2, 0, 1).copy()

            def work(some: slice, here: NDArray[np.float64] = here, there: NDArray[np.float64] = there) -> None:
                _add_distances(here[:, :, some], there, self.limit, self.price, errors[some])

            in_threads(work, len(rows), chunk=ROWS_AT_ONCE)
        return errors

    def of_pairs(self, matched: NDArray[np.int64]) -> float:
        """Total error of a matching, km, without people who are left over."""
        total = 0.0
        for begin in range(0, len(matched), 4096):
            rows = begin + np.flatnonzero(matched[begin : begin + 4096] >= 0)
            gap = self.xy[self.recovered[rows]] - self.xy[self.truth[matched[rows]]]
            apart = np.hypot(gap[..., 0], gap[..., 1])
            total += float(np.where(apart > self.limit, self.price, apart).sum())
        return total

    def typical(self) -> float:
        """An error between two people who have nothing to do with each other, those who will be left over included, km."""
        some = [np.linspace(0, len(cells) - 1, 200).astype(np.int64) for cells in (self.recovered, self.truth)]
        return max(float(self.between(*some).mean()), 1e-9)


def _padded(cells: NDArray[np.integer], people: int) -> NDArray[np.integer]:
    """Add people who are always away."""
    always = np.full((people - len(cells), cells.shape[1]), AWAY, np.int32)
    return np.concatenate([cells, always]) if len(always) else cells


class _Bounded:
    """Errors in single precision, never above the true ones, of true people in an order that keeps similar ones together.

    The sum of the distances over a block of steps is at least the distance between the sums of the points, and so it is
    with `Errors.nearby` where people are away. Leaves of similar people have a box around those sums, so that a search can
    pass over most of them.
    """

    def __init__(self, errors: Errors, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
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
        self.less = errors.steps * max(errors.farthest, errors.price) * 2.0**-21

    def _points(self, cells: NDArray[np.integer]) -> NDArray[np.float32]:
        """(2, people, steps) float32, km."""
        xy = self.errors.xy.astype(np.float32)
        return np.stack([xy[:, 0][cells], xy[:, 1][cells]])

    def _blocks(self, cells: NDArray[np.integer]) -> NDArray[np.float32]:
        return _block_sums(self.errors.nearby, cells)

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        columns = np.full((len(rows), LISTED), -1, np.int32)
        costs = np.full((len(rows), LISTED), np.inf)
        bound = np.empty(len(rows))
        cheapest = np.minimum.reduceat(prices, self.leaves[:-1])

        def work(part: slice) -> None:
            _scan_errors(rows[part], self.here, self.there, self.here_blocks, self.there_blocks, self.leaves, self.low,
                         self.high, cheapest, prices, self.errors.limit, self.errors.price, self.shrink, self.less,
                         columns[part], costs[part], bound[part])  # fmt: skip

        in_threads(work, len(rows), chunk=64)
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.errors.between(self.rows[rows], self.columns[columns])


def _block_sums(points: NDArray[np.float64], cells: NDArray[np.integer]) -> NDArray[np.float32]:
    """Sums of the points over blocks of steps: (2, blocks, people) float32, km."""
    people, steps = cells.shape
    begin = np.linspace(0, steps, min(BLOCKS, steps), endpoint=False).astype(np.int64)
    sums = np.empty((2, len(begin), people), np.float32)
    for at in range(0, people, 4096):
        part = slice(at, at + 4096)
        sums[:, :, part] = np.add.reduceat(points[cells[part]], begin, axis=1).transpose(2, 1, 0)
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


@compiled()
def _mean_distance(x: NDArray[np.float64], y: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    """Mean distance between two points that are drawn with these shares."""
    total = 0.0
    for one in range(len(x)):
        apart = 0.0
        for other in range(one):
            dx, dy = x[other] - x[one], y[other] - y[one]
            apart += share[other] * math.sqrt(dx * dx + dy * dy)
        total += 2 * share[one] * apart
    return total


@compiled()
def _add_distances(
    here: NDArray[np.floating], there: NDArray[np.floating], limit: float, price: float, sums: NDArray[np.floating]
) -> None:
    """Add to sums[i, j] the distances of here[:, t, i] and there[:, t, j] over all t; those above the limit cost the price."""
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
                        apart = math.sqrt(dx * dx + dy * dy)
                        tile[column] += price if apart > limit else apart


@compiled(fastmath={"reassoc", "nsz"})  # a sum whose terms may be added in any order
def _distance(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    to_x: NDArray[np.float32],
    to_y: NDArray[np.float32],
    limit: np.float32,
    price: np.float32,
) -> float:
    """Sum of the distances between the points of two trajectories; those above the limit cost the price."""
    total = np.float32(0.0)
    for step in range(len(x)):
        east, north = to_x[step] - x[step], to_y[step] - y[step]
        apart = np.float32(math.sqrt(east * east + north * north))
        total += price if apart > limit else apart
    return float(total)


@compiled()
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
    limit: float,
    price: float,
    shrink: float,
    less: float,
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    bound: NDArray[np.float64],
) -> None:
    """List the best columns of each row: leaf after leaf, from the most promising on, until no other can be better."""
    # Rows that follow each other are similar: a leaf that is fetched from memory for one serves the others too.
    together = min(16, len(rows))
    blocks, length = low.shape[1], min(columns.shape[1], len(prices))
    reach = np.empty(len(cheapest), np.float32)
    least = np.empty((together, len(cheapest)))
    lower = np.empty(LEAF, np.float32)
    value = np.empty((together, length))
    worst = np.empty(together)
    filled, last = np.empty(together, np.int64), np.empty(together, np.int64)
    zero = np.float32(0.0)
    for begin in range(0, len(rows), together):
        some = min(together, len(rows) - begin)
        best = np.full(len(cheapest), np.inf)
        for at in range(some):
            reach[:] = zero
            for block in range(blocks):
                x, y = here_blocks[0, block, rows[begin + at]], here_blocks[1, block, rows[begin + at]]
                west, east, south, north = low[0, block], high[0, block], low[1, block], high[1, block]
                for leaf in range(len(reach)):
                    dx = max(west[leaf] - x, x - east[leaf], zero)
                    dy = max(south[leaf] - y, y - north[leaf], zero)
                    reach[leaf] += math.sqrt(dx * dx + dy * dy)
            for leaf in range(len(reach)):
                least[at, leaf] = max(reach[leaf] * shrink - less, 0.0) + cheapest[leaf]
                best[leaf] = min(best[leaf], least[at, leaf])
        filled[:], last[:], worst[:] = 0, 0, np.inf
        for leaf in np.argsort(best, kind="mergesort"):
            if best[leaf] >= worst[:some].max():
                break
            first, end = leaves[leaf], leaves[leaf + 1]
            for at in range(some):
                if least[at, leaf] >= worst[at]:
                    continue
                row = rows[begin + at]
                lower[:] = zero
                for block in range(blocks):
                    x, y = here_blocks[0, block, row], here_blocks[1, block, row]
                    to_x, to_y = there_blocks[0, block, first:end], there_blocks[1, block, first:end]
                    for one in range(len(to_x)):
                        dx, dy = to_x[one] - x, to_y[one] - y
                        lower[one] += math.sqrt(dx * dx + dy * dy)
                for column in range(first, end):
                    if max(lower[column - first] * shrink - less, 0.0) + prices[column] >= worst[at]:
                        continue
                    sum_of_distances = _distance(
                        here[0, row], here[1, row], there[0, column], there[1, column],
                        np.float32(limit), np.float32(price),
                    )  # fmt: skip
                    cost = max(sum_of_distances * shrink - less, 0.0)
                    if cost + prices[column] >= worst[at]:
                        continue
                    if filled[at] < length:
                        last[at] = filled[at]
                        filled[at] += 1
                    slot = last[at]
                    columns[begin + at, slot], costs[begin + at, slot] = column, cost
                    value[at, slot] = cost + prices[column]
                    if filled[at] == length:
                        last[at] = value[at].argmax()
                        worst[at] = value[at, last[at]]
        for at in range(some):
            bound[begin + at] = worst[at] if length < len(prices) else np.inf
