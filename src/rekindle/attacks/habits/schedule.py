"""The plan: how many answers, how long each is searched for, and how they become one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.alignment import DENSE_UP_TO, align
from rekindle.attacks.habits.block_polish import polish_blocks
from rekindle.attacks.habits.consensus import decode
from rekindle.attacks.habits.doubt import Crowd, Gains, calibrate, track_in_doubt
from rekindle.attacks.habits.flow_polish import flow_sweep_work, polish_flows, project_votes
from rekindle.attacks.habits.flows import track_flows
from rekindle.attacks.habits.polish import fits, polish, sweep_work
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import POWER, SEAM, relink
from rekindle.attacks.habits.rng import generator
from rekindle.attacks.habits.search import REDEAL, HabitModel, SwapSearch
from rekindle.attacks.habits.track import track
from rekindle.attacks.habits.wishes import follow_wishes
from rekindle.attacks.meetings import exchange_towards
from rekindle.attacks.moves import MoveModel


@dataclass(frozen=True)
class Effort:
    """How much is done.

    Attributes
    ----------
    groups, members
        How many groups of answers, and how many answers each. The answers of a group become one better answer, these are
        put together in groups again, and what comes of that becomes the result.
    voters
        How many tracks in doubt say how sure the result is.
    proposals
        Exchanges that each answer tries, per person.
    search_work, polish_work
        At most how much work in all: pieces of paths looked at, and products in the sweeps of the polish. Large problems
        get fewer exchanges and sweeps.
    seconds, growth
        About how long it takes on one ordinary core for 1,000 people and 336 steps, up to `MOST_PEOPLE_AT_ONCE` people, and with
        which power of the people it grows: less where the most work in all is soon reached.
    many_answers, many_voters
        How many answers and voters there are for more people, who are not searched, and polished in blocks.
    many_seconds
        About how long that takes, for 1,000 people and 336 steps.
    """

    groups: int
    members: int
    voters: int
    proposals: int
    search_work: float
    polish_work: float
    seconds: float
    growth: float
    many_answers: int
    many_voters: int
    many_seconds: float


EFFORTS = {
    "low": Effort(1, 4, 6, 30, 5e7, 1e10, 66, 1.4, 2, 4, 5),
    "normal": Effort(6, 4, 18, 440, 9.5e8, 3e11, 400, 1.0, 4, 6, 7.5),
    "high": Effort(16, 4, 36, 440, 5.6e9, 2e12, 2_000, 1.2, 12, 12, 20),
}

MOST_PEOPLE_AT_ONCE = 800
"""Up to so many people all are searched and polished at once; more are not searched (it finds nothing that the links of
everybody's segments have not found), and polished in blocks."""
BLOCK_PEOPLE = 100
BLOCK_ROUNDS = 2
BATCH = 250
CUTS = (1, 2, 4)
"""Into how many segments a day is cut to be linked again: each answer in another way."""
FINE_STEPS = 288
"""Steps a day from which on time counts by its root in whole days too."""
MANY_CUTS = (2, 4)
MANY_ROUNDS = 3
VOTER_ROUNDS = 1
"""The same for many people: each answer in both ways, one after the other, each segment so often, and those of the voters less."""
SHORT = 110
"""Exchanges a person at most where people are away at times, or flows are known: there the search is not longer, nor hot."""
GROUP_PROPOSALS, SECOND = 3, 2
"""Elsewhere, how many times the exchanges of an answer the answer of a group tries; and how many answers are made of the
answers of groups for each of these, in second groups, which overlap."""
GROUP_BINS = 0.4
"""What places by time of day weigh there, beside their weight in the other answers: real people are less punctual than answers."""
HEAT, HOTTEST = 150.0, 8.0
"""The more exchanges there are, the hotter they begin: by 1 for so many per person, up to the hottest."""
FIRST_SWEEPS = 6
FINAL_ROUNDS = 4


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
class Schedule:
    """What to do for one problem.

    Attributes
    ----------
    model
        What is usual for everybody.
    groups
        How many groups of answers become one answer each; at most one: all answers become the result at once.
    members
        Answers in a group.
    second_groups
        How many groups of the answers of groups become one answer each.
    voters
        Tracks in doubt.
    proposals, group_proposals
        Exchanges tried for each answer, and for that of a group.
    link_rounds
        At most how often each segment is linked again.
    block_people
        About how many people are polished at a time; 0 for all at once.
    group_rounds, final_rounds
        Rounds of polish for each group, and in the end. 0: the answers only vote.
    seed
        Of the attack.
    """

    model: HabitModel
    groups: int
    members: int
    second_groups: int
    voters: int
    proposals: int
    group_proposals: int
    link_rounds: int
    block_people: int
    group_rounds: int
    final_rounds: int
    seed: int

    @classmethod
    def of(cls, problem: Problem, effort: str, seed: int, known: MoveModel | None = None) -> Schedule:
        """Learn from the counts how people move, and from what is known of it, and plan accordingly."""
        much = EFFORTS[effort]
        pooled = [_track(problem, _seed(seed, 1000 + turn), backwards=bool(turn)) for turn in range(2)]
        model = HabitModel.learn(problem, pooled, known=known)
        people = problem.people
        if people > MOST_PEOPLE_AT_ONCE:
            return cls(
                model=model,
                groups=0,
                members=much.many_answers,
                second_groups=0,
                voters=much.many_voters,
                proposals=0,
                group_proposals=0,
                link_rounds=MANY_ROUNDS,
                block_people=BLOCK_PEOPLE,
                group_rounds=0,
                final_rounds=BLOCK_ROUNDS,
                seed=seed,
            )
        moves = sum(int((np.diff(each) != 0).sum()) for each in pooled) / 2
        groups = much.groups if much.groups > 1 else 0
        short = problem.away >= 0 or problem.flows is not None
        most, more, second = (SHORT, 1, 0) if short else (much.proposals, GROUP_PROPOSALS, SECOND * groups)
        chains = max(1, groups) * much.members + more * (groups + second)
        each = (1 + REDEAL) * (20 + problem.ticks / 40 + 2 * moves / people)
        work = sweep_work(problem) if problem.flows is None else flow_sweep_work(problem)
        sweeps = much.polish_work / max(1.0, work)
        final_rounds = int(np.clip((sweeps / 2 - FIRST_SWEEPS) / 2 + 1, 0, FINAL_ROUNDS)) if fits(problem) else 0
        group_rounds = int(np.clip((sweeps / 2 / max(1, groups + second) - FIRST_SWEEPS) / 2 + 1, 0, 3))
        proposals = min(min(most, much.proposals) * people, int(much.search_work / chains / each))
        return cls(
            model=model,
            groups=groups,
            members=much.members,
            second_groups=second,
            voters=much.voters,
            proposals=proposals,
            group_proposals=more * proposals,
            link_rounds=int(np.clip(1500 / people, 3, 20)),
            block_people=0,
            group_rounds=min(group_rounds, final_rounds),
            final_rounds=final_rounds,
            seed=seed,
        )

    @property
    def answers(self) -> int:
        """How many answers are found from the counts alone."""
        return max(1, self.groups) * self.members

    @property
    def gathered(self) -> int:
        """How many answers there are, those of the groups included; the voters come after them."""
        return self.answers + self.groups + self.second_groups

    @property
    def parts(self) -> int:
        """How many answers and voters there are."""
        return self.gathered + self.voters

    @property
    def by_level(self) -> list[range]:
        """Numbers of the answers: of those from the counts alone, and of groups and second groups where there are any."""
        numbers = range(self.gathered)
        parts = numbers[: self.answers], numbers[self.answers :][: self.groups], numbers[self.answers + self.groups :]
        return [part for part in parts if part]

    @property
    def stages(self) -> list[range]:
        """The same with the voters, beside the last: what has a number needs only those of earlier stages."""
        *before, last = self.by_level
        return [*before, range(last.start, self.parts)]

    def group(self, number: int) -> list[int]:
        """Numbers of the answers that the answer with that number is made of; none of those that are made of counts alone."""
        if not self.answers <= number < self.gathered:
            return []
        place = number - self.answers
        if place < self.groups:
            return list(range(place * self.members, (place + 1) * self.members))
        return [self.answers + (place + turn) % self.groups for turn in range(self.members)]

    def last(self, answers: Mapping[int, Answer]) -> list[Answer]:
        """Those of the answers that become the result: of the last level of which there are any."""
        found = [[answers[number] for number in level if number in answers] for level in self.by_level]
        return next((some for some in reversed(found) if some), [])


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def follow(problem: Problem, plan: Schedule, number: int, stopped: Callable[[], bool]) -> Answer | None:
    """Find one answer: track, re-link, search. None if it was stopped before there was one."""
    if stopped():
        return None
    seed = _seed(plan.seed, number)
    tracks = _track(problem, seed, backwards=bool(number % 2))
    for cuts in MANY_CUTS if plan.block_people else (CUTS[number % len(CUTS)],):
        if stopped():
            return None
        tracks = _relink(problem, plan, tracks, seed, cuts, stopped)
    return _search(problem, plan, tracks, number, stopped)


def doubt(problem: Problem, plan: Schedule, number: int, stopped: Callable[[], bool]) -> Answer | None:
    """Find one voter. None if it was stopped before there was one."""
    if stopped():
        return None
    seed, backwards, cuts = _seed(plan.seed, number), bool(number % 2), CUTS[number % len(CUTS)]
    many = plan.block_people > 0
    rounds = VOTER_ROUNDS if many else plan.link_rounds
    if problem.flows is not None:
        # Nobody moves unseen; only who leaves is in doubt.
        tracks = track_flows(problem, seed, backwards=backwards, noise=1.0)
        if many:
            tracks = relink(problem, tracks, seed, segments_per_day=cuts, rounds=rounds, quick=True, stop=stopped)
            return Answer(tracks, float("nan"))
        return Answer(_relink(problem, plan, tracks, seed, cuts, stopped), float("nan"))
    tracks = track_in_doubt(
        problem,
        plan.model.moves,
        seed,
        backwards=backwards,
        segments_per_day=cuts,
        rounds=rounds,
        quick=many,
        stop=stopped,
    )
    return Answer(tracks, float("nan"))


def _track(problem: Problem, seed: int, *, backwards: bool = False) -> NDArray[np.int32]:
    """Follow people through the counts, or along the flows."""
    return (track if problem.flows is None else track_flows)(problem, seed, backwards=backwards)


def _relink(
    problem: Problem, plan: Schedule, tracks: NDArray[np.int32], seed: int, cuts: int, stopped: Callable[[], bool]
) -> NDArray[np.int32]:
    """Re-link as if there were no flows, and bring the result back to them; of many people only what all answers make."""
    rounds = plan.link_rounds
    if problem.flows is None:
        # Where people are away at times, or many, neither the root nor the price gained anything.
        power, seam = (_power(problem, cuts), SEAM) if problem.away < 0 and not plan.block_people else (1.0, 0.0)
        return relink(
            problem, tracks, seed, segments_per_day=cuts, rounds=rounds, power=power, seam=seam, stop=stopped
        )
    linked = relink(problem, tracks, seed, segments_per_day=cuts, rounds=rounds, stop=stopped)
    if plan.block_people:
        return linked
    _, same = _aligned(problem, [linked, tracks], 0, rounds=1)
    return exchange_towards(same, linked, problem.lengths)


def find(
    problem: Problem, plan: Schedule, number: int, of: Sequence[Answer], stopped: Callable[[], bool]
) -> Answer | None:
    """Find the answer, or the voter, with a number; of those that it is made of. None if it was stopped before there was one."""
    if number < plan.answers:
        return follow(problem, plan, number, stopped)
    if number < plan.gathered:
        return gather(problem, plan, of, number, stopped)
    return doubt(problem, plan, number, stopped)


def _power(problem: Problem, cuts: int) -> float:
    """By which power the time in a place counts: its root, but for long segments of coarse steps.

    Short visits tell people apart. Where steps are long, a day shows few of them, and its time says more.
    """
    return float(POWER if problem.steps_per_day >= FINE_STEPS else cuts**-POWER)


def gather(
    problem: Problem, plan: Schedule, answers: Sequence[Answer], number: int, stopped: Callable[[], bool]
) -> Answer | None:
    """Make one answer of a group: consensus, polish, search. None if it was stopped before there was one."""
    if stopped():
        return None
    tracks, _ = _agree(problem, plan, answers, plan.group_rounds, stopped)
    return _search(problem, plan, tracks, number, stopped)


def finish(
    problem: Problem, plan: Schedule, answers: dict[int, Answer], stopped: Callable[[], bool], workers: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Make the result of all answers: (people, ticks) int32 places and float32 confidence.

    After a stop some answers are missing; without any, people are only tracked. The blocks of many people are polished by
    so many workers; the result does not depend on it.
    """
    first = [answers[number] for number in range(plan.answers) if number in answers]
    if not first:
        tracks = _track(problem, _seed(plan.seed, 0))
        return tracks, np.full(tracks.shape, 0.5, np.float32)
    tracks, probability = _agree(problem, plan, plan.last(answers), plan.final_rounds, stopped, workers)
    voters = [answers[number] for number in range(plan.gathered, plan.parts) if number in answers]
    if not voters:
        # The answers may agree in the same error, so nothing is claimed.
        return tracks, np.asarray(0.5 * probability, np.float32)
    gains = measure_gains(problem, plan, tracks, first, voters)
    counted = None if problem.away < 0 else tracks != problem.away
    return tracks, calibrate(probability, vote(problem, tracks, voters), problem.lengths, gains, counted)


def measure_gains(
    problem: Problem, plan: Schedule, tracks: NDArray[np.int32], answers: Sequence[Answer], voters: Sequence[Answer]
) -> Gains:
    """Compare the habits of the result with those of the answers from the counts alone, and of the voters."""

    def score(tracks: NDArray[np.int32]) -> float:
        return SwapSearch(problem, plan.model, tracks, generator(plan.seed)).score

    scores = [score(voter.tracks) for voter in voters]
    before = [answer.score for answer in answers]
    # How far many people repeat themselves is seen before they are brought back to their flows.
    crowd = Crowd.of(problem, tracks if problem.flows is None else answers[0].tracks) if plan.block_people else None
    return Gains.of(problem, score(tracks), before, scores, crowd=crowd)


def vote(problem: Problem, tracks: NDArray[np.int32], voters: Sequence[Answer]) -> NDArray[np.float32]:
    """Count the voters that have each person where the result has them: (people, ticks) float32 shares."""
    votes = np.zeros(tracks.shape, np.float32)
    # Many people are compared with one voter at a time, which takes less memory.
    for some in [voters] if len(tracks) <= DENSE_UP_TO else [[voter] for voter in voters]:
        for voter in _aligned(problem, [tracks, *(voter.tracks for voter in some)], 0, rounds=1)[1:]:
            votes += voter == tracks
    return votes / np.float32(len(voters))


def _search(
    problem: Problem, plan: Schedule, tracks: NDArray[np.int32], number: int, stopped: Callable[[], bool]
) -> Answer | None:
    model, proposals = plan.model, plan.proposals
    if number >= plan.answers:
        proposals = plan.group_proposals
    if proposals > plan.proposals:
        model = replace(model, log_bin=GROUP_BINS * model.log_bin)
    chain = SwapSearch(problem, model, tracks, generator(_seed(plan.seed, number), 3))
    hot = min(max(1.0, proposals / problem.people / HEAT), HOTTEST)
    for done in range(0, proposals, BATCH):
        if stopped():
            return None
        batch = min(BATCH, proposals - done)
        chain.run(batch, hot=hot ** (1 - done / proposals), cold=hot ** (1 - (done + batch) / proposals))
    return Answer(chain.tracks, chain.score)


def _agree(
    problem: Problem,
    plan: Schedule,
    answers: Sequence[Answer],
    rounds: int,
    stopped: Callable[[], bool],
    workers: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    best = int(np.argmax([answer.score for answer in answers]))
    if stopped() and plan.block_people:
        tracks = answers[best].tracks
        tracks = tracks if problem.flows is None else follow_wishes(problem, [tracks])
        return tracks, np.full(tracks.shape, 0.5, np.float32)
    aligned = _aligned(problem, [answer.tracks for answer in answers], best)
    if plan.block_people:
        ordered = [
            each.astype(np.int32, copy=False) for each in (aligned[best], *aligned[:best], *aligned[best + 1 :])
        ]
        if problem.flows is not None:
            linked = follow_wishes(problem, ordered, quick=True)
            for cuts in MANY_CUTS:  # paths along the flows have better segments than those that were tracked
                linked = _relink(problem, plan, linked, plan.seed, cuts, stopped)
            ordered = [each.astype(np.int32) for each in _aligned(problem, [linked, *ordered], 0, rounds=1)]
            ordered = [follow_wishes(problem, ordered), *ordered]
        return polish_blocks(
            problem,
            plan.model,
            ordered,
            size=plan.block_people,
            rounds=plan.final_rounds,
            stopped=stopped,
            workers=workers,
        )
    polished = rounds and not stopped()
    if problem.flows is not None:
        if polished:
            return polish_flows(problem, problem.flows, plan.model, aligned, rounds=rounds, stopped=stopped)
        return project_votes(problem, aligned)
    if polished:
        return polish(problem, plan.model, aligned, rounds=rounds, stopped=stopped)
    return decode(problem, aligned)


def _aligned(
    problem: Problem, answers: Sequence[NDArray[np.int32]], reference: int, rounds: int = 6
) -> list[NDArray[np.integer]]:
    return align(answers, reference, lengths=problem.lengths, places=problem.counts.shape[1], rounds=rounds)
