"""A defence is one module: it is written here, and nothing else knows of it."""

import importlib
import sys

import numpy as np
import pytest

import rekindle as rk
import rekindle.defences
from rekindle.defences.parse import find_defences
from rekindle.model import AppliedDefence
from rekindle.repairing import REPAIRS

MODULE = '''
"""Publish nothing at night."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rekindle.defences.base import Defence
from rekindle.model import Release


@dataclass(frozen=True, kw_only=True)
class NoNights(Defence):
    """Withhold every number before an hour of the day."""

    exact: ClassVar[bool] = True
    until: int = 6

    @property
    def label(self) -> str:
        return f"Nothing before {self.until} o\'clock"

    def _change(self, release: Release) -> Release:
        hours = release.calendar.times().astype("datetime64[h]").astype(int) % 24
        night = np.broadcast_to((hours < self.until)[:, None], release.values.shape)
        return release.with_values(np.where(night, np.nan, release.values))
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The module, as if it lay in the room of defences."""
    (tmp_path / "no_nights.py").write_text(MODULE)
    monkeypatch.setattr(rekindle.defences, "__path__", [*rekindle.defences.__path__, str(tmp_path)])
    yield importlib.import_module("rekindle.defences.no_nights")
    del sys.modules["rekindle.defences.no_nights"], rekindle.defences.no_nights


@pytest.fixture(scope="module")
def city():
    return rk.SyntheticCity(people=20, days=2, step="2h", width_km=4, height_km=4).trajectories()


def test_it_has_a_name_at_the_command_line(module):
    assert find_defences()["no-nights"] is module.NoNights


def test_it_is_repaired(module, city):
    release = module.NoNights()(city)
    assert release.defences == (
        AppliedDefence(name="NoNights", settings={"until": 6}, label="Nothing before 6 o'clock", exact=True),
    )
    for repair in REPAIRS.values():
        found = repair(release, city.people).values
        assert np.array_equal(found[~release.withheld], city.counts().values[~release.withheld])
    chain = rk.Chain([module.NoNights(until=4), rk.Round(to=2)])
    assert chain.label == "Nothing before 4 o'clock, then round to 2"
    assert rk.repair(chain(city), city.people).people == city.people


def test_its_release_is_written_and_read(module, city, tmp_path):
    release = module.NoNights()(city)
    rk.write_release(tmp_path / "r.csv", release)
    assert rk.read_release(tmp_path / "r.csv", city.locations) == release


def test_noise_refuses_to_follow_it(module, city):
    noise = rk.LaplaceNoise(epsilon=1, per="event", seed=0)
    with pytest.raises(rk.errors.InvalidSetting, match="cannot be added after NoNights"):
        rk.Chain([module.NoNights(until=0), noise])(city)


def test_it_is_audited_and_reported(module, city, tmp_path):
    found = rk.audit(city, attacks=[rk.Baseline()], defences=[module.NoNights()], seeds=1, workers=1)
    assert found.releases[1].label == "Nothing before 6 o'clock"
    assert found.releases[1].withheld == pytest.approx(0.25)
    found.to_html(tmp_path / "report.html")
    assert "Nothing before 6 o" in (tmp_path / "report.html").read_text()
