"""What is saved can be resumed, by the same attack only, and holds no code."""

import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.saving import SavedRun, read_run, write_run
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(4), people=6, places=5, steps=24, step="2h").counts()


@dataclass(frozen=True)
class Own(rk.Baseline):
    """An attack that no file can name."""


def test_an_attack_of_your_own_must_be_given_to_resume(counts, tmp_path):
    run = Own().start(counts.locations, counts.calendar, people=counts.people)
    run.feed(counts)
    run.save(tmp_path / "run.npz")
    with pytest.raises(InvalidSetting, match="'Own'; give it as `attack`"):
        rk.resume(tmp_path / "run.npz")
    again = rk.resume(tmp_path / "run.npz", attack=Own())
    assert again.trajectories() == run.trajectories()
    with pytest.raises(InvalidSetting, match="not by Baseline"):
        rk.resume(tmp_path / "run.npz", attack=rk.Baseline())


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays.pop("gaps"),
        lambda arrays: arrays.update(link_costs=arrays["link_costs"][:1]),
        lambda arrays: arrays.update(cells=arrays["cells"] + 100),
    ],
    ids=["missing", "short", "elsewhere"],
)
def test_a_run_with_damaged_days_is_refused(counts, tmp_path, damage):
    run = rk.Baseline().start(counts.locations, counts.calendar, people=counts.people)
    run.feed(counts)
    run.save(tmp_path / "run.npz")
    saved = read_run(tmp_path / "run.npz")
    damage(saved.arrays)
    write_run(tmp_path / "run.npz", saved)
    with pytest.raises((InvalidFile, InvalidData)):
        rk.resume(tmp_path / "run.npz")


def test_a_saved_run_keeps_all_there_is_of_places_and_holds_no_code(counts, tmp_path):
    places = rk.Locations.from_lat_lng(np.array([[1.0, 2.0], [1.5, 2.0]]), ["A", "A\0"])
    run = SavedRun("Baseline", {"seed": 3}, places, counts.calendar, 4, {"cells": np.arange(3)})
    write_run(tmp_path / "run.npz", run)
    read = read_run(tmp_path / "run.npz")
    assert np.array_equal(read.locations.lat_lng, places.lat_lng)
    assert read.locations == places
    assert (read.attack, read.settings, read.people) == ("Baseline", {"seed": 3}, 4)
    assert read.calendar == counts.calendar
    assert list(read.arrays) == ["cells"]
    evil = SavedRun("Baseline", {}, places, counts.calendar, 4, {"cells": np.array([object()])})
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        write_run(tmp_path / "evil.npz", evil)
    assert not (tmp_path / "evil.npz").exists()


def test_another_format_is_refused(counts, tmp_path):
    path = tmp_path / "run.npz"
    write_run(path, SavedRun("Baseline", {}, counts.locations, counts.calendar, 4, {}))
    with np.load(path) as stored:
        arrays = dict(stored)
    head = json.loads(str(arrays["head"]))
    assert head["format"] == "rekindle run 1"
    arrays["head"] = np.array(json.dumps(head | {"format": "rekindle run 2"}))
    np.savez(path, **arrays)
    with pytest.raises(InvalidFile, match="its format is 'rekindle run 2', not 'rekindle run 1'"):
        read_run(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("note.txt", "no arrays")
    with pytest.raises(InvalidFile, match="not a saved run"):
        read_run(path)
    with pytest.raises(InvalidFile, match="does not exist"):
        read_run(tmp_path / "nothing.npz")


@dataclass(frozen=True)
class Squared:
    """Not a metric: long moves cost far more, and one place is worth a detour."""

    def __call__(self, previous, current, context):
        cost = context.locations.distances[current] ** 2
        cost[:, 0] -= 1.5 * (context.departs.hour >= 6)
        return cost + context.transitions[[0]].toarray()[0] * 1e-3


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
