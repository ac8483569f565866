"""Flows of several windows together: the shortest are kept exactly, the longer ones tell people apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth

import rekindle as rk
from rekindle.errors import InvalidData, InvalidSetting


def people_of(cells, step="2h"):
    locations = rk.Locations(np.arange(10.0).reshape(5, 2))
    return rk.Trajectories(np.array(cells, np.int32), locations, rk.Calendar("2024-03-01", step))


@pytest.mark.parametrize("attack", [rk.Baseline(), rk.Enhanced(), rk.Habits(effort="low", workers=1)])
@pytest.mark.parametrize("goals", [(3, 4), (4, 3)])
def test_a_longer_window_says_who_went_where_after_a_meeting(attack, goals):
    """Both pairs of ways have the same flows of every step; only what passes over the meeting tells them apart."""
    truth = people_of([[home, 2, goal, 2] * 6 for home, goal in zip((0, 1), goals, strict=True)])
    short, longer = truth.flows(), truth.flows("4h")
    found = attack.recover(flows=[longer, short])
    assert found.trajectories.flows() == short
    assert found.trajectories.flows("4h").first_difference(longer) is None
    assert found.confidence is None


@given(
    seed=st.integers(0, 2**32 - 1),
    people=st.integers(1, 8),
    away=st.sampled_from([0.0, 0.3]),
    windows=st.lists(st.sampled_from(["4h", "6h", "12h", "24h"]), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=30, deadline=None)
def test_the_shortest_flows_are_kept_exactly(seed, people, away, windows):
    truth = random_truth(np.random.default_rng(seed), people=people, places=4, steps=30, step="2h", away=away)
    flows = [truth.flows(), *(truth.flows(window) for window in windows)]
    told = []
    found = rk.Enhanced(seed=seed).recover(flows=flows, progress=lambda done, total: told.append((done, total)))
    assert found.trajectories.flows().first_difference(flows[0]) is None
    assert found.trajectories.counts() == truth.counts()
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    again = rk.Enhanced(seed=seed).recover(flows=flows[::-1])
    assert np.array_equal(found.trajectories.cells, again.trajectories.cells)


def test_without_stayers_they_need_counts():
    truth = random_truth(np.random.default_rng(1), people=6, places=4, steps=24, step="2h")
    flows = [truth.flows(window, stayers=False) for window in ("2h", "8h")]
    found = rk.Enhanced().recover(truth.counts(), flows=flows).trajectories
    assert found.flows() == truth.flows()


def test_what_does_not_belong_together_is_refused():
    truth = random_truth(np.random.default_rng(3), people=4, places=4, steps=24, step="2h")
    with pytest.raises(InvalidData, match="Two of the flows have windows of 2h"):
        rk.Enhanced().recover(flows=[truth.flows(), truth.flows()])
    elsewhere = truth.flows("4h").with_locations(rk.Locations(np.arange(20.0).reshape(10, 2)))
    with pytest.raises(InvalidData, match="different locations"):
        rk.Enhanced().recover(flows=[truth.flows(), elsewhere])
    with pytest.raises(InvalidData, match="at least those of one window"):
        rk.Enhanced().recover(flows=[])
    with pytest.raises(InvalidSetting, match="flows of one window"):
        rk.Enhanced().recover(flows=[truth.flows(), truth.flows("4h")], prior=rk.OtherTraces(truth))
    one = rk.Enhanced().recover(flows=[truth.flows()])
    assert np.array_equal(one.trajectories.cells, rk.Enhanced().recover(flows=truth.flows()).trajectories.cells)
