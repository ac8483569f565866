"""The contract suite: what every attack and every defence must fulfil, for those that you write yourself.

>>> import rekindle as rk
>>> from rekindle.testing import check_attack, check_defence
>>> check_attack(rk.Naive(seed=3))
>>> check_defence(rk.Round(to=5))
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import TypedDict

import numpy as np

from rekindle.attacks import Attack, Recovery, Run, resume
from rekindle.defences import Defence
from rekindle.errors import ContractBroken, InvalidData, InvalidSetting, RekindleError, Stopped
from rekindle.model import AWAY, AppliedDefence, Calendar, Counts, Flows, Locations, Release, Trajectories
from rekindle.repairing import repair, repair_flows

__all__ = ["check_attack", "check_defence"]


class _Flows(TypedDict, total=False):
    """What `recover` and `feed` are given beside the counts."""

    flows: Flows


def check_attack(attack: Attack, counts: Counts | None = None, flows: Flows | None = None) -> None:
    """Check that an attack does what every attack must do; raise `ContractBroken` where it does not.

    It must leave its input unchanged, meet the counts and the number of people away at every step, give the same result each
    time and however the days are fed, take in people who turn up later, stop when it is asked to, and resume from what it
    saved. One that takes flows must do the same with flows, and keep them.

    Parameters
    ----------
    attack
        The attack, with its settings.
    counts
        At least three days to try it on; by default those of a few people who mostly stay where they are, and then of the
        same people where they come and go.
    flows
        The flows of the same steps; where there are no counts either, those of the same few people.
    """
    if not isinstance(attack, Attack):
        raise InvalidSetting(f"`attack` is {attack!r}; give an attack, such as rekindle.Enhanced().")
    if counts is not None:
        _check_attack(attack, counts, flows)
        return
    for truth in (_small_truth(), _small_truth(away=True)):
        _check_attack(attack, truth.counts(), None)
        if attack.takes_flows:
            _check_attack(attack, truth.counts(), truth.flows())
        else:
            _check_refusal(attack, truth)


def _check_refusal(attack: Attack, truth: Trajectories) -> None:
    try:
        attack.recover(flows=truth.flows())
    except RekindleError:
        return
    raise ContractBroken(f"{type(attack).__name__} takes flows, which it says it does not.")


def _check_attack(attack: Attack, counts: Counts, flows: Flows | None) -> None:
    if counts.calendar.number_of_days < 3:
        raise InvalidData(f"`counts` must have at least 3 days, but has {counts.calendar.number_of_days}.")
    name = type(attack).__name__
    before = counts.values.copy()
    given: _Flows = {} if flows is None else {"flows": flows}
    whole = attack.recover(counts, **given)
    _require(np.array_equal(counts.values, before), f"{name} changes the counts that it is given.")
    _require(
        whole.trajectories.locations == counts.locations, f"{name} gives other locations than those of the counts."
    )
    _require(whole.trajectories.counts() == counts, f"{name} does not meet the counts.")
    _require(_same(attack.recover(counts, **given), whole), f"{name} gives another result when it is run again.")
    _require(attack.memory_bytes(counts) > 0, f"{name} needs no memory, it says.")
    _require(attack.work(counts) > 0, f"{name} takes no time, it says.")
    if flows is not None:
        _require(whole.trajectories.flows() == flows.with_stayers(counts), f"{name} does not keep the flows.")

    days = list(counts.days())
    run = _started(attack, counts)
    _require(run.trajectories().steps == 0, f"{name} knows trajectories before it was fed.")
    for day in days:
        run.feed(day, **given)
    _require(_same(run.recovery(), whole), f"{name} gives another result when it is fed day by day.")
    endless = attack.start(
        counts.locations, Calendar(counts.calendar.start, counts.calendar.step), people=counts.people
    )
    endless.feed(counts, **given)
    _require(_same(endless.recovery(), whole), f"{name} gives another result with a calendar that has no end.")

    _check_growing(attack, counts, flows)
    _check_saving(attack, counts, whole, given)
    _check_stopping(attack, counts, given)


def _check_growing(attack: Attack, counts: Counts, flows: Flows | None) -> None:
    """People who turn up later were away before: the first day is counted without them."""
    more = counts.people + 2
    first, rest = counts.part(slice(*counts.calendar.day(0).indices(counts.steps)[:2])), counts.calendar.day(0).stop
    early: _Flows = {}
    given: _Flows = {}
    if flows is not None:
        part = flows.part(slice(0, rest))
        columns = (part.step, part.origin, part.destination, part.count)
        early = {"flows": Flows(*columns, part.locations, part.calendar, stayers=part.stayers)}
        given = {"flows": flows}
    run = attack.start(counts.locations, counts.calendar, people=int(max(1, first.totals.max())))
    run.feed(Counts(first.values, first.locations, first.calendar), **early)
    later = counts.part(slice(rest, counts.steps))
    run.feed(Counts(later.values, later.locations, later.calendar, more), **given)
    known = attack.start(counts.locations, counts.calendar, people=more)
    known.feed(counts, **given)
    name = type(attack).__name__
    _require(run.people == more, f"{name} does not take in people who turn up later.")
    _require(
        _same(run.recovery(), known.recovery()),
        f"{name} gives another result when people turn up later than when they were known from the start.",
    )


def _check_saving(attack: Attack, counts: Counts, whole: Recovery, given: _Flows) -> None:
    name = type(attack).__name__
    days = list(counts.days())
    run = _started(attack, counts)
    run.feed(days[0], **given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        run.save(path)
        again = resume(path, attack=attack)
    _require(again.days_done == 1, f"{name} resumes after {again.days_done} days; one was saved.")
    for day in days[1:]:
        again.feed(day, **given)
    _require(_same(again.recovery(), whole), f"{name} gives another result when it is saved and resumed.")


def _check_stopping(attack: Attack, counts: Counts, given: _Flows) -> None:
    name = type(attack).__name__
    run = _started(attack, counts)
    run.feed(next(counts.days()), **given)
    run.stop()
    kept = run.trajectories()
    _require(run.stopped, f"{name} does not know that it was stopped.")
    _require(kept.counts() == counts.part(slice(0, kept.steps)), f"{name} loses the counts when it is stopped.")
    try:
        run.feed(counts.part(slice(kept.steps, counts.steps)), **given)
    except Stopped:
        return
    raise ContractBroken(f"{name} can still be fed after it was stopped.")


def check_defence(defence: Defence, truth: Trajectories | None = None) -> None:
    """Check that a defence does what every defence must do; raise `ContractBroken` where it does not.

    It must leave its input unchanged, give the same release for the same seed, bring the truth to the locations and steps of
    the release, with who is away and what was observed, say truthfully what it did, take counts and flows, and leave a release that can be repaired.

    Parameters
    ----------
    defence
        The defence, with its settings.
    truth
        The people to try it on; by default a few who mostly stay where they are, and the same who come and go.
    """
    if not isinstance(defence, Defence):
        raise InvalidSetting(f"`defence` is {defence!r}; give a defence, such as rekindle.Suppress(below=10).")
    if truth is None:
        check_defence(defence, _small_truth())
        truth = _partly_observed(_small_truth(away=True))
    name = type(defence).__name__
    cells, counts = truth.cells.copy(), truth.counts()
    values = counts.values.copy()
    release = defence.seeded(5)(truth)
    _require(np.array_equal(truth.cells, cells), f"{name} changes the people that it is given.")
    _require(defence.seeded(5)(truth) == release, f"{name} gives another release for the same seed.")
    if not defence.needs_people:
        for data in (counts, Release.of(counts)):
            _require(defence.seeded(5)(data) == release, f"{name} gives another release for counts than for people.")
        _require(np.array_equal(counts.values, values), f"{name} changes the counts that it is given.")

    coarse = defence.seeded(5).coarsen(truth)
    _require(coarse.locations == release.locations, f"{name} publishes other locations than `coarsen` gives.")
    _require(coarse.calendar == release.calendar, f"{name} publishes other steps than `coarsen` gives.")
    _require(
        defence.calendar(truth.calendar) == release.calendar, f"{name} publishes other steps than `calendar` says."
    )
    _require(set(coarse.people_ids) <= set(truth.people_ids), f"{name} makes people up in `coarsen`.")
    kept = (coarse.observed is None) == (truth.observed is None)
    _require(kept, f"{name} loses in `coarsen` which points were observed.")
    if defence.exact:
        shown = ~release.withheld
        exact = np.array_equal(release.values[shown], coarse.counts().values[shown])
        _require(exact, f"{name} says that it is exact, but publishes other numbers.")

    try:
        flows = defence.seeded(5).of_flows(truth)
    except InvalidData as error:
        raise ContractBroken(f"{name} does not take flows: {error} Give `release.with_values(...)`.") from None
    _require(defence.seeded(5).of_flows(truth) == flows, f"{name} gives another release of flows for the same seed.")
    if defence.exact:
        shown, true = ~flows.withheld, Release.of(coarse.flows())
        exact = np.array_equal(flows.values[shown], true.values[shown]) and np.array_equal(
            np.asarray(flows.pairs), np.asarray(true.pairs)
        )
        _require(exact, f"{name} says that it is exact, but publishes other flows.")
    fitting = repair_flows(flows, coarse.people)
    _require(fitting.calendar == coarse.calendar, f"{name} publishes flows of other steps than `coarsen` gives.")

    stated_at_all = bool(release.defences) or np.array_equal(release.values, counts.values)
    _require(stated_at_all, f"{name} is not stated by its release.")
    stated = [AppliedDefence.from_json(json.loads(json.dumps(one.to_json()))) for one in release.defences]
    _require(tuple(stated) == tuple(release.defences), f"{name} cannot be written as JSON and read again.")
    _require(not any("seed" in one.settings for one in stated), f"{name} publishes its seed.")
    _require(bool(defence.label) and "seed" not in defence.describe(), f"{name} has no label, or shows its seed.")
    _require(repair(release, truth.people).people == truth.people, f"{name} cannot be repaired.")


def _require(fulfilled: bool, problem: str) -> None:
    if not fulfilled:
        raise ContractBroken(problem)


def _started(attack: Attack, counts: Counts) -> Run:
    return attack.start(counts.locations, counts.calendar, people=counts.people)


def _same(one: Recovery, other: Recovery) -> bool:
    """Whether two recoveries say the same, to the last bit."""
    if one.trajectories != other.trajectories or (one.confidence is None) != (other.confidence is None):
        return False
    if one.confidence is not None and other.confidence is not None:
        return np.array_equal(one.confidence, other.confidence) and _same(
            dataclasses.replace(one, confidence=None), dataclasses.replace(other, confidence=None)
        )
    these, those = one.details.arrays(), other.details.arrays()
    return these.keys() == those.keys() and all(np.array_equal(these[n], those[n], equal_nan=True) for n in these)


def _partly_observed(truth: Trajectories) -> Trajectories:
    """The same people, some of whose points were filled in."""
    observed = (truth.cells != AWAY) & (np.random.default_rng(2).random(truth.cells.shape) < 0.8)
    return Trajectories(truth.cells, truth.locations, truth.calendar, truth.people_ids, observed)


def _small_truth(*, away: bool = False) -> Trajectories:
    """A few people on a small grid, from 04:00 on, over six days of which the first and the last are short."""
    rng = np.random.default_rng(1)
    people, side, steps = 12, 3, 70
    cells = np.empty((people, steps), np.int64)
    cells[:, 0] = rng.integers(0, side**2, people)
    for step in range(1, steps):
        moves = rng.random(people) > 0.7
        cells[:, step] = np.where(moves, rng.integers(0, side**2, people), cells[:, step - 1])
    if away:
        cells[rng.random(cells.shape) < 0.2] = AWAY
        cells[:4, 5:40] = AWAY  # longer than a day
        cells[:, 20:22] = AWAY  # nobody at all
    xy = np.array([(at % side + 0.5, at // side + 0.5) for at in range(side**2)])
    return Trajectories(cells, Locations(xy), Calendar("2024-03-01 04:00", "2h", steps))
