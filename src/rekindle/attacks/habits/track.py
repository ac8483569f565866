"""Track: the last to arrive is the first to leave; movers are matched by distance; midnight is no seam.

To go away has a price, and so has to return, unless it is to where the person was seen last.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.rng import generator, gumbel

__all__ = ["assign", "track"]

AHEAD = 0.3
"""Weight of the distance to the point that a person's last move points to."""
SPARE = 4
"""How many more people than leave a place are considered for leaving it, those that came last."""
GO_AWAY = 3.0
RETURN = 2.0
"""Prices, in units of the smallest distance: to go away, and to return where the person was not seen last, at most."""


def track(problem: Problem, seed: int, *, backwards: bool = False, noise: float = 0.05) -> NDArray[np.int32]:
    """Follow people through the counts.

    Parameters
    ----------
    problem
        The counts.
    seed, noise
        Choose among people who are nearly interchangeable: another seed is another start for the search.
    backwards
        Follow them from the end to the beginning.

    Returns
    -------
    (people, ticks) int32 places.
    """
    counts, times = problem.counts, problem.starts[:-1]
    if backwards:
        counts, times = counts[::-1], problem.starts[-1] - problem.starts[:0:-1]
    tracks = _track(
        np.ascontiguousarray(counts),
        np.ascontiguousarray(times),
        problem.xy,
        (GO_AWAY, RETURN),
        noise,
        generator(seed, 1),
    )
    return np.ascontiguousarray(tracks[:, ::-1]) if backwards else tracks


@compiled()
def _track(
    counts: NDArray[np.int64],
    times: NDArray[np.int64],
    xy: NDArray[np.float64],
    prices: tuple[float, float],
    noise: float,
    random: NDArray[np.int64],
) -> NDArray[np.int32]:
    ticks, places = counts.shape
    people = counts[0].sum()
    located = len(xy)
    go_away, come_back = prices
    seen = np.full(people, -1, np.int64)  # where those who are away were seen last
    tracks = np.empty((people, ticks), np.int32)
    since = np.zeros(people, np.int64)
    before = np.empty(people, np.int32)
    person = 0
    for place in range(places):
        for _ in range(counts[0, place]):
            tracks[person, 0] = before[person] = place
            person += 1
    here = np.empty(people, np.int64)
    dwell = np.empty(people, np.float64)
    drawn = np.empty(people, np.float64)
    rows = np.empty(people, np.int64)
    row_cost = np.empty(people, np.float64)
    row_place = np.empty(people, np.int64)
    columns = np.empty(people, np.int64)
    for tick in range(1, ticks):
        tracks[:, tick] = tracks[:, tick - 1]
        size = 0
        arriving = 0
        staying = 0
        for place in range(located):
            change = counts[tick, place] - counts[tick - 1, place]
            for _ in range(change):
                columns[arriving] = place
                arriving += 1
            if change >= 0:
                continue
            found = 0
            for person in range(people):
                if tracks[person, tick - 1] == place:
                    here[found] = person
                    dwell[found] = math.log(1.0 + times[tick] - since[person]) + noise * gumbel(random)
                    found += 1
            order = np.argsort(dwell[:found])
            kept = min(found, SPARE - change)
            for rank in range(kept):
                rows[size] = here[order[rank]]
                row_cost[size] = dwell[order[rank]]
                row_place[size] = place
                size += 1
            staying += kept + change
        first_away = size
        if located < places:
            # The likeliest to return, whether the number of those who are away falls or not: others may leave meanwhile.
            found = 0
            for person in range(people):
                if tracks[person, tick - 1] == located:
                    here[found] = person
                    # The time away tells nothing: phones that went off together are on again in any order.
                    drawn[found] = noise * gumbel(random)
                    least = come_back
                    for column in range(arriving):
                        least = min(least, _way_back(xy, seen[person], columns[column], come_back))
                    dwell[found] = least + drawn[found]
                    found += 1
            order = np.argsort(dwell[:found])
            for rank in range(min(found, SPARE + arriving)):
                rows[size] = here[order[rank]]
                row_cost[size] = drawn[order[rank]]
                row_place[size] = located
                size += 1
        # The columns are the arrivals, then for each place the people who stay, then those who are away.
        cost = np.full((size, size), 1e9)
        stay = arriving
        all_stay = arriving + staying
        first = 0
        while first < first_away:
            place = row_place[first]
            last = first
            while last < first_away and row_place[last] == place:
                last += 1
            still = last - first + counts[tick, place] - counts[tick - 1, place]
            for row in range(first, last):
                person = rows[row]
                x = 2 * xy[place, 0] - xy[before[person], 0]
                y = 2 * xy[place, 1] - xy[before[person], 1]
                for column in range(arriving):
                    goal = columns[column]
                    cost[row, column] = (
                        math.hypot(xy[goal, 0] - xy[place, 0], xy[goal, 1] - xy[place, 1])
                        + AHEAD * math.hypot(xy[goal, 0] - x, xy[goal, 1] - y)
                        + row_cost[row]
                    )
                for column in range(stay, stay + still):
                    cost[row, column] = 0.0
                for column in range(all_stay, size):
                    cost[row, column] = go_away + row_cost[row]
            stay += still
            first = last
        for row in range(first_away, size):
            for column in range(arriving):
                cost[row, column] = row_cost[row] + _way_back(xy, seen[rows[row]], columns[column], come_back)
            for column in range(all_stay, size):
                cost[row, column] = 0.0
        chosen = assign(cost)
        for row in range(size):
            person = rows[row]
            if chosen[row] < arriving:
                # Who returns goes in no direction yet.
                before[person] = tracks[person, tick - 1] if row < first_away else columns[chosen[row]]
                tracks[person, tick] = columns[chosen[row]]
                since[person] = times[tick]
            elif chosen[row] >= all_stay and row < first_away:
                seen[person] = tracks[person, tick - 1]
                tracks[person, tick] = located
                since[person] = times[tick]
    return tracks


@compiled()
def _way_back(xy: NDArray[np.float64], seen: int, goal: int, most: float) -> float:
    """Price a return: the distance from where the person was seen last, and no more than if that is not known."""
    return min(math.hypot(xy[goal, 0] - xy[seen, 0], xy[goal, 1] - xy[seen, 1]), most) if seen >= 0 else most


@compiled()
def assign(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """Give each row a column of its own at least total cost: (rows,) int64, for a square matrix.

    Shortest augmenting paths with potentials; fast for the small matrices of one step.
    """
    n = len(cost)
    u = np.zeros(n + 1)
    v = np.zeros(n + 1)
    row_of = np.zeros(n + 1, np.int64)
    way = np.zeros(n + 1, np.int64)
    least = np.empty(n + 1)
    used = np.empty(n + 1, np.bool_)
    for row in range(1, n + 1):
        row_of[0] = row
        j0 = 0
        least[:] = np.inf
        used[:] = False
        while True:
            used[j0] = True
            i0 = row_of[j0]
            delta = np.inf
            j1 = 0
            for j in range(1, n + 1):
                if not used[j]:
                    reduced = cost[i0 - 1, j - 1] - u[i0] - v[j]
                    if reduced < least[j]:
                        least[j] = reduced
                        way[j] = j0
                    if least[j] < delta:
                        delta = least[j]
                        j1 = j
            for j in range(n + 1):
                if used[j]:
                    u[row_of[j]] += delta
                    v[j] -= delta
                else:
                    least[j] -= delta
            j0 = j1
            if row_of[j0] == 0:
                break
        while j0:
            j1 = way[j0]
            row_of[j0] = row_of[j1]
            j0 = j1
    chosen = np.empty(n, np.int64)
    for j in range(1, n + 1):
        chosen[row_of[j] - 1] = j - 1
    return chosen
