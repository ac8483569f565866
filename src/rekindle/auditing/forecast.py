"""What a plan takes, before any of it is done: tasks, time and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rekindle.auditing import work
from rekindle.auditing.plan import Plan
from rekindle.auditing.stages import KEPT, SCOUT, days_grown, windows_compared
from rekindle.defences import Defence
from rekindle.errors import RekindleError
from rekindle.memory import audit_bytes
from rekindle.model import Calendar, Counts, Release
from rekindle.repairing import FLOW_REPAIRS, REPAIRS

USUAL_WORK = 1_200.0
"""Seconds of an ordinary core that an audit takes at most where nobody said how much to do: 15 minutes of two cores, and some
room, because the estimates are rough and one core may wait for the other in the end."""

STRONGEST_WORK = 2 * USUAL_WORK
"""The same where less would leave out the strongest attack: half an hour of two cores."""


@dataclass(frozen=True)
class Forecast:
    """What an audit is about to do, and what that takes on this machine.

    Attributes
    ----------
    plan
        What is done.
    chosen
        Which of the settings attacks, seeds, defences and thorough were chosen here, and not asked for.
    omitted
        What was left out, and the setting that gets it, in sentences.
    cores
        How many tasks run side by side.
    tasks
        About how many tasks there are, those included whose number is only known later.
    seconds
        About how long they take, by a short attack that was timed on this machine.
    memory_bytes
        About how much memory that takes here; 0 on a cluster.
    faster
        Settings that would take less time, with the seconds that it then takes.
    lighter
        Settings that would take less memory, with the bytes; `attacks` means without those that revise earlier days.
    """

    plan: Plan
    chosen: frozenset[str]
    omitted: Sequence[str]
    cores: int
    tasks: int
    seconds: float
    memory_bytes: int
    faster: tuple[tuple[str, float], ...]
    lighter: tuple[tuple[str, int], ...]

    @classmethod
    def of(
        cls,
        plan: Plan,
        cores: int,
        slowness: float,
        *,
        here: bool,
        chosen: frozenset[str],
        omitted: Sequence[str],
        part: float = 1.0,
    ) -> Self:
        """Forecast a plan on so many cores that are so much slower than ordinary ones.

        `here` is on this machine; `part` is the share of all the work that the plan is.
        """

        def seconds(plan: Plan) -> float:
            # What is not done in parts keeps to one core, and so does the comparison with the truth.
            alone = [
                work.attacking(None if one.in_parts else one, plan.sized, compared=plan.truth is not None)
                for one in plan.attacks.values()
            ]
            return slowness * max(sum(works_of(plan)) / cores, *alone) / part

        def memory(plan: Plan, workers: int) -> int:
            attacks, truth = list(plan.attacks.values()), plan.truth is not None
            size = audit_bytes(
                plan.given, attacks, seeds=plan.seeds, workers=workers, truth=truth, people=plan.people
            )
            return size if here else 0

        takes, needs = seconds(plan), memory(plan, cores)
        faster = [(setting, seconds(other)) for setting, other in _faster(plan)]
        lighter = [("workers=1", memory(plan, 1))]
        fast = replace(plan, attempts=[one for one in plan.attempts if one.attack is None or not one.attack.revises])
        if fast.attacks:
            lighter += [("attacks", memory(fast, cores)), ("attacks` and `workers=1", memory(fast, 1))]
        return cls(
            plan=plan,
            chosen=chosen,
            omitted=omitted,
            cores=cores,
            tasks=round(len(works_of(plan)) / part),
            seconds=takes,
            memory_bytes=needs,
            faster=tuple((setting, time) for setting, time in faster if time < 0.9 * takes),
            lighter=tuple((setting, size) for setting, size in lighter if size < needs),
        )


def choose(plans: Sequence[Plan], limit: float, strongest: float | None = None) -> int:
    """Choose the first plan within a limit, in seconds of an ordinary core; the last where none is.

    Parameters
    ----------
    plans
        The one that says most first.
    limit
        Seconds of an ordinary core.
    strongest
        The limit for plans with all attacks of the first, where only others would be within: a weak attack says that there is
        little risk.
    """
    works = [sum(works_of(one)) for one in plans]
    within = [at for at, work in enumerate(works) if work <= limit]
    found = within[0] if within else len(plans) - 1
    kinds = [{type(attack) for attack in one.attacks.values()} for one in plans]
    if strongest is None or kinds[found] == kinds[0]:
        return found
    return next((at for at, work in enumerate(works) if kinds[at] == kinds[0] and work <= strongest), found)


def works_of(plan: Plan) -> list[float]:
    """List about what each task of a plan takes, in seconds of an ordinary core, before any of them is done."""
    works: list[float] = []
    truth = plan.truth is not None
    attacks = plan.attacks.values()
    # The perfect recovery is no attack, and only compared with the truth.
    references = [one.attack for one in plan.attempts if one.is_reference]
    most = max(attacks, key=lambda one: one.work(plan.sized))
    for defence in (None, *plan.defences):
        counts = _defended(plan.sized, defence)
        compared = truth and not (isinstance(plan.given, Counts) and (defence is None or defence.exact))
        if compared:
            # Exact flows can be read as flows, or as the counts that they add up to.
            exact = plan.of_flows and not isinstance(plan.given, Release) and (defence is None or defence.exact)
            ways = 2 if exact else len(FLOW_REPAIRS if plan.of_flows else REPAIRS) + 1 + plan.of_flows
            works += [work.attacking(SCOUT.attack, counts, compared=True)] * (ways + bool(plan.longer))
        kept = KEPT if compared and plan.thorough else 1
        guessed = [most] if compared and plan.thorough else []
        more = plan.informed.values() if defence is None else ()
        tried = [*references, *(one for one in (*attacks, *more) for _ in range(kept)), *guessed]
        works += [work.attacking(one, counts, compared=truth) for one in tried] * plan.seeds
        at_ends = [_sized(plan, one.calendar) for one in plan.longer]
        works += [work.attacking(one, ends, compared=False) for one in attacks for ends in at_ends] * plan.seeds
        if truth:
            works += [work.membership(counts, method) for method in plan.membership]
    names = len(plan.attempts) - len(plan.informed) - truth
    works += [work.matching(plan.sized)] * (names * (plan.seeds - 1) + names * (names - 1) // 2)
    if truth and plan.thorough:
        for first in days_grown(plan.sized):
            works += [work.attacking(one, first, compared=True) for one in (None, most if most.revises else None)]
    for calendar, defence in windows_compared(plan):
        works += [work.attacking(most, _sized(plan, calendar), compared=True)] * (2 if defence is None else 3)
    return works


def _sized(plan: Plan, calendar: Calendar) -> Counts:
    """Counts of the people of a plan at other steps."""
    values = np.zeros((calendar.steps or 1, len(plan.sized.locations)), np.int32)
    values[:, 0] = plan.sized.people
    return Counts(values, plan.sized.locations, calendar)


def _defended(counts: Counts, defence: Defence | None) -> Counts:
    """Counts of the size that a defence leaves."""
    if defence is None:
        return counts
    try:
        calendar = defence.calendar(counts.calendar)
    except RekindleError:  # it will be left out
        return counts
    values = np.zeros((calendar.steps or 1, len(counts.locations)), np.int32)
    values[:, 0] = max(1, round(counts.people * defence.included))
    return Counts(values, counts.locations, calendar)


def _faster(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Ways to ask for less, each with the setting that does it."""
    lighter = [
        replace(attempt, attack=type(attempt.attack)(effort="low"))  # type: ignore[call-arg]
        if attempt.attack is not None
        and not attempt.knows
        and attempt.attack.settings().get("effort") in ("normal", "high")
        else attempt
        for attempt in plan.attempts
    ]
    if lighter != plan.attempts:
        yield "effort='low'", replace(plan, attempts=lighter)
    if plan.seeds > 1:
        yield "seeds=1", replace(plan, seeds=1)
    if plan.thorough:
        yield "thorough=False", replace(plan, thorough=False)
    if plan.defences:
        yield "defences=[]", replace(plan, defences=())
