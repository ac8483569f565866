"""The paper's machine: recover a day, link it to the days before, remember.

Both attacks of the paper are settings of it. Its order of computation is the enhanced attack's (section "Order of
computation"), which gives the baseline the same result as its three stages, and lets both run online.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Literal

import numpy as np
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from scipy import sparse

from rekindle import checks
from rekindle.assignment.steps import EXTRAPOLATE, POPULAR, PRICED, recover_day
from rekindle.attacks.base import Attack, DailyRun, Details, Run, with_away, with_rows_away
from rekindle.attacks.costs import MoveContext, MoveCost, Stay, is_target_cost, popular_places
from rekindle.attacks.flows import Windows, days_with_windows
from rekindle.attacks.linking import DENSE_UP_TO, InformationGain, LinkingCost, link
from rekindle.attacks.meetings import exchange_towards
from rekindle.attacks.moves import LearntMoves
from rekindle.attacks.priors import KnownPast, OtherTraces, Prior, check_prior
from rekindle.errors import InvalidData, InvalidSetting, Stopped
from rekindle.model import AWAY, Calendar, Counts, Locations
from rekindle.model.calendar import NIGHT_END
from rekindle.progress import Progress

LARGE_DAY = 1_000_000
MANY = 100_000
"""More people than that take less time each, by what a million were measured to take."""
LINK_GAP = 1e-3
"""How far links of many people may be from the best, as a share of the cost."""
ROUNDING = 1e-9
"""What rounding leaves between an optimal cost and its proof, as a share of the cost: no gap."""


@dataclass(frozen=True, kw_only=True)
class DayByDay(Attack):
    """Recover each day from its own counts, then link it to the days before.

    Where the totals vary, the paper's algorithm is extended: away is a location without coordinates. A day is recovered with
    as many people as its largest total needs. People who return have no velocity. Days are linked by what was
    seen of people, and those who were not seen come last.

    Where flows are given, each transition is the cheapest one that keeps them: one assignment for the people of each location.
    The night between two days is no gap then: a day begins at the last step of the day before, with a transition that costs
    `first` too, and everyone continues from where they were at that step. No link is needed: wherever people meet on that day, they
    swap their further paths if that brings them closer to where they were at the same time on the days before.

    Parameters
    ----------
    first
        Cost of the first transition of a day.
    night
        Cost of the other transitions that depart before 06:00.
    day
        Cost of the rest.
    linking
        Cost of continuing a person with one of today's rows; not used where flows are given.
    lookback_days
        How many days to look back. A link costs the least of them.
    away_km
        Where people come and go: what it costs to leave (to be no longer counted) or to return, in km; to stay away costs
        nothing. None: half the diagonal of the area, so that one person who leaves and another who returns never take
        the place of one move within it. A smaller number lets moves of more than twice as far be such a pair.
    seed
        None: interchangeable people are listed by the location they begin the day in, and locations by their index. A whole
        number: both orders are shuffled again each day. Ties are everywhere, so several seeds show the spread they make.
    first_step_counts
        ``"each_day"``: each day begins with its own counts, as in the paper's text. ``"first_day"``: every day begins with
        the counts of the very first step, as in the published code of the enhanced attack; only for comparison, because
        the first step of each later day then does not meet the counts. All other steps do.
    workers
        Over how many threads the days of one feed are spread, where no cost looks at the days before; None for all
        cores. It changes nothing but the time.
    prior
        What the attacker knows besides the release; see `recover`. How people move, learnt from the traces, takes the place of
        all three costs of moves. People whose past is known are linked by it too.
    """

    takes_flows: ClassVar[bool] = True
    priors: ClassVar[tuple[type[Prior], ...]] = (OtherTraces, KnownPast)

    first: MoveCost = Stay()
    night: MoveCost = Stay()
    day: MoveCost = Stay()
    linking: LinkingCost = InformationGain()
    lookback_days: int = 1
    away_km: float | None = None
    seed: int | None = None
    first_step_counts: Literal["each_day", "first_day"] = "each_day"
    workers: int | None = field(default=None, compare=False)
    prior: Prior | None = None

    def __post_init__(self) -> None:
        checks.whole("lookback_days", self.lookback_days, least=1)
        if self.away_km is not None:
            checks.number("away_km", self.away_km)
        checks.seed(self.seed)
        checks.choice("first_step_counts", self.first_step_counts, ("each_day", "first_day"))
        if self.workers is not None:
            checks.whole("workers", self.workers, least=1)
        check_prior(self, self.prior)
        for name in ("first", "night", "day", "linking"):
            if not callable(getattr(self, name)) or isinstance(getattr(self, name), type):
                raise InvalidSetting(
                    f"`{name}` is {getattr(self, name)!r}; it must be a cost object, such as Stay()."
                )

    @property
    def remembers(self) -> bool:
        """Whether a day depends on those before it, other than by its link."""
        return self.prior is None and any(
            getattr(cost, "remembers", True) for cost in (self.first, self.night, self.day)
        )

    def memory_bytes(self, counts: Counts, *, flows: bool = False) -> int:
        """About how much memory `recover` needs; a link takes a matrix of people x people up to a size, and a list beyond."""
        people = counts.people
        link = (
            24 * people**2 if people <= DENSE_UP_TO or type(self.linking) is not InformationGain else 3_000 * people
        )
        return super().memory_bytes(counts, flows=flows) + link

    def work(self, counts: Counts) -> float:
        """About how many seconds `recover` takes on one ordinary core: the steps, and a link of all people for each day.

        The more people there are, the more of them have the same day behind them, or, less often, the same days.
        """
        days = counts.calendar.number_of_days
        linking = 0.05 * days * float((counts.people / 2000) ** 1.4)
        differ = float(max(1.0, counts.people / MANY) ** (-0.8 / self.lookback_days))
        return super().work(counts) + differ * (2e-6 * counts.people * counts.steps + linking)

    def _begin(self, locations: Locations, calendar: Calendar, people: int, progress: Progress | None) -> Run:
        """Refuse a calendar that does not begin between 00:00 and 06:00, as in the paper."""
        if calendar.start - calendar.start.replace(hour=0, minute=0, second=0) > NIGHT_END:
            raise InvalidData(
                f"The counts begin at {calendar.start:%Y-%m-%d %H:%M}, but {type(self).__name__} must begin at night, "
                "between 00:00 and 06:00. Leave out the steps before the next midnight, or use Habits."
            )
        if self.prior is not None:
            _ = self.prior.learnt  # before any thread needs it
        return DayByDayRun(self, locations, calendar, people, progress)


@dataclass(frozen=True, eq=False, repr=False)
class DayByDayDetails(Details):
    """What the assignments cost.

    Attributes
    ----------
    step_costs
        (steps,) float64: total cost of the transition that leads to each step; NaN at the first step of a day, or with flows
        at the very first.
    link_costs
        (days,) float64: total cost of linking each day to those before; NaN for the first, and for days whose flows are given.
    gaps
        (days,) float64: how far the cost of any step or link of a day may be above the least possible, as a share of it.
        0: all were optimal.
    """

    by_step: ClassVar[tuple[str, ...]] = ("step_costs",)

    step_costs: NDArray[np.float64]
    link_costs: NDArray[np.float64]
    gaps: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """The largest gap of any day."""
        return float(self.gaps.max(initial=0.0))


class DayByDayRun(DailyRun):
    """A run of the machine.

    Attributes
    ----------
    transitions
        The paper's B: (locations, locations) int64, sparse, how often one location was predicted to follow another.
    """

    attack: DayByDay
    details = DayByDayDetails

    def __init__(
        self, attack: DayByDay, locations: Locations, calendar: Calendar, people: int, progress: Progress | None
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        self.transitions = sparse.csr_array((len(locations),) * 2, dtype=np.int64)
        self._seen = 0  # all people from this one on were never counted
        self._past: NDArray[np.int32] | None = None  # what is known of them before the first day
        if isinstance(attack.prior, KnownPast):
            known = attack.prior.trajectories
            self._seen = known.people
            self._past = known.cells.astype(np.int32)

    def _take(self, counts: Counts, windows: Windows | None = None) -> None:
        days = list(days_with_windows(counts, windows))
        size = self._days_at_once() if len(days) > 1 else 1
        seeds = self._seeds(counts)
        if seeds is not None and windows is not None:
            raise InvalidSetting('`first_step_counts="first_day"` breaks the flows; use "each_day".')
        for begin in range(0, len(days), size):
            done = self.days_done
            tasks = []
            for at, (day, its) in enumerate(days[begin : begin + size]):
                if its is not None:
                    tasks.append(self._flow_task(day, its, done + at))
                else:
                    values = day.values if seeds is None else np.vstack([seeds, day.values[1:]])
                    tasks.append(self._task(with_away(values), done + at))
            if size == 1:
                found = [task.recover() for task in tasks]
            else:
                # The days do not need each other until they are linked. The kernels leave Python to the other threads.
                found = Parallel(n_jobs=self.attack.workers or -1, require="sharedmem")(
                    map(delayed(DayTask.recover), tasks)
                )
            for one in found:
                if self.stopped:
                    raise Stopped("The run was stopped.")
                self._add(*self._linked(*one))
                self._report()

    def _seeds(self, counts: Counts) -> NDArray[np.integer] | None:
        """(locations,) counts that every day begins with; None where each begins with its own."""
        if self.attack.first_step_counts == "each_day":
            return None
        if not self._days:
            return np.asarray(counts.values[0])
        first = self._days[0][0][:, 0]
        return np.asarray(np.bincount(first[first != AWAY], minlength=len(self.locations)))

    def _days_at_once(self) -> int:
        """How many days to recover side by side before they are linked: few large ones, so that little is lost."""
        workers = self.attack.workers or cpu_count()
        if self.attack.remembers or workers == 1:
            return 1
        return workers * max(1, LARGE_DAY // (self.people * self.calendar.steps_per_day))

    def _task(self, values: NDArray[np.integer], number: int, windows: Windows | None = None) -> DayTask:
        return DayTask(
            self.attack,
            self.locations,
            self.calendar.time(self.calendar.day(number).start),
            self.calendar.step,
            values,
            number,
            self.transitions,
            self._stop.is_set,
            windows,
        )

    def _flow_task(self, counts: Counts, windows: Windows, number: int) -> DayTask:
        """A day with its flows begins at the last step of the day before, with as many people as its flows need."""
        people, values = windows.people(counts), counts.values
        if number:
            values = np.concatenate([windows.first_counts(len(self.locations)), values])
        everyone = (values.sum(axis=1, dtype=np.int64) == people).all()
        return self._task(values if everyone else with_away(values, people), number, windows)

    def _linked(
        self,
        cells: NDArray[np.int32],
        costs: NDArray[np.float64],
        gap: float,
        before: NDArray[np.int32] | None = None,
    ) -> tuple[NDArray[np.int32], DayByDayDetails]:
        """Give the rows of the next day to the people: to those seen before as far as they go, then to new ones.

        Rows that say where they were before the day (with flows) go to people who were there.
        """
        if before is not None:
            linked = self._go_on(with_rows_away(cells, self.people), with_rows_away(before[:, None], self.people))
            return linked, DayByDayDetails(costs, np.array([np.nan]), np.array([gap]))
        link_cost, seen = np.nan, self._seen
        order = np.arange(seen)
        if (self._days or self._past is not None) and seen and len(cells):
            past = [day[:seen] for day, _ in self._days[-self.attack.lookback_days :]]
            if self._past is not None:
                # What is known of somebody is better than what was guessed since.
                past = [
                    np.vstack([np.full_like(day[: len(self._past)], AWAY), day[len(self._past) :]]) for day in past
                ]
                past.append(with_rows_away(self._past, seen))
            found = link(self.attack.linking, past, cells, len(self.locations), gap=LINK_GAP, stop=self._stop.is_set)
            order, link_cost, gap = found.order, found.cost, max(gap, found.gap)
        else:
            order = np.full(seen, -1)
        new = np.setdiff1d(np.arange(len(cells)), order)
        order = np.concatenate([order, new, np.full(self.people - seen - len(new), -1)])
        linked = (
            np.where((order >= 0)[:, None], cells[order], AWAY) if len(cells) else with_rows_away(cells, self.people)
        )
        return linked, DayByDayDetails(costs, np.array([link_cost]), np.array([gap]))

    def _go_on(self, rows: NDArray[np.int32], before: NDArray[np.int32]) -> NDArray[np.int32]:
        """Let everyone go on from where they were at the last step of the day before.

        Which of those who were in one location goes on as which of its rows is told by where they were at the same time on the days
        before. People who were taken for each other are so until they meet again.

        Parameters
        ----------
        rows, before
            (people, steps) and (people, 1) int32: the day, and where each of its rows was at the step before.

        Returns
        -------
        (people, steps) int32, in the order of the people.
        """
        away = len(self.locations)
        last = self._days[-1][0][:, -1]
        tracks = np.empty((len(rows), 1 + rows.shape[1]), np.int32)
        tracks[np.argsort(last, kind="stable")] = np.hstack([before, rows])[np.argsort(before[:, 0], kind="stable")]
        look = self.attack.lookback_days
        days = list(enumerate(cells for cells, _ in self._days))[-look:]
        known = self.attack.prior.trajectories if isinstance(self.attack.prior, KnownPast) else None
        theirs = (
            [] if known is None else list(enumerate(known.cells[:, day] for day in known.calendar.days()))[-look:]
        )
        wanted = np.full((max(len(days), len(theirs)), *tracks.shape), -1, np.int32)
        _want(wanted, self.calendar, days, away)
        if known is not None:
            # What is known of somebody is better than what was guessed since.
            wanted[:, : known.people] = -1
            _want(wanted, known.calendar, theirs, away)
        lengths = np.ones(tracks.shape[1], np.int64)
        found = exchange_towards(np.where(tracks == AWAY, away, tracks), wanted, lengths, fixed=True)[:, 1:]
        return np.where(found == away, np.int32(AWAY), found)

    def _add(self, cells: NDArray[np.int32], details: Details | None = None) -> None:
        """Remember a finished day: first the transitions B, the step across midnight included, then the day itself."""
        if self.attack.remembers:
            yesterday = [self._days[-1][0][:, -1:]] if self._days else []
            moves = np.concatenate([*yesterday, cells], axis=1)
            self.transitions = self.transitions + count_transitions(moves, len(self.locations))
        counted = np.flatnonzero((cells != AWAY).any(axis=1))
        self._seen = max(self._seen, int(counted.max(initial=-1)) + 1)
        super()._add(cells, details)


def _want(
    wanted: NDArray[np.int32], calendar: Calendar, days: Sequence[tuple[int, NDArray[np.integer]]], away: int
) -> None:
    """Write where people were at the same time on some numbered days, after a first step at which nothing is wanted."""
    for wish, (number, cells) in zip(wanted, days, strict=False):
        begin = 1 + (calendar.steps_per_day - calendar.first_day_steps if number == 0 else 0)
        part = wish[: len(cells), begin : begin + cells.shape[1]]
        part[:] = np.where(cells == AWAY, away, cells)[:, : part.shape[1]]


def count_transitions(cells: NDArray[np.int32], locations: int) -> sparse.csr_array:
    """Count how often each location follows another: (locations, locations) int64, sparse; who is away is in none."""
    before, after = cells[:, :-1].astype(np.int64).ravel(), cells[:, 1:].ravel()
    index = before * locations + after
    if cells.min(initial=0) == AWAY:
        index = index[(before != AWAY) & (after != AWAY)]
    if locations**2 <= 8 * index.size:
        frequency = np.bincount(index, minlength=locations**2)
        index = np.flatnonzero(frequency)
        frequency = frequency[index]
    else:
        index, frequency = np.unique(index, return_counts=True)
    shape = (locations, locations)
    return sparse.csr_array((frequency, (index // locations, index % locations)), shape=shape, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class DayTask:
    """All that the steps of one day depend on."""

    attack: DayByDay
    locations: Locations
    start: datetime
    step: timedelta
    counts: NDArray[np.integer]
    number: int
    transitions: sparse.csr_array
    stop: Callable[[], bool]
    windows: Windows | None = None

    @property
    def ahead(self) -> int:
        """How many steps of the day before the counts begin with: one where its flows are known."""
        return int(self.windows is not None and self.number > 0)

    def recover(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], float, NDArray[np.int32] | None]:
        """Recover the day, not linked yet.

        Returns
        -------
        (people, steps) locations, (steps,) costs, the largest gap, and (people,) locations at the last step of the day before,
        where its flows are known.
        """
        attack, counts, real = self.attack, self.counts, len(self.locations)
        away = counts.shape[1] > real
        places = np.arange(real)
        everything = np.arange(counts.shape[1], dtype=np.int32)
        first = np.repeat(everything, counts[0])
        if not len(first):
            return (
                np.empty((0, len(counts) - self.ahead), np.int32),
                np.full(len(counts) - self.ahead, np.nan),
                0.0,
                None,
            )
        if attack.seed is not None:
            order = np.random.default_rng([attack.seed, self.number])
            places = order.permutation(places)
            counts = np.column_stack([counts[:, places], counts[:, real:]])
            first = order.permutation(np.repeat(everything, counts[0]))
        # From here on, locations are numbered in the order in which they are listed, with away as the last.
        listed = np.append(places, AWAY).astype(np.int32)
        away_km = self._away_km() if away else None
        costs = self._costs(len(counts) - 1)
        each = any(getattr(cost, "looks_back", False) for cost in costs)
        so_far = np.empty((len(first), len(counts) if each else 0), np.int32)
        kinds = [
            EXTRAPOLATE * cost.extrapolates + POPULAR * cost.remembers if is_target_cost(cost) else PRICED
            for cost in costs
        ]

        def price(step: int, previous: NDArray[np.int32], current: NDArray[np.int32]) -> NDArray[np.float64]:
            today = None
            if each:
                so_far[:, step] = listed[current]
                today = so_far[current < real, : step + 1]
            departs = self.start + (step - self.ahead) * self.step
            context = MoveContext(self.locations, departs, self.transitions, today)
            # A cost knows locations only: nobody who has just returned comes from anywhere else.
            here = current < real
            previous, current = listed[np.where(previous < real, previous, current)[here]], listed[current[here]]
            found = np.asarray(costs[step](previous, current, context), dtype=np.float64)
            if found.ndim != 2 or found.shape != (here.sum(), real):
                return found
            if away_km is None:
                return found[:, places]
            priced = np.full((len(here), real + 1), away_km)
            priced[here, :real] = found[:, places]
            priced[~here, real] = 0.0
            return priced

        flows = None if self.windows is None else self.windows.table(real, len(first), np.argsort(places))
        found = recover_day(
            counts,
            first,
            self.locations.xy_km[places],
            np.array(kinds, dtype=np.uint8),
            popular_places(sparse.csr_array(self.transitions[places][:, places])) if attack.remembers else None,
            flows=flows,
            away_km=away_km,
            price=price,
            each=each,
            stop=self.stop,
        )
        share = found.gaps / np.maximum(found.costs, 1.0)
        gap = float(share.max(initial=0.0, where=share > ROUNDING))
        cells = listed[found.cells]
        if self.ahead:
            return cells[:, 1:], found.costs, gap, cells[:, 0]
        return cells, np.concatenate([[np.nan], found.costs]), gap, None

    def _away_km(self) -> float:
        """What it costs to leave or to return, km."""
        if self.attack.away_km is not None:
            return self.attack.away_km
        if self.attack.prior is not None:
            return LearntMoves(self.attack.prior.learnt).away
        return float(np.hypot(*np.ptp(self.locations.xy_km, axis=0))) / 2

    def _costs(self, transitions: int) -> list[MoveCost]:
        """The cost of each transition of the day, by the time at which it departs."""
        six = self.start.replace(hour=0, minute=0, second=0) + NIGHT_END
        at_night = max(0, -((self.start - six) // self.step))
        attack = self.attack
        if attack.prior is not None:
            return [LearntMoves(attack.prior.learnt)] * transitions
        costs = [attack.first, *[attack.night] * (at_night - 1), *[attack.day] * transitions]
        return [*[attack.first] * self.ahead, *costs][:transitions]
