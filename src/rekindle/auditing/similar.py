"""People like the recovered ones: where nobody knows the truth, an audit of them says what may be expected."""

from __future__ import annotations

import numpy as np

from rekindle.model import Trajectories

SHIFT_SECONDS = 15 * 60
"""How far a day that is repeated is shifted at most, but by one step at least: people are not that punctual."""


def people_like(recovered: Trajectories, seed: int = 0) -> Trajectories | None:
    """Draw people who move like the recovered ones, in the same locations, with similar totals and profiles by hour.

    Every day of every person is a whole day of the same recovered person, drawn at random from the weekdays or from the days
    of the weekend, and shifted by a few steps. Who is away on that day is away again. These people are at least as
    regular as the recovered ones, and attacks recover people who are more regular than real ones: what is found of them is
    more than would be found of the real people.

    Parameters
    ----------
    recovered
        What an attack made of the counts.
    seed
        Which days are drawn.

    Returns
    -------
    As many people at the same steps; None where there is no whole day to repeat.
    """
    calendar, people = recovered.calendar, recovered.people
    per_day = calendar.steps_per_day
    days = list(calendar.days())
    whole = np.array([day.start for day in days if day.stop - day.start == per_day])
    if not len(whole):
        return None
    weekend = np.array([_is_weekend(recovered, start) for start in whole])
    reach = max(1, round(SHIFT_SECONDS / calendar.step.total_seconds()))
    random = np.random.default_rng(seed)
    cells = np.empty(recovered.cells.shape, np.int32)
    for day in days:
        alike = whole[weekend == _is_weekend(recovered, day.start)]
        source = random.choice(alike if len(alike) else whole, people)[:, None]
        # A first day that is short ends at midnight, a last one begins there.
        of_day = np.arange(day.stop - day.start) + (per_day - (day.stop - day.start) if day.start == 0 else 0)
        shifted = np.clip(of_day + random.integers(-reach, reach + 1, (people, 1)), 0, per_day - 1)
        cells[:, day] = np.take_along_axis(recovered.cells, source + shifted, axis=1)
    return Trajectories(cells, recovered.locations, calendar)


def _is_weekend(recovered: Trajectories, step: int) -> bool:
    return recovered.calendar.time(step).weekday() >= 5
