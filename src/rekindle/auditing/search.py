"""The least lossy release under limits: searched with a fast judge, then confirmed with other draws."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from rekindle import checks
from rekindle.attacks import ATTACKS, Attack
from rekindle.auditing.entry import audit, other_windows, seconds_of
from rekindle.auditing.families import Family, families_of
from rekindle.auditing.forecast import USUAL_WORK, Forecast, choose, works_of
from rekindle.auditing.gather import gather
from rekindle.auditing.plan import (
    Plan,
    attempts_of,
    built_in,
    has_effort,
    is_of_flows,
    name_of,
    open_data,
    within_reach,
)
from rekindle.auditing.recommendation import AS_GIVEN, Candidate, Recommendation, judge_release
from rekindle.auditing.results import MEASURES, Audit, Published
from rekindle.auditing.stages import Findings, carry_out
from rekindle.auditing.store import Store
from rekindle.auditing.work import measure_slowness
from rekindle.auditing.workers import OutOfTime, Runner, workers_of
from rekindle.defences import Chain, Defence
from rekindle.errors import InvalidData, RekindleError, Stopped
from rekindle.evaluation import utility
from rekindle.model import Dataset, Flows, Release, Trajectories
from rekindle.model.calendar import format_step
from rekindle.progress import Progress, shown_in_notebooks

_SEARCHED = 0.5
"""The share of the time that the search may take; the rest is for the confirmation."""

_SEARCHED_IN_VAIN = 0.75
"""The same, as long as nothing was found."""

_CONFIRMATIONS = 4
"""How many candidates are confirmed at most."""

_ROUNDS = 3
"""How many settings of a family are tried on average, for the forecast."""

_SEEDS = 2
"""How many row orders and draws the search judges by at most."""

_APART = 1000
"""How far the seeds of each confirmation are from those of the search, and of the one before."""

_ORDINARY_CORES = 2


@shown_in_notebooks("Recommendation")
def recommend(
    data: Any,
    *,
    max_exposed: int = 0,
    max_advantage: float = 0.1,
    max_loss: float = 1.0,
    release: Published | None = None,
    window: str | timedelta | None = None,
    families: Iterable[str | Family] | None = None,
    truth: Trajectories | None = None,
    attacks: Iterable[Attack] | None = None,
    seeds: int | None = None,
    seed: int = 0,
    people: int | None = None,
    membership: Literal["none", "exact", "full"] = "exact",
    time_budget: str | timedelta | None = None,
    name: str | None = None,
    command: str | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    announce: Callable[[Forecast], None] | None = None,
    so_far: Callable[[Recommendation], None] | None = None,
) -> Recommendation:
    """Find the least lossy release within limits of risk.

    Families of defences are searched: by bisection where the risk falls with the strength, from the least lossy setting on
    where it does not. A setting that loses more than one that is known to meet the limits is not tried. What is best is then
    audited with other draws and row orders, and with as much effort as an audit would use; if it does not hold, the search
    goes on without it. The same seed gives the same recommendation; only what is published is drawn afresh.

    Parameters
    ----------
    data
        What is to be published, with its truth: a dataset, or the people; or a table of counts or flows, with `truth`. See `audit`.
    max_exposed
        How many people may be exposed: more than half of their time recovered, clearly above their own chance score, by any
        attack and in any row order or draw.
    max_advantage
        The upper limit that the advantage over chance may have, for every attack.
    max_loss
        The error of the counts (`Utility.count_error`), or of the flows (`Utility.flow_error`), must be below this. 1 is what a
        release without any number has.
    release
        What of a dataset, or of people, is to be published: by default counts, or flows where `window` is given.
    window
        How long a window of flows is, such as ``"2h"``: see `audit`.
    families
        What to search: names from `FAMILIES`, or a `Family` of one's own. By default all that suit the data; noise only
        on counts, and where the locations are public, since it could not be published otherwise.
    truth
        The people, where `data` does not hold them.
    attacks
        Who judges. By default the search is judged by the strongest attacks that the size of the data allows, at low effort,
        and confirmed by those of an audit.
    seeds
        How many row orders and draws confirm. By default as many as an audit takes. The search takes two at most.
    seed
        Of the search.
    people, membership
        As for `audit`; who is in the data at all is tested in the evidence, and does not count for the limits.
    time_budget
        How long it may take, such as ``"20min"``. When half of it is over and something was found, that is confirmed.
    name, command
        For the `Audit.identity` of the evidence.
    workers, cluster, cache
        As for `audit`: a recommendation that was interrupted resumes from `cache`.
    progress
        Called with the work that is done and all that is expected, about in milliseconds of an ordinary core.
    announce
        Called once before the work begins, with about what the search takes.
    so_far
        Called with what is known so far, after each round.

    Notes
    -----
    Choosing epsilon by what attacks find in the truth is outside the proof of differential privacy: the proof holds for
    each release by itself, and the choice reveals something about the data that no budget pays for.

    Examples
    --------
    >>> import rekindle as rk
    >>> truth = rk.SyntheticCity(people=20, days=1, step="1h", seed=1).trajectories()
    >>> found = rk.recommend(truth, max_advantage=0.5, families=["suppress"], attacks=[rk.Enhanced()], seeds=1, workers=1)
    >>> found.evidence.settings["seed"] != found.settings["search"]["seed"]
    True
    """
    begin = time.monotonic()
    if release is not None:
        checks.choice("release", release, tuple(MEASURES))
    if isinstance(data, (Dataset, Trajectories)) and release is None:
        release = "counts" if window is None else "flows"
    given, truth = open_data(data, truth, release, window)
    if truth is None:
        raise InvalidData(
            "Without the truth nobody knows what a release gives away, so none can be recommended; give data that has it."
        )
    budget = None if time_budget is None else seconds_of(time_budget)
    limits = {
        "max_exposed": checks.whole("max_exposed", max_exposed),
        "max_advantage": checks.share("max_advantage", max_advantage),
        "max_loss": checks.positive("max_loss", max_loss),
    }
    attacks = None if attacks is None else list(attacks)
    seeds = None if seeds is None else checks.whole("seeds", seeds, least=1)
    chosen, left_out = families_of(given, truth, families)
    plan = Plan(
        given=given,
        truth=truth,
        attempts=attempts_of(built_in(ATTACKS) if attacks is None else attacks, truth, flows=is_of_flows(given)),
        defences=[one for each in chosen for one in each.defences[:: math.ceil(len(each.defences) / _ROUNDS)]],
        required=False,
        seeds=_SEEDS if seeds is None else min(seeds, _SEEDS),
        people=None if people is None else checks.whole("people", people, least=1),
        name=name or name_of(data),
        command=command,
        thorough=False,
        first_seed=checks.whole("seed", seed),
        unused=tuple(one.window for one in other_windows(data, given)),
    )
    plan = _affordable(plan, attacks is None, budget)
    search = _Search(plan, truth, chosen, left_out, limits, so_far)
    told = _summed(progress)
    with workers_of(workers, cluster) as where:
        if announce is not None:
            where.prepare()
            slowness, here = measure_slowness(), cluster is None
            announce(Forecast.of(plan, where.cores, slowness, here=here, chosen=frozenset(), omitted=()))
        runner = Runner(Store(cache), where, told(0), expected=works_of(plan))
        for number in range(1, _CONFIRMATIONS + 1):
            search.run(runner, begin, budget)
            best = search.best or search.last_resort
            if best is None:
                break
            left = None if budget is None else (budget - (time.monotonic() - begin)) / 2
            try:
                evidence = audit(
                    given,
                    truth=truth,
                    release="flows" if isinstance(given, Flows) else None,
                    attacks=attacks,
                    defences=[] if best.defence is None else [best.defence],
                    seeds=seeds,
                    seed=plan.first_seed + number * _APART,
                    people=people,
                    membership=membership,
                    time_budget=None if left is None else timedelta(seconds=max(left, 1.0)),
                    name=plan.name,
                    command=command,
                    workers=workers,
                    cluster=cluster,
                    cache=cache,
                    progress=told(number),
                )
            except Stopped:
                search.out_of_time = True
                break
            if search.confirm(best, evidence):
                break
        else:
            search.gave_up = True
    return search.result()


def _affordable(plan: Plan, free: bool, budget: float | None) -> Plan:
    """About what the search does: by the size of the data and the time that was asked for, not by the clock."""
    _, able = within_reach(plan.sized)
    fast = tuple(one for one in able if not has_effort(one))[-1:]
    slow = tuple(one for one in able if has_effort(one))
    plans = [
        replace(
            plan,
            attempts=attempts_of(built_in(names, "low"), plan.truth, flows=plan.of_flows) if free else plan.attempts,
            seeds=seeds,
        )
        for names in (fast + slow, fast)
        for seeds in range(plan.seeds, 0, -1)
    ]
    return plans[choose(plans, USUAL_WORK if budget is None else _SEARCHED * _ORDINARY_CORES * budget)]


def _summed(progress: Progress | None) -> Callable[[int], Progress | None]:
    """Give a progress for each part of the work by its number; what is told is the sum of all parts that have begun."""
    parts: dict[int, tuple[int, int]] = {}

    def of(part: int) -> Progress | None:
        def told(done: int, total: int | None) -> None:
            parts[part] = done, total or done
            if progress is not None:
                progress(sum(done for done, _ in parts.values()), sum(total for _, total in parts.values()))

        return None if progress is None else told

    return of


def pick(losses: Sequence[float], verdicts: Mapping[int, bool], below: float, *, falls: bool) -> int | None:
    """What to try next of a family among the settings that lose less than that; None where nothing is left to try.

    Parameters
    ----------
    losses
        Of the settings, from the weakest to the strongest.
    verdicts
        Which of those that were tried meet the limits.
    below, falls
        The limit of the loss, and whether the risk falls with the strength.
    """
    left = [at for at, loss in enumerate(losses) if loss < below and at not in verdicts]
    if not falls:
        return min(left, key=losses.__getitem__, default=None)
    # What fails does so at every weaker setting, too; what meets the limits, at every stronger one.
    weakest = max((at + 1 for at, meets in verdicts.items() if not meets), default=0)
    safe = min((at for at, meets in verdicts.items() if meets and at >= weakest), default=len(losses))
    left = [at for at in left if weakest <= at < safe]
    return left[len(left) // 2] if left else None


class _Search:
    """What was tried, and what to try next."""

    def __init__(
        self,
        plan: Plan,
        people: Trajectories,
        families: Sequence[Family],
        left_out: dict[str, str],
        limits: dict[str, Any],
        so_far: Callable[[Recommendation], None] | None,
    ) -> None:
        self._plan, self._people, self._limits, self._so_far = plan, people, limits, so_far
        self._published: Published = "flows" if plan.of_flows else "counts"
        own = people.flows() if plan.of_flows else people.counts()
        self._true = own if isinstance(plan.given, Release) else plan.given
        self._families, self._left_out = families, dict(left_out)
        self._losses: dict[int, dict[str, tuple[Defence, float]]] = {}
        # By the name of the release; None where nothing was left to attack.
        self._tried: dict[str, Candidate | None] = {}
        self._chosen: Candidate | None = None
        self._evidence: Audit | None = None
        self._failed: list[str] = []
        # The limits of the search; stricter ones where it turns out that its judges find less than those of the evidence.
        self._exposed, self._advantage = limits["max_exposed"], limits["max_advantage"]
        self.out_of_time = self.gave_up = False

    @property
    def tried(self) -> list[Candidate]:
        """All releases that were tried, the least lossy first."""
        return sorted((one for one in self._tried.values() if one is not None), key=lambda one: one.loss)

    @property
    def best(self) -> Candidate | None:
        """The least lossy one that meets the limits, as far as is known."""
        return next((one for one in self.tried if self._passes(one) and one.loss < self._limits["max_loss"]), None)

    @property
    def last_resort(self) -> Candidate | None:
        """The least risky one that meets the limits, where the search asks for more than they do."""
        safe = [one for one in self.tried if one.meets and one.confirmed is not False]
        safe = [one for one in safe if one.loss < self._limits["max_loss"]]
        return min(safe, key=lambda one: (one.advantage.high, one.exposed), default=None)

    def _passes(self, one: Candidate | None) -> bool:
        """Whether a candidate meets the limits of the search and was not refuted."""
        if one is None or one.confirmed is False:
            return False
        return bool(one.exposed <= self._exposed and one.advantage.high <= self._advantage)

    def run(self, runner: Runner, begin: float, budget: float | None) -> None:
        """Try until nothing that could be better is left, or the time is up."""
        if self.out_of_time:
            return
        try:
            # Chains come last: what single defences lose says which of them are worth a try.
            for chains in (False, True):
                while (asked := self._next(chains)) or not self._tried:
                    if budget is not None:
                        runner.until = begin + budget * (_SEARCHED_IN_VAIN if self.best is None else _SEARCHED)
                    self._judge(asked if self._tried else [], runner)
        except OutOfTime:
            self.out_of_time = True

    def _next(self, chains: bool) -> list[tuple[str, Defence]]:
        """What to try next of each family, of chains or of single defences: the name of the family, and the defence."""
        below = self._limits["max_loss"] if self.best is None else self.best.loss
        found = []
        for number, family in enumerate(self._families):
            if any(isinstance(one, Chain) for one in family.defences) is not chains:
                continue
            if number not in self._losses:
                losses = [(one, self._loss(one)) for one in family.defences]
                self._losses[number] = {one.describe(): (one, loss) for one, loss in losses if loss is not None}
            known = self._losses[number]
            verdicts = {at: self._passes(self._tried[name]) for at, name in enumerate(known) if name in self._tried}
            at = pick([loss for _, loss in known.values()], verdicts, below, falls=family.falls)
            found += [] if at is None else [(family.name, list(known.values())[at][0])]
        return found

    def _loss(self, defence: Defence) -> float | None:
        """The error of the counts or flows in the first draw; None where the defence cannot be applied."""
        one = defence.seeded(self._plan.first_seed)
        try:
            release = self._protect(one)
        except RekindleError as error:
            self._left_out[defence.label] = str(error)
            return None
        return utility(self._true, release, scale=one.scale).to_json()[MEASURES[self._published]]

    def _protect(self, defence: Defence) -> Release:
        if isinstance(self._plan.given, Flows):
            return defence.of_flows(self._people)
        return defence(self._people if defence.needs_people else self._plan.given)

    def _judge(self, asked: Sequence[tuple[str, Defence]], runner: Runner) -> None:
        """Attack releases side by side, and keep what was found of each."""
        found = Findings(replace(self._plan, defences=[defence for _, defence in asked]))
        carry_out(found, runner)
        audited = gather(found)
        risks = {one.name: one for one in audited.releases}
        self._tried[audited.given.name] = judge_release(audited.given, AS_GIVEN, None, self._limits, self._published)
        self._left_out |= audited.left_out
        for family, defence in asked:
            risk = risks.get(defence.describe())
            judged = None if risk is None else judge_release(risk, family, defence, self._limits, self._published)
            self._tried[defence.describe()] = judged
        if self._so_far is not None:
            self._so_far(self.result(ended=False))

    def confirm(self, best: Candidate, evidence: Audit) -> bool:
        """Look whether the limits hold with other draws; if not, the search can go on without it."""
        name = AS_GIVEN if best.defence is None else best.defence.describe()
        risk = next((one for one in evidence.releases if one.name == name), None)
        if risk is None:
            self._failed.append(f"{best.label} could not be confirmed: with other draws nothing is left to publish.")
        else:
            again = judge_release(risk, best.family, best.defence, self._limits, self._published)
            if again.meets and not evidence.unfinished and again.loss < self._limits["max_loss"]:
                self._tried[name] = replace(best, confirmed=True)
                self._chosen, self._evidence = replace(again, confirmed=True), evidence
                return True
            self._failed.append(
                f"{best.label} met the limits in the search, but not with other draws and row orders: its upper limit was "
                f"{again.advantage.high:.3f} ({again.attack}), with {again.exposed} people exposed"
                f"{', and the audit was not finished' if evidence.unfinished else ''}."
            )
            self._expect_more(best, again)
        self._tried[name] = replace(best, confirmed=False)
        return False

    def _expect_more(self, searched: Candidate, again: Candidate) -> None:
        """Lower the limits of the search by as much as its judges fell short: the next one should hold."""
        if again.advantage.high > self._limits["max_advantage"]:
            short = min(searched.advantage.high / again.advantage.high, 1.0)
            self._advantage = min(self._advantage, self._limits["max_advantage"] * short)
        if again.exposed > self._limits["max_exposed"]:
            short = min(searched.exposed / again.exposed, 1.0)
            self._exposed = min(self._exposed, math.floor(self._limits["max_exposed"] * short))

    def result(self, *, ended: bool = True) -> Recommendation:
        """What is known."""
        release = None if self._chosen is None else self._publish(self._chosen.defence)
        return Recommendation(
            **self._limits,
            published=self._published,
            chosen=self._chosen,
            release=release,
            evidence=self._evidence,
            tried=tuple(self.tried),
            left_out=dict(self._left_out),
            notes=tuple(self._notes()),
            finished=ended and not self.out_of_time and not self.gave_up,
            settings=self._settings(),
        )

    def _publish(self, defence: Defence | None) -> Release:
        """What to publish, with randomness that nobody can draw again."""
        given = self._plan.given
        if defence is None:
            return given if isinstance(given, Release) else Release.of(given)
        return self._protect(defence.for_publication())

    def _notes(self) -> Iterable[str]:
        yield from self._failed
        if self._plan.unused:
            windows = " and ".join(format_step(one) for one in self._plan.unused)
            yield (
                f"The dataset also publishes flows over {windows}. Together they give away more than one window alone, by which "
                "releases are judged here: audit what you publish together."
            )
        if self.out_of_time:
            yield "The time was up before the search came to its end: something less lossy may meet the limits."
        if self.gave_up:
            yield f"{_CONFIRMATIONS} releases did not hold, and no more were tried: stronger settings may."
        chosen = self._chosen
        if chosen is None or chosen.defence is None:
            return
        if chosen.defence.adds_noise:
            yield (
                "Epsilon was chosen by looking at the truth. That choice is outside the proof of differential privacy, which "
                "holds for the noise of this release alone. The noise to publish was drawn afresh with OpenDP."
            )
        elif any("seed" in one.settings() for one in Chain([chosen.defence]).defences):
            yield "Who is in the sample to publish was drawn afresh: the evidence is of other samples of the same share."

    def _settings(self) -> dict[str, Any]:
        plan = self._plan
        return {
            "name": plan.name,
            "command": plan.command,
            "window": format_step(plan.given.calendar.step) if plan.of_flows else None,
            "families": list(dict.fromkeys(one.name for one in self._families)),
            "people": self._people.people,
            "search": {
                "attacks": {name: attack.settings() for name, attack in plan.attacks.items()},
                "row_orders": plan.seeds,
                "seed": plan.first_seed,
            },
            "evidence": None if self._evidence is None else self._evidence.settings,
        }
