"""Recover a day: at every step the cheapest assignment of people to the counts of the next step, exactly.

Rows of the assignment are people, columns are the counted people of the next step. What makes it fast, and changes no
cost: a person who aims at one location only takes a free column there (no other use of it is better, by the triangle
inequality), people who aim at the same locations are one group, the columns of a location are one column, and what is left
is a small transportation problem. Where flows are known there is one for each origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.assignment.flow_kernel import run_flow_steps
from rekindle.assignment.step_kernel import EXTRAPOLATE, POPULAR, run_steps
from rekindle.assignment.transport import transport
from rekindle.errors import InvalidData, Stopped

__all__ = ["EXTRAPOLATE", "POPULAR", "PRICED", "DayResult", "Price", "recover_day"]

PRICED = 4
"""A transition whose moves are priced by a function, not by targets."""

Price = Callable[[int, NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]]
"""Called as ``price(step, previous, current)`` with the locations of some rows; gives (rows, locations) costs."""

# The kernel runs so many cells (people x steps) before it looks up and asks whether to stop.
CELLS_BETWEEN_STOPS = 50_000
# Costs of a step with up to so many groups x locations are kept in a table (0.5 MB); beyond, they are computed on sight.
TABLE_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class DayResult:
    """A recovered day.

    Parameters
    ----------
    cells
        (people, steps) int32, the location of everybody at every step.
    costs
        (steps - 1,) float64, the total cost of each transition in km.
    gaps
        (steps - 1,) float64, how far each total may lie above the least one, proven by dual values; 0 where exact.
    """

    cells: NDArray[np.int32]
    costs: NDArray[np.float64]
    gaps: NDArray[np.float64]


def recover_day(
    counts: NDArray[np.integer[Any]],
    first: NDArray[np.int32],
    xy_km: NDArray[np.float64],
    kinds: NDArray[np.uint8],
    popular: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    flows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None,
    away_km: float | None = None,
    price: Price | None = None,
    each: bool = False,
    stop: Callable[[], bool] | None = None,
) -> DayResult:
    """Recover one day from its counts, or its flows, and the locations at its first step.

    A person who was at o and is at p moves to location l at the least distance from l to one of the targets: the point q,
    and, where a transition is of the kind `POPULAR`, the locations H_p. The point q is p + (p - o) where the kind has
    `EXTRAPOLATE` and the day has a step before, else p. Where people may be away, that is one more location, the last, without
    a centre: to leave for it or to return from it costs `away_km`, to stay away nothing, and who has just returned has no
    velocity.

    Of several cheapest assignments one is taken, always the same: people with the same set of targets are a group,
    groups come in the order of their first member, locations by index, and the locations that a group goes to, by index,
    are dealt to its members by index. Points closer than `SAME_POINT_KM` are one. With flows, the same holds among the people
    of one location, of whom those with the same location before are a group; those of a group who came last leave first.

    Parameters
    ----------
    counts
        (steps, locations) whole numbers, people per location; every row sums to the number of people. With `away_km`
        there is one more column, the people who are away.
    first
        (people,) locations at the first step.
    xy_km
        (locations, 2) centres in km; some may coincide.
    kinds
        (steps - 1,) what a move costs at each transition: 0, `EXTRAPOLATE`, `POPULAR` or their sum; or `PRICED`.
    popular
        The popular locations H_p of each location p: row pointers (locations + 1,) and indices, as in a CSR matrix.
    flows
        Where the flows of each transition begin, (steps,) int64; and their origins, destinations and numbers of people, each
        (flows,) int64, sorted by transition, origin and destination, those who stay (or stay away) included.
    away_km
        What it costs to leave or to return, in km; None where nobody is ever away.
    price
        Gives the costs of the transitions of the kind `PRICED`, those to and from away included, for which people with the same two last locations are a
        group.
    each
        Whether everybody is a group of their own there: `price` is given all people, in order, at every such step.
    stop
        Asked every now and then; where it says True, the work ends with `Stopped`.
    """
    whole = np.ascontiguousarray(counts, dtype=np.int64)
    first = np.asarray(first)
    people = len(first)
    if whole.ndim != 2 or not len(whole):
        raise InvalidData(
            f"Counts of a day must be steps x locations, at least one step; the shape is {whole.shape}."
        )
    steps, columns = whole.shape
    away = -1 if away_km is None else columns - 1
    locations = columns if away < 0 else away
    if xy_km.shape != (locations, 2):
        raise InvalidData(
            f"Centres must have the shape {(locations, 2)}, one for each location; it is {xy_km.shape}."
        )
    if price is None and (np.asarray(kinds) == PRICED).any():
        raise InvalidData("Some transitions are priced by a function, but no `price` was given.")
    if len(kinds) != steps - 1:
        raise InvalidData(f"A day of {steps} steps has {steps - 1} transitions; there are kinds for {len(kinds)}.")
    _refuse_wrong_sums(whole, first)
    if flows is not None:
        _refuse_wrong_flows(whole, flows)
    indptr, indices = _popular_places(popular, locations)
    x, y = np.ascontiguousarray(xy_km.T, dtype=np.float64)
    if away >= 0:
        x, y, indptr = np.append(x, 0.0), np.append(y, 0.0), np.append(indptr, len(indices))
    kinds = np.ascontiguousarray(kinds, dtype=np.uint8)
    cells = np.empty((steps, people), dtype=np.int32)
    cells[0] = first
    since = np.zeros(people, np.int64)
    costs, gaps = np.zeros((2, steps - 1))
    stride = max(1, CELLS_BETWEEN_STOPS // max(people, 1))
    begin = 0
    while begin < steps - 1:
        if stop is not None and stop():
            raise Stopped(f"Stopped at step {begin} of {steps} of a day, as asked.")
        if price is not None and kinds[begin] == PRICED:
            end = begin + 1
            before = cells[max(0, begin - 1)]
            if flows is None:
                moved = _step_by_price(begin, before, cells[begin], whole[end], price, each)
            else:
                moved = _flow_step_by_price(begin, before, cells[begin], since, columns, away, flows, price, each)
            cells[end], costs[begin], gaps[begin] = moved
            since[cells[end] != cells[begin]] = end
        else:
            priced = np.flatnonzero(kinds[begin : begin + stride] == PRICED)
            end = begin + int(priced[0]) if len(priced) else min(begin + stride, steps - 1)
            if flows is None:
                run_steps(
                    begin,
                    end,
                    whole,
                    x,
                    y,
                    kinds,
                    indptr,
                    indices,
                    cells,
                    costs,
                    gaps,
                    TABLE_CELLS,
                    away,
                    away_km or 0.0,
                )
            else:
                run_flow_steps(
                    begin, end, flows, x, y, kinds, indptr, indices, cells, since, costs, gaps, away, away_km or 0.0
                )
        begin = end
    return DayResult(np.ascontiguousarray(cells.T), costs, gaps)


def _step_by_price(
    step: int,
    previous: NDArray[np.int32],
    current: NDArray[np.int32],
    counts: NDArray[np.int64],
    price: Price,
    each: bool,
) -> tuple[NDArray[np.int32], float, float]:
    """Move everyone by any price of the two last locations: (people,) int32 locations, the total cost and its gap."""
    groups, matrix, _ = _priced_groups(step, previous, current, len(counts), price, each)
    solved = transport(matrix, np.bincount(groups), counts)
    moved = np.empty(len(current), dtype=np.int32)
    moved[np.argsort(groups, kind="stable")] = np.repeat(solved.places, solved.people)
    return moved, solved.cost, solved.gap


def _flow_step_by_price(
    step: int,
    previous: NDArray[np.int32],
    current: NDArray[np.int32],
    since: NDArray[np.int64],
    locations: int,
    away: int,
    flows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    price: Price,
    each: bool,
) -> tuple[NDArray[np.int32], float, float]:
    """Move everyone along the flows by any price of the two last locations, each origin by itself; as `_step_by_price`."""
    offsets, origins, goals, numbers = flows
    groups, matrix, at = _priced_groups(step, previous, current, locations, price, each)
    moved = np.empty(len(current), dtype=np.int32)
    cost = gap = 0.0
    listed = np.arange(offsets[step], offsets[step + 1])
    for origin in np.unique(origins[listed]):
        those, rows = listed[origins[listed] == origin], np.flatnonzero(at == origin)
        people = np.flatnonzero(current == origin)
        if origin != away:
            people = people[np.argsort(-since[people], kind="stable")]
        own = np.searchsorted(rows, groups[people])
        solved = transport(matrix[np.ix_(rows, goals[those])], np.bincount(own, minlength=len(rows)), numbers[those])
        places = goals[those][solved.places]
        leaving = np.lexsort((places == origin, solved.groups))  # the others before those who stay, in each group
        moved[people[np.argsort(own, kind="stable")]] = np.repeat(places[leaving], solved.people[leaving])
        cost, gap = cost + solved.cost, gap + solved.gap
    return moved, cost, gap


def _priced_groups(
    step: int, previous: NDArray[np.int32], current: NDArray[np.int32], locations: int, price: Price, each: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]:
    """Put people with the same two last locations together, or each apart, in the order of their first members.

    Returns
    -------
    (people,) int64 the group of each person; (groups, locations) float64 prices; (groups,) int32 where each group is.
    """
    pairs = np.arange(len(current)) if each else previous.astype(np.int64) * locations + current
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    listed = np.argsort(first)
    first, groups = first[listed], np.argsort(listed)[inverse]
    matrix = np.asarray(price(step, previous[first], current[first]), dtype=np.float64)
    if matrix.shape != (len(first), locations) or np.isnan(matrix).any() or np.isneginf(matrix).any():
        raise InvalidData(
            f"The move cost gave a matrix of the shape {matrix.shape}; it must be {(len(first), locations)}, "
            "without NaN or minus infinity."
        )
    return groups, matrix, current[first]


def _refuse_wrong_sums(counts: NDArray[np.int64], first: NDArray[np.int32]) -> None:
    people = len(first)
    locations = counts.shape[1]
    if counts.min(initial=0) < 0:
        step, place = np.argwhere(counts < 0)[0]
        raise InvalidData(
            f"The count of location {place} at step {step} of the day is {counts[step, place]}; it is below 0."
        )
    sums = counts.sum(axis=1)
    if (sums != people).any():
        step = int(np.flatnonzero(sums != people)[0])
        raise InvalidData(
            f"The counts of step {step} of the day sum to {sums[step]}, but there are {people} people; "
            "every step must count the same people."
        )
    if people and not 0 <= first.min() <= first.max() < locations:
        raise InvalidData(
            f"First cells must lie in 0 to {locations - 1}; they reach from {first.min()} to {first.max()}."
        )
    if (np.bincount(first, minlength=locations) != counts[0]).any():
        raise InvalidData("The first cells do not have the counts of the first step of the day.")


def _refuse_wrong_flows(
    counts: NDArray[np.int64],
    flows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> None:
    offsets, origins, goals, numbers = flows
    steps, locations = counts.shape
    if len(offsets) != steps:
        raise InvalidData(
            f"A day of {steps} steps has {steps - 1} transitions; there are flows of {len(offsets) - 1}."
        )
    step = np.repeat(np.arange(steps - 1), np.diff(offsets))
    for ends, at in ((origins, counts[:-1]), (goals, counts[1:])):
        sums = np.bincount(step * locations + ends, numbers, minlength=at.size).reshape(at.shape)
        if (sums != at).any():
            window, place = np.argwhere(sums != at)[0]
            raise InvalidData(
                f"The flows of transition {window} of the day do not add up to the count of location {place}: "
                f"{sums[window, place]:.0f}, not {at[window, place]}."
            )


def _popular_places(
    popular: tuple[ArrayLike, ArrayLike] | None, locations: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if popular is None:
        return np.zeros(locations + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    indptr = np.ascontiguousarray(popular[0], dtype=np.int64)
    indices = np.ascontiguousarray(popular[1], dtype=np.int64)
    if (
        indptr.shape != (locations + 1,)
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or (np.diff(indptr) < 0).any()
    ):
        raise InvalidData(
            f"Row pointers of the popular locations must rise from 0 to {len(indices)} in {locations + 1} numbers."
        )
    if len(indices) and not 0 <= indices.min() <= indices.max() < locations:
        raise InvalidData(
            f"Popular locations must lie in 0 to {locations - 1}; they reach from {indices.min()} to {indices.max()}."
        )
    return indptr, indices
