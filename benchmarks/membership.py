"""How well it can be told who is in the data, by group size and protection.

python -m benchmarks.membership [--dataset NAME=FOLDER ...] [--targets 20] [--sizes 20 100 300 1000] [--flows] [--workers 1]

Without datasets, on a synthetic city. Each row is the mean over targets with its standard deviation over them. Raw points at
fine steps are coarsened to hours and to at most so many locations first, as the papers do.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import rekindle as rk
from rekindle.defences import NothingLeft
from rekindle.membership import infer_membership

RELEASES = {
    "raw": rk.Chain(),
    "withheld below 5": rk.Suppress(below=5),
    "geometric noise, epsilon 1 per event": rk.GeometricNoise(epsilon=1.0, per="event", seed=0),
    "geometric noise, epsilon 1 per person": rk.GeometricNoise(epsilon=1.0, per="person", seed=0),
}


def subset(truth: rk.Trajectories, people: np.ndarray) -> rk.Trajectories:
    names = [truth.people_ids[person] for person in people]
    return rk.Trajectories(truth.cells[people], truth.locations, truth.calendar, names)


def coarse(truth: rk.Trajectories, hours: int, locations: int) -> rk.Trajectories:
    """The first hours, at hourly steps, in grid cells so large that there are few enough."""
    per_hour = max(truth.calendar.steps_per_day // 24, 1)
    cells = truth.cells[:, ::per_hour][:, :hours]
    calendar = rk.Calendar(truth.calendar.start, "1h", cells.shape[1])
    truth = rk.Trajectories(cells, truth.locations, calendar, truth.people_ids)
    side = 2.0
    while len(truth.locations) > locations:
        side *= 1.25
        truth = rk.CoarserSpace(km=side).coarsen(truth)
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 300, 1000])
    parser.add_argument("--hours", type=int, default=72)
    parser.add_argument("--locations", type=int, default=100)
    parser.add_argument("--people", type=int, default=2400, help="people of the synthetic city; 0 leaves it out")
    parser.add_argument("--flows", action="store_true", help="publish the flows of each hour instead of the counts")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=["exact", "knock-knock", "zero-knowledge"])
    given = parser.parse_args()
    data = {
        "synthetic city": lambda: rk.SyntheticCity(
            people=given.people, days=given.hours // 24, step="1h"
        ).trajectories()
    }
    if not given.people:
        data.clear()
    for one in given.dataset:
        name, _, folder = one.partition("=")
        data[name] = lambda folder=folder: rk.read_dataset(folder).truth
    print("| data | group | release | attacker | AUC | TPR at 0.1% / 1% / 10% FPR | epsilon at least | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, load in data.items():
        truth = coarse(load(), given.hours, given.locations)
        for size in given.sizes:
            for label, defence in RELEASES.items():
                for method in given.methods:
                    show(name, truth, size, label, defence, method, given)


def show(name, truth, size, label, defence, method, given) -> None:
    random = np.random.default_rng(size)
    publish = defence.of_flows if given.flows else defence
    begin = time.process_time()
    try:
        if method == "exact":
            if size > truth.people:
                return
            people = subset(truth, random.permutation(truth.people)[:size])
            found = infer_membership(publish(people), people, defence, targets=given.targets)
        else:
            if 2 * size + 2 > truth.people:
                return
            found = infer_membership(
                publish(subset(truth, random.permutation(truth.people)[:size])),
                truth,
                defence,
                method=method,
                group=size,
                targets=given.targets,
                workers=given.workers,
            )
    except NothingLeft:
        return
    spread = np.std([person.auc for person in found.people])
    rates = " / ".join(f"{rate:.2f}" for rate in found.true_positives)
    epsilon = "" if found.epsilon is None else f"{found.epsilon:.3g}"
    print(
        f"| {name} | {size} | {label} | {method} | {found.auc:.3f} ± {spread:.3f} | {rates} | {epsilon} | "
        f"{time.process_time() - begin:.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
