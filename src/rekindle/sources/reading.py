"""Points from any CSV, Parquet or data frame."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import polars.selectors as cs

from rekindle.checks import choice
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io.safety.untrusted import check_table, files_in, reading
from rekindle.model import Locations
from rekindle.sources.points import Engine, Points, range_problem, scan_csv, sift
from rekindle.sources.spark import spark_session
from rekindle.sources.times import NUMBER, PER_SECOND, with_seconds

__all__ = ["points_from_frame", "read_points"]

KNOWN_NAMES = {
    "person": ("person", "uid", "user", "user_id", "userid", "traj_id", "trajectory_id"),
    "time": ("time", "datetime", "tracked_at", "timestamp", "t"),
    "lat": ("lat", "latitude", "y"),
    "lng": ("lng", "lon", "long", "longitude", "x"),
}
"""The column names that are recognised: our own, and those of scikit-mobility, trackintel and movingpandas."""

_REMEDIES = {
    "time in another zone than the first row": "Use `mixed_zones=True` to convert each time by its own offset. ",
    "time out of order": "Use `unsorted=True` if the order of the rows means nothing. ",
    "time out of range": "Set `time_unit` to 'ms' or 'us' if these are not seconds. ",
}


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
    choice("time_unit", time_unit, PER_SECOND)
    schema = raw.collect_schema()
    frame, zoned = with_seconds(raw, schema["time"], PER_SECOND[time_unit], mixed_zones=mixed_zones)
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
        return nw.when(column.str.contains(NUMBER)).then(column.str.strip_chars()).cast(nw.Float64).alias(name)
    return column.cast(nw.Float64)
