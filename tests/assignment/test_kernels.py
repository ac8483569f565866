"""Kernels are compiled once, again when any of their sources changed, with a word about it, and can be interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

import rekindle as rk
from rekindle.assignment import kernels

SOURCE = Path(rk.__file__).parent

OUTER = """
from rekindle.assignment.kernels import compiled
from rekindle.attacks.inner import one

@compiled()
def two(value):
    return 2 * one(value)
"""
INNER = """
from rekindle.assignment.kernels import compiled

@compiled()
def one(value):
    return value + {}
"""


def call(folder, code):
    """Run code with a copy of the package; what it prints, and what it logs."""
    logged = "import logging; logging.basicConfig(level=logging.INFO, format='%(message)s'); "
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-c", logged + code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture
def copy(tmp_path):
    """A package of two kernels in two files, with the decorator that compiles them."""
    for room in ("assignment", "attacks"):
        (tmp_path / "rekindle" / room).mkdir(parents=True)
        (tmp_path / "rekindle" / room / "__init__.py").touch()
    (tmp_path / "rekindle" / "__init__.py").touch()
    shutil.copy(SOURCE / "assignment" / "kernels.py", tmp_path / "rekindle" / "assignment")
    (tmp_path / "rekindle" / "attacks" / "outer.py").write_text(OUTER)
    (tmp_path / "rekindle" / "attacks" / "inner.py").write_text(INNER.format(1))
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_change_in_a_callee_in_another_file_is_noticed(copy):
    ask = "from rekindle.attacks.outer import two; print(two(10), sum(two.stats.cache_hits.values()))"
    printed, logged = call(copy, ask)
    assert printed == "22 0"
    assert logged.count("Compiling Rekindle's kernels, once") == 1
    assert call(copy, ask) == ("22 1", "")
    (copy / "rekindle" / "attacks" / "inner.py").write_text(INNER.format(5))
    printed, logged = call(copy, ask)
    assert printed == "30 0"
    assert "Compiling" in logged
    assert call(copy, ask) == ("30 1", "")


def test_only_files_with_kernels_matter(copy, monkeypatch):
    monkeypatch.setattr(kernels, "PACKAGE", copy / "rekindle")
    stamp = kernels.source_stamp.__wrapped__
    before = stamp()
    (copy / "rekindle" / "attacks" / "words.py").write_text("WORDS = 3\n")
    assert stamp() == before
    (copy / "rekindle" / "attacks" / "inner.py").write_text(INNER.format(2))
    assert stamp() != before


def test_every_kernel_is_compiled_by_the_one_decorator():
    """A module that compiles in another way would be cached without the stamp of the others."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if path != SOURCE / "assignment" / "kernels.py":
            assert "njit" not in text, path
            assert "import numba" not in text, path


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_without_a_folder_to_keep_it_a_kernel_still_works(monkeypatch):
    made = []

    def njit(*, cache=False, **flags):
        made.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernels.numba, "njit", njit)
    assert kernels.compiled()(len)("four") == 4
    assert made == [True, False]


def test_what_is_compiled_is_compiled_once(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(kernels, "completion_mark", lambda: tmp_path / "mark")
    monkeypatch.setattr(kernels.subprocess, "run", lambda command, **settings: ran.append(command))
    kernels.ensure_compiled()
    assert ran == [[sys.executable, "-m", "rekindle.attacks.compile"]]
    (tmp_path / "mark").touch()
    kernels.ensure_compiled()
    assert len(ran) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.5, 4, 8])
def test_ctrl_c_while_kernels_are_compiled(tmp_path, seconds):
    truth = rk.SyntheticCity(people=5, days=2, step="4h", width_km=2, height_km=2).trajectories()
    rk.write_dataset(tmp_path / "data", counts=truth.counts())
    command = [sys.executable, "-m", "rekindle", "attack", "data", "--attack", "habits", "--out", "out"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert "Compiling" in said
    assert process.returncode == 130, said + rest
    assert "Traceback" not in rest
    assert "Stopped" in rest
