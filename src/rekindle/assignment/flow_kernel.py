"""The walk through a day whose flows are known: one small transportation problem for each origin of each step.

Who goes where is known but for who it is: so many of the people in a location go to each destination. People who came to it
from the same location are one group. Within a group all are alike, and those who came last leave first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.step_kernel import EXTRAPOLATE, POPULAR, Floats, Indices, Ints, solve_dense, step_kernel

__all__ = ["run_flow_steps"]

FEW = 16
"""Up to so many people are sorted in place."""


@step_kernel
def run_flow_steps(
    begin: int,
    end: int,
    flows: tuple[Ints, Ints, Ints, Ints],
    x: Floats,
    y: Floats,
    kinds: NDArray[np.uint8],
    indptr: Ints,
    indices: Ints,
    cells: Indices,
    since: Ints,
    costs: Floats,
    gaps: Floats,
    away: int,
    away_km: float,
) -> None:
    """Recover the cells of steps begin + 1 to end of a day from those of steps begin - 1 and begin.

    Parameters
    ----------
    flows
        Where the flows of each step begin, (steps,) int64; and their origins, destinations and numbers of people, (flows,)
        int64, sorted by step, origin and destination, those who stay included.
    since
        (people,) int64: the step at which each person came to where they are; kept up to date.
    cells, costs, gaps, away, away_km
        As in `run_steps`.
    """
    offsets, origins, goals, numbers = flows
    people = cells.shape[1]
    locations = len(x)
    has_popular = len(indices) > 0
    first = np.empty(locations + 1, np.int64)
    listed = np.empty(people, np.int32)
    group_of = np.empty(people, np.int32)
    # The group of those who came from a location, and for which origin and step that holds.
    group_from = np.empty(locations, np.int32)
    noted = np.full(locations, -1, np.int64)
    group_x = np.empty(people, np.float64)
    group_y = np.empty(people, np.float64)
    supply = np.empty(people, np.int64)
    cheaper = np.empty(people, np.float64)
    remembered = np.empty(locations, np.float64)
    notes = 0
    for step in range(begin, end):
        now = cells[step]
        past = cells[step - 1] if step > 0 else now
        then = cells[step + 1]
        extrapolate = kinds[step] & EXTRAPOLATE != 0
        popular = has_popular and kinds[step] & POPULAR != 0
        costs[step] = 0.0
        gaps[step] = 0.0
        # People by where they are, in their own order.
        first[:] = 0
        for person in range(people):
            first[now[person] + 1] += 1
        for place in range(locations):
            first[place + 1] += first[place]
        for person in range(people):
            listed[first[now[person]]] = person
            first[now[person]] += 1
        start = 0
        low = offsets[step]
        while low < offsets[step + 1]:
            at = origins[low]
            high = low + 1
            while high < offsets[step + 1] and origins[high] == at:
                high += 1
            members = listed[start : first[at]]
            start = first[at]
            places = high - low
            # The last to come is the first in the list; how long somebody is away tells nothing.
            if places > 1 and at != away and len(members) > FEW:
                members[:] = members[np.argsort(-since[members], kind="mergesort")]
            elif places > 1 and at != away:
                for k in range(1, len(members)):
                    person = members[k]
                    j = k
                    while j > 0 and since[members[j - 1]] < since[person]:
                        members[j] = members[j - 1]
                        j -= 1
                    members[j] = person

            # Who is away, or has just returned, has no velocity, and so has who stayed.
            groups = 0
            for k in range(len(members)):
                came = at
                if extrapolate and at != away and past[members[k]] != away:
                    came = int(past[members[k]])
                if noted[came] != notes:
                    noted[came] = notes
                    group_from[came] = groups
                    group_x[groups] = x[at] + (x[at] - x[came])
                    group_y[groups] = y[at] + (y[at] - y[came])
                    supply[groups] = 0
                    groups += 1
                group_of[k] = group_from[came]
                supply[group_of[k]] += 1
            notes += 1

            for j in range(places):
                goal = goals[low + j]
                remembered[j] = np.inf
                if at == away or goal == away:
                    remembered[j] = 0.0 if at == goal else away_km
                elif popular:
                    for k in range(indptr[at], indptr[at + 1]):
                        dx = x[goal] - x[indices[k]]
                        dy = y[goal] - y[indices[k]]
                        remembered[j] = min(remembered[j], dx * dx + dy * dy)
                    remembered[j] = np.sqrt(remembered[j])
            if places == 1 and (at == away or goals[low] == away):
                costs[step] += len(members) * remembered[0]
            elif places == 1:
                for i in range(groups):
                    dx = x[goals[low]] - group_x[i]
                    dy = y[goals[low]] - group_y[i]
                    costs[step] += supply[i] * min(remembered[0], np.sqrt(dx * dx + dy * dy))
            if places == 1:
                for k in range(len(members)):
                    then[members[k]] = goals[low]
                    if goals[low] != at:
                        since[members[k]] = step + 1
                low = high
                continue

            table = np.empty((groups, places), np.float64)
            for i in range(groups):
                for j in range(places):
                    table[i, j] = remembered[j]
                    if at != away and goals[low + j] != away:
                        dx = x[goals[low + j]] - group_x[i]
                        dy = y[goals[low + j]] - group_y[i]
                        table[i, j] = min(remembered[j], np.sqrt(dx * dx + dy * dy))

            # How many of each group go to each destination.
            sent = np.zeros((groups, places), np.int64)
            if groups == 1:
                for j in range(places):
                    sent[0, j] = numbers[low + j]
            elif places == 2:
                # Those who gain most by the first destination take it.
                for i in range(groups):
                    cheaper[i] = table[i, 0] - table[i, 1]
                left = numbers[low]
                for i in np.argsort(cheaper[:groups], kind="mergesort"):
                    sent[i, 0] = min(left, supply[i])
                    sent[i, 1] = supply[i] - sent[i, 0]
                    left -= sent[i, 0]
            else:
                rows, columns, moved, gap = solve_dense(table, supply[:groups].copy(), numbers[low:high].copy())
                gaps[step] += gap
                for k in range(len(rows)):
                    sent[rows[k], columns[k]] = moved[k]
            # The members of a group leave in their order, by the index of the destination; the rest stays.
            for i in range(groups):
                for j in range(places):
                    costs[step] += sent[i, j] * table[i, j]
                supply[i] = 0
            for k in range(len(members)):
                i = group_of[k]
                j = supply[i]
                while j < places and (sent[i, j] == 0 or goals[low + j] == at):
                    j += 1
                supply[i] = j
                if j < places:
                    sent[i, j] -= 1
                    then[members[k]] = goals[low + j]
                    since[members[k]] = step + 1
                else:
                    then[members[k]] = at
            low = high
