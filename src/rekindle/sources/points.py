"""The points table that every source yields, and reading it from any CSV, Parquet or data frame."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl
import polars.selectors as cs

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io.safety.untrusted import check_table, files_in, reading
from rekindle.model import Locations
from rekindle.sources.spark import spark_session

__all__ = [
    "Engine",
    "Points",
    "Progress",
    "collect",
    "floor_divide",
    "month_of",
    "points_from_frame",
    "read_points",
    "sift",
]

Engine = Literal["polars", "spark"]
Progress = Callable[[int, int], None]
"""Called as ``progress(files_done, files_in_all)``."""

KNOWN_NAMES = {
    "person": ("person", "uid", "user", "user_id", "userid", "traj_id", "trajectory_id"),
    "time": ("time", "datetime", "tracked_at", "timestamp", "t"),
    "lat": ("lat", "latitude", "y"),
    "lng": ("lng", "lon", "long", "longitude", "x"),
}
"""The column names that are recognised: our own, and those of scikit-mobility, trackintel and movingpandas."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})$"
_REMEDIES = {
    "time in another zone than the first row": "Use `mixed_zones=True` to convert each time by its own offset. ",
    "time out of order": "Use `unsorted=True` if the order of the rows means nothing. ",
    "time out of range": "Set `time_unit` to 'ms' or 'us' if these are not seconds. ",
}
_LAST_SECOND = 253_402_300_799  # 9999-12-31 23:59:59


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
        if engine not in ("polars", "spark"):
            raise InvalidSetting(f"The engine is {engine!r}; it must be 'polars' or 'spark'.")
        if engine == "polars" or self.frame.implementation.is_spark_like():
            return self
        return replace(self, frame=nw.from_native(spark_session().createDataFrame(collect(self.frame).to_arrow())))


def collect(frame: nw.LazyFrame[Any]) -> pl.DataFrame:
    """Run a lazy frame on its engine; Polars streams, so that the input may be larger than memory."""
    if frame.implementation.is_polars():
        try:
            return frame.to_native().collect(engine="streaming")  # type: ignore[no-any-return]
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise InvalidData(f"The points cannot be read ({line}).") from None
    return frame.collect("polars").to_native()  # type: ignore[no-any-return]


def sift(
    frame: nw.LazyFrame[Any], *, skip_bad: bool, unit: str = "line", remedies: Mapping[str, str] | None = None
) -> tuple[nw.LazyFrame[Any], dict[str, int]]:
    """Leave out bad rows and count them by kind, or refuse the first of them.

    Parameters
    ----------
    frame
        With a column `problem`, null where the row is good, and `file` and `line`, which say where the row is from.
    skip_bad
        Go on without the bad rows.
    unit
        What `line` counts.
    remedies
        For some problems, what else than skipping would help.

    Returns
    -------
    The good rows without those three columns, and how many there were of each problem.
    """
    bad = frame.filter(~nw.col("problem").is_null())
    kinds = collect(bad.group_by("problem").agg(rows=nw.len()))
    skipped = dict(sorted(kinds.select("problem", pl.col("rows").cast(pl.Int64)).iter_rows()))
    if skipped and not skip_bad:
        row = collect(bad.sort("file", "line").head(1)).row(0, named=True)
        problem, file, line = (row.pop(name) for name in ("problem", "file", "line"))
        where = f"{unit} {line}: " if line is not None else ""
        seen = ", ".join(f"{name} {value!r}" for name, value in row.items() if not name.startswith("_"))
        raise InvalidFile(
            file or "(table)",
            f"{where}{problem} ({seen}). In all {sum(skipped.values())} bad rows: "
            + ", ".join(f"{count} x {kind}" for kind, count in skipped.items())
            + f". {(remedies or {}).get(problem, '')}Use `skip_bad=True` to continue without them.",
            "skip_bad",
            "mixed_zones",
            "unsorted",
            "time_unit",
        )
    return frame.filter(nw.col("problem").is_null()).drop("problem", "file", "line"), skipped


def range_problem() -> nw.Expr:
    """What is wrong with `lat` and `lng`, or null."""
    lat, lng = nw.col("lat"), nw.col("lng")
    inside = (lat >= -90.0) & (lat <= 90.0) & (lng >= -180.0) & (lng <= 180.0)
    return (
        nw.when(lat.is_null() | lng.is_null())
        .then(nw.lit("coordinates missing or not a number"))
        .otherwise(nw.when(~inside).then(nw.lit("coordinates out of range")))
    )


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


def points_from_frame(
    frame: Any,
    *,
    person: str | None = None,
    time: str | None = None,
    lat: str | None = None,
    lng: str | None = None,
    location: str | None = None,
    towers: Locations | None = None,
    timezone: str | None = None,
    utc: bool = False,
    time_unit: str = "s",
    mixed_zones: bool = False,
    skip_bad: bool = False,
) -> Points:
    """Take points from any data frame that narwhals accepts: pandas, Polars, GeoPandas, DuckDB, PySpark, ...

    Spark frames stay on Spark; all others go to Polars, lazily where they are Polars already. Nothing is changed in
    the frame that is handed in, and the order of its rows means nothing.

    Parameters
    ----------
    frame
        One row a point.
    person, time, lat, lng
        Column names; those of scikit-mobility, trackintel and movingpandas are recognised by themselves.
    location, towers
        The column that names a tower or cell, for call records without coordinates; and the towers there are.
    timezone
        The zone whose local time counts, such as ``"Europe/Lisbon"``, where the times are UTC or carry an offset.
    utc
        Times that carry no zone are UTC; otherwise they are local clock times.
    time_unit
        ``"s"``, ``"ms"`` or ``"us"``: what numbers in the time column count, since 1970 UTC.
    mixed_zones
        Convert each time by its own offset. Otherwise an offset other than the first row's is bad input.
    skip_bad
        Go on without bad rows, and count them.
    """
    try:
        table = nw.from_native(frame)
    except TypeError:
        raise InvalidData(f"Points must be a data frame that narwhals accepts; this is a {type(frame)}.") from None
    names = column_names(
        table.collect_schema().names(), "(table)", person=person, time=time, lat=lat, lng=lng, location=location
    )
    table = table.select(**{role: nw.col(name) for role, name in names.items()})
    lazy = _on_an_engine(table)
    raw = lazy.with_columns(file=nw.lit(None, dtype=nw.String), line=nw.lit(None, dtype=nw.Int64))
    return _points(
        raw,
        "a table",
        towers=towers,
        timezone=timezone,
        utc=utc,
        time_unit=time_unit,
        mixed_zones=mixed_zones,
        skip_bad=skip_bad,
    )


def _on_an_engine(table: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    if isinstance(table, nw.DataFrame):
        return nw.from_native(table.to_polars().lazy())
    if table.implementation.is_polars() or table.implementation.is_spark_like():
        return table
    lazy: nw.LazyFrame[Any] = nw.from_native(table.collect("polars").to_native().lazy())
    return lazy


def read_points(
    source: str | Path,
    *,
    person: str | None = None,
    time: str | None = None,
    lat: str | None = None,
    lng: str | None = None,
    location: str | None = None,
    towers: Locations | None = None,
    timezone: str | None = None,
    utc: bool = False,
    time_unit: str = "s",
    mixed_zones: bool = False,
    unsorted: bool = False,
    skip_bad: bool = False,
    engine: Engine = "polars",
) -> Points:
    """Read points from CSV (also gzipped) or Parquet, lazily: the files may be larger than memory.

    Parameters
    ----------
    source
        A file, a folder of files, or a glob such as ``"points/2014-*.csv"``.
    unsorted
        Accept rows of one person that go back in time from one line to the next. (Spark does not see the order of
        rows, and never refuses it.)
    engine
        Who reads the files: ``"polars"``, or ``"spark"``, which must see the same paths.
    person, time, lat, lng, location, towers, timezone, utc, time_unit, mixed_zones, skip_bad
        As in `points_from_frame`.
    """
    files = _files(source)
    roles = {"person": person, "time": time, "lat": lat, "lng": lng, "location": location}
    unit = "row" if files[0].suffix == ".parquet" else "line"
    settings: dict[str, Any] = {
        "towers": towers,
        "timezone": timezone,
        "utc": utc,
        "time_unit": time_unit,
        "mixed_zones": mixed_zones,
        "unit": unit,
    }
    if engine == "spark":
        raw = _scan_with_spark(files, roles)
        try:
            return _points(raw, str(source), skip_bad=skip_bad, **settings)
        except InvalidFile:
            # Spark knows no line numbers: let the other engine say where it is, and keep its own word if that fails.
            _points(_scan_with_polars(files, roles), str(source), skip_bad=skip_bad, **settings)
            raise
    raw = _scan_with_polars(files, roles)
    return _points(raw, str(source), skip_bad=skip_bad, ordered=not unsorted, **settings)


def column_names(columns: list[str], path: str | Path, **roles: str | None) -> dict[str, str]:
    """Find the column of each role, by the name that was given or by the names that are known."""
    wanted = ["person", "time", *(["location"] if roles.get("location") else ["lat", "lng"])]
    found = {}
    for role in wanted:
        name = roles.get(role)
        if name is None:
            matches = [column for column in columns if column.strip().lower() in KNOWN_NAMES[role]]
            if len(matches) != 1:
                what = f"the columns {matches} could each be" if matches else f"no column of {columns} is known as"
                raise InvalidFile(path, f"{what} the {role}; name it with --{role} COLUMN.")
            name = matches[0]
        elif name not in columns:
            raise InvalidFile(path, f"there is no column {name!r} for the {role}; the columns are {columns}.")
        found[role] = name
    return found


def _files(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        files = files_in(path, "*", only=lambda file: _kind(file) is not None)
    elif path.exists():
        files = [path]
    else:
        files = sorted(Path(name) for name in glob.glob(str(source), recursive=True))
    if not files:
        raise InvalidFile(source, "there is no such file, and no CSV or Parquet file in or under that name.")
    kinds = {_kind(file) for file in files}
    if None in kinds or len(kinds) > 1:
        odd = next((file for file in files if _kind(file) is None), files[0])
        raise InvalidFile(odd, "give files of one kind: .csv, .csv.gz, .txt or .parquet.")
    return files


def _kind(file: Path) -> str | None:
    name = file.name.lower()
    if name.endswith(".parquet"):
        return "parquet"
    return "csv" if name.endswith((".csv", ".csv.gz", ".txt")) else None


def _scan_with_polars(files: list[Path], roles: dict[str, str | None]) -> nw.LazyFrame[Any]:
    scans = []
    for file in files:
        check_table(file)
        with reading(file, str(_kind(file))):
            if _kind(file) == "parquet":
                scan = pl.scan_parquet(file, row_index_name="__line", row_index_offset=1, glob=False)
            else:
                scan = scan_csv(file, row_index_name="__line", row_index_offset=2, truncate_ragged_lines=True)
            columns = scan.collect_schema().names()
        names = column_names([name for name in columns if name != "__line"], file, **roles)
        scans.append(
            scan.select(
                **{role: cs.by_name(name).as_expr() for role, name in names.items()},
                file=pl.lit(str(file)),
                line=pl.col("__line").cast(pl.Int64),
            )
        )
    try:
        return nw.from_native(pl.concat(scans))
    except pl.exceptions.PolarsError as error:
        raise InvalidFile(files[0].parent, f"the files have columns of different types: {error}") from None


def scan_csv(file: Path, **settings: Any) -> pl.LazyFrame:
    """Scan a csv file with every column as text, and bytes that are no text replaced."""
    return pl.scan_csv(file, infer_schema=False, encoding="utf8-lossy", glob=False, **settings)


def _scan_with_spark(files: list[Path], roles: dict[str, str | None]) -> nw.LazyFrame[Any]:
    session = spark_session()
    paths = [str(file.resolve()) for file in files]
    if _kind(files[0]) == "parquet":
        table = session.read.parquet(*paths)
    else:
        table = session.read.csv(paths, header=True, inferSchema=False, escape='"')
    frame: nw.LazyFrame[Any] = nw.from_native(table)
    names = column_names(frame.collect_schema().names(), files[0], **roles)
    return frame.select(**{role: nw.col(name) for role, name in names.items()}).with_columns(
        file=nw.lit(str(files[0].parent if len(files) > 1 else files[0])), line=nw.lit(None, dtype=nw.Int64)
    )


def _points(
    raw: nw.LazyFrame[Any],
    source: str,
    *,
    towers: Locations | None,
    timezone: str | None,
    utc: bool,
    time_unit: str,
    mixed_zones: bool,
    skip_bad: bool,
    ordered: bool = False,
    unit: str = "row",
) -> Points:
    """Turn columns of any type into the points table."""
    if time_unit not in _PER_SECOND:
        raise InvalidSetting(f"`time_unit` is {time_unit!r}; it must be 's', 'ms' or 'us'.", "time_unit")
    schema = raw.collect_schema()
    frame, zoned = _with_seconds(raw, schema["time"], _PER_SECOND[time_unit], mixed_zones=mixed_zones)
    if zoned is None:
        zoned = utc
    if timezone is not None and not zoned:
        raise InvalidSetting(
            f"`timezone` is {timezone!r}, but the times carry no zone and are taken as local clock times; "
            "leave it out, or use `utc=True` if they are UTC.",
            "timezone",
            "utc",
        )
    missing = nw.when(nw.col("person").is_null() | (nw.col("person") == "")).then(nw.lit("person missing"))
    frame = frame.with_columns(nw.col("person").cast(nw.String))
    if "location" in schema:
        frame = frame.with_columns(nw.col("location").cast(nw.String))
        where: nw.Expr = nw.when(nw.col("location").is_null()).then(nw.lit("location missing"))
        if towers is not None:
            unknown = ~nw.col("location").is_in(towers.ids)
            where = nw.coalesce(where, nw.when(unknown).then(nw.lit("location that is not among the towers")))
    else:
        frame = frame.with_columns(*(_number(name, schema[name]) for name in ("lat", "lng")))
        where = range_problem()
    frame = frame.with_columns(_missing=missing, _where=where)
    problem = nw.coalesce("_missing", "problem", "_where")
    frame = frame.with_columns(problem=problem).drop("_missing", "_where")
    if ordered:
        native = frame.to_native()
        back = (
            (pl.col("person") == pl.col("person").shift(1))
            & (pl.col("file") == pl.col("file").shift(1))
            & (pl.col("time") < pl.col("time").shift(1))
        )
        frame = nw.from_native(
            native.with_columns(problem=pl.coalesce("problem", pl.when(back).then(pl.lit("time out of order"))))
        )
    good, skipped = sift(frame, skip_bad=skip_bad, unit=unit, remedies=_REMEDIES)
    zone = (timezone or "UTC") if zoned else None
    return Points(good, zone, {"source": source, "licence": None, "skipped": skipped})


def _number(name: str, dtype: nw.dtypes.DType) -> nw.Expr:
    column = nw.col(name)
    if dtype == nw.String:
        return nw.when(column.str.contains(_NUMBER)).then(column.str.strip_chars()).cast(nw.Float64).alias(name)
    return column.cast(nw.Float64)


def _with_seconds(
    frame: nw.LazyFrame[Any], dtype: nw.dtypes.DType, per_second: int, *, mixed_zones: bool
) -> tuple[nw.LazyFrame[Any], bool | None]:
    """Replace `time` by seconds since 1970 and add `problem`; say whether that is UTC (None: it carries no zone)."""
    time = nw.col("time")
    if dtype == nw.String:
        return _with_seconds_of_text(frame, per_second, mixed_zones=mixed_zones)
    if isinstance(dtype, nw.Datetime) or dtype == nw.Datetime:
        frame, zoned = _with_seconds_of_datetime(frame, dtype)
    elif dtype.is_numeric():
        known = nw.when(time.is_finite()).then(time) if dtype.is_float() else time  # pandas writes missing as NaN
        frame, zoned = frame.with_columns(time=(known // per_second).cast(nw.Int64)), True
    else:
        raise InvalidData(f"The time column has the type {dtype}; it must hold times, text in ISO form, or numbers.")
    problem = (
        nw.when(time.is_null())
        .then(nw.lit("time missing"))
        .otherwise(nw.when((time > _LAST_SECOND) | (time < 0)).then(nw.lit("time out of range")))
    )
    return frame.with_columns(problem=problem), zoned or None


def _with_seconds_of_datetime(frame: nw.LazyFrame[Any], dtype: Any) -> tuple[nw.LazyFrame[Any], bool]:
    if not frame.implementation.is_spark_like():
        return frame.with_columns(time=nw.col("time").dt.timestamp("ms") // 1_000), dtype.time_zone is not None
    from pyspark.sql import functions, types  # narwhals has no timestamp() for Spark yet

    native = frame.to_native()
    zoned = not isinstance(native.schema["time"].dataType, types.TimestampNTZType)
    seconds = "unix_seconds(time)" if zoned else "timestampdiff(SECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', time)"
    return nw.from_native(native.withColumn("time", functions.expr(seconds))), zoned


def _with_seconds_of_text(
    frame: nw.LazyFrame[Any], per_second: int, *, mixed_zones: bool
) -> tuple[nw.LazyFrame[Any], bool | None]:
    """Parse ISO times and numbers by whole-number arithmetic, in which all engines agree."""
    text = nw.col("time").str.strip_chars()
    frame = frame.with_columns(_text=text).with_columns(
        _iso=nw.when(nw.col("_text").str.contains(_ISO)).then(nw.col("_text")),
        _epoch=nw.when(nw.col("_text").str.contains(_NUMBER)).then(nw.col("_text")).cast(nw.Float64),
    )
    iso = nw.col("_iso")
    clock = iso.str.replace_all(_ZONE, "")
    clock = (
        nw.when(iso.str.len_chars() == 10)
        .then(nw.concat_str(iso, nw.lit("T00:00:00")))
        .otherwise(nw.when(clock.str.len_chars() == 16).then(nw.concat_str(clock, nw.lit(":00"))).otherwise(clock))
    )
    # What is left of the time of day when the clock is taken away: '', 'Z' or an offset.
    zone = iso.str.slice(10).str.replace_all(r"^[^Z+-]*", "").str.replace_all(":", "")
    frame = frame.with_columns(_clock=clock, _zone=zone)

    def digits(column: str, offset: int, length: int) -> nw.Expr:
        return nw.col(column).str.slice(offset, length).cast(nw.Int64)

    offset = nw.when(nw.col("_zone").str.len_chars() == 5).then(nw.col("_zone")).otherwise(nw.lit("+0000"))
    frame = frame.with_columns(
        _year=digits("_clock", 0, 4),
        _month=digits("_clock", 5, 2),
        _day=digits("_clock", 8, 2),
        _second=digits("_clock", 11, 2) * 3_600 + digits("_clock", 14, 2) * 60 + digits("_clock", 17, 2),
        _in_range=(digits("_clock", 11, 2) < 24) & (digits("_clock", 14, 2) < 60) & (digits("_clock", 17, 2) < 60),
        _offset=offset,
    ).with_columns(
        _offset=(digits("_offset", 1, 2) * 3_600 + digits("_offset", 3, 2) * 60)
        * nw.when(nw.col("_offset").str.starts_with("-")).then(nw.lit(-1)).otherwise(nw.lit(1)),
        # Years begin in March, as in month_of.
        _march=nw.when(nw.col("_month") > 2).then(nw.col("_month") - 3).otherwise(nw.col("_month") + 9),
        _year=nw.when(nw.col("_month") > 2).then(nw.col("_year")).otherwise(nw.col("_year") - 1),
    )
    year = nw.col("_year")
    days = (
        year * 365
        + floor_divide(year, 4)
        - floor_divide(year, 100)
        + floor_divide(year, 400)
        + floor_divide(153 * nw.col("_march") + 2, 5)
        + nw.col("_day")
        - 719_469
    )
    local = days * 86_400 + nw.col("_second")
    frame = frame.with_columns(
        _local=local,
        time=nw.coalesce((local - nw.col("_offset")).cast(nw.Int64), (nw.col("_epoch") // per_second).cast(nw.Int64)),
    )
    # A day that its month does not have, such as 30 February, comes out in another month.
    real = (month_of(nw.col("_local")) == year * 12 + nw.col("_march")) & nw.col("_in_range") & (nw.col("_month") > 0)
    frame = frame.with_columns(time=nw.when(nw.coalesce(real, nw.lit(True))).then(nw.col("time")))
    kind = (
        nw.when(~nw.col("_epoch").is_null())
        .then(nw.lit("number"))
        .otherwise(nw.when(nw.col("_zone") == "").then(nw.lit("local")).otherwise(nw.lit("UTC")))
    )
    exact = nw.when(~nw.col("_epoch").is_null()).then(nw.lit("number")).otherwise(nw.col("_zone"))
    frame = frame.with_columns(_kind=kind, _exact=kind if mixed_zones else exact)
    first = collect(
        frame.filter(~nw.col("_iso").is_null() | ~nw.col("_epoch").is_null()).select("_kind", "_exact").head(1)
    )
    zone_of_first, exact_of_first = first.row(0) if first.height else ("local", "")
    problem = (
        nw.when(nw.col("_text").is_null() | (nw.col("_text") == ""))
        .then(nw.lit("time missing"))
        .otherwise(
            nw.when(nw.col("time").is_null())
            .then(nw.lit("time that is neither ISO nor a number"))
            .otherwise(
                nw.when(nw.col("_exact") != exact_of_first)
                .then(nw.lit("time in another zone than the first row"))
                .otherwise(
                    nw.when((nw.col("time") > _LAST_SECOND) | (nw.col("time") < 0)).then(nw.lit("time out of range"))
                )
            )
        )
    )
    helpers = [name for name in frame.collect_schema().names() if name.startswith("_")]
    return frame.with_columns(problem=problem).drop(helpers), None if zone_of_first == "local" else True
