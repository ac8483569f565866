"""Reading and writing releases: tables in which numbers may be withheld, noisy, or not add up."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from rekindle.checks import choice
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting, OutputExists
from rekindle.io.safety.files import read_json, write_json
from rekindle.io.safety.untrusted import check_unfolded, in_file
from rekindle.io.tables.columns import positions
from rekindle.io.tables.counts import FORMS, Layout, calendar_with_gaps, of_categories, wide_table
from rekindle.io.tables.flows import locations_of, of_window
from rekindle.io.tables.table import write_table
from rekindle.model import AppliedDefence, Locations, Release
from rekindle.model.calendar import parse_step

WITHHELD = (
    *("", "NA", "N/A", "n.a.", "NaN", "null", "none", "*", "**", "***", ".", "..", "...", ":", "-", "–", "#", "/"),
    *("c", "[c]", "(c)", "x", "[x]", "(x)", "s", "[s]", "(s)", "d", "(d)", "w", "[w]", "u", "[u]", "[low]", "[z]"),
    *("[REDACTED]", "redacted", "suppressed", "withheld", "confidential"),
)
"""What stands for a withheld number in a csv file, in any case of letters, where nothing else is said."""

BELOW = r"^(?:<|≤|<=|&lt;)\s*(\d+(?:\.\d+)?)$"
"""A withheld number of which the largest possible value is published, such as ``<10``; it needs no mention."""

UNKNOWN = "Unknown"
"""What was done to the numbers of a table that does not say it."""

ABSENT = ("withheld", "zero")
"""What it can mean that a long table has no row for a location at a step."""


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

    Numbers may be decimal or negative, and rows need not add up. What was done to them is read from the file that
    `write_release` puts beside the table, where it is there; without it nothing is known of them, and a warning names what may
    be a mistake: the same number below 0 again and again; of flows, any number below 0 and a step without any number.

    Parameters
    ----------
    path
        Long form: columns ``datetime, location, count``; of flows ``datetime, origin, destination, count``, see `read_flows`.
        Wide form: ``datetime`` and one column for each location.
    locations
        The locations, or a file of them; without, as in `read_counts`.
    absent
        What it means in long form that there is no row for a location (or for a flow that other steps have) at a step:
        "withheld" (the default, as publishers leave out what they withhold) or "zero".
    withheld
        Texts that stand for a withheld number in a csv file, in any case of letters; by default the usual ones, such as
        ``*``, ``..`` and ``c``. So do ``<10`` and the like. In parquet it is a null or NaN.
    step
        The interval between steps; of flows, how long a window is. Without, it is the most frequent one in the file. A step
        without any row is absent; of flows, it must not be where absent means zero.
    cell_km
        Side of those cells in km.
    """
    release = release_of(Layout.read(path, locations, cell_km), absent=absent, withheld=withheld, step=step)
    for sentence in doubts(release):
        warnings.warn(f"{path}: {sentence}", stacklevel=2)
    return release


def doubts(release: Release) -> Iterator[str]:
    """What may be a mistake in a release by others, in sentences: numbers below 0, and steps without any number.

    Of counts, only numbers below 0 that are all the same: noise would have given others too.
    """
    if not any(one.name == UNKNOWN for one in release.defences):
        return
    negative, empty = np.argwhere(release.values < 0), np.flatnonzero(release.withheld.all(axis=1))
    same = len(negative) > 1 and len(np.unique(release.values[release.values < 0])) == 1
    if same or (len(negative) and release.pairs is not None):
        step, column = negative[0].tolist()
        others = f" (the first of {len(negative):,} numbers below 0)" if len(negative) > 1 else ""
        yield (
            f"The number at {release.calendar.time(step)} {release.where(column)} is {release.values[step, column]:g}{others}, "
            "which is taken for noise; if it marks a withheld number, leave its field empty."
        )
    if release.pairs is None:
        return
    if len(empty):
        others = f" (the first of {len(empty):,} such steps)" if len(empty) > 1 else ""
        yield f"There is no number at {release.calendar.time(int(empty[0]))}{others}: all are taken to be withheld."
    if (release.values == 1).any() and release.withheld.any():
        yield (
            f"{release.withheld.mean():.0%} of the flows are taken to be withheld, though there are numbers of 1: if only zeros have "
            "no row, set `absent='zero'`."
        )


def release_of(layout: Layout, *, absent: str, withheld: Collection[str], step: str | timedelta | None) -> Release:
    """Take a release from a table that was opened."""
    choice("absent", absent, ABSENT)
    path, locations = layout.path, layout.locations
    with in_file(path):
        interval, pairs = None if step is None else parse_step(step), None
        if layout.flows:
            chosen, interval = of_window(layout.table, path, interval)
            layout = dataclasses.replace(layout, table=layout.table.filter(chosen), when=layout.when[chosen])
        table, long = layout.table, layout.long
        calendar, rows = calendar_with_gaps(layout.when, interval)
        width, places = len(locations), np.zeros(len(rows), dtype=np.int64)
        if layout.flows:
            ends = np.stack(
                [locations_of(layout.column(name), path, locations) for name in ("origin", "destination")], axis=1
            )
            pairs, places = np.unique(ends, axis=0, return_inverse=True)
            width, places = len(pairs), places.ravel()
        elif long:
            places, _ = positions(layout.column("location"), path, locations.ids)
        there = np.unique(rows)
        if layout.flows and absent == "zero" and len(there) < (calendar.steps or 0):
            missing_step = int(np.argmax(np.append(there, -1) != np.arange(len(there) + 1)))
            raise InvalidFile(
                path,
                f"there is no row at {calendar.time(missing_step)}, which with `absent='zero'` would mean that nobody is anywhere "
                "then. Give its rows, be they of zeros, or read it with `absent='withheld'`.",
            )
        _, first, frequency = np.unique(rows * width + places, return_index=True, return_counts=True)
        if frequency.max() > 1:
            row = int(first[frequency.argmax()])
            what = f"location {locations.ids[places[row]]!r}" if long and pairs is None else "the step"
            what = what if pairs is None else f"the flow of row {row + 1}"
            raise InvalidFile(
                path, f"{what} is listed twice at {calendar.time(int(rows[row]))}.{of_categories(table)}"
            )
        check_unfolded(path, 8 * (calendar.steps or 0) * width, 8 * table.height * table.width)
        missing = 0.0 if absent == "zero" and long else np.nan
        values = np.full((calendar.steps or 0, width), missing)
        found = published_numbers(layout, withheld)
        if long:
            values[rows, places] = found[:, 0]
        else:
            values[np.ix_(rows, layout.columns())] = found
        defences, public = _read_statement(path)
        locations = locations if public is None else locations.declare_public(public)
        return Release(values, locations, calendar, defences, pairs)


def published_numbers(layout: Layout, withheld: Collection[str] = WITHHELD) -> NDArray[np.float64]:
    """Turn all columns into numbers, NaN where they are withheld: (rows, columns) float64."""
    path, table = layout.path, layout.numbers()
    for column in table.select(~cs.string()).iter_columns():
        if not column.dtype.is_numeric() and column.dtype != pl.Null:
            raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not numbers.")
    text = cs.string().str.strip_chars()
    empty, cast = is_withheld(text, withheld), text.cast(pl.Float64, strict=False)
    bad = table.select((cast.is_null() & ~empty) | cast.is_infinite().fill_null(False))
    for column in bad.iter_columns():
        if column.any():
            row = int(column.arg_max() or 0)
            raise InvalidFile(path, no_number(table[column.name][row], row, column.name))
    pointed = table.select(text.str.contains(".", literal=True).any())
    for name in (column.name for column in pointed.iter_columns() if column[0]):
        refuse_thousands(table[name].str.strip_chars(), path)
    known = table.with_columns(pl.when(~empty).then(cast).name.keep()).cast(pl.Float64)
    return np.asarray(known.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def no_number(value: object, row: int, column: str) -> str:
    """What is wrong with a value that is no published number; rows are counted from 0."""
    return (
        f"data row {row + 1}, column {column!r}: {value!r} is neither a number nor a mark of a withheld one. Write decimals with a "
        "point; `rekindle.read_release` can be told of other marks."
    )


def refuse_thousands(text: pl.Series, path: str | Path) -> None:
    """Refuse a column in which a point seems to separate thousands: ``950`` and ``1.200``, but never ``1.2``."""
    decimals = text.filter(text.str.contains(r"^\d+\.\d+$"))
    if len(decimals) < 2 or not decimals.str.contains(r"^[1-9]\d{0,2}\.\d{3}$").all():
        return
    whole = text.filter(text.str.contains(r"^\d+$"))
    if len(whole) and whole.str.len_chars().max() <= 3:  # type: ignore[operator]
        raise InvalidFile(
            path,
            f"column {text.name!r}: {decimals[0]!r} may be a decimal, or have a point between thousands; write thousands without.",
        )


def is_withheld(text: pl.Expr, withheld: Collection[str]) -> pl.Expr:
    """Whether texts stand for withheld numbers."""
    marks = [mark.lower() for mark in withheld]
    return text.is_null() | text.str.to_lowercase().is_in(marks) | text.str.contains(BELOW)


def write_release(
    path: str | Path, release: Release, *, form: Literal["long", "wide"] = "long", overwrite: bool = False
) -> None:
    """Write a release as csv or parquet; a withheld number is null, which in a csv file is an empty field.

    What was done to the numbers is written to a file beside it, ``release.csv.defences.json``; it holds no seed.

    Parameters
    ----------
    path
        The file; its ending says which of the two.
    release
        What to write. Whole numbers are written without decimals.
    form
        "long": one row for each location (or flow) and step, zeros and withheld ones included. "wide": a column for each
        location, not for flows.
    overwrite
        Replace a file that is there.
    """
    published = release.values[~release.withheld]
    kind = pl.Int64 if (published == np.floor(published)).all() else pl.Float64

    def column(values: NDArray[np.float64]) -> pl.Series:
        return pl.Series(values, dtype=pl.Float64, nan_to_null=True).cast(kind)

    if choice("form", form, FORMS) == "wide" and release.pairs is not None:
        raise InvalidSetting(
            "`form` is 'wide', but flows have an origin and a destination; they are written in long form."
        )
    if form == "wide":
        table = wide_table(release.calendar, release.locations, [column(one) for one in release.values.T])
    else:
        table = release.to_frame().with_columns(count=column(release.values.ravel()))
    statement = _statement(Path(path))
    if statement.exists() and not overwrite:
        raise OutputExists(f"{statement} exists already; it was left as it is.")
    write_table(path, table, overwrite=overwrite)
    stated = {
        "sha256": _digest(Path(path)),
        "public_locations": release.locations.public,
        "defences": [one.to_json() for one in release.defences],
    }
    write_json(statement, stated)


def _statement(path: Path) -> Path:
    """Find the file beside a table that says what was done to its numbers."""
    return path.with_name(f"{path.name}.defences.json")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_statement(path: Path) -> tuple[list[AppliedDefence], bool | None]:
    """Read what was done to the numbers, and whether the locations are public; a table of 0.1.0 or of others has none."""
    statement = _statement(path)
    if not statement.exists():
        return [AppliedDefence(name=UNKNOWN, label=f"Read from {path.name}")], None
    stated = read_json(statement)
    if stated.get("sha256") != _digest(path):
        raise InvalidFile(
            statement,
            f"it does not belong to {path.name}, which was changed after it was written; remove one of them.",
        )
    if not isinstance(stated.get("defences"), list):
        raise InvalidFile(statement, "it has no list of defences.")
    public = stated.get("public_locations")
    try:
        defences = [AppliedDefence.from_json(one) for one in stated["defences"]]
        return defences, public if isinstance(public, bool) else None
    except InvalidData as error:
        raise InvalidFile(statement, str(error)) from None
