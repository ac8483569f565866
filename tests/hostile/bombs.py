"""Small files that would unfold to gigabytes, take minutes or never end; run as a process of its own by the tests."""

import gzip
import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

import rekindle as rk
from rekindle.attacks.saving import read_run
from rekindle.sources import read_cabspotting, read_geolife, read_points, read_porto


def bombs(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each with its name and what reads it."""

    def put(name: str, content: bytes) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def arrays(name: str, header: str, packed: int = zipfile.ZIP_STORED, body: bytes = b"") -> Path:
        file = io.BytesIO()
        head = header.encode().ljust(118)
        with zipfile.ZipFile(file, "w", packed) as archive:
            archive.writestr("head.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + body)
        return put(name, file.getvalue())

    # 2 EiB declared, then 100 MB of zeros in 100 kB.
    huge = arrays("huge.npz", "{'descr': '<f8', 'fortran_order': False, 'shape': (288230376151711744,)}")
    yield "npz that declares 2 EiB", lambda: read_run(huge)
    zeros = arrays(
        "zeros.npz", "{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,)}", 8, bytes(100_000_000)
    )
    yield "npz of 100 MB of zeros", lambda: read_run(zeros)
    _zip_of_zeros(folder / "zeros.zip")
    yield "zip of 100 MB of zeros", lambda: read_geolife(folder / "zeros.zip")

    packed = put("zeros.csv.gz", gzip.compress(b"person,time,lat,lng\n" + bytes(100_000_000), 1))
    yield "gzip of 100 MB of zeros", lambda: read_points(packed)
    yield "gzip of 100 MB of zeros, Porto", lambda: read_porto(packed)
    inside = put("zeros.csv", packed.read_bytes())
    yield "gzip named csv", lambda: rk.read_counts(inside)

    rows = 10_000_000
    same = pl.DataFrame(
        {
            "datetime": pl.repeat(0, rows, eager=True).cast(pl.Datetime("ms")),
            "location": pl.repeat("(0, 0)", rows, eager=True),
        }
    )
    same.with_columns(count=pl.lit(1)).write_parquet(folder / "rows.parquet")
    yield "parquet of 10 million equal rows", lambda: rk.read_counts(folder / "rows.parquet")
    yield (
        "parquet of 10 million equal rows, points",
        lambda: read_points(folder / "rows.parquet", person="location", time="datetime", lat="count", lng="count"),
    )
    pl.DataFrame({"location": ["a" * 100_000_000], "x_km": [0.0], "y_km": [0.0]}).write_parquet(
        folder / "cell.parquet"
    )
    yield "parquet with a cell of 100 MB", lambda: rk.read_locations(folder / "cell.parquet")

    header = ("datetime," + ",".join(map(str, range(1_000_000))) + "\n").encode()
    wide = put("wide.csv", header + b"2024-01-01 00:00:00" + b",1" * 1_000_000 + b"\n")
    yield "csv of a million columns", lambda: rk.read_counts(wide)
    yield "csv of a million columns, points", lambda: read_points(wide)

    places = put("places.csv", b"location,x_km,y_km\n" + b"".join(b"%d,%d,0\n" % (n, n) for n in range(20_000)))
    when = (np.datetime64("2024-01-01", "s") + np.arange(20_000) * np.timedelta64(60, "s")).astype(str)
    long = put(
        "long.csv", ("datetime,location,count\n" + "".join(f"{t},{n},1\n" for n, t in enumerate(when))).encode()
    )
    yield "csv of 20,000 places at 20,000 times", lambda: rk.read_counts(long, places)
    yield "release of 20,000 places at 20,000 times", lambda: rk.read_release(long, places)
    typo = put(
        "typo.csv",
        b"datetime,(0; 0)\n".replace(b";", b",").replace(b"(0, 0)", b'"(0, 0)"')
        + b"2024-01-01 00:00:00,1\n2024-01-01 00:01:00,1\n9024-01-01 00:00:00,1\n",
    )
    yield "release that spans 7,000 years", lambda: rk.read_release(typo)

    deep = put("deep/dataset.json", b'{"a":' + b"[" * 5_000_000 + b"]" * 5_000_000 + b"}")
    yield "JSON nested 5 million deep", lambda: rk.read_dataset(deep.parent)
    many = put("many/dataset.json", b'{"a":[' + b"[]," * 5_000_000 + b"0]}")
    yield "JSON of 5 million lists", lambda: rk.read_dataset(many.parent)
    digits = put("digits/dataset.json", b'{"people":' + b"9" * 10_000_000 + b"}")
    yield "JSON number of 10 million digits", lambda: rk.read_dataset(digits.parent)
    crowd = {"format": "rekindle recovery 1", "attack": "a", "settings": {}, "people": 2**62, "days": []}
    crowd["calendar"] = {"start": "2024-01-01 00:00", "step": "1h", "steps": 24}
    put("crowd/recovery.json", json.dumps(crowd).encode())
    yield "recovery of 2^62 people", lambda: rk.read_recovery(folder / "crowd")

    os.mkfifo(folder / "pipe.csv")
    (folder / "pipes" / "000" / "Trajectory").mkdir(parents=True)
    os.mkfifo(folder / "pipes" / "000" / "Trajectory" / "1.plt")
    os.mkfifo(folder / "pipes" / "new_a.txt")
    os.mkfifo(folder / "pipes" / "train.csv")
    os.mkfifo(folder / "pipes" / "dataset.json")
    for what, path in (("pipe", folder / "pipe.csv"), ("device", Path("/dev/zero")), ("folder", folder)):
        for reader in (rk.read_counts, rk.read_locations, rk.read_release, read_run):
            yield f"{what} for {reader.__name__}", lambda reader=reader, path=path: reader(path)
    for reader in (read_geolife, read_cabspotting, read_porto, read_points, rk.read_dataset):
        yield f"pipe in the folder for {reader.__name__}", lambda reader=reader: reader(folder / "pipes")
    yield "pipe for read_points", lambda: read_points(folder / "pipe.csv")


def _zip_of_zeros(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Data/000/Trajectory/1.plt", bytes(100_000_000))


def main() -> None:
    """Read each in turn and print, a line each, its name, the error, the CPU seconds and by how many bytes memory grew."""
    for name, read in bombs(Path(sys.argv[1])):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, begin = memory("VmRSS"), time.process_time()
        try:
            read()
            found = "read"
        except rk.errors.RekindleError as error:
            found = f"{type(error).__name__}: {error}"
        except BaseException as error:
            found = f"CRASH {type(error).__name__}: {error}"
        print(json.dumps([name, found[:300], time.process_time() - begin, memory("VmHWM") - before]), flush=True)


def memory(what: str) -> int:
    """Bytes that the system counts as memory of this process: `VmRSS`, or its peak `VmHWM`."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
