"""Flows as attacks see them: with everyone who stays, day by day, sorted by origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData
from rekindle.model import AWAY, Counts, Flows

FlowTable = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Where the flows of each window begin, (windows + 1,); their origins, destinations and numbers of people, (flows,), sorted."""


def counts_and_flows(counts: Counts | None, flows: Flows | None) -> tuple[Counts, Flows | None]:
    """Give counts and flows of as many people and the same steps; whether they fit each other is left to `Run.feed`.

    Parameters
    ----------
    counts
        None: those of the flows. Where the flows are without stayers, of the fewest people who can have made them.
    flows
        None where there are counts only.
    """
    if flows is None:
        if counts is None:
            raise InvalidData("There is nothing to attack: give `counts`, `flows` or both.")
        return counts, None
    if counts is None:
        flows = flows if flows.stayers else fewest_people(flows)
        return flows.counts(), flows
    if flows.calendar != counts.calendar:
        raise InvalidData(
            f"The flows have the calendar {flows.calendar.to_json()}, the counts {counts.calendar.to_json()}; both must have "
            "the same steps. Give `flows` alone, or the counts at the moments when windows begin and end."
        )
    if flows.people > counts.people:
        # Who leaves while somebody else enters is another person: flows may show more people than any step counts.
        counts = Counts(counts.values, counts.locations, counts.calendar, flows.people)
    return counts, flows


def fewest_people(flows: Flows) -> Flows:
    """Add stayers to flows without any, where nothing else is known: the fewest people who can have made these flows.

    At the start each location has as many people as must be there so that all later departures can be served. Who never
    moves leaves no trace in such flows and is not among them.
    """
    before = np.zeros_like(flows.departures)
    np.cumsum((flows.arrivals - flows.departures)[:-1], axis=0, out=before[1:])
    first = (flows.departures - before).max(axis=0, initial=0)
    values = np.vstack([first + before, first + before[-1] + (flows.arrivals - flows.departures)[-1]])
    counted = Counts(values, flows.locations, flows.calendar)
    entries = np.bincount(flows.step, flows.count * (flows.origin == AWAY), minlength=flows.steps - 1).astype(
        np.int64
    )
    people = max(flows.people, int((counted.totals[:-1] + entries).max()))
    return flows.with_stayers(Counts(values, flows.locations, flows.calendar, people))


@dataclass(frozen=True, eq=False)
class Windows:
    """Flows of one window after the other, as attacks are given them: with everyone who stays, sorted by window and origin.

    Attributes
    ----------
    offsets
        (windows + 1,) int64: where the flows of each window begin.
    origin, destination, count
        (flows,) int32: from where and to where, `AWAY` for people who enter or leave, and how many.
    """

    offsets: NDArray[np.int64]
    origin: NDArray[np.int32]
    destination: NDArray[np.int32]
    count: NDArray[np.int32]

    @classmethod
    def of(cls, flows: Flows) -> Windows:
        """Take flows with stayers."""
        offsets = np.searchsorted(flows.step, np.arange(flows.steps, dtype=np.int32))
        return cls(offsets, flows.origin, flows.destination, flows.count)

    @classmethod
    def joined(cls, parts: Sequence[Windows]) -> Windows:
        """Join windows in order."""
        ends = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
        columns = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("origin", "destination", "count")
        )
        return cls(np.concatenate([[0], *offsets]), *columns)

    def arrays(self) -> dict[str, NDArray[np.integer]]:
        """Give the arrays by the names under which they are saved."""
        return {f"flow_{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], counts: Counts) -> Windows:
        """Take saved arrays; refuse those that are no flows of the counts."""
        offsets, origin, goal, number = (np.asarray(arrays[f"flow_{field.name}"]) for field in fields(cls))
        if len(offsets) != counts.steps or (np.diff(offsets, prepend=0) < 0).any():
            raise InvalidData(f"the flows are of {len(offsets) - 1} windows, the counts of {counts.steps} steps")
        step = np.repeat(np.arange(counts.steps - 1), np.diff(offsets))
        flows = Flows(step, origin, goal, number, counts.locations, counts.calendar, people=counts.people)
        return cls.of(flows.with_stayers(counts))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, begin: int, end: int) -> Windows:
        """Give the windows of a range."""
        first, last = self.offsets[begin], self.offsets[end]
        columns = (column[first:last] for column in (self.origin, self.destination, self.count))
        return Windows(self.offsets[begin : end + 1] - first, *columns)

    @property
    def totals(self) -> NDArray[np.int64]:
        """(windows,) int64: how many people are in the flows of each window."""
        return np.diff(np.concatenate([[0], np.cumsum(self.count, dtype=np.int64)])[self.offsets])

    def people(self, counts: Counts) -> int:
        """How many people there must be for counts and these flows: who leaves and who enters at once are two."""
        return max(int(counts.totals.max()), int(self.totals.max(initial=0)))

    def first_counts(self, locations: int) -> NDArray[np.int64]:
        """(1, locations) int64: how many people are in each location when the first window begins."""
        first = slice(0, self.offsets[1])
        here = self.origin[first] != AWAY
        return np.bincount(self.origin[first][here], self.count[first][here], locations).astype(np.int64)[None]

    def table(self, locations: int, people: int, number: NDArray[np.integer] | None = None) -> FlowTable:
        """List all flows, of those who stay away too; away is the location after the last.

        Parameters
        ----------
        locations, people
            How many there are in all.
        number
            (locations,) another number for each location, by which the flows are sorted then.
        """
        window = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        left = people - self.totals
        away = np.flatnonzero(left)
        window = np.concatenate([window, away])
        number = np.append(np.arange(locations) if number is None else number, locations).astype(np.int64)
        origin = number[np.concatenate([self.origin, np.full(len(away), AWAY)])]
        goal = number[np.concatenate([self.destination, np.full(len(away), AWAY)])]
        order = np.argsort((window * (locations + 1) + origin) * (locations + 1) + goal, kind="stable")
        count = np.concatenate([self.count, left[away]])[order].astype(np.int64)
        return np.searchsorted(window[order], np.arange(len(self) + 1)), origin[order], goal[order], count


def days_with_windows(counts: Counts, windows: Windows | None) -> Iterator[tuple[Counts, Windows | None]]:
    """Give the counts of each day with its windows, and before them the one that leads to its first step.

    Parameters
    ----------
    counts
        The days.
    windows
        Those between their steps, or with the one before them as well.
    """
    for day in counts.calendar.days():
        if windows is None:
            yield counts.part(day), None
        else:
            ahead = len(windows) + 1 - counts.steps
            yield counts.part(day), windows.part(max(0, day.start + ahead - 1), day.stop + ahead - 1)
