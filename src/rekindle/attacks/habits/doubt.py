"""Doubt: voters that share as few assumptions with the answers as possible, to tell what the counts decided.

All answers take it that the last to arrive is the first to leave, and that nobody moved whom the counts do not show moving. Where that
is wrong they agree in the same error. A voter draws at random who leaves, with a chance that falls with the stay, and lets
people change places unseen as often as the counts say that they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import relink, spend
from rekindle.attacks.habits.rng import generator, uniform
from rekindle.attacks.habits.track import track

__all__ = [
    "SECOND_DAY",
    "Crowd",
    "Gains",
    "calibrate",
    "exchange_unseen",
    "hidden_rates",
    "repeated",
    "seen_share",
    "terms",
    "track_in_doubt",
]

# How the log odds that a point is right follow from what the polish, the voters and the scores say; see `terms`. Fitted by
# logistic regression of right points on 48 recoveries of GeoLife and synthetic cities with and without routine, and confirmed
# on others. `python -m benchmarks.calibration` repeats it; the table is in docs/concepts/habits-experiments.md.
WEIGHTS = {
    "constant": -2.56,
    "probability": 0.45,
    "votes": 0.19,
    "all votes": 1.44,
    "votes together": 0.36,
    "gain": 0.40,
    "relative gain": -0.90,
    "one day": -0.4,  # not fitted: lowered on purpose, because nothing is repeated within a day
    "away": 2.95,  # fitted with the others as they are, where people are away for more than a quarter of the time
}
# The same for many people, whose answers are not searched: voters agree as much where people have no habits, so that the level
# follows from how far people repeat themselves; see `Crowd`. Fitted on 19 cities by `python -m benchmarks.calibration --many`.
WEIGHTS_OF_MANY = {
    "constant": -4.67,
    "probability": 0.48,
    "votes": 0.295,
    "repeated": 2.7,
    "together": -1.67,
    "people": 0.37,
    "days": -0.89,
    "one day": -0.4,
    "flows": 1.3,  # fitted on two cities, with the others as they are: voters are not brought back to the flows, so they agree less
}
# The same for flows of up to that many: people do not move unseen, so that voters agree for better reasons, and the gains say
# nothing more. Fitted on 36 recoveries of GeoLife 36, Cabspotting and a city; the others of `benchmarks.flows` confirmed it.
WEIGHTS_OF_FLOWS = {
    "constant": -1.37,
    "probability": 0.40,
    "votes": 0.28,
    "all votes": 0.99,
    "votes together": 0.22,
    "one day": -0.4,
}
LEAST_ALL_VOTES = 0.2
"""Log odds of the mean vote below which it says no more: there is no telling bad from worse."""
LEAST_TO_GAIN = 1 / 3
"""Mean vote below which nothing counts as gained: of taxis, whose habits are made up, the consensus gains by chance."""
GAINS = (0.0, 6.0)
RELATIVE_GAINS = (-0.4, 2.0)
AWAY = (0.25, 0.6)
REPEATED = (2.7, 4.8)
TOGETHER = (15, 75)
PEOPLE = (900, 100_000)
DAYS = (2, 14)
"""Between which gains, shares of the time away and, for many people, log odds of their likeness, people in a location, people and
days the fit was made: nothing is concluded from what lies beyond. Of people, it was made up to 10,000 and holds for 100,000."""
ROWS = 4096
"""How many people are looked at at a time: all their terms would take more memory than all answers."""
SECOND_DAY = 1.5
"""Days from which on people can be seen to repeat themselves."""


@dataclass(frozen=True)
class Crowd:
    """What tells many people with habits from many without: those with habits are alike on all days.

    They are also more alike, for no better reason, where more people share a location, in smaller cities and over more days.

    Attributes
    ----------
    people
        How many there are.
    together
        How many of them are in a location that is not empty, in the mean.
    repeated
        Likeness of the time that the result has a person in each location on even and on odd days, in the mean.
    """

    people: int
    together: float
    repeated: float

    @classmethod
    def of(cls, problem: Problem, tracks: NDArray[np.int32]) -> Crowd:
        """Look at the result."""
        together = problem.people / float((problem.counts > 0).sum(axis=1).mean())
        return cls(problem.people, together, repeated(problem, tracks))

    def terms(self, days: float) -> dict[str, NDArray[np.float64]]:
        """What the log odds of all points have in common."""
        return {
            "repeated": np.clip(_log_odds(self.repeated, 0.002), *REPEATED),
            "together": np.log(np.clip(np.array(self.together), *TOGETHER)),
            "people": np.log(np.clip(np.array(self.people), *PEOPLE) / 1000),
            "days": np.log(np.clip(np.array(days), *DAYS)),
        }


def repeated(problem: Problem, tracks: NDArray[np.int32]) -> float:
    """Mean likeness of everyone's time in each place on even and on odd days, from 0 to 1; 0 where there is one day alone."""
    odd = problem.starts[:-1] // problem.steps_per_day % 2 == 1
    if odd.all() or not odd.any():
        return 0.0
    halves = []
    for days in (~odd, odd):
        begin, place, steps = spend(
            np.ascontiguousarray(tracks[:, days]), problem.lengths[days], len(problem.counts.T)
        )
        row = np.repeat(np.arange(len(tracks)), np.diff(begin))
        halves.append((row * len(problem.counts.T) + place, steps / problem.lengths[days].sum()))
    (one, a), (other, b) = halves
    _, at, there = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    a, b = a[at], b[there]
    like = 0.5 * ((a + b) * np.log2(a + b) - a * np.log2(a) - b * np.log2(b))
    return float(like.sum() / len(tracks))


@dataclass(frozen=True)
class Gains:
    """How much better the result is than the answers it is made of, by the log probability of its habits.

    Where people have habits, the consensus of many answers finds more of them than any one answer does. Where they have none,
    answers agree because they make up the same habits, and the consensus gains nothing.

    Attributes
    ----------
    days
        How many days there are.
    each
        Score of the result minus the mean score of the answers, per person and day.
    relative
        The same as a share of what the answers gain over the voters.
    crowd
        What is known of many people instead; None for few.
    of_flows
        Whether they are answers from flows.
    """

    days: float
    each: float
    relative: float
    crowd: Crowd | None = None
    of_flows: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        result: float,
        answers: Sequence[float],
        voters: Sequence[float],
        *,
        crowd: Crowd | None = None,
    ) -> Gains:
        """Compare scores."""
        days = float(problem.starts[-1] / problem.steps_per_day)
        mean = float(np.mean(answers))
        gain = result - mean
        relative = gain / max(mean - float(np.mean(voters)), 1.0)
        return cls(days, gain / (problem.people * days), relative, crowd, problem.flows is not None)


def calibrate(
    probability: NDArray[np.floating],
    votes: NDArray[np.floating],
    lengths: NDArray[np.int64],
    gains: Gains,
    counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float32]:
    """Turn what is known of each point into the chance that it is right: (people, ticks) float32; see `terms`."""
    weights = WEIGHTS_OF_MANY if gains.crowd else WEIGHTS_OF_FLOWS if gains.of_flows else WEIGHTS
    everyone = _everyone(votes, lengths, counted)
    chances = np.empty(probability.shape, np.float32)
    for begin in range(0, len(chances), ROWS):
        rows = slice(begin, begin + ROWS)
        found = _terms(probability[rows], votes[rows], *everyone, gains)
        chances[rows] = 1 / (1 + np.exp(-sum(weight * found[name] for name, weight in weights.items())))
    return chances


def terms(
    probability: NDArray[np.floating],
    votes: NDArray[np.floating],
    lengths: NDArray[np.int64],
    gains: Gains,
    counted: NDArray[np.bool_] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Give what the log odds of each point are the weighted sum of: by name, (people, ticks) float64 or one number.

    How far the voters agree on all people tells most: where people have no habits, voters agree on single points by accident.
    Where people are away for most of the time, voters differ in when, and agree on less than is right.

    Parameters
    ----------
    probability
        (people, ticks) float: probability that the polish gives the point.
    votes
        (people, ticks) float: share of the voters that have the person there.
    lengths
        (ticks,) int64: how much each tick counts.
    gains
        How much better the result is than the answers.
    counted
        (people, ticks) bool: the points at which a person is not away, those that voters agree on; None for all.
    """
    return _terms(probability, votes, *_everyone(votes, lengths, counted), gains)


def _everyone(
    votes: NDArray[np.floating], lengths: NDArray[np.int64], counted: NDArray[np.bool_] | None
) -> tuple[float, float]:
    """How far the voters agree on all people, and the share of the time that these are away."""
    if counted is None:
        return float(np.average(votes.mean(axis=0), weights=lengths)), 0.0
    away = 1 - np.average(counted.mean(axis=0), weights=lengths)
    return float(np.average(votes, weights=counted * lengths)), float(away)


def _terms(
    probability: NDArray[np.floating], votes: NDArray[np.floating], mean: float, away: float, gains: Gains
) -> dict[str, NDArray[np.float64]]:
    overall = np.maximum(_log_odds(mean, 0.02), LEAST_ALL_VOTES)
    point = _log_odds(votes, 0.05)
    return {
        "constant": np.ones(()),
        "probability": _log_odds(probability, 0.02),
        "votes": point,
        "all votes": overall,
        "votes together": point * overall,
        "gain": np.clip(np.array(gains.each if mean >= LEAST_TO_GAIN else 0.0), *GAINS),
        "relative gain": np.clip(np.array(gains.relative), *RELATIVE_GAINS),
        "one day": np.array(float(gains.days < SECOND_DAY)),
        "away": np.clip(np.array(away), *AWAY) - AWAY[0],
        "flows": np.array(float(gains.of_flows)),
        **(gains.crowd.terms(gains.days) if gains.crowd else {}),
    }


def _log_odds(share: NDArray[np.floating] | float, margin: float) -> NDArray[np.float64]:
    """Log odds of shares that are moved away from 0 and 1 by a margin."""
    inside = margin + (1 - 2 * margin) * np.asarray(share, np.float64)
    return np.log(inside / (1 - inside))


def hidden_rates(problem: Problem) -> NDArray[np.float64]:
    """Estimate how often people leave each place unseen, because others come at the same moment.

    Where people come and go independently of each other, the mean square of a change of a count is the mean number of
    people who came or left, while its absolute value is the least number that can have. The difference was not seen.

    Returns
    -------
    (places,) float64: chance per person and tick.
    """
    change = _changes(problem)
    unseen = (_moves(problem, change) - change).sum(axis=0) / 2
    return np.asarray(unseen / np.maximum(problem.counts.sum(axis=0), 1))


def seen_share(problem: Problem) -> float:
    """Estimate which share of all moves the counts show, from 0 to 1; see `hidden_rates`."""
    change = _changes(problem)
    return float(change.sum() / max(_moves(problem, change).sum(), 1)) if change.any() else 1.0


def _changes(problem: Problem) -> NDArray[np.int64]:
    """How much each count changes: (ticks - 1, places) int64."""
    return np.abs(np.diff(problem.counts, axis=0))


def _moves(problem: Problem, change: NDArray[np.int64]) -> NDArray[np.int64]:
    """Estimate how many people come to and leave each place, by its changes: (ticks - 1, places) int64.

    People do not go away independently of each other (phones are off at night), but no more of them do than come and go
    elsewhere.
    """
    moves = change**2
    if problem.away >= 0:
        elsewhere = change[:, : problem.away].sum(axis=1)
        moves[:, problem.away] = np.minimum(moves[:, problem.away], elsewhere)
    return np.asarray(moves)


def track_in_doubt(
    problem: Problem,
    moves: NDArray[np.float64],
    seed: int,
    *,
    backwards: bool,
    segments_per_day: int,
    rounds: int,
    quick: bool = False,
    stop: Callable[[], bool] | None = None,
) -> NDArray[np.int32]:
    """Track, exchange unseen and re-link: (people, ticks) int32 places.

    Parameters
    ----------
    problem
        The counts.
    moves
        (places, places) float64: share of the moves from a place that lead to another.
    seed
        Of all that is drawn.
    backwards, segments_per_day, rounds, quick, stop
        As in `track` and `relink`.
    """
    # With noise 1 the chance to leave is inverse to the stay so far.
    tracks = track(problem, seed, backwards=backwards, noise=1.0)
    tracks = exchange_unseen(tracks, hidden_rates(problem), moves, generator(seed, 4))
    return relink(problem, tracks, seed, segments_per_day=segments_per_day, rounds=rounds, quick=quick, stop=stop)


@compiled()
def exchange_unseen(
    tracks: NDArray[np.int32], rates: NDArray[np.float64], moves: NDArray[np.float64], random: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Let two people in different places go on as each other, at rates by place: (people, ticks) int32 places."""
    people, ticks = tracks.shape
    places = len(rates)
    row = np.arange(people)
    changed = np.empty_like(tracks)
    weight = np.empty(places)
    begin = np.zeros(places + 1, np.int64)
    there = np.empty(people, np.int64)  # who is in each place, from begin[place] on
    position = np.empty(people, np.int64)
    changed[:, 0] = tracks[:, 0]
    for tick in range(1, ticks):
        begin[:] = 0
        for person in range(people):
            begin[tracks[person, tick] + 1] += 1
        for place in range(places):
            begin[place + 1] += begin[place]
        filled = begin[:-1].copy()
        for person in range(people):
            place = tracks[row[person], tick]
            position[person] = filled[place]
            there[filled[place]] = person
            filled[place] += 1
        for person in range(people):
            here = tracks[row[person], tick]
            # Each exchange is a move of two.
            if uniform(random) >= 0.5 * rates[here]:
                continue
            total = 0.0
            for place in range(places):
                weight[place] = moves[here, place] * rates[place] if place != here else 0.0
                total += weight[place] * (begin[place + 1] - begin[place])
            left = uniform(random) * total
            for place in range(places):
                crowd = begin[place + 1] - begin[place]
                if left < weight[place] * crowd:
                    other = there[begin[place] + min(int(left / weight[place]), crowd - 1)]
                    row[person], row[other] = row[other], row[person]
                    there[position[person]], there[position[other]] = other, person
                    position[person], position[other] = position[other], position[person]
                    break
                left -= weight[place] * crowd
        for person in range(people):
            changed[person, tick] = tracks[row[person], tick]
    return changed
