"""Who is who: recovered people are given the names of people whose past is known, and their habits with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.attacks.habits.polish import HOURS, Profile, fits, polish
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.search import HabitModel
from rekindle.model import Trajectories

ROUNDS = 3
"""Rounds of polish with everyone's known habits."""
UNSEEN = 0.02
"""Share of the time that somebody with a known past may spend where nobody ever saw them."""


def past_profile(problem: Problem, past: Trajectories, people: int) -> Profile:
    """The habits of people whose past is known, and none of the others, in the places of a problem."""
    places = problem.counts.shape[1]
    place_of = np.full(len(past.locations) + 1, -1, np.int64)  # away is the last, at -1
    place_of[problem.places] = np.arange(places)
    cells = place_of[past.cells]
    calendar = past.calendar
    second = (calendar.times() - calendar.times()[0]).astype("timedelta64[s]").astype(np.int64)
    midnight = calendar.start.replace(hour=0, minute=0, second=0)
    hour = (second + int((calendar.start - midnight).total_seconds())) % 86400 * HOURS // 86400
    hours = np.zeros((people, HOURS, places), np.float32)
    person, step = np.nonzero(cells >= 0)
    np.add.at(hours, (person, hour[step], cells[person, step]), 1.0)
    person, step = np.nonzero((cells[:, 1:] != cells[:, :-1]) & (cells[:, 1:] >= 0) & (cells[:, :-1] >= 0))
    code = (person * places + cells[person, step]) * places + cells[person, step + 1]
    code, number = np.unique(code.astype(np.int64), return_counts=True)
    person, move = np.divmod(code, places * places)
    left = np.zeros((places, people), np.float32)
    np.add.at(left, (move // places, person), number)
    starts = np.searchsorted(person, np.arange(people + 1)).astype(np.int64)
    return Profile(hours, starts, move // places, move % places, number.astype(np.float32), left)


def put_names(
    problem: Problem,
    model: HabitModel,
    tracks: NDArray[np.int32],
    past: Trajectories,
    stopped: Callable[[], bool] = lambda: False,
) -> NDArray[np.int32]:
    """Order recovered people such that the first ones are those whose past is known, and let their habits count.

    Parameters
    ----------
    problem, model
        The counts, and what is usual for everybody.
    tracks
        (people, ticks) int32 places.
    past
        Whose past is known: at most as many people.
    stopped
        Asked between rounds whether to end with what is there.

    Returns
    -------
    (people, ticks) int32 places.
    """
    known = past_profile(problem, past, problem.people)
    today = Profile.of(problem, [tracks])
    score = likeness(known.hours[: past.people], today.hours)
    row, column = linear_sum_assignment(-score)
    others = np.setdiff1d(np.arange(problem.people), column)
    tracks = np.ascontiguousarray(tracks[np.concatenate([column[np.argsort(row)], others])])
    if not fits(problem) or problem.flows is not None:
        return tracks
    return polish(problem, model, [tracks], rounds=ROUNDS, known=known, stopped=stopped)[0]


def likeness(known: NDArray[np.float32], today: NDArray[np.float32]) -> NDArray[np.float64]:
    """How well the time of day that recovered people spend in each place fits people's past: (known, recovered) float64."""
    share = known.astype(np.float64)
    overall = share.sum(axis=1, keepdims=True)
    overall = overall / np.maximum(overall.sum(axis=2, keepdims=True), 1.0)
    share = share / np.maximum(share.sum(axis=2, keepdims=True), 1.0)
    places = known.shape[2]
    log = np.log(0.5 * share + 0.5 * overall + UNSEEN / places)
    return np.asarray(np.einsum("khp,rhp->kr", log, today, optimize=True))
