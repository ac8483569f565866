"""Reference scores: what anyone could reach without an attack.

A number such as "accuracy .30" means nothing alone. Beside it stand the accuracy of people dealt out at random at every
step (chance), and of people who stay wherever the counts allow it (naive). Both meet the counts exactly.
"""

from __future__ import annotations

import numpy as np

from rekindle.model import Counts, Trajectories

__all__ = ["deal_at_random", "stay_if_possible"]


def deal_at_random(counts: Counts, *, seed: int = 0) -> Trajectories:
    """Chance: at every step, deal the counted people out at random.

    Parameters
    ----------
    counts
        The release.
    seed
        Another seed is another deal.
    """
    rng = np.random.default_rng(seed)
    cells = np.empty((counts.people, counts.steps), dtype=np.int32)
    places = np.arange(len(counts.locations), dtype=np.int32)
    for step, row in enumerate(counts.values):
        cells[:, step] = rng.permutation(np.repeat(places, row))
    return Trajectories(cells, counts.locations, counts.calendar)


def stay_if_possible(counts: Counts, *, seed: int = 0) -> Trajectories:
    """The naive attack: as many as the counts allow stay where they are; the others are dealt out at random.

    Who leaves a place is drawn at random too.

    Parameters
    ----------
    counts
        The release.
    seed
        Another seed is another deal.
    """
    rng = np.random.default_rng(seed)
    cells = np.empty((counts.people, counts.steps), dtype=np.int32)
    places = np.arange(len(counts.locations), dtype=np.int32)
    current = rng.permutation(np.repeat(places, counts.values[0]))
    cells[:, 0] = current
    for step in range(1, counts.steps):
        before, after = counts.values[step - 1].astype(np.int64), counts.values[step].astype(np.int64)
        if (before != after).any():
            listed = rng.permutation(counts.people)
            order = listed[np.argsort(current[listed], kind="stable")]
            position = np.arange(counts.people) - np.repeat(np.cumsum(before) - before, before)
            leaving = order[position >= np.repeat(np.minimum(before, after), before)]
            current = current.copy()
            current[rng.permutation(leaving)] = np.repeat(places, np.maximum(after - before, 0))
        cells[:, step] = current
    return Trajectories(cells, counts.locations, counts.calendar)
