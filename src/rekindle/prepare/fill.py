"""Fill: from the records of a person to a position at every step, or at those near a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model.calendar import parse_step

Fill = Literal["last", "nearest", "linear"]

AUTO = "auto"
"""As `max_gap`: choose it by the intervals between the records."""


def fill_steps(
    known: NDArray[np.int64], steps: int, how: Fill
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Say which two records a person's position at each step comes from, and how much of the second.

    Steps before the first record take that record, those after the last the last; `counted_steps` says which of them are
    too far from a record.

    Parameters
    ----------
    known
        (records,) int64, the steps that have a record, growing.
    steps
        How many steps to fill.
    how
        ``"last"``: the last known position (the paper's static fill). ``"nearest"``: that of the record that is
        nearer in time, the earlier of two that are equally near. ``"linear"``: on the line between the two.

    Returns
    -------
    before, after : (steps,) int64, indices of records.
    share : (steps,) float64 from 0 to 1, the share of `after` in the position.
    """
    step = np.arange(steps)
    before = np.maximum(np.searchsorted(known, step, side="right") - 1, 0)
    after = np.minimum(before + 1, len(known) - 1)
    if how == "last":
        return before, after, np.zeros(steps)
    since = np.maximum(step - known[before], 0)
    gap = np.maximum(known[after] - known[before], 1)
    if how == "nearest":
        return before, after, (2 * since > gap).astype(np.float64)
    return before, after, np.minimum(since / gap, 1.0)


def counted_steps(known: NDArray[np.int64], steps: int, how: Fill, max_gap: int | None) -> NDArray[np.bool_]:
    """Say at which steps a person is counted; at the others, too far from a record, they are away.

    A gap of at most `max_gap` between two records is filled wholly. In a longer one, ``"last"`` carries the position for
    `max_gap` after the record before it, ``"nearest"`` for half of `max_gap` after that record and before the next one,
    and ``"linear"`` fills nothing. After the last record it is the same; before the first one, a person is away.

    Parameters
    ----------
    known, steps, how
        As in `fill_steps`.
    max_gap
        In steps; None for a position that is carried forever, also back to the first step.

    Returns
    -------
    (steps,) bool.
    """
    if max_gap is None:
        return np.ones(steps, dtype=bool)
    step = np.arange(steps)
    last = np.searchsorted(known, step, side="right") - 1
    since = np.where(last >= 0, step - known[last], np.inf)
    until = np.append(known, np.inf)[last + 1] - step
    if how == "last":
        return np.asarray(since <= max_gap)
    if how == "nearest":
        return np.asarray((2 * np.minimum(since, until) <= max_gap) & (last >= 0))
    return np.asarray((since == 0) | (since + until <= max_gap))


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


def choose_max_gap(known_of: Sequence[NDArray[np.int64]], step: timedelta) -> timedelta:
    """Choose `max_gap` so that, for half of the people, at most one in twenty intervals between records is longer.

    The 95th percentile of each person's intervals, the median of that over people, rounded up to whole hours, from 1 to 24:
    within an hour, silence says little; and nobody is carried through a whole day.

    Parameters
    ----------
    known_of
        The steps at which each person has a record, growing; people with one record have no interval.
    step
        The interval between steps.
    """
    longest = [_percentile(np.diff(known), 95) for known in known_of if len(known) > 1]
    steps = _percentile(np.array(longest), 50) if longest else 0
    return timedelta(hours=min(max(math.ceil(steps * (step / timedelta(hours=1))), 1), 24))


def _percentile(intervals: NDArray[np.int64], percent: float) -> int:
    """One of the intervals: at most `percent` of all are shorter."""
    return int(np.percentile(intervals, percent, method="inverted_cdf"))
