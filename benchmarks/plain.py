"""A plain vectorised version of both attacks: what a careful student writes, people x people at every step.

It stands in for the published code where that is not at hand. It shares no code with the package.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment


def distances(a, b):
    return np.hypot(a[:, None, 0] - b[None, :, 0], a[:, None, 1] - b[None, :, 1])


def entropy(visits):
    shares = visits / visits.sum(axis=-1, keepdims=True)
    return -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=-1)


def link_cost(past, today, places):
    visits = [np.stack([np.bincount(row, minlength=places) for row in day]) for day in (past, today)]
    both = np.stack([entropy(row + visits[1]) for row in visits[0]])
    a, b = past.shape[1], today.shape[1]
    return both - (a * entropy(visits[0])[:, None] + b * entropy(visits[1])[None, :]) / (a + b)


def recover(counts, *, enhanced):
    """(people, steps) cells, with the same rules as the package and other ties."""
    xy, values, calendar = counts.locations.xy_km, counts.values, counts.calendar
    places, lookback = len(xy), 3 if enhanced else 1
    between = distances(xy, xy)
    transitions = np.zeros((places, places), dtype=int)
    days = []
    for day in calendar.days():
        cells = np.empty((counts.people, day.stop - day.start), dtype=int)
        cells[:, 0] = np.repeat(np.arange(places), values[day.start])
        highest = transitions.max(axis=1, keepdims=True)
        popular = (transitions == highest) & (transitions > 0)
        near = np.where(popular[:, :, None], between[None], np.inf).min(axis=1) if enhanced else None
        for step in range(cells.shape[1] - 1):
            columns = np.repeat(np.arange(places), values[day.start + step + 1])
            stay = step == 0 or (not enhanced and calendar.time(day.start + step).hour < 6)
            current = cells[:, step]
            point = xy[current] if stay else 2 * xy[current] - xy[cells[:, step - 1]]
            cost = distances(point, xy[columns])
            if enhanced and not stay:
                cost = np.minimum(cost, near[current][:, columns])
            cells[:, step + 1] = columns[linear_sum_assignment(cost)[1]]
        if days:
            cost = np.min([link_cost(past, cells, places) for past in days[-lookback:]], axis=0)
            cells = cells[linear_sum_assignment(cost)[1]]
        joined = cells if not days else np.concatenate([days[-1][:, -1:], cells], axis=1)
        np.add.at(transitions, (joined[:, :-1].ravel(), joined[:, 1:].ravel()), 1)
        days.append(cells)
    return np.concatenate(days, axis=1)
