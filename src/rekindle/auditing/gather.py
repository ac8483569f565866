"""From the results of all tasks to what the audit says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks import Attack, OtherTraces
from rekindle.attacks.priors import KnowingPeople
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
    WindowRisk,
)
from rekindle.auditing.risk import (
    Estimate,
    clearly_above_chance,
    estimate,
    estimate_advantage,
    estimate_exposed,
    judge,
)
from rekindle.auditing.stages import PRESENCE, TOGETHER, Findings, Tried
from rekindle.auditing.tasks import Result, counts_of
from rekindle.defences import Defence
from rekindle.errors import InvalidSetting
from rekindle.evaluation import KNOWN_POINTS
from rekindle.membership import Membership
from rekindle.model import AWAY, Counts, Trajectories
from rekindle.model.calendar import format_step

Floats = NDArray[np.float64]

AS_GIVEN = "as given"

MOSTLY_OBSERVED = 0.5
"""The share of recorded points below which the audit warns."""

PeopleFrom = Literal["given", "truth", "counts", "largest total", "estimate"]
"""Where the number of people comes from: it was set; the truth says it; every step has the same total (or a larger number was
given with the counts); the largest total of exact numbers; an estimate from numbers that are not exact."""


def gather(found: Findings) -> Audit:
    """Put the results together, as far as they are there; something must be known of the release as given."""
    plan = found.plan
    known = _people_from(found) in ("given", "truth", "counts")
    releases = tuple(_release(one, known) for one in found.releases.values() if one.can_be_shown)
    strongest, exposed = releases[0].strongest, releases[0].exposed
    first = found.given.best(strongest.attack)[0]
    people = () if exposed is None else (exposed.half.people, exposed.half.of)
    digest = hashlib.sha256(" ".join(part or "-" for part in found.digests).encode()).hexdigest()
    return Audit(
        verdict=judge(strongest.advantage, *people),
        releases=releases,
        people=_people(found.given, strongest.attack),
        growth=_growth(found),
        agreements=_agreements(found),
        left_out=found.left_out,
        settings=_settings(found),
        recovered=Trajectories(first.arrays["cells"].astype(np.int32), plan.given.locations, plan.sized.calendar),
        truth=plan.truth,
        matched=first.arrays.get("matched"),
        warnings=tuple(_warnings(found)),
        identity=Identity(name=plan.name, made=now(), digest=digest, command=plan.command),
        omitted=found.omitted,
        unfinished=tuple(_unfinished(found)),
        windows=tuple(_windows(found)),
        gap=max((one.numbers.get("gap") or 0.0 for one in found.results), default=0.0),
    )


def _windows(found: Findings) -> Iterator[WindowRisk]:
    """What is found by window: in flows whichever reading finds more, all windows, one alone, or the counts that it adds up to."""
    accuracy = {key: float(np.nanmean(one.arrays["accuracy"])) for key, one in found.windows.items()}
    for (window, kind, label), share in accuracy.items():
        if kind not in ("counts", PRESENCE):
            alone = "counts" if label == "As given" else PRESENCE  # exact flows add up to the exact counts
            share = max(share, *(accuracy.get((window, read, label), 0.0) for read in ("flows", alone)))
        if kind != PRESENCE:
            yield WindowRisk(format_step(window), kind, label, share)


def _unfinished(found: Findings) -> Iterator[str]:
    """What is planned and not done, in sentences."""
    if found.runner is None:
        return
    yield f"This audit is not finished: {found.runner.done} of about {found.runner.tasks} tasks are done."
    for one in found.releases.values():
        names = list(dict.fromkeys(name for _, name, _ in one.wanted))
        of = {name: [key in one.results for key in one.wanted if key[1] == name] for name in names}
        behind = [f"{name} ({sum(done)} of {len(done)})" for name, done in of.items() if not all(done)]
        if not names:
            yield f"{one.label}: not tried yet."
        elif behind:
            yield f"{one.label}: not finished are {', '.join(behind)}."


def _agreements(found: Findings) -> tuple[Agreement, ...]:
    shares: dict[tuple[str, str], list[float]] = {}
    for ((one, _), (other, _)), result in found.compared.items():
        shares.setdefault((one, other), []).append(result.numbers["agreement"])
    return tuple(Agreement(*names, float(np.mean(several)), len(several)) for names, several in shares.items())


def _settings(found: Findings) -> dict[str, Any]:
    plan, people, source = found.plan, found.given.draws[0].people, _people_from(found)
    return {
        "people": None if plan.truth is None else plan.truth.people,
        "people_known_to_attacker": people if source in ("given", "truth", "counts") else None,
        "people_in_release": people,
        "people_from": source,
        "totals": _totals(found),
        "observed": _observed(plan.truth),
        "assumed": list(_assumed(found)),
        "steps": plan.given.calendar.steps,
        "calendar": plan.given.calendar.to_json(),
        "locations": len(plan.given.locations),
        "public_locations": plan.given.locations.public,
        "release": "both" if plan.with_counts else "flows" if plan.of_flows else "counts",
        "truth": plan.truth is not None,
        "read_as": plan.note,
        "row_orders": plan.seeds,
        "seed": plan.first_seed,
        "done": [one.to_json() for one in getattr(plan.given, "defences", ())],
        "attacks": {name: attack.settings() for name, attack in (plan.attacks | plan.informed).items()},
        "thorough": plan.thorough,
        "defences": [one.describe() for one in _applied(found)],
    }


def _people_from(found: Findings) -> PeopleFrom:
    plan = found.plan
    if plan.people is not None:
        return "given"
    if plan.truth is not None:
        return "truth"
    if isinstance(plan.given, Counts) and (np.ptp(plan.given.totals) == 0 or plan.given.away.min() > 0):
        return "counts"
    return "largest total" if found.given.draws[0].exact else "estimate"


def _totals(found: Findings) -> list[int]:
    """The fewest and the most people who are counted at a step of the release as given, as the attacker takes it."""
    totals = counts_of(found.given.counts(0, found.given.kept[0])).totals
    return [int(totals.min()), int(totals.max())]


def _assumed(found: Findings) -> Iterator[str]:
    """What was taken to be so of the people in the release as given, in sentences."""
    published, (fewest, most) = found.given.draws[0], _totals(found)
    people, plan = published.people, found.plan
    if plan.of_flows:
        window = format_step(plan.given.calendar.step)
        beside = ", with the counts" if plan.with_counts else ""
        yield f"Flows are published, of windows of {window}{beside}: the points are people when a window begins or ends."
    if plan.longer:
        lengths = " and ".join(format_step(one.window) for one in plan.longer)
        yield (
            f"Flows over {lengths} are published too. Attacks are tried with all windows together ('{TOGETHER}') and with the shortest "
            "alone; the stronger counts."
        )
    yield {
        "given": f"The attacker is assumed to know that there are {people:,} people, as was set.",
        "truth": f"The attacker is assumed to know that there are {people:,} people, as in the truth.",
        "counts": f"The counts say that there are {people:,} people.",
        "largest total": f"The number of people is not known: it is taken to be {people:,}, the largest total of a "
        "step. If people come and go so that not all are ever counted at once, there are more of them.",
        "estimate": f"The number of people is not known, and the numbers are not exact: it is estimated at {people:,}.",
    }[_people_from(found)]
    if fewest < people:
        how = "are counted" if published.exact else "are estimated to be counted"
        yield f"At a step, from {fewest:,} to {most:,} of them {how}; the others are taken to be away."


def _observed(truth: Trajectories | None) -> float | None:
    """The share of the true points that were recorded rather than filled in; None where the truth does not say."""
    if truth is None or truth.observed is None:
        return None
    return float(truth.observed.sum() / max((truth.cells != AWAY).sum(), 1))


def _warnings(found: Findings) -> Iterator[str]:
    observed = _observed(found.plan.truth)
    if observed is not None and observed < MOSTLY_OBSERVED:
        yield (
            f"{1 - observed:.0%} of the points of the truth were filled in, not recorded. An accuracy over all points is then "
            "mostly one of the filling, which moves less than people do; look at the accuracy at recorded points. Prepare "
            "the data such that only shorter gaps are filled: people are then away where nothing is known about them."
        )
    noisy = [one.label for one in _applied(found) if one.adds_noise]
    if noisy and not found.plan.given.locations.public:
        yield (
            f"Noise was tried ({'; '.join(noisy)}) on locations that nobody declared public. If the list of locations was "
            "made from the data, it reveals that somebody was there, and noise on the numbers does not hide that: its epsilon then promises too much."
        )
    fewer = [one.label for one in found.releases.values() if len(one.draws[0].longer) < len(found.plan.longer)]
    if fewer:
        yield (
            f"Tried without some of the longer windows, which the defence does not leave beside the shortest: {'; '.join(fewer)}. If these windows are published anyway, an attacker may find more than is said here."
        )

    for name, attack in found.plan.informed.items():
        prior = getattr(attack.attack if isinstance(attack, KnowingPeople) else attack, "prior", None)
        if not isinstance(prior, OtherTraces) or found.plan.truth is None:
            continue
        attacked, steps = _attacked(prior.trajectories, found.plan.truth)
        if attacked:
            number = "1 is" if attacked == 1 else f"{attacked:,} are"
            yield (
                f"Of the {prior.trajectories.people:,} traces that “{name}” learns from, {number} of people who are attacked: the path "
                f"is the same at all {steps:,} common steps. What it finds may be more than traces of strangers would give away; leave "
                "these people out of the traces."
            )


def _attacked(traces: Trajectories, truth: Trajectories) -> tuple[int, int]:
    """How many traces are paths of the people themselves, and how many steps both have; those that never move there do not count."""
    calendar, step = traces.calendar, truth.calendar.step
    offset, rest = divmod(truth.calendar.start - calendar.start, step)
    begin, end = max(0, offset), min(traces.steps, offset + truth.steps)
    if rest or calendar.step != step or traces.locations != truth.locations or begin >= end:
        return 0, 0

    def paths(cells: NDArray[np.integer]) -> Iterator[bytes]:
        for row in cells:
            there = row[row != AWAY]
            if len(there) and (there != there[0]).any():
                yield hashlib.sha256(row.astype(np.int32).tobytes()).digest()

    people = set(paths(truth.cells[:, begin - offset : end - offset]))
    return sum(path in people for path in paths(traces.cells[:, begin:end])), end - begin


def _applied(found: Findings) -> list[Defence]:
    return [one.defence for one in found.releases.values() if one.defence is not None]


def _growth(found: Findings) -> dict[str, tuple[Growth, ...]]:
    truth, given = found.plan.truth, found.given
    if truth is None or not found.plan.thorough:
        return {}
    names = list(dict.fromkeys(name for name, _ in found.grown)) or dict.fromkeys(("chance", given.strongest[0]))
    whole = truth.calendar.number_of_days
    return {
        name: (
            *(_grown(days, one.arrays) for (of, days), one in found.grown.items() if of == name),
            _grown(whole, given.best(name)[0].arrays),
        )
        for name in names
    }


def _grown(days: int, exposure: Mapping[str, NDArray[Any]]) -> Growth:
    reidentified = exposure["reidentified"]
    told: NDArray[np.bool_] = np.atleast_1d((~np.isnan(reidentified)).any(axis=0))
    four = max(at for at, points in enumerate(KNOWN_POINTS) if points <= 4 and told[at])
    home = None if np.isnan(exposure["home"]).all() else float(np.nanmean(exposure["home"]))
    return Growth(days, float(np.nanmean(exposure["accuracy"])), home, float(np.nanmean(reidentified[:, four])))


def _release(one: Tried, people_known: bool) -> ReleaseRisk:
    plan, defence = one.plan, one.defence
    use = [draw.utility for draw in one.draws if draw.utility is not None]
    included = [1.0 if draw.rows is None or plan.truth is None else len(draw.rows) for draw in one.draws]
    return ReleaseRisk(
        name=AS_GIVEN if defence is None else defence.describe(),
        label=one.label,
        withheld=float(np.mean([float(draw.release.withheld.mean()) for draw in one.draws])),
        people=float(np.mean([draw.people for draw in one.draws])),
        utility={name: float(np.mean([each[name] for each in use])) for name in use[0]} if use else None,
        attacks={name: _risk(one, name) for name in one.attempts_done},
        included=float(np.mean(included) / (1 if plan.truth is None else plan.truth.people)),
        people_known=people_known,
        guessed=_guessed(one),
        repairs=one.repairs,
        membership={
            method: result.numbers["reason"] if "reason" in result.numbers else Membership.from_json(result.numbers)
            for method, result in one.membership.items()
        },
    )


def _table(one: Tried, results: Sequence[Result], field: str) -> Floats:
    """(orders, people, ...) float64 of a field of the exposure, of the `_counted` people."""
    everyone, arrays = _counted(one, results), [each.arrays[field] for each in results]
    table = np.full((len(results), len(everyone), *arrays[0].shape[1:]), np.nan)
    for order, (each, values) in enumerate(zip(results, arrays, strict=True)):
        rows, counted = one.draws[order].rows, each.arrays["points"] > 0
        if rows is not None:
            table[order, np.searchsorted(everyone, rows[counted])] = values[counted]
    return table


def _counted(one: Tried, results: Sequence[Result]) -> NDArray[np.int64]:
    """Which of all true people are counted in any draw of a release: (people,) int64. Of the others there is no risk."""
    drawn = zip([draw.rows for draw in one.draws], results, strict=False)
    return np.unique(np.concatenate([rows[each.arrays["points"] > 0] for rows, each in drawn if rows is not None]))


def _points(one: Tried, results: Sequence[Result], field: str = "points") -> NDArray[np.int64]:
    """At how many steps each of the `_counted` people is counted: (people,) int64; or recorded, `points_observed`."""
    return np.asarray(np.nanmax(_table(one, results, field), axis=0), dtype=np.int64)


def _risk(one: Tried, name: str) -> AttackRisk:
    results = one.best(name)
    numbers = [each.numbers for each in results]
    attempt = next(attempt for attempt in one.plan.attempts if attempt.name == name)
    sure = [each["sure"] for each in numbers if "sure" in each]
    seconds = [each["seconds"] for each in numbers if "seconds" in each]
    plain: dict[str, Any] = {
        "attack": name,
        "people": float(np.mean([each["people"] for each in numbers])),
        "uniqueness": tuple(float(value) for value in np.mean([each["uniqueness"] for each in numbers], axis=0)),
        "repair": one.best_repair(name),
        "seconds": float(np.mean(seconds)) if seconds else None,
        "knows": attempt.knows,
        "confidence": float(np.mean([each["mean"] for each in sure])) if sure else None,
        "claimed": float(np.mean([each["claimed"] for each in sure])) if sure else None,
    }
    if one.plan.truth is None:
        return AttackRisk(**plain)
    fields = ("accuracy", "error_km", "home", "work", "reidentified", "learnt", "accuracy_observed")
    accuracy, errors, home, work, reidentified, learnt, observed = (_table(one, results, field) for field in fields)
    chance = _chance(one, results, named=isinstance(attempt.attack, Attack) and attempt.attack.named)
    points = _points(one, results)
    return AttackRisk(
        **plain,
        accuracy=estimate(accuracy, points),
        chance=estimate(chance, points).value,
        by_order=tuple(estimate(order[None], points).value for order in accuracy),
        accuracy_observed=_known(observed, _points(one, results, "points_observed")),
        point_precision=_point_precision(results),
        advantage=estimate_advantage(accuracy, chance, points),
        exposed=_exposed_people(accuracy, chance, points),
        error_km=float(np.nanmean(errors)),
        home=_known(home),
        work=_known(work),
        reidentified=tuple(_by_points(reidentified).values()),
        learnt=_by_points(learnt),
        precision=_precision(numbers),
        by_hour=_mean(results, "by_hour"),
        by_location=_mean(results, "by_location"),
    )


def _chance(one: Tried, results: Sequence[Result], *, named: bool) -> Floats:
    """(orders, people) float64: the accuracy of chance for those who are counted in these results.

    Beside an attacker who knew some of the people, it is of the others alone. Beside one who says who is who, it is what a name
    on a path drawn at random is worth: at each step, the share of the people who are where the person is.
    """
    people = _counted(one, results)
    if not named:
        guesses = one.best("chance")[: len(results)]
        return _table(one, guesses, "accuracy")[:, np.isin(_counted(one, guesses), people)]
    truth, rows = one.draws[0].truth, one.draws[0].rows
    if truth is None or rows is None:
        raise InvalidSetting("Nobody can be scored by name without the truth.")
    cells = truth.cells[np.isin(rows, people)]
    together = Trajectories(cells, truth.locations, truth.calendar).counts().values
    share = np.where(cells == AWAY, 0, together[np.arange(truth.steps), cells]) / len(people)
    return np.tile(share.sum(axis=1) / (cells != AWAY).sum(axis=1), (len(results), 1))


def _by_points(table: Floats) -> dict[int, Estimate]:
    """An estimate for each number of known points that anybody has."""
    by_number = zip(KNOWN_POINTS, np.moveaxis(table, -1, 0), strict=True)
    return {number: estimate(each) for number, each in by_number if not np.isnan(each).all()}


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


def _guessed(one: Tried) -> GuessedPeople | None:
    if len(one.guessed) < one.plan.seeds:
        return None
    results = [one.guessed[seed] for seed in range(one.plan.seeds)]
    accuracy, chance = (_table(one, which, "accuracy") for which in (results, one.best("chance")))
    points = _points(one, results)
    return GuessedPeople(
        people=float(np.mean([draw.guess for draw in one.draws])),
        attack=one.strongest[0],
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
    values = np.stack([one.arrays[field] for one in results])
    known = ~np.isnan(values)
    means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return tuple(float(mean) if some else None for mean, some in zip(means, known.any(axis=0), strict=True))


def _point_precision(results: Sequence[Result]) -> float | None:
    """The share of all recovered points that are right, as a mean over the row orders."""
    shares = [
        np.nansum(one.arrays["accuracy"] * one.arrays["points"]) / one.arrays["points_recovered"]
        for one in results
        if one.arrays["points_recovered"] > 0
    ]
    return float(np.mean(shares)) if shares else None


def _people(one: Tried, strongest: str) -> tuple[PersonRisk, ...]:
    truth = one.plan.truth
    if truth is None:
        return ()
    results = one.best(strongest)
    accuracy, home, work = (_table(one, results, field) for field in ("accuracy", "home", "work"))
    chance = _table(one, one.best("chance")[: len(results)], "accuracy")
    mean, rows = accuracy.mean(axis=0), _counted(one, results)
    clear = clearly_above_chance(accuracy, chance, _points(one, results))
    orders = ((accuracy > HALF) & clear).sum(axis=0)
    return tuple(
        PersonRisk(
            person=truth.people_ids[rows[at]],
            accuracy=float(mean[at]),
            chance=float(chance[:, at].mean()),
            home=_found(home[:, at]),
            work=_found(work[:, at]),
            clearly=bool(clear[at]),
            orders=int(orders[at]),
        )
        for at in np.argsort(-mean, kind="stable")
    )


def _found(orders: Floats) -> float | None:
    mean = float(orders.mean())
    return None if math.isnan(mean) else mean


def _known(table: Floats, points: NDArray[np.int64] | None = None) -> Estimate | None:
    return None if np.isnan(table).all() else estimate(table, points)
