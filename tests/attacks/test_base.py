"""What every attack and every run is."""

import ast
from pathlib import Path

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks import ATTACKS
from rekindle.attacks.base import Details
from rekindle.attacks.day_by_day import DayByDayDetails
from rekindle.errors import InvalidData, InvalidSetting

SOURCE = Path(rk.__file__).parent


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(4), people=6, places=5, steps=24, step="2h").counts()


def test_an_attack_without_settings_has_none():
    class Bare(rk.Attack):
        def start(self, locations, calendar, *, people, progress=None):
            return rk.Baseline().start(locations, calendar, people=people, progress=progress)

    assert Bare().settings() == {}


def test_a_run_needs_people_and_one_feed_at_a_time(counts):
    with pytest.raises(InvalidSetting, match="`people` is 0"):
        rk.Baseline().start(counts.locations, counts.calendar, people=0)
    assert rk.Baseline().start(counts.locations, counts.calendar, people=1).people == 1
    refused = []

    def feed_again(done, total):
        with pytest.raises(InvalidSetting, match="being fed already"):
            run.feed(counts)
        refused.append((done, total))

    run = rk.Baseline().start(counts.locations, counts.calendar, people=counts.people, progress=feed_again)
    run.feed(counts)
    assert refused == [(1, 2), (2, 2)]


def test_steps_of_another_length_are_refused(counts):
    run = rk.Baseline().start(counts.locations, rk.Calendar(counts.calendar.start, "1h"), people=counts.people)
    with pytest.raises(InvalidData, match=r"steps of 2:00:00, the run of 1:00:00"):
        run.feed(counts)


def test_memory_grows_with_the_people(counts):
    small = rk.Baseline().memory_bytes(counts)
    twice = rk.Baseline().memory_bytes(rk.Counts(counts.values * 2, counts.locations, counts.calendar))
    assert small >= 300 * 2**20
    assert twice > small


def test_attacks_never_import_what_knows_the_truth():
    forbidden = (
        "rekindle.evaluation",
        "rekindle.sources",
        "rekindle.prepare",
        "rekindle.auditing",
        "rekindle.report",
    )
    files = list((SOURCE / "attacks").rglob("*.py"))
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file} imports relatively"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                assert not name.startswith(forbidden), f"{file} imports {name}"


def test_every_attack_has_a_name_and_says_what_it_is():
    for name, kind in ATTACKS.items():
        assert kind.__name__.lower() == name
        assert kind.__doc__


def test_memory_is_known_before_the_start(counts):
    many = rk.SyntheticCity(people=5000, days=1, step="1h").trajectories().counts()
    small, large = rk.Enhanced().memory_bytes(counts), rk.Enhanced().memory_bytes(many)
    assert 0 < small < large < 2**31


def test_details_show_their_values_where_these_are_few():
    nan, day = np.nan, np.arange(3.0)
    shown = {
        "step_costs=24 numbers from 0 to 23": np.arange(24.0),
        "step_costs=[nan, 0.1235, 5]": np.array([nan, 0.123456, 5]),
        "step_costs=1200000": np.full(30, 1.2e6),
        "step_costs=nan": np.full(30, nan),
        "step_costs=[]": np.empty(0),
    }
    for text, array in shown.items():
        assert text in repr(DayByDayDetails(array, day, day))
    assert (
        repr(DayByDayDetails(day, day, day[:1]))
        == "DayByDayDetails(step_costs=[0, 1, 2], link_costs=[0, 1, 2], gaps=0)"
    )
    assert repr(Details()) == "Details()"


def test_a_recovery_is_called_by_its_attack_and_what_the_attacker_knew():
    truth = random_truth(np.random.default_rng(1), people=5, places=4, steps=48, step="1h")
    past, today = truth.part(slice(0, 24)), truth.part(slice(24, 48))
    two = rk.Trajectories(today.cells[:2], today.locations, today.calendar, truth.people_ids[:2])
    known = rk.KnownPeople(two)
    left = rk.KnownPast(rk.Trajectories(past.cells[2:], past.locations, past.calendar, truth.people_ids[2:]))
    for attack, name in (
        (rk.Enhanced(), "Enhanced"),
        (rk.Enhanced(prior=left), "Enhanced, known past"),
        (rk.Baseline().knowing(known), "Baseline, known people"),
        (rk.Enhanced(prior=left).knowing(known), "Enhanced, known past, known people"),
    ):
        found = attack.recover(today.counts())
        assert repr(found).endswith(f"by {name})")
        assert f"Recovery by {name}<" in found._repr_html_()
