"""How much an audit does where nobody said: by the size of the data, or by the time there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from rekindle.attacks import ATTACKS, Attack
from rekindle.auditing import work
from rekindle.auditing.stages import KEPT, SCOUT, Plan
from rekindle.auditing.tasks import GROWTH, PERFECT
from rekindle.defences import Defence
from rekindle.errors import InvalidData, RekindleError
from rekindle.memory import audit_bytes
from rekindle.model import Counts
from rekindle.repairing import REPAIRS

__all__ = [
    "USUAL_WORK",
    "Extent",
    "Forecast",
    "Load",
    "choose",
    "faster",
    "forecast",
    "memory_bytes",
    "omissions",
    "within_reach",
]

USUAL_WORK = 1_200.0
"""Seconds of an ordinary core that an audit takes at most where nobody said how much to do: 15 minutes of two cores, and some
room, because the estimates are rough and one core may wait for the other in the end."""

DEFENCES = (8, 5, 3, 2, 1, 0)
"""How many of the default defences are tried, in the order of their use."""


@dataclass(frozen=True)
class Extent:
    """How much an audit does.

    Attributes
    ----------
    attacks
        Which of the built-in attacks.
    effort
        How hard those attacks try that have the setting.
    seeds
        How many row orders.
    defences
        How many of the default defences.
    thorough
        Whether also to try the second best repair, an attacker who has to guess the number of people, and the first days alone.
    """

    attacks: tuple[str, ...] = tuple(ATTACKS)
    effort: str = "normal"
    seeds: int = 3
    defences: int = DEFENCES[0]
    thorough: bool = True

    def to_json(self) -> dict[str, Any]:
        """In plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Extent:
        """Read what `to_json` gave."""
        if not set(values["attacks"]) <= set(ATTACKS):
            raise InvalidData("there is an attack that does not exist")
        return cls(
            tuple(values["attacks"]), str(values["effort"]), int(values["seeds"]), int(values["defences"]),
            bool(values["thorough"]),
        )  # fmt: skip

    def make_attacks(self) -> list[Attack]:
        """The attacks with their effort."""
        kinds = [ATTACKS[name] for name in self.attacks]
        return [kind(**({"effort": self.effort} if "effort" in kind().settings() else {})) for kind in kinds]


def within_reach(counts: Counts) -> tuple[dict[str, str], tuple[str, ...]]:
    """The built-in attacks that counts of this size are beyond, each with the reason; and the names of the others."""
    reasons = {name: reason for name, kind in ATTACKS.items() if (reason := kind().why_not(counts)) is not None}
    return reasons, tuple(name for name in ATTACKS if name not in reasons)


def _extents(attacks: tuple[str, ...]) -> Iterator[Extent]:
    """All extents with these attacks, the one that says most first.

    A weak attack tells the owner of the data that there is little risk where there is much: so the effort is the last
    to go, but for the defences, without which the owner only learns that there is a problem.
    """
    efforts = ("normal", "low") if any("effort" in ATTACKS[name]().settings() for name in attacks) else ("normal",)
    for effort, seeds in product(efforts, (3, 2, 1)):
        yield Extent(attacks, effort, seeds)
    for defences in DEFENCES:
        yield Extent(attacks, efforts[-1], 1, defences, thorough=False)


def choose(plan_of: Callable[[Extent], Plan], limit: float) -> Extent:
    """Choose the extent that says most within a limit; the smallest where none is.

    Parameters
    ----------
    plan_of
        What an extent means for the data at hand, together with what was asked for.
    limit
        Seconds of an ordinary core.
    """
    _, able = within_reach(plan_of(Extent(seeds=1, defences=0)).sized)
    fast = tuple(name for name in able if "effort" not in ATTACKS[name]().settings())
    extents = [one for attacks in dict.fromkeys((able, fast, fast[-1:])) for one in _extents(attacks)]
    return next((one for one in extents if forecast(plan_of(one)).work <= limit), extents[-1])


@dataclass(frozen=True)
class Load:
    """What a plan takes.

    Attributes
    ----------
    tasks
        About how many tasks there are.
    work
        About how many seconds of an ordinary core they take.
    longest
        The same, of the longest task alone.
    """

    tasks: int
    work: float
    longest: float

    def seconds(self, cores: int, slowness: float) -> float:
        """About how long that takes on so many cores that are so much slower than ordinary ones."""
        return slowness * max(self.work / cores, self.longest)


@dataclass(frozen=True)
class Forecast:
    """What an audit is about to do, and what that takes on this machine.

    Attributes
    ----------
    tasks
        About how many tasks there are, those included whose number is only known later.
    seconds
        About how long they take, by a short attack that was timed on this machine.
    memory_bytes
        About how much memory that takes here; 0 on a cluster.
    cores
        How many tasks run side by side.
    attacks, seeds, defences, thorough
        What is done.
    chosen
        Which of the settings attacks, seeds, defences and thorough were chosen here, and not asked for.
    omitted
        What was left out, and the setting that gets it, in sentences.
    faster
        Settings that would take less time, with the seconds that it then takes.
    lighter
        Settings that would take less memory, with the bytes; `attacks` means without those that revise earlier days.
    """

    tasks: int
    seconds: float
    memory_bytes: int
    cores: int
    attacks: tuple[Attack, ...]
    seeds: int
    defences: tuple[Defence, ...]
    thorough: bool
    chosen: frozenset[str]
    omitted: tuple[str, ...]
    faster: tuple[tuple[str, float], ...]
    lighter: tuple[tuple[str, int], ...]

    @classmethod
    def of(
        cls,
        plan: Plan,
        *,
        cores: int,
        slowness: float,
        here: bool,
        chosen: frozenset[str],
        omitted: Iterable[str],
    ) -> Forecast:
        """Forecast a plan; `here` says whether it is done on this machine."""
        load = forecast(plan)
        quick = [(setting, forecast(other).seconds(cores, slowness)) for setting, other in faster(plan)]
        needed = memory_bytes(plan, cores) if here else 0
        light = [("workers=1", memory_bytes(plan, 1))] if here else []
        fast = [one for one in plan.attempts if one.attack is None or not one.attack.revises]
        if here and any(one.attack and not one.is_reference for one in fast):
            light.append(("attacks", memory_bytes(replace(plan, attempts=fast), cores)))
            light.append(("attacks` and `workers=1", memory_bytes(replace(plan, attempts=fast), 1)))
        return cls(
            tasks=load.tasks,
            seconds=load.seconds(cores, slowness),
            memory_bytes=needed,
            cores=cores,
            attacks=tuple(one.attack for one in plan.attempts if one.attack is not None and not one.is_reference),
            seeds=plan.seeds,
            defences=tuple(plan.defences),
            thorough=plan.thorough,
            chosen=chosen,
            omitted=tuple(omitted),
            faster=tuple((setting, time) for setting, time in quick if time < 0.9 * load.seconds(cores, slowness)),
            lighter=tuple((setting, size) for setting, size in light if size < needed),
        )


def forecast(plan: Plan) -> Load:
    """Count the tasks of a plan before any of them is done, and how long they take."""
    tasks: list[float] = []
    truth = plan.truth is not None
    references = [attempt for attempt in plan.attempts if attempt.is_reference and attempt.name != PERFECT]
    attacks = [attempt for attempt in plan.attempts if not attempt.is_reference]
    most = max((attempt.attack for attempt in attacks if attempt.attack), key=lambda one: one.work(plan.sized))
    for defence in (None, *plan.defences):
        counts = _defended(plan.sized, defence)
        draws = plan.seeds if defence is not None and "seed" in defence.settings() else 1
        exact = isinstance(plan.given, Counts) and (defence is None or defence.exact)
        compared = truth and not exact
        kept = KEPT if compared and plan.thorough else 1
        tasks += [work.publishing(counts)] * draws
        if not exact:  # those that go on, the frozen one, and those that are only compared
            repairs = draws * (kept + 1) + (len(REPAIRS) - kept - 1 if compared else 0)
            tasks += [work.repairing(counts)] * repairs
        if compared:
            tasks += [work.attacking(SCOUT.attack, counts, compared=True)] * (len(REPAIRS) + 1)
        for attempt in references:
            tasks += [work.attacking(attempt.attack, counts, compared=truth)] * plan.seeds
        if truth:
            tasks += [work.attacking(None, counts, compared=True)] * plan.seeds
        for attempt in attacks:
            tasks += [work.attacking(attempt.attack, counts, compared=truth)] * plan.seeds * kept
        if compared and plan.thorough:
            tasks += [work.attacking(most, counts, compared=True)] * plan.seeds
        if truth:
            tasks += [work.membership(counts, method) for method in plan.membership]
    names = len(references) + len(attacks)
    tasks += [work.matching(plan.sized)] * (names * (plan.seeds - 1) + names * (names - 1) // 2)
    if truth and plan.thorough:
        calendar = plan.sized.calendar
        for days in GROWTH[: np.searchsorted(GROWTH, calendar.number_of_days)]:
            first = plan.sized.part(slice(0, calendar.day(days - 1).stop))
            tasks += [work.attacking(one, first, compared=True) for one in (None, most if most.revises else None)]
    return Load(len(tasks), sum(tasks), max(tasks))


def memory_bytes(plan: Plan, workers: int) -> int:
    """About how much memory a plan takes."""
    attacks = [attempt.attack for attempt in plan.attempts if attempt.attack is not None and not attempt.is_reference]
    return audit_bytes(
        plan.given, attacks, seeds=plan.seeds, workers=workers, truth=plan.truth is not None, people=plan.people
    )


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


def faster(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Ways to ask for less, each with the setting that does it."""
    lighter = [
        replace(attempt, attack=type(attempt.attack)(effort="low"))  # type: ignore[call-arg]
        if attempt.attack is not None and attempt.attack.settings().get("effort") in ("normal", "high")
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


def omissions(extent: Extent, free: frozenset[str], counts: Counts) -> Iterator[str]:
    """What an extent leaves out of the full one, and the setting that gets it, in sentences.

    Parameters
    ----------
    extent
        What was chosen.
    free
        The settings that nobody asked for.
    counts
        The data, by their size.
    """
    full = Extent()
    if "attacks" in free:
        beyond, able = within_reach(counts)
        for name, reason in beyond.items():
            yield f"{name.capitalize()} is not tried. {reason} The other attacks find less, so the risk may be higher than they show."
        for name in able:
            if name not in extent.attacks:
                yield f"{name.capitalize()} is not tried, so the risk may be higher than shown: name it in `attacks`."
        if extent.effort != full.effort and any("effort" in ATTACKS[name]().settings() for name in extent.attacks):
            yield f"Habits tries with low effort, so the risk may be higher than shown: `effort='{full.effort}'` tries harder."
    if "seeds" in free and extent.seeds < full.seeds:
        orders = "one row order is" if extent.seeds == 1 else f"{extent.seeds} row orders are"
        yield f"Only {orders} tried, so the limits are rougher: `seeds={full.seeds}` tries more."
    if "defences" in free and extent.defences < full.defences:
        tried = {0: "none is", 1: "only one is"}.get(extent.defences, f"only {extent.defences} are")
        yield f"Of the {full.defences} usual defences, {tried} tried: name others in `defences`."
    if "thorough" in free and not extent.thorough:
        yield (
            "Not tried are the second best repair of each release, an attacker who has to guess the number of people, and the "
            "first days alone: `thorough=True` tries them."
        )
