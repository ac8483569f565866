"""Attack, Run and Recovery: what every attack is.

An attack is handed counts, flows, locations and a calendar, never the truth.
"""

from __future__ import annotations

import dataclasses
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.attacks.flows import Windows, counts_and_flows, days_with_windows
from rekindle.attacks.saving import SavedRun, write_run
from rekindle.attacks.windows import recover_together
from rekindle.errors import InvalidData, InvalidSetting, Stopped
from rekindle.frames import Frame, Library, html_table, to_frame
from rekindle.model import AWAY, Calendar, Counts, Flows, Locations, Trajectories
from rekindle.progress import Progress

if TYPE_CHECKING:
    from rekindle.attacks.priors import Prior


@dataclass(frozen=True, eq=False)
class Details:
    """What one attack alone knows beside the trajectories; an attack with any has a subclass.

    A subclass is a frozen dataclass of float64 arrays, so that those of several days can be joined.

    Attributes
    ----------
    by_step
        Names of the arrays that have a number for each step; the others have one for each day.
    """

    by_step: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(array)}" for name, array in self.arrays().items())
        return f"{type(self).__name__}({shown})"

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Give the arrays by their names."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def joined(cls, days: Sequence[Details]) -> Self:
        """Join the details of days in order."""
        each = [day.arrays() for day in days]
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: np.concatenate([np.empty(0), *(day[name] for day in each)]) for name in names})


def _short(array: NDArray[np.float64]) -> str:
    """One number where all are the same, a few, or how many there are and between which they lie."""
    distinct = np.unique(array)  # NaN once, and last
    if len(distinct) == 1:
        return _number(distinct[0])
    if len(array) <= 4:
        return f"[{', '.join(map(_number, array))}]"
    return f"{len(array)} numbers from {_number(distinct[0])} to {_number(np.nanmax(array))}"


def _number(number: float) -> str:
    return f"{number:.0f}" if float(number).is_integer() else f"{number:.4g}"


@dataclass(frozen=True, eq=False)
class Recovery:
    """What an attack found, and how.

    Attributes
    ----------
    trajectories
        The recovered people. They have no names and their order means nothing, but where the attacker knew people's past or
        some of the people (`KnownPast`, `KnownPeople`). Their counts are those of the release at every
        step, and so are their flows where it has any, and the number of people who are away (but with the setting ``first_step_counts="first_day"``, which copies a slip of the published code).
    attack
        The attack with its settings.
    confidence
        (people, steps) float32: how sure the attack is of each point, between 0 and 1; None where it cannot say.
    details
        What this attack alone has to say, such as `DayByDayDetails`.
    """

    trajectories: Trajectories
    attack: Attack
    confidence: NDArray[np.float32] | None = None
    details: Details = Details()

    def __repr__(self) -> str:
        return f"Recovery({self.trajectories!r}, by {heading(type(self.attack).__name__, self.attack.settings())})"

    def _repr_html_(self) -> str:
        """What was recovered, and how; no path is shown, since notebooks are passed on."""
        found = self.trajectories
        rows = [
            ("people", f"{found.people:,}"),
            ("steps", f"{found.steps:,}"),
            ("locations", f"{len(found.locations):,}"),
        ]
        if self.confidence is not None and self.confidence.size:
            rows.append(("mean confidence", f"{self.confidence.mean():.2f}"))
        rows += [(name, str(value)) for name, value in self.attack.settings().items()]
        return html_table(f"Recovery by {heading(type(self.attack).__name__, self.attack.settings())}", rows)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each recovered person and step: person, datetime, location, and confidence where the attack states it.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        columns = dict(self.trajectories.to_frame().to_dict())
        if self.confidence is not None:
            columns["confidence"] = self.confidence[self.trajectories.counted]
        return to_frame(columns, library)


def heading(attack: str, settings: Mapping[str, Any]) -> str:
    """Name an attack and what the attacker knows, by the name of its class and its settings: "Enhanced, known people"."""
    knows = [re.match(r"(\w+)\(\d+ people, ", str(settings.get(name))) for name in ("prior", "known_people")]
    if knows[1]:
        attack = settings.get("attack", attack)
    known = [re.sub(r"\B(?=[A-Z])", " ", one[1]).lower() for one in knows if one]
    return ", ".join([attack, *known])


class Attack:
    """Base of every attack: settings in the constructor, data in the methods.

    An attack is a frozen dataclass whose fields are its settings.

    Attributes
    ----------
    revises
        Whether a later day may change what was said of an earlier one.
    takes_flows
        Whether it can be given flows too.
    in_parts
        Whether it is done in parts, which an audit can spread over all its workers.
    priors
        Which kinds of prior knowledge it can use, besides `KnownPeople`, which works with every attack. An attack with any has
        a field `prior`, None by default, for `knowing` to fill.
    """

    revises: ClassVar[bool] = False
    takes_flows: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    priors: ClassVar[tuple[type[Prior], ...]] = ()

    def start(
        self,
        locations: Locations,
        calendar: Calendar,
        *,
        people: int,
        prior: Prior | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Begin an online run, to be fed with one or more whole days at a time.

        Parameters
        ----------
        locations
            The locations of the release.
        calendar
            When its steps are; it may be without an end.
        people
            How many people there are in all. Those who are not counted at a step are away then. It may turn out that there
            are more: a later feed takes them in, as people who were away before.
        prior
            What the attacker knows besides the release; the same as ``attack.knowing(prior).start(...)``.
        progress
            Called after each day.
        """
        attack = self if prior is None else self.knowing(prior)
        known: Prior | None = getattr(attack, "prior", None)
        if known is not None:
            known.check(locations, calendar, people)
        return attack._begin(locations, calendar, people, progress)

    def _begin(self, locations: Locations, calendar: Calendar, people: int, progress: Progress | None) -> Run:
        """Make the run that `start` gives, or refuse what this attack cannot be run on; or define `start` itself."""
        raise NotImplementedError(f"{type(self).__name__} has neither `_begin` nor `start`.")

    def recover(
        self,
        counts: Counts | None = None,
        *,
        flows: Flows | Sequence[Flows] | None = None,
        prior: Prior | None = None,
        progress: Progress | None = None,
    ) -> Recovery:
        """Recover everyone's trajectory from counts, from flows, or from both.

        Parameters
        ----------
        counts
            How many people are in each location at each step; may be left out where there are flows.
        flows
            How many people go where between two steps, of the same steps as the counts. Without stayers they need the counts;
            without either, they are taken to be made by the fewest people who can have made them, so that those who never
            move are left out. Of flows of several windows that are published together, those of the shortest are kept exactly,
            and the others help to tell people apart; there is no confidence then.
        prior
            What the attacker knows besides the release: `OtherTraces`, `KnownPast` or `KnownPeople`.
        progress
            Called after each day.
        """
        attack = self if prior is None else self.knowing(prior)
        if flows is not None and not isinstance(flows, Flows):
            if len(flows) != 1:
                if getattr(attack, "prior", None) is not None:
                    raise InvalidSetting("Prior knowledge works only with flows of one window: give those alone.")

                def alone(counts: Counts, flows: Flows, progress: Progress) -> Trajectories:
                    return attack.recover(counts, flows=flows, progress=progress).trajectories

                return Recovery(recover_together(alone, counts, flows, progress), attack)
            flows = flows[0]
        counts, flows = counts_and_flows(counts, flows)
        run = attack.start(counts.locations, counts.calendar, people=counts.people, progress=progress)
        run.feed(counts, flows=flows)
        return run.recovery()

    def knowing(self, prior: Prior) -> Attack:
        """The same attack by someone who knows more; refused where the attack cannot use it."""
        if not hasattr(prior, "given_to"):
            raise InvalidSetting(f"`prior` is {prior!r}; give one object such as rekindle.KnownPast(...).")
        return prior.given_to(self)

    def names(self, people: int) -> tuple[str, ...] | None:
        """A name for each of so many recovered people, of those whose past is known; None where nobody's is."""
        prior: Prior | None = getattr(self, "prior", None)
        return None if prior is None else prior.names(people)

    @property
    def named(self) -> bool:
        """Whether it says who is who, and is to be scored by that."""
        prior: Prior | None = getattr(self, "prior", None)
        return prior is not None and prior.named

    @property
    def known_people(self) -> tuple[str, ...]:
        """Names of the people whom the attacker knows, to be left out of the score."""
        return ()

    def memory_bytes(self, counts: Counts, *, flows: bool = False) -> int:
        """About how much memory `recover` needs, known before it starts: a process, the counts and three times the paths.

        Parameters
        ----------
        counts
            Counts of that size.
        flows
            Whether there are flows too; only asked of attacks that take them.
        """
        return 300 * 2**20 + 16 * counts.values.size + 12 * counts.people * counts.steps

    def work(self, counts: Counts) -> float:
        """About how many seconds `recover` takes on one ordinary core, known before it starts, by the size of the data alone."""
        return 0.01 + 1e-7 * counts.people * counts.steps

    def why_not(self, counts: Counts) -> str | None:
        """Why counts of this size are beyond the attack, in a sentence; None where they are not."""
        return None

    def settings(self) -> dict[str, Any]:
        """Settings that matter for the result, in plain values as far as they have any; parts are given by their text."""
        if not dataclasses.is_dataclass(self):
            return {}
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.compare}
        if values.get("prior", self) is None:
            del values["prior"]
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
        self.attack, self.locations, self.calendar = attack, locations, calendar
        self.people = checks.whole("people", people, least=1)
        self._progress = progress
        self._has_flows = False  # whether the days done were fed with flows
        self._stop = threading.Event()
        self._feeding = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.people} people, {self.days_done} days done)"

    def _trajectories(self, cells: NDArray[np.integer], calendar: Calendar) -> Trajectories:
        """Recovered people, by their names where these are known."""
        return Trajectories(cells, self.locations, calendar, self.attack.names(len(cells)))

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

    def feed(self, counts: Counts | None = None, *, flows: Flows | None = None) -> None:
        """Take one or more whole days, in order; only the last feed of a run may end within a day.

        Returns when they are done, or earlier after `stop`. After Ctrl-C the days done so far stay, and the rest can be
        fed again.

        Parameters
        ----------
        counts
            The next days; may be left out where there are flows with stayers, which then end where the days do.
        flows
            Flows that cover these days, and the window before them, which begins at the last step done (`Flows.days` gives
            both); flows of a longer time will do. Either all days of a run have flows or none.
        """
        if not self._feeding.acquire(blocking=False):
            raise InvalidSetting("This run is being fed already, by another thread.")
        try:
            if self.stopped:
                raise Stopped("This run was stopped. Save it and resume from the file to go on.")
            counts, windows = self._next(counts, flows)
            if counts.people > self.people:
                self._grow(counts.people)
            self._has_flows = windows is not None
            with suppress(Stopped):
                if windows is None:
                    self._take(counts)
                else:
                    self._take(counts, windows)  # an attack that takes no flows need not know of them
        finally:
            self._feeding.release()

    def _next(self, counts: Counts | None, flows: Flows | None) -> tuple[Counts, Windows | None]:
        """Give the counts of the next days, and the flows from the last step done on; refuse any others."""
        if flows is None:
            if counts is None:
                raise InvalidData("There is nothing to take: give `counts`, `flows` or both.")
            if self._has_flows and self.days_done:
                raise InvalidData("The days before were fed with flows; give those of these days too, as `flows`.")
            self._check(counts)
            return counts, None
        if not self.attack.takes_flows:
            raise InvalidSetting(f"{type(self.attack).__name__} takes counts only, not `flows`.")
        if self.days_done and not self._has_flows:
            raise InvalidData("The days before were fed without flows, so that these cannot have any either.")
        if flows.locations != self.locations:
            raise InvalidData("The flows have other locations than the run was started with.")
        if flows.calendar.step != self.calendar.step:
            raise InvalidData(f"The flows have windows of {flows.window}, the run has steps of {self.calendar.step}.")
        known = min(1, self.steps_done)
        begin, rest = divmod(self.calendar.time(self.steps_done - known) - flows.calendar.start, self.calendar.step)
        if rest or begin < 0:
            raise InvalidData(
                f"The flows begin at {flows.calendar.start}, but the next window of this run begins at "
                f"{self.calendar.time(self.steps_done - known)}."
            )
        if counts is None:
            if not flows.stayers:
                raise InvalidData("These flows are without stayers; give `counts` of the same days too.")
            counts = flows.part(slice(begin, flows.steps)).counts().part(slice(known, None))
        self._check(counts)
        if begin + known + counts.steps > flows.steps:
            raise InvalidData(
                f"The flows end at {flows.calendar.time(flows.steps - 1)}, the counts at "
                f"{counts.calendar.time(counts.steps - 1)}; they must cover the same days."
            )
        end = begin + known + counts.steps
        flows = flows if end - begin == flows.steps else flows.part(slice(begin, end))
        people = max(counts.people, flows.people)
        counts = Counts(counts.values, counts.locations, counts.calendar, people)
        values = np.concatenate([self._last_values(), counts.values]) if known else counts.values
        return counts, Windows.of(flows.with_stayers(Counts(values, self.locations, flows.calendar, people)))

    def _last_values(self) -> NDArray[np.integer]:
        """Give the counts of the last step done, (1, locations); needed of attacks that take flows."""
        raise NotImplementedError

    def _check(self, counts: Counts) -> None:
        """Refuse counts that are not what comes next."""
        if counts.locations != self.locations:
            raise InvalidData("The counts have other locations than the run was started with.")
        if counts.calendar.step != self.calendar.step:
            raise InvalidData(f"The counts have steps of {counts.calendar.step}, the run of {self.calendar.step}.")
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

    def _grow(self, people: int) -> None:
        """Take in people who were away until now."""
        self.people = people

    def _report(self) -> None:
        if self._progress is not None:
            total = None if self.calendar.steps is None else self.calendar.number_of_days
            self._progress(self.days_done, total)

    @abstractmethod
    def _take(self, counts: Counts, windows: Windows | None = None) -> None:
        """Attack counts that `_check` let through; raise `Stopped` soon after `self._stop` is set.

        The windows begin at the last step done, if there is one.
        """

    @abstractmethod
    def recovery(self) -> Recovery:
        """All that is known of the whole days so far."""

    def day(self, number: int) -> Recovery:
        """What is known of one finished day alone, but for details that are not of a day."""
        found = self.recovery()
        steps = found.trajectories.calendar.day(number)
        return Recovery(
            found.trajectories.part(steps),
            self.attack,
            None if found.confidence is None else found.confidence[:, steps],
        )

    def trajectories(self) -> Trajectories:
        """The whole days so far; safe to call from another thread at any time. Before the first day it has no steps."""
        return self.recovery().trajectories

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all, for `resume`."""

    def _write(self, path: str | Path, arrays: dict[str, NDArray[Any]]) -> None:
        """Write arrays of the state to a file, with all that `resume` must know of the run."""
        name, settings = type(self.attack).__name__, self.attack.settings()
        write_run(path, SavedRun(name, settings, self.locations, self.calendar, self.people, arrays))

    @abstractmethod
    def restore(self, saved: SavedRun) -> None:
        """Take what `save` wrote, into a run that has not been fed."""


def with_away(values: NDArray[np.integer], people: int | None = None) -> NDArray[np.integer]:
    """Give counts one more column: how many people are away at each step.

    Parameters
    ----------
    values
        (steps, locations) counts.
    people
        How many there are in all. None: the most that any step counts; if all steps count so many, no column is added.
    """
    totals = values.sum(axis=1, dtype=np.int64)
    away = (totals.max() if people is None else people) - totals
    return values if people is None and not away.any() else np.column_stack([values, away])


def with_rows_away(cells: NDArray[np.integer], people: int) -> NDArray[np.int32]:
    """Add people who are away throughout, after the others: (people, steps) int32, read-only."""
    rows = np.full((people, cells.shape[1]), AWAY, np.int32)
    rows[: len(cells)] = cells
    rows.flags.writeable = False
    return rows


class DailyRun(Run):
    """A run that finishes one day after the other and never changes a finished one, so that others can read along.

    Attributes
    ----------
    details
        The class of the details of a day.
    """

    details: ClassVar[type[Details]] = Details

    def __init__(
        self, attack: Attack, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        self._days: list[tuple[NDArray[np.int32], Details]] = []

    @property
    def days_done(self) -> int:
        """How many days are finished."""
        return len(self._days)

    @property
    def steps_done(self) -> int:
        """How many steps the finished days have."""
        return sum(cells.shape[1] for cells, _ in list(self._days))

    def _take(self, counts: Counts, windows: Windows | None = None) -> None:
        for day, its in days_with_windows(counts, windows):
            if self.stopped:
                raise Stopped("The run was stopped.")
            cells = self._recover_day(day) if its is None else self._recover_day(day, its)
            self._add(with_rows_away(np.where(cells == len(self.locations), AWAY, cells), self.people))
            self._report()

    def _recover_day(self, counts: Counts, windows: Windows | None = None) -> NDArray[np.int32]:
        """Recover the next day: (people, steps) int32 location indices, people in the order of the days before.

        Who is away is at `AWAY`, or at the column that `with_away` adds. People at the end may be left out: they are away.
        The windows begin at the last step of the day before, if there is one.
        """
        raise NotImplementedError

    def _last_values(self) -> NDArray[np.integer]:
        last = self._days[-1][0][:, -1]
        return np.bincount(last[last != AWAY], minlength=len(self.locations))[None]

    def _add(self, cells: NDArray[np.int32], details: Details | None = None) -> None:
        """Remember a finished day."""
        cells.flags.writeable = False
        self._days.append((cells, self.details() if details is None else details))

    def _grow(self, people: int) -> None:
        self._days = [(with_rows_away(cells, people), details) for cells, details in self._days]
        super()._grow(people)

    def recovery(self) -> Recovery:
        """All that is known of the whole days so far."""
        days = list(self._days)
        people = len(days[0][0]) if days else self.people  # another thread may be about to take in more
        cells = np.concatenate([np.empty((people, 0), np.int32), *(cells for cells, _ in days)], axis=1)
        found = self._trajectories(cells, self.calendar.closed_at(cells.shape[1]))
        return Recovery(found, self.attack, details=self.details.joined([details for _, details in days]))

    def day(self, number: int) -> Recovery:
        """What is known of one finished day alone; the others are not copied."""
        cells, details = self._days[number]
        calendar = self.calendar.closed_at(self.steps_done).part(self.calendar.day(number))
        return Recovery(self._trajectories(cells, calendar), self.attack, details=details)

    def save(self, path: str | Path) -> None:
        """Write the days so far to a file, whole or not at all, for `resume`."""
        found = self.recovery()
        flows = {"flows": np.array(self._has_flows)}
        self._write(path, {"cells": found.trajectories.cells, **flows, **found.details.arrays()})

    def restore(self, saved: SavedRun) -> None:
        """Take the finished days of an earlier run of the same attack."""
        self._has_flows = saved.has_flows
        for cells, details in self._saved_days(saved):
            self._add(cells, details)

    def _saved_days(self, saved: SavedRun) -> Iterator[tuple[NDArray[np.int32], Details]]:
        """Split what `save` wrote into days: an array of the details has a number for each day, or for each step."""
        cells = saved.arrays["cells"]
        found = Trajectories(cells, self.locations, self.calendar.closed_at(cells.shape[1]))
        if found.people != self.people:
            raise InvalidData(f"the days are of {found.people} people, the run of {self.people}")
        names = [field.name for field in dataclasses.fields(self.details)]
        for number, day in enumerate(found.calendar.days()):
            details = {}
            for name in names:
                array = np.asarray(saved.arrays[name], dtype=np.float64)
                by_step = name in self.details.by_step
                if array.shape != (found.steps if by_step else found.calendar.number_of_days,):
                    raise InvalidData(f"{name} has the shape {array.shape}, for {found.steps} steps")
                details[name] = array[day] if by_step else array[number : number + 1]
            yield np.array(found.cells[:, day], dtype=np.int32), self.details(**details)
