"""How many people can be told apart by the few places where they are most often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle.model import Trajectories

__all__ = ["distinct_sets", "top_places", "uniqueness"]

_BLOCK_CELLS = 1 << 24


def top_places(trajectories: Trajectories, k: int) -> NDArray[np.int64]:
    """Find each person's k most frequent places; of places visited equally often, the one listed first counts as more.

    Parameters
    ----------
    trajectories
        The people.
    k
        How many places, at least 1.

    Returns
    -------
    (people, k) int64 location indices, most frequent first; -1 where a person visited fewer places.
    """
    places = len(trajectories.locations)
    kept = min(k, places)
    result = np.full((trajectories.people, k), -1, dtype=np.int64)
    block = max(1, _BLOCK_CELLS // places)
    for begin in range(0, trajectories.people, block):
        cells = trajectories.cells[begin : begin + block].astype(np.int64)
        rows = np.arange(len(cells))[:, None]
        visits = np.bincount((rows * places + cells).ravel(), minlength=len(cells) * places)
        # One number that orders by visits first and then by index, so that ties need no second sort.
        key = visits.reshape(len(cells), places) * places + np.arange(places - 1, -1, -1)
        top = np.argpartition(key, places - kept, axis=1)[:, places - kept :]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(key, top, axis=1), axis=1), axis=1)
        visited = np.take_along_axis(key, top, axis=1) >= places
        result[begin : begin + block, :kept] = np.where(visited, top, -1)
    return result


def _frequency_of_sets(trajectories: Trajectories, k: int) -> NDArray[np.int64]:
    sets = np.sort(top_places(trajectories, k), axis=1)
    return np.asarray(np.unique(sets, axis=0, return_counts=True)[1])


def uniqueness(trajectories: Trajectories, k: int) -> float:
    """Share of people whose set of k most frequent places nobody else has (the paper's top-k uniqueness).

    Parameters
    ----------
    trajectories
        The people, true or rebuilt.
    k
        How many places, at least 1; with 2, about home and work.
    """
    return float((_frequency_of_sets(trajectories, k) == 1).sum() / trajectories.people)


def distinct_sets(trajectories: Trajectories, k: int) -> float:
    """Distinct sets of k most frequent places per person: what the published code calls uniqueness.

    It overstates how many can be told apart: two people who share a set count as half, not as none.

    Parameters
    ----------
    trajectories
        The people, true or rebuilt.
    k
        How many places, at least 1.
    """
    return float(len(_frequency_of_sets(trajectories, k)) / trajectories.people)
