"""How long an audit takes: the attacks x 8 defences x 3 row orders on a dataset of GeoLife's size, and its report's size.

python -m benchmarks.audit [--people 40] [--days 7] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import rekindle as rk
from rekindle.attacks import ATTACKS
from rekindle.auditing import audit
from rekindle.defences import CoarserSpace, CoarserTime, GeometricNoise, LaplaceNoise, Round, Sample, Suppress

DEFENCES = (
    Suppress(below=2),
    Suppress(below=3),
    Round(to=2),
    GeometricNoise(epsilon=1.0, per="event"),
    LaplaceNoise(epsilon=2.0, per="person-day"),
    CoarserSpace(km=2.0),
    CoarserTime(step="10min"),
    Sample(share=0.5),
)


def cpu_seconds() -> float:
    """Of this process and of those it started and that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def make(kind: type[rk.Attack], effort: str) -> rk.Attack:
    return kind(effort=effort) if "effort" in kind().settings() else kind()  # type: ignore[call-arg]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--people", type=int, default=40)
    options.add_argument("--days", type=int, default=7)
    options.add_argument("--step", default="2min")
    options.add_argument("--size-km", type=float, default=20.0)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--attacks", nargs="+", default=list(ATTACKS), choices=list(ATTACKS))
    options.add_argument("--effort", default="low", help="of attacks that have it")
    given = options.parse_args()
    city = rk.SyntheticCity(
        people=given.people, days=given.days, step=given.step, width_km=given.size_km, height_km=given.size_km
    )
    truth = city.trajectories()
    counts = truth.counts()
    places = len(counts.locations)
    print(
        f"{given.people} people, {counts.steps} steps, {places} places; {given.attacks} x {len(DEFENCES)} defences x {given.seeds}"
    )
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        found = audit(
            truth,
            attacks=[make(ATTACKS[name], given.effort) for name in given.attacks],
            defences=DEFENCES,
            seeds=given.seeds,
            workers=given.workers,
            cache=folder,
        )
        print(f"wall {time.perf_counter() - begin:.0f} s with {given.workers} workers, load {os.getloadavg()[0]:.1f}")
        path = Path(folder) / "report.html"
        for include in (False, True):
            found.to_html(path, include_truth=include)
            print(f"report {'with' if include else 'without'} the truth: {path.stat().st_size / 1e6:.2f} MB")
    for one in found.releases:
        best = one.strongest
        if best.advantage is not None and one.utility is not None:
            print(
                f"{one.label:45} {best.attack:10} advantage {best.advantage.value:.3f} ({best.advantage.low:.3f} to {best.advantage.high:.3f}) "
                f"error of counts {one.utility['count_error']:.2f}"
            )
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)
    print(f"processor time {cpu_seconds():.0f} s")


if __name__ == "__main__":
    main()
