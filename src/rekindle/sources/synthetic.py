"""A synthetic city: people with homes, workplaces and habits, in no real city."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar, Locations, Trajectories
from rekindle.progress import Progress

__all__ = ["SyntheticCity"]

Floats = NDArray[np.float64]

# People are drawn in blocks of one fixed size, each from its own random stream: more people or more days then add to
# the same city instead of making another one, and memory does not grow with the number of people.
_BLOCK = 2048
_SAMPLES_AT_ONCE = 1 << 19
_MOST_PLACES = 1_000_000

# A day's plan is this many departures, each with a goal; a goal where the person already is means no trip.
_TRIPS = 4
_HOME, _WORK, _FAVOURITE = 0, 1, 2
_FRIDAY, _SATURDAY, _SUNDAY = 4, 5, 6


@dataclass(frozen=True, kw_only=True)
class SyntheticCity:
    """A city of people with habits, for trying things out where no real data may be used.

    Everyone has a home, a workplace and a few favourite places. Homes are spread over the city; work and favourite
    places crowd around a few centres, some places are far more popular than others, and near ones are chosen more
    often than far ones. On working days people go to work and sometimes on to a favourite place; on days off they go
    out around their own usual hours. Between two places they travel in a straight line through the cells between.
    Night workers leave in the evening, from Sunday to Thursday, and come home in the morning. People without routine
    go anywhere at any time.

    The same settings give the same trajectories. With more people or more days, the first ones stay the same.

    Parameters
    ----------
    people
        How many people live in the city.
    days
        How many calendar days to follow them; the first is shorter if `start` is after midnight.
    step
        The interval between steps, which must divide 24 hours, such as ``"30min"`` or ``"2min"``.
    start
        Date and time of the first step. The default is a Monday.
    seed
        A whole number of at least 0; another seed is another city.
    width_km, height_km
        Size of the city, rounded up to whole cells.
    cell_km
        Side of the square cells that people are counted in.
    centres
        Around how many centres work and favourite places crowd.
    near_km
        Places within about this distance of home are near: the chance to choose a place falls with the square of the
        distance beyond.
    speed_kmh
        How fast everyone travels.
    favourite_places
        How many favourite places each person has; the first is visited most.
    irregularity_min
        How far the hours of a habit vary from day to day, as a standard deviation in minutes.
    share_night_workers, share_without_work, share_without_routine
        Shares of the people, from 0 to 1; the rest work by day.
    share_staying_home
        Share of the people who stay at home on any one day.
    share_out_after_work
        Share of working days on which a person also goes to a favourite place.
    share_out_on_days_off
        Share of mornings, and of afternoons, of days off on which a person goes to a favourite place.
    """

    people: int = 100
    days: int = 7
    step: str | timedelta = "30min"
    start: str | datetime = "2024-01-01"
    seed: int = 0
    width_km: float = 10.0
    height_km: float = 10.0
    cell_km: float = 1.0
    centres: int = 3
    near_km: float = 3.0
    speed_kmh: float = 25.0
    favourite_places: int = 4
    irregularity_min: float = 15.0
    share_night_workers: float = 0.05
    share_without_work: float = 0.2
    share_without_routine: float = 0.05
    share_staying_home: float = 0.1
    share_out_after_work: float = 0.25
    share_out_on_days_off: float = 0.5

    def __repr__(self) -> str:
        changed = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if getattr(self, one.name) != one.default
        ]
        return f"SyntheticCity({', '.join(changed)})"

    def __post_init__(self) -> None:
        for name, least in (("people", 1), ("days", 1), ("seed", 0), ("centres", 1), ("favourite_places", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise InvalidSetting(f"{name} is {value!r}; it must be a whole number of at least {least}.")
        for name in ("width_km", "height_km", "cell_km", "near_km", "speed_kmh"):
            if not 0 < _number(name, getattr(self, name)) < math.inf:
                raise InvalidSetting(f"{name} is {getattr(self, name)!r}; it must be larger than 0 and finite.")
        if not 0 <= _number("irregularity_min", self.irregularity_min) < math.inf:
            raise InvalidSetting(f"irregularity_min is {self.irregularity_min!r}; it must be at least 0 and finite.")
        for name in self.__dataclass_fields__:
            if name.startswith("share_") and not 0 <= _number(name, getattr(self, name)) <= 1:
                raise InvalidSetting(f"{name} is {getattr(self, name)!r}; it must be a share from 0 to 1.")
        together = self.share_night_workers + self.share_without_work + self.share_without_routine
        if together > 1 + 1e-9:
            raise InvalidSetting(
                "share_night_workers, share_without_work and share_without_routine are "
                f"{together:g} together; nobody is counted twice, so they must be at most 1."
            )
        across, along = self.width_km / self.cell_km, self.height_km / self.cell_km
        if max(across, along, across * along) > _MOST_PLACES:
            raise InvalidSetting(
                f"{self.width_km} km x {self.height_km} km in cells of {self.cell_km} km are more than "
                f"{_MOST_PLACES:,} cells; choose a smaller city or larger cells."
            )
        if not isinstance(self.start, (str, datetime)):
            raise InvalidSetting(f"start is {self.start!r}; write a date and time such as '2024-01-01 00:00'.")
        try:
            _ = self.calendar
        except InvalidData as error:
            raise InvalidSetting(str(error)) from None

    @property
    def calendar(self) -> Calendar:
        """When the steps are."""
        calendar = Calendar(self.start, self.step)
        return calendar.closed_at(calendar.first_day_steps + (int(self.days) - 1) * calendar.steps_per_day)

    @property
    def rows(self) -> int:
        """Cells from south to north."""
        return _cells(self.height_km, self.cell_km)

    @property
    def columns(self) -> int:
        """Cells from west to east."""
        return _cells(self.width_km, self.cell_km)

    @property
    def locations(self) -> Locations:
        """The cells, row by row from the south-west corner: ``"r3c7"`` is in row 3 and column 7, counted from 0."""
        row, column = np.divmod(np.arange(self.rows * self.columns), self.columns)
        centres = (np.stack([column, row], axis=1) + 0.5) * self.cell_km
        return Locations(centres, [f"r{r}c{c}" for r, c in zip(row, column, strict=True)], public=True)

    def trajectories(self, *, progress: Progress | None = None) -> Trajectories:
        """Follow everyone: the truth, whose `counts` are the release.

        Parameters
        ----------
        progress
            Called with the number of people done and the number of all people.
        """
        calendar, locations = self.calendar, self.locations
        town = _Town.of(self, locations)
        kind = np.int16 if len(locations) <= np.iinfo(np.int16).max else np.int32
        cells = np.empty((self.people, len(calendar.times())), dtype=kind)
        for block, first in enumerate(range(0, self.people, _BLOCK)):
            last = min(first + _BLOCK, self.people)
            _block(self, town, block).sample(self, calendar, out=cells[first:last])
            if progress is not None:
                progress(last, self.people)
        return Trajectories(cells, locations, calendar)


@dataclass(frozen=True)
class _Town:
    """How popular each cell is.

    Parameters
    ----------
    homes, places
        (locations,) float64, cumulative shares of homes and of all other places; the last is 1.
    columns, cell_km
        The grid.
    """

    homes: Floats
    places: Floats
    columns: int
    cell_km: float

    @classmethod
    def of(cls, city: SyntheticCity, locations: Locations) -> _Town:
        random = default_rng(SeedSequence(city.seed, spawn_key=(0,)))
        size = np.array([city.columns, city.rows]) * city.cell_km
        spread = size.min() / 8
        crowd = np.zeros(len(locations))
        for rank in range(1, city.centres + 1):
            # The largest centre is in the middle.
            centre = size * (random.uniform(0.15, 0.85, 2) if rank > 1 else 0.5)
            distance = np.hypot(*(locations.xy_km - centre).T)
            crowd += np.exp(-distance / spread) / rank
        # Zipf's law over the cells, with a few people even in the least of them.
        popularity = crowd / (1 + random.permutation(len(locations))) ** 0.7 + 1e-9
        density = (0.3 + np.sqrt(crowd)) * random.lognormal(0.0, 0.5, len(locations))
        return cls(_cumulative(density), _cumulative(popularity), city.columns, city.cell_km)

    def points(self, random: Generator, shares: Floats, *shape: int) -> Floats:
        """Draw points, (*shape, 2) float64 in km: a cell by its share, then anywhere within it."""
        cell = np.searchsorted(shares, random.random(shape), side="right")
        row, column = np.divmod(cell, self.columns)
        return (np.stack([column, row], axis=-1) + random.random((*shape, 2))) * self.cell_km


@dataclass(frozen=True)
class _Residents:
    """A block of people and their habits. Hours are hours since midnight.

    Parameters
    ----------
    by_night, by_day, without_routine
        (people,) bool: works by night, works by day, has no routine.
    places
        (people, 2 + favourite places, 2) float64, km: home, work, favourites.
    begin, length
        (people,) float64, hours: when work begins and how long it lasts.
    out
        (people, 2) float64, hours: when the person goes out on a day off, before and after noon.
    """

    by_night: NDArray[np.bool_]
    by_day: NDArray[np.bool_]
    without_routine: NDArray[np.bool_]
    places: Floats
    begin: Floats
    length: Floats
    out: Floats

    @classmethod
    def of(cls, city: SyntheticCity, town: _Town, random: Generator) -> _Residents:
        lot = random.random(_BLOCK)
        by_night = lot < city.share_night_workers
        without_routine = ~by_night & (lot < city.share_night_workers + city.share_without_routine)
        by_day = lot >= city.share_night_workers + city.share_without_routine + city.share_without_work
        home = town.points(random, town.homes, _BLOCK, 1)
        # Everyone hears of some places by their popularity, and keeps near ones rather than far ones.
        keep = 1 + city.favourite_places
        heard_of = town.points(random, town.places, _BLOCK, 8 * keep)
        distance = np.hypot(*np.moveaxis(heard_of - home, -1, 0))
        liking = random.gumbel(size=distance.shape) - 2 * np.log1p(distance / city.near_km)
        kept = np.argsort(-liking, axis=1)[:, :keep, None]
        return cls(
            by_night,
            by_day,
            without_routine,
            np.concatenate([home, np.take_along_axis(heard_of, kept, axis=1)], axis=1),
            np.where(by_night, random.normal(22.0, 0.5, _BLOCK), random.normal(8.5, 1.0, _BLOCK)),
            random.normal(8.0, 0.7, _BLOCK),
            random.normal([10.5, 16.5], [1.0, 1.5], (_BLOCK, 2)),
        )

    def plan(
        self, city: SyntheticCity, town: _Town, random: Generator, weekday: int
    ) -> tuple[Floats, Floats, Floats]:
        """Plan a day.

        Returns
        -------
        (people, trips) hours of departure; (people, trips) hours to stay at least before departing; and
        (people, trips, 2) goals in km; all float64.
        """
        shape = (_BLOCK, _TRIPS)
        late = random.normal(0.0, city.irregularity_min / 60, shape)
        visit, second_visit = np.clip(random.exponential(1.5, (2, _BLOCK)), 0.5, 4.0)
        by_rank = _cumulative(1 / np.arange(1.0, city.favourite_places + 1))
        favourite = _FAVOURITE + np.searchsorted(by_rank, random.random((_BLOCK, 2)), side="right")
        chance = random.random((_BLOCK, 3))
        anytime = np.sort(random.uniform(6.0, 24.0, shape), axis=1)
        anywhere = town.points(random, town.places, *shape)
        at_home = random.random(shape) < 0.4

        on_day_shift = self.by_day & (weekday not in (_SATURDAY, _SUNDAY))
        on_night_shift = self.by_night & (weekday not in (_FRIDAY, _SATURDAY))
        works = on_day_shift | on_night_shift
        goes_out = chance[:, 1:] < np.where(works, city.share_out_after_work, city.share_out_on_days_off)[:, None]
        first, second = np.where(goes_out, favourite, _HOME).T
        home, work = np.full(_BLOCK, _HOME), np.full(_BLOCK, _WORK)
        new = _FAVOURITE + city.favourite_places + np.arange(_TRIPS)
        leave = self.begin - np.hypot(*(self.places[:, _WORK] - self.places[:, _HOME]).T) / city.speed_kmh
        end = self.begin + self.length
        before, after = self.out.T
        none = np.zeros(_BLOCK)

        def choose(
            day_shift: list[NDArray[Any]],
            night_shift: list[NDArray[Any]],
            without_routine: NDArray[Any],
            day_off: list[NDArray[Any]],
        ) -> NDArray[Any]:
            which = [on_day_shift[:, None], on_night_shift[:, None], self.without_routine[:, None]]
            plans = [np.stack(day_shift, axis=1), np.stack(night_shift, axis=1), without_routine]
            return np.select(which, plans, np.stack(day_off, axis=1))

        hours = late + choose(
            day_shift=[leave, end, end, end],
            night_shift=[after, after, leave, end],
            without_routine=anytime,
            day_off=[before, before, after, after],
        )
        stays = choose(
            day_shift=[none, none, visit, none],
            night_shift=[none, visit, none, none],
            without_routine=np.zeros(shape),
            day_off=[none, visit, none, second_visit],
        )
        goals = choose(
            day_shift=[work, first, home, home],
            night_shift=[first, home, work, home],
            without_routine=np.where(at_home, _HOME, new),
            day_off=[first, home, second, home],
        )
        goals[chance[:, 0] < city.share_staying_home] = _HOME
        options = np.concatenate([self.places, anywhere], axis=1)
        return hours, stays, np.take_along_axis(options, goals[..., None], axis=1)


@dataclass(frozen=True)
class _Journeys:
    """All trips of a block of people, in order of time.

    Parameters
    ----------
    depart, arrive
        (people, trips) float64, hours since the first midnight.
    stops
        (people, trips + 1, 2) float64, km: trip i leads from stop i to stop i + 1.
    """

    depart: Floats
    arrive: Floats
    stops: Floats

    def sample(self, city: SyntheticCity, calendar: Calendar, out: NDArray[np.signedinteger]) -> None:
        """Write the cell of each person at each step into `out`, (people, steps); further people are left out."""
        people, steps = out.shape
        interval = calendar.step / timedelta(hours=1)
        begin = (calendar.start - datetime.combine(calendar.start, datetime.min.time())) / timedelta(hours=1)
        times = begin + interval * np.arange(steps)
        limits = city.columns - 1, city.rows - 1
        at_once = max(1, _SAMPLES_AT_ONCE // steps)
        for low in range(0, people, at_once):
            part = slice(low, min(low + at_once, people))
            depart, arrive, stops = self.depart[part], self.arrive[part], self.stops[part]
            count = len(depart)
            # The trip of a step is the last one that began: count the departures up to it.
            step = np.clip(np.ceil((depart - begin) / interval), 0, steps).astype(np.int64)
            step += np.arange(count)[:, None] * (steps + 1)
            began = np.bincount(step.ravel(), minlength=count * (steps + 1)).reshape(count, -1)[:, :-1]
            trip = np.cumsum(began, axis=1) - 1
            took = np.maximum(arrive - depart, 1e-9)
            done = times - np.take_along_axis(depart, trip, axis=1)
            done /= np.take_along_axis(took, trip, axis=1)
            np.clip(done, 0.0, 1.0, out=done)
            cell = []
            for axis, limit in enumerate(limits):
                at = np.take_along_axis(np.diff(stops[..., axis], axis=1), trip, axis=1) * done
                at += np.take_along_axis(stops[..., axis], trip, axis=1)
                cell.append(np.clip((at / city.cell_km).astype(np.int64), 0, limit))
            out[part] = cell[1] * city.columns + cell[0]


def _block(city: SyntheticCity, town: _Town, block: int) -> _Journeys:
    """Draw a block of people and all of their trips, from the day before the first on."""
    random = default_rng(SeedSequence(city.seed, spawn_key=(1, block)))
    residents = _Residents.of(city, town, random)
    here = residents.places[:, _HOME]
    arrive = np.full(_BLOCK, -48.0)
    departs, arrives, stops = [arrive], [arrive], [here, here]
    weekday = city.calendar.start.weekday()
    for day in range(-1, city.days):
        hours, stays, goals = residents.plan(city, town, random, (weekday + day) % 7)
        for trip in range(_TRIPS):
            depart = np.maximum(24.0 * day + hours[:, trip], arrive + stays[:, trip])
            arrive = depart + np.hypot(*(goals[:, trip] - here).T) / city.speed_kmh
            here = goals[:, trip]
            departs.append(depart)
            arrives.append(arrive)
            stops.append(here)
    return _Journeys(np.stack(departs, axis=1), np.stack(arrives, axis=1), np.stack(stops, axis=1))


def _cumulative(weights: Floats) -> Floats:
    total = np.cumsum(weights)
    return np.asarray(total / total[-1])


def _cells(length_km: float, cell_km: float) -> int:
    # 2.1 / 0.3 is 7.000000000000001 in floating point, and means 7 cells.
    return max(1, math.ceil(round(length_km / cell_km, 6)))


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidSetting(f"{name} is {value!r}; it must be a number.")
    return float(value)
