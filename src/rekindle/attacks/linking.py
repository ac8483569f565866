"""Which of today's people is which of yesterday's, for a handful of people or a hundred thousand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.assignment.kernels import compiled
from rekindle.assignment.sparse import CHEAPEST, Candidates, assign_sparse, cheapest, in_threads, in_turn, shortlist
from rekindle.attacks.base import with_rows_away
from rekindle.errors import InvalidData
from rekindle.model import AWAY
from rekindle.progress import Progress

__all__ = [
    "DENSE_UP_TO",
    "InformationGain",
    "Link",
    "LinkingCost",
    "gain_matrix",
    "link",
    "link_by_gain",
]

DENSE_UP_TO = 3_000
"""People up to whom a link is exact and takes a people x people matrix."""
LISTED = 64
CHUNK = 64
BLOCK = 4096
"""How many rows of today are looked at together: what is known of them fits into fast memory."""
PART = 64
UNITS = 2.0**40


@dataclass(frozen=True, eq=False)
class Link:
    """Who of today continues whom.

    Attributes
    ----------
    order
        (people,) int64: the row of today that continues each person; -1 where none is left.
    cost
        The sum of the costs of all links.
    gap
        The part of the cost that a better link might save at most; 0 where this one is optimal.
    """

    order: NDArray[np.int64]
    cost: float
    gap: float = 0.0


@runtime_checkable
class LinkingCost(Protocol):
    """What every linking cost is."""

    def __call__(self, past: NDArray[np.int32], today: NDArray[np.int32], locations: int) -> NDArray[np.float64]:
        """Price the links between the people of a past day and those of today.

        Parameters
        ----------
        past, today
            (people, steps) location indices of one day each, `AWAY` (-1) where somebody is not counted; the days may
            differ in length and in their number of people.
        locations
            How many locations there are.

        Returns
        -------
        (people of the past day, people of today) float64, lower for people who are more alike.
        """
        ...


@dataclass(frozen=True)
class InformationGain:
    """How much knowing the day tells about the location, in bits: 0 for two days alike, 1 for days that share no location.

    The entropy of both days together less their own entropies, each weighted by its length; for days of equal length
    that is the paper's formula. Only steps at which a person is counted are compared. Of people who were not counted
    throughout, the gain is taken as a share of the largest that such days can have, and scaled as for whole days; of
    people who were never counted on one of the days it is the largest: they are linked last.
    """

    def __call__(self, past: NDArray[np.int32], today: NDArray[np.int32], locations: int) -> NDArray[np.float64]:
        """Price the links: (people, people) float64, bits."""
        return gain_matrix(past, today, locations)


def link(
    cost: LinkingCost,
    past: Sequence[NDArray[np.int32]],
    today: NDArray[np.int32],
    locations: int,
    *,
    gap: float = 1e-3,
    stop: Callable[[], bool] | None = None,
) -> Link:
    """Continue people with rows of today, as many as there are of both, at the least cost in total.

    Parameters
    ----------
    cost
        What a link costs. Information gain links very many people without a people x people matrix.
    past
        The days to look back on, each (people, steps) in the order of the people. A link costs the least of them.
    today
        (rows, steps) rows in any order.
    locations
        How many locations there are.
    gap
        Of so many people that a matrix would be too large: a gap that is small enough.
    stop
        Asked from time to time whether to end early.
    """
    if type(cost) is InformationGain and max(len(past[0]), len(today)) > DENSE_UP_TO:
        return link_by_gain(past, today, locations, gap=gap, stop=stop)
    matrix = cost(past[0], today, locations)
    for day in past[1:]:
        matrix = np.minimum(matrix, cost(day, today, locations))
    if matrix.shape != (len(past[0]), len(today)) or np.isnan(matrix).any():
        raise InvalidData(
            f"The linking cost gave a matrix of the shape {matrix.shape}; it must be {(len(past[0]), len(today))} "
            "without NaN."
        )
    rows, columns = linear_sum_assignment(matrix)
    order = np.full(len(matrix), -1, np.int64)
    order[rows] = columns
    return Link(order, float(matrix[rows, columns].sum()))


def link_by_gain(
    past: Sequence[NDArray[np.integer]],
    today: NDArray[np.integer],
    locations: int,
    *,
    gap: float = 1e-3,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Link:
    """Link each person's past to a row of today at nearly the least total information gain, in memory that grows with the people.

    The cost of a link is the least gain of any of the past days with today.

    Parameters
    ----------
    past
        The last days, each (people, steps of that day) integers: indices of locations, people in the same order.
    today
        (people, steps) integers, indices of locations.
    locations
        How many locations there are.
    gap
        A gap that is small enough; it is proven.
    progress
        Called with the number of people linked so far and of all.
    stop
        Asked from time to time; where it says True, the work ends with `Stopped`.
    """
    people, rows = len(past[0]), len(today)
    most = max(people, rows)
    # Where there are more of one, the others are linked with nobody, which costs as much as days that share no location.
    row_of, days = _group([with_rows_away(day, most) for day in past] if people < most else past)
    column_of, (now,) = _group([with_rows_away(today, most) if rows < most else today])
    costs_between = _Gains([_Profiles.of(day, locations) for day in days], _Profiles.of(now, locations))
    supply, capacity = np.bincount(row_of), np.bincount(column_of)
    found = assign_sparse(costs_between, supply, capacity, gap=gap, scale=1.0, progress=progress, stop=stop)
    # Among people with the same past, and among rows of today that are alike, the order given is kept.
    by_row = np.argsort(row_of, kind="stable")
    by_column = np.argsort(found.columns, kind="stable")
    order = np.empty(most, np.int64)
    order[by_row[by_column]] = np.argsort(column_of, kind="stable")
    return Link(np.where(order < rows, order, -1)[:people], found.cost, found.gap)


def gain_matrix(past_day: NDArray[np.integer], today: NDArray[np.integer], locations: int) -> NDArray[np.float64]:
    """Information gain of every row of a past day with every row of today.

    Parameters
    ----------
    past_day, today
        (people, steps) integers, indices of locations; the numbers of steps may differ.
    locations
        How many locations there are.

    Returns
    -------
    (people of the past day, people of today) float64, bits.
    """
    gains = np.empty((len(past_day), len(today)))
    before, now = _Profiles.of(past_day, locations), _Profiles.of(today, locations)
    entropy = _times_log(before.steps + now.steps)

    def fill(part: slice) -> None:
        _fill_gains(part.start, before.begin, before.place, before.count, before.seen, *now.by_place, now.seen, entropy,
                    before.steps, now.steps, gains[part])  # fmt: skip

    in_threads(fill, len(gains), chunk=CHUNK)
    return gains


def _times_log(most: int) -> NDArray[np.float64]:
    """Tabulate x log2 x for x = 0 ... most."""
    whole = np.arange(most + 1, dtype=np.float64)
    return whole * np.log2(np.maximum(whole, 1.0))


def _group(days: Sequence[NDArray[np.integer]]) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """Find people with the same profiles on all days: the group of each person, and the days of one of each group."""
    sorted_days = [np.sort(day, axis=1).astype(np.int32, copy=False) for day in days]
    together = np.ascontiguousarray(np.hstack(sorted_days))
    rows = together.view(np.dtype((np.void, together.dtype.itemsize * together.shape[1]))).ravel()
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    return group.ravel().astype(np.int64), [day[first] for day in sorted_days]


@dataclass(frozen=True)
class _Profiles:
    """How many steps each person spends in each location: the locations of person p are at begin[p] ... begin[p + 1].

    `steps` are those of the day, `seen` (people,) int64 those at which each person is counted.
    """

    steps: int
    locations: int
    begin: NDArray[np.int64]
    place: NDArray[np.int32]
    count: NDArray[np.int32]
    seen: NDArray[np.int64]

    @classmethod
    def of(cls, cells: NDArray[np.integer], locations: int) -> _Profiles:
        people, steps = cells.shape
        ordered = np.sort(cells, axis=1).astype(np.int32, copy=False)
        first = np.ones((people, steps), bool)
        np.not_equal(ordered[:, 1:], ordered[:, :-1], out=first[:, 1:])
        at = np.flatnonzero(first)
        place = ordered.ravel()[at]
        count = np.diff(at, append=people * steps).astype(np.int32)
        counted = place != AWAY
        begin = np.zeros(people + 1, np.int64)
        np.cumsum((first & (ordered != AWAY)).sum(axis=1), out=begin[1:])
        return cls(steps, locations, begin, place[counted], count[counted], (ordered != AWAY).sum(axis=1))

    @cached_property
    def by_place(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """Begin of each location, and the people there with their numbers of steps."""
        begin = np.zeros(self.locations + 1, np.int64)
        np.cumsum(np.bincount(self.place, minlength=self.locations), out=begin[1:])
        order = np.argsort(self.place, kind="stable")
        person = np.repeat(np.arange(len(self.begin) - 1, dtype=np.int32), np.diff(self.begin))
        return begin, person[order], self.count[order]


class _Rows(NamedTuple):
    """Profiles as kernels take them: the locations of row r on day d are at begin[d, r] ... begin[d, r + 1]."""

    begin: NDArray[np.int64]
    place: NDArray[np.int32]
    stay: NDArray[np.int32]
    seen: NDArray[np.int64]
    steps: NDArray[np.int64]


class _Crowds(NamedTuple):
    """Today's rows by location: those that spend the same number of steps there, of the same number that they are seen, are a crowd.

    The rows are divided into blocks. The crowds of block b in location l are at first[b, l] ... first[b, l + 1], and the
    rows of crowd c, counted from the beginning of their block, at begin[c] ... begin[c + 1].
    """

    block: int
    first: NDArray[np.int64]
    begin: NDArray[np.int64]
    seen: NDArray[np.int64]
    steps: NDArray[np.int64]
    row: NDArray[np.uint16]

    @classmethod
    def of(cls, today: _Profiles) -> _Crowds:
        people, most = len(today.seen), today.steps + 1
        row = np.repeat(np.arange(people), np.diff(today.begin))
        places = today.locations + 1  # one more, so that each block ends
        key = ((row // BLOCK * places + today.place) * most + today.seen[row]) * most + today.count
        order = np.argsort(key, kind="stable")
        crowd, begin = np.unique(key[order], return_index=True)
        blocks = np.arange(-(-people // BLOCK))[:, None] * places + np.arange(places)
        return cls(
            BLOCK,
            np.searchsorted(crowd, blocks * most**2),
            np.append(begin, len(row)),
            crowd // most % most,
            crowd % most,
            (row[order] % BLOCK).astype(np.uint16),
        )


class _Gains:
    """Costs of links: the least gain of any of the past days with today, computed from shared locations alone."""

    def __init__(self, past: Sequence[_Profiles], today: _Profiles) -> None:
        begin = np.stack([day.begin for day in past])
        begin[1:] += np.cumsum([len(day.place) for day in past[:-1]], dtype=np.int64)[:, None]
        steps = np.array([day.steps for day in past])
        self.past = _Rows(
            begin,
            np.concatenate([day.place for day in past]),
            np.concatenate([day.count for day in past]),
            np.stack([day.seen for day in past]),
            steps,
        )
        self.today = _Rows(today.begin[None], today.place, today.count, today.seen[None], np.array([today.steps]))
        self.crowds = _Crowds.of(today)
        self.locations = today.locations
        self.entropy = _times_log(int(steps.max()) + today.steps)

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        columns = np.full((len(rows), LISTED), -1, np.int32)
        costs = np.full((len(rows), LISTED), np.inf)
        bound = np.empty(len(rows))
        by_price, equal = cheapest(prices, slack)
        units = (prices * UNITS).astype(np.int64)

        def work(part: slice) -> None:
            _scan_gains(part.start, rows[part], self.past, self.today, self.crowds, self.entropy, prices, units, by_price,
                        equal, slack, columns[part], costs[part], bound[part])  # fmt: skip

        in_threads(work, len(rows), chunk=CHUNK)
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        costs = np.empty((len(rows), len(columns)))
        _gains_between(rows, columns, self.past, self.today, self.locations, self.entropy, costs)
        return costs


@compiled()
def _fill_gains(
    first: int,
    begin: NDArray[np.int64],
    place: NDArray[np.int32],
    count: NDArray[np.int32],
    seen: NDArray[np.int64],
    there_begin: NDArray[np.int64],
    there: NDArray[np.int32],
    there_count: NDArray[np.int32],
    there_seen: NDArray[np.int64],
    entropy: NDArray[np.float64],
    steps: int,
    steps_today: int,
    gains: NDArray[np.float64],
) -> None:
    """Fill the rows of people first, first + 1, ... with their gains."""
    total = steps + steps_today
    apart = entropy[total] - entropy[steps] - entropy[steps_today]
    for at in range(gains.shape[0]):
        row = gains[at]
        whole = seen[first + at]
        for column in range(len(row)):
            its = there_seen[column]
            row[column] = entropy[whole + its] - entropy[whole] - entropy[its]
        for entry in range(begin[first + at], begin[first + at + 1]):
            here, mine = place[entry], count[entry]
            for other in range(there_begin[here], there_begin[here + 1]):
                its = there_count[other]
                row[there[other]] -= entropy[mine + its] - entropy[mine] - entropy[its]
        for column in range(len(row)):
            scale = _scale(whole, there_seen[column], steps, steps_today, entropy)
            row[column] = max(row[column] / total * scale, 0.0) if scale > 0.0 else apart / total


@compiled()
def _scale(seen: int, there_seen: int, steps: int, steps_today: int, entropy: NDArray[np.float64]) -> float:
    """How many times larger the gain of whole days can be than that of the steps at which two people were seen; or 0."""
    if seen == 0 or there_seen == 0:
        return 0.0
    apart = entropy[steps + steps_today] - entropy[steps] - entropy[steps_today]
    return float(apart / (entropy[seen + there_seen] - entropy[seen] - entropy[there_seen]))


@compiled()
def _shared(mine: int, its: int, entropy: NDArray[np.float64]) -> float:
    """What two people have in common who spend so many steps in a location: it grows with both."""
    return float(entropy[mine + its] - entropy[mine] - entropy[its])


@compiled()
def _set_steps(row: int, past: _Rows, steps_in: NDArray[np.int32], present: bool) -> None:
    """Write how many steps a row of the past spends in each location, or take it out again."""
    for day in range(len(past.steps)):
        for entry in range(past.begin[day, row], past.begin[day, row + 1]):
            steps_in[day, past.place[entry]] = past.stay[entry] if present else 0


@compiled()
def _least_gain(
    column: int,
    steps_in: NDArray[np.int32],
    whole: NDArray[np.int64],
    steps: NDArray[np.int64],
    begin: NDArray[np.int64],
    place: NDArray[np.int32],
    stay: NDArray[np.int32],
    seen: NDArray[np.int64],
    now: int,
    entropy: NDArray[np.float64],
) -> float:
    """The least gain of any past day of a row, with its `steps_in` and the steps that it is seen, with a column of today."""
    least = np.inf
    for day in range(len(steps)):
        shared, there = 0.0, steps_in[day]
        for entry in range(begin[column], begin[column + 1]):
            mine = there[place[entry]]
            if mine > 0:
                shared += _shared(mine, stay[entry], entropy)
        scale = _scale(whole[day], seen[column], steps[day], now, entropy)
        least = min(least, (_shared(steps[day], now, entropy) - shared * scale) / (steps[day] + now))
    return max(least, 0.0)


@compiled()
def _gains_between(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    past: _Rows,
    today: _Rows,
    locations: int,
    entropy: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> None:
    """Fill (rows, columns) with the least gains."""
    steps_in = np.zeros((len(past.steps), locations), np.int32)
    steps, begin, place, stay, seen = past.steps, today.begin[0], today.place, today.stay, today.seen[0]
    for at in range(len(rows)):
        _set_steps(rows[at], past, steps_in, True)
        whole = past.seen[:, rows[at]].copy()
        for to in range(len(columns)):
            costs[at, to] = _least_gain(
                columns[to], steps_in, whole, steps, begin, place, stay, seen, today.steps[0], entropy
            )
        _set_steps(rows[at], past, steps_in, False)


@compiled()
def _enter(value: int | np.int64, column: int, values: NDArray[np.int64], columns: NDArray[np.int32]) -> None:
    """Put a column in the place of the one with the largest value, which is the first of the heap."""
    here, size = 0, len(values)
    while True:
        child = 2 * here + 1
        if child >= size:
            break
        if child + 1 < size and values[child + 1] > values[child]:
            child += 1
        if values[child] <= value:
            break
        values[here], columns[here] = values[child], columns[child]
        here = child
    values[here], columns[here] = value, column


@compiled()
def _scan_gains(
    first: int,
    rows: NDArray[np.int64],
    past: _Rows,
    today: _Rows,
    crowds: _Crowds,
    entropy: NDArray[np.float64],
    prices: NDArray[np.float64],
    units: NDArray[np.int64],
    by_price: NDArray[np.int64],
    equal: int,
    slack: float,
    columns: NDArray[np.int32],
    costs: NDArray[np.float64],
    bound: NDArray[np.float64],
) -> None:
    """List the best columns of each row: of those that share a location with it, and of the cheapest.

    Costs plus prices of all columns are summed crowd by crowd, block by block, so that all that is at work is in fast memory. They are
    whole numbers of units: those that are equal are so in whatever order they are summed.
    """
    days, size, now, length = len(past.steps), len(prices), today.steps[0], columns.shape[1]
    apart = np.empty(days)
    for day in range(days):
        apart[day] = _shared(past.steps[day], now, entropy) / (past.steps[day] + now)
    farthest = apart.min()
    best = np.empty((len(rows), length + 1), np.int64)  # heaps, the largest first
    best_column = np.full((len(rows), length + 1), -1, np.int32)
    for at in range(len(rows)):
        best[at] = np.int64(min(farthest + in_turn(first + at, prices, by_price, equal)[2] + slack, 1e3) * UNITS)
    padded = -(-crowds.block // PART) * PART
    sums, least = np.empty(padded, np.int64), np.empty(padded, np.int64)
    for block in range(len(crowds.first)):
        start = block * crowds.block
        width = min(crowds.block, size - start)
        least[width:] = np.iinfo(np.int64).max
        for at in range(len(rows)):
            heap, heap_column = best[at], best_column[at]
            for day in range(days):
                total = sums if day else least
                total[:width] = units[start : start + width] + np.int64(apart[day] * UNITS)
                _take_shared(rows[at], day, block, past, crowds, now, entropy, total)
                if day:
                    for column in range(width):
                        least[column] = min(least[column], sums[column])
            for begin in range(0, width, PART):
                part, limit, below = least[begin : begin + PART], heap[0], False
                for column in range(PART):
                    below |= part[column] < limit
                if below:
                    for column in range(PART):
                        if part[column] < heap[0]:
                            _enter(part[column], start + begin + column, heap, heap_column)
    steps_in = np.zeros((days, crowds.first.shape[1]), np.int32)
    its_begin, its_place, its_stay, its_seen = today.begin[0], today.place, today.stay, today.seen[0]
    met = np.zeros(size, np.bool_)
    found = np.empty(length + 1 + 2 * CHEAPEST, np.int64)
    cost, value = np.empty(len(found)), np.empty(len(found))
    for at in range(len(rows)):
        _set_steps(rows[at], past, steps_in, True)
        whole = past.seen[:, rows[at]].copy()
        begin, end, _ = in_turn(first + at, prices, by_price, equal)
        known = np.int64(0)
        for column in np.sort(best_column[at]):
            if column >= 0:
                met[column] = True
                found[known] = column
                known += 1
        for column in by_price[begin:end]:
            # Those that are not among the best share no location with the row, or too little to be listed.
            if not met[column] and (farthest + prices[column]) * UNITS < best[at, 0]:
                met[column] = True
                found[known] = column
                known += 1
        for one in range(known):
            cost[one] = _least_gain(
                found[one], steps_in, whole, past.steps, its_begin, its_place, its_stay, its_seen, now, entropy
            )
        bound[at] = shortlist(
            first + at, known, found, cost, met, farthest, prices, by_price, equal, value, columns[at], costs[at]
        )
        _set_steps(rows[at], past, steps_in, False)


@compiled()
def _take_shared(
    row: int,
    day: int,
    block: int,
    past: _Rows,
    crowds: _Crowds,
    now: int,
    entropy: NDArray[np.float64],
    total: NDArray[np.int64],
) -> None:
    """Take what a row has in common with the columns of a block from what they would cost if they were apart."""
    steps, whole = past.steps[day], past.seen[day, row]
    first, begin, seen, stays, rows = crowds.first[block], crowds.begin, crowds.seen, crowds.steps, crowds.row
    its_seen, scale = np.int64(-1), 0.0
    for entry in range(past.begin[day, row], past.begin[day, row + 1]):
        here, mine = past.place[entry], past.stay[entry]
        for crowd in range(first[here], first[here + 1]):
            if seen[crowd] != its_seen:
                its_seen = seen[crowd]
                scale = _scale(whole, its_seen, steps, now, entropy) / (steps + now) * UNITS
            shared = np.int64(_shared(mine, stays[crowd], entropy) * scale)
            for other in range(begin[crowd], begin[crowd + 1]):
                total[rows[other]] -= shared
