"""From the results of all tasks to what the audit says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.auditing.clock import now
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
    Identity,
    PersonRisk,
    Precision,
    ReleaseRisk,
    Repairs,
)
from rekindle.auditing.risk import Estimate, clearly_above_chance, estimate, estimate_advantage, estimate_exposed
from rekindle.auditing.stages import SCOUT, Findings
from rekindle.auditing.tasks import Result, summary_of
from rekindle.auditing.verdict import judge
from rekindle.defences import Defence
from rekindle.evaluation import KNOWN_POINTS
from rekindle.membership import Membership
from rekindle.model import AWAY, Trajectories

__all__ = ["gather"]

Floats = NDArray[np.float64]

AS_GIVEN = "as given"

MOSTLY_OBSERVED = 0.5
"""The share of recorded points below which the audit warns."""


def gather(found: Findings, *, omitted: Sequence[str] = (), tasks_left: str | None = None) -> Audit:
    """Put the results together, as far as they are there.

    Parameters
    ----------
    found
        The results; something must be known of the release as given.
    omitted
        What the plan left out, in sentences.
    tasks_left
        How many tasks are not done, in a sentence; None where all are.
    """
    plan = found.plan
    releases = tuple(_release(found, at) for at in found.releases_done())
    strongest, exposing = releases[0].strongest, releases[0].exposing
    first = _results(found, 0, strongest.attack)[0]
    people = () if exposing is None or exposing.exposed is None else exposing.exposed.half
    return Audit(
        verdict=judge(strongest.advantage, *((people.people, people.of) if people else ())),
        releases=releases,
        people=_people(found, strongest.attack),
        growth=_growth(found),
        agreements=_agreements(found),
        left_out=found.left_out,
        settings=_settings(found),
        recovered=Trajectories(first.arrays["cells"].astype(np.int32), plan.given.locations, plan.given.calendar),
        truth=plan.truth,
        matched=first.arrays.get("exposure.matched"),
        warnings=tuple(_warnings(found)),
        identity=_identity(found),
        omitted=tuple(omitted),
        unfinished=() if tasks_left is None else (tasks_left, *_unfinished(found)),
    )


def _unfinished(found: Findings) -> Iterable[str]:
    """What is planned and not done, in sentences."""
    plan = found.plan
    for at, defence in enumerate([None, *plan.defences]):
        label = _label(defence)
        if at in found.defences and not (wanted := found.wanted.get(at, [])):
            yield f"{label}: not attacked yet."
        elif at not in found.defences and not (defence and defence.label in found.left_out):
            yield f"{label}: not tried yet."
        elif at in found.defences:
            done = {name: sum(key in found.results for key in wanted if key[1] == name) for _, name, _ in wanted}
            of = {name: sum(key[1] == name for key in wanted) for name in done}
            behind = [f"{name} ({done[name]} of {of[name]})" for name in of if done[name] < of[name]]
            if behind:
                yield f"{label}: not finished are {', '.join(behind)}."


def _agreements(found: Findings) -> tuple[Agreement, ...]:
    shares: dict[tuple[str, str], list[float]] = {}
    for ((one, _), (other, _)), result in found.compared.items():
        shares.setdefault((one, other), []).append(result.numbers["agreement"])
    return tuple(Agreement(*names, float(np.mean(several)), len(several)) for names, several in shares.items())


def _label(defence: Defence | None) -> str:
    return "As given" if defence is None else defence.label


def _identity(found: Findings) -> Identity:
    plan = found.plan
    parts = (found.digest(plan.given), found.digest(plan.truth))
    whole = hashlib.sha256(" ".join(part or "-" for part in parts).encode()).hexdigest()
    return Identity(name=plan.name, made=now(), digest=whole, command=plan.command)


def _settings(found: Findings) -> dict[str, Any]:
    plan = found.plan
    return {
        "people": None if plan.truth is None else plan.truth.people,
        "people_known_to_attacker": found.people((0, 0)) if found.people_known else None,
        "people_in_release": found.people((0, 0)),
        "people_from": found.people_from,
        "totals": _totals(found),
        "observed": _observed(found),
        "assumed": list(_assumed(found)),
        "steps": plan.given.calendar.steps,
        "calendar": plan.given.calendar.to_json(),
        "locations": len(plan.given.locations),
        "public_locations": plan.given.locations.public,
        "truth": plan.truth is not None,
        "read_as": plan.note,
        "row_orders": plan.seeds,
        "seed": plan.first_seed,
        "done": [one.to_json() for one in getattr(plan.given, "defences", ())],
        "attacks": {
            one.name: one.attack.settings()
            for one in plan.attempts
            if one.attack is not None and not one.is_reference
        },
        "thorough": plan.thorough,
        "defences": [one.describe() for one in _applied(found)],
    }


def _totals(found: Findings) -> list[int]:
    """The fewest and the most people who are counted at a step of the release as given, as the attacker takes it."""
    totals = found.counts[(0, 0), found.choices[0].kept[0]].totals
    return [int(totals.min()), int(totals.max())]


def _assumed(found: Findings) -> Iterable[str]:
    """What was taken to be so of the people in the release as given, in sentences."""
    people, (fewest, most) = found.people((0, 0)), _totals(found)
    yield {
        "given": f"The attacker is taken to know that there are {people} people, as was set.",
        "truth": f"The attacker is taken to know that there are {people} people, as the truth says.",
        "counts": f"The counts say that there are {people} people.",
        "largest total": f"Nobody said how many people there are: they are taken to be {people}, the largest total of a "
        "step. If people come and go so that not all are ever counted at once, there are more of them.",
        "estimate": f"Nobody said how many people there are, and the numbers are not exact: they are estimated to be {people}.",
    }[found.people_from]
    if fewest < people:
        how = "are counted" if found.draws[0, 0].exact else "are estimated to be counted"
        yield f"At a step, from {fewest} to {most} of them {how}; the others are taken to be away."


def _observed(found: Findings) -> float | None:
    """The share of the true points that were recorded rather than filled in; None where the truth does not say."""
    truth = found.plan.truth
    if truth is None or truth.observed is None:
        return None
    return float(truth.observed.sum() / max((truth.cells != AWAY).sum(), 1))


def _warnings(found: Findings) -> Iterable[str]:
    observed = _observed(found)
    if observed is not None and observed < MOSTLY_OBSERVED:
        yield (
            f"{1 - observed:.0%} of the points of the truth were filled in, not recorded. An accuracy over all points is then "
            "mostly one of the filling, which moves less than people do; look at the accuracy at recorded points. Prepare "
            "the data with a smaller largest gap (`max_gap`), so that people are away where nothing is known of them."
        )
    noisy = [one.label for one in _applied(found) if one.adds_noise]
    if noisy and not found.plan.given.locations.public:
        yield (
            f"Noise was tried ({'; '.join(noisy)}) on locations that nobody declared public. If the list of locations was "
            "made from the data, it tells that somebody was there, and noise on the numbers does not hide that: its "
            "epsilon then promises too much."
        )


def _applied(found: Findings) -> list[Defence]:
    return [one for _, one in sorted(found.defences.items()) if one is not None]


def _growth(found: Findings) -> dict[str, tuple[Growth, ...]]:
    growth: dict[str, list[Growth]] = {}
    for (name, days), result in sorted(found.grown.items(), key=lambda one: one[0][1]):
        growth.setdefault(name, []).append(Growth(days, **result.numbers))
    truth = found.plan.truth
    if truth is not None and found.plan.thorough:
        for name in growth or dict.fromkeys(("chance", found.strongest(0)[0])):
            arrays = _results(found, 0, name)[0].arrays
            exposure = {field.removeprefix("exposure."): array for field, array in arrays.items()}
            growth.setdefault(name, []).append(Growth(truth.calendar.number_of_days, **summary_of(exposure)))
    return {name: tuple(several) for name, several in growth.items()}


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
        label=_label(defence),
        withheld=float(np.mean([draw.numbers["withheld"] for draw in draws])),
        people=float(np.mean([found.people((at, seed)) for seed in range(plan.seeds)])),
        utility={name: float(np.mean([one[name] for one in use])) for name in use[0]} if use else None,
        attacks={name: _risk(found, at, name) for name in found.attempts_done(at)},
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
    return [found.results[(at, seed), name, repair] for seed in range(found.seeds(at, name, repair))]


def _table(found: Findings, at: int, results: Sequence[Result], field: str) -> Floats:
    """(orders, people, ...) float64 of a field of the exposure, of the `_counted` people."""
    everyone, arrays = _counted(found, at, results), [one.arrays[f"exposure.{field}"] for one in results]
    table = np.full((len(results), len(everyone), *arrays[0].shape[1:]), np.nan)
    for order, (one, values) in enumerate(zip(results, arrays, strict=True)):
        rows, counted = found.draws[at, order].rows, one.arrays["exposure.points"] > 0
        if rows is not None:
            table[order, np.searchsorted(everyone, rows[counted])] = values[counted]
    return table


def _counted(found: Findings, at: int, results: Sequence[Result]) -> NDArray[np.int64]:
    """Which of all true people are counted in any draw of a release: (people,) int64. Of the others there is no risk."""
    return np.unique(
        np.concatenate(
            [
                rows[one.arrays["exposure.points"] > 0]
                for seed, one in enumerate(results)
                if (rows := found.draws[at, seed].rows) is not None
            ]
        )
    )


def _points(found: Findings, at: int, results: Sequence[Result], field: str = "points") -> NDArray[np.int64]:
    """At how many steps each of the `_counted` people is counted: (people,) int64; or recorded, `points_observed`."""
    return np.asarray(np.nanmax(_table(found, at, results, field), axis=0), dtype=np.int64)


def _risk(found: Findings, at: int, name: str) -> AttackRisk:
    results = _results(found, at, name)
    numbers = [one.numbers for one in results]
    plain: dict[str, Any] = {
        "attack": name,
        "people": float(np.mean([one["people"] for one in numbers])),
        "uniqueness": tuple(float(value) for value in np.mean([one["uniqueness"] for one in numbers], axis=0)),
        "repair": found.best_repair(at, name),
        "seconds": float(np.mean(taken))
        if (taken := [one["seconds"] for one in numbers if "seconds" in one])
        else None,
    }
    if sure := [one["sure"] for one in numbers if "sure" in one]:
        plain |= {
            "confidence": float(np.mean([one["mean"] for one in sure])),
            "claimed": float(np.mean([one["claimed"] for one in sure])),
        }
    if found.plan.truth is None:
        return AttackRisk(**plain)
    accuracy, chance, errors, home, work, reidentified, learnt = (
        _table(found, at, which, field)
        for which, field in (
            (results, "accuracy"),
            (_results(found, at, "chance")[: len(results)], "accuracy"),
            *((results, field) for field in ("error_km", "home", "work", "reidentified", "learnt")),
        )
    )
    known = [number for at, number in enumerate(KNOWN_POINTS) if not np.isnan(learnt[:, :, at]).all()]
    points = _points(found, at, results)
    return AttackRisk(
        **plain,
        accuracy=estimate(accuracy, points),
        by_order=tuple(estimate(order[None], points).value for order in accuracy),
        accuracy_observed=_known(
            _table(found, at, results, "accuracy_observed"), _points(found, at, results, "points_observed")
        ),
        point_precision=_point_precision(results),
        advantage=estimate_advantage(accuracy, chance, points),
        exposed=_exposed_people(accuracy, chance, points),
        error_km=float(np.nanmean(errors)),
        home=_known(home),
        work=_known(work),
        reidentified=tuple(
            estimate(reidentified[:, :, at])
            for at in range(len(KNOWN_POINTS))
            if not np.isnan(reidentified[:, :, at]).all()
        ),
        learnt={number: estimate(learnt[:, :, KNOWN_POINTS.index(number)]) for number in known},
        precision=_precision(numbers),
        by_hour=_mean(results, "by_hour"),
        by_location=_mean(results, "by_location"),
    )


def _exposed_people(accuracy: Floats, chance: Floats, steps: NDArray[np.int64]) -> ExposedPeople:
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
    if any((at, seed) not in found.guessed for seed in range(found.plan.seeds)):
        return None
    results = [found.guessed[at, seed] for seed in range(found.plan.seeds)]
    accuracy, chance = (_table(found, at, which, "accuracy") for which in (results, _results(found, at, "chance")))
    points = _points(found, at, results)
    return GuessedPeople(
        people=float(np.mean([found.draws[at, seed].guess for seed in range(found.plan.seeds)])),
        attack=found.strongest(at)[0],
        accuracy=estimate(accuracy, points),
        advantage=estimate_advantage(accuracy, chance, points),
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
    values = np.stack([one.arrays[f"exposure.{field}"] for one in results])
    known = ~np.isnan(values)
    means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return tuple(float(mean) if some else None for mean, some in zip(means, known.any(axis=0), strict=True))


def _point_precision(results: Sequence[Result]) -> float | None:
    """The share of all recovered points that are right, as a mean over the row orders."""
    shares = [
        np.nansum(one.arrays["exposure.accuracy"] * one.arrays["exposure.points"])
        / one.arrays["exposure.points_recovered"]
        for one in results
        if one.arrays["exposure.points_recovered"] > 0
    ]
    return float(np.mean(shares)) if shares else None


def _people(found: Findings, strongest: str) -> tuple[PersonRisk, ...]:
    truth = found.plan.truth
    if truth is None:
        return ()
    results = _results(found, 0, strongest)
    guesses = _results(found, 0, "chance")[: len(results)]
    accuracy, chance = _table(found, 0, results, "accuracy"), _table(found, 0, guesses, "accuracy")
    home, work = (_table(found, 0, results, field).mean(axis=0) for field in ("home", "work"))
    mean, rows = accuracy.mean(axis=0), _counted(found, 0, results)
    clear = clearly_above_chance(accuracy, chance, _points(found, 0, results))
    orders = ((accuracy > HALF) & clear).sum(axis=0)
    return tuple(
        PersonRisk(
            person=truth.people_ids[rows[at]],
            accuracy=float(mean[at]),
            chance=float(chance[:, at].mean()),
            home=None if math.isnan(home[at]) else float(home[at]),
            work=None if math.isnan(work[at]) else float(work[at]),
            clearly=bool(clear[at]),
            orders=int(orders[at]),
        )
        for at in np.argsort(-mean, kind="stable")
    )


def _known(table: Floats, points: NDArray[np.int64] | None = None) -> Estimate | None:
    return None if np.isnan(table).all() else estimate(table, points)
