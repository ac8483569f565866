"""Fill: from the records of a person to one position at every step."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fill", "fill_steps"]

Fill = Literal["last", "nearest", "linear"]


def fill_steps(
    known: NDArray[np.int64], steps: int, how: Fill
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Say which two records a person's position at each step comes from, and how much of the second.

    Steps before the first record take that record, those after the last the last.

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
