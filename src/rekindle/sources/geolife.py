"""GeoLife: the trajectories of 182 people in and around Beijing (Microsoft Research Asia, 2007 to 2012)."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath

import narwhals as nw
import numpy as np
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import files_in, open_zip, read_content, reading
from rekindle.progress import Progress
from rekindle.sources.engine import collect
from rekindle.sources.points import Points, from_lines, read_lines, sift

_HEADER_LINES = 6
_FIRST_LINE = b"Geolife trajectory"
_COLUMNS = b"lat,lng,zero,altitude,days,date,clock\n"
_KNOWN_BAD = ("020", 400.166666666667)
"""Person and latitude of the one point out of range in the data as published, which is left out without asking."""


_Entry = tuple[str, Callable[[], bytes]]
"""The name of a file, or of an entry of a zip, and what reads it."""


def read_geolife(
    source: str | Path, *, timezone: str = "Asia/Shanghai", skip_bad: bool = False, progress: Progress | None = None
) -> Points:
    """Read the PLT files of GeoLife.

    Parameters
    ----------
    source
        The folder, at any level above the people's folders, or the original zip, which is not unpacked.
    timezone
        The zone whose local time counts; the files are in UTC.
    skip_bad
        Go on without what cannot be read, and count it by kind.
    progress
        Called after each person.

    Returns
    -------
    One trajectory for each file, numbered per person in the order of the file names, which is that of time.
    """
    source = Path(source)
    skipped: Counter[str] = Counter()
    tables = []
    with _entries(source) as people:
        total = sum(len(entries) for _, entries in people)
        done = 0
        for person, entries in people:
            table = _read_person(person, entries, skipped, skip_bad=skip_bad)
            if table is not None:
                tables.append(table)
            done += len(entries)
            if progress is not None:
                progress(done, total)
    if not tables:
        raise InvalidFile(source, "no file holds a good point.")
    info = {
        "source": "GeoLife GPS Trajectories 1.3, Microsoft Research Asia",
        "licence": "Microsoft Research License Agreement: not to be passed on",
        "skipped": dict(sorted(skipped.items())),
    }
    return Points(nw.from_native(pl.concat(tables).lazy()), timezone, info)


@contextmanager
def _entries(source: Path) -> Iterator[list[tuple[str, list[_Entry]]]]:
    """The PLT files of each person, in order: of a folder ``.../<person>/Trajectory/<name>.plt``, or of a zip."""
    if source.is_dir():
        files = files_in(source, "*.plt")
        yield _by_person(
            source, [(PurePosixPath(file.as_posix()), (str(file), partial(read_content, file))) for file in files]
        )
    elif source.is_file() and zipfile.is_zipfile(source):
        with open_zip(source) as archive:

            def read(name: str) -> bytes:
                with reading(f"{source}!{name}", "an entry of a zip"):
                    return archive.read(name)

            names = sorted(name for name in archive.namelist() if name.endswith(".plt"))
            entries: list[tuple[PurePosixPath, _Entry]] = [
                (PurePosixPath(name), (f"{source}!{name}", partial(read, name))) for name in names
            ]
            yield _by_person(source, entries)
    else:
        problem = "this is neither a folder nor a zip" if source.exists() else "this does not exist"
        raise InvalidFile(source, f"{problem}; give the folder of GeoLife, or its zip as it was downloaded.")


def _by_person(source: Path, files: list[tuple[PurePosixPath, _Entry]]) -> list[tuple[str, list[_Entry]]]:
    if not files:
        raise InvalidFile(source, "there is no .plt file in it; is this GeoLife?")
    for path, entry in files:
        if path.parent.name != "Trajectory":
            raise InvalidFile(entry[0], "a PLT file lies in a folder <person>/Trajectory, but not this one.")
    groups = groupby(files, key=lambda file: file[0].parent.parent.name)
    return [(person, [entry for _, entry in group]) for person, group in groups]


def _read_person(person: str, entries: list[_Entry], skipped: Counter[str], *, skip_bad: bool) -> pl.DataFrame | None:
    """Read all files of one person at once: parsing many small files one by one would take minutes."""
    bodies, lines = [], []
    for name, read in entries:
        body, problem = _body(read())
        if problem is not None:
            if not skip_bad:
                raise InvalidFile(name, f"{problem}. Use `skip_bad=True` to continue without it.")
            skipped[problem] += 1
        bodies.append(body)
        lines.append(body.count(b"\n"))
    if not any(lines):
        return None
    numbers = np.repeat(np.arange(len(entries)), lines)
    line = np.arange(len(numbers)) - np.repeat(np.cumsum(lines) - lines, lines) + _HEADER_LINES + 1
    written = pl.col("date") + " " + pl.col("clock").str.strip_chars_end("\r")
    same_file = pl.col("trajectory") == pl.col("trajectory").shift(1)
    names = pl.Series([name for name, _ in entries])
    frame = from_lines(
        read_lines(entries[0][0], _COLUMNS, b"".join(bodies), "lines of GeoLife"),
        person=pl.lit(person),
        trajectory=pl.lit(pl.Series(numbers)),
        time=written.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False).dt.epoch("s"),
        seen_time=written,
        out_of_order=same_file & (pl.col("time") < pl.col("time").shift(1)),
        line=pl.lit(pl.Series(line)),
        file=pl.lit(names.gather(numbers)),
    )
    known = nw.coalesce((nw.col("person") == _KNOWN_BAD[0]) & (nw.col("lat") == _KNOWN_BAD[1]), nw.lit(False))
    if person == _KNOWN_BAD[0] and (count := collect(frame.filter(known)).height):
        skipped["coordinates out of range, known of the published data"] = count
        frame = frame.filter(~known)
    good, found = sift(frame, skip_bad=skip_bad)
    skipped.update(found)
    return collect(good)


def _body(content: bytes) -> tuple[bytes, str | None]:
    """The lines of points, each with its end, and what is wrong with the file."""
    if not content.startswith(_FIRST_LINE):
        return b"", "file of another kind (its first line is not 'Geolife trajectory')"
    body = content.split(b"\n", _HEADER_LINES)[_HEADER_LINES:]
    if not body or not body[0].strip():
        return b"", "file without points"
    return body[0].rstrip() + b"\n", None
