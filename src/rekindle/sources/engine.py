"""What Polars and Spark do each in their own way: read files, keep a table, number its steps, call Python on batches, write it.

All else is narwhals, and the same for both.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.checks import choice
from rekindle.errors import InvalidData, RekindleError
from rekindle.frames import name_column
from rekindle.io.tables.table import write_table
from rekindle.model import Calendar
from rekindle.progress import Progress
from rekindle.sources.spark import spark_session

Engine = Literal["polars", "spark"]
Frame = nw.LazyFrame[Any]
Task = TypeVar("Task")

_BUCKETS = 64
_ROWS_A_PART = 2_000_000
"""Parts of Polars have about that many rows, or those of a person or a 64th of all where that is more."""

_ROWS_A_BATCH = 50_000
"""So many go from a worker's Python to its Java at a time."""

_lazy: Callable[[Any], Frame] = nw.from_native


def on_spark(frame: Frame) -> bool:
    """Whether a frame is on Spark; all others are on Polars."""
    return frame.implementation.is_spark_like()


def collect(frame: Frame) -> pl.DataFrame:
    """Run a lazy frame on its engine; Polars streams, so that the input may be larger than memory."""
    with _reading():
        if on_spark(frame):
            return frame.collect("polars").to_native()  # type: ignore[no-any-return]
        return frame.to_native().collect(engine="streaming")  # type: ignore[no-any-return]


@contextmanager
def _reading() -> Iterator[None]:
    """Turn what an engine raises into an error of ours; that is always about the points, as files are read while it works."""
    try:
        yield
    except RekindleError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise InvalidData(f"The points cannot be read ({line}).") from None
    except Exception as error:  # Spark hands on the text alone of what its workers raise
        if found := re.search(r"rekindle\.errors\.Invalid\w+: (.*)", str(error)):
            raise InvalidData(found[1]) from None
        raise


class _Folder:
    """A folder for files of one's own, which goes away with this object, or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="rekindle-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def scan(self, files: list[Path]) -> Frame:
        """A table of some of the files. Whatever is made of it holds this folder, too; it is read with all its columns."""
        return _lazy(pl.scan_parquet(files).map_batches(partial(_unchanged, self), streamable=True))


def _unchanged(_: _Folder, rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def read_each(
    engine: Engine,
    tasks: Sequence[Task],
    read: Callable[[Task], Iterable[pl.DataFrame]],
    schema: Mapping[str, type[pl.DataType]],
    progress: Progress | None = None,
) -> Frame:
    """Read files with a function of Python, once, and keep the rows: Polars one task after the other, Spark on its workers.

    Parameters
    ----------
    engine
        Who reads, and has the rows then.
    tasks
        What is read at a time; small enough for the memory of a worker.
    read
        From a task to tables. It must be a function that can be pickled.
    schema
        The columns of these tables.
    progress
        Called after each task; Spark does not say how far it is.
    """
    choice("engine", engine, get_args(Engine))
    if engine == "spark":
        from pyspark.sql.pandas.types import from_arrow_schema

        arrow = pl.DataFrame(schema=schema).to_arrow().schema

        def run(batches: Iterable[Any]) -> Iterable[Any]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    for table in read(tasks[number]):
                        yield from table.select(*schema).to_arrow().cast(arrow).to_batches(_ROWS_A_BATCH)

        numbers = spark_session().range(0, len(tasks), 1, len(tasks))
        return settle(_lazy(numbers.mapInArrow(run, from_arrow_schema(arrow))))
    folder = _Folder()
    files = [folder.path / "none.parquet"]
    pl.DataFrame(schema=schema).write_parquet(files[0])
    for done, task in enumerate(tasks, start=1):
        for table in read(task):
            files.append(folder.path / f"{len(files):07d}.parquet")
            table.select(*schema).write_parquet(files[-1], **_QUICK)
        if progress is not None:
            progress(done, len(tasks))
    return folder.scan(files)


@dataclass(frozen=True)
class Parts:
    """A table that was computed once, in parts that each hold all rows of their people.

    Spark has a single part and keeps it on its workers; Polars keeps files in a folder for temporary ones, which nobody else
    may read and which goes away with the table.
    """

    frames: tuple[Frame, ...]
    _folder: _Folder | None = field(default=None, repr=False)

    @classmethod
    def by_person(cls, frame: Frame) -> Parts:
        """Compute a table with a column `person`, and divide it so that a part fits into memory."""
        if on_spark(frame):
            return cls((frame,))
        folder = _Folder()
        bucket = {"bucket": pl.col("person").hash() % _BUCKETS}
        with _reading():
            frame.to_native().sink_parquet(
                pl.PartitionBy(folder.path, key=bucket, include_key=False),
                maintain_order=False,
                **_QUICK,
            )
        groups: list[list[Path]] = [[]]
        rows = 0
        for path in sorted(folder.path.iterdir()):
            if rows >= _ROWS_A_PART:
                groups.append([])
                rows = 0
            files = sorted(path.iterdir())
            groups[-1] += files
            rows += pl.scan_parquet(files).select(pl.len()).collect().item()
        if not groups[0]:
            frame.to_native().head(0).sink_parquet(folder.path / "none.parquet")
            groups[0] = [folder.path / "none.parquet"]
        return cls(tuple(_lazy(pl.scan_parquet(files)) for files in groups), folder)

    def map(self, work: Callable[[Frame], Frame]) -> Parts:
        """Compute another table from each part, where what becomes of a person hangs on that person's rows alone."""
        if on_spark(self.frames[0]):
            return Parts((settle(work(self.frames[0])),))
        folder, frames = _Folder(), []
        for number, frame in enumerate(self.frames):
            file = folder.path / f"{number}.parquet"
            with _reading():
                work(frame).to_native().sink_parquet(file, **_QUICK)
            frames.append(_lazy(pl.scan_parquet(file)))
        return Parts(tuple(frames), folder)

    def lazily(self, work: Callable[[Frame], Frame]) -> Parts:
        """The same as `map`, but computed whenever it is read."""
        return Parts(tuple(map(work, self.frames)), self._folder)

    def gather(self, work: Callable[[Frame], Frame]) -> pl.DataFrame:
        """Compute something small from each part, and collect it."""
        return pl.concat([collect(work(frame)) for frame in self.frames])

    @property
    def frame(self) -> Frame:
        """All rows."""
        return self.frames[0] if len(self.frames) == 1 else nw.concat(self.frames)


_QUICK: Any = {"compression": "lz4", "statistics": False}


def computed(frame: Frame) -> Frame:
    """Compute a small table once."""
    if on_spark(frame):
        return settle(frame)
    folder = _Folder()
    with _reading():
        frame.to_native().sink_parquet(folder.path / "0.parquet", **_QUICK)
    return folder.scan([folder.path / "0.parquet"])


def settle(frame: Frame) -> Frame:
    """Let Spark compute a frame once that several later steps read; Polars finds such parts by itself."""
    return _lazy(frame.to_native().localCheckpoint(eager=False)) if on_spark(frame) else frame


def each_step(frame: Frame, begin: str, end: str) -> Frame:
    """Give a row for each `step` from one column to before another; rows without any go away."""
    frame = frame.filter(nw.col(begin) < nw.col(end))
    native: Any = frame.to_native()
    if on_spark(frame):
        from pyspark.sql import functions

        numbers = functions.sequence(functions.col(begin), functions.col(end) - 1)
        return _lazy(native.withColumn("step", functions.explode(numbers)))
    return _lazy(native.with_columns(step=pl.int_ranges(begin, end)).explode("step"))


Batch = Callable[[NDArray[np.float64]], NDArray[Any]]
"""From (rows, columns) float64 to one value a row."""


def with_computed(frame: Frame, name: str, columns: list[str], function: Batch, kind: type[nw.dtypes.DType]) -> Frame:
    """Add a column that a function of NumPy makes of others, batch by batch; `kind` is Int64 or String."""
    native = frame.to_native()
    if on_spark(frame):
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyspark.sql import types

        def extend(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for batch in batches:
                values = function(np.column_stack([batch[one].to_numpy(zero_copy_only=False) for one in columns]))
                yield batch.append_column(name, pa.array(values.tolist() if kind == nw.String else values))

        found = types.StringType() if kind == nw.String else types.LongType()
        return _lazy(native.mapInArrow(extend, types.StructType([*native.schema, types.StructField(name, found)])))
    dtype = pl.String if kind == nw.String else pl.Int64

    def of_rows(rows: pl.Series) -> pl.Series:
        return pl.Series(function(rows.struct.unnest().to_numpy()), dtype=dtype)

    return _lazy(
        native.with_columns(
            pl.struct(columns).map_batches(of_rows, return_dtype=dtype, is_elementwise=True).alias(name)
        )
    )


def beside(frame: Frame, table: pl.DataFrame) -> Frame:
    """A small table on the engine of a frame."""
    if on_spark(frame):
        return _lazy(frame.to_native().sparkSession.createDataFrame(table.to_arrow()))
    return _lazy(table.lazy())


def with_times(frame: Frame, calendar: Calendar) -> Frame:
    """Add `datetime`, the clock time of each `step`."""
    seconds, native = int(calendar.step.total_seconds()), frame.to_native()
    if on_spark(frame):
        from pyspark.sql import functions

        when = f"timestampadd(SECOND, step * {seconds}, TIMESTAMP_NTZ'{calendar.start}')"
        return _lazy(native.withColumn("datetime", functions.expr(when)))
    start = int(np.datetime64(calendar.start, "ms").astype(np.int64))
    milliseconds = pl.col("step") * (1_000 * seconds) + start
    return _lazy(native.with_columns(datetime=milliseconds.cast(pl.Datetime("ms"))))


def with_names(frame: Frame, columns: Iterable[str], ids: tuple[str, ...]) -> Frame:
    """Replace indices of locations by their names; nothing where the index is below 0."""
    if on_spark(frame):
        named = pl.DataFrame({"name": ids}).with_row_index("index").with_columns(pl.col("index").cast(pl.Int64))
        for column in columns:
            names = beside(frame, named.rename({"index": column}))
            frame = frame.join(names, on=column, how="left").drop(column).rename({"name": column})
        return frame
    dtype = pl.Enum(ids)
    named_columns = [
        pl.col(column).map_batches(
            lambda codes: name_column(codes.to_numpy(), ids), return_dtype=dtype, is_elementwise=True
        )
        for column in columns
    ]
    return _lazy(frame.to_native().with_columns(named_columns))


def write_frame(frame: Frame, path: Path, *, private: bool = False) -> None:
    """Write a table: Polars to a parquet file, whose name gets that ending; Spark to a folder of parts of that name."""
    if not on_spark(frame):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_table(path.with_name(f"{path.name}.parquet"), collect(frame), private=private)
        return
    frame.to_native().write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(str(path))
    for part in path.iterdir():
        if part.suffix == ".crc":
            part.unlink()
        elif private:
            part.chmod(0o600)
