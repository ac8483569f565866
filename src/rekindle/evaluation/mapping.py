"""Which recovered person is which true person: the matching that an evaluation compares them under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Trajectories

__all__ = ["Mapping", "map_people"]

Progress = Callable[[int, int | None], None]

ROWS_AT_ONCE = 256
PLAIN_UP_TO = 50_000_000
"""Pairs of points up to which loading the compiled kernels would take longer than doing without."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """Who is who.

    Parameters
    ----------
    matched
        (recovered people,) int64, the true person of each recovered person; -1 where none is left.
    total_error_km
        Sum of the distances between the points of recovered people and those of their true people, km.
    gap
        The part of the total error that a better matching might save at most; 0 where this one is optimal.
    """

    matched: NDArray[np.int64]
    total_error_km: float
    gap: float = 0.0


def map_people(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    method: Literal["optimal", "greedy"] = "optimal",
    dense_up_to: int = 3000,
    gap: float = 0.01,
    progress: Progress | None = None,
) -> Mapping:
    """Match each recovered person with a true person of their own.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same places and steps. Where one has fewer people, the rest of the other is left over.
    method
        "optimal" for the least total error; "greedy" for the mapping of Xu et al. (2017): each recovered person in
        turn takes the true person with the least error who is still free.
    dense_up_to
        The optimal matching is exact for up to so many people, with memory that grows with their square. For more,
        the memory grows with the people, and the gap is proven.
    gap
        For more people than that: a gap that is small enough.
    progress
        Called with the number of people matched so far and of all.
    """
    if recovered.locations != truth.locations:
        raise InvalidData("The recovered and the true trajectories are over different places; they must be the same.")
    if recovered.steps != truth.steps:
        raise InvalidData(
            f"The recovered trajectories have {recovered.steps} steps, the true ones {truth.steps}; they must be the same."
        )
    if method not in ("optimal", "greedy"):
        raise InvalidSetting(f"The mapping method is {method!r}; choose 'optimal' or 'greedy'.")
    people, others = recovered.people, truth.people
    dense = max(people, others) <= dense_up_to
    if dense and people * others * truth.steps <= PLAIN_UP_TO:
        matrix = _plain_errors(recovered, truth)
        return (
            _optimal(matrix) if method == "optimal" else _greedy(lambda rows: matrix[rows], people, others, progress)
        )
    from rekindle.evaluation.mapping_kernel import Errors, match_sparsely  # takes a second to load

    errors = Errors(recovered, truth)
    if method == "greedy":
        return _greedy(errors.of_rows, people, others, progress)
    if dense:
        return _optimal(errors.of_rows(slice(0, people)))
    if people != others:
        raise InvalidData(
            f"There are {people} recovered and {others} true people; beyond {dense_up_to} people the optimal mapping "
            "needs as many of both. Use method='greedy', or raise dense_up_to if the memory allows."
        )
    return Mapping(*match_sparsely(errors, gap, progress))


def _plain_errors(recovered: Trajectories, truth: Trajectories) -> NDArray[np.float64]:
    """Errors of all recovered with all true people: (recovered people, true people) float64, km."""
    errors = np.empty((recovered.people, truth.people))
    xy, there = truth.locations.xy_km, truth.xy_km()
    for person, cells in enumerate(recovered.cells):
        apart = there - xy[cells]
        errors[person] = np.sqrt(np.einsum("pti,pti->pt", apart, apart)).sum(axis=1)
    return errors


def _optimal(errors: NDArray[np.float64]) -> Mapping:
    rows, columns = linear_sum_assignment(errors)
    matched = np.full(len(errors), -1, np.int64)
    matched[rows] = columns
    return Mapping(matched, float(errors[rows, columns].sum()))


def _greedy(
    errors_of: Callable[[slice], NDArray[np.float64]], people: int, others: int, progress: Progress | None
) -> Mapping:
    matched = np.full(people, -1, np.int64)
    taken = np.zeros(others, bool)
    total = 0.0
    for begin in range(0, min(people, others), ROWS_AT_ONCE):
        block = errors_of(slice(begin, min(begin + ROWS_AT_ONCE, people, others))).copy()
        block[:, taken] = np.inf
        for at, row in enumerate(block):
            matched[begin + at] = chosen = int(row.argmin())
            total += float(row[chosen])
            taken[chosen] = True
            block[at + 1 :, chosen] = np.inf
        if progress is not None:
            progress(begin + len(block), people)
    return Mapping(matched, total)
