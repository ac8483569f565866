"""Dataset: counts, and the people behind them where they are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rekindle.errors import InvalidData
from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.locations import Locations
from rekindle.model.trajectories import AWAY, Trajectories

__all__ = ["Dataset", "check_truth"]


@dataclass(frozen=True)
class Dataset:
    """What a dataset folder holds.

    Attributes
    ----------
    counts
        The release.
    truth
        The people behind it, or None where they are not known.
    info
        What else `dataset.json` says: where the data came from, its licence, how it was prepared.
    """

    counts: Counts
    truth: Trajectories | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.truth is not None:
            check_truth(self.counts, self.truth)

    def __repr__(self) -> str:
        truth = "with the truth" if self.truth is not None else "without the truth"
        return f"Dataset({self.counts!r}, {truth})"

    @property
    def locations(self) -> Locations:
        """The locations."""
        return self.counts.locations

    @property
    def calendar(self) -> Calendar:
        """When the steps are."""
        return self.counts.calendar

    @property
    def people(self) -> int:
        """How many people there are in all."""
        return self.counts.people

    def with_locations(self, locations: Locations) -> Dataset:
        """Give the same people on another list of locations, which must name all of theirs: a public one, say."""
        index = locations.indices(self.locations.ids)
        values = np.zeros((self.counts.steps, len(locations)), dtype=np.int64)
        values[:, index] = self.counts.values
        truth = self.truth
        if truth is not None:
            cells = np.where(truth.cells == AWAY, AWAY, index[truth.cells])
            truth = Trajectories(cells, locations, truth.calendar, truth.people_ids, truth.observed)
        return Dataset(Counts(values, locations, self.calendar, self.people), truth, self.info)


def check_truth(counts: Counts, truth: Trajectories) -> None:
    """Refuse a truth of other people, locations or times than the counts."""
    if truth.locations != counts.locations:
        raise InvalidData("The truth has other locations than the counts.")
    if truth.calendar != counts.calendar:
        raise InvalidData(
            f"The truth has the calendar {truth.calendar.to_json()}, the counts {counts.calendar.to_json()}."
        )
    if truth.people != counts.people:
        raise InvalidData(f"The truth has {truth.people} people, the counts have {counts.people}.")
    wrong = np.argwhere(truth.counts().values != counts.values)
    if len(wrong):
        step, place = wrong[0]
        raise InvalidData(
            f"The truth does not fit the counts: at {counts.calendar.time(int(step))} in location "
            f"{counts.locations.ids[place]!r} the counts say {counts.values[step, place]}, "
            f"the truth has {int((truth.cells[:, step] == place).sum())}."
        )
