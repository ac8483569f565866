"""Which recovered person is which true person: the matching under which an evaluation compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle import checks
from rekindle.errors import InvalidData
from rekindle.model import AWAY, Trajectories
from rekindle.progress import Progress

MappingMethod = Literal["optimal", "greedy", "names"]

ROWS_AT_ONCE = 256
POINTS_AT_ONCE = 2**20


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
        Sum of the distances between the points of recovered people and those of their true people, km; `away_km` for each
        step at which only one of the two is away. People who are left over are not in it.
    gap
        The part of the total error that a better matching might save at most: 0 where this one is optimal, None where
        that is not known.
    method
        "optimal" (least total error, up to the gap), "greedy" (Xu et al. 2017) or "names".
    away_km
        What a step costs at which only one of the two is away, km; 0 where nobody is.
    """

    matched: NDArray[np.int64]
    true_people: int
    total_error_km: float
    gap: float | None = 0.0
    method: MappingMethod = "optimal"
    away_km: float = 0.0

    def __repr__(self) -> str:
        method: str = self.method
        if method == "optimal" and self.gap != 0:
            method = "gap unknown" if self.gap is None else f"within {self.gap:.2g} of optimal"
        return f"Mapping({method}, {int((self.matched >= 0).sum())} of {self.true_people} people matched)"

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
    gap: float | None = None,
    progress: Progress | None = None,
) -> Mapping:
    """Match each recovered person with a true person of their own.

    A step at which only one of the two is away costs as much as a random guess: the mean distance between two random
    counted points of the truth. A step at which both are away costs nothing.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same locations and steps. Where one has fewer people, the rest of the other is left over, as
        if matched with people who are always away.
    method
        "optimal" for the least total error; "greedy" for the mapping of Xu et al. (2017): each recovered person in
        turn takes the true person with the least error who is still free; "names" where the recovered people have names:
        everyone is who they are said to be, and a name that is not in the truth is matched with nobody. If no name at all is in
        the truth, that is an error.
    dense_up_to
        The optimal matching is exact for up to this many people, with memory that grows with their square. For more,
        the memory grows with the people, and the gap is proven.
    gap
        For more people than that: a gap that is small enough. By default 0.003 for up to 200,000 people and 0.01 for more, for
        whom a smaller one takes long.
    progress
        Called with the number of people matched so far and of all.
    """
    if recovered.locations != truth.locations:
        raise InvalidData("The recovered and the true trajectories have different locations; they must be the same.")
    if recovered.steps != truth.steps:
        raise InvalidData(
            f"The recovered trajectories have {recovered.steps} steps, the true ones {truth.steps}; they must be the same."
        )
    checks.choice("method", method, ("optimal", "greedy", "names"))
    from rekindle.evaluation.mapping_kernel import Errors, match_sparsely  # takes a second to load

    people, others = recovered.people, truth.people
    sparse = method == "optimal" and max(people, others) > dense_up_to
    errors = Errors(recovered, truth, padded=sparse and people != others)
    if method == "names":
        position = {name: at for at, name in enumerate(truth.people_ids)}
        matched = np.array([position.get(name, -1) for name in recovered.people_ids], np.int64)
        if people and others and matched.max() < 0:
            raise InvalidData(
                f"No recovered person has the name of a true one: the first recovered is {recovered.people_ids[0]!r}, the first "
                f"true {truth.people_ids[0]!r}. A recovery without names is compared with the matching 'optimal'."
            )
        return Mapping(matched, others, errors.of_pairs(matched), None, "names", errors.price)
    if sparse:
        if gap is None:
            gap = 0.003 if max(people, others) <= 200_000 else 0.01
        matched, total, proven = match_sparsely(errors, gap, progress)
        return Mapping(matched, others, total, proven, away_km=errors.price)
    if method == "greedy":
        matched, total = _greedy(errors.of_rows, people, others, progress)
        return Mapping(matched, others, total, None, "greedy", errors.price)
    costs = saving = errors.of_rows(slice(0, people))
    # To leave someone over costs something too, and not for everyone the same where people are away.
    if errors.price and people > others:
        saving = costs - errors.left_over(recovered.cells)[:, None]
    elif errors.price and people < others:
        saving = costs - errors.left_over(truth.cells)
    rows, columns = linear_sum_assignment(saving)
    matched = np.full(people, -1, np.int64)
    matched[rows] = columns
    return Mapping(matched, others, float(costs[rows, columns].sum()), away_km=errors.price)


def _greedy(
    errors_of: Callable[[slice], NDArray[np.float64]], people: int, others: int, progress: Progress | None
) -> tuple[NDArray[np.int64], float]:
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
    return matched, total


def resolve_mapping(
    mapping: MappingMethod | Mapping, recovered: Trajectories, truth: Trajectories, progress: Progress | None = None
) -> Mapping:
    """Take a mapping that was handed on, or find one by its method."""
    if not isinstance(mapping, Mapping):
        checks.choice("mapping", mapping, ("optimal", "greedy", "names"))
        return map_people(recovered, truth, method=mapping, progress=progress)
    if (len(mapping.matched), mapping.true_people) != (recovered.people, truth.people):
        raise InvalidData(
            f"The mapping is of {len(mapping.matched)} recovered and {mapping.true_people} true people; there are "
            f"{recovered.people} and {truth.people}."
        )
    return mapping


def parts(people: int, steps: int) -> Iterator[slice]:
    """Parts of the people whose points fit into little memory."""
    size = max(1, POINTS_AT_ONCE // max(steps, 1))
    for begin in range(0, people, size):
        yield slice(begin, min(begin + size, people))


def visits(trajectories: Trajectories) -> NDArray[np.int64]:
    """How many points are in each location: (locations,) int64."""
    found = np.zeros(len(trajectories.locations) + 1, np.int64)
    for part in parts(trajectories.people, trajectories.steps):
        some = trajectories.cells[part].astype(np.int64) + 1
        found += np.bincount(some.ravel(), minlength=len(found))
    return found[1:]


def right_points(recovered: Trajectories, truth: Trajectories, mapping: Mapping) -> NDArray[np.bool_]:
    """Which points of the true people were recovered: (true people, steps) bool.

    Both are counted there, in the same location; no point of people without a match is right.
    """
    right = np.zeros(truth.cells.shape, bool)
    found = np.flatnonzero(mapping.recovered >= 0)
    for part in parts(len(found), truth.steps):
        some = found[part]
        real = truth.cells[some]
        right[some] = (recovered.cells[mapping.recovered[some]] == real) & (real != AWAY)
    return right
