"""Defences that change single numbers: suppression, rounding, capping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rekindle.checks import positive
from rekindle.defences.base import Defence, NothingLeft
from rekindle.model import Release


@dataclass(frozen=True, kw_only=True)
class Suppress(Defence):
    """Withhold numbers below a threshold.

    Parameters
    ----------
    below
        Numbers below this are withheld.
    zeros
        Whether zeros are withheld too, so that a location with nobody looks like one with a few. Otherwise they are
        published, and what is withheld is known to be at least 1.
    """

    exact: ClassVar[bool] = True
    below: float
    zeros: bool = True

    def __post_init__(self) -> None:
        positive("below", self.below)

    @property
    def label(self) -> str:
        """See `Defence`."""
        return f"Withhold below {self.below:g}" + (", but not 0" if not self.zeros else "")

    @property
    def withholds_below(self) -> float:  # type: ignore[override]
        """See `AppliedDefence`."""
        return self.below

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
        return release.with_values(values)


@dataclass(frozen=True, kw_only=True)
class Round(Defence):
    """Round to the nearest multiple of a base; halves go up.

    Parameters
    ----------
    to
        The base, in people.
    """

    words: ClassVar[str] = "Round to {to:g}"
    to: float

    def __post_init__(self) -> None:
        positive("to", self.to)

    @property
    def rounds_to(self) -> float:  # type: ignore[override]
        """See `AppliedDefence`."""
        return self.to

    def _change(self, release: Release) -> Release:
        values = np.floor(release.values / self.to + 0.5) * self.to
        if not np.nan_to_num(values).any():
            raise NothingLeft(
                f"{self.describe()} would turn every number into 0: the largest is {np.nanmax(release.values):g}. "
                "Use a smaller base."
            )
        return release.with_values(values)


@dataclass(frozen=True, kw_only=True)
class Cap(Defence):
    """Publish no number above a limit: larger ones become the limit.

    Parameters
    ----------
    at
        The limit, in people.
    """

    words: ClassVar[str] = "Cap at {at:g}"
    keeps_sensitivity: ClassVar[bool] = True
    at: float

    def __post_init__(self) -> None:
        positive("at", self.at)

    @property
    def caps_at(self) -> float:  # type: ignore[override]
        """See `AppliedDefence`."""
        return self.at

    def _change(self, release: Release) -> Release:
        return release.with_values(np.minimum(release.values, self.at))
