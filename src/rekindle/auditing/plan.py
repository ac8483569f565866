"""What an audit does: which attacks are tried on which releases, under which row orders; chosen where nobody said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import product
from typing import Any

from rekindle.attacks import ATTACKS, Attack, KnownPeople, Prior
from rekindle.attacks.priors import KnowingPeople
from rekindle.auditing.tasks import MIXED_ATTEMPT, PERFECT, REFERENCE_ATTEMPTS, Attempt
from rekindle.defences import (
    PRESETS,
    CoarserSpace,
    CoarserTime,
    Defence,
    GeometricNoise,
    Round,
    Sample,
    Suppress,
)
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.membership.infer import Method
from rekindle.memory import counts_of_size
from rekindle.model import Counts, Dataset, Flows, Release, Trajectories
from rekindle.model.calendar import format_step, parse_step
from rekindle.model.dataset import check_truth

SEEDS = 3
"""How many row orders are tried where that is not too many."""

DEFENCES = (8, 5, 3, 2, 1, 0)
"""How many of the default defences are tried, in the order of their use."""

_LONGER = ("10min", "30min", "1h", "2h", "4h", "6h", "12h")


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
    name, command
        What the dataset is called, and the command that audits it, where somebody said so.
    thorough
        Whether also to try the second best repair, an attacker who has to guess the number of people, and the first days alone.
    first_seed
        The seed of the first row order and draw; the others follow it.
    with_counts
        Whether the counts are published beside the flows, protected alike.
    priors
        What attackers may know besides the release: each is one more attempt.
    longer
        Flows of longer windows that are published too, with stayers; attacks are also tried with all windows together.
    unused
        Windows of flows that the dataset publishes besides those that are attacked.
    """

    given: Counts | Flows | Release
    truth: Trajectories | None
    attempts: Sequence[Attempt]
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
    with_counts: bool = False
    priors: tuple[Prior, ...] = ()
    longer: tuple[Flows, ...] = ()
    unused: tuple[timedelta, ...] = ()

    @property
    def attacks(self) -> dict[str, Attack]:
        """The attacks by name, without what stands beside them and without attackers who know more than the release."""
        return {
            one.name: one.attack
            for one in self.attempts
            if one.attack is not None and not one.is_reference and not one.knows
        }

    @property
    def informed(self) -> dict[str, Attack]:
        """The attackers who know more, by name; they are tried on the release as given alone."""
        return {one.name: one.attack for one in self.attempts if one.attack is not None and one.knows}

    @property
    def of_flows(self) -> bool:
        """Whether flows are published."""
        return is_of_flows(self.given)

    @cached_property
    def sized(self) -> Counts:
        """Counts of the size of those that the attacker will have."""
        return counts_of_size(self.given, self.people)


def open_data(
    data: Any,
    truth: Trajectories | None,
    release: str | None = None,
    window: str | timedelta | None = None,
    **settings: Any,
) -> tuple[Counts | Flows | Release, Trajectories | None]:
    """Give what is to be published, and the people behind it; raw points are prepared first, with these settings.

    Flows over a window are those of the truth, or of the dataset; the truth is brought to the moments when windows begin and end.
    """
    if release == "counts" and window is not None:
        raise InvalidSetting("`window` is for flows, but `release` is 'counts'.")
    given = {name: value for name, value in settings.items() if value is not None}
    if not isinstance(data, (Dataset, Counts, Flows, Release, Trajectories)):
        if not hasattr(data, "columns") and not hasattr(data, "to_point_gdf"):
            raise InvalidData(
                f"A {type(data).__name__} cannot be audited; give a dataset, counts, a release, trajectories, or a data frame "
                "of points."
            )
        from rekindle.prepare import dataset_from_frame  # Polars and narwhals take a while to load

        data = dataset_from_frame(data, **given)
    elif given:
        name = next(iter(given))
        raise InvalidSetting(
            f"`{name}` is for a data frame of raw points; this {type(data).__name__} has its steps and locations."
        )
    own = truth is None
    if isinstance(data, Dataset):
        data = data if truth is None else replace(data, truth=truth)
        truth, counts = data.truth, data.counts
        only_counts = release == "counts" or not (release or window or data.flows)
        data = counts if only_counts else data.flows_over(window).with_stayers(counts)
    elif isinstance(data, Trajectories):
        truth = truth or data
        data = data.counts() if release in (None, "counts") and not window else data.flows(window)
    elif (release or window) and not isinstance(data, (Counts if release == "counts" else Flows)):
        raise InvalidSetting("`release` and `window` are for a dataset or for people; a table is what it is.")
    if is_of_flows(data):
        moments = data.calendar if isinstance(data, Flows) else data.moments
        if truth is not None and truth.locations != data.locations:
            raise InvalidData("The truth has other locations than the flows.")
        return data, None if truth is None else truth.during(moments)
    if truth is not None and isinstance(data, Counts) and not own:
        check_truth(data, truth)
    if truth is not None and (truth.locations != data.locations or truth.calendar != data.calendar):
        raise InvalidData(
            "The truth has other locations or times than the release; give it in those of the release, "
            "or give the dataset and the defence that made the release."
        )
    return data, truth


def is_of_flows(given: Counts | Flows | Release) -> bool:
    """Whether flows are published, not counts."""
    return isinstance(given, Flows) or (isinstance(given, Release) and given.pairs is not None)


def name_of(data: object) -> str | None:
    """What a dataset says that it is called."""
    info = data.info if isinstance(data, Dataset) else {}
    return next((said for key in ("name", "source") if isinstance(said := info.get(key), str)), None)


def attempts_of(
    attacks: Iterable[Attack], truth: Trajectories | None, *, flows: bool = False, priors: Sequence[Prior] = ()
) -> list[Attempt]:
    """Give attacks their names, what stands beside them, and for each prior the last of them that can use it."""
    attacks = list(attacks)
    for prior in priors:
        if not isinstance(prior, Prior):
            raise InvalidSetting(f"{prior!r} is not prior knowledge, such as rekindle.KnownPast(...).")
        able = [one for one in attacks if isinstance(one, Attack) and (isinstance(prior, (KnownPeople, *one.priors)))]
        able = [one for one in able if getattr(one, "prior", None) is None]
        if not able:
            raise InvalidSetting(f"No attack that is tried can use {type(prior).__name__}.")
        attacks.append(able[-1].knowing(prior))
    names = {kind: name for name, kind in ATTACKS.items()}
    beside = (*REFERENCE_ATTEMPTS, MIXED_ATTEMPT) if flows else REFERENCE_ATTEMPTS
    found = {one.name: one for one in beside}
    for attack in attacks:
        if not isinstance(attack, Attack):
            raise InvalidSetting(
                f"{attack!r} is not an attack: it must be an object of a subclass of rekindle.Attack."
            )
        name = _name(attack, names)
        if (knows := Attempt("", attack).knows) is not None:
            name = f"{name}, {knows.replace('-', ' ')}"
        base, number = name, 1
        while name in found or name == PERFECT:
            number += 1
            name = f"{base} {number}"
        found[name] = Attempt(name, attack)
    if len(found) == len(beside):
        raise InvalidSetting("There are no attacks to audit with; give at least one, or None for all.")
    if truth is not None:
        found[PERFECT] = Attempt(PERFECT)
    return list(found.values())


def _name(attack: Attack, names: dict[type[Attack], str]) -> str:
    kind = type(attack.attack) if isinstance(attack, KnowingPeople) else type(attack)
    return names.get(kind, kind.__name__)


def distinct(defences: Iterable[Defence]) -> list[Defence]:
    """Check that all are defences, and none is there twice."""
    chosen: dict[str, Defence] = {}
    for defence in defences:
        if not isinstance(defence, Defence):
            raise InvalidSetting(
                f"{defence!r} is not a defence: it must be an object of a subclass of rekindle.Defence."
            )
        if defence.describe() in chosen:
            raise InvalidSetting(f"The defence {defence.describe()} is listed twice.")
        chosen[defence.describe()] = defence
    return list(chosen.values())


def default_defences(
    given: Counts | Flows | Release, truth: Trajectories | None, most: int = DEFENCES[0]
) -> list[Defence]:
    """Choose eight defences: two thresholds, rounding, noise of two budgets, larger cells, longer steps, a sample.

    The sample needs the people, so it is left out where they are not known.

    Parameters
    ----------
    given, truth
        What is to be published, and the people.
    most
        How many at most: the first of a list in which different kinds come first.
    """
    chosen: dict[Defence, int] = {
        Suppress(below=3): 6,
        Suppress(below=10): 0,
        Round(to=5): 4,
        GeometricNoise(epsilon=1.0, per="event"): 2,
        PRESETS["google-community-mobility"]: 7,
        CoarserSpace.wider(3, given.locations): 1,
        CoarserTime(step=_longer_step(given)): 3,
    }
    if truth is not None and isinstance(given, (Counts, Flows)):
        chosen[Sample(share=0.5)] = 5
    return [one for one, rank in chosen.items() if rank < most]


def _longer_step(given: Counts | Flows | Release) -> timedelta | str:
    """At least three times the step, a round number where there is one."""
    step = given.calendar.step
    fits = [text for text in _LONGER if parse_step(text) >= 3 * step and not parse_step(text) % step]
    return fits[0] if fits else timedelta(days=1)


def built_in(names: Iterable[str], effort: str = "normal") -> list[Attack]:
    """The built-in attacks of these names, with an effort where they have that setting."""
    return [ATTACKS[name](**({"effort": effort} if has_effort(name) else {})) for name in names]


def has_effort(name: str) -> bool:
    """Whether a built-in attack has the setting."""
    return "effort" in ATTACKS[name]().settings()


def within_reach(counts: Counts) -> tuple[dict[str, str], tuple[str, ...]]:
    """The built-in attacks that counts of this size are beyond, each with the reason; and the names of the others."""
    reasons = {name: reason for name, kind in ATTACKS.items() if (reason := kind().why_not(counts)) is not None}
    return reasons, tuple(name for name in ATTACKS if name not in reasons)


def alternatives(plan: Plan, free: frozenset[str]) -> list[Plan]:
    """All plans with what was asked for, the one that says most first.

    A weak attack tells the owner of the data that there is little risk where there is much: so the effort is the last
    to go, but for the defences, without which the owner only learns that there is a problem.

    Parameters
    ----------
    plan
        What was asked for.
    free
        Which of attacks, seeds, defences and thorough nobody asked for.
    """
    _, able = within_reach(plan.sized)
    fast = tuple(name for name in able if not has_effort(name))
    found = []
    for names in dict.fromkeys((able, fast, fast[-1:])) if "attacks" in free else ((),):
        efforts = ("normal", "low") if any(map(has_effort, names)) else ("normal",)
        steps = [(effort, orders, DEFENCES[0], True) for effort, orders in product(efforts, range(SEEDS, 0, -1))]
        steps += [(efforts[-1], 1, most, False) for most in DEFENCES]
        for effort, orders, most, more in steps:
            attempts = (
                attempts_of(built_in(names, effort), plan.truth, flows=plan.of_flows, priors=plan.priors)
                if names
                else plan.attempts
            )
            defences = default_defences(plan.given, plan.truth, most) if "defences" in free else plan.defences
            seeds = orders if "seeds" in free else plan.seeds
            thorough = more if "thorough" in free else plan.thorough
            found.append(replace(plan, attempts=attempts, defences=defences, seeds=seeds, thorough=thorough))
    return found


def omissions(plan: Plan, free: frozenset[str]) -> Iterator[str]:
    """What a plan leaves out of the full one where it could choose, and the setting that gets it, in sentences."""
    if plan.unused:
        windows = " and ".join(format_step(one) for one in plan.unused)
        yield (
            f"The dataset also publishes flows over {windows}, which are not used where `window` is given. Together they give away "
            "more: without `window` all are."
        )
    if "attacks" in free:
        beyond, able = within_reach(plan.sized)
        for name, reason in beyond.items():
            yield f"{name.capitalize()} is not tried. {reason} The other attacks find less, so the risk may be higher than they show."
        for name in able:
            if name not in plan.attacks:
                yield f"{name.capitalize()} is not tried, so the risk may be higher than shown: name it in `attacks`."
        if any(one.settings().get("effort") == "low" for one in plan.attacks.values()):
            yield "Habits tries with low effort, so the risk may be higher than shown: `effort='normal'` tries harder."
    if "seeds" in free and plan.seeds < SEEDS:
        orders = "one row order is" if plan.seeds == 1 else f"{plan.seeds} row orders are"
        yield f"Only {orders} tried, so the limits are rougher: `seeds={SEEDS}` tries more."
    usual, tried = len(default_defences(plan.given, plan.truth)), len(plan.defences)
    if "defences" in free and tried < usual:
        number = {0: "none is", 1: "only one is"}.get(tried, f"only {tried} are")
        yield f"Of the {usual} usual defences, {number} tried: name others in `defences`."
    if "thorough" in free and not plan.thorough:
        yield (
            "Not tried are the second best repair of each release, an attacker who has to guess the number of people, and the "
            "first days alone: `thorough=True` tries them."
        )
