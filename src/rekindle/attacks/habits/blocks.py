"""Blocks: people who share places, as a small problem of their own. Rows go in, rows come out.

What takes the square of the people, or more, is done block by block where there are many. A block keeps its own counts (and flows), so
that all of them stay as they are, whatever is done in which order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.flows import TickFlows
from rekindle.attacks.habits.problem import Problem, count
from rekindle.attacks.habits.search import HabitModel

__all__ = ["Block", "group"]


def group(problem: Problem, tracks: NDArray[np.int32], size: int, rank: int) -> list[NDArray[np.int64]]:
    """Sort people into groups whose favourite places are near each other: row numbers of each group.

    Parameters
    ----------
    problem
        The counts.
    tracks
        (people, ticks) int32 places.
    size
        About how many people a group has.
    rank
        0: by the place where each spends most time, then by the second; 1: the other way round.
    """
    favourites = _favourites(tracks, problem.lengths, problem.counts.shape[1])
    along = _curve(problem)[favourites]
    order = np.lexsort((along[:, 1 - rank], along[:, rank]))
    return np.array_split(order, max(1, round(len(order) / size)))


def _curve(problem: Problem) -> NDArray[np.int64]:
    """Number all places along a curve on which places that are near in number are near each other: (places,) int64."""
    low = problem.xy.min(axis=0)
    whole = np.minimum(np.rint(problem.xy - low), 2**20 - 1).astype(np.int64)
    code = np.zeros(len(whole), np.int64)
    x, y = whole.T.copy()
    for bit in range(19, -1, -1):
        side = 1 << bit
        right, up = (x & side) > 0, (y & side) > 0
        code += side * side * ((3 * right) ^ up)
        # Hilbert's curve: the quarters are turned such that each ends where the next begins.
        flip = ~up & right
        x, y = np.where(flip, side - 1 - x, x), np.where(flip, side - 1 - y, y)
        x, y = np.where(up, x, y), np.where(up, y, x)
        x, y = x & (side - 1), y & (side - 1)
    return np.append(code, 2**62) if problem.away >= 0 else code


@compiled()
def _favourites(tracks: NDArray[np.int32], lengths: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """The two places where everyone spends most time: (people, 2) int64; the same twice for who was in one only."""
    found = np.empty((len(tracks), 2), np.int64)
    spent = np.zeros(places, np.int64)
    for person in range(len(tracks)):
        row = tracks[person]
        for tick in range(len(row)):
            spent[row[tick]] += lengths[tick]
        best = second = -1
        for place in row:
            if place in (best, second):
                continue
            if best < 0 or spent[place] > spent[best]:
                best, second = place, best
            elif second < 0 or spent[place] > spent[second]:
                second = place
        found[person, 0], found[person, 1] = best, second if second >= 0 else best
        for place in row:
            spent[place] = 0
    return found


@dataclass(frozen=True, eq=False)
class Block:
    """A part of the people as a problem of its own.

    Attributes
    ----------
    problem
        The counts of these people alone, in the places that they, or those they are taken for elsewhere, visit.
    model
        What is usual, for these places.
    answers
        Their tracks in each answer, each (people, ticks) int32 places of this problem. The counts are those of the first.
    used
        (places,) int64: the places of this problem in the whole one.
    """

    problem: Problem
    model: HabitModel
    answers: list[NDArray[np.int32]]
    used: NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem, model: HabitModel, answers: Sequence[NDArray[np.int32]]) -> Block:
        """Make a block of some people, with the counts, and flows where there are any, of the first of their answers."""
        places = problem.counts.shape[1]
        seen = np.zeros(places, bool)
        for answer in answers:
            seen[answer.ravel()] = True
        used = np.flatnonzero(seen)
        number = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        own = [number[answer] for answer in answers]
        away = problem.away if problem.away >= 0 and seen[problem.away] else -1
        located = used[used != away]
        return cls(
            replace(
                problem,
                counts=count(own[0], len(used)),
                places=problem.places[used],
                xy=problem.xy[located],
                flows=None if problem.flows is None else TickFlows.of_tracks(own[0]),
            ),
            replace(
                model,
                moves=np.ascontiguousarray(model.moves[np.ix_(used, used)]),
                dwells=np.ascontiguousarray(model.dwells[used]),
                away=-1 if away < 0 else len(used) - 1,
            ),
            own,
            used,
        )

    def back(self, tracks: NDArray[np.int32]) -> NDArray[np.int32]:
        """Give tracks of this problem in the places of the whole one."""
        return self.used.astype(np.int32)[tracks]
