"""The cheapest transport of groups to places for any costs, metric or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.assignment.step_kernel import solve_dense
from rekindle.errors import InvalidData


@dataclass(frozen=True, eq=False)
class Transport:
    """A cheapest transport.

    Parameters
    ----------
    groups, places, people
        (arcs,) int64: so many people of a group go to a place; sorted by group, then by place, all positive.
    cost
        The total cost.
    gap
        How far it may lie above the least total, proven by dual values; 0 where exact to rounding.
    """

    groups: NDArray[np.int64]
    places: NDArray[np.int64]
    people: NDArray[np.int64]
    cost: float
    gap: float


def transport(cost: ArrayLike, supply: ArrayLike, demand: ArrayLike) -> Transport:
    """Send all people of each group to places with room for them, at the least total cost.

    Parameters
    ----------
    cost
        (groups, places) float64, the cost of one person; +inf forbids.
    supply
        (groups,) whole numbers, people in each group.
    demand
        (places,) whole numbers, room in each place, with the same sum.
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    supply, demand = _whole(supply, "people of group"), _whole(demand, "room of place")
    if cost.shape != (len(supply), len(demand)):
        raise InvalidData(
            f"Costs have the shape {cost.shape}; for {len(supply)} groups and {len(demand)} places it must be "
            f"{(len(supply), len(demand))}."
        )
    if supply.sum() != demand.sum():
        raise InvalidData(f"There are {supply.sum()} people but room for {demand.sum()}; the two must be equal.")
    wrong = np.argwhere(np.isnan(cost) | (cost == -np.inf))
    if len(wrong):
        at = tuple(map(int, wrong[0]))
        raise InvalidData(
            f"The cost of group {at[0]} to place {at[1]} is {cost[at]}; use a number, or +inf to forbid."
        )
    rows, columns = np.flatnonzero(supply), np.flatnonzero(demand)
    if not len(rows):
        none = np.empty(0, dtype=np.int64)
        return Transport(none, none, none, 0.0, 0.0)
    work = np.ascontiguousarray(cost[np.ix_(rows, columns)])
    forbidden = np.isposinf(work)
    if forbidden.any():
        # Dearer than any detour along allowed arcs: taken only where there is no other way.
        largest = np.abs(work[~forbidden]).max(initial=0.0)
        work[forbidden] = (largest + 1.0) * 2.0 * (min(work.shape) + 1)
    i, j, people, gap = solve_dense(work, supply[rows], demand[columns])
    if forbidden[i, j].any():
        raise InvalidData("The forbidden moves leave no way to place everybody; allow more of them.")
    order = np.lexsort((j, i))
    groups, places, people = rows[i[order]], columns[j[order]], people[order]
    return Transport(groups, places, people, float((cost[groups, places] * people).sum()), float(gap))


def _whole(values: ArrayLike, what: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    whole = array.astype(np.int64)
    bad = np.flatnonzero((whole != array) | (whole < 0)) if array.ndim == 1 else np.zeros(1, dtype=np.int64)
    if array.ndim != 1:
        raise InvalidData(f"Supply and demand must be one-dimensional; the shape is {array.shape}.")
    if len(bad):
        raise InvalidData(f"The {what} {bad[0]} is {array[bad[0]]}; it must be a whole number of at least 0.")
    return whole
