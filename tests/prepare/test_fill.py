from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.prepare import choose_max_gap, counted_steps, fill_steps


def values(known, heights, steps, how):
    before, after, share = fill_steps(np.array(known), steps, how)
    heights = np.array(heights, float)
    return (heights[before] * (1 - share) + heights[after] * share).tolist()


def test_by_hand():
    known, heights = [1, 5, 6], [10, 20, 40]
    assert values(known, heights, 8, "last") == [10, 10, 10, 10, 10, 20, 40, 40]
    # Step 3 is as near to step 1 as to step 5: the earlier record counts.
    assert values(known, heights, 8, "nearest") == [10, 10, 10, 10, 20, 20, 40, 40]
    assert values(known, heights, 8, "linear") == [10, 10, 12.5, 15, 17.5, 20, 40, 40]


@settings(deadline=None)
@given(st.sets(st.integers(0, 30), min_size=1), st.integers(1, 40), st.sampled_from(["last", "nearest", "linear"]))
def test_against_a_plain_loop(known, steps, how):
    known = sorted(known)
    heights = [step**2 for step in known]
    expected = []
    for step in range(steps):
        earlier = [i for i, at in enumerate(known) if at <= step]
        later = [i for i, at in enumerate(known) if at >= step]
        a = earlier[-1] if earlier else later[0]
        b = later[0] if later else earlier[-1]
        if how == "last":
            expected.append(heights[a])
        elif how == "nearest":
            expected.append(heights[b] if earlier and later and known[b] - step < step - known[a] else heights[a])
        else:
            expected.append(float(np.interp(step, known, heights)))
    assert values(known, heights, steps, how) == pytest.approx(expected)


def test_gaps_by_hand():
    known = np.array([2, 3, 6, 12])

    def counted(how, max_gap):
        return "".join(".X"[int(there)] for there in counted_steps(known, 18, how, max_gap))

    assert counted("last", 3) == "..XXXXXXXX..XXXX.."
    assert counted("nearest", 3) == "..XXXXXX...XXX...."  # half of 3 steps is one step
    assert counted("nearest", 6) == "..XXXXXXXXXXXXXX.."  # the gap of 6 is filled wholly
    assert counted("nearest", 5) == "..XXXXXXX.XXXXX..."
    assert counted("linear", 3) == "..XXXXX.....X....."
    assert counted("linear", 6) == "..XXXXXXXXXXX....."
    for how in ("last", "nearest", "linear"):
        assert counted(how, 0) == "..XX..X.....X....."
        assert counted(how, None) == "X" * 18


@settings(deadline=None)
@given(
    st.sets(st.integers(0, 30), min_size=1),
    st.integers(1, 40),
    st.sampled_from(["last", "nearest", "linear"]),
    st.integers(0, 12),
)
def test_gaps_against_a_plain_loop(known, steps, how, max_gap):
    counted = counted_steps(np.array(sorted(known)), steps, how, max_gap)
    for step in range(steps):
        since = min((step - at for at in known if at <= step), default=None)
        until = min((at - step for at in known if at > step), default=np.inf)
        expected = (
            since is not None
            and {
                "last": since <= max_gap,
                "nearest": min(since, until) <= max_gap / 2,
                "linear": since == 0 or since + until <= max_gap,
            }[how]
        )
        assert counted[step] == expected
        if since is not None and since + until <= max_gap:
            assert counted[step]  # a gap that is short enough is filled wholly


def test_the_chosen_gap_suits_half_of_the_people():
    def choose(*records, minutes=10):
        return choose_max_gap([np.array(known) for known in records], timedelta(minutes=minutes)) / timedelta(hours=1)

    often = np.arange(0, 1_000)  # every ten minutes
    assert choose(often) == 1
    hourly = np.arange(0, 1_000, 9)
    assert choose(hourly) == 2  # 90 minutes, rounded up
    assert choose(often, hourly, hourly) == 2
    assert choose(often, often, hourly, [0]) == 1  # one record has no interval
    # One in ten intervals lasts 8 hours; that is more than one in twenty.
    nights = np.cumsum(([1] * 9 + [48]) * 5)
    assert choose(nights) == 8
    assert choose(np.cumsum(([1] * 39 + [48]) * 5)) == 1
    assert choose([0, 1_000]) == 24
    assert choose([5]) == 1
