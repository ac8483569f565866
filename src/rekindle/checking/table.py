"""A published table as it stands in its file: numbers by time and any other columns, some of them withheld."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidFile, InvalidSetting
from rekindle.io.safety.untrusted import reading
from rekindle.io.tables.columns import OFFSET, times, with_joined_times
from rekindle.io.tables.naming import KNOWN_NAMES, known_column
from rekindle.io.tables.release import WITHHELD, is_withheld, no_number, refuse_thousands
from rekindle.io.tables.table import read_table
from rekindle.model import Counts, Flows, Release

NOT_KEYS = ("lat", "lng", "lon", "latitude", "longitude", "x_km", "y_km", "row", "most", "offset", "")
"""Columns that describe a location, or that number the rows: they tell no two numbers apart."""
TOTALS = (
    *("total", "totals", "all", "sum", "overall", "any"),
    *("gesamt", "insgesamt", "summe", "alle", "suma", "todos", "todas"),
)
"""Names in a column that stand for the sum over that column, in any case of letters."""
OWN_NAMES = (
    "time",
    "value",
    "step",
    "entry",
    "table",
    "half",
    "name",
    "parent",
    "child",
    "sum",
    "mean",
    "times",
    "*",
)
"""What columns of a table must not be called, since columns of our own are, or Polars takes it for all columns."""
_BELOW = r"^(?:<|&lt;)\s*(\d+(?:\.\d+)?)$"
_AT_MOST = r"^(?:≤|<=)\s*(\d+(?:\.\d+)?)$"
_DATE = r"^\s*(\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4})\b"
_MOST_DENSE = 100_000_000
_NOT_BY_CHANCE = 1e4
_ODD = 100
"""Of so many small numbers above 0, a single one below 0 is no noise."""


@dataclass(frozen=True, eq=False)
class Table:
    """Published numbers with what tells them apart.

    Attributes
    ----------
    name
        The file's name.
    frame
        One row a number. `row` Int64, from 1 as in the file; `time` Datetime, null where the table has no times; the
        columns of `keys`, String, null where the number is the total over that column; `value` Float64, null where
        withheld; `most` Float64, the largest value that the mark of a withheld number allows, null where it says nothing.
    keys
        The columns beside the time that tell the numbers apart: location, or origin and destination, categories.
    offsets
        The offsets from UTC that the times carry, as text; empty where they carry none.
    """

    name: str
    frame: pl.DataFrame
    keys: tuple[str, ...]
    offsets: tuple[str, ...] = ()

    @cached_property
    def ends(self) -> tuple[str, str] | None:
        """Of flows, the columns of origins and of destinations; None of counts."""
        found = [known_column(self.keys, role) for role in ("origin", "destination")]
        return (found[0][0], found[1][0]) if all(len(one) == 1 for one in found) else None

    @property
    def naming(self) -> pl.Expr:
        """What tells the numbers of a time apart, as one text: of flows of one window ``origin → destination``, then all else."""
        if self.ends is None:
            return pl.concat_str(self.keys, separator=" → ").alias("name")
        others = [key for key in self.keys if key not in (*self.ends, "window")]
        return pl.concat_str(pl.concat_str(self.ends, separator=" → "), *others, separator=", ").alias("name")

    def by_window(self) -> tuple[Table, ...]:
        """Of flows over several windows, those of each: an hour in which no day begins is no hour without daily flows."""
        if self.ends is None or "window" not in self.keys or self.frame["window"].n_unique() == 1:
            return (self,)
        parts = self.frame.partition_by("window", maintain_order=True)
        return tuple(Table(f"{self.name} ({part['window'][0]})", part, self.keys, self.offsets) for part in parts)

    @property
    def noun(self) -> str:
        """What the numbers are of at a time."""
        return "location" if self.ends is None else "origin-destination pair"

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """(numbers,) float64: what is published, withheld numbers left out."""
        return self.frame["value"].drop_nulls().to_numpy()

    @cached_property
    def is_noisy(self) -> bool:
        """Whether numbers are negative, or decimals that are no multiples of one weight: no plain counts.

        Noise falls to either side: an odd negative number among many as small ones above 0 is a mark or a mistake.
        """
        values = self.values
        below = values[values < 0]
        if len(below) * _ODD >= max(((values > 0) & (values <= -values.min(initial=0))).sum(), 1):
            return True
        return bool((values != np.floor(values)).any()) and self.unit == 1.0

    @cached_property
    def unit(self) -> float:
        """The largest number of which every published number is a multiple; 1 where there is none."""
        positive = np.unique(np.abs(self.values[self.values != 0]))
        if len(positive) < 3:
            return 1.0
        if (positive == np.floor(positive)).all():
            base = float(np.gcd.reduce(positive.astype(np.int64)))
            # Few numbers are multiples of something by chance.
            return base if len(positive) * np.log(base) > np.log(_NOT_BY_CHANCE) else 1.0
        smallest = float(positive[0])
        times = positive / smallest
        whole = bool((np.abs(times - np.round(times)) < 1e-6 * times).all())
        return smallest if whole and times[-1] < 1e6 else 1.0

    @cached_property
    def step(self) -> np.timedelta64 | None:
        """The usual time between two steps; None where there are not two."""
        when = np.unique(self.frame["time"].drop_nulls().to_numpy())
        return np.median(np.diff(when)) if len(when) > 1 else None

    @cached_property
    def parts(self) -> pl.DataFrame:
        """The rows that are no totals."""
        return self.frame.drop_nulls(list(self.keys)) if self.keys else self.frame

    @cached_property
    def dense(self) -> tuple[NDArray[np.datetime64], list[str], NDArray[np.float64]] | None:
        """Times, names and numbers of the parts: (steps, names) float64, NaN where withheld, 0 where there is no row.

        None for a table without times or keys, or one too large for it.
        """
        frame = self.parts.drop_nulls("time")
        if not self.keys or not frame.height:
            return None
        frame = frame.select("time", self.naming, pl.col("value").fill_null(float("nan")))
        when, names = frame["time"].unique().sort(), frame["name"].unique(maintain_order=True)
        if len(when) * len(names) > _MOST_DENSE:
            return None
        column = frame["name"].cast(pl.Enum(names)).to_physical().to_numpy()
        row = np.searchsorted(when.to_numpy(), frame["time"].to_numpy())
        values = np.zeros((len(when), len(names)))
        values[row, column] = frame["value"].to_numpy()
        return when.to_numpy().astype("datetime64[s]"), names.to_list(), values

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {self.frame.height} numbers by {', '.join(('time', *self.keys))})"


def to_table(data: Release | Counts | Flows, name: str = "release") -> Table:
    """A release, counts or flows as a table; rows are numbered as `write_release` writes them."""
    release = data if isinstance(data, Release) else Release.of(data)
    keys = ("location",) if release.pairs is None else ("origin", "destination")
    frame = release.to_frame().select(
        pl.int_range(1, release.values.size + 1, dtype=pl.Int64).alias("row"),
        pl.col("datetime").cast(pl.Datetime("us")).alias("time"),
        # Null is for totals; people who come or go do so from nowhere.
        pl.col(keys).cast(pl.String).fill_null("away"),
        pl.col("count").fill_nan(None).alias("value"),
        pl.lit(None, pl.Float64).alias("most"),
    )
    return Table(name, frame, keys)


def read_published_table(
    path: str | Path, *, value: str | None = None, time: str | None = None, withheld: Collection[str] = WITHHELD
) -> Table:
    """Read any published table from a csv or parquet file, or from a folder of parquet files that are its parts, long or wide.

    Parameters
    ----------
    path
        Long form: a column of numbers (`count` or the like), one of times, and any others that tell the numbers apart
        (location, origin and destination, categories; not decimals, which measure something else). Wide form: times, and one
        column of numbers for each location. A date and an hour may stand in two columns.
    value
        The column of numbers, where it has another name than `count`, `value`, `trips` and the like.
    time
        The column of times, where it has another name than `datetime`, `date`, `time` and the like.
    withheld
        Texts that stand for a withheld number. A text such as `<10` does so always, and says that it is below 10.
    """
    table = read_table(path)
    for setting, column in (("value", value), ("time", time)):
        if column is not None and column not in table.columns:
            raise InvalidSetting(
                f"{path}: `{setting}` is {column!r}, but its columns are {', '.join(table.columns[:8])}."
            )
    with reading(path, "a published table"):
        table, _ = with_joined_times(table, path) if time is None else (table, "")
    lower = {name.strip().lower(): name for name in table.columns}
    time = time or next((lower[name] for name in KNOWN_NAMES["datetime"] if name in lower), None)
    found = [name for name in known_column(table.columns, "count") if name != time]
    if value is None and len(found) > 1 and any(known_column(table.columns, role) for role in ("location", "origin")):
        raise InvalidFile(
            path, f"the columns {found} could each hold the numbers; name the one that does with `value`."
        )
    value = value or next(
        (lower[name] for name in KNOWN_NAMES["count"] if name in lower and lower[name] != time), None
    )
    if value is not None and time is None and (written := [name for name in table.columns if _is_time(table[name])]):
        raise InvalidFile(path, f"the column {written[0]!r} seems to hold the times; call it 'datetime'.")
    with reading(path, "a published table"):
        return _table(table, value, time, withheld, path)


def _table(
    table: pl.DataFrame, value: str | None, time: str | None, withheld: Collection[str], path: str | Path
) -> Table:
    rows = pl.int_range(1, table.height + 1, eager=True)
    when, offsets = _times(table, time, path)
    others = [name for name in table.columns if name not in (time, value) and name.lower() not in NOT_KEYS]
    unknown = f"no column of {', '.join(table.columns[:8])} is known as the one of numbers; call it 'count', or name it with `value`."
    if value is not None:
        others = [name for name in others if not _is_measure(table[name])]
        numbers = table[value]
        frame = pl.DataFrame([table[name].cast(pl.String).str.strip_chars().alias(_key(name)) for name in others])
    else:
        if not others:
            raise InvalidFile(path, "it has no column of numbers.")
        named = any(known_column(others, role) for role in ("location", "origin", "destination"))
        if time is None or named:
            raise InvalidFile(path, unknown)
        numbers = pl.concat([table[name].cast(pl.String).alias("value") for name in others])
        frame = pl.DataFrame({"location": pl.Series(others).gather(np.repeat(np.arange(len(others)), table.height))})
        rows, when = (pl.concat([part] * len(others)) for part in (rows, when))
    keys = frame.columns
    if not keys and when.null_count() == len(when):
        raise InvalidFile(path, "nothing tells its numbers apart: it has neither a time nor a location.")
    if value is not None:
        values, most = _numbers(numbers, [value], withheld, path, "")
    else:
        values, most = _numbers(numbers, others, withheld, path, f" In long form, {unknown}")
    below = values.filter(values < 0)
    if len(below) > 1 and below.n_unique() == 1 and below[0] < -1:
        raise InvalidFile(
            path,
            f"{below[0]:g} stands in it {len(below):,} times, and no other number is below 0, so that it is no noise. If it marks a "
            "withheld number, leave its field empty.",
        )
    total = pl.col(keys).str.to_lowercase().is_in(TOTALS)
    numbered = pl.DataFrame({"row": rows, "time": when, "value": values, "most": most})
    frame = numbered.hstack(frame.get_columns()).with_columns(pl.when(~total).then(pl.col(keys)).name.keep())
    return Table(Path(path).name, frame, tuple(keys), offsets)


def _is_measure(column: pl.Series) -> bool:
    """Whether a column holds decimals, such as kilometres travelled: another quantity, which tells no two numbers apart."""
    known = column.head(10_000).drop_nulls().cast(pl.String).str.strip_chars()
    numbers = known.cast(pl.Float64, strict=False)
    return bool(len(known)) and numbers.null_count() == 0 and bool((numbers != numbers.floor()).any())


def _is_time(column: pl.Series) -> bool:
    """Whether a column holds times, whatever it is called: text that begins with a date in one of the usual forms."""
    if column.dtype != pl.String:
        return column.dtype.is_temporal()
    known = column.head(100).drop_nulls()
    return bool(len(known)) and bool(known.str.contains(_DATE).all())


def _key(name: str) -> str:
    """What a column is called in a table; Polars takes a name that begins with ^ for a pattern."""
    return f"column {name}" if name in OWN_NAMES or name.startswith("^") else name


def _times(table: pl.DataFrame, name: str | None, path: str | Path) -> tuple[pl.Series, tuple[str, ...]]:
    """The times as local clock times, and the offsets from UTC that they carry."""
    if name is None:
        return pl.Series([None], dtype=pl.Datetime("us")).new_from_index(0, table.height), ()
    column, offsets = table[name], ()
    if column.dtype == pl.String:
        offset = column.str.strip_chars().str.extract(OFFSET, 1)
        offsets = tuple(sorted(offset.drop_nulls().unique()))
        column = column.str.strip_chars().str.replace(OFFSET, "")
    elif isinstance(column.dtype, pl.Datetime):
        column = column.dt.replace_time_zone(None) if column.dtype.time_zone else column
    return pl.Series(times(column, path).astype("datetime64[us]")), offsets


def _numbers(
    column: pl.Series, names: Sequence[str], withheld: Collection[str], path: str | Path, hint: str
) -> tuple[pl.Series, pl.Series]:
    """The numbers, null where they are withheld, and the largest that a mark such as `<10` allows.

    Of a table of wide form, the columns of the names one below the other.
    """
    if column.dtype != pl.String:
        if not column.dtype.is_numeric():
            raise InvalidFile(path, f"column {column.name!r} holds {column.dtype}, not numbers.")
        values = column.cast(pl.Float64).fill_nan(None)
        _refuse_too_large(values, path)
        return values, pl.Series([None], dtype=pl.Float64).new_from_index(0, len(values))
    text = column.str.strip_chars()
    below, at_most = (text.str.extract(form, 1).cast(pl.Float64) for form in (_BELOW, _AT_MOST))
    most = (below.ceil() - 1).zip_with(below.is_not_null(), at_most.floor())
    values = text.cast(pl.Float64, strict=False).fill_nan(None)
    bad = values.is_null() & ~text.to_frame("text").select(is_withheld(pl.col("text"), withheld))["text"]
    if bad.any():
        first = int(bad.arg_max() or 0)
        place, row = divmod(first, len(column) // len(names))
        raise InvalidFile(path, no_number(column[first], row, names[place]) + hint)
    refuse_thousands(text, path)
    _refuse_too_large(values, path)
    return values, most


def _refuse_too_large(values: pl.Series, path: str | Path) -> None:
    if (values.abs() > 2**53).any():
        raise InvalidFile(
            path, f"a number is {values[int((values.abs() > 2**53).arg_max() or 0)]}; more than 2^53 is none."
        )
