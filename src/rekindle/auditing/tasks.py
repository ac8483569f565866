"""The tasks of an audit: small pure functions, each of which can run on any core or machine, and what tells one from another."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import PRIORS, REFERENCES, Attack
from rekindle.attacks.priors import KnowingPeople
from rekindle.auditing.clock import processor_time
from rekindle.auditing.work import attacking
from rekindle.defences import Chain, Defence
from rekindle.errors import InvalidSetting, RekindleError
from rekindle.evaluation import agreement, assess_confidence, expose, map_people, uniqueness_by_k
from rekindle.membership.channel import rebuild_defence
from rekindle.membership.infer import Method, exact_membership, infer_membership
from rekindle.model import AWAY, Counts, Flows, Release, Trajectories
from rekindle.progress import Progress

PERFECT = "perfect"
"""The truth itself, as if all of it had been found: what the other numbers could reach at most."""

FROZEN = "frozen"
"""A repair, and the reference that lets people stay where that repair puts them."""

MIXED = "mixed"
"""The reference that draws at random who goes where, along the flows."""

_TESTED = 20
"""People of whom it is tested whether they can be told to be in a release."""

CLAIMED = 0.9
"""The confidence from which on an attacker claims a point."""


Data = Counts | Flows | tuple[Flows, ...]
"""What an attacker has: counts, flows, or flows of several windows, the shortest first."""


@dataclass(frozen=True, eq=False)
class Result:
    """What a task found: numbers in plain values, and arrays by name."""

    numbers: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Task:
    """One of the functions below, and its arguments; tasks whose arguments have the same `identity` have the same result.

    Or a part of a task, which gives what the attack wants to have.

    Attributes
    ----------
    call, arguments
        What to do.
    work
        About how long it takes, in seconds of an ordinary core.
    reports
        Whether the call takes one argument more: a function that it tells the share that is done.
    """

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    work: float = 1.0
    reports: bool = False

    @property
    def in_parts(self) -> bool:
        """Whether it can be spread over all workers."""
        return any(isinstance(one, Attack) and one.in_parts for one in self.arguments)

    def do(self, told: Callable[[float], None]) -> Any:
        """Do it here."""
        return self.call(*self.arguments, told) if self.reports else self.call(*self.arguments)


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
        return self.attack is None or self in REFERENCE_ATTEMPTS or self == MIXED_ATTEMPT

    @property
    def knows(self) -> str | None:
        """What the attacker knows besides the release, in words; None for one who knows nothing."""
        prior = getattr(self.attack, "prior", None)
        return None if prior is None else next(name for name, kind in PRIORS.items() if type(prior) is kind)

    @property
    def follows_flows(self) -> bool:
        """Whether it uses flows where there are any: chance and naive are the same beside counts and flows."""
        return not self.is_reference or self.name == MIXED


REFERENCE_ATTEMPTS = (
    *(Attempt(name, kind()) for name, kind in REFERENCES.items()),
    Attempt(FROZEN, REFERENCES["naive"](), FROZEN),
)
"""What stands beside every attack."""

MIXED_ATTEMPT = Attempt(MIXED, REFERENCES["chance"]())
"""What stands beside every attack on flows: what these leave open to chance."""


def attack_counts(
    data: Data,
    truth: Trajectories | None,
    original: Trajectories | None,
    attack: Attack | NDArray[Any] | None,
    seed: int,
    keep: bool,
    told: Callable[[float], None] | None = None,
) -> Result:
    """Attack counts or flows, and compare with the truth where it is known.

    Parameters
    ----------
    data
        What the attacker has. An attack that cannot follow flows has their counts.
    truth, original
        The people, at the resolution of the counts and at their own, or None.
    attack
        Who attacks; or what was recovered, (people, steps) location indices, where that is known; None for the truth itself.
    seed
        Of the row order.
    keep
        Whether the recovered trajectories are part of the result, as `cells`.
    told
        Called with the share that is done.
    """
    numbers: dict[str, Any] = {}
    sure, named = None, False
    known: tuple[str, ...] = ()
    counts = counts_of(data)
    if isinstance(attack, Attack):
        flows = data if not isinstance(data, Counts) and attack.takes_flows else None
        named, known = attack.named, attack.known_people
        began = processor_time()
        told_days = _days(attack, counts, truth is not None, told)
        more: dict[str, Any] = (
            {} if flows is None else {"flows": flows}
        )  # an attack of one's own need not know of them
        found = _ordered(attack, seed).recover(counts, progress=told_days, **more)
        ended = processor_time()
        recovered, sure = found.trajectories, found.confidence
        if began is not None and ended is not None:
            numbers["seconds"] = ended - began
    elif attack is not None:
        recovered = Trajectories(attack.astype(np.int32), counts.locations, counts.calendar)
    elif truth is not None:
        recovered = truth
    else:
        raise InvalidSetting("Without the truth there is no perfect recovery.")
    if known:
        # Who was known is neither recovered nor, for the score, ever counted.
        sure = None if sure is None else sure[[name not in known for name in recovered.people_ids]]
        recovered = recovered.without(known)
        truth, original = (None if each is None else _never_counted(each, known) for each in (truth, original))
    numbers |= {"uniqueness": list(uniqueness_by_k(recovered).values()), "people": recovered.people}
    if sure is not None and len(counted := sure[recovered.counted]):
        numbers["sure"] = {"mean": float(counted.mean()), "claimed": float((counted >= CLAIMED).mean())}
    # The smallest type for indices of locations and for those who are away.
    small = np.min_scalar_type(-max(len(counts.locations), 1))
    arrays: dict[str, NDArray[Any]] = {"cells": recovered.cells.astype(small)} if keep else {}
    if truth is not None:
        mapping = map_people(recovered, truth, method="names" if named else "optimal")
        numbers["gap"] = mapping.gap
        arrays |= expose(recovered, truth, original=original, mapping=mapping, seed=seed).arrays()
        if sure is not None:
            numbers["confidence"] = assess_confidence(recovered, sure, truth, mapping=mapping).to_json()
    return Result(numbers, arrays)


def counts_of(data: Data) -> Counts:
    """The counts of what an attacker has."""
    data = data[0] if isinstance(data, tuple) else data
    return data if isinstance(data, Counts) else data.counts()


def _never_counted(people: Trajectories, names: Collection[str]) -> Trajectories:
    """The people, of whom some are away at every step."""
    rows = np.array([name in names for name in people.people_ids])
    seen = None if people.observed is None else people.observed & ~rows[:, None]
    cells = np.where(rows[:, None], AWAY, people.cells)
    return Trajectories(cells, people.locations, people.calendar, people.people_ids, seen)


def _ordered(attack: Any, seed: int) -> Attack:
    """The attack with the row order of a seed, where it has one, on one core: tasks and their parts are what runs side by side."""
    if isinstance(attack, KnowingPeople):
        return dataclasses.replace(attack, attack=_ordered(attack.attack, seed))
    names = {one.name for one in dataclasses.fields(attack)} if dataclasses.is_dataclass(attack) else set()
    own = {name: value for name, value in (("seed", seed), ("workers", 1)) if name in names}
    ordered: Attack = dataclasses.replace(attack, **own) if own else attack
    return ordered


def _days(attack: Attack, counts: Counts, compared: bool, told: Callable[[float], None] | None) -> Progress | None:
    """What an attack tells of its days, as a share of the task; the comparison with the truth is the rest of it."""
    if told is None:
        return None
    share = attack.work(counts) / attacking(attack, counts, compared=compared)
    return lambda done, total: told(share * done / (total or counts.calendar.number_of_days))


def compare_recoveries(counts: Counts, one: NDArray[Any], other: NDArray[Any]) -> Result:
    """How far two recoveries of the same counts agree; both are (people, steps) location indices."""

    def people(cells: NDArray[Any]) -> Trajectories:
        return Trajectories(cells.astype(np.int32), counts.locations, counts.calendar)

    found, beside = people(one), people(other)
    mapping = map_people(found, beside)
    return Result({"agreement": agreement(found, beside, mapping=mapping), "gap": mapping.gap})


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
    own = [] if defence is None else [defence]
    try:
        if given:
            applied = release.defences[: len(release.defences) - len(Chain(own).defences)]
            if not applied:
                raise InvalidSetting("It is not known what was done to the release, so it cannot be drawn again.")
            own = [rebuild_defence(applied), *own]
        if method == "exact":
            return Result(exact_membership(release, people, Chain(own), targets=_TESTED, seed=seed).to_json())
        found = infer_membership(release, people, Chain(own), method=method, targets=_TESTED, seed=seed)
        return Result(found.to_json())
    except RekindleError as error:
        return Result({"reason": str(error)})


def identity(value: Any) -> Any:
    """What tells an argument of a task from another, in plain values.

    Data by a digest; attacks and defences by their class, their settings, and their code where it is not ours.
    """
    if isinstance(value, (Counts, Flows, Release, Trajectories)):
        return _digest(value)
    if isinstance(value, tuple):
        return [identity(one) for one in value]
    if isinstance(value, np.ndarray):
        return _hash(value).hexdigest()
    if isinstance(value, (Attack, Defence)):
        kind = type(value)
        settings = repr(value) if isinstance(value, Defence) else repr(sorted(value.settings().items()))
        return f"{kind.__module__}.{kind.__qualname__}", settings, _source(kind)
    return value


def _digest(data: Counts | Flows | Release | Trajectories) -> str:
    arrays: list[NDArray[Any]]
    if isinstance(data, Flows):
        arrays = [data.step, data.origin, data.destination, data.count]
    else:
        arrays = [data.cells if isinstance(data, Trajectories) else data.values]
    if isinstance(data, Release) and data.pairs is not None:
        arrays.append(data.pairs)
    found = _hash(*arrays, data.locations.xy_km, first=type(data).__name__)
    more: Any = data.people if isinstance(data, (Counts, Flows)) else ()
    if isinstance(data, Release):
        more = [one.to_json() for one in data.defences]
    elif isinstance(data, Trajectories):
        more = data.people_ids
        if data.observed is not None:
            found.update(np.packbits(data.observed).data)
    found.update(json.dumps([data.locations.ids, more, data.calendar.to_json()]).encode())
    return str(found.hexdigest())


def _hash(*arrays: NDArray[Any], first: str = "") -> Any:
    found = hashlib.sha256(first.encode())
    for one in arrays:
        found.update(f"{one.dtype.str}{one.shape}".encode())
        found.update(np.ascontiguousarray(one).data)
    return found


def _source(kind: type) -> str | None:
    if kind.__module__.startswith("rekindle."):
        return None
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return None
