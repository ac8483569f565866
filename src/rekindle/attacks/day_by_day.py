"""The paper's machine: recover a day, link it to the days before, remember.

Both attacks of the paper are settings of it. Its order of computation is the enhanced attack's (section "Order of
computation"), which gives the baseline the same result as its three stages, and lets both run online.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from scipy import sparse

from rekindle.assignment.plain import step_to_targets, step_with_costs
from rekindle.attacks.base import Attack, Progress, Recovery, Run
from rekindle.attacks.costs import MoveContext, MoveCost, Stay, is_target_cost, popular_places
from rekindle.attacks.linking import InformationGain, LinkingCost, link
from rekindle.attacks.saving import SavedRun, write_run
from rekindle.errors import InvalidSetting, Stopped
from rekindle.model import Calendar, Counts, Locations, Trajectories
from rekindle.model.calendar import NIGHT_END

__all__ = ["DayByDay", "DayByDayRun"]

LARGE_DAY = 1_000_000
DENSE_LINK = 3_000
ROUNDING = 1e-9

SMALL_DAY = 12_000
"""People x steps a day up to which plain numpy is quicker than loading the compiled kernels."""


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
    first_step_counts
        ``"each_day"``: each day begins with its own counts, as in the paper's text. ``"first_day"``: every day begins with
        the counts of the very first step, as in the published code of the enhanced attack; only for comparison, because
        the first step of each later day then does not meet the counts. All other steps do.
    workers
        Over how many threads the days of one feed are spread, where no cost looks at the days before; None for all
        cores. It changes nothing but the time.
    """

    first: MoveCost = Stay()
    night: MoveCost = Stay()
    day: MoveCost = Stay()
    linking: LinkingCost = InformationGain()
    lookback_days: int = 1
    seed: int | None = None
    first_step_counts: Literal["each_day", "first_day"] = "each_day"
    workers: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.lookback_days, int) or self.lookback_days < 1:
            raise InvalidSetting(f"lookback_days is {self.lookback_days!r}; it must be a whole number of at least 1.")
        if self.seed is not None and (not isinstance(self.seed, int) or self.seed < 0):
            raise InvalidSetting(f"seed is {self.seed!r}; it must be a whole number, not negative, or None.")
        if self.first_step_counts not in ("each_day", "first_day"):
            raise InvalidSetting(
                f"first_step_counts is {self.first_step_counts!r}; it must be 'each_day' or 'first_day'."
            )
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise InvalidSetting(f"workers is {self.workers!r}; it must be a whole number of at least 1, or None.")
        for name in ("first", "night", "day", "linking"):
            if not callable(getattr(self, name)) or isinstance(getattr(self, name), type):
                raise InvalidSetting(f"{name} is {getattr(self, name)!r}; it must be a cost object, such as Stay().")

    @property
    def remembers(self) -> bool:
        """Whether a day depends on those before it, other than by its link."""
        return any(getattr(cost, "remembers", True) for cost in (self.first, self.night, self.day))

    def memory_bytes(self, counts: Counts) -> int:
        """About how much memory `recover` needs; a link takes a square of the people up to a size, and a list beyond."""
        people = counts.people
        link = 24 * people**2 if people <= DENSE_LINK or type(self.linking) is not InformationGain else 8_000 * people
        return super().memory_bytes(counts) + link

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
        days = list(counts.calendar.days())
        size = self._days_at_once() if len(days) > 1 else 1
        seeds = self._seeds(counts)
        for begin in range(0, len(days), size):
            done = self.days_done
            tasks = [
                self._task(
                    counts.values[day] if seeds is None else np.vstack([seeds, counts.values[day][1:]]), done + at
                )
                for at, day in enumerate(days[begin : begin + size])
            ]
            if size == 1:
                found = [task.recover() for task in tasks]
            else:
                # The days do not need each other until they are linked. The kernels leave Python to the other threads.
                found = Parallel(n_jobs=self.attack.workers or -1, prefer="threads")(
                    map(delayed(DayTask.recover), tasks)
                )
            for cells, costs, gap in found:
                if self.stopped:
                    raise Stopped("The run was stopped.")
                self._add(self._linked(cells, costs, gap))
                self._report()

    def _seeds(self, counts: Counts) -> NDArray[np.integer] | None:
        """(locations,) counts that every day begins with; None where each begins with its own."""
        if self.attack.first_step_counts == "each_day":
            return None
        return (
            np.bincount(self._days[0].cells[:, 0], minlength=len(self.locations)) if self._days else counts.values[0]
        )

    def _days_at_once(self) -> int:
        """How many days to recover side by side before they are linked: few large ones, so that little is lost."""
        workers = self.attack.workers or cpu_count()
        if self.attack.remembers or not self.compiled or workers == 1:
            return 1
        return workers * max(1, LARGE_DAY // (self.people * self.calendar.steps_per_day))

    @property
    def compiled(self) -> bool:
        """Whether the days are large enough to be worth a compiled kernel, which takes a moment to load."""
        return self.people * self.calendar.steps_per_day > SMALL_DAY

    def _task(self, counts: NDArray[np.integer], number: int) -> DayTask:
        return DayTask(
            self.attack,
            self.locations,
            self.calendar.time(self.calendar.day(number).start),
            self.calendar.step,
            counts,
            number,
            self.transitions,
            self.compiled,
            StopFlag(self._stop),
        )

    def _linked(self, cells: NDArray[np.int32], costs: NDArray[np.float64], gap: float) -> Day:
        """Put the rows of the next day in the order of the people."""
        link_cost = np.nan
        if self._days:
            past = [day.cells for day in self._days[-self.attack.lookback_days :]]
            places = len(self.locations)
            found = link(self.attack.linking, past, cells, places, compiled=self.compiled, stop=self._stop.is_set)
            cells, link_cost, gap = cells[found.order], found.cost, max(gap, found.gap)
        return Day(cells, costs, link_cost, gap)

    def _add(self, day: Day) -> None:
        """Remember a finished day: first the transitions B, the step across midnight included, then the day itself."""
        if self.attack.remembers:
            yesterday = [self._days[-1].cells[:, -1:]] if self._days else []
            self.transitions = self.transitions + count_transitions(
                np.concatenate([*yesterday, day.cells], axis=1), len(self.locations)
            )
        day.cells.flags.writeable = False
        self._days.append(day)

    def recovery(self) -> Recovery:
        """All that is known of the whole days so far."""
        return self._recovery(list(self._days))

    def day(self, number: int) -> Recovery:
        """What is known of one finished day alone; the others are not copied."""
        found = self._recovery([self._days[number]])
        calendar = self.calendar.closed_at(self.steps_done).part(self.calendar.day(number))
        return dataclasses.replace(
            found, trajectories=Trajectories(found.trajectories.cells, self.locations, calendar)
        )

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


def count_transitions(cells: NDArray[np.int32], locations: int) -> sparse.csr_array:
    """Count how often each place follows another: (locations, locations) int64, sparse."""
    index = cells[:, :-1].astype(np.int64).ravel() * locations + cells[:, 1:].ravel()
    if locations**2 <= 8 * index.size:
        frequency = np.bincount(index, minlength=locations**2)
        index = np.flatnonzero(frequency)
        frequency = frequency[index]
    else:
        index, frequency = np.unique(index, return_counts=True)
    shape = (locations, locations)
    return sparse.csr_array((frequency, (index // locations, index % locations)), shape=shape, dtype=np.int64)


class StopFlag:
    """Whether a run was stopped; in another process, where the run is not, it never was."""

    def __init__(self, event: threading.Event | None = None) -> None:
        self.event = event

    def __call__(self) -> bool:
        return self.event is not None and self.event.is_set()

    def __reduce__(self) -> tuple[type[StopFlag], tuple[()]]:
        return StopFlag, ()


@dataclass(frozen=True, eq=False)
class DayTask:
    """All that the steps of one day depend on."""

    attack: DayByDay
    locations: Locations
    start: datetime
    step: timedelta
    counts: NDArray[np.integer]
    number: int
    transitions: sparse.csr_array
    compiled: bool
    stop: StopFlag

    def recover(self) -> tuple[NDArray[np.int32], NDArray[np.float64], float]:
        """Recover the day, not linked yet: (people, steps) places, (steps,) costs and the largest gap."""
        attack, places, counts = self.attack, np.arange(len(self.locations)), self.counts
        first = np.repeat(np.arange(len(places), dtype=np.int32), counts[0])
        if attack.seed is not None:
            order = np.random.default_rng([attack.seed, self.number])
            places = order.permutation(places)
            counts = counts[:, places]
            first = order.permutation(np.repeat(np.arange(len(places), dtype=np.int32), counts[0]))
        # From here on, places are numbered in the order in which they are listed.
        listed = np.ascontiguousarray(counts, dtype=np.int64)
        costs = self._costs(len(counts) - 1)
        if self.compiled and all(is_target_cost(cost) for cost in (attack.first, attack.night, attack.day)):
            cells, totals, gap = self._recover_compiled(listed, first, costs, places)
        else:
            cells, totals, gap = self._recover_plain(listed, first, costs, places)
        if attack.seed is not None:
            cells = places.astype(np.int32)[cells]
        return cells, np.concatenate([[np.nan], totals]), gap

    def _costs(self, transitions: int) -> list[MoveCost]:
        """The cost of each transition of the day, by the time at which it departs."""
        six = self.start.replace(hour=0, minute=0, second=0) + NIGHT_END
        at_night = max(0, -((self.start - six) // self.step))
        attack = self.attack
        return [attack.first, *[attack.night] * (at_night - 1), *[attack.day] * transitions][:transitions]

    def _popular(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return popular_places(sparse.csr_array(self.transitions[places][:, places]))

    def _recover_compiled(
        self, counts: NDArray[np.int64], first: NDArray[np.int32], costs: list[MoveCost], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], float]:
        from rekindle.assignment.steps import EXTRAPOLATE, POPULAR, recover_day  # takes a second to load

        kinds = [EXTRAPOLATE * cost.extrapolates + POPULAR * cost.remembers for cost in costs]  # type: ignore[attr-defined]
        popular = self._popular(places) if self.attack.remembers else None
        xy = self.locations.xy_km[places]
        found = recover_day(counts, first, xy, np.array(kinds, dtype=np.uint8), popular, stop=self.stop)
        share = found.gaps / np.maximum(found.costs, 1.0)
        # What rounding leaves between an optimal cost and its proof is no gap.
        return found.cells, found.costs, float(share.max(initial=0.0, where=share > ROUNDING))

    def _recover_plain(
        self, counts: NDArray[np.int64], first: NDArray[np.int32], costs: list[MoveCost], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], float]:
        xy, listed = self.locations.xy_km[places], places.astype(np.int32)
        popular = self._popular(places)
        cells = np.empty((len(first), len(counts)), dtype=np.int32)
        totals = np.empty(len(costs))
        cells[:, 0] = first
        for step, cost in enumerate(costs):
            if self.stop():
                raise Stopped("The run was stopped.")
            previous, current, following = cells[:, max(0, step - 1)], cells[:, step], counts[step + 1]
            if is_target_cost(cost):
                moved, totals[step] = step_to_targets(
                    previous if cost.extrapolates else None,
                    current,
                    following,
                    xy,
                    popular if cost.remembers else None,
                )
            else:
                context = MoveContext(self.locations, self.start + step * self.step, self.transitions)
                price = partial(_price, cost, listed, context)
                moved, totals[step] = step_with_costs(previous, current, following, price, places, self.compiled)
            cells[:, step + 1] = moved
        return cells, totals, 0.0


def _price(
    cost: MoveCost, listed: NDArray[np.int32], context: MoveContext, o: NDArray[np.int32], p: NDArray[np.int32]
) -> NDArray[np.float64]:
    return cost(listed[o], listed[p], context)
