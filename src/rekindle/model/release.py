"""Release: what is published, after whatever was done to protect the people in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData, TooLarge
from rekindle.frames import Frame, Library, name_column, to_frame
from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.flows import Flows
from rekindle.model.locations import AWAY, ByValue, Locations, frozen, to_array

_KINDS: dict[Any, Any] = {
    "str": str,
    "bool": bool,
    "float": (),
    "float | None": type(None),
    "Mapping[str, Any]": dict,
}
"""The types of the fields of a defence in JSON; numbers are checked by hand."""


MOST_NUMBERS = 250_000_000
"""In a release of flows: 2 GB."""


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
class Release(ByValue):
    """Published numbers, of counts or of flows: they may be noisy, negative, withheld, or not add up.

    Parameters
    ----------
    values
        (steps, columns) float64 people; NaN where a number is withheld, which is not zero.
    locations
        The locations; of counts, one for each column.
    calendar
        When the steps are; one without an end is closed at the number of rows. Of flows, when each window begins: one step
        less than those flows have.
    defences
        What is known to have been done to the numbers, in order.
    pairs
        Of flows, the origin and the destination of each column: (columns, 2) indices of locations, or `AWAY`. A flow that has
        no column is none. None of counts.
    """

    values: NDArray[np.float64]
    locations: Locations
    calendar: Calendar
    defences: tuple[AppliedDefence, ...]
    pairs: NDArray[np.int64] | None

    def __init__(
        self,
        values: ArrayLike,
        locations: Locations,
        calendar: Calendar,
        defences: Iterable[AppliedDefence] = (),
        pairs: ArrayLike | None = None,
    ) -> None:
        array = np.asarray(values)
        if array.ndim != 2 or not array.size:
            raise InvalidData(
                f"A release must be an array of steps x locations, at least one each; its shape is {array.shape}."
            )
        if array.dtype == bool or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
            raise InvalidData(f"A release has the type {array.dtype}; it must be numbers.")
        array = array.astype(np.float64, copy=False)
        ends = None if pairs is None else _checked_pairs(pairs, len(locations))
        if array.shape[1] != (len(locations) if ends is None else len(ends)):
            columns = f"{len(locations)} locations" if ends is None else f"{len(ends)} pairs of locations"
            raise InvalidData(f"The release has {array.shape[1]} columns for {columns}.")
        if calendar.steps is None:
            calendar = calendar.closed_at(len(array))
        if calendar.steps != len(array):
            raise InvalidData(f"The release has {len(array)} rows, but the calendar has {calendar.steps} steps.")
        unusable = np.isinf(array) | (np.abs(array) > 2**53)
        if unusable.any():
            step, at = np.argwhere(unusable)[0]
            raise InvalidData(
                f"The number at {calendar.time(int(step))} {_where(locations, ends, at)} is "
                f"{array[step, at]}; it must lie within 2^53, or be NaN where it is withheld."
            )
        if np.isnan(array).all():
            raise InvalidData(f"All {array.size} numbers are withheld: there is nothing in this release.")
        object.__setattr__(self, "values", frozen(array))
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "calendar", calendar)
        object.__setattr__(self, "defences", tuple(defences))
        object.__setattr__(self, "pairs", None if ends is None else frozen(ends))

    @classmethod
    def of(cls, data: Counts | Flows, defences: Iterable[AppliedDefence] = (), *, all_pairs: bool = False) -> Release:
        """Publish counts or flows as they are.

        Parameters
        ----------
        data
            The counts or flows.
        defences
            What was done before they were counted.
        all_pairs
            Of flows, whether every pair of locations has a column; by default those between which anyone ever went, and
            with stayers each location with itself, so that the list of pairs is known too.
        """
        if isinstance(data, Counts):
            return cls(data.values, data.locations, data.calendar, defences)
        if data.steps < 2:
            raise InvalidData("These flows have no window: there is nothing to publish.")
        places = len(data.locations)
        if all_pairs:
            ends = np.argwhere(np.ones((places + 1, places + 1), bool))[1:] + AWAY
            ends = ends if data.stayers else ends[ends[:, 0] != ends[:, 1]]
        else:
            went = np.stack([data.origin, data.destination], axis=1).astype(np.int64)
            stay = np.repeat(np.arange(places if data.stayers else 0), 2).reshape(-1, 2)
            ends = np.unique(np.concatenate([went, stay]), axis=0)
        if not len(ends):
            raise InvalidData(
                "Nobody moves in these flows, and stayers are not in them: there is nothing to publish."
            )
        if (data.steps - 1) * len(ends) > MOST_NUMBERS:
            raise TooLarge(
                f"{data.steps - 1} windows of flows between {len(ends)} pairs of locations are too many numbers; choose longer "
                "windows or larger locations."
            )
        key = (ends + 1) @ [places + 1, 1]
        column = np.searchsorted(key, (data.origin.astype(np.int64) + 1) * (places + 1) + data.destination + 1)
        values = np.zeros((data.steps - 1, len(ends)))
        values[data.step, column] = data.count
        return cls(values, data.locations, data.calendar.part(slice(0, data.steps - 1)), defences, ends)

    def with_values(
        self, values: ArrayLike, defences: Iterable[AppliedDefence] | None = None, calendar: Calendar | None = None
    ) -> Release:
        """Give other numbers in the same columns, by default of the same steps and with the same defences."""
        done = self.defences if defences is None else defences
        return Release(values, self.locations, calendar or self.calendar, done, self.pairs)

    @property
    def steps(self) -> int:
        """Number of time steps."""
        return len(self.values)

    @property
    def moments(self) -> Calendar:
        """The steps at which people are somewhere: of flows, when windows begin and end."""
        return self.calendar if self.pairs is None else self.calendar.closed_at(self.steps + 1)

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Which numbers are withheld: (steps, columns) bool."""
        return np.isnan(self.values)

    @property
    def stayers(self) -> bool:
        """Of flows, whether people who stay are in them."""
        return self.pairs is not None and bool((self.pairs[:, 0] == self.pairs[:, 1]).any())

    @property
    def has_all_pairs(self) -> bool:
        """Of flows, whether every pair of locations has a column, be it of movers only."""
        ends = len(self.locations) + 1
        return self.pairs is not None and len(self.pairs) >= ends**2 - (1 if self.stayers else ends)

    @property
    def adds_noise(self) -> bool:
        """Whether any defence is known to have added noise."""
        return any(one.adds_noise for one in self.defences)

    def where(self, column: int) -> str:
        """What a column is of, in words: in which location, or from which to which."""
        return _where(self.locations, self.pairs, column)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each step and column: datetime, location (or origin, destination), count (NaN where it is withheld).

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        columns = self.values.shape[1]
        if self.pairs is None:
            where = {"location": np.arange(columns)}
        else:
            where = {"origin": self.pairs[:, 0], "destination": self.pairs[:, 1]}
        return to_frame(
            {
                "datetime": np.repeat(self.calendar.times().astype("datetime64[ms]"), columns),
                **{name: name_column(np.tile(at, self.steps), self.locations.ids) for name, at in where.items()},
                "count": self.values.ravel(),
            },
            library,
        )

    def describe(self) -> str:
        """What was done to the counts, in one line."""
        return " -> ".join(one.describe() for one in self.defences) or "as it is"

    def __repr__(self) -> str:
        flows = "" if self.pairs is None else f"flows between {len(self.pairs)} pairs, "
        return (
            f"Release({flows}{self.steps} steps from {self.calendar.start}, {len(self.locations)} locations, "
            f"{self.withheld.mean():.0%} withheld, {self.describe()})"
        )


def _checked_pairs(pairs: ArrayLike, places: int) -> NDArray[np.int64]:
    array = to_array(pairs, "Pairs")
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidData(
            f"Pairs have the type {array.dtype} and the shape {array.shape}; they must be whole numbers, (columns, 2)."
        )
    wrong = (array < AWAY).any(axis=1) | (array >= places).any(axis=1) | (array == AWAY).all(axis=1)
    if wrong.any():
        raise InvalidData(
            f"The pair {array[wrong.argmax()].tolist()} is none of {places} locations, counted from 0, or {AWAY} for away."
        )
    if len(np.unique(array, axis=0)) < len(array):
        raise InvalidData("A pair of locations has two columns; expected one.")
    return array.astype(np.int64, copy=False)


def _where(locations: Locations, pairs: NDArray[np.int64] | None, column: int) -> str:
    if pairs is None:
        return f"in location {locations.ids[column]!r}"
    ends = ("nowhere" if end == AWAY else repr(locations.ids[end]) for end in pairs[column])
    return f"from {' to '.join(ends)}"
