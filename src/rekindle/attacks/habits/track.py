"""Track: the last to arrive is the first to leave; movers are matched by distance; midnight is no seam.

To go away has a price, and so has to return, unless it is to where the person was seen last.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.assignment.sparse import bid
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

DENSE_UP_TO = 200
"""People who may move at a tick up to whom all their prices are compared; beyond, lists of the nearest arrivals."""
NEAREST = 64
STEP = 0.1
"""How long the lists are, and the step by which prices rise in the auctions, in units of the smallest distance."""


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
        problem.near,
        (GO_AWAY, RETURN),
        noise,
        DENSE_UP_TO,
        generator(seed, 1),
    )
    return np.ascontiguousarray(tracks[::-1].T if backwards else tracks.T)


@compiled()
def _track(
    counts: NDArray[np.int64],
    times: NDArray[np.int64],
    xy: NDArray[np.float64],
    near: NDArray[np.int32],
    prices: tuple[float, float],
    noise: float,
    dense_up_to: int,
    random: NDArray[np.int64],
) -> NDArray[np.int32]:
    ticks, places = counts.shape
    people = counts[0].sum()
    located = len(xy)
    come_back = prices[1]
    seen = np.full(people, -1, np.int64)  # where those who are away were seen last
    tracks = np.empty((ticks, people), np.int32)
    since = np.zeros(people, np.int64)
    before = np.empty(people, np.int32)
    # Who is where: a chain of people for each place.
    first_of = np.full(places, -1, np.int64)
    behind = np.full(people, -1, np.int64)
    ahead = np.full(people, -1, np.int64)
    now = np.empty(people, np.int32)
    person = 0
    for place in range(places):
        for _ in range(counts[0, place]):
            before[person] = place
            _enter(person, place, now, first_of, behind, ahead)
            person += 1
    tracks[0] = now
    here = np.empty(people, np.int64)
    dwell = np.empty(people, np.float64)
    drawn = np.empty(people, np.float64)
    rows = np.empty(people, np.int64)
    row_cost = np.empty(people, np.float64)
    row_place = np.empty(people, np.int64)
    columns = np.empty(people, np.int64)
    nearest = np.empty(located, np.float64)
    for tick in range(1, ticks):
        size = 0
        arriving = 0
        for place in range(located):
            change = counts[tick, place] - counts[tick - 1, place]
            for _ in range(change):
                columns[arriving] = place
                arriving += 1
            if change >= 0:
                continue
            found = _gather(place, first_of, behind, here)
            for one in range(found):
                dwell[one] = math.log(1.0 + times[tick] - since[here[one]]) + noise * gumbel(random)
            order = np.argsort(dwell[:found])
            for rank in range(min(found, SPARE - change)):
                rows[size] = here[order[rank]]
                row_cost[size] = dwell[order[rank]]
                row_place[size] = place
                size += 1
        first_away = size
        if located < places:
            # The likeliest to return, whether the number of those who are away falls or not: others may leave meanwhile.
            found = _gather(located, first_of, behind, here)
            _to_arrivals(columns[:arriving], xy, near, come_back, nearest)
            for one in range(found):
                # The time away tells nothing: phones that went off together are on again in any order.
                drawn[one] = noise * gumbel(random)
                dwell[one] = (nearest[seen[here[one]]] if seen[here[one]] >= 0 else come_back) + drawn[one]
            order = np.argsort(dwell[:found])
            for rank in range(min(found, SPARE + arriving)):
                rows[size] = here[order[rank]]
                row_cost[size] = drawn[order[rank]]
                row_place[size] = located
                size += 1
        step = (rows[:size], row_cost[:size], row_place[:size], first_away, columns[:arriving])
        if size <= dense_up_to:
            goals = _match(step, counts[tick] - counts[tick - 1], xy, before, seen, prices)
        else:
            goals = _match_lists(step, counts[tick] - counts[tick - 1], xy, near, before, seen, prices)
        for row in range(size):
            person, goal = rows[row], goals[row]
            if goal == now[person]:
                continue
            # Who returns goes in no direction yet.
            if goal < located:
                before[person] = now[person] if row < first_away else goal
            else:
                seen[person] = now[person]
            since[person] = times[tick]
            _leave(person, now, first_of, behind, ahead)
            _enter(person, goal, now, first_of, behind, ahead)
        tracks[tick] = now
    return tracks


@compiled()
def _enter(person, place, now, first_of, behind, ahead):
    """Put a person at the head of the chain of a place."""
    head = first_of[place]
    behind[person], ahead[person] = head, -1
    if head >= 0:
        ahead[head] = person
    first_of[place] = person
    now[person] = place


@compiled()
def _leave(person, now, first_of, behind, ahead):
    """Take a person out of the chain of their place."""
    if ahead[person] >= 0:
        behind[ahead[person]] = behind[person]
    else:
        first_of[now[person]] = behind[person]
    if behind[person] >= 0:
        ahead[behind[person]] = ahead[person]


@compiled()
def _gather(place, first_of, behind, here):
    """List who is in a place, by index, and give how many they are."""
    found = 0
    person = first_of[place]
    while person >= 0:
        here[found] = person
        found += 1
        person = behind[person]
    here[:found] = np.sort(here[:found])
    return found


@compiled()
def _to_arrivals(columns, xy, near, most, nearest):
    """Fill in the distance from each place to the nearest arrival, and `most` where that is farther."""
    nearest[:] = most
    last = -1
    for goal in columns:
        if goal == last:
            continue
        last = goal
        for place in near[goal]:
            distance = math.hypot(xy[goal, 0] - xy[place, 0], xy[goal, 1] - xy[place, 1])
            if distance >= most:
                break
            nearest[place] = min(nearest[place], distance)


@compiled()
def _price(row, goal, step, xy, before, seen, prices):
    """Price of one person's move to an arrival: by distance and direction, and by the stay so far."""
    rows, row_cost, row_place, first_away, _ = step
    person = rows[row]
    if row >= first_away:
        return row_cost[row] + _way_back(xy, seen[person], goal, prices[1])
    place = row_place[row]
    if goal == place:
        return 0.0
    x = 2 * xy[place, 0] - xy[before[person], 0]
    y = 2 * xy[place, 1] - xy[before[person], 1]
    return (
        math.hypot(xy[goal, 0] - xy[place, 0], xy[goal, 1] - xy[place, 1])
        + AHEAD * math.hypot(xy[goal, 0] - x, xy[goal, 1] - y)
        + row_cost[row]
    )


@compiled()
def _match(step, change, xy, before, seen, prices):
    """Say where everyone who may move goes, by all prices: (rows,) int64 places."""
    rows, row_cost, row_place, first_away, columns = step
    size, arriving, located = len(rows), len(columns), len(xy)
    # The columns are the arrivals, then for each place the people who stay, then those who are away.
    cost = np.full((size, size), 1e9)
    goals = np.full(size, located, np.int64)
    goals[:arriving] = columns
    stay = arriving
    first = 0
    while first < first_away:
        place = row_place[first]
        last = first
        while last < first_away and row_place[last] == place:
            last += 1
        still = last - first + change[place]
        cost[first:last, stay : stay + still] = 0.0
        goals[stay : stay + still] = place
        stay += still
        first = last
    for row in range(size):
        for column in range(arriving):
            cost[row, column] = _price(row, columns[column], step, xy, before, seen, prices)
        for column in range(stay, size):
            cost[row, column] = prices[0] + row_cost[row] if row < first_away else 0.0
    return goals[assign(cost)]


@compiled()
def _match_lists(step, change, xy, near, before, seen, prices):
    """Say where everyone who may move goes, by auctions over lists of the nearest arrivals: (rows,) int64 places.

    Where everybody goes far the same way, prices would rise across the whole map before the last one had a place. So who
    would pay so much that what is not listed may be better waits until the others have their places, and chooses among what
    is left.
    """
    rows, _, row_place, first_away, arrivals = step
    size, located = len(rows), len(xy)
    # How many may go to each place; then, how many may stay in each, and be away.
    room = np.zeros(2 * located + 1, np.int64)
    for goal in arrivals:
        room[goal] += 1
    for place in row_place[:first_away]:
        room[located + place] += 1
    for place in range(located):
        if room[located + place]:
            room[located + place] += change[place]
    room[-1] = size - room.sum()
    chosen = np.empty(size, np.int64)
    listed = np.empty((size, NEAREST + 2), np.int32)
    costs = np.empty((size, NEAREST + 2))
    bound = np.empty(size)
    free = np.arange(size)
    first = True
    while len(free):
        begin = np.zeros(len(room) + 1, np.int64)
        begin[1:] = np.cumsum(room)
        owner = np.full(begin[-1], -1, np.int64)
        goals = np.flatnonzero(room[:located])
        for row in free:
            listed[row] = -1
            filled = _list_others(row, room, step, prices, listed, costs)
            if first and len(goals) > NEAREST:
                _list_near(row, filled, room, goals, step, (xy, near, before, seen, prices), listed, costs, bound)
            else:
                _list_best(row, filled, goals, step, (xy, before, seen, prices), listed, costs, bound)
        free = bid(free, np.arange(size), listed, costs, bound, begin, np.zeros(begin[-1]), owner, STEP, 0.0)
        for column in range(len(room)):
            for at in range(begin[column], begin[column + 1]):
                if owner[at] >= 0:
                    chosen[owner[at]] = column if column < located else column - located
                    room[column] -= 1
        # Where nobody wants to stay, others may go.
        room[:located] += room[located:-1]
        room[located:-1] = 0
        first = False
    return chosen


@compiled()
def _list_others(row, room, step, prices, listed, costs):
    """List that a person stays, or goes away; give how many entries that makes."""
    _, row_cost, row_place, first_away, _ = step
    located = len(room) // 2
    filled = 0
    if room[located + row_place[row]] > 0:
        listed[row, filled], costs[row, filled] = located + row_place[row], 0.0
        filled += 1
    if row < first_away and room[-1] > 0:
        listed[row, filled], costs[row, filled] = 2 * located, prices[0] + row_cost[row]
        filled += 1
    return filled


@compiled()
def _list_near(row, filled, room, goals, step, known, listed, costs, bound):
    """List the arrivals nearest to where a person is, or was seen last, and bound the price of all others."""
    xy, near, before, seen, prices = known
    rows, row_cost, row_place, first_away, _ = step
    person, away = rows[row], row >= first_away
    place = seen[person] if away else row_place[row]
    full = filled + NEAREST
    bound[row] = prices[1] + row_cost[row] if away else np.inf
    for rank in range(len(near[place]) if place >= 0 else 0):
        goal = near[place, rank]
        far = math.hypot(xy[goal, 0] - xy[place, 0], xy[goal, 1] - xy[place, 1])
        if away and far >= prices[1]:
            break
        if not away:
            # A longer way costs no less than one of this length straight ahead.
            ahead = math.hypot(xy[place, 0] - xy[before[person], 0], xy[place, 1] - xy[before[person], 1])
            bound[row] = max(far, far + AHEAD * (far - ahead)) + row_cost[row]
        if filled == full:
            break
        if room[goal] > 0:
            listed[row, filled] = goal
            costs[row, filled] = _price(row, goal, step, xy, before, seen, prices)
            filled += 1
    if not away and filled < full and len(near[place]) == len(xy):
        bound[row] = np.inf
    if away:
        # All others cost the same: everyone begins with another one.
        for turn in range(full - filled):
            goal = goals[(row * NEAREST + turn) % len(goals)]
            listed[row, filled + turn], costs[row, filled + turn] = goal, bound[row]


@compiled()
def _list_best(row, filled, goals, step, known, listed, costs, bound):
    """List the best arrivals of a person, wherever they are, and bound the price of all others."""
    xy, before, seen, prices = known
    value = np.empty(len(goals))
    for at in range(len(goals)):
        value[at] = _price(row, goals[at], step, xy, before, seen, prices)
    bound[row] = np.inf
    if len(goals) > NEAREST:
        bound[row] = np.partition(value, NEAREST)[NEAREST]
    full = filled + NEAREST
    # Among arrivals that are as good, everyone begins with another one.
    for equal in (False, True):
        for turn in range(len(goals)):
            at = (turn + row) % len(goals)
            if filled < full and (value[at] == bound[row] if equal else value[at] < bound[row]):
                listed[row, filled], costs[row, filled] = goals[at], value[at]
                filled += 1


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
