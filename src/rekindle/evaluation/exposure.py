"""What a recovery gives away of each person: right points, home and work, and what someone who knows a few points learns."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rekindle.evaluation.lookup import DRAWS, look_up
from rekindle.evaluation.mapping import Mapping, MappingMethod, resolve_mapping, right_points, visits
from rekindle.evaluation.people import PersonScores, check_comparable, ratio, score_people
from rekindle.model import AWAY, Calendar, Trajectories

_DAY_HOURS = (9, 17)


@dataclass(frozen=True, eq=False)
class Exposure(PersonScores):
    """What a recovery gives away of each person: see `PersonScores`, and more.

    A recovery may have another number of people than the truth, where the attacker guessed it. All numbers are over the
    true people: recovered people who are left over do not count.

    Attributes
    ----------
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
    """

    home: NDArray[np.float64]
    work: NDArray[np.float64]
    reidentified: NDArray[np.float64]
    learnt: NDArray[np.float64]
    by_hour: NDArray[np.float64]
    by_location: NDArray[np.float64]
    people_recovered: int

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
    check_comparable(recovered, truth)
    found = resolve_mapping(mapping, recovered, truth)
    right, counted = right_points(recovered, truth, found), truth.counted
    hits = np.bincount(truth.cells[right], minlength=len(truth.locations))
    hours = _hours(truth.calendar)
    points_at = np.bincount(hours, weights=counted.sum(axis=0), minlength=24)
    hits_at = np.bincount(hours, weights=right.sum(axis=0), minlength=24)
    known = look_up(recovered, truth, found.recovered, draws=draws, seed=seed)
    return Exposure(
        **score_people(recovered, truth, found, original),
        home=_found(recovered, truth, found, night_steps(truth.calendar)),
        work=_found(recovered, truth, found, day_steps(truth.calendar)),
        reidentified=known.reidentified,
        learnt=known.learnt,
        by_hour=ratio(hits_at, points_at),
        by_location=ratio(hits, visits(truth)),
        people_recovered=recovered.people,
    )


def agreement(one: Trajectories, other: Trajectories, *, mapping: MappingMethod | Mapping = "optimal") -> float:
    """Share of counted points in which two recoveries agree, after their people were matched; unmatched people count as 0.

    Parameters
    ----------
    one, other
        Recoveries over the same locations and steps.
    mapping
        How people of the one are matched with those of the other, or a mapping that was found before.
    """
    alike = right_points(one, other, resolve_mapping(mapping, one, other)).sum()
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
