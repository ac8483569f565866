"""Points from many files that hold one person's lines each, batch by batch, on either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import open_zip, read_content, reading
from rekindle.progress import Progress
from rekindle.sources.engine import Engine, collect, read_each
from rekindle.sources.points import SCHEMA, Points, of_bad_rows, range_problem, sift

BATCH_BYTES = 48 * 2**20
"""So much text is parsed at a time: parsing many small files one by one would take minutes."""

_SCHEMA = SCHEMA | {"seen_lat": pl.String, "seen_lng": pl.String}


@dataclass(frozen=True)
class File:
    """A file of one person, or an entry of a zip."""

    path: Path
    size: int
    person: str
    trajectory: int | None = None
    entry: str | None = None

    def __str__(self) -> str:
        return f"{self.path}" if self.entry is None else f"{self.path}!{self.entry}"


@dataclass(frozen=True)
class Lines:
    """How the lines of a kind of file are written.

    Attributes
    ----------
    what
        What they are called in messages.
    columns
        The names of the columns, with `lat` and `lng` among them, as a line that ends.
    separator
        What stands between the columns.
    body
        From the content of a file to its lines of points, each with its end, and what is wrong with the file, if anything.
    first
        The number of the first line of points.
    written
        The time as the file says it.
    seconds
        From that to whole seconds since 1970, null where it is no time.
    latest_first
        Whether time goes back from line to line.
    """

    what: str
    columns: bytes
    separator: str
    body: Callable[[bytes], tuple[bytes, str | None]]
    first: int
    written: pl.Expr
    seconds: Callable[[pl.Expr], pl.Expr]
    latest_first: bool

    def read(self, files: Sequence[File]) -> pl.DataFrame:
        """Parse some files at once. Only bad rows say where they stand and what is written there."""
        bodies, problems = zip(*map(self.body, _contents(files)), strict=True)
        lengths = np.array([body.count(b"\n") for body in bodies])
        number = np.repeat(np.arange(len(files)), lengths)
        line = np.arange(len(number)) - np.repeat(lengths.cumsum() - lengths, lengths) + self.first
        about = pl.DataFrame(
            {
                "person": [file.person for file in files],
                "trajectory": [file.trajectory for file in files],
                "file": [str(file) for file in files],
                "problem": problems,
            },
            schema_overrides=_SCHEMA,
        )
        with reading(files[0].path, self.what):
            text = pl.read_csv(
                self.columns + b"".join(bodies),
                separator=self.separator,
                infer_schema=False,
                quote_char=None,
                truncate_ragged_lines=True,
                encoding="utf8-lossy",
            )
        change = pl.col("time").diff() * (-1 if self.latest_first else 1)
        broken = (
            pl.when(pl.any_horizontal(pl.col("time", "lat", "lng").is_null()))
            .then(pl.lit("broken line"))
            .when((change < 0) & (pl.col("number").diff() == 0))
            .then(pl.lit("time out of order"))
        )
        lines = (
            text.lazy()
            .select(seen_time=self.written, seen_lat="lat", seen_lng="lng")
            .with_columns(
                time=self.seconds(pl.col("seen_time")),
                lat=pl.col("seen_lat").cast(pl.Float64, strict=False),
                lng=pl.col("seen_lng").cast(pl.Float64, strict=False),
                line=pl.lit(pl.Series(line, dtype=pl.Int64)),
                number=pl.lit(pl.Series(number, dtype=pl.Int64)),
            )
            .with_columns(broken=broken)
        )
        found = nw.from_native(lines).with_columns(problem=nw.coalesce(nw.col("broken"), range_problem())).to_native()
        where = {name: pl.lit(about[name].gather(number)) for name in ("person", "trajectory", "file")}
        rows = (
            found.with_columns(**where)
            .with_columns(of_bad_rows("file", "line", "seen_time", "seen_lat", "seen_lng"))
            .select(*_SCHEMA)
            .collect()
        )
        wrong = about.filter(pl.col("problem").is_not_null()).select("problem", "file")
        return pl.concat([wrong, rows], how="diagonal").select(*_SCHEMA)


def _contents(files: Sequence[File]) -> Iterator[bytes]:
    with ExitStack() as stack:
        archive = cache(lambda path: stack.enter_context(open_zip(path)))
        for file in files:
            if file.entry is None:
                yield read_content(file.path)
            else:
                with reading(f"{file}", "an entry of a zip"):
                    yield archive(file.path).read(file.entry)


def read_files(
    source: Path,
    files: Sequence[File],
    read: Callable[[Sequence[File]], pl.DataFrame],
    *,
    engine: Engine,
    timezone: str,
    skip_bad: bool,
    progress: Progress | None,
    info: Mapping[str, Any],
    known: str = "",
) -> Points:
    """The points of files, read on an engine.

    Parameters
    ----------
    source
        Where the files were found.
    files
        The files, in order.
    read
        From some of them to a table as `Lines.read` gives it. It must be a function that can be pickled.
    engine, timezone, skip_bad
        As in the sources.
    progress
        Called after each batch of files, with how many were read.
    info
        For `dataset.json`.
    known
        As in `sift`.
    """
    batches = _batches(files)
    names = [name for name in _SCHEMA if name != "trajectory" or files[0].trajectory is not None]

    def tell(done: int, _: int | None) -> None:
        if progress is not None:
            progress(sum(map(len, batches[:done])), len(files))

    frame = read_each(engine, batches, lambda batch: [read(batch)], {name: _SCHEMA[name] for name in names}, tell)
    good, skipped = sift(frame, skip_bad=skip_bad, known=known)
    if collect(good.head(1)).is_empty():
        raise InvalidFile(source, "no file holds a good point.")
    return Points(good, timezone, {**info, "skipped": skipped})


def _batches(files: Sequence[File]) -> list[list[File]]:
    """Divide files so that each batch has about `BATCH_BYTES`."""
    found, size = [[files[0]]], files[0].size
    for file in files[1:]:
        if size + file.size > BATCH_BYTES:
            found.append([])
            size = 0
        found[-1].append(file)
        size += file.size
    return found
