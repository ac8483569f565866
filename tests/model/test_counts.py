"""Counts: what they hold, and what is refused."""

from datetime import UTC, datetime

import numpy as np
import pytest
from tests.model.nouns import HOURLY, LOCATIONS, refuses

import rekindle as rk


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64])
def test_counts_are_a_read_only_view(dtype):
    values = np.array([[1, 2], [3, 0]], dtype)
    counts = rk.Counts(values, LOCATIONS, HOURLY)
    assert np.shares_memory(counts.values, values)
    assert values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        counts.values[0, 0] = 5
    with pytest.raises(AttributeError):
        counts.values = values
    assert (counts.people, counts.steps, counts.calendar.steps) == (3, 2, 2)


def test_whole_floats_are_counts():
    counts = rk.Counts([[1.0, 2.0]], LOCATIONS, HOURLY)
    assert counts.values.dtype == np.int64
    assert counts == rk.Counts([[1, 2]], LOCATIONS, HOURLY)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1, 2], [4, -1]], ["2024-01-01 01:00:00", "'b'", "-1"]),
        ([[1, 2], [1.5, 1.5]], ["2024-01-01 01:00:00", "'a'", "1.5"]),
        ([[1, 2], [3, np.nan]], ["2024-01-01 01:00:00", "'b'", "missing"]),
        ([[1, 2], [3, np.inf]], ["'b'", "inf"]),
        ([[1, 2], [3, None]], ["missing"]),
        ([["1", "2"]], ["whole numbers"]),
        ([[True, False]], ["bool"]),
        ([[1, 2], [3]], ["Counts"]),
        ([[0, 0]], ["nobody"]),
        ([[1, 2, 3]], ["3 columns for 2"]),
        ([1, 2], ["(2,)"]),
        ([], ["(0,)"]),
        (np.empty((0, 2), int), ["(0, 2)"]),
        ([[2**31, 0]], [str(2**31)]),
        ([[2**31 - 1, 1]], [str(2**31)]),
        (np.array([[2**63, 2**63]], np.uint64), [str(2**63)]),
        ([[1e300, 0]], ["too large"]),
    ],
)
def test_counts_refuse(values, words):
    refuses(words, rk.Counts, values, LOCATIONS, HOURLY)


def test_counts_need_their_calendar():
    refuses(["1 rows", "2 steps"], rk.Counts, [[1, 2]], LOCATIONS, HOURLY.closed_at(2))


def test_days_of_counts():
    counts = rk.Counts([[1, 2]] * 30, LOCATIONS, rk.Calendar("2024-01-01 03:20", "1h"))
    days = list(counts.days())
    assert [day.steps for day in days] == [21, 9]
    assert str(days[1].calendar.start) == "2024-01-02 00:20:00"
    assert all(np.shares_memory(day.values, counts.values) for day in days)


def test_between():
    counts = rk.Counts([[hour % 4, 3 - hour % 4] for hour in range(50)], LOCATIONS, HOURLY)
    part = counts.between(datetime(2024, 1, 2), datetime(2024, 1, 2, 5))
    assert part == counts.part(slice(24, 29))
    assert counts.between(datetime(1999, 1, 1), datetime(2999, 1, 1)) == counts
    assert counts.between() == counts
    assert counts.between(datetime(2024, 1, 1, 0, 0, 0, 1)).calendar.start == datetime(2024, 1, 1, 1)
    assert counts.between(end=datetime(2024, 1, 1, 0, 0, 0, 1)).steps == 1
    refuses(["2025", "2024-01-03 01:00:00"], counts.between, datetime(2025, 1, 1))
    refuses(["2024-01-01"], counts.between, None, datetime(2024, 1, 1))
    refuses(["time zone"], counts.between, datetime(2024, 1, 1, tzinfo=UTC))


def test_people_are_the_largest_total_unless_given():
    counts = rk.Counts([[1, 2], [0, 1]], LOCATIONS, HOURLY)
    assert (counts.people, counts.away.tolist()) == (3, [0, 2])
    more = rk.Counts([[1, 2], [0, 1]], LOCATIONS, HOURLY, people=5)
    assert (more.people, more.away.tolist(), more.part(slice(1, 2)).people) == (5, [2, 4], 5)
    assert more != counts
    refuses(["`people` is 2", "3 people"], rk.Counts, [[1, 2]], LOCATIONS, HOURLY, 2)
    with pytest.raises(rk.errors.InvalidSetting, match=r"`people` is 2\.5"):
        rk.Counts([[1, 2]], LOCATIONS, HOURLY, people=2.5)
