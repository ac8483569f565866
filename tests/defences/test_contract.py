"""What every defence must fulfil. A defence that is added to `DEFENCES` needs an example here, and is then tested."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth

import rekindle as rk
from rekindle.defences import (
    DEFENCES,
    PRESETS,
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    GeometricNoise,
    LaplaceNoise,
    Round,
    Sample,
    Suppress,
)
from rekindle.model import Release
from rekindle.repairing import repair
from rekindle.testing import check_defence

EXAMPLES = {
    "suppress": Suppress(below=3),
    "suppress-keeping-zeros": Suppress(below=3, zeros=False),
    "round": Round(to=3),
    "cap": Cap(at=3),
    "laplace": LaplaceNoise(epsilon=1.0, per="event", seed=1),
    "geometric": GeometricNoise(epsilon=20.0, per="person-day", neighbours="substitute", seed=1),
    "coarser-space": CoarserSpace(km=2.0),
    "coarser-time": CoarserTime(step="4h"),
    "sample": Sample(share=0.5, seed=1),
    "nothing": Chain(),
    "chain": Chain(
        [
            Sample(share=0.7, seed=1),
            CoarserSpace(km=2.0),
            CoarserTime(step="4h"),
            Cap(at=9),
            GeometricNoise(epsilon=1.0, per="event", seed=1),
            Suppress(below=2),
            Round(to=2),
        ]
    ),
}
every_defence = pytest.mark.parametrize("defence", EXAMPLES.values(), ids=EXAMPLES.keys())


@pytest.fixture(scope="module", params=["lattice", "towers"])
def truth(request):
    rng = np.random.default_rng(1)
    start = "2024-03-01 04:00"
    return random_truth(
        rng, people=30, places=9, steps=70, step="2h", start=start, lattice=request.param == "lattice", stay=0.8
    )


def test_every_defence_has_an_example():
    assert set(DEFENCES) <= set(EXAMPLES)


@every_defence
def test_fulfils_the_contract(defence, truth):
    check_defence(defence, truth)


@every_defence
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), away=st.sampled_from([0.2, 0.6, 0.9]), lattice=st.booleans())
def test_fulfils_the_contract_with_people_who_come_and_go(defence, seed, away, lattice):
    rng = np.random.default_rng(seed)
    start = "2024-03-01 04:00"
    truth = random_truth(rng, people=40, places=9, steps=40, start=start, lattice=lattice, away=away)
    observed = (truth.cells != rk.AWAY) & (rng.random(truth.cells.shape) < 0.5)
    truth = rk.Trajectories(truth.cells, truth.locations, truth.calendar, truth.people_ids, observed)
    try:
        defence.seeded(5)(truth)
    except rk.errors.InvalidSetting:
        return  # nothing would be left, or no two towers merge
    check_defence(defence, truth)


@every_defence
def test_the_release_states_each_of_a_chain(defence, truth):
    steps = defence.defences if isinstance(defence, Chain) else (defence,)
    assert [one.label for one in defence(truth).defences] == [one.label for one in steps]
    assert defence.exact == all(one.exact for one in defence(truth).defences)
    assert defence.label[0].isupper()


@every_defence
def test_passes_the_shipped_suite(defence):
    check_defence(defence)


@every_defence
def test_another_seed_another_draw_only_where_it_is_random(defence, truth):
    random = "seed" in defence.settings() or isinstance(defence, Chain)
    same = defence.seeded(5)(truth) == defence.seeded(6)(truth)
    assert same != (random and defence.describe() != "as it is")


@every_defence
def test_people_counts_and_release_give_the_same(defence, truth):
    if defence.needs_people:
        with pytest.raises(rk.errors.InvalidData, match="needs the people"):
            defence(truth.counts())
        with pytest.raises(rk.errors.InvalidData, match="needs the people"):
            defence(Release.of(truth.counts()))
    else:
        assert defence(truth) == defence(truth.counts()) == defence(Release.of(truth.counts()))


@pytest.mark.parametrize("name", ["coarser-space", "coarser-time", "sample", "nothing"])
def test_coarser_detail_counts_the_coarsened_truth(name, truth):
    release = EXAMPLES[name](truth)
    assert np.array_equal(release.values, EXAMPLES[name].coarsen(truth).counts().values)


@every_defence
def test_cannot_be_changed(defence):
    with pytest.raises(dataclasses.FrozenInstanceError):
        defence.below = 3


@every_defence
@pytest.mark.parametrize("known", [False, True])
def test_can_be_repaired_and_attacked(defence, truth, known):
    people = defence.coarsen(truth).people if known else None
    counts = repair(defence(truth), people)
    if known:
        assert counts.people == people
    assert rk.Baseline().recover(counts).trajectories.counts() == counts


def test_a_chain_is_the_same_as_one_after_the_other(truth):
    parts = [CoarserSpace(km=2.0), CoarserTime(step="4h"), Cap(at=9), Suppress(below=2), Round(to=2)]
    release = truth.counts()
    for one in parts:
        release = one(release)
    assert Chain(parts)(truth) == release
    assert Chain([Chain(parts[:2]), Chain(parts[2:])])(truth) == release


def test_a_sample_must_come_first():
    with pytest.raises(rk.errors.InvalidSetting, match=r"Sample\(share=0.5, fixed_size=False\) comes after Cap"):
        Chain([Cap(at=3), Sample(share=0.5)])
    with pytest.raises(rk.errors.InvalidSetting, match="is not a defence"):
        Chain([3])


def test_chain_gives_each_a_seed_of_its_own(truth):
    chain = Chain([Sample(share=0.5), GeometricNoise(epsilon=1, per="event")]).seeded(3)
    assert len({one.seed for one in chain.defences}) == 2


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_presets_name_their_source(preset):
    assert len(preset.source) > 30
    assert preset.note


@every_defence
def test_refuses_other_things(defence, truth):
    with pytest.raises(rk.errors.InvalidData, match="ndarray"):
        defence(truth.counts().values)
