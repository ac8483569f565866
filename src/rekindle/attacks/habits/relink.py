"""Re-link: cut the tracks into segments and give each segment to the person whose other segments it resembles.

The likeness of a segment and of a person's other time is 1 less the Jensen-Shannon divergence of the shares of time they spend in
each place, in bits: the sum over the places that both visit of T(a, b) = (f(a + b) - f(a) - f(b)) / 2, f(x) = x log2 x, where a and
b are the shares. Only pairs that share a place are ever looked at. Segments with the same shares are one, of which there are several.

A person must also have been at the cut where the segment begins: otherwise that is one more move, which has a price.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.assignment.kernels import compiled
from rekindle.assignment.sparse import Candidates, cheapest, in_threads, reassign, shortlist
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.rng import generator

__all__ = ["POWER", "SEAM", "relink", "spend"]

AWAY_WEIGHT = 0.2
"""How much time away counts for beside time in a place: many people are away at the same time."""
POWER = 0.5
"""Time counts by its root: people who share a home are told apart by where they are for a short time only."""
SEAM = 0.1
"""Price of a move at a cut over a long way, in units of likeness."""
FREE_ROUNDS = 4
"""Rounds before moves at the cuts have their price: at first it would keep all tracks as they are."""
AWAY_DISTANCE = 4.0
DENSE_UP_TO = 300
"""People up to whom segments are given by all likenesses; beyond, by lists of the most alike, nearly as well."""
LISTED = 32
CHUNK = 512
LIMITS = (12, 64, 96)
QUICK_LIMITS = (8, 32, 48)
"""Segments are looked for in so many places only, those where a person spends most time; in each, only among so many, those that
spend most of their time there; and of all these, so many are compared in full. Less is enough for a quick look."""
QUICK_SCANS = 1
"""How often a quick look scans lists again that are used up: where people are alike, a few would bid against each other for long."""
STEPS = (0.05, 0.01)
LATER_STEPS = (0.004,)
"""By how much prices rise in the auctions of a part, in units of likeness: at first, and where they are known from its turn before."""


def relink(
    problem: Problem,
    tracks: NDArray[np.int32],
    seed: int,
    *,
    segments_per_day: int = 4,
    rounds: int = 30,
    power: float = 1.0,
    seam: float = 0.0,
    quick: bool = False,
    stop: Callable[[], bool] | None = None,
) -> NDArray[np.int32]:
    """Re-link tracks.

    Parameters
    ----------
    problem
        The counts.
    tracks
        (people, ticks) int32 places.
    seed
        The order in which segments take their turns.
    segments_per_day
        How many cuts a day.
    rounds
        At most how often each segment takes its turn.
    power
        Segments are alike in the time that they spend in each place, to this power.
    seam
        Price of a move at a cut over a long way, in units of likeness; 0 for none.
    quick
        Whether to make do with shorter lists, where segments are given by lists.
    stop
        Asked from time to time; where it says True, the work ends with `Stopped`.

    Returns
    -------
    (people, ticks) int32 places: the same segments, linked in another way.
    """
    people = len(tracks)
    length = max(1, problem.steps_per_day // segments_per_day)
    of_tick = problem.starts[:-1] // length
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(of_tick)) + 1, [len(of_tick)]])
    number = len(cuts) - 1
    if number < 2:
        return tracks.copy()
    weight = np.ones(problem.counts.shape[1])
    if problem.away >= 0:
        weight[problem.away] = AWAY_WEIGHT
    lengths = problem.lengths
    spans = list(pairwise(cuts))
    parts = [_Segments.of(tracks, lengths, weight, *span, power=power, ends=seam > 0) for span in spans]
    links = _Links(parts, np.tile(np.arange(people), (number, 1)), problem.xy, quick=quick)
    turns = np.random.default_rng(generator(seed, 2))
    for turn in range(rounds):
        if turn >= min(FREE_ROUNDS, rounds // 2):
            links.seam = seam
        changed = [links.improve(int(segment), stop) for segment in turns.permutation(number)]
        if not any(changed):
            if links.seam == seam:
                break
            links.seam = seam
    linked = np.empty_like(tracks)
    for segment in range(number):
        part = slice(cuts[segment], cuts[segment + 1])
        linked[:, part] = tracks[links.order[segment], part]
    return linked


@dataclass(frozen=True, eq=False)
class _Segments:
    """Everybody's segments of one part of the time. Those with the same time in each place (and the same ends) are of one kind.

    Attributes
    ----------
    kind
        (people,) int64: the kind of each segment.
    begin, place, time
        The time of the segments of kind k is at begin[k] ... begin[k + 1]: places and (weighted) steps there.
    there_begin, there, share
        The kinds that visit place p are at there_begin[p] ... there_begin[p + 1], by their shares of time, with these.
    first, last
        (kinds,) int32: the places in which the segments of each kind begin and end; of one of them, if they may differ.
    """

    kind: NDArray[np.int64]
    begin: NDArray[np.int64]
    place: NDArray[np.int32]
    time: NDArray[np.float64]
    there_begin: NDArray[np.int64]
    there: NDArray[np.int32]
    share: NDArray[np.float64]
    first: NDArray[np.int32]
    last: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        tracks: NDArray[np.int32],
        lengths: NDArray[np.int64],
        weight: NDArray[np.float64],
        begin: int,
        end: int,
        *,
        power: float = 1.0,
        ends: bool = False,
    ) -> _Segments:
        """Add up the time in each place from one tick to another; with `ends`, segments of one kind begin and end alike."""
        starts, place, steps = spend(np.ascontiguousarray(tracks[:, begin:end]), lengths[begin:end], len(weight))
        number = np.diff(starts)
        # Rows of different lengths, made alike by what no segment has.
        most = int(number.max())
        row = np.repeat(np.arange(len(tracks)), number)
        at = np.arange(len(place)) - starts[row]
        padded = np.full((len(tracks), 2 * most + 2), -1, np.int32)
        padded[row, at], padded[row, most + at] = place, steps
        if ends:
            padded[:, -2:] = tracks[:, [begin, end - 1]]
        keys = padded.view(np.dtype((np.void, padded.dtype.itemsize * padded.shape[1]))).ravel()
        _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
        number = number[first]
        own = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
        entry = np.repeat(starts[first] - own[:-1], number) + np.arange(own[-1])
        visited, time = place[entry], steps[entry] ** power * weight[place[entry]]
        of_kind = np.repeat(np.arange(len(first), dtype=np.int32), number)
        share = time / np.add.reduceat(time, own[:-1])[of_kind]
        order = np.lexsort((share, visited))
        there_begin = np.concatenate([[0], np.cumsum(np.bincount(visited, minlength=len(weight)))]).astype(np.int64)
        outermost = tracks[first, begin], tracks[first, end - 1]
        return cls(
            kind.ravel().astype(np.int64), own, visited, time, there_begin, of_kind[order], share[order], *outermost
        )

    @property
    def often(self) -> NDArray[np.int64]:
        """(kinds,) int64: how many segments are of each kind."""
        return np.bincount(self.kind, minlength=len(self.begin) - 1)


class _Links:
    """Who has which segment, while they are reassigned.

    Attributes
    ----------
    order
        (parts, people) int64: whose segment each person has in each part of the time.
    seam
        Price of a move at a cut.
    limits, scans
        How far to look for segments, and how often again; see `LIMITS`.
    """

    def __init__(
        self, parts: list[_Segments], order: NDArray[np.int64], xy: NDArray[np.float64], *, quick: bool
    ) -> None:
        self.parts, self.order, self.xy, self.seam = parts, order, xy, 0.0
        self.limits = QUICK_LIMITS if quick else LIMITS
        self.scans = QUICK_SCANS if quick else None
        # All kinds of all parts in one row.
        offset = np.cumsum([0, *(len(part.begin) - 1 for part in parts)])
        entries = np.cumsum([0, *(len(part.place) for part in parts)])
        self.kind = np.stack([part.kind + first for part, first in zip(parts, offset[:-1], strict=True)])
        self.has = self.kind.copy()
        self.begin = np.concatenate(
            [[0], *(part.begin[1:] + first for part, first in zip(parts, entries[:-1], strict=True))]
        )
        self.place = np.concatenate([part.place for part in parts])
        self.time = np.concatenate([part.time for part in parts])
        self.whole = np.add.reduceat(self.time, self.begin[:-1])
        self.entropy = _entropy(self.time, self.begin, self.whole)
        self.offset = offset
        self.prices: list[NDArray[np.float64] | None] = [None] * len(parts)

    def improve(self, part: int, stop: Callable[[], bool] | None) -> bool:
        """Reassign the segments of one part; tell whether that was better than before."""
        costs = _Divergences(self, part)
        own = self.has[part] - self.offset[part]
        people = len(own)
        if people <= DENSE_UP_TO:
            between = costs.all()[:, self.parts[part].kind[self.order[part]]]
            chosen = linear_sum_assignment(between)[1]
            before, after = float(np.trace(between)), float(between[np.arange(people), chosen].sum())
            if before - after > 1e-9 * people:
                self._give(part, self.order[part][chosen])
                return True
            return False
        prices = self.prices[part]
        steps = STEPS if prices is None else LATER_STEPS
        found = reassign(costs, own, self.parts[part].often, steps=steps, scans=self.scans, prices=prices, stop=stop)
        self.prices[part] = found.prices - found.prices.min()
        if costs.of(own).sum() - found.cost <= 1e-9 * people:
            return False
        # Who keeps a kind keeps the segment; the others are dealt in order.
        whose = np.where(found.columns == own, self.order[part], -1)
        kept = np.zeros(people, bool)
        kept[whose[whose >= 0]] = True
        left, free = np.flatnonzero(whose < 0), np.flatnonzero(~kept)
        left = left[np.argsort(found.columns[left], kind="stable")]
        whose[left] = free[np.argsort(self.parts[part].kind[free], kind="stable")]
        self._give(part, whose)
        return bool(len(left))

    def _give(self, part: int, whose: NDArray[np.int64]) -> None:
        self.order[part] = whose
        self.has[part] = self.kind[part][whose]


class _Divergences:
    """Costs of giving the segments of one part to people: divergences from the time of all their other segments."""

    def __init__(self, links: _Links, part: int) -> None:
        self.where, self.limits = (part, links.offset[part]), links.limits
        segments = links.parts[part]
        self.there = (segments.there_begin, segments.there, segments.share)
        self.kinds, self.places = len(segments.begin) - 1, len(segments.there_begin) - 1
        self.own = (links.has, links.begin, links.place, links.time, links.whole, links.entropy)
        nowhere = np.full(links.order.shape[1], -1, np.int32)
        before, after = nowhere, nowhere
        if part > 0:
            before = links.parts[part - 1].last[links.has[part - 1] - links.offset[part - 1]]
        if part < len(links.parts) - 1:
            after = links.parts[part + 1].first[links.has[part + 1] - links.offset[part + 1]]
        self.ends = (links.seam, before, after, segments.first, segments.last, links.xy)

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        columns = np.full((len(rows), LISTED), -1, np.int32)
        costs = np.full((len(rows), LISTED), np.inf)
        bound = np.empty(len(rows))
        by_price, equal = cheapest(prices, slack)

        def work(span: slice) -> None:
            _scan(
                span.start, rows[span], self.where, self.limits, self.own, self.there,
                self.ends, prices, by_price, equal, columns[span], costs[span], bound[span],
            )  # fmt: skip

        in_threads(work, len(rows), chunk=CHUNK)
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(_between(rows, columns, self.where, self.places, self.own, self.ends))

    def all(self) -> NDArray[np.float64]:
        """(people, kinds) float64: cost of giving each person a segment of each kind."""
        return np.asarray(_all(self.where[0], self.own, self.there, self.ends, self.kinds))

    def of(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """(people,) float64: cost of giving each person a segment of one kind."""
        costs = np.empty(len(columns))

        def work(span: slice) -> None:
            _each(span.start, columns[span], self.where, self.places, self.own, self.ends, costs[span])

        in_threads(work, len(columns), chunk=8 * CHUNK)
        return costs


@compiled()
def spend(
    tracks: NDArray[np.int32], lengths: NDArray[np.int64], places: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Steps that each row spends in each place it visits, by place: where the rows begin, places and steps."""
    people, ticks = tracks.shape
    begin = np.zeros(people + 1, np.int64)
    place = np.empty(people * ticks, np.int32)
    steps = np.empty(people * ticks, np.int64)
    spent = np.zeros(places, np.int64)
    size = 0
    for person in range(people):
        first = size
        for tick in range(ticks):
            here = tracks[person, tick]
            if spent[here] == 0:
                place[size] = here
                size += 1
            spent[here] += lengths[tick]
        place[first:size] = np.sort(place[first:size])
        for at in range(first, size):
            steps[at] = spent[place[at]]
            spent[place[at]] = 0
        begin[person + 1] = size
    return begin, place[:size].copy(), steps[:size].copy()


@compiled()
def _likeness(a: float, b: float) -> float:
    """What a place adds that takes the share a of one's time and b of the other's: bits."""
    return 0.5 / math.log(2.0) * ((a + b) * math.log(a + b) - a * math.log(a) - b * math.log(b))


@compiled()
def _seams(person, kind, ends):
    """Price the moves at both ends of a segment, if the person is given it."""
    price, before, after, first, last, xy = ends
    if price == 0.0:
        return 0.0
    return price * (_seam(before[person], first[kind], xy) + _seam(after[person], last[kind], xy))


@compiled()
def _seam(one, other, xy):
    """Price the way between two places, from 0 (the same, or there is nothing before or after) to 1."""
    if one < 0 or one == other:
        return 0.0
    distance = AWAY_DISTANCE
    if one < len(xy) and other < len(xy):
        distance = math.hypot(xy[one, 0] - xy[other, 0], xy[one, 1] - xy[other, 1])
    return min(1.0, 0.5 + distance / 20)


@compiled()
def _entropy(time, begin, whole):
    """B log b of the share b that each entry has of the time of its kind."""
    found = np.empty(len(time))
    for kind in range(len(whole)):
        for at in range(begin[kind], begin[kind + 1]):
            b = time[at] / whole[kind]
            found[at] = b * math.log(b)
    return found


@compiled()
def _others(person, part, own, shares, entropy, visited):
    """Add up a person's time in all other parts, as shares a of it, and a log a; gives how many places that makes."""
    has, begin, place, time = own[:4]
    size = 0
    total = 0.0
    for other in range(len(has)):
        if other != part:
            kind = has[other, person]
            for at in range(begin[kind], begin[kind + 1]):
                if shares[place[at]] == 0.0:
                    visited[size] = place[at]
                    size += 1
                shares[place[at]] += time[at]
                total += time[at]
    for one in range(size):
        a = shares[visited[one]] / total
        shares[visited[one]], entropy[visited[one]] = a, a * math.log(a)
    return size


@compiled()
def _likeness_of(kind, own, shares, entropy):
    """Likeness of a segment of one kind and of shares of time in each place."""
    _, begin, place, time, whole, of_entry = own
    like = 0.0
    for at in range(begin[kind], begin[kind + 1]):
        a = shares[place[at]]
        if a > 0.0:
            both = a + time[at] / whole[kind]
            like += both * math.log(both) - entropy[place[at]] - of_entry[at]
    return 0.5 / math.log(2.0) * like


@compiled()
def _scan(first, rows, where, limits, own, there, ends, prices, by_price, equal, columns, costs, bound):
    """List the segments that are most like the other time of each person."""
    part, offset = where
    main, crowd, most = limits
    there_begin, kinds_there, share = there
    size, places = len(prices), len(there_begin) - 1
    shares, entropy, visited = np.zeros(places), np.empty(places), np.empty(places, np.int64)
    like = np.zeros(size)
    met = np.zeros(size, np.bool_)
    found = np.empty(size, np.int64)
    cost = np.empty(size)
    value = np.empty(size)
    half = 0.5 / math.log(2.0)
    for at in range(len(rows)):
        known = np.int64(0)
        seen = _others(rows[at], part, own, shares, entropy, visited)
        whole = seen <= main
        least = 0.0 if whole else np.partition(shares[visited[:seen]], seen - main)[seen - main]
        for one in range(seen):
            place = visited[one]
            a, less = shares[place], entropy[place]
            if a < least:
                continue
            begin, end = there_begin[place], there_begin[place + 1]
            if end - begin > crowd:
                whole, begin = False, end - crowd
            b = alike = 0.0
            for entry in range(begin, end):
                kind = kinds_there[entry]
                if not met[kind]:
                    met[kind] = True
                    found[known] = kind
                    known += 1
                if share[entry] != b:  # many have the same
                    b = share[entry]
                    alike = half * ((a + b) * math.log(a + b) - less - b * math.log(b))
                like[kind] += alike
        limit = np.inf
        if not whole and known > most:
            for one in range(known):
                value[one] = prices[found[one]] - like[found[one]]
            limit = np.partition(value[:known], most)[most]
        kept = np.int64(0)
        for one in range(known):
            kind = found[one]
            if limit < np.inf and (value[one] > limit or kept == most):
                met[kind] = False
            else:
                found[kept] = kind
                alike = like[kind] if whole else _likeness_of(offset + kind, own, shares, entropy)
                cost[kept] = max(1.0 - alike, 0.0) + _seams(rows[at], kind, ends)
                kept += 1
            like[kind] = 0.0
        shares[visited[:seen]] = 0.0
        # Who shares no place with a segment is not where it begins or ends.
        apart = 1.0 + 0.5 * ends[0] * (int(ends[1][rows[at]] >= 0) + int(ends[2][rows[at]] >= 0))
        bound[at] = shortlist(
            first + at, kept, found, cost, met, apart, prices, by_price, equal, value, columns[at], costs[at]
        )


@compiled()
def _all(part, own, there, ends, kinds):
    """Cost of giving each person a segment of each kind: (people, kinds) float64."""
    there_begin, kinds_there, share = there
    people, places = own[0].shape[1], len(there_begin) - 1
    shares, entropy, visited = np.zeros(places), np.empty(places), np.empty(places, np.int64)
    costs = np.ones((people, kinds))
    for person in range(people):
        for place in visited[: _others(person, part, own, shares, entropy, visited)]:
            a = shares[place]
            shares[place] = 0.0
            for entry in range(there_begin[place], there_begin[place + 1]):
                costs[person, kinds_there[entry]] -= _likeness(a, share[entry])
        for kind in range(kinds):
            costs[person, kind] = max(costs[person, kind], 0.0) + _seams(person, kind, ends)
    return costs


@compiled()
def _between(rows, columns, where, places, own, ends):
    """Cost of giving some people a segment of some kinds: (rows, columns) float64."""
    part, offset = where
    shares, entropy, visited = np.zeros(places), np.empty(places), np.empty(places, np.int64)
    costs = np.empty((len(rows), len(columns)))
    for at in range(len(rows)):
        seen = _others(rows[at], part, own, shares, entropy, visited)
        for column in range(len(columns)):
            alike = _likeness_of(offset + columns[column], own, shares, entropy)
            costs[at, column] = max(1.0 - alike, 0.0) + _seams(rows[at], columns[column], ends)
        shares[visited[:seen]] = 0.0
    return costs


@compiled()
def _each(first, columns, where, places, own, ends, costs):
    """Cost of giving each person from the first on a segment of one kind."""
    part, offset = where
    shares, entropy, visited = np.zeros(places), np.empty(places), np.empty(places, np.int64)
    for at in range(len(columns)):
        seen = _others(first + at, part, own, shares, entropy, visited)
        cost = 1.0 - _likeness_of(offset + columns[at], own, shares, entropy)
        shares[visited[:seen]] = 0.0
        costs[at] = max(cost, 0.0) + _seams(first + at, columns[at], ends)
