"""The points table that every source yields, and what all of them do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import narwhals as nw
import polars as pl

from rekindle.checks import choice
from rekindle.errors import InvalidData, InvalidFile
from rekindle.io.safety.untrusted import reading
from rekindle.sources.engine import Engine, collect, on_spark
from rekindle.sources.spark import spark_session

_SEEN = "seen_"


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
    frame: nw.LazyFrame[Any], *, skip_bad: bool, unit: str = "line", remedies: Mapping[str, str] | None = None
) -> tuple[nw.LazyFrame[Any], dict[str, int]]:
    """Leave out bad rows and count them by kind, or refuse the first of them.

    Parameters
    ----------
    frame
        With a column `problem`, null where the row is good, and `file` and `line`, which say where the row is from.
        A column such as `seen_time` holds what the file says, where `time` holds what became of it.
    skip_bad
        Go on without the bad rows.
    unit
        What `line` counts.
    remedies
        For problems that begin so, what else than skipping would help.

    Returns
    -------
    The good rows without those columns, and how many there were of each problem.
    """
    bad = frame.filter(~nw.col("problem").is_null())
    kinds = collect(bad.group_by("problem").agg(rows=nw.len()))
    skipped = dict(sorted(kinds.select("problem", pl.col("rows").cast(pl.Int64)).iter_rows()))
    if skipped and not skip_bad:
        row = collect(bad.sort("file", "line").head(1)).row(0, named=True)
        problem, file, line = (row.pop(name) for name in ("problem", "file", "line"))
        where = f"{unit} {line}: " if line is not None else ""
        seen = {name.removeprefix(_SEEN): row.get(f"{_SEEN}{name}", value) for name, value in row.items()}
        remedy = next((advice for kind, advice in (remedies or {}).items() if problem.startswith(kind)), "")
        message = (
            f"{where}{problem} ({', '.join(f'{name} {_shown(value)}' for name, value in seen.items())}). "
            f"In all {sum(skipped.values())} bad rows: "
            + ", ".join(f"{count} x {kind}" for kind, count in skipped.items())
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


def read_lines(path: str | Path, columns: bytes, content: bytes, what: str, **settings: Any) -> pl.DataFrame:
    """Read lines without a header, every column as text: broken ones too, since none of them tells the columns."""
    with reading(path, what):
        return pl.read_csv(
            columns + content,
            infer_schema=False,
            quote_char=None,
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
            **settings,
        )


def from_lines(
    lines: pl.DataFrame, *, time: pl.Expr, seen_time: pl.Expr, out_of_order: pl.Expr, **others: pl.Expr
) -> nw.LazyFrame[Any]:
    """Points of lines with `lat` and `lng`, with what `sift` needs."""
    numbers = {name: pl.col(name).cast(pl.Float64, strict=False) for name in ("lat", "lng")}
    seen = {"seen_time": seen_time, "seen_lat": pl.col("lat"), "seen_lng": pl.col("lng")}
    broken = (
        pl.when(pl.any_horizontal(pl.col("time", "lat", "lng").is_null()))
        .then(pl.lit("broken line"))
        .when(out_of_order)
        .then(pl.lit("time out of order"))
    )
    table = lines.lazy().select(**others, time=time, **numbers, **seen).with_columns(broken=broken).collect()
    frame: nw.LazyFrame[Any] = nw.from_native(table.lazy())
    return frame.with_columns(problem=nw.coalesce(nw.col("broken"), range_problem())).drop("broken")


def scan_csv(file: Path, **settings: Any) -> pl.LazyFrame:
    """Scan a csv file with every column as text, and bytes that are no text replaced."""
    return pl.scan_csv(file, infer_schema=False, encoding="utf8-lossy", glob=False, **settings)


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
