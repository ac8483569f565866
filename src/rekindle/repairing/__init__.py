"""A release back to counts: the attacker's first step, in several ways."""

from collections.abc import Callable

from rekindle.model import Counts, Release
from rekindle.repairing.smoothing import repair

__all__ = ["REPAIRS", "repair"]

REPAIRS: dict[str, Callable[[Release, int], Counts]] = {"smoothed": repair}
"""The attacker's ways to repair a release, by name: (release, people) to counts."""
