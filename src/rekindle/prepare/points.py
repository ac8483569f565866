"""Any points, on the clock they were recorded."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import narwhals as nw

from rekindle.errors import InvalidSetting
from rekindle.model import Calendar, Dataset
from rekindle.model.calendar import format_step, parse_step
from rekindle.prepare.assemble import Prepared, assemble
from rekindle.prepare.fill import AUTO, Fill, with_neighbours
from rekindle.prepare.places import Grid, Places
from rekindle.prepare.window import DAY_SECONDS, check_settings, clock, extremes, sample, step_of, window
from rekindle.sources import points_from_frame
from rekindle.sources.engine import Engine, Parts
from rekindle.sources.points import Points, floor_divide


def dataset_from_frame(
    frame: Any, *, step: str | timedelta = "10min", cell_km: float = 1.0, timezone: str | None = None
) -> Dataset:
    """Make a dataset of a data frame of points, in one call; `points_from_frame` and `prepare_points` have more settings.

    Parameters
    ----------
    frame
        One row a point, as `points_from_frame` takes it.
    step
        The interval between steps.
    cell_km
        The side of a grid cell in km.
    timezone
        The zone whose local time counts, where the times are exact instants that carry none.

    Examples
    --------
    >>> import polars as pl
    >>> from rekindle.prepare import dataset_from_frame
    >>> times = ["2024-03-04 08:00", "2024-03-04 09:00"]
    >>> frame = pl.DataFrame({"uid": ["ann", "ann"], "datetime": times, "lat": [48.85, 48.88], "lng": [2.35, 2.36]})
    >>> dataset_from_frame(frame, step="1h", cell_km=2).people
    1
    """
    prepared = prepare_points(points_from_frame(frame, timezone=timezone), step=step, places=Grid(cell_km=cell_km))
    return Dataset(prepared.truth.counts(), prepared.truth, dict(prepared.info))


def prepare_points(
    points: Points,
    *,
    step: str | timedelta = "10min",
    start: datetime | None = None,
    days: int | None = None,
    fill: Fill = "last",
    max_gap: str | timedelta | None = AUTO,
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
        The interval between steps, such as ``"10min"``, which divides 24 hours. The first record within a step is the
        position at that step.
    start
        The local clock time that the period begins with; by default the midnight before the first record.
    days
        How many days the period has; by default until the last record.
    fill
        Where people are at steps without a record: ``"last"``, where they were last seen, as in the paper's text;
        ``"nearest"``, at the record that is nearer in time, as in the published notebooks; ``"linear"``, on the line between
        the two.
    max_gap
        The longest gap between two records to fill, such as ``"3h"``; in the rest of a longer one, and before the first
        record, people are away: not counted. ``"auto"`` chooses it by the intervals between records. With none, a position
        is carried until the next record, and back from the first, as in the paper. What was chosen
        stands in dataset.json.
    places
        How positions become locations: by default a `Grid` of 1 km. Points that name their location keep it; then
        `places` must be the `Towers`.
    min_coverage
        Leave out people of whom a smaller share of the steps was observed, with a raw point in the step; from 0 to 1.
    engine
        Who does the work on raw points: ``"polars"`` on this machine, or ``"spark"``, which needs the extra ``spark``.
    """
    step, seconds = step_of(step)
    check_settings(fill, min_coverage, days, max_gap)
    points = points.on(engine)
    # A position is carried into the window from before it; without `max_gap`, as in the paper, from within only.
    margin = 0 if max_gap is None else DAY_SECONDS if max_gap == AUTO else int(parse_step(max_gap).total_seconds())
    found = window(points, start, days, margin=margin)
    begin, end = found.begin, found.end
    if begin is None or end is None:
        frame = found.frame if begin is None else found.frame.filter(nw.col("time") >= begin)
        first, last = extremes(frame)
        begin = first // DAY_SECONDS * DAY_SECONDS if begin is None else begin
        end = last + 1 if end is None else end
    steps = -((begin - end) // seconds)
    if begin % DAY_SECONDS % seconds:
        raise InvalidSetting(
            f"`start` is {clock(begin)}, which is not a step of {format_step(step)} counted from midnight."
        )
    calendar = Calendar(clock(begin), step, steps)
    frame = found.frame.with_columns(step=floor_divide(nw.col("time") - begin, seconds))
    records = Parts.by_person(frame).map(lambda part: with_neighbours(sample(part, ["person"])))
    settings = {"recipe": "points", "step": format_step(step)} | found.describe(begin, end)
    return assemble(
        records,
        calendar,
        points,
        fill=fill,
        places=places or Grid(),
        min_coverage=min_coverage,
        max_gap=max_gap,
        settings=settings,
    )
