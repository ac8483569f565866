"""Release: what is published, after whatever was done to protect the people in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData
from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.locations import Locations, frozen

__all__ = ["Release"]


@dataclass(frozen=True, init=False, eq=False)
class Release:
    """Published numbers: they may be noisy, negative, withheld, or not add up.

    Parameters
    ----------
    values
        (steps, locations) float64 people; NaN where a number is withheld, which is not zero.
    locations
        The places, one for each column.
    calendar
        When the steps are; one without an end is closed at the number of rows.
    history
        What was done to the counts, in order.
    """

    values: NDArray[np.float64]
    locations: Locations
    calendar: Calendar
    history: tuple[str, ...]

    def __init__(
        self, values: ArrayLike, locations: Locations, calendar: Calendar, history: Iterable[str] = ()
    ) -> None:
        array = np.asarray(values)
        if array.ndim != 2 or not array.size:
            raise InvalidData(
                f"A release must be an array of steps x locations, at least one each; its shape is {array.shape}."
            )
        if array.dtype == bool or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
            raise InvalidData(f"A release has the type {array.dtype}; it must be numbers.")
        array = array.astype(np.float64, copy=False)
        if array.shape[1] != len(locations):
            raise InvalidData(f"The release has {array.shape[1]} columns for {len(locations)} locations.")
        if calendar.steps is None:
            calendar = calendar.closed_at(len(array))
        if calendar.steps != len(array):
            raise InvalidData(f"The release has {len(array)} rows, but the calendar has {calendar.steps} steps.")
        unusable = np.isinf(array) | (np.abs(array) > 2**53)
        if unusable.any():
            step, place = np.argwhere(unusable)[0]
            raise InvalidData(
                f"The number at {calendar.time(int(step))} in location {locations.ids[place]!r} is "
                f"{array[step, place]}; it must lie within 2^53, or be NaN where it is withheld."
            )
        if np.isnan(array).all():
            raise InvalidData(f"All {array.size} numbers are withheld: there is nothing in this release.")
        object.__setattr__(self, "values", frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)
        object.__setattr__(self, "history", (history,) if isinstance(history, str) else tuple(history))

    @classmethod
    def of(cls, counts: Counts) -> Release:
        """Publish counts as they are."""
        return cls(counts.values, counts.locations, counts.calendar)

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return len(self.values)

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Which numbers are withheld: (steps, locations) bool."""
        return np.isnan(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return (
            self.calendar == other.calendar
            and self.locations == other.locations
            and self.history == other.history
            and np.array_equal(self.values, other.values, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        done = " -> ".join(self.history) or "as it is"
        return (
            f"Release({self.steps} steps from {self.calendar.start}, {len(self.locations)} places, "
            f"{self.withheld.mean():.0%} withheld, {done})"
        )
