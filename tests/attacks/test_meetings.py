"""Exchanges at meetings: no flow changes, and of two people the best exchange is found."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth

from rekindle.attacks import meetings
from rekindle.attacks.meetings import exchange_towards, exchange_until_likely


def flows_of(tracks):
    """Who goes where from tick to tick, sorted."""
    return [
        sorted(zip(a, b, strict=True)) for a, b in zip(tracks.T[:-1].tolist(), tracks.T[1:].tolist(), strict=True)
    ]


def best_of_two(tracks, worth, fixed=False):
    """Try all exchanges of two ways at their meetings: the most that can be had."""
    ticks = tracks.shape[1]
    best = -np.inf
    for state in product((0, 1), repeat=ticks):
        crossings = [tick for tick in range(1, ticks) if state[tick] != state[tick - 1]]
        if any(tracks[0, tick - 1] != tracks[1, tick - 1] for tick in crossings):
            continue
        if fixed and state[0] and tracks[0, 0] != tracks[1, 0]:
            continue
        best = max(best, sum(worth(side, t, tracks[side ^ state[t], t]) for t in range(ticks) for side in (0, 1)))
    return best


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), fixed=st.booleans(), wishes=st.integers(1, 3))
def test_of_two_people_the_best_exchange_is_found(seed, fixed, wishes):
    rng = np.random.default_rng(seed)
    tracks = random_truth(rng, people=2, places=3, steps=9, stay=0.4).cells.astype(np.int32)
    lengths = rng.integers(1, 4, 9)
    wanted = rng.integers(-1, 3, (wishes, 2, 9)).astype(np.int32)

    def worth(side, tick, place):
        return lengths[tick] * sum(wish[side, tick] == place for wish in wanted)

    found = exchange_towards(tracks, wanted, lengths, fixed=fixed)
    assert flows_of(found) == flows_of(tracks)
    assert not fixed or np.array_equal(found[:, 0], tracks[:, 0])
    reached = sum(worth(side, tick, found[side, tick]) for side in (0, 1) for tick in range(9))
    assert reached == best_of_two(tracks, worth, fixed)

    states = np.arange(27).reshape(9, 3)
    marginal = rng.random((27, 2))
    found = exchange_until_likely(tracks, marginal, states, lengths)
    assert flows_of(found) == flows_of(tracks)

    def likely(side, tick, place):
        return lengths[tick] * marginal[states[tick, place], side]

    reached = sum(likely(side, tick, found[side, tick]) for side in (0, 1) for tick in range(9))
    assert reached == pytest.approx(best_of_two(tracks, likely), abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), fixed=st.booleans())
def test_by_lists_flows_stay_and_wishes_are_met_nearly_as_well(seed, fixed):
    rng = np.random.default_rng(seed)
    tracks = random_truth(rng, people=12, places=4, steps=20, stay=0.6).cells.astype(np.int32)
    wanted = np.array([rng.permutation(row) for row in tracks.T]).T.astype(np.int32)
    lengths = np.ones(20, np.int64)
    every = exchange_towards(tracks, wanted, lengths, fixed=fixed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meetings, "ALL_PAIRS_UP_TO", 0)
        listed = exchange_towards(tracks, wanted, lengths, fixed=fixed)
    assert flows_of(listed) == flows_of(tracks)
    assert not fixed or np.array_equal(listed[:, 0], tracks[:, 0])
    before, after, best = ((one == wanted).mean() for one in (tracks, listed, every))
    assert after >= before
    assert after >= best - 0.2
