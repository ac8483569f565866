"""What an audit takes, and how much it does where nobody said: by the size of the data, or by the time there is."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.attacks import ATTACKS
from rekindle.auditing import audit, entry
from rekindle.defences import Suppress


class Enough(Exception):  # noqa: N818
    """What was to be seen was seen."""


def crowd(people, days):
    places = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    cells = np.zeros((people, 48 * days), np.int32)
    return rk.Trajectories(cells, rk.Locations(places), rk.Calendar("2024-01-01", "30min", 48 * days))


def ahead(data, **settings):
    told = []

    def announce(forecast):
        told.append(forecast)
        raise Enough

    with pytest.raises(Enough):
        audit(data, announce=announce, workers=2, **settings)
    return told[0]


def efforts(found):
    return [one.settings()["effort"] for one in found.plan.attacks.values() if "effort" in one.settings()]


def test_small_data_get_everything():
    found = ahead(crowd(60, 7))
    plan = found.plan
    assert (len(plan.attacks), efforts(found), plan.seeds, len(plan.defences)) == (3, ["normal"], 3, 8)
    assert plan.thorough
    assert found.omitted == ()
    assert found.chosen == {"attacks", "defences", "seeds", "thorough"}


def test_two_thousand_people_for_two_weeks_fit_into_a_quarter_of_an_hour():
    found = ahead(crowd(2000, 14))
    assert found.seconds <= 900
    assert efforts(found) == ["low"]
    assert found.plan.defences
    assert any("`effort='normal'` tries harder" in sentence for sentence in found.omitted)
    assert any("`seeds=3` tries more" in sentence for sentence in found.omitted)


def test_twenty_thousand_people_for_a_week_fit_into_half_an_hour():
    found = ahead(crowd(20_000, 7))
    assert found.seconds <= 1800
    assert efforts(found) == ["low"]


def test_what_is_beyond_an_attack_is_said(monkeypatch):
    monkeypatch.setattr(rk.Habits, "why_not", lambda self, counts: "There are too many people.")
    found = ahead(crowd(60, 2))
    assert efforts(found) == []
    assert found.omitted[0].startswith("Habits is not tried. There are too many people.")
    assert "the risk may be higher" in found.omitted[0]


def test_the_choice_does_not_look_at_the_clock(monkeypatch):
    found = ahead(crowd(1000, 7))
    monkeypatch.setattr(entry, "measure_slowness", lambda: 10.0)
    slow = ahead(crowd(1000, 7))
    assert slow.seconds == pytest.approx(10 * found.seconds)
    assert slow.tasks == found.tasks
    same = ("attacks", "seeds", "defences", "thorough")
    assert [getattr(slow.plan, name) for name in same] == [getattr(found.plan, name) for name in same]


def test_a_time_budget_does(monkeypatch, tmp_path):
    data = crowd(300, 7)
    amounts = [ahead(data, time_budget=budget) for budget in ("1min", "10min", "3h")]
    assert [one.seconds for one in amounts] == sorted({one.seconds for one in amounts})
    for one, limit in zip(amounts, (60, 600, 10_800), strict=True):
        assert one.seconds <= limit
    monkeypatch.setattr(entry, "measure_slowness", lambda: 10.0)
    assert ahead(data, time_budget="10min").tasks < amounts[1].tasks


def test_what_was_asked_for_is_kept():
    found = ahead(crowd(2000, 14), seeds=2, defences=[Suppress(below=4)], attacks=[rk.Habits()], thorough=True)
    assert (found.plan.seeds, found.plan.defences, found.plan.thorough) == (2, [Suppress(below=4)], True)
    assert efforts(found) == ["normal"]
    assert found.chosen == frozenset()
    assert found.omitted == ()
    assert dict(found.faster).keys() == {"effort='low'", "seeds=1", "thorough=False", "defences=[]"}
    assert all(seconds < found.seconds for _, seconds in found.faster)


def test_what_takes_less_memory():
    found = ahead(crowd(20_000, 7))
    assert all(needed < found.memory_bytes for _, needed in found.lighter)
    assert dict(found.lighter)["workers=1"] < found.memory_bytes


@pytest.mark.parametrize("name", ATTACKS)
def test_more_people_and_more_days_are_more_work(name):
    attack = ATTACKS[name]()
    sizes = [(100, 2), (200, 2), (200, 4)]
    works = [attack.work(crowd(*size).counts()) for size in sizes]
    assert 0 < works[0] < works[1] < works[2]
    assert attack.why_not(crowd(100, 2).counts()) is None
