"""Both attacks on the aggregates that were published with the paper: 197 taxis, 4,321 steps of 10 minutes."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests import real

import rekindle as rk

PORTO = real.folder("REKINDLE_PORTO", "porto")


@pytest.fixture(scope="module", params=["3x3", "7x7"])
def counts(request):
    return rk.read_counts(
        PORTO / f"Porto_taxi_aggregated_{request.param}.csv", PORTO / f"Porto_taxi_grid_{request.param}.csv"
    )


def targets(attack, xy, previous, current, transitions):
    """Costs of every row to every place, from the equations, vectorised."""
    points = [2 * xy[current] - xy[previous]]
    cost = np.hypot(*(points[0][:, None] - xy).transpose(2, 0, 1))
    if isinstance(attack, rk.Enhanced):
        b = transitions[current]
        popular = (b == b.max(axis=1, keepdims=True)) & (b > 0)
        distances = np.hypot(*(xy[:, None] - xy).transpose(2, 0, 1))
        nearest = np.where(popular[:, :, None], distances[None], np.inf).min(axis=1)
        cost = np.minimum(cost, nearest)
    return cost


@pytest.mark.parametrize("attack", [rk.Baseline(), rk.Enhanced()], ids=["baseline", "enhanced"])
def test_to_the_end_with_exact_counts_and_optimal_steps(attack, counts):
    found = attack.recover(counts)
    cells = found.trajectories.cells
    assert cells.shape == (197, 4321)
    assert found.trajectories.counts() == counts
    assert found.details.gap == 0

    xy, places = counts.locations.xy_km, len(counts.locations)
    transitions = np.zeros((places, places), dtype=int)
    checked = 0
    for number, day in enumerate(counts.calendar.days()):
        # Every step of some days, and some steps of all: SciPy needs a minute for all of them.
        steps = range(day.start, day.stop - 1) if number in (0, 15) else range(day.start, day.stop - 1, 24)
        for step in steps:
            first = step == day.start
            stay = first or (isinstance(attack, rk.Baseline) and counts.calendar.time(step).hour < 6)
            previous = cells[:, step] if stay else cells[:, step - 1]
            plain = rk.Baseline() if stay else attack
            cost = targets(plain, xy, previous, cells[:, step], transitions)
            matrix = cost[:, np.repeat(np.arange(places), counts.values[step + 1])]
            least = matrix[linear_sum_assignment(matrix)].sum()
            assert found.details.step_costs[step + 1] == pytest.approx(least, abs=1e-9)
            assert cost[np.arange(197), cells[:, step + 1]].sum() == pytest.approx(least, abs=1e-9)
            checked += 1
        begin = max(0, day.start - 1)
        np.add.at(transitions, (cells[:, begin : day.stop - 1].ravel(), cells[:, begin + 1 : day.stop].ravel()), 1)
    assert checked > 400
