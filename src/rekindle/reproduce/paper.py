"""What the paper reports, as its text and its stored results have it.

D'Silva et al. (2024), table "Sub-dataset details" and the stored results that its figures were drawn from. Errors are per
point, the stored sum divided by people and steps (the sums of GeoLife are stored in metres, those of Porto in km). What the
stored results call uniqueness is the number of distinct sets of locations divided by the people: our `distinct_sets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Both = Mapping[str, float]


@dataclass(frozen=True)
class PaperResult:
    """A row of the paper's table, and what was reached on it by the name of the attack.

    Attributes
    ----------
    people, locations, steps, step
        As in the table; locations that nobody ever visits are not counted there.
    accuracy, levenshtein_accuracy
        Shares from 0 to 1.
    mean_error_km
        The recovery error for each point, km.
    distinct_sets
        For k = 1..5, of the truth too.
    """

    people: int
    locations: int
    steps: int
    step: str
    accuracy: Both
    levenshtein_accuracy: Both
    mean_error_km: Both
    distinct_sets: Mapping[str, tuple[float, ...]]


def _result(
    people: int,
    locations: int,
    steps: int,
    step: str,
    *,
    accuracy: tuple[float, float],
    edits: tuple[float, float],
    error_km: tuple[float, float],
    truth: tuple[float, ...],
    baseline: tuple[float, ...],
    enhanced: tuple[float, ...],
) -> PaperResult:
    def both(values: tuple[float, float]) -> Both:
        return dict(zip(("baseline", "enhanced"), values, strict=True))

    return PaperResult(
        people,
        locations,
        steps,
        step,
        both(accuracy),
        both((round(1 - edits[0], 4), round(1 - edits[1], 4))),
        both((error_km[0] / people / steps, error_km[1] / people / steps)),
        {"truth": truth, "baseline": baseline, "enhanced": enhanced},
    )


PAPER: dict[str, PaperResult] = {
    "GeoLife 37": _result(
        37,
        194,
        5205,
        "2min",
        accuracy=(0.3806, 0.5419),
        edits=(0.6170, 0.4513),
        error_km=(490_097.808, 340_018.513),
        truth=(0.6216, 0.7838, 0.9189, 1.0, 1.0),
        baseline=(0.5946, 0.9730, 1.0, 1.0, 1.0),
        enhanced=(0.6757, 0.9189, 0.9459, 0.9730, 1.0),
    ),
    "GeoLife 38": _result(
        38,
        492,
        10407,
        "1min",
        accuracy=(0.4133, 0.4683),
        edits=(0.5789, 0.5210),
        error_km=(753_602.966, 710_778.298),
        truth=(0.6053, 0.7895, 0.8684, 0.9211, 1.0),
        baseline=(0.5789, 0.8684, 0.9474, 1.0, 1.0),
        enhanced=(0.6053, 0.8947, 0.9211, 1.0, 0.9737),
    ),
    "GeoLife 43": _result(
        43,
        120,
        10103,
        "1min",
        accuracy=(0.3723, 0.4485),
        edits=(0.6210, 0.5421),
        error_km=(879_388.692, 794_195.262),
        truth=(0.5116, 0.8140, 0.9302, 0.8837, 0.9535),
        baseline=(0.5349, 0.9302, 1.0, 0.9535, 1.0),
        enhanced=(0.5581, 0.9070, 0.9535, 1.0, 1.0),
    ),
    "Porto 3x3": _result(
        197,
        9,
        4321,
        "10min",
        accuracy=(0.3154, 0.3295),
        edits=(0.6530, 0.6376),
        error_km=(1_656_476.647, 1_605_313.105),
        truth=(0.0355, 0.0761, 0.1269, 0.1574, 0.1066),
        baseline=(0.0406, 0.1320, 0.2487, 0.3046, 0.3046),
        enhanced=(0.0406, 0.1421, 0.2589, 0.3452, 0.3503),
    ),
    "Porto 7x7": _result(
        197,
        49,
        4321,
        "10min",
        accuracy=(0.2557, 0.2725),
        edits=(0.7149, 0.6982),
        error_km=(2_328_102.314, 2_225_218.964),
        truth=(0.0406, 0.1117, 0.1472, 0.1929, 0.2081),
        baseline=(0.0406, 0.1929, 0.3655, 0.5127, 0.5685),
        enhanced=(0.0457, 0.2132, 0.4010, 0.5279, 0.6244),
    ),
}
"""By the name of the sub-dataset."""
