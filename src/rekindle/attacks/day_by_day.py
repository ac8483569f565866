"""The paper's machine: recover a day, link it to the days before, remember.

Both attacks of the paper are settings of it. Its order of computation is the enhanced attack's (section "Order of
computation"), which gives the baseline the same result as its three stages, and lets both run online.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rekindle.attacks.assignment.plain import step_to_targets, step_with_costs
from rekindle.attacks.base import Attack, Progress, Recovery, Run
from rekindle.attacks.costs import MoveCost, Situation, Stay, TargetCost, popular_places
from rekindle.attacks.linking import InformationGain, LinkingCost, link
from rekindle.attacks.state import SavedRun, write_run
from rekindle.errors import InvalidSetting, Stopped
from rekindle.model import Calendar, Counts, Locations, Trajectories

__all__ = ["DayByDay", "DayByDayRun"]


@dataclass(frozen=True, kw_only=True)
class DayByDay(Attack):
    """Recover each day from its own counts, then link it to the days before.

    Parameters
    ----------
    first
        Cost of the first transition of a day.
    night
        Cost of the other transitions that depart before 06:00.
    day
        Cost of the rest.
    linking
        Cost of continuing a person with one of today's rows.
    lookback_days
        How many days to look back for the link; it costs the least of them.
    seed
        None: interchangeable people are listed by the place they begin the day in, and places by their index. A whole
        number: both orders are shuffled anew each day. Ties are everywhere, so several seeds show the spread they make.
    """

    first: MoveCost = Stay()
    night: MoveCost = Stay()
    day: MoveCost = Stay()
    linking: LinkingCost = InformationGain()
    lookback_days: int = 1
    seed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.lookback_days, int) or self.lookback_days < 1:
            raise InvalidSetting(f"lookback_days is {self.lookback_days!r}; it must be a whole number of at least 1.")
        if self.seed is not None and (not isinstance(self.seed, int) or self.seed < 0):
            raise InvalidSetting(f"seed is {self.seed!r}; it must be a whole number, not negative, or None.")
        for name in ("first", "night", "day", "linking"):
            if not callable(getattr(self, name)) or isinstance(getattr(self, name), type):
                raise InvalidSetting(f"{name} is {getattr(self, name)!r}; it must be a cost object, such as Stay().")

    def start(
        self, locations: Locations, calendar: Calendar, *, people: int, progress: Progress | None = None
    ) -> DayByDayRun:
        """Begin an online run."""
        return DayByDayRun(self, locations, calendar, people, progress)


@dataclass(frozen=True)
class Day:
    """One finished day.

    Attributes
    ----------
    cells
        (people, steps) int32 location indices, in the order of the people.
    step_costs
        (steps,) float64 cost of each transition, NaN first.
    link_cost
        Cost of the link to the days before, NaN for the first day.
    gap
        Largest proven gap of its steps and its link.
    """

    cells: NDArray[np.int32]
    step_costs: NDArray[np.float64]
    link_cost: float
    gap: float


class DayByDayRun(Run):
    """A run of the machine. Finished days are never changed, so another thread may read them at any time.

    Attributes
    ----------
    transitions
        The paper's B: (locations, locations) int64, sparse, how often one place was predicted to follow another.
    """

    attack: DayByDay

    def __init__(
        self, attack: DayByDay, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        self._days: list[Day] = []
        self.transitions = sparse.csr_array((len(locations),) * 2, dtype=np.int64)

    @property
    def days_done(self) -> int:
        """How many days are finished."""
        return len(self._days)

    @property
    def steps_done(self) -> int:
        """How many steps the finished days have."""
        return sum(day.cells.shape[1] for day in list(self._days))

    def _take(self, counts: Counts) -> None:
        for day in counts.calendar.days():
            self._add(self._recover_day(counts.values[day]))
            self._report()

    def _add(self, day: Day) -> None:
        """Remember a finished day: first the transitions B, the step across midnight included, then the day itself."""
        cells = day.cells
        if self._days:
            cells = np.concatenate([self._days[-1].cells[:, -1:], cells], axis=1)
        size = len(self.locations)
        index, frequency = np.unique(
            cells[:, :-1].astype(np.int64).ravel() * size + cells[:, 1:].ravel(), return_counts=True
        )
        seen = sparse.csr_array((frequency, (index // size, index % size)), shape=(size, size), dtype=np.int64)
        day.cells.flags.writeable = False
        self.transitions = self.transitions + seen
        self._days.append(day)

    def _recover_day(self, counts: NDArray[np.integer]) -> Day:
        """Recover the next day and link it."""
        places = np.arange(len(self.locations))
        rows = np.arange(self.people)
        if self.attack.seed is not None:
            order = np.random.default_rng([self.attack.seed, self.days_done])
            places, rows = order.permutation(len(places)), order.permutation(len(rows))
        # From here to the end of the steps, places are numbered in the order in which they are listed.
        listed = np.ascontiguousarray(counts[:, places]).astype(np.int64)
        start = np.repeat(np.arange(len(places), dtype=np.int32), listed[0])[rows]
        cells, costs, gap = Steps(self, places).recover(listed, start)
        cells = places.astype(np.int32)[cells]
        link_cost = np.nan
        if self._days:
            past = [day.cells for day in self._days[-self.attack.lookback_days :]]
            found = link(self.attack.linking, past, cells, len(places))
            cells, link_cost, gap = cells[found.order], found.cost, max(gap, found.gap)
        return Day(cells, costs, link_cost, gap)

    def recovery(self) -> Recovery:
        """All that is known of the whole days so far."""
        return self._recovery(list(self._days))

    def _recovery(self, days: list[Day]) -> Recovery:
        cells = np.concatenate([np.empty((self.people, 0), np.int32), *(day.cells for day in days)], axis=1)
        return Recovery(
            Trajectories(cells, self.locations, self.calendar.closed_at(cells.shape[1])),
            self.attack,
            np.concatenate([np.empty(0), *(day.step_costs for day in days)]),
            np.array([day.link_cost for day in days]),
            max((day.gap for day in days), default=0.0),
        )

    def save(self, path: str | Path) -> None:
        """Write the days so far to a file, whole or not at all, for `resume`."""
        days = list(self._days)
        found = self._recovery(days)
        arrays = {
            "cells": found.trajectories.cells,
            "step_costs": found.step_costs,
            "link_costs": found.link_costs,
            "gaps": np.array([day.gap for day in days]),
        }
        attack = self.attack
        name, settings = type(attack).__name__, attack.settings()
        write_run(path, SavedRun(name, settings, self.locations, self.calendar, self.people, arrays))

    def restore(self, saved: SavedRun) -> None:
        """Take the finished days of an earlier run of the same attack."""
        arrays = saved.arrays
        cells = Trajectories(arrays["cells"], self.locations, self.calendar.closed_at(arrays["cells"].shape[1]))
        for number, day in enumerate(cells.calendar.days()):
            self._add(
                Day(
                    np.array(cells.cells[:, day], dtype=np.int32),
                    arrays["step_costs"][day],
                    float(arrays["link_costs"][number]),
                    float(arrays["gaps"][number]),
                )
            )


class Steps:
    """The steps of one day, with places numbered in the order in which they are listed."""

    def __init__(self, run: DayByDayRun, places: NDArray[np.int64]) -> None:
        self.run, self.places, self.begin = run, places, run.steps_done
        self.night = run.calendar.night_steps(self.begin)
        self.xy_km = run.locations.xy_km[places]

    @cached_property
    def distances(self) -> NDArray[np.float64]:
        return self.run.locations.distances[np.ix_(self.places, self.places)]

    @cached_property
    def popular(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return popular_places(sparse.csr_array(self.run.transitions[self.places][:, self.places]))

    def cost_of(self, step: int) -> MoveCost:
        """The cost of the transition that departs at a step of the day."""
        attack = self.run.attack
        return attack.first if step == 0 else attack.night if step < self.night else attack.day

    def recover(
        self, counts: NDArray[np.int64], start: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], float]:
        """Move everyone through the day: (people, steps) places, (steps,) costs and the largest gap."""
        cells = np.empty((len(start), len(counts)), dtype=np.int32)
        costs = np.full(len(counts), np.nan)
        cells[:, 0] = start
        for step in range(len(counts) - 1):
            if self.run.stopped:
                raise Stopped("The run was stopped.")
            cells[:, step + 1], costs[step + 1] = self.move(
                step, cells[:, max(0, step - 1)], cells[:, step], counts[step + 1]
            )
        return cells, costs, 0.0

    def move(
        self, step: int, previous: NDArray[np.int32], current: NDArray[np.int32], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], float]:
        """Make one transition."""
        cost = self.cost_of(step)
        if isinstance(cost, TargetCost):
            popular = self.popular if cost.remembers else None
            origin = previous if cost.extrapolates else None
            return step_to_targets(origin, current, counts, self.xy_km, self.distances, popular)
        run, places = self.run, self.places.astype(np.int32)
        situation = Situation(run.locations, run.calendar.time(self.begin + step), run.transitions)
        return step_with_costs(
            previous, current, counts, lambda o, p: cost(places[o], places[p], situation), self.places
        )
