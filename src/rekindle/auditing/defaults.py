"""The defences that an audit tries where nobody named any."""

from __future__ import annotations

from datetime import timedelta

from rekindle.defences import (
    PRESETS,
    CoarserSpace,
    CoarserTime,
    Defence,
    GeometricNoise,
    Round,
    Sample,
    Suppress,
)
from rekindle.model import Counts, Release, Trajectories
from rekindle.model.calendar import parse_step

__all__ = ["default_defences"]

_LONGER = ("10min", "30min", "1h", "2h", "4h", "6h", "12h")


def default_defences(given: Counts | Release, truth: Trajectories | None, most: int = 8) -> list[Defence]:
    """Choose eight defences: two thresholds, rounding, noise of two budgets, larger cells, longer steps, a sample.

    The sample needs the people, so it is left out where they are not known.

    Parameters
    ----------
    given, truth
        What is to be published, and the people.
    most
        How many at most: the first of a list in which different kinds come first.
    """
    chosen: dict[Defence, int] = {
        Suppress(below=3): 6,
        Suppress(below=10): 0,
        Round(to=5): 4,
        GeometricNoise(epsilon=1.0, per="event"): 2,
        PRESETS["google-community-mobility"]: 7,
        CoarserSpace(km=3 * (given.locations.spacing_km or 1.0)): 1,
        CoarserTime(step=_longer_step(given)): 3,
    }
    if truth is not None and isinstance(given, Counts):
        chosen[Sample(share=0.5)] = 5
    return [one for one, rank in chosen.items() if rank < most]


def _longer_step(given: Counts | Release) -> timedelta | str:
    """At least three times the step, a round number where there is one."""
    step = given.calendar.step
    fits = [text for text in _LONGER if parse_step(text) >= 3 * step and not parse_step(text) % step]
    return fits[0] if fits else timedelta(days=1)
