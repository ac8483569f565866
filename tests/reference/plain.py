"""One step as an assignment, with numpy and scipy alone.

Every transition is a least-cost assignment of people to the people counted at the next step. People with the same costs
are interchangeable, and so are columns of one place, so it is a transportation problem between groups and places.
Ties follow one rule: groups are listed by their first member, places by their index; what a group receives, listed by
place, is dealt to its members in row order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.errors import InvalidData

__all__ = ["deal", "first_seen", "step_to_targets", "step_with_costs"]

SAME_KM = 1e-11
"""An extrapolated point this near to a centre is that centre: only rounding keeps them apart."""


def first_seen(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct keys in order of their first appearance.

    Returns
    -------
    (groups,) row of each group's first member, and (rows,) the group of each row.
    """
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


def deal(groups: NDArray[np.int64], flow: NDArray[np.int64]) -> NDArray[np.int32]:
    """Deal out what each group receives to its members, in row order.

    Parameters
    ----------
    groups
        (rows,) the group of each row.
    flow
        (groups, places) how many members go to each place.

    Returns
    -------
    (rows,) int32 the place of each row.
    """
    result = np.empty(len(groups), dtype=np.int32)
    members = np.argsort(groups, kind="stable")
    at, places = np.nonzero(flow)
    result[members] = np.repeat(places, flow[at, places])
    return result


def transport(
    cost: NDArray[np.float64], supply: NDArray[np.int64], demand: NDArray[np.int64]
) -> tuple[NDArray[np.int64], float]:
    """Solve a small transportation problem exactly, one row and column a person.

    Parameters
    ----------
    cost
        (groups, places) float64.
    supply, demand
        (groups,) and (places,) whole numbers with the same sum.

    Returns
    -------
    (groups, places) int64 flow, and its total cost.
    """
    rows = np.repeat(np.arange(len(supply)), supply)
    columns = np.repeat(np.arange(len(demand)), demand)
    try:
        chosen, taken = linear_sum_assignment(cost[np.ix_(rows, columns)])
    except ValueError:
        raise InvalidData(
            "The move costs forbid too much: no assignment meets the counts of the next step."
        ) from None
    flow = np.zeros(cost.shape, dtype=np.int64)
    np.add.at(flow, (rows[chosen], columns[taken]), 1)
    return flow, float((flow * np.where(flow > 0, cost, 0.0)).sum())


def step_with_costs(
    previous: NDArray[np.int32],
    current: NDArray[np.int32],
    counts: NDArray[np.int64],
    cost: Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]],
    columns: NDArray[np.int64],
    compiled: bool = False,
) -> tuple[NDArray[np.int32], float]:
    """Move everyone by any cost of the two last places.

    Parameters
    ----------
    previous, current
        (people,) places at the step before and now.
    counts
        (places,) people in each place at the next step.
    cost
        Gives (rows, places) costs for the places of some rows.
    columns
        (places,) column of that matrix in which each place stands.
    compiled
        Whether to solve it with the compiled solver for large problems.

    Returns
    -------
    (people,) int32 places at the next step, and the total cost.
    """
    first, groups = first_seen(previous.astype(np.int64) * len(counts) + current)
    matrix = np.asarray(cost(previous[first], current[first]), dtype=np.float64)
    if matrix.shape != (len(first), len(counts)) or np.isnan(matrix).any() or np.isneginf(matrix).any():
        raise InvalidData(
            f"The move cost gave a matrix of the shape {matrix.shape}; it must be {(len(first), len(counts))}, "
            "without NaN or minus infinity."
        )
    matrix, supply = matrix[:, columns], np.bincount(groups)
    if compiled:
        from rekindle.assignment import transport as large  # takes a second to load

        solved = large.transport(matrix, supply, counts)
        flow, total = np.zeros(matrix.shape, dtype=np.int64), solved.cost
        flow[solved.groups, solved.places] = solved.people
    else:
        flow, total = transport(matrix, supply, counts)
    return deal(groups, flow), total


def step_to_targets(
    previous: NDArray[np.int32] | None,
    current: NDArray[np.int32],
    counts: NDArray[np.int64],
    xy_km: NDArray[np.float64],
    popular: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> tuple[NDArray[np.int32], float]:
    """Move everyone by the distance to the nearest of their targets.

    A row whose only target is a place with free columns takes one of them: by the triangle inequality no assignment
    does better. The others are grouped by what they aim at and solved as a small transportation problem.

    Parameters
    ----------
    previous
        (people,) places at the step before, to extrapolate from; None to aim at the current place.
    current
        (people,) places now.
    counts
        (places,) people in each place at the next step.
    xy_km
        (places, 2) centres of the places.
    popular
        H_p of every place p in CSR form; None to leave it out.

    Returns
    -------
    (people,) int32 places at the next step, and the total cost in km.
    """
    places = len(counts)
    origin = current if previous is None else previous
    first, groups = first_seen(origin.astype(np.int64) * places + current)
    here = current[first].astype(np.int64)
    aim = here.copy()
    points = xy_km[here]
    moved = np.flatnonzero(origin[first] != here)
    if len(moved):
        points[moved] += points[moved] - xy_km[origin[first[moved]]]
        gap = _distances(points[moved], xy_km)
        nearest = gap.argmin(axis=1)
        aim[moved] = np.where(gap[np.arange(len(moved)), nearest] < SAME_KM, nearest, -1)

    single = aim >= 0
    if popular is not None:
        indptr, indices = popular
        followers = indptr[here + 1] - indptr[here]
        # With one follower that is the point itself, or with none, there is one target; with others there are several.
        one = followers == 1
        single &= followers == 0
        single[one] |= indices[indptr[here[one]]] == aim[one]
    # Groups that aim at one and the same place are one group, wherever their people are.
    merged, regroup = first_seen(np.where(single, aim, places + np.arange(len(first))))
    groups, here, aim, points, single = regroup[groups], here[merged], aim[merged], points[merged], single[merged]

    supply = np.bincount(groups)
    demand = counts.astype(np.int64)
    flow = np.zeros((len(supply), places), dtype=np.int64)
    direct = np.flatnonzero(single)
    flow[direct, aim[direct]] = np.minimum(supply[direct], demand[aim[direct]])
    left, free = supply - flow.sum(axis=1), demand - flow.sum(axis=0)
    rows, columns = np.flatnonzero(left), np.flatnonzero(free)
    total = 0.0
    if len(rows):
        cost = _distances(points[rows], xy_km[columns])
        if popular is not None:
            for row, group in enumerate(rows):
                near = indices[indptr[here[group]] : indptr[here[group] + 1]] if not single[group] else ()
                if len(near):
                    cost[row] = np.minimum(cost[row], _distances(xy_km[near], xy_km[columns]).min(axis=0))
        rest, total = transport(cost, left[rows], free[columns])
        flow[np.ix_(rows, columns)] += rest
    return deal(groups, flow), total


def _distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances between two lists of points: (len(a), len(b)) float64."""
    return np.hypot(a[:, None, 0] - b[:, 0], a[:, None, 1] - b[:, 1])
