"""When: steps, the local clock, and the part of the points that lies in a window of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw

from rekindle.checks import choice, share, whole
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar
from rekindle.prepare import select
from rekindle.prepare.fill import Fill
from rekindle.sources.points import Points, collect

__all__ = [
    "ALIGNED_START",
    "DAY_SECONDS",
    "check_settings",
    "clock",
    "extremes",
    "require_trajectories",
    "sample",
    "step_of",
    "window",
]

DAY_SECONDS = 86_400
ALIGNED_START = datetime(2000, 1, 1)
"""Where people of different years are moved to, as in the published notebook."""


def step_of(step: str | timedelta) -> tuple[timedelta, int]:
    step = Calendar(ALIGNED_START, step).step  # refuses what does not divide a day
    return step, int(step.total_seconds())


def check_settings(fill: str, min_coverage: float, days: int | None) -> None:
    choice("fill", fill, get_args(Fill))
    share("min_coverage", min_coverage)
    if days is not None:
        whole("days", days, least=1)


def require_trajectories(points: Points) -> None:
    missing = {"trajectory", "lat", "lng"} - set(points.frame.collect_schema().names())
    if missing:
        raise InvalidData(
            f"These points have no {', '.join(sorted(missing))}, which this recipe needs; see prepare_points."
        )


def clock(second: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(seconds=second)


def extremes(frame: nw.LazyFrame[Any]) -> tuple[int, int]:
    times = collect(frame.select(first=nw.col("time").min(), last=nw.col("time").max()))
    first, last = times.row(0)
    if first is None:
        raise InvalidData("There is no point at all; is the time window right?")
    return first, last


def window(
    points: Points, start: datetime | None, days: int | None
) -> tuple[nw.LazyFrame[Any], int | None, int | None]:
    """Put the points on the local clock, and keep those in the window; give its begin and end in local seconds.

    The zone's offset at the start holds throughout, so that every day has 24 hours.
    """
    begin = None if start is None else round((start - datetime(1970, 1, 1)).total_seconds())
    if days is not None and begin is None:
        raise InvalidSetting("`days` is set, but not `start`; a window needs both.", "days", "start")
    offset = 0
    if points.timezone is not None:
        try:
            zone = ZoneInfo(points.timezone)
        except (ZoneInfoNotFoundError, ValueError, IsADirectoryError):
            raise InvalidSetting(
                f"`timezone` is {points.timezone!r}; give a name such as 'Europe/Lisbon' or 'UTC'.", "timezone"
            ) from None
        if start is not None:
            at = start.replace(tzinfo=zone)
        else:
            at = datetime.fromtimestamp(extremes(points.frame)[0], UTC).astimezone(zone)
        offset = round(at.utcoffset().total_seconds())  # type: ignore[union-attr]
    frame = points.frame.with_columns(time=nw.col("time") + offset)
    if begin is None:
        return frame, None, None
    frame = frame.filter(nw.col("time") >= begin)
    if days is None:
        return frame, begin, None
    end = begin + days * DAY_SECONDS
    return frame.filter(nw.col("time") < end), begin, end


def sample(frame: nw.LazyFrame[Any], keys: list[str]) -> nw.LazyFrame[Any]:
    """Keep the first record within each step; of records of the same second, the most southern, then western."""
    where = ["lat", "lng"] if "lat" in frame.collect_schema() else ["location"]
    frame = frame.select(*keys, "step", "time", *where)
    return select.first_of_each(frame, [*keys, "step"], ["time", *where]).drop("time")
