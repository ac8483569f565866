"""Compiled mapping of many people: errors by kernel, and the matching of very many without a people x people matrix."""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.assignment.sparse import (
    Candidates,
    SparseAssignment,
    assign_by_paths,
    assign_sparse,
    in_threads,
    relative_gap,
)
from rekindle.evaluation.mapping import parts, visits
from rekindle.model import AWAY, Trajectories
from rekindle.progress import Progress

ROWS_AT_ONCE = 256
LISTED = 96
LEAF = 64
BLOCKS, SUMS, FEW = 112, 40, 3
PAIRS = 500
SAMPLE, PART = 1500, 6
OFFER = 16
GUESSED, MISSED = 200, 0.2
FIRST = 8


def match_sparsely(errors: Errors, gap: float, progress: Progress | None) -> tuple[NDArray[np.int64], float, float]:
    """Match recovered with true people: the true person of each or -1, the total error in km, and its proven gap."""
    sums = _Sums(errors)
    row_of, rows = _group(sums, errors.recovered)
    column_of, columns = _group(sums, errors.truth)
    # People who are left over cost something too: the gap is asked of the others.
    asked = gap * (min(errors.people) / max(errors.people))
    found = _assign(errors, sums, rows, columns, np.bincount(row_of), np.bincount(column_of), asked, progress)
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


def _assign(
    errors: Errors,
    sums: _Sums,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    supply: NDArray[np.int64],
    capacity: NDArray[np.int64],
    gap: float,
    progress: Progress | None = None,
) -> SparseAssignment:
    """Assign groups of people; of very many, a part first, whose prices tell what those of all will be."""
    prices, scale = None, errors.typical()
    if min(len(rows), len(columns)) > (1 if errors.price else 4) * SAMPLE:
        part = max(SAMPLE, int(supply.sum()) // PART)
        (some, few), (others, room) = (_part(supply, part), _part(capacity, part))
        some = rows[some]
        found = _assign(errors, sums, some, columns[others], few, room, gap)
        # What some row of the part would pay for a column: not the first, because prices that are too high never fall.
        offers = _Bounded(errors.exchanged(), sums, columns, some, -found.worth)
        offers.guess(-found.worth)
        prices = -offers.search(np.arange(len(columns)), -found.worth, OFFER).bound
        prices -= prices.min()
        # An auction begins with a twentieth of the scale: so with half of the gap that is asked for.
        scale = float(np.clip(10 * gap * found.cost / part, scale / 100, scale))
        del offers  # as much memory as what comes next
    bounded = _Bounded(errors, sums, rows, columns, prices)
    if prices is not None:
        bounded.guess(prices)
    if errors.price:
        # People who are hardly ever counted are as good for one as for another: an auction may bid for them in steps too small to end.
        return assign_by_paths(
            bounded, supply, capacity, gap=gap, prove=bounded.prove, prices=prices, progress=progress
        )
    prove = None if prices is None else bounded.prove
    return assign_sparse(
        bounded, supply, capacity, gap=gap, scale=scale, prices=prices, progress=progress, prove=prove
    )


def _part(units: NDArray[np.int64], part: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Take so many units of groups, evenly spread: the groups, and how many of each."""
    chosen = np.repeat(np.arange(len(units)), units)[np.linspace(0, units.sum() - 1, part).astype(np.int64)]
    return np.unique(chosen, return_counts=True)


def _group(sums: _Sums, cells: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find people with the same trajectory: the group of each person, and one person of each group.

    Similar groups come one after the other.
    """
    cells = np.ascontiguousarray(cells)
    whole = cells.view(np.dtype((np.void, cells.dtype.itemsize * cells.shape[1]))).ravel()
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    order = _similar_together(sums.of(cells, first)[1])
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
            _padded(cells, max(self.people) if padded else 0) for cells in (recovered.cells, truth.cells)
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
        for part in parts(len(matched), self.steps):
            rows = part.start + np.flatnonzero(matched[part] >= 0)
            gap = self.xy[self.recovered[rows]] - self.xy[self.truth[matched[rows]]]
            apart = np.hypot(gap[..., 0], gap[..., 1])
            total += float(np.where(apart > self.limit, self.price, apart).sum())
        return total

    def exchanged(self) -> Errors:
        """The same errors of true with recovered people."""
        other = copy.copy(self)
        other.people, other.recovered, other.truth = self.people[::-1], self.truth, self.recovered
        return other

    def typical(self) -> float:
        """An error between two people who have nothing to do with each other, those who will be left over included, km."""
        some = [np.linspace(0, len(cells) - 1, 200).astype(np.int64) for cells in (self.recovered, self.truth)]
        return max(float(self.between(*some).mean()), 1e-9)


def _padded(cells: NDArray[np.integer], people: int) -> NDArray[np.int32]:
    """Add people who are always away; kernels are compiled for one type of array, so that it is always the same."""
    always = np.full((max(0, people - len(cells)), cells.shape[1]), AWAY, np.int32)
    whole = np.ascontiguousarray(np.concatenate([cells, always]) if len(always) else cells, np.int32).view()
    whole.flags.writeable = False
    return whole


class _Sums:
    """Sums of the points of people over groups of steps.

    The sum of distances over some steps is at least the distance between the sums of the points, and so it is with
    `Errors.nearby` where people are away. Little is lost where two people are apart in the same direction at all steps
    of a group: at home, say, on all nights. So steps are put together that lose least, over a sample of pairs.
    """

    def __init__(self, errors: Errors) -> None:
        self.points = errors.nearby
        self.begin = np.linspace(0, errors.steps, min(BLOCKS, errors.steps), endpoint=False).astype(np.int64)
        random = np.random.default_rng(0)
        pairs = [random.integers(0, len(cells), PAIRS) for cells in (errors.recovered, errors.truth)]
        apart = self._blocks(errors.recovered[pairs[0]]) - self._blocks(errors.truth[pairs[1]])
        self.many = _merge(apart, SUMS)
        self.few = _merge(_summed(apart, self.many), FEW)

    def _blocks(self, cells: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.add.reduceat(self.points[cells], self.begin, axis=1).transpose(2, 0, 1)

    def of(
        self, cells: NDArray[np.integer], people: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Sums of some people over many groups, (people, 2, groups), and over few, (2, groups, people): float32, km."""
        many = np.empty((len(people), 2, self.many.max() + 1), np.float32)
        few = np.empty((2, self.few.max() + 1, len(people)), np.float32)
        for part in parts(len(people), cells.shape[1]):
            sums = _summed(self._blocks(cells[people[part]]), self.many)
            many[part] = sums.transpose(1, 0, 2)
            few[:, :, part] = _summed(sums, self.few).transpose(0, 2, 1)
        return many, few


def _summed(values: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums over the last axis of values with the same label."""
    order = np.argsort(label, kind="stable")
    return np.asarray(np.add.reduceat(values[..., order], np.unique(label[order], return_index=True)[1], axis=-1))


def _merge(apart: NDArray[np.float64], groups: int) -> NDArray[np.int64]:
    """Put together what loses least length, until there are no more than so many groups: the group of each block.

    Parameters
    ----------
    apart
        (2, pairs, blocks) float64, km: how far apart two people are in a block.
    """
    apart = apart.copy()
    blocks = apart.shape[2]
    label = np.arange(blocks)
    loss = np.full((blocks, blocks), np.inf)
    length = np.hypot(*apart).sum(axis=0)

    def compare(one: int) -> None:
        together = np.hypot(*(apart + apart[:, :, one, None])).sum(axis=0)
        loss[one] = np.where(np.isin(np.arange(blocks), label), length + length[one] - together, np.inf)
        loss[one, one] = np.inf
        loss[:, one] = loss[one]

    for one in range(blocks):
        compare(one)
    for _ in range(blocks - groups):
        one, other = (int(at) for at in np.unravel_index(loss.argmin(), loss.shape))
        apart[:, :, one] += apart[:, :, other]
        length[one] = np.hypot(*apart[:, :, one]).sum()
        label[label == other] = one
        loss[other] = loss[:, other] = np.inf
        compare(one)
    return np.unique(label, return_inverse=True)[1]


class _Bounded:
    """Errors in single precision, never above the true ones, of rows with columns that are held in leaves of similar ones.

    Leaves have a box around few sums of their columns (see `_Sums`) and, where prices are known, around these, so that a
    search can pass over most of them; and over most columns of the others, by few sums and then by more.
    """

    def __init__(
        self,
        errors: Errors,
        sums: _Sums,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        prices: NDArray[np.float64] | None = None,
    ) -> None:
        self.errors, self.rows, self.columns = errors, rows, columns
        self.order = _similar_together(sums.of(errors.truth, columns)[1], prices)
        self.there = self._points(errors.truth, columns[self.order])
        self.here_many, self.here_few = sums.of(errors.recovered, rows)
        self.there_many, self.there_few = sums.of(errors.truth, columns[self.order])
        self.leaves = np.append(np.arange(0, len(columns), LEAF), len(columns))
        self.low = np.minimum.reduceat(self.there_few, self.leaves[:-1], axis=2)
        self.high = np.maximum.reduceat(self.there_few, self.leaves[:-1], axis=2)
        # Rounding of single precision: of every sum, and of the coordinates themselves.
        self.shrink = 1 - (errors.steps + 8) * 2.0**-23
        self.less = errors.steps * max(errors.farthest, errors.price) * 2.0**-21
        self.grow = 1.0, 1.0

    def guess(self, prices: NDArray[np.float64]) -> None:
        """From now on, search for what the sums promise: see `search`."""
        some = np.unique(np.linspace(0, len(self.rows) - 1, GUESSED).astype(np.int64))
        found = self.search(some, prices, LISTED)
        at = np.argsort(self.order)[found.columns]
        few = np.hypot(*(self.here_few[:, :, some, None] - self.there_few[:, :, at])).sum(axis=0)
        many = np.hypot(*np.moveaxis(self.here_many[some, None] - self.there_many[at], 2, 0)).sum(axis=2)
        listed = found.columns >= 0
        ratios = (found.costs[listed] / np.maximum(each[listed], 1e-9) for each in (few, many))
        few_ratio, many_ratio = (float(np.quantile(each.clip(1.0, 4.0), MISSED)) for each in ratios)
        self.grow = few_ratio, many_ratio

    def _points(self, cells: NDArray[np.integer], people: NDArray[np.int64]) -> NDArray[np.float32]:
        """(2, people, steps) float32, km."""
        xy = self.errors.xy.astype(np.float32)
        points = np.empty((2, len(people), self.errors.steps), np.float32)
        for part in parts(len(people), cells.shape[1]):
            points[:, part] = xy[cells[people[part]]].transpose(2, 0, 1)
        return points

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        return self.search(rows, prices, LISTED)

    def search(self, rows: NDArray[np.int64], prices: NDArray[np.float64], listed: int) -> Candidates:
        """List so many of the best columns of each row; the bound is the value of the last of them.

        Where `guess` was called, a column is passed over that is likely to be worse, and the bound is a guess, too.
        """
        return self._search(rows, prices, np.full(len(rows), np.inf), listed)

    def prove(self, prices: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Find the least value of each row that is below `least`, else that; nothing is guessed.

        Nor is it from now on: where a proof fails, the guesses may be why.
        """
        self.grow = 1.0, 1.0
        found = self._search(np.arange(len(self.rows)), prices, least, 1)
        return np.minimum(least, found.costs[:, 0] + prices[found.columns[:, 0]])

    def _search(
        self,
        rows: NDArray[np.int64],
        prices: NDArray[np.float64],
        worst: NDArray[np.float64],
        listed: int,
    ) -> Candidates:
        columns = np.full((len(rows), listed), -1, np.int32)
        costs = np.full((len(rows), listed), np.inf)
        bound = worst.copy()
        prices = prices[self.order]
        cheapest = np.minimum.reduceat(prices, self.leaves[:-1])
        xy = self.errors.xy.astype(np.float32).T.copy()

        def work(part: slice) -> None:
            _scan_errors(rows[part], self.rows, self.errors.recovered, self.there, xy,
                         self.here_many, self.there_many, self.here_few, self.there_few,
                         self.leaves, self.low, self.high, cheapest, prices, self.errors.limit, self.errors.price,
                         self.shrink, self.less, *self.grow, columns[part], costs[part], bound[part])  # fmt: skip
            columns[part] = np.where(columns[part] < 0, -1, self.order[columns[part]])

        in_threads(work, len(rows), chunk=64)
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.errors.between(self.rows[rows], self.columns[columns])


def _similar_together(sums: NDArray[np.float32], prices: NDArray[np.float64] | None = None) -> NDArray[np.int64]:
    """Order people such that leaves of LEAF people in a row are similar, and cost alike.

    Parameters
    ----------
    sums
        (2, groups, people) float32, km.
    prices
        (people,) float64, km.
    """
    points = sums.reshape(-1, sums.shape[2])
    if prices is not None:
        points = np.vstack([points, prices.astype(np.float32)])
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
    who: NDArray[np.int64],
    here: NDArray[np.int32],
    there: NDArray[np.float32],
    xy: NDArray[np.float32],
    here_many: NDArray[np.float32],
    there_many: NDArray[np.float32],
    here_few: NDArray[np.float32],
    there_few: NDArray[np.float32],
    leaves: NDArray[np.int64],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    cheapest: NDArray[np.float64],
    prices: NDArray[np.float64],
    limit: float,
    price: float,
    shrink: float,
    less: float,
    grow_few: float,
    grow_many: float,
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    bound: NDArray[np.float64],
) -> None:
    """List the best columns of each row: of the most promising leaves first, then of all others that may have better ones.

    Only columns whose value is below the bound that is handed in; then that is the value of the last listed one. Distances
    between sums grow by factors before they are compared: with factors of 1, no better column is passed over.
    """
    # Rows that follow each other are similar: a leaf that is fetched from memory for one serves the others too.
    together = min(16, len(rows))
    few, length = low.shape[1], min(columns.shape[1], len(prices))
    least = np.empty((together, len(cheapest)), np.float32)
    lower = np.empty(np.diff(leaves).max(), np.float32)
    value = np.empty((together, length))
    worst = np.empty(together)
    from_x, from_y = np.empty((together, here.shape[1]), np.float32), np.empty((together, here.shape[1]), np.float32)
    filled, last = np.empty(together, np.int64), np.empty(together, np.int64)
    zero, infinite = np.float32(0.0), np.float32(np.inf)
    near = np.empty(len(lower), np.int64)
    # Leaves and columns are compared in single precision, with the rounding of that to spare.
    shrink_few, dearest = np.float32(shrink * grow_few), np.abs(prices).max()
    price_few, price_leaf = (
        (prices - less * grow_few).astype(np.float32),
        (cheapest - less * grow_few).astype(np.float32),
    )
    top = min(FIRST, len(cheapest))
    visits = np.empty(together * top + len(cheapest), np.int64)
    promise, rank = np.empty((together, top), np.float32), np.empty(top, np.int64)
    for begin in range(0, len(rows), together):
        some = min(together, len(rows) - begin)
        for at in range(some):
            for step in range(here.shape[1]):
                cell = here[who[rows[begin + at]], step]
                from_x[at, step], from_y[at, step] = xy[0, cell], xy[1, cell]
            reach = least[at]
            reach[:] = zero
            for group in range(few):
                x, y = here_few[0, group, rows[begin + at]], here_few[1, group, rows[begin + at]]
                west, east, south, north = low[0, group], high[0, group], low[1, group], high[1, group]
                for leaf in range(len(reach)):
                    dx = max(west[leaf] - x, x - east[leaf], zero)
                    dy = max(south[leaf] - y, y - north[leaf], zero)
                    reach[leaf] += math.sqrt(dx * dx + dy * dy)
            for leaf in range(len(reach)):
                reach[leaf] = reach[leaf] * shrink_few + price_leaf[leaf]
            promise[at] = infinite
            for leaf in range(len(reach)):
                if reach[leaf] < promise[at, top - 1]:
                    slot = top - 1
                    while slot > 0 and promise[at, slot - 1] > reach[leaf]:
                        promise[at, slot], rank[slot] = promise[at, slot - 1], rank[slot - 1]
                        slot -= 1
                    promise[at, slot], rank[slot] = reach[leaf], leaf
            visits[at * top : (at + 1) * top] = rank
        visits[some * top : some * top + len(cheapest)] = np.arange(len(cheapest))
        filled[:], last[:], worst[:some] = 0, 0, bound[begin : begin + some]
        for visit in range(some * top + len(cheapest)):
            leaf = visits[visit]
            first, end = leaves[leaf], leaves[leaf + 1]
            for at in range(some):
                limit_here = np.float32(worst[at] + (abs(worst[at]) + 2 * dearest) * 2.0**-20)
                if least[at, leaf] >= limit_here or (visit < some * top and least[at, leaf] > promise[at, top - 1]):
                    continue
                least[at, leaf] = infinite
                row = rows[begin + at]
                lower[:] = zero
                for group in range(few):
                    x, y = here_few[0, group, row], here_few[1, group, row]
                    to_x, to_y = there_few[0, group, first:end], there_few[1, group, first:end]
                    for one in range(len(to_x)):
                        dx, dy = to_x[one] - x, to_y[one] - y
                        lower[one] += math.sqrt(dx * dx + dy * dy)
                found = 0
                for one in range(end - first):
                    near[found] = first + one
                    found += lower[one] * shrink_few + price_few[first + one] < limit_here
                for column in near[:found]:
                    bounded = _distance(
                        here_many[row, 0], here_many[row, 1], there_many[column, 0], there_many[column, 1],
                        infinite, zero,
                    )  # fmt: skip
                    if max(bounded * shrink - less, 0.0) * grow_many + prices[column] >= worst[at]:
                        continue
                    sum_of_distances = _distance(
                        from_x[at], from_y[at], there[0, column], there[1, column],
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
            if filled[at] == length:
                bound[begin + at] = worst[at] if length < len(prices) else np.inf
