"""The command line as a whole: what all commands have in common."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from tests.cli.calling import call, plain
from tests.small import random_truth
from tests.sources.raw import some_points

import rekindle as rk
from rekindle.cli import app
from rekindle.cli.running import load, unwrap

COMMANDS = typer.main.get_command(app).overview
TRUTH = random_truth(np.random.default_rng(5), people=6, places=4, steps=24, step="2h")
QUICK = ("--attack", "baseline", "--defence", "none", "--seeds", "1", "--workers", "1")


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rk.write_dataset(tmp_path / "data", counts=TRUTH.counts(), truth=TRUTH)
    return tmp_path / "data"


def commands(command, path=()):
    """All commands below a command, with their paths."""
    if hasattr(command, "commands"):
        for name, one in command.commands.items():
            yield from commands(one, (*path, name))
    else:
        yield path, command


ALL = [found for name in COMMANDS for found in commands(load(name), (name,))]


# Help and version


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_the_overview_loads_nothing_heavy(arguments):
    script = (
        "import sys\nfrom rekindle.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\nprint(*sorted(sys.modules), file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    ).stderr.split()
    assert "rekindle.cli" in found
    heavy = {"numpy", "scipy", "numba", "polars", "matplotlib", "joblib", "narwhals", "rekindle.cli.audit"}
    assert heavy.isdisjoint(found)


def test_version():
    assert call("--version").out == f"rekindle {rk.__version__}\n"


def test_the_overview_says_what_the_commands_say():
    for name, text in COMMANDS.items():
        assert load(name).help.split("\n\n")[0] == text


def test_help_of_every_command(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    options = {flag for _, command in ALL for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    for path, command in ALL:
        found = call(*path, "--help")
        assert found.code == 0
        text = plain(found.out)
        for paragraph in command.help.split("\n\n"):
            assert plain(paragraph).replace("\\[", "[") in text
        assert set(re.findall(r"--[a-z0-9-]*[a-z0-9]", text)) <= {*options, "--help"}
        assert "--quiet" in text


def test_paragraphs_of_help_are_lines():
    assert unwrap("One\n    two.\n\n    Three.") == "One two.\n\nThree."


def test_the_same_option_is_the_same_everywhere():
    """One meaning, one type, one help text: a shared option is defined once."""
    own = {
        "--out", "--start", "--days", "--step", "--cell-km", "--seeds", "--seed", "--attack", "--defence", "--truth",
        "--people", "--resume", "--timezone", "--min-coverage", "--locations", "--merge-km",
        "--time-budget", "--release",
    }  # fmt: skip
    seen = {}
    for path, command in ALL:
        for option in command.params:
            flag = option.opts[0]
            if flag.startswith("--") and flag not in own:
                first = seen.setdefault(flag, (path, option.help))
                assert first[1] == option.help, (flag, first[0], path)
    assert len(seen) > 30


# What is printed


def run_all(folder):
    """Every command that writes, with outputs in a folder."""
    some_points().write_csv("points.csv")
    yield "attack", call("attack", "data", "--out", f"{folder}/recovery", "--csv", f"{folder}.csv")
    yield "attack again", call("attack", "data", "--out", f"{folder}/recovery")
    yield "evaluate", call("evaluate", f"{folder}/recovery", "data", "--seeds", "0")
    yield "audit", call("audit", "data", "--out", f"{folder}/audit", *QUICK)
    yield "defend", call("defend", "data", "--out", f"{folder}/r.csv", "--suppress-below", "2")
    yield "defend again", call("defend", "data", "--out", f"{folder}/r.csv", "--suppress-below", "2")
    yield "prepare", call("prepare", "points", "points.csv", f"{folder}/made")
    yield "prepare again", call("prepare", "points", "points.csv", f"{folder}/made")
    yield "prepare nothing", call("prepare", "points", f"{folder}/nothing.csv", f"{folder}/more")
    yield "clean", call("clean", folder, "--dry-run")
    yield "reproduce", call("reproduce", "--geolife", f"{folder}/nothing", "--out", f"{folder}/page")


@pytest.mark.parametrize("folder", ["a[", "[red]a[", ":boom:"])
def test_paths_are_printed_as_they_are(data, tmp_path, folder):
    """A path that looks like markup, such as a[/x], is neither obeyed nor a reason to fail."""
    folder = folder if folder == ":boom:" else folder + "/x]"
    (tmp_path / folder).mkdir(parents=True)
    for name, found in run_all(folder):
        assert "Traceback" not in found.err
        assert found.code == (2 if " " in name or name == "reproduce" else 0), (name, found)
        assert folder in found.out + found.err, (name, found)


def test_quiet_leaves_only_errors(data):
    for command in (
        ("attack", "data", "--out", "recovery"),
        ("evaluate", "recovery", "data", "--seeds", "0"),
        ("audit", "data", "--out", "audit", *QUICK),
        ("defend", "data", "--out", "r.csv", "--suppress-below", "2"),
        ("clean", ".", "--dry-run"),
    ):
        found = call(*command, "--quiet")
        assert (found.code, found.out, found.err) == (0, "", ""), command
    found = call("attack", "data", "--out", "recovery", "-q")
    assert (found.code, found.out) == (2, "")
    assert "exists already" in found.err
    assert call("evaluate", "recovery", "data", "--seeds", "0").out != ""


def test_json_is_all_there_is_on_standard_output(data):
    for command, key in (
        (("attack", "data", "--out", "recovery"), "people"),
        (("evaluate", "recovery", "data", "--seeds", "0"), "result"),
        (("audit", "data", "--out", "audit", *QUICK), "verdict"),
        (
            ("audit", "data/counts.parquet", "--locations", "data/locations.parquet", "--out", "other", *QUICK),
            "verdict",
        ),
        (("defend", "data", "--out", "r.csv", "--suppress-below", "2"), "utility"),
    ):
        found = call(*command, "--format", "json", "--quiet")
        assert (found.code, found.err) == (0, ""), command
        assert key in json.loads(found.out)
    assert json.loads(call("audit", "data", "--out", "audit", *QUICK, "--format", "json").out)["people"]


# What the library may say

ROOT = Path(rk.__file__).parent
FLAGS = {flag for _, command in ALL for option in command.params for flag in option.opts if flag.startswith("--")}
LIBRARY = [path for path in sorted(ROOT.rglob("*.py")) if "cli" not in path.relative_to(ROOT).parts]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_library_does_not_know_the_command_line(path):
    """Options are named by the command line alone; a Python user has none."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert FLAGS.isdisjoint(re.findall(r"(?<!var\()--[a-z][a-z0-9-]*", node.value)), node.lineno
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            assert not any(name.startswith("rekindle.cli") for name in names) or path.name == "__main__.py"
