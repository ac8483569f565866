"""How often do the 95% intervals of an audit hold the mean over fresh cities?

Every city is another draw of people, homes, centres and row orders. An interval is made from one city alone; the truth it
should hold is the mean over all cities. Also printed: the width of the intervals beside the spread between cities.

    python -m benchmarks.coverage --cities 200
"""

from __future__ import annotations

import argparse

import joblib
import numpy as np

import rekindle as rk
from rekindle.auditing.risk import estimate, estimate_advantage
from rekindle.auditing.tasks import REFERENCE_ATTEMPTS, Attempt
from rekindle.evaluation.exposure import expose

CHANCE, NAIVE, _ = REFERENCE_ATTEMPTS
ATTEMPTS = (
    NAIVE,
    Attempt("baseline", rk.Baseline()),
    Attempt("enhanced", rk.Enhanced()),
)


def tables(city: int, people: int, days: int, orders: int) -> dict[str, np.ndarray]:
    """(orders, people) accuracies of each attack in one city."""
    truth = rk.SyntheticCity(people=people, days=days, step="30min", seed=city).trajectories()
    counts = truth.counts()
    return {
        attempt.name: np.array(
            [expose(attempt.recover(counts, seed).trajectories, truth, draws=1).accuracy for seed in range(orders)]
        )
        for attempt in (CHANCE, *ATTEMPTS)
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cities", type=int, default=200)
    options.add_argument("--people", type=int, default=40)
    options.add_argument("--days", type=int, default=3)
    options.add_argument("--orders", type=int, nargs="+", default=[1, 3])
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    print(f"{given.cities} cities of {given.people} people, {given.days} days, steps of 30 minutes")
    print(
        f"{'row orders':>10} {'attack':>9} {'what':>9} {'mean':>6} {'coverage':>9} {'width':>6} {'spread x 3.92':>13}"
    )
    found = joblib.Parallel(given.workers)(
        joblib.delayed(tables)(city, given.people, given.days, max(given.orders)) for city in range(given.cities)
    )
    for orders in given.orders:
        cities = [{name: table[:orders] for name, table in one.items()} for one in found]
        for attempt in ATTEMPTS:
            for what, intervals in (
                ("accuracy", [estimate(city[attempt.name]) for city in cities]),
                ("advantage", [estimate_advantage(city[attempt.name], city["chance"]) for city in cities]),
            ):
                values = np.array([one.value for one in intervals])
                held = np.mean([one.low <= values.mean() <= one.high for one in intervals])
                width = np.mean([one.high - one.low for one in intervals])
                print(
                    f"{orders:>10} {attempt.name:>9} {what:>9} {values.mean():>6.3f} {held:>9.3f} {width:>6.3f} "
                    f"{3.92 * values.std(ddof=1):>13.3f}"
                )


if __name__ == "__main__":
    main()
