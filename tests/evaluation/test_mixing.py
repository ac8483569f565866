"""The truth with mixed identities: what flows of an order leave open."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small import line, truths

import rekindle as rk
from rekindle.evaluation import mix_identities


def visits(cells):
    """The locations that a person was in, one after the other."""
    cells = cells.tolist()
    return [cell for at, cell in enumerate(cells) if at == 0 or cell != cells[at - 1]]


def chains(truth, order):
    """How often each chain of so many moves was made, ending at which step."""
    found = Counter()
    for cells in truth.cells:
        for step in range(1, truth.steps):
            if cells[step] != cells[step - 1]:
                found[step, *visits(cells[: step + 1])[-order - 1 :]] += 1
    return found


@given(truth=truths(away=True), order=st.integers(1, 3), seed=st.integers(0, 9))
def test_flows_of_the_order_are_those_of_the_truth(truth, order, seed):
    mixed = mix_identities(truth, order, seed)
    assert mixed == mix_identities(truth, order, seed)
    assert chains(mixed, order) == chains(truth, order)
    assert mixed.counts() == truth.counts()
    assert mixed.flows() == truth.flows()


def test_people_who_meet_are_mixed():
    """Two meet in location 1: flows of order 1 do not say who goes on to where, those of order 2 do."""
    truth = line([0, 1, 2], [3, 1, 4])
    found = {tuple(map(tuple, sorted(mix_identities(truth, 1, seed).cells.tolist()))) for seed in range(20)}
    assert found == {((0, 1, 2), (3, 1, 4)), ((0, 1, 4), (3, 1, 2))}
    for seed in range(20):
        assert sorted(mix_identities(truth, 2, seed).cells.tolist()) == [[0, 1, 2], [3, 1, 4]]


def test_a_longer_stay_does_not_make_them_forget():
    truth = line([0, 1, 1, 1, 2], [3, 3, 1, 1, 4])
    for seed in range(20):
        assert sorted(mix_identities(truth, 2, seed).cells.tolist()) == sorted(truth.cells.tolist())


def test_every_meeting_is_mixed_evenly():
    truth = line([0, 1, 2], [3, 1, 4])
    kept = [mix_identities(truth, 1, seed).cells[0, 2] == 2 for seed in range(400)]
    assert 0.4 < np.mean(kept) < 0.6


def test_it_stands_beside_chance_and_naive():
    city = rk.SyntheticCity(people=20, days=2, step="1h", width_km=4, height_km=4).trajectories()
    scores = rk.reference_scores(city, seeds=2, orders=(1, 3))
    assert list(scores.flows) == [1, 3]
    assert scores.chance["accuracy"].mean < scores.flows[1]["accuracy"].mean <= scores.flows[3]["accuracy"].mean
    assert set(scores.to_frame()["reference"]) == {"chance", "naive", "flows of order 1", "flows of order 3"}
    assert rk.reference_scores(city, seeds=2).flows == {}
    with pytest.raises(rk.errors.InvalidSetting, match="order"):
        rk.reference_scores(city, seeds=1, orders=(0,))
