from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rekindle as rk
from rekindle.model.calendar import format_step, parse_step

DAY_SECONDS = 24 * 3600
DIVISORS = [seconds for seconds in range(60, DAY_SECONDS + 1) if DAY_SECONDS % seconds == 0]


@pytest.mark.parametrize(
    ("start", "step", "steps", "days", "nights"),
    [
        ("00:00", "10min", 288, [(0, 144), (144, 288)], [(0, 36), (144, 180)]),
        ("03:20", "10min", 200, [(0, 124), (124, 200)], [(0, 16), (124, 160)]),
        # The grid of steps does not meet midnight: the second day begins at 00:05.
        ("03:25", "10min", 269, [(0, 124), (124, 268), (268, 269)], [(0, 16), (124, 160), (268, 269)]),
        ("06:00", "1h", 19, [(0, 18), (18, 19)], [(0, 0), (18, 19)]),
        ("05:59", "12h", 3, [(0, 2), (2, 3)], [(0, 1), (2, 3)]),
        ("00:00", "24h", 2, [(0, 1), (1, 2)], [(0, 1), (1, 2)]),
        ("00:00", "1d", 1, [(0, 1)], [(0, 1)]),
        ("02:00", "30min", 4, [(0, 4)], [(0, 4)]),  # ends before its first night does
        ("00:00", "10min", 145, [(0, 144), (144, 145)], [(0, 36), (144, 145)]),
        ("00:00", "10min", 144, [(0, 144)], [(0, 36)]),
        ("00:00", "10min", 0, [], []),
    ],
)
def test_days_and_nights(start, step, steps, days, nights):
    calendar = rk.Calendar(f"2024-02-28 {start}", step, steps)
    assert [(day.start, day.stop) for day in calendar.days()] == days
    assert [(night.start, night.stop) for night in calendar.nights()] == nights
    assert calendar.number_of_days == len(days)


@st.composite
def calendars(draw):
    return rk.Calendar(
        datetime(2024, 2, 27) + timedelta(seconds=draw(st.integers(0, 6 * 3600))),
        timedelta(seconds=draw(st.sampled_from(DIVISORS))),
        draw(st.integers(0, 400)),
    )


@given(calendars())
def test_days_partition_the_steps_and_nights_end_at_six(calendar):
    clock = [calendar.start + number * calendar.step for number in range(calendar.steps)]
    days, nights = list(calendar.days()), list(calendar.nights())
    assert [step for day in days for step in range(day.start, day.stop)] == list(range(calendar.steps))
    dates = [{clock[step].date() for step in range(day.start, day.stop)} for day in days]
    assert all(len(one) == 1 for one in dates)
    assert len(set.union(set(), *dates)) == len(days)
    in_nights = [step for night in nights for step in range(night.start, night.stop)]
    assert in_nights == [step for step, when in enumerate(clock) if when.time() < time(6)]
    assert calendar.times().tolist() == clock
    assert [calendar.time(step) for step in range(calendar.steps)] == clock


@given(calendars())
def test_json_and_parts(calendar):
    assert rk.Calendar(**calendar.to_json()) == calendar
    for day in calendar.days():
        part = calendar.part(day)
        assert part.steps == day.stop - day.start
        assert part.start == calendar.time(day.start)


def test_open_ended():
    calendar = rk.Calendar("2024-01-01 03:20", "10min")
    assert calendar.steps is None
    assert calendar.day(0) == slice(0, 124)
    assert calendar.day(2) == slice(268, 412)
    assert calendar.night_steps(124) == 36
    for ask in (calendar.times, lambda: list(calendar.days()), lambda: calendar.number_of_days):
        with pytest.raises(rk.errors.InvalidData, match="closed_at"):
            ask()
    assert calendar.closed_at(125) == rk.Calendar("2024-01-01 03:20", "10min", 125)


@pytest.mark.parametrize("number", [-1, 2, 1000])
def test_no_such_day(number):
    with pytest.raises(rk.errors.InvalidData, match=f"no day {number}"):
        rk.Calendar("2024-01-01", "12h", 4).day(number)


def test_frozen():
    calendar = rk.Calendar("2024-01-01", "1h", 3)
    with pytest.raises(AttributeError):
        calendar.steps = 4
    assert hash(calendar) == hash(rk.Calendar(datetime(2024, 1, 1), timedelta(hours=1), np.int64(3)))


@pytest.mark.parametrize(
    ("start", "step", "steps", "words"),
    [
        ("yesterday", "1h", 1, ["'yesterday'", "2014-05-01 00:00"]),
        ("", "1h", 1, ["''"]),
        (None, "1h", 1, ["None"]),
        (date(2024, 1, 1), "1h", 1, ["datetime.date(2024, 1, 1)"]),
        (np.datetime64("2024-01-01"), "1h", 1, ["2024-01-01"]),
        (datetime(2024, 1, 1, tzinfo=UTC), "1h", 1, ["time zone"]),
        ("2024-01-01T00:00:00Z", "1h", 1, ["time zone"]),
        ("2024-01-01 00:00:00.5", "1h", 1, ["whole second"]),
        ("2024-01-01", "7min", 1, ["0:07:00", "24 hours"]),
        ("2024-01-01", "25h", 1, ["24 hours"]),
        ("2024-01-01", "0min", 1, ["0:00:00"]),
        ("2024-01-01", timedelta(hours=-1), 1, ["24 hours"]),
        ("2024-01-01", timedelta(milliseconds=500), 1, ["whole seconds"]),
        ("2024-01-01", "", 1, ["''", "10min"]),
        ("2024-01-01", "ten minutes", 1, ["'ten minutes'", "10min"]),
        ("2024-01-01", "-10min", 1, ["'-10min'"]),
        ("2024-01-01", 600, 1, ["600", "10min"]),
        ("2024-01-01", "1h", -1, ["-1"]),
        ("2024-01-01", "1h", 1.0, ["1.0"]),
        ("2024-01-01", "1h", True, ["True"]),
        ("2024-01-01", "24h", 10**7, ["9999"]),
        ("2024-01-01", "24h", 10**30, ["9999"]),
    ],
)
def test_refuses(start, step, steps, words):
    with pytest.raises(rk.errors.InvalidData) as error:
        rk.Calendar(start, step, steps)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("90sec", 90), (" 10 min ", 600), ("2h", 7200), ("1d", DAY_SECONDS)]
)
def test_steps_as_text(text, seconds):
    assert parse_step(text) == timedelta(seconds=seconds)
    assert parse_step(format_step(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_a_calendar_may_begin_at_any_time():
    calendar = rk.Calendar("2024-01-01 07:00", "1h", 48)
    assert calendar.part(slice(17, 30)) == rk.Calendar("2024-01-02", "1h", 13)
    assert calendar.part(slice(3, 5)) == rk.Calendar("2024-01-01 10:00", "1h", 2)
    assert list(calendar.days()) == [slice(0, 17), slice(17, 41), slice(41, 48)]
    assert list(calendar.nights()) == [slice(0, 0), slice(17, 23), slice(41, 47)]
