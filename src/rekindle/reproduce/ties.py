"""The paper's attacks with SciPy's own choice among ties, as the published code has it: slow and plain.

Most steps have many optimal assignments. The published code lists people in the order of their rows and locations by their
index, and takes whichever assignment SciPy returns. Its numbers hang on that choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.attacks import DayByDay, MoveContext
from rekindle.attacks.day_by_day import count_transitions
from rekindle.attacks.linking import link
from rekindle.model import Counts, Trajectories


def prices_of(
    attack: DayByDay, counts: Counts, cells: NDArray[np.integer], step: int, day: slice, context: MoveContext
) -> NDArray[np.float64]:
    """What it costs each person to go from a step to every location at the next: (people, locations) float64."""
    night = step < day.start + counts.calendar.night_steps(day.start)
    cost = attack.first if step == day.start else attack.night if night else attack.day
    previous = cells[:, max(day.start, step - 1)]
    return cost(previous.astype(np.int32), cells[:, step].astype(np.int32), context)


def recover_with_scipy(attack: DayByDay, counts: Counts) -> Trajectories:
    """Recover everyone's trajectory; the attack's own `seed` plays no part."""
    places, calendar = len(counts.locations), counts.calendar
    cells = np.empty((counts.people, counts.steps), dtype=np.int32)
    past: list[NDArray[np.int32]] = []
    for day in calendar.days():
        seeds = counts.values[0 if attack.first_step_counts == "first_day" else day.start]
        cells[:, day.start] = np.repeat(np.arange(places), seeds)
        transitions = count_transitions(cells[:, : day.start], places)
        for step in range(day.start, day.stop - 1):
            context = MoveContext(counts.locations, calendar.time(step), transitions)
            columns = np.repeat(np.arange(places), counts.values[step + 1])
            _, chosen = linear_sum_assignment(prices_of(attack, counts, cells, step, day, context)[:, columns])
            cells[:, step + 1] = columns[chosen]
        if past:
            cells[:, day] = cells[
                link(attack.linking, past[-attack.lookback_days :], cells[:, day], places).order, day
            ]
        past.append(cells[:, day].copy())
    return Trajectories(cells, counts.locations, calendar)
