"""Reading and writing tables of counts and locations: csv and parquet, long and wide, and the paper's grid file."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile
from rekindle.io.safety.files import new_file
from rekindle.io.safety.untrusted import MOST_COLUMNS, check_parquet, check_unfolded, packed_as, read_content, reading
from rekindle.model import Calendar, Counts, Locations
from rekindle.model.calendar import parse_step

__all__ = ["read_counts", "read_locations", "write_counts", "write_locations"]

_GRID_ID = re.compile(r"\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)", re.ASCII)
_POINT = re.compile(r"\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)", re.ASCII)
_PER_SECOND = {None: None, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""What a column of times counts; dates count days."""
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999."""
_WHOLE = "a whole number of at least 0"
_FORMULA = r"^'*[=+\-@\t\r＝＋－＠]"
_SIGNED_NUMBER = r"^'*[+-][0-9]+(\.[0-9]+)?$"


def read_table(path: str | Path, *, within: Path | None = None) -> pl.DataFrame:
    """Read a csv (every column as text) or parquet file, told apart by its first bytes, not only by its name.

    Parameters
    ----------
    path
        The file.
    within
        The folder that was handed in, where the file is part of one.
    """
    path = Path(path)
    content = read_content(path, "csv or parquet file", within=within)
    if not content:
        raise InvalidFile(path, "the file is empty.")
    parquet = content.startswith(b"PAR1")
    if parquet != (path.suffix == ".parquet"):
        found = "a parquet file" if parquet else "not a parquet file"
        raise InvalidFile(path, f"the content is {found}, but the name ends in {path.suffix!r}.")
    if parquet:
        check_parquet(path, content)
        with reading(path, "parquet"):
            table = pl.read_parquet(content)
    else:
        table = _read_csv(path, content)
    if not table.height:
        raise InvalidFile(path, "it has no rows.")
    return table


def _read_csv(path: Path, content: bytes) -> pl.DataFrame:
    if kind := packed_as(content):
        raise InvalidFile(path, f"it is compressed with {kind}; unpack it first.")
    with reading(path, "csv"):
        # Polars leaves doubled quotation marks in the header as they are, and renames a column that is there twice.
        lines = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=""))
        columns = [_unguarded(name) for name in next((line for line in lines if line), [])]
        if len(columns) > MOST_COLUMNS:
            raise InvalidFile(
                path, f"it has {len(columns)} columns; more than {MOST_COLUMNS} are not read. Give the long form."
            )
        if len(set(columns)) < len(columns):
            twice = next(name for name, times in Counter(columns).items() if times > 1)
            raise InvalidFile(path, f"there are two columns {twice!r}; expected one.")
        table = pl.read_csv(content, infer_schema=False)
        if table.width != len(columns):
            raise InvalidFile(path, f"its header has {len(columns)} columns, its rows have {table.width}.")
        if b"'" in content:
            table = _with_texts(table, _without_mark)
        table.columns = columns
        return table


def _with_texts(table: pl.DataFrame, change: Callable[[pl.Expr], pl.Expr]) -> pl.DataFrame:
    """Change all texts. Columns get numbers meanwhile, as some names are patterns to Polars."""
    result = table.clone()
    result.columns = [str(number) for number in range(table.width)]
    names = result.select(cs.string() | cs.enum() | cs.categorical()).columns
    result = result.with_columns(change(pl.col(name).cast(pl.String)).alias(name) for name in names)
    result.columns = table.columns
    return result


def _with_mark(text: pl.Expr) -> pl.Expr:
    return pl.when(_is_formula(text)).then(pl.concat_str(pl.lit("'"), text)).otherwise(text)


def _without_mark(text: pl.Expr) -> pl.Expr:
    rest = text.str.slice(1)
    return pl.when(text.str.starts_with("'") & _is_formula(rest)).then(rest).otherwise(text)


def _is_formula(text: pl.Expr) -> pl.Expr:
    """Whether a spreadsheet would compute a text that begins so; any quotation marks before it were put there by us."""
    return text.str.contains(_FORMULA) & ~text.str.contains(_SIGNED_NUMBER)


def _guarded(name: str) -> str:
    """A name that spreadsheets show and do not compute: where they would, with a ' before it."""
    return f"'{name}" if re.search(_FORMULA, name) and not re.fullmatch(_SIGNED_NUMBER, name) else name


def _unguarded(name: str) -> str:
    """The name that `_guarded` was given."""
    return name[1:] if name.startswith("'") and _guarded(name[1:]) != name[1:] else name


def require(table: pl.DataFrame, columns: set[str], path: str | Path) -> None:
    """Refuse a table that lacks a column."""
    missing = columns - set(table.columns)
    if missing:
        raise InvalidFile(
            path, f"column {sorted(missing)[0]!r} is missing; its columns are {', '.join(table.columns[:8])}."
        )


def bad_cell(path: str | Path, column: pl.Series, row: int, expected: str) -> InvalidFile:
    """The error for one value of a table; rows are counted from 1, without the header."""
    value = column[row]
    found = "nothing" if value is None or value == "" else repr(value) if isinstance(value, str) else str(value)
    return InvalidFile(path, f"data row {row + 1}, column {column.name!r}: expected {expected}, found {found}.")


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
                raise bad_cell(path, table[name], int(parsed[name].is_null().arg_max() or 0), _WHOLE)
    array = parsed.to_numpy()
    good = (array >= 0) & (array < 2**53) & (array == np.floor(array))
    if not good.all():
        row, place = np.argwhere(~good)[0]
        raise bad_cell(path, table.to_series(int(place)), int(row), _WHOLE)
    return array.astype(np.int64, copy=False)


def _refuse_no_numbers(column: pl.Series, path: str | Path) -> None:
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not numbers.")


def times(column: pl.Series, path: str | Path) -> NDArray[np.datetime64]:
    """Turn a column into clock times: (rows,) datetime64[s]."""
    expected = "a local clock time in whole seconds, such as 2014-05-01 00:10:00"
    if column.dtype == pl.String:
        text = column.str.strip_chars().str.replace("T", " ", literal=True)
        parsed = text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
        for form in ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f"):
            if parsed.null_count():
                parsed = parsed.zip_with(parsed.is_not_null(), text.str.to_datetime(form, strict=False))
        if parsed.null_count():
            parsed = parsed.zip_with(
                parsed.is_not_null(), text.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))
            )
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


def read_locations(path: str | Path, *, within: Path | None = None) -> Locations:
    """Read places from a csv or parquet file.

    Columns ``location, x_km, y_km`` (and ``lat, lng`` where known); or ``location, lat, lng`` alone, which are projected
    to a local plane; or the paper's grid file with ``ID`` and ``towerlocation`` ("(north, east)" in km).

    Parameters
    ----------
    path
        The file.
    within
        The folder that was handed in, where the file is part of one: links out of it are refused.
    """
    table = read_table(path, within=within)
    columns = set(table.columns)
    try:
        if {"ID", "towerlocation"} <= columns:
            points = [_POINT.fullmatch(text.strip()) for text in names(table["towerlocation"], path)]
            if None in points:
                row = points.index(None)
                raise bad_cell(path, table["towerlocation"], row, "'(north, east)' in km")
            north_east = np.array([[float(p[1]), float(p[2])] for p in points if p])
            return Locations(north_east[:, ::-1], names(table["ID"], path))
        require(table, {"location"}, path)
        ids = names(table["location"], path)
        planar, global_ = {"x_km", "y_km"} <= columns, {"lat", "lng"} <= columns
        if not planar and not global_:
            require(table, {"x_km", "y_km"}, path)
        # A file may know some latitudes only; where there are centres in km too, distances do not need them.
        lat_lng = None
        if global_ and not (planar and table["lat"].null_count() + table["lng"].null_count()):
            lat_lng = np.stack([numbers(table[name], path) for name in ("lat", "lng")], axis=1)
        if lat_lng is not None and not planar:
            return Locations.from_lat_lng(lat_lng, ids)
        return Locations(np.stack([numbers(table[name], path) for name in ("x_km", "y_km")], axis=1), ids, lat_lng)
    except InvalidData as error:
        raise _named(error, path) from None
    except ValueError as error:
        raise InvalidFile(path, f"a coordinate is not a number ({error}).") from None


def write_locations(path: str | Path, locations: Locations, *, overwrite: bool = False) -> None:
    """Write places as csv or parquet, by the ending of the name.

    Parameters
    ----------
    path
        The file.
    locations
        What to write.
    overwrite
        Replace a file that is there.
    """
    columns: dict[str, Any] = {
        "location": locations.ids,
        "x_km": locations.xy_km[:, 0],
        "y_km": locations.xy_km[:, 1],
    }
    if locations.lat_lng is not None:
        columns |= {"lat": locations.lat_lng[:, 0], "lng": locations.lat_lng[:, 1]}
    write_table(path, pl.DataFrame(columns), overwrite=overwrite)


def write_table(path: str | Path, table: pl.DataFrame, *, overwrite: bool = False, private: bool = False) -> None:
    """Write csv or parquet, whole or not at all.

    In a csv file, a name that a spreadsheet would take for a formula (it begins with =, +, - or @) gets a ' before it,
    which `read_table` takes away again.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use .csv or .parquet.")
    if path.suffix == ".csv":
        table = _with_texts(table, _with_mark)
        table.columns = [_guarded(name) for name in table.columns]
    with new_file(path, overwrite=overwrite, private=private) as temporary:
        if path.suffix == ".csv":
            table.write_csv(temporary, datetime_format="%Y-%m-%d %H:%M:%S")
        else:
            table.write_parquet(temporary, statistics=False)


def _named(error: InvalidData, path: str | Path) -> InvalidFile:
    return error if isinstance(error, InvalidFile) else InvalidFile(path, str(error))


def grid_locations(ids: list[str], cell_km: float) -> Locations | None:
    """Places named "(row, column)" as the squares of a grid; None where the names are others."""
    cells = [_GRID_ID.fullmatch(name.strip()) for name in ids]
    if not cells or None in cells:
        return None
    row_column = np.array([[int(cell[1]), int(cell[2])] for cell in cells if cell], dtype=float)
    return Locations((row_column[:, ::-1] + 0.5) * cell_km, ids)


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
        column for each place, as the paper publishes.
    locations
        The places, or a file of them. Without, places must be named "(row, column)" and become squares of a grid.
    step
        The interval between steps. Without, it is the most frequent one in the file.
    cell_km
        Side of those squares in km.
    """
    table = read_table(path)
    if isinstance(locations, (str, Path)):
        locations = read_locations(locations)
    require(table, {"datetime"}, path)
    long = {"location", "count"} <= set(table.columns)
    when = times(table["datetime"], path)
    if long:
        place_names = names(table["location"], path).unique(maintain_order=True).to_list()
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
        calendar = _calendar(when, None if step is None else parse_step(step), long)
        if long:
            return counts_from_table(table, path, locations, calendar)
        check_unfolded(path, 8 * len(table) * len(locations), 8 * table.height * table.width)
        values = np.zeros((len(table), len(locations)), dtype=np.int64)
        known = set(locations.ids)
        unknown = [name for name in place_names if name not in known]
        if unknown:
            raise InvalidFile(path, f"column {unknown[0]!r} is none of the {len(locations)} known locations.")
        values[:, locations.indices(place_names)] = whole_numbers(table.select(cs.by_name(place_names)), path)
        return Counts(values, locations, calendar)
    except InvalidData as error:
        raise _named(error, path) from None


def counts_from_table(table: pl.DataFrame, path: str | Path, locations: Locations, calendar: Calendar) -> Counts:
    """Take counts from long form: datetime, location, count; absent means 0, but no step may be without a row."""
    require(table, {"datetime", "location", "count"}, path)
    steps = step_numbers(table["datetime"], path, calendar)
    places, _ = positions(table["location"], path, locations.ids)
    number = whole_numbers(table.select("count"), path)[:, 0]
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
            path, f"location {locations.ids[place]!r} is listed twice at {calendar.time(step)}; expected it once."
        )
    try:
        return Counts(values, locations, calendar)
    except InvalidData as error:
        raise _named(error, path) from None


def _calendar(when: NDArray[np.datetime64], step: timedelta | None, long: bool) -> Calendar:
    """Find the calendar of the times in a file, and refuse steps that are missing, twice or out of order."""
    distinct = np.unique(when)
    gaps = np.diff(distinct).astype(np.int64)
    if step is None:
        if not len(gaps):
            raise InvalidData("there is a single time, so the interval between steps is unknown; give `step`.")
        values, frequency = np.unique(gaps, return_counts=True)
        step = timedelta(seconds=int(values[frequency.argmax()]))
    if not long:
        wrong = np.flatnonzero(np.diff(when).astype(np.int64) <= 0)
        if len(wrong):
            row = wrong[0] + 1
            what = "is listed twice" if when[row] == when[row - 1] else "comes after a later time"
            raise InvalidData(
                f"data row {row + 1}: the step {_text(when[row])} {what}; expected each once, in order."
            )
    wrong = np.flatnonzero(gaps != int(step.total_seconds()))
    if len(wrong):
        before, after = distinct[wrong[0]], distinct[wrong[0] + 1]
        raise InvalidData(
            f"after {_text(before)} comes {_text(after)}; steps must be {step} (h:min:s) apart and none may be missing."
        )
    return Calendar(distinct[0].astype(datetime), step, len(distinct))


def _text(time: np.datetime64) -> str:
    return str(time).replace("T", " ")


def counts_table(counts: Counts) -> pl.DataFrame:
    """Counts in long form without the zeros: datetime, location, count."""
    rows, places = np.nonzero(counts.values)
    return pl.DataFrame(
        {
            "datetime": pl.Series(counts.calendar.times()[rows].astype("datetime64[ms]")),
            "location": name_column(places, counts.locations.ids),
            "count": counts.values[rows, places].astype(np.int64),
        }
    )


def name_column(codes: NDArray[np.integer], ids: tuple[str, ...]) -> pl.Series:
    """A column of names from their positions, stored once each."""
    return pl.Series(ids, dtype=pl.Enum(ids)).gather(codes)


def check_wide(locations: Locations) -> None:
    """Refuse names of places that would be taken for other columns in wide form."""
    if "datetime" in locations.ids:
        raise InvalidData("A location is named 'datetime', as is the column of times; write the long form.")
    if {"location", "count"} <= set(locations.ids):
        raise InvalidData("Locations are named 'location' and 'count', as are columns of the long form; write that.")


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
        "long": one row for each count above 0. "wide": a column for each place.
    overwrite
        Replace a file that is there.
    """
    if form == "wide":
        check_wide(counts.locations)
        columns: dict[str, Any] = {"datetime": pl.Series(counts.calendar.times().astype("datetime64[ms]"))}
        columns |= {name: counts.values[:, place] for place, name in enumerate(counts.locations.ids)}
        table = pl.DataFrame(columns)
    else:
        table = counts_table(counts)
    write_table(path, table, overwrite=overwrite)
