"""The tasks of an audit in their order: attack the release as given, choose repairs, attack the others, compare, test.

The attacker is the strongest of several. Where numbers are withheld, changed or noisy, there are several ways to repair them.
To keep the number of tasks in check, the repairs are compared with one fast attack under the first row order, and the best
two are used with all attacks and row orders. Counts in which nothing moves are not: the reference "frozen" stands for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import Enhanced
from rekindle.auditing import work
from rekindle.auditing.plan import Plan
from rekindle.auditing.results import Repairs
from rekindle.auditing.tasks import (
    FROZEN,
    PERFECT,
    Attempt,
    Data,
    Result,
    Task,
    attack_counts,
    compare_recoveries,
    counts_of,
    identity,
    tell_membership,
)
from rekindle.auditing.workers import Batch, Runner
from rekindle.defences import Defence, NothingLeft, Suppress
from rekindle.errors import InvalidSetting, RekindleError
from rekindle.evaluation import utility
from rekindle.membership.infer import Method
from rekindle.model import AWAY, Calendar, Counts, Flows, Release, Trajectories
from rekindle.model.calendar import parse_step
from rekindle.repairing import FLOW_REPAIRS, REPAIRS, exact_totals, guess_people, hold_still, repair, repair_flows

SCOUT = Attempt("enhanced", Enhanced())
"""The attack that repairs are compared with."""

AS_PUBLISHED = "as published"
"""No repair: the numbers are exact, whatever they add up to."""

PRESENCE = "presence"
"""Of flows, only how many people they put where: who guesses flows wrongly is worse off than who does not use them."""

TOGETHER = "all windows"
"""Of flows of several windows, all of them; each repaired in the first way where numbers are not exact."""

TRUE_NUMBERS = "true numbers"
"""What repairs are compared with: nothing was done to the numbers."""

WINDOWS = ("1h", "2h", "4h", "8h", "24h")
"""Longer windows, in which counts are compared with flows."""

FEWEST_WINDOWS = 4
"""Steps that a longer window must leave."""

KEPT = 2
"""How many repairs go on, where the audit is thorough."""

GROWTH = (1, 2, 4, 7, 14, 28, 60, 120, 240)
"""Numbers of days after which it is measured how exposure grows; an attack that revises earlier days runs again for each."""


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
    people
        How many people the attacker takes to be in it.
    truth
        The people who are in the release, at its resolution.
    original
        The same people at their original resolution.
    rows
        (people,) int64: which of all true people they are.
    utility
        How much use is left, by the name of the metric; None where that is not known.
    beside
        Of flows, the counts that are published with them, protected alike; None where there are none.
    longer
        Of flows, those of longer windows that are published with them, protected alike.
    """

    release: Release
    exact: bool
    guess: int
    people: int
    truth: Trajectories | None
    original: Trajectories | None
    rows: NDArray[np.int64] | None
    utility: dict[str, float] | None
    beside: Release | None = None
    longer: tuple[Release, ...] = ()
    _counts: dict[tuple[str, int], Data] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, true: Counts | Flows | None, defence: Defence | None) -> Published:
        """Protect the data once, and bring the truth to the same resolution."""
        given, truth = plan.given, plan.truth
        release, coarse, scale = given if isinstance(given, Release) else Release.of(given), truth, 1.0
        beside = Release.of(given.counts()) if isinstance(given, Flows) and plan.with_counts else None
        if defence is not None:
            from_people = truth if defence.needs_people and isinstance(given, Counts) else None
            if isinstance(given, Flows) and truth is not None:
                release, from_people = defence.of_flows(truth), truth
            else:
                release = defence(given if from_people is None else from_people)
            scale = defence.scale
            if beside is not None:
                beside = defence(beside if from_people is None else from_people)
            coarse = None if truth is None else defence.coarsen(truth)
        # Counts that are given as such are exact, even where they all share a divisor.
        exact = (defence is None and not isinstance(given, Release)) or exact_totals(release) is not None
        guess = int(release.values.sum(axis=1).max()) if exact else guess_people(release)
        if plan.people is not None:
            # A sample may hold more than its share.
            people = plan.people if defence is None else max(round(plan.people / scale), guess if exact else 1)
        elif coarse is not None:
            people = coarse.people
        else:
            people = guess if isinstance(given, Release) else given.people
        rows, original = None, truth
        if coarse is not None and truth is not None:
            rows = _rows(coarse, truth)
            if len(rows) < truth.people:
                observed = None if truth.observed is None else truth.observed[rows]
                original = Trajectories(
                    truth.cells[rows], truth.locations, truth.calendar, coarse.people_ids, observed
                )
        use = None if true is None else utility(true, release, scale=scale).to_json()
        longer = tuple(_protect_longer(plan, release, defence))
        return cls(release, exact, guess, people, coarse, original, rows, use, beside, longer)

    @property
    def repairs(self) -> tuple[str, ...]:
        """The ways in which an attacker may read it."""
        if self.release.pairs is None:
            return (AS_PUBLISHED,) if self.exact else tuple(REPAIRS)
        ways = (AS_PUBLISHED, PRESENCE) if self.exact else (*FLOW_REPAIRS, PRESENCE)
        return (TOGETHER, *ways) if self.longer else ways

    def counts(self, repair: str, people: int) -> Data:
        """What an attacker makes of it who takes so many people to be in it."""
        if repair == TOGETHER and (repair, people) not in self._counts:
            way, shortest = self.repairs[1], self.counts(self.repairs[1], people)
            if not isinstance(shortest, Flows):
                raise RuntimeError("flows were not repaired as flows")
            longer = (FLOW_REPAIRS.get(way, repair_flows)(one, people, None) for one in self.longer)
            self._counts[repair, people] = (shortest, *longer)
        if (repair, people) not in self._counts and self.release.pairs is not None:
            there = None if self.beside is None or self.exact else REPAIRS[next(iter(REPAIRS))](self.beside, people)
            if repair in (FROZEN, PRESENCE):
                counts = there or counts_of(self.counts(self.repairs[0], people))
                self._counts[repair, people] = hold_still(counts) if repair == FROZEN else counts
            else:
                self._counts[repair, people] = FLOW_REPAIRS.get(repair, repair_flows)(self.release, people, there)
        if (repair, people) not in self._counts:
            release = self.release
            if self.exact:
                counts = Counts(release.values.astype(np.int32), release.locations, release.calendar, people)
                # A repair keeps exact numbers. The reference does not: it leaves everyone where they are.
                self._counts[repair, people] = hold_still(counts) if repair == FROZEN else counts
            else:
                self._counts[repair, people] = REPAIRS[repair](release, people)
        return self._counts[repair, people]


def _protect_longer(plan: Plan, release: Release, defence: Defence | None) -> Iterator[Release]:
    """Protect the flows of longer windows like those of the shortest; some defences leave none that are longer."""
    for one in plan.longer:
        if defence is None:
            yield Release.of(one)
            continue
        with suppress(RekindleError):
            longer = defence(one) if plan.truth is None else defence.of_flows(plan.truth, one.window)
            if longer.calendar.step > release.calendar.step and longer.locations == release.locations:
                yield longer


def _rows(coarse: Trajectories, truth: Trajectories) -> NDArray[np.int64]:
    """Which of all true people are in a release: (people in it,) int64."""
    row = {name: row for row, name in enumerate(truth.people_ids)}
    try:
        return np.array([row[name] for name in coarse.people_ids], np.int64)
    except KeyError as error:
        raise InvalidSetting(f"The defence gave the truth a person {error.args[0]!r} who was not in it.") from None


@dataclass(eq=False)
class Tried:
    """One release, and what was found in it so far.

    Attributes
    ----------
    plan
        What was to be tried.
    defence
        What was done; None for the release as given.
    draws
        What was published, by seed.
    given
        Counts of the release as given, as the attacker takes it.
    kept
        The repairs that are used with all attacks, the best first.
    repairs
        How they were chosen; None where there was nothing to compare.
    results
        By seed, name of the attempt and repair, as far as they are there; `wanted` lists all.
    guessed
        What is reached with the number of people guessed, by seed: the same attack and repair as the strongest.
    membership
        By method.
    """

    plan: Plan
    defence: Defence | None
    draws: list[Published]
    given: Data | None = None
    kept: tuple[str, ...] = ()
    repairs: Repairs | None = None
    wanted: list[tuple[int, str, str]] = field(default_factory=list)
    results: dict[tuple[int, str, str], Result] = field(default_factory=dict)
    guessed: dict[int, Result] = field(default_factory=dict)
    membership: dict[Method, Result] = field(default_factory=dict)
    _scouted: dict[str, Result] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What it is called."""
        return "As given" if self.defence is None else self.defence.label

    def counts(self, seed: int, repair: str) -> Data:
        """What the attacker has."""
        return self.draws[seed].counts(repair, self.draws[seed].people)

    def scout(self) -> Batch:
        """Try the repairs under the first row order, and the true numbers beside them, where there is anything to choose."""
        published = self.draws[0]
        if len(published.repairs) == 1 or published.truth is None:
            return {}, self._scouted
        counts: dict[str, Data] = {repair: self.counts(0, repair) for repair in published.repairs}
        if not published.exact:
            of_flows = published.release.pairs is not None
            counts[TRUE_NUMBERS] = published.truth.flows() if of_flows else published.truth.counts()
        return {repair: self.task(0, SCOUT, one) for repair, one in counts.items()}, self._scouted

    def choose_repairs(self) -> None:
        """Keep the best repairs, when all were tried."""
        if not self._scouted:
            self.kept = self.draws[0].repairs[:1]
            return
        accuracy = {repair: float(np.nanmean(one.arrays["accuracy"])) for repair, one in self._scouted.items()}
        true_counts = accuracy.pop(TRUE_NUMBERS, None)
        ranked = sorted(accuracy, key=accuracy.__getitem__, reverse=True)
        # Where nothing ever moves, every attack finds the same, and the reference "frozen" has it already.
        moving = [repair for repair in ranked if _moves(counts_of(self.counts(0, repair)))]
        self.kept = tuple((moving or ranked)[: KEPT if self.plan.thorough else 1])
        if true_counts is not None:
            self.repairs = Repairs(SCOUT.name, accuracy, self.kept, true_counts)

    def attack(self) -> Batch:
        """Try everything, one row order after the other: what stands beside the attacks, then the strongest first."""
        references = [one for one in self.plan.attempts if one.is_reference]
        attacks = [one for one in reversed(self.plan.attempts) if not one.is_reference]
        order = [*references, *(one for one in attacks if self.defence is None or not one.knows)]
        tasks = {
            (seed, one.name, repair): self.task(seed, one, self.counts(seed, repair))
            for seed in range(self.plan.seeds)
            for one in order
            for repair in self._repairs_for(one)
        }
        self.wanted = list(tasks)
        return tasks, self.results

    def _repairs_for(self, attempt: Attempt) -> tuple[str, ...]:
        """References, which every attack stands beside, have one repair: their own, or the best; at random along flows, of flows."""
        if attempt.repair:
            return (attempt.repair,)
        if attempt.is_reference and attempt.follows_flows:
            ways = (*self.kept, *self.draws[0].repairs)
            return tuple(one for one in ways if one not in (PRESENCE, TOGETHER))[:1]
        if attempt.knows and TOGETHER in self.kept:
            return tuple(one for one in (*self.kept, *self.draws[0].repairs) if one != TOGETHER)[:1]
        return self.kept[:1] if attempt.is_reference else self.kept

    def guess_people(self) -> Batch:
        """Repeat the strongest attack where the number of people must be guessed, and the guess is wrong."""
        if self.plan.truth is None or not self.plan.thorough or all(draw.guess == draw.people for draw in self.draws):
            return {}, self.guessed
        name, repair = self.strongest
        attempt = next(one for one in self.plan.attempts if one.name == name)
        guesses = [draw.counts(repair, draw.guess) for draw in self.draws]
        return {seed: self.task(seed, attempt, counts) for seed, counts in enumerate(guesses)}, self.guessed

    def tell_membership(self) -> Batch:
        """Test who is in the data at all, in the first draw."""
        plan, published = self.plan, self.draws[0]
        given = isinstance(plan.given, Release)
        tasks = {
            method: Task(
                tell_membership,
                (published.release, published.truth, self.defence, given, method, 0),
                work.membership(plan.sized, method),
            )
            for method in (plan.membership if published.truth is not None else ())
        }
        return tasks, self.membership

    def task(self, seed: int, attempt: Attempt, counts: Data) -> Task:
        """A task that depends only on what the attacker has: equal counts are attacked once."""
        published = self.draws[seed]
        counts = counts if attempt.follows_flows else counts_of(counts)
        each = counts if isinstance(counts, tuple) else (counts,)
        # Recoveries of the release as given are kept, to be shown and compared.
        keep = self.defence is None or counts == self.given
        return Task(
            attack_counts,
            (counts, published.truth, published.original, attempt.attack, self.plan.first_seed + seed, keep),
            sum(
                work.attacking(
                    attempt.attack, counts_of(one), compared=one is each[0] and published.truth is not None
                )
                for one in each
            ),
            reports=True,
        )

    def seeds(self, name: str, repair: str) -> int:
        """How many row orders of an attempt are done, from the first on; no more than those of chance, which it is compared with."""
        chance = [other for seed, of, other in self.wanted if (seed, of) == (0, "chance")]
        for seed in range(self.plan.seeds):
            if any(key not in self.results for key in ((seed, name, repair), (seed, "chance", *chance[:1]))):
                return seed
        return self.plan.seeds

    def best_repair(self, name: str) -> str | None:
        """The repair with which an attempt finds most; the first where the truth is not known, None if nothing is done."""
        tried = [repair for seed, of, repair in self.wanted if (seed, of) == (0, name) and self.seeds(name, repair)]
        if self.plan.truth is None or not tried:
            return tried[0] if tried else None
        return max(tried, key=lambda repair: self.accuracy(name, repair))

    def accuracy(self, name: str, repair: str) -> float:
        """Mean accuracy of an attempt over people and row orders."""
        done = [self.results[seed, name, repair] for seed in range(self.seeds(name, repair))]
        return float(np.mean([np.nanmean(one.arrays["accuracy"]) for one in done]))

    def best(self, name: str) -> list[Result]:
        """The results of an attempt with its best repair, by row order."""
        repair = self.best_repair(name)
        return [] if repair is None else [self.results[at, name, repair] for at in range(self.seeds(name, repair))]

    @property
    def attempts_done(self) -> list[str]:
        """The names of the attempts that something is known of."""
        return [one.name for one in self.plan.attempts if self.best_repair(one.name) is not None]

    @property
    def can_be_shown(self) -> bool:
        """The release as given as soon as all that stands beside the attacks is known, another when every attack was tried.

        Or it would look better than the release as given only because its strongest attack is still to come.
        """
        needed = {
            one.name for one in self.plan.attempts if one.is_reference or (self.defence is not None and not one.knows)
        }
        return needed <= set(self.attempts_done)

    @property
    def strongest(self) -> tuple[str, str]:
        """The attempt that finds most, chance and perfect left out, and its repair. It needs the truth."""
        beside = ("chance", PERFECT, *self.plan.informed)
        names = [name for name in self.attempts_done if name not in beside]
        tried = [(name, repair) for name in names if (repair := self.best_repair(name)) is not None]
        return max(tried, key=lambda one: self.accuracy(*one))


@dataclass(eq=False)
class Findings:
    """The results of all tasks.

    Attributes
    ----------
    plan
        What was to be tried.
    omitted
        What the plan left out, in sentences.
    runner
        Who does the tasks, as long as some are left.
    releases
        The release as given at 0, and those of the defences that could be applied, by their place in the plan from 1.
    left_out
        The other defences by their label, with the reason.
    compared
        By two recoveries of the release as given, each the name of an attempt and a seed: how far they agree.
    grown
        By name of the attempt and number of days: what is found in the first days of the release as given alone.
    windows
        Of flows, by window, what is read ("counts", "flows", "flows, all windows", or the presence in flows) and the label of what was
        done to it: what is found.
    """

    plan: Plan
    omitted: tuple[str, ...] = ()
    runner: Runner | None = None
    releases: dict[int, Tried] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    compared: dict[tuple[tuple[str, int], tuple[str, int]], Result] = field(default_factory=dict)
    grown: dict[tuple[str, int], Result] = field(default_factory=dict)
    windows: dict[tuple[timedelta, str, str], Result] = field(default_factory=dict)

    @property
    def given(self) -> Tried:
        """The release as given."""
        return self.releases[0]

    @cached_property
    def digests(self) -> tuple[str | None, str | None]:
        """What tells the data from other data: of what was given, and of the truth."""
        return identity(self.plan.given), identity(self.plan.truth)

    @property
    def results(self) -> Iterator[Result]:
        """Those of all attacks and comparisons."""
        for one in self.releases.values():
            yield from (*one.results.values(), *one._scouted.values(), *one.guessed.values())
        yield from (*self.compared.values(), *self.grown.values(), *self.windows.values())

    @property
    def known(self) -> bool:
        """Whether anything can be said of the release as given."""
        return 0 in self.releases and self.given.can_be_shown


def carry_out(found: Findings, runner: Runner) -> None:
    """Do everything: the release as given first, then the defences, then what compares and tests."""
    found.runner = runner
    _publish(found, runner)
    given, others = found.given, [one for at, one in found.releases.items() if at]
    runner.run(given.scout())
    given.choose_repairs()
    for one in others:
        one.given = given.counts(0, given.kept[0])
    runner.run(given.attack(), *(one.scout() for one in others))
    for one in others:
        one.choose_repairs()
    runner.run(*(one.attack() for one in others))
    guesses, tests = ([act(one) for one in (given, *others)] for act in (Tried.guess_people, Tried.tell_membership))
    runner.run(*guesses, _compare(found), *tests, _grow(found), _by_window(found))
    found.runner = None


def _publish(found: Findings, runner: Runner) -> None:
    """Apply each defence once for each of its draws, or set it aside if it cannot be applied."""
    plan = found.plan
    true: Counts | Flows | None = None if isinstance(plan.given, Release) else plan.given
    if true is None and plan.truth is not None:
        flows = isinstance(plan.given, Release) and plan.given.pairs is not None
        true = plan.truth.flows() if flows else plan.truth.counts()
    for at, defence in enumerate((None, *plan.defences)):
        draws: dict[str, Published] = {}
        seeded = [defence and defence.seeded(plan.first_seed + seed) for seed in range(plan.seeds)]
        try:
            for one in seeded:
                runner.check_time()
                if repr(one) not in draws:
                    draws[repr(one)] = Published.of(plan, true, one)
        except RekindleError as error:
            if defence is None or (plan.required and not isinstance(error, NothingLeft)):
                raise
            found.left_out[defence.label] = str(error)
        else:
            found.releases[at] = Tried(plan, defence, [draws[repr(one)] for one in seeded])


def _compare(found: Findings) -> Batch:
    """Compare recoveries of the release as given: row orders of one attack with its first, and attacks with each other."""
    given = found.given
    names = [attempt.name for attempt in found.plan.attempts if attempt.name != PERFECT and not attempt.knows]
    recovered = {(name, at): one.arrays["cells"] for name in names for at, one in enumerate(given.best(name))}
    orders = [((name, 0), (name, seed)) for name in names for seed in range(1, found.plan.seeds)]
    others = [((one, 0), (other, 0)) for at, one in enumerate(names) for other in names[at + 1 :]]
    counts = counts_of(given.counts(0, given.kept[0]))
    tasks = {
        (one, other): Task(compare_recoveries, (counts, recovered[one], recovered[other]), work.matching(counts))
        for one, other in orders + others
    }
    return tasks, found.compared


def _grow(found: Findings) -> Batch:
    """Measure what chance and the strongest attack find when only the first days are published."""
    plan, given = found.plan, found.given
    truth, tasks = given.draws[0].truth, dict[tuple[str, int], Task]()
    if truth is None or not plan.thorough:
        return tasks, found.grown
    for name in dict.fromkeys(("chance", given.strongest[0])):
        attack = next(one.attack for one in plan.attempts if one.name == name)
        again = attack if attack is not None and attack.revises else None
        cells = given.best(name)[0].arrays["cells"]
        for first in days_grown(given.counts(0, given.kept[0])):
            shortest = first[0] if isinstance(first, tuple) else first
            part = slice(0, shortest.steps)
            people = truth.part(part)
            # Otherwise nobody came yet, or there is no window.
            if (people.cells != AWAY).any() and shortest.totals.any():
                tasks[name, shortest.calendar.number_of_days] = Task(
                    attack_counts,
                    (first, people, None, cells[:, part] if again is None else again, plan.first_seed, False),
                    work.attacking(again, counts_of(first), compared=True),
                    reports=True,
                )
    return tasks, found.grown


def _by_window(found: Findings) -> Batch:
    """Measure what the strongest attack finds in counts and in flows at the ends of longer windows, protected alike."""
    plan, tasks = found.plan, dict[tuple[timedelta, str, str], Task]()
    if not isinstance(plan.given, Flows) or plan.truth is None or not plan.thorough:
        return tasks, found.windows
    attacks = [name for name in found.given.attempts_done if name in plan.attacks]
    best = max(attacks, key=lambda name: np.nanmean(found.given.best(name)[0].arrays["accuracy"]))
    attack = plan.attacks[best]
    for one in found.releases.values():
        if one.defence in _protections(plan) and one.draws[0].longer:
            tasks[plan.given.window, f"flows, {TOGETHER}", one.label] = one.task(
                0, Attempt(best, attack), one.counts(0, TOGETHER)
            )
    for calendar, defence in windows_compared(plan):
        people = plan.truth.during(calendar)
        try:
            held = _held(people, defence)
        except RekindleError:  # nothing would be left
            continue
        for kind, data in held.items():
            tasks[calendar.step, kind, "As given" if defence is None else defence.label] = Task(
                attack_counts,
                (data, people, None, attack, plan.first_seed, False),
                work.attacking(attack, counts_of(data), compared=True),
                reports=True,
            )
    return tasks, found.windows


def windows_compared(plan: Plan) -> Iterator[tuple[Calendar, Defence | None]]:
    """When longer windows begin and end, and what is done to their counts and flows: nothing, or numbers are withheld."""
    if not isinstance(plan.given, Flows) or plan.truth is None or not plan.thorough:
        return
    step = plan.given.window
    published = (one.window for one in plan.longer)
    for length in sorted({step, *published, *(parse_step(text) for text in WINDOWS)}):
        steps = -(-plan.truth.steps * step // length)
        if not length % step and length >= step and steps >= FEWEST_WINDOWS:
            for defence in _protections(plan):
                yield Calendar(plan.truth.calendar.start, length, steps), defence


def _protections(plan: Plan) -> tuple[Defence | None, ...]:
    """What is done to counts and flows where they are compared by window: nothing, and the first threshold."""
    return (None, *(one for one in plan.defences if isinstance(one, Suppress)))[:2]


def _held(people: Trajectories, defence: Defence | None) -> dict[str, Counts | Flows]:
    """What an attacker makes of the counts and of the flows of people, and of the presence alone where flows are not exact."""
    if defence is None:
        return {"counts": people.counts(), "flows": people.flows()}
    flows = repair_flows(defence(people.flows()), people.people)
    return {"counts": repair(defence(people.counts()), people.people), "flows": flows, PRESENCE: flows.counts()}


def days_grown(data: Data) -> Iterator[Any]:
    """The first days of counts or flows, for each number of days in `GROWTH` that is less than all."""
    shortest, *longer = data if isinstance(data, tuple) else (data,)
    calendar = shortest.calendar
    for days in GROWTH[: np.searchsorted(GROWTH, calendar.number_of_days)]:
        first = shortest.part(slice(0, calendar.day(days - 1).stop))
        others = [part for one in longer if (part := one.within(first.calendar)) is not None]
        yield (first, *others) if others else first


def _moves(counts: Counts) -> bool:
    """Whether anything moves but the totals; shares of other totals are rounded otherwise, by one person at most."""
    off = np.abs(counts.values - hold_still(counts).values).max()
    return bool(off > (np.ptp(counts.totals) > 0))
