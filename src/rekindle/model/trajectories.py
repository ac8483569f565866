"""Trajectories: where each person was at each step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData
from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.locations import Locations, frozen, to_array

__all__ = ["Trajectories"]


@dataclass(frozen=True, init=False, eq=False)
class Trajectories:
    """Where each person was at each step.

    Parameters
    ----------
    cells
        (people, steps) integers, each an index into `locations`. Kept without a copy. There may be no step yet.
    locations
        The locations.
    calendar
        When the steps are; one without an end is closed at the number of columns.
    people_ids
        A name for each person; ``"0"``, ``"1"``, ... by default.
    """

    cells: NDArray[np.integer]
    locations: Locations
    calendar: Calendar
    people_ids: tuple[str, ...]

    def __init__(
        self,
        cells: ArrayLike,
        locations: Locations,
        calendar: Calendar,
        people_ids: Iterable[str] | None = None,
    ) -> None:
        array = to_array(cells, "Trajectories")
        if array.ndim != 2 or not len(array):
            raise InvalidData(
                f"Trajectories must be an array of people x steps, at least one person; its shape is {array.shape}."
            )
        if not np.issubdtype(array.dtype, np.integer):
            raise InvalidData(
                f"Trajectories have the type {array.dtype}; they must be whole numbers, indices of locations."
            )
        if array.size and (array.min() < 0 or array.max() >= len(locations)):
            person, step = np.argwhere((array < 0) | (array >= len(locations)))[0]
            raise InvalidData(
                f"Person {person} is at location index {array[person, step]} at step {step}; "
                f"there are {len(locations)} locations, counted from 0."
            )
        if calendar.steps is None:
            calendar = calendar.closed_at(array.shape[1])
        if calendar.steps != array.shape[1]:
            raise InvalidData(
                f"Trajectories have {array.shape[1]} columns, but the calendar has {calendar.steps} steps."
            )
        names = tuple(map(str, range(len(array)))) if people_ids is None else tuple(map(str, people_ids))
        if len(names) != len(array):
            raise InvalidData(f"There are {len(names)} names for {len(array)} people.")
        if len(set(names)) != len(names):
            raise InvalidData("Two people have the same name; every person needs a name of their own.")
        object.__setattr__(self, "cells", frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)
        object.__setattr__(self, "people_ids", names)

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.cells)

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return int(self.cells.shape[1])

    def __repr__(self) -> str:
        return f"Trajectories({self.people} people, {self.steps} steps from {self.calendar.start}, {len(self.locations)} locations)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectories):
            return NotImplemented
        return (
            self.calendar == other.calendar
            and self.locations == other.locations
            and self.people_ids == other.people_ids
            and np.array_equal(self.cells, other.cells)
        )

    __hash__ = None  # type: ignore[assignment]

    def xy_km(self) -> NDArray[np.float64]:
        """The paper's output: (people, steps, 2) float64, km to the east and to the north."""
        return np.asarray(self.locations.xy_km[self.cells])

    def counts(self) -> Counts:
        """Count the people in each location at each step."""
        places = len(self.locations)
        values = np.empty((self.steps, places), dtype=np.int32)
        for step in range(self.steps):
            values[step] = np.bincount(self.cells[:, step], minlength=places)
        return Counts(values, self.locations, self.calendar)

    def part(self, steps: slice) -> Trajectories:
        """The trajectories of a range of steps."""
        return Trajectories(self.cells[:, steps], self.locations, self.calendar.part(steps), self.people_ids)

    def during(self, calendar: Calendar) -> Trajectories:
        """The trajectories at the steps of a calendar, such as that of a recovery of some days."""
        steps = self.steps if calendar.steps is None else calendar.steps
        offset, rest = divmod(calendar.start - self.calendar.start, self.calendar.step)
        if rest or offset < 0 or calendar.step != self.calendar.step or offset + steps > self.steps:
            raise InvalidData(
                f"The recovery begins at {calendar.start} and has {steps} steps of {calendar.step}; "
                f"the truth begins at {self.calendar.start} and has {self.steps} of {self.calendar.step}."
            )
        return self.part(slice(offset, offset + steps))
