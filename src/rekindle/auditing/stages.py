"""The tasks of an audit in their order: publish, choose the attacker's repairs, attack, compare.

The attacker is the strongest of several. Where numbers are withheld, changed or noisy, there are several ways to repair them.
To keep the number of tasks in check, the repairs are compared with one fast attack under the first row order, and the best
two are used with all attacks and row orders. Counts in which nothing moves are not: the reference "frozen" stands for them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rekindle.attacks import Enhanced
from rekindle.auditing.store import Task, digest
from rekindle.auditing.tasks import (
    PERFECT,
    Attempt,
    Published,
    Result,
    adds_up,
    attack_counts,
    compare_recoveries,
    publish,
    repair_release,
    tell_membership,
)
from rekindle.auditing.workers import Runner
from rekindle.defences import Defence
from rekindle.membership.infer import Method
from rekindle.model import Counts, Release, Trajectories
from rekindle.repairing import REPAIRS

__all__ = ["AS_PUBLISHED", "SCOUT", "Choice", "Findings", "Plan", "carry_out"]

SCOUT = Attempt("enhanced", Enhanced())
"""The attack that repairs are compared with."""

AS_PUBLISHED = "as published"
"""No repair: the numbers are exact, whole, and add up to the people."""

_KEPT = 2


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be tried.

    Attributes
    ----------
    given, truth
        The release, and the people behind it where they are known.
    attempts
        References, attacks and, with the truth, the perfect recovery.
    defences
        What is tried on the release.
    required
        Whether a defence that cannot be applied is an error.
    seeds
        How many row orders.
    people
        How many people the attacker takes to be in the release as given, where that was set.
    membership
        How it is tested who is in the data at all.
    note
        How the data was read, where somebody said so.
    """

    given: Counts | Release
    truth: Trajectories | None
    attempts: list[Attempt]
    defences: Sequence[Defence]
    required: bool
    seeds: int
    people: int | None
    membership: tuple[Method, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Choice:
    """Which repairs of a release are kept.

    Attributes
    ----------
    kept
        The best two in which anything moves, the best first; one where there was nothing to compare.
    accuracy
        Of the scout with each repair; empty where there was nothing to compare.
    true_counts
        Of the scout on the true counts.
    """

    kept: tuple[str, ...]
    accuracy: dict[str, float] = field(default_factory=dict)
    true_counts: float | None = None


Draw = tuple[int, int]
"""A release (0 is the one as given) and a seed."""


@dataclass(eq=False)
class Findings:
    """The results of all tasks.

    Attributes
    ----------
    plan
        What was to be tried.
    defences
        Those that could be applied, after None for the release as given.
    left_out
        The others by their label, with the reason.
    draws
        What was published.
    counts
        What the attacker made of it, by draw and repair.
    choices
        By release.
    results
        By draw, name of the attempt and repair.
    guessed
        What is reached with the number of people guessed, by draw: the same attack and repair as the strongest.
    agreements
        By the names of two attacks: the agreement of each pair of recoveries.
    membership
        By release and method.
    """

    plan: Plan
    defences: list[Defence | None] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    draws: dict[Draw, Published] = field(default_factory=dict)
    counts: dict[tuple[Draw, str], Counts] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    results: dict[tuple[Draw, str, str], Result] = field(default_factory=dict)
    guessed: dict[Draw, Result] = field(default_factory=dict)
    agreements: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    membership: dict[tuple[int, Method], Result] = field(default_factory=dict)
    _digests: dict[int, tuple[Any, str | None]] = field(default_factory=dict)

    @property
    def people_known(self) -> bool:
        """Whether the attacker knows how many people there are."""
        return self.plan.people is not None or self.plan.truth is not None or isinstance(self.plan.given, Counts)

    def people(self, draw: Draw) -> int:
        """How many people the attacker takes to be in a release."""
        plan, published, defence = self.plan, self.draws[draw], self.defences[draw[0]]
        if plan.people is not None:
            return max(round(plan.people / (1.0 if defence is None else defence.scale)), 1)
        if published.truth is not None:
            return published.truth.people
        return plan.given.people if isinstance(plan.given, Counts) else published.guess

    def repairs(self, draw: Draw, attempt: Attempt) -> tuple[str, ...]:
        """The repairs that an attempt is tried with: references, which every attack stands beside, with the best only."""
        if attempt.repair is not None:
            return (attempt.repair,)
        kept = self.choices[draw[0]].kept
        return kept[:1] if attempt.is_reference else kept

    def best_repair(self, at: int, name: str) -> str:
        """The repair with which an attempt finds most; the first where the truth is not known."""
        tried = [repair for draw, other, repair in self.results if draw == (at, 0) and other == name]
        if self.plan.truth is None:
            return tried[0]
        return max(tried, key=lambda repair: self.accuracy(at, name, repair))

    def accuracy(self, at: int, name: str, repair: str) -> float:
        """Mean accuracy of an attempt over people and row orders."""
        return float(
            np.mean(
                [
                    self.results[(at, seed), name, repair].arrays["exposure.accuracy"].mean()
                    for seed in range(self.plan.seeds)
                ]
            )
        )

    def strongest(self, at: int) -> tuple[str, str]:
        """The attempt that finds most, chance and perfect left out, and its repair. It needs the truth."""
        names = [attempt.name for attempt in self.plan.attempts if attempt.name not in ("chance", PERFECT)]
        tried = [(name, self.best_repair(at, name)) for name in names]
        return max(tried, key=lambda one: self.accuracy(at, *one))

    def digest(self, data: Counts | Release | Trajectories | None) -> str | None:
        """The digest of data, computed once."""
        if id(data) not in self._digests:
            self._digests[id(data)] = (data, digest(data))
        return self._digests[id(data)][1]


def carry_out(plan: Plan, runner: Runner) -> Findings:
    """Do everything, stage by stage."""
    found = Findings(plan)
    _publish(found, runner)
    _choose_repairs(found, runner)
    _attack(found, runner)
    _guess(found, runner)
    _compare(found, runner)
    _tell_membership(found, runner)
    return found


def _publish(found: Findings, runner: Runner) -> None:
    """Apply each defence once for each of its draws, and set aside those that cannot be applied."""
    plan = found.plan
    counts = plan.given if isinstance(plan.given, Counts) else None if plan.truth is None else plan.truth.counts()
    given, truth = found.digest(plan.given), found.digest(plan.truth)
    defences = [None, *plan.defences]
    tasks = {
        (at, seed): Task(
            (given, truth, _identity(defence and defence.seeded(seed)), plan.required),
            publish,
            (plan.given, plan.truth, counts, defence, seed, plan.required),
        )
        for at, defence in enumerate(defences)
        for seed in range(plan.seeds)
    }
    results = runner.run(tasks)
    for at, defence in enumerate(defences):
        draws = [results[at, seed] for seed in range(plan.seeds)]
        reasons = [one.numbers["left_out"] for one in draws if "left_out" in one.numbers]
        if reasons and defence is not None:
            found.left_out[defence.label] = reasons[0]
            continue
        read: dict[int, Published] = {}
        for seed, one in enumerate(draws):
            read.setdefault(id(one), Published.read(one, plan.truth))
            found.draws[len(found.defences), seed] = read[id(one)]
        found.defences.append(defence)


def _choose_repairs(found: Findings, runner: Runner) -> None:
    """Compare the repairs of each release under the first row order, with the scout."""
    compared = []
    for at in range(len(found.defences)):
        published = found.draws[at, 0]
        if adds_up(published.release, found.people((at, 0))):
            found.choices.append(Choice((AS_PUBLISHED,)))
        elif published.truth is None:
            found.choices.append(Choice((next(iter(REPAIRS)),)))
        else:
            compared.append(at)
            found.choices.append(Choice(()))
    wanted = {((at, 0), repair) for at in compared for repair in REPAIRS}
    _repair(found, runner, wanted | {((0, 0), repair) for repair in found.choices[0].kept})
    tasks = {
        (at, repair): _attack_task(found, (at, 0), SCOUT, found.counts[(at, 0), repair])
        for at in compared
        for repair in REPAIRS
    }
    for at in compared:
        truth = found.draws[at, 0].truth
        if truth is not None:
            tasks[at, AS_PUBLISHED] = _attack_task(found, (at, 0), SCOUT, truth.counts())
    results = runner.run(tasks)
    for at in compared:
        accuracy = {
            repair: float(results[at, repair].arrays["exposure.accuracy"].mean())
            for repair in (*REPAIRS, AS_PUBLISHED)
        }
        true_counts = accuracy.pop(AS_PUBLISHED)
        ranked = sorted(accuracy, key=accuracy.__getitem__, reverse=True)
        # Where nothing ever moves, every attack finds the same, and the reference "frozen" has it already.
        moving = [repair for repair in ranked if np.ptp(found.counts[(at, 0), repair].values, axis=0).any()]
        found.choices[at] = Choice(tuple((moving or ranked)[:_KEPT]), accuracy, true_counts)


def _repair(found: Findings, runner: Runner, wanted: set[tuple[Draw, str]]) -> None:
    """Turn releases back into counts, those that are not yet."""
    missing = sorted(wanted - found.counts.keys())
    tasks = {}
    for draw, repair in missing:
        release = found.draws[draw].release
        if repair == AS_PUBLISHED:
            found.counts[draw, repair] = Counts(release.values.astype(np.int32), release.locations, release.calendar)
        else:
            tasks[draw, repair] = _repair_task(found, release, repair, found.people(draw))
    for (draw, repair), result in runner.run(tasks).items():
        found.counts[draw, repair] = _repaired(found.draws[draw].release, result)


def _attack(found: Findings, runner: Runner) -> None:
    wanted = {
        (draw, attempt.name, repair): attempt
        for draw in found.draws
        for attempt in found.plan.attempts
        for repair in found.repairs(draw, attempt)
    }
    _repair(found, runner, {(draw, repair) for draw, _, repair in wanted})
    tasks = {
        (draw, name, repair): _attack_task(found, draw, attempt, found.counts[draw, repair])
        for (draw, name, repair), attempt in wanted.items()
    }
    found.results = runner.run(tasks)


def _guess(found: Findings, runner: Runner) -> None:
    """Repeat the strongest attack where the number of people must be guessed, and the guess is wrong."""
    attempts = {attempt.name: attempt for attempt in found.plan.attempts}
    repairing, attacking = {}, {}
    for at in range(len(found.defences)) if found.plan.truth is not None else ():
        draws = [(at, seed) for seed in range(found.plan.seeds)]
        if found.choices[at].accuracy and any(found.draws[draw].guess != found.people(draw) for draw in draws):
            name, repair = found.strongest(at)
            for draw in draws:
                repairing[draw] = _repair_task(found, found.draws[draw].release, repair, found.draws[draw].guess)
                attacking[draw] = attempts[name]
    repaired = runner.run(repairing)
    found.guessed = runner.run(
        {
            draw: _attack_task(found, draw, attempt, _repaired(found.draws[draw].release, repaired[draw]))
            for draw, attempt in attacking.items()
        }
    )


def _compare(found: Findings, runner: Runner) -> None:
    """Compare recoveries of the release as given: row orders of one attack with its first, and attacks with each other."""
    names = [attempt.name for attempt in found.plan.attempts if attempt.name != PERFECT]
    best = {name: found.best_repair(0, name) for name in names}
    orders = [((name, 0), (name, seed)) for name in names for seed in range(1, found.plan.seeds)]
    others = [((one, 0), (other, 0)) for at, one in enumerate(names) for other in names[at + 1 :]]
    counts = found.counts[(0, 0), found.choices[0].kept[0]]

    def recovered(which: tuple[str, int]) -> Any:
        name, seed = which
        return found.results[(0, seed), name, best[name]].arrays["cells"]

    tasks = {
        (one, other): Task(
            (_array_digest(recovered(one)), _array_digest(recovered(other)), found.digest(counts)),
            compare_recoveries,
            (counts, recovered(one), recovered(other)),
        )
        for one, other in orders + others
    }
    for (one, other), result in runner.run(tasks).items():
        found.agreements.setdefault((one[0], other[0]), []).append(result.numbers["agreement"])


def _tell_membership(found: Findings, runner: Runner) -> None:
    """Test who is in the data at all, in the first draw of each release."""
    tasks, given = {}, isinstance(found.plan.given, Release)
    for at, defence in enumerate(found.defences):
        published = found.draws[at, 0]
        for method in found.plan.membership if published.truth is not None else ():
            tasks[at, method] = Task(
                (found.digest(published.release), found.digest(published.truth), _identity(defence), given, method),
                tell_membership,
                (published.release, published.truth, defence, given, method, 0),
            )
    found.membership = runner.run(tasks)


def _repair_task(found: Findings, release: Release, repair: str, people: int) -> Task:
    return Task((found.digest(release), repair, people), repair_release, (release, repair, people))


def _repaired(release: Release, result: Result) -> Counts:
    return Counts(result.arrays["values"].astype(np.int32), release.locations, release.calendar)


def _attack_task(found: Findings, draw: Draw, attempt: Attempt, counts: Counts) -> Task:
    """A task that depends only on what the attacker has: equal counts are attacked once."""
    published, (at, seed) = found.draws[draw], draw
    of_given = [found.digest(found.counts[(0, 0), repair]) for repair in found.choices[0].kept[:1]]
    own = found.digest(counts)
    keep, growth = at == 0 or own in of_given, seed == 0 and own in of_given
    truths = found.digest(published.truth), found.digest(published.original)
    return Task(
        (own, *truths, _identity(attempt.attack), seed, keep, growth),
        attack_counts,
        (counts, published.truth, published.original, attempt, seed, keep, growth),
    )


def _array_digest(array: Any) -> str:
    return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).data).hexdigest()


def _identity(part: Any) -> Any:
    """What tells a defence or an attack from another: its class, its settings, and its code where it is not ours."""
    if part is None:
        return None
    kind = type(part)
    settings = repr(part) if isinstance(part, Defence) else repr(sorted(part.settings().items()))
    return f"{kind.__module__}.{kind.__qualname__}", settings, _source(kind)


def _source(kind: type) -> str | None:
    if kind.__module__.startswith("rekindle."):
        return None
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return None
