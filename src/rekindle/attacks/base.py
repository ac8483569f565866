"""Attack, Run and Recovery: what every attack is.

An attack is handed counts, places and a calendar, never the truth.
"""

from __future__ import annotations

import dataclasses
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.saving import SavedRun
from rekindle.errors import InvalidData, InvalidSetting, Stopped
from rekindle.model import Calendar, Counts, Locations, Trajectories

__all__ = ["Attack", "Progress", "Recovery", "Run"]

Progress = Callable[[int, int | None], None]
"""Called as ``progress(days_done, days_in_all)`` after each day; the second is None where no end is known."""


@dataclass(frozen=True, eq=False)
class Recovery:
    """What an attack found, and how.

    Attributes
    ----------
    trajectories
        The rebuilt people. They have no names: their order means nothing. Their counts are those of the release at every
        step (but with the setting ``first_step_counts="first_day"``, which copies a slip of the published code).
    attack
        The attack with its settings.
    step_costs
        (steps,) float64: total cost of the transition that leads to each step; NaN at the first step of a day.
    link_costs
        (days,) float64: total cost of linking each day to those before; NaN for the first.
    gap
        How far the cost of any step or link may be above the least possible, as a share of it. 0: all were optimal.
    confidence
        (people, steps) float32: how sure the attack is of each point, between 0 and 1; None where it cannot say.
    """

    trajectories: Trajectories
    attack: Attack
    step_costs: NDArray[np.float64]
    link_costs: NDArray[np.float64]
    gap: float = 0.0
    confidence: NDArray[np.float32] | None = None


class Attack(ABC):
    """Base of every attack: settings in the constructor, data in the methods.

    An attack is a frozen dataclass whose fields are its settings.

    Attributes
    ----------
    revises
        Whether a later day may change what was said of an earlier one.
    """

    revises: ClassVar[bool] = False

    @abstractmethod
    def start(
        self, locations: Locations, calendar: Calendar, *, people: int, progress: Progress | None = None
    ) -> Run:
        """Begin an online run, to be fed with one or more whole days at a time.

        Parameters
        ----------
        locations
            The places of the release.
        calendar
            When its steps are; it may be without an end.
        people
            How many people are counted at every step.
        progress
            Called after each day.
        """

    def recover(self, counts: Counts, *, progress: Progress | None = None) -> Recovery:
        """Rebuild everyone's trajectory from counts."""
        run = self.start(counts.locations, counts.calendar, people=counts.people, progress=progress)
        run.feed(counts)
        return run.recovery()

    def memory_bytes(self, counts: Counts) -> int:
        """About how much memory `recover` needs, known before it starts: a process, the counts and three times the paths."""
        return 300 * 2**20 + 16 * counts.values.size + 12 * counts.people * counts.steps

    def settings(self) -> dict[str, Any]:
        """Settings that matter for the result, in plain values as far as they have any; parts are given by their text."""
        if not dataclasses.is_dataclass(self):
            return {}
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.compare}
        return {
            name: value if isinstance(value, (str, int, float, type(None))) else repr(value)
            for name, value in values.items()
        }


class Run(ABC):
    """An attack under way: days go in, trajectories come out.

    Attributes
    ----------
    attack, locations, people
        What was started.
    calendar
        The calendar that was given at the start; it may be without an end.
    """

    def __init__(
        self, attack: Attack, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        if people < 1:
            raise InvalidSetting(f"There are {people} people; there must be at least one.")
        self.attack, self.locations, self.calendar, self.people = attack, locations, calendar, int(people)
        self._progress = progress
        self._stop = threading.Event()
        self._feeding = threading.Lock()

    @property
    @abstractmethod
    def days_done(self) -> int:
        """How many days are finished."""

    @property
    @abstractmethod
    def steps_done(self) -> int:
        """How many steps the finished days have."""

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask `feed` to end soon, from any thread. The days done so far stay; a run that was stopped takes no more."""
        self._stop.set()

    def feed(self, counts: Counts) -> None:
        """Take one or more whole days, in order; only the last feed of a run may end within a day.

        Returns when they are done, or earlier after `stop`. After Ctrl-C the days done so far stay, and the rest can be
        fed again.
        """
        if not self._feeding.acquire(blocking=False):
            raise InvalidSetting("This run is being fed already, by another thread.")
        try:
            if self.stopped:
                raise Stopped("This run was stopped. Save it and resume from the file to go on.")
            self._check(counts)
            with suppress(Stopped):
                self._take(counts)
        finally:
            self._feeding.release()

    def _check(self, counts: Counts) -> None:
        """Refuse counts that are not what comes next."""
        if counts.locations != self.locations:
            raise InvalidData("The counts have other locations than the run was started with.")
        if counts.calendar.step != self.calendar.step:
            raise InvalidData(f"The counts have steps of {counts.calendar.step}, the run of {self.calendar.step}.")
        if counts.people != self.people:
            raise InvalidData(f"The counts have {counts.people} people, the run {self.people}.")
        whole = self.calendar.first_day_steps + (self.days_done - 1) * self.calendar.steps_per_day
        if self.days_done and self.steps_done != whole:
            raise InvalidData("The last day fed was not whole, so it was the last; nothing can follow it.")
        if self.calendar.steps is not None and self.steps_done + counts.steps > self.calendar.steps:
            raise InvalidData(
                f"The calendar of this run has {self.calendar.steps} steps, of which {self.steps_done} are done; "
                f"{counts.steps} more are too many."
            )
        expected = self.calendar.time(self.steps_done)
        if counts.calendar.start != expected:
            raise InvalidData(
                f"The counts begin at {counts.calendar.start}, but the next step of this run is {expected}."
            )

    def _report(self) -> None:
        if self._progress is not None:
            total = None if self.calendar.steps is None else self.calendar.number_of_days
            self._progress(self.days_done, total)

    @abstractmethod
    def _take(self, counts: Counts) -> None:
        """Attack counts that `_check` let through; raise `Stopped` soon after `self._stop` is set."""

    @abstractmethod
    def recovery(self) -> Recovery:
        """All that is known of the whole days so far."""

    def day(self, number: int) -> Recovery:
        """What is known of one finished day alone."""
        found = self.recovery()
        steps = found.trajectories.calendar.day(number)
        return dataclasses.replace(
            found,
            trajectories=found.trajectories.part(steps),
            step_costs=found.step_costs[steps],
            link_costs=found.link_costs[number : number + 1],
            confidence=None if found.confidence is None else found.confidence[:, steps],
        )

    def trajectories(self) -> Trajectories:
        """The whole days so far; safe to call from another thread at any time. Before the first day it has no steps."""
        return self.recovery().trajectories

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all, for `resume`."""

    @abstractmethod
    def restore(self, saved: SavedRun) -> None:
        """Take what `save` wrote, into a run that has not been fed."""
