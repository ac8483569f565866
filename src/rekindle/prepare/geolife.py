"""Trajectories of different years, as in the paper's section "Dataset 1: GeoLife"."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import narwhals as nw
import numpy as np

from rekindle.checks import choice, number, whole
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar
from rekindle.model.calendar import DAY, format_step, parse_step
from rekindle.prepare import select
from rekindle.prepare.assemble import Prepared, assemble
from rekindle.prepare.fill import Fill, with_neighbours
from rekindle.prepare.places import Grid, Places
from rekindle.prepare.window import ALIGNED_START, check_settings, require_trajectories, sample, step_of, window
from rekindle.sources.engine import Engine, Frame, Parts, collect, settle
from rekindle.sources.points import Points, floor_divide


@dataclass(frozen=True)
class Area:
    """A circle on the map.

    Parameters
    ----------
    lat, lng
        Its centre, degrees.
    radius_degrees
        Its radius, in degrees of latitude and longitude alike.
    """

    lat: float
    lng: float
    radius_degrees: float

    def __post_init__(self) -> None:
        if not (abs(self.lat) <= 90 and abs(self.lng) <= 180 and self.radius_degrees > 0):
            raise InvalidSetting(
                f"`area` is {self.lat}, {self.lng}, {self.radius_degrees}; give latitude, longitude and a radius "
                "in degrees above 0."
            )


BEIJING = Area(39.9042, 116.4074, 0.45)
"""The published notebook's Beijing."""


def prepare_geolife(
    points: Points,
    *,
    step: str | timedelta = "2min",
    start: datetime | None = None,
    days: int | None = None,
    area: Area = BEIJING,
    min_trajectories: int = 2,
    months: int = 2,
    close_gaps_over: str | timedelta = "24h",
    merge_within: str | timedelta = "36h",
    merge_km: float = 7.0,
    merging: Literal["published", "consistent"] | None = None,
    min_days: float = 7.0,
    align: Literal["first-record", "day"] = "first-record",
    box_over: Literal["whole", "cut"] = "whole",
    fill: Fill = "last",
    max_gap: str | timedelta | None = None,
    places: Places | None = None,
    min_coverage: float = 0.0,
    engine: Engine = "polars",
) -> Prepared:
    """Prepare trajectories of different years as in the paper's section "Dataset 1: GeoLife".

    Parameters
    ----------
    area
        Points outside are dropped.
    min_trajectories
        People with fewer trajectories inside the area are dropped.
    months
        How many of each person's most active months are kept.
    close_gaps_over
        A longer gap between two consecutive trajectories is closed to within a day, by whole days.
    merge_within, merge_km
        Consecutive records belong to one trajectory where they are at most so far apart in time and in space.
    merging
        ``"published"`` moves and merges exactly as the published notebook, not always by whole days;
        ``"consistent"`` moves each trajectory along with those before it, by whole days, and lets no trajectory jump
        further than `merge_km`. By default as published, unless `align` is to keep the clock.
    min_days
        People whose longest trajectory is shorter are dropped.
    align
        ``"first-record"``: each person's first record becomes the common start, which loses the clock.
        ``"day"``: people are moved by whole days only, which keeps it.
    box_over
        The positions whose percentiles make the box: of the ``"whole"`` trajectories, as published, or after they
        are ``"cut"`` at the earliest end.
    points, step, start, days, fill, max_gap, places, min_coverage, engine
        As in `prepare_points`, but `max_gap` is None, as in the paper; the time window is of the original times, before anything is moved.
    """
    step, seconds = step_of(step)
    check_settings(fill, min_coverage, days, max_gap)
    whole("months", months, least=1)
    whole("min_trajectories", min_trajectories, least=1)
    number("min_days", min_days)
    number("merge_km", merge_km)
    if merging is None:
        merging = "consistent" if align == "day" else "published"
    choice("merging", merging, ("published", "consistent"))
    choice("align", align, ("first-record", "day"))
    choice("box_over", box_over, ("whole", "cut"))
    if align == "day" and merging == "published":
        raise InvalidSetting(
            "`align` is 'day' and `merging` 'published', which moves trajectories by parts of a day and so loses the "
            "clock; set `merging='consistent'` or `align='first-record'`."
        )
    require_trajectories(points)
    points = points.on(engine)
    day = DAY // step
    published = merging == "published"
    gaps, merge = parse_step(close_gaps_over) // step, parse_step(merge_within) // step

    def records_of(frame: Frame) -> Frame:
        frame = select.active_months(select.several_trajectories(settle(frame), min_trajectories), months)
        frame = frame.with_columns(step=floor_divide(nw.col("time"), seconds))
        frame = settle(sample(frame, ["person", "trajectory"]))
        frame = select.move_closer(frame, day=day, gap=gaps, published=published)
        frame = select.merge_pieces(frame, gap=merge, distance_km=merge_km, centre_lat=area.lat, published=published)
        frame = select.longest_pieces(settle(frame), at_least=int(np.ceil(min_days * day)))
        origin = nw.col("begin") if align == "first-record" else floor_divide(nw.col("begin"), day) * day
        frame = frame.with_columns(step=nw.col("step") - origin).drop("begin")
        return with_neighbours(select.first_of_each(frame, ["person", "step"], ["trajectory"]))

    inside = select.inside_circle(window(points, start, days).frame, (area.lat, area.lng), area.radius_degrees)
    records = Parts.by_person(inside).map(records_of)
    ends = records.frame.group_by("person").agg(nw.col("step").max()).select(nw.col("step").min())
    earliest_end = collect(ends).item()
    if earliest_end is None:
        raise InvalidData(
            f"Nobody is left: no one has {min_trajectories} trajectories in the area and a merged one of at least "
            f"{min_days} days. Widen `area`, raise `months` or lower `min_days`."
        )
    settings = {
        "recipe": "geolife",
        "step": format_step(step),
        "area": [area.lat, area.lng, area.radius_degrees],
        "min_trajectories": min_trajectories,
        "months": months,
        "close_gaps_over": format_step(parse_step(close_gaps_over)),
        "merge_within": format_step(parse_step(merge_within)),
        "merge_km": merge_km,
        "merging": merging,
        "min_days": min_days,
        "align": align,
        "box_over": box_over,
    }
    return assemble(
        records,
        Calendar(ALIGNED_START, step, int(earliest_end) + 1),
        points,
        fill=fill,
        places=places or Grid(),
        min_coverage=min_coverage,
        max_gap=max_gap,
        box_over_whole=box_over == "whole",
        settings=settings,
    )
