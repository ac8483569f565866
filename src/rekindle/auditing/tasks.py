"""The tasks of an audit: small pure functions, each of which can run on any core or machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import REFERENCES, Attack, Recovery
from rekindle.auditing.clock import processor_time
from rekindle.auditing.work import attacking
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
from rekindle.progress import Progress
from rekindle.repairing import REPAIRS, exact_totals, guess_people

__all__ = [
    "FROZEN",
    "GROWTH",
    "PERFECT",
    "REFERENCE_ATTEMPTS",
    "Attempt",
    "Published",
    "Result",
    "attack_counts",
    "attack_first_days",
    "compare_recoveries",
    "publish",
    "repair_release",
    "summary_of",
    "tell_membership",
]

PERFECT = "perfect"
"""The truth itself, as if all of it had been found: what the other numbers could reach at most."""

FROZEN = "frozen"
"""A repair, and the reference that lets people stay where that repair puts them."""

_TESTED = 20
"""People of whom it is tested whether they can be told to be in a release."""

CLAIMED = 0.9
"""The confidence from which on an attacker claims a point."""

GROWTH = (1, 2, 4, 7, 14, 28, 60, 120, 240)
"""Numbers of days after which it is measured how exposure grows; an attack that revises earlier days runs again for each."""


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

    def recover(self, counts: Counts, seed: int, progress: Progress | None = None) -> Recovery:
        """Recover everyone, with a row order of this seed where the attack has one."""
        attack: Any = self.attack
        names = {one.name for one in dataclasses.fields(attack)} if dataclasses.is_dataclass(attack) else set()
        # The tasks are what runs side by side, so each keeps to one core.
        own = {name: value for name, value in (("seed", seed), ("workers", 1)) if name in names}
        found: Recovery = (dataclasses.replace(attack, **own) if own else attack).recover(counts, progress=progress)
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
    exact
        Whether every number is the true one, so that there is nothing to repair.
    guess
        How many people an attacker takes to be in it who has to guess: the largest total where the numbers are exact.
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
    exact: bool
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
        seen = (release, numbers["exact"], numbers["guess"])
        if truth is None:
            return cls(*seen, None, None, None, numbers)
        rows, original = arrays["rows"], truth
        if len(rows) < truth.people:
            names = [truth.people_ids[row] for row in rows]
            observed = None if truth.observed is None else truth.observed[rows]
            original = Trajectories(truth.cells[rows], truth.locations, truth.calendar, names, observed)
        coarse = original
        if (locations, calendar) != (truth.locations, truth.calendar):
            cells, observed = arrays["cells"].astype(np.int32), arrays.get("observed")
            coarse = Trajectories(cells, locations, calendar, original.people_ids, observed)
        return cls(*seen, coarse, original, rows, numbers)

    @property
    def counts(self) -> Counts:
        """The numbers as counts, where they are exact, of the people that an attacker who has to guess takes to be in it."""
        return Counts(self.release.values.astype(np.int32), self.release.locations, self.release.calendar)


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
    Arrays `values` (steps, locations) and `xy_km` of the release, `cells` and `rows` of the people in it, `observed` where
    points were filled in; numbers `ids`, `calendar`, `defences`, `exact`, `guess`, `withheld` (share of the numbers) and
    `utility`. Or the number `left_out`: why the defence cannot be applied.
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
    # Counts that are given as such are exact, even where they all share a divisor.
    exact = (defence is None and isinstance(data, Counts)) or exact_totals(release) is not None
    numbers = {
        "ids": list(release.locations.ids),
        "calendar": release.calendar.to_json(),
        "defences": [one.to_json() for one in release.defences],
        "exact": exact,
        "guess": int(release.values.sum(axis=1).max()) if exact else guess_people(release),
        "withheld": float(release.withheld.mean()),
        "utility": None if counts is None else utility(counts, release, scale=scale).to_json(),
    }
    arrays: dict[str, NDArray[Any]] = {"values": release.values, "xy_km": release.locations.xy_km}
    if coarse is not None and truth is not None:
        arrays["cells"] = coarse.cells.astype(_small_type(len(coarse.locations)))
        arrays["rows"] = _rows(coarse, truth)
        if coarse.observed is not None:
            arrays["observed"] = coarse.observed
    return Result(numbers, arrays)


def repair_release(release: Release, repair: str, people: int) -> Result:
    """Turn a release back into counts, as an attacker would: array `values` (steps, locations)."""
    counts = REPAIRS[repair](release, people)
    return Result(arrays={"values": counts.values.astype(np.min_scalar_type(counts.people))})


def attack_counts(
    counts: Counts,
    truth: Trajectories | None,
    original: Trajectories | None,
    attempt: Attempt,
    seed: int,
    keep: bool,
    told: Callable[[float], None] | None = None,
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
    told
        Called with the share that is done.
    """
    sure = began = ended = None
    if attempt.attack is None:
        if truth is None:
            raise InvalidSetting("Without the truth there is no perfect recovery.")
        recovered = truth
    else:
        began = processor_time()
        found = attempt.recover(counts, seed, _days_of(attempt.attack, counts, truth is not None, told))
        ended = processor_time()
        recovered, sure = found.trajectories, found.confidence
    numbers: dict[str, Any] = {"uniqueness": list(uniqueness_by_k(recovered).values()), "people": recovered.people}
    if began is not None and ended is not None:
        numbers["seconds"] = ended - began
    if sure is not None and len(counted := sure[recovered.counted]):
        numbers["sure"] = {"mean": float(counted.mean()), "claimed": float((counted >= CLAIMED).mean())}
    arrays: dict[str, NDArray[Any]] = {}
    if keep:
        arrays["cells"] = recovered.cells.astype(_small_type(len(counts.locations)))
    if truth is None:
        return Result(numbers, arrays)
    mapping = map_people(recovered, truth)
    exposure = expose(recovered, truth, original=original, mapping=mapping, seed=seed)
    arrays |= {f"exposure.{name}": array for name, array in exposure.arrays().items()}
    if sure is not None:
        numbers["confidence"] = assess_confidence(recovered, sure, truth, mapping=mapping).to_json()
    return Result(numbers, arrays)


def attack_first_days(
    counts: Counts, truth: Trajectories, attempt: Attempt, seed: int, cells: NDArray[Any] | None
) -> Result:
    """Measure what is found when only the first days are published.

    Parameters
    ----------
    counts, truth
        The first days.
    attempt, seed
        The attack and its row order.
    cells
        (people, steps) what it recovered of these days; None for an attack that revises them when more days come.

    Returns
    -------
    The numbers of `Growth`, but for the days.
    """
    if cells is None:
        recovered = attempt.recover(counts, seed).trajectories
    else:
        recovered = Trajectories(cells.astype(np.int32), counts.locations, counts.calendar)
    return Result(summary_of(expose(recovered, truth, seed=seed).arrays()))


def summary_of(exposure: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The numbers of `Growth`, but for the days, from the arrays of an `Exposure`."""
    home, reidentified = exposure["home"], exposure["reidentified"]
    told: NDArray[np.bool_] = np.atleast_1d((~np.isnan(reidentified)).any(axis=0))
    four = max(at for at, points in enumerate(KNOWN_POINTS) if points <= 4 and told[at])
    return {
        "accuracy": float(np.nanmean(exposure["accuracy"])),
        "home": None if np.isnan(home).all() else float(np.nanmean(home)),
        "reidentified": float(np.nanmean(reidentified[:, four])),
    }


def _days_of(attack: Attack, counts: Counts, compared: bool, told: Callable[[float], None] | None) -> Progress | None:
    """What an attack tells of its days, as a share of the task; the comparison with the truth is the rest of it."""
    if told is None:
        return None
    share = attack.work(counts) / attacking(attack, counts, compared=compared)

    def days(done: int, total: int | None) -> None:
        told(share * done / (total or counts.calendar.number_of_days))

    return days


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


def _small_type(locations: int) -> np.dtype[Any]:
    """The smallest type for indices of locations and for those who are away."""
    return np.min_scalar_type(-max(locations, 1))


def _rows(coarse: Trajectories, truth: Trajectories) -> NDArray[np.int64]:
    """Which of all true people are in a release: (people in it,) int64."""
    if coarse.people_ids == truth.people_ids:
        return np.arange(truth.people)
    row = {name: row for row, name in enumerate(truth.people_ids)}
    try:
        return np.array([row[name] for name in coarse.people_ids], np.int64)
    except KeyError as error:
        raise InvalidSetting(f"The defence gave the truth a person {error.args[0]!r} who was not in it.") from None
