"""What a recovery gives away of each person: right points, home and work, and what someone who knows a few points learns."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData
from rekindle.evaluation.lookup import DRAWS, look_up
from rekindle.evaluation.mapping import (
    Mapping,
    MappingMethod,
    accuracy_observed,
    check_counted,
    errors_km,
    map_people,
    points_observed,
    ratio,
    resolve_mapping,
    right_points,
    visits,
)
from rekindle.model import AWAY, Calendar, Trajectories

_DAY_HOURS = (9, 17)


@dataclass(frozen=True, eq=False)
class Exposure:
    """What a recovery gives away, in the order of the true people.

    A recovery may have another number of people than the truth, where the attacker guessed it. All numbers are over the
    true people: those without a match score 0, and recovered people who are left over do not count. Only points at which
    people are counted matter; people who are never counted have NaN.

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
        (people,) float64: mean distance to where the person really was at the steps at which both are counted, km; NaN for
        people without a match, or without such a step.
    home, work
        (people,) float64: 1 where the most frequent location at night, or in working hours, was found, else 0; NaN for
        people who are not counted at such steps.
    reidentified
        (people, len(KNOWN_POINTS)) float64: how often someone who knows that many random points of a person finds that
        person, and nobody else, as the best match in the recovery. NaN for people who were not looked up, and those with
        fewer points.
    learnt
        (people, len(KNOWN_POINTS)) float64: accuracy at the other points of the recovered path that fits the known ones
        best. NaN as above.
    by_hour
        (24,) float64: share of points in the right location at each hour of the day; NaN where there are none.
    by_location
        (locations,) float64: the share found of the time spent in each location; NaN where nobody was.
    people_recovered
        How many people the recovery has.
    points, points_observed
        (people,) int64: at how many steps each person is counted, and at how many of these recorded rather than filled in:
        the weight of each person in the share of all points.
    points_recovered
        How many points the recovered people have, those without a match included.
    """

    matched: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    precision: NDArray[np.float64]
    accuracy_observed: NDArray[np.float64]
    error_km: NDArray[np.float64]
    home: NDArray[np.float64]
    work: NDArray[np.float64]
    reidentified: NDArray[np.float64]
    learnt: NDArray[np.float64]
    by_hour: NDArray[np.float64]
    by_location: NDArray[np.float64]
    people_recovered: int
    points: NDArray[np.int64]
    points_observed: NDArray[np.int64]
    points_recovered: int

    def __repr__(self) -> str:
        accuracy = np.nansum(self.accuracy * self.points) / self.points.sum()
        return f"Exposure({len(self.accuracy)} people, accuracy {accuracy:.3f})"

    @property
    def looked_up(self) -> int:
        """How many people were looked up by known points."""
        return int((~np.isnan(self.reidentified)).any(axis=1).sum())

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All fields as arrays, by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}


def expose(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    original: Trajectories | None = None,
    mapping: MappingMethod | Mapping = "optimal",
    draws: int = DRAWS,
    seed: int = 0,
) -> Exposure:
    """Compare a recovery with the truth, person by person.

    Parameters
    ----------
    recovered
        The recovered people; there may be more or fewer of them than true ones.
    truth
        The true people, in the same locations and steps as the recovery: coarsened alike where the release was coarse.
    original
        The same people, in the same order, in their original locations and steps: the error in km is against these.
    mapping
        How recovered people are matched with true ones, or a mapping that was found before.
    draws
        How many times the points that someone knows are drawn for each person.
    seed
        Which points are drawn, and how ties between recovered paths are broken.
    """
    if recovered.calendar != truth.calendar:
        raise InvalidData(
            f"The recovery has the calendar {recovered.calendar.to_json()}, the truth {truth.calendar.to_json()}."
        )
    check_counted(truth)
    found = resolve_mapping(mapping, recovered, truth)
    right, counted = right_points(recovered, truth, found), truth.counted
    hits = np.bincount(truth.cells[right], minlength=len(truth.locations))
    hours = _hours(truth.calendar)
    points_at = np.bincount(hours, weights=counted.sum(axis=0), minlength=24)
    hits_at = np.bincount(hours, weights=right.sum(axis=0), minlength=24)
    theirs = np.append((recovered.cells != AWAY).sum(axis=1), 0)  # nobody, at -1, is never counted
    known = look_up(recovered, truth, found.recovered, draws=draws, seed=seed)
    return Exposure(
        matched=found.recovered,
        accuracy=ratio(right.sum(axis=1), counted.sum(axis=1)),
        precision=ratio(right.sum(axis=1), theirs[found.recovered]),
        accuracy_observed=accuracy_observed(right, truth),
        error_km=errors_km(recovered, truth if original is None else original, found),
        home=_found(recovered, truth, found, night_steps(truth.calendar)),
        work=_found(recovered, truth, found, day_steps(truth.calendar)),
        reidentified=known.reidentified,
        learnt=known.learnt,
        by_hour=ratio(hits_at, points_at),
        by_location=ratio(hits, visits(truth)),
        people_recovered=recovered.people,
        points=counted.sum(axis=1),
        points_observed=points_observed(truth),
        points_recovered=int(theirs.sum()),
    )


def agreement(one: Trajectories, other: Trajectories) -> float:
    """Share of counted points in which two recoveries agree, after their people were matched; unmatched people count as 0.

    Parameters
    ----------
    one, other
        Recoveries over the same locations and steps.
    """
    alike = right_points(one, other, map_people(one, other)).sum()
    return float(alike / max(one.counted.sum(), other.counted.sum(), 1))


def night_steps(calendar: Calendar) -> NDArray[np.bool_]:
    """Steps between 00:00 and 06:00: (steps,) bool."""
    return _hours(calendar) < 6


def day_steps(calendar: Calendar) -> NDArray[np.bool_]:
    """Steps between 09:00 and 17:00 from Monday to Friday, or of all days where there is no such day: (steps,) bool."""
    hours, days = _hours(calendar), calendar.times().astype("datetime64[D]")
    working = (hours >= _DAY_HOURS[0]) & (hours < _DAY_HOURS[1])
    weekday = working & np.is_busday(days)
    return weekday if weekday.any() else working


def usual_location(trajectories: Trajectories, steps: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Find each person's most frequent location among some steps, the one listed first among equals.

    Returns
    -------
    (people,) int64; `AWAY` for people who are not counted at any of these steps.
    """
    cells = trajectories.cells[:, steps]
    times = (np.bincount(row[row != AWAY]) for row in cells)
    return np.array([each.argmax() if len(each) else AWAY for each in times], np.int64)


def _found(
    recovered: Trajectories, truth: Trajectories, mapping: Mapping, steps: NDArray[np.bool_]
) -> NDArray[np.float64]:
    guess, real = usual_location(recovered, steps), usual_location(truth, steps)
    found = np.where((mapping.recovered >= 0) & (guess[mapping.recovered] == real), 1.0, 0.0)
    return np.where(real == AWAY, np.nan, found)


def _hours(calendar: Calendar) -> NDArray[np.int64]:
    times = calendar.times()
    return np.asarray((times - times.astype("datetime64[D]")) // np.timedelta64(1, "h"), np.int64)
