"""Consensus: several answers, their people matched to one another, vote on where each person was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.track import assign

__all__ = ["decode"]


def decode(problem: Problem, answers: Sequence[NDArray[np.integer]]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Put everyone where most of the aligned answers have them, with exact counts.

    Returns
    -------
    (people, ticks) int32 places, and (people, ticks) float32 share of the answers that agree.
    """
    tracks, share = _decode(np.stack(answers).astype(np.int32), problem.counts)
    return tracks, share


@compiled()
def _decode(answers: NDArray[np.int32], counts: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    members, people, ticks = answers.shape
    places = counts.shape[1]
    tracks = np.empty((people, ticks), np.int32)
    sure = np.ones((people, ticks), np.float32)
    votes = np.zeros((people, places))
    open_rows = np.empty(people, np.int64)
    seats = np.empty(people, np.int64)
    left = np.empty(places, np.int64)
    for tick in range(ticks):
        left[:] = counts[tick]
        size = 0
        for person in range(people):
            place = answers[0, person, tick]
            agree = True
            for member in range(1, members):
                if answers[member, person, tick] != place:
                    agree = False
                    break
            if agree:
                tracks[person, tick] = place
                left[place] -= 1
            else:
                open_rows[size] = person
                size += 1
        if size == 0:
            continue
        seat = 0
        for place in range(places):
            for _ in range(left[place]):
                seats[seat] = place
                seat += 1
        cost = np.empty((size, size))
        for row in range(size):
            person = open_rows[row]
            for member in range(members):
                votes[person, answers[member, person, tick]] += 1.0 / members
            for column in range(size):
                cost[row, column] = -votes[person, seats[column]]
                # Where the votes are even, stay.
                if tick > 0 and seats[column] == tracks[person, tick - 1]:
                    cost[row, column] -= 1e-3
        chosen = assign(cost)
        for row in range(size):
            person = open_rows[row]
            tracks[person, tick] = seats[chosen[row]]
            sure[person, tick] = votes[person, seats[chosen[row]]]
            for member in range(members):
                votes[person, answers[member, person, tick]] = 0.0
    return tracks, sure
