"""Defences that change single numbers: suppression, rounding, capping."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rekindle.defences.base import Defence, NothingLeft
from rekindle.errors import InvalidSetting
from rekindle.model import Release

__all__ = ["Cap", "Round", "Suppress"]


def positive(what: str, value: float) -> None:
    """Refuse a setting that is not a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < math.inf:
        raise InvalidSetting(f"{what} is {value!r}; it must be a number larger than 0.")


@dataclass(frozen=True, kw_only=True)
class Suppress(Defence):
    """Withhold numbers below a threshold.

    Parameters
    ----------
    below
        Numbers below this are withheld.
    zeros
        Whether zeros are withheld too, so that a place with nobody looks like one with a few. Otherwise they are
        published, and what is withheld is known to be at least 1.
    """

    below: float
    zeros: bool = True

    def __post_init__(self) -> None:
        positive("The threshold of suppression", self.below)

    def _change(self, release: Release) -> Release:
        small = release.values < self.below
        if not self.zeros:
            small &= release.values != 0
        values = np.where(small, np.nan, release.values)
        if np.isnan(values).all():
            raise NothingLeft(
                f"{self.describe()} would withhold all {values.size} numbers: the largest is "
                f"{np.nanmax(release.values):g}. Use a lower threshold, larger cells or more people."
            )
        return Release(values, release.locations, release.calendar)


@dataclass(frozen=True, kw_only=True)
class Round(Defence):
    """Round to the nearest multiple of a base; halves go up.

    Parameters
    ----------
    to
        The base, in people.
    """

    to: float

    def __post_init__(self) -> None:
        positive("The base of rounding", self.to)

    def _change(self, release: Release) -> Release:
        values = np.floor(release.values / self.to + 0.5) * self.to
        if not np.nan_to_num(values).any():
            raise NothingLeft(
                f"{self.describe()} would turn every number into 0: the largest is {np.nanmax(release.values):g}. "
                "Use a smaller base."
            )
        return Release(values, release.locations, release.calendar)


@dataclass(frozen=True, kw_only=True)
class Cap(Defence):
    """Publish no number above a limit: larger ones become the limit.

    Parameters
    ----------
    at
        The limit, in people.
    """

    at: float

    def __post_init__(self) -> None:
        positive("The cap", self.at)

    def _change(self, release: Release) -> Release:
        return Release(np.minimum(release.values, self.at), release.locations, release.calendar)
