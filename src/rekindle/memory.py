"""How much memory work needs, and how much it may take: what is free, or what a limit says."""

from __future__ import annotations

import glob
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import psutil

from rekindle.attacks import Attack
from rekindle.errors import InvalidSetting, RekindleError, TooLarge
from rekindle.io.dataset import calendar_from_json
from rekindle.io.safety.files import read_json
from rekindle.io.tables.table import ROWS_AT_ONCE, stored
from rekindle.model import Counts, Flows, Release

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_UNLIMITED = 2**60


def parse_size(text: str) -> int:
    """Read a size such as 4GB, 500 MB or 1.5g, in units of 1024."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    if found is None or not float(found[1]):
        raise InvalidSetting(f"`memory_limit` is {text!r}; write a size such as 4GB or 500MB.")
    return int(float(found[1]) * _UNITS[found[2]])


def check_memory(needed: int, limit: str | None, *, what: str, way_out: str) -> None:
    """Refuse work that would not fit.

    Parameters
    ----------
    needed
        About how many bytes the process will take at its peak.
    limit
        A size such as 4GB, which counts instead of what is free.
    what
        What needs it.
    way_out
        What would need less.
    """
    if limit is not None:
        allowed, whose = parse_size(limit), "`memory_limit` allows"
    else:
        allowed, whose = min(free_memory(), default=(_UNLIMITED, ""))
    if needed > allowed:
        raise TooLarge(
            f"{what} needs about {size(needed)} of memory, but {whose} {size(allowed)}. "
            f"{way_out}, or allow more with `memory_limit`."
        )


def size(count: int) -> str:
    """A number of bytes in as many digits as an estimate deserves."""
    return f"{count / 2**30:.1f} GB" if count >= 2**30 else f"{count / 2**20:.0f} MB"


def free_memory() -> Iterator[tuple[int, str]]:
    """What this process may take, its present memory included, by each authority that says: bytes, and which it is.

    The machine's free memory, the limits of the control groups that the process is in (containers), and that of the shell
    (`ulimit -v`). Systems that say none of these have none.
    """
    own = psutil.Process().memory_info()
    present = own.rss
    yield psutil.virtual_memory().available + present, "the machine has free"
    for folder, most, now, cache in _control_groups():
        limit, used = _number(folder / most), _number(folder / now)
        if limit is not None and used is not None and limit < _UNLIMITED:
            idle = _idle(folder / "memory.stat", cache)
            yield min(limit, max(0, limit - used + idle) + present), "the control group leaves"
    try:
        import resource
    except ImportError:  # Windows
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield max(0, limit - own.vms) + present, "the limit of the shell (ulimit -v) leaves"


def _control_groups() -> Iterator[tuple[Path, str, str, str]]:
    """The folders of all control groups above this process, with the names of their files: version 2, and 1.

    By hand: psutil tells what the machine has, not what a container may take.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    root = Path("/sys/fs/cgroup")
    for line in lines:
        _, kinds, name = line.split(":", 2)
        if not kinds:
            top, files = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            top, files = root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        folder = top / name.strip("/")
        for one in (folder, *folder.parents):
            yield one, *files
            if one == top:
                break


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max"
        return None


def _idle(path: Path, name: str) -> int:
    """Bytes of files in memory that the system would give up, by an entry of `memory.stat`."""
    try:
        found = re.search(rf"^{name} (\d+)", path.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


PROCESS = 260 * 2**20
"""What the process itself takes, with all that it loads."""

ROW = 130
"""Bytes that a row of a table takes while it is read."""

POINT = 8
"""Bytes that a point of a trajectory takes while trajectories are read, beside the rows that are read at once."""


def reading_bytes(path: Path, *, truth: bool = True, people: int | None = None, days: int | None = None) -> int:
    """About how much memory it takes to read a table, or the tables of a dataset folder one after the other.

    Tables are read whole, but trajectories piece by piece.

    Parameters
    ----------
    path
        A csv or parquet file, or a dataset folder.
    truth, people, days
        What of a dataset folder is read, as in `read_dataset`.
    """
    if not path.is_dir():
        return PROCESS + ROW * _rows(path)
    counts, flows, points = (_rows_in(path, name) for name in ("counts", "flows", "truth"))
    size = described_size(path)
    share = 1.0 if size is None or days is None else min(1.0, days / max(1, size.days))
    if people is None:
        whole = max(counts if days is None else max(round(share * counts), min(counts, ROWS_AT_ONCE)), flows)
    else:  # they are counted by their truth
        whole, share = 0, share if size is None else share * min(1.0, people / max(1, size.people))
    return PROCESS + max(ROW * whole, _points_bytes(points, share) if truth else 0)


def _points_bytes(points: int, share: float = 1.0) -> int:
    """Of trajectories in a file, of which a share is kept."""
    return ROW * min(points, ROWS_AT_ONCE) + POINT * round(share * points)


def _rows_in(folder: Path, name: str) -> int:
    """The rows of a table of a dataset folder, in one file or in parts."""
    return sum(map(_rows, stored(folder, name)))


def _rows(file: Path) -> int:
    if file.suffix == ".parquet":
        try:
            return int(pl.scan_parquet(file).select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError):
            return 0  # reading it will say what is wrong
    return file.stat().st_size // _BYTES_A_ROW if file.suffix == ".csv" and file.is_file() else 0


_BYTES_A_ROW = 25
"""In a csv file, at least: a time and a number."""


def evaluation_bytes(people: int, steps: int, locations: int) -> int:
    """About how much memory it takes to read a recovery and the truth from files, one after the other, and to compare them."""
    reading = PROCESS + 4 * people * steps + _points_bytes(people * steps)
    return max(reading, comparing_bytes(people, steps)) + 16 * steps * locations


def comparing_bytes(people: int, steps: int) -> int:
    """About how much memory it takes to compare a recovery with the truth.

    A matrix of all pairs of people up to a size, lists of the nearest beyond; and the points of both.
    """
    pairs = 24 * people**2 if people <= 3_000 else 3_000 * people
    return PROCESS + 24 * people * steps + pairs


class Size(NamedTuple):
    """How large a dataset is."""

    people: int
    steps: int
    locations: int
    days: int


def described_size(dataset: Path) -> Size | None:
    """How large a dataset folder is by its description; None where reading it will fail."""
    try:
        about = dataset / "dataset.json"
        described = read_json(about)
        calendar = calendar_from_json(described["calendar"], about)
        return Size(
            int(described["people"]), calendar.steps or 0, _rows_in(dataset, "locations"), calendar.number_of_days
        )
    except (RekindleError, KeyError, TypeError, ValueError, OSError):
        return None


def audit_bytes(
    data: Counts | Flows | Release,
    attacks: Sequence[Attack],
    *,
    seeds: int,
    workers: int,
    truth: bool,
    people: int | None,
) -> int:
    """About how much memory an audit takes: each process attacks and compares, and this one keeps the recoveries."""
    counts = counts_of_size(data, people)
    people, steps, locations = counts.people, counts.steps, len(counts.locations)
    flows = isinstance(data, Flows) or (isinstance(data, Release) and data.pairs is not None)
    task = max(
        one.memory_bytes(counts, flows=True) if flows and one.takes_flows else one.memory_bytes(counts)
        for one in attacks
    )
    if truth:
        task = max(task, comparing_bytes(people, steps))
    reading = PROCESS + _points_bytes(people * steps)
    kept = (len(attacks) + 3) * seeds * 4 * people * steps + (16 + 4 * seeds) * steps * locations
    return kept + (max(task, reading) if workers == 1 else reading + workers * task)


def counts_of_size(data: Counts | Flows | Release, people: int | None) -> Counts:
    """Counts of a size that a repair of a release may have: as many people as its fullest step shows."""
    if isinstance(data, Counts):
        return data
    if isinstance(data, Flows):
        everyone, calendar = data.people, data.calendar
    else:
        shown = np.nan_to_num(data.values, nan=0.0).clip(0)
        everyone = people or max(1, int(np.ceil(shown.sum(axis=1).max(initial=1))))
        calendar = data.moments
    values = np.zeros((calendar.steps or 1, len(data.locations)), np.int32)
    values[:, 0] = everyone
    return Counts(values, data.locations, calendar)


def points_bytes(source: str, engine: str = "polars") -> int:
    """About how much memory it takes to prepare raw points, by the size of their files once they are unpacked.

    Polars reads them piece by piece. Spark reads them elsewhere; here are its Python and the Java beside it.
    """
    if engine == "spark":
        return _PREPARING + _JAVA
    if not Path(source).exists():
        files = [Path(name) for name in glob.glob(source, recursive=True)]
    else:
        files = list(Path(source).rglob("*")) if Path(source).is_dir() else [Path(source)]
    unpacked = sum(_unpacked(file) for file in files if file.is_file())
    return _PREPARING + min(2 * unpacked, _PIECES) + unpacked // 10


_PREPARING = 320 * 2**20
"""What the process takes there: it draws a picture, too."""

_JAVA = 640 * 2**20
_PIECES = 600 * 2**20
"""What pieces of a stream, and a part of the people, take at most."""
_PACKED = 6


def _unpacked(file: Path) -> int:
    if file.suffix in (".gz", ".parquet", ".zst"):
        return _PACKED * file.stat().st_size
    if file.suffix == ".zip":
        try:
            with zipfile.ZipFile(file) as archive:
                return sum(one.file_size for one in archive.infolist())
        except (OSError, zipfile.BadZipFile):
            return 0  # reading it will say what is wrong
    return file.stat().st_size
