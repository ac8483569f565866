"""`rekindle demo`, as a user types it."""

import json

import pytest
from tests.cli.calling import run

import rekindle as rk


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_demo(tmp_path, capsys):
    """Its folder looks like markup, which must be printed as it is."""
    few = ("demo", "--people", 6, "--days", 1, "--seeds", 1, "--out", "a[/x]")
    assert run(*few) == 0
    printed = capsys.readouterr().out
    for word in ("6 people", "chance", "naive", "baseline", "enhanced", "a[/x]/report.html"):
        assert word in printed
    before = content(tmp_path / "a[" / "x]")
    assert before["recovered.png"].startswith(b"\x89PNG")
    truth = rk.read_dataset("a[/x]/dataset").truth
    assert truth.people == 6
    given = json.loads(before["audit.json"])["releases"][0]["attacks"]
    assert 0 <= given["chance"]["accuracy"]["value"] <= given["enhanced"]["accuracy"]["value"] <= 1
    assert b"<html" in before["report.html"]
    assert run(*few) == 2
    assert content(tmp_path / "a[" / "x]") == before
    assert run("attack", "a[/x]/dataset", "--out", "recovery") == 0


@pytest.mark.slow
def test_a_demo_that_was_interrupted_begins_again(tmp_path, monkeypatch):
    arguments = ("demo", "--people", 2, "--days", 1, "--seeds", 1, "--out", "out")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rekindle.cli.demo.run_audit", interrupt)
        assert run(*arguments) == 130
    assert (tmp_path / "out" / "dataset").is_dir()
    assert run(*arguments) == 0
    assert run(*arguments) == 2


def test_the_smallest_demo_again(tmp_path):
    smallest = ("demo", "--people", 2, "--days", 1, "--seeds", 1, "--out", "a b")
    assert run(*smallest) == 0
    before = content(tmp_path / "a b")
    assert run(*smallest, "--overwrite") == 0
    assert content(tmp_path / "a b") == before
