"""Chance: what anyone could reach without an attack. Every result stands beside it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.attacks.base import Attack, DailyRun, Run, with_away
from rekindle.attacks.flows import Windows
from rekindle.attacks.saving import SavedRun
from rekindle.errors import InvalidData
from rekindle.model import AWAY, Calendar, Counts, Locations, Trajectories
from rekindle.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Chance(Attack):
    """Place the counted people at random at every step; who is away is drawn at random too.

    Where flows are given, who of the people in a location goes where is drawn at random at every step.

    A number such as "accuracy .30" means little alone; beside it stands the accuracy of this guess.

    Parameters
    ----------
    seed
        A whole number of at least 0; another seed is another guess.
    """

    takes_flows: ClassVar[bool] = True

    seed: int = 0

    def __post_init__(self) -> None:
        checks.whole("seed", self.seed)

    def _begin(self, locations: Locations, calendar: Calendar, people: int, progress: Progress | None) -> Run:
        return ChanceRun(self, locations, calendar, people, progress)


class ChanceRun(DailyRun):
    """A run that draws from one random generator, step by step."""

    def __init__(
        self, attack: Chance, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        self._rng = np.random.default_rng(attack.seed)

    _needed = 0  # the most people that any step so far has needed: nothing depends on how many more there are

    def _recover_day(self, counts: Counts, windows: Windows | None = None) -> NDArray[np.int32]:
        rng = copy.deepcopy(self._rng)  # a day that is interrupted has drawn nothing
        cells = self._draw(counts.values, rng) if windows is None else self._draw_along(counts, windows, rng)
        self._rng = rng
        return cells

    def _draw_along(self, counts: Counts, windows: Windows, rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw a day along its flows: (people, steps) int32, of as many people as were needed so far."""
        people = max(self._needed, windows.people(counts))
        offsets, _, goal, number = windows.table(len(self.locations), people)
        if self._days:
            current = self._current(people)
            cells = np.empty((people, 0), np.int32)
        else:
            listed = np.arange(len(self.locations) + 1, dtype=np.int32)
            current = rng.permutation(np.repeat(listed, with_away(counts.values[:1], people)[0]))
            cells = current[:, None]
        steps = [cells]
        for window in range(len(offsets) - 1):
            part = slice(offsets[window], offsets[window + 1])
            order = rng.permutation(people)
            order = order[np.argsort(current[order], kind="stable")]
            current = np.empty_like(current)
            current[order] = np.repeat(goal[part], number[part])  # sorted by origin, as the people are
            steps.append(current[:, None])
        self._needed = people
        return np.concatenate(steps, axis=1)

    def _current(self, people: int) -> NDArray[np.int32]:
        """Where the first people are at the last step done: (people,) int32; away is the location after the last."""
        current = self._days[-1][0][:people, -1]
        return np.where(current == AWAY, np.int32(len(self.locations)), current)

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
            self._has_flows = saved.has_flows
            if self._has_flows:
                self._take(found.counts(), Windows.of(found.flows()))
            else:
                self._take(found.counts())
            if self.recovery().trajectories != found:
                raise InvalidData("the days are not those that this seed draws")
