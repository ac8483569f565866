"""The plan: how many answers, how long each is searched for, and how they become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.habits.chance import generator
from rekindle.attacks.habits.consensus import align, decode
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.search import Chain, Model
from rekindle.attacks.habits.track import track
from rekindle.errors import InvalidData

__all__ = ["EFFORTS", "Answer", "Plan", "finish", "follow"]


@dataclass(frozen=True)
class Effort:
    """How much is done.

    Attributes
    ----------
    answers
        How many answers vote.
    proposals
        Exchanges that each answer tries, per person.
    work
        At most how much work in all, in pieces of ways looked at; large problems get fewer exchanges.
    """

    answers: int
    proposals: int
    work: float


EFFORTS = {
    "low": Effort(4, 30, 3e7),
    "normal": Effort(16, 110, 6e8),
    "high": Effort(40, 220, 4e9),
}

MOST_POINTS = 20_000_000
MOST_PEOPLE = 5_000
BATCH = 250
CUTS = (1, 2, 4)


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer.

    Attributes
    ----------
    tracks
        (people, ticks) int32 places.
    score
        Log probability of its habits.
    """

    tracks: NDArray[np.int32]
    score: float


@dataclass(frozen=True, eq=False)
class Plan:
    """What to do for one problem.

    Attributes
    ----------
    model
        What is usual for everybody.
    answers, proposals
        How many answers, and exchanges tried for each.
    rounds
        At most how often each segment is linked anew.
    seed
        Of the attack.
    """

    model: Model
    answers: int
    proposals: int
    rounds: int
    seed: int

    @classmethod
    def of(cls, problem: Problem, effort: str, seed: int) -> Plan:
        """Learn from the counts how people move, and plan accordingly."""
        much = EFFORTS[effort]
        pooled = [track(problem, _seed(seed, 1000 + i), backwards=bool(i % 2)) for i in range(2)]
        moves = sum(int((np.diff(each) != 0).sum()) for each in pooled) / 2
        people = problem.people
        answers = much.answers
        each = 20 + problem.ticks / 8 + 2 * moves / people
        proposals = min(much.proposals * people, int(much.work / answers / each))
        rounds = int(np.clip(3e4 / people, 4, 20))
        return cls(Model.learn(problem, pooled), answers, proposals, rounds, seed)

    @staticmethod
    def check(people: int, steps: int, effort: str) -> None:
        """Refuse what is beyond reach."""
        if people > MOST_PEOPLE or people * steps > MOST_POINTS:
            raise InvalidData(
                f"There are {people:,} people and {steps:,} steps; Habits reaches to {MOST_PEOPLE:,} people and "
                f"{MOST_POINTS:,} points. Use Enhanced, or attack a part of the days."
            )


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def follow(problem: Problem, plan: Plan, number: int, stopped: Callable[[], bool]) -> Answer | None:
    """Find one answer: track, re-link, search. None if it was stopped before there was one."""
    if stopped():
        return None
    seed = _seed(plan.seed, number)
    tracks = track(problem, seed, backwards=bool(number % 2))
    if stopped():
        return None
    tracks = relink(problem, tracks, seed, segments_per_day=CUTS[number % len(CUTS)], rounds=plan.rounds)
    chain = Chain(problem, plan.model, tracks, generator(seed, 3))
    for done in range(0, plan.proposals, BATCH):
        if stopped():
            return None
        chain.run(min(BATCH, plan.proposals - done), 1.0, 1.0)
    return Answer(chain.tracks, chain.score)


def finish(
    problem: Problem, plan: Plan, answers: list[Answer], stopped: Callable[[], bool]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Make one of all answers: (people, ticks) int32 places and float32 confidence. Without answers, only track."""
    if not answers:
        tracks = track(problem, _seed(plan.seed, 0))
        return tracks, np.full(tracks.shape, 0.5, np.float32)
    best = int(np.argmax([answer.score for answer in answers]))
    aligned = align(problem, [answer.tracks for answer in answers], best)
    return decode(problem, aligned)
