"""Who is who: recovered people are given the names of people whose past is known, and their habits with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, hstack, vstack

# As a whole: this module has no kernel, so a change here compiles none again.
from rekindle.assignment import sparse
from rekindle.attacks.habits.block_polish import polish_blocks
from rekindle.attacks.habits.polish import HOURS, Profile, fits, polish
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.search import HabitModel
from rekindle.model import Trajectories

ROUNDS = 3
"""Rounds of polish with everyone's known habits."""
UNSEEN = 0.02
"""Share of the time that somebody with a known past may spend where nobody ever saw them."""


LISTED = 32
CHUNK = 256
GAP = 2e-3
"""Many people: how long the lists are of those whose past fits, how many are scanned at a time, and what a better assignment might
save at most."""


def past_profile(problem: Problem, past: Trajectories, rows: NDArray[np.int64]) -> Profile:
    """The habits of people whose past is known, and none of the others, in the places of a problem.

    Parameters
    ----------
    problem
        The counts.
    past
        Whose past is known.
    rows
        (people,) int64: for each person of the problem, whose past that is; those beyond its people have none.
    """
    people, places = problem.people, problem.counts.shape[1]
    there = np.flatnonzero(rows < past.people)
    cells, hour = _past_places(problem, past, rows[there])
    hours = np.zeros((people, HOURS, places), np.float32)
    person, step = np.nonzero(cells >= 0)
    np.add.at(hours, (there[person], hour[step], cells[person, step]), 1.0)
    person, step = np.nonzero((cells[:, 1:] != cells[:, :-1]) & (cells[:, 1:] >= 0) & (cells[:, :-1] >= 0))
    code = (there[person] * places + cells[person, step]) * places + cells[person, step + 1]
    code, number = np.unique(code.astype(np.int64), return_counts=True)
    person, move = np.divmod(code, places * places)
    left = np.zeros((places, people), np.float32)
    np.add.at(left, (move // places, person), number)
    starts = np.searchsorted(person, np.arange(people + 1)).astype(np.int64)
    return Profile(hours, starts, move // places, move % places, number.astype(np.float32), left)


def _past_places(
    problem: Problem, past: Trajectories, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the past of some people in the places of a problem, -1 elsewhere: (rows, steps) int64; and the hour of each step."""
    place_of = np.full(len(past.locations) + 1, -1, np.int64)  # away is the last, at -1
    place_of[problem.places] = np.arange(len(problem.places))
    calendar = past.calendar
    second = (calendar.times() - calendar.times()[0]).astype("timedelta64[s]").astype(np.int64)
    midnight = calendar.start.replace(hour=0, minute=0, second=0)
    hour = (second + int((calendar.start - midnight).total_seconds())) % 86400 * HOURS // 86400
    return place_of[past.cells[rows]], hour


def put_names(
    problem: Problem,
    model: HabitModel,
    tracks: NDArray[np.int32],
    past: Trajectories,
    stopped: Callable[[], bool] = lambda: False,
    *,
    block_people: int = 0,
    workers: int = 1,
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
    block_people
        About how many people are polished at a time by so many `workers`, where all do not fit into memory at once. People are then
        recognised by lists of those whose past fits best.

    Returns
    -------
    (people, ticks) int32 places.
    """
    everyone = np.arange(problem.people)
    # A block can only use its own counts, and those of people who were taken for others are wrong: at once, as long as it fits.
    in_blocks = block_people > 0 and not fits(problem)
    if in_blocks:
        column = recognise(problem, tracks, past)
    else:
        known = past_profile(problem, past, everyone)
        score = likeness(known.hours[: past.people], Profile.of(problem, [tracks]).hours)
        column = linear_sum_assignment(-score)[1]
    tracks = np.ascontiguousarray(tracks[np.concatenate([column, np.setdiff1d(everyone, column)])])
    if in_blocks:
        return polish_blocks(
            problem,
            model,
            [tracks],
            size=block_people,
            rounds=ROUNDS,
            known=lambda block, rows: past_profile(block, past, rows),
            stopped=stopped,
            workers=workers,
        )[0]
    if not fits(problem) or problem.flows is not None:
        return tracks
    return polish(problem, model, [tracks], rounds=ROUNDS, known=known, stopped=stopped)[0]


def recognise(problem: Problem, tracks: NDArray[np.int32], past: Trajectories) -> NDArray[np.int64]:
    """Find whose past is whose among many people, with nearly the best total likeness: (known,) int64 recovered people."""
    costs = _Unlikeness(problem, tracks, past)
    others = problem.people - past.people
    capacity = np.concatenate([np.ones(past.people, np.int64), np.full(int(others > 0), others)])
    found = sparse.assign_sparse(costs, np.ones(problem.people, np.int64), capacity, gap=GAP, scale=1.0, finest=1e-3)
    order = np.argsort(found.columns, kind="stable")
    return np.asarray(order[: past.people])


class _Unlikeness:
    """Costs of taking a recovered person for one whose past is known, from 0 to 1: see `likeness`, which it is less of.

    Only people who share a place are ever compared; all others are as unlike as can be. The last column is for everyone
    whose past is not known, if there is anybody.
    """

    def __init__(self, problem: Problem, tracks: NDArray[np.int32], past: Trajectories) -> None:
        places = problem.counts.shape[1]
        hour = np.minimum(problem.clock * HOURS / 24, HOURS - 1).astype(np.int64)
        self.today = _by_hour(tracks, hour, problem.lengths, places)
        known = [_by_hour(*_past_places(problem, past, rows), None, places) for rows in _spans(past.people)]
        spent = vstack(known, format="csr")
        unseen = UNSEEN / places
        by_hour = [spent[:, each * places : (each + 1) * places] for each in range(HOURS)]
        overall = _shares(sum(by_hour))
        parts = []
        for each in by_hour:
            share = csr_array(0.5 * _shares(each) + 0.5 * overall)
            share.data = np.log1p(share.data / unseen)
            parts.append(share)
        most = problem.lengths.sum() * np.log1p(1.0 / unseen)
        likeness = hstack(parts, format="csr") / most
        if past.people < problem.people:
            likeness = vstack([likeness, csr_array((1, HOURS * places))], format="csr")
        self.likeness, self.known_at = likeness, csr_array(likeness.T)

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> sparse.Candidates:
        columns = np.full((len(rows), LISTED), -1, np.int32)
        costs = np.full((len(rows), LISTED), np.inf)
        bound = np.empty(len(rows))
        by_price, equal = sparse.cheapest(prices, slack)

        def work(span: slice) -> None:
            like = csr_array(self.today[rows[span]] @ self.known_at)
            found, cost, value = np.empty(len(prices), np.int64), np.empty(len(prices)), np.empty(len(prices))
            met = np.zeros(len(prices), np.bool_)
            for at, row in enumerate(range(span.start, span.stop)):
                entries = slice(like.indptr[at], like.indptr[at + 1])
                known = int(entries.stop - entries.start)
                found[:known], cost[:known] = like.indices[entries], np.maximum(1.0 - like.data[entries], 0.0)
                met[found[:known]] = True
                bound[row] = sparse.shortlist(
                    row, known, found, cost, met, 1.0, prices, by_price, equal, value, columns[row], costs[row]
                )

        sparse.in_threads(work, len(rows), chunk=CHUNK)
        return sparse.Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(np.maximum(1.0 - (self.today[rows] @ self.likeness[columns].T).toarray(), 0.0))


def _spans(people: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(people), max(1, people // 4096))


def _by_hour(
    cells: NDArray[np.integer], hour: NDArray[np.int64], lengths: NDArray[np.int64] | None, places: int
) -> csr_array:
    """Steps that each person spends in each place at each hour: sparse, (people, HOURS x places); nothing where cells are -1."""
    parts = []
    for rows in _spans(len(cells)):
        person, tick = np.nonzero(cells[rows] >= 0)
        at = hour[tick] * places + cells[rows[person], tick]
        steps = np.ones(len(tick)) if lengths is None else lengths[tick].astype(np.float64)
        parts.append(csr_array((steps, (person, at)), shape=(len(rows), HOURS * places)))
    return vstack(parts, format="csr")


def _shares(spent: csr_array) -> csr_array:
    """Divide by the total of each row, where it is not 0."""
    found = csr_array(spent)
    found.data = found.data / np.repeat(np.maximum(found.sum(axis=1), 1.0), np.diff(found.indptr))
    return found


def likeness(known: NDArray[np.float32], today: NDArray[np.float32]) -> NDArray[np.float64]:
    """How well the time of day that recovered people spend in each place fits people's past: (known, recovered) float64."""
    share = known.astype(np.float64)
    overall = share.sum(axis=1, keepdims=True)
    overall = overall / np.maximum(overall.sum(axis=2, keepdims=True), 1.0)
    share = share / np.maximum(share.sum(axis=2, keepdims=True), 1.0)
    places = known.shape[2]
    log = np.log(0.5 * share + 0.5 * overall + UNSEEN / places)
    return np.asarray(np.einsum("khp,rhp->kr", log, today, optimize=True))
