"""How much use is left in a release: what a reader of it would get wrong.

The release is read at the detail of the original counts, as a reader would who has nothing else: a withheld number is 0,
a larger cell is spread evenly over the locations that lie nearest to its centre, and a number holds until the next one.
So every loss counts, whether it comes from noise, from withholding or from lost detail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from rekindle import checks
from rekindle.errors import InvalidData
from rekindle.evaluation.metrics import Metric
from rekindle.model import Calendar, Counts, Flows, Locations, Release

Floats = NDArray[np.float64]

BUSIEST = 20


@dataclass(frozen=True)
class Utility:
    """How far what is read from a release is from the counts. Errors are sums of absolute errors over sums of counts.

    Attributes
    ----------
    count_error
        Relative error of the counts of locations at steps.
    location_total_error
        Relative error of the totals of locations over all steps.
    hour_total_error
        Relative error of the totals of hours over all locations: a release that withholds loses people.
    profile_error
        Relative error of the totals of locations at each hour of the day.
    flow_error
        Relative error of the flows between locations, summed over all steps: those that are published, or that the counts
        imply, see `implied_flows`.
    busiest_rank_correlation
        Spearman's correlation of the totals of the 20 truly busiest locations: 1 where they keep their order.
    withheld
        Share of the numbers that are withheld.
    """

    count_error: float
    location_total_error: float
    hour_total_error: float
    profile_error: float
    flow_error: float
    busiest_rank_correlation: float
    withheld: float

    def to_json(self) -> dict[str, float]:
        """All numbers in plain values."""
        return {metric.name: metric.value(self) for metric in UTILITIES}


UTILITIES: tuple[Metric[Utility], ...] = (
    Metric("count_error", "share", "lower", "error of counts", attrgetter("count_error")),
    Metric(
        "location_total_error", "share", "lower", "error of totals of locations", attrgetter("location_total_error")
    ),
    Metric("hour_total_error", "share", "lower", "error of totals of hours", attrgetter("hour_total_error")),
    Metric("profile_error", "share", "lower", "error of locations by hour of the day", attrgetter("profile_error")),
    Metric("flow_error", "share", "lower", "error of flows between locations", attrgetter("flow_error")),
    Metric(
        "busiest_rank_correlation",
        "correlation",
        "higher",
        "order of the busiest locations",
        attrgetter("busiest_rank_correlation"),
    ),
    Metric("withheld", "share", "lower", "numbers that are withheld", attrgetter("withheld")),
)
"""The numbers that every utility has one of. To add one, add a line here."""


def utility(true: Counts | Flows, release: Release | Counts | Flows, *, scale: float = 1.0) -> Utility:
    """Say how much use is left in a release.

    Parameters
    ----------
    true
        The original counts or flows.
    release
        What was published of them, in the same or in coarser locations and steps. Of flows, counts are read as the people
        who are in a location when a window begins (of those who move, where the others are not published).
    scale
        What the published numbers are multiplied by to speak of everyone, such as `Defence.scale` of a sample.
    """
    checks.positive("scale", scale)
    release = release if isinstance(release, Release) else Release.of(release)
    if isinstance(true, Counts):
        return _utility(true, release, scale)
    if release.pairs is None:
        raise InvalidData("This is a release of counts; its use is measured against counts, not flows.")
    calendar = true.calendar.part(slice(0, true.steps - 1))
    there = Counts(true.departures, true.locations, calendar, true.people)
    presence = Release(_departures(release), release.locations, release.calendar)
    read, exact = _flow_totals(release, true.locations) * scale, _flow_totals(Release.of(true), true.locations)
    withheld = float(release.withheld.mean())
    return replace(_utility(there, presence, scale), flow_error=_relative(read, exact), withheld=withheld)


def _departures(release: Release) -> Floats:
    """(steps, locations) float64: published people who begin a window in each location."""
    pairs, values = np.asarray(release.pairs), np.nan_to_num(release.values)
    found = np.zeros((release.steps, len(release.locations) + 1))
    np.add.at(found.T, pairs[:, 0], values.T)  # AWAY, -1, is the last
    return found[:, :-1]


def _flow_totals(release: Release, locations: Locations) -> Floats:
    """(locations, locations) float64: published people who moved from one location to another, over all windows."""
    pairs, totals = np.asarray(release.pairs), np.nan_to_num(release.values).sum(axis=0)
    moved = (pairs[:, 0] != pairs[:, 1]) & (pairs >= 0).all(axis=1)
    found = np.zeros((len(release.locations),) * 2)
    found[tuple(pairs[moved].T)] = totals[moved]
    if release.locations != locations:
        nearest, number = _nearest(release, locations)
        found = found[np.ix_(nearest, nearest)] / np.outer(number, number)
    return found


def _utility(counts: Counts, release: Release, scale: float) -> Utility:
    true = counts.values.astype(np.float64)
    read = read_at(release, counts.locations, counts.calendar) * scale
    hours = counts.calendar.times().astype("datetime64[h]").astype(np.int64)
    hour_starts = np.flatnonzero(np.diff(hours, prepend=hours[0] - 1))
    of_day = hours % 24
    busiest = np.argsort(-true.sum(axis=0), kind="stable")[:BUSIEST]
    return Utility(
        count_error=_relative(read, true),
        location_total_error=_relative(read.sum(axis=0), true.sum(axis=0)),
        hour_total_error=_relative(
            np.add.reduceat(read.sum(axis=1), hour_starts), np.add.reduceat(true.sum(axis=1), hour_starts)
        ),
        profile_error=_relative(_by_hour_of_day(read, of_day), _by_hour_of_day(true, of_day)),
        flow_error=_relative(implied_flows(read), implied_flows(true)),
        busiest_rank_correlation=_rank_correlation(read.sum(axis=0)[busiest], true.sum(axis=0)[busiest]),
        withheld=float(release.withheld.mean()),
    )


def read_at(release: Release, locations: Locations, calendar: Calendar) -> Floats:
    """Read a release at the detail of finer locations and steps.

    Returns
    -------
    (steps, locations) float64 people; 0 where a number is withheld or its time is not in the release.
    """
    values = np.nan_to_num(release.values)
    if release.locations != locations:
        if len(release.locations) > len(locations):
            raise InvalidData(
                f"The release has {len(release.locations)} locations, the counts {len(locations)}; it must have as many, or "
                "fewer and larger ones."
            )
        nearest, number = _nearest(release, locations)
        values = values[:, nearest] / number
    if release.calendar != calendar:
        seconds = int(release.calendar.step.total_seconds())
        offset = (calendar.times() - np.datetime64(release.calendar.start, "s")).astype(np.int64) // seconds
        inside = (offset >= 0) & (offset < release.steps)
        if not inside.any():
            raise InvalidData(f"The release from {release.calendar.start} on shares no time with the counts.")
        values = np.where(inside[:, None], values[np.clip(offset, 0, release.steps - 1)], 0.0)
    return values


def _nearest(release: Release, locations: Locations) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each location the nearest one of a release, and how many have the same."""
    nearest = cKDTree(release.locations.xy_km).query(locations.xy_km)[1]
    return nearest, np.bincount(nearest, minlength=len(release.locations))[nearest]


def implied_flows(values: Floats) -> Floats:
    """Flows between locations that counts imply, if as many people as possible stay and the others mix.

    From one step to the next a location that loses people sends out as many as it loses, and they go to the locations that
    gain people, in proportion to the gains. Where the gains are more than the losses, or less, the difference comes from
    nowhere or goes there.

    Parameters
    ----------
    values
        (steps, locations) float64 people; negative ones are taken as 0.

    Returns
    -------
    (locations, locations) float64: people who moved from one location to another, over all steps.
    """
    change = np.diff(np.maximum(values, 0.0), axis=0)
    lost, gained = np.maximum(-change, 0.0), np.maximum(change, 0.0)
    moving = np.maximum(lost.sum(axis=1), gained.sum(axis=1))
    return np.asarray((lost / np.maximum(moving, 1e-12)[:, None]).T @ gained)


def _by_hour_of_day(values: Floats, of_day: NDArray[np.int64]) -> Floats:
    return np.stack([values[of_day == hour].sum(axis=0) for hour in range(24)])


def _relative(read: Floats, true: Floats) -> float:
    """Sum of the absolute errors as a share of the sum, which is taken as one person at least."""
    return float(np.abs(read - true).sum() / max(true.sum(), 1.0))


def _rank_correlation(read: Floats, true: Floats) -> float:
    """Spearman's correlation; where either has no order, 1 if they are the same and 0 otherwise."""
    ranks = _mean_ranks(read), _mean_ranks(true)
    if np.ptp(ranks[0]) == 0 or np.ptp(ranks[1]) == 0:
        return float(np.array_equal(*ranks))
    return float(np.corrcoef(*ranks)[0, 1])


def _mean_ranks(values: Floats) -> Floats:
    """Rank of each value; equal ones share the mean of their ranks."""
    _, rank, number = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(number) - (number - 1) / 2)[rank])
