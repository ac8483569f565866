"""Run the attacks on a dataset, over several row orders, and measure them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from rekindle.attacks import (
    Attack,
    Baseline,
    Chance,
    DayByDay,
    DayByDayDetails,
    Enhanced,
    Habits,
    MoveContext,
    Naive,
    Popular,
    Recovery,
    Velocity,
)
from rekindle.attacks.day_by_day import count_transitions
from rekindle.evaluation import Evaluation, evaluate
from rekindle.evaluation.confidence import Confidence, assess_confidence
from rekindle.evaluation.unique import count_sets
from rekindle.model import Counts, Trajectories
from rekindle.reproduce.subjects import Subject
from rekindle.reproduce.ties import prices_of, recover_with_scipy

LOOKBACK = range(1, 11)
FIRST_DAY = "enhanced, first day"
_STEPS_CHECKED = 60


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much to run.

    Parameters
    ----------
    orders
        Row orders for each of the paper's attacks: ties move accuracy by several points.
    habits
        Effort of the Habits attack, ``"none"`` to leave it out.
    habits_seeds
        How often Habits is run.
    """

    orders: int = 5
    habits: Literal["none", "low", "normal"] = "normal"
    habits_seeds: int = 1


@dataclass(frozen=True)
class Consistency:
    """Whether what an attack found fits the release.

    Attributes
    ----------
    missed
        Steps at which it does not meet the counts.
    gap
        How far any step or link may be above the least cost, as the attack says.
    checked, optimal
        Steps whose cost was compared with SciPy's, and how many of them were the least.
    """

    missed: int
    gap: float
    checked: int
    optimal: int


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found on one dataset.

    Attributes
    ----------
    evaluations
        By the name of the attack, one for each row order; empty where there is no truth.
    recoveries
        By the name of the attack, what it found with each row order.
    enhancements
        By the name of the variant: the baseline, each enhancement switched on alone, and all together.
    lookback
        By the days that a link looks back.
    consistency
        By the name of the attack, of its first row order.
    confidence
        Whether Habits knows when it is right.
    with_scipy, scipy_evaluations
        By the name of the attack, what the published code would give: with SciPy's own choice among ties.
    listed_evaluations
        By the name of the attack, with people and locations in the order in which they are listed, not shuffled.
    """

    subject: Subject
    recoveries: dict[str, list[Recovery]]
    consistency: dict[str, Consistency]
    evaluations: dict[str, list[Evaluation]] = field(default_factory=dict)
    enhancements: dict[str, list[Evaluation]] = field(default_factory=dict)
    lookback: dict[int, list[Evaluation]] = field(default_factory=dict)
    confidence: Confidence | None = None
    with_scipy: dict[str, Trajectories] = field(default_factory=dict)
    scipy_evaluations: dict[str, Evaluation] = field(default_factory=dict)
    listed_evaluations: dict[str, Evaluation] = field(default_factory=dict)

    @cached_property
    def sets(self) -> dict[str, list[tuple[dict[int, float], dict[int, float]]]]:
        """What `count_sets` says of the truth and of each recovery, by the name of the attack."""
        people = {name: [one.trajectories for one in several] for name, several in self.recoveries.items()}
        truth = {} if self.subject.truth is None else {"truth": [self.subject.truth]}
        return {name: [count_sets(one) for one in several] for name, several in (truth | people).items()}


def _attacks(seed: int | None) -> dict[str, DayByDay]:
    return {
        "baseline": Baseline(seed=seed),
        "enhanced": Enhanced(seed=seed),
        FIRST_DAY: Enhanced(seed=seed, first_step_counts="first_day"),
    }


def _alone(seed: int) -> dict[str, DayByDay]:
    """Each enhancement switched on alone."""
    return {
        "+ stage reduction": Baseline(seed=seed, night=Velocity()),
        "+ popular transitions": Baseline(seed=seed, day=Popular()),
        "+ lookback of 3 days": Baseline(seed=seed, lookback_days=3),
    }


def _has_days(subject: Subject) -> bool:
    """Whether there are enough days to look back over."""
    return subject.counts.calendar.number_of_days > 2


def units(with_truth: bool, effort: Effort) -> int:
    """How many attacks `measure` will run at most."""
    if not with_truth:
        return 3 * effort.orders + 3
    return 3 + effort.orders * (3 + 3 + len(LOOKBACK)) + (effort.habits_seeds if effort.habits != "none" else 0)


def measure(subject: Subject, effort: Effort, done: Callable[[], None] = lambda: None) -> Measured:
    """Attack a dataset.

    Parameters
    ----------
    subject
        The dataset. Without a truth, the attacks are only checked for consistency and uniqueness.
    effort
        How much to run.
    done
        Called after each attack.
    """
    counts, truth = subject.counts, subject.truth
    recoveries: dict[str, list[Recovery]] = {}
    consistency: dict[str, Consistency] = {}

    def run(attack: Attack) -> Recovery:
        recovery = attack.recover(counts)
        done()
        return recovery

    for seed in range(effort.orders):
        for name, attack in _attacks(seed).items():
            recoveries.setdefault(name, []).append(run(attack))
            if seed == 0:
                consistency[name] = check(recoveries[name][0], attack, counts)
    with_scipy = {}
    for name, attack in _attacks(0).items():
        with_scipy[name] = recover_with_scipy(attack, counts)
        done()
    if truth is None:
        return Measured(subject, recoveries, consistency, with_scipy=with_scipy)
    if effort.habits != "none":
        recoveries["habits"] = [run(Habits(effort=effort.habits, seed=seed)) for seed in range(effort.habits_seeds)]
    evaluations = {
        name: [evaluate(kind(seed=seed).recover(counts).trajectories, truth) for seed in range(effort.orders)]
        for name, kind in (("chance", Chance), ("naive", Naive))
    }
    for name, several in recoveries.items():
        evaluations[name] = [evaluate(one.trajectories, truth) for one in several]
    confidence = None
    first = recoveries["habits"][0] if "habits" in recoveries else None
    if first is not None and first.confidence is not None:
        mapping = evaluations["habits"][0].mapping
        confidence = assess_confidence(first.trajectories, first.confidence, truth, mapping=mapping)
    enhancements = {"baseline": evaluations["baseline"]}
    lookback: dict[int, list[Evaluation]] = {}
    for seed in range(effort.orders):
        for name, attack in _alone(seed).items():
            enhancements.setdefault(name, []).append(evaluate(run(attack).trajectories, truth))
        for days in LOOKBACK if _has_days(subject) else ():
            if days == Enhanced().lookback_days:
                result = evaluations["enhanced"][seed]
                done()
            else:
                result = evaluate(run(Enhanced(seed=seed, lookback_days=days)).trajectories, truth)
            lookback.setdefault(days, []).append(result)
    enhancements["enhanced"] = evaluations["enhanced"]
    return Measured(
        subject,
        recoveries,
        consistency,
        evaluations,
        enhancements,
        lookback,
        confidence,
        with_scipy,
        {name: evaluate(found, truth) for name, found in with_scipy.items()},
        {name: evaluate(attack.recover(counts).trajectories, truth) for name, attack in _attacks(None).items()},
    )


def check(recovery: Recovery, attack: DayByDay, counts: Counts) -> Consistency:
    """Compare what an attack found with the release, and some of its steps with SciPy's assignment."""
    cells, calendar, places = recovery.trajectories.cells, counts.calendar, len(counts.locations)
    missed = int((recovery.trajectories.counts().values != counts.values).any(axis=1).sum())
    checked = optimal = 0
    wanted = set(np.linspace(0, counts.steps - 2, _STEPS_CHECKED).astype(int).tolist()) if counts.steps > 1 else set()
    for day in calendar.days():
        here = sorted(wanted & set(range(day.start, day.stop - 1)))
        transitions = count_transitions(cells[:, : day.start].astype(np.int32), places)
        for step in here:
            context = MoveContext(counts.locations, calendar.time(step), transitions)
            prices = prices_of(attack, counts, cells, step, day, context)
            matrix = prices[:, np.repeat(np.arange(places), counts.values[step + 1])]
            least = matrix[linear_sum_assignment(matrix)].sum()
            checked += 1
            reached = prices[np.arange(len(cells)), cells[:, step + 1]].sum()
            optimal += bool(reached <= least + 1e-6 * max(1.0, least))
    gap = recovery.details.gap if isinstance(recovery.details, DayByDayDetails) else 0.0
    return Consistency(missed, gap, checked, optimal)
