"""How much more an attacker with a past finds: other people's traces, earlier days of the same people, known people.

python -m benchmarks.priors [RECIPE or DATASET ...] [--kind NAME ...] [--attack enhanced] [--model counted] [--seeds 3]

Half of the people, drawn by the seed, are the ones who are scored. Traces and known people are of the other half, so that
nobody who is scored is in them, and the score is of the same people whatever is known. The known past is of all people,
the days right before those that are attacked. Mean over the seeds, with the lowest and the highest. The neural model needs
the extra ``learned``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rekindle as rk
from benchmarks.recipes import RECIPES
from rekindle.cli.shared import make_attack

SHARES = (0.01, 0.05, 0.2, 0.5)
Table = dict[str, list[tuple[float, float]]]


def some(truth: rk.Trajectories, rows: NDArray[np.integer]) -> rk.Trajectories:
    """Some of the people."""
    seen = None if truth.observed is None else truth.observed[rows]
    names = [truth.people_ids[row] for row in rows]
    return rk.Trajectories(truth.cells[rows], truth.locations, truth.calendar, names, seen)


def timed(table: Table, row: str, measure: Callable[[], float]) -> None:
    """Add an accuracy and its processor seconds to a table."""
    begin = time.process_time()
    accuracy = measure()
    table.setdefault(row, []).append((accuracy, time.process_time() - begin))
    values = [each for each, _ in table[row]]
    print(f"  {row}: {accuracy:.3f} (mean so far {np.mean(values):.3f})", flush=True)


def other_traces(table: Table, truth: rk.Trajectories, given: argparse.Namespace, seed: int) -> None:
    """Only the scored half is counted; the traces are of so many of the others, as a share of all people."""
    order = np.random.default_rng(seed).permutation(truth.people)
    half = truth.people // 2
    attacked = some(truth, order[:half])
    counts = attacked.counts()
    timed(table, "chance", lambda: rk.evaluate(rk.Chance(seed=seed).recover(counts).trajectories, attacked).accuracy)
    for name in given.attack:
        attack = attack_of(name, given, seed)

        def measure(prior: rk.attacks.Prior | None, attack: rk.Attack = attack) -> float:
            return rk.evaluate(attack.recover(counts, prior=prior).trajectories, attacked).accuracy

        timed(table, f"{name}, nothing known", lambda run=measure: run(None))
        for share in given.shares:
            people = round(share * truth.people)
            if not people:
                continue
            known = some(truth, order[half : half + people])
            for model in given.model:
                row = f"{name}, {share:.0%} known ({people} people), {model}"
                prior = rk.OtherTraces(known, model=model, seed=seed)
                timed(table, row, lambda run=measure, prior=prior: run(prior))


def known_people(table: Table, truth: rk.Trajectories, given: argparse.Namespace, seed: int) -> None:
    """Everyone is counted; so many of the half that is not scored are known, as a share of all people."""
    order = np.random.default_rng(seed).permutation(truth.people)
    half = truth.people // 2
    scored = {truth.people_ids[row] for row in order[:half]}
    counts = truth.counts()

    def accuracy(found: rk.Trajectories, known: tuple[str, ...] = ()) -> float:
        others = truth.without(known)
        one = rk.evaluate(found, truth, leave_out=known).per_person
        rows = np.array([name in scored for name in others.people_ids])
        return float((one.accuracy[rows] * one.points[rows]).sum() / one.points[rows].sum())

    timed(table, "chance", lambda: accuracy(rk.Chance(seed=seed).recover(counts).trajectories))
    for name in given.attack:
        attack = attack_of(name, given, seed)
        for share in (0.0, *given.shares):
            people = round(share * truth.people)
            if share and not people:
                continue
            known = some(truth, order[half : half + people]) if people else None
            prior = None if known is None else rk.KnownPeople(known)
            names = () if known is None else known.people_ids

            def measure(attack: rk.Attack = attack, prior: rk.KnownPeople | None = prior, names=names) -> float:
                return accuracy(attack.recover(counts, prior=prior).trajectories, names)

            timed(table, f"{name}, {share:.0%} known ({people} people)", measure)


def known_past(table: Table, truth: rk.Trajectories, given: argparse.Namespace, seed: int) -> None:
    """The last days are attacked, by someone who knows so many days before them; scored by name."""
    per_day = truth.calendar.steps_per_day
    whole = truth.steps - truth.steps % per_day
    cut = whole - given.attacked_days * per_day
    today = truth.part(slice(cut, whole))
    counts = today.counts()
    guess = rk.Chance(seed=seed).recover(counts).trajectories
    guess = rk.Trajectories(guess.cells, guess.locations, guess.calendar, truth.people_ids)
    timed(table, "chance, by name", lambda: rk.evaluate(guess, today, mapping="names").accuracy)
    for name in given.attack:
        attack = attack_of(name, given, seed)
        row = f"{name}, nothing known, not by name"
        timed(table, row, lambda attack=attack: rk.evaluate(attack.recover(counts).trajectories, today).accuracy)
        for days in given.past_days:
            if days * per_day > cut:
                continue
            prior = rk.KnownPast(truth.part(slice(cut - days * per_day, cut)))

            def measure(attack: rk.Attack = attack, prior: rk.KnownPast = prior) -> float:
                return rk.evaluate(attack.recover(counts, prior=prior).trajectories, today, mapping="names").accuracy

            timed(table, f"{name}, {days} days of the past", measure)


def attack_of(name: str, given: argparse.Namespace, seed: int) -> rk.Attack:
    """An attack by its name, with the seed of a run."""
    return make_attack(name, {"seed": seed} | ({"effort": given.effort, "workers": 1} if name == "habits" else {}))


KINDS = {"other-traces": other_traces, "known-past": known_past, "known-people": known_people}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", nargs="*", help="recipes, or dataset folders; all recipes by default")
    options.add_argument("--kind", action="append", choices=KINDS, help="all by default")
    options.add_argument("--attack", action="append", help="enhanced by default")
    options.add_argument("--model", action="append", help="of other people's traces: counted (default) or neural")
    options.add_argument("--effort", default="low", help="of Habits")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--days", type=int, default=None, help="of a city: more days than its recipe has")
    options.add_argument("--people", type=int, default=None, help="of a city")
    options.add_argument("--shares", type=float, nargs="+", default=SHARES, help="of all people: who is known")
    options.add_argument("--attacked-days", type=int, default=3)
    options.add_argument("--past-days", type=int, nargs="+", default=[1, 2, 4, 7, 14, 28])
    given = options.parse_args()
    given.attack, given.model = given.attack or ["enhanced"], given.model or ["counted"]
    for name in given.data or RECIPES:
        for kind in given.kind or KINDS:
            table: Table = {}
            print(f"\n{name}, {kind}", flush=True)
            for seed in range(given.seeds):
                truth = truth_of(name, seed, given)
                if truth is None:
                    print(f"{RECIPES[name].variable} names no folder; left out.")
                    break
                KINDS[kind](table, truth, given, seed)
            if table:
                print("| | accuracy | processor seconds |\n|---|---|---|")
            for row, values in table.items():
                each = [accuracy for accuracy, _ in values]
                seconds = np.mean([second for _, second in values])
                print(
                    f"| {row} | {np.mean(each):.3f} ({min(each):.3f}-{max(each):.3f}) | {seconds:.1f} |", flush=True
                )


def truth_of(name: str, seed: int, given: argparse.Namespace) -> rk.Trajectories | None:
    """The people of a recipe or a dataset folder."""
    if name not in RECIPES:
        return rk.read_dataset(Path(name)).truth
    recipe = RECIPES[name]
    asked = {"days": given.days, "people": given.people}
    if recipe.city:
        city = recipe.city | {key: value for key, value in asked.items() if value is not None}
        recipe = type(recipe)(recipe.use, city=city)
    return recipe.truth(seed)


if __name__ == "__main__":
    main()
