"""How many people can be told apart by the few locations where they are most often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.model import Trajectories

_BLOCK_CELLS = 1 << 24


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
    locations = len(trajectories.locations)
    kept = min(k, locations)
    result = np.full((trajectories.people, k), -1, dtype=np.int64)
    block = max(1, _BLOCK_CELLS // locations)
    for begin in range(0, trajectories.people, block):
        cells = trajectories.cells[begin : begin + block].astype(np.int64)
        rows = np.arange(len(cells))[:, None]
        places = (rows * locations + cells).ravel() if cells.min() >= 0 else (rows * locations + cells)[cells >= 0]
        visits = np.bincount(places, minlength=len(cells) * locations)
        # One number that orders by visits first and then by index, so that ties need no second sort.
        key = visits.reshape(len(cells), locations) * locations + np.arange(locations - 1, -1, -1)
        top = np.argpartition(key, locations - kept, axis=1)[:, locations - kept :]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(key, top, axis=1), axis=1), axis=1)
        visited = np.take_along_axis(key, top, axis=1) >= locations
        result[begin : begin + block, :kept] = np.where(visited, top, -1)
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
        frequency = np.unique(np.sort(top[:, :k], axis=1), axis=0, return_counts=True)[1]
        unique[k], distinct[k] = float((frequency == 1).sum() / people), float(len(frequency) / people)
    return unique, distinct
