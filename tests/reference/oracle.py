"""The paper's equations as plain loops: slow, and easy to compare with the text.

Ties leave the choice between equally good assignments open, and a choice changes all later steps. So the oracle follows
the path that an attack took and says, at each step and link, what the least possible cost was from there.
"""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment


def distance(a, b):
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


def entropy(trajectory):
    total = len(trajectory)
    shares = [trajectory.count(place) / total for place in set(trajectory)]
    return -sum(share * math.log2(share) for share in shares)


def gain(u, v):
    """Entropy of both days together less their own, weighted by length (equal lengths: the paper's half and half)."""
    both = len(u) + len(v)
    return entropy(u + v) - (len(u) * entropy(u) + len(v) * entropy(v)) / both


def columns_of(row):
    """One column for each counted person."""
    return [place for place, count in enumerate(row) for _ in range(count)]


def least_cost(matrix):
    rows, columns = linear_sum_assignment(np.array(matrix))
    return float(np.array(matrix)[rows, columns].sum())


def extrapolate(previous, current):
    """Equation (1)."""
    return (current[0] + (current[0] - previous[0]), current[1] + (current[1] - previous[1]))


def stay_cost(xy, previous, current, place, b):
    return distance(xy[place], xy[current])


def velocity_cost(xy, previous, current, place, b):
    """Equation (2); without a previous step, q is the current place."""
    q = xy[current] if previous is None else extrapolate(xy[previous], xy[current])
    return distance(xy[place], q)


def popular_cost(xy, previous, current, place, b):
    """The equations for H_p and cost(p, l)."""
    highest = max(b[current])
    followers = [i for i in range(len(xy)) if b[current][i] == highest and b[current][i] > 0]
    costs = [distance(xy[place], xy[follower]) for follower in followers]
    return min([*costs, velocity_cost(xy, previous, current, place, b)])


def baseline_cost(hour, first):
    return stay_cost if hour < 6 else velocity_cost


def enhanced_cost(hour, first):
    return stay_cost if first else popular_cost


def follow(cells, counts, choose_cost, lookback):
    """Follow a recovery and give the least cost of each step and link from where it stood.

    Returns
    -------
    (steps,) least step costs, (steps,) costs of the path taken, (days,) least link costs, (days,) costs of the links taken;
    NaN where there is none.
    """
    xy = [tuple(point) for point in counts.locations.xy_km]
    calendar, values = counts.calendar, counts.values
    least, taken = np.full(counts.steps, np.nan), np.full(counts.steps, np.nan)
    days = list(calendar.days())
    link_least, link_taken = np.full(len(days), np.nan), np.full(len(days), np.nan)
    people = range(len(cells))
    b = [[0] * len(xy) for _ in xy]
    for number, day in enumerate(days):
        for step in range(day.start, day.stop - 1):
            time = calendar.start + step * calendar.step
            cost = choose_cost(time.hour, step == day.start)
            columns = columns_of(values[step + 1])
            matrix, own = [], 0.0
            for person in people:
                previous = None if step == day.start else int(cells[person][step - 1])
                current = int(cells[person][step])
                price = {place: cost(xy, previous, current, place, b) for place in set(columns)}
                matrix.append([price[place] for place in columns])
                own += price[int(cells[person][step + 1])]
            least[step + 1], taken[step + 1] = least_cost(matrix), own
        if number > 0:
            past = days[max(0, number - lookback) : number]
            today = [[int(cell) for cell in cells[person][day]] for person in people]
            matrix = [
                [min(gain([int(cell) for cell in cells[u][before]], today[v]) for before in past) for v in people]
                for u in people
            ]
            link_least[number] = least_cost(matrix)
            link_taken[number] = sum(matrix[person][person] for person in people)
        for person in people:
            for step in range(max(1, day.start), day.stop):
                b[int(cells[person][step - 1])][int(cells[person][step])] += 1
    return least, taken, link_least, link_taken


def levenshtein(a, b):
    """The textbook table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def uniqueness(cells, k):
    """Share of people whose set of k most frequent places nobody else has; ties go to the lower index."""
    sets = []
    for person in cells:
        places = sorted(set(person), key=lambda place: (-list(person).count(place), place))
        sets.append(frozenset(places[:k]))
    return sum(sets.count(one) == 1 for one in sets) / len(sets)


def look_up(recovered, person, known, lots, points):
    """Pick the recovered path that fits the first `points` known steps best, for each draw; score it at all other steps.

    `lots` are numbers from 0 to 1, one a draw, that decide between paths that fit equally well.

    Returns
    -------
    For each draw: the paths that fit best, and the accuracy of the picked one at the steps that are not known.
    """
    results = []
    for steps, lot in zip(known, lots, strict=True):
        steps = [int(step) for step in steps[:points]]
        fit = [sum(path[step] == person[step] for step in steps) for path in recovered]
        best = [row for row, score in enumerate(fit) if score == max(fit)]
        picked = recovered[best[int(lot * len(best))]]
        others = [step for step in range(len(person)) if step not in steps]
        learnt = sum(picked[step] == person[step] for step in others) / len(others) if others else math.nan
        results.append((best, learnt))
    return results
