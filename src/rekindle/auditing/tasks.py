"""The cells of an audit: small pure functions, each of which can run on any core or machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import REFERENCES, Attack
from rekindle.defences import Defence
from rekindle.errors import InvalidSetting
from rekindle.evaluation import KNOWN_POINTS, uniqueness_by_k
from rekindle.evaluation.exposure import Exposure, agreement, expose
from rekindle.evaluation.usefulness import utility
from rekindle.model import Calendar, Counts, Locations, Release, Trajectories
from rekindle.repairing import repair

__all__ = [
    "PERFECT",
    "Attempt",
    "Result",
    "attack_release",
    "compare_recoveries",
    "publish",
    "repaired",
]

PERFECT = "perfect"
"""The truth itself, as if all of it had been found: what the other numbers could reach at most."""

_GROWTH = (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 28, 42, 60, 90, 120, 180, 365)


@dataclass(frozen=True, eq=False)
class Result:
    """What a cell found: numbers in plain values, and arrays by name."""

    numbers: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """An attack by name: one of the attacks, a yardstick, or the truth itself."""

    name: str
    attack: Attack | None = None

    def recover(self, counts: Counts, seed: int) -> Trajectories:
        """Rebuild everyone, with a row order of this seed where the attack has one."""
        if self.attack is None:
            reference: Any = REFERENCES[self.name]
            return cast(Trajectories, reference(seed=seed).recover(counts).trajectories)
        attack: Any = self.attack
        names = {one.name for one in dataclasses.fields(attack)} if dataclasses.is_dataclass(attack) else set()
        # The cells are what runs side by side, so each keeps to one core.
        own = {"seed": seed, "workers": 1}
        attack = (
            dataclasses.replace(attack, **{name: own[name] for name in own if name in names}) if names else attack
        )
        found: Trajectories = attack.recover(counts).trajectories
        return found

    @property
    def revises(self) -> bool:
        """Whether the first days of a recovery depend on the later ones."""
        return self.attack is not None and self.attack.revises


def publish(
    data: Counts | Release, truth: Trajectories | None, defence: Defence | None, seed: int, people: int | None
) -> Result:
    """Protect the data, and turn the release back into counts as an attacker would.

    Returns
    -------
    Arrays `values` (steps, locations) of the repaired counts and `xy_km` of their places; numbers `ids`, `calendar`,
    `people`, `withheld` (share of the numbers), `defences`, and `utility` of the release.
    """
    release = data if isinstance(data, Release) else Release.of(data)
    scale = 1.0
    if defence is not None:
        defence = defence.seeded(seed)
        release, scale = defence(people_or_data(data, truth, defence)), defence.scale
    untouched = defence is None and isinstance(data, Counts) and people in (None, data.people)
    counts = data if untouched and isinstance(data, Counts) else repair(release, people)
    real = data if isinstance(data, Counts) else None if truth is None else truth.counts()
    use = None if real is None else utility(real, release, scale=scale).to_json()
    return Result(
        {
            "ids": list(counts.locations.ids),
            "calendar": counts.calendar.to_json(),
            "people": counts.people,
            "withheld": float(release.withheld.mean()),
            "defences": [one.to_json() for one in release.defences],
            "utility": use,
        },
        {"values": counts.values.astype(np.min_scalar_type(counts.people)), "xy_km": counts.locations.xy_km},
    )


def people_or_data(
    data: Counts | Release, truth: Trajectories | None, defence: Defence
) -> Counts | Release | Trajectories:
    """What a defence is applied to: the people, where it needs them and the data are no more than their counts."""
    return truth if defence.needs_people and truth is not None and isinstance(data, Counts) else data


def repaired(result: Result) -> Counts:
    """The counts that `publish` found."""
    numbers, arrays = result.numbers, result.arrays
    return Counts(
        arrays["values"].astype(np.int32), Locations(arrays["xy_km"], numbers["ids"]), Calendar(**numbers["calendar"])
    )


def attack_release(
    published: Result,
    truth: Trajectories | None,
    defence: Defence | None,
    attempt: Attempt,
    seed: int,
    keep: bool,
    growth: bool,
) -> Result:
    """Attack the repaired counts, and compare with the truth where it is known.

    Parameters
    ----------
    published
        What `publish` gave.
    truth
        The people at their original resolution, or None.
    defence, seed
        What the release was made with; the seed is the row order of the attack, too.
    attempt
        The attack.
    keep
        Whether the recovered trajectories are part of the result, as `cells`.
    growth
        Whether to measure how exposure grows with the number of days.
    """
    counts = repaired(published)
    coarse = truth if truth is None or defence is None else defence.seeded(seed).coarsen(truth)
    recovered = coarse if attempt.name == PERFECT and coarse is not None else attempt.recover(counts, seed)
    numbers: dict[str, Any] = {"uniqueness": list(uniqueness_by_k(recovered).values()), "people": recovered.people}
    arrays: dict[str, NDArray[Any]] = {}
    if keep:
        arrays["cells"] = recovered.cells.astype(np.min_scalar_type(len(counts.locations)))
    if truth is None or coarse is None:
        return Result(numbers, arrays)
    original = _original_rows(truth, coarse)
    found = _for_everyone(expose(recovered, coarse, original=original, seed=seed), coarse, truth)
    arrays |= {f"exposure.{name}": array for name, array in found.arrays().items()}
    if growth:
        numbers["growth"] = list(_growth(attempt, counts, recovered, coarse, seed))
    return Result(numbers, arrays)


def compare_recoveries(published: Result, one: Result, other: Result) -> Result:
    """How far two recoveries of the same release agree."""
    counts = repaired(published)

    def people(found: Result) -> Trajectories:
        return Trajectories(found.arrays["cells"].astype(np.int32), counts.locations, counts.calendar)

    return Result({"agreement": agreement(people(one), people(other))})


def _days_of_growth(calendar: Calendar) -> list[int]:
    """Numbers of days at which growth is measured: the first few, then ever fewer, and all."""
    days = calendar.number_of_days
    return [number for number in _GROWTH if number < days] + [days]


def _growth(
    attempt: Attempt, counts: Counts, recovered: Trajectories, truth: Trajectories, seed: int
) -> Iterator[dict[str, float | None]]:
    for days in _days_of_growth(counts.calendar):
        part = slice(0, counts.calendar.day(days - 1).stop)
        so_far, coarse = recovered.part(part), truth.part(part)
        if attempt.revises and days < counts.calendar.number_of_days:
            so_far = attempt.recover(counts.part(part), seed)
        found = expose(so_far, coarse, seed=seed)
        known = [at for at, points in enumerate(KNOWN_POINTS) if points <= min(4, coarse.steps)]
        yield {
            "days": days,
            "accuracy": float(found.accuracy.mean()),
            "home": None if np.isnan(found.home).all() else float(found.home.mean()),
            "reidentified": float(np.nanmean(found.reidentified[:, known[-1]])),
        }


def _original_rows(truth: Trajectories, coarse: Trajectories) -> Trajectories:
    """The people who are in a release, at their original resolution."""
    if coarse.people_ids == truth.people_ids:
        return truth
    rows = _rows(coarse, truth)
    return Trajectories(truth.cells[rows], truth.locations, truth.calendar, coarse.people_ids)


def _rows(coarse: Trajectories, truth: Trajectories) -> NDArray[np.int64]:
    place = {name: row for row, name in enumerate(truth.people_ids)}
    try:
        return np.array([place[name] for name in coarse.people_ids], np.int64)
    except KeyError as error:
        raise InvalidSetting(f"The defence gave the truth a person {error.args[0]!r} who was not in it.") from None


def _scatter(values: NDArray[Any], coarse: Trajectories, truth: Trajectories, absent: float = 0.0) -> NDArray[Any]:
    """From the people of a release to all people."""
    if coarse.people_ids == truth.people_ids:
        return values
    result = np.full((truth.people, *values.shape[1:]), absent, values.dtype)
    result[_rows(coarse, truth)] = values
    return result


def _for_everyone(found: Exposure, coarse: Trajectories, truth: Trajectories) -> Exposure:
    """Those who are not in a release are not exposed by it: they score 0."""
    absent = {"matched": -1, "error_km": np.nan}
    names = ("matched", "accuracy", "error_km", "home", "work", "reidentified", "learnt")
    scattered: dict[str, Any] = {
        name: _scatter(getattr(found, name), coarse, truth, absent.get(name, 0.0)) for name in names
    }
    return dataclasses.replace(found, **scattered)
