"""The shipped contract suite passes what is right and notices what is wrong; a new part is one module, nothing else."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

import rekindle as rk
from rekindle.attacks.chance import ChanceRun
from rekindle.cli import main
from rekindle.errors import ContractBroken, InvalidData, InvalidSetting
from rekindle.testing import check_attack, check_defence

# Attacks that are wrong in one way each


@dataclass(frozen=True, kw_only=True)
class Wrong(rk.Chance):
    """Chance, with one thing wrong."""

    how: str = "not at all"

    def _begin(self, locations, calendar, people, progress):
        return WrongRun(self, locations, calendar, people, progress)


class WrongRun(ChanceRun):
    times = 0

    def _draw(self, values, rng):
        how = self.attack.how
        WrongRun.times += 1
        if how == "changes the counts":
            values.flags.writeable = True
            values[0] = values[0][::-1].copy()
        cells = super()._draw(values, rng)
        if how == "does not meet the counts":
            cells[0] = cells[1]
        if how == "when it is run again":
            cells = cells[np.roll(np.arange(len(cells)), WrongRun.times)]
        if how == "fed day by day" and not self.at_once:
            cells = cells[::-1].copy()
        return cells

    def restore(self, saved):
        if self.attack.how == "resumes after 0 days":
            return
        super().restore(saved)
        if self.attack.how == "saved and resumed":
            self._rng = np.random.default_rng(99)

    def feed(self, counts, *, flows=None):
        self.at_once = counts.steps == self.calendar.steps
        if self.attack.how == "still be fed":
            self._stop.clear()
        super().feed(counts, flows=flows)


@pytest.mark.parametrize(
    "how",
    [
        "changes the counts",
        "does not meet the counts",
        "when it is run again",
        "fed day by day",
        "resumes after 0 days",
        "saved and resumed",
        "still be fed",
    ],
)
def test_a_wrong_attack_is_noticed(how):
    with pytest.raises(ContractBroken, match=how):
        check_attack(Wrong(how=how))


def test_a_right_attack_passes():
    check_attack(Wrong())
    with pytest.raises(InvalidData, match="at least 3"):
        check_attack(Wrong(), rk.SyntheticCity(people=5, days=2, step="4h").trajectories().counts())


# Defences that are wrong in one way each


@dataclass(frozen=True, kw_only=True)
class WrongDefence(rk.Defence):
    how: str = "not at all"
    seed: int | None = None

    @property
    def exact(self):
        return self.how == "says that it is exact"

    def _change(self, release):
        values = release.values.astype(float)
        if self.how == "for the same seed":
            values = values + np.random.default_rng().integers(0, 9, values.shape)
        if self.how == "says that it is exact":
            values = values + 1
        locations = release.locations
        if self.how == "other locations":
            locations = rk.Locations(locations.xy_km + 1)
        if self.how == "not take flows":
            return rk.Release(values, locations, release.calendar)
        if self.how == "gives a ndarray, not a release":
            return values
        return rk.Release(values, locations, release.calendar, pairs=release.pairs)

    def settings(self):
        settings = super().settings()
        return settings | {"seed_of_mine": 3} if self.how == "shows its seed" else settings


@pytest.mark.parametrize(
    "how",
    [
        "for the same seed",
        "says that it is exact",
        "other locations",
        "shows its seed",
        "not take flows",
        "gives a ndarray, not a release",
    ],
)
def test_a_wrong_defence_is_noticed(how):
    with pytest.raises(ContractBroken, match=how):
        check_defence(WrongDefence(how=how))


def test_a_right_defence_passes():
    check_defence(WrongDefence())


# One module each, nothing else touched

ATTACK = '''
from dataclasses import dataclass

import numpy as np

import rekindle as rk
from rekindle.attacks import DailyRun, with_away


@dataclass(frozen=True, kw_only=True)
class InOrder(rk.Attack):
    """At every step the first people are in the first location."""

    seed: int = 0

    def start(self, locations, calendar, *, people, progress=None):
        return InOrderRun(self, locations, calendar, people, progress)


class InOrderRun(DailyRun):
    def _recover_day(self, counts):
        values = with_away(counts.values)
        listed = np.arange(values.shape[1], dtype=np.int32)
        return np.stack([np.repeat(listed, row) for row in values], axis=1)
'''


def test_a_new_attack_is_one_module(tmp_path, monkeypatch):
    (tmp_path / "in_order.py").write_text(ATTACK)
    truth = rk.SyntheticCity(people=8, days=3, step="4h", width_km=3, height_km=3).trajectories()
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth)
    monkeypatch.chdir(tmp_path)
    own = ["--attack", "in_order:InOrder", "--out"]
    for command in (
        ["attack", "data", *own, "found"],
        ["evaluate", "found", "data"],
        ["audit", "data", *own, "audit", "--defence", "none", "--seeds", "2", "--workers", "1"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert not end.value.code
    assert rk.read_recovery(tmp_path / "found").trajectories.counts() == truth.counts()
    assert "InOrder" in (tmp_path / "audit" / "report.html").read_text()
    check_attack(sys.modules["in_order"].InOrder())


@pytest.mark.parametrize(("check", "kind"), [(check_attack, rk.Enhanced), (check_defence, rk.Suppress)])
def test_a_class_is_no_object(check, kind):
    with pytest.raises(InvalidSetting, match=kind.__name__):
        check(kind)
