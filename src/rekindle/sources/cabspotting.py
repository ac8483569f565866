"""Cabspotting: some 500 taxis in San Francisco over a month (Exploratorium and EPFL, 2008)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import narwhals as nw
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import files_in, read_content
from rekindle.progress import Progress
from rekindle.sources.engine import collect
from rekindle.sources.points import Points, from_lines, read_lines, sift

_COLUMNS = b"lat lng occupied time\n"


def read_cabspotting(
    source: str | Path,
    *,
    timezone: str = "America/Los_Angeles",
    skip_bad: bool = False,
    progress: Progress | None = None,
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
        Called after each cab.
    """
    files = sorted(files_in(Path(source), "new_*.txt"), key=lambda file: file.name)
    if not files:
        raise InvalidFile(source, "there is no file new_<cab>.txt in it; is this the folder of Cabspotting?")
    skipped: Counter[str] = Counter()
    tables = []
    for done, file in enumerate(files, start=1):
        table = _read_cab(file, skipped, skip_bad=skip_bad)
        if table is not None:
            tables.append(table)
        if progress is not None:
            progress(done, len(files))
    if not tables:
        raise InvalidFile(source, "no file holds a good point.")
    info = {
        "source": "Cabspotting (epfl/mobility), Piorkowski, Sarafijanovic-Djukic and Grossglauser 2009",
        "licence": "see its README; publications cite the above",
        "skipped": dict(sorted(skipped.items())),
    }
    return Points(nw.from_native(pl.concat(tables).lazy()), timezone, info)


def _read_cab(file: Path, skipped: Counter[str], *, skip_bad: bool) -> pl.DataFrame | None:
    content = read_content(file)
    if not content.strip():
        if not skip_bad:
            raise InvalidFile(file, "file without points. Use `skip_bad=True` to continue without it.")
        skipped["file without points"] += 1
        return None
    numbered = {"separator": " ", "row_index_name": "line", "row_index_offset": 1}
    frame = from_lines(
        read_lines(file, _COLUMNS, content.rstrip(), "lines of Cabspotting", **numbered),
        person=pl.lit(file.stem.removeprefix("new_")),
        time=pl.col("time").cast(pl.Int64, strict=False),
        seen_time=pl.col("time"),
        out_of_order=pl.col("time") > pl.col("time").shift(1),
        line=pl.col("line").cast(pl.Int64),
        file=pl.lit(str(file)),
    )
    good, found = sift(frame, skip_bad=skip_bad)
    skipped.update(found)
    return collect(good)
