"""Naive: people stay where they are as far as the counts allow. Every result stands beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.base import Run, with_away
from rekindle.attacks.chance import Chance, ChanceRun
from rekindle.model import Calendar, Locations
from rekindle.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Naive(Chance):
    """Let as many people stay as the counts allow, and place the others at random.

    Who leaves a location is drawn at random too. Flows say how many stay and where the others go; what is left to draw is
    what `Chance` draws.

    Parameters
    ----------
    seed
        A whole number of at least 0; another seed is another guess.
    """

    def _begin(self, locations: Locations, calendar: Calendar, people: int, progress: Progress | None) -> Run:
        return NaiveRun(self, locations, calendar, people, progress)


class NaiveRun(ChanceRun):
    """A run of the naive attack; who is away stays away as long as the counts allow."""

    def _draw(self, values: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int32]:
        people = max(self._needed, int(values.sum(axis=1, dtype=np.int64).max()))
        values = with_away(values, people).astype(np.int64)
        listed = np.arange(values.shape[1], dtype=np.int32)
        current = self._current(people) if self._days else rng.permutation(np.repeat(listed, values[0]))
        cells = np.empty((people, len(values)), dtype=np.int32)
        for step, after in enumerate(values):
            before = np.bincount(current, minlength=len(listed))
            if (before != after).any():
                order = rng.permutation(people)
                order = order[np.argsort(current[order], kind="stable")]
                position = np.arange(people) - np.repeat(np.cumsum(before) - before, before)
                leaving = order[position >= np.repeat(np.minimum(before, after), before)]
                current = current.copy()
                current[rng.permutation(leaving)] = np.repeat(listed, np.maximum(after - before, 0))
            cells[:, step] = current
        self._needed = people
        return cells
