"""Reading and writing releases: tables in which numbers may be withheld, noisy, or not add up."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io.safety.untrusted import check_unfolded
from rekindle.io.tables.counts import (
    check_wide,
    grid_locations,
    name_column,
    names,
    read_locations,
    read_table,
    require,
    times,
    write_table,
)
from rekindle.model import Calendar, Locations, Release
from rekindle.model.calendar import parse_step

__all__ = ["WITHHELD", "read_release", "write_release"]

WITHHELD = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "*", "-", "[REDACTED]")
"""What stands for a withheld number in a csv file, where nothing else is said."""


def read_release(
    path: str | Path,
    locations: Locations | str | Path | None = None,
    *,
    absent: Literal["withheld", "zero"] = "withheld",
    withheld: Collection[str] = WITHHELD,
    step: str | timedelta | None = None,
    cell_km: float = 1.0,
) -> Release:
    """Read a published table from a csv or parquet file, long or wide.

    Numbers may be decimal or negative, and rows need not add up.

    Parameters
    ----------
    path
        Long form: columns ``datetime, location, count``. Wide form: ``datetime`` and one column for each place.
    locations
        The places, or a file of them. Without, places must be named "(row, column)" and become squares of a grid.
    absent
        What it means in long form that there is no row for a place at a step: "withheld" (the default, as publishers
        leave out what they withhold) or "zero".
    withheld
        Texts that stand for a withheld number in a csv file. In parquet it is a null or NaN.
    step
        The interval between steps. Without, it is the most frequent one in the file. A step without any row is absent.
    cell_km
        Side of those squares in km.
    """
    if absent not in ("withheld", "zero"):
        raise InvalidSetting(f"absent is {absent!r}; choose 'withheld' or 'zero'.")
    table = read_table(path)
    if isinstance(locations, (str, Path)):
        locations = read_locations(locations)
    require(table, {"datetime"}, path)
    when = times(table["datetime"], path)
    long = {"location", "count"} <= set(table.columns)
    if long:
        ids = names(table["location"], path)
        place_names = ids.unique(maintain_order=True).to_list()
    else:
        place_names = [name for name in table.columns if name != "datetime"]
        if not place_names:
            raise InvalidFile(
                path, "it has no column but 'datetime'; give long form (datetime, location, count) or wide."
            )
    if locations is None:
        locations = grid_locations(place_names, cell_km)
        if locations is None:
            raise InvalidFile(
                path, f"where the places are is unknown; give a file of locations (the first is {place_names[0]!r})."
            )
    try:
        columns = locations.indices(place_names)
        calendar, rows = _calendar(when, None if step is None else parse_step(step))
        if long:
            lookup = dict(zip(place_names, columns.tolist(), strict=True))
            places = ids.replace_strict(lookup, return_dtype=pl.Int64).to_numpy()
        else:
            places = np.zeros(len(rows), dtype=np.int64)
        _, first, frequency = np.unique(rows * len(locations) + places, return_index=True, return_counts=True)
        if frequency.max() > 1:
            row = int(first[frequency.argmax()])
            what = f"location {locations.ids[places[row]]!r}" if long else "the step"
            raise InvalidFile(path, f"{what} is listed twice at {calendar.time(int(rows[row]))}.")
        check_unfolded(path, 8 * (calendar.steps or 0) * len(locations), 8 * table.height * table.width)
        missing = 0.0 if absent == "zero" and long else np.nan
        values = np.full((calendar.steps or 0, len(locations)), missing)
        if long:
            values[rows, places] = _numbers(table.select("count"), withheld, path)[:, 0]
        else:
            values[np.ix_(rows, columns)] = _numbers(table.select(cs.by_name(place_names)), withheld, path)
        return Release(values, locations, calendar, (f"read from {Path(path).name}",))
    except InvalidFile:
        raise
    except InvalidData as error:
        raise InvalidFile(path, str(error)) from None


def _calendar(when: NDArray[np.datetime64], step: timedelta | None) -> tuple[Calendar, NDArray[np.int64]]:
    """Find the calendar of the times in a file, and the step of each row."""
    distinct = np.unique(when)
    if step is None:
        if len(distinct) < 2:
            raise InvalidData("there is a single time, so the interval between steps is unknown; give `step`.")
        gaps, frequency = np.unique(np.diff(distinct).astype(np.int64), return_counts=True)
        step = timedelta(seconds=int(gaps[frequency.argmax()]))
    offset = (when - distinct[0]).astype(np.int64)
    seconds = max(int(step.total_seconds()), 1)
    wrong = np.flatnonzero(offset % seconds)
    if len(wrong):
        raise InvalidData(
            f"row {wrong[0] + 1}: {str(when[wrong[0]]).replace('T', ' ')} is not a whole number of steps of {step} after "
            f"the first time, {str(distinct[0]).replace('T', ' ')}."
        )
    rows = offset // seconds
    if rows.max() >= 10_000_000:
        raise InvalidData(f"its times span {rows.max() + 1} steps of {step}; more than 10 million is not supported.")
    return Calendar(distinct[0].astype(datetime), step, int(rows.max()) + 1), rows


def _numbers(table: pl.DataFrame, withheld: Collection[str], path: str | Path) -> NDArray[np.float64]:
    """Turn all columns into numbers, NaN where they are withheld: (rows, columns) float64."""
    for column in table.select(~cs.string()).iter_columns():
        if not column.dtype.is_numeric() and column.dtype != pl.Null:
            raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not numbers.")
    text = cs.string().str.strip_chars()
    empty, cast = text.is_null() | text.is_in(list(withheld)), text.cast(pl.Float64, strict=False)
    bad = table.select((cast.is_null() & ~empty) | cast.is_infinite().fill_null(False))
    for column in bad.iter_columns():
        if column.any():
            row = int(column.arg_max() or 0)
            raise InvalidFile(
                path,
                f"row {row + 1}, column {column.name!r}: {table[column.name][row]!r} is neither a number nor a mark of a "
                "withheld one.",
            )
    known = table.with_columns(pl.when(~empty).then(cast).name.keep()).cast(pl.Float64)
    return np.asarray(known.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def write_release(
    path: str | Path, release: Release, *, form: Literal["long", "wide"] = "long", overwrite: bool = False
) -> None:
    """Write a release as csv or parquet; a withheld number is null, which in a csv file is an empty field.

    Parameters
    ----------
    path
        The file; its ending says which of the two.
    release
        What to write. Whole numbers are written without decimals.
    form
        "long": one row for each place and step, zeros and withheld ones included. "wide": a column for each place.
    overwrite
        Replace a file that is there.
    """
    if form not in ("long", "wide"):
        raise InvalidSetting(f"The form is {form!r}; choose 'long' or 'wide'.")
    published = release.values[~release.withheld]
    kind = pl.Int64 if (published == np.floor(published)).all() else pl.Float64
    when = release.calendar.times().astype("datetime64[ms]")

    def column(values: NDArray[np.float64]) -> pl.Series:
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True).cast(kind)

    if form == "wide":
        check_wide(release.locations)
        columns: dict[str, Any] = {"datetime": pl.Series(when)}
        columns |= {name: column(release.values[:, place]) for place, name in enumerate(release.locations.ids)}
        table = pl.DataFrame(columns)
    else:
        places = len(release.locations)
        table = pl.DataFrame(
            {
                "datetime": pl.Series(np.repeat(when, places)),
                "location": name_column(np.tile(np.arange(places), release.steps), release.locations.ids),
                "count": column(release.values.ravel()),
            }
        )
    write_table(path, table, overwrite=overwrite)
