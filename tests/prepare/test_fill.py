import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.prepare import fill_steps


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
