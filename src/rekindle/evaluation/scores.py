"""How much of the truth a recovery found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from rekindle.errors import InvalidData
from rekindle.evaluation.chance import deal_at_random, stay_if_possible
from rekindle.evaluation.mapping import map_people
from rekindle.evaluation.unique import distinct_sets, uniqueness
from rekindle.model import Trajectories

__all__ = [
    "METRICS",
    "Evaluation",
    "Metric",
    "PerPerson",
    "ReferenceScores",
    "Spread",
    "evaluate",
    "reference_scores",
]

TOP_K = range(1, 6)


@dataclass(frozen=True)
class Metric:
    """A number of an evaluation, with its unit and the direction in which more was recovered.

    Attributes
    ----------
    name, unit
        What it is called and measured in.
    exposed_when
        Whether people are more exposed where it is "higher" or "lower".
    meaning
        What it says, in a few words.
    value
        Reads it from an `Evaluation`.
    """

    name: str
    unit: str
    exposed_when: Literal["higher", "lower"]
    meaning: str
    value: Callable[[Evaluation], float]


@dataclass(frozen=True, eq=False)
class PerPerson:
    """What was recovered of each person, in the order of the recovered people.

    Attributes
    ----------
    matched
        (people,) int64: the row of the truth that the recovered person was matched with.
    accuracy
        (people,) float64: share of steps in the right place.
    error_km
        (people,) float64: mean distance to the truth, km.
    levenshtein_accuracy
        (people,) float64: one less the edit distance as a share of the steps.
    """

    matched: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    error_km: NDArray[np.float64]
    levenshtein_accuracy: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How much of the truth a recovery found, under one mapping of recovered to true people.

    Attributes
    ----------
    accuracy
        Share of points (person and step) in the right place, between 0 and 1.
    recovery_error_km
        Sum of the distances between recovered and true points, km.
    mean_error_km
        The same for each point.
    levenshtein_accuracy
        Like accuracy, but a stay that is shifted in time still counts.
    uniqueness, truth_uniqueness
        By k = 1..5: share of people whose set of k most frequent places nobody else has.
    distinct_sets, truth_distinct_sets
        By k = 1..5: distinct such sets per person, which the published code calls uniqueness.
    per_person
        The numbers of each person.
    mapping
        How people were matched: "optimal" (least total error) or "greedy" (Xu et al.).
    mapping_gap
        How far the total error may be above the least possible, as a share of it; 0 where the mapping is exact.
    """

    accuracy: float
    recovery_error_km: float
    mean_error_km: float
    levenshtein_accuracy: float
    uniqueness: dict[int, float]
    truth_uniqueness: dict[int, float]
    distinct_sets: dict[int, float]
    truth_distinct_sets: dict[int, float]
    per_person: PerPerson
    mapping: str = "optimal"
    mapping_gap: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Everything but the numbers of each person, in plain values."""
        values = {metric.name: metric.value(self) for metric in METRICS}
        for name in ("uniqueness", "truth_uniqueness", "distinct_sets", "truth_distinct_sets"):
            values[name] = {str(k): share for k, share in getattr(self, name).items()}  # type: ignore[assignment]
        return values | {"mapping": self.mapping, "mapping_gap": self.mapping_gap}


METRICS = (
    Metric("accuracy", "share", "higher", "points in the right place", lambda e: e.accuracy),
    Metric("mean_error_km", "km", "lower", "distance of a point to the truth", lambda e: e.mean_error_km),
    Metric("recovery_error_km", "km", "lower", "sum of all distances", lambda e: e.recovery_error_km),
    Metric(
        "levenshtein_accuracy",
        "share",
        "higher",
        "like accuracy, but stays may be shifted in time",
        lambda e: e.levenshtein_accuracy,
    ),
)
"""The numbers that every evaluation has one of. To add one, add a line here."""


def evaluate(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    mapping: Literal["optimal", "greedy"] = "optimal",
    progress: Callable[[int, int | None], None] | None = None,
) -> Evaluation:
    """Compare recovered trajectories with the true ones.

    Recovered people have no names, so they are first matched with true people, one to one.

    Parameters
    ----------
    recovered, truth
        Trajectories of the same number of people, places and steps.
    mapping
        "optimal": the matching with the least total error, as in the paper. "greedy": each recovered person in turn takes
        the most similar true person who is left, as in Xu et al.
    progress
        Called during the mapping of large datasets.
    """
    if recovered.locations != truth.locations:
        raise InvalidData("The recovery has other locations than the truth.")
    if recovered.calendar != truth.calendar:
        raise InvalidData(
            f"The recovery has the calendar {recovered.calendar.to_json()}, the truth {truth.calendar.to_json()}."
        )
    if recovered.people != truth.people:
        raise InvalidData(f"The recovery has {recovered.people} people, the truth {truth.people}.")
    if not truth.steps:
        raise InvalidData("There are no steps to compare yet.")
    found = map_people(recovered, truth, method=mapping, progress=progress)
    per_person = _compare(recovered, truth, found.matched)
    total = float(per_person.error_km.sum() * truth.steps)
    return Evaluation(
        accuracy=float(per_person.accuracy.mean()),
        recovery_error_km=total,
        mean_error_km=float(per_person.error_km.mean()),
        levenshtein_accuracy=float(per_person.levenshtein_accuracy.mean()),
        uniqueness={k: uniqueness(recovered, k) for k in TOP_K},
        truth_uniqueness={k: uniqueness(truth, k) for k in TOP_K},
        distinct_sets={k: distinct_sets(recovered, k) for k in TOP_K},
        truth_distinct_sets={k: distinct_sets(truth, k) for k in TOP_K},
        per_person=per_person,
        mapping=mapping,
        mapping_gap=found.gap,
    )


def _compare(recovered: Trajectories, truth: Trajectories, matched: NDArray[np.int64]) -> PerPerson:
    people = recovered.people
    accuracy, error, edits = np.empty(people), np.empty(people), np.empty(people)
    xy = truth.locations.xy_km
    for person in range(people):
        mine, theirs = recovered.cells[person], truth.cells[matched[person]]
        accuracy[person] = (mine == theirs).mean()
        error[person] = np.hypot(*(xy[mine] - xy[theirs]).T).mean()
        edits[person] = 1.0 - Levenshtein.distance(_text(mine), _text(theirs)) / truth.steps
    return PerPerson(matched, accuracy, error, edits)


def _text(cells: NDArray[np.integer]) -> str:
    """One character a place: rapidfuzz compares texts fastest."""
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
    def of(cls, values: list[float]) -> Spread:
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
        By the name of the metric: people dealt out at random.
    naive
        By the name of the metric: as many as possible stay.
    """

    chance: dict[str, Spread]
    naive: dict[str, Spread]


def reference_scores(
    truth: Trajectories, *, seeds: int = 5, mapping: Literal["optimal", "greedy"] = "optimal"
) -> ReferenceScores:
    """Measure chance (people dealt out at random) and the naive attack (people stay), each over several seeds.

    Parameters
    ----------
    truth
        Where everyone really was.
    seeds
        How many deals to average over.
    mapping
        How rebuilt people are matched with true ones, as in `evaluate`.
    """
    counts = truth.counts()
    found: list[dict[str, Spread]] = []
    for attack in (deal_at_random, stay_if_possible):
        results = [evaluate(attack(counts, seed=seed), truth, mapping=mapping) for seed in range(seeds)]
        found.append({metric.name: Spread.of([metric.value(result) for result in results]) for metric in METRICS})
    return ReferenceScores(*found)
