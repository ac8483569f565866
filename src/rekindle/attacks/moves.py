"""How people move, learnt from traces: a model of moves and stays, and the move cost that it makes.

A model says how likely each next location is, given where a person has been since midnight and the time of day. The
counted one is here; the neural one is in `neural`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rekindle.attacks.costs import MoveContext
from rekindle.model import AWAY, Locations, Trajectories

HOURS = 24
PARTS = 8
"""Parts of a day in which destinations are counted."""
STAY_CLASSES = 12
"""Stays by the logarithm of their length in steps, as Habits has them."""
RINGS = 48
FEW_MOVES = 20.0
"""How many moves, or departures, the wider class counts for."""
SAMPLED = 256
"""Locations from which it is measured how many others there are at each distance."""
LEAST = 1e-9


class MoveModel(Protocol):
    """What a model of moves and stays says."""

    def next_location(self, today: Today, departs: datetime) -> NDArray[np.float64]:
        """Log chance of each next location: (rows, locations) float64. Nobody of the rows is away."""
        ...

    def moves(self) -> sparse.csr_array:
        """About how many moves lead from a location to another, in the traces or for as many: (locations, locations)."""
        ...

    def stays(self) -> NDArray[np.float64]:
        """About how many stays have each length, in the traces or for as many: (STAY_CLASSES,) float64."""
        ...


@dataclass(frozen=True, eq=False)
class Today:
    """Where rows have been since midnight, or since the day began.

    Attributes
    ----------
    cells
        (rows, steps so far) int32 location indices, `AWAY` where somebody was not counted; the last is where they are.
    """

    cells: NDArray[np.int32]

    @property
    def current(self) -> NDArray[np.int32]:
        """(rows,) int32: where they are."""
        return self.cells[:, -1]

    def stay(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """How many steps they have been there, and where they were before, `AWAY` where that is not known: two (rows,)."""
        moved = self.cells != self.cells[:, -1:]
        ever = moved.any(axis=1)
        last = np.where(ever, self.cells.shape[1] - 1 - moved[:, ::-1].argmax(axis=1), 0)
        before = np.where(ever, self.cells[np.arange(len(last)), last], AWAY)
        return np.where(ever, self.cells.shape[1] - 1 - last, self.cells.shape[1]), before


def stay_class(steps: NDArray[np.integer]) -> NDArray[np.int64]:
    """The class of stays by their length in steps: (stays,) int64."""
    return np.asarray(np.minimum(np.log2(np.maximum(steps, 1)), STAY_CLASSES - 1), np.int64)


def seconds_of_day(time: datetime) -> int:
    """Seconds since midnight."""
    return time.hour * 3600 + time.minute * 60 + time.second


def days_of(traces: Trajectories) -> list[tuple[int, NDArray[np.integer]]]:
    """The traces by day: the second of the day at which it begins, and (people, steps) cells."""
    calendar = traces.calendar
    return [(seconds_of_day(calendar.time(day.start)), traces.cells[:, day]) for day in calendar.days()]


@dataclass(frozen=True, eq=False)
class CountedMoves:
    """Moves and stays, counted by the hour, with few counts shrunk towards those of a wider class.

    The chance to leave depends on how long the stay has lasted and on the hour, times a factor of the location. The
    destination depends on the location and the part of the day, shrunk towards that of the whole day, and that towards
    the distance alone. A share of the moves goes back to where the person came from.

    Attributes
    ----------
    locations
        The locations.
    leave
        (STAY_CLASSES, HOURS) float64: chance to leave within a step.
    factor
        (locations,) float64: how much more often people leave a location than others.
    by_ring
        (RINGS,) float64: moves to a location, by the logarithm of its distance.
    unit_km
        The smallest distance between two locations, km.
    by_part
        Moves by part of the day, each (locations, locations) float64, sparse. The moves of one person from a location count
        for fewer the more there are: habits of one are not habits of all.
    total
        The same for the whole day.
    back
        Share of the moves that go back.
    away
        What it costs to leave for away, or to return: minus the log of their chance within a step.
    stay_lengths
        (STAY_CLASSES,) float64: how many stays have each length.
    """

    locations: Locations
    leave: NDArray[np.float64]
    factor: NDArray[np.float64]
    by_ring: NDArray[np.float64]
    unit_km: float
    by_part: tuple[sparse.csr_array, ...]
    total: sparse.csr_array
    back: float
    away: float
    stay_lengths: NDArray[np.float64]

    @classmethod
    def learn(cls, traces: Trajectories) -> Self:
        """Count the moves and stays of traces, within each day."""
        places, step = len(traces.locations), traces.calendar.step.total_seconds()
        left, exposed = np.zeros((STAY_CLASSES, HOURS)), np.zeros((STAY_CLASSES, HOURS))
        here: list[
            NDArray[np.int64]
        ] = []  # location, class of the stay and hour of each point from which a step goes on
        gone: list[NDArray[np.int64]] = []  # the same, of those who leave
        moves: list[NDArray[np.int64]] = []  # person, origin, destination, part of the day
        backs, known_backs, aways, points, returns, absences = 0, 0, 0, 0, 0, 0
        lengths = np.zeros(STAY_CLASSES)
        for begin, cells in days_of(traces):
            lasted, before = _stays_so_far(cells)
            now, then = cells[:, :-1], cells[:, 1:]
            clock = begin + step * np.arange(now.shape[1])
            hour = np.broadcast_to((clock // 3600).astype(np.int64) % HOURS, now.shape)
            part = hour * PARTS // HOURS
            counted, moved = now != AWAY, now != then
            kind = stay_class(lasted[:, :-1])
            here.append(np.stack([now[counted], kind[counted], hour[counted]]).astype(np.int64))
            off = counted & moved
            gone.append(np.stack([now[off], kind[off], hour[off]]).astype(np.int64))
            inside = off & (then != AWAY)
            moves.append(np.stack([np.nonzero(inside)[0], now[inside], then[inside], part[inside]]).astype(np.int64))
            lengths += np.bincount(kind[off], minlength=STAY_CLASSES)
            came = before[:, :-1][inside]
            backs += int((came == then[inside]).sum())
            known_backs += int((came != AWAY).sum())
            aways, points = aways + int((counted & (then == AWAY)).sum()), points + int(counted.sum())
            returns, absences = returns + int((~counted & moved).sum()), absences + int((~counted).sum())
        place, kind, hour = np.concatenate(here, axis=1)
        place_left, kind_left, hour_left = np.concatenate(gone, axis=1)
        np.add.at(exposed, (kind, hour), 1.0)
        np.add.at(left, (kind_left, hour_left), 1.0)
        overall = np.array((left.sum() + 1.0) / (exposed.sum() + 86400 / step))
        by_kind = _shrunk(left.sum(axis=1), exposed.sum(axis=1), overall)
        leave = _shrunk(left, exposed, by_kind[:, None])
        expected = np.bincount(place, leave[kind, hour], places)
        factor = (np.bincount(place_left, minlength=places) + FEW_MOVES) / (expected + FEW_MOVES)
        person, origin, goal, part = np.concatenate(moves, axis=1)
        unit, xy = traces.locations.spacing_km or 1.0, traces.locations.xy_km
        apart = np.hypot(*(xy[goal] - xy[origin]).T)
        some = np.unique(origin)[:: max(1, len(np.unique(origin)) // SAMPLED)]
        ring = _ring(traces.locations.distances_from(xy[some]), unit)
        by_ring = np.bincount(_ring(apart, unit), minlength=RINGS) + 0.01
        available = np.bincount(ring.ravel(), minlength=RINGS) / max(1, len(some))
        by_part = [_moves(person, origin, goal, part == at, places) for at in range(PARTS)]
        rates = [(aways + 1) / (points + 86400 / step), (returns + 1) / (absences + 2)]
        return cls(
            traces.locations,
            leave,
            factor,
            by_ring / np.maximum(available, 1.0),
            unit,
            tuple(by_part),
            _moves(person, origin, goal, np.ones(len(person), bool), places),
            (backs + 1) / (known_backs + 2),
            float(-np.log(rates).mean()),
            lengths,
        )

    def next_location(self, today: Today, departs: datetime) -> NDArray[np.float64]:
        """Log chance of each next location: (rows, locations) float64."""
        current = today.current
        lasted, before = today.stay()
        clock = seconds_of_day(departs)
        leave = np.clip(
            self.leave[stay_class(lasted), clock // 3600 % HOURS] * self.factor[current], LEAST, 1 - LEAST
        )
        origins, row = np.unique(current, return_inverse=True)
        chance = self._destinations(origins, clock // 3600 * PARTS // HOURS % PARTS)[row]
        rows = np.flatnonzero(before != AWAY)
        chance[rows] *= 1 - self.back
        chance[rows, before[rows]] += self.back
        chance *= leave[:, None]
        chance[np.arange(len(current)), current] = 1 - leave
        return np.asarray(np.log(np.maximum(chance, LEAST)))

    def _destinations(self, origins: NDArray[np.integer], part: int) -> NDArray[np.float64]:
        """Chance of each destination of those who leave: (origins, locations) float64."""
        apart = self.locations.distances_from(self.locations.xy_km[origins])
        chance = self.by_ring[_ring(apart, self.unit_km)]
        chance[np.arange(len(origins)), origins] = 0.0
        chance /= np.maximum(chance.sum(axis=1, keepdims=True), LEAST)
        for counted in (self.total[origins], self.by_part[part][origins]):
            seen = counted.toarray()
            chance = (seen + FEW_MOVES * chance) / (seen.sum(axis=1, keepdims=True) + FEW_MOVES)
        return np.asarray(chance)

    def moves(self) -> sparse.csr_array:
        """How many moves lead from a location to another: (locations, locations) float64, sparse."""
        return self.total

    def stays(self) -> NDArray[np.float64]:
        """How many stays have each length: (STAY_CLASSES,) float64."""
        return self.stay_lengths


@dataclass(frozen=True, eq=False)
class LearntMoves:
    """A move cost: minus the log chance that a model gives to each next location.

    Attributes
    ----------
    model
        The model.
    looks_back
        That it asks where everyone has been since midnight: everyone is priced, not everyone's two last locations.
    """

    looks_back: ClassVar[bool] = True
    remembers: ClassVar[bool] = False

    model: MoveModel

    def __call__(
        self, previous: NDArray[np.int32], current: NDArray[np.int32], context: MoveContext
    ) -> NDArray[np.float64]:
        """Price the moves of everyone to every location: (rows, locations) float64, nats."""
        cells = np.column_stack([previous, current]) if context.today is None else context.today
        return -self.model.next_location(Today(cells), context.departs)

    @property
    def away(self) -> float:
        """What it costs to leave for away or to return, nats."""
        return float(getattr(self.model, "away", -np.log(LEAST)))


def _stays_so_far(cells: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """How many steps everyone has been where they are, and where they were before, `AWAY` where unknown: (people, steps)."""
    steps = np.arange(cells.shape[1])
    begins = np.ones(cells.shape, bool)
    begins[:, 1:] = cells[:, 1:] != cells[:, :-1]
    since = np.maximum.accumulate(np.where(begins, steps, 0), axis=1)
    before = np.take_along_axis(cells, np.maximum(since - 1, 0), axis=1)
    return steps - since + 1, np.where(since > 0, before, AWAY)


def _moves(
    person: NDArray[np.int64],
    origin: NDArray[np.int64],
    goal: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    places: int,
) -> sparse.csr_array:
    """Count moves, n of a person from a location as log2(1 + n): (locations, locations) float64, sparse."""
    origin, goal = origin[chosen], goal[chosen]
    _, of, often = np.unique(person[chosen] * places + origin, return_inverse=True, return_counts=True)
    return sparse.csr_array((np.log2(1.0 + often[of]) / often[of], (origin, goal)), shape=(places, places))


def _shrunk(
    events: NDArray[np.float64], exposure: NDArray[np.float64], wider: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray((events + FEW_MOVES) / (exposure + FEW_MOVES / wider))


def _ring(apart: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    """The class of distances by their logarithm."""
    return np.asarray(np.clip(np.rint(3 * np.log2(np.maximum(apart / unit, 0.5))) + 3, 0, RINGS - 1), np.int64)
