"""The paper's equations as plain loops: slow, and easy to compare with the text.

Ties leave the choice between equally good assignments open, and a choice changes all later steps. So the oracle follows
the path that an attack took and says, at each step and link, what the least possible cost was from there.
"""

import math
from collections import Counter

import numpy as np
from scipy.optimize import linear_sum_assignment

AWAY = -1


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


def link_cost(u, v):
    """The gain of what was seen of two days, as a share of the most it can be, times that of whole days; the most if unseen."""
    most = entropy([0] * len(u) + [1] * len(v))
    u_seen, v_seen = ([place for place in day if place != AWAY] for day in (u, v))
    if not u_seen or not v_seen:
        return most
    return gain(u_seen, v_seen) / entropy([0] * len(u_seen) + [1] * len(v_seen)) * most


def segment_cost(others, segment, lengths, weight):
    """Jensen-Shannon divergence of the time in each place, in bits, of a person's other time and of a segment.

    Both are places by tick; lengths are the steps of those ticks, weight how much a step in each place counts.
    """

    def shares(places, steps):
        time = Counter()
        for place, step in zip(places, steps, strict=True):
            time[place] += step * weight[place]
        return {place: spent / sum(time.values()) for place, spent in time.items()}

    a, b = shares(others, lengths[0]), shares(segment, lengths[1])
    both = {place: (a.get(place, 0.0) + b.get(place, 0.0)) / 2 for place in {*a, *b}}
    bits = [-sum(p * math.log2(p) for p in each.values()) for each in (both, a, b)]
    return bits[0] - (bits[1] + bits[2]) / 2


def columns_of(row, people):
    """One column for each counted person, and one for each person who is away."""
    counted = [place for place, count in enumerate(row) for _ in range(count)]
    return counted + [AWAY] * (people - len(counted))


def with_away(cost, away_km):
    """Away is a place without coordinates: leaving and returning cost the same from anywhere, who returns has no velocity."""

    def price(xy, previous, current, place, b):
        if current == AWAY or place == AWAY:
            return 0.0 if current == place else away_km
        return cost(xy, None if previous == AWAY else previous, current, place, b)

    return price


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


FORBIDDEN = 1e6
"""More than any sum of real costs."""


def least_flow_cost(prices, origins, flows):
    """The least cost of a step whose flows are known: everyone into one column, but only into one of their own origin."""
    columns = [(int(o), int(d)) for o, d, number in zip(*flows, strict=True) for _ in range(number)]
    columns += [(AWAY, AWAY)] * (len(origins) - len(columns))
    rows = zip(origins, prices.values(), strict=True)
    total = least_cost([[price[d] if at == o else FORBIDDEN for o, d in columns] for at, price in rows])
    assert total < FORBIDDEN, "the recovery is not where the flows begin"
    return total


def follow(cells, counts, choose_cost, lookback, away_km=0.0, flows=None):
    """Follow a recovery and give the least cost of each step and link from where it stood.

    A day is recovered with the people who are seen on it, and linked to those who were ever seen before. With flows,
    a day begins at the last step of the day before; a step may use no other moves than the flows, and nothing is linked.

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
    known = []
    b = [[0] * len(xy) for _ in xy]
    for number, day in enumerate(days):
        begin = day.start - 1 if flows is not None and number else day.start
        people = [
            person for person in range(len(cells)) if any(cell != AWAY for cell in cells[person][begin : day.stop])
        ]
        for step in range(begin, day.stop - 1) if people else ():
            time = calendar.start + step * calendar.step
            cost = with_away(choose_cost(time.hour, step <= day.start), away_km)
            columns = columns_of(values[step + 1], len(people))
            matrix, own = {}, 0.0
            for person in people:
                previous = None if step <= day.start else int(cells[person][step - 1])
                current = int(cells[person][step])
                price = {place: cost(xy, previous, current, place, b) for place in set(columns)}
                matrix[person] = price
                own += price[int(cells[person][step + 1])]
            if flows is None:
                least[step + 1] = least_cost([[price[place] for place in columns] for price in matrix.values()])
            else:
                least[step + 1] = least_flow_cost(
                    matrix, [int(cells[person][step]) for person in people], flows.at(step)
                )
            taken[step + 1] = own
        if known and people and flows is None:
            past = days[max(0, number - lookback) : number]

            def price_link(u, v, past=past, day=day):
                today = [int(cell) for cell in cells[v][day]]
                return min(link_cost([int(cell) for cell in cells[u][before]], today) for before in past)

            matrix = [[price_link(u, v) for v in people] for u in known]
            link_least[number] = least_cost(matrix)
            link_taken[number] = sum(
                matrix[known.index(person)][people.index(person)] for person in people if person in known
            )
        known = sorted({*known, *people})
        for person in people:
            for step in range(max(1, day.start), day.stop):
                before, after = int(cells[person][step - 1]), int(cells[person][step])
                if AWAY not in (before, after):
                    b[before][after] += 1
    return least, taken, link_least, link_taken


AWAY = -1


def counted(cells):
    """The locations of a person without the steps at which they are away."""
    return [cell for cell in cells if cell != AWAY]


def price_of_away(truth, xy):
    """The mean distance between two random counted points of the truth; 1 km where all are in one place."""
    points = [cell for person in truth for cell in counted(person)]
    number = {place: points.count(place) for place in set(points)}
    total = sum(number[a] * number[b] * distance(xy[a], xy[b]) for a in number for b in number)
    return total / len(points) ** 2 or 1.0


def trajectory_error(mine, theirs, xy, price):
    """The sum of the distances, where a step at which only one of the two is away costs the price."""
    total = 0.0
    for a, b in zip(mine, theirs, strict=True):
        if (a == AWAY) != (b == AWAY):
            total += price
        elif a != AWAY:
            total += distance(xy[a], xy[b])
    return total


def least_mapping_error(recovered, truth, xy):
    """The least total error of a matching of all people, with people who are always away where there are too few."""
    price, people = price_of_away(truth, xy), max(len(recovered), len(truth))
    always = [AWAY] * len(truth[0])
    rows, columns = ([*side] + [always] * (people - len(side)) for side in (recovered, truth))
    return least_cost([[trajectory_error(mine, theirs, xy, price) for theirs in columns] for mine in rows])


def share(right, points):
    return right / points if points else math.nan


def right(mine, theirs):
    """At how many points both are counted in the same location."""
    return sum(a == b for a, b in zip(mine, theirs, strict=True) if b != AWAY)


def accuracy(mine, theirs):
    """The share of the points at which the true person is counted that are right; exchange the two for the precision."""
    return share(right(mine, theirs), len(counted(theirs)))


def levenshtein_accuracy(mine, theirs):
    """Over the counted locations, one less the edit distance as a share of the longer path."""
    mine, theirs = counted(mine), counted(theirs)
    return 1 - levenshtein(mine, theirs) / max(len(mine), len(theirs)) if theirs else math.nan


def levenshtein(a, b):
    """The textbook table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def uniqueness(cells, k):
    """Share of people whose set of k most frequent places nobody else has; ties go to the lower index.

    Steps at which people are away do not count, and people who are always away do not either.
    """
    sets = []
    for person in filter(None, map(counted, cells)):
        places = sorted(set(person), key=lambda place: (-list(person).count(place), place))
        sets.append(frozenset(places[:k]))
    return sum(sets.count(one) == 1 for one in sets) / max(len(sets), 1)


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
        others = [step for step in range(len(person)) if step not in steps and person[step] != AWAY]
        learnt = sum(picked[step] == person[step] for step in others) / len(others) if others else math.nan
        results.append((best, learnt))
    return results


def tables_within(low, high, rows, columns):
    """All tables of whole numbers within limits, with these sums of rows and columns, as tuples row by row."""
    cells = [(i, j) for i in range(len(rows)) for j in range(len(columns))]

    def fill(at, left_rows, left_columns):
        if at == len(cells):
            if not any(left_rows) and not any(left_columns):
                yield ()
            return
        i, j = cells[at]
        most = int(min(high[i][j], left_rows[i], left_columns[j]))
        for number in range(int(low[i][j]), most + 1):
            rest_rows = [left - number * (k == i) for k, left in enumerate(left_rows)]
            rest_columns = [left - number * (k == j) for k, left in enumerate(left_columns)]
            if j == len(columns) - 1 and rest_rows[i]:
                continue
            for rest in fill(at + 1, rest_rows, rest_columns):
                yield (number, *rest)

    return fill(0, [int(n) for n in rows], [int(n) for n in columns])
