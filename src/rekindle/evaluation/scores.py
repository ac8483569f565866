"""How much of the truth a recovery found, beside what anyone could reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from rekindle import checks
from rekindle.attacks import Chance, Naive
from rekindle.errors import InvalidData
from rekindle.evaluation.mapping import Mapping, MappingMethod, errors_km, resolve_mapping, right_points
from rekindle.evaluation.metrics import Metric
from rekindle.evaluation.unique import count_sets
from rekindle.model import Trajectories
from rekindle.progress import Progress

__all__ = ["METRICS", "Evaluation", "PerPerson", "ReferenceScores", "Spread", "evaluate", "reference_scores"]


@dataclass(frozen=True, eq=False)
class PerPerson:
    """What was recovered of each person, in the order of the true people. People without a match score 0.

    Attributes
    ----------
    matched
        (people,) int64: the recovered person that each true person was matched with; -1 for none.
    accuracy
        (people,) float64: share of steps in the right location.
    error_km
        (people,) float64: mean distance to the truth, km; NaN for people without a match.
    levenshtein_accuracy
        (people,) float64: one less the edit distance as a share of the steps.
    steps
        How many steps there are.
    """

    matched: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    error_km: NDArray[np.float64]
    levenshtein_accuracy: NDArray[np.float64]
    steps: int


METRICS: tuple[Metric[PerPerson], ...] = (
    Metric("accuracy", "share", "higher", "points in the right location", lambda one: float(one.accuracy.mean())),
    Metric(
        "mean_error_km",
        "km",
        "lower",
        "distance of a point to the truth",
        lambda one: float(np.nanmean(one.error_km)),
    ),
    Metric(
        "recovery_error_km",
        "km",
        "lower",
        "sum of all distances",
        lambda one: float(np.nansum(one.error_km) * one.steps),
    ),
    Metric(
        "levenshtein_accuracy",
        "share",
        "higher",
        "like accuracy, but stays may be shifted in time",
        lambda one: float(one.levenshtein_accuracy.mean()),
    ),
)
"""The numbers that every evaluation has one of. To add one, add a line here."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How much of the truth a recovery found, under one mapping of recovered to true people.

    All numbers are over the true people: those without a match score 0, and recovered people who are left over do not
    count. Distances are over people with a match.

    Attributes
    ----------
    scores
        By the name of the metric, its value; see `METRICS`.
    uniqueness, truth_uniqueness
        By k = 1..5: share of people whose set of k most frequent locations nobody else has.
    distinct_sets, truth_distinct_sets
        By k = 1..5: distinct such sets per person, which the published code calls uniqueness.
    per_person
        The numbers of each true person.
    mapping
        How people were matched; can be handed to other measures of the same recovery.
    """

    scores: dict[str, float]
    uniqueness: dict[int, float]
    truth_uniqueness: dict[int, float]
    distinct_sets: dict[int, float]
    truth_distinct_sets: dict[int, float]
    per_person: PerPerson
    mapping: Mapping

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(f'{name}={value:.3g}' for name, value in self.scores.items())})"

    @property
    def accuracy(self) -> float:
        """Share of points (person and step) in the right location, between 0 and 1."""
        return self.scores["accuracy"]

    @property
    def mean_error_km(self) -> float:
        """Mean distance between recovered and true points, km."""
        return self.scores["mean_error_km"]

    @property
    def recovery_error_km(self) -> float:
        """Sum of the distances between recovered and true points, km."""
        return self.scores["recovery_error_km"]

    @property
    def levenshtein_accuracy(self) -> float:
        """Like accuracy, but a stay that is shifted in time still counts."""
        return self.scores["levenshtein_accuracy"]

    def to_json(self) -> dict[str, Any]:
        """Everything but the numbers of each person, in plain values."""
        sets = ("uniqueness", "truth_uniqueness", "distinct_sets", "truth_distinct_sets")
        return (
            self.scores
            | {name: {str(k): share for k, share in getattr(self, name).items()} for name in sets}
            | {"mapping": self.mapping.method, "mapping_gap": self.mapping.gap}
        )


def evaluate(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    mapping: MappingMethod | Mapping = "optimal",
    progress: Progress | None = None,
) -> Evaluation:
    """Compare recovered trajectories with the true ones.

    Recovered people have no names, so they are first matched with true people, one to one.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same locations and steps. There may be more or fewer recovered than true people.
    mapping
        "optimal": the matching with the least total error, as in the paper. "greedy": each recovered person in turn takes
        the most similar true person who is left, as in Xu et al. Or a mapping that was found before.
    progress
        Called during the mapping of large datasets.
    """
    _check_comparable(recovered, truth)
    found = resolve_mapping(mapping, recovered, truth, progress)
    per_person = compare_people(recovered, truth, found)
    unique, distinct = count_sets(recovered)
    true_unique, true_distinct = count_sets(truth)
    return Evaluation(_score(per_person), unique, true_unique, distinct, true_distinct, per_person, found)


def _check_comparable(recovered: Trajectories, truth: Trajectories) -> None:
    if recovered.locations != truth.locations:
        raise InvalidData("The recovery has other locations than the truth.")
    if recovered.calendar != truth.calendar:
        raise InvalidData(
            f"The recovery has the calendar {recovered.calendar.to_json()}, the truth {truth.calendar.to_json()}."
        )
    if not truth.steps:
        raise InvalidData("There are no steps to compare yet.")


def compare_people(recovered: Trajectories, truth: Trajectories, mapping: Mapping) -> PerPerson:
    """Compare each true person with the recovered person they are matched with."""
    edits = np.zeros(truth.people)
    for person in np.flatnonzero(mapping.recovered >= 0):
        mine, theirs = recovered.cells[mapping.recovered[person]], truth.cells[person]
        edits[person] = 1.0 - Levenshtein.distance(_text(mine), _text(theirs)) / truth.steps
    return PerPerson(
        matched=mapping.recovered,
        accuracy=right_points(recovered, truth, mapping).mean(axis=1),
        error_km=errors_km(recovered, truth, mapping),
        levenshtein_accuracy=edits,
        steps=truth.steps,
    )


def _score(per_person: PerPerson) -> dict[str, float]:
    return {metric.name: metric.value(per_person) for metric in METRICS}


def _text(cells: NDArray[np.integer]) -> str:
    """One character per location: rapidfuzz compares texts fastest."""
    return cells.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


@dataclass(frozen=True)
class Spread:
    """A number over several seeds.

    Attributes
    ----------
    mean, sd
        Mean and standard deviation; 0 where there is one value only.
    values
        The number under each seed.
    """

    mean: float
    sd: float
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Gather the values of several seeds; one alone has no spread."""
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, tuple(values))

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.sd:.3f}"


@dataclass(frozen=True)
class ReferenceScores:
    """What anyone could reach on the same counts, without an attack.

    Attributes
    ----------
    chance
        By the name of the metric: everyone placed at random.
    naive
        By the name of the metric: as many as possible stay.
    """

    chance: dict[str, Spread]
    naive: dict[str, Spread]

    def __repr__(self) -> str:
        return f"ReferenceScores(accuracy by chance {self.chance['accuracy']}, naive {self.naive['accuracy']})"


def reference_scores(truth: Trajectories, *, seeds: int = 5, mapping: MappingMethod = "optimal") -> ReferenceScores:
    """Measure chance (everyone placed at random) and the naive attack (people stay), each over several seeds.

    Parameters
    ----------
    truth
        Where everyone really was.
    seeds
        How many seeds to average over.
    mapping
        How recovered people are matched with true ones, as in `evaluate`.
    """
    checks.whole("seeds", seeds, least=1)
    counts = truth.counts()
    found: list[dict[str, Spread]] = []
    for attack in (Chance, Naive):
        scores = []
        for seed in range(seeds):
            guess = attack(seed=seed).recover(counts).trajectories
            scores.append(_score(compare_people(guess, truth, resolve_mapping(mapping, guess, truth))))
        found.append({name: Spread.of([each[name] for each in scores]) for name in scores[0]})
    return ReferenceScores(*found)
