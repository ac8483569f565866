"""Polish: everyone as a hidden Markov chain with the habits of the consensus, all coupled so that the counts are met.

The chains are independent but for one weight per place and tick, the same for everybody, chosen such that the expected
number of people is the count: a Schrödinger bridge with many walkers, solved by scaling in sweeps forwards and backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.search import HabitModel
from rekindle.attacks.habits.track import assign

__all__ = ["Profile", "Rates", "fits", "polish", "sweep_work"]

HOURS = 24
MOVE_WEIGHT = 2.0
"""How many moves everybody's moves count for, beside a person's own."""
OBSERVATIONS_PER_DAY = 22.0
"""How many independent looks at a person's place a day is worth."""
MOST_STATES = 80_000_000
GUESSED = np.float32(0.05)
"""What a habit of an answer counts for, beside those that are known."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Rates:
    """How people pass through places: they arrive passing by; some stay.

    Attributes
    ----------
    pass_on
        Chance per step to leave, of someone passing by.
    settle
        Chance per step, of someone passing by who does not leave, to become someone who stays.
    leave
        Chance per step to leave, of someone who stays.
    """

    pass_on: float
    settle: float
    leave: float

    @classmethod
    def learn(cls, dwells: NDArray[np.int64]) -> Rates:
        """Fit two geometric distributions to lengths of stay in steps, by expectation maximisation."""
        if not len(dwells):
            return cls(0.3, 0.3, 0.01)
        length, number = np.unique(dwells, return_counts=True)
        short, long_, share = 1.0 / (1.0 + float(np.median(dwells)) / 2), 1.0 / (1.0 + 4 * float(dwells.mean())), 0.5
        for _ in range(100):
            a = share * short * (1 - short) ** (length - 1.0)
            b = (1 - share) * long_ * (1 - long_) ** (length - 1.0)
            r = a / np.maximum(a + b, 1e-300)
            share = float(np.clip((r * number).sum() / number.sum(), 0.02, 0.98))
            short = float(np.clip((r * number).sum() / max((r * number * length).sum(), 1e-9), 1e-4, 0.98))
            long_ = float(
                np.clip(((1 - r) * number).sum() / max(((1 - r) * number * length).sum(), 1e-9), 1e-6, 0.98)
            )
        # Passing by ends at the rate `short`, either by leaving (share) or by settling.
        return cls(short * share, short * (1 - share) / max(1 - short * share, 1e-9), min(long_, short))


def fits(problem: Problem) -> bool:
    """Whether the states of all chains fit into memory."""
    return int((problem.counts > 0).sum()) * problem.people <= MOST_STATES


def sweep_work(problem: Problem) -> float:
    """How many products one sweep takes."""
    occupied = (problem.counts > 0).sum(axis=1).astype(np.float64)
    return float((occupied[1:] * occupied[:-1]).sum() * problem.people)


@dataclass(frozen=True, eq=False)
class Profile:
    """Everyone's habits, from answers that vote.

    Attributes
    ----------
    hours
        (people, HOURS, places) float32: steps spent.
    starts
        (people + 1,) int64: where the moves of each person begin in the next three.
    origin, goal, often
        (moves,) int64, int64 and float32: from where, to where and how often.
    left
        (places, people) float32: how often each person left each place.
    """

    hours: Floats
    starts: NDArray[np.int64]
    origin: NDArray[np.int64]
    goal: NDArray[np.int64]
    often: Floats
    left: Floats

    @classmethod
    def of(cls, problem: Problem, answers: Sequence[NDArray[np.integer]]) -> Profile:
        people, places = problem.people, problem.counts.shape[1]
        hours = np.zeros((people, HOURS, places), np.float32)
        hour = np.minimum(problem.clock * HOURS / 24, HOURS - 1).astype(np.int64)
        codes = []
        for tracks in answers:
            _spend(tracks, hour, problem.lengths, hours)
            person, tick = np.nonzero(tracks[:, 1:] != tracks[:, :-1])
            codes.append((person * places + tracks[person, tick]) * places + tracks[person, tick + 1])
        hours /= len(answers)
        code, number = np.unique(np.concatenate(codes).astype(np.int64), return_counts=True)
        person, move = np.divmod(code, places * places)
        often = (number / len(answers)).astype(np.float32)
        left = np.zeros((places, people), np.float32)
        np.add.at(left, (move // places, person), often)
        starts = np.searchsorted(person, np.arange(people + 1)).astype(np.int64)
        return cls(hours, starts, move // places, move % places, often, left)

    def with_known(self, known: Profile) -> Profile:
        """Add those from answers to habits that are known, which are worth much more."""
        person = np.concatenate(
            [np.repeat(np.arange(len(each.starts) - 1), np.diff(each.starts)) for each in (self, known)]
        )
        order = np.argsort(person, kind="stable")
        return Profile(
            GUESSED * self.hours + known.hours,
            self.starts + known.starts,
            np.concatenate([self.origin, known.origin])[order],
            np.concatenate([self.goal, known.goal])[order],
            np.concatenate([GUESSED * self.often, known.often])[order],
            GUESSED * self.left + known.left,
        )


def polish(
    problem: Problem,
    model: HabitModel,
    answers: Sequence[NDArray[np.integer]],
    *,
    rounds: int = 4,
    known: Profile | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[NDArray[np.int32], Floats]:
    """Polish a consensus.

    Parameters
    ----------
    problem, model
        The counts, and what is usual for everybody.
    answers
        The aligned answers, each (people, ticks) int32 places.
    rounds
        How often the habits are taken from the chains again.
    known
        Habits that everyone has beside those of the answers.
    stopped
        Asked between rounds whether to end with what is there.

    Returns
    -------
    (people, ticks) int32 places and (people, ticks) float32 probability of each.
    """
    people = problem.people
    given = Profile.of(problem, answers)
    if known is not None:
        given = given.with_known(known)
    rates = learn_rates(problem, answers)
    tick, place = np.nonzero(problem.counts)
    offsets = np.searchsorted(tick, np.arange(problem.ticks + 1)).astype(np.int64)
    place = place.astype(np.int64)
    number = problem.counts[tick, place].astype(np.float32)
    beta = min(1.0, OBSERVATIONS_PER_DAY / problem.steps_per_day)
    forward = np.empty((2, len(place), people), np.float32)
    backward = np.ones((2, len(place), people), np.float32)
    weight = np.ones(len(place), np.float32)
    emission = np.empty((len(place), people), np.float32)
    hour = np.minimum(problem.clock * HOURS / 24, HOURS - 1).astype(np.int64)
    hours = given.hours
    marginal = np.empty((len(place), people), np.float32)
    for turn in range(rounds):
        emit(log_habits(hours), hour, problem.lengths, beta, offsets, place, emission)
        for _ in range(3 if turn == 0 else 1):
            for way in (True, False):
                _sweep(
                    way,
                    problem.lengths.astype(np.float64),
                    offsets,
                    place,
                    number,
                    emission,
                    model.moves.astype(np.float32),
                    (
                        given.starts,
                        given.origin,
                        given.goal,
                        given.often,
                        given.left,
                    ),
                    rates,
                    problem.away,
                    forward,
                    backward,
                    weight,
                )
        _marginals(forward, backward, marginal)
        if stopped():
            break
        now = np.zeros_like(hours)
        expect(marginal, hour, problem.lengths, offsets, place, now)
        hours = 0.5 * given.hours + 0.5 * now
    tracks, probability = _choose(marginal, offsets, place, problem.counts)
    return tracks, probability


def learn_rates(problem: Problem, answers: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """Learn how people pass through places, and how long they are away: (2, 3) float64, the rows are `Rates`."""
    stays = [_dwells(tracks, problem.starts) for tracks in answers]
    length = np.concatenate([length for length, _ in stays])
    stay_away = np.concatenate([place for _, place in stays]) == problem.away
    rates = Rates.learn(length[~stay_away]), Rates.learn(length[stay_away])
    return np.array([(each.pass_on, each.settle, each.leave) for each in rates])


def log_habits(hours: Floats) -> Floats:
    """Log chance of each place by person and hour, smoothed around the clock: (people, HOURS, places) float32."""
    smooth = 0.5 * hours + 0.25 * (np.roll(hours, 1, axis=1) + np.roll(hours, -1, axis=1))
    smooth /= np.maximum(smooth.sum(axis=2, keepdims=True), 1e-9)
    overall = hours.sum(axis=1, keepdims=True)
    everyone = overall.sum(axis=0, keepdims=True)
    overall = overall / np.maximum(overall.sum(axis=2, keepdims=True), 1e-9)
    everyone = everyone / everyone.sum()
    return np.asarray(np.log(0.6 * smooth + 0.39 * overall + 0.01 * everyone + 1e-6), dtype=np.float32)


def _dwells(tracks: NDArray[np.integer], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """Lengths of all stays that have a beginning and an end, in steps, and their places: two (stays,) int64."""
    person, tick = np.nonzero(tracks[:, 1:] != tracks[:, :-1])
    time = starts[tick + 1]
    whole = person[1:] == person[:-1]
    return np.asarray(np.diff(time)[whole]), tracks[person[1:], tick[1:]][whole]


@compiled()
def _spend(tracks, hour, lengths, hours):
    for person in range(len(tracks)):
        for tick in range(len(lengths)):
            hours[person, hour[tick], tracks[person, tick]] += lengths[tick]


@compiled()
def emit(habits, hour, lengths, beta, offsets, place, emission):
    people = len(habits)
    for tick in range(len(hour)):
        for person in range(people):
            most = -np.inf
            for at in range(offsets[tick], offsets[tick + 1]):
                most = max(most, habits[person, hour[tick], place[at]])
            for at in range(offsets[tick], offsets[tick + 1]):
                value = beta * lengths[tick] * (habits[person, hour[tick], place[at]] - most)
                emission[at, person] = np.exp(max(value, -50.0))


@compiled(fastmath=True)
def _sweep(onwards, lengths, offsets, place, number, emission, moves, own, rates, away, forward, backward, weight):
    """Pass messages through all ticks in one direction, and scale the weights of each tick to meet its counts."""
    starts, origin, goal, often, left = own
    ticks, people = len(lengths), forward.shape[2]
    places = len(moves)
    where = np.full(places, -1, np.int64)
    most = 0
    for tick in range(ticks):
        most = max(most, offsets[tick + 1] - offsets[tick])
    flow = np.zeros((most, people), np.float32)
    total = np.empty(people, np.float32)
    product = np.empty((most, people), np.float32)
    for turn in range(ticks):
        tick = turn if onwards else ticks - 1 - turn
        begin, end = offsets[tick], offsets[tick + 1]
        if onwards:
            n = lengths[tick] - 1
            if tick == 0:
                for at in range(begin, end):
                    for person in range(people):
                        forward[0, at, person] = 0.2
                        forward[1, at, person] = 0.8
            else:
                before, until = offsets[tick - 1], offsets[tick]
                forward[:, begin:end] = 0.0
                for at in range(begin, end):
                    where[place[at]] = at
                for was in range(before, until):
                    a = place[was]
                    pass_on, leave, stay_on, rest, change = chances(rates, a == away)
                    for person in range(people):
                        flow[was - before, person] = (
                            pass_on * forward[0, was, person] + leave * forward[1, was, person]
                        ) / (MOVE_WEIGHT + left[a, person])
                    for at in range(begin, end):
                        b = place[at]
                        if b != a:
                            share = MOVE_WEIGHT * moves[a, b]
                            for person in range(people):
                                forward[0, at, person] += share * flow[was - before, person]
                    at = where[a]
                    if at >= 0:
                        for person in range(people):
                            forward[0, at, person] += stay_on * forward[0, was, person]
                            forward[1, at, person] += (
                                rest * forward[1, was, person] + change * forward[0, was, person]
                            )
                # A person's own moves, beside everybody's.
                for at in range(begin, end):
                    where[place[at]] = at
                _own_moves_forward(
                    starts, origin, goal, often, where, begin, end, before, until, place, flow, forward
                )
                for at in range(begin, end):
                    where[place[at]] = -1
            for at in range(begin, end):
                through, still, turned = stay_chances(rates, place[at] == away, n)
                for person in range(people):
                    e = emission[at, person] * weight[at]
                    passing = forward[0, at, person] * e
                    forward[1, at, person] = forward[1, at, person] * e * still + passing * turned
                    forward[0, at, person] = passing * through
        elif tick < ticks - 1:
            after, until = offsets[tick + 1], offsets[tick + 2]
            n = lengths[tick + 1] - 1
            for at in range(begin, end):
                where[place[at]] = at
            for person in range(people):
                total[person] = 0.0
            # What arriving in each place of the next tick is worth, passing by and staying.
            for to in range(after, until):
                through, still, turned = stay_chances(rates, place[to] == away, n)
                for person in range(people):
                    e = emission[to, person] * weight[to]
                    passing = e * (through * backward[0, to, person] + turned * backward[1, to, person])
                    staying = e * still * backward[1, to, person]
                    flow[to - after, person] = passing
                    product[to - after, person] = staying
            for at in range(begin, end):
                a = place[at]
                for person in range(people):
                    backward[0, at, person] = 0.0
                for to in range(after, until):
                    b = place[to]
                    if b != a:
                        share = MOVE_WEIGHT * moves[a, b]
                        for person in range(people):
                            backward[0, at, person] += share * flow[to - after, person]
            _own_moves_backward(starts, origin, goal, often, where, after, until, place, flow, backward)
            for to in range(after, until):
                at = where[place[to]]
                where[place[to]] = -2 - to if at < 0 else at
            for at in range(begin, end):
                a = place[at]
                pass_on, leave, stay_on, rest, change = chances(rates, a == away)
                for person in range(people):
                    value = backward[0, at, person] / (MOVE_WEIGHT + left[a, person])
                    backward[0, at, person] = pass_on * value
                    backward[1, at, person] = leave * value
            for to in range(after, until):
                at = where[place[to]]
                if at >= 0:
                    pass_on, leave, stay_on, rest, change = chances(rates, place[at] == away)
                    for person in range(people):
                        backward[0, at, person] += (
                            stay_on * flow[to - after, person] + change * product[to - after, person]
                        )
                        backward[1, at, person] += rest * product[to - after, person]
            for at in range(begin, end):
                where[place[at]] = -1
            for to in range(after, until):
                where[place[to]] = -1
            for at in range(begin, end):
                for person in range(people):
                    total[person] += backward[0, at, person] + backward[1, at, person]
            for at in range(begin, end):
                for person in range(people):
                    scale = 1.0 / max(total[person], np.float32(1e-30))
                    backward[0, at, person] *= scale
                    backward[1, at, person] *= scale
        # Scale: the expected number of people in each place is its count.
        for at in range(begin, end):
            for person in range(people):
                product[at - begin, person] = (
                    forward[0, at, person] * backward[0, at, person]
                    + forward[1, at, person] * backward[1, at, person]
                    + np.float32(1e-30)
                )
        for _ in range(3):
            for person in range(people):
                total[person] = 0.0
            for at in range(begin, end):
                for person in range(people):
                    total[person] += product[at - begin, person]
            for person in range(people):
                total[person] = 1.0 / total[person]
            for at in range(begin, end):
                expected = np.float32(0.0)
                for person in range(people):
                    product[at - begin, person] *= total[person]
                    expected += product[at - begin, person]
                factor = number[at] / max(expected, np.float32(1e-20))
                weight[at] *= factor
                for person in range(people):
                    product[at - begin, person] *= factor
                    forward[0, at, person] *= factor
                    forward[1, at, person] *= factor
        for person in range(people):
            total[person] = 0.0
        for at in range(begin, end):
            for person in range(people):
                total[person] += forward[0, at, person] + forward[1, at, person]
        for at in range(begin, end):
            for person in range(people):
                scale = 1.0 / max(total[person], np.float32(1e-30))
                forward[0, at, person] *= scale
                forward[1, at, person] *= scale
        highest = np.float32(0.0)
        for at in range(begin, end):
            highest = max(highest, weight[at])
        for at in range(begin, end):
            weight[at] = max(weight[at] / highest, np.float32(1e-20))


@compiled()
def chances(rates, away):
    """Chances per step of people who are away, or elsewhere: to leave when passing by and when staying; to go on so; to settle."""
    pass_on, settle, leave = rates[int(away)]
    return pass_on, leave, (1 - pass_on) * (1 - settle), 1 - leave, (1 - pass_on) * settle


@compiled()
def stay_chances(rates, away, steps):
    """Chances to go on for so many steps: passing by, staying, and settling meanwhile."""
    _, _, stay_on, rest, change = chances(rates, away)
    through, still = stay_on**steps, rest**steps
    apart = abs(rest - stay_on) > 1e-9
    return through, still, change * (still - through) / (rest - stay_on) if apart else change * steps * still


@compiled()
def _own_moves_forward(starts, origin, goal, often, where, begin, end, before, until, place, flow, forward):
    last = np.full(len(where), -1, np.int64)
    for was in range(before, until):
        last[place[was]] = was
    for person in range(len(starts) - 1):
        for pair in range(starts[person], starts[person + 1]):
            was, at = last[origin[pair]], where[goal[pair]]
            if was >= 0 and at >= 0:
                forward[0, at, person] += often[pair] * flow[was - before, person]


@compiled()
def _own_moves_backward(starts, origin, goal, often, where, after, until, place, flow, backward):
    following = np.full(len(where), -1, np.int64)
    for to in range(after, until):
        following[place[to]] = to
    for person in range(len(starts) - 1):
        for pair in range(starts[person], starts[person + 1]):
            at, to = where[origin[pair]], following[goal[pair]]
            if at >= 0 and to >= 0:
                backward[0, at, person] += often[pair] * flow[to - after, person]


@compiled()
def _marginals(forward, backward, marginal):
    for at in range(marginal.shape[0]):
        for person in range(marginal.shape[1]):
            marginal[at, person] = (
                forward[0, at, person] * backward[0, at, person]
                + forward[1, at, person] * backward[1, at, person]
                + np.float32(1e-30)
            )


@compiled()
def expect(marginal, hour, lengths, offsets, place, hours):
    """Normalise the marginals of each person and tick, and add up the time they spend: changes both arrays."""
    people = marginal.shape[1]
    for tick in range(len(hour)):
        for person in range(people):
            total = 0.0
            for at in range(offsets[tick], offsets[tick + 1]):
                total += marginal[at, person]
            for at in range(offsets[tick], offsets[tick + 1]):
                marginal[at, person] /= total
                hours[person, hour[tick], place[at]] += lengths[tick] * marginal[at, person]


@compiled()
def _choose(marginal, offsets, place, counts):
    """Give everyone a place at every tick, at the highest total probability with exact counts."""
    people, ticks = marginal.shape[1], len(counts)
    tracks = np.empty((people, ticks), np.int32)
    sure = np.empty((people, ticks), np.float32)
    seats = np.empty(people, np.int64)
    seat_row = np.empty(people, np.int64)
    cost = np.empty((people, people))
    for tick in range(ticks):
        seat = 0
        for at in range(offsets[tick], offsets[tick + 1]):
            for _ in range(counts[tick, place[at]]):
                seats[seat] = place[at]
                seat_row[seat] = at
                seat += 1
        for person in range(people):
            total = 0.0
            for at in range(offsets[tick], offsets[tick + 1]):
                total += marginal[at, person]
            for seat in range(people):
                cost[person, seat] = -marginal[seat_row[seat], person] / total
        chosen = assign(cost)
        for person in range(people):
            tracks[person, tick] = seats[chosen[person]]
            sure[person, tick] = -cost[person, chosen[person]]
    return tracks, sure
