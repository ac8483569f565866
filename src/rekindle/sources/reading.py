"""Points from any CSV, Parquet or data frame."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import polars.selectors as cs

from rekindle.checks import choice
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io.safety.untrusted import check_table, files_in, in_file, reading
from rekindle.io.tables.naming import KNOWN_NAMES, find_column, known_column
from rekindle.io.tables.table import separator_of
from rekindle.model import Locations
from rekindle.sources.engine import Engine
from rekindle.sources.frames import plain_frame
from rekindle.sources.points import Points, range_problem, sift
from rekindle.sources.spark import spark_session
from rekindle.sources.times import NUMBER, PER_SECOND, TimeUnit, find_zone, named_zone, with_seconds

_REMEDIES = {
    "time that is neither": "Set `time_format`, such as `time_format='%d.%m.%Y %H:%M'`, if times are written in another way. ",
    "time out of range": "Set `time_unit` to 'ms' or 'us' if these are not seconds, or "
    "`time_format='%Y%m%d%H%M%S'` if they are dates in digits. ",
}
"""What else than skipping would help, by how the problem begins."""


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
    time_unit: TimeUnit = "s",
    time_format: str | None = None,
    skip_bad: bool = False,
) -> Points:
    """Take points from any data frame: pandas, GeoPandas, Polars, PyArrow, DuckDB, PySpark, ...

    Spark frames stay on Spark; all others go to Polars, lazily where they are Polars already. Nothing is changed in
    the frame that is handed in, and the order of its rows means nothing.

    Parameters
    ----------
    frame
        One row a point. Of a GeoDataFrame, such as trackintel's positionfixes, the geometry is taken; a movingpandas
        `TrajectoryCollection` will do as well. Times may be the index.
    person
        The column that names the person. Here and below, the names of scikit-mobility, trackintel and movingpandas are
        recognised by themselves.
    time
        The column of times: ISO text, timestamps, or numbers since 1970 UTC.
    lat, lng
        The column of latitudes, or of longitudes, in degrees.
    location
        The column that names a tower or cell, for call records. A usual name, such as ``cell_id``, is recognised by itself
        where there are no coordinates.
    towers
        The towers that `location` names.
    timezone
        The zone whose local time counts, such as ``"Europe/Lisbon"``. It must be given where the times are exact instants
        (with offsets, or numbers), unless the column itself has a zone, which is kept.
    utc
        Times that carry no zone are UTC; otherwise they are local clock times.
    time_unit
        ``"s"``, ``"ms"`` or ``"us"``: what numbers in the time column count, since 1970 UTC.
    time_format
        How times are written, where that is not ISO form, such as ``"%d.%m.%Y %H:%M"``: as in Python's ``strptime``, with
        %Y %y %m %b %d %H %I %M %S %f %p %z %F %T %R.
    skip_bad
        Go on without what cannot be read, and count it by kind.
    """
    roles: dict[str, str | None] = {"person": person, "time": time, "lat": lat, "lng": lng, "location": location}
    frame, roles = plain_frame(frame, roles)
    try:
        table = nw.from_native(frame)
    except TypeError:
        raise InvalidData(
            f"A {type(frame).__name__} is not a table of points; give a data frame: pandas, GeoPandas, Polars, DuckDB, Spark."
        ) from None
    names = column_names(table.collect_schema().names(), roles)
    return _points(
        _on_an_engine(table.select(**{role: nw.col(name) for role, name in names.items()})),
        source="a table",
        towers=towers,
        timezone=timezone,
        utc=utc,
        time_unit=time_unit,
        time_format=time_format,
        skip_bad=skip_bad,
        unit="position",
    )


def _on_an_engine(table: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """A lazy frame of Polars or Spark, with the position of each row where rows have one."""
    file = nw.lit(None, dtype=nw.String).alias("file")
    if table.implementation.is_spark_like():
        return table.lazy().with_columns(file, line=nw.lit(None, dtype=nw.Int64))
    zone = getattr(table.collect_schema()["time"], "time_zone", None)
    # DuckDB shows instants in the zone of its session, which is the machine's and not the data's.
    nameless = zone is not None and (table.implementation.is_duckdb() or named_zone(zone) is None)
    native: pl.LazyFrame
    with reading("the frame", "points"):
        if isinstance(table, nw.DataFrame):
            # Before Polars sees it, which does not know every offset.
            utc = nw.col("time").dt.convert_time_zone("UTC")
            native = (table.with_columns(utc) if nameless else table).to_polars().lazy()
        else:
            native = (table if table.implementation.is_polars() else table.collect("polars")).to_native().lazy()
    if nameless:
        native = native.with_columns(pl.col("time").dt.convert_time_zone("UTC").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    native = native.with_row_index("line").with_columns(pl.col("line").cast(pl.Int64))
    lazy: nw.LazyFrame[Any] = nw.from_native(native)
    return lazy.with_columns(file)


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
    time_unit: TimeUnit = "s",
    time_format: str | None = None,
    skip_bad: bool = False,
    engine: Engine = "polars",
) -> Points:
    """Read points from CSV (also gzipped) or Parquet, lazily: the files may be larger than memory.

    Rows may be in any order. The columns of a CSV file may be separated by commas, semicolons, tabs or bars.

    Parameters
    ----------
    source
        A file, a folder of files, or a glob such as ``"points/2014-*.csv"``.
    engine
        As in `prepare_points`; Spark must see the same paths.
    person, time, lat, lng, location, towers, timezone, utc, time_unit, time_format, skip_bad
        As in `points_from_frame`.
    """
    files = _files(source)
    roles = {"person": person, "time": time, "lat": lat, "lng": lng, "location": location}
    take = partial(
        _points,
        source=str(source),
        towers=towers,
        timezone=timezone,
        utc=utc,
        time_unit=time_unit,
        time_format=time_format,
        skip_bad=skip_bad,
        unit="row" if files[0].suffix == ".parquet" else "line",
    )
    scan = _scan_with_polars(files, roles)
    if engine == "polars":
        return take(scan)
    # Spark knows neither the zone of a Parquet column nor line numbers.
    zone = getattr(scan.collect_schema()["time"], "time_zone", None)
    try:
        return take(_scan_with_spark(files, roles), zone=zone)
    except InvalidFile:
        take(scan)
        raise


def column_names(columns: list[str], roles: Mapping[str, str | None]) -> dict[str, str]:
    """Find the column of each role, by the name that was given or by the names that are known."""
    position = any(roles.get(role) or known_column(columns, role) for role in ("lat", "lng"))
    # Not "id" or "name", which may be anything in a table of points.
    tower = any(str(name).strip().lower() in KNOWN_NAMES["location"] for name in columns)
    where = ["location"] if roles.get("location") or (tower and not position) else ["lat", "lng"]
    return {role: find_column(columns, role, roles) for role in ["person", "time", *where]}


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
        header = check_table(file)
        with reading(file, str(_kind(file))):
            if _kind(file) == "parquet":
                scan = pl.scan_parquet(file, row_index_name="__line", row_index_offset=1, glob=False)
            else:
                scan = pl.scan_csv(
                    file,
                    infer_schema=False,
                    encoding="utf8-lossy",
                    glob=False,
                    row_index_name="__line",
                    row_index_offset=2,
                    truncate_ragged_lines=True,
                    separator=separator_of(header),
                )
            columns = scan.collect_schema().names()
        with in_file(file):
            names = column_names([name for name in columns if name != "__line"], roles)
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
        separators = {separator_of(check_table(file)) for file in files}
        if len(separators) > 1:
            raise InvalidFile(
                files[0].parent, "the columns of some files are separated by other marks; Spark reads one."
            )
        table = session.read.csv(paths, header=True, inferSchema=False, escape='"', sep=separators.pop())
    frame: nw.LazyFrame[Any] = nw.from_native(table)
    with in_file(files[0]):
        names = column_names(frame.collect_schema().names(), roles)
    return frame.select(**{role: nw.col(name) for role, name in names.items()}).with_columns(
        file=nw.lit(str(files[0].parent if len(files) > 1 else files[0])), line=nw.lit(None, dtype=nw.Int64)
    )


def _points(
    raw: nw.LazyFrame[Any],
    *,
    source: str,
    towers: Locations | None,
    timezone: str | None,
    utc: bool,
    time_unit: TimeUnit,
    time_format: str | None,
    skip_bad: bool,
    unit: str,
    zone: str | None = None,
) -> Points:
    """Turn columns of any type into the points table."""
    choice("time_unit", time_unit, PER_SECOND)
    if timezone is not None:
        find_zone(timezone)
    schema = raw.collect_schema()
    raw = raw.with_columns(
        nw.col(name).alias(f"seen_{name}") for name in schema.names() if name not in ("file", "line")
    )
    found = with_seconds(raw, schema["time"], PER_SECOND[time_unit], time_format)
    frame, exact, zone = found.frame, found.exact or utc, timezone or found.zone or zone
    if timezone is not None and not exact:
        raise InvalidSetting(
            f"`timezone` is {timezone!r}, but the times carry no zone and are taken as local clock times; "
            "leave it out, or use `utc=True` if they are UTC."
        )
    if exact and zone is None:
        raise InvalidSetting(
            "The times are exact instants (UTC, with offsets, or numbers since 1970), so they do not say which local clock "
            "people live by; set `timezone`, such as `timezone='Europe/Oslo'`, or `timezone='UTC'` for the clock of UTC."
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
    good, skipped = sift(frame, skip_bad=skip_bad, unit=unit, remedies=_REMEDIES)
    return Points(good, zone if exact else None, {"source": source, "licence": None, "skipped": skipped})


def _number(name: str, dtype: nw.dtypes.DType) -> nw.Expr:
    column = nw.col(name)
    if dtype == nw.String:
        column = column.str.strip_chars().str.replace_all(
            ",", ".", literal=True
        )  # a decimal comma: no coordinate has thousands
        return nw.when(column.str.contains(NUMBER)).then(column).cast(nw.Float64).alias(name)
    return column.cast(nw.Float64)
