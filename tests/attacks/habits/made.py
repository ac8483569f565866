"""Small problems for the parts of Habits."""

import numpy as np

import rekindle as rk
from rekindle.attacks.habits.problem import Problem


def problem_of(truth):
    counts = truth.counts()
    return Problem.of(counts.values, counts.locations, counts.calendar, counts.people)


def line(*rows, step="1h"):
    places = rk.Locations([[float(x), 0.0] for x in range(max(map(max, rows)) + 1)])
    return rk.Trajectories(np.array(rows), places, rk.Calendar("2024-03-01", step, len(rows[0])))
