"""How much attacks find, beside chance and the naive attack: on fixed recipes, or on any dataset with a truth.

python -m benchmarks.accuracy [RECIPE or DATASET ...] [--attack NAME ...] [--use tune] [--seeds 3] [--effort normal] [--parts]

Without data: all recipes of `benchmarks.recipes` whose folders environment variables name, and the synthetic cities. Each
seed changes the order of the people, the order of the places and the search; of a city, also the city. Accuracy is the
share of right points under the matching of least total error, of all points and of those that were observed rather than
filled in; the spread is the lowest and highest of the seeds. Seconds are those of the processor. An attack of your own is
``--attack package:Class``; chance and the naive attack always stand beside it. ``--parts`` shows what each part of Habits adds.
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
from benchmarks.recipes import RECIPES
from rekindle.attacks import ATTACKS, REFERENCES
from rekindle.attacks.alignment import align
from rekindle.attacks.habits.consensus import decode
from rekindle.attacks.habits.polish import polish
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.schedule import CUTS, Answer, Schedule, doubt, finish, follow, gather
from rekindle.attacks.habits.track import track
from rekindle.cli.shared import make_attack
from rekindle.evaluation.confidence import Confidence, assess_confidence


@dataclass
class Table:
    """Accuracies and seconds by row, in the order in which the rows were met first."""

    accuracy: dict[str, list[float]] = field(default_factory=dict)
    observed: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    claims: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)

    def add(self, row: str, truth: rk.Trajectories, found: rk.Trajectories, seconds: float) -> None:
        if found.counts() != truth.counts():
            raise RuntimeError(f"{row} does not have the counts")
        result = rk.evaluate(found, truth)
        self.accuracy.setdefault(row, []).append(result.accuracy)
        self.observed.setdefault(row, []).append(result.accuracy_observed)
        self.seconds.setdefault(row, []).append(seconds)

    def claim(self, row: str, sure: Confidence) -> None:
        found = sure.claims
        numbers = (found.points, found.points_right, found.people, found.people_right, sure.calibration_error)
        self.claims.setdefault(row, []).append(numbers)

    def show(self) -> None:
        print("| | accuracy | accuracy, observed points | seconds |\n|---|---|---|---|")
        for row, values in self.accuracy.items():
            cells = [
                "-" if np.isnan(each).any() else f"{np.mean(each):.3f} ({min(each):.3f}-{max(each):.3f})"
                for each in (values, self.observed[row])
            ]
            print(f"| {row} | {' | '.join(cells)} | {np.mean(self.seconds[row]):.1f} |", flush=True)
        for row, numbers in self.claims.items():
            points, right, people, people_right, error = np.nanmean(numbers, axis=0)
            print(
                f"\n{row} claims with 90% confidence: {points:.1%} of the points, of which {right:.1%} are right; "
                f"{people:.1%} of the people, of whose points {people_right:.1%} are right; calibration error {error:.3f}"
            )


def in_another_order(truth: rk.Trajectories, seed: int) -> rk.Trajectories:
    """The same people, with people and places listed in another order."""
    random = np.random.default_rng(seed)
    places, people = random.permutation(len(truth.locations)), random.permutation(truth.people)
    locations = rk.Locations(truth.locations.xy_km[places])
    index = np.append(np.argsort(places), rk.AWAY)  # which is the last one, at -1
    seen = None if truth.observed is None else truth.observed[people]
    return rk.Trajectories(index[truth.cells[people]].astype(np.int32), locations, truth.calendar, observed=seen)


def measure(table: Table, truth: rk.Trajectories, given: argparse.Namespace, seed: int) -> None:
    """Run each attack on one order of people and places."""
    counts = truth.counts()
    for name in dict.fromkeys([*REFERENCES, *(given.attack or ATTACKS)]):
        attack = attack_of(name, given.effort, seed)
        begin = time.process_time()
        found = attack.recover(counts)
        table.add(name, truth, found.trajectories, time.process_time() - begin)
        if found.confidence is not None:
            table.claim(name, assess_confidence(found.trajectories, found.confidence, truth))


def attack_of(name: str, effort: str, seed: int) -> rk.Attack:
    """An attack or a reference by its name; with a seed, if it has that setting."""
    if name in REFERENCES:
        return REFERENCES[name](seed=seed)  # type: ignore[call-arg]
    settings = make_attack(name, {}).settings()
    asked = {"seed": seed, "effort": effort}
    return make_attack(name, {key: value for key, value in asked.items() if key in settings})


def measure_parts(table: Table, truth: rk.Trajectories, given: argparse.Namespace, seed: int) -> None:
    """Run the parts of Habits one after the other."""
    counts = truth.counts()

    def timed(row: str, attack: Callable[[], rk.Trajectories]) -> None:
        begin = time.perf_counter()
        found = attack()
        table.add(row, truth, found, time.perf_counter() - begin)

    problem = Problem.of(counts.values, counts.locations, counts.calendar, counts.people)
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

        def again(number: int) -> Answer | None:
            return gather(problem, plan, [answers[one] for one in plan.group(number)], number, lambda: False)

        answers = stage(range(plan.answers), lambda number: follow(problem, plan, number, lambda: False))
        first = time.perf_counter() - begin
        for level in plan.by_level[1:]:
            answers.update(stage(level, again))
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
    table.claim("Habits", assess_confidence(whole(tracks), np.repeat(confidence, problem.lengths, axis=1), truth))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", nargs="*", help="recipes, or dataset folders; all recipes by default")
    options.add_argument("--use", choices=("tune", "confirm"), help="of the recipes, only those for that")
    options.add_argument("--attack", action="append", help="all built-in attacks by default")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--effort", default="normal", help="of Habits")
    options.add_argument("--parts", action="store_true", help="the parts of Habits")
    options.add_argument("--workers", type=int, default=2, help="for the parts of Habits")
    given = options.parse_args()
    for name in given.data or [name for name, one in RECIPES.items() if given.use in (None, one.use)]:
        table = Table()
        for seed in range(given.seeds):
            truth = RECIPES[name].truth(seed) if name in RECIPES else rk.read_dataset(Path(name)).truth
            if truth is None:
                break
            (measure_parts if given.parts else measure)(table, in_another_order(truth, seed), given, seed)
        if truth is None:
            why = (
                f"{RECIPES[name].variable} names no folder" if name in RECIPES else "it has no truth to compare with"
            )
            print(f"\n{name}: left out, {why}.", flush=True)
            continue
        away = 1 - truth.counted.mean()
        seen = "all" if truth.observed is None else f"{truth.observed.sum() / truth.counted.sum():.1%}"
        print(
            f"\n{name}: {truth.people} people, {truth.steps} steps, {len(truth.locations)} places, {away:.1%} away, "
            f"{seen} of the points observed, {given.seeds} seeds\n"
        )
        table.show()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"most memory so far: {memory:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
