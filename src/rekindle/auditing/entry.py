"""The whole audit: from data to what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from rekindle import checks
from rekindle.attacks import ATTACKS, Attack, KnownPeople, Prior
from rekindle.auditing.forecast import STRONGEST_WORK, USUAL_WORK, Forecast, choose, works_of
from rekindle.auditing.gather import gather
from rekindle.auditing.plan import (
    SEEDS,
    Plan,
    alternatives,
    attempts_of,
    built_in,
    default_defences,
    distinct,
    is_of_flows,
    name_of,
    omissions,
    open_data,
)
from rekindle.auditing.results import Audit, Expectation
from rekindle.auditing.similar import people_like
from rekindle.auditing.stages import Findings, carry_out
from rekindle.auditing.store import Store
from rekindle.auditing.tasks import identity
from rekindle.auditing.work import measure_slowness
from rekindle.auditing.workers import OutOfTime, Runner, workers_of
from rekindle.defences import Defence
from rekindle.errors import InvalidData, InvalidSetting, Stopped
from rekindle.membership.infer import METHODS, Method
from rekindle.model import Counts, Dataset, Flows, Release, Trajectories
from rekindle.model.calendar import parse_step
from rekindle.progress import Progress, shown_in_notebooks, within

_PLANNED = 0.8
"""The share of the time there is that a plan may take; it is a rough estimate."""

_USED = 0.95
"""The share of the time there is that tasks may take; the rest is for the report."""

_SHOW_SECONDS = 20
"""How often at most what is known so far is told."""

_SHOW_SHARE = 0.05
"""The share of the time that telling it may take."""

MEMBERSHIP: dict[str, tuple[Method, ...]] = {"none": (), "exact": METHODS[:1], "full": METHODS}


@shown_in_notebooks("Audit")
def audit(
    data: Any,
    *,
    step: str | timedelta | None = None,
    cell_km: float | None = None,
    timezone: str | None = None,
    truth: Trajectories | None = None,
    release: Literal["counts", "flows", "both"] | None = None,
    window: str | timedelta | None = None,
    attacks: Iterable[Attack] | None = None,
    priors: Iterable[Prior] = (),
    defences: Iterable[Defence] | None = None,
    seeds: int | None = None,
    seed: int = 0,
    people: int | None = None,
    membership: Literal["none", "exact", "full"] = "exact",
    thorough: bool | None = None,
    time_budget: str | timedelta | None = None,
    note: str | None = None,
    name: str | None = None,
    command: str | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    announce: Callable[[Forecast], None] | None = None,
    so_far: Callable[[Audit], None] | None = None,
) -> Audit:
    """Try attacks on a release and on what defences would make of it, and say who is exposed.

    Where `attacks`, `defences`, `seeds` or `thorough` are not given, they are chosen by the size of the data, and by that alone,
    such that the audit ends in about 15 minutes on two ordinary cores: `Audit.omitted` says what was left out.

    Parameters
    ----------
    data
        What is to be published: a dataset (with its truth, or without), counts, a release of any kind, or the people
        (`Trajectories`). Or raw points in a data frame, which are prepared first: see `rekindle.prepare.dataset_from_frame`.
    step, cell_km, timezone
        For raw points alone: the interval between steps (by default 10 minutes), the side of a grid cell in km (by default
        1), and the zone whose local time counts, where the times carry none.
    truth
        The people behind a release, in its locations and steps, where `data` does not hold them.
    release
        What of a dataset, or of people, is published: counts, flows, or both. By default what the dataset holds: flows with their
        counts where it has flows, or else counts.
    window
        How long a window of flows is, such as ``"2h"``; by default that of the dataset's flows, or a step. Everything is
        then audited at the moments when windows begin and end. Where a dataset holds several and none is chosen, that is the
        shortest, and attacks are tried on all windows together too.
    attacks
        By default all attacks with their defaults, or with less effort where there are many people.
    priors
        What attackers may know besides the release. For each, the last attack that can use it is tried once more, on the release
        as given, and stands beside the others; the verdict is about attackers who know nothing else.
    defences
        What to try on the data. By default up to eight that suit it; an empty list tries none.
    seeds
        How many row orders, each with its own draw of every random defence. By default up to three.
    seed
        That of the first row order and draw; the others follow it. Other seeds give another audit of the same kind.
    people
        How many people the attacker assumes. By default that is known where the truth is; where
        it is not, it is guessed from the release. What an attacker who has to guess reaches is shown beside it.
    membership
        Whether to test who is in the data at all: not; for someone who knows everyone else ("exact"); or also with the two
        classifiers ("full"), which take minutes and need scikit-learn (extra ``membership``). It needs the truth.
    thorough
        Whether also to try the second best repair of each release, an attacker who has to guess the number of people, and the
        first days alone. By default that depends on the size.
    time_budget
        How long it may take, such as ``"20min"``: what is not given is then chosen by how fast this machine is, the choice is
        kept in `cache` for when the audit is resumed, and when the time is up, the finished tasks make the result
        (`Audit.unfinished` lists the rest).
    note
        How the data was read, such as `Published.note`: shown in the report, and ``read_as`` of the settings.
    name, command
        What the dataset is called, and the command that repeats the audit, for the `Audit.identity`. By default the name is
        what a dataset says of itself (`name` or `source` of its `info`).
    workers
        How many processes; by default one for each core. The numbers do not depend on it.
    cluster
        Address of the scheduler of a Dask cluster, to use instead of this machine's cores.
    cache
        A folder for finished tasks. An audit that was interrupted resumes from there, and one with more attacks, defences
        or seeds does only what is new. It holds recovered paths and each person's exposure: keep it as safe as the truth.
    progress
        Called with the work that is done and with all of it, about in milliseconds of an ordinary core. Without it,
        a notebook shows a line below the cell.
    announce
        Called once before the work begins, with what it will be and take; this needs a second to time the machine.
    so_far
        Called with what is known so far: when the first attacks are done, and then now and again.

    Examples
    --------
    >>> import rekindle as rk
    >>> truth = rk.SyntheticCity(people=20, days=1, step="1h", seed=1).trajectories()
    >>> found = rk.audit(truth, attacks=[rk.Enhanced()], defences=[rk.Suppress(below=3)], seeds=2, workers=1)
    >>> [release.label for release in found.releases]
    ['As given', 'Withhold below 3']
    """
    begin, store = time.monotonic(), Store(cache)
    budget = None if time_budget is None else seconds_of(time_budget)
    if release is not None:
        checks.choice("release", release, ("counts", "flows", "both"))
    for argument, several in {"attacks": attacks, "priors": priors, "defences": defences}.items():
        if several is not None and not isinstance(several, Iterable):
            raise InvalidSetting(f"`{argument}` is {several!r}; give a list, even if it has only one.")
    given, truth = open_data(data, truth, release, window, step=step, cell_km=cell_km, timezone=timezone)
    others = other_windows(data, given)
    longer = tuple(one.with_stayers(data.counts) for one in others if window is None)
    priors = tuple(priors)
    asked = {"attacks": attacks, "defences": defences, "seeds": seeds, "thorough": thorough}
    free = frozenset(setting for setting, value in asked.items() if value is None)
    plan = Plan(
        given=given,
        truth=truth,
        attempts=attempts_of(
            built_in(ATTACKS) if attacks is None else attacks, truth, flows=is_of_flows(given), priors=priors
        ),
        defences=default_defences(given, truth) if defences is None else distinct(defences),
        required=defences is not None,
        seeds=SEEDS if seeds is None else checks.whole("seeds", seeds, least=1),
        people=None if people is None else checks.whole("people", people, least=1),
        membership=MEMBERSHIP[checks.choice("membership", membership, MEMBERSHIP)],
        note=note,
        name=name or name_of(data),
        command=command,
        thorough=thorough is not False,
        first_seed=checks.whole("seed", seed),
        with_counts=isinstance(given, Flows) and release != "flows",
        priors=priors,
        longer=longer,
        unused=tuple(one.window for one in others if window is not None),
    )
    for prior in priors:
        if isinstance(prior, KnownPeople) and not isinstance(given, Counts):
            raise InvalidSetting("Known people can be taken out of exact counts only; see `priors`.")
        _ = prior.learnt  # once, before any task is handed to another process
    plans = alternatives(plan, free) if free else [plan]
    # Without the truth, half of the work is an audit of people drawn like the recovered ones.
    part = 0.5 if truth is None and isinstance(given, Counts) else 1.0
    found, due = Findings(plan), 0.0

    def show() -> None:
        """Tell what is known so far: as soon as there is something, and then not so often that it takes long."""
        nonlocal due
        now = time.monotonic()
        if so_far is not None and now >= due and found.known:
            so_far(gather(found))
            due = now + max(_SHOW_SECONDS, (time.monotonic() - now) / _SHOW_SHARE)

    with suppress(OutOfTime), workers_of(workers, cluster) as where:
        slowness = 1.0
        if budget is not None or announce is not None:
            where.prepare()
            slowness = measure_slowness()
        key = [identity(given), identity(truth), sorted(free)]
        chosen = None if budget is None else store.choice(key)
        if chosen is None:
            if budget is None:
                chosen = choose(plans, part * USUAL_WORK, part * STRONGEST_WORK)
            else:
                left = _PLANNED * (budget - (time.monotonic() - begin)) * where.cores / slowness
                chosen = choose(plans, part * left)
        plan = plans[min(chosen, len(plans) - 1)]
        found = Findings(plan, tuple(omissions(plan, free)))
        if announce is not None:
            here = cluster is None
            announce(
                Forecast.of(plan, where.cores, slowness, here=here, chosen=free, omitted=found.omitted, part=part)
            )
        if budget is not None:
            store.remember(key, chosen)
        until = None if budget is None else begin + _USED * budget
        runner = Runner(
            store, where, within(progress, 0.0, part), expected=works_of(plan), until=until, finished=show
        )
        carry_out(found, runner)
        runner.end()
    if not found.known:
        raise Stopped(
            f"The time was up before anything could be said of the release: `time_budget` is {str(time_budget)!r}. The "
            "tasks that were finished are kept; give it more time."
        )
    result = gather(found)
    if truth is not None or result.unfinished:
        return result

    def audit_similar(people: Trajectories, attack: Attack) -> Audit | None:
        rest = None if budget is None else timedelta(seconds=max(1, int(begin + budget - time.monotonic())))
        with suppress(Stopped):  # the time was up
            return audit(
                people,
                attacks=[attack],
                defences=plan.defences,
                seeds=plan.seeds,
                membership="none",
                thorough=False,
                time_budget=rest,
                workers=workers,
                cluster=cluster,
                cache=cache,
                progress=within(progress, part, 1.0),
            )
        return None

    expected = _expect(plan, result, audit_similar)
    similar = expected.similar
    result = replace(result, expected=expected, gap=max(result.gap, 0.0 if similar is None else similar.gap))
    if progress is not None:
        progress(1, 1)
    return result


def other_windows(data: Any, given: Counts | Flows | Release) -> list[Flows]:
    """The flows in a dataset that are of other windows than those that are attacked, the shortest first."""
    if not isinstance(data, Dataset) or not isinstance(given, Flows):
        return []
    return sorted((one for one in data.flows if one.window != given.window), key=lambda one: one.window)


def _expect(plan: Plan, result: Audit, audit_similar: Callable[[Trajectories, Attack], Audit | None]) -> Expectation:
    """Estimate what the strongest attack finds, where nobody knows the truth."""
    best = result.given.strongest
    attack = next(one.attack for one in plan.attempts if one.name == best.attack)
    similar = small = None
    if isinstance(plan.given, Counts):
        published = plan.given.values[plan.given.values > 0]
        small = float((published <= 2).mean())
        if (people := people_like(result.recovered)) is not None and attack is not None:
            similar = audit_similar(people, attack)
    return Expectation(best.attack, small, best.confidence, best.claimed, similar)


def seconds_of(time_budget: str | timedelta) -> float:
    """Read a time such as "20min"."""
    try:
        seconds = parse_step(time_budget).total_seconds()
    except InvalidData:
        seconds = 0.0
    if seconds <= 0:
        raise InvalidSetting(
            f"`time_budget` is {time_budget!r}; write a whole number and a unit, such as '20min' or '2h'."
        )
    return seconds
