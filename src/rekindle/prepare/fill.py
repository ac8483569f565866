"""Fill: from the records of a person to spells, the steps that each record speaks for; at all others people are away."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Literal

import narwhals as nw
import numpy as np

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model.calendar import parse_step
from rekindle.sources.engine import Frame, Parts, each_step
from rekindle.sources.points import floor_divide

Fill = Literal["last", "nearest", "linear"]

AUTO = "auto"
"""As `max_gap`: choose it by the intervals between the records."""


def with_neighbours(records: Frame) -> Frame:
    """Add to each record of a person and step those `before` and `after` it: their steps, and the later one's position."""
    names = records.collect_schema().names()
    later = {f"{name}_after": nw.col(name).shift(-1) for name in ("lat", "lng") if name in names}
    beside = {"before": nw.col("step").shift(1), "after": nw.col("step").shift(-1), **later}
    return records.with_columns(**{name: one.over("person", order_by="step") for name, one in beside.items()})


def spells(records: Frame, *, steps: int, fill: Fill, max_gap: int | None, whole: bool = False) -> Frame:
    """Say for which steps each record gives the position: from `begin` to before `end`.

    ``"last"``: those up to the next record (the paper's static fill). ``"nearest"``: those that it is nearer to than any
    other record, the earlier of two that are equally near. ``"linear"``: its own alone; a step between two records has a
    spell of its own, on the line between them.

    A gap of at most `max_gap` between two records is filled wholly. In a longer one, ``"last"`` carries the position for
    `max_gap` after the record before it, ``"nearest"`` for half of `max_gap` after that record and before the next one,
    and ``"linear"`` fills nothing. After the last record it is the same; before the first one, a person is away.

    Parameters
    ----------
    records
        As `with_neighbours` gives them; columns that are not needed for spells go away.
    steps
        How many steps to fill, from 0 on.
    fill
        How.
    max_gap
        In steps; None for a position that is carried forever, also back to the first step.
    whole
        Keep what lies after the last of the steps too, up to the person's own last record.

    Returns
    -------
    One row a spell: `person`, `at` (the record's step, null on a line), `begin`, `end`, and the position.
    """
    step, before, after = (nw.col(name) for name in ("step", "before", "after"))
    if fill == "nearest":
        begin, end = (floor_divide(one + step, 2) + 1 for one in (before, after))
    else:
        begin, end = step, after if fill == "last" else step + 1
    last = nw.max_horizontal(step + 1, nw.lit(steps))
    if max_gap is None:  # the first record speaks for all before it, the last for all after it
        begin = nw.when(before.is_null()).then(nw.lit(0)).otherwise(begin)
        end = nw.when(after.is_null()).then(last).otherwise(end)
    else:
        reach = {"last": max_gap, "nearest": max_gap // 2, "linear": 0}[fill]
        begin = nw.when(before.is_null()).then(step).otherwise(nw.max_horizontal(begin, step - reach))
        end = nw.min_horizontal(end, step + (reach + 1))
    limit = nw.coalesce(after, last) if whole else nw.lit(steps)
    where = [name for name in ("lat", "lng", "location") if name in records.collect_schema().names()]
    found = records.select(
        "person",
        *where,
        at=step,
        begin=nw.max_horizontal(begin, nw.lit(0)).cast(nw.Int64),
        end=nw.min_horizontal(end, limit).cast(nw.Int64),
    ).filter(nw.col("begin") < nw.col("end"))
    if fill != "linear":
        return found
    between = records.filter(~after.is_null() if max_gap is None else after - step <= max_gap)
    between = between.select(
        "person",
        *where,
        *(f"{name}_after" for name in where),
        "after",
        at=step,
        begin=nw.max_horizontal(step + 1, nw.lit(0)),
        end=nw.min_horizontal(after, limit),
    )
    between = each_step(between, "begin", "end")
    share = (nw.col("step") - nw.col("at")) / (nw.col("after") - nw.col("at"))
    between = between.with_columns(share=share).select(
        "person",
        **{name: nw.col(name) * (1 - nw.col("share")) + nw.col(f"{name}_after") * nw.col("share") for name in where},
        at=nw.lit(None, dtype=nw.Int64),
        begin=nw.col("step").cast(nw.Int64),
        end=(nw.col("step") + 1).cast(nw.Int64),
    )
    return nw.concat([found, between])


def check_max_gap(max_gap: str | timedelta | None) -> None:
    """Refuse a `max_gap` that is no interval."""
    if max_gap is None or max_gap == AUTO:
        return
    try:
        interval = parse_step(max_gap)
    except InvalidData:
        interval = timedelta(-1)
    if interval < timedelta(0):
        raise InvalidSetting(
            f"`max_gap` is {max_gap!r}; write a whole number and a unit, such as '3h' or '30min', 'auto' to choose it by the "
            "data, or none to carry positions forever."
        )


def choose_max_gap(records: Parts, step: timedelta) -> timedelta:
    """Choose `max_gap` so that, for half of the people, at most one in twenty intervals between records is longer.

    The 95th percentile of each person's intervals, the median of that over people, rounded up to whole hours, from 1 to 24:
    within an hour, silence says little; and nobody is carried through a whole day. People with one record have no interval.

    Parameters
    ----------
    records
        As `with_neighbours` gives them.
    step
        The interval between steps.
    """
    people = records.gather(_usual_intervals).group_by("interval").sum().sort("interval")
    upto = people["people"].cum_sum().to_numpy()
    # One of the intervals: at most half of all are shorter, as below.
    steps = people["interval"][int(np.searchsorted(upto, math.ceil(upto[-1] * 0.5)))] if people.height else 0
    return timedelta(hours=min(max(math.ceil(steps * (step / timedelta(hours=1))), 1), 24))


def _usual_intervals(records: Frame) -> Frame:
    """How many people have each `interval` as their 95th percentile."""
    intervals = records.select("person", "step", interval=nw.col("after") - nw.col("step")).filter(
        ~nw.col("interval").is_null()
    )
    ranked = intervals.with_columns(
        nth=nw.col("interval").cum_count().over("person", order_by=["interval", "step"]),
        all=nw.len().over("person"),
    )
    chosen = ranked.filter(nw.col("nth") == (nw.col("all") * 0.95).ceil())
    return chosen.group_by("interval").agg(people=nw.len())
