"""Naive: people stay where they are as far as the counts allow. Every result stands beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.chance import Chance, ChanceRun
from rekindle.model import Calendar, Locations
from rekindle.progress import Progress

__all__ = ["Naive", "NaiveRun"]


@dataclass(frozen=True, kw_only=True)
class Naive(Chance):
    """Let as many people stay as the counts allow, and place the others at random.

    Who leaves a location is drawn at random too.

    Parameters
    ----------
    seed
        A whole number of at least 0; another seed is another guess.
    """

    def start(
        self, locations: Locations, calendar: Calendar, *, people: int, progress: Progress | None = None
    ) -> NaiveRun:
        """Begin an online run."""
        return NaiveRun(self, locations, calendar, people, progress)


class NaiveRun(ChanceRun):
    """A run of the naive attack."""

    def _draw(self, values: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int32]:
        listed = np.arange(values.shape[1], dtype=np.int32)
        current = self._days[-1][0][:, -1] if self._days else rng.permutation(np.repeat(listed, values[0]))
        cells = np.empty((self.people, len(values)), dtype=np.int32)
        for step, after in enumerate(values.astype(np.int64)):
            before = np.bincount(current, minlength=len(listed))
            if (before != after).any():
                order = rng.permutation(self.people)
                order = order[np.argsort(current[order], kind="stable")]
                position = np.arange(self.people) - np.repeat(np.cumsum(before) - before, before)
                leaving = order[position >= np.repeat(np.minimum(before, after), before)]
                current = current.copy()
                current[rng.permutation(leaving)] = np.repeat(listed, np.maximum(after - before, 0))
            cells[:, step] = current
        return cells
