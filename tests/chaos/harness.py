"""Real processes, killed with SIGKILL at random moments and started again until they are done.

Nothing is mocked, and the commands do not know that they are watched. A life of a process ends at one of these moments,
drawn with a seed: some time after its output last changed, or as soon as a file (a temporary one included) appears.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from rekindle.io.safety.files import read_json
from rekindle.io.safety.lock import lock_file

ENVIRONMENT = {
    **os.environ,
    **dict.fromkeys(("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1"),
    "COLUMNS": "120",
}
POLL_SECONDS = 0.0005


def start(*arguments, cwd, **settings):
    """Start a command in a process group of its own."""
    command = [sys.executable, "-W", "error", "-m", "rekindle", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, start_new_session=True, env=ENVIRONMENT, **(streams | settings))


def run(*arguments, cwd):
    """Run a command to its end: its exit code, what it printed, and its errors."""
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def content(folder):
    """Every file below a folder by its name, hidden ones included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_whole(path):
    """Read a file to its end, by its kind; raises where it is not whole."""
    if path.suffix == ".parquet":
        pl.read_parquet(path)
    elif path.suffix == ".json":
        read_json(path)
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                file[name]
    elif path.suffix == ".png":
        data = path.read_bytes()
        if not (data.startswith(b"\x89PNG") and b"IEND" in data[-16:]):
            raise ValueError(f"{path} is no whole picture")
    elif path.suffix == ".html":
        if not path.read_text().rstrip().endswith("</html>"):
            raise ValueError(f"{path} is no whole page")
    elif path.suffix in (".csv", ".md") and not path.read_bytes().endswith(b"\n"):
        raise ValueError(f"{path} does not end with a line")


@dataclass
class Case:
    """A command to kill.

    Attributes
    ----------
    name
        What it is called in the table.
    begin, again
        The arguments of the first life, and of those after a kill.
    out
        The output folder, in the folder of the case.
    old
        A command that fills the output before, where that is to be replaced.
    at_once
        Whether the output appears as a whole: it is not there, as before, or complete.
    """

    name: str
    begin: tuple
    again: tuple
    out: str = "out"
    old: tuple | None = None
    at_once: bool = False


@dataclass
class Tally:
    """What was seen of one case."""

    kills: int = 0
    under_way: int = 0
    checked: int = 0
    runs: int = 0
    same: int = 0


class Chaos:
    """Kills commands.

    Parameters
    ----------
    home
        A folder with all that the commands read; outputs are made in it.
    seed
        Of the moments.
    """

    def __init__(self, home, seed):
        self.home, self.random = Path(home), random.Random(seed)
        self.whole, self.before = {}, {}
        self.tallies, self.changes = {}, {}

    def undisturbed(self, case):
        """What the output is when nobody disturbs, and how long that takes."""
        if case.name not in self.whole:
            self.fill(case)
            began = time.monotonic()
            code, out, err = run(*case.begin, cwd=self.home)
            assert code == 0, (case.name, out, err)
            self.whole[case.name] = content(self.home / case.out), time.monotonic() - began
            self.remove(case)
        return self.whole[case.name]

    def remove(self, case):
        """Make room for the next run."""
        shutil.rmtree(self.home / case.out, ignore_errors=True)

    def fill(self, case):
        """Put the output there that is to be replaced."""
        if case.old is None:
            return
        if case.name not in self.before:
            code, out, err = run(*case.old, cwd=self.home)
            assert code == 0, (case.name, out, err)
            self.before[case.name] = content(self.home / case.out)
            return
        for name, data in self.before[case.name].items():
            (self.home / case.out / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / case.out / name).write_bytes(data)
        (self.home / case.out).chmod(0o700)  # as it was made

    def until_done(self, case, most_kills):
        """Kill a command, start it again, and so on; at most so many times, then let it end, and compare every byte."""
        whole, seconds = self.undisturbed(case)
        tally = self.tallies.setdefault(case.name, Tally())
        tally.runs += 1
        self.fill(case)
        arguments = case.begin
        for _ in range(most_kills):
            if not self.life(case, arguments, seconds, tally):
                break
            # Where the kill came before there was anything, there is nothing to go on with either.
            arguments = case.again if (self.home / case.out).exists() else case.begin
        else:
            code, out, err = run(*arguments, cwd=self.home)
            assert code == 0, (case.name, out, err)
        found = content(self.home / case.out)
        assert found.keys() == whole.keys(), (case.name, found.keys() ^ whole.keys())
        assert found == whole, (case.name, [name for name in whole if found[name] != whole[name]])
        assert self.strays(case) == [], case.name
        tally.same += 1
        self.remove(case)

    def strays(self, case):
        """What lies about beside the output."""
        return [path.name for path in self.home.iterdir() if path.name.startswith(f".{case.out}.")]

    def life(self, case, arguments, seconds, tally):
        """Let a process live for a random time; False where it was done before its end."""
        process = start(*arguments, cwd=self.home)
        try:
            self.wait_for_the_moment(case, process, seconds)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        if process.returncode == 0:
            return False
        assert process.returncode == -signal.SIGKILL, (case.name, process.returncode, out, err)
        tally.kills += 1
        tally.under_way += bool(self.strays(case)) or (self.home / case.out).exists()
        self.look(case, tally)
        return True

    def wait_for_the_moment(self, case, process, seconds):
        """Until a random time has passed, or until the output has changed so many times and a little longer."""
        if self.random.random() < 0.3:
            end = time.monotonic() + self.random.random() * seconds
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            return
        before, seen, changes = self.names(case), 0, self.random.randint(1, self.changes.get(case.name, 12))
        deadline = time.monotonic() + 60
        while process.poll() is None and seen < changes and time.monotonic() < deadline:
            now = self.names(case)
            seen += now != before
            before = now
            time.sleep(POLL_SECONDS)
        if seen < changes:
            self.changes[case.name] = max(1, seen)  # it was done: wait for fewer the next time
        time.sleep(self.random.choice((0.0, 0.0, 0.002, 0.02)))

    def names(self, case):
        """All names of the output, and of what is beside it."""
        found = set(self.strays(case))
        for folder, _, files in os.walk(self.home / case.out):
            found.update(f"{folder}/{name}" for name in files)
        for stray in list(found):
            if (self.home / stray).is_dir():
                found.update(f"{stray}/{name}" for _, _, files in os.walk(self.home / stray) for name in files)
        return found

    def look(self, case, tally):
        """Every file that has its name is whole; all others are hidden, and for their owner alone."""
        for path in (self.home / case.out).rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                check_whole(path)
                tally.checked += 1
        if case.at_once:
            found = content(self.home / case.out)
            assert found in ({}, self.whole[case.name][0], self.before.get(case.name)), (case.name, found.keys())
            assert found or case.old is None, (case.name, "what was to be replaced is gone")
        hidden = [self.home / name for name in self.strays(case)]
        hidden += (self.home / case.out).rglob(".*")
        lock = lock_file(self.home / case.out)
        for path in hidden:
            if path != lock:
                assert path.stat().st_mode & 0o077 == 0, path

    def table(self):
        """The tallies as lines of a table."""
        head = "| command | kills | of them with output under way | files found whole | runs to the end | the same bytes |"
        lines = [head, "|---|---:|---:|---:|---:|---:|"]
        for name, one in self.tallies.items():
            lines.append(f"| {name} | {one.kills} | {one.under_way} | {one.checked} | {one.runs} | {one.same} |")
        total = [
            sum(getattr(one, part) for one in self.tallies.values())
            for part in ("kills", "under_way", "checked", "runs", "same")
        ]
        lines.append("| all | " + " | ".join(map(str, total)) + " |")
        return "\n".join(lines)
