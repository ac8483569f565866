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
    few = ("demo", "--people", 8, "--days", 2, "--seeds", 2)
    assert run(*few) == 0
    printed = capsys.readouterr().out
    for word in ("8 people", "chance", "naive", "baseline", "enhanced", "demo/report.html"):
        assert word in printed
    before = content(tmp_path / "demo")
    assert before["recovered.png"].startswith(b"\x89PNG")
    truth = rk.read_dataset("demo/dataset").truth
    assert truth.people == 8
    given = json.loads(before["audit.json"])["releases"][0]["attacks"]
    assert 0 <= given["chance"]["accuracy"]["value"] <= given["enhanced"]["accuracy"]["value"] <= 1
    assert b"<html" in before["report.html"]
    assert run(*few) == 2
    assert run(*few, "--overwrite") == 0
    assert content(tmp_path / "demo") == before
    assert run("attack", "demo/dataset", "--out", "recovery") == 0
    assert run("evaluate", "recovery", "demo/dataset", "--seeds", 0) == 0


def test_the_smallest_demo():
    assert run("demo", "--people", 2, "--days", 1, "--seeds", 1, "--out", "a b") == 0
