"""The same input, settings and seed give the same bytes: in any process, with one thread or two, with any hash seed."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What the commands wrote, by the number of threads. The folder has one name, since reports may name it."""
    found = {}
    for threads, hashes in ((1, "0"), (2, "4321")):
        folder = tmp_path_factory.mktemp(f"threads-{threads}")
        limits = (
            "NUMBA_NUM_THREADS",
            "POLARS_MAX_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "LOKY_MAX_CPU_COUNT",
        )
        environment = os.environ | dict.fromkeys(limits, str(threads)) | {"PYTHONHASHSEED": hashes}
        command = [sys.executable, "-m", "tests.determinism.outputs", "out", str(threads)]
        here = {"PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, cwd=folder, env=environment | here, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found[threads] = files(folder / "out")
    return found


def test_the_same_files(written):
    names = set(written[1])
    assert names == set(written[2])
    assert {"dataset/counts.parquet", "dataset/truth.parquet", "audit/audit.json", "audit/report.html"} <= names
    for attack in ("baseline", "enhanced", "habits"):
        assert f"{attack}/day-0002.parquet" in names


@pytest.mark.parametrize("part", ["dataset", "baseline", "enhanced", "habits", "audit/tasks", "audit"])
def test_the_same_bytes(written, part):
    names = sorted(name for name in written[1] if name.startswith(part))
    assert names
    assert [name for name in names if written[1][name] != written[2][name]] == []
