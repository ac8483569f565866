"""Publish only a sample of the people."""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rekindle.defences.base import Defence, NothingLeft
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Counts, Release, Trajectories

__all__ = ["Sample"]


@dataclass(frozen=True, kw_only=True)
class Sample(Defence):
    """Count only a random sample of the people. It needs the people: counts do not say who is who.

    `coarsen` gives the people who were drawn, with their names. Those who were not are in no release: they are not
    exposed, and score 0 where a score is a mean over everyone.

    Parameters
    ----------
    share
        The share of the people who are counted, above 0 and up to 1; their number is rounded.
    seed
        A whole number of at least 0; another seed draws other people.
    """

    needs_people: ClassVar[bool] = True
    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, (int, float)) or not 0 < self.share <= 1:
            raise InvalidSetting(f"The share of the sample is {self.share!r}; it must be above 0 and at most 1.")
        check_seed(self.seed)

    def __call__(self, data: Trajectories | Counts | Release) -> Release:
        """See `Defence`; `data` must be trajectories."""
        if not isinstance(data, Trajectories):
            raise InvalidData(
                f"{self.describe()} needs the people themselves, not {type(data).__name__}: from counts alone nobody can "
                "be left out. Give it trajectories (the truth of a dataset), before any other defence."
            )
        release = Release.of(self.coarsen(data).counts())
        return Release(release.values, release.locations, release.calendar, (self.describe(),))

    def _change(self, release: Release) -> Release:
        return self(release)

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """Give the people who were drawn."""
        drawn = round(self.share * truth.people)
        if not drawn:
            raise NothingLeft(f"{self.describe()} would leave none of the {truth.people} people; use a larger share.")
        kept = np.sort(np.random.default_rng(self.seed).permutation(truth.people)[:drawn])
        names = [truth.people_ids[person] for person in kept]
        return Trajectories(truth.cells[kept], truth.locations, truth.calendar, names)

    @property
    def scale(self) -> float:
        """One over the share."""
        return 1.0 / self.share

    def for_publication(self) -> Sample:
        """Draw people whom nobody can draw again."""
        return dataclasses.replace(self, seed=secrets.randbits(128))


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidSetting(f"The seed is {seed!r}; it must be a whole number of at least 0.")
