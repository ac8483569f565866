"""Dataset: counts, and the people behind them where they are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model.calendar import Calendar, format_step, parse_step
from rekindle.model.counts import Counts
from rekindle.model.flows import Flows, check_flows, flows_of
from rekindle.model.locations import AWAY, Locations
from rekindle.model.trajectories import Trajectories


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
    flows
        The flows that are published too: none, or one for each window.
    """

    counts: Counts
    truth: Trajectories | None = None
    info: dict[str, Any] = field(default_factory=dict)
    flows: tuple[Flows, ...] = ()

    def __post_init__(self) -> None:
        for one in self.flows:
            check_flows(self.counts, one)
        if self.truth is not None:
            check_truth(self.counts, self.truth)
            for one in self.flows:
                _check_truth_of_flows(one, self.truth)

    def __repr__(self) -> str:
        truth = "with the truth" if self.truth is not None else "without the truth"
        flows = "".join(f", flows of {format_step(one.window)}" for one in self.flows)
        return f"Dataset({self.counts!r}, {truth}{flows})"

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

    def flows_over(self, window: str | timedelta | None = None) -> Flows:
        """Give the flows of a window: those that are published, or else those of the truth.

        Parameters
        ----------
        window
            How long it is; None for the shortest of the flows that are published, or for a step.
        """
        length = min((one.window for one in self.flows), default=self.calendar.step)
        length = length if window is None else parse_step(window)
        found = next((one for one in self.flows if one.window == length), None)
        if found is None and self.truth is None:
            there = ", ".join(format_step(one.window) for one in self.flows) or "none at all"
            raise InvalidSetting(
                f"There are no flows of {format_step(length)} in this dataset ({there}), and no ground truth was read from which "
                "they could be counted; see `window`."
            )
        return self.truth.flows(length) if found is None and self.truth is not None else found  # type: ignore[return-value]

    def with_locations(self, locations: Locations) -> Dataset:
        """Give the same people on another list of locations, which must name all of theirs: a public one, say."""
        index = locations.indices(self.locations.ids)
        values = np.zeros((self.counts.steps, len(locations)), dtype=np.int64)
        values[:, index] = self.counts.values
        truth = self.truth
        if truth is not None:
            cells = np.where(truth.cells == AWAY, AWAY, index[truth.cells])
            truth = Trajectories(cells, locations, truth.calendar, truth.people_ids, truth.observed)
        counts = Counts(values, locations, self.calendar, self.people)
        return Dataset(counts, truth, self.info, tuple(one.with_locations(locations) for one in self.flows))


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


def _check_truth_of_flows(flows: Flows, truth: Trajectories) -> None:
    """Refuse flows that are not those of the truth."""
    cells = truth.cells[:, flows.moments(truth.calendar)]
    true = flows_of(cells, flows.locations, flows.calendar, stayers=flows.stayers, people=flows.people)
    if (where := flows.first_difference(true)) is not None:
        raise InvalidData(f"The truth does not fit the flows: they have other numbers {where}.")
