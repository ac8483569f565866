"""Fit the confidence of Habits on some datasets, and see whether it holds on others.

    python -m benchmarks.calibration --tune geo36 geo45 --confirm geo41 cabs --cities 5
    python -m benchmarks.calibration --many        26 cities of 900 to 10,000 people, each left out of the fit in turn: a quarter of an hour

Datasets are folders with a truth. Cities with seeds below 10 are tuned on, those from 10 on confirm; each is made with and
without routine. Prints the weights of `rekindle.attacks.habits.doubt`, and the calibration error of every dataset with the
weights that are shipped and with those of the fit. The weight of being away is fitted after the others, where somebody is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rekindle as rk
from rekindle.attacks.habits import doubt as doubts
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.schedule import Schedule, _agree, doubt, follow, gather, measure_gains, vote
from rekindle.evaluation import assess_confidence, map_people
from rekindle.evaluation.mapping import Mapping

WITHOUT_ROUTINE = {"share_without_routine": 1, "share_night_workers": 0, "share_without_work": 0}
KINDS: dict[str, dict[str, Any]] = {
    "city": {},
    "without routine": WITHOUT_ROUTINE,
    "half without routine": {"share_without_routine": 0.5},
    "30 people, 2 weeks": {"people": 30, "days": 14},
    "100 people, 2 weeks": {"people": 100, "days": 14},
    "steps of 10 minutes": {"people": 40, "days": 5, "step": "10min"},
    "cells of 2 km": {"people": 150, "cell_km": 2.0},
    "3 days": {"people": 30, "days": 3},
    "1 day": {"days": 1},
    "9 locations": {"width_km": 3, "height_km": 3},
    "60% of the phones off": {"share_phones_off_at_random": 0.6},
    "60% of the phones off, without routine": WITHOUT_ROUTINE | {"share_phones_off_at_random": 0.6},
    "60% of the phones off, steps of 10 minutes": {
        "people": 40,
        "days": 5,
        "step": "10min",
        "share_phones_off_at_random": 0.6,
    },
}
HALF_WITHOUT = {"share_without_routine": 0.5}
MANY: list[tuple[str, str, int, dict[str, Any]]] = [
    ("routine", "low", 20, {"seed": 0}),
    ("routine", "normal", 20, {"seed": 1}),
    ("routine", "normal", 20, {"seed": 2, "people": 900, "days": 14}),
    ("routine", "low", 20, {"seed": 2, "days": 2}),
    ("routine", "low", 20, {"seed": 0, "share_phones_off_at_night": 0.4}),
    ("routine", "low", 20, {"seed": 0, "people": 3000}),
    ("routine", "low", 60, {"seed": 0, "people": 3000}),
    ("routine", "normal", 60, {"seed": 3, "people": 2000}),
    ("routine", "low", 20, {"seed": 6, "people": 2000, "cell_km": 2.0}),
    ("routine", "low", 20, {"seed": 7, "people": 10_000}),
    ("half", "low", 20, {"seed": 0} | HALF_WITHOUT),
    ("half", "low", 40, {"seed": 2, "people": 2000} | HALF_WITHOUT),
    ("half", "normal", 40, {"seed": 4} | HALF_WITHOUT),
    ("none", "low", 20, {"seed": 0} | WITHOUT_ROUTINE),
    ("none", "normal", 20, {"seed": 1} | WITHOUT_ROUTINE),
    ("none", "low", 20, {"seed": 5, "days": 2} | WITHOUT_ROUTINE),
    ("none", "low", 20, {"seed": 11, "people": 2000} | WITHOUT_ROUTINE),
    ("none", "low", 60, {"seed": 1, "people": 3000} | WITHOUT_ROUTINE),
    ("none", "low", 40, {"seed": 12, "people": 5000} | WITHOUT_ROUTINE),
]
"""Who has a routine, effort, people a square kilometre and settings of the cities of many people."""
MANY_CONFIRM: list[tuple[str, str, int, dict[str, Any]]] = [
    ("routine", "low", 30, {"seed": 20, "people": 4000}),
    ("none", "low", 30, {"seed": 21, "people": 1500} | WITHOUT_ROUTINE),
    ("half", "low", 60, {"seed": 22} | HALF_WITHOUT),
    ("none", "normal", 50, {"seed": 23, "people": 2500} | WITHOUT_ROUTINE),
    ("routine", "low", 20, {"seed": 24, "people": 1500, "days": 4, "share_visitors": 0.2}),
    ("routine", "normal", 20, {"seed": 0, "people": 10_000}),
    ("none", "low", 20, {"seed": 8, "people": 10_000} | WITHOUT_ROUTINE),
]
"""Looked at once, when everything was fixed."""
POINTS = 8000
FOLDERS_COUNT = 4
"""Times as much as a kind of city do the folders count in the fit."""
NOT_FITTED = "one day"
FITTED_LAST = "away"


@dataclass
class Sample:
    """One recovery, with what its confidence is made of.

    Attributes
    ----------
    name, kind
        What it is, and of which kind; all kinds count alike in the fit.
    tuned
        Whether the fit sees it.
    recovered, truth, mapping
        Paths, and who is who.
    probability, votes, lengths, gains, counted
        As in `calibrate`.
    """

    name: str
    kind: str
    tuned: bool
    recovered: rk.Trajectories
    truth: rk.Trajectories
    mapping: Mapping
    probability: NDArray[np.float32]
    votes: NDArray[np.float32]
    lengths: NDArray[np.int64]
    gains: doubts.Gains
    counted: NDArray[np.bool_] | None

    def sure(self) -> NDArray[np.float32]:
        """(people, steps) float32: the confidence."""
        found = doubts.calibrate(self.probability, self.votes, self.lengths, self.gains, self.counted)
        return np.repeat(found, self.lengths, axis=1)

    def calibration_error(self) -> tuple[float, float, float]:
        """Calibration error, share of points claimed at 90%, and share of those that are right."""
        found = assess_confidence(self.recovered, self.sure(), self.truth, mapping=self.mapping)
        return found.calibration_error, found.claims.points, found.claims.points_right

    def names(self) -> list[str]:
        """What the columns of `rows` are."""
        return list(doubts.terms(self.probability[:1], self.votes[:1], self.lengths, self.gains, None))

    def rows(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Terms of the log odds of some counted points, drawn at random, and whether they are right."""
        right = self.recovered.cells == self.truth.cells[self.mapping.matched]
        person, step = np.nonzero(self.recovered.counted)
        some = np.random.default_rng(0).integers(0, len(person), POINTS)
        person, step = person[some], step[some]
        tick = np.repeat(np.arange(len(self.lengths)), self.lengths)[step]
        found = doubts.terms(self.probability, self.votes, self.lengths, self.gains, self.counted)
        terms = [np.broadcast_to(each, self.votes.shape)[person, tick] for each in found.values()]
        return np.stack(terms, axis=1), right[person, step].astype(np.float64)


def recover(name: str, kind: str, tuned: bool, truth: rk.Trajectories, effort: str) -> Sample:
    """Run the parts of Habits up to the calibration."""
    counts = truth.counts()
    problem = Problem.of(counts.values, counts.locations, counts.calendar, counts.people)
    plan = Schedule.of(problem, effort, 0)

    def stopped() -> bool:
        return False

    answers = {number: follow(problem, plan, number, stopped) for number in range(plan.answers)}
    for number in range(plan.answers, plan.gathered):
        answers[number] = gather(problem, plan, [answers[one] for one in plan.group(number)], number, stopped)
    tracks, probability = _agree(problem, plan, plan.last(answers), plan.final_rounds, stopped)
    voters = [doubt(problem, plan, number, stopped) for number in range(plan.gathered, plan.parts)]
    recovered = rk.Trajectories(problem.expand(tracks), counts.locations, counts.calendar)
    votes = vote(problem, tracks, voters)
    gains = measure_gains(problem, plan, tracks, [answers[one] for one in range(plan.answers)], voters)
    mapping = map_people(recovered, truth)
    counted = None if problem.away < 0 else tracks != problem.away
    return Sample(name, kind, tuned, recovered, truth, mapping, probability, votes, problem.lengths, gains, counted)


def fit(samples: list[Sample], names: list[str], weights: dict[str, float] = doubts.WEIGHTS) -> dict[str, float]:
    """Fit some weights by logistic regression (Newton's method), with the others as they are; every kind of city counts alike."""
    kinds = [one.kind for one in samples]
    terms, right = (np.concatenate(each) for each in zip(*(one.rows() for one in samples), strict=True))
    weight = np.repeat([(FOLDERS_COUNT if kind == "folders" else 1) / kinds.count(kind) for kind in kinds], POINTS)
    every = samples[0].names()
    free = np.array([name in names for name in every])
    given = terms[:, ~free] @ np.array([weights.get(name, 0.0) for name in every if name not in names])
    terms = terms[:, free]
    beta = np.zeros(terms.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-terms @ beta - given))
        slope = terms.T @ (weight * (chance - right)) + 1e-3 * beta
        curve = (terms * (weight * chance * (1 - chance))[:, None]).T @ terms + 1e-3 * np.eye(len(beta))
        beta -= np.linalg.solve(curve, slope)
    return dict(zip([name for name in every if name in names], beta.tolist(), strict=True))


def samples(given: argparse.Namespace) -> Iterator[Sample]:
    for folders, tuned in ((given.tune, True), (given.confirm, False)):
        for folder in folders:
            truth = rk.read_dataset(folder).truth
            if truth is None:
                raise SystemExit(f"{folder} has no truth to compare with.")
            yield recover(folder.name, "folders", tuned, truth, given.effort)
    for kind, settings in KINDS.items():
        for seed in (*range(given.cities), *range(10, 10 + given.cities)):
            truth = rk.SyntheticCity(**{"people": 60, "days": 7, "seed": seed} | settings).trajectories()
            yield recover(f"{kind}, seed {seed}", kind, seed < 10, truth, given.effort)


def many() -> None:
    """Fit the weights of many people, and leave each city, and all that are alike in who has a routine, out in turn."""
    found = []
    for kind, effort, density, settings in MANY + MANY_CONFIRM:
        people = settings.get("people", 1000)
        side = (people / density) ** 0.5
        truth = rk.SyntheticCity(
            **{"people": people, "days": 7, "step": "30min", "width_km": side, "height_km": side} | settings
        ).trajectories()
        found.append(recover(f"{settings}, {density}, {effort}", kind, len(found) < len(MANY), truth, effort))
    weights, tuned = doubts.WEIGHTS_OF_MANY, found[: len(MANY)]
    names = [name for name in weights if name != NOT_FITTED]
    shipped = dict(weights)

    def error(one: Sample, fitted: dict[str, float]) -> float:
        weights.update(fitted)
        return one.calibration_error()[0]

    every = fit(tuned, names, shipped)
    print("fitted:", ", ".join(f"{name} {value:.3f}" for name, value in every.items()))
    print(
        "\n| | | accuracy | too sure by | shipped | with the fit | left out of it | all of its kind left out |\n|---|---|---|---|---|---|---|---|"
    )
    for one in found:
        accuracy = rk.evaluate(one.recovered, one.truth, mapping=one.mapping).accuracy
        left_out = error(one, fit([other for other in tuned if other is not one], names, shipped))
        kind_out = error(one, fit([other for other in tuned if other.kind != one.kind], names, shipped))
        today = error(one, shipped)
        too_sure = one.sure()[one.recovered.counted].mean() - accuracy
        print(
            f"| {one.name} | {'tuned' if one.tuned else 'confirmed'} | {accuracy:.3f} | {too_sure:+.3f} | "
            f"{today:.3f} | {error(one, every):.3f} | {left_out:.3f} | {kind_out:.3f} |",
            flush=True,
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tune", nargs="*", type=Path, default=[], metavar="DATASET")
    options.add_argument("--confirm", nargs="*", type=Path, default=[], metavar="DATASET")
    options.add_argument("--cities", type=int, default=2, help="of each kind, to tune on and as many to confirm")
    options.add_argument("--effort", default="normal")
    options.add_argument("--many", action="store_true", help="the weights of many people, on cities alone")
    given = options.parse_args()
    if given.many:
        many()
        return
    found = list(samples(given))
    shipped = [one.calibration_error() for one in found]
    tuned = [one for one in found if one.tuned]
    first = [name for name in doubts.WEIGHTS if name not in (NOT_FITTED, FITTED_LAST)]
    for part, names in (
        ([one for one in tuned if one.counted is None], first),
        ([one for one in tuned if one.counted is not None], [FITTED_LAST]),
    ):
        fitted = fit(part, names) if part else {}
        print("fitted:", ", ".join(f"{name} {value:.2f}" for name, value in fitted.items()))
        doubts.WEIGHTS.update(fitted)
    print(
        "\n| | | accuracy | calibration error | with the fit | claimed at 90% | of which right |\n|---|---|---|---|---|---|---|"
    )
    for one, (error, claimed, right) in zip(found, shipped, strict=True):
        accuracy = rk.evaluate(one.recovered, one.truth, mapping=one.mapping).accuracy
        print(
            f"| {one.name} | {'tuned' if one.tuned else 'confirmed'} | {accuracy:.3f} | {error:.3f} | "
            f"{one.calibration_error()[0]:.3f} | {claimed:.0%} | {'-' if np.isnan(right) else f'{right:.0%}'} |"
        )


if __name__ == "__main__":
    main()
