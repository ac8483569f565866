"""The budgets that `defend` prints, against what outputs on neighbouring datasets prove.

A town of many small groups, each with locations and people of its own: one release of it is many independent draws of the
mechanism on one group. A group is two locations and two steps, a neighbour who is always in the second, and a person of
whom the datasets differ. The score of an output is its exact log-likelihood ratio.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

import rekindle as rk
from rekindle.defences import (
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
from rekindle.defences.noise import budgets
from rekindle.membership.epsilon import counted_epsilon

GROUPS = 10_000
column, row = np.divmod(np.arange(GROUPS), 100)
xy = np.stack([np.stack([4.0 * column, 4.0 * row], axis=1), np.stack([4.0 * column + 1, 4.0 * row], axis=1)], axis=1)
places = rk.Locations(xy.reshape(-1, 2), public=True)
two_steps = rk.Calendar("2024-03-01", "1h", 2)
NEIGHBOUR, HERE, MOVED, THERE = (1, 1), (0, 0), (1, 0), (1, 1)
KINDS = {"add-remove": [(NEIGHBOUR,), (NEIGHBOUR, HERE)], "substitute": [(NEIGHBOUR, THERE), (NEIGHBOUR, HERE)]}


@cache
def town(group, steps):
    """The same group everywhere."""
    cells = (2 * np.arange(GROUPS)[:, None, None] + np.array(group)).reshape(-1, 2)
    return rk.Trajectories(cells[:, :steps], places, two_steps.closed_at(steps))


def cdf(noise, scale, values):
    if noise is LaplaceNoise:
        return np.where(
            values < 0, 0.5 * np.exp(np.minimum(values, 0) / scale), 1 - 0.5 * np.exp(-np.maximum(values, 0) / scale)
        )
    a, whole = math.exp(-1 / scale), np.floor(values)
    return np.where(whole < 0, a ** -np.minimum(whole, 0) / (1 + a), 1 - a ** (np.maximum(whole, 0) + 1) / (1 + a))


def draws(chain, group):
    """Who may be counted, each with its probability."""
    for drawn in np.ndindex(*[2] * len(group)):
        weight = 1.0
        for one in chain.defences:
            if isinstance(one, GroupwiseSample):
                size = round(one.share * len(group))
                weight *= (sum(drawn) == size) / math.comb(len(group), size)
            elif isinstance(one, Sample):
                weight *= one.share ** sum(drawn) * (1 - one.share) ** (len(group) - sum(drawn))
        if not any(isinstance(one, Sample) for one in chain.defences):
            weight = float(all(drawn))
        if weight:
            yield weight, [path for path, one in zip(group, drawn, strict=True) if one]


def log_likelihood(outputs, chain, group, steps):
    """Log-likelihood of (groups, steps, locations) published numbers, up to a constant that outputs share."""
    noise = next(one for one in chain.defences if one.adds_noise)
    scale = budgets(chain, two_steps.closed_at(steps))[0].scale
    below = max([one.below for one in chain.defences if isinstance(one, Suppress)], default=-math.inf)
    base = max([one.to for one in chain.defences if isinstance(one, Round)], default=0)
    total = np.full(len(outputs), -np.inf)
    for weight, people in draws(chain, group):
        counts = np.array(
            [[sum(path[step] == place for path in people) for place in (0, 1)] for step in range(steps)], float
        )
        for one in chain.defences:
            counts = counts[::2] if isinstance(one, CoarserTime) else counts
            counts = counts.sum(axis=1, keepdims=True) if isinstance(one, CoarserSpace) else counts
            counts = np.minimum(counts, one.at) if isinstance(one, Cap) else counts
        if base or below > -math.inf:
            tick = 1 if isinstance(noise, GeometricNoise) else 0
            low = np.maximum(outputs - base / 2 if base else outputs, below)
            high = outputs + base / 2 if base else outputs + tick
            low, high = np.where(np.isnan(outputs), -np.inf, low), np.where(np.isnan(outputs), below, high)
            inside = cdf(type(noise), scale, high - counts - tick) - cdf(type(noise), scale, low - counts - tick)
            point = -np.abs(outputs - counts) / scale
            each = np.where(high > low, np.log(np.maximum(inside, 1e-300)), point)
        else:
            each = -np.abs(outputs - counts) / scale
        total = np.logaddexp(total, math.log(weight) + each.sum(axis=(1, 2)))
    return total


def measured(chain, groups, steps, *, simulated=True):
    """The lower bound that the releases of two towns prove."""
    scores = []
    for seed, group in enumerate(groups):
        defence = chain.seeded(seed) if simulated else chain.for_publication()
        values = defence(town(group, steps)).values
        outputs = values.reshape(len(values), GROUPS, -1).swapaxes(0, 1)
        likely = [log_likelihood(outputs, chain, each, steps) for each in groups]
        # Simulated Laplace noise gives itself away by the last bits of its numbers; OpenDP's does not, and is what counts.
        scores.append(np.round(likely[1] - likely[0], 9) if simulated else likely[1] - likely[0])
    return counted_epsilon(*scores[::-1], confidence=1 - 1e-6)


FAMILIES = {
    "noise": ([], []),
    "cap": ([Cap(at=1)], []),
    "larger cells": ([CoarserSpace(km=2)], []),
    "longer steps": ([CoarserTime(step="2h")], []),
    "sample": ([Sample(share=0.5)], []),
    "sample, larger cells, cap": ([Sample(share=0.3), CoarserSpace(km=2), Cap(at=1)], []),
    "suppressed": ([], [Suppress(below=2)]),
    "rounded": ([], [Round(to=3)]),
    "sample, suppressed, rounded": ([Sample(share=0.5)], [Suppress(below=1), Round(to=3)]),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("neighbours", KINDS)
@pytest.mark.parametrize("noise", [GeometricNoise, LaplaceNoise])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_output_proves_more_than_the_budget(family, neighbours, noise, epsilon):
    before, after = FAMILIES[family]
    chain = Chain([*before, noise(epsilon=epsilon, per="person", neighbours=neighbours), *after])
    steps = 2 if family == "longer steps" else 1
    claim = budgets(chain, two_steps.closed_at(steps))[0].spent("person")
    found = measured(chain, KINDS[neighbours], steps)
    assert found <= claim
    if epsilon == 2.0 and family in ("noise", "longer steps", "sample"):
        assert found > 0.5 * claim, "the test would not notice a claim that is too small"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["noise", "larger cells", "sample"])
@pytest.mark.parametrize("noise", [GeometricNoise, LaplaceNoise])
def test_nor_does_the_noise_that_is_published(family, noise):
    pytest.importorskip("opendp", reason="OpenDP is not installed (extra dp)")
    before, _ = FAMILIES[family]
    chain = Chain([*before, noise(epsilon=1.0, per="person")])
    claim = budgets(chain, two_steps.closed_at(1))[0].spent("person")
    assert 0.3 * claim < measured(chain, KINDS["add-remove"], 1, simulated=False) <= claim


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_an_event_hides_less_well_in_a_sample_than_a_person(share):
    """The other step gives away that the person was drawn."""
    chain = Chain([Sample(share=share), GeometricNoise(epsilon=4.0, per="event", neighbours="substitute")])
    budget = budgets(chain, two_steps)[0]
    alone = budgets(chain, two_steps.closed_at(1))[0].spent("event")
    found = measured(chain, [(NEIGHBOUR, MOVED), (NEIGHBOUR, HERE)], 2)
    assert alone < found <= budget.spent("event") < budget.per_event


@dataclass(frozen=True, kw_only=True)
class GroupwiseSample(Sample):
    """A sample of fixed size, drawn in each group for itself."""

    fixed_size: bool = True

    def coarsen(self, truth):
        size = truth.people // GROUPS
        rows = np.random.default_rng(self.seed).permuted(np.tile(np.arange(size), (GROUPS, 1)), axis=1)
        kept = np.sort(rows[:, : round(self.share * size)] + size * np.arange(GROUPS)[:, None], axis=1).ravel()
        return rk.Trajectories(truth.cells[kept], truth.locations, truth.calendar)


@dataclass(frozen=True, kw_only=True)
class OldSample(GroupwiseSample):
    """The sample of 0.1.0: of fixed size, which the noise after it does not know."""

    included: ClassVar[float] = 1.0


DISPLACED = [(NEIGHBOUR,) * 3, (NEIGHBOUR,) * 3 + (HERE,)]


def test_finds_that_the_old_sample_spent_more():
    chain = Chain([OldSample(share=0.5), GeometricNoise(epsilon=1.0, per="person")])
    claim = budgets(chain, two_steps.closed_at(1))[0].spent("person")
    assert claim == pytest.approx(1.0)
    assert claim < measured(chain, DISPLACED, 1) <= math.log(0.5 * math.exp(2 * claim) + 0.5)


@pytest.mark.parametrize("noise", [GeometricNoise, LaplaceNoise])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_sample_of_fixed_size_keeps_its_budget(epsilon, noise):
    chain = Chain([GroupwiseSample(share=0.5), noise(epsilon=epsilon, per="person")])
    claim = budgets(chain, two_steps.closed_at(1))[0].spent("person")
    assert claim == pytest.approx(epsilon)
    assert 0.3 * claim - 0.2 < measured(chain, DISPLACED, 1) <= claim


def test_simulated_noise_is_not_for_publication():
    """The last bits of NumPy's Laplace noise tell what it was added to, which is why OpenDP draws what is published."""
    chain = Chain([CoarserSpace(km=2), LaplaceNoise(epsilon=0.5, per="person")]).seeded(0)
    scores = []
    for group in KINDS["add-remove"]:
        outputs = chain(town(group, 1)).values[0]
        scores.append(np.abs(outputs - 1) - np.abs(outputs - 2))
    assert counted_epsilon(*scores[::-1], confidence=1 - 1e-6) > 1.0
