"""Chance and the naive attack meet the counts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth, truths

import rekindle as rk

CHANCE = [[3, 3, 1, 0, 0, 0, 1, 2, 3, 1, 3, 0, 3, 3], [0, 0, 0, 0, 2, 3, 3, 0, 2, 0, 1, 2, 2, 1]]
NAIVE = [[3, 3, 3, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0], [0, 0, 1, 0, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0]]


@settings(max_examples=40, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_references_meet_the_counts(truth, seed):
    counts = truth.counts()
    assert rk.Chance(seed=seed).recover(counts).trajectories.counts() == counts
    naive = rk.Naive(seed=seed).recover(counts).trajectories
    assert naive.counts() == counts
    # As many stay as the counts allow.
    stays = (naive.cells[:, 1:] == naive.cells[:, :-1]).sum(axis=0)
    possible = np.minimum(counts.values[1:], counts.values[:-1]).sum(axis=1)
    assert np.array_equal(stays, possible)


def test_chance_and_the_naive_attack_meet_the_counts_and_the_naive_one_moves_no_more_than_it_must():
    counts = random_truth(np.random.default_rng(0), people=30, places=6, steps=20, stay=0.7).counts()
    for attack in (rk.Chance, rk.Naive):
        one, two, other = (attack(seed=seed).recover(counts).trajectories for seed in (1, 1, 2))
        assert one.counts() == counts
        assert one == two
        assert one != other
    moves = (np.diff(one.cells, axis=1) != 0).sum(axis=0)
    change = np.diff(counts.values.astype(int), axis=0)
    assert moves.tolist() == np.maximum(change, 0).sum(axis=1).tolist()
    assert len({tuple(row) for row in rk.Chance().recover(counts).trajectories.cells[:, :2].tolist()}) > 6


def test_the_guesses_are_those_that_were_always_made():
    """The values of 0.1, which figures in the documentation rest on."""
    counts = random_truth(np.random.default_rng(3), people=6, places=4, steps=14, step="4h").counts()
    chance, naive = (kind(seed=7).recover(counts).trajectories for kind in (rk.Chance, rk.Naive))
    assert chance.cells[:2].tolist() == CHANCE
    assert naive.cells[:2].tolist() == NAIVE
