"""`rekindle clean` removes what was derived from the truth, and nothing that is not ours."""

import threading

import numpy as np
import pytest
from tests.cli.calling import run
from tests.small import random_truth
from tests.sources.raw import some_points

import rekindle as rk
from rekindle import reproduce
from rekindle.io.safety.files import new_file, output
from rekindle.io.safety.folders import mark_folder

TRUTH = random_truth(np.random.default_rng(5), people=6, places=4, steps=36, step="2h")


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A dataset, an evaluated recovery, an audit, leftovers, and things of other people's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    work = tmp_path / "work"
    rk.write_dataset(work / "data", counts=TRUTH.counts(), truth=TRUTH)
    assert run("attack", work / "data", "--out", work / "recovery") == 0
    assert run("evaluate", work / "recovery", work / "data", "--seeds", 0) == 0
    settings = ("--attack", "baseline", "--defence", "none", "--seeds", 1, "--workers", 1)
    assert run("audit", work / "data", "--out", work / "audit", *settings) == 0
    (work / "recovery" / ".day-0001.parquet.0123456789ab.unfinished.parquet").touch()
    (work / ".data.0123456789ab.unfinished").mkdir()
    (work / ".data.0123456789ab.unfinished" / "truth.parquet").touch()
    (work / ".data.rekindle-lock").touch()
    for name in (
        "thesis/report.html",
        "thesis/evaluation.json",
        "thesis/cells/a.npz",
        "audit/notes.txt",
        "truth.parquet",
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("years of work")
    (tmp_path / "elsewhere").mkdir()
    for name in ("audit.json", "rekindle.json"):
        (tmp_path / "elsewhere" / name).write_bytes((work / "audit" / name).read_bytes())
    (work / "link").symlink_to(tmp_path / "elsewhere")
    return work


RECOVERY = ["recovery/day-0000.parquet", "recovery/day-0001.parquet", "recovery/day-0002.parquet", "recovery/locations.parquet", "recovery/recovery.json"]  # fmt: skip
OTHERS = ["audit/notes.txt", "thesis/cells/a.npz", "thesis/evaluation.json", "thesis/report.html", "truth.parquet"]  # fmt: skip
DATA = [
    "data/counts.parquet",
    "data/dataset.json",
    "data/locations.parquet",
    "data/rekindle.json",
    "audit/rekindle.json",
]


@pytest.mark.parametrize(
    ("options", "stays"),
    [
        ([], [*DATA, "data/truth.parquet", *RECOVERY, "recovery/rekindle.json"]),
        (["--truth"], [*DATA, *RECOVERY, "recovery/rekindle.json"]),
        (["--truth", "--recoveries"], DATA),
    ],
)
def test_removes_what_is_ours(work, capsys, options, stays):
    before = names(work)
    capsys.readouterr()
    assert run("clean", work, *options, "--dry-run") == 0
    listed = capsys.readouterr().out
    assert names(work) == before
    assert run("clean", work, *options, "--yes") == 0
    after = names(work)
    assert after == sorted([*stays, *OTHERS])
    gone = set(before) - set(after)
    for name in gone - {
        ".data.0123456789ab.unfinished/truth.parquet",
        "recovery/rekindle.json",
        "audit/tasks/rekindle.json",
    }:
        assert str(work / name) in listed
    assert (work / "link" / "audit.json").exists()
    assert run("clean", work, *options, "--yes") == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert rk.read_dataset(work / "data").counts == TRUTH.counts()


def test_asks_before(work, monkeypatch):
    before = names(work)
    monkeypatch.setattr("typer.confirm", lambda *_, **settings: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run("clean", work) == 130
    assert names(work) == before


def test_leaves_what_is_being_written(work, capsys):
    with new_file(work / "recovery" / "evaluation.json", overwrite=True) as living:
        assert run("clean", work, "--yes") == 0
        assert living.exists()
    capsys.readouterr()


def test_a_run_under_way_is_refused(work, capsys):
    refused = []
    with output(work / "recovery"):
        thread = threading.Thread(target=lambda: refused.append(run("clean", work / "recovery", "--yes")))
        thread.start()
        thread.join()
    assert refused == [2]
    assert "is being written by process" in capsys.readouterr().err
    assert "recovery/evaluation.json" in names(work)


def test_no_name_of_a_prepared_dataset_stays(tmp_path, capsys):
    some_points().write_csv(tmp_path / "points.csv")
    assert run("prepare", "points", tmp_path / "points.csv", tmp_path / "data") == 0
    assert "p1" in (tmp_path / "data/filled.csv").read_text()
    assert run("clean", tmp_path / "data", "--truth", "--yes") == 0
    assert names(tmp_path / "data") == ["counts.parquet", "dataset.json", "locations.parquet", "rekindle.json"]
    assert not any('"p1"' in path.read_text() for path in (tmp_path / "data").glob("*.json"))
    assert rk.read_dataset(tmp_path / "data").people == 3


def test_no_folder(tmp_path, capsys):
    assert run("clean", tmp_path / "no") == 2
    assert "does not exist" in capsys.readouterr().err


def test_true_paths_of_a_reproduction_go_and_its_numbers_stay(tmp_path):
    folder = tmp_path / "paper"
    (folder / "figures").mkdir(parents=True)
    mark_folder(folder, "reproduction", reproduce.SENSITIVE)
    for name in (
        "index.html",
        "index.md",
        "figures/paths-city-well.csv",
        "figures/paths.txt",
        "figures/accuracies.csv",
    ):
        (folder / name).write_text("x")
    (folder / "reproduction.json").write_text("{}")
    assert run("clean", folder, "--yes") == 0
    assert names(folder) == ["figures/accuracies.csv", "figures/paths.txt", "rekindle.json", "reproduction.json"]


def test_an_output_of_version_0_1_gets_a_message_and_stays(work, capsys):
    """It has no mark that says what is sensitive in it."""
    before = names(work / "data")
    (work / "data" / "rekindle.json").unlink()
    assert run("clean", work / "data", "--truth", "--yes") == 0
    assert f"{work / 'data'} was left as it is" in capsys.readouterr().err
    assert names(work / "data") == sorted(set(before) - {"rekindle.json"})
