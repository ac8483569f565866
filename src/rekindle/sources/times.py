"""Times of raw points: seconds since 1970 from any column, by whole-number arithmetic in which all engines agree."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from rekindle.errors import InvalidData
from rekindle.sources.points import collect, floor_divide, month_of

__all__ = ["PER_SECOND", "with_seconds"]

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})$"
_LAST_SECOND = 253_402_300_799  # 9999-12-31 23:59:59


def with_seconds(
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
        _epoch=nw.when(nw.col("_text").str.contains(NUMBER)).then(nw.col("_text")).cast(nw.Float64),
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
