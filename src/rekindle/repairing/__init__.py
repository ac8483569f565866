"""A release back to counts: the attacker's first step, in several ways."""

from rekindle.repairing.people import guess_people
from rekindle.repairing.repairs import REPAIRS, repair

__all__ = ["REPAIRS", "guess_people", "repair"]
