"""How long tasks take: by the size of the data, and by the machine."""

import rekindle as rk
from rekindle.auditing import work


def test_larger_data_take_longer():
    few, many = (rk.SyntheticCity(people=n, days=1, step="1h").trajectories().counts() for n in (10, 40))
    for attack in (None, rk.Naive(), rk.Enhanced(), rk.Habits()):
        assert 0 < work.attacking(attack, few, compared=True) < work.attacking(attack, many, compared=True)
    assert work.matching(few) < work.matching(many)
    assert (
        work.evaluating(few, references=2)
        < work.evaluating(few, references=10)
        < work.evaluating(many, references=10)
    )
    assert work.membership(few, "exact") < work.membership(few, "knock-knock")


def test_a_machine_is_neither_idle_nor_a_thousand_times_slower():
    assert 0.01 < work.measure_slowness() < 1000
    assert 0.01 < work.measure_slowness(0.0) < 1000
