"""Trajectories: where each person was at each step."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.frames import Frame, Library, geoframe, name_column, to_frame
from rekindle.model.calendar import Calendar, format_step, parse_step
from rekindle.model.counts import Counts
from rekindle.model.flows import Flows, flows_of
from rekindle.model.locations import AWAY, ByValue, Locations, frozen, to_array


@dataclass(frozen=True, init=False, eq=False)
class Trajectories(ByValue):
    """Where each person was at each step.

    Parameters
    ----------
    cells
        (people, steps) integers, each an index into `locations`, or `AWAY` (-1) where a person is not counted. Kept
        without a copy. There may be no step yet.
    locations
        The locations.
    calendar
        When the steps are; one without an end is closed at the number of columns.
    people_ids
        A name for each person; ``"0"``, ``"1"``, ... by default.
    observed
        (people, steps) bool: which locations were recorded; the others were filled in. None where all were recorded, or
        where it is not known.
    """

    cells: NDArray[np.integer]
    locations: Locations
    calendar: Calendar
    people_ids: tuple[str, ...]
    observed: NDArray[np.bool_] | None

    def __init__(
        self,
        cells: ArrayLike,
        locations: Locations,
        calendar: Calendar,
        people_ids: Iterable[str] | None = None,
        observed: ArrayLike | None = None,
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
        if array.size and (array.min() < AWAY or array.max() >= len(locations)):
            person, step = np.argwhere((array < AWAY) | (array >= len(locations)))[0]
            raise InvalidData(
                f"Person {person} is at location index {array[person, step]} at step {step}; "
                f"there are {len(locations)} locations, counted from 0, and {AWAY} for people who are away."
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
        object.__setattr__(self, "observed", None if observed is None else _checked(observed, array))

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.cells)

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return int(self.cells.shape[1])

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which points are counted: (people, steps) bool, False where a person is away."""
        return np.asarray(self.cells != AWAY)

    def __repr__(self) -> str:
        away = 1 - self.counted.mean() if self.cells.size else 0.0
        return (
            f"Trajectories({self.people} people{f', {away:.0%} away' if away else ''}, {self.steps} steps "
            f"from {self.calendar.start}, {len(self.locations)} locations)"
        )

    def xy_km(self) -> NDArray[np.float64]:
        """The paper's output: (people, steps, 2) float64, km to the east and to the north; NaN for people who are away."""
        centres = self.locations.xy_km
        if self.cells.min(initial=0) == AWAY:
            centres = np.vstack([centres, [np.nan, np.nan]])  # index -1 is the last row
        return np.asarray(centres[self.cells])

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each person and step at which they are counted: person, datetime, location, and observed where known.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        return to_frame(self._points()[0], library)

    def to_geoframe(self) -> Any:
        """The rows of `to_frame` with points, as a `geopandas.GeoDataFrame`.

        In degrees (EPSG:4326) where the locations have them, else in km on their plane, without a CRS.
        """
        columns, cells = self._points()
        xy, crs = self.locations.geometry()
        return geoframe(columns, xy[cells], crs)

    def _points(self) -> tuple[dict[str, Any], NDArray[np.integer]]:
        """The columns of `to_frame`, and the location index of each row."""
        person, step = np.nonzero(self.counted)
        cells = self.cells[person, step]
        columns = {
            "person": name_column(person, self.people_ids),
            "datetime": self.calendar.times()[step].astype("datetime64[ms]"),
            "location": name_column(cells, self.locations.ids),
        }
        if self.observed is not None:
            columns["observed"] = self.observed[person, step]
        return columns, cells

    def counts(self) -> Counts:
        """Count the people in each location at each step; those who are away are not counted."""
        places = len(self.locations)
        values = np.empty((self.steps, places), dtype=np.int32)
        for step in range(self.steps):
            values[step] = np.bincount(self.cells[:, step].astype(np.int64) + 1, minlength=places + 1)[1:]
        return Counts(values, self.locations, self.calendar, self.people)

    def flows(self, window: str | timedelta | None = None, *, stayers: bool = True) -> Flows:
        """Count who went where between the start and the end of each window, from the first step on.

        Parameters
        ----------
        window
            How long a window is, such as ``"2h"``: a multiple of the step that divides 24 hours; by default the step.
        stayers
            Whether people who are in one location at both ends of a window are in the flows.
        """
        every, rest = (1, 0) if window is None else divmod(parse_step(window), self.calendar.step)
        if rest or every < 1:
            raise InvalidSetting(
                f"`window` is {window!s}; it must be a multiple of the step of {format_step(self.calendar.step)}."
            )
        cells = self.cells[:, ::every]
        calendar = Calendar(self.calendar.start, every * self.calendar.step, cells.shape[1])
        return flows_of(cells, self.locations, calendar, stayers=stayers, people=self.people)

    def part(self, steps: slice) -> Trajectories:
        """The trajectories of a range of steps."""
        seen = None if self.observed is None else self.observed[:, steps]
        return Trajectories(self.cells[:, steps], self.locations, self.calendar.part(steps), self.people_ids, seen)

    def without(self, names: Collection[str]) -> Trajectories:
        """The trajectories of all people but some."""
        rows = [row for row, name in enumerate(self.people_ids) if name not in names]
        if not rows:
            raise InvalidData("Nobody is left without these people.")
        seen = None if self.observed is None else self.observed[rows]
        kept = [self.people_ids[row] for row in rows]
        return Trajectories(self.cells[rows], self.locations, self.calendar, kept, seen)

    def during(self, calendar: Calendar) -> Trajectories:
        """The trajectories at the steps of a calendar, such as that of a recovery of some days, or of longer steps."""
        offset, rest = divmod(calendar.start - self.calendar.start, self.calendar.step)
        every, other = divmod(calendar.step, self.calendar.step)
        steps = self.steps if calendar.steps is None else calendar.steps
        last = offset + (steps - 1) * every
        if rest or other or offset < 0 or last >= self.steps:
            raise InvalidData(
                f"The true paths begin at {self.calendar.start} and have {self.steps} steps of {self.calendar.step} (h:min:s); they do "
                f"not cover {steps} steps of {calendar.step} from {calendar.start}."
            )
        at = slice(offset, max(last + 1, offset), every)
        seen = None if self.observed is None else self.observed[:, at]
        return Trajectories(self.cells[:, at], self.locations, calendar.closed_at(steps), self.people_ids, seen)


def _checked(observed: ArrayLike, cells: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Take which points were observed, and refuse those of people who are away."""
    array = to_array(observed, "Observed points")
    if array.dtype != bool or array.shape != cells.shape:
        raise InvalidData(
            f"Observed points have the type {array.dtype} and the shape {array.shape}; they must be bool and {cells.shape}."
        )
    wrong = np.argwhere(array & (cells == AWAY))
    if len(wrong):
        raise InvalidData(f"Person {wrong[0][0]} is observed at step {wrong[0][1]}, but away.")
    return frozen(array)
