"""Releases of flows: defences change their numbers, and repair gives flows in which nobody gets lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.oracle import tables_within
from tests.small import line, random_truth, truths

import rekindle as rk
from rekindle.model import AppliedDefence, check_flows
from rekindle.repairing.flows import _fit as fit
from rekindle.repairing.observations import observe

DEFENCES = [
    rk.Chain([]),
    rk.Suppress(below=2),
    rk.Suppress(below=3, zeros=False),
    rk.Round(to=2),
    rk.Cap(at=1),
    rk.LaplaceNoise(epsilon=2.0, per="event", seed=1),
    rk.Chain([rk.GeometricNoise(epsilon=1.0, per="event", seed=1), rk.Suppress(below=2)]),
    rk.Chain([rk.Sample(share=0.9, seed=1), rk.Suppress(below=2)]),
]


@settings(deadline=None, max_examples=60)
@given(
    truth=truths(away=True, max_steps=12),
    defence=st.sampled_from(DEFENCES),
    stayers=st.booleans(),
    counts_known=st.booleans(),
)
def test_nobody_gets_lost(truth, defence, stayers, counts_known):
    """Whatever was done: flows that fit each other (Flows checks that itself), the counts, and the numbers that are exact."""
    try:
        release = defence.of_flows(truth, stayers=stayers)
    except rk.errors.RekindleError:
        return
    truth = defence.coarsen(truth)
    counts = truth.counts() if counts_known or not release.stayers else None
    repaired = rk.repair_flows(release, truth.people, counts)
    assert repaired.calendar == truth.calendar
    assert repaired.people == truth.people
    if counts is not None:
        check_flows(counts, repaired)
        if defence.exact:
            mine, shown = table(repaired, release), ~release.withheld
            assert np.array_equal(mine[shown], release.values[shown])
        if not defence.adds_noise and not defence.needs_people:
            seen = observe(release)
            mine = table(repaired, release)
            assert (mine >= seen.low).all()
            assert (mine <= np.where(seen.open_above, np.inf, seen.high)).all()


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), people=st.integers(1, 9))
def test_numbers_stay_within_their_limits_where_any_table_does(seed, people):
    """Against all tables with the same sums; and one that nothing speaks against is not changed."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 4))
    true = np.zeros((size, size))
    np.add.at(true, tuple(rng.integers(0, size, (2, people))), 1)
    width = rng.integers(0, 3, true.shape)
    low, high = np.maximum(true - width, 0.0), true + rng.integers(0, 3, true.shape)
    leave, arrive = (true.sum(axis=axis).astype(np.int64) for axis in (1, 0))
    if rng.random() < 0.3:  # sums of other people
        leave, arrive = rng.permutation(leave), rng.permutation(arrive)
    guess = np.clip(rng.uniform(0, 4, true.shape), low, high)
    none = np.zeros(true.shape)
    found = fit(guess, low, high, none, leave, arrive)
    assert np.array_equal(found.sum(axis=1), leave)
    assert np.array_equal(found.sum(axis=0), arrive)
    possible = set(tables_within(low, high, leave, arrive))
    if possible:
        assert tuple(found.ravel().tolist()) in possible
    if np.array_equal(leave, true.sum(axis=1)) and np.array_equal(arrive, true.sum(axis=0)):
        assert np.array_equal(fit(true, low, high, none, leave, arrive), true)


def table(flows, release):
    """Flows in the columns of a release."""
    found = np.zeros(release.values.shape)
    columns = {tuple(pair): column for column, pair in enumerate(release.pairs.tolist())}
    for row in range(release.steps):
        for origin, destination, count in zip(*flows.at(row), strict=True):
            if (int(origin), int(destination)) in columns:
                found[row, columns[int(origin), int(destination)]] = count
    return found


@settings(deadline=None)
@given(truth=truths(away=True), all_pairs=st.booleans())
def test_what_is_exact_is_kept(truth, all_pairs):
    if truth.steps == 1:
        with pytest.raises(rk.errors.InvalidData, match="no window"):
            rk.Release.of(truth.flows())
        return
    if not truth.counted.any():
        return
    flows = truth.flows()
    exact = [AppliedDefence(name="None", exact=True)]  # few numbers may look as if they were rounded
    release = rk.Release.of(flows, exact, all_pairs=all_pairs)
    assert release.has_all_pairs or not all_pairs
    assert release.steps == flows.steps - 1
    assert release.values.sum(axis=1).tolist() == flows.totals.tolist()
    assert rk.repair_flows(release, truth.people) == flows
    moving = truth.flows(stayers=False)
    if len(moving.step):
        assert rk.repair_flows(rk.Release.of(moving, exact, all_pairs=all_pairs), counts=truth.counts()) == flows


def test_suppression_hides_little_where_it_can():
    """Crowds who commute are kept exactly; what is withheld is near what was there."""
    rng = np.random.default_rng(3)
    truth = random_truth(rng, people=200, places=4, steps=24, stay=0.9)
    flows = truth.flows()
    release = rk.Suppress(below=5)(flows)
    assert 0.3 < release.withheld.mean() < 0.9
    repaired = rk.repair_flows(release, 200)
    off = np.abs(table(repaired, release) - rk.Release.of(flows).values)
    assert off[release.withheld].mean() < 1.2
    assert off[~release.withheld].mean() < 0.5


def test_flows_and_counts_are_told_apart():
    truth = line([0, 1, 1], [1, 1, 0])
    with pytest.raises(rk.errors.InvalidData, match="`repair_flows`"):
        rk.repair(rk.Release.of(truth.flows()))
    with pytest.raises(rk.errors.InvalidData, match="`repair`"):
        rk.repair_flows(rk.Release.of(truth.counts()))
    with pytest.raises(rk.errors.InvalidData, match="`counts`"):
        rk.repair_flows(rk.Release.of(truth.flows(stayers=False)))
    with pytest.raises(rk.errors.InvalidData, match="Nobody moves"):
        rk.Release.of(line([0, 0]).flows(stayers=False))
