"""Taxi trips, as in the paper's section "Dataset 2: Porto Taxi"."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import narwhals as nw
import numpy as np

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar
from rekindle.model.calendar import format_step
from rekindle.prepare import select
from rekindle.prepare.assemble import Prepared, assemble
from rekindle.prepare.fill import Fill, with_neighbours
from rekindle.prepare.places import Grid, Places
from rekindle.prepare.window import (
    DAY_SECONDS,
    check_settings,
    clock,
    require_trajectories,
    sample,
    step_of,
    window,
)
from rekindle.sources.engine import Engine, Frame, Parts, collect, computed
from rekindle.sources.points import Points, floor_divide


def prepare_porto(
    points: Points,
    *,
    step: str | timedelta = "10min",
    days: int = 30,
    start: datetime | None = None,
    busy_only: bool = True,
    fill: Fill = "last",
    max_gap: str | timedelta | None = None,
    places: Places | None = None,
    min_coverage: float = 0.0,
    engine: Engine = "polars",
) -> Prepared:
    """Prepare taxi trips as in the paper's section "Dataset 2: Porto Taxi".

    Parameters
    ----------
    days
        How many days the period has. Its last step is the midnight that ends it: 30 days of 10 minutes are 4,321 steps.
    start
        The local midnight that the period begins with; by default that of the densest period: the one in which most
        trips begin, the earliest of several.
    busy_only
        Keep only taxis that begin more trips in the period than the average taxi.
    points, step, fill, max_gap, places, min_coverage, engine
        As in `prepare_points`, but `max_gap` is None, as in the paper; `places` is by default a `Grid` of 2 km, cells of 4 km2.
    """
    step, seconds = step_of(step)
    check_settings(fill, min_coverage, days, max_gap)
    require_trajectories(points)
    points = points.on(engine)
    found = window(points, start, None)
    parts, begin = Parts.by_person(found.frame), found.begin
    frame = parts.frame
    trips = frame.group_by("person", "trajectory").agg(time=nw.col("time").min())
    if begin is None:
        begin = _densest(trips, days)
    if begin % DAY_SECONDS:
        raise InvalidSetting(f"`start` is {clock(begin)}; the period must begin at midnight.")
    end = begin + days * DAY_SECONDS
    steps = (end - begin) // seconds + 1
    within = trips.filter((nw.col("time") >= begin) & (nw.col("time") < end))
    busy = computed(select.above_average(within)) if busy_only else None

    def records_of(part: Frame) -> Frame:
        part = part.filter((nw.col("time") >= begin) & (nw.col("time") < begin + steps * seconds))
        part = part if busy is None else part.join(busy, on="person", how="semi")
        return with_neighbours(
            sample(part.with_columns(step=floor_divide(nw.col("time") - begin, seconds)), ["person"])
        )

    records = parts.map(records_of)
    if busy_only and collect(records.frame.head(1)).is_empty():
        raise InvalidData(
            f"Nobody is left: no taxi begins more trips than the average taxi in the {days} days from {clock(begin)} on. "
            "Set `busy_only=False` to keep all of them, or change `days` or `start`."
        )
    return assemble(
        records,
        Calendar(clock(begin), step, steps),
        points,
        fill=fill,
        places=places or Grid(cell_km=2.0),
        min_coverage=min_coverage,
        max_gap=max_gap,
        settings={"recipe": "porto", "step": format_step(step), "days": days, "busy_only": busy_only}
        | found.describe(begin, end),
    )


def _densest(trips: nw.LazyFrame[Any], days: int) -> int:
    """The midnight, in local seconds, that begins the days with most trips."""
    daily = collect(
        trips.with_columns(day=floor_divide(nw.col("time"), DAY_SECONDS)).group_by("day").agg(trips=nw.len())
    )
    if not daily.height:
        raise InvalidData("There are no trips at all; is the time window right?")
    day = daily["day"].to_numpy()
    counts = np.bincount(day - day.min(), weights=daily["trips"].to_numpy())
    sums = np.convolve(counts, np.ones(days))[days - 1 :]  # of the days from each day on
    return int(day.min() + np.argmax(sums[: max(1, len(counts) - days + 1)])) * DAY_SECONDS
