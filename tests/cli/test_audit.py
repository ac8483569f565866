"""`rekindle audit`, as a user types it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.cli.calling import call

import rekindle as rk
from rekindle.auditing import entry, workers
from rekindle.defences import Suppress
from rekindle.io import write_release


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A dataset with its truth, one without, a table of counts and a published table."""
    path = tmp_path_factory.mktemp("data")
    truth = rk.SyntheticCity(people=20, days=2, step="2h", width_km=4, height_km=4).trajectories()
    counts = truth.counts()
    rk.write_dataset(path / "known", counts=counts, truth=truth)
    rk.write_dataset(path / "outside", counts=counts)
    rk.write_counts(path / "counts.csv", counts)
    rk.write_locations(path / "locations.csv", counts.locations)
    write_release(path / "published.csv", Suppress(below=2)(counts))
    return path


def run(*arguments):
    quick = ["--attack", "enhanced", "--defence", "round:to=2", "--seeds", "2", "--workers", "1"]
    return call("audit", *arguments, *quick)


def test_writes_a_page_and_the_numbers(folder, tmp_path):
    found = run(folder / "known", "--out", tmp_path / "out")
    assert found.code == 0, found.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "audit.json",
        "rekindle.json",
        "report.html",
        "tasks",
    ]
    numbers = json.loads((tmp_path / "out/audit.json").read_text())
    assert [one["label"] for one in numbers["releases"]] == ["As given", "Round to 2"]
    assert "does not contain true paths" in (tmp_path / "out/report.html").read_text()
    assert "report.html" in found.out
    again = run(folder / "known", "--out", tmp_path / "out", "--include-truth")
    assert again.code == 0
    again = json.loads((tmp_path / "out/audit.json").read_text())
    commands = [one["identity"].pop("command") for one in (numbers, again)]
    assert commands[0].startswith(f"rekindle audit {folder / 'known'} --out ")
    assert "--include-truth" in commands[1]
    assert again == numbers
    assert numbers["identity"]["name"] == "known"
    assert "This report contains the truth." in (tmp_path / "out/report.html").read_text()


def test_fails_above_a_limit(folder, tmp_path):
    out = tmp_path / "out"
    assert run(folder / "known", "--out", out, "--fail-above", "0.01").code == 3
    high = json.loads((out / "audit.json").read_text())
    best = high["releases"][0]["attacks"][high["strongest"]]["advantage"]["high"]
    assert run(folder / "known", "--out", out, "--fail-above", best - 1e-6).code == 3
    assert run(folder / "known", "--out", out, "--fail-above", min(best + 1e-6, 1)).code == 0
    assert run(folder / "known", "--out", out, "--fail-above", "1.5").code == 2


def test_a_limit_needs_the_truth(folder, tmp_path):
    found = run(folder / "outside", "--out", tmp_path / "out", "--fail-above", "0.3")
    assert found.code == 2
    assert "--fail-above needs the ground truth" in found.err
    assert not (tmp_path / "out").exists()


def test_without_the_truth(folder, tmp_path):
    found = run(folder / "outside", "--out", tmp_path / "out")
    assert found.code == 0, found.out
    assert "nobody can say" in found.out


def test_tables(folder, tmp_path):
    places = ["--locations", folder / "locations.csv"]
    for name, level in (("counts.csv", 0), ("published.csv", 0)):
        found = run(folder / name, "--out", tmp_path / name.split(".")[0], *places)
        assert found.code == level, found.out
    numbers = [json.loads((tmp_path / name / "audit.json").read_text()) for name in ("counts", "published")]
    assert [one["releases"][0]["withheld"] > 0 for one in numbers] == [False, True]
    known = run(folder / "published.csv", "--out", tmp_path / "known", *places, "--truth", folder / "known")
    assert known.code == 0, known.output
    assert json.loads((tmp_path / "known/audit.json").read_text())["verdict"]["level"] != "unknown"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--defence", "burn"], "no defence 'burn'"),
        (["--defence", "round:by=3"], "no setting 'by'"),
        (["--attack", "nonsense"], "no attack 'nonsense'"),
        (["--cluster", "nonsense://x"], "cannot be reached"),
        (["--truth", "OUTSIDE"], "no truth.parquet"),
    ],
)
def test_bad_input(folder, tmp_path, more, says):
    more = [folder / "outside" if text == "OUTSIDE" else text for text in more]
    found = run(folder / "known", "--out", tmp_path / "out", *more)
    assert found.code == 2
    assert says in found.err


def test_other_people_than_the_counts(folder, tmp_path):
    others = rk.SyntheticCity(people=20, days=2, step="2h", width_km=4, height_km=4, seed=1).trajectories()
    rk.write_dataset(tmp_path / "others", counts=others.counts(), truth=others)
    found = run(folder / "outside", "--out", tmp_path / "out", "--truth", tmp_path / "others")
    assert "does not fit the counts" in found.err


def test_leaves_other_folders_alone(folder, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/thesis.tex").write_text("x")
    found = run(folder / "known", "--out", tmp_path / "thesis")
    assert "left as it is" in found.err
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["thesis.tex"]
    (tmp_path / "file").write_text("x")
    assert "is a file, not a folder" in run(folder / "known", "--out", tmp_path / "file").err


def test_an_older_report_is_not_what_a_stopped_audit_shows(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()

    def stop(*data, **settings):
        raise KeyboardInterrupt

    def stop_later(*data, **settings):
        (out / "report.html").write_text("new")
        raise KeyboardInterrupt

    monkeypatch.setattr("rekindle.cli.audit.run_audit", stop_later)
    assert "What they show so far is in" in run(folder / "known", "--out", out).err
    monkeypatch.setattr("rekindle.cli.audit.run_audit", stop)
    found = run(folder / "known", "--out", out)
    assert found.code == 130
    assert "Run the same command again to resume." in found.err
    assert "so far" not in found.err


@pytest.mark.slow
def test_stopped_by_hand(tmp_path):
    truth = rk.SyntheticCity(people=60, days=5, step="10min").trajectories()
    rk.write_dataset(tmp_path / "city", counts=truth.counts(), truth=truth)
    command = [sys.executable, "-W", "error", "-m", "rekindle", "audit", "city", "--out", "out", "--workers", "2"]
    process = subprocess.Popen(
        [*command, "--attack", "enhanced", "--seeds", "9"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(2400):
            if (tmp_path / "out/report.html").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130, out + errors
    assert "Run the same command again to resume." in errors
    assert "Traceback" not in errors
    assert "What they show so far is in out/report.html." in errors
    assert "<strong>Not finished.</strong>" in (tmp_path / "out/report.html").read_text()
    assert json.loads((tmp_path / "out/audit.json").read_text())["unfinished"]
    assert list(tmp_path.glob("out/tasks/*.npz"))


@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [True, False])
def test_stopped_while_kernels_are_compiled(folder, tmp_path, whole_group):
    process = subprocess.Popen(
        [sys.executable, "-m", "rekindle", "audit", str(folder / "known"), "--out", "out"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    try:
        while "Compiling" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(3)
        begin = time.monotonic()
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - begin < 30
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 130, errors
    assert errors.startswith("Stopped. ")
    assert "Traceback" not in errors


def test_says_first_what_it_takes(folder, tmp_path):
    found = run(folder / "known", "--out", tmp_path / "out")
    assert re.search(r"^About \d+ tasks, \d+ s on one core, and about \d+ MB of memory\.$", found.err, re.MULTILINE)
    assert "Chosen" not in found.err


def test_what_is_left_out_is_said_and_the_choice_can_be_repeated(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(entry, "USUAL_WORK", 0.0)
    monkeypatch.setattr(entry, "STRONGEST_WORK", 0.0)
    found = call("audit", folder / "known", "--out", tmp_path / "out", "--workers", 1)
    assert found.code == 0, found.err
    assert "- Habits is not tried, so the risk may be higher than shown: name it in --attack." in found.err
    assert "--thorough tries them" in found.err
    command = re.search(r"To repeat exactly this: rekindle (.*)", found.err)[1]
    assert command.endswith("--workers 1 --attack enhanced --seeds 1 --defence none --brief")
    numbers = json.loads((tmp_path / "out/audit.json").read_text())
    assert "--seeds 3 tries more" in " ".join(numbers["omitted"])
    assert "What this audit left out" in (tmp_path / "out/report.html").read_text()
    monkeypatch.undo()
    again = call(*shlex.split(command.replace(str(tmp_path / "out"), str(tmp_path / "again"))))
    assert again.code == 0, again.err
    assert "left out" not in again.err
    repeated = json.loads((tmp_path / "again/audit.json").read_text())
    assert (
        repeated["releases"][0]["attacks"]["enhanced"]["accuracy"]
        == (numbers["releases"][0]["attacks"]["enhanced"]["accuracy"])
    )


def test_a_time_budget(folder, tmp_path, monkeypatch):
    found = run(folder / "known", "--out", tmp_path / "out", "--time-budget", "3h")
    assert found.code == 0, found.err
    assert (tmp_path / "out/tasks/choice.json").exists()
    assert "--time-budget is 'soon'" in run(folder / "known", "--out", tmp_path / "out", "--time-budget", "soon").err


def test_the_advice_on_memory_leads_somewhere(folder, tmp_path):
    arguments = [
        folder / "known",
        "--out",
        tmp_path / "out",
        "--attack",
        "enhanced",
        "--defence",
        "none",
        "--seeds",
        1,
    ]
    found = call("audit", *arguments, "--workers", 2, "--memory-limit", "500MB")
    assert found.code == 2
    assert "Use --workers 1, or allow more with --memory-limit." in found.err
    assert not (tmp_path / "out").exists()
    found = call("audit", *arguments, "--workers", 1, "--memory-limit", "500MB")
    assert found.code == 0, found.err


def test_an_unfinished_audit_passes_no_gate(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(workers.Runner, "check_time", stop_when_something_is_known)
    found = run(folder / "known", "--out", tmp_path / "out", "--fail-above", "1", "--time-budget", "3h")
    assert found.code == 3, found.err
    assert "An audit that is not finished shows no limit to hold." in found.err
    assert "! This audit is not finished" in found.out


def stop_when_something_is_known(runner):
    if runner.done > 9:
        raise workers.OutOfTime


def test_numbers_are_plain(folder, tmp_path):
    run(folder / "known", "--out", tmp_path / "out")

    def refuse(name):
        raise AssertionError(name)

    numbers = json.loads((tmp_path / "out/audit.json").read_text(), parse_constant=refuse)
    assert np.isfinite(numbers["releases"][0]["attacks"]["enhanced"]["accuracy"]["value"])


def test_a_table_whose_totals_vary_is_audited_as_it_is(folder, tmp_path):
    """Nothing is taken for noise, and what was assumed is said."""
    counts = rk.read_dataset(folder / "known").counts
    values = counts.values.copy()
    values[3, 0] += counts.people
    write_release(tmp_path / "a.csv", rk.Release(values, counts.locations, counts.calendar))
    found = run(tmp_path / "a.csv", "--locations", folder / "locations.csv", "--out", tmp_path / "out")
    assert found.code == 0, found.err
    assert f"exact counts of {counts.people} to {2 * counts.people} people" in found.err
    assert "--read-as release" in found.err
    settings = json.loads((tmp_path / "out/audit.json").read_text())["settings"]
    assert settings["people_from"] == "largest total"
    assert settings["totals"] == [counts.people, 2 * counts.people]
    assert settings["assumed"][0] in (tmp_path / "out/report.html").read_text()


def test_how_a_published_table_is_read_is_said(folder, tmp_path):
    found = run(folder / "published.csv", "--locations", folder / "locations.csv", "--out", tmp_path / "out")
    assert found.code == 0, found.err
    said = "published.csv was read as a release, whose numbers may be inexact: "
    assert said in found.err
    assert json.loads((tmp_path / "out/audit.json").read_text())["settings"]["read_as"].startswith(said)
    report = (tmp_path / "out/report.html").read_text()
    assert said in report[report.index("<header>") : report.index("</header>")]


def test_a_part_is_audited_and_said_to_be_one(folder, tmp_path):
    found = run(folder / "known", "--out", tmp_path / "out", "--sample-people", "12", "--first-days", "1")
    assert found.code == 0, found.out
    told = "Only a part is audited: 12 of 20 people, drawn at random, as if there were no others, and the first day."
    assert told in " ".join(found.err.split())
    numbers = json.loads((tmp_path / "out/audit.json").read_text())
    assert (numbers["settings"]["people"], numbers["settings"]["read_as"][: len(told)]) == (12, told)
    assert told in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize(
    ("data", "options", "told"),
    [
        ("counts.csv", ["--sample-people", "5"], "--sample-people works only on a dataset folder"),
        ("counts.csv", ["--first-days", "1"], "--first-days works only on a dataset folder"),
        ("known", ["--sample-people", "21"], "the dataset has 20 people"),
        ("known", ["--first-days", "3"], "the dataset has 2 days"),
        ("outside", ["--sample-people", "5"], "there is no truth"),
    ],
)
def test_a_part_that_there_is_not(folder, tmp_path, data, options, told):
    found = run(folder / data, "--out", tmp_path / "out", *options)
    assert found.code == 2
    assert told in " ".join(found.err.split())


def test_who_knows_more_is_on_the_terminal(folder, tmp_path):
    prior = f"other-traces:{folder / 'known'}"
    found = run(folder / "known", "--out", tmp_path / "out", "--prior", prior, "--brief")
    assert found.code == 0, found.err
    said = " ".join(found.out.split())
    assert (
        "Someone who knows traces of other people (“enhanced, other traces”) puts people in the right place" in said
    )
    assert "of people who are attacked: the path is the same at all 24 common steps" in said


def test_what_a_dataset_does_not_have_is_told_by_its_options(folder, tmp_path):
    for option in ("--sample-people", "--first-days"):
        found = run(folder / "known", "--out", tmp_path / "out", option, "999")
        assert found.code == 2
        assert f"{option} is 999" in found.err
    found = run(folder / "known", "--out", tmp_path / "out", "--release", "counts", "--window", "2h")
    assert found.code == 2
    assert "--window is for flows, but --release is 'counts'." in found.err
