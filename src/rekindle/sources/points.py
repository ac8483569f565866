"""The points table that every source yields, and what all of them do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import narwhals as nw
import polars as pl

from rekindle.checks import choice
from rekindle.errors import InvalidData, InvalidFile
from rekindle.sources.engine import Engine, collect, on_spark
from rekindle.sources.spark import spark_session

_SEEN = "seen_"

SCHEMA: dict[str, type[pl.DataType]] = {
    "person": pl.String,
    "trajectory": pl.Int64,
    "time": pl.Int64,
    "lat": pl.Float64,
    "lng": pl.Float64,
    "problem": pl.String,
    "file": pl.String,
    "line": pl.Int64,
    "seen_time": pl.String,
}
"""The columns of points as they are read from files, with what `sift` needs."""


@dataclass(frozen=True)
class Points:
    """A table of raw points, and what is known of where it came from.

    Attributes
    ----------
    frame
        Lazy, one row a point: `person` (text), `trajectory` (whole number, where the source has such a thing),
        `time` (whole seconds since 1970), and `lat`, `lng` (degrees) or `location` (the name of a tower).
    timezone
        The zone whose local time counts, where `time` is UTC; None where `time` is local clock time already.
    info
        For `dataset.json`: `source`, `licence`, `skipped` (rows left out, by kind).
    """

    frame: nw.LazyFrame[Any]
    timezone: str | None
    info: Mapping[str, Any] = field(default_factory=dict)

    def on(self, engine: Engine) -> Points:
        """The same points on that engine; those that are on Spark already stay there."""
        choice("engine", engine, get_args(Engine))
        if engine == "polars" or on_spark(self.frame):
            return self
        return replace(self, frame=nw.from_native(spark_session().createDataFrame(collect(self.frame).to_arrow())))


def sift(
    frame: nw.LazyFrame[Any],
    *,
    skip_bad: bool,
    unit: str = "line",
    remedies: Mapping[str, str] | None = None,
    known: str = "",
) -> tuple[nw.LazyFrame[Any], dict[str, int]]:
    """Leave out bad rows and count them by kind, or refuse the first of them.

    Parameters
    ----------
    frame
        With a column `problem`, null where the row is good, and `file` and `line`, which say where the row is from.
        A column such as `seen_time` holds what the file says, where `time` holds what became of it; one such as `_nth`
        is nothing that a file says.
    skip_bad
        Go on without the bad rows.
    unit
        What `line` counts.
    remedies
        For problems that begin so, what else than skipping would help.
    known
        A problem that is left out without asking.

    Returns
    -------
    The good rows without those columns, and how many there were of each problem.
    """
    bad = frame.filter(~nw.col("problem").is_null())
    kinds = collect(bad.group_by("problem").agg(rows=nw.len()))
    skipped = dict(sorted(kinds.select("problem", pl.col("rows").cast(pl.Int64)).iter_rows()))
    unknown = {kind: count for kind, count in skipped.items() if kind != known}
    if unknown and not skip_bad:
        bad = bad.filter(nw.col("problem") != known)
        row = collect(bad.sort("file", "line").head(1)).row(0, named=True)
        problem, file, line = (row.pop(name) for name in ("problem", "file", "line"))
        where = f"{unit} {line}: " if line is not None else ""
        names = [name for name in row if not name.startswith((_SEEN, "_"))]
        seen = {name: row.get(f"{_SEEN}{name}", row[name]) for name in names}
        values = f" ({', '.join(f'{name} {_shown(value)}' for name, value in seen.items())})"
        remedy = next((advice for kind, advice in (remedies or {}).items() if problem.startswith(kind)), "")
        message = (
            f"{where}{problem}{values if any(value is not None for value in seen.values()) else ''}. "
            f"In all {sum(unknown.values())} bad rows: "
            + ", ".join(f"{count} x {kind}" for kind, count in unknown.items())
            + f". {remedy}Use `skip_bad=True` to continue without them."
        )
        raise InvalidFile(file, message) if file else InvalidData(f"The frame, {message}")
    good = frame.filter(nw.col("problem").is_null())
    seen_columns = [name for name in good.collect_schema().names() if name.startswith(_SEEN)]
    return good.drop("problem", "file", "line", *seen_columns), skipped


def _shown(value: Any) -> str:
    return "missing" if value is None or value == "" else repr(value) if isinstance(value, str) else str(value)


def range_problem() -> nw.Expr:
    """What is wrong with `lat` and `lng`, or null."""
    lat, lng = nw.col("lat"), nw.col("lng")
    inside = (lat >= -90.0) & (lat <= 90.0) & (lng >= -180.0) & (lng <= 180.0)
    return (
        nw.when(lat.is_null() | lng.is_null())
        .then(nw.lit("coordinates missing or not a number"))
        .otherwise(nw.when(~inside).then(nw.lit("coordinates out of range")))
    )


def of_bad_rows(*columns: str) -> pl.Expr:
    """Columns that only bad rows need, null in the others: a table of good ones is then no larger for them."""
    return pl.when(pl.col("problem").is_not_null()).then(pl.col(*columns)).name.keep()


def floor_divide(number: nw.Expr, by: int) -> nw.Expr:
    """Divide whole numbers and round down; exact below 10^15.

    On Spark, ``//`` repeats its left side four times, which explodes where divisions are nested. Half a unit away from
    every border, the product with the inverse rounds down to the same number.
    """
    return ((number + 0.5) * (1.0 / by)).floor().cast(nw.Int64)


def month_of(second: nw.Expr) -> nw.Expr:
    """Number the calendar months: a whole number that grows by 1 from month to month.

    Whole-number arithmetic instead of an engine's calendar, so that all engines agree; the year begins in March.
    """
    day = floor_divide(second, 86_400) + 719_468  # days since 0000-03-01
    era = floor_divide(day, 146_097)
    of_era = day - era * 146_097
    days = of_era - floor_divide(of_era, 1_460) + floor_divide(of_era, 36_524) - floor_divide(of_era, 146_096)
    year = floor_divide(days, 365)
    of_year = of_era - (365 * year + floor_divide(year, 4) - floor_divide(year, 100))
    return (era * 400 + year) * 12 + floor_divide(5 * of_year + 2, 153)
