"""Flows within Habits: how many people go where from tick to tick, and people who are followed along them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.assignment.step_kernel import solve_dense
from rekindle.attacks.flows import Windows
from rekindle.attacks.habits.rng import generator, gumbel
from rekindle.errors import InvalidData

if TYPE_CHECKING:
    from rekindle.attacks.habits.problem import Problem

__all__ = ["TickFlows", "track_flows"]

AHEAD = 0.3
FARTHEST = 10.0
"""Weight of the distance between a destination and the point that a person's last move points to, and the most it can be."""
SPARE = 4
"""How many more people than leave a place are considered for leaving it, those that came last."""
RETURN = 2.0
"""Price of a return, at most: the distance from where the person was seen last, in units of the smallest distance."""
MOST_PRICES = 20_000
"""Prices of people and destinations up to which everyone is considered alone; beyond, those who came from one place together."""


@dataclass(frozen=True, eq=False)
class TickFlows:
    """How many people go where between two ticks, those who stay included.

    Attributes
    ----------
    offsets
        (ticks + 1,) int64: where the flows that lead to each tick begin; none lead to the first.
    origin, goal, number
        (flows,) int64: places, and how many people; sorted by tick, origin and goal.
    """

    offsets: NDArray[np.int64]
    origin: NDArray[np.int64]
    goal: NDArray[np.int64]
    number: NDArray[np.int64]

    @staticmethod
    def moments(windows: Windows) -> NDArray[np.int64]:
        """Give the steps at which somebody is elsewhere than at the step before."""
        moves = np.flatnonzero(windows.origin != windows.destination)
        return np.unique(np.searchsorted(windows.offsets, moves, "right"))

    @classmethod
    def of(cls, windows: Windows, places: NDArray[np.int64], locations: int, people: int) -> TickFlows:
        """Take the windows in which anybody moves.

        Parameters
        ----------
        windows
            All of them.
        places
            (places,) int64: location indices, or `AWAY`, which is the last.
        locations, people
            How many there are.
        """
        offsets, origin, goal, number = windows.table(locations, people)
        place_of = np.full(locations + 1, -1, np.int64)
        place_of[places] = np.arange(len(places))  # away is -1: the last
        kept = cls.moments(windows) - 1
        length = offsets[kept + 1] - offsets[kept]
        first = np.concatenate([[0, 0], np.cumsum(length)])
        listed = np.repeat(offsets[kept] - first[1:-1], length) + np.arange(first[-1])
        return cls(first, place_of[origin[listed]], place_of[goal[listed]], number[listed])

    def reversed(self) -> TickFlows:
        """Give the same flows as they are when time runs backwards."""
        ticks = len(self.offsets) - 1
        tick = ticks - np.repeat(np.arange(ticks), np.diff(self.offsets))
        order = np.lexsort((self.origin, self.goal, tick))
        offsets = np.searchsorted(tick[order], np.arange(ticks + 1))
        return TickFlows(offsets, self.goal[order], self.origin[order], self.number[order])

    @classmethod
    def of_tracks(cls, tracks: NDArray[np.integer]) -> TickFlows:
        """Count the flows of (people, ticks) places."""
        places = int(tracks.max()) + 1
        ticks = np.arange(1, tracks.shape[1])
        found = (ticks * places + tracks[:, :-1].astype(np.int64)) * places + tracks[:, 1:]
        key, number = np.unique(found, return_counts=True)
        rest, goal = np.divmod(key, places)
        tick, origin = np.divmod(rest, places)
        offsets = np.searchsorted(tick, np.arange(tracks.shape[1] + 1))
        return cls(offsets, origin, goal, number)

    def check(self, tracks: NDArray[np.integer]) -> None:
        """Refuse tracks that do not have these flows."""
        found = self.of_tracks(tracks)
        for field in fields(self):
            if not np.array_equal(getattr(self, field.name), getattr(found, field.name)):
                raise InvalidData("tracks do not have the flows that they should")


def track_flows(problem: Problem, seed: int, *, backwards: bool = False, noise: float = 0.05) -> NDArray[np.int32]:
    """Follow people along the flows; parameters and result as in `track`."""
    flows, times = problem.flows, problem.starts[:-1]
    if flows is None:
        raise RuntimeError("a problem without flows")
    counts = problem.counts[0]
    if backwards:
        flows, times = flows.reversed(), problem.starts[-1] - problem.starts[:0:-1]
        counts = problem.counts[-1]
    tracks = _track(
        counts,
        (flows.offsets, flows.origin, flows.goal, flows.number),
        np.ascontiguousarray(times),
        problem.xy,
        noise,
        generator(seed, 1),
    )
    return np.ascontiguousarray(tracks[:, ::-1]) if backwards else tracks


@compiled(error_model="numpy")
def _track(counts, flows, times, xy, noise, random):
    offsets, origins, goals, numbers = flows
    people, ticks, places, located = counts.sum(), len(times), len(counts), len(xy)
    tracks = np.empty((people, ticks), np.int32)
    now = np.empty(people, np.int64)
    before = np.empty(people, np.int64)
    since = np.zeros(people, np.int64)
    seen = np.full(people, -1, np.int64)  # where those who are away were seen last
    # Who is where: a chain of people for each place.
    first_of = np.full(places, -1, np.int64)
    following = np.full(people, -1, np.int64)
    person = 0
    for place in range(places):
        for _ in range(counts[place]):
            now[person] = before[person] = place
            following[person] = first_of[place]
            first_of[place] = person
            person += 1
    tracks[:, 0] = now
    here = np.empty(people, np.int64)
    dwell = np.empty(people, np.float64)
    drawn = np.empty(people, np.float64)
    moved = np.empty(people, np.int64)
    for tick in range(1, ticks):
        movers = 0
        low = offsets[tick]
        while low < offsets[tick + 1]:
            at = origins[low]
            high = low
            leaving = 0
            while high < offsets[tick + 1] and origins[high] == at:
                if goals[high] != at:
                    leaving += numbers[high]
                high += 1
            if leaving == 0:
                low = high
                continue
            found = 0
            person = first_of[at]
            while person >= 0:
                here[found] = person
                drawn[found] = noise * gumbel(random)
                if at == located:
                    # The time away tells nothing: phones that went off together are on again in any order.
                    least = RETURN
                    for k in range(low, high):
                        least = min(least, _way_back(xy, seen[person], goals[k]))
                    dwell[found] = least + drawn[found]
                else:
                    drawn[found] += math.log(1.0 + times[tick] - since[person])
                    dwell[found] = drawn[found]
                found += 1
                person = following[person]
            order = np.argsort(dwell[:found])
            rows = min(found, leaving + SPARE)
            # The columns are the destinations, and at the end those who stay.
            columns = 0
            for k in range(low, high):
                columns += goals[k] != at
            crowd = rows * columns > MOST_PRICES
            rows = leaving if crowd else rows
            stays = rows > leaving
            if crowd:
                _send_crowd(low, high, at, flows, here[order[:rows]], seen if at == located else before, xy, now)
            cost = np.zeros((0 if crowd else rows, columns + stays))
            demand = np.empty(columns + stays, np.int64)
            to = np.empty(columns + stays, np.int64)
            column = 0
            for k in range(low, high):
                goal = goals[k]
                if goal == at:
                    continue
                demand[column] = numbers[k]
                to[column] = goal
                for row in range(len(cost)):
                    person = here[order[row]]
                    cost[row, column] = drawn[order[row]]
                    if at == located:
                        cost[row, column] += _way_back(xy, seen[person], goal)
                    elif goal != located:
                        x = 2 * xy[at, 0] - xy[before[person], 0]
                        y = 2 * xy[at, 1] - xy[before[person], 1]
                        cost[row, column] += AHEAD * min(math.hypot(xy[goal, 0] - x, xy[goal, 1] - y), FARTHEST)
                column += 1
            if stays:
                demand[columns] = rows - leaving
                to[columns] = at
            if not crowd:
                row_of, column_of, _sent, _gap = solve_dense(cost, np.ones(rows, np.int64), demand)
                for arc in range(len(row_of)):
                    now[here[order[row_of[arc]]]] = to[column_of[arc]]
            for row in range(rows):
                person = here[order[row]]
                if now[person] != at:
                    moved[movers] = person
                    movers += 1
                    if now[person] == located:
                        seen[person] = at
                    # Who returns goes in no direction yet.
                    before[person] = now[person] if at == located or now[person] == located else at
                    since[person] = times[tick]
            # Take those who left out of the chain; they are put into another when all have left.
            first_of[at] = -1
            for one in range(found - 1, -1, -1):
                person = here[one]
                if now[person] == at:
                    following[person] = first_of[at]
                    first_of[at] = person
            low = high
        for one in range(movers):
            person = moved[one]
            following[person] = first_of[now[person]]
            first_of[now[person]] = person
        tracks[:, tick] = now
    return tracks


@compiled(error_model="numpy")
def _send_crowd(low, high, at, flows, who, origin, xy, now):
    """Send those who leave a place to their destinations, people who came from (or were seen last in) one place together."""
    goals, numbers = flows[2], flows[3]
    places, returns = len(xy), at == len(xy)
    who = who[np.argsort(origin[who], kind="mergesort")]
    left = numbers[low:high].copy()
    sent = np.zeros(len(who), np.bool_)
    for k in range(low, high):
        if goals[k] == at:
            left[k - low] = 0
    if returns:
        # Mostly they return to where they were seen last.
        column_of = np.full(places + 1, -1, np.int64)
        for k in range(low, high):
            column_of[goals[k]] = k - low
        for one in range(len(who)):
            column = column_of[origin[who[one]]] if origin[who[one]] >= 0 else -1
            if column >= 0 and left[column] > 0:
                now[who[one]] = goals[low + column]
                left[column] -= 1
                sent[one] = True
        who = who[~sent]
    columns = np.flatnonzero(left)
    if len(who) == 0:
        return
    starts = np.ones(len(who), np.bool_)
    starts[1:] = origin[who[1:]] != origin[who[:-1]]
    first = np.flatnonzero(starts)
    if returns or len(first) * len(columns) > MOST_PRICES * 50:
        one = 0
        for column in columns:
            for _ in range(left[column]):
                now[who[one]] = goals[low + column]
                one += 1
        return
    cost = np.zeros((len(first), len(columns)))
    for row in range(len(first)):
        came = origin[who[first[row]]]
        for column in range(len(columns)):
            goal = goals[low + columns[column]]
            if goal < places:
                x, y = 2 * xy[at, 0] - xy[came, 0], 2 * xy[at, 1] - xy[came, 1]
                cost[row, column] = AHEAD * min(math.hypot(xy[goal, 0] - x, xy[goal, 1] - y), FARTHEST)
    supply = np.empty(len(first), np.int64)
    supply[:-1] = first[1:] - first[:-1]
    supply[-1] = len(who) - first[-1]
    row_of, column_of, number, _gap = solve_dense(cost, supply, left[columns])
    for arc in range(len(row_of)):
        row = row_of[arc]
        for _ in range(number[arc]):
            now[who[first[row]]] = goals[low + columns[column_of[arc]]]
            first[row] += 1


@compiled()
def _way_back(xy, seen, goal):
    """Price a return: the distance from where the person was seen last, and no more than if that is not known."""
    if seen < 0 or goal >= len(xy):
        return RETURN
    return min(math.hypot(xy[goal, 0] - xy[seen, 0], xy[goal, 1] - xy[seen, 1]), RETURN)
