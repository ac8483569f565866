"""A risk is never a bare number: estimates with intervals, beside chance."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

__all__ = ["Estimate", "clearly_above_chance", "estimate", "estimate_advantage", "estimate_exposed"]

DESIGN_EFFECT = 3.0
"""How many times the variance between people, taken as independent, the variance of their mean is."""

CLEARLY = 0.1
"""How much more of a person's time than chance an attack must recover for the person to count as exposed."""

_NO_ROOM = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A mean with the limits of its interval.

    Attributes
    ----------
    value
        The mean.
    low, high
        The limits.
    """

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Value and limits."""
        return asdict(self)


def estimate(table: NDArray[np.float64]) -> Estimate:
    """Estimate a share over people and row orders.

    Parameters
    ----------
    table
        (orders, people) float64 shares from 0 to 1: the value of each person under each row order. NaN: not measured.

    Notes
    -----
    The limits are those of Student's t for the mean over people, with the variance between people taken `DESIGN_EFFECT`
    times, because an attack decides about all people of a release together, and the variance between row orders added.
    One more person with 0 and one with 1 are counted in the variance, so that people who all score the same are no proof
    that others would. One person alone says nothing about others: the limits are then 0 and 1.
    """
    scores = _by_person(table)
    return _limits(scores[~np.isnan(scores)], _order_variance(table), 0.0)


def estimate_advantage(attack: NDArray[np.float64], chance: NDArray[np.float64]) -> Estimate:
    """Estimate the advantage over chance: (attack - chance) / (1 - chance).

    Parameters
    ----------
    attack, chance
        (orders, people) float64 accuracies of the same people; the numbers of orders may differ. NaN: not measured.

    Notes
    -----
    As for `estimate`, with each person's part in the advantage (the ratio to first order) as the score.
    """
    missed, room = 1 - _by_person(attack), 1 - _by_person(chance)
    measured = ~np.isnan(missed + room)
    if not measured.any():
        return Estimate(np.nan, np.nan, np.nan)
    missed, room = missed[measured], room[measured]
    width = float(room.mean())
    if width < _NO_ROOM:
        return Estimate(0.0, 0.0, 0.0)
    ratio = float(missed.mean()) / width
    orders = (_order_variance(attack) + ratio**2 * _order_variance(chance)) / width**2
    return _limits(1 - ratio - (missed - ratio * room) / width, orders, 1 - 1 / width)


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


def _limits(scores: NDArray[np.float64], orders: float, least: float) -> Estimate:
    """Limits from the score of each person, (people,) float64, and the variance of the mean over row orders."""
    people = len(scores)
    if not people:
        return Estimate(np.nan, np.nan, np.nan)
    value = float(scores.mean())
    apart = float(((scores - value) ** 2).sum()) + value**2 + (1 - value) ** 2
    variance = DESIGN_EFFECT * apart / ((people + 1) * people) + orders
    half = float(stdtrit(people - 1, 0.975)) * math.sqrt(variance) if people > 1 else math.inf
    return Estimate(value, min(value, max(value - half, least)), max(value, min(value + half, 1.0)))


def _by_person(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the row orders that each person was measured under, (people,) float64; NaN for none."""
    measured = ~np.isnan(table)
    number = measured.sum(axis=0)
    total = np.where(measured, table, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0))


def _order_variance(table: NDArray[np.float64]) -> float:
    """The variance of the mean over row orders; 0 where there is only one, from which it cannot be told."""
    means = _by_person(table.T)
    means = means[~np.isnan(means)]
    return float(means.var(ddof=1)) / len(means) if len(means) > 1 else 0.0
