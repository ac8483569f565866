"""What the paper reports, as its text and its stored results have it: `paper.csv`.

D'Silva et al. (2024), table "Sub-dataset details" and the stored results that its figures were drawn from. Errors are per
point, the stored sum divided by people and steps (the sums of GeoLife are stored in metres, those of Porto in km). What the
stored results call uniqueness is the number of distinct sets of locations divided by the people: our `distinct_sets`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


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
    accuracy: dict[str, float]
    levenshtein_accuracy: dict[str, float]
    mean_error_km: dict[str, float]
    distinct_sets: dict[str, tuple[float, ...]]


def _read() -> dict[str, PaperResult]:
    found: dict[str, PaperResult] = {}
    for row in csv.DictReader(files(__package__).joinpath("paper.csv").read_text("utf-8").splitlines()):
        people, locations, steps, who = int(row["people"]), int(row["locations"]), int(row["steps"]), row["who"]
        one = found.setdefault(row["dataset"], PaperResult(people, locations, steps, row["step"], {}, {}, {}, {}))
        one.distinct_sets[who] = tuple(float(row[f"k{k}"]) for k in range(1, 6))
        if who != "truth":
            one.accuracy[who] = float(row["accuracy"])
            one.levenshtein_accuracy[who] = round(1 - float(row["edit_distance"]), 4)
            one.mean_error_km[who] = float(row["error_km"]) / people / steps
    return found


PAPER = _read()
"""By the name of the sub-dataset."""
