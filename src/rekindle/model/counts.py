"""Counts: how many people were in each location at each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.checks import whole
from rekindle.errors import InvalidData
from rekindle.frames import Frame, Library, html_table, name_column, to_frame
from rekindle.model.calendar import Calendar, format_step
from rekindle.model.locations import ByValue, Locations, frozen, to_array


@dataclass(frozen=True, init=False, eq=False)
class Counts(ByValue):
    """How many people were in each location at each step: the release that an attack is given.

    Whole numbers of at least 0. Their total may differ from step to step: people who are not counted are away. (The
    paper asks for the same total at every step; then nobody is ever away.)

    Parameters
    ----------
    values
        (steps, locations) whole numbers. Kept without a copy where they are integers already.
    locations
        The locations, one for each column.
    calendar
        When the steps are; one without an end is closed at the number of rows.
    people
        How many people there are in all, at least the largest total; by default as many as that.
    """

    values: NDArray[np.integer]
    locations: Locations
    calendar: Calendar
    people: int

    def __init__(
        self, values: ArrayLike, locations: Locations, calendar: Calendar, people: int | None = None
    ) -> None:
        array = to_array(values, "Counts")
        if array.ndim != 2 or not array.size:
            raise InvalidData(
                f"Counts must be an array of steps x locations, at least one each; its shape is {array.shape}."
            )
        if array.shape[1] != len(locations):
            raise InvalidData(f"Counts have {array.shape[1]} columns for {len(locations)} locations.")
        if calendar.steps is None:
            calendar = calendar.closed_at(len(array))
        if calendar.steps != len(array):
            raise InvalidData(f"Counts have {len(array)} rows, but the calendar has {calendar.steps} steps.")

        def name(step: int, place: int) -> str:
            return f"at {calendar.time(step)} in location {locations.ids[place]!r}"

        if not np.issubdtype(array.dtype, np.integer):
            array = _whole(array, name)
        negative = array < 0
        if negative.any():
            step, place = np.argwhere(negative)[0]
            raise InvalidData(f"The count {name(step, place)} is {array[step, place]}; counts cannot be negative.")
        if array.max() > np.iinfo(np.int32).max:
            raise InvalidData(
                f"The largest count is {array.max()}; more than {np.iinfo(np.int32).max} is not supported."
            )
        totals = array.sum(axis=1, dtype=np.int64)
        most = int(totals.max())
        if most == 0 and people is None:
            raise InvalidData("All counts are 0: there is nobody in this dataset.")
        if most > np.iinfo(np.int32).max:
            raise InvalidData(f"There are {most} people; more than {np.iinfo(np.int32).max} is not supported.")
        everyone = most if people is None else whole("people", people, least=1)
        if everyone < most:
            step = int(totals.argmax())
            raise InvalidData(
                f"`people` is {everyone}, but the counts at {calendar.time(step)} add up to {most} people."
            )
        object.__setattr__(self, "values", frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)
        object.__setattr__(self, "people", everyone)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """(steps,) int64: how many people are counted at each step."""
        return frozen(self.values.sum(axis=1, dtype=np.int64))

    @property
    def away(self) -> NDArray[np.int64]:
        """(steps,) int64: how many people are not counted at each step."""
        return self.people - self.totals

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return len(self.values)

    def __repr__(self) -> str:
        most = int(self.away.max())
        away = f", up to {most} away" if most else ""
        return (
            f"Counts({self.people} people{away}, {self.steps} steps from {self.calendar.start}, "
            f"{len(self.locations)} locations)"
        )

    def _repr_html_(self) -> str:
        counted = self.values[self.values > 0]
        rows = [
            ("people", f"{self.people:,}"),
            ("from", self.calendar.start),
            ("to", self.calendar.time(self.steps - 1)),
            ("steps", f"{self.steps:,} of {format_step(self.calendar.step)}"),
            ("locations", f"{len(self.locations):,}"),
            ("counts of 1, of all above 0", f"{(counted == 1).mean():.0%}"),
        ]
        return html_table("Counts", rows)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each count above 0: datetime, location, count.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        rows, places = np.nonzero(self.values)
        return to_frame(
            {
                "datetime": self.calendar.times()[rows].astype("datetime64[ms]"),
                "location": name_column(places, self.locations.ids),
                "count": self.values[rows, places].astype(np.int64),
            },
            library,
        )

    def days(self) -> Iterator[Counts]:
        """The counts of each calendar day."""
        return (self.part(day) for day in self.calendar.days())

    def part(self, steps: slice) -> Counts:
        """The counts of a range of steps, of as many people in all."""
        return Counts(self.values[steps], self.locations, self.calendar.part(steps), self.people)

    def between(self, start: datetime | None = None, end: datetime | None = None) -> Counts:
        """The counts from `start` on and before `end`."""
        first, last = (
            bound if time is None else min(max(0, self._steps_before(time)), self.steps)
            for time, bound in ((start, 0), (end, self.steps))
        )
        if first >= last:
            raise InvalidData(
                f"No step lies from {start or 'the start'} to {end or 'the end'}; the counts run from "
                f"{self.calendar.start} to {self.calendar.time(self.steps - 1)}."
            )
        return self.part(slice(first, last))

    def _steps_before(self, time: datetime) -> int:
        if time.tzinfo is not None:
            raise InvalidData(f"The time {time} has a time zone; give the local clock time without one.")
        return -((self.calendar.start - time) // self.calendar.step)


def _whole(array: NDArray[np.generic], name: Callable[[int, int], str]) -> NDArray[np.int64]:
    """Turn floats that are whole into integers; anything else is refused."""
    if array.dtype == bool or not np.issubdtype(array.dtype, np.floating):
        raise InvalidData(f"Counts have the type {array.dtype}; they must be whole numbers and none may be missing.")
    not_whole = ~(np.isfinite(array) & (array == np.floor(array)))
    if not_whole.any():
        step, place = np.argwhere(not_whole)[0]
        value = array[step, place]
        found = "missing" if np.isnan(value) else str(value)
        raise InvalidData(
            f"The count {name(step, place)} is {found}; counts must be whole numbers and none may be missing."
        )
    if np.abs(array).max() > 2**53:
        raise InvalidData("A count is larger than 2^53, too large to be a number of people.")
    return array.astype(np.int64)
