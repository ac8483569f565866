"""Which recovered person is which true person: the matching under which an evaluation compares them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle import checks
from rekindle.errors import InvalidData
from rekindle.model import Trajectories
from rekindle.progress import Progress

__all__ = ["Mapping", "MappingMethod", "errors_km", "map_people", "resolve_mapping", "right_points"]

MappingMethod = Literal["optimal", "greedy"]

ROWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Mapping:
    """Who is who, one to one.

    Attributes
    ----------
    matched
        (recovered people,) int64: the true person of each recovered person; -1 where none is left.
    true_people
        How many true people there are.
    total_error_km
        Sum of the distances between the points of recovered people and those of their true people, km.
    gap
        The part of the total error that a better matching might save at most: 0 where this one is optimal, None where
        that is not known.
    method
        "optimal" (least total error) or "greedy" (Xu et al. 2017).
    """

    matched: NDArray[np.int64]
    true_people: int
    total_error_km: float
    gap: float | None = 0.0
    method: MappingMethod = "optimal"

    @cached_property
    def recovered(self) -> NDArray[np.int64]:
        """(true people,) int64: the recovered person of each true person; -1 where none is left."""
        result = np.full(self.true_people, -1, np.int64)
        found = np.flatnonzero(self.matched >= 0)
        result[self.matched[found]] = found
        return result


def map_people(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    method: MappingMethod = "optimal",
    dense_up_to: int = 3000,
    gap: float = 0.01,
    progress: Progress | None = None,
) -> Mapping:
    """Match each recovered person with a true person of their own.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same locations and steps. Where one has fewer people, the rest of the other is left over.
    method
        "optimal" for the least total error; "greedy" for the mapping of Xu et al. (2017): each recovered person in
        turn takes the true person with the least error who is still free.
    dense_up_to
        The optimal matching is exact for up to this many people, with memory that grows with their square. For more,
        the memory grows with the people, and the gap is proven; this needs as many recovered as true people, and
        where there are not as many of both, the matching is greedy.
    gap
        For more people than that: a gap that is small enough.
    progress
        Called with the number of people matched so far and of all.
    """
    if recovered.locations != truth.locations:
        raise InvalidData("The recovered and the true trajectories have different locations; they must be the same.")
    if recovered.steps != truth.steps:
        raise InvalidData(
            f"The recovered trajectories have {recovered.steps} steps, the true ones {truth.steps}; they must be the same."
        )
    checks.choice("method", method, ("optimal", "greedy"))
    from rekindle.evaluation.mapping_kernel import Errors, match_sparsely  # takes a second to load

    errors, (people, others) = Errors(recovered, truth), (recovered.people, truth.people)
    dense = max(people, others) <= dense_up_to
    if method == "greedy" or (not dense and people != others):
        return _greedy(errors.of_rows, people, others, progress)
    if dense:
        return _optimal(errors.of_rows(slice(0, people)))
    matched, total, proven = match_sparsely(errors, gap, progress)
    return Mapping(matched, others, total, proven)


def _optimal(errors: NDArray[np.float64]) -> Mapping:
    rows, columns = linear_sum_assignment(errors)
    matched = np.full(len(errors), -1, np.int64)
    matched[rows] = columns
    return Mapping(matched, errors.shape[1], float(errors[rows, columns].sum()))


def _greedy(
    errors_of: Callable[[slice], NDArray[np.float64]], people: int, others: int, progress: Progress | None
) -> Mapping:
    matched = np.full(people, -1, np.int64)
    taken = np.zeros(others, bool)
    total = 0.0
    for begin in range(0, min(people, others), ROWS_AT_ONCE):
        block = errors_of(slice(begin, min(begin + ROWS_AT_ONCE, people, others)))
        block[:, taken] = np.inf
        for at, row in enumerate(block):
            matched[begin + at] = chosen = int(row.argmin())
            total += float(row[chosen])
            taken[chosen] = True
            block[at + 1 :, chosen] = np.inf
        if progress is not None:
            progress(begin + len(block), people)
    return Mapping(matched, others, total, None, "greedy")


def resolve_mapping(
    mapping: MappingMethod | Mapping, recovered: Trajectories, truth: Trajectories, progress: Progress | None = None
) -> Mapping:
    """Take a mapping that was handed on, or find one by its method."""
    if not isinstance(mapping, Mapping):
        checks.choice("mapping", mapping, ("optimal", "greedy"))
        return map_people(recovered, truth, method=mapping, progress=progress)
    if (len(mapping.matched), mapping.true_people) != (recovered.people, truth.people):
        raise InvalidData(
            f"The mapping is of {len(mapping.matched)} recovered and {mapping.true_people} true people; there are "
            f"{recovered.people} and {truth.people}."
        )
    return mapping


def right_points(recovered: Trajectories, truth: Trajectories, mapping: Mapping) -> NDArray[np.bool_]:
    """Which points of the true people were recovered: (true people, steps) bool; none of people without a match."""
    right = np.zeros(truth.cells.shape, bool)
    found = np.flatnonzero(mapping.recovered >= 0)
    right[found] = recovered.cells[mapping.recovered[found]] == truth.cells[found]
    return right


def errors_km(recovered: Trajectories, truth: Trajectories, mapping: Mapping) -> NDArray[np.float64]:
    """Mean distance of each true person to where they were recovered: (true people,) float64 km, NaN without a match.

    The truth may have finer locations and steps than the recovery, which then stays where it was last seen.
    """
    seen = np.searchsorted(recovered.calendar.times(), truth.calendar.times(), side="right") - 1
    here, there = recovered.locations.xy_km, truth.locations.xy_km
    errors = np.full(truth.people, np.nan)
    for person in np.flatnonzero(mapping.recovered >= 0):
        apart = here[recovered.cells[mapping.recovered[person], seen]] - there[truth.cells[person]]
        errors[person] = np.hypot(apart[:, 0], apart[:, 1]).mean()
    return errors
