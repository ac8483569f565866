"""From the results of all tasks to what the audit says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.auditing.results import (
    ALMOST_ALL,
    HALF,
    Agreement,
    AttackRisk,
    Audit,
    Exposed,
    ExposedPeople,
    Growth,
    GuessedPeople,
    PersonRisk,
    Precision,
    ReleaseRisk,
    Repairs,
)
from rekindle.auditing.risk import Estimate, clearly_above_chance, estimate, estimate_advantage, estimate_exposed
from rekindle.auditing.stages import SCOUT, Findings
from rekindle.auditing.tasks import Result
from rekindle.auditing.verdict import judge
from rekindle.evaluation import KNOWN_POINTS
from rekindle.membership import Membership
from rekindle.model import Trajectories

__all__ = ["gather"]

Floats = NDArray[np.float64]

AS_GIVEN = "as given"


def gather(found: Findings) -> Audit:
    """Put the results together."""
    plan = found.plan
    releases = tuple(_release(found, at) for at in range(len(found.defences)))
    strongest, exposing = releases[0].strongest, releases[0].exposing
    first = _results(found, 0, strongest.attack)[0]
    people = () if exposing is None or exposing.exposed is None else exposing.exposed.half
    return Audit(
        verdict=judge(strongest.advantage, *((people.people, people.of) if people else ())),
        releases=releases,
        people=_people(found, strongest.attack),
        growth=_growth(found),
        agreements=tuple(
            Agreement(*names, float(np.mean(several)), len(several)) for names, several in found.agreements.items()
        ),
        left_out=found.left_out,
        settings=_settings(found),
        recovered=Trajectories(first.arrays["cells"].astype(np.int32), plan.given.locations, plan.given.calendar),
        truth=plan.truth,
        matched=first.arrays.get("exposure.matched"),
        warnings=tuple(_warnings(found)),
    )


def _settings(found: Findings) -> dict[str, Any]:
    plan = found.plan
    return {
        "people": None if plan.truth is None else plan.truth.people,
        "people_known_to_attacker": found.people((0, 0)) if found.people_known else None,
        "people_in_release": found.people((0, 0)),
        "steps": plan.given.calendar.steps,
        "calendar": plan.given.calendar.to_json(),
        "locations": len(plan.given.locations),
        "public_locations": plan.given.locations.public,
        "truth": plan.truth is not None,
        "read_as": plan.note,
        "row_orders": plan.seeds,
        "done": [one.to_json() for one in getattr(plan.given, "defences", ())],
        "attacks": {
            one.name: one.attack.settings()
            for one in plan.attempts
            if one.attack is not None and not one.is_reference
        },
        "defences": [one.describe() for one in found.defences if one is not None],
    }


def _warnings(found: Findings) -> Iterable[str]:
    noisy = [one.label for one in found.defences if one is not None and one.adds_noise]
    if noisy and not found.plan.given.locations.public:
        yield (
            f"Noise was tried ({'; '.join(noisy)}) on locations that nobody declared public. If the list of locations was "
            "made from the data, it tells that somebody was there, and noise on the numbers does not hide that: its "
            "epsilon then promises too much."
        )


def _growth(found: Findings) -> dict[str, tuple[Growth, ...]]:
    growth = {}
    for attempt in found.plan.attempts:
        steps = _results(found, 0, attempt.name)[0].numbers.get("growth", [])
        if steps:
            growth[attempt.name] = tuple(Growth(**one) for one in steps)
    return growth


def _release(found: Findings, at: int) -> ReleaseRisk:
    plan, defence, choice = found.plan, found.defences[at], found.choices[at]
    draws = [found.draws[at, seed] for seed in range(plan.seeds)]
    use = [draw.numbers["utility"] for draw in draws if draw.numbers["utility"] is not None]
    repairs = None
    if choice.true_counts is not None:
        repairs = Repairs(SCOUT.name, choice.accuracy, choice.kept, choice.true_counts)
    included = 1.0
    if plan.truth is not None:
        included = float(np.mean([draw.truth.people for draw in draws if draw.truth is not None]) / plan.truth.people)
    return ReleaseRisk(
        name=AS_GIVEN if defence is None else defence.describe(),
        label="As given" if defence is None else defence.label,
        withheld=float(np.mean([draw.numbers["withheld"] for draw in draws])),
        people=float(np.mean([found.people((at, seed)) for seed in range(plan.seeds)])),
        utility={name: float(np.mean([one[name] for one in use])) for name in use[0]} if use else None,
        attacks={attempt.name: _risk(found, at, attempt.name) for attempt in plan.attempts},
        included=included,
        people_known=found.people_known,
        guessed=_guessed(found, at),
        repairs=repairs,
        membership={
            method: result.numbers["reason"] if "reason" in result.numbers else Membership.from_json(result.numbers)
            for (release, method), result in found.membership.items()
            if release == at
        },
    )


def _results(found: Findings, at: int, name: str) -> list[Result]:
    """The results of an attempt on a release with its best repair, by row order."""
    repair = found.best_repair(at, name)
    return [found.results[(at, seed), name, repair] for seed in range(found.plan.seeds)]


def _table(found: Findings, at: int, results: Sequence[Result], field: str) -> Floats:
    """(orders, people, ...) float64 of a field of the exposure; people who were in no draw of the release are left out."""
    arrays = [one.arrays[f"exposure.{field}"] for one in results]
    rows = [row for seed in range(len(results)) if (row := found.draws[at, seed].rows) is not None]
    everyone = np.unique(np.concatenate(rows))
    table = np.full((len(results), len(everyone), *arrays[0].shape[1:]), np.nan)
    for order, (row, values) in enumerate(zip(rows, arrays, strict=True)):
        table[order, np.searchsorted(everyone, row)] = values
    return table


def _risk(found: Findings, at: int, name: str) -> AttackRisk:
    results = _results(found, at, name)
    numbers = [one.numbers for one in results]
    plain: dict[str, Any] = {
        "attack": name,
        "people": float(np.mean([one["people"] for one in numbers])),
        "uniqueness": tuple(float(value) for value in np.mean([one["uniqueness"] for one in numbers], axis=0)),
        "repair": found.best_repair(at, name),
    }
    if found.plan.truth is None:
        return AttackRisk(**plain)
    accuracy, chance, errors, home, work, reidentified, learnt = (
        _table(found, at, which, field)
        for which, field in (
            (results, "accuracy"),
            (_results(found, at, "chance"), "accuracy"),
            *((results, field) for field in ("error_km", "home", "work", "reidentified", "learnt")),
        )
    )
    points = [number for at, number in enumerate(KNOWN_POINTS) if not np.isnan(learnt[:, :, at]).all()]
    return AttackRisk(
        **plain,
        accuracy=estimate(accuracy),
        by_order=tuple(float(value) for value in np.nanmean(accuracy, axis=1)),
        advantage=estimate_advantage(accuracy, chance),
        exposed=_exposed_people(accuracy, chance, found.draws[at, 0].release.steps),
        error_km=float(np.nanmean(errors)),
        home=_known(home),
        work=_known(work),
        reidentified=tuple(
            estimate(reidentified[:, :, at])
            for at in range(len(KNOWN_POINTS))
            if not np.isnan(reidentified[:, :, at]).all()
        ),
        learnt={number: estimate(learnt[:, :, KNOWN_POINTS.index(number)]) for number in points},
        precision=_precision(numbers),
        by_hour=_mean(results, "by_hour"),
        by_location=_mean(results, "by_location"),
    )


def _exposed_people(accuracy: Floats, chance: Floats, steps: int) -> ExposedPeople:
    mean = np.nanmean(accuracy, axis=0)
    clear = clearly_above_chance(accuracy, chance, steps)
    measured = ~np.isnan(accuracy)

    def count(above: float) -> Exposed:
        by_order = (accuracy > above) & clear
        return Exposed(
            above=above,
            people=int((clear & (mean > above)).sum()),
            of=len(mean),
            share=estimate_exposed(accuracy, chance, steps, above),
            by_order=tuple(int(order.sum()) for order in by_order),
            in_every_order=int((by_order == measured).all(axis=0).sum()),
            by_chance=float((chance > above).sum(axis=1).mean()),
        )

    return ExposedPeople(
        half=count(HALF),
        almost_all=count(ALMOST_ALL),
        most=float(mean.max()),
        percentile_99=float(np.quantile(mean, 0.99)),
        clear=tuple(sorted((float(value) for value in mean[clear]), reverse=True)),
    )


def _guessed(found: Findings, at: int) -> GuessedPeople | None:
    if (at, 0) not in found.guessed:
        return None
    results = [found.guessed[at, seed] for seed in range(found.plan.seeds)]
    accuracy, chance = (_table(found, at, which, "accuracy") for which in (results, _results(found, at, "chance")))
    return GuessedPeople(
        people=float(np.mean([found.draws[at, seed].guess for seed in range(found.plan.seeds)])),
        attack=found.strongest(at)[0],
        accuracy=estimate(accuracy),
        advantage=estimate_advantage(accuracy, chance),
    )


def _precision(numbers: Sequence[dict[str, Any]]) -> Precision | None:
    sure = [one["confidence"] for one in numbers if "confidence" in one]
    if not sure:
        return None
    right = [one["claims"]["people_right"] for one in sure if one["claims"]["people_right"] is not None]
    return Precision(
        claimed=tuple(sure[0]["curve"]["claimed"]),
        precision=tuple(float(value) for value in np.mean([one["curve"]["precision"] for one in sure], axis=0)),
        people=float(
            np.mean([one["claims"]["people"] * each["people"] for one, each in zip(sure, numbers, strict=True)])
        ),
        people_right=float(np.mean(right)) if right else None,
    )


def _mean(results: Sequence[Result], field: str) -> tuple[float | None, ...]:
    values = np.mean([one.arrays[f"exposure.{field}"] for one in results], axis=0)
    return tuple(None if math.isnan(value) else float(value) for value in values)


def _people(found: Findings, strongest: str) -> tuple[PersonRisk, ...]:
    truth = found.plan.truth
    if truth is None:
        return ()
    results, guesses = _results(found, 0, strongest), _results(found, 0, "chance")
    accuracy, chance = _table(found, 0, results, "accuracy"), _table(found, 0, guesses, "accuracy")
    home, work = (_table(found, 0, results, field).mean(axis=0) for field in ("home", "work"))
    mean = accuracy.mean(axis=0)
    clear = clearly_above_chance(accuracy, chance, found.draws[0, 0].release.steps)
    orders = ((accuracy > HALF) & clear).sum(axis=0)
    return tuple(
        PersonRisk(
            person=truth.people_ids[row],
            accuracy=float(mean[row]),
            chance=float(chance[:, row].mean()),
            home=None if math.isnan(home[row]) else float(home[row]),
            work=None if math.isnan(work[row]) else float(work[row]),
            clearly=bool(clear[row]),
            orders=int(orders[row]),
        )
        for row in np.argsort(-mean, kind="stable")
    )


def _known(table: Floats) -> Estimate | None:
    return None if np.isnan(table).all() else estimate(table)
