"""Whether an attack knows when it is right: accuracy by confidence, and what an attacker can claim.

A mean accuracy of one half may mean that everything is half right, or that half of it is right and the attacker knows which
half. The second is what an owner must fear.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation.mapping import map_people
from rekindle.model import Trajectories

__all__ = ["Claims", "Confidence", "assess_confidence"]


@dataclass(frozen=True)
class Claims:
    """What an attacker can claim at a level of confidence.

    Attributes
    ----------
    level
        The least confidence of a claim.
    points
        Share of all points that are claimed, from 0 to 1.
    points_right
        Share of the claimed points that are right; NaN where none is claimed.
    people
        Share of all people whose mean confidence over the steps reaches the level.
    people_right
        Share of the points of these people that are right; NaN where there is none.
    """

    level: float
    points: float
    points_right: float
    people: float
    people_right: float


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
    """

    edges: NDArray[np.float64]
    share: NDArray[np.float64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    calibration_error: float
    claims: Claims

    def to_json(self) -> dict[str, Any]:
        """The numbers in plain values; None where there is none."""

        def plain(values: Iterable[float]) -> list[float | None]:
            return [None if np.isnan(value) else float(value) for value in values]

        names = [field.name for field in dataclasses.fields(Claims)]
        return {
            "edges": plain(self.edges),
            "share": plain(self.share),
            "confidence": plain(self.confidence),
            "accuracy": plain(self.accuracy),
            "calibration_error": self.calibration_error,
            "claims": dict(zip(names, plain(getattr(self.claims, name) for name in names), strict=True)),
        }


def assess_confidence(
    recovered: Trajectories,
    confidence: ArrayLike,
    truth: Trajectories,
    *,
    level: float = 0.9,
    bins: int = 10,
    mapping: Literal["optimal", "greedy"] = "optimal",
) -> Confidence:
    """Compare how sure an attack was of each point with whether it was right.

    Parameters
    ----------
    recovered, truth
        The rebuilt and the true people, over the same places and steps.
    confidence
        (people, steps) numbers from 0 to 1, as in `Recovery.confidence`.
    level
        The confidence at which an attacker makes a claim.
    bins
        How many bins of equal width.
    mapping
        How recovered people are matched with true ones, as in `evaluate`.
    """
    sure = np.asarray(confidence, dtype=np.float64)
    if sure.shape != recovered.cells.shape:
        raise InvalidData(
            f"The confidence has the shape {sure.shape}; it must be {recovered.cells.shape}, people x steps."
        )
    if not sure.size:
        raise InvalidData("There is no step, so there is nothing to be sure of.")
    if not (np.isfinite(sure).all() and sure.min() >= 0 and sure.max() <= 1):
        raise InvalidData(
            f"The confidence lies between {sure.min()} and {sure.max()}; it must be from 0 to 1, none missing."
        )
    if not 0 < level <= 1:
        raise InvalidSetting(f"level is {level!r}; it must be above 0 and at most 1.")
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise InvalidSetting(f"bins is {bins!r}; it must be a whole number of at least 1.")
    matched = map_people(recovered, truth, method=mapping).matched
    right = (recovered.cells == truth.cells[matched]) & (matched >= 0)[:, None]
    edges = np.linspace(0.0, 1.0, bins + 1)
    of_point = np.minimum((sure * bins).astype(np.int64), bins - 1).ravel()
    number = np.bincount(of_point, minlength=bins)
    each = np.where(number > 0, number, np.nan)
    mean = np.bincount(of_point, sure.ravel(), bins) / each
    accuracy = np.bincount(of_point, right.ravel(), bins) / each
    share = number / sure.size
    claimed = sure >= level
    known = sure.mean(axis=1) >= level
    return Confidence(
        edges,
        share,
        mean,
        accuracy,
        float(np.nansum(share * np.abs(mean - accuracy))),
        Claims(
            level,
            float(claimed.mean()),
            float(right[claimed].mean()) if claimed.any() else np.nan,
            float(known.mean()),
            float(right[known].mean()) if known.any() else np.nan,
        ),
    )
