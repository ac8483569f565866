"""Habits: counts alone, people with few, repeated habits.

The parts, in the order of the work: `problem` (what the counts tell), `track`, `relink`, `search`, `consensus`, `polish`,
`blocks` (people who share places, as small problems of their own), `schedule` (how much of each), `attack` (the attack and its run).
"""

from rekindle.attacks.habits.attack import Habits, HabitsDetails, HabitsRun

__all__ = ["Habits", "HabitsDetails", "HabitsRun"]
