"""What was recovered of each person, under one mapping: what an evaluation and an exposure have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation.mapping import Mapping, parts, right_points
from rekindle.model import AWAY, Trajectories


@dataclass(frozen=True, eq=False)
class PersonScores:
    """What was recovered of each person, in the order of the true people. People without a match score 0.

    People who are never counted have nothing to recover: their scores are NaN.

    Attributes
    ----------
    matched
        (people,) int64: the recovered person that each true person was matched with; -1 for none.
    accuracy
        (people,) float64: share of the points at which the person is counted that are in the right location.
    precision
        (people,) float64: share of the points at which the matched recovered person is counted that are right; NaN for
        people without a match, or whose match is never counted.
    accuracy_observed
        (people,) float64: accuracy at the points that were recorded rather than filled in; NaN for people without such a
        point, and for all where the truth does not say (`Trajectories.observed` is None).
    error_km
        (people,) float64: mean distance to the truth at the steps at which both are counted, km; NaN for people without a
        match, or without such a step.
    points, points_observed
        (people,) int64: at how many steps the person is counted, and at how many of these recorded rather than filled in:
        the weight of each person in the share of all points.
    points_recovered
        How many points the recovered people have, those without a match included.
    """

    matched: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    precision: NDArray[np.float64]
    accuracy_observed: NDArray[np.float64]
    error_km: NDArray[np.float64]
    points: NDArray[np.int64]
    points_observed: NDArray[np.int64]
    points_recovered: int


def score_people(
    recovered: Trajectories, truth: Trajectories, mapping: Mapping, original: Trajectories | None = None
) -> dict[str, Any]:
    """The fields of `PersonScores`; distances are to the `original` people, where the truth was made coarser."""
    right, points = right_points(recovered, truth, mapping), truth.counted.sum(axis=1)
    theirs = recovered.counted.sum(axis=1)
    observed = np.zeros(truth.cells.shape, bool) if truth.observed is None else truth.observed
    return {
        "matched": mapping.recovered,
        "accuracy": ratio(right.sum(axis=1), points),
        "precision": ratio(right.sum(axis=1), of_matched(theirs, mapping)),
        "accuracy_observed": ratio((right & observed).sum(axis=1), observed.sum(axis=1)),
        "error_km": _errors_km(recovered, truth if original is None else original, mapping),
        "points": points,
        "points_observed": observed.sum(axis=1),
        "points_recovered": int(theirs.sum()),
    }


def of_matched(values: NDArray[np.int64], mapping: Mapping) -> NDArray[np.int64]:
    """What each true person's match has; nobody, at -1, has nothing."""
    return np.append(values, 0)[mapping.recovered]


def ratio(part: NDArray[np.number], whole: NDArray[np.integer]) -> NDArray[np.float64]:
    """The part of each whole; NaN where that is nothing."""
    share = np.full(len(whole), np.nan)
    np.divide(part, whole, out=share, where=whole > 0)
    return share


def check_comparable(recovered: Trajectories, truth: Trajectories) -> None:
    """Refuse what does not fit together, and a truth without a point to compare with."""
    for name, one in {"recovered": recovered, "truth": truth}.items():
        if not isinstance(one, Trajectories):
            raise InvalidSetting(
                f"`{name}` is a {type(one).__name__}; give trajectories, such as recovery.trajectories."
            )
    if recovered.locations != truth.locations:
        raise InvalidData("The recovery has other locations than the truth.")
    if recovered.calendar != truth.calendar:
        raise InvalidData(
            f"The recovery has the calendar {recovered.calendar.to_json()}, the truth {truth.calendar.to_json()}."
        )
    if not truth.steps:
        raise InvalidData("There are no steps to compare yet.")
    if truth.cells.max() == AWAY:
        raise InvalidData("Nobody in the truth is counted at any step, so there is nothing to compare with.")


def _errors_km(recovered: Trajectories, truth: Trajectories, mapping: Mapping) -> NDArray[np.float64]:
    """Mean distance of each true person to where they were recovered, over the steps at which both are counted.

    The truth may have finer locations and steps than the recovery, which then stays where it was last seen.

    Returns
    -------
    (true people,) float64 km; NaN without a match, and where the two are never counted at the same step.
    """
    seen = np.searchsorted(recovered.calendar.times(), truth.calendar.times(), side="right") - 1
    here, there = recovered.locations.xy_km, truth.locations.xy_km
    errors = np.full(truth.people, np.nan)
    found = np.flatnonzero(mapping.recovered >= 0)
    for part in parts(len(found), truth.steps):
        some = found[part]
        mine, theirs = recovered.cells[mapping.recovered[some]][:, seen], truth.cells[some]
        both = (mine != AWAY) & (theirs != AWAY)
        apart = here[mine] - there[theirs]
        distances = np.where(both, np.hypot(apart[..., 0], apart[..., 1]), 0.0)
        errors[some] = ratio(distances.sum(axis=1), both.sum(axis=1))
    return errors
