"""Defences on flows: the same numbers, other columns."""

import numpy as np
import pytest
from tests.small import line, random_truth

import rekindle as rk
from rekindle.defences import budgets

TRUTH = line([0, 1, 1, 2, 2], [0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [3, rk.AWAY, rk.AWAY, rk.AWAY, 3])
FLOWS = TRUTH.flows()


def column(release, origin, destination):
    return int(np.flatnonzero((release.pairs == (origin, destination)).all(axis=1))[0])


def test_numbers_are_changed_as_those_of_counts():
    plain = rk.Release.of(FLOWS)
    assert plain.values[0, column(plain, 0, 1)] == 2
    assert plain.values[0, column(plain, 3, rk.AWAY)] == 1
    small = plain.values < 2
    assert np.array_equal(rk.Suppress(below=2)(FLOWS).withheld, small)
    assert np.array_equal(rk.Suppress(below=2, zeros=False)(FLOWS).withheld, small & (plain.values > 0))
    assert rk.Cap(at=1)(FLOWS).values.max() == 1
    assert np.array_equal(rk.Round(to=2)(FLOWS).values, np.floor(plain.values / 2 + 0.5) * 2)
    for defence in (rk.Suppress(below=2), rk.Round(to=2), rk.Cap(at=1)):
        assert np.array_equal(defence(FLOWS).pairs, plain.pairs)
        assert defence(FLOWS) == defence(plain) == defence.of_flows(TRUTH)


def test_one_person_is_in_one_flow_of_a_window():
    """The sensitivity of a window is that of a step of counts; there is one window less than steps."""
    noise = rk.LaplaceNoise(epsilon=8.0, per="person", seed=1)
    spent = budgets(noise, rk.Release.of(FLOWS).calendar)[0]
    assert (spent.steps, spent.per_event, spent.sensitivity, spent.scale) == (4, 2.0, 1, 0.5)
    without = rk.Trajectories(TRUTH.cells[1:], TRUTH.locations, TRUTH.calendar).flows()
    with_all, fewer = (rk.Release.of(one, all_pairs=True).values for one in (FLOWS, without))
    assert np.abs(with_all - fewer).sum(axis=1).max() == spent.sensitivity
    drawn = noise(FLOWS).values - rk.Release.of(FLOWS).values
    assert 0.1 < np.abs(drawn).mean() < 2.0


def test_noise_for_publication_needs_every_pair():
    pytest.importorskip("opendp")
    noise = rk.GeometricNoise(epsilon=1.0, per="event").for_publication()
    public = TRUTH.locations.declare_public()
    flows = rk.Trajectories(TRUTH.cells, public, TRUTH.calendar).flows()
    with pytest.raises(rk.errors.InvalidSetting, match="every pair"):
        noise(flows)
    release = noise(rk.Release.of(flows, all_pairs=True))
    assert release.values.shape == (4, 35)  # five locations and away, but not from away to away


def test_larger_cells():
    truth = random_truth(np.random.default_rng(1), people=20, places=9, steps=12, away=0.3)
    coarser = rk.CoarserSpace(km=2.0)
    assert coarser(truth.flows()).values.sum() == truth.flows().totals.sum()
    assert np.array_equal(coarser(truth.flows()).values, rk.Release.of(coarser.coarsen(truth).flows()).values)


def test_longer_steps_are_counted_anew():
    longer = rk.CoarserTime(step="2h")
    with pytest.raises(rk.errors.InvalidSetting, match=r"truth\.flows\(window='2h'\)"):
        longer(FLOWS)
    found = longer.of_flows(TRUTH)
    assert np.array_equal(found.values, rk.Release.of(TRUTH.flows("2h")).values)
    assert [one.name for one in found.defences] == ["CoarserTime"]
    chain = rk.Chain([rk.Sample(share=0.9, seed=2), longer, rk.Suppress(below=2)])
    assert [one.name for one in chain.of_flows(TRUTH).defences] == ["Sample", "CoarserTime", "Suppress"]
    with pytest.raises(rk.errors.InvalidSetting, match="cannot be done to flows"):
        rk.Chain([rk.Suppress(below=2), longer]).of_flows(TRUTH)
