"""A small audit for a first look: few defences, two row orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from rekindle.attacks import Attack
from rekindle.auditing.audit import audit
from rekindle.auditing.results import Audit
from rekindle.defences import CoarserTime, GeometricNoise, Round, Suppress
from rekindle.model import Counts, Dataset, Release, Trajectories

__all__ = ["quick_audit"]


def quick_audit(
    data: Dataset | Counts | Release | Trajectories,
    *,
    attacks: Iterable[Attack] | None = None,
    cache: str | Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Audit:
    """Audit with one defence of each kind and two row orders; see `audit`. The data need steps that divide an hour.

    Parameters
    ----------
    data, attacks, cache, progress
        As in `audit`.
    """
    defences = [Suppress(below=3), Round(to=5), GeometricNoise(epsilon=0.1, per="event"), CoarserTime(step="1h")]
    return audit(data, attacks=attacks, defences=defences, seeds=2, cache=cache, progress=progress)
