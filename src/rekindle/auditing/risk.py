"""A risk is never a bare number: estimates with intervals, beside chance."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

__all__ = ["Estimate", "estimate", "estimate_advantage", "estimate_exposed", "exposed"]

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
    kept = table[:, ~np.isnan(table).any(axis=0)]
    if not kept.size:
        return Estimate(np.nan, np.nan, np.nan)
    return _limits(float(kept.mean()), kept.mean(axis=0), _order_variance(kept), 0.0)


def estimate_advantage(attack: NDArray[np.float64], chance: NDArray[np.float64]) -> Estimate:
    """Estimate the advantage over chance: (attack - chance) / (1 - chance).

    Parameters
    ----------
    attack, chance
        (orders, people) float64 accuracies of the same people; the numbers of orders may differ.

    Notes
    -----
    As for `estimate`, with each person's share in the advantage (the ratio to first order) as the score.
    """
    found, guessed = float(attack.mean()), float(chance.mean())
    room = 1 - guessed
    if room < _NO_ROOM:
        return Estimate(0.0, 0.0, 0.0)
    by_chance = (1 - found) / room
    scores = (attack.mean(axis=0) - found - by_chance * (chance.mean(axis=0) - guessed)) / room
    orders = (_order_variance(attack) + by_chance**2 * _order_variance(chance)) / room**2
    value = (found - guessed) / room
    return _limits(value, value + scores, orders, -guessed / room)


def exposed(attack: NDArray[np.float64], chance: NDArray[np.float64], above: float = 0.5) -> NDArray[np.bool_]:
    """Tell who is exposed under each row order.

    A person is exposed where the attack recovers more than `above` of the person's time, and at least `CLEARLY` more
    than chance does in any row order.

    Parameters
    ----------
    attack, chance
        (orders, people) float64 accuracies of the same people; the numbers of orders may differ.
    above
        The share of a person's time.

    Returns
    -------
    (orders of the attack, people) bool.
    """
    return (attack > above) & (attack >= chance.max(axis=0) + CLEARLY)


def estimate_exposed(attack: NDArray[np.float64], chance: NDArray[np.float64], above: float = 0.5) -> Estimate:
    """Estimate the share of people who are exposed, as a mean over the row orders.

    Parameters
    ----------
    attack, chance, above
        As for `exposed`.
    """
    return estimate(exposed(attack, chance, above).astype(np.float64))


def _limits(value: float, scores: NDArray[np.float64], orders: float, least: float) -> Estimate:
    """Limits from the score of each person, (people,) float64, and the variance of the mean over row orders."""
    people = len(scores)
    if people < 2:
        return Estimate(value, least, 1.0)
    apart = float(((scores - value) ** 2).sum()) + value**2 + (1 - value) ** 2
    variance = DESIGN_EFFECT * apart / ((people + 1) * people) + orders
    half = float(stdtrit(people - 1, 0.975)) * math.sqrt(variance)
    return Estimate(value, max(value - half, least), min(value + half, 1.0))


def _order_variance(table: NDArray[np.float64]) -> float:
    """The variance of the mean over row orders; 0 where there is only one, from which it cannot be told."""
    return float(table.mean(axis=1).var(ddof=1)) / len(table) if len(table) > 1 else 0.0
