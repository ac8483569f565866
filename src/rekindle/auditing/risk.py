"""A risk is never a bare number: estimates with intervals, beside chance; and the verdict, with the rule that it follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

DESIGN_EFFECT = 2.0
"""How many independent people it takes to say as much as one does: an attack decides about all people together."""

MOST_PEOPLE = 500
"""How many independent people a release says as much as at most: releases differ however many people they have."""

CLEARLY = 0.1
"""How much more of a person's time than chance an attack must recover for the person to count as exposed."""

_UNSEEN = 0.5
_NO_ROOM = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A mean with the limits of its 95% interval.

    Attributes
    ----------
    value
        The mean.
    low, high
        The limits; see `estimate` for what they are about.
    """

    value: float
    low: float
    high: float


def estimate(table: NDArray[np.float64], points: NDArray[np.integer] | None = None) -> Estimate:
    """Estimate a share over people and row orders.

    Parameters
    ----------
    table
        (orders, people) float64 shares from 0 to 1: the value of each person under each row order. NaN: not measured.
    points
        (people,) how many points each share is of, where it is a share of all points that is meant; people weigh the same
        by default.

    Notes
    -----
    What the limits are about: the mean of the same measure over other releases of the same kind, with other people. They
    are Wilson's limits for a share, with an effective number of people in place of their number: people count
    1 / `DESIGN_EFFECT` each, and for more where their scores differ less than the 0 and 1 of a yes or no do. Half a person
    is counted at the extremes, so that people who all score the same are no proof that others would. Student's t is used
    for few people, and the variances between row orders and between releases (`MOST_PEOPLE`) are added. One person alone
    says nothing about others: the limits are then 0 and 1. How often the limits hold is measured in the guide on
    auditing.

    References
    ----------
    E. B. Wilson. Probable inference, the law of succession, and statistical inference. Journal of the American
    Statistical Association 22, 209-212 (1927).
    E. L. Korn, B. I. Graubard. Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data. Survey Methodology 24, 193-201 (1998): the effective number.
    """
    scores = _by_person(table)
    measured = ~np.isnan(scores)
    scores, weight = scores[measured], _weights(points, measured)
    return _limits(scores, _order_variance(table[:, measured], weight), 0.0, weight)


def estimate_advantage(
    attack: NDArray[np.float64], chance: NDArray[np.float64], points: NDArray[np.integer] | None = None
) -> Estimate:
    """Estimate the advantage over chance: (attack - chance) / (1 - chance).

    Parameters
    ----------
    attack, chance
        (orders, people) float64 accuracies of the same people; the numbers of orders may differ. NaN: not measured.
    points
        As for `estimate`.

    Notes
    -----
    As for `estimate`, with each person's part in the advantage (the ratio to first order) as the score.
    """
    missed, room = 1 - _by_person(attack), 1 - _by_person(chance)
    measured = ~np.isnan(missed + room)
    if not measured.any():
        return Estimate(np.nan, np.nan, np.nan)
    missed, room, weight = missed[measured], room[measured], _weights(points, measured)
    attack, chance = attack[:, measured], chance[:, measured]
    width = _mean(room, weight)
    if width < _NO_ROOM:
        return Estimate(0.0, 0.0, 0.0)
    ratio = _mean(missed, weight) / width
    orders = (_order_variance(attack, weight) + ratio**2 * _order_variance(chance, weight)) / width**2
    return _limits(1 - ratio - (missed - ratio * room) / width, orders, 1 - 1 / width, weight)


def clearly_above_chance(
    attack: NDArray[np.float64], chance: NDArray[np.float64], steps: int | NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Tell for which people an attack clearly beats their own chance score, as means over the row orders.

    Clearly is by more than `CLEARLY`, and by more than three standard deviations of a chance score over the steps.

    Parameters
    ----------
    attack, chance
        (orders, people) float64 accuracies of the same people; the numbers of orders may differ. NaN: not measured.
    steps
        How many steps were counted, of all people or (people,) of each.

    Returns
    -------
    (people,) bool; False for people who were not measured.
    """
    found, guessed = _by_person(attack), _by_person(chance)
    return np.asarray(found - guessed > np.maximum(CLEARLY, 3 * np.sqrt(guessed * (1 - guessed) / steps)))


def estimate_exposed(
    attack: NDArray[np.float64],
    chance: NDArray[np.float64],
    steps: int | NDArray[np.integer],
    above: float = 0.5,
) -> Estimate:
    """Estimate the share of people who are exposed.

    A person is exposed where the attack recovers more than `above` of the person's time, as a mean over the row orders,
    and is `clearly_above_chance`.

    Parameters
    ----------
    attack, chance, steps
        As for `clearly_above_chance`.
    above
        The share of a person's time.

    Notes
    -----
    As for `estimate`. How many people are exposed in this release is no estimate; the limits are about the share in
    other releases of the same kind.
    """
    clearly = clearly_above_chance(attack, chance, steps)
    score = _by_person(attack)
    by_order = np.where(np.isnan(attack), np.nan, (attack > above) & clearly)
    return _limits(((score > above) & clearly)[~np.isnan(score)].astype(np.float64), _order_variance(by_order), 0.0)


def _limits(
    scores: NDArray[np.float64], orders: float, least: float, weight: NDArray[np.float64] | None = None
) -> Estimate:
    """Limits from the score of each person, (people,) float64, and the variance of the mean over row orders.

    The scores have a mean between `least` and 1. With weights there are as many people as Kish's effective number says.
    """
    if not len(scores):
        return Estimate(np.nan, np.nan, np.nan)
    value = _mean(scores, weight)
    people = len(scores) if weight is None else float(weight.sum() ** 2 / (weight**2).sum())
    if people < 2:
        return Estimate(value, min(value, least), max(value, 1.0))
    room = 1 - least
    share = min(max((value - least) / room, 0.0), 1.0)
    most = share * (1 - share)
    apart = people * _mean((scores - value) ** 2, weight) / room**2
    spread = min((apart + _UNSEEN) / (people * most + _UNSEEN), 1.0)
    t_squared = float(stdtrit(people - 1, 0.975)) ** 2
    few = t_squared * DESIGN_EFFECT * spread / people
    middle = (share + few / 2) / (1 + few)
    half = math.sqrt(few * most + few**2 / 4) / (1 + few)
    added = t_squared * (orders + max(value * (1 - value), 0.0) / MOST_PEOPLE)
    low = value - math.hypot(room * (share - middle + half), math.sqrt(added))
    high = value + math.hypot(room * (middle + half - share), math.sqrt(added))
    return Estimate(value, min(value, max(low, least)), max(value, min(high, 1.0)))


def _by_person(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the row orders that each person was measured under, (people,) float64; NaN for none."""
    measured = ~np.isnan(table)
    number = measured.sum(axis=0)
    total = np.where(measured, table, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0))


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64] | None) -> float:
    return float(values.mean() if weight is None else (values * weight).sum() / weight.sum())


def _weights(points: NDArray[np.integer] | None, measured: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """(measured people,) float64 weights; None where all are the same."""
    if points is None or not measured.any() or np.ptp(points[measured]) == 0:
        return None
    return points[measured].astype(np.float64)


def _order_variance(table: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> float:
    """The variance of the mean over row orders; 0 where there is only one, from which it cannot be told."""
    means = _by_person(table.T if weight is None else (table * weight / weight.mean()).T)
    means = means[~np.isnan(means)]
    return float(means.var(ddof=1)) / len(means) if len(means) > 1 else 0.0


LEVELS = ((0.02, "no better than guessing"), (0.10, "low"), (0.30, "moderate"), (0.60, "high"), (1.01, "very high"))
"""From the lowest to the highest, each with the advantage that it lies below."""

CANNOT_TELL, UNKNOWN = "cannot tell", "unknown"

_NAMES = [name for _, name in LEVELS]
_FROM_PEOPLE = ((0.10, "very high"), (0.01, "high"), (0.0, "moderate"))
"""The share of people exposed from which each level holds; moderate holds where anyone is exposed."""

RULE = (
    "Judged by the attacks on the release as given, the references included, in two ways; the higher level holds. By "
    "the mean: the advantage over chance of the strongest attack, (accuracy - chance) / (1 - chance), with its "
    "limits. The level is that of the upper limit: no better than guessing below 2%, low below 10%, moderate below "
    "30%, high below 60%, very high from there on. Where the lower limit lies two or more levels below, the audit "
    "cannot tell. By people, for the attack that exposes most of them: a person is exposed where, as a mean over the "
    "row orders, more than half of their time was recovered and the attack clearly beats that person's own chance "
    "score: by more than 10 percentage points, and by more than three standard deviations of a chance score over the "
    "steps, sqrt(chance (1 - chance) / steps). Moderate where anyone is exposed, high from 1% of the people, very "
    "high from 10%. Where the mean cannot tell, the level by people holds only if it is at least that of the upper "
    "limit. These limits are Rekindle's own, not a law's."
)


@dataclass(frozen=True)
class Verdict:
    """The answer in a word, and how it was reached.

    Attributes
    ----------
    level
        One of `LEVELS`, "cannot tell", or "unknown" without the truth.
    by_mean
        The level by the advantage of the strongest attack, or "cannot tell"; None without the truth.
    by_people
        The level by the people who are exposed; None where nobody is, or without the truth.
    rule
        How the level follows from the numbers.
    """

    level: str
    by_mean: str | None = None
    by_people: str | None = None
    rule: str = field(default=RULE, repr=False)


def judge(advantage: Estimate | None, exposed: int = 0, people: int = 1) -> Verdict:
    """Judge a release.

    Parameters
    ----------
    advantage
        That of the strongest attack; None where the truth is not known.
    exposed, people
        How many people are exposed, and how many there are.
    """
    if advantage is None:
        return Verdict(
            UNKNOWN, rule="Without the truth nobody can say how much of a recovery is right, so there is no verdict."
        )
    mean, persons = by_mean(advantage), by_people(exposed, people)
    if persons is not None and _NAMES.index(persons) >= _rank(advantage.high):
        return Verdict(persons, mean, persons)
    return Verdict(mean, mean, persons)


def by_mean(advantage: Estimate) -> str:
    """The level of the upper limit; "cannot tell" where the limits lie two or more levels apart."""
    low, high = _rank(advantage.low), _rank(advantage.high)
    return CANNOT_TELL if high - low > 1 else _NAMES[high]


def by_people(exposed: int, people: int) -> str | None:
    """The level by the people who are exposed; None where nobody is."""
    return next(level for least, level in _FROM_PEOPLE if exposed >= least * people) if exposed else None


def _rank(advantage: float) -> int:
    return sum(advantage >= below for below, _ in LEVELS)
