"""The defences that an audit tries where nobody named any, and short names for all of them."""

from __future__ import annotations

from datetime import timedelta

from scipy.spatial import cKDTree

from rekindle.defences import (
    PRESETS,
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    Defence,
    GeometricNoise,
    Noise,
    Round,
    Sample,
    Suppress,
)
from rekindle.model import Counts, Release, Trajectories
from rekindle.model.calendar import format_step, parse_step

__all__ = ["default_defences", "label"]

_LONGER = ("10min", "30min", "1h", "2h", "4h", "6h", "12h")


def default_defences(given: Counts | Release, truth: Trajectories | None) -> list[Defence]:
    """Choose eight defences: two thresholds, rounding, noise of two budgets, larger cells, longer steps, a sample.

    The sample needs the people, so it is left out where they are not known.
    """
    chosen: list[Defence] = [
        Suppress(below=3),
        Suppress(below=10),
        Round(to=5),
        GeometricNoise(epsilon=1.0, per="event"),
        PRESETS["google-community-mobility"].defence,
        CoarserSpace(km=3 * _spacing_km(given)),
        CoarserTime(step=_longer_step(given)),
    ]
    return [*chosen, Sample(share=0.5)] if truth is not None and isinstance(given, Counts) else chosen


def _spacing_km(given: Counts | Release) -> float:
    """The smallest distance between two centres, km: the side of the cells on a lattice."""
    xy = given.locations.xy_km
    return float(cKDTree(xy).query(xy, k=2)[0][:, 1].min()) if len(xy) > 1 else 1.0


def _longer_step(given: Counts | Release) -> timedelta | str:
    """At least three times the step, a round number where there is one."""
    step = given.calendar.step
    fits = [text for text in _LONGER if parse_step(text) >= 3 * step and not parse_step(text) % step]
    return fits[0] if fits else timedelta(days=1)


def label(defence: Defence | None) -> str:
    """Name a defence in a few words."""
    if defence is None:
        return "As given"
    presets = {preset.defence.describe(): name for name, preset in PRESETS.items()}
    text = _words(defence)
    name = presets.get(defence.describe())
    return text if name is None else f"{text} ({name})"


def _words(defence: Defence) -> str:
    match defence:
        case Chain():
            return ", then ".join(map(_words, defence.defences)) or "As given"
        case Suppress():
            return f"Withhold below {defence.below:g}"
        case Round():
            return f"Round to {defence.to:g}"
        case Cap():
            return f"Cap at {defence.at:g}"
        case Noise():
            return (
                f"{type(defence).__name__.removesuffix('Noise')} noise, epsilon {defence.epsilon:g} per {defence.per}"
            )
        case CoarserSpace():
            return f"Cells of {defence.km:g} km"
        case CoarserTime():
            return f"Steps of {format_step(parse_step(defence.step))}"
        case Sample():
            return f"A sample of {defence.share:.0%} of the people"
        case _:
            return defence.describe()
