"""Release: what is published, after whatever was done to protect the people in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData
from rekindle.frames import Frame, Library, name_column, to_frame
from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.locations import Locations, frozen

__all__ = ["AppliedDefence", "Release"]

_KINDS: dict[Any, Any] = {
    "str": str,
    "bool": bool,
    "float": (),
    "float | None": type(None),
    "Mapping[str, Any]": dict,
}
"""The types of the fields of a defence in JSON; numbers are checked by hand."""


@dataclass(frozen=True, kw_only=True)
class AppliedDefence:
    """A defence as a release states it: what was done, and what a reader must know of it.

    Attributes
    ----------
    name, settings
        The class of the defence and its settings in plain JSON values, without its seed.
    label
        The same in a few words.
    exact
        Whether every number that is published is the true one.
    adds_noise
        Whether the numbers are noisy.
    withholds_below, rounds_to, caps_at
        The smallest number that is published, the base of rounding, and the largest number that is published: in
        people, or None.
    included
        The share of the people who are counted.
    fixed_size
        Whether that share was drawn with a fixed size, so that one person more displaces another.
    keeps_sensitivity
        Whether one person still changes the numbers of a step by no more than before, so that noise may follow.
    simulated
        Whether its random numbers can be drawn again by those who know the seed.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    exact: bool = False
    adds_noise: bool = False
    withholds_below: float | None = None
    rounds_to: float | None = None
    caps_at: float | None = None
    included: float = 1.0
    fixed_size: bool = False
    keeps_sensitivity: bool = False
    simulated: bool = False

    def __repr__(self) -> str:
        return f"AppliedDefence({self.describe()})"

    def describe(self) -> str:
        """Name and settings in one line."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.name}({settings}){' (simulated, not for publication)' * (self.simulated and self.adds_noise)}"

    def to_json(self) -> dict[str, Any]:
        """In plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, entry: object) -> AppliedDefence:
        """Read what `to_json` gave; anything else is an `InvalidData`."""
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise InvalidData(f"A defence must be an object with a name; it is {entry!r:.80}.")
        # A later version may state more than this one knows.
        stated = {one.name: one.type for one in dataclasses.fields(cls) if one.name in entry}
        for name, kind in stated.items():
            value, limit = entry[name], 1 if name == "included" else 2**53
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= limit
            if not (number if "float" in kind and value is not None else isinstance(value, _KINDS[kind])):
                raise InvalidData(f"{name!r} of the defence {entry['name']!r:.80} is {value!r:.80}.")
        return cls(**{name: entry[name] for name in stated})


@dataclass(frozen=True, init=False, eq=False)
class Release:
    """Published numbers: they may be noisy, negative, withheld, or not add up.

    Parameters
    ----------
    values
        (steps, locations) float64 people; NaN where a number is withheld, which is not zero.
    locations
        The locations, one for each column.
    calendar
        When the steps are; one without an end is closed at the number of rows.
    defences
        What is known to have been done to the counts, in order.
    """

    values: NDArray[np.float64]
    locations: Locations
    calendar: Calendar
    defences: tuple[AppliedDefence, ...]

    def __init__(
        self,
        values: ArrayLike,
        locations: Locations,
        calendar: Calendar,
        defences: Iterable[AppliedDefence] = (),
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
            step, at = np.argwhere(unusable)[0]
            raise InvalidData(
                f"The number at {calendar.time(int(step))} in location {locations.ids[at]!r} is "
                f"{array[step, at]}; it must lie within 2^53, or be NaN where it is withheld."
            )
        if np.isnan(array).all():
            raise InvalidData(f"All {array.size} numbers are withheld: there is nothing in this release.")
        object.__setattr__(self, "values", frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)
        object.__setattr__(self, "defences", tuple(defences))

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

    @property
    def adds_noise(self) -> bool:
        """Whether any defence is known to have added noise."""
        return any(one.adds_noise for one in self.defences)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each step and location: datetime, location, count (NaN where it is withheld).

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        places = len(self.locations)
        return to_frame(
            {
                "datetime": np.repeat(self.calendar.times().astype("datetime64[ms]"), places),
                "location": name_column(np.tile(np.arange(places), self.steps), self.locations.ids),
                "count": self.values.ravel(),
            },
            library,
        )

    def describe(self) -> str:
        """What was done to the counts, in one line."""
        return " -> ".join(one.describe() for one in self.defences) or "as it is"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return (
            self.calendar == other.calendar
            and self.locations == other.locations
            and self.defences == other.defences
            and np.array_equal(self.values, other.values, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Release({self.steps} steps from {self.calendar.start}, {len(self.locations)} locations, "
            f"{self.withheld.mean():.0%} withheld, {self.describe()})"
        )
