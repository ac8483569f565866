"""A synthetic city: people with homes, workplaces and habits, in no real city."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from rekindle import checks
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import AWAY, Calendar, Locations, Trajectories
from rekindle.progress import Progress

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# People are drawn in blocks of one fixed size, each from its own random stream: more people or more days then add to
# the same city instead of making another one, and memory does not grow with the number of people.
_BLOCK = 2048
_SAMPLES_AT_ONCE = 1 << 19
_MOST_PLACES = 1_000_000

# A day's plan is this many departures, each with a goal; a goal where the person already is means no trip.
_TRIPS = 4
_HOME, _WORK, _FAVOURITE = 0, 1, 2
_FRIDAY, _SATURDAY, _SUNDAY = 4, 5, 6

_GUESTS = "share_visitors", "share_commuters_from_outside", "share_moving_in_or_out"
_SHARES_AWAY = "share_phones_off_at_night", "share_phones_off_at_random", *_GUESTS
_OFF_AT_RANDOM_HOURS = 2


@dataclass(frozen=True, kw_only=True)
class SyntheticCity:
    """A city of people with habits, for trying things out where no real data may be used.

    Everyone has a home, a workplace and a few favourite places. Homes are spread over the city; work and favourite
    places crowd around a few centres, some places are far more popular than others, and near ones are chosen more
    often than far ones. On working days people go to work and sometimes on to a favourite place; on days off they go
    out around their own usual hours. Between two places they travel in a straight line through the cells between.
    Night workers leave in the evening, from Sunday to Thursday, and come home in the morning. People without routine
    go anywhere at any time.

    By default everyone is counted at every step. The settings from `share_phones_off_at_night` on let people be away; they
    change nobody's life, but for that of visitors and commuters.

    The same settings give the same trajectories. With more people or more days, the first ones stay the same (but visits and
    moves are spread over all days there are).

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
    share_phones_off_at_night
        Share of the people who switch their phones off every night, around usual hours of their own: about 23:00 to 07:00.
    share_phones_off_at_random
        Share of all phones that are off at any one time, two hours each time, at no usual hour.
    share_visitors
        Share of the people who come to the city once: they do not work, and are away before and after.
    visit_nights
        How many nights visitors stay, on average; at least 1.
    share_commuters_from_outside
        Share of the people who live outside the city and come to work by day; they are away unless they are inside.
    share_moving_in_or_out
        Share of the people who move: half of them into the city, half out of it, once, and are away before or after.
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
    share_phones_off_at_night: float = 0.0
    share_phones_off_at_random: float = 0.0
    share_visitors: float = 0.0
    visit_nights: float = 3.0
    share_commuters_from_outside: float = 0.0
    share_moving_in_or_out: float = 0.0

    def __repr__(self) -> str:
        changed = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)
            if getattr(self, one.name) != one.default
        ]
        return f"SyntheticCity({', '.join(changed)})"

    def __post_init__(self) -> None:
        for name, least in (("people", 1), ("days", 1), ("seed", 0), ("centres", 1), ("favourite_places", 1)):
            checks.whole(name, getattr(self, name), least=least)
        for name in ("width_km", "height_km", "cell_km", "near_km", "speed_kmh"):
            checks.positive(name, getattr(self, name))
        for name in (one.name for one in fields(self) if one.name.startswith("share_")):
            checks.share(name, getattr(self, name))
        checks.number("irregularity_min", self.irregularity_min)
        checks.number("visit_nights", self.visit_nights, least=1)
        for names in (("share_night_workers", "share_without_work", "share_without_routine"), _GUESTS):
            together = sum(getattr(self, name) for name in names)
            if together > 1 + 1e-9:
                raise InvalidSetting(
                    f"{names[0]}, {names[1]} and {names[2]} are {together:g} together; nobody is counted twice, so they "
                    "must be at most 1."
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
        """Follow everyone: the truth, whose `counts` are the release; `AWAY` where someone is not counted.

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
    from_outside
        (people,) bool: comes into the city to work only.
    """

    by_night: Bools
    by_day: Bools
    without_routine: Bools
    places: Floats
    begin: Floats
    length: Floats
    out: Floats
    from_outside: Bools

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
            np.zeros(_BLOCK, dtype=bool),
        )

    def with_guests(self, visitors: Bools, commuters: Bools, homes: Floats) -> _Residents:
        """Let some be visitors, who do not work, and some commuters, who live at `homes`, outside, and work by day."""
        places = self.places.copy()
        places[commuters, _HOME] = homes[commuters]
        day_shift = np.where(self.by_night, self.begin - 13.5, self.begin)
        return replace(
            self,
            by_night=self.by_night & ~visitors & ~commuters,
            by_day=(self.by_day & ~visitors) | commuters,
            without_routine=self.without_routine & ~visitors & ~commuters,
            places=places,
            begin=np.where(commuters, day_shift, self.begin),
            from_outside=commuters,
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
        goals[(chance[:, 0] < city.share_staying_home) | (self.from_outside & ~works)] = _HOME
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
    presence
        When they are counted; None for always.
    """

    depart: Floats
    arrive: Floats
    stops: Floats
    presence: _Presence | None

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
            cell, outside = [], np.zeros(done.shape, dtype=bool)
            for axis, limit in enumerate(limits):
                at = np.take_along_axis(np.diff(stops[..., axis], axis=1), trip, axis=1) * done
                at += np.take_along_axis(stops[..., axis], trip, axis=1)
                if self.presence is not None:
                    outside |= (at < 0) | (at >= (limit + 1) * city.cell_km)
                cell.append(np.clip((at / city.cell_km).astype(np.int64), 0, limit))
            out[part] = cell[1] * city.columns + cell[0]
            if self.presence is not None:
                out[part][outside | ~self.presence.counted(times, part)] = AWAY


@dataclass(frozen=True)
class _Presence:
    """When the people of a block are counted. Hours are hours since the first midnight.

    Parameters
    ----------
    stay
        (people, 2) float64, hours: when the person comes to the city and leaves it.
    nights
        (nights, people, 2) float64, hours: when the phone goes off and on; from the night before the first day on.
    slots, shift
        (slots, people) bool, whether the phone is on in each two hours, and (people,) float64, how many hours before the
        first midnight the person's first two hours begin.
    """

    stay: Floats
    nights: Floats
    slots: Bools
    shift: Floats

    @classmethod
    def of(cls, city: SyntheticCity, block: int, residents: _Residents) -> tuple[_Presence, _Residents]:
        """Draw when people are there; some of them become visitors or commuters."""
        # Streams of their own: none of these settings changes what the others draw.
        random, by_night, by_slot = (
            default_rng(SeedSequence(city.seed, spawn_key=(stream, block))) for stream in (2, 3, 4)
        )
        # Evenly spread lots: of the first few people, too, as many come from outside or switch off as the shares say.
        lot, night_lot = (random.random((2, 1)) + np.outer([5**0.5 / 2 - 0.5, 2**0.5], np.arange(_BLOCK))) % 1
        when, direction = random.random((2, _BLOCK))
        group = np.searchsorted(np.cumsum([getattr(city, name) for name in _GUESTS]), lot, side="right")
        visitors, commuters, movers = (group == number for number in range(3))
        size = np.array([city.columns, city.rows]) * city.cell_km
        towards = np.stack([np.cos(2 * np.pi * direction), np.sin(2 * np.pi * direction)], axis=1)
        to_edge = (size / 2 / np.maximum(np.abs(towards), 1e-9)).min(axis=1)
        homes = size / 2 + towards * (to_edge + random.uniform(1.0, 15.0, _BLOCK))[:, None]

        moves_in = random.random(_BLOCK) < 0.5
        switches_off = night_lot < city.share_phones_off_at_night
        usual = random.normal([23.0, 31.0], 0.75, (_BLOCK, 2))
        shift = random.uniform(0.0, _OFF_AT_RANDOM_HOURS, _BLOCK)
        visit = random.normal([14.0, 11.0], 1.5, (_BLOCK, 2))
        nights = 1 + random.poisson(city.visit_nights - 1, _BLOCK)

        first_day = np.floor(when * (city.days + nights - 1)) + 1 - nights  # each visit has a part of these days
        visit += 24.0 * np.stack([first_day, first_day + nights], axis=1)
        move = 24.0 * city.days * (0.1 + 0.8 * when)
        stay = np.tile([-np.inf, np.inf], (_BLOCK, 1))
        stay[visitors] = visit[visitors]
        stay[movers & moves_in, 0] = move[movers & moves_in]
        stay[movers & ~moves_in, 1] = move[movers & ~moves_in]

        off = usual + by_night.normal(0.0, city.irregularity_min / 60, (city.days + 1, _BLOCK, 2))
        off += 24.0 * np.arange(-1, city.days)[:, None, None]
        off[:, ~switches_off] = np.inf
        slots = city.days * 24 // _OFF_AT_RANDOM_HOURS + 1
        on = by_slot.random((slots, _BLOCK)) >= city.share_phones_off_at_random
        return cls(stay, off, on, shift), residents.with_guests(visitors, commuters, homes)

    def counted(self, times: NDArray[np.floating], part: slice) -> Bools:
        """Say which people of a part of the block are there with their phones on: (people, steps) bool."""
        come, leave = self.stay[part].T[..., None]
        there = (times >= come) & (times < leave)
        for night, (off, on) in enumerate(np.moveaxis(self.nights[:, part], -1, 1)[..., None]):
            # Only the steps from noon to noon: nobody's night is longer.
            low, high = np.searchsorted(times, 24.0 * (night - 1) + np.array([12.0, 36.0]))
            near = times[low:high]
            there[:, low:high] &= (near < off) | (near >= on)
        slot = ((times + self.shift[part, None]) // _OFF_AT_RANDOM_HOURS).astype(np.int64)
        return np.asarray(there & np.take_along_axis(self.slots[:, part].T, slot, axis=1))


def _block(city: SyntheticCity, town: _Town, block: int) -> _Journeys:
    """Draw a block of people and all of their trips, from the day before the first on."""
    random = default_rng(SeedSequence(city.seed, spawn_key=(1, block)))
    residents = _Residents.of(city, town, random)
    presence = None
    if any(getattr(city, name) for name in _SHARES_AWAY):
        presence, residents = _Presence.of(city, block, residents)
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
    return _Journeys(np.stack(departs, axis=1), np.stack(arrives, axis=1), np.stack(stops, axis=1), presence)


def _cumulative(weights: Floats) -> Floats:
    total = np.cumsum(weights)
    return np.asarray(total / total[-1])


def _cells(length_km: float, cell_km: float) -> int:
    # 2.1 / 0.3 is 7.000000000000001 in floating point, and means 7 cells.
    return max(1, math.ceil(round(length_km / cell_km, 6)))
