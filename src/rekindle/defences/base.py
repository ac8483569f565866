"""Defence: what every defence is, and how they are put together."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from rekindle.errors import ContractBroken, InvalidData, InvalidSetting
from rekindle.model import AppliedDefence, Calendar, Counts, Flows, Release, Trajectories
from rekindle.model.calendar import parse_step

FACTS = [one.name for one in dataclasses.fields(AppliedDefence) if one.name not in ("name", "settings", "label")]


class NothingLeft(InvalidSetting):
    """A defence that would leave nothing to publish: every number withheld, or nobody, or a single location."""


class Defence(ABC):
    """Base of every defence: settings in the constructor, data in the call.

    A defence is a frozen dataclass whose fields are its settings. One that is random has a field `seed`, for simulation;
    call `for_publication` before publishing. It declares what repair, noise, audit and report need to know about it: the
    attributes below may be set in the class, or be properties.

    Attributes
    ----------
    needs_people
        Whether it works on the people themselves, so that counts alone are not enough.
    words
        What it does in a few words, with the settings by name in braces: "Round to {to:g}". Without, `describe` is its label.
    exact, adds_noise, withholds_below, rounds_to, caps_at, included, fixed_size, keeps_sensitivity, simulated
        See `AppliedDefence`. A defence that declares nothing may do anything to the numbers but add noise.
    """

    needs_people: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    adds_noise: ClassVar[bool] = False
    withholds_below: float | None = None
    rounds_to: float | None = None
    caps_at: float | None = None
    included: float = 1.0
    fixed_size: bool = False
    keeps_sensitivity: ClassVar[bool] = False
    simulated: bool = False
    words: ClassVar[str] = ""

    def __call__(self, data: Trajectories | Counts | Flows | Release) -> Release:
        """Give what would be published.

        Parameters
        ----------
        data
            The people, their counts or flows, or a release to which more is to be done. It is left unchanged. Of people
            their counts are published; of their flows, see `of_flows`.
        """
        before = _release(data)
        after = self._change(before)
        if not isinstance(after, Release):
            raise ContractBroken(f"{type(self).__name__} gives a {type(after).__name__}, not a release.")
        done = (*before.defences, self.applied(before))
        return Release(after.values, after.locations, after.calendar, done, after.pairs)

    def of_flows(
        self,
        truth: Trajectories,
        window: str | timedelta | None = None,
        *,
        stayers: bool = True,
        all_pairs: bool = False,
    ) -> Release:
        """Give what would be published of the flows of people.

        A sample and longer steps come first, and change the people whose flows are counted; the other defences change the
        numbers.

        Parameters
        ----------
        truth
            The people. They are left unchanged.
        window, stayers
            As in `Trajectories.flows`; by default windows of a step, and never shorter ones: longer steps make longer windows.
        all_pairs
            As in `Release.of`.
        """
        done: tuple[AppliedDefence, ...] = ()
        left = list(self.defences) if isinstance(self, Chain) else [self]
        while any(one.needs_people or one.calendar(truth.calendar) != truth.calendar for one in left):
            if not (left[0].exact and left[0].keeps_sensitivity):
                break  # what it does to numbers would be lost, so that the one that needs the people refuses
            done += (left[0].applied(),)
            truth = left.pop(0).coarsen(truth)
        if window is not None and parse_step(window) < truth.calendar.step:
            window = None
        release = Release.of(truth.flows(window, stayers=stayers), done, all_pairs=all_pairs)
        for one in left:
            release = one(release)
        return release

    @abstractmethod
    def _change(self, release: Release) -> Release:
        """Protect a release; the caller adds this defence to those of the release."""

    def applied(self, release: Release | None = None) -> AppliedDefence:
        """Give what a release states of this defence, after it was applied to `release` (or to the people)."""
        settings = {name: value for name, value in self.settings().items() if name != "seed"}
        facts = {name: getattr(self, name) for name in FACTS}
        return AppliedDefence(name=type(self).__name__, settings=settings, label=self.label, **facts)

    @property
    def label(self) -> str:
        """The defence in a few words: `words` with its settings, where there are any."""
        return self.words.format(**self.settings()) or self.describe()

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """Give the truth at the resolution of the release: its people, locations and steps."""
        return truth

    @property
    def scale(self) -> float:
        """What a reader multiplies the published numbers by to speak of everyone: 1, but for a sample."""
        return 1.0 / self.included

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
        In the order in which they are applied; a chain among them is taken apart. Those that need the people come first.
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

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether all of them are."""
        return all(one.exact for one in self.defences)

    @property
    def adds_noise(self) -> bool:  # type: ignore[override]
        """Whether any of them does."""
        return any(one.adds_noise for one in self.defences)

    @property
    def included(self) -> float:  # type: ignore[override]
        """The share of the people who are counted in the end."""
        return math.prod(one.included for one in self.defences)

    @property
    def label(self) -> str:
        """See `Defence`."""
        first, *others = [one.label for one in self.defences] or ["As given"]
        return ", then ".join([first, *(one[0].lower() + one[1:] for one in others)])

    def __call__(self, data: Trajectories | Counts | Flows | Release) -> Release:
        """See `Defence`."""
        done: tuple[AppliedDefence, ...] = ()
        for one in self.defences:
            if one.needs_people and isinstance(data, Trajectories):
                done += (one.applied(),)
                data = one.coarsen(data)
            else:
                data = one(data if not done or isinstance(data, Release) else _release(data, done))
        return _release(data, done)

    def _change(self, release: Release) -> Release:
        return self(release)

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """See `Defence`."""
        for one in self.defences:
            truth = one.coarsen(truth)
        return truth

    def calendar(self, calendar: Calendar) -> Calendar:
        """See `Defence`."""
        for one in self.defences:
            calendar = one.calendar(calendar)
        return calendar

    def seeded(self, seed: int) -> Self:
        """Give each a seed of its own."""
        own = np.random.SeedSequence(seed).generate_state(len(self.defences)) if self.defences else ()
        seeded = (one.seeded(int(number)) for one, number in zip(self.defences, own, strict=True))
        return dataclasses.replace(self, defences=tuple(seeded))

    def for_publication(self) -> Self:
        """See `Defence`."""
        return dataclasses.replace(self, defences=tuple(one.for_publication() for one in self.defences))

    def describe(self) -> str:
        """Names and settings in order."""
        return " -> ".join(one.describe() for one in self.defences) or "as it is"


def _release(data: Trajectories | Counts | Flows | Release, done: tuple[AppliedDefence, ...] = ()) -> Release:
    """Take data as a release to which that was done before."""
    if isinstance(data, Release):
        return data
    if isinstance(data, Trajectories):
        data = data.counts()
    if not isinstance(data, (Counts, Flows)):
        raise InvalidData(f"A defence takes Trajectories, Counts, Flows or a Release, not {type(data).__name__}.")
    return Release.of(data, done)
