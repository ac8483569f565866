"""Cabspotting: some 500 taxis in San Francisco over a month (Exploratorium and EPFL, 2008)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import files_in
from rekindle.progress import Progress
from rekindle.sources.engine import Engine
from rekindle.sources.lines import File, Lines, read_files
from rekindle.sources.points import Points


def read_cabspotting(
    source: str | Path,
    *,
    timezone: str = "America/Los_Angeles",
    skip_bad: bool = False,
    progress: Progress | None = None,
    engine: Engine = "polars",
) -> Points:
    """Read the files ``new_<cab>.txt``, whose lines are latitude, longitude, occupied, Unix time, the latest first.

    Parameters
    ----------
    source
        The folder, or one above it.
    timezone
        The zone whose local time counts.
    skip_bad
        Go on without what cannot be read, and count it by kind.
    progress
        Called with how many files were read.
    engine
        As in `prepare_points`; Spark must see the same paths.
    """
    source = Path(source)
    files = sorted(files_in(source, "new_*.txt"), key=lambda file: file.name)
    if not files:
        raise InvalidFile(source, "there is no file new_<cab>.txt in it; is this the folder of Cabspotting?")
    return read_files(
        source,
        [File(file.absolute(), file.stat().st_size, file.stem.removeprefix("new_")) for file in files],
        _LINES.read,
        engine=engine,
        timezone=timezone,
        skip_bad=skip_bad,
        progress=progress,
        info={
            "source": "Cabspotting (epfl/mobility), Piorkowski, Sarafijanovic-Djukic and Grossglauser 2009",
            "licence": "see its README; publications cite the above",
        },
    )


def _body(content: bytes) -> tuple[bytes, str | None]:
    lines = content.rstrip()
    return (lines + b"\n", None) if lines else (b"", "file without points")


def _seconds(written: pl.Expr) -> pl.Expr:
    return written.cast(pl.Int64, strict=False)


_LINES = Lines(
    what="lines of Cabspotting",
    columns=b"lat lng occupied time\n",
    separator=" ",
    body=_body,
    first=1,
    written=pl.col("time"),
    seconds=_seconds,
    latest_first=True,
)
