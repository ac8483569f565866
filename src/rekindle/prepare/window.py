"""When: steps, the local clock, and the part of the points that lies in a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo

import narwhals as nw

from rekindle.checks import choice, share, whole
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar
from rekindle.prepare import select
from rekindle.prepare.fill import Fill, check_max_gap
from rekindle.sources.engine import collect
from rekindle.sources.points import Points
from rekindle.sources.times import find_zone

DAY_SECONDS = 86_400
_WEEK = 7 * DAY_SECONDS
_LONGEST_SPAN = 200 * 366 * DAY_SECONDS
ALIGNED_START = datetime(2000, 1, 1)
"""Where people of different years are moved to, as in the published notebook."""


def step_of(step: str | timedelta) -> tuple[timedelta, int]:
    step = Calendar(ALIGNED_START, step).step  # refuses what does not divide a day
    return step, int(step.total_seconds())


def check_settings(fill: str, min_coverage: float, days: int | None, max_gap: str | timedelta | None) -> None:
    choice("fill", fill, get_args(Fill))
    check_max_gap(max_gap)
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
        raise InvalidData("There are no points: there are none at all, or none in the time window.")
    return first, last


@dataclass(frozen=True)
class Window:
    """Points on the local clock.

    Attributes
    ----------
    frame
        The points in the window, with `time` in local seconds; and `instant`, where the clock goes back: an hour that
        comes twice is told apart by that alone.
    begin, end
        The window in local seconds, as far as it was given.
    changes
        The clock's changes among the points: from which local second to which.
    """

    frame: nw.LazyFrame[Any]
    begin: int | None
    end: int | None
    changes: list[tuple[int, int]]

    def describe(self, begin: int, end: int) -> dict[str, list[str]]:
        """What `dataset.json` says of changes of the clock within a period; nothing where there is none."""
        found = [f"{clock(old)} becomes {clock(new):%H:%M}" for old, new in self.changes if begin <= old < end]
        return {"clock_changes": found} if found else {}


def window(points: Points, start: datetime | None, days: int | None, *, margin: int = 0) -> Window:
    """Put the points on the local clock, and keep those in the window.

    The clock is the one on the wall, so that every day has 24 hours, and 8 in the morning is 8 in the morning all year. Where
    it goes forward, there are no points in the hour that is left out; where it goes back, two hours share their steps.
    Points up to `margin` seconds before and after the window are kept too.
    """
    begin = None if start is None else round((start - datetime(1970, 1, 1)).total_seconds())
    if days is not None and begin is None:
        raise InvalidSetting("`days` is set, but not `start`; a window needs both.")
    end = None if begin is None or days is None else begin + days * DAY_SECONDS
    frame, changes = points.frame, []
    if points.timezone is not None:
        zone = find_zone(points.timezone)
        if begin is None or end is None:
            first, last = extremes(frame)
        else:  # a day more on each side, as these are local
            around = DAY_SECONDS + margin
            first, last = max(begin - around, 0), max(end + around, 0)
        offset, switches = _offsets(zone, first, last)
        changes = [(at + before, at + after) for at, before, after in switches]
        local = nw.col("time") + offset
        for at, before, after in switches:
            local = local + nw.when(nw.col("time") >= at).then(nw.lit(after - before)).otherwise(nw.lit(0))
        if any(new < old for old, new in changes):
            frame = frame.with_columns(instant=nw.col("time"))
        frame = frame.with_columns(time=local)
    if begin is not None:
        frame = frame.filter(nw.col("time") >= begin - margin)
    if end is not None:
        frame = frame.filter(nw.col("time") < end + margin)
    return Window(frame, begin, end, changes)


def _offsets(zone: ZoneInfo, first: int, last: int) -> tuple[int, list[tuple[int, int, int]]]:
    """A zone's offset from UTC in seconds at the first instant, and its changes up to the last: when, from what, to what."""

    def offset(at: int) -> int:
        return round(datetime.fromtimestamp(at, zone).utcoffset().total_seconds())  # type: ignore[union-attr]

    if last - first > _LONGEST_SPAN:
        raise InvalidData(
            f"The points lie between {clock(first)} and {clock(last)}. Are these times right? If so, take a part of them with "
            "`start` and `days`."
        )
    changes = []
    before, begin = offset(first), offset(first)
    for at in range(first, last, _WEEK):  # no zone changes its clock twice in a week
        high = min(at + _WEEK, last)
        if (after := offset(high)) != before:
            low = at
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            changes.append((high, before, after))
            before = after
    return begin, changes


def sample(frame: nw.LazyFrame[Any], keys: list[str]) -> nw.LazyFrame[Any]:
    """Keep the first record within each step; of records of the same second, the most southern, then western."""
    names = frame.collect_schema().names()
    where = ["lat", "lng"] if "lat" in names else ["location"]
    when = "instant" if "instant" in names else "time"
    frame = frame.select(*keys, "step", when, *where)
    return select.first_of_each(frame, [*keys, "step"], [when, *where]).drop(when)
