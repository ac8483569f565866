"""Flows: what they say of the people, and when they are refused."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small import line, truths

import rekindle as rk
from rekindle.model import check_flows

LOCATIONS = rk.Locations([[0.0, 0.0], [3.0, 4.0]], ["a", "b"])
HOURLY = rk.Calendar("2024-01-01", "1h", 3)
AWAY = rk.AWAY


def flows(*rows, **settings):
    """Flows of two locations at three steps."""
    step, origin, destination, count = np.array(rows, int).reshape(-1, 4).T
    return rk.Flows(step, origin, destination, count, LOCATIONS, HOURLY, **settings)


def refuses(words, call, *arguments, **settings):
    with pytest.raises(rk.errors.InvalidData) as error:
        call(*arguments, **settings)
    for word in words:
        assert word in str(error.value)


@given(truth=truths(away=True), every=st.integers(1, 4), stayers=st.booleans())
def test_flows_say_who_was_where_at_both_ends(truth, every, stayers):
    window = every * truth.calendar.step
    if window.days > 1 or 86_400 % window.total_seconds():
        return
    found = truth.flows(window, stayers=stayers)
    assert (found.window, found.people, found.stayers) == (window, truth.people, stayers)
    moments = truth.cells[:, ::every]
    assert found.steps == moments.shape[1]
    for step in range(found.steps - 1):
        pairs = Counter(zip(moments[:, step].tolist(), moments[:, step + 1].tolist(), strict=True))
        pairs = {
            pair: n for pair, n in sorted(pairs.items()) if pair != (AWAY, AWAY) and (stayers or pair[0] != pair[1])
        }
        origins, destinations, counts = found.at(step)
        assert list(zip(origins.tolist(), destinations.tolist(), strict=True)) == list(pairs)
        assert counts.tolist() == list(pairs.values())
    check_flows(truth.counts(), found)


@given(truth=truths(away=True))
def test_counts_follow_from_flows(truth):
    if truth.steps == 1:
        refuses(["no window"], truth.flows().counts)
        return
    found = truth.flows()
    assert found.counts() == truth.counts()
    moving = truth.flows(stayers=False)
    assert found.without_stayers() == moving
    assert moving.with_stayers(truth.counts()) == found
    assert found.with_stayers(truth.counts()) is found
    refuses(["without stayers", "with_stayers"], moving.counts)


@given(truth=truths(away=True), stayers=st.booleans())
def test_days_have_their_windows_and_the_one_before(truth, stayers):
    whole = truth.flows(stayers=stayers)
    for number, (day, counts) in enumerate(zip(whole.days(), truth.counts().days(), strict=True)):
        assert day.steps == counts.steps + (number > 0)
        assert day == truth.part(day.moments(truth.calendar)).flows(stayers=stayers)
    assert sum(len(day.step) for day in whole.days()) == len(whole.step)


@given(truth=truths(away=True, max_steps=12), stayers=st.booleans(), data=st.data())
def test_counts_that_do_not_fit_are_refused(truth, stayers, data):
    """One person more anywhere is noticed, but at a step of stayers that no window begins or ends with."""
    if truth.steps == 1:
        return
    counts = truth.counts()
    values = counts.values.copy()
    step = data.draw(st.integers(0, truth.steps - 1))
    place = data.draw(st.integers(0, len(truth.locations) - 1))
    values[step, place] += 1
    other = rk.Counts(values, counts.locations, counts.calendar, counts.people + 1)
    refuses(
        ["do not fit the counts", repr(counts.locations.ids[place])], check_flows, other, truth.flows(stayers=stayers)
    )


def test_a_window_longer_than_the_step():
    truth = line([0, 1, 1, 2, 2], [0, 0, 1, 1, 1], [3, AWAY, AWAY, AWAY, 3])
    found = truth.flows("2h")
    assert found.calendar == rk.Calendar("2024-03-01", "2h", 3)
    assert found.counts().values.tolist() == truth.counts().values[::2].tolist()
    assert [part.tolist() for part in found.at(0)] == [[0, 3], [1, AWAY], [2, 1]]
    assert [part.tolist() for part in found.at(1)] == [[AWAY, 1, 1], [3, 1, 2], [1, 1, 1]]
    assert found.moments(truth.calendar) == slice(0, 5, 2)
    for window in ("90min", "0h"):
        with pytest.raises(rk.errors.InvalidSetting, match="multiple of the step of 1h"):
            truth.flows(window)


def test_flows_are_sorted_and_kept_without_zeros():
    found = flows((1, 1, 1, 3), (0, 1, 1, 2), (0, 0, 1, 1), (1, 0, 0, 0), (1, AWAY, 0, 4))
    assert found.step.tolist() == [0, 0, 1, 1]
    assert found.origin.tolist() == [0, 1, AWAY, 1]
    assert found.count.tolist() == [1, 2, 4, 3]
    assert found.people == 7
    assert found.totals.tolist() == [3, 7]
    assert found.counts().values.tolist() == [[1, 2], [0, 3], [4, 3]]
    with pytest.raises(ValueError, match="read-only"):
        found.count[0] = 9
    table = found.to_frame()
    assert table.rows()[2][1:] == (None, "a", 4)
    assert table["datetime"].to_list()[2].hour == 1
    assert repr(found) == "Flows(7 people, 2 windows of 1h from 2024-01-01 00:00:00, 2 locations, with stayers)"
    assert found == flows((0, 0, 1, 1), (0, 1, 1, 2), (1, 1, 1, 3), (1, AWAY, 0, 4))
    assert found != flows((0, 0, 1, 1), (0, 1, 1, 2), (1, 1, 1, 3), (1, AWAY, 0, 4), people=8)
    assert found != "flows"


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        ([(2, 0, 0, 1)], {}, ["step 2", "from 0 to 1"]),
        ([(0, 2, 0, 1)], {}, ["origin 2", "from -1 to 1"]),
        ([(0, 0, -2, 1)], {}, ["destination -2"]),
        ([(0, 0, 0, -1)], {}, ["count -1"]),
        ([(0, 0, 0, 2**31)], {}, ["count 2147483648"]),
        ([(0, 0, 1, 1), (0, 0, 1, 1)], {}, ["'a' to 'b'", "2024-01-01 00:00:00", "twice"]),
        ([(1, AWAY, AWAY, 1)], {}, ["nowhere to nowhere", "no flow"]),
        ([(0, 0, 0, 1)], {"stayers": False}, ["'a' to 'a'", "stayers"]),
        ([(0, 0, 1, 2), (1, 1, 0, 1)], {}, ["01:00", "'b'", "2 people arrive", "1 leave", "release"]),
        ([(0, 0, 1, 2)], {}, ["No flow begins at", "01:00", "2 people arrive"]),
        ([(0, 0, 1, 2), (1, 1, 1, 2)], {"people": 1}, ["`people` is 1", "add up to 2"]),
    ],
)
def test_flows_refuse(rows, settings, words):
    refuses(words, flows, *rows, **settings)


def test_flows_refuse_what_is_no_table():
    calendar = HOURLY
    refuses(["count", "float64"], rk.Flows, [0], [0], [0], [1.5], LOCATIONS, calendar)
    refuses(["lengths"], rk.Flows, [0, 1], [0], [0], [1], LOCATIONS, calendar)
    refuses(["number of steps"], rk.Flows, [0], [0], [0], [1], LOCATIONS, rk.Calendar("2024-01-01", "1h"))
    found = flows((0, 0, 1, 1), (1, 1, 1, 1))
    refuses(["step 2"], found.at, 2)
    refuses(["step -1"], found.at, -1)


def test_flows_and_counts_of_other_places_and_times():
    found = flows((0, 0, 1, 1), (1, 1, 1, 1))
    counts = found.counts()
    elsewhere = rk.Locations(LOCATIONS.xy_km, ["a", "c"])
    refuses(["other locations"], check_flows, rk.Counts(counts.values, elsewhere, HOURLY), found)
    later = rk.Calendar("2024-01-01 01:00", "1h", 3)
    refuses(["no part of"], check_flows, rk.Counts(counts.values, LOCATIONS, later), found)
    refuses(["2 people", "counts 1"], check_flows, counts, flows((0, 0, 1, 1), (1, 1, 1, 1), people=2))
    stay = rk.Counts([[2, 0], [1, 1], [2, 0]], LOCATIONS, HOURLY)
    refuses(
        ["00:00", "'a'", "2 of 2 people stay", "1 of 1"], check_flows, stay, flows((0, AWAY, 1, 1), stayers=False)
    )
