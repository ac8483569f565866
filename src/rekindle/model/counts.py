"""Counts: how many people were in each location at each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData
from rekindle.model.calendar import Calendar
from rekindle.model.locations import Locations, frozen, to_array

__all__ = ["Counts"]


@dataclass(frozen=True, init=False, eq=False)
class Counts:
    """How many people were in each location at each step: the release that an attack is given.

    Enforces what the paper's section "Aggregated Dataset Requirements" asks for: whole numbers of at least 0, and the
    same number of people at every step. The calendar enforces the rest.

    Parameters
    ----------
    values
        (steps, locations) whole numbers. Kept without a copy where they are integers already.
    locations
        The locations, one for each column.
    calendar
        When the steps are; one without an end is closed at the number of rows.
    """

    values: NDArray[np.integer]
    locations: Locations
    calendar: Calendar

    def __init__(self, values: ArrayLike, locations: Locations, calendar: Calendar) -> None:
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
        sums = array.sum(axis=1, dtype=np.int64)
        totals, frequency = np.unique(sums, return_counts=True)
        if len(totals) > 1:
            usual = totals[frequency.argmax()]
            other = np.flatnonzero(sums != usual)
            raise InvalidData(
                f"The counts at {calendar.time(other[0])} add up to {sums[other[0]]} people, those at most steps to {usual}; "
                f"every step must hold the same people. ({len(other)} of {len(array)} steps differ.)"
            )
        if sums[0] == 0:
            raise InvalidData("All counts are 0: there is nobody in this dataset.")
        if sums[0] > np.iinfo(np.int32).max:
            raise InvalidData(f"There are {sums[0]} people; more than {np.iinfo(np.int32).max} is not supported.")
        object.__setattr__(self, "values", frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)

    @property
    def people(self) -> int:
        """How many people are counted at every step."""
        return int(self.values[0].sum(dtype=np.int64))

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return (
            self.calendar == other.calendar
            and self.locations == other.locations
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Counts({self.people} people, {self.steps} steps from {self.calendar.start}, {len(self.locations)} locations)"

    def days(self) -> Iterator[Counts]:
        """The counts of each calendar day."""
        return (self.part(day) for day in self.calendar.days())

    def part(self, steps: slice) -> Counts:
        """The counts of a range of steps."""
        return Counts(self.values[steps], self.locations, self.calendar.part(steps))

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
