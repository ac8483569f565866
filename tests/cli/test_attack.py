"""`rekindle attack`, as a user types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from tests.cli.calling import plain, run
from tests.small import random_truth

import rekindle as rk


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def rekindle(*arguments, **settings):
    """Start a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "rekindle", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


TRUTH = random_truth(np.random.default_rng(5), people=6, places=4, steps=36, step="2h", start="2024-03-01 04:00")
COUNTS = TRUTH.counts()


@pytest.fixture
def data(tmp_path):
    rk.write_dataset(tmp_path / "data", counts=COUNTS, truth=TRUTH)
    return tmp_path / "data"


@pytest.fixture(scope="module")
def long_release(tmp_path_factory):
    """A release that takes some seconds, and the recovery of an undisturbed run."""
    folder = tmp_path_factory.mktemp("long")
    city = rk.SyntheticCity(people=150, days=20, step="20min", seed=1)
    rk.write_dataset(folder / "data", counts=city.trajectories().counts())
    assert run("attack", folder / "data", "--out", folder / "whole") == 0
    return folder / "data", content(folder / "whole")


def test_attack_and_evaluate(data, tmp_path, capsys):
    assert run("attack", data, "--out", "out") == 0
    assert "6 people, 36 steps, 4 days" in capsys.readouterr().out
    found = rk.read_recovery("out")
    assert found.complete
    assert found.attack == "Enhanced"
    assert found.trajectories == rk.Enhanced().recover(COUNTS).trajectories
    assert found.trajectories.counts() == COUNTS
    assert sorted(content(tmp_path / "out")) == [*(f"day-000{day}.parquet" for day in range(4)), "locations.parquet", "recovery.json", "rekindle.json"]  # fmt: skip

    assert run("evaluate", "out", data, "--seeds", 2) == 0
    printed = capsys.readouterr().out
    for word in ("accuracy (share)", "mean error (km)", "naive", "chance", "5 locations", "evaluation.json"):
        assert word in printed
    numbers = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    result = rk.evaluate(found.trajectories, TRUTH)
    assert numbers["result"]["accuracy"] == result.accuracy
    assert f"{result.accuracy:.3f}" in printed
    assert numbers["per_person"]["matched_recovered"] == result.per_person.matched.tolist()
    assert len(numbers["chance"]["accuracy"]["values"]) == 2
    # It lies in the recovery, which can still be read and evaluated again.
    assert run("evaluate", "out", data, "--mapping", "greedy", "--seeds", 0, "--json", "my.json") == 0
    assert json.loads((tmp_path / "my.json").read_text())["result"]["mapping"] == "greedy"
    assert run("evaluate", "out", data, "--seeds", 0, "--json", "my.json") == 2
    assert run("evaluate", "out", data, "--seeds", 0, "--json", "my.json", "--overwrite") == 0
    assert json.loads((tmp_path / "my.json").read_text())["result"]["mapping"] == "optimal"
    assert rk.read_recovery("out").trajectories == found.trajectories


def test_settings_reach_the_attack(data):
    assert run("attack", data, "--out", "out", "--attack", "baseline", "--seed", 3, "--lookback-days", 2) == 0
    found = rk.read_recovery("out")
    assert (found.attack, found.settings["seed"], found.settings["lookback_days"]) == ("Baseline", 3, 2)
    assert found.trajectories == rk.Baseline(seed=3, lookback_days=2).recover(COUNTS).trajectories


@pytest.mark.parametrize("form", ["long", "wide"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables(tmp_path, form, ending):
    rk.write_counts(tmp_path / f"counts.{ending}", COUNTS, form=form)
    rk.write_locations(tmp_path / "places.csv", COUNTS.locations)
    assert run("attack", f"counts.{ending}", "--locations", "places.csv", "--out", "out") == 0
    assert rk.read_recovery("out").trajectories == rk.Enhanced().recover(COUNTS).trajectories


def test_the_papers_grid(tmp_path, capsys):
    (tmp_path / "wide.csv").write_text(
        '"datetime","(0, 0)","(0, 1)"\n2014-05-01 00:00:00,2,1\n2014-05-01 00:10:00,1,2\n'
    )
    (tmp_path / "grid.csv").write_text(
        'index,ID,towerlocation,bottomleft,topright\n0,"(0, 0)","(4700.0, -715.0)",,\n1,"(0, 1)","(4700.0, -713.0)",,\n'
    )
    assert run("attack", "wide.csv", "--locations", "grid.csv", "--out", "one") == 0
    assert run("attack", "wide.csv", "--cell-km", 2, "--out", "two") == 0
    one, two = (rk.read_recovery(name) for name in ("one", "two"))
    assert np.array_equal(one.trajectories.cells, two.trajectories.cells)
    assert np.array_equal(one.trajectories.locations.distances, two.trajectories.locations.distances)


def test_a_part_of_a_release(data):
    part = COUNTS.part(slice(10, 22))  # 2 March
    assert run("attack", data, "--from", "2024-03-02", "--to", "2024-03-03T00:00", "--out", "out") == 0
    found = rk.read_recovery("out")
    assert found.calendar == part.calendar
    assert found.trajectories == rk.Enhanced().recover(part).trajectories
    assert run("evaluate", "out", data, "--seeds", 0) == 0


def test_csv_and_geojson(data, tmp_path):
    assert run("attack", data, "--out", "out", "--csv", "people.csv", "--geojson", "people.geojson") == 0
    table = pl.read_csv(tmp_path / "people.csv")
    assert table.columns == ["person", "datetime", "location"]
    assert table["location"].to_list() == rk.read_recovery("out").trajectories.cells.ravel().tolist()
    collection = json.loads((tmp_path / "people.geojson").read_text())
    assert collection["type"] == "FeatureCollection"
    assert len(collection["features"]) == TRUTH.people


def test_an_attack_of_ones_own(data, tmp_path, monkeypatch):
    (tmp_path / "own_attack.py").write_text("import rekindle as rk\nclass Mine(rk.Baseline):\n    pass\n")
    assert run("attack", data, "--attack", "own_attack:Mine", "--out", "out") == 0
    assert rk.read_recovery("out").attack == "Mine"
    assert str(tmp_path) not in sys.path


def test_long_work_is_announced(data, tmp_path, capsys, monkeypatch):
    assert run("attack", data, "--out", "silent", "--attack", "enhanced") == 0
    assert "takes about" not in capsys.readouterr().err
    timed = []
    monkeypatch.setattr("rekindle.auditing.work.measure_slowness", lambda seconds: timed.append(seconds) or 2.0)
    monkeypatch.setattr("rekindle.assignment.kernels.completion_mark", lambda: tmp_path)
    for work, words in ((9.0, []), (10.0, []), (90.0, ["The attack takes about 3 min on one core."])):
        monkeypatch.setattr(rk.Enhanced, "work", lambda self, counts, work=work: work)
        assert run("attack", data, "--out", f"out{work}") == 0
        assert [line for line in capsys.readouterr().err.splitlines() if "takes about" in line] == words
        assert content(tmp_path / f"out{work}") == content(tmp_path / "silent")
    assert timed == [0.05, 0.05]
    # What is there already is not forecast, nor is a machine timed whose kernels are not compiled.
    assert run("attack", data, "--out", "out90.0", "--resume") == 0
    monkeypatch.setattr("rekindle.assignment.kernels.completion_mark", lambda: None)
    assert run("attack", data, "--out", "quiet", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert len(timed) == 2


# Stopping and resuming


def stop_after(days, monkeypatch, problem):
    add = rk.io.RecoveryFolder.add

    def stopping(self, *arguments, **settings):
        if self.days == days:
            raise problem
        add(self, *arguments, **settings)

    monkeypatch.setattr(rk.io.RecoveryFolder, "add", stopping)


@pytest.mark.parametrize("attack", ["baseline", "enhanced"])
@pytest.mark.parametrize("days", [0, 1, 3])
def test_resume(data, tmp_path, capsys, attack, days):
    assert run("attack", data, "--attack", attack, "--out", "whole") == 0
    with pytest.MonkeyPatch.context() as patch:
        stop_after(days, patch, KeyboardInterrupt)
        assert run("attack", data, "--attack", attack, "--out", "out") == 130
    assert f"{days} days" in capsys.readouterr().err
    assert rk.read_recovery("out").trajectories.calendar.number_of_days == days
    (tmp_path / "out" / ".day-0001.parquet.00.unfinished.parquet").touch()  # as a process that was killed leaves it
    assert run("attack", data, "--attack", attack, "--out", "out", "--resume") == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert run("attack", data, "--attack", attack, "--out", "out", "--resume", "--csv", "a.csv") == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_full_disk_loses_one_day(data, tmp_path, capsys):
    with pytest.MonkeyPatch.context() as patch:
        stop_after(2, patch, OSError(28, "No space left on device"))
        assert run("attack", data, "--out", "out") == 2
    assert "No space left" in capsys.readouterr().err
    assert rk.read_recovery("out").trajectories.calendar.number_of_days == 2
    assert run("attack", data, "--out", "out", "--resume") == 0


def test_only_the_same_attack_goes_on(data, tmp_path, capsys):
    assert run("attack", data, "--out", "out", "--to", "2024-03-03") == 0
    before = content(tmp_path / "out")
    capsys.readouterr()
    other = rk.Trajectories(TRUTH.cells[:, ::-1], TRUTH.locations, TRUTH.calendar)
    rk.write_dataset(tmp_path / "other", counts=other.counts())
    part = ("--to", "2024-03-03", "--out", "out", "--resume")
    for arguments, word in (
        ((data, "--out", "out", "--resume"), "calendar"),
        ((data, *part, "--attack", "baseline"), "Baseline"),
        ((data, *part, "--seed", 1), "settings"),
        ((tmp_path / "other", *part), "add up"),
    ):
        assert run("attack", *arguments) == 2
        message = capsys.readouterr().err
        assert "cannot be resumed" in message
        assert word in message
    assert content(tmp_path / "out") == before


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_stopped(long_release, tmp_path, number):
    data, whole = long_release
    process = rekindle("attack", data, "--out", "out")
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "out" / "day-0001.parquet").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert re.search(r"Stopped\. \d+ days are in out\. To resume, run the same command with --resume\.", err)
    days = rk.read_recovery("out").trajectories.calendar.number_of_days
    assert 1 <= days < 20
    assert run("attack", data, "--out", "out", "--resume") == 0
    assert content(tmp_path / "out") == whole


def test_a_damaged_recovery(data, tmp_path, capsys):
    assert run("attack", data, "--out", "out") == 0
    path = tmp_path / "out" / "recovery.json"
    whole = json.loads(path.read_text())
    day = whole["days"][0]
    for damage, word in (
        ({"format": "rekindle recovery 9"}, "format"),
        ({"days": 4}, "'days'"),
        ({"people": "6"}, "'people'"),
        ({"days": whole["days"] * 2}, "8 days"),
        ({"days": [5]}, "day 0 must have"),
        ({"days": [day | {"step_costs": 5}]}, "10 numbers"),
        ({"days": [day | {"step_costs": ["x"] * 10}]}, "numbers"),
        ({"days": [day | {"gaps": ["x"]}]}, "numbers"),
        ({"people": 5}, "5 known names"),
        ({"calendar": {}}, "'calendar'"),
    ):
        path.write_text(json.dumps(whole | damage))
        for command in (("evaluate", "out", data), ("attack", data, "--out", "out", "--resume")):
            capsys.readouterr()
            assert run(*command) == 2
            message = plain(capsys.readouterr().err)
            assert word in message
            assert message.startswith("Error: out/recovery.json:") or "day-0000.parquet" in message


@pytest.mark.slow
def test_a_real_process(data):
    process = rekindle("attack", data, "--out", "out", env={**os.environ, "COLUMNS": "40"})
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out == "6 people, 36 steps, 4 days recovered from 4 locations (every step and link optimal): out\n"
    process = rekindle("attack", data, "--out", "out")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == "Error: out exists already; it was left as it is. Choose another folder, or set --resume.\n"


# An attacker who knows more


def test_a_known_past_is_scored_by_name(tmp_path, capsys):
    cut = TRUTH.calendar.day(1).stop
    past, today = TRUTH.part(slice(0, cut)), TRUTH.part(slice(cut, TRUTH.steps))
    rk.write_dataset("past", counts=past.counts(), truth=past)
    rk.write_dataset("today", counts=today.counts(), truth=today)
    assert run("attack", "today", "--out", "out", "--prior", "known-past:past") == 0
    found = rk.read_recovery("out")
    assert found.named
    assert found.trajectories.people_ids == TRUTH.people_ids
    assert run("evaluate", "out", "today", "--format", "json") == 0
    numbers = json.loads(capsys.readouterr().out.split("\n", 1)[1])["result"]
    by_name = rk.evaluate(found.trajectories, today, mapping="names")
    assert numbers["mapping"] == "names"
    assert numbers["accuracy"] == pytest.approx(by_name.accuracy)
    assert run("evaluate", "out", "today", "--seeds", 0) == 0
    said = plain(capsys.readouterr().out)
    assert "Enhanced, known past" in said
    assert "Scored by name" in said


def test_known_people_are_left_out_of_the_score(data, capsys):
    known = rk.Trajectories(TRUTH.cells[:2], TRUTH.locations, TRUTH.calendar, TRUTH.people_ids[:2])
    rk.write_dataset("staff", counts=known.counts(), truth=known)
    arguments = ("attack", data, "--out", "out", "--attack", "habits", "--effort", "low")
    assert run(*arguments, "--prior", "known-people:staff") == 0
    said = "Habits made the result of 4 answers, with 6 more to say how sure it is; 120 exchanges were tried for each"
    assert said in plain(capsys.readouterr().out)
    assert rk.read_recovery("out").known_people == TRUTH.people_ids[:2]
    assert run("evaluate", "out", data, "--format", "json") == 0
    assert len(json.loads(capsys.readouterr().out)["per_person"]["accuracy"]) == 4
    assert run("evaluate", "out", data, "--seeds", 0) == 0
    said = plain(capsys.readouterr().out)
    assert "Habits, known people" in said
    assert "KnowingPeople" not in said
    assert "Scored by name" not in said
    assert "The 2 people who were known are left out of the score." in said


@pytest.mark.parametrize("text", ["known-past", "gossip:data", "known-past:"])
def test_a_prior_that_is_none_is_refused(data, capsys, text):
    assert run("attack", data, "--out", "out", "--prior", text) == 2
    assert "KIND:DATASET" in plain(capsys.readouterr().err)
