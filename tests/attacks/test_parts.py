"""The machine takes other costs, and what is saved can only be resumed by the same attack."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks import ATTACKS

SOURCE = Path(rk.__file__).parent


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(4), people=10, places=9, steps=48, step="1h").counts()


@dataclass(frozen=True)
class Squared:
    """Not a metric: long moves cost far more, and one place is worth a detour."""

    def __call__(self, previous, current, context):
        cost = context.locations.distances[current] ** 2
        cost[:, 0] -= 1.5 * (context.departs.hour >= 6)
        return cost + context.transitions[[0]].toarray()[0] * 1e-3


def test_any_move_cost_gets_an_exact_solution(counts):
    found = rk.DayByDay(first=rk.attacks.Stay(), night=Squared(), day=Squared()).recover(counts)
    assert found.trajectories.counts() == counts
    cells, distances = found.trajectories.cells, counts.locations.distances
    for step in range(1, 23):  # the first day: no transitions are known yet
        columns = np.repeat(np.arange(9), counts.values[step + 1])
        matrix = distances[cells[:, step]][:, columns] ** 2 - 1.5 * (step >= 6) * (columns == 0)
        least = matrix[linear_sum_assignment(matrix)].sum()
        assert found.details.step_costs[step + 1] == pytest.approx(least, abs=1e-9)


def test_a_built_in_cost_wrapped_as_any_other_costs_the_same(counts):
    def wrapped(previous, current, context):
        return rk.attacks.Popular()(previous, current, context)

    plain = rk.Enhanced(night=wrapped, day=wrapped).recover(counts)
    first_day = counts.calendar.day(0)
    fast = rk.Enhanced().recover(counts)
    assert plain.details.step_costs[:3] == pytest.approx(fast.details.step_costs[:3], abs=1e-9, nan_ok=True)
    assert plain.trajectories.part(first_day).counts() == counts.part(first_day)


def test_a_target_cost_with_a_price_of_its_own_is_asked_for_it(counts):
    class Dear(rk.attacks.Velocity):
        def __call__(self, previous, current, context):
            return 2 * super().__call__(previous, current, context)

    dear, plain = rk.Baseline(day=Dear()).recover(counts), rk.Baseline().recover(counts)
    assert dear.details.step_costs[7] == pytest.approx(2 * plain.details.step_costs[7])


def test_another_linking_cost(counts):
    def same_start(past, today, locations):
        return (past[:, :1] != today[:, 0]).astype(float)

    found = rk.Baseline(linking=same_start).recover(counts)
    cells = found.trajectories.cells
    assert found.details.link_costs[1] == (cells[:, 0] != cells[:, 24]).sum()


def test_costs_that_forbid_too_much_are_refused(counts):
    def nowhere(previous, current, context):
        return np.full((len(current), 9), np.inf)

    with pytest.raises(rk.errors.InvalidData, match="forbid"):
        rk.DayByDay(day=nowhere, night=nowhere).recover(counts)


def test_costs_of_a_wrong_shape_are_refused(counts):
    with pytest.raises(rk.errors.InvalidData, match="shape"):
        rk.DayByDay(day=lambda o, p, s: np.zeros((1, 1)), night=lambda o, p, s: np.zeros((1, 1))).recover(counts)
    with pytest.raises(rk.errors.InvalidData, match="linking cost"):
        rk.Baseline(linking=lambda past, today, places: np.full((10, 10), np.nan)).recover(counts)


@pytest.mark.parametrize(
    "settings",
    [{"lookback_days": 0}, {"lookback_days": 1.5}, {"seed": -1}, {"day": "velocity"}, {"day": rk.attacks.Stay}],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(rk.errors.InvalidSetting, match=next(iter(settings))):
        rk.Enhanced(**settings)


def test_settings_are_keyword_only_and_typos_are_refused():
    with pytest.raises(TypeError):
        rk.Enhanced(3)
    with pytest.raises(TypeError):
        rk.Enhanced(lookback=3)


def test_resume_in_a_new_process(counts, tmp_path):
    run = rk.Enhanced(seed=5).start(counts.locations, counts.calendar, people=counts.people)
    run.feed(next(counts.days()))
    run.save(tmp_path / "run.npz")
    rk.write_counts(tmp_path / "rest.csv", counts.part(counts.calendar.day(1)))
    rk.write_locations(tmp_path / "places.csv", counts.locations)
    code = (
        "import rekindle as rk, numpy as np; run = rk.resume('run.npz');"
        "run.feed(rk.read_counts('rest.csv', 'places.csv')); np.save('cells.npy', run.trajectories().cells)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert np.array_equal(np.load(tmp_path / "cells.npy"), rk.Enhanced(seed=5).recover(counts).trajectories.cells)


def test_own_parts_must_be_given_again_to_resume(counts, tmp_path):
    attack = rk.Enhanced(day=Squared())
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    run.feed(next(counts.days()))
    run.save(tmp_path / "run.npz")
    with pytest.raises(rk.errors.InvalidSetting, match="give `attack`"):
        rk.resume(tmp_path / "run.npz")
    with pytest.raises(rk.errors.InvalidSetting, match="not by Enhanced"):
        rk.resume(tmp_path / "run.npz", attack=rk.Enhanced())
    assert rk.resume(tmp_path / "run.npz", attack=attack).days_done == 1


def test_a_damaged_file_is_refused(tmp_path):
    with pytest.raises(rk.errors.InvalidFile, match="does not exist"):
        rk.resume(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(rk.errors.InvalidFile, match="not a saved run"):
        rk.resume(tmp_path / "bad.npz")
    np.savez(tmp_path / "pickle.npz", head=np.array([{"a": 1}], dtype=object))
    with pytest.raises(rk.errors.InvalidFile, match="not a saved run"):
        rk.resume(tmp_path / "pickle.npz")


def test_save_replaces_only_saved_runs(counts, tmp_path):
    run = rk.Baseline().start(counts.locations, counts.calendar, people=counts.people)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rk.errors.OutputExists):
        run.save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


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


def test_days_side_by_side_give_the_same_bytes():
    truth = random_truth(np.random.default_rng(6), people=30, places=16, steps=24 * 5, step="1h")
    one, two = (rk.Baseline(workers=workers).recover(truth.counts()) for workers in (1, 2))
    assert one.trajectories.cells.tobytes() == two.trajectories.cells.tobytes()
    assert one.details.step_costs.tobytes() == two.details.step_costs.tobytes()
    assert rk.Baseline(workers=1) == rk.Baseline(workers=2)


def test_memory_is_known_before_the_start(counts):
    many = rk.SyntheticCity(people=5000, days=1, step="1h").trajectories().counts()
    small, large = rk.Enhanced().memory_bytes(counts), rk.Enhanced().memory_bytes(many)
    assert 0 < small < large < 2**31
