"""Defence: what every defence is, and how they are put together."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar, Counts, Release, Trajectories

__all__ = ["Chain", "Defence", "NothingLeft"]


class NothingLeft(InvalidSetting):
    """A defence that would leave nothing to publish: every number withheld, or nobody, or a single place."""


class Defence(ABC):
    """Base of every defence: settings in the constructor, data in the call.

    A defence is a frozen dataclass whose fields are its settings. One that is random has a field `seed`, for simulation;
    whoever publishes calls `for_publication` first.

    Attributes
    ----------
    needs_people
        Whether it works on the people themselves, so that counts alone are not enough.
    """

    needs_people: ClassVar[bool] = False

    def __call__(self, data: Trajectories | Counts | Release) -> Release:
        """Give what would be published.

        Parameters
        ----------
        data
            The people, their counts, or a release to which more is to be done. It is left unchanged.
        """
        release = _release(data)
        changed = self._change(release)
        return Release(changed.values, changed.locations, changed.calendar, (*release.history, self.describe()))

    @abstractmethod
    def _change(self, release: Release) -> Release:
        """Protect a release; its history is kept by the caller."""

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """Give the truth at the resolution of the release: its people, places and steps."""
        return truth

    @property
    def scale(self) -> float:
        """What a reader multiplies the published numbers by to speak of everyone: 1, but for a sample."""
        return 1.0

    def calendar(self, calendar: Calendar) -> Calendar:
        """Give the calendar of the release."""
        return calendar

    def seeded(self, seed: int) -> Self:
        """Give the same defence with another seed; itself where nothing is random."""
        return dataclasses.replace(self, seed=seed) if "seed" in self.settings() else self  # type: ignore[type-var]

    def for_publication(self) -> Self:
        """Give the same defence with randomness that nobody can draw again; itself where nothing is random."""
        return self

    def settings(self) -> dict[str, Any]:
        """Settings in plain values."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}  # type: ignore[arg-type]

    def describe(self) -> str:
        """Name and settings in one line, without the seed."""
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings().items() if name != "seed")
        return f"{type(self).__name__}({settings})"


@dataclass(frozen=True)
class Chain(Defence):
    """Several defences, one after the other. An empty chain publishes the counts as they are.

    Parameters
    ----------
    defences
        In the order in which they are applied. Those that need the people come first.
    """

    defences: tuple[Defence, ...] = field(default=())

    def __init__(self, defences: Iterable[Defence] = ()) -> None:
        flat: list[Defence] = []
        for one in defences:
            if not isinstance(one, Defence):
                raise InvalidSetting(f"{one!r} is not a defence, so it cannot be in a chain.")
            flat += one.defences if isinstance(one, Chain) else [one]
        for before, after in pairwise(flat):
            if after.needs_people and not before.needs_people:
                raise InvalidSetting(
                    f"{after.describe()} comes after {before.describe()}, which leaves only counts; put it first."
                )
        object.__setattr__(self, "defences", tuple(flat))

    @property
    def needs_people(self) -> bool:  # type: ignore[override]
        """Whether any of them does."""
        return any(one.needs_people for one in self.defences)

    def __call__(self, data: Trajectories | Counts | Release) -> Release:
        """See `Defence`."""
        if not self.defences:
            return _release(data)
        history: tuple[str, ...] = ()
        for one in self.defences:
            if one.needs_people and isinstance(data, Trajectories):
                history += (one.describe(),)
                data = one.coarsen(data)
            else:
                data = one(data)
        release = _release(data)
        return Release(release.values, release.locations, release.calendar, (*history, *release.history))

    def _change(self, release: Release) -> Release:
        return self(release)

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """See `Defence`."""
        for one in self.defences:
            truth = one.coarsen(truth)
        return truth

    @property
    def scale(self) -> float:
        """See `Defence`."""
        return float(np.prod([one.scale for one in self.defences]))

    def calendar(self, calendar: Calendar) -> Calendar:
        """See `Defence`."""
        for one in self.defences:
            calendar = one.calendar(calendar)
        return calendar

    def seeded(self, seed: int) -> Chain:
        """Give each a seed of its own."""
        own = np.random.SeedSequence(seed).generate_state(len(self.defences)) if self.defences else ()
        return Chain(one.seeded(int(number)) for one, number in zip(self.defences, own, strict=True))

    def for_publication(self) -> Chain:
        """See `Defence`."""
        return Chain(one.for_publication() for one in self.defences)

    def describe(self) -> str:
        """Names and settings in order."""
        return " -> ".join(one.describe() for one in self.defences) or "as it is"


def _release(data: Trajectories | Counts | Release) -> Release:
    if isinstance(data, Trajectories):
        data = data.counts()
    if isinstance(data, Counts):
        data = Release.of(data)
    if not isinstance(data, Release):
        raise InvalidData(f"A defence takes Trajectories, Counts or a Release, not {type(data).__name__}.")
    return data
