"""The counts as the parts of the attack see them: only places that were ever used, only moments at which counts change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.flows import Windows
from rekindle.attacks.habits.flows import TickFlows
from rekindle.errors import InvalidData
from rekindle.model import AWAY, Calendar, Locations

SAMPLES_PER_DAY = 24
BINS_PER_DAY = 8
NEAR = 256
"""How many of the nearest places are kept for each place."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Counts without what cannot tell anything.

    A tick is a range of steps with the same counts throughout. Nobody is taken to move within one. Where somebody is ever
    away, that is one more place, the last; it has no centre.

    Attributes
    ----------
    counts
        (ticks, places) int64: people per place that was ever used. Every row adds up to all people.
    places
        (places,) int64: their location indices; `AWAY` for people who are away.
    xy
        (places, 2) float64: their centres, in units of the smallest distance between two of them; not that of away.
    starts
        (ticks + 1,) int64: the first step of each tick; the last entry is the number of steps.
    samples
        (ticks + 1,) int64: the first sample of each tick. Samples are taken about every hour.
    bins
        (samples,) int64: the part of the day of each sample, of `BINS_PER_DAY`.
    steps_per_day
        Steps in a day.
    clock
        (ticks,) float64: time of day at the middle of each tick, hours.
    flows
        How many people go where from tick to tick; None where that is not known. Where it is, a tick is a range of steps in
        which nobody moves.
    """

    counts: NDArray[np.int64]
    places: NDArray[np.int64]
    xy: NDArray[np.float64]
    starts: NDArray[np.int64]
    samples: NDArray[np.int64]
    bins: NDArray[np.int64]
    steps_per_day: int
    clock: NDArray[np.float64]
    flows: TickFlows | None = None

    @classmethod
    def of(
        cls,
        counts: NDArray[np.integer],
        locations: Locations,
        calendar: Calendar,
        people: int | None = None,
        windows: Windows | None = None,
    ) -> Problem:
        """Reduce (steps, locations) counts of so many people, by default as many as the largest total, and their flows."""
        steps = len(counts)
        places = np.flatnonzero(counts.any(axis=0))
        used = np.ascontiguousarray(counts[:, places], dtype=np.int64)
        if windows is None:
            changes = np.flatnonzero((used[1:] != used[:-1]).any(axis=1)) + 1
        else:
            changes = TickFlows.moments(windows)
        starts = np.concatenate([[0], changes, [steps]]).astype(np.int64)
        xy = locations.xy_km[places]
        totals = used.sum(axis=1)
        away = (totals.max() if people is None else people) - totals
        if away.any():
            places = np.append(places, AWAY)
            used = np.column_stack([used, away])
        per_day = calendar.steps_per_day
        first = per_day - calendar.first_day_steps
        every = max(1, per_day // SAMPLES_PER_DAY)
        sampled = np.arange(every // 2, steps, every)
        time_of_day = (first + sampled) % per_day
        middle = (starts[:-1] + starts[1:] - 1) / 2
        flows = None if windows is None else TickFlows.of(windows, places, len(locations), int(used[0].sum()))
        return cls(
            used[starts[:-1]],
            places,
            xy / spacing(xy),
            starts,
            np.searchsorted(sampled, starts).astype(np.int64),
            (time_of_day * BINS_PER_DAY // per_day).astype(np.int64),
            per_day,
            (first + middle) % per_day * (24.0 / per_day),
            flows,
        )

    @property
    def people(self) -> int:
        """How many people there are in all."""
        return int(self.counts[0].sum())

    @property
    def away(self) -> int:
        """The place of people who are away, the last; -1 where nobody ever is."""
        return len(self.xy) if len(self.places) > len(self.xy) else -1

    @property
    def ticks(self) -> int:
        """How many ticks there are."""
        return len(self.counts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(ticks,) int64: steps of each tick."""
        return np.diff(self.starts)

    @cached_property
    def near(self) -> NDArray[np.int32]:
        """(places, listed) int32: the nearest places of each place, itself first; away is none of them."""
        listed = min(len(self.xy), NEAR)
        found = np.empty((len(self.xy), listed), np.int32)
        for place, centre in enumerate(self.xy):
            gap = self.xy - centre
            found[place] = np.argsort(np.hypot(gap[:, 0], gap[:, 1]), kind="stable")[:listed]
        return found

    def expand(self, tracks: NDArray[np.integer]) -> NDArray[np.int32]:
        """Turn (people, ticks) places into (people, steps) location indices, or `AWAY`."""
        return np.repeat(self.places.astype(np.int32)[tracks], self.lengths, axis=1)

    def check(self, tracks: NDArray[np.integer], *, counts_only: bool = False) -> None:
        """Refuse tracks that do not have these counts and, unless `counts_only`, these flows."""
        people, ticks, places = self.people, self.ticks, self.counts.shape[1]
        if tracks.shape != (people, ticks) or tracks.min() < 0 or tracks.max() >= places:
            raise InvalidData(f"tracks of shape {tracks.shape} do not fit {people} people and {ticks} ticks")
        if not np.array_equal(count(np.ascontiguousarray(tracks), places), self.counts):
            raise InvalidData("tracks do not have the counts that they should")
        if self.flows is not None and not counts_only:
            self.flows.check(tracks)

    def distances(self) -> NDArray[np.float64]:
        """(centres, centres) float64 distances between all places but away, in units of the smallest."""
        gap = self.xy[:, None] - self.xy
        return np.asarray(np.hypot(gap[..., 0], gap[..., 1]))


def spacing(xy: NDArray[np.float64]) -> float:
    """Give the smallest distance between two different centres; 1 where there is only one."""
    least = np.inf
    order = xy[np.argsort(xy[:, 0], kind="stable")]
    for later in range(1, len(order)):
        gap = order[later:] - order[:-later]
        if gap[:, 0].min() > least:
            break
        distance = np.hypot(gap[:, 0], gap[:, 1])
        distance = distance[distance > 0]
        if len(distance):
            least = min(least, float(distance.min()))
    return least if np.isfinite(least) else 1.0


def count(tracks: NDArray[np.integer], places: int) -> NDArray[np.int64]:
    """Count the people in each place at each tick: (ticks, places) int64."""
    ticks = tracks.shape[1]
    index = tracks.astype(np.int64) + np.arange(ticks) * places
    return np.bincount(index.ravel(), minlength=ticks * places).reshape(ticks, places)
