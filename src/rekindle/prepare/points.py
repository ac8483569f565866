"""Any points, on the clock they were recorded."""

from __future__ import annotations

from datetime import datetime, timedelta

import narwhals as nw

from rekindle.errors import InvalidSetting
from rekindle.model import Calendar
from rekindle.model.calendar import format_step
from rekindle.prepare.assemble import Prepared, assemble
from rekindle.prepare.fill import Fill
from rekindle.prepare.places import Grid, Places
from rekindle.prepare.window import DAY_SECONDS, check_settings, clock, extremes, sample, step_of, window
from rekindle.sources.points import Engine, Points, collect, floor_divide

__all__ = ["prepare_points"]


def prepare_points(
    points: Points,
    *,
    step: str | timedelta = "10min",
    start: datetime | None = None,
    days: int | None = None,
    fill: Fill = "last",
    places: Places | None = None,
    min_coverage: float = 0.0,
    engine: Engine = "polars",
) -> Prepared:
    """Prepare any points, on the clock they were recorded.

    Parameters
    ----------
    points
        From one of the `rekindle.sources`.
    step
        The interval between steps. The first record within a step is the position at that step.
    start, days
        The time window: from a local clock time on, and so many days long. By default from the midnight before the
        first record until the last record.
    fill
        How steps without a record are filled: see `fill_steps`.
    places
        How positions become locations: by default a `Grid` of 1 km. Points that name their location keep it; then
        `places` must be the `Towers`.
    min_coverage
        Leave out people of whom a smaller share of the steps was really observed, from 0 to 1.
    engine
        Who does the work on raw points: ``"polars"`` or ``"spark"``.
    """
    step, seconds = step_of(step)
    check_settings(fill, min_coverage, days)
    points = points.on(engine)
    frame, begin, end = window(points, start, days)
    if begin is None or end is None:
        first, last = extremes(frame)
        begin = first // DAY_SECONDS * DAY_SECONDS if begin is None else begin
        end = last + 1 if end is None else end
    steps = -((begin - end) // seconds)
    if begin % DAY_SECONDS % seconds:
        raise InvalidSetting(
            f"`start` is {clock(begin)}, which is not a step of {format_step(step)} counted from midnight.", "start"
        )
    calendar = Calendar(clock(begin), step, steps)
    records = sample(frame.with_columns(step=floor_divide(nw.col("time") - begin, seconds)), ["person"])
    settings = {"recipe": "points", "step": format_step(step)}
    return assemble(
        collect(records),
        calendar,
        points,
        fill=fill,
        places=places or Grid(),
        min_coverage=min_coverage,
        settings=settings,
    )
