"""Habits: counts alone, people with few, repeated habits.

The parts, in the order of the work: `problem` (what the counts tell), `track`, `relink`, `search`, `consensus`, `polish`,
`schedule` (how much of each), `attack` (the attack and its run).
"""

from rekindle.attacks.habits.attack import Habits, HabitsRun

__all__ = ["Habits", "HabitsRun"]
