"""Attacks x defences x row orders on a dataset: who is exposed, and what would protect them."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import ATTACKS, REFERENCES, Attack
from rekindle.auditing.defaults import default_defences
from rekindle.auditing.results import Agreement, AttackRisk, Audit, Growth, PersonRisk, ReleaseRisk
from rekindle.auditing.risk import Estimate, estimate, estimate_advantage
from rekindle.auditing.tasks import (
    PERFECT,
    Attempt,
    Result,
    attack_release,
    compare_recoveries,
    people_or_data,
    publish,
    repaired,
)
from rekindle.auditing.verdict import judge
from rekindle.auditing.work import Store, Task, digest, run, workers_of
from rekindle.defences import Defence, NothingLeft
from rekindle.errors import InvalidData, InvalidSetting, RekindleError
from rekindle.model import Counts, Dataset, Release, Trajectories
from rekindle.model.dataset import check_truth

__all__ = ["audit"]

Progress = Callable[[int, int | None], None]

AS_GIVEN = "as given"


def audit(
    data: Dataset | Counts | Release | Trajectories,
    *,
    truth: Trajectories | None = None,
    attacks: Iterable[Attack] | None = None,
    defences: Iterable[Defence] | None = None,
    seeds: int = 3,
    people: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Try attacks on a release and on what defences would make of it, and say who is exposed.

    Parameters
    ----------
    data
        What is to be published: a dataset (with its truth, or without), counts, a release of any kind, or the people.
    truth
        The people behind a release, in its places and steps, where `data` does not hold them.
    attacks
        All attacks with their defaults, by default.
    defences
        What to try on the data. By default eight that suit it; an empty list tries none.
    seeds
        How many row orders, each with its own draw of every random defence.
    people
        How many people are counted at every step, where an attacker would know that; otherwise it is guessed.
    workers
        How many processes; by default one for each core. The numbers do not depend on it.
    cluster
        Address of the scheduler of a Dask cluster, to use instead of this machine's cores.
    cache
        A folder for finished cells. An audit that was interrupted goes on from there, and one with more attacks, defences
        or seeds does only what is new. It holds rebuilt paths and each person's exposure: keep it as safe as the truth.
    progress
        Called with the number of cells done and of all.
    """
    given, truth = _open(data, truth)
    if isinstance(seeds, bool) or not isinstance(seeds, (int, np.integer)) or seeds < 1:
        raise InvalidSetting(f"seeds is {seeds!r}; it must be a whole number of at least 1.")
    attempts = [*(Attempt(name) for name in REFERENCES), *_name_attacks(attacks)]
    if truth is not None:
        attempts.append(Attempt(PERFECT))
    chosen, left_out = _choose(given, truth, defences)
    plan = _Plan(given, truth, attempts, [None, *chosen], int(seeds), people)
    with workers_of(workers, cluster) as where:
        found = plan.carry_out(Store(cache), where, progress)
    return found.gather(left_out)


def _open(
    data: Dataset | Counts | Release | Trajectories, truth: Trajectories | None
) -> tuple[Counts | Release, Trajectories | None]:
    given: Counts | Release
    if isinstance(data, Dataset):
        given, truth = data.counts, truth or data.truth
    elif isinstance(data, Trajectories):
        given, truth = data.counts(), truth or data
    elif isinstance(data, (Counts, Release)):
        given = data
    else:
        raise InvalidData(
            f"A {type(data).__name__} cannot be audited; give a dataset, counts, a release or trajectories."
        )
    if truth is not None and isinstance(given, Counts):
        check_truth(given, truth)
    if truth is not None and (truth.locations != given.locations or truth.calendar != given.calendar):
        raise InvalidData(
            "The truth has other places or times than the release; give it in those of the release, "
            "or give the dataset and the defence that made the release."
        )
    return given, truth


def _name_attacks(attacks: Iterable[Attack] | None) -> list[Attempt]:
    chosen = [kind() for kind in ATTACKS.values()] if attacks is None else list(attacks)
    if not chosen:
        raise InvalidSetting("There is no attack to audit with; give at least one, or None for all.")
    names = {kind: name for name, kind in ATTACKS.items()}
    found: dict[str, Attempt] = {}
    for attack in chosen:
        if not isinstance(attack, Attack):
            raise InvalidSetting(
                f"{attack!r} is not an attack: it must be an object of a subclass of rekindle.Attack."
            )
        name = base = names.get(type(attack), type(attack).__name__)
        number = 1
        while name in found or name in (*REFERENCES, PERFECT):
            number += 1
            name = f"{base} {number}"
        found[name] = Attempt(name, attack)
    return list(found.values())


def _choose(
    given: Counts | Release, truth: Trajectories | None, defences: Iterable[Defence] | None
) -> tuple[list[Defence], dict[str, str]]:
    """Try every defence once before hours of work, and set aside those that would leave nothing."""
    chosen: list[Defence] = []
    left_out: dict[str, str] = {}
    wanted = default_defences(given, truth) if defences is None else list(defences)
    for defence in wanted:
        if not isinstance(defence, Defence):
            raise InvalidSetting(
                f"{defence!r} is not a defence: it must be an object of a subclass of rekindle.Defence."
            )
        defence = defence.seeded(0)
        try:
            defence(people_or_data(given, truth, defence))
        except RekindleError as error:
            if defences is not None and not isinstance(error, NothingLeft):
                raise
            left_out[defence.label] = str(error)
            continue
        if any(defence.describe() == one.describe() for one in chosen):
            raise InvalidSetting(f"The defence {defence.describe()} is listed twice.")
        chosen.append(defence)
    return chosen, left_out


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is to be done."""

    given: Counts | Release
    truth: Trajectories | None
    attempts: list[Attempt]
    defences: Sequence[Defence | None]
    seeds: int
    people: int | None

    def carry_out(self, store: Store, workers: Any, progress: Progress | None) -> _Findings:
        named = [attempt.name for attempt in self.attempts]
        pairs = self._pairs()
        releases = len(self.defences) * self.seeds
        total, done = releases * (1 + len(named)) + len(pairs), 0

        def finished() -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, total)

        if progress is not None:
            progress(0, total)
        given, truth = digest(self.given), digest(self.truth)
        publishing = {
            (at, seed): Task(
                (given, truth, _identity(defence, seed), self.people),
                publish,
                (self.given, self.truth, defence, seed, self.people),
            )
            for at, defence in enumerate(self.defences)
            for seed in range(self.seeds)
        }
        published = dict(
            zip(publishing, run([*publishing.values()], store=store, workers=workers, finished=finished), strict=True)
        )
        attacking = {}
        for (at, seed), task in publishing.items():
            for attempt in self.attempts:
                keep, growth = at == 0, at == 0 and seed == 0
                attacking[at, seed, attempt.name] = Task(
                    (*task.identity, _identity(attempt, seed), seed, keep, growth),
                    attack_release,
                    (published[at, seed], self.truth, self.defences[at], attempt, seed, keep, growth),
                )
        results = dict(
            zip(attacking, run([*attacking.values()], store=store, workers=workers, finished=finished), strict=True)
        )
        comparing = [
            Task(
                (attacking[(0, one[1], one[0])].identity, attacking[(0, other[1], other[0])].identity),
                compare_recoveries,
                (published[0, 0], results[0, one[1], one[0]], results[0, other[1], other[0]]),
            )
            for one, other in pairs
        ]
        compared = run(comparing, store=store, workers=workers, finished=finished)
        shares: dict[tuple[str, str], list[float]] = {}
        for (one, other), result in zip(pairs, compared, strict=True):
            shares.setdefault((one[0], other[0]), []).append(result.numbers["agreement"])
        agreements = [Agreement(*names, float(np.mean(found)), len(found)) for names, found in shares.items()]
        return _Findings(self, published, results, agreements)

    def _pairs(self) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        """Recoveries to compare: row orders of one attack with its first, and attacks with each other."""
        names = [attempt.name for attempt in self.attempts if attempt.name != PERFECT]
        orders = [((name, 0), (name, seed)) for name in names for seed in range(1, self.seeds)]
        others = [((one, 0), (other, 0)) for at, one in enumerate(names) for other in names[at + 1 :]]
        return orders + others


def _identity(part: Defence | Attempt | None, seed: int) -> Any:
    """What tells a defence or an attack from another: its class, its settings, and its code where it is not ours."""
    if part is None:
        return None
    if isinstance(part, Attempt):
        if part.attack is None:
            return part.name
        kind: type = type(part.attack)
        settings = repr(sorted(part.attack.settings().items()))
    else:
        kind, settings = type(part), repr(part.seeded(seed))
    return f"{kind.__module__}.{kind.__qualname__}", settings, _source(kind)


def _source(kind: type) -> str | None:
    if kind.__module__.startswith("rekindle."):
        return None
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return None


@dataclass(frozen=True, eq=False)
class _Findings:
    """The results of all cells."""

    plan: _Plan
    published: dict[tuple[int, int], Result]
    results: dict[tuple[int, int, str], Result]
    agreements: list[Agreement]

    def gather(self, left_out: dict[str, str]) -> Audit:
        plan = self.plan
        releases = tuple(self._release(at) for at in range(len(plan.defences)))
        strongest = releases[0].strongest
        counts = repaired(self.published[0, 0])
        first = self.results[0, 0, strongest.attack].arrays
        growth = {
            attempt.name: self.results[0, 0, attempt.name].numbers.get("growth", []) for attempt in plan.attempts
        }
        settings = {
            "people": None if plan.truth is None else plan.truth.people,
            "people_known_to_attacker": plan.people,
            "people_in_release": counts.people,
            "steps": plan.given.calendar.steps,
            "calendar": plan.given.calendar.to_json(),
            "locations": len(plan.given.locations),
            "public_locations": plan.given.locations.public,
            "truth": plan.truth is not None,
            "row_orders": plan.seeds,
            "done": [one.to_json() for one in getattr(plan.given, "defences", ())],
            "attacks": {one.name: one.attack.settings() for one in plan.attempts if one.attack is not None},
            "defences": [one.describe() for one in plan.defences if one is not None],
        }
        return Audit(
            verdict=judge(strongest.advantage),
            releases=releases,
            people=self._people(strongest.attack),
            growth={name: tuple(Growth(**one) for one in steps) for name, steps in growth.items() if steps},
            agreements=tuple(self.agreements),
            left_out=left_out,
            settings=settings,
            recovered=Trajectories(first["cells"].astype(np.int32), plan.given.locations, counts.calendar),
            truth=plan.truth,
            matched=first.get("exposure.matched"),
        )

    def _release(self, at: int) -> ReleaseRisk:
        plan = self.plan
        defence = plan.defences[at]
        published = [self.published[at, seed].numbers for seed in range(plan.seeds)]
        use = [numbers["utility"] for numbers in published if numbers["utility"] is not None]
        return ReleaseRisk(
            name=AS_GIVEN if defence is None else defence.describe(),
            label="As given" if defence is None else defence.label,
            withheld=float(np.mean([numbers["withheld"] for numbers in published])),
            people=float(np.mean([numbers["people"] for numbers in published])),
            utility={name: float(np.mean([one[name] for one in use])) for name in use[0]} if use else None,
            attacks={attempt.name: self._risk(at, attempt.name) for attempt in plan.attempts},
        )

    def _table(self, at: int, name: str, field: str) -> NDArray[np.float64]:
        """(orders, people, ...) float64 of one field of the exposure, over all true people."""
        return np.array([self.results[at, seed, name].arrays[f"exposure.{field}"] for seed in range(self.plan.seeds)])

    def _mean(self, at: int, name: str, field: str) -> tuple[float | None, ...]:
        with np.errstate(invalid="ignore"):
            values = np.mean(
                [self.results[at, seed, name].arrays[f"exposure.{field}"] for seed in range(self.plan.seeds)], axis=0
            )
        return tuple(None if math.isnan(value) else float(value) for value in values)

    def _risk(self, at: int, name: str) -> AttackRisk:
        numbers = [self.results[at, seed, name].numbers for seed in range(self.plan.seeds)]
        bare = AttackRisk(
            attack=name,
            people=float(np.mean([one["people"] for one in numbers])),
            uniqueness=tuple(float(value) for value in np.mean([one["uniqueness"] for one in numbers], axis=0)),
        )
        if self.plan.truth is None:
            return bare
        accuracy = self._table(at, name, "accuracy")
        errors = [self.results[at, seed, name].arrays["exposure.error_km"] for seed in range(self.plan.seeds)]
        points = self._table(at, name, "reidentified")
        home, work = (_known(self._table(at, name, field)) for field in ("home", "work"))
        return AttackRisk(
            attack=name,
            people=bare.people,
            uniqueness=bare.uniqueness,
            accuracy=estimate(accuracy),
            by_order=tuple(float(value) for value in accuracy.mean(axis=1)),
            advantage=estimate_advantage(accuracy, self._table(at, "chance", "accuracy")),
            error_km=float(np.nanmean(errors)),
            home=home,
            work=work,
            reidentified=tuple(
                estimate(points[:, :, at]) for at in range(points.shape[2]) if not np.isnan(points[:, :, at]).all()
            ),
            by_hour=self._mean(at, name, "by_hour"),
            by_location=self._mean(at, name, "by_location"),
        )

    def _people(self, strongest: str) -> tuple[PersonRisk, ...]:
        truth = self.plan.truth
        if truth is None:
            return ()

        def mean(name: str, field: str) -> NDArray[np.float64]:
            values = [self.results[0, seed, name].arrays[f"exposure.{field}"] for seed in range(self.plan.seeds)]
            return np.asarray(np.mean(values, axis=0))

        accuracy, chance = mean(strongest, "accuracy"), mean("chance", "accuracy")
        home, work = mean(strongest, "home"), mean(strongest, "work")
        return tuple(
            PersonRisk(
                truth.people_ids[row],
                float(accuracy[row]),
                float(chance[row]),
                None if math.isnan(home[row]) else float(home[row]),
                None if math.isnan(work[row]) else float(work[row]),
            )
            for row in np.argsort(-accuracy, kind="stable")
        )


def _known(table: NDArray[np.float64]) -> Estimate | None:
    return None if np.isnan(table).all() else estimate(table)
