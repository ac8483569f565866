"""The attack and its run: settings, days in, trajectories out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from rekindle import checks
from rekindle.attacks.base import Attack, Details, Recovery, Run
from rekindle.attacks.confidence import confidence_from_agreement
from rekindle.attacks.day_by_day import DayByDayRun
from rekindle.attacks.enhanced import Enhanced
from rekindle.attacks.flows import Windows, days_with_windows
from rekindle.attacks.habits.doubt import SECOND_DAY, seen_share
from rekindle.attacks.habits.known import put_names
from rekindle.attacks.habits.parallel import in_parallel
from rekindle.attacks.habits.polish import HOURS, MOST_STATES
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.schedule import (
    BLOCK_PEOPLE,
    EFFORTS,
    MOST_PEOPLE_AT_ONCE,
    SECOND,
    Answer,
    Schedule,
    find,
    finish,
)
from rekindle.attacks.habits.wishes import OWN
from rekindle.attacks.priors import KnownPast, OtherTraces, Prior, check_prior
from rekindle.attacks.saving import SavedRun
from rekindle.errors import Stopped
from rekindle.model import Calendar, Counts, Locations
from rekindle.progress import Progress

FEW_SEEN = 0.5
"""Share of all moves below which people cannot be tracked through a day."""


@dataclass(frozen=True, eq=False, repr=False)
class HabitsDetails(Details):
    """What was done, the same for every day.

    Attributes
    ----------
    answers, voters
        (days,) float64: how many answers became the result (where answers are put together in groups, those of the last groups),
        and how many others said how sure it is. Both 0: the enhanced attack answered, because there was nothing to repeat.
    exchanges, group_exchanges
        (days,) float64: how many exchanges the search tried for each answer from the counts alone, and for each that a group
        became; 0 where there are no groups.
    block_people
        (days,) float64: about how many people were polished at a time, who share places; 0: all at once.
    """

    answers: NDArray[np.float64]
    voters: NDArray[np.float64]
    exchanges: NDArray[np.float64]
    group_exchanges: NDArray[np.float64]
    block_people: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Habits(Attack):
    """The strongest attack: it looks for people with few, repeated habits, and knows when it is right.

    It follows people through the counts (the last to arrive is the first to leave), gives segments of the tracks to the people
    they resemble, swaps the paths of people who meet until everyone's moves, stays and locations repeat themselves as
    much as possible, does so several times from different starts, and lets the answers vote. It learns from the counts
    alone how far and how often people move.

    It revises earlier days when later ones come, so a run keeps the counts and works when it is asked, or when the last
    step has been fed. `Recovery.confidence` holds how sure it is of each point.

    Given flows, it follows people along them, and everything it finds is made to fit them: two people swap paths
    only where they meet.

    Parameters
    ----------
    effort
        ``"low"`` (a first look, for sweeps over many releases), ``"normal"`` or ``"high"``: how many answers vote and how
        long each is searched for.
    seed
        A whole number of at least 0; another seed makes other choices among people who are nearly interchangeable.
    workers
        How many threads to use; None for all processors. Within ``joblib.parallel_config(backend="loky")``, or ``"dask"``, these
        are processes, on this machine or on a cluster. The result depends on neither.
    prior
        What the attacker knows besides the release; see `recover`. How people move, learnt from the traces, is added to what the
        counts say of everybody's moves and stays. People whose past is known are recognised in the result, which is then
        polished once more with their habits.
    """

    revises: ClassVar[bool] = True
    takes_flows: ClassVar[bool] = True
    in_parts: ClassVar[bool] = True
    priors: ClassVar[tuple[type[Prior], ...]] = (OtherTraces, KnownPast)

    effort: str = "normal"
    seed: int = 0
    workers: int | None = field(default=None, compare=False)
    prior: Prior | None = None

    def __post_init__(self) -> None:
        checks.choice("effort", self.effort, EFFORTS)
        checks.whole("seed", self.seed)
        if self.workers is not None:
            checks.whole("workers", self.workers, least=1)
        check_prior(self, self.prior)

    def memory_bytes(self, counts: Counts, *, flows: bool = False) -> int:
        """About how much memory `recover` needs: all answers, and what the threads have under way, whichever is more.

        A thread links segments, by the likeness of each with everyone or with a list of the most alike, or polishes chains, with a
        state for each person and each location that is not empty.
        """
        much, people = EFFORTS[self.effort], counts.people
        ticks = 1 + int((counts.values[1:] != counts.values[:-1]).any(axis=1).sum())
        places = int(counts.values.any(axis=0).sum()) + int(counts.away.any())
        threads = max(1, self.workers or cpu_count())
        common = super().memory_bytes(counts, flows=flows) + 40 * places**2 + 200 * 2**20  # with all kernels
        each = 48 if flows else 24  # bytes for a person and a state; weights of flows need more digits
        occupied = (counts.values > 0).sum() + (counts.away > 0).sum()
        states = people * int(occupied * ticks // max(1, counts.steps))
        if isinstance(self.prior, KnownPast):
            # Habits by hour and place: those of everyone everywhere, with the states of all chains; or lists.
            common += people * 24 * HOURS * places + 24 * states if states <= MOST_STATES else 10_000 * people
        if people > MOST_PEOPLE_AT_ONCE:
            answers = much.many_answers + much.many_voters
            # The answers, and their copies in one order; each link with its lists, and the segments' times in each location.
            # With flows, the copies once more, everyone's chains, and blocks in which each person may be in a location alone.
            blocks = each * ticks * min(places, BLOCK_PEOPLE) * BLOCK_PEOPLE if flows else 0
            copies = answers + much.many_voters + 4 + flows * (much.many_answers + 4)
            chains = flows * people * (12 * OWN * ticks + 4_000)
            return common + chains + 4 * people * ticks * copies + threads * max(people * (1200 + 12 * ticks), blocks)
        answers = much.groups * (much.members + 1 + SECOND) + much.voters
        linking = 64 * people**2 + 16 * people * ticks
        polishing = each * states + 12 * people * HOURS * places if states <= MOST_STATES else 0
        aligning = (8 * people**2 + 8 * people * ticks) * (1 + max(much.members, much.groups, much.voters))
        return (
            common
            + 8 * answers * people * ticks
            + max(threads * linking, threads * polishing if much.groups > 1 else polishing, aligning)
        )

    def work(self, counts: Counts) -> float:
        """About how many seconds `recover` takes on one ordinary core."""
        much, people = EFFORTS[self.effort], counts.people
        if people > MOST_PEOPLE_AT_ONCE:
            return float(much.many_seconds * (people / 1000) ** 1.2 * (counts.steps / 336) ** 1.2)
        return float(much.seconds * (people / 1000) ** much.growth * (counts.steps / 336) ** 0.6)

    def _begin(self, locations: Locations, calendar: Calendar, people: int, progress: Progress | None) -> Run:
        return HabitsRun(self, locations, calendar, people, progress)


class HabitsRun(Run):
    """A run of the attack. It stores the counts of each day, and recovers all days from the start when asked for them.

    Where the calendar has an end, the feed that reaches it does the work; `stop` then makes it end soon with the best so
    far. Before, `recovery` does the work for the days so far, and remembers it until more days come.
    """

    attack: Habits

    def __init__(
        self, attack: Habits, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        self._days: list[NDArray[np.int32]] = []
        self._windows: list[Windows] = []  # of each day, that before its first step included, where there are flows
        self._answers: dict[int, Answer] = {}
        self._answered = 0  # the days that the answers are of
        self._best: tuple[int, bool, Recovery] | None = None
        self._told = 0  # the days that were reported, or are being so
        self._working = threading.Lock()

    @property
    def days_done(self) -> int:
        """How many days were fed."""
        return len(self._days)

    @property
    def steps_done(self) -> int:
        """How many steps they have."""
        return sum(map(len, self._days))

    def _grow(self, people: int) -> None:
        """Take in people who turn out to be there: they were away on the days so far."""
        self.people = people
        self._answers, self._answered, self._best = {}, 0, None

    def _take(self, counts: Counts, windows: Windows | None = None) -> None:
        days = [np.array(counts.values[day], dtype=np.int32) for day in counts.calendar.days()]
        steps = self.steps_done + counts.steps

        for (_, its), day in zip(days_with_windows(counts, windows), days, strict=True):
            if its is not None:
                self._windows.append(its)
            self._days.append(day)
            if steps != self.calendar.steps:
                self._told += 1
                self._report()
        if steps == self.calendar.steps:
            self._work(self._reporter())

    def _last_values(self) -> NDArray[np.integer]:
        return self._days[-1][-1:]

    def _reporter(self) -> Callable[[float], None]:
        """Tell the share of the work that is done in days, each of those not told yet once."""
        before, self._told = self._told, self.days_done
        told, total = before, self._told

        def report(share: float) -> None:
            nonlocal told
            while self._progress is not None and told < before + int(share * (total - before) + 1e-9):
                told += 1
                self._progress(told, total)

        return report

    def _problem(self, days: int) -> Problem:
        counts = np.concatenate(self._days[:days])
        windows = Windows.joined(self._windows[:days]) if self._has_flows else None
        return Problem.of(counts, self.locations, self.calendar.closed_at(len(counts)), self.people, windows)

    def _work(self, report: Callable[[float], None]) -> None:
        """Find all answers for the days so far, and let them vote; after `stop`, those that are there."""
        with self._working:
            days = self.days_done
            if self._best is not None and self._best[:2] == (days, True):
                return
            problem = self._problem(days)
            if self._answered != days:
                self._answers, self._answered = {}, days
            seen = seen_share(problem) if problem.flows is None else 1.0
            if problem.starts[-1] < SECOND_DAY * problem.steps_per_day and seen < FEW_SEEN:
                self._best = (days, True, self._follow_rules(days, seen))
                report(1.0)
                return
            plan = self._plan(problem)

            def task(number: int) -> tuple[int, list[Answer]]:
                return number, [self._answers[each] for each in plan.group(number)]

            work = partial(find, problem, plan)
            try:
                for stage in plan.stages:
                    missing = [number for number in stage if number not in self._answers]
                    with closing(
                        in_parallel(work, map(task, missing), self._workers, lambda: self.stopped)
                    ) as answers:
                        for number, answer in zip(missing, answers, strict=True):
                            if answer is None:
                                raise Stopped("The run was stopped.")
                            self._answers[number] = answer
                            report((number + 1) / (plan.parts + 1))
            except Stopped:
                pass
            whole = len(self._answers) == plan.parts
            found = self._finish(problem, plan, self._answers, lambda: self.stopped)
            self._best = (days, whole and not self.stopped, found)
            if not self.stopped:
                report(1.0)

    def _follow_rules(self, days: int, seen: float) -> Recovery:
        """Let the enhanced attack answer: within a day nobody repeats anything, and most moves are not seen."""
        values = np.concatenate(self._days[:days])
        counts = Counts(values, self.locations, self.calendar.closed_at(len(values)), self.people)
        if self.attack.named:
            return self._recovery(self._enhanced(counts, 0).trajectories.cells.astype(np.int32), None)
        found = confidence_from_agreement([self._enhanced(counts, turn) for turn in range(4)])
        if found.confidence is None:
            raise RuntimeError("agreement without a confidence")
        # People who moved unseen are not where the rules have them, however much these agree.
        return self._recovery(found.trajectories.cells.astype(np.int32), np.float32(seen) * found.confidence)

    def _enhanced(self, counts: Counts, turn: int) -> Recovery:
        """Run the enhanced attack in one of several row orders.

        It must begin at night only because the paper's machine prices the night in another way; Enhanced does not.
        """
        attack = Enhanced(seed=self.attack.seed + turn, prior=self.attack.prior)
        run = DayByDayRun(attack, counts.locations, counts.calendar, counts.people, None)
        run.feed(counts)
        return run.recovery()

    def _plan(self, problem: Problem) -> Schedule:
        prior = self.attack.prior
        known = None if prior is None else prior.learnt
        return Schedule.of(problem, self.attack.effort, self.attack.seed, known)

    def _finish(
        self, problem: Problem, plan: Schedule, answers: dict[int, Answer], stopped: Callable[[], bool]
    ) -> Recovery:
        """The result, with names where people's past is known; how sure these are is not known."""
        tracks, confidence = finish(problem, plan, answers, stopped, self._workers)
        voters = sum(number >= plan.gathered for number in answers)
        of_groups = plan.group_proposals if plan.groups else 0
        done = (len(plan.last(answers)), voters, plan.proposals, of_groups, plan.block_people)
        if isinstance(self.attack.prior, KnownPast):
            past = self.attack.prior.trajectories
            tracks = put_names(
                problem, plan.model, tracks, past, stopped, block_people=plan.block_people, workers=self._workers
            )
            return self._recovery(problem.expand(tracks), None, done)
        return self._recovery(problem.expand(tracks), np.repeat(confidence, problem.lengths, axis=1), done)

    @property
    def _workers(self) -> int:
        return max(1, self.attack.workers or cpu_count())

    def _recovery(
        self,
        cells: NDArray[np.int32],
        confidence: NDArray[np.float32] | None,
        done: tuple[int, ...] = (0,) * len(fields(HabitsDetails)),
    ) -> Recovery:
        calendar = self.calendar.closed_at(cells.shape[1])
        each = [np.full(calendar.number_of_days if cells.shape[1] else 0, float(number)) for number in done]
        return Recovery(self._trajectories(cells, calendar), self.attack, confidence, HabitsDetails(*each))

    def recovery(self) -> Recovery:
        """Recover all days so far, or give what is known so far while another thread is at it, or after `stop`."""
        days = self.days_done
        if not days:
            none = None if self.attack.named else np.empty((self.people, 0), np.float32)
            return self._recovery(np.empty((self.people, 0), np.int32), none)
        if self._best is not None and self._best[0] == days and (self._best[1] or self.stopped):
            return self._best[2]
        if not self.stopped and not self._working.locked():
            self._work(self._reporter())
            if self._best is not None and self._best[0] == days:
                return self._best[2]

        problem = self._problem(days)
        plan = self._plan(problem)
        answers = dict(self._answers) if self._answered == days else {}
        return self._finish(problem, plan, answers, lambda: True)

    def day(self, number: int) -> Recovery:
        """What is known of one finished day alone."""
        done = self.recovery().details.arrays()
        return replace(
            super().day(number), details=HabitsDetails(**{name: done[name][number : number + 1] for name in done})
        )

    def save(self, path: str | Path) -> None:
        """Write the counts so far, and the answers found for them, to a file, whole or not at all, for `resume`."""
        days = list(self._days)
        answers = dict(self._answers) if self._answered == len(days) else {}
        numbers = sorted(answers)
        arrays: dict[str, NDArray[np.generic]] = {
            "counts": np.concatenate([np.empty((0, len(self.locations)), np.int32), *days]),
            "numbers": np.array(numbers, dtype=np.int64),
            "scores": np.array([answers[n].score for n in numbers]),
            "flows": np.array(self._has_flows),
        }
        if self._has_flows:
            arrays |= Windows.joined(self._windows[: len(days)]).arrays()
        if numbers:
            arrays["tracks"] = np.stack([answers[n].tracks for n in numbers])
        self._write(path, arrays)

    def restore(self, saved: SavedRun) -> None:
        """Take the counts of an earlier run, and the answers found for them."""
        arrays = saved.arrays
        values = arrays["counts"]
        if not len(values):
            return
        counts = Counts(values, self.locations, self.calendar.closed_at(len(values)), self.people)
        self._days = [np.array(counts.values[day], dtype=np.int32) for day in counts.calendar.days()]
        if saved.has_flows:
            self._has_flows = True
            windows = Windows.restored(arrays, counts)
            self._windows = [its for _, its in days_with_windows(counts, windows) if its is not None]
        if not len(arrays["numbers"]):
            return

        problem = self._problem(self.days_done)
        tracks = arrays["tracks"]
        for number, score, each in zip(arrays["numbers"], arrays["scores"], tracks, strict=True):
            problem.check(each, counts_only=problem.people > MOST_PEOPLE_AT_ONCE)
            self._answers[int(number)] = Answer(np.ascontiguousarray(each, dtype=np.int32), float(score))
        self._answered = self.days_done
