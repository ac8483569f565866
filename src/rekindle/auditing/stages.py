"""The tasks of an audit in their order: publish, choose the attacker's repairs, attack, compare; the release as given first.

The attacker is the strongest of several. Where numbers are withheld, changed or noisy, there are several ways to repair them.
To keep the number of tasks in check, the repairs are compared with one fast attack under the first row order, and the best
two are used with all attacks and row orders. Counts in which nothing moves are not: the reference "frozen" stands for them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rekindle.attacks import Enhanced
from rekindle.auditing import work
from rekindle.auditing.store import Task, digest
from rekindle.auditing.tasks import (
    FROZEN,
    GROWTH,
    PERFECT,
    Attempt,
    Published,
    Result,
    attack_counts,
    attack_first_days,
    compare_recoveries,
    publish,
    repair_release,
    tell_membership,
)
from rekindle.auditing.workers import Runner, Stage
from rekindle.defences import Defence
from rekindle.membership.infer import Method
from rekindle.model import AWAY, Counts, Release, Trajectories
from rekindle.repairing import REPAIRS, hold_still

__all__ = ["AS_PUBLISHED", "KEPT", "SCOUT", "Choice", "Findings", "Plan", "carry_out"]

SCOUT = Attempt("enhanced", Enhanced())
"""The attack that repairs are compared with."""

AS_PUBLISHED = "as published"
"""No repair: the numbers are exact, whatever they add up to."""

PeopleFrom = Literal["given", "truth", "counts", "largest total", "estimate"]
"""Where the number of people comes from: it was set; the truth says it; every step has the same total (or a larger number was
given with the counts); the largest total of exact numbers; an estimate from numbers that are not exact."""

KEPT = 2
"""How many repairs go on, where the audit is thorough."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be tried.

    Attributes
    ----------
    given, truth
        The release, and the people behind it where they are known.
    sized
        Counts of the size of those that the attacker will have.
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
    name, command
        What the dataset is called, and the command that audits it, where somebody said so.
    thorough
        Whether also to try the second best repair, an attacker who has to guess the number of people, and the first days alone.
    first_seed
        The seed of the first row order and draw; the others follow it.
    """

    given: Counts | Release
    truth: Trajectories | None
    sized: Counts
    attempts: list[Attempt]
    defences: Sequence[Defence]
    required: bool
    seeds: int
    people: int | None
    membership: tuple[Method, ...] = ()
    note: str | None = None
    name: str | None = None
    command: str | None = None
    thorough: bool = True
    first_seed: int = 0


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
        Those that could be applied, by their place in the plan; None, at 0, for the release as given.
    left_out
        The others by their label, with the reason.
    draws
        What was published.
    counts
        What the attacker made of it, by draw and repair.
    choices
        By release.
    wanted
        What is to be tried on each release: the keys of `results`.
    results
        By draw, name of the attempt and repair, as far as they are there.
    guessed
        What is reached with the number of people guessed, by draw: the same attack and repair as the strongest.
    compared
        By two recoveries, each the name of an attempt and a seed: how far they agree.
    membership
        By release and method.
    grown
        By name of the attempt and number of days: what is found in the first days alone.
    """

    plan: Plan
    defences: dict[int, Defence | None] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    draws: dict[Draw, Published] = field(default_factory=dict)
    counts: dict[tuple[Draw, str], Counts] = field(default_factory=dict)
    choices: dict[int, Choice] = field(default_factory=dict)
    wanted: dict[int, list[tuple[Draw, str, str]]] = field(default_factory=dict)
    results: dict[tuple[Draw, str, str], Result] = field(default_factory=dict)
    guessed: dict[Draw, Result] = field(default_factory=dict)
    compared: dict[tuple[tuple[str, int], tuple[str, int]], Result] = field(default_factory=dict)
    membership: dict[tuple[int, Method], Result] = field(default_factory=dict)
    grown: dict[tuple[str, int], Result] = field(default_factory=dict)
    _digests: dict[int, tuple[Any, str | None]] = field(default_factory=dict)

    @property
    def people_from(self) -> PeopleFrom:
        """Where the number of people in the release as given comes from."""
        plan = self.plan
        if plan.people is not None:
            return "given"
        if plan.truth is not None:
            return "truth"
        if isinstance(plan.given, Counts) and (np.ptp(plan.given.totals) == 0 or plan.given.away.min() > 0):
            return "counts"
        return "largest total" if self.draws[0, 0].exact else "estimate"

    @property
    def people_known(self) -> bool:
        """Whether the attacker knows how many people there are."""
        return self.people_from in ("given", "truth", "counts")

    def people(self, draw: Draw) -> int:
        """How many people the attacker takes to be in a release."""
        plan, published, defence = self.plan, self.draws[draw], self.defences[draw[0]]
        if plan.people is not None and defence is None:
            return plan.people
        if plan.people is not None and defence is not None:
            least = published.guess if published.exact else 1  # a sample may hold more than its share
            return max(round(plan.people / defence.scale), least)
        if published.truth is not None:
            return published.truth.people
        return plan.given.people if isinstance(plan.given, Counts) else published.guess

    def repairs(self, draw: Draw, attempt: Attempt) -> tuple[str, ...]:
        """The repairs that an attempt is tried with: references, which every attack stands beside, with the best only."""
        if attempt.repair is not None:
            return (attempt.repair,)
        kept = self.choices[draw[0]].kept
        return kept[:1] if attempt.is_reference else kept

    def seeds(self, at: int, name: str, repair: str) -> int:
        """How many row orders of an attempt are done, from the first on; no more than those of chance, which it is compared with."""
        guesses = [repair for draw, other, repair in self.results if draw == (at, 0) and other == "chance"][:1]
        for seed in range(self.plan.seeds):
            if ((at, seed), name, repair) not in self.results:
                return seed
            if not guesses or ((at, seed), "chance", guesses[0]) not in self.results:
                return seed
        return self.plan.seeds

    def repairs_done(self, at: int, name: str) -> list[str]:
        """The repairs with which an attempt is done, under the first row order at least."""
        tried = [repair for draw, other, repair in self.wanted.get(at, ()) if draw == (at, 0) and other == name]
        return [repair for repair in tried if self.seeds(at, name, repair)]

    def best_repair(self, at: int, name: str) -> str:
        """The repair with which an attempt finds most; the first where the truth is not known."""
        tried = self.repairs_done(at, name)
        if self.plan.truth is None:
            return tried[0]
        return max(tried, key=lambda repair: self.accuracy(at, name, repair))

    def accuracy(self, at: int, name: str, repair: str) -> float:
        """Mean accuracy of an attempt over people and row orders."""
        done = [self.results[(at, seed), name, repair] for seed in range(self.seeds(at, name, repair))]
        return float(np.mean([np.nanmean(one.arrays["exposure.accuracy"]) for one in done]))

    def attempts_done(self, at: int) -> list[str]:
        """The names of the attempts that something is known of."""
        return [one.name for one in self.plan.attempts if self.repairs_done(at, one.name)]

    def releases_done(self) -> list[int]:
        """The releases that can be shown: the one as given as soon as all that stands beside the attacks is known.

        A defence is shown when every attack was tried on it, or it would look better than the release as given only because
        its strongest attack is still to come.
        """
        references = {attempt.name for attempt in self.plan.attempts if attempt.is_reference}
        everything = {attempt.name for attempt in self.plan.attempts}
        return [
            at for at in sorted(self.defences) if (everything if at else references) <= set(self.attempts_done(at))
        ]

    def strongest(self, at: int) -> tuple[str, str]:
        """The attempt that finds most, chance and perfect left out, and its repair. It needs the truth."""
        names = [name for name in self.attempts_done(at) if name not in ("chance", PERFECT)]
        tried = [(name, self.best_repair(at, name)) for name in names]
        return max(tried, key=lambda one: self.accuracy(at, *one))

    def digest(self, data: Counts | Release | Trajectories | None) -> str | None:
        """The digest of data, computed once."""
        if id(data) not in self._digests:
            self._digests[id(data)] = (data, digest(data))
        return self._digests[id(data)][1]


def carry_out(found: Findings, runner: Runner) -> None:
    """Do everything: the release as given first, then the defences, then what compares and tests."""
    runner.run([_publish(found, 0)])
    runner.run(
        [
            _attack(found, 0),
            *(_defend(found, at) for at in range(1, len(found.plan.defences) + 1)),
        ]
    )
    runner.run([_compare(found), _tell_membership(found), _grow(found)])


def _defend(found: Findings, at: int) -> Stage:
    yield from _publish(found, at)
    if at in found.defences:
        yield from _attack(found, at)


def _publish(found: Findings, at: int) -> Stage:
    """Apply a defence once for each of its draws, or set it aside if it cannot be applied; choose the repairs."""
    plan, defence = found.plan, found.plan.defences[at - 1] if at else None
    counts = plan.given if isinstance(plan.given, Counts) else None if plan.truth is None else plan.truth.counts()
    given, truth = found.digest(plan.given), found.digest(plan.truth)
    tasks = {
        seed: Task(
            (given, truth, _identity(defence and defence.seeded(plan.first_seed + seed)), plan.required),
            publish,
            (plan.given, plan.truth, counts, defence, plan.first_seed + seed, plan.required),
            work.publishing(plan.sized),
        )
        for seed in range(plan.seeds)
    }
    draws: dict[int, Result] = {}
    yield tasks, draws
    reasons = [one.numbers["left_out"] for one in draws.values() if "left_out" in one.numbers]
    if reasons and defence is not None:
        found.left_out[defence.label] = reasons[0]
        return
    read: dict[int, Published] = {}
    for seed in range(plan.seeds):
        one = draws[seed]
        read.setdefault(id(one), Published.read(one, plan.truth))
        found.draws[at, seed] = read[id(one)]
    found.defences[at] = defence
    yield from _choose_repairs(found, at)


def _choose_repairs(found: Findings, at: int) -> Stage:
    """Compare the repairs of a release under the first row order, with the scout."""
    published = found.draws[at, 0]
    truth = published.truth
    if published.exact or truth is None:
        found.choices[at] = Choice((AS_PUBLISHED if published.exact else next(iter(REPAIRS)),))
        yield from _repair(found, {((at, 0), repair) for repair in found.choices[at].kept})
        return
    yield from _repair(found, {((at, 0), repair) for repair in REPAIRS})
    tasks = {repair: _attack_task(found, (at, 0), SCOUT, found.counts[(at, 0), repair]) for repair in REPAIRS}
    tasks[AS_PUBLISHED] = _attack_task(found, (at, 0), SCOUT, truth.counts())
    results: dict[str, Result] = {}
    yield tasks, results
    accuracy = {repair: float(np.nanmean(results[repair].arrays["exposure.accuracy"])) for repair in tasks}
    true_counts = accuracy.pop(AS_PUBLISHED)
    ranked = sorted(accuracy, key=accuracy.__getitem__, reverse=True)
    # Where nothing ever moves, every attack finds the same, and the reference "frozen" has it already.
    moving = [repair for repair in ranked if _moves(found.counts[(at, 0), repair])]
    kept = KEPT if found.plan.thorough else 1
    found.choices[at] = Choice(tuple((moving or ranked)[:kept]), accuracy, true_counts)


def _repair(found: Findings, wanted: set[tuple[Draw, str]]) -> Stage:
    """Turn releases back into counts, those that are not yet."""
    tasks = {}
    for draw, repair in sorted(wanted - found.counts.keys()):
        published, people = found.draws[draw], found.people(draw)
        if published.exact:
            counts = _of_people(published.counts, people)
            # A repair keeps exact numbers. The reference does not: it leaves everyone where they are.
            found.counts[draw, repair] = hold_still(counts) if repair == FROZEN else counts
        else:
            tasks[draw, repair] = _repair_task(found, published.release, repair, people)
    results: dict[tuple[Draw, str], Result] = {}
    yield tasks, results
    for (draw, repair), result in results.items():
        found.counts[draw, repair] = _repaired(found.draws[draw].release, result, found.people(draw))


def _attack(found: Findings, at: int) -> Stage:
    """Try everything on a release, one row order after the other: what stands beside the attacks, then the strongest first."""
    plan = found.plan
    references = [attempt for attempt in plan.attempts if attempt.is_reference]
    order = [*references, *(attempt for attempt in reversed(plan.attempts) if not attempt.is_reference)]
    wanted = {
        ((at, seed), attempt.name, repair): attempt
        for seed in range(plan.seeds)
        for attempt in order
        for repair in found.repairs((at, seed), attempt)
    }
    yield from _repair(found, {(draw, repair) for draw, _, repair in wanted})
    tasks = {
        (draw, name, repair): _attack_task(found, draw, attempt, found.counts[draw, repair])
        for (draw, name, repair), attempt in wanted.items()
    }
    found.wanted[at] = list(tasks)
    yield tasks, found.results
    if plan.thorough:
        yield from _guess(found, at)


def _guess(found: Findings, at: int) -> Stage:
    """Repeat the strongest attack where the number of people must be guessed, and the guess is wrong."""
    draws = [(at, seed) for seed in range(found.plan.seeds)]
    if found.plan.truth is None or all(found.draws[draw].guess == found.people(draw) for draw in draws):
        return
    name, repair = found.strongest(at)
    attempt = next(one for one in found.plan.attempts if one.name == name)
    repairing: dict[Draw, Task] = {}
    counts: dict[Draw, Counts] = {}
    for draw in draws:
        published = found.draws[draw]
        if published.exact:
            counts[draw] = published.counts if repair != FROZEN else hold_still(published.counts)
        else:
            repairing[draw] = _repair_task(found, published.release, repair, published.guess)
    repaired: dict[Draw, Result] = {}
    yield repairing, repaired
    for draw, result in repaired.items():
        counts[draw] = _repaired(found.draws[draw].release, result, found.draws[draw].guess)
    yield {draw: _attack_task(found, draw, attempt, counts[draw]) for draw in draws}, found.guessed


def _compare(found: Findings) -> Stage:
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
            work.matching(counts),
        )
        for one, other in orders + others
    }
    yield tasks, found.compared


def _tell_membership(found: Findings) -> Stage:
    """Test who is in the data at all, in the first draw of each release."""
    tasks, given = {}, isinstance(found.plan.given, Release)
    for at, defence in sorted(found.defences.items()):
        published = found.draws[at, 0]
        for method in found.plan.membership if published.truth is not None else ():
            tasks[at, method] = Task(
                (found.digest(published.release), found.digest(published.truth), _identity(defence), given, method),
                tell_membership,
                (published.release, published.truth, defence, given, method, 0),
                work.membership(found.plan.sized, method),
            )
    yield tasks, found.membership


def _grow(found: Findings) -> Stage:
    """Measure what chance and the strongest attack find when only the first days are published."""
    plan, published = found.plan, found.draws[0, 0]
    if published.truth is None or not plan.thorough:
        return
    counts = found.counts[(0, 0), found.choices[0].kept[0]]
    tasks: dict[tuple[str, int], Task] = {}
    for name in dict.fromkeys(("chance", found.strongest(0)[0])):
        attempt = next(one for one in plan.attempts if one.name == name)
        again = attempt.attack is not None and attempt.attack.revises
        cells = found.results[(0, 0), name, found.best_repair(0, name)].arrays["cells"]
        for days in GROWTH[: np.searchsorted(GROWTH, counts.calendar.number_of_days)]:
            part = slice(0, counts.calendar.day(days - 1).stop)
            first, truth = counts.part(part), published.truth.part(part)
            if (truth.cells == AWAY).all() or not first.totals.any():
                continue  # nobody came yet
            tasks[name, days] = Task(
                (
                    found.digest(first),
                    found.digest(truth),
                    _identity(attempt.attack),
                    None if again else name,
                    plan.first_seed,
                ),
                attack_first_days,
                (first, truth, attempt, plan.first_seed, None if again else cells[:, part]),
                work.attacking(attempt.attack if again else None, first, compared=True),
            )
    yield tasks, found.grown


def _repair_task(found: Findings, release: Release, repair: str, people: int) -> Task:
    work_of = work.repairing(found.plan.sized)
    return Task((found.digest(release), repair, people), repair_release, (release, repair, people), work_of)


def _repaired(release: Release, result: Result, people: int) -> Counts:
    return Counts(result.arrays["values"].astype(np.int32), release.locations, release.calendar, people)


def _moves(counts: Counts) -> bool:
    """Whether anything moves but the totals; shares of other totals are rounded otherwise, by one person at most."""
    off = np.abs(counts.values - hold_still(counts).values).max()
    return bool(off > (np.ptp(counts.totals) > 0))


def _of_people(counts: Counts, people: int) -> Counts:
    """The same counts, of so many people in all."""
    return Counts(counts.values, counts.locations, counts.calendar, people)


def _attack_task(found: Findings, draw: Draw, attempt: Attempt, counts: Counts) -> Task:
    """A task that depends only on what the attacker has: equal counts are attacked once."""
    published, (at, order) = found.draws[draw], draw
    seed = found.plan.first_seed + order
    own = found.digest(counts)
    keep = at == 0 or own == found.digest(found.counts[(0, 0), found.choices[0].kept[0]])
    truths = found.digest(published.truth), found.digest(published.original)
    return Task(
        (own, *truths, _identity(attempt.attack), seed, keep),
        attack_counts,
        (counts, published.truth, published.original, attempt, seed, keep),
        work.attacking(attempt.attack, counts, compared=published.truth is not None),
        reports=True,
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
