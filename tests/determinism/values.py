"""Values that must be the same on every Python: ``python -m tests.determinism.values [--write | --check]``.

It prints the values of small inputs: digests of whole numbers, and plain numbers. ``--write`` keeps them beside this file,
``--check`` compares: digests must be the same, numbers to within 1e-9.

Habits is left out of what is kept: it decides by sums of logarithms, whose last bit is the processor's own. Its digest is
printed, to be compared on one machine.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).with_suffix(".json")
CITIES = {
    "lattice": {"people": 14, "places": 12, "steps": 60, "step": "2h"},
    "towers": {"people": 9, "places": 7, "steps": 40, "step": "90min", "lattice": False, "start": "2024-03-01 03:20"},
}


def digest(*arrays: Any) -> str:
    """A digest of whole numbers, whatever their width."""
    found = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array, dtype="<i8")
        found.update(repr(whole.shape).encode() + whole.tobytes())
    return found.hexdigest()[:20]


def values() -> dict[str, Any]:
    """Recoveries, evaluations and prepared datasets of small inputs."""
    from tests.small import random_truth

    import rekindle as rk
    from rekindle.evaluation import map_people, uniqueness_by_k
    from rekindle.evaluation.exposure import expose

    found: dict[str, Any] = {}
    for city, settings in CITIES.items():
        truth = random_truth(np.random.default_rng(11), **settings)
        counts = truth.counts()
        found[f"{city} truth"] = digest(truth.cells, counts.values)
        for attack in (rk.Baseline(), rk.Enhanced(), rk.Enhanced(seed=5)):
            recovery = attack.recover(counts)
            name = f"{city} {type(attack).__name__} {attack.seed}"
            found[name] = digest(recovery.trajectories.cells)
            found[f"{name} costs"] = [
                float(np.nansum(recovery.details.step_costs)),
                float(np.nansum(recovery.details.link_costs)),
            ]
            result = rk.evaluate(recovery.trajectories, truth)
            found[f"{name} evaluation"] = [
                result.accuracy,
                result.mean_error_km,
                result.levenshtein_accuracy,
                uniqueness_by_k(recovery.trajectories)[2],
                float(np.nanmean(expose(recovery.trajectories, truth).reidentified)),
            ]
            found[f"{name} greedy"] = digest(map_people(recovery.trajectories, truth, method="greedy").matched)
        released = rk.Suppress(below=2)(counts)
        found[f"{city} repaired"] = digest(rk.repair(released, people=counts.people).values)
    found["prepared"] = prepared()
    return found


def prepared() -> str:
    """A digest of a dataset made of points, written and read again."""
    from tests.sources.raw import some_points

    import rekindle as rk
    from rekindle.prepare import Grid, prepare_points
    from rekindle.sources import points_from_frame

    made = prepare_points(points_from_frame(some_points()), step="30min", max_gap=None, places=Grid(cell_km=2))
    with tempfile.TemporaryDirectory() as folder:
        rk.write_dataset(Path(folder) / "dataset", counts=made.truth.counts(), truth=made.truth)
        read = rk.read_dataset(Path(folder) / "dataset")
    return digest(read.counts.values, read.truth.cells)


def habits() -> str:
    """A digest of what Habits finds; on one machine it is the same on every Python."""
    from tests.small import random_truth

    import rekindle as rk

    truth = random_truth(np.random.default_rng(11), **CITIES["lattice"])
    return digest(rk.Habits(effort="low").recover(truth.counts()).trajectories.cells)


def differences(kept: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names of the values that are not the same."""
    return [name for name in sorted(kept.keys() | now.keys()) if not _same(kept.get(name), now.get(name))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(one, other, strict=True)
        )
    return bool(one == other)


if __name__ == "__main__":
    now = values()
    versions = {name: __import__(name).__version__ for name in ("numpy", "scipy", "numba", "polars")}
    print(f"Python {platform.python_version()}, {versions}")
    print(f"Habits: {habits()}")
    if "--write" in sys.argv:
        KEPT.write_text(json.dumps(now, indent=1) + "\n")
    elif "--check" in sys.argv:
        wrong = differences(json.loads(KEPT.read_text()), now)
        if wrong:
            raise SystemExit(f"{len(wrong)} values differ: {', '.join(wrong)}")
        print(f"all {len(now)} are the same as in {KEPT.name}")
    else:
        print(json.dumps(now, indent=1))
