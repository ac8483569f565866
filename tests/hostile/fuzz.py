"""Fuzz every reader: ``python -m tests.hostile.fuzz --inputs 100000``.

Each input must be read, or refused with one of our errors, within 5 seconds. With atheris (``pip install
'rekindle-mobility[fuzz]'``) the inputs are guided by the coverage of Rekindle's code; without, they are drawn by a seed. Each
reader runs in a process of its own, so that a crash of native code is seen and counted too.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

SLOWEST_ALLOWED = 5.0
"""Seconds for one input."""
SHARES = {
    "defence": 300,
    "time or step": 200,
    "dataset.json": 100,
    "recovery.json": 100,
    "saved run": 60,
    "task of an audit": 60,
    "counts csv": 60,
    "counts parquet": 60,
    "flows csv": 40,
    "flows parquet": 40,
    "locations csv": 40,
    "locations parquet": 60,
    "release csv": 30,
    "release parquet": 40,
    "defences of a release": 40,
    "published csv": 30,
    "published parquet": 30,
    "checked csv": 8,
    "checked parquet": 8,
    "settings of the check": 100,
    "rekindle.json": 60,
    "trajectories csv": 30,
    "trajectories parquet": 40,
    "day of a recovery": 20,
    "resumed run": 10,
    "GeoLife folder": 8,
    "GeoLife zip": 8,
    "Cabspotting folder": 8,
    "Porto csv": 4,
    "points csv": 4,
    "points csv, bad rows skipped": 4,
    "points csv.gz": 4,
    "points parquet": 4,
}
"""How the inputs are split over the readers: fewer where one takes longer."""


class Tally:
    """What became of the inputs of one reader."""

    def __init__(self, name: str, out: Path) -> None:
        self.name, self.out = name, out
        self.kinds: Counter[str] = Counter()
        self.inputs, self.slowest, self.begin = 0, 0.0, time.perf_counter()
        self.memory_before = peak_memory()

    def add(self, kind: str, seconds: float) -> None:
        self.inputs += 1
        self.kinds[kind] += 1
        self.slowest = max(self.slowest, seconds)
        if self.inputs % 500 == 0:
            self.save()

    def save(self, crash: str | None = None) -> None:
        found = {
            "reader": self.name,
            "inputs": self.inputs,
            "read": self.kinds["read"],
            "refused": dict(self.kinds.most_common()),
            "slowest_s": round(self.slowest, 3),
            "seconds": round(time.perf_counter() - self.begin, 1),
            "grown_mb": round((peak_memory() - self.memory_before) / 1e6),
            "crash": crash,
        }
        found["refused"].pop("read", None)
        self.out.write_text(json.dumps(found, indent=1))


def peak_memory() -> int:
    """The most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tries(name: str, out: Path, folder: Path):
    """A function that tries one input, and ends this process at the first that is neither read nor refused."""
    from tests.hostile.readers import READERS, attempt

    reader = READERS[name]
    attempt(reader, reader.valid()[0], folder)  # what is loaded and compiled once is not counted as growth
    tally = Tally(name, out)

    def one(data: bytes) -> int:
        try:
            content = reader.make(data)
        except Exception:
            return tally.inputs  # the generator could not write such a file: nothing was tried
        begin = time.process_time()  # the machine may be busy with other things
        try:
            kind = attempt(reader, content, folder)
            seconds = time.process_time() - begin
            if seconds > SLOWEST_ALLOWED:
                raise TimeoutError(f"it took {seconds:.1f} s")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            (out.parent / f"crash-{name.replace(' ', '-')}.bin").write_bytes(content)
            tally.save(crash=f"{type(error).__name__}: {error}")
            import traceback

            traceback.print_exc()
            os._exit(77)
        tally.add(kind, seconds)
        return tally.inputs

    return one, tally


def run_reader(name: str, inputs: int, seed: int, out: Path, guided: bool) -> None:
    """Try that many inputs on one reader, in this process."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        if guided:
            _run_guided(name, inputs, seed, out, Path(scratch))
            return
        one, tally = tries(name, out, Path(scratch))
        rng = random.Random(seed)
        while tally.inputs < inputs:
            one(rng.randbytes(rng.choice((8, 32, 128, 512))))
        tally.save()


def _run_guided(name: str, inputs: int, seed: int, out: Path, scratch: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["rekindle"], enable_loader_override=False):
        import rekindle  # noqa: F401
    one, tally = tries(name, out, scratch)
    corpus = scratch / "corpus"
    corpus.mkdir()
    rng = random.Random(seed)
    from tests.hostile.readers import READERS

    for number, content in enumerate(READERS[name].valid()):
        (corpus / f"valid{number}").write_bytes(b"\0" + content)  # how == 0: the bytes as they are
    for number in range(64):
        (corpus / f"drawn{number}").write_bytes(rng.randbytes(512))
    (scratch / "files").mkdir()

    def test_one_input(data: bytes) -> None:
        if one(data) >= inputs:
            tally.save()
            os._exit(0)

    options = [
        f"-seed={seed}",
        f"-artifact_prefix={scratch}/",
        "-max_len=4096",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-verbosity=0",
        "-print_final_stats=0",
    ]
    atheris.Setup([sys.argv[0], str(corpus), *options], test_one_input)
    atheris.Fuzz()


def main() -> int:
    """Fuzz the readers one after another, each in a process of its own, and print what became of the inputs."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--inputs", type=int, default=24_000, help="inputs in all, over all readers")
    options.add_argument("--reader", action="append", help="only this reader, by name; may be given several times")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, help="folder for the results and for files that crashed a reader")
    options.add_argument(
        "--unguided", action="store_true", help="draw inputs by the seed alone, also where atheris is there"
    )
    options.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.here:
        run_reader(chosen.reader[0], chosen.inputs, chosen.seed, chosen.out, not chosen.unguided)
        return 0

    from tests.hostile.readers import READERS

    unguided = chosen.unguided
    try:
        import atheris  # noqa: F401
    except ImportError:
        unguided = True
    folder = chosen.out or Path(tempfile.mkdtemp(prefix="rekindle-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    names = chosen.reader or list(READERS)
    whole = sum(SHARES[name] for name in names)
    crashed, tried = [], 0
    print(f"{'reader':30} {'inputs':>8} {'read':>8} {'refused':>8} {'kinds':>6} {'slowest s':>9} {'grown MB':>8}")
    for name in names:
        out = folder / f"{name.replace(' ', '-')}.json"
        inputs = max(1, round(chosen.inputs * SHARES[name] / whole))
        command = [sys.executable, "-m", "tests.hostile.fuzz", "--here", "--reader", name, "--inputs", str(inputs)]
        command += ["--seed", str(chosen.seed), "--out", str(out), *(["--unguided"] if unguided else [])]
        with open(folder / f"{name.replace(' ', '-')}.log", "wb") as log:
            code = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        found = (
            json.loads(out.read_text())
            if out.exists()
            else {"inputs": 0, "read": 0, "refused": {}, "slowest_s": 0, "grown_mb": 0}
        )
        tried += found["inputs"]
        refused = sum(found["refused"].values())
        print(
            f"{name:30} {found['inputs']:8} {found['read']:8} {refused:8} {len(found['refused']):6} "
            f"{found['slowest_s']:9.2f} {found['grown_mb']:8}",
            flush=True,
        )
        if code:
            crashed.append(name)
            print(f"  CRASHED (exit {code}): {found.get('crash')}; see {folder}", flush=True)
    how = "drawn by the seed" if unguided else "guided by coverage"
    print(f"{tried} inputs, {how}; {len(crashed)} readers crashed.")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
