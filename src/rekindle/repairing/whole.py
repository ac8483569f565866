"""The nearest table of whole numbers in which every step adds up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle.repairing.observations import Floats


def nearest_counts(
    guess: Floats, totals: NDArray[np.int64], low: Floats, high: Floats, open_above: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Find the nearest table of whole numbers in which every row adds up: the least sum of squared differences.

    Parameters
    ----------
    guess
        (steps, locations) float64.
    totals
        (steps,) int64: what each row must add up to.
    low, high
        (steps, locations) float64 whole numbers that the counts must lie between; `high` may be infinite. In rows where
        the people do not fit in between, first the numbers in `open_above` lose their upper limit, then all numbers
        lose theirs.
    open_above
        (steps, locations) bool.

    Returns
    -------
    (steps, locations) int64.
    """
    high = np.where(open_above & (high.sum(axis=1) < totals)[:, None], np.inf, high)
    unfit = ((low.sum(axis=1) > totals) | (high.sum(axis=1) < totals))[:, None]
    low, high = np.where(unfit, 0.0, low), np.where(unfit, np.inf, high)
    real = _project(guess, totals, low, high)
    # Rounding errors of the projection must not cost a person.
    whole = np.floor(real + 1e-9)
    rest = np.where((whole < high) & (real > low), real - whole, -1.0)
    missing = totals - whole.sum(axis=1).astype(np.int64)
    # Of equal remainders the first location gets the person, so that the same guess gives the same counts at every step.
    order = np.argsort(-rest, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(guess.shape[1])[None, :], axis=1)
    return np.asarray(whole + (rank < missing[:, None]), dtype=np.int64)


def _project(guess: Floats, totals: NDArray[np.int64], low: Floats, high: Floats) -> Floats:
    """Nearest real table within the limits in which every row adds up: clip(guess - shift), by bisection."""
    lower = (guess - np.minimum(high, totals[:, None])).min(axis=1) - 1.0
    upper = (guess - low).max(axis=1) + 1.0
    for _ in range(64):
        middle = (lower + upper) / 2
        much = np.clip(guess - middle[:, None], low, high).sum(axis=1) > totals
        lower, upper = np.where(much, middle, lower), np.where(much, upper, middle)
    return np.asarray(np.clip(guess - upper[:, None], low, high))
