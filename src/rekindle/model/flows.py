"""Flows: how many people went from each location to each other one between two moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.checks import whole
from rekindle.errors import InvalidData
from rekindle.frames import Frame, Library, name_column, to_frame
from rekindle.model.calendar import Calendar, format_step
from rekindle.model.counts import Counts
from rekindle.model.locations import AWAY, ByValue, Locations, frozen, to_array


@dataclass(frozen=True, init=False, eq=False)
class Flows(ByValue):
    """How many people were in one location at a window's start and in another at its end.

    A window is the time between two steps of the calendar, so there is one window less than steps. Everyone is in one
    flow of a window, but for those who are away at both its ends.
    Only flows of at least one person are kept, sorted by step, origin and destination.

    Parameters
    ----------
    step
        (flows,) whole numbers: the step at which the window begins, counted from 0; it ends at the next.
    origin, destination
        (flows,) whole numbers: indices of locations, or `AWAY` (-1) for people who enter or leave.
    count
        (flows,) whole numbers of people, at least 0.
    locations
        The locations.
    calendar
        When the windows begin and end: as many steps as the counts that the flows belong to.
    stayers
        Whether people who are in one location at both ends of a window are in the flows.
    people
        How many people there are in all, at least the largest total of a window; by default as many as that.
    """

    step: NDArray[np.int32]
    origin: NDArray[np.int32]
    destination: NDArray[np.int32]
    count: NDArray[np.int32]
    locations: Locations
    calendar: Calendar
    stayers: bool
    people: int

    def __init__(
        self,
        step: ArrayLike,
        origin: ArrayLike,
        destination: ArrayLike,
        count: ArrayLike,
        locations: Locations,
        calendar: Calendar,
        *,
        stayers: bool = True,
        people: int | None = None,
    ) -> None:
        if calendar.steps is None or calendar.steps < 1:
            raise InvalidData("Flows need a calendar with a number of steps, at least 1.")
        names = ("step", "origin", "destination", "count")
        rows = [_row(one, values) for one, values in zip(names, (step, origin, destination, count), strict=True)]
        if len({len(row) for row in rows}) > 1:
            raise InvalidData(f"Flows have columns of several lengths: {[len(row) for row in rows]}.")
        for column, row, least, most in zip(
            names,
            rows,
            (0, AWAY, AWAY, 0),
            (calendar.steps - 2, len(locations) - 1, len(locations) - 1, np.iinfo(np.int32).max),
            strict=True,
        ):
            if len(row) and (row.min() < least or row.max() > most):
                at = int(np.argmax((row < least) | (row > most)))
                raise InvalidData(f"Flow {at} has the {column} {row[at]}; it must lie from {least} to {most}.")
        rows = [row[rows[3] > 0].astype(np.int32, copy=False) for row in rows]
        key = _key(rows[:3], len(locations), calendar.steps)
        if (key[1:] <= key[:-1]).any():
            order = np.argsort(key, kind="stable")
            rows, key = [row[order] for row in rows], key[order]
        for column, array in zip(names, rows, strict=True):
            object.__setattr__(self, column, frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)
        object.__setattr__(self, "stayers", bool(stayers))

        def name(which: NDArray[np.bool_]) -> str:
            at = int(which.argmax())
            return self._name(self.step[at], self.origin[at], self.destination[at])

        if (twice := key[1:] == key[:-1]).any():
            raise InvalidData(f"The flow {name(twice)} is listed twice; expected once.")
        if (both := (self.origin == AWAY) & (self.destination == AWAY)).any():
            raise InvalidData(
                f"The flow {name(both)} has neither an origin nor a destination; "
                "people who are away at both ends of a window are in no flow."
            )
        if not stayers and (same := self.origin == self.destination).any():
            raise InvalidData(
                f"The flow {name(same)} is one of stayers, but these flows are without. "
                "Give them with `stayers=True`, all of them."
            )
        totals = self.totals
        most = int(totals.max(initial=0))
        everyone = max(most, 1) if people is None else whole("people", people, least=1)
        if everyone < most:
            raise InvalidData(
                f"`people` is {everyone}, but the flows from {calendar.time(int(totals.argmax()))} on add up to {most}."
            )
        object.__setattr__(self, "people", everyone)
        if stayers:
            self._check_continuity()

    @property
    def steps(self) -> int:
        """Number of time steps: moments at which a window begins or ends."""
        return self.calendar.steps or 0

    @property
    def window(self) -> timedelta:
        """How long a window is: the step of the calendar."""
        return self.calendar.step

    @property
    def totals(self) -> NDArray[np.int64]:
        """(steps - 1,) int64: how many people are in the flows of each window."""
        return np.bincount(self.step, self.count, minlength=self.steps - 1).astype(np.int64)

    @property
    def departures(self) -> NDArray[np.int64]:
        """(steps - 1, locations) int64: how many people of the flows are in each location when a window begins."""
        return self._sums(self.origin)

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """(steps - 1, locations) int64: how many people of the flows are in each location when a window ends."""
        return self._sums(self.destination)

    def at(self, step: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Give the flows of one window: origins, destinations and counts, sorted by origin and then destination.

        Parameters
        ----------
        step
            The step at which the window begins, from 0 to steps - 2.
        """
        if not 0 <= step < self.steps - 1:
            raise InvalidData(f"No window begins at step {step}; there are {self.steps - 1}, counted from 0.")
        first, last = self._first[step], self._first[step + 1]
        return self.origin[first:last], self.destination[first:last], self.count[first:last]

    def counts(self) -> Counts:
        """Count the people in each location when windows begin and end."""
        if not self.stayers:
            raise InvalidData(
                "These flows are without stayers, so that they do not say how many people are in a location; "
                "`with_stayers(counts)` adds them where the counts are known."
            )
        if self.steps < 2:
            raise InvalidData("These flows have one step and no window, so that they do not say where anyone is.")
        values = np.concatenate([self.departures, self.arrivals[-1:]])
        return Counts(values, self.locations, self.calendar, self.people)

    def with_stayers(self, counts: Counts) -> Flows:
        """Give the same flows with the people who stay: those in the counts who do not move.

        Parameters
        ----------
        counts
            How many people are in each location, at least at the steps of the flows; checked against them.
        """
        check_flows(counts, self)
        if self.stayers:
            return self
        staying = counts.values[self.moments(counts.calendar)][:-1] - self.departures
        window, place = np.nonzero(staying)
        both = zip(self._columns(), (window, place, place, staying[window, place]), strict=True)
        return self._with(map(np.concatenate, both), stayers=True, people=counts.people)

    def without_stayers(self) -> Flows:
        """Give the flows of those who move."""
        moving = self.origin != self.destination
        return self._with((column[moving] for column in self._columns()), stayers=False)

    def with_locations(self, locations: Locations) -> Flows:
        """Give the same flows on another list of locations, which must name all of theirs."""
        index = np.append(locations.indices(self.locations.ids), AWAY)  # AWAY, -1, is the last
        columns = (self.step, index[self.origin], index[self.destination], self.count)
        return self._with(columns, locations=locations)

    def moments(self, calendar: Calendar) -> slice:
        """The steps of a calendar at which the windows begin and end; it may have shorter steps than the flows."""
        first, early = divmod(self.calendar.start - calendar.start, calendar.step)
        every, rest = divmod(self.calendar.step, calendar.step)
        last = first + (self.steps - 1) * every
        if early or rest or first < 0 or calendar.steps is None or last >= calendar.steps:
            raise InvalidData(
                f"The flows have the calendar {self.calendar.to_json()}, which is no part of {calendar.to_json()}: every "
                "window must begin and end at a step."
            )
        return slice(first, last + 1, every)

    def part(self, steps: slice) -> Flows:
        """The flows of the windows that begin and end within a range of steps."""
        begin, end, _ = steps.indices(self.steps)
        first, last = self._first[begin], self._first[max(begin, end - 1)]
        columns = [column[first:last] for column in self._columns()]
        return self._with([columns[0] - begin, *columns[1:]], calendar=self.calendar.part(steps))

    def during(self, calendar: Calendar) -> Flows:
        """The flows of the windows that begin and end at the steps of a calendar of the same interval."""
        first, rest = divmod(calendar.start - self.calendar.start, self.calendar.step)
        last = first + (calendar.steps or 0)
        if rest or first < 0 or last > self.steps or calendar.step != self.calendar.step:
            raise InvalidData(
                f"The flows have the calendar {self.calendar.to_json()}, not that of {calendar.to_json()}."
            )
        return self.part(slice(first, last))

    def within(self, calendar: Calendar) -> Flows | None:
        """The flows of the windows that begin and end while a calendar lasts, whatever its interval; None where there are none."""
        times, (first, last) = self.calendar.times(), calendar.times()[[0, -1]]
        inside = np.flatnonzero((times >= first) & (times <= last))
        return self.part(slice(inside[0], inside[-1] + 1)) if len(inside) > 1 else None

    def days(self) -> Iterator[Flows]:
        """The flows of each calendar day: its windows, and before them the one that ends at its first step."""
        return (self.part(slice(max(0, day.start - 1), day.stop)) for day in self.calendar.days())

    def first_difference(self, other: Flows) -> str | None:
        """Name the first flow whose number is another one in other flows of the same locations and times."""
        places, columns = len(self.locations), (self._columns()[:3], other._columns()[:3])
        keys = [_key(list(one), places, self.steps) for one in columns]
        both, index = np.unique(np.concatenate(keys), return_inverse=True)
        change = np.bincount(index, np.concatenate([self.count, -other.count]), minlength=len(both))
        if not change.any():
            return None
        rest, destination = divmod(int(both[np.flatnonzero(change)[0]]), places + 1)
        step, origin = divmod(rest, places + 1)
        return self._name(step, origin - 1, destination - 1)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each flow: datetime (when the window begins), origin, destination, count; away is null.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        return to_frame(
            {
                "datetime": self.calendar.times()[self.step].astype("datetime64[ms]"),
                "origin": name_column(self.origin, self.locations.ids),
                "destination": name_column(self.destination, self.locations.ids),
                "count": self.count.astype(np.int64),
            },
            library,
        )

    def __repr__(self) -> str:
        return (
            f"Flows({self.people} people, {self.steps - 1} windows of {format_step(self.window)} from "
            f"{self.calendar.start}, {len(self.locations)} locations, {'with' if self.stayers else 'without'} stayers)"
        )

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """(steps + 1,) int64: the position of the first flow of each step."""
        return np.searchsorted(self.step, np.arange(self.steps + 1, dtype=np.int32))

    def _columns(self) -> tuple[NDArray[np.int32], ...]:
        return self.step, self.origin, self.destination, self.count

    def _with(self, columns: Iterable[NDArray[Any]], **changes: Any) -> Flows:
        """Other flows, with the rest as it is."""
        names = ("locations", "calendar", "stayers", "people")
        step, origin, destination, count = columns
        return Flows(step, origin, destination, count, **{name: getattr(self, name) for name in names} | changes)

    def _name(self, step: int, origin: int, destination: int) -> str:
        ends = ("nowhere" if end == AWAY else repr(self.locations.ids[end]) for end in (origin, destination))
        return f"from {' to '.join(ends)} at {self.calendar.time(int(step))}"

    def _sums(self, place: NDArray[np.int32]) -> NDArray[np.int64]:
        shape = self.steps - 1, len(self.locations)
        there = place != AWAY
        index = self.step[there].astype(np.int64) * shape[1] + place[there]
        return np.bincount(index, self.count[there], minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)

    def _check_continuity(self) -> None:
        """Refuse flows that lose people: who arrives at a step is there when the next window begins."""
        arrive, leave = self.arrivals[:-1], self.departures[1:]
        if (wrong := arrive != leave).any():
            window, place = np.argwhere(wrong)[0]
            if not leave[window].any():
                raise InvalidData(
                    f"No flow begins at {self.calendar.time(int(window) + 1)}, though {arrive[window].sum()} people arrive (or stay) until "
                    "then. If that window is missing from the table, add it, or audit the time before and after it by itself."
                )
            raise InvalidData(
                f"The flows do not fit each other: at {self.calendar.time(int(window) + 1)} in location "
                f"{self.locations.ids[place]!r}, {arrive[window, place]} people arrive (or stay), and "
                f"{leave[window, place]} leave (or stay). Trips are no presence, and numbers may be "
                "withheld, rounded or noisy: then it is a release, which `rk.read_release` and the audit take as it is."
            )


def check_flows(counts: Counts, flows: Flows) -> None:
    """Refuse flows of other people, locations or times than the counts.

    Parameters
    ----------
    counts
        How many people are in each location; their steps may be shorter than the windows.
    flows
        The flows, with stayers or without.
    """
    if flows.locations != counts.locations:
        raise InvalidData("The flows have other locations than the counts.")
    if flows.people > counts.people:
        raise InvalidData(f"The flows have {flows.people} people, the counts {counts.people}.")
    values = counts.values[flows.moments(counts.calendar)].astype(np.int64)

    def name(step: Any, place: Any) -> str:
        return f"at {flows.calendar.time(int(step))} in location {counts.locations.ids[place]!r}"

    leave, arrive = flows.departures, flows.arrivals
    for moved, there, later, verb in ((leave, values[:-1], 0, "begin"), (arrive, values[1:], 1, "end")):
        wrong = moved != there if flows.stayers else moved > there
        if wrong.any():
            window, place = np.argwhere(wrong)[0]
            raise InvalidData(
                f"The flows do not fit the counts: {name(window + later, place)} the counts say {there[window, place]}, "
                f"but the flows that {verb} there add up to {moved[window, place]}."
            )
    before, after = values[:-1] - leave, values[1:] - arrive
    if not flows.stayers and (wrong := before != after).any():
        window, place = np.argwhere(wrong)[0]
        raise InvalidData(
            f"The flows do not fit the counts: {name(window, place)} {before[window, place]} of "
            f"{values[window, place]} people stay, but at the window's end {after[window, place]} of "
            f"{values[window + 1, place]} are people who stayed."
        )


def flows_of(
    cells: NDArray[np.integer], locations: Locations, calendar: Calendar, *, stayers: bool, people: int
) -> Flows:
    """Count who went where between each two steps of (people, steps) indices of locations."""
    base = len(locations) + 1
    columns: list[tuple[NDArray[Any], ...]] = [(np.empty(0, np.int64),) * 4]
    for window in range(cells.shape[1] - 1):
        start, end = (cells[:, step].astype(np.int64) for step in (window, window + 1))
        counted = (start != end) | ((start != AWAY) & stayers)
        key, count = np.unique((start * base + end)[counted] + base + 1, return_counts=True)
        columns.append((np.full(len(key), window), key // base - 1, key % base - 1, count))
    step, origin, destination, number = map(np.concatenate, zip(*columns, strict=True))
    return Flows(step, origin, destination, number, locations, calendar, stayers=stayers, people=people)


def _row(name: str, values: ArrayLike) -> NDArray[Any]:
    array = to_array(values, "Flows")
    if array.ndim != 1 or (len(array) and not np.issubdtype(array.dtype, np.integer)):
        raise InvalidData(
            f"The column {name} of flows has the type {array.dtype} and the shape {array.shape}; it must be whole numbers."
        )
    return array


def _key(columns: list[NDArray[np.int32]], places: int, steps: int) -> NDArray[np.int64]:
    """One number for each step, origin and destination, in their order."""
    if steps * (places + 1) ** 2 >= 2**63:
        raise InvalidData(f"Flows between {places} locations at {steps} steps are too many.")
    step, origin, destination = columns
    return (step.astype(np.int64) * (places + 1) + origin + 1) * (places + 1) + destination + 1
