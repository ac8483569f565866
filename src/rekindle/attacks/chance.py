"""Chance: what anyone could reach without an attack. Every result stands beside it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.attacks.base import Attack, DailyRun, Run, with_away
from rekindle.attacks.saving import SavedRun
from rekindle.errors import InvalidData
from rekindle.model import Calendar, Counts, Locations, Trajectories
from rekindle.progress import Progress

if TYPE_CHECKING:
    from rekindle.attacks.priors import Prior

__all__ = ["Chance", "ChanceRun"]


@dataclass(frozen=True, kw_only=True)
class Chance(Attack):
    """Place the counted people at random at every step; who is away is drawn at random too.

    A number such as "accuracy .30" means little alone; beside it stands the accuracy of this guess.

    Parameters
    ----------
    seed
        A whole number of at least 0; another seed is another guess.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        checks.whole("seed", self.seed)

    def start(
        self,
        locations: Locations,
        calendar: Calendar,
        *,
        people: int,
        prior: Prior | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Begin an online run."""
        if prior is not None:
            return self.knowing(prior).start(locations, calendar, people=people, progress=progress)
        return ChanceRun(self, locations, calendar, people, progress)


class ChanceRun(DailyRun):
    """A run that draws from one random generator, step by step."""

    def __init__(
        self, attack: Chance, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        self._rng = np.random.default_rng(attack.seed)

    def _recover_day(self, counts: Counts) -> NDArray[np.int32]:
        rng = copy.deepcopy(self._rng)  # a day that is interrupted has drawn nothing
        cells = self._draw(counts.values, rng)
        self._rng = rng
        return cells

    def _draw(self, values: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw a day from its (steps, locations) counts: (people, steps) int32, of as many people as it needs."""
        values = with_away(values)
        listed = np.arange(values.shape[1], dtype=np.int32)
        return np.stack([rng.permutation(np.repeat(listed, row)) for row in values], axis=1)

    def restore(self, saved: SavedRun) -> None:
        """Draw the finished days again, which leaves the generator where it was."""
        cells = saved.arrays["cells"]
        if cells.shape[1]:
            found = Trajectories(cells, self.locations, self.calendar.closed_at(cells.shape[1]))
            self._take(found.counts())
            if self.recovery().trajectories != found:
                raise InvalidData("the days are not those that this seed draws")
