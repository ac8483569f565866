"""An audit that is killed in the middle resumes, and ends with the same numbers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import rekindle as rk
from rekindle.auditing import audit
from rekindle.defences import GeometricNoise, Round, Suppress

SCRIPT = """
import sys
from tests.auditing.test_kill import city, settings
from rekindle.auditing import audit

if __name__ == "__main__":
    audit(city(), cache=sys.argv[1], workers=2, **settings())
"""


def city():
    return rk.SyntheticCity(people=40, days=3, step="30min").trajectories()


def settings():
    return {
        "attacks": [rk.Baseline(), rk.Enhanced()],
        "defences": [Suppress(below=2), Round(to=2), GeometricNoise(epsilon=2, per="event")],
        "seeds": 2,
    }


def test_killed_and_started_again(tmp_path):
    tasks = tmp_path / "tasks"
    command = [sys.executable, "-c", SCRIPT, str(tasks)]
    process = subprocess.Popen(command, start_new_session=True, cwd=Path(__file__).parents[2])
    try:
        for _ in range(2400):
            done = len(list(tasks.glob("[!.]*.npz"))) if tasks.exists() else 0
            if done >= 12 or process.poll() is not None:
                break
            time.sleep(0.05)
        assert process.poll() is None, "the audit ended before it could be killed"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in tasks.glob("[!.]*.npz")}
    assert len(finished) >= 12

    def again(**more):
        return json.dumps(audit(city(), workers=1, **settings(), **more).to_json(), sort_keys=True)

    resumed = again(cache=tasks)
    assert resumed == again()
    after = {path.name: path.stat().st_mtime_ns for path in tasks.glob("[!.]*.npz")}
    assert finished.items() < after.items()
