"""The attacks as they are run, and whether what they recover fits the release."""

import dataclasses

import numpy as np
import pytest

import rekindle as rk
from rekindle.reproduce.measuring import _alone, check


def test_each_enhancement_is_switched_on_alone():
    start, all_on = rk.Baseline(seed=1).settings(), rk.Enhanced(seed=1).settings()
    changed = []
    for attack in _alone(1).values():
        changed += [name for name, value in attack.settings().items() if value != start[name]]
    assert changed == ["night", "day", "lookback_days"]
    assert {name for name in all_on if all_on[name] != start[name]} == set(changed)


@pytest.mark.parametrize("attack", [rk.Baseline(), rk.Enhanced(), rk.Enhanced(first_step_counts="first_day")])
def test_consistency_of_the_attacks(attack, counts):
    found = check(attack.recover(counts), attack, counts)
    midnights = 0 if attack.first_step_counts == "each_day" else 2
    assert (found.missed, found.gap) == (midnights, 0)
    assert found.checked == found.optimal > 25


def test_an_inconsistent_recovery_is_noticed(counts):
    attack = rk.Baseline()
    found = attack.recover(counts)
    wrong = rk.Trajectories(np.roll(found.trajectories.cells, 1, axis=1), counts.locations, counts.calendar)
    assert check(dataclasses.replace(found, trajectories=wrong), attack, counts).missed > 0
    shuffled = found.trajectories.cells.copy()
    shuffled[:, 1::2] = shuffled[::-1, 1::2]  # meets the counts, but at a cost
    dear = rk.Trajectories(shuffled, counts.locations, counts.calendar)
    result = check(dataclasses.replace(found, trajectories=dear), attack, counts)
    assert result.missed == 0
    assert result.optimal < result.checked
