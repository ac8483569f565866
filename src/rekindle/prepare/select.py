"""Select: which points of whom. The paper's rules for GeoLife and Porto, as lazy expressions for every engine."""

from __future__ import annotations

import math

import narwhals as nw

from rekindle.model.locations import EARTH_RADIUS_KM
from rekindle.sources.engine import Frame, on_spark
from rekindle.sources.points import floor_divide, month_of


def first_of_each(frame: Frame, keys: list[str], order: list[str]) -> Frame:
    """Keep one row for each value of `keys`: the smallest by `order`, which must decide between all rows."""
    if on_spark(frame):  # narwhals has no ordered `first` there; a window does the same
        nth = nw.col(order[0]).cum_count().over(*keys, order_by=order)
        return frame.with_columns(_nth=nth).filter(nw.col("_nth") == 1).drop("_nth")
    rest = [name for name in frame.collect_schema().names() if name not in keys]
    return frame.group_by(*keys).agg(nw.col(*rest).first(order_by=order))


def largest_of_each(frame: Frame, keys: list[str], by: str, then: str, number: int) -> Frame:
    """Keep the `number` rows with the largest `by` for each value of `keys`; of equal rows, the smallest `then`."""
    ranked = frame.with_columns(_less=-nw.col(by)).with_columns(
        _nth=nw.col(by).cum_count().over(*keys, order_by=["_less", then])
    )
    return ranked.filter(nw.col("_nth") <= number).drop("_less", "_nth")


def inside_circle(frame: Frame, centre: tuple[float, float], radius: float) -> Frame:
    """Points within a circle; centre and radius in degrees."""
    north, east = nw.col("lat") - centre[0], nw.col("lng") - centre[1]
    return frame.filter(north * north + east * east < radius * radius)


def several_trajectories(frame: Frame, at_least: int) -> Frame:
    """Points of people with at least that many trajectories."""
    trajectories = frame.group_by("person", "trajectory").agg(_points=nw.len())
    people = trajectories.group_by("person").agg(_trajectories=nw.len())
    return frame.join(people.filter(nw.col("_trajectories") >= at_least), on="person", how="semi")


def active_months(frame: Frame, number: int) -> Frame:
    """Points of each person's most active months: those whose trajectories last longest in all.

    A trajectory counts for the month it begins in; of months that are equally active, the earlier is kept.
    """
    trajectories = frame.group_by("person", "trajectory").agg(_begin=nw.col("time").min(), _end=nw.col("time").max())
    months = (
        trajectories.with_columns(_month=month_of(nw.col("_begin")), _lasts=nw.col("_end") - nw.col("_begin"))
        .group_by("person", "_month")
        .agg(nw.col("_lasts").sum())
    )
    kept = largest_of_each(months, ["person"], by="_lasts", then="_month", number=number)
    return (
        frame.with_columns(_month=month_of(nw.col("time")))
        .join(kept, on=["person", "_month"], how="semi")
        .drop("_month")
    )


def move_closer(frame: Frame, *, day: int, gap: int, published: bool) -> Frame:
    """Close long gaps between a person's consecutive trajectories by whole days.

    Parameters
    ----------
    frame
        With `person`, `trajectory` and `step`.
    day, gap
        Steps in a day, and the gap in steps above which a trajectory is moved; it then follows within a day.
    published
        As the published notebook does: a gap that needs no closing leaves its trajectory where it was, even if the
        one before was moved, and the moves before are added up exactly, not in whole days. Otherwise every
        trajectory follows the moves of all before it.
    """
    spans = frame.group_by("person", "trajectory").agg(_begin=nw.col("step").min(), _end=nw.col("step").max())
    spans = spans.with_columns(
        _gap=nw.col("_begin") - nw.col("_end").shift(1).over("person", order_by="trajectory")
    ).with_columns(_far=nw.coalesce(nw.col("_gap") > gap, nw.lit(False)))
    spans = spans.with_columns(
        _exact=nw.when(nw.col("_far")).then(day - nw.col("_gap")).otherwise(nw.lit(0)),
    ).with_columns(_whole=floor_divide(nw.col("_exact"), day) * day)
    if published:
        before = nw.col("_exact").cum_sum().over("person", order_by="trajectory") - nw.col("_exact")
        move = nw.when(nw.col("_far")).then(nw.col("_whole") + before).otherwise(nw.lit(0))
    else:
        move = nw.col("_whole").cum_sum().over("person", order_by="trajectory")
    moves = spans.with_columns(_move=move).select("person", "trajectory", "_move")
    return (
        frame.join(moves, on=["person", "trajectory"], how="inner")
        .with_columns(step=nw.col("step") + nw.col("_move"))
        .drop("_move")
    )


def merge_pieces(frame: Frame, *, gap: int, distance_km: float, centre_lat: float, published: bool) -> Frame:
    """Add `piece`: records of a person that follow each other closely in time and space are one piece.

    Parameters
    ----------
    frame
        With `person`, `trajectory`, `step`, `lat`, `lng`.
    gap, distance_km
        The most that lies between two records of one piece, in steps and in km.
    centre_lat
        The latitude at which a degree of longitude is measured.
    published
        As the published notebook does: a piece is named after the trajectory that it begins in, and pieces of the
        same name are one.
    """
    order = ["step", "trajectory"]
    north = math.radians(1.0) * EARTH_RADIUS_KM
    east = north * math.cos(math.radians(centre_lat))

    def change(name: str) -> nw.Expr:
        return nw.col(name) - nw.col(name).shift(1).over("person", order_by=order)

    frame = frame.with_columns(_time=change("step"), _north=change("lat") * north, _east=change("lng") * east)
    far = nw.col("_north") * nw.col("_north") + nw.col("_east") * nw.col("_east") > distance_km * distance_km
    starts = nw.col("_time").is_null() | (nw.col("_time") > gap) | far
    frame = frame.with_columns(_starts=nw.when(starts).then(nw.lit(1)).otherwise(nw.lit(0)))
    frame = frame.with_columns(piece=nw.col("_starts").cum_sum().over("person", order_by=order))
    if published:
        name = nw.when(nw.col("_starts") == 1).then(nw.col("trajectory"))
        frame = frame.with_columns(_name=name).with_columns(piece=nw.col("_name").max().over("person", "piece"))
        frame = frame.drop("_name")
    return frame.drop("_time", "_north", "_east", "_starts")


def longest_pieces(frame: Frame, *, at_least: int) -> Frame:
    """Keep the longest piece of each person, and only those of at least that many steps; add `begin`, its first."""
    spans = frame.group_by("person", "piece").agg(begin=nw.col("step").min(), _end=nw.col("step").max())
    spans = spans.with_columns(_lasts=nw.col("_end") - nw.col("begin")).filter(nw.col("_lasts") >= at_least)
    kept = largest_of_each(spans, ["person"], by="_lasts", then="piece", number=1)
    return frame.join(kept.select("person", "piece", "begin"), on=["person", "piece"], how="inner").drop("piece")


def above_average(trips: Frame) -> Frame:
    """People with more trips than the average person.

    Parameters
    ----------
    trips
        One row a trip, with `person`.
    """
    people = trips.group_by("person").agg(_trips=nw.len().cast(nw.Int64))
    all_people = people.select(_all=nw.col("_trips").sum(), _people=nw.len().cast(nw.Int64))
    more = nw.col("_trips") * nw.col("_people") > nw.col("_all")
    return people.join(all_people, how="cross").filter(more).select("person")
