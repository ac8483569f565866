"""What a recovery gives away of each person: right points, home and work, and whether someone could find them in it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData
from rekindle.evaluation.mapping import map_people
from rekindle.model import Calendar, Trajectories

__all__ = ["KNOWN_POINTS", "Exposure", "agreement", "day_steps", "expose", "night_steps", "reidentify", "usual_place"]

KNOWN_POINTS = 5
"""An acquaintance knows from 1 to so many points of a person (de Montjoye et al. 2013)."""

_DRAWS = 20
_MOST_LOOKED_UP = 1000
_MOST_UNEQUAL = 5000
_DAY_HOURS = (9, 17)


@dataclass(frozen=True, eq=False)
class Exposure:
    """What a recovery gives away, in the order of the true people.

    A recovery may have another number of people than the truth, where the attacker guessed it. Then some people on one
    side are left over, and they score 0.

    Attributes
    ----------
    matched
        (people,) int64: the recovered person that each true person was matched with; -1 for none.
    accuracy
        (people,) float64: share of steps in the right place.
    error_km
        (people,) float64: mean distance to where the person really was, km; NaN for people without a match.
    home, work
        (people,) float64: 1 where the most frequent place at night, or in working hours, was found, else 0; NaN where
        the calendar has no such steps.
    reidentified
        (people, known points) float64: how often someone who knows 1, 2, ... random points of a person finds that
        person, and nobody else, as the best match in the recovery. NaN for people who were not looked up.
    by_hour
        (24,) float64: share of points in the right place at each hour of the day; NaN where there are none.
    by_place
        (locations,) float64: the share found of the time spent in each place; NaN where nobody was.
    people_recovered
        How many people the recovery has.
    """

    matched: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    error_km: NDArray[np.float64]
    home: NDArray[np.float64]
    work: NDArray[np.float64]
    reidentified: NDArray[np.float64]
    by_hour: NDArray[np.float64]
    by_place: NDArray[np.float64]
    people_recovered: int

    @property
    def weight(self) -> float:
        """What the mean over the true people is multiplied with, so that recovered people without a match count as 0."""
        return min(1.0, len(self.matched) / self.people_recovered)

    @property
    def mean_accuracy(self) -> float:
        """Share of points in the right place, over the people of whichever side has more."""
        return float(self.accuracy.mean() * self.weight)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All fields as arrays, by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}


def expose(
    recovered: Trajectories,
    truth: Trajectories,
    *,
    original: Trajectories | None = None,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Exposure:
    """Compare a recovery with the truth, person by person.

    Parameters
    ----------
    recovered
        The rebuilt people; there may be more or fewer of them than true ones.
    truth
        The true people, in the same places and steps as the recovery: coarsened alike where the release was coarse.
    original
        The same people, in the same order, in their original places and steps: the error in km is against these.
    draws
        How many times the points that an acquaintance knows are drawn for each person.
    seed
        Which points are drawn.
    """
    if recovered.calendar != truth.calendar:
        raise InvalidData(
            f"The recovery has the calendar {recovered.calendar.to_json()}, the truth {truth.calendar.to_json()}."
        )
    if not truth.steps:
        raise InvalidData("There are no steps to compare yet.")
    matched = _invert(_match(recovered, truth), truth.people)
    right = np.zeros(truth.cells.shape, bool)
    found = np.flatnonzero(matched >= 0)
    right[found] = recovered.cells[matched[found]] == truth.cells[found]
    places = len(truth.locations)
    visits = np.bincount(truth.cells.ravel(), minlength=places)
    hits = np.bincount(truth.cells[right], minlength=places)
    hours = _hours(truth.calendar)
    steps_at = np.bincount(hours, minlength=24) * truth.people
    hits_at = np.bincount(hours, weights=right.sum(axis=0), minlength=24)
    return Exposure(
        matched=matched,
        accuracy=right.mean(axis=1),
        error_km=_errors_km(recovered, truth if original is None else original, matched),
        home=_found(recovered, truth, matched, night_steps(truth.calendar)),
        work=_found(recovered, truth, matched, day_steps(truth.calendar)),
        reidentified=reidentify(recovered, truth, matched, draws=draws, seed=seed),
        by_hour=_share(hits_at, steps_at),
        by_place=_share(hits, visits),
        people_recovered=recovered.people,
    )


def reidentify(
    recovered: Trajectories, truth: Trajectories, matched: NDArray[np.int64], *, draws: int = _DRAWS, seed: int = 0
) -> NDArray[np.float64]:
    """Look people up by a few points that someone knows of them.

    Points of a true person are drawn at random; the recovered person who agrees with most of them is the best match. It
    counts where it is the only best match and the right person. With more than 1000 people, 1000 are looked up.

    Parameters
    ----------
    recovered, truth
        Trajectories of the same places and steps. With the truth as both, this is the uniqueness of the true people.
    matched
        (true people,) int64: the recovered person who is the right one for each true person; -1 for none.
    draws
        How many times the points are drawn for each person.
    seed
        Which points are drawn.

    Returns
    -------
    (true people, points) float64: share of the draws, when 1, 2, ... points are known.

    References
    ----------
    Y.-A. de Montjoye, C. A. Hidalgo, M. Verleysen, V. D. Blondel. Unique in the Crowd: The privacy bounds of human
    mobility. Scientific Reports 3, 1376 (2013).
    """
    points = min(KNOWN_POINTS, truth.steps)
    result = np.full((truth.people, points), np.nan)
    looked_up = np.unique(np.linspace(0, truth.people - 1, min(truth.people, _MOST_LOOKED_UP)).astype(np.int64))
    for person in looked_up:
        random = np.random.default_rng([seed, person])
        steps = np.array([random.choice(truth.steps, points, replace=False) for _ in range(draws)])
        alike = recovered.cells[:, steps] == truth.cells[person, steps]
        agreed = alike.cumsum(axis=2, dtype=np.int8)
        only_one = (agreed == agreed.max(axis=0)).sum(axis=0) == 1
        result[person] = (only_one & (agreed.argmax(axis=0) == matched[person])).mean(axis=0)
    return result


def agreement(one: Trajectories, other: Trajectories) -> float:
    """Share of points in which two recoveries agree, after their people were matched; unmatched people count as 0."""
    matched = _match(one, other)
    found = np.flatnonzero(matched >= 0)
    alike = (one.cells[found] == other.cells[matched[found]]).sum()
    return float(alike / (max(one.people, other.people) * one.steps))


def night_steps(calendar: Calendar) -> NDArray[np.bool_]:
    """Steps between 00:00 and 06:00: (steps,) bool."""
    return _hours(calendar) < 6


def day_steps(calendar: Calendar) -> NDArray[np.bool_]:
    """Steps between 09:00 and 17:00 from Monday to Friday, or of all days where there is no such day: (steps,) bool."""
    hours, days = _hours(calendar), calendar.times().astype("datetime64[D]")
    working = (hours >= _DAY_HOURS[0]) & (hours < _DAY_HOURS[1])
    weekday = working & np.is_busday(days)
    return weekday if weekday.any() else working


def usual_place(trajectories: Trajectories, steps: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Find each person's most frequent place among some steps, the one listed first among equals: (people,) int64."""
    cells = trajectories.cells[:, steps]
    return np.array([np.bincount(row).argmax() for row in cells], np.int64)


def _found(
    recovered: Trajectories, truth: Trajectories, matched: NDArray[np.int64], steps: NDArray[np.bool_]
) -> NDArray[np.float64]:
    if not steps.any():
        return np.full(truth.people, np.nan)
    guess, real = usual_place(recovered, steps), usual_place(truth, steps)
    return np.where((matched >= 0) & (guess[matched] == real), 1.0, 0.0)


def _errors_km(recovered: Trajectories, truth: Trajectories, matched: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean distances at the steps of the truth; a coarse recovery stays where it was last seen."""
    seen = np.searchsorted(recovered.calendar.times(), truth.calendar.times(), side="right") - 1
    here, there = recovered.locations.xy_km, truth.locations.xy_km
    errors = np.full(truth.people, np.nan)
    for person in np.flatnonzero(matched >= 0):
        gap = here[recovered.cells[matched[person], seen]] - there[truth.cells[person]]
        errors[person] = np.hypot(gap[:, 0], gap[:, 1]).mean()
    return errors


def _match(one: Trajectories, other: Trajectories) -> NDArray[np.int64]:
    """Match people with the least total error; very many, of whom there are not as many of both, greedily."""
    greedy = one.people != other.people and max(one.people, other.people) > _MOST_UNEQUAL
    return map_people(one, other, method="greedy" if greedy else "optimal").matched


def _invert(matched: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    """From the true person of each recovered person to the recovered person of each true person."""
    result = np.full(people, -1, np.int64)
    found = np.flatnonzero(matched >= 0)
    result[matched[found]] = found
    return result


def _hours(calendar: Calendar) -> NDArray[np.int64]:
    times = calendar.times()
    return np.asarray((times - times.astype("datetime64[D]")) // np.timedelta64(1, "h"), np.int64)


def _share(part: NDArray[np.number], whole: NDArray[np.integer]) -> NDArray[np.float64]:
    share = np.full(len(whole), np.nan)
    np.divide(part, whole, out=share, where=whole > 0)
    return share
