"""Times of raw points: seconds since 1970 from any column, by whole-number arithmetic in which all engines agree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.sources.engine import collect
from rekindle.sources.points import floor_divide, month_of

TimeUnit = Literal["s", "ms", "us"]
PER_SECOND: dict[TimeUnit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000}
NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)$"
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"
_LAST_SECOND = 253_402_300_799  # 9999-12-31 23:59:59
_LOCAL, _EXACT = "with a zone, unlike most rows", "without a zone, unlike most rows"
"""What is wrong with the other rows where most times are local clock times, or exact instants."""

_PARTS = {
    **dict.fromkeys("mdHIMS", r"(\d{1,2})"),
    "Y": r"(\d{4})",
    "y": r"(\d{2})",
    "z": r"(Z|[+-]\d{2}:?\d{2}|[+-]\d{2})",
    "f": r"\d{1,9}",
    "p": r"[AaPp]\.?[Mm]\.?",
    "%": "%",
}
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_SHORT = {"%b": "%m", "%B": "%m", "%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M"}


@dataclass(frozen=True)
class Seconds:
    """A table whose times became seconds.

    Attributes
    ----------
    frame
        With `time` in seconds since 1970, and `problem`.
    exact
        Whether the times are exact instants, in UTC now; otherwise they are local clock times.
    zone
        The zone that the column itself carries, where it does.
    """

    frame: nw.LazyFrame[Any]
    exact: bool
    zone: str | None = None


def find_zone(name: str) -> ZoneInfo:
    """Load a time zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidSetting(f"`timezone` is {name!r}; give a name such as 'Europe/Lisbon' or 'UTC'.") from None


def with_seconds(
    frame: nw.LazyFrame[Any], dtype: nw.dtypes.DType, per_second: int, time_format: str | None
) -> Seconds:
    """Replace `time` by seconds since 1970, and add `problem`."""
    time = nw.col("time")
    if dtype == nw.String:
        return _of_text(frame, per_second, time_format)
    if time_format is not None:
        raise InvalidSetting(f"`time_format` is for text, but the time column has the type {dtype}.")
    if isinstance(dtype, nw.Datetime) or dtype == nw.Datetime:
        found = _of_datetime(frame, dtype)
    elif dtype.is_numeric():
        known = nw.when(time.is_finite()).then(time) if dtype.is_float() else time  # pandas writes missing as NaN
        found = Seconds(frame.with_columns(time=(known // per_second).cast(nw.Int64)), exact=True)
    else:
        raise InvalidData(
            f"The time column has the type {dtype}; it must hold times, text, or numbers. Convert it, or set `time`."
        )
    problem = (
        nw.when(time.is_null())
        .then(nw.lit("time missing"))
        .otherwise(nw.when((time > _LAST_SECOND) | (time < 0)).then(nw.lit("time out of range")))
    )
    return Seconds(found.frame.with_columns(problem=problem), found.exact, found.zone)


def _of_datetime(frame: nw.LazyFrame[Any], dtype: Any) -> Seconds:
    if not frame.implementation.is_spark_like():
        frame = frame.with_columns(time=nw.col("time").dt.timestamp("ms") // 1_000)
        return Seconds(frame, dtype.time_zone is not None, named_zone(dtype.time_zone))
    from pyspark.sql import functions, types  # narwhals has no timestamp() for Spark yet

    # Spark's timestamps carry no zone. That of the session is the machine's, not the data's.
    native = frame.to_native()
    exact = not isinstance(native.schema["time"].dataType, types.TimestampNTZType)
    seconds = "unix_seconds(time)" if exact else "timestampdiff(SECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', time)"
    return Seconds(nw.from_native(native.withColumn("time", functions.expr(seconds))), exact)


def named_zone(zone: str | None) -> str | None:
    """A zone by name; an offset such as +01:00 says what the time was, but not when the clock changes."""
    try:
        return None if zone is None or zone.startswith("Etc/GMT") else find_zone(zone).key
    except InvalidSetting:
        return None


def _in_iso(text: nw.Expr, time_format: str) -> tuple[nw.Expr, bool]:
    """Write times of another form in ISO form, null where they have not that form; and whether they are of 12 hours."""
    whole, pattern, groups, number = time_format, "", {}, 0
    for short, long in _SHORT.items():
        whole = whole.replace(short, long)
    for part in re.findall(r"%.|\s+|.", whole, re.DOTALL):
        if part[0] != "%":
            pattern += r"\s+" if part.isspace() else re.escape(part)
            continue
        if part[1:] not in _PARTS:
            raise InvalidSetting(
                f"`time_format` is {time_format!r}; {part!r} is none of %Y %y %m %b %d %H %I %M %S %f %p %z %F %T %R."
            )
        pattern += _PARTS[part[1]]
        if "(" in _PARTS[part[1]]:
            number += 1
            groups[part[1].replace("I", "H")] = f"${number}"
    if not ({"m", "d"} <= groups.keys() and groups.keys() & {"Y", "y"}):
        raise InvalidSetting(
            f"`time_format` is {time_format!r}; it must name year, month and day, such as '%d.%m.%Y %H:%M'."
        )
    for month, name in enumerate(_MONTHS if re.search("%[bB]", time_format) else (), start=1):
        text = text.str.replace_all(f"(?i){name}[a-z]*", f"{month:02}")
    text = text.str.replace_all(r"\b(\d)\b", "0$1")
    clock = ":".join(groups.get(part, "00") for part in "HMS")
    year = groups.get("Y") or groups["y"]
    iso = text.str.replace_all(f"^{pattern}$", f"{year}-{groups['m']}-{groups['d']} {clock}{groups.get('z', '')}")
    if "Y" not in groups:  # as Python reads two digits, but for 1969
        iso = iso.str.replace_all(r"^([0-6]\d)-", "20$1-").str.replace_all(r"^([7-9]\d)-", "19$1-")
    return nw.when(text.str.contains(f"^{pattern}$")).then(iso), "%p" in whole


def _of_text(frame: nw.LazyFrame[Any], per_second: int, time_format: str | None) -> Seconds:
    """Parse ISO times and numbers by whole-number arithmetic, in which all engines agree."""
    frame, text = frame.with_columns(_text=nw.col("time").str.strip_chars()), nw.col("_text")
    if time_format is None:
        iso, halves, number = text, False, text.str.contains(NUMBER)
    else:
        (iso, halves), number = _in_iso(text, time_format), nw.lit(False)
    epoch = nw.when(number).then(text)
    frame = frame.with_columns(_iso=iso, _epoch=epoch.cast(nw.Float64)).with_columns(
        _iso=nw.when(nw.col("_iso").str.contains(_ISO)).then(nw.col("_iso"))
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

    hour = digits("_clock", 11, 2)
    if halves:
        afternoon = nw.col("_text").str.contains(r"[Pp]\.?[Mm]")
        hour = hour % 12 + nw.when(afternoon).then(nw.lit(12)).otherwise(nw.lit(0))
    written = nw.concat_str("_zone", nw.lit("00"))  # +01 as +0100; what +0130 has too much is not looked at
    offset = nw.when(nw.col("_zone").str.len_chars() >= 3).then(written).otherwise(nw.lit("+0000"))
    frame = frame.with_columns(
        _year=digits("_clock", 0, 4),
        _month=digits("_clock", 5, 2),
        _day=digits("_clock", 8, 2),
        _second=hour * 3_600 + digits("_clock", 14, 2) * 60 + digits("_clock", 17, 2),
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
    # Offsets may differ from row to row, as they do across a clock change: each is an exact instant.
    kind = (
        nw.when(~nw.col("_epoch").is_null() | (nw.col("_zone") != ""))
        .then(nw.lit(_EXACT))
        .otherwise(nw.when(nw.col("_zone") == "").then(nw.lit(_LOCAL)))
    )
    frame = frame.with_columns(_kind=kind)
    kinds = collect(frame.filter(~nw.col("_kind").is_null()).group_by("_kind").agg(rows=nw.len()))
    usual = min(kinds.iter_rows(), key=lambda row: (-row[1], row[0]), default=(_LOCAL, 0))[0]
    unknown = "neither ISO nor a number" if time_format is None else f"not of the form {time_format}"
    problem = (
        nw.when(nw.col("_text").is_null() | (nw.col("_text") == ""))
        .then(nw.lit("time missing"))
        .otherwise(
            nw.when(nw.col("time").is_null())
            .then(nw.lit(f"time that is {unknown}"))
            .otherwise(
                nw.when(nw.col("_kind") != usual)
                .then(nw.lit(f"time {usual}"))
                .otherwise(
                    nw.when((nw.col("time") > _LAST_SECOND) | (nw.col("time") < 0)).then(nw.lit("time out of range"))
                )
            )
        )
    )
    helpers = [name for name in frame.collect_schema().names() if name.startswith("_")]
    return Seconds(frame.with_columns(problem=problem).drop(helpers), exact=usual == _EXACT)
