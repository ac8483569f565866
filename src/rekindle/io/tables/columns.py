"""Columns of a table as numbers, times and names; a value that is none is named by its row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from rekindle.errors import InvalidFile
from rekindle.io.tables.naming import DATES, HOURS
from rekindle.model import Calendar

_PER_SECOND = {None: None, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""What a column of times counts; dates count days."""
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999."""
_FORMS = (
    *("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d", "%Y-%m-%d %H%M", "%Y%m%d"),
    *("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y"),
)
"""How times are written beside 2014-05-01 00:10:00. With dots the day comes first everywhere; with slashes nobody knows."""
OFFSET = r"(Z|[+-]\d{2}:?\d{2})$"
"""How a time ends that gives its offset from UTC."""
_CLOCK = r"^(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?$"
_WHOLE = "a whole number of at least 0"
_RELEASE = " Numbers that are withheld or changed are a release, which `rekindle.audit` and `rekindle.repair` take."
_rows_before: ContextVar[int] = ContextVar("_rows_before", default=0)


def require(table: pl.DataFrame, columns: set[str], path: str | Path) -> None:
    """Refuse a table that lacks a column."""
    missing = columns - set(table.columns)
    if missing:
        raise InvalidFile(
            path,
            f"column {sorted(missing)[0]!r} is missing; its columns are {', '.join(table.columns[:8])}. Rename the one that "
            "holds it.",
        )


def as_in_file(column: pl.Series, renamed: Mapping[str, str]) -> pl.Series:
    """Give a column the name that it has in the file, by which errors speak of it."""
    return column.alias(renamed.get(column.name, column.name))


def bad_cell(path: str | Path, column: pl.Series, row: int, expected: str, hint: str = "") -> InvalidFile:
    """The error for one value of a table; rows are counted from 1, without the header."""
    value, row = column[row], row + _rows_before.get()
    found = "nothing" if value is None or value == "" else repr(value) if isinstance(value, str) else str(value)
    return InvalidFile(path, f"data row {row + 1}, column {column.name!r}: expected {expected}, found {found}.{hint}")


@contextmanager
def after_rows(number: int) -> Iterator[None]:
    """Name bad values by their row in a table of which so many rows were read before."""
    before = _rows_before.set(number)
    try:
        yield
    finally:
        _rows_before.reset(before)


def numbers(column: pl.Series, path: str | Path) -> NDArray[Any]:
    """Turn a column into numbers; the first value that is none is named."""
    _refuse_no_numbers(column, path)
    parsed = column.str.strip_chars().cast(pl.Float64, strict=False) if column.dtype == pl.String else column
    parsed = parsed.cast(pl.Float64) if parsed.dtype.is_decimal() else parsed
    if parsed.null_count():
        raise bad_cell(path, column, int(parsed.is_null().arg_max() or 0), "a number")
    return parsed.to_numpy()


def whole_numbers(table: pl.DataFrame, path: str | Path) -> NDArray[np.int64]:
    """Turn all columns into whole numbers of at least 0: (rows, columns) int64; the first value that is none is named.

    All at once: one by one, ten thousands of columns would take half a minute.
    """
    for column in table.select(~cs.string()).iter_columns():
        _refuse_no_numbers(column, path)
    text = cs.string().str.strip_chars()
    parsed = table.with_columns(text.cast(pl.Int64, strict=False), cs.decimal().cast(pl.Float64))
    if left := [column.name for column in parsed.iter_columns() if column.null_count()]:
        parsed = parsed.with_columns(
            table.select(cs.by_name(left)).with_columns(text.cast(pl.Float64, strict=False)).get_columns()
        )
        for name in left:
            if parsed[name].null_count():
                raise bad_cell(path, table[name], int(parsed[name].is_null().arg_max() or 0), _WHOLE, _RELEASE)
    array = parsed.to_numpy()
    good = (array >= 0) & (array < 2**53) & (array == np.floor(array))
    if not good.all():
        row, place = np.argwhere(~good)[0]
        raise bad_cell(path, table.to_series(int(place)), int(row), _WHOLE, _RELEASE)
    return array.astype(np.int64, copy=False)


def _refuse_no_numbers(column: pl.Series, path: str | Path) -> None:
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not numbers.")


def flags(column: pl.Series, path: str | Path) -> NDArray[np.bool_]:
    """Turn a column of true and false into bool; the first value that is neither is named."""
    parsed = column
    if column.dtype == pl.String:
        text = column.str.strip_chars().str.to_lowercase()
        parsed = pl.Series(column.name, text.replace_strict({"true": True, "false": False}, default=None))
    if parsed.null_count() or parsed.dtype != pl.Boolean:
        row = int(parsed.is_null().arg_max() or 0) if parsed.null_count() else 0
        raise bad_cell(path, column, row, "true or false")
    return parsed.to_numpy()


def times(column: pl.Series, path: str | Path) -> NDArray[np.datetime64]:
    """Turn a column into clock times: (rows,) datetime64[s]."""
    expected = "a local clock time in whole seconds, such as 2014-05-01 00:10:00"
    if column.dtype == pl.String:
        text = column.str.strip_chars().str.replace("T", " ", literal=True)
        offset = text.str.extract(OFFSET).fill_null("none")
        if (other := offset != offset[0]).any():
            same = f"a local clock time with the same offset from UTC as in row 1 ({offset[0]}), also after a change of the clock"
            raise bad_cell(path, column, int(other.arg_max() or 0), same)
        text = text.str.replace(OFFSET, "").str.strip_chars()
        parsed = text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
        for form in _FORMS:
            if parsed.null_count():
                more = (
                    text.str.to_datetime(form, strict=False) if "%H" in form else text.str.to_date(form, strict=False)
                )
                parsed = parsed.zip_with(parsed.is_not_null(), more.cast(pl.Datetime("us")))
    elif column.dtype == pl.Date or (isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is None):
        parsed = column
    elif isinstance(column.dtype, pl.Datetime):
        raise InvalidFile(
            path, f"column {column.name!r} has the time zone {column.dtype.time_zone}; give local clock times."
        )
    else:
        raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not times.")
    if parsed.null_count():
        raise bad_cell(path, column, int(parsed.is_null().arg_max() or 0), expected)
    # By hand: Polars panics where a time is outside of the years that it can show.
    per_second = _PER_SECOND[getattr(parsed.dtype, "time_unit", None)]
    units = parsed.to_physical().to_numpy().astype(np.int64)
    seconds = units * 86_400 if per_second is None else units // per_second
    known = (seconds >= _FIRST_SECOND) & (seconds <= _LAST_SECOND)
    if not known.all():
        shown = column if column.dtype == pl.String else column.to_physical()
        raise bad_cell(path, shown, int(np.argmin(known)), expected)
    if per_second is not None and not (whole := seconds * per_second == units).all():
        raise bad_cell(path, column, int(np.argmin(whole)), expected)
    return seconds.astype("datetime64[s]")


def with_joined_times(table: pl.DataFrame, path: str | Path) -> tuple[pl.DataFrame, str]:
    """Make one column ``datetime`` of one of dates and one of hours or clock times, and say of which; "" where there are none."""
    dates, hours = ([name for name in table.columns if name.strip().lower() in known] for known in (DATES, HOURS))
    if "datetime" in table.columns or len(dates) != 1 or len(hours) != 1:
        return table, ""
    text = table[hours[0]].cast(pl.String).str.strip_chars()
    parts = [text.str.extract(_CLOCK, group).cast(pl.Int64) for group in (1, 2, 3)]
    if parts[0].null_count() == len(text):  # whole times, beside a column of dates
        return table, ""
    hour, minute, second = parts[0], parts[1].fill_null(0), parts[2].fill_null(0)
    good = ((hour < 24) & (minute < 60) & (second < 60)).fill_null(False)
    if not good.all():
        raise bad_cell(
            path, table[hours[0]], int(good.not_().arg_max() or 0), "an hour from 0 to 23, or a time such as 14:30"
        )
    clock = (3600 * hour + 60 * minute + second).to_numpy().astype("timedelta64[s]")
    when = pl.Series("datetime", (times(table[dates[0]], path) + clock).astype("datetime64[ms]"))
    return table.drop(dates[0], hours[0]).insert_column(0, when), f"{dates[0]} and {hours[0]}"


def names(column: pl.Series, path: str | Path) -> pl.Series:
    """Turn a column of names into text, without missing ones."""
    _refuse_no_names(column, path)
    return column.cast(pl.String)


def _refuse_no_names(column: pl.Series, path: str | Path) -> None:
    if column.null_count():
        raise bad_cell(path, column, int(column.is_null().arg_max() or 0), "a name")
    if not (column.dtype in (pl.String, pl.Enum, pl.Categorical, pl.Boolean) or column.dtype.is_numeric()):
        raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not names.")


def positions(
    column: pl.Series, path: str | Path, ids: tuple[str, ...] | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Find each row's name among `ids`; without these, among the names of the column in the order they come."""
    _refuse_no_names(column, path)
    if not len(column):
        return np.empty(0, np.int64), ids or ()
    # Enum and Categorical columns hold codes, so that each row costs an index and not a look at its text.
    coded = column.dtype in (pl.Enum, pl.Categorical)
    column = column if coded else column.cast(pl.String)  # first: 0.0 and -0.0 are one number, but two names
    distinct = column.unique(maintain_order=True)
    found = tuple(distinct.cast(pl.String))
    if not coded:
        column, distinct = (part.cast(pl.Enum(found)) for part in (column, distinct))
    lookup = {name: position for position, name in enumerate(ids or found)}
    codes = distinct.to_physical().to_numpy()
    by_code = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    by_code[codes] = [lookup.get(name, -1) for name in found]
    rows = by_code[column.to_physical().to_numpy()]
    if rows.min() < 0:
        raise bad_cell(path, column, int(np.argmax(rows < 0)), f"one of {len(lookup)} known names")
    return rows, ids or found


def step_numbers(column: pl.Series, path: str | Path, calendar: Calendar) -> NDArray[np.int64]:
    """Turn a column of times into numbers of steps of a calendar that has an end."""
    last = (calendar.steps or 0) - 1
    steps, rest = np.divmod(
        (times(column, path) - np.datetime64(calendar.start, "s")).astype(np.int64),
        int(calendar.step.total_seconds()),
    )
    wrong = (steps < 0) | (steps > last) | (rest != 0)
    if wrong.any():
        expected = (
            f"a step of the calendar, every {calendar.step} (h:min:s) from {calendar.start} to {calendar.time(last)}"
        )
        raise bad_cell(path, column, int(np.argmax(wrong)), expected)
    return steps
