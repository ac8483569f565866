"""Tables of counts, long and wide, and what reading them shares with reading releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from rekindle.checks import choice
from rekindle.errors import InvalidData, InvalidFile
from rekindle.frames import name_column
from rekindle.io.safety.untrusted import check_unfolded, in_file
from rekindle.io.tables.columns import (
    as_in_file,
    names,
    positions,
    require,
    step_numbers,
    times,
    whole_numbers,
    with_joined_times,
)
from rekindle.io.tables.locations import grid_locations, read_locations
from rekindle.io.tables.naming import known_column
from rekindle.io.tables.table import read_table, write_table
from rekindle.model import Calendar, Counts, Locations
from rekindle.model.calendar import parse_step

FORMS = ("long", "wide")
FLOWS = {"origin", "destination", "count"}
"""What a table of flows has beside the time."""


@dataclass(frozen=True, eq=False)
class Layout:
    """A table of numbers by time and location, as it was found in a file.

    Attributes
    ----------
    path, table
        The file, and all its columns.
    when
        (rows,) datetime64[s], the time of each row.
    long
        Whether it has the columns ``datetime, location, count``; otherwise ``datetime`` and one for each location.
    flows
        Whether it has the columns ``datetime, origin, destination, count`` instead, which is a long form too.
    ids
        The names of the locations in it.
    locations
        All locations, with their centres.
    renamed
        What its columns are called where they have other names than those above: the name in the file by ours.
    """

    path: Path
    table: pl.DataFrame
    when: NDArray[np.datetime64]
    long: bool
    ids: list[str]
    locations: Locations
    flows: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls, path: str | Path, locations: Locations | str | Path | None, cell_km: float, *, flows: bool | None = None
    ) -> Layout:
        """Read a file, see of which form it is, and find the locations that it names; with `flows`, only flows, or none."""
        path = Path(path)
        table = read_table(path)
        if locations is None and (beside := path.with_name(f"{path.stem}.locations.csv")).is_file():
            locations = beside
        if isinstance(locations, (str, Path)):
            locations = read_locations(locations)
        table, joined = with_joined_times(table, path)
        theirs = table.columns
        table, renamed = _with_our_names(table, path)
        if joined:
            renamed = {"datetime": joined, **renamed}
        if "datetime" not in table.columns:
            raise InvalidFile(
                path, f"no column of {', '.join(theirs[:8])} is known as the one of times; call it 'datetime'."
            )
        when = times(as_in_file(table["datetime"], renamed), path)
        columns = set(table.columns)
        long = {"location", "count"} <= columns
        found = flows is not False and not long and columns >= FLOWS
        if flows is False and not long and columns >= FLOWS:
            raise InvalidFile(path, "it holds flows from origins to destinations, not counts.")
        if flows and not found:
            require(table, FLOWS, path)
        if found:
            ends = [names(as_in_file(table[name], renamed).drop_nulls(), path) for name in ("origin", "destination")]
            ids = pl.concat(ends).unique(maintain_order=True).to_list()
        elif long:
            ids = names(as_in_file(table["location"], renamed), path).unique(maintain_order=True).to_list()
        else:
            ids = [name for name in table.columns if name != "datetime"]
        if not ids:
            raise InvalidFile(
                path, "it has no column but 'datetime'; give long form (datetime, location, count) or wide."
            )
        if locations is None:
            locations = grid_locations(ids, cell_km)
        if locations is None:
            unknown = next(name for name in ids if grid_locations([name], cell_km) is None)
            raise InvalidFile(
                path,
                f"where its locations are is unknown (such as {unknown!r}); give `locations`, or put them beside it as "
                f"{path.stem}.locations.csv.",
            )
        return cls(path, table, when, long or found, ids, locations, found, renamed)

    def numbers(self) -> pl.DataFrame:
        """The columns that hold numbers, by the names that they have in the file."""
        return self.column("count").to_frame() if self.long else self.table.select(cs.by_name(self.ids))

    def column(self, name: str) -> pl.Series:
        """A column by our name; it has the name that it has in the file."""
        return as_in_file(self.table[name], self.renamed)

    def columns(self) -> NDArray[np.int64]:
        """The location of each column of the wide form."""
        known = set(self.locations.ids)
        if unknown := [name for name in self.ids if name not in known]:
            raise InvalidFile(self.path, f"column {unknown[0]!r} is none of the {len(known)} known locations.")
        return self.locations.indices(self.ids)


def _with_our_names(table: pl.DataFrame, path: Path) -> tuple[pl.DataFrame, dict[str, str]]:
    """Call the columns of a table as we do, where the names that others give them are known; and what they were called."""
    known: dict[str, str] = {}
    counts = known_column(table.columns, "count")
    for role in ("datetime", "location", "origin", "destination", "count"):
        found = [name for name in known_column(table.columns, role) if name not in known.values()]
        if role not in table.columns and len(found) == 1:
            known[role] = found[0]
    columns = {*table.columns, *known}
    if len(counts) > 1 and ("location" in columns or {"origin", "destination"} <= columns):
        raise InvalidFile(path, f"the columns {counts} could each hold the counts; call the one that does 'count'.")
    if not (columns >= {"location", "count"} or columns >= FLOWS):  # in wide form they are names of locations
        known = {role: name for role, name in known.items() if role == "datetime"}
    return table.rename({name: role for role, name in known.items()}), known


def read_counts(
    path: str | Path,
    locations: Locations | str | Path | None = None,
    *,
    step: str | timedelta | None = None,
    cell_km: float = 1.0,
) -> Counts:
    """Read counts from a csv or parquet file, long or wide.

    Parameters
    ----------
    path
        Long form: columns ``datetime, location, count``, where an absent row means 0. Wide form: ``datetime`` and one
        column for each location, as the paper publishes.
    locations
        The locations, or a file of them. Without, it is the file ``NAME.locations.csv`` beside ``NAME.csv``, which
        `rekindle defend` writes; where there is none either, locations must be named "(row, column)" and become cells of
        a grid.
    step
        The interval between steps. Without, it is the most frequent one in the file.
    cell_km
        Side of those cells in km.
    """
    return counts_of(Layout.read(path, locations, cell_km, flows=False), step)


def counts_of(layout: Layout, step: str | timedelta | None) -> Counts:
    """Take counts from a table that was opened."""
    path, table, locations = layout.path, layout.table, layout.locations
    with in_file(path):
        calendar = _calendar(layout.when, None if step is None else parse_step(step), layout.long)
        if layout.long:
            return counts_from_table(table, path, locations, calendar, renamed=layout.renamed)
        check_unfolded(path, 8 * table.height * len(locations), 8 * table.height * table.width)
        values = np.zeros((table.height, len(locations)), dtype=np.int64)
        values[:, layout.columns()] = whole_numbers(layout.numbers(), path)
        return Counts(values, locations, calendar)


def counts_from_table(
    table: pl.DataFrame,
    path: str | Path,
    locations: Locations,
    calendar: Calendar,
    people: int | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Counts:
    """Take counts from long form: datetime, location, count; absent means 0, but no step may be without a row."""
    require(table, {"datetime", "location", "count"}, path)
    when, where, count = (as_in_file(table[name], renamed) for name in ("datetime", "location", "count"))
    steps = step_numbers(when, path, calendar)
    places, _ = positions(where, path, locations.ids)
    number = whole_numbers(count.to_frame(), path)[:, 0]
    there = np.unique(steps)
    if len(there) != calendar.steps:
        missing = int(np.argmax(np.append(there, -1) != np.arange(len(there) + 1)))
        raise InvalidFile(path, f"there is no count at {calendar.time(missing)}; no step may be missing.")
    check_unfolded(path, 8 * len(there) * len(locations), 8 * table.height * table.width)
    index = steps * len(locations) + places
    values = np.zeros((len(there), len(locations)), dtype=np.int64)
    values.ravel()[index] = number
    entries = np.bincount(index, minlength=values.size)
    if entries.max() > 1:
        step, place = divmod(int(entries.argmax()), len(locations))
        raise InvalidFile(
            path,
            f"location {locations.ids[place]!r} is listed twice at {calendar.time(step)}; expected it once.{of_categories(table)}",
        )
    with in_file(path):
        return Counts(values, locations, calendar, people)


def of_categories(table: pl.DataFrame) -> str:
    """What to do about rows that differ in columns of their own."""
    others = [name for name in table.columns if name not in {"datetime", "location", "window", *FLOWS}]
    if not others:
        return ""
    return f" If its rows differ in {' or '.join(map(repr, others[:5]))}, add their counts up, or keep those of one category."


def _calendar(when: NDArray[np.datetime64], step: timedelta | None, long: bool) -> Calendar:
    """Find the calendar of the times in a file, and refuse steps that are missing, twice or out of order."""
    distinct = np.unique(when)
    step = usual_step(distinct) if step is None else step
    if not long:
        wrong = np.flatnonzero(np.diff(when).astype(np.int64) <= 0)
        if len(wrong):
            row = wrong[0] + 1
            what = "is listed twice" if when[row] == when[row - 1] else "comes after a later time"
            raise InvalidData(
                f"data row {row + 1}: the step {clock(when[row])} {what}; expected each once, in order."
            )
    wrong = np.flatnonzero(np.diff(distinct).astype(np.int64) != int(step.total_seconds()))
    if len(wrong):
        before, after = distinct[wrong[0]], distinct[wrong[0] + 1]
        raise InvalidData(
            f"after {clock(before)} comes {clock(after)}; steps must be {step} (h:min:s) apart and none may be missing."
        )
    return Calendar(distinct[0].astype(datetime), step, len(distinct))


def calendar_with_gaps(when: NDArray[np.datetime64], step: timedelta | None) -> tuple[Calendar, NDArray[np.int64]]:
    """Find the calendar of the times in a file, and the step of each row."""
    distinct = np.unique(when)
    if step is None:
        step = usual_step(distinct)
    offset = (when - distinct[0]).astype(np.int64)
    seconds = max(int(step.total_seconds()), 1)
    wrong = np.flatnonzero(offset % seconds)
    if len(wrong):
        raise InvalidData(
            f"row {wrong[0] + 1}: {clock(when[wrong[0]])} is not a whole number of steps of {step} after "
            f"the first time, {clock(distinct[0])}."
        )
    rows = offset // seconds
    if rows.max() >= 10_000_000:
        raise InvalidData(f"its times span {rows.max() + 1} steps of {step}; more than 10 million is not supported.")
    return Calendar(distinct[0].astype(datetime), step, int(rows.max()) + 1), rows


def usual_step(distinct: NDArray[np.datetime64]) -> timedelta:
    """Find the most frequent interval between times, which are distinct and in order."""
    if len(distinct) < 2:
        raise InvalidData("there is a single time, so the interval between steps is unknown; give `step`.")
    gaps, frequency = np.unique(np.diff(distinct).astype(np.int64), return_counts=True)
    return timedelta(seconds=int(gaps[frequency.argmax()]))


def clock(time: np.datetime64) -> str:
    """A time as people write it."""
    return str(time).replace("T", " ")


def counts_table(counts: Counts) -> pl.DataFrame:
    """Counts in long form without the zeros: datetime, location, count; a step at which nobody is counted has one zero."""
    listed = counts.values != 0
    listed[counts.totals == 0, 0] = True
    rows, places = np.nonzero(listed)
    return pl.DataFrame(
        {
            "datetime": pl.Series(counts.calendar.times()[rows].astype("datetime64[ms]")),
            "location": name_column(places, counts.locations.ids),
            "count": counts.values[rows, places].astype(np.int64),
        }
    )


def wide_table(calendar: Calendar, locations: Locations, columns: list[Any]) -> pl.DataFrame:
    """A table of times and one column for each location; names that would be taken for other columns are refused."""
    if "datetime" in locations.ids:
        raise InvalidData("A location is named 'datetime', as is the column of times; write the long form.")
    if {"location", "count"} <= set(locations.ids) or set(locations.ids) >= FLOWS:
        raise InvalidData("Locations have the names of the columns of the long form, such as 'count'; write that.")
    when = pl.Series(calendar.times().astype("datetime64[ms]"))
    return pl.DataFrame({"datetime": when} | dict(zip(locations.ids, columns, strict=True)))


def write_counts(
    path: str | Path, counts: Counts, *, form: Literal["long", "wide"] = "long", overwrite: bool = False
) -> None:
    """Write counts as csv or parquet, by the ending of the name.

    Parameters
    ----------
    path
        The file.
    counts
        What to write.
    form
        "long": one row for each count above 0. "wide": a column for each location.
    overwrite
        Replace a file that is there.
    """
    if choice("form", form, FORMS) == "wide":
        table = wide_table(counts.calendar, counts.locations, list(counts.values.T))
    else:
        table = counts_table(counts)
    write_table(path, table, overwrite=overwrite)
