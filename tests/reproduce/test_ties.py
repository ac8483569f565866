"""The published code's choice among ties."""

import dataclasses

import pytest

import rekindle as rk
from rekindle.reproduce.measuring import check
from rekindle.reproduce.ties import recover_with_scipy


@pytest.mark.parametrize("attack", [rk.Baseline(), rk.Enhanced(), rk.Enhanced(first_step_counts="first_day")])
def test_scipys_ties_are_another_optimum(attack, counts):
    found = recover_with_scipy(attack, counts)
    recovery = dataclasses.replace(attack.recover(counts), trajectories=found)
    result = check(recovery, attack, counts)
    assert result.missed == (0 if attack.first_step_counts == "each_day" else 2)
    assert result.optimal == result.checked
    assert found != attack.recover(counts).trajectories
