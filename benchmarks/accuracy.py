"""How much each part of Habits finds, beside chance and the paper's attacks, on any dataset with a truth.

python -m benchmarks.accuracy DATASET [DATASET ...] [--seeds 3] [--effort normal] [--workers 2]

Each seed changes the order of the people, the order of the places and the search. Accuracy is the share of right points
under the matching of least total error; the spread is the lowest and highest of the seeds.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rekindle as rk
from rekindle.attacks.habits.consensus import align, decode
from rekindle.attacks.habits.polish import polish
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.schedule import CUTS, Answer, Schedule, doubt, finish, follow, gather
from rekindle.attacks.habits.track import track
from rekindle.evaluation.confidence import assess_confidence


@dataclass
class Table:
    """Accuracies and seconds by row, in the order in which the rows were met first."""

    accuracy: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, row: str, truth: rk.Trajectories, found: rk.Trajectories, seconds: float) -> None:
        if found.counts() != truth.counts():
            raise RuntimeError(f"{row} does not have the counts")
        self.accuracy.setdefault(row, []).append(rk.evaluate(found, truth).accuracy)
        self.seconds.setdefault(row, []).append(seconds)

    def show(self) -> None:
        for row, values in self.accuracy.items():
            seconds = np.mean(self.seconds[row])
            print(
                f"| {row} | {np.mean(values):.3f} | {min(values):.3f}-{max(values):.3f} | {seconds:.1f} |", flush=True
            )


def in_another_order(truth: rk.Trajectories, seed: int) -> rk.Trajectories:
    """The same people, with people and places listed in another order."""
    random = np.random.default_rng(seed)
    places, people = random.permutation(len(truth.locations)), random.permutation(truth.people)
    locations = rk.Locations(truth.locations.xy_km[places])
    return rk.Trajectories(np.argsort(places)[truth.cells[people]].astype(np.int32), locations, truth.calendar)


def measure(
    table: Table, claims: list[tuple[float, ...]], truth: rk.Trajectories, given: argparse.Namespace, seed: int
) -> None:
    truth = in_another_order(truth, seed)
    counts = truth.counts()

    def timed(row: str, attack: Callable[[], rk.Trajectories]) -> None:
        begin = time.perf_counter()
        found = attack()
        table.add(row, truth, found, time.perf_counter() - begin)

    timed("chance", lambda: rk.Chance(seed=seed).recover(counts).trajectories)
    timed("baseline", lambda: rk.Baseline(seed=seed).recover(counts).trajectories)
    timed("enhanced", lambda: rk.Enhanced(seed=seed).recover(counts).trajectories)

    problem = Problem.of(counts.values, counts.locations, counts.calendar)
    plan = Schedule.of(problem, given.effort, seed)

    def whole(tracks: NDArray[np.int32]) -> rk.Trajectories:
        return rk.Trajectories(problem.expand(tracks), counts.locations, counts.calendar)

    timed("track", lambda: whole(track(problem, seed)))
    timed("+ re-link", lambda: whole(relink(problem, track(problem, seed), seed, segments_per_day=CUTS[0])))

    begin = time.perf_counter()
    with ThreadPoolExecutor(given.workers) as pool:

        def stage(numbers: range, find: Callable[[int], Answer | None]) -> dict[int, Answer]:
            found = zip(numbers, pool.map(find, numbers), strict=True)
            return {number: answer for number, answer in found if answer is not None}

        answers = stage(range(plan.answers), lambda number: follow(problem, plan, number, lambda: False))
        first = time.perf_counter() - begin
        answers |= stage(
            range(plan.answers, plan.gathered),
            lambda number: gather(problem, plan, [answers[n] for n in plan.group(number)], number, lambda: False),
        )
        answers |= stage(range(plan.gathered, plan.parts), lambda number: doubt(problem, plan, number, lambda: False))
    tracks, confidence = finish(problem, plan, answers, lambda: False)
    seconds = time.perf_counter() - begin

    ours = [answers[number] for number in range(plan.answers)]
    for number in range(min(4, plan.answers)):
        table.add("+ search (each answer)", truth, whole(ours[number].tracks), first / plan.answers)
    best = int(np.argmax([answer.score for answer in ours]))
    aligned = align([answer.tracks for answer in ours], best, lengths=problem.lengths, places=problem.counts.shape[1])
    table.add(f"+ consensus of {plan.answers}", truth, whole(decode(problem, aligned)[0]), first)
    if plan.final_rounds:
        polished = polish(problem, plan.model, aligned, rounds=plan.final_rounds)[0]
        table.add("+ polish", truth, whole(polished), first)
    table.add("+ groups: Habits", truth, whole(tracks), seconds)
    sure = assess_confidence(whole(tracks), np.repeat(confidence, problem.lengths, axis=1), truth)
    claims.append(
        (
            sure.claims.points,
            sure.claims.points_right,
            sure.claims.people,
            sure.claims.people_right,
            sure.calibration_error,
        )
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--effort", default="normal")
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    for folder in given.datasets:
        truth = rk.read_dataset(folder).truth
        if truth is None:
            raise SystemExit(f"{folder} has no truth to compare with.")
        table, claims = Table(), []
        for seed in range(given.seeds):
            measure(table, claims, truth, given, seed)
        print(
            f"\n{folder.name}: {truth.people} people, {truth.steps} steps, {len(truth.locations)} places, {given.seeds} seeds"
        )
        print("\n| | accuracy | spread | seconds |\n|---|---|---|---|")
        table.show()
        points, right, people, people_right, error = np.nanmean(claims, axis=0)
        print(
            f"\nclaimed with 90% confidence: {points:.1%} of the points, of which {right:.1%} are right; "
            f"{people:.1%} of the people, of whose points {people_right:.1%} are right; calibration error {error:.3f}"
        )
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"most memory so far: {memory:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
