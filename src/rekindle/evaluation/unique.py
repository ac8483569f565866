"""How many people can be told apart by the few locations where they are most often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.evaluation.mapping import parts
from rekindle.model import Trajectories


def top_locations(trajectories: Trajectories, k: int) -> NDArray[np.int64]:
    """Find each person's k most frequent locations; of those visited equally often, the one listed first counts as more.

    Parameters
    ----------
    trajectories
        The people.
    k
        How many locations, at least 1.

    Returns
    -------
    (people, k) int64 location indices, most frequent first; -1 where a person was counted in fewer locations.
    """
    checks.whole("k", k, least=1)
    locations, steps = len(trajectories.locations), trajectories.steps
    result = np.full((trajectories.people, k), -1, dtype=np.int64)
    for part in parts(trajectories.people, steps):
        cells = np.sort(trajectories.cells[part], axis=1)
        first = cells >= 0
        first[:, 1:] &= cells[:, 1:] != cells[:, :-1]
        at = np.flatnonzero(first)
        person = at // max(steps, 1)
        visits = np.minimum(np.append(at[1:], cells.size), (person + 1) * steps) - at
        # One number that orders by person, then from most visits to fewest, then by index.
        key = np.sort((person * (steps + 1) + steps - visits) * locations + cells.ravel()[at])
        person = key // ((steps + 1) * locations)
        rank = np.arange(len(key)) - np.searchsorted(person, person)
        kept = rank < k
        result[part.start + person[kept], rank[kept]] = key[kept] % locations
    return result


def uniqueness_by_k(trajectories: Trajectories, most: int = 5) -> dict[int, float]:
    """Share of people whose set of k most frequent locations nobody else has (the paper's top-k uniqueness).

    Steps at which people are away do not count, and people who are never counted are left out.

    Parameters
    ----------
    trajectories
        The people, true or recovered.
    most
        The largest k; with k = 2, the set is about home and work.

    Returns
    -------
    The share for each k = 1, 2, ..., `most`.
    """
    return count_sets(trajectories, most)[0]


def count_sets(trajectories: Trajectories, most: int = 5) -> tuple[dict[int, float], dict[int, float]]:
    """Count the sets of k most frequent locations, for each k = 1, 2, ..., `most`, in one pass over the trajectories.

    People who are never counted are left out.

    Parameters
    ----------
    trajectories
        The people, true or recovered.
    most
        The largest k.

    Returns
    -------
    The uniqueness for each k, and the distinct sets per person for each k: what the published code calls uniqueness. The
    latter overstates how many can be told apart: two people who share a set count as half, not as none.
    """
    top = top_locations(trajectories, most)
    top = top[top[:, 0] >= 0]
    people = max(len(top), 1)
    unique, distinct = {}, {}
    for k in range(1, most + 1):
        sets = np.sort(top[:, :k], axis=1)
        sets = sets[np.lexsort(sets.T)]
        new = np.ones(len(sets), bool)
        new[1:] = (sets[1:] != sets[:-1]).any(axis=1)
        frequency = np.diff(np.append(np.flatnonzero(new), len(sets)))
        unique[k], distinct[k] = float((frequency == 1).sum() / people), float(len(frequency) / people)
    return unique, distinct
