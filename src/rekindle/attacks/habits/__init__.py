"""Habits: counts alone, people with few, repeated habits.

The parts, in the order of the work: `problem` (what the counts tell), `track`, `relink`, `search`, `consensus`, `polish`,
`plan` (how much of each), `attack` (the attack and its run). `agreement` gives other attacks a confidence.
"""

from rekindle.attacks.confidence import confidence_from_agreement
from rekindle.attacks.habits.attack import Habits, HabitsRun

__all__ = ["Habits", "HabitsRun", "confidence_from_agreement"]
