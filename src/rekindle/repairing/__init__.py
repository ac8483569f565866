"""A release back to counts: the attacker's first step."""

from rekindle.repairing.smoothing import repair

__all__ = ["repair"]
