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
STEPS = (0.5, 0.1, 0.02)
"""How long the lists are, and the steps by which prices rise in the auctions, in units of the smallest distance."""


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
    """Say where everyone who may move goes, by an auction over lists of the nearest arrivals: (rows,) int64 places.

    The columns are the places where somebody arrives, then the places that somebody leaves (to stay there), then away.
    """
    rows, _, row_place, first_away, arrivals = step
    size, located = len(rows), len(xy)
    column_of = np.full(located + 1, -1, np.int64)
    goals = np.empty(size + 1, np.int64)
    capacity = np.zeros(size + 1, np.int64)
    count = 0
    for goal in arrivals:
        if column_of[goal] < 0:
            column_of[goal] = count
            goals[count] = goal
            count += 1
        capacity[column_of[goal]] += 1
    arriving = count
    first = 0
    while first < first_away:
        place = row_place[first]
        last = first
        while last < first_away and row_place[last] == place:
            last += 1
        if last - first + change[place] > 0:
            column_of[place] = count
            goals[count] = place
            capacity[count] = last - first + change[place]
            count += 1
        first = last
    left = size - capacity[:count].sum()
    if left > 0:
        column_of[located] = count
        goals[count] = located
        capacity[count] = left
        count += 1
    begin = np.zeros(count + 1, np.int64)
    begin[1:] = np.cumsum(capacity[:count])
    price = np.zeros(size)
    owner = np.full(size, -1, np.int64)
    listed = np.full((size, NEAREST + 2), -1, np.int32)
    costs = np.full((size, NEAREST + 2), np.inf)
    bound = np.empty(size)
    market = (arriving, goals, column_of, begin, price, np.empty(max(arriving, NEAREST + 2)))
    known = (xy, near, before, seen, prices)
    for row in range(size):
        _list_best(row, market, step, known, listed, costs, bound)
    row_of = np.arange(size)
    for turn in range(len(STEPS)):
        free = row_of.copy()
        owner[:] = -1
        for column in range(count):
            price[begin[column] : begin[column + 1]] = price[begin[column]]
        while len(free):
            free = bid(free, row_of, listed, costs, bound, begin, price, owner, STEPS[turn], STEPS[turn] / 2)
            for parked in free:
                _list_best(parked, market, step, known, listed, costs, bound)
    chosen = np.empty(size, np.int64)
    for column in range(count):
        for at in range(begin[column], begin[column + 1]):
            chosen[owner[at]] = goals[column]
    return chosen


@compiled()
def _list_others(row, column_of, step, prices, listed, costs):
    """List that a person stays, or goes away; give how many entries that makes."""
    _, row_cost, row_place, first_away, _ = step
    away = column_of[len(column_of) - 1]
    listed[row, :] = -1
    costs[row, :] = np.inf
    filled = 0
    if row < first_away and column_of[row_place[row]] >= 0:
        listed[row, filled], costs[row, filled] = column_of[row_place[row]], 0.0
        filled += 1
    if away >= 0:
        listed[row, filled], costs[row, filled] = away, prices[0] + row_cost[row] if row < first_away else 0.0
        filled += 1
    return filled


@compiled()
def _list_best(row, market, step, known, listed, costs, bound):
    """List the best arrivals of a person at the prices of the day."""
    arriving, goals, column_of, begin, price, value = market
    xy, _, before, seen, prices = known
    if row < step[3] and _list_near(row, market, step, known, listed, costs, bound):
        return
    filled = _list_others(row, column_of, step, prices, listed, costs)
    for column in range(arriving):
        value[column] = _price(row, goals[column], step, xy, before, seen, prices) + price[begin[column]]
    bound[row] = np.inf
    limit = np.inf
    if arriving > NEAREST:
        limit = np.partition(value[:arriving], NEAREST)[NEAREST]
        bound[row] = limit
    # Among arrivals that are as good, everyone begins with another one.
    for kind in range(2):
        for turn in range(arriving):
            column = (turn + row) % arriving
            if filled < NEAREST + 2 and (value[column] < limit if kind == 0 else value[column] == limit):
                listed[row, filled] = column
                costs[row, filled] = value[column] - price[begin[column]]
                filled += 1


@compiled()
def _list_near(row, market, step, known, listed, costs, bound):
    """List the best arrivals of a person who is somewhere, from the nearest on; False if a better one may be farther away.

    All that are farther than an arrival cost at least as much as one at its distance straight ahead, were it free.
    """
    arriving, _, column_of, begin, price, value = market
    xy, near, before, _, prices = known
    rows, row_cost, row_place, _, _ = step
    place, came_from = row_place[row], before[rows[row]]
    x, y = xy[place, 0], xy[place, 1]
    ahead_x, ahead_y = 2 * x - xy[came_from, 0], 2 * y - xy[came_from, 1]
    ahead = math.sqrt((ahead_x - x) ** 2 + (ahead_y - y) ** 2)
    first = _list_others(row, column_of, step, prices, listed, costs)
    filled, full = first, first + NEAREST
    best = np.inf
    for at in range(first):
        best = min(best, costs[row, at] + price[begin[listed[row, at]]])
    beyond = np.inf
    last = len(near[place]) - 1
    for rank in range(last + 1):
        goal = near[place, rank]
        column = column_of[goal]
        arrival = 0 <= column < arriving
        if not arrival and (rank < last or last + 1 == len(xy)):
            continue
        far = math.sqrt((xy[goal, 0] - x) ** 2 + (xy[goal, 1] - y) ** 2)
        least = max(far, far + AHEAD * (far - ahead)) + row_cost[row]
        if filled == full and least >= value[first]:
            beyond = min(beyond, least)
            break
        if rank == last and last + 1 < len(xy):
            beyond = min(beyond, least)
        if not arrival:
            continue
        cost = far + AHEAD * math.sqrt((xy[goal, 0] - ahead_x) ** 2 + (xy[goal, 1] - ahead_y) ** 2) + row_cost[row]
        worth = cost + price[begin[column]]
        best = min(best, worth)
        # A heap, the worst on top.
        if filled < full:
            at = filled
            filled += 1
            while at > first and value[(at - first - 1) // 2 + first] < worth:
                above = (at - first - 1) // 2 + first
                value[at], listed[row, at], costs[row, at] = value[above], listed[row, above], costs[row, above]
                at = above
        else:
            beyond = min(beyond, max(worth, value[first]))
            if worth >= value[first]:
                continue
            at = first
            while True:
                below = 2 * (at - first) + 1 + first
                if below + 1 < full and value[below + 1] > value[below]:
                    below += 1
                if below >= full or value[below] <= worth:
                    break
                value[at], listed[row, at], costs[row, at] = value[below], listed[row, below], costs[row, below]
                at = below
        value[at], listed[row, at], costs[row, at] = worth, column, cost
    bound[row] = beyond
    return best <= beyond


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
