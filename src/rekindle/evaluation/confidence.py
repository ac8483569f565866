"""Whether an attack knows when it is right: accuracy by confidence, and what an attacker can claim.

A mean accuracy of one half may mean that everything is half right, or that half of it is right and the attacker knows which
half. The second is what an owner must fear.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle import checks
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation.mapping import Mapping, MappingMethod, resolve_mapping
from rekindle.evaluation.people import ratio
from rekindle.model import Trajectories

ALMOST_WHOLLY = 0.9
"""A person is claimed almost completely where more than this share of their points is claimed."""


@dataclass(frozen=True)
class Claims:
    """What an attacker can claim at a level of confidence.

    Attributes
    ----------
    level
        The least confidence of a claim.
    points
        Share of all recovered points that are claimed, from 0 to 1.
    points_right
        Share of the claimed points that are right; NaN where none is claimed.
    people
        Share of all recovered people who are claimed almost completely: more than 90% of the points at which they are counted.
    people_right
        Share of the points of these people that are right; NaN where there is none.
    """

    level: float
    points: float
    points_right: float
    people: float
    people_right: float


@dataclass(frozen=True, eq=False)
class PrecisionCurve:
    """How much of what an attacker is most sure of is right.

    Attributes
    ----------
    claimed
        (points,) float64: share of all recovered points that are claimed, from few to all, those of highest confidence
        first.
    precision
        (points,) float64: share of the claimed points that are right. Where points of equal confidence are claimed in
        part, the mean over all ways to choose among them.
    """

    claimed: NDArray[np.float64]
    precision: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"PrecisionCurve({len(self.claimed)} points)"

    def most_at(self, precision: float) -> float:
        """The largest share that can be claimed with at least this precision; 0 where there is none."""
        enough = self.claimed[self.precision >= precision]
        return float(enough.max()) if len(enough) else 0.0

    def to_json(self) -> dict[str, list[float]]:
        """Both in plain values."""
        return {"claimed": self.claimed.tolist(), "precision": self.precision.tolist()}


@dataclass(frozen=True, eq=False)
class Confidence:
    """Accuracy by confidence.

    Attributes
    ----------
    edges
        (bins + 1,) float64: limits of the bins, from 0 to 1.
    share
        (bins,) float64: share of all points in each bin.
    confidence, accuracy
        (bins,) float64: mean confidence and share of right points of each bin; NaN where it is empty.
    calibration_error
        Mean distance between confidence and accuracy over all points, by bin.
    claims
        What can be claimed at the level asked for.
    curve
        Precision by the share of points claimed.
    """

    edges: NDArray[np.float64]
    share: NDArray[np.float64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    calibration_error: float
    claims: Claims
    curve: PrecisionCurve

    def __repr__(self) -> str:
        return f"Confidence(calibration error {self.calibration_error:.3f}, {self.claims.points:.0%} of the points claimed)"

    def to_json(self) -> dict[str, Any]:
        """The numbers in plain values; None where there is none."""

        def plain(values: Iterable[float]) -> list[float | None]:
            return [None if np.isnan(value) else float(value) for value in values]

        claims = dataclasses.asdict(self.claims)
        return {
            "edges": plain(self.edges),
            "share": plain(self.share),
            "confidence": plain(self.confidence),
            "accuracy": plain(self.accuracy),
            "calibration_error": self.calibration_error,
            "claims": dict(zip(claims, plain(claims.values()), strict=True)),
            "curve": self.curve.to_json(),
        }


def assess_confidence(
    recovered: Trajectories,
    confidence: ArrayLike,
    truth: Trajectories,
    *,
    level: float = 0.9,
    bins: int = 10,
    mapping: MappingMethod | Mapping = "optimal",
) -> Confidence:
    """Compare how sure an attack was of each point with whether it was right.

    Points are those at which a recovered person is counted. One at which the matched true person is away is wrong.

    Parameters
    ----------
    recovered, truth
        The recovered and the true people, over the same locations and steps.
    confidence
        (people, steps) numbers from 0 to 1, as in `Recovery.confidence`; it does not matter where people are away.
    level
        The confidence at which an attacker makes a claim.
    bins
        How many bins of equal width.
    mapping
        How recovered people are matched with true ones, as in `evaluate`, or the mapping of an evaluation.
    """
    if not checks.share("level", level):
        raise InvalidSetting("`level` is 0; it must be above 0 and at most 1.")
    checks.whole("bins", bins, least=1)
    sure, right, counted = _compare(recovered, confidence, truth, mapping)
    claimed = (sure >= level) & counted
    wholly = ratio(claimed.sum(axis=1), counted.sum(axis=1)) > ALMOST_WHOLLY
    points, points_right = int(counted.sum()), right[claimed]
    people_right = int(right[wholly].sum()) / int(counted[wholly].sum()) if wholly.any() else np.nan
    sure, right = _flat(sure, counted), _flat(right, counted)
    of_point = np.minimum((sure * bins).astype(np.int64), bins - 1)
    number = np.bincount(of_point, minlength=bins)
    each = np.where(number > 0, number, np.nan)
    mean = np.bincount(of_point, sure, bins) / each
    accuracy = np.bincount(of_point, right, bins) / each
    share = number / points
    return Confidence(
        np.linspace(0.0, 1.0, bins + 1),
        share,
        mean,
        accuracy,
        float(np.nansum(share * np.abs(mean - accuracy))),
        Claims(
            level,
            len(points_right) / points,
            float(points_right.mean()) if len(points_right) else np.nan,
            int(wholly.sum()) / int(counted.any(axis=1).sum()),
            people_right,
        ),
        _curve(sure, right, 20),
    )


def precision_curve(
    recovered: Trajectories,
    confidence: ArrayLike,
    truth: Trajectories,
    *,
    points: int = 20,
    mapping: MappingMethod | Mapping = "optimal",
) -> PrecisionCurve:
    """Measure how much of what an attack is most sure of is right: precision against the share of points claimed.

    Only the order of the confidence matters, not its calibration.

    Parameters
    ----------
    recovered, confidence, truth, mapping
        As in `assess_confidence`.
    points
        At how many shares of points, evenly spaced up to all of them.
    """
    checks.whole("points", points, least=1)
    sure, right, counted = _compare(recovered, confidence, truth, mapping)
    return _curve(_flat(sure, counted), _flat(right, counted), points)


def _compare(
    recovered: Trajectories, confidence: ArrayLike, truth: Trajectories, mapping: MappingMethod | Mapping
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The confidence, whether each recovered point is right, and whether it is counted: all (recovered people, steps)."""
    sure = np.asarray(confidence, dtype=np.float64)
    if sure.shape != recovered.cells.shape:
        raise InvalidData(
            f"The confidence has the shape {sure.shape}; it must be {recovered.cells.shape}, people x steps."
        )
    if not sure.size:
        raise InvalidData("There is no step, so there is nothing to be sure of.")
    counted = recovered.counted
    if not counted.any():
        raise InvalidData("No recovered person is counted at any step, so there is nothing to be sure of.")
    low, high = sure.min(where=counted, initial=np.inf), sure.max(where=counted, initial=-np.inf)
    if not (low >= 0 and high <= 1):
        raise InvalidData(f"The confidence lies between {low} and {high}; it must be from 0 to 1, none missing.")
    matched = resolve_mapping(mapping, recovered, truth).matched
    return sure, (recovered.cells == truth.cells[matched]) & counted & (matched >= 0)[:, None], counted


def _flat(values: NDArray[Any], counted: NDArray[np.bool_]) -> NDArray[Any]:
    """The values at counted points; without a copy where all are."""
    return values.ravel() if counted.all() else values[counted]


def _curve(sure: NDArray[np.float64], right: NDArray[np.bool_], points: int) -> PrecisionCurve:
    _, level, number = np.unique(-sure, return_inverse=True, return_counts=True)
    hits = np.bincount(level, weights=right)
    claimed = np.arange(1, points + 1) / points
    # Between two levels the line through both is the mean over the ways to choose among points of equal confidence.
    upto = np.interp(claimed * sure.size, np.append(0, np.cumsum(number)), np.append(0, np.cumsum(hits)))
    return PrecisionCurve(claimed, upto / (claimed * sure.size))
