"""Which of today's people is which of yesterday's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.attacks.link import Link
from rekindle.errors import InvalidData

__all__ = ["InformationGain", "Link", "LinkingCost", "link"]


@runtime_checkable
class LinkingCost(Protocol):
    """What every linking cost is."""

    def __call__(self, past: NDArray[np.int32], today: NDArray[np.int32], locations: int) -> NDArray[np.float64]:
        """Price the links between the people of a past day and those of today.

        Parameters
        ----------
        past, today
            (people, steps) location indices of one day each; the days may differ in length.
        locations
            How many places there are.

        Returns
        -------
        (people of the past day, people of today) float64, lower for people who are more alike.
        """
        ...


@dataclass(frozen=True)
class InformationGain:
    """How much knowing the day tells about the place, in bits: 0 for two days alike, 1 for days that share no place.

    The entropy of both days together less their own entropies, each weighted by its length; for days of equal length
    that is the paper's formula.
    """

    def __call__(self, past: NDArray[np.int32], today: NDArray[np.int32], locations: int) -> NDArray[np.float64]:
        """Price the links: (people, people) float64, bits."""
        length = past.shape[1] + today.shape[1]
        f = np.arange(length + 1, dtype=np.float64)
        f[1:] *= np.log2(f[1:])
        # Places that only one of the two visited cancel out of the entropies, so only shared places need work.
        gain = np.full((len(past), len(today)), f[length] - f[past.shape[1]] - f[today.shape[1]])
        before, after = _visits(past, locations), _visits(today, locations)
        for place in np.flatnonzero(before.any(axis=0) & after.any(axis=0)):
            rows, columns = np.flatnonzero(before[:, place]), np.flatnonzero(after[:, place])
            a, b = before[rows, place][:, None], after[columns, place][None, :]
            gain[np.ix_(rows, columns)] -= f[a + b] - f[a] - f[b]
        # Two days alike may come out at -1e-16.
        return np.asarray(np.maximum(gain, 0.0) / length)


def _visits(cells: NDArray[np.int32], locations: int) -> NDArray[np.int64]:
    """Steps that each person spent in each place: (people, locations)."""
    rows = np.arange(len(cells))[:, None] * locations
    return np.bincount((rows + cells).ravel(), minlength=len(cells) * locations).reshape(len(cells), locations)


def link(
    cost: LinkingCost,
    past: Sequence[NDArray[np.int32]],
    today: NDArray[np.int32],
    locations: int,
    *,
    compiled: bool = False,
    stop: Callable[[], bool] | None = None,
) -> Link:
    """Continue every person with the row of today that costs least in total.

    Parameters
    ----------
    cost
        What a link costs.
    past
        The days to look back on, each (people, steps) in the order of the people. A link costs the least of them.
    today
        (people, steps) rows in any order.
    locations
        How many places there are.
    compiled
        Whether to use the compiled kernels, which link by information gain without a people x people matrix where there
        are many people.
    stop
        Asked from time to time whether to end early.
    """
    if compiled and type(cost) is InformationGain:
        from rekindle.attacks.gain import link_by_gain  # takes a second to load

        return link_by_gain(past, today, locations, stop=stop)
    matrix = cost(past[0], today, locations)
    for day in past[1:]:
        matrix = np.minimum(matrix, cost(day, today, locations))
    if matrix.shape != (len(today), len(today)) or np.isnan(matrix).any():
        raise InvalidData(
            f"The linking cost gave a matrix of the shape {matrix.shape}; it must be {(len(today),) * 2} without NaN."
        )
    rows, order = linear_sum_assignment(matrix)
    return Link(order.astype(np.int64), float(matrix[rows, order].sum()))
