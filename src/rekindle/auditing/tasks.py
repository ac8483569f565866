"""The tasks of an audit: small pure functions, each of which can run on any core or machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import REFERENCES, Attack, Recovery
from rekindle.defences import Chain, Defence, NothingLeft
from rekindle.errors import InvalidSetting, RekindleError
from rekindle.evaluation import (
    KNOWN_POINTS,
    agreement,
    assess_confidence,
    expose,
    map_people,
    uniqueness_by_k,
    utility,
)
from rekindle.membership.channel import rebuild_defence
from rekindle.membership.infer import Method, exact_membership, infer_membership
from rekindle.model import AppliedDefence, Calendar, Counts, Locations, Release, Trajectories
from rekindle.repairing import REPAIRS, guess_people

__all__ = [
    "FROZEN",
    "PERFECT",
    "REFERENCE_ATTEMPTS",
    "Attempt",
    "Published",
    "Result",
    "adds_up",
    "attack_counts",
    "compare_recoveries",
    "publish",
    "repair_release",
    "tell_membership",
]

PERFECT = "perfect"
"""The truth itself, as if all of it had been found: what the other numbers could reach at most."""

FROZEN = "frozen"
"""A repair, and the reference that lets people stay where that repair puts them."""

_TESTED = 20
"""People of whom it is tested whether they can be told to be in a release."""

_GROWTH = (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 28, 42, 60, 90, 120, 180, 365)


@dataclass(frozen=True, eq=False)
class Result:
    """What a task found: numbers in plain values, and arrays by name."""

    numbers: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """An attack or a reference by name; without an attack, the truth itself.

    Attributes
    ----------
    name, attack
        The attack.
    repair
        The one repair that it is tried with; None for those that suit the release.
    """

    name: str
    attack: Attack | None = None
    repair: str | None = None

    @property
    def is_reference(self) -> bool:
        """Whether it only stands beside the attacks."""
        return self.attack is None or self in REFERENCE_ATTEMPTS

    def recover(self, counts: Counts, seed: int) -> Recovery:
        """Recover everyone, with a row order of this seed where the attack has one."""
        attack: Any = self.attack
        names = {one.name for one in dataclasses.fields(attack)} if dataclasses.is_dataclass(attack) else set()
        # The tasks are what runs side by side, so each keeps to one core.
        own = {name: value for name, value in (("seed", seed), ("workers", 1)) if name in names}
        found: Recovery = (dataclasses.replace(attack, **own) if own else attack).recover(counts)
        return found


REFERENCE_ATTEMPTS = (
    *(Attempt(name, kind()) for name, kind in REFERENCES.items()),
    Attempt(FROZEN, REFERENCES["naive"](), FROZEN),
)
"""What stands beside every attack."""


@dataclass(frozen=True, eq=False)
class Published:
    """One draw of a release, and the people in it where they are known.

    Attributes
    ----------
    release
        What is published.
    guess
        How many people an attacker takes to be in it who has to guess.
    truth
        The people who are in the release, at its resolution.
    original
        The same people at their original resolution.
    rows
        (people,) int64: which of all true people they are.
    numbers
        The share `withheld`, and the `utility`.
    """

    release: Release
    guess: int
    truth: Trajectories | None
    original: Trajectories | None
    rows: NDArray[np.int64] | None
    numbers: dict[str, Any]

    @classmethod
    def read(cls, result: Result, truth: Trajectories | None) -> Published:
        """Read what `publish` gave."""
        numbers, arrays = result.numbers, result.arrays
        locations = Locations(arrays["xy_km"], numbers["ids"])
        calendar = Calendar(**numbers["calendar"])
        done = [AppliedDefence.from_json(one) for one in numbers["defences"]]
        release = Release(arrays["values"], locations, calendar, done)
        if truth is None:
            return cls(release, numbers["guess"], None, None, None, numbers)
        rows, original = arrays["rows"], truth
        if len(rows) < truth.people:
            names = [truth.people_ids[row] for row in rows]
            original = Trajectories(truth.cells[rows], truth.locations, truth.calendar, names)
        coarse = original
        if (locations, calendar) != (truth.locations, truth.calendar):
            coarse = Trajectories(arrays["cells"].astype(np.int32), locations, calendar, original.people_ids)
        return cls(release, numbers["guess"], coarse, original, rows, numbers)


def publish(
    data: Counts | Release,
    truth: Trajectories | None,
    counts: Counts | None,
    defence: Defence | None,
    seed: int,
    required: bool,
) -> Result:
    """Protect the data once, and bring the truth to the same resolution.

    Parameters
    ----------
    data, truth
        What is to be published, and the people behind it.
    counts
        Their true counts, for the utility; None where they are not known.
    defence, seed
        What is done, and its draw.
    required
        Whether a defence that cannot be applied to these data is an error. One that would leave nothing never is.

    Returns
    -------
    Arrays `values` (steps, locations) and `xy_km` of the release, `cells` and `rows` of the people in it; numbers `ids`,
    `calendar`, `defences`, `guess`, `withheld` (share of the numbers) and `utility`. Or the number `left_out`: why the
    defence cannot be applied.
    """
    release, coarse, scale = data if isinstance(data, Release) else Release.of(data), truth, 1.0
    if defence is not None:
        defence = defence.seeded(seed)
        from_people = defence.needs_people and truth is not None and isinstance(data, Counts)
        try:
            release, scale = defence(truth if from_people and truth is not None else data), defence.scale
            coarse = None if truth is None else defence.coarsen(truth)
        except RekindleError as error:
            if required and not isinstance(error, NothingLeft):
                raise
            return Result({"left_out": str(error)})
    numbers = {
        "ids": list(release.locations.ids),
        "calendar": release.calendar.to_json(),
        "defences": [one.to_json() for one in release.defences],
        "guess": guess_people(release),
        "withheld": float(release.withheld.mean()),
        "utility": None if counts is None else utility(counts, release, scale=scale).to_json(),
    }
    arrays: dict[str, NDArray[Any]] = {"values": release.values, "xy_km": release.locations.xy_km}
    if coarse is not None and truth is not None:
        arrays["cells"] = coarse.cells.astype(np.min_scalar_type(len(coarse.locations)))
        arrays["rows"] = _rows(coarse, truth)
    return Result(numbers, arrays)


def adds_up(release: Release, people: int) -> bool:
    """Whether the numbers are valid counts of so many people, so that there is nothing to repair."""
    values = release.values
    whole = not np.isnan(values).any() and (values >= 0).all() and (values == np.floor(values)).all()
    return bool(whole and (values.sum(axis=1) == people).all())


def repair_release(release: Release, repair: str, people: int) -> Result:
    """Turn a release back into counts, as an attacker would: array `values` (steps, locations)."""
    if repair == FROZEN and adds_up(release, people):
        # A repair keeps exact numbers. The reference does not: it puts everyone in one location for all time.
        mean = np.broadcast_to(release.values.mean(axis=0), release.values.shape)
        release = Release(mean, release.locations, release.calendar)
    counts = REPAIRS[repair](release, people)
    return Result(arrays={"values": counts.values.astype(np.min_scalar_type(counts.people))})


def attack_counts(
    counts: Counts,
    truth: Trajectories | None,
    original: Trajectories | None,
    attempt: Attempt,
    seed: int,
    keep: bool,
    growth: bool,
) -> Result:
    """Attack counts, and compare with the truth where it is known.

    Parameters
    ----------
    counts
        What the attacker has.
    truth, original
        The people, at the resolution of the counts and at their own, or None.
    attempt, seed
        The attack and its row order.
    keep
        Whether the recovered trajectories are part of the result, as `cells`.
    growth
        Whether to measure how exposure grows with the number of days.
    """
    sure = None
    if attempt.attack is None:
        if truth is None:
            raise InvalidSetting("Without the truth there is no perfect recovery.")
        recovered = truth
    else:
        found = attempt.recover(counts, seed)
        recovered, sure = found.trajectories, found.confidence
    numbers: dict[str, Any] = {"uniqueness": list(uniqueness_by_k(recovered).values()), "people": recovered.people}
    arrays: dict[str, NDArray[Any]] = {}
    if keep:
        arrays["cells"] = recovered.cells.astype(np.min_scalar_type(len(counts.locations)))
    if truth is None:
        return Result(numbers, arrays)
    mapping = map_people(recovered, truth)
    exposure = expose(recovered, truth, original=original, mapping=mapping, seed=seed)
    arrays |= {f"exposure.{name}": array for name, array in exposure.arrays().items()}
    if sure is not None:
        numbers["confidence"] = assess_confidence(recovered, sure, truth, mapping=mapping).to_json()
    if growth:
        numbers["growth"] = list(_growth(attempt, counts, recovered, truth, seed))
    return Result(numbers, arrays)


def compare_recoveries(counts: Counts, one: NDArray[Any], other: NDArray[Any]) -> Result:
    """How far two recoveries of the same counts agree; both are (people, steps) location indices."""

    def people(cells: NDArray[Any]) -> Trajectories:
        return Trajectories(cells.astype(np.int32), counts.locations, counts.calendar)

    return Result({"agreement": agreement(people(one), people(other))})


def tell_membership(
    release: Release, people: Trajectories, defence: Defence | None, given: bool, method: Method, seed: int
) -> Result:
    """Test whether it can be told who is in a release; the number `reason` where that cannot be tested.

    Parameters
    ----------
    release, people
        What is published, and the people in it at its resolution.
    defence
        What was done to counts, or to what was given.
    given
        Whether something had been done to the counts before.
    method, seed
        See `infer_membership`.
    """
    try:
        if given:
            applied = release.defences[: len(release.defences) - len(Chain([defence] if defence else ()).defences)]
            if not applied:
                raise InvalidSetting("It is not known what was done to the release, so it cannot be drawn again.")
            defence = Chain([rebuild_defence(applied), *([defence] if defence else ())])
        chain = Chain([defence] if defence is not None else ())
        if method == "exact":
            return Result(exact_membership(release, people, chain, targets=_TESTED, seed=seed).to_json())
        return Result(infer_membership(release, people, chain, method=method, targets=_TESTED, seed=seed).to_json())
    except RekindleError as error:
        return Result({"reason": str(error)})


def _growth(
    attempt: Attempt, counts: Counts, recovered: Trajectories, truth: Trajectories, seed: int
) -> Iterator[dict[str, float | None]]:
    """Measure at the first few numbers of days, then ever fewer, and at all of them."""
    all_days = counts.calendar.number_of_days
    revises = attempt.attack is not None and attempt.attack.revises
    for days in [number for number in _GROWTH if number < all_days] + [all_days]:
        part = slice(0, counts.calendar.day(days - 1).stop)
        so_far, known = recovered.part(part), truth.part(part)
        if revises and days < all_days:
            so_far = attempt.recover(counts.part(part), seed).trajectories
        found = expose(so_far, known, seed=seed)
        four = max(at for at, points in enumerate(KNOWN_POINTS) if points <= min(4, known.steps))
        yield {
            "days": days,
            "accuracy": float(found.accuracy.mean()),
            "home": None if np.isnan(found.home).all() else float(found.home.mean()),
            "reidentified": float(np.nanmean(found.reidentified[:, four])),
        }


def _rows(coarse: Trajectories, truth: Trajectories) -> NDArray[np.int64]:
    """Which of all true people are in a release: (people in it,) int64."""
    if coarse.people_ids == truth.people_ids:
        return np.arange(truth.people)
    row = {name: row for row, name in enumerate(truth.people_ids)}
    try:
        return np.array([row[name] for name in coarse.people_ids], np.int64)
    except KeyError as error:
        raise InvalidSetting(f"The defence gave the truth a person {error.args[0]!r} who was not in it.") from None
