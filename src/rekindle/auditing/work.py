"""How long the tasks of an audit take: seconds of an ordinary core, by the size of the data alone.

Rough, and meant to be: they say what fits and how much is left, and nothing else depends on them. They were measured on
synthetic cities of 100 to 10,000 people in steps of 30 minutes.
"""

from __future__ import annotations

import time

import numpy as np

from rekindle.attacks import Attack, Habits
from rekindle.membership.infer import Method
from rekindle.model import Calendar, Counts, Locations


def attacking(attack: Attack | None, counts: Counts, *, compared: bool) -> float:
    """To attack counts (None: what was recovered is known), and to compare with the truth.

    That is to match people, and to look up a number of them among all.
    """
    attacked = 0.0 if attack is None else attack.work(counts)
    if not compared:
        return attacked + 0.05
    looked_up = min(counts.people, 1000) / 100 * (counts.people / 100) ** 0.5 * counts.steps / 336
    return attacked + matching(counts) + 0.05 * float(looked_up)


def matching(counts: Counts) -> float:
    """To match the people of two recoveries: all pairs up to a size, lists of the nearest beyond."""
    people = counts.people
    pairs = 3.5 * (people / 2000) ** 2 if people <= 3000 else 4 * (people / 10_000) ** 1.6
    return float(0.02 + pairs * (counts.steps / 336) ** 0.5)


def evaluating(counts: Counts, *, references: int) -> float:
    """To compare a recovery with the truth, and beside it so many others by chance."""
    return attacking(None, counts, compared=True) + references * matching(counts)


def membership(counts: Counts, method: Method) -> float:
    """To test who is in a release."""
    return 0.1 + 5e-5 * counts.values.size * (1 if method == "exact" else 20)


def measure_slowness(seconds: float = 0.5) -> float:
    """Time a small attack on this machine, as it is now: how many seconds it takes for one of an ordinary core.

    The kernels must be compiled.

    Parameters
    ----------
    seconds
        How long it is repeated.
    """
    counts = _small_counts()
    attack = Habits(effort="low", workers=1)
    attack.recover(counts)  # loads the kernels
    begin, times = time.perf_counter(), 0
    while not times or time.perf_counter() - begin < seconds:
        attack.recover(counts)
        times += 1
    return (time.perf_counter() - begin) / times / _ORDINARY


_ORDINARY = 0.078
"""Seconds that the small attack takes on an ordinary core: that of the machine on which the works above were measured."""


def _small_counts() -> Counts:
    """Two days of people who go to work and home again."""
    rng = np.random.default_rng(0)
    people, steps = 60, 96
    locations = Locations(np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2))
    home, office = rng.integers(0, 36, (2, people))
    leave, back = rng.integers(12, 20, people), rng.integers(32, 42, people)
    hour = np.arange(steps)[:, None] % 48
    cells = np.where((hour >= leave) & (hour < back), office, home)
    values = np.stack([np.bincount(row, minlength=36) for row in cells])
    return Counts(values, locations, Calendar("2024-01-01", "30min"))
