from __future__ import annotations

import datetime as dt
import hashlib
import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from rekindle.errors import InvalidSetting
from rekindle.model import AWAY, Trajectories
from rekindle.sources.synthetic import SyntheticCity

ROUTINE = {"share_night_workers": 0.0, "share_without_routine": 0.0}


@pytest.fixture(scope="module")
def week() -> Trajectories:
    return SyntheticCity(people=3000).trajectories()


def at_hour(truth: Trajectories, hour: float) -> NDArray[np.integer]:
    """(people, days) cells at that hour of each day."""
    per_day = truth.calendar.steps_per_day
    return truth.cells[:, int(hour * per_day / 24) :: per_day]


def usual(cells: NDArray[np.integer]) -> NDArray[np.integer]:
    """(people,) the most frequent cell of each person."""
    return np.array([np.bincount(row).argmax() for row in cells])


def moves(truth: Trajectories) -> NDArray[np.float64]:
    """(people, steps - 1) km from each step to the next."""
    return np.hypot(*np.moveaxis(np.diff(truth.xy_km(), axis=1), -1, 0))


def test_same_settings_give_the_same_bytes() -> None:
    first, second = (SyntheticCity(people=200, seed=5).trajectories() for _ in range(2))
    assert first.cells.tobytes() == second.cells.tobytes()
    assert first == second


def test_another_seed_is_another_city() -> None:
    first, second = (SyntheticCity(people=200, seed=seed).trajectories() for seed in (0, 1))
    assert (first.cells != second.cells).mean() > 0.5


def test_more_people_or_days_add_to_the_same_city(week: Trajectories) -> None:
    few = SyntheticCity(people=2100, days=3).trajectories()
    assert np.array_equal(week.cells[:2100, : few.steps], few.cells)


def test_no_two_people_lead_the_same_life() -> None:
    truth = SyntheticCity(people=6000, step="2min", days=2, start="2024-01-02", share_staying_home=0).trajectories()
    lives = {row.tobytes() for row in truth.cells}
    # Some stay within one cell all the time; the others are all different.
    assert len(lives) > 0.9 * truth.people


def test_finer_steps_see_the_same_trips() -> None:
    fine, coarse = (SyntheticCity(people=50, step=step).trajectories() for step in ("2min", "30min"))
    assert np.array_equal(fine.cells[:, ::15], coarse.cells)


def test_shapes_and_places() -> None:
    city = SyntheticCity(people=30, days=2, step="10min", width_km=7, height_km=3.5, cell_km=0.5)
    truth = city.trajectories()
    assert truth.cells.shape == (30, 2 * 144)
    assert len(truth.locations) == 14 * 7
    assert truth.locations.lat_lng is None
    assert truth.locations.xy_km[truth.locations.indices(["r3c7"])[0]].tolist() == [3.75, 1.75]
    assert truth.calendar.start == dt.datetime(2024, 1, 1)


def test_size_is_rounded_up_to_whole_cells() -> None:
    city = SyntheticCity(width_km=2.1, height_km=2.2, cell_km=0.3)
    assert (city.columns, city.rows) == (7, 8)


def test_a_large_grid_needs_larger_indices() -> None:
    truth = SyntheticCity(people=300, days=1, width_km=200, height_km=200).trajectories()
    assert truth.cells.dtype == np.int32
    assert truth.cells.max() > np.iinfo(np.int16).max


@pytest.mark.parametrize(("step", "hours"), [("2min", 1 / 30), ("10min", 1 / 6)])
def test_nobody_is_faster_than_the_speed(step: str, hours: float) -> None:
    truth = SyntheticCity(people=300, step=step, speed_kmh=25, share_without_routine=0.3).trajectories()
    # From centre to centre, a move may seem longer than it is by the diagonal of a cell.
    assert moves(truth).max() <= 25 * hours + np.sqrt(2) + 1e-9


def test_trips_pass_through_the_cells_between() -> None:
    truth = SyntheticCity(people=300, step="2min").trajectories()
    # In 2 minutes nobody gets further than 0.83 km, so that a step leads to a neighbouring cell at most.
    assert moves(truth).max() <= np.sqrt(2) + 1e-9
    # Many trips are longer than that, and seen over 30 minutes they lead further.
    assert np.hypot(*np.moveaxis(truth.xy_km()[:, 15:] - truth.xy_km()[:, :-15], -1, 0)).max() > 5


def test_most_people_are_at_home_at_four(week: Trajectories) -> None:
    nights = at_hour(week, 4)
    home = usual(nights)
    assert (nights == home[:, None]).mean() > 0.9
    # Home is where they are most of the time, and work is elsewhere.
    assert (usual(week.cells) == home).mean() > 0.85
    assert (at_hour(week, 12)[:, :5] == home[:, None]).mean() < 0.6


def test_night_workers_are_at_work_at_four_and_asleep_at_noon() -> None:
    settings = {"people": 1000, "share_without_work": 0, "share_without_routine": 0, "share_staying_home": 0}
    truth = SyntheticCity(share_night_workers=1, **settings).trajectories()
    home = usual(at_hour(truth, 12)[:, :5])
    assert (at_hour(truth, 12)[:, :5] == home[:, None]).mean() > 0.9
    at_home = (at_hour(truth, 4) == home[:, None]).mean(axis=0)
    # A few work in the cell they live in. Friday and Saturday nights are off.
    assert (at_home[:5] < 0.2).all()
    assert (at_home[5:] > 0.95).all()


def test_weekends_differ_from_weekdays(week: Trajectories) -> None:
    changed = np.diff(week.cells, axis=1) != 0
    rush = changed[:, 14::48][:, :7].mean(axis=0)
    assert rush[:5].min() > 5 * rush[5:].max()
    crowded = [np.abs(a - b).sum() for a, b in itertools.pairwise(week.counts().values[24::48].astype(int))]
    # From Friday noon to Saturday noon the city changes more than from one weekday's noon to the next.
    assert crowded[4] > 1.5 * max(crowded[:4])


def test_the_weekend_follows_the_date() -> None:
    truth = SyntheticCity(people=500, days=2, start="2024-01-06", **ROUTINE).trajectories()
    later = SyntheticCity(people=500, days=2, start="2024-01-08", **ROUTINE).trajectories()
    saturday, monday = ((np.diff(t.cells, axis=1)[:, 14] != 0).mean() for t in (truth, later))
    assert monday > 5 * saturday


def test_days_repeat_but_not_exactly(week: Trajectories) -> None:
    days = week.cells[:, : 5 * 48].reshape(week.people, 5, 48)
    same = (days[:, 0] == days[:, 1]).mean(axis=1)
    assert 0.6 < same.mean() < 0.95
    stranger = (days[:, 0] == np.roll(days[:, 1], 1, axis=0)).mean()
    assert same.mean() > 4 * stranger


def test_people_without_routine_do_not_repeat() -> None:
    settings = {"people": 500, "share_night_workers": 0, "share_without_work": 0}
    steady, restless = (
        SyntheticCity(share_without_routine=share, **settings).trajectories().cells[:, : 2 * 48].reshape(500, 2, 48)
        for share in (0, 1)
    )
    assert (restless[:, 0] == restless[:, 1]).mean() < 0.5 * (steady[:, 0] == steady[:, 1]).mean()


def test_without_irregularity_every_shift_begins_at_the_same_minute() -> None:
    settings = {"people": 100, "step": "2min", "share_staying_home": 0, "share_without_work": 0}
    truth = SyntheticCity(irregularity_min=0, **settings, **ROUTINE).trajectories()
    mornings = truth.cells[:, : 5 * 720].reshape(100, 5, 720)[:, :, 150:360]
    assert (mornings == mornings[:, :1]).all()


def test_near_places_are_preferred() -> None:
    near, far = (
        SyntheticCity(people=500, width_km=40, height_km=40, near_km=km, **ROUTINE).trajectories() for km in (1, 1000)
    )
    assert moves(near).sum() < 0.7 * moves(far).sum()


def test_places_are_unequally_popular_and_homes_are_spread() -> None:
    counts = SyntheticCity(people=5000, share_without_work=0, **ROUTINE).trajectories().counts().values
    night, noon = (np.sort(counts[step])[::-1] / 5000 for step in (8, 24))
    assert noon[:10].sum() > 1.5 * night[:10].sum()
    assert np.count_nonzero(counts[8]) > 90


def test_counts_hold_everyone_at_every_step(week: Trajectories) -> None:
    counts = week.counts()
    assert counts.people == 3000
    assert (counts.values.sum(axis=1) == 3000).all()


@pytest.mark.parametrize("start", ["2024-01-01 00:00", "2024-01-03 03:20", "2024-02-29 09:00"])
@pytest.mark.parametrize("step", ["1min", "45s", "20min", "3h", "24h"])
def test_any_start_and_step(start: str, step: str) -> None:
    truth = SyntheticCity(people=7, days=3, start=start, step=step).trajectories()
    assert truth.calendar.number_of_days == 3
    assert truth.cells.shape == (7, truth.calendar.steps)
    assert truth.calendar.times()[-1] < np.datetime64(truth.calendar.start.date()) + np.timedelta64(3, "D")


def test_a_later_start_sees_the_same_people() -> None:
    whole = SyntheticCity(people=100, days=2, step="20min").trajectories()
    later = SyntheticCity(people=100, days=2, step="20min", start="2024-01-01 03:20").trajectories()
    assert np.array_equal(whole.cells[:, 10:], later.cells)


def test_the_smallest_city() -> None:
    truth = SyntheticCity(people=1, days=1, step="24h", width_km=1, height_km=1, cell_km=5).trajectories()
    assert truth.cells.tolist() == [[0]]
    assert truth.locations.ids == ("r0c0",)


@pytest.mark.parametrize(
    "settings",
    [
        {"people": 1},
        {"width_km": 1, "height_km": 1},
        {"width_km": 30, "height_km": 1},
        {"favourite_places": 1, "centres": 1},
        {"centres": 20},
        {"irregularity_min": 600},
        {"speed_kmh": 0.5},
        {"share_without_routine": 1, "share_night_workers": 0, "share_without_work": 0},
        {"share_night_workers": 0.1, "share_without_work": 0.2, "share_without_routine": 0.7},
        {"start": dt.datetime(2024, 1, 1, 5), "step": dt.timedelta(minutes=10)},
        {"share_visitors": 1, "days": 1, "visit_nights": 40},
        {"share_commuters_from_outside": 1, "width_km": 1, "height_km": 1},
        {"share_phones_off_at_random": 1, "share_phones_off_at_night": 1},
        {"share_phones_off_at_night": 1, "irregularity_min": 600},
    ],
)
def test_odd_settings(settings: dict[str, object]) -> None:
    truth = SyntheticCity(**({"people": 40} | settings)).trajectories()  # type: ignore[arg-type]
    assert truth.counts().people == truth.people == settings.get("people", 40)


def test_nobody_moves_who_stays_at_home() -> None:
    truth = SyntheticCity(share_staying_home=1).trajectories()
    assert (truth.cells == truth.cells[:, :1]).all()


def test_progress_is_told_of_every_block() -> None:
    told: list[tuple[int, int]] = []
    SyntheticCity(people=5000, days=1, step="6h").trajectories(progress=lambda done, of: told.append((done, of)))
    assert told == [(2048, 5000), (4096, 5000), (5000, 5000)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"people": 0}, "`people` is 0; it must be a whole number of at least 1"),
        ({"people": 2.5}, "`people` is 2.5"),
        ({"people": True}, "`people` is True"),
        ({"days": 0}, "`days` is 0"),
        ({"days": 10**9}, "end after the year 9999"),
        ({"seed": -1}, "`seed` is -1"),
        ({"centres": 0}, "`centres` is 0"),
        ({"favourite_places": 0}, "`favourite_places` is 0"),
        ({"width_km": 0}, "`width_km` is 0; it must be a number above 0"),
        ({"height_km": float("nan")}, "`height_km` is nan"),
        ({"cell_km": "1"}, "`cell_km` is '1'; it must be a number"),
        ({"cell_km": 1e-3}, "more than 1,000,000 cells"),
        ({"cell_km": 1e-320}, "more than 1,000,000 cells"),
        ({"speed_kmh": float("inf")}, "`speed_kmh` is inf"),
        ({"near_km": -1}, "`near_km` is -1"),
        ({"irregularity_min": -1}, "`irregularity_min` is -1"),
        ({"share_night_workers": 1.1}, "`share_night_workers` is 1.1; it must be a share from 0 to 1"),
        ({"share_out_after_work": -0.1}, "`share_out_after_work` is -0.1"),
        ({"share_night_workers": 0.6, "share_without_work": 0.6}, "1.25 together"),
        ({"share_visitors": 0.7, "share_moving_in_or_out": 0.5}, "1.2 together"),
        ({"visit_nights": 0.5}, "`visit_nights` is 0.5; it must be a number of at least 1"),
        ({"step": "7min"}, "divide 24 hours"),
        ({"step": "soon"}, "The step is 'soon'"),
        ({"start": "someday"}, "The start is 'someday'"),
        ({"start": 2024}, "start is 2024"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        SyntheticCity(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "digest"),
    [
        ({"people": 60}, "ccb8fb00ac40f028"),
        ({"people": 2100, "days": 3, "step": "1h", "seed": 4}, "31501c676aa2cc00"),
        (
            {"people": 50, "days": 9, "step": "10min", "start": "2024-01-05 06:00", "share_night_workers": 0.3},
            "fee708db9e09ff68",
        ),
    ],
)
def test_cities_in_which_nobody_is_away_stay_as_they_were(settings: dict[str, object], digest: str) -> None:
    truth = SyntheticCity(**settings).trajectories()  # type: ignore[arg-type]
    assert hashlib.sha256(truth.cells.tobytes()).hexdigest().startswith(digest)


def away(truth: Trajectories) -> NDArray[np.bool_]:
    """(people, days, steps of a day) bool."""
    return ~truth.counted.reshape(truth.people, -1, truth.calendar.steps_per_day)


def test_phones_are_off_at_night_out_of_habit() -> None:
    city = SyntheticCity(people=60, share_phones_off_at_night=0.4)
    truth = city.trajectories()
    off = away(truth)
    assert off[:, 0, 6].sum() == pytest.approx(24, abs=1)  # 40% at 03:00, every night the same people
    assert (off[:, :, 6] == off[:, :1, 6]).all()
    assert not off[:, :, 22:40].any()  # from 11:00 to 20:00 all are on
    assert truth.counts().totals.min() == 60 - off[:, 0, 6].sum()
    assert truth.counts().people == 60
    # Everyone has hours of their own, which vary by some minutes from night to night.
    fine = SyntheticCity(people=200, step="2min", share_phones_off_at_night=1).trajectories()
    on_at = (~away(fine)[:, :, 60:]).argmax(axis=2) / 30 + 2
    assert 6.7 < on_at.mean() < 7.3
    assert on_at.mean(axis=1).std() > 0.5
    assert 0.2 < on_at.std(axis=1).mean() < 0.3
    # When they are on, they are where they would be without.
    everyone = SyntheticCity(people=60).trajectories()
    assert (truth.cells == everyone.cells)[truth.counted].all()


def test_phones_are_off_at_random() -> None:
    truth = SyntheticCity(people=500, share_phones_off_at_random=0.3).trajectories()
    off = away(truth)
    assert off.mean(axis=(0, 1)) == pytest.approx(0.3, abs=0.05)  # at any hour
    assert off.mean(axis=(1, 2)).std() < 0.1  # no matter whose
    changes = np.diff(truth.counted, axis=1).mean()
    assert changes == pytest.approx(
        2 * 0.3 * 0.7 * 0.25, rel=0.1
    )  # a step of 30 minutes begins another 2 hours in 1 of 4
    everyone = SyntheticCity(people=500).trajectories()
    assert (truth.cells == everyone.cells)[truth.counted].all()


def test_visitors_come_once_and_stay_for_some_nights() -> None:
    truth = SyntheticCity(people=1000, days=20, step="1h", share_visitors=0.3, visit_nights=4).trajectories()
    there = truth.counted
    visitors = ~there.all(axis=1)
    assert visitors.sum() == pytest.approx(300, abs=3)
    assert there.any(axis=1).all()
    coming, leaving = ((np.diff(there.astype(int), axis=1) == way).sum(axis=1) for way in (1, -1))
    assert coming.max() == leaving.max() == 1
    whole = (coming == 1) & (leaving == 1)
    # From 14:00 to 11:00; of the longest visits, more reach beyond the 20 days.
    assert there[whole].sum(axis=1).mean() / 24 == pytest.approx(4 - 3 / 24, abs=0.3)
    totals = truth.counts().totals[24:-24]
    assert totals.std() < 0.05 * totals.mean()  # they come and go all the time
    # They do not work; everyone else does as before.
    no_visitors = SyntheticCity(people=1000, days=20, step="1h").trajectories()
    assert not np.array_equal(truth.cells[visitors][there[visitors]], no_visitors.cells[visitors][there[visitors]])
    assert np.array_equal(truth.cells[~visitors], no_visitors.cells[~visitors])


def test_commuters_are_counted_only_while_they_are_inside() -> None:
    settings = {"people": 500, "share_without_work": 0.0, "share_staying_home": 0.0}
    truth = SyntheticCity(share_commuters_from_outside=0.4, step="10min", **settings).trajectories()  # type: ignore[arg-type]
    commuters = ~truth.counted.all(axis=1)
    assert commuters.sum() == pytest.approx(200, abs=3)
    off = away(truth)[commuters]
    assert off[:, :, 18].all()  # 03:00
    assert off[:, 5:].all()  # the weekend
    assert off[:, :5, 72].mean() < 0.02  # noon
    # They come and go over the edge of the city.
    comes = np.argwhere(np.diff(truth.counted.astype(int), axis=1) == 1)
    first = truth.locations.xy_km[truth.cells[comes[:, 0], comes[:, 1] + 1]]
    from_edge = np.minimum(first, 10 - first).min(axis=1)
    assert from_edge.max() < 25 / 6 + 1
    # Everyone else does as before.
    residents = SyntheticCity(step="10min", **settings).trajectories()  # type: ignore[arg-type]
    assert np.array_equal(truth.cells[~commuters], residents.cells[~commuters])


def test_people_move_in_or_out_once() -> None:
    truth = SyntheticCity(people=400, days=10, step="1h", share_moving_in_or_out=0.5).trajectories()
    there = truth.counted
    change = np.diff(there.astype(int), axis=1)
    assert (change != 0).sum(axis=1).max() == 1
    comes, leaves = (change == 1).any(axis=1), (change == -1).any(axis=1)
    assert (comes | leaves).sum() == pytest.approx(200, abs=3)
    assert 80 < comes.sum() < 120
    everyone = SyntheticCity(people=400, days=10, step="1h").trajectories()
    assert (truth.cells == everyone.cells)[there].all()


def test_people_who_come_and_go_stay_the_same_with_more_of_them_and_more_days() -> None:
    habits = {
        "share_phones_off_at_night": 0.3,
        "share_phones_off_at_random": 0.1,
        "share_commuters_from_outside": 0.2,
    }
    few = SyntheticCity(people=100, days=2, **habits).trajectories()  # type: ignore[arg-type]
    more = SyntheticCity(people=2100, days=4, **habits).trajectories()  # type: ignore[arg-type]
    assert np.array_equal(more.cells[:100, : few.steps], few.cells)
    # One setting does not change who is away for another reason.
    alone = SyntheticCity(people=100, days=2, share_phones_off_at_night=0.3).trajectories()
    assert (few.cells[alone.cells == AWAY] == AWAY).all()
