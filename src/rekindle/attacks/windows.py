"""Flows of several windows together: the longer ones tell people apart, the shortest says where everyone is in between.

The people found in the shortest flows exchange ways where they meet, until they are where the people found in longer ones
are when these begin and end. No flow of the shortest windows changes by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise

import numpy as np

from rekindle.attacks.alignment import align
from rekindle.attacks.flows import counts_and_flows
from rekindle.attacks.meetings import exchange_towards
from rekindle.errors import InvalidData
from rekindle.model import Counts, Flows, Trajectories
from rekindle.model.calendar import format_step
from rekindle.progress import Progress

__all__ = ["follow_longer", "recover_together"]

WITHIN_A_DAY = timedelta(hours=12)
WORTH, WORTH_OF_DAYS = 2, 1
"""What a moment of longer windows counts, in such windows of time; those longer than half a day say where people sleep, which
many share, and little of who they are."""


def recover_together(
    recover: Callable[[Counts, Flows, Progress], Trajectories],
    counts: Counts | None,
    flows: Sequence[Flows],
    progress: Progress | None = None,
) -> Trajectories:
    """Recover the people of the shortest windows, with the help of the others.

    Parameters
    ----------
    recover
        How an attack recovers the people of one window.
    counts
        Those of the steps of the shortest windows; None where the flows say them.
    flows
        At least one, each of another window. The longer ones are followed as far as the shortest allow.
    progress
        Called with the days that are done, of all windows.
    """
    if not flows:
        raise InvalidData("There are no flows to attack: give at least those of one window.")
    flows = sorted(flows, key=lambda one: one.window)
    for one, other in pairwise(flows):
        if one.window == other.window:
            raise InvalidData(f"Two of the flows have windows of {format_step(one.window)}; expected one of each.")
        if one.locations != other.locations:
            raise InvalidData("The flows of different windows have different locations.")
    counts, shortest = counts_and_flows(counts, flows[0])
    if shortest is not None:
        flows[0] = shortest
    flows = [one if one.stayers else one.with_stayers(counts) for one in flows]
    people = max(counts.people, *(one.people for one in flows))
    total = sum(one.calendar.number_of_days for one in flows)
    done = 0

    def report(days: int, _: int | None) -> None:
        if progress is not None:
            progress(done + days, total)

    def people_of(one: Flows) -> Trajectories:
        its = one.counts()
        return recover(Counts(its.values, its.locations, its.calendar, people), one, report)

    found = people_of(flows[-1])
    for longer, one in zip(flows[:0:-1], flows[-2::-1], strict=True):
        done += longer.calendar.number_of_days
        found = follow_longer(people_of(one), found)
    return found


def follow_longer(people: Trajectories, longer: Trajectories) -> Trajectories:
    """Let people exchange paths until they are where those of longer windows are, as much as can be; in their order."""
    _, at, at_longer = np.intersect1d(people.calendar.times(), longer.calendar.times(), return_indices=True)
    if not len(at):
        return people
    tracks, wanted = people.cells + 1, longer.cells[:, at_longer] + 1  # away is 0
    once = np.ones(len(at), np.int64)
    seen = align([wanted, tracks[:, at]], 0, lengths=once, places=len(people.locations) + 1, rounds=1)[1]
    # Who is alike at all these moments is as good as another.
    order = np.empty(len(tracks), np.int64)
    order[np.lexsort(seen.T)] = np.lexsort(tracks[:, at].T)
    tracks = tracks[order]
    wishes = tracks.copy()  # in between, everyone would rather stay as they are
    wishes[:, at] = wanted
    lengths = np.ones(people.steps, np.int64)
    worth = WORTH if longer.calendar.step <= WITHIN_A_DAY else WORTH_OF_DAYS
    lengths[at] = worth * int(np.diff(at).max(initial=1))
    return Trajectories(exchange_towards(tracks, wishes, lengths) - 1, people.locations, people.calendar)
