"""Flows within Habits: people are followed along them, and every answer is pulled back to them.

Two people who are in one place at the same time may go on as each other, and no flow changes. Whatever else the parts of the
attack do (re-link, align, polish), the way back to exact flows is through such meetings: between two of them, two people
either keep their ways or exchange them, whichever agrees better with what is wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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

__all__ = ["TickFlows", "project", "pull_back", "track_flows"]

AHEAD = 0.3
FARTHEST = 10.0
"""Weight of the distance between a destination and the point that a person's last move points to, and the most it can be."""
SPARE = 4
"""How many more people than leave a place are considered for leaving it, those that came last."""
RETURN = 2.0
"""Price of a return, at most: the distance from where the person was seen last, in units of the smallest distance."""
MOST_TURNS = 50


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

    def check(self, tracks: NDArray[np.integer]) -> None:
        """Refuse tracks that do not have these flows."""
        tick = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        places = int(tracks.max()) + 1
        key = (tick * places + self.origin) * places + self.goal
        steps = np.arange(1, tracks.shape[1])
        found = (steps * places + tracks[:, :-1].astype(np.int64)) * places + tracks[:, 1:]
        keys, number = np.unique(found, return_counts=True)
        if not np.array_equal(keys, key) or not np.array_equal(number, self.number):
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
            stays = rows > leaving
            cost = np.zeros((rows, columns + stays))
            demand = np.empty(columns + stays, np.int64)
            to = np.empty(columns + stays, np.int64)
            column = 0
            for k in range(low, high):
                goal = goals[k]
                if goal == at:
                    continue
                demand[column] = numbers[k]
                to[column] = goal
                for row in range(rows):
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


@compiled()
def _way_back(xy, seen, goal):
    """Price a return: the distance from where the person was seen last, and no more than if that is not known."""
    if seen < 0 or goal >= len(xy):
        return RETURN
    return min(math.hypot(xy[goal, 0] - xy[seen, 0], xy[goal, 1] - xy[seen, 1]), RETURN)


def pull_back(problem: Problem, tracks: NDArray[np.integer], wanted: NDArray[np.int32]) -> NDArray[np.int32]:
    """Exchange ways at meetings until people are where others want them, as much as can be.

    Parameters
    ----------
    problem
        The flows.
    tracks
        (people, ticks) int32 places, with exact flows, people in the order of those who are wanted.
    wanted
        (people, ticks) int32 places, with exact counts.
    """
    found = np.ascontiguousarray(tracks, dtype=np.int32).copy()
    _pull_back(found, np.ascontiguousarray(wanted, dtype=np.int32), problem.lengths, MOST_TURNS)
    return found


def project(
    problem: Problem, tracks: NDArray[np.integer], marginal: NDArray[np.floating], states: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Exchange ways at meetings until the time that people spend where they are likely to be is as long as can be.

    Parameters
    ----------
    problem
        The flows.
    tracks
        (people, ticks) int32 places, with exact flows.
    marginal
        (states, people) float: how likely each person is to be in the place of each state.
    states
        (ticks, places) int64: the state of each place at each tick, -1 where nobody is.
    """
    found = np.ascontiguousarray(tracks, dtype=np.int32).copy()
    _project(found, marginal, states, problem.lengths, MOST_TURNS)
    return found


@compiled()
def _pull_back(tracks, wanted, lengths, most):
    people, ticks = tracks.shape
    changed = np.zeros(people, np.int64)  # the turn in which the ways of each person changed last
    for turn in range(1, most + 1):
        anything = False
        for p in range(people):
            for q in range(p + 1, people):
                if turn > 1 and changed[p] < turn - 1 and changed[q] < turn - 1:
                    continue
                begin = 0
                gain = 0
                swapped = False
                for tick in range(ticks):
                    a, b = tracks[p, tick], tracks[q, tick]
                    if a != b:
                        better = (wanted[p, tick] == b) + (wanted[q, tick] == a)
                        worse = (wanted[p, tick] == a) + (wanted[q, tick] == b)
                        gain += lengths[tick] * (better - worse)
                    if a == b or tick == ticks - 1:
                        # Between two meetings all or nothing.
                        if gain > 0:
                            for each in range(begin, tick + 1):
                                tracks[p, each], tracks[q, each] = tracks[q, each], tracks[p, each]
                            swapped = True
                        gain = 0
                        begin = tick + 1
                if swapped:
                    changed[p] = changed[q] = turn
                    anything = True
        if not anything:
            break


@compiled()
def _project(tracks, marginal, states, lengths, most):
    people, ticks = tracks.shape
    # What each person's way is worth to everyone: no more than it takes to look it up.
    at = np.empty((people, ticks), np.int64)
    for person in range(people):
        for tick in range(ticks):
            at[person, tick] = states[tick, tracks[person, tick]]
    changed = np.zeros(people, np.int64)
    for turn in range(1, most + 1):
        anything = False
        for p in range(people):
            for q in range(p + 1, people):
                if turn > 1 and changed[p] < turn - 1 and changed[q] < turn - 1:
                    continue
                begin = 0
                gain = 0.0
                swapped = False
                for tick in range(ticks):
                    a, b = at[p, tick], at[q, tick]
                    if a != b:
                        gain += lengths[tick] * (
                            (marginal[b, p] - marginal[a, p]) + (marginal[a, q] - marginal[b, q])
                        )
                    if a == b or tick == ticks - 1:
                        if gain > 1e-6:
                            for each in range(begin, tick + 1):
                                tracks[p, each], tracks[q, each] = tracks[q, each], tracks[p, each]
                                at[p, each], at[q, each] = at[q, each], at[p, each]
                            swapped = True
                        gain = 0.0
                        begin = tick + 1
                if swapped:
                    changed[p] = changed[q] = turn
                    anything = True
        if not anything:
            break
