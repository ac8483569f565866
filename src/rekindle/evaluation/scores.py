"""How much of the truth a recovery found, beside what anyone could reach."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from rekindle import checks
from rekindle.attacks import Chance, Naive
from rekindle.evaluation.mapping import Mapping, MappingMethod, resolve_mapping
from rekindle.evaluation.metrics import Metric
from rekindle.evaluation.mixing import mix_identities
from rekindle.evaluation.people import PersonScores, check_comparable, of_matched, ratio, score_people
from rekindle.evaluation.unique import count_sets
from rekindle.frames import Frame, Library, html_table, to_frame
from rekindle.model import AWAY, Trajectories
from rekindle.progress import Progress


@dataclass(frozen=True, eq=False)
class PerPerson(PersonScores):
    """What was recovered of each person: see `PersonScores`, and more.

    Attributes
    ----------
    missed
        (people,) float64: share of the points at which the person is counted and the matched recovered person is away, so
        that there is no distance; 1 for people without a match.
    levenshtein_accuracy
        (people,) float64: one less the edit distance between the sequences of counted locations, as a share of the
        longer one.
    both_counted, one_away
        (people,) int64: at how many steps the person and the match are both counted, and only one of the two is away.
    away_km
        What a step costs at which only one of the two is away, km; see `Mapping.away_km`.
    steps
        How many steps there are.
    """

    missed: NDArray[np.float64]
    levenshtein_accuracy: NDArray[np.float64]
    both_counted: NDArray[np.int64]
    one_away: NDArray[np.int64]
    away_km: float
    steps: int

    def __repr__(self) -> str:
        return f"PerPerson({len(self.matched)} people, {self.steps} steps)"

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each true person: person (its position), and the columns matched to levenshtein_accuracy."""
        names = (
            "matched",
            "accuracy",
            "precision",
            "accuracy_observed",
            "error_km",
            "missed",
            "levenshtein_accuracy",
        )
        columns = {name: getattr(self, name) for name in names}
        return to_frame({"person": np.arange(len(self.matched))} | columns, library)


def _over_points(shares: NDArray[np.float64], points: NDArray[np.int64]) -> float:
    """The share of all points, from the share of each person's; NaN where there are none."""
    known = points > 0
    if not known.any():
        return np.nan
    weight = points[known] / points.max()
    return float((shares[known] * weight).sum() / weight.sum())


def _accuracy(one: PerPerson) -> float:
    return _over_points(one.accuracy, one.points)


def _precision(one: PerPerson) -> float:
    """Nothing is right about recovered people without a match."""
    return _accuracy(one) * float(one.points.sum() / one.points_recovered) if one.points_recovered else np.nan


def _mean_error(one: PerPerson) -> float:
    share = one.both_counted / one.steps
    return float(np.nansum(one.error_km * share) / share.sum()) if share.any() else np.nan


def _recovery_error(one: PerPerson) -> float:
    distances = np.nansum(one.error_km * (one.both_counted / one.steps)) * one.steps
    return float(distances + one.away_km * one.one_away.sum())


METRICS: tuple[Metric[PerPerson], ...] = (
    Metric("accuracy", "share", "higher", "points in the right location", _accuracy),
    Metric("precision", "share", "higher", "recovered points that are right", _precision),
    Metric(
        "accuracy_observed",
        "share",
        "higher",
        "accuracy at points that were recorded, not filled in",
        lambda one: _over_points(one.accuracy_observed, one.points_observed),
    ),
    Metric("mean_error_km", "km", "lower", "distance of a point to the truth", _mean_error),
    Metric(
        "missed",
        "share",
        "lower",
        "points at which the recovered person is away",
        lambda one: _over_points(one.missed, one.points),
    ),
    Metric("recovery_error_km", "km", "lower", "sum of all distances", _recovery_error),
    Metric(
        "levenshtein_accuracy",
        "share",
        "higher",
        "like accuracy, but stays may be shifted in time",
        lambda one: _over_points(one.levenshtein_accuracy, one.points),
    ),
)
"""The numbers that every evaluation has one of, NaN where it cannot be said. To add one, add a line here."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How much of the truth a recovery found, under one mapping of recovered to true people.

    Accuracies are over all points at which true people are counted: those of people without a match are wrong, and recovered
    people who are left over do not count. They count in the precision, which is over all points of recovered people.
    Distances are over people with a match.

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
        return f"Evaluation({', '.join(f'{one.name}={self.scores[one.name]:.3g}' for one in self.known)})"

    def _repr_html_(self) -> str:
        rows = [(one.name, f"{self.scores[one.name]:.3g}", one.unit, one.meaning) for one in self.known]
        return html_table("Evaluation", rows, ("metric", "value", "unit", "meaning"))

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each known metric: metric, value, unit, direction (which means more was recovered), meaning.

        The numbers of each person are in `per_person.to_frame()`.
        """
        rows = [
            {
                "metric": one.name,
                "value": self.scores[one.name],
                "unit": one.unit,
                "direction": one.direction,
                "meaning": one.meaning,
            }
            for one in self.known
        ]
        return to_frame(rows, library)

    @property
    def known(self) -> list[Metric[PerPerson]]:
        """The metrics whose value can be said: not of observed points, for example, where the truth does not say."""
        return [one for one in METRICS if not np.isnan(self.scores[one.name])]

    @property
    def accuracy(self) -> float:
        """Share of the points at which true people are counted that are in the right location, between 0 and 1."""
        return self.scores["accuracy"]

    @property
    def precision(self) -> float:
        """Share of the points at which recovered people are counted that are right, between 0 and 1."""
        return self.scores["precision"]

    @property
    def accuracy_observed(self) -> float:
        """Accuracy at the points that were recorded, not filled in; NaN where `Trajectories.observed` does not say."""
        return self.scores["accuracy_observed"]

    @property
    def mean_error_km(self) -> float:
        """Mean distance between recovered and true points at which both are counted, km; see `missed`."""
        return self.scores["mean_error_km"]

    @property
    def missed(self) -> float:
        """Share of the points at which a true person is counted and the matched recovered person is away."""
        return self.scores["missed"]

    @property
    def recovery_error_km(self) -> float:
        """Sum of the distances between recovered and true points, km; `Mapping.away_km` where only one of two is away."""
        return self.scores["recovery_error_km"]

    @property
    def levenshtein_accuracy(self) -> float:
        """Like accuracy, but a stay that is shifted in time still counts."""
        return self.scores["levenshtein_accuracy"]

    def to_json(self) -> dict[str, Any]:
        """Everything but the numbers of each person, in plain values; None where a metric cannot be said."""
        sets = ("uniqueness", "truth_uniqueness", "distinct_sets", "truth_distinct_sets")
        return (
            {name: None if np.isnan(value) else value for name, value in self.scores.items()}
            | {name: {str(k): share for k, share in getattr(self, name).items()} for name in sets}
            | {"mapping": self.mapping.method, "mapping_gap": self.mapping.gap}
        )


def evaluate(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    mapping: MappingMethod | Mapping = "optimal",
    leave_out: Collection[str] = (),
    progress: Progress | None = None,
) -> Evaluation:
    """Compare recovered trajectories with the true ones.

    Recovered people mostly have no names, so they are first matched with true people, one to one.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same locations and steps. There may be more or fewer recovered than true people.
    mapping
        "optimal": the matching with the least total error, as in the paper. "greedy": each recovered person in turn takes
        the most similar true person who is left, as in Xu et al. "names": everyone is who they are said to be, as a
        recovery with a `KnownPast` must be judged. Or a mapping that was found before.
    leave_out
        Names of people whom the attacker knew (`KnownPeople`): they are in neither.
    progress
        Called during the mapping of large datasets.
    """
    check_comparable(recovered, truth)
    if leave_out:
        recovered, truth = recovered.without(leave_out), truth.without(leave_out)
    found = resolve_mapping(mapping, recovered, truth, progress)
    per_person = compare_people(recovered, truth, found)
    unique, distinct = count_sets(recovered)
    true_unique, true_distinct = count_sets(truth)
    return Evaluation(_score(per_person), unique, true_unique, distinct, true_distinct, per_person, found)


def compare_people(recovered: Trajectories, truth: Trajectories, mapping: Mapping) -> PerPerson:
    """Compare each true person with the recovered person they are matched with."""
    shared = score_people(recovered, truth, mapping)
    points, theirs = shared["points"], of_matched(recovered.counted.sum(axis=1), mapping)
    edits, both = np.zeros(truth.people), np.zeros(truth.people, np.int64)
    for person in np.flatnonzero(mapping.recovered >= 0):
        mine, real = recovered.cells[mapping.recovered[person]], truth.cells[person]
        both[person] = ((mine != AWAY) & (real != AWAY)).sum()
        text, real_text = _text(mine), _text(real)
        edits[person] = 1.0 - Levenshtein.distance(text, real_text) / max(len(text), len(real_text), 1)
    return PerPerson(
        **shared,
        missed=ratio(points - both, points),
        levenshtein_accuracy=np.where(points > 0, edits, np.nan),
        both_counted=both,
        one_away=np.where(mapping.recovered >= 0, points + theirs - 2 * both, 0),
        away_km=mapping.away_km,
        steps=truth.steps,
    )


def _score(per_person: PerPerson) -> dict[str, float]:
    return {metric.name: metric.value(per_person) for metric in METRICS}


def _text(cells: NDArray[np.integer]) -> str:
    """One character for each counted location: rapidfuzz compares texts fastest."""
    if cells.min() == AWAY:
        cells = cells[cells != AWAY]
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
    flows
        By order, and the name of the metric: what flows of that order leave open, see `mix_identities`.
    """

    chance: dict[str, Spread]
    naive: dict[str, Spread]
    flows: dict[int, dict[str, Spread]] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, dict[str, Spread]]:
        """All of them, by what they are called."""
        flows = {f"flows of order {order}": scores for order, scores in self.flows.items()}
        return {"chance": self.chance, "naive": self.naive, **flows}

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each reference and known metric: reference, metric, mean, sd."""
        rows = [
            {"reference": name, "metric": metric, "mean": spread.mean, "sd": spread.sd}
            for name, scores in self.by_name.items()
            for metric, spread in scores.items()
            if not np.isnan(spread.mean)
        ]
        return to_frame(rows, library)

    def __repr__(self) -> str:
        return f"ReferenceScores(accuracy by chance {self.chance['accuracy']}, naive {self.naive['accuracy']})"


def reference_scores(
    truth: Trajectories, *, seeds: int = 5, mapping: MappingMethod = "optimal", orders: Collection[int] = ()
) -> ReferenceScores:
    """Measure chance (everyone placed at random) and the naive attack (people stay), each over several seeds.

    Parameters
    ----------
    truth
        Where everyone really was.
    seeds
        How many seeds to average over.
    mapping
        How recovered people are matched with true ones, as in `evaluate`.
    orders
        Also measure what flows of these orders leave open, see `mix_identities`: 1 for the flows that are published.
    """
    checks.whole("seeds", seeds, least=1)
    counts = truth.counts()

    def measure(guess: Callable[[int], Trajectories]) -> dict[str, Spread]:
        scores = []
        for seed in range(seeds):
            found = guess(seed)
            if mapping == "names":  # the guess is also at who is who
                found = Trajectories(found.cells, found.locations, found.calendar, truth.people_ids)
            scores.append(_score(compare_people(found, truth, resolve_mapping(mapping, found, truth))))
        return {name: Spread.of([each[name] for each in scores]) for name in scores[0]}

    return ReferenceScores(
        measure(lambda seed: Chance(seed=seed).recover(counts).trajectories),
        measure(lambda seed: Naive(seed=seed).recover(counts).trajectories),
        {order: measure(partial(mix_identities, truth, order)) for order in orders},
    )
