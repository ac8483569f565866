"""How much memory and processor time does it take to prepare many points, by Polars and by Spark?

Makes a file of points of people who go between home and work, in the order of time, or takes a dataset as it is downloaded; prepares
it as `rekindle prepare` does in a process of its own, and reads that process's peak memory. Spark runs with two worker processes on the loopback address, with
authentication; what counts there is the memory of the driver, Python and Java, since workers may be as many as one has. The
processor seconds of Spark are those of the driver's Python alone.

    python -m benchmarks.prepare                                  # a million points, both engines, compared row by row
    python -m benchmarks.prepare --points 50_000_000 --people 20_000 --engine polars
    python -m benchmarks.prepare --of geolife FOLDER -- --step 2min --fill nearest
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from rekindle.memory import points_bytes

DAYS = 7
CHUNK = 1_000_000
GB = 2**30


def write_points(path: Path, points: int, people: int) -> None:
    """Points of a week in Paris, in the order of time, so that each person's are everywhere in the file."""
    rng = np.random.default_rng(0)
    centre = np.array([48.85, 2.35])
    home, work = (centre + rng.normal(0, spread, (people, 2)) for spread in ((0.08, 0.12), (0.04, 0.06)))
    names = pa.array([f"p{person:07d}" for person in range(people)])
    chunks = max(1, points // CHUNK)
    length, writer = DAYS * 86_400 // chunks, None
    for chunk in range(chunks):
        second = chunk * length + np.sort(rng.integers(0, length, points // chunks))
        person = rng.integers(0, people, len(second))
        hour = second % 86_400 // 3_600
        at = np.where(((hour >= 9) & (hour < 17))[:, None], work[person], home[person])
        lat, lng = (at + rng.normal(0, 0.004, at.shape)).round(5).T
        when = np.datetime64("2024-03-04", "ms") + second * np.timedelta64(1, "s")
        table = pa.table({"uid": names.take(pa.array(person)), "datetime": when, "lat": lat, "lng": lng})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def spark_folder(folder: Path, memory: int) -> dict[str, str]:
    """The environment of a cluster of two worker processes, each with a core and so many MB, that nobody else can reach."""
    conf = folder / "conf"
    conf.mkdir(mode=0o700)
    settings = {
        "spark.master": f"local-cluster[2,1,{memory}]",
        "spark.driver.memory": "512m",
        "spark.executor.memory": f"{memory}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(16),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "32",
    }
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (conf / "spark-defaults.conf").write_text(lines)
    home = Path(__import__("pyspark").__file__).parent
    here = {"SPARK_CONF_DIR": str(conf), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    return here | {"PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(folder / "workers")}


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, dict[str, int]]:
    """Processor seconds of a command, and the peak memory in bytes of each kind of process that it starts."""
    process = psutil.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peaks: dict[str, dict[int, int]] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            try:
                family = [process, *process.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for one in family:
                try:
                    kind = kind_of(one.cmdline(), one.pid == process.pid)
                    seen = peaks.setdefault(kind, {})
                    seen[one.pid] = max(seen.get(one.pid, 0), one.memory_info().rss)
                except (psutil.NoSuchProcess, psutil.ZombieProcess):
                    pass
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, used = os.wait4(process.pid, 0)
    ended.set()
    watcher.join()
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}.")
    return used.ru_utime + used.ru_stime, {kind: max(of.values()) for kind, of in peaks.items()}


def kind_of(command: list[str], first: bool) -> str:
    """What a process is."""
    line = " ".join(command)
    if first:
        return "Python"
    return "driver's Java" if "SparkSubmit" in line else "worker's Java" if "Executor" in line else "worker's Python"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--people", type=int, default=1_000)
    parser.add_argument("--of", nargs=2, metavar=("DATASET", "SRC"), help="Instead of points that are made.")
    parser.add_argument("--engine", choices=["polars", "spark", "both"], default="both")
    parser.add_argument("--worker-memory", type=int, default=1024, metavar="MB")
    parser.add_argument("--csv", action="store_true", help="Write the points that are made as csv.")
    parser.add_argument("--out", type=Path, help="Keep the datasets in this folder, one for each engine.")
    parser.add_argument("options", nargs="*", help="Of rekindle prepare, after --.")
    chosen = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.of:
            kind, source = chosen.of
            print(f"{kind} of {source}")
        else:
            kind, source = "points", str(folder / "points.parquet")
            write_points(Path(source), chosen.points, chosen.people)
            if chosen.csv:
                parquet, source = source, str(folder / "points.csv")
                pl.scan_parquet(parquet).sink_csv(source)
                Path(parquet).unlink()
            size = Path(source).stat().st_size / GB
            print(f"{chosen.points:,} points of {chosen.people:,} people, {size:.2f} GB")
        print("| engine | processor s | peak GB | driver GB | estimate / driver |")
        print("|---|---|---|---|---|", flush=True)
        for engine in ("polars", "spark") if chosen.engine == "both" else (chosen.engine,):
            found[engine] = (chosen.out or folder) / engine
            command = [sys.executable, "-m", "rekindle", "prepare", kind, source, str(found[engine])]
            options = ["--engine", engine, *chosen.options, "--memory-limit", "1TB"]
            environment = spark_folder(folder, chosen.worker_memory) if engine == "spark" else {}
            seconds, peaks = measure([*command, *options], environment)
            shown = ", ".join(f"{kind} {peak / GB:.2f}" for kind, peak in peaks.items())
            driver = sum(peaks.get(one, 0) for one in ("Python", "driver's Java"))
            estimate = points_bytes(source, engine) / driver
            print(f"| {engine} | {seconds:.1f} | {shown} | {driver / GB:.2f} | {estimate:.2f} |", flush=True)
        if len(found) == 2:
            for one in ("truth", "counts", "locations", *["flows"] * ("--flows" in chosen.options)):
                rows = [table(at, one) for at in found.values()]
                print(f"{one}: {different(*rows)} of {rows[0].height:,} rows differ")


def table(folder: Path, name: str) -> pl.DataFrame:
    """All rows of a table with the plainest types."""
    where = folder / f"{name}.parquet" if (folder / f"{name}.parquet").exists() else folder / name / "*.parquet"
    rows = pl.read_parquet(where)
    return rows.with_columns(cs.datetime().cast(pl.Datetime("ms")), cs.enum().cast(pl.String))


def different(one: pl.DataFrame, other: pl.DataFrame) -> int:
    """How many rows are in one table alone."""
    return sum(
        left.join(right, on=left.columns, how="anti", nulls_equal=True).height
        for left, right in ((one, other), (other, one))
    )


if __name__ == "__main__":
    main()
