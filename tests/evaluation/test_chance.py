"""Chance and the naive attack meet the counts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.evaluation import deal_at_random, stay_if_possible


@settings(max_examples=40, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_references_meet_the_counts(truth, seed):
    counts = truth.counts()
    assert rk.deal_at_random(counts, seed=seed).counts() == counts
    naive = rk.stay_if_possible(counts, seed=seed)
    assert naive.counts() == counts
    # As many stay as the counts allow.
    stays = (naive.cells[:, 1:] == naive.cells[:, :-1]).sum(axis=0)
    possible = np.minimum(counts.values[1:], counts.values[:-1]).sum(axis=1)
    assert np.array_equal(stays, possible)


def test_chance_and_the_naive_attack_meet_the_counts_and_the_naive_one_moves_no_more_than_it_must():
    counts = random_truth(np.random.default_rng(0), people=30, places=6, steps=20, stay=0.7).counts()
    for attack in (deal_at_random, stay_if_possible):
        one, two, other = attack(counts, seed=1), attack(counts, seed=1), attack(counts, seed=2)
        assert one.counts() == counts
        assert one == two
        assert one != other
    moves = (np.diff(one.cells, axis=1) != 0).sum(axis=0)
    change = np.diff(counts.values.astype(int), axis=0)
    assert moves.tolist() == np.maximum(change, 0).sum(axis=1).tolist()
    assert len({tuple(row) for row in deal_at_random(counts).cells[:, :2].tolist()}) > 6
