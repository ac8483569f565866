"""Publish only a sample of the people."""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rekindle import checks
from rekindle.defences.base import Defence, NothingLeft
from rekindle.errors import InvalidData
from rekindle.model import Counts, Flows, Release, Trajectories


@dataclass(frozen=True, kw_only=True)
class Sample(Defence):
    """Count only a random sample of the people. It needs the people themselves: counts are not enough.

    `coarsen` gives the people who were drawn, with their names. Those who were not are in no release: they are not
    exposed, and score 0 where a score is a mean over everyone.

    Parameters
    ----------
    share
        The share of the people who are counted, above 0 and up to 1.
    fixed_size
        False counts each person with that probability, independently of the others (Poisson sampling). True counts exactly
        that share, rounded: one person more can displace another, so that noise that follows must be twice as large.
    seed
        A whole number of at least 0; another seed draws other people.
    """

    needs_people: ClassVar[bool] = True
    exact: ClassVar[bool] = True
    words: ClassVar[str] = "A sample of {share:.0%} of the people"
    keeps_sensitivity: ClassVar[bool] = True
    share: float
    fixed_size: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        checks.share("share", checks.positive("share", self.share))
        checks.whole("seed", self.seed)

    @property
    def included(self) -> float:  # type: ignore[override]
        """See `AppliedDefence`."""
        return self.share

    def __call__(self, data: Trajectories | Counts | Flows | Release) -> Release:
        """See `Defence`; `data` must be trajectories."""
        if not isinstance(data, Trajectories):
            raise InvalidData(
                f"{self.describe()} needs the people themselves, not {type(data).__name__}: from counts alone nobody can "
                "be left out. Give it trajectories (the truth of a dataset), before any other defence."
            )
        return Release.of(self.coarsen(data).counts(), (self.applied(),))

    def _change(self, release: Release) -> Release:
        return self(release)

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """Give the people who were drawn."""
        rng = np.random.default_rng(self.seed)
        if self.fixed_size:
            kept = np.sort(rng.permutation(truth.people)[: round(self.share * truth.people)])
        else:
            kept = np.flatnonzero(rng.random(truth.people) < self.share)
        if not len(kept):
            raise NothingLeft(f"{self.describe()} would leave none of the {truth.people} people; use a larger share.")
        names = [truth.people_ids[person] for person in kept]
        seen = None if truth.observed is None else truth.observed[kept]
        return Trajectories(truth.cells[kept], truth.locations, truth.calendar, names, seen)

    def for_publication(self) -> Sample:
        """Draw people whom nobody can draw again."""
        return dataclasses.replace(self, seed=secrets.randbits(128))
