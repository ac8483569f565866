"""GeoLife: the trajectories of 182 people in and around Beijing (Microsoft Research Asia, 2007 to 2012)."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import files_in, open_zip
from rekindle.progress import Progress
from rekindle.sources.engine import Engine
from rekindle.sources.lines import File, Lines, read_files
from rekindle.sources.points import Points

_HEADER_LINES = 6
_FIRST_LINE = b"Geolife trajectory"
_KNOWN_BAD = ("020", 400.166666666667)
"""Person and latitude of the one point out of range in the data as published, which is left out without asking."""
_KNOWN = "coordinates out of range, known of the published data"


def read_geolife(
    source: str | Path,
    *,
    timezone: str = "Asia/Shanghai",
    skip_bad: bool = False,
    progress: Progress | None = None,
    engine: Engine = "polars",
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
        Called with how many files were read.
    engine
        As in `prepare_points`; Spark must see the same paths.

    Returns
    -------
    One trajectory for each file, numbered per person in the order of the file names, which is that of time.
    """
    source = Path(source)
    return read_files(
        source,
        _files(source),
        _read,
        engine=engine,
        timezone=timezone,
        skip_bad=skip_bad,
        progress=progress,
        info={
            "source": "GeoLife GPS Trajectories 1.3, Microsoft Research Asia",
            "licence": "Microsoft Research License Agreement: not to be passed on",
        },
        known=_KNOWN,
    )


def _files(source: Path) -> list[File]:
    """The PLT files of each person, in order: of a folder ``.../<person>/Trajectory/<name>.plt``, or of a zip."""
    found: list[tuple[Path, str | None, int]]
    if source.is_dir():
        found = [(file.absolute(), None, file.stat().st_size) for file in files_in(source, "*.plt")]
    elif source.is_file() and zipfile.is_zipfile(source):
        with open_zip(source) as archive:
            entries = [one for one in archive.infolist() if one.filename.endswith(".plt")]
        found = sorted((source.absolute(), one.filename, one.file_size) for one in entries)
    else:
        problem = "this is neither a folder nor a zip" if source.exists() else "this does not exist"
        raise InvalidFile(source, f"{problem}; give the folder of GeoLife, or its zip as it was downloaded.")
    if not found:
        raise InvalidFile(source, "there is no .plt file in it; is this GeoLife?")
    files, numbers = [], Counter[str]()
    for path, entry, size in found:
        folder = PurePosixPath(entry or path.as_posix()).parent
        file = File(path, size, folder.parent.name, numbers[folder.parent.name], entry)
        if folder.name != "Trajectory":
            raise InvalidFile(f"{file}", "a PLT file lies in a folder <person>/Trajectory, but not this one.")
        numbers[file.person] += 1
        files.append(file)
    return files


def _read(files: Sequence[File]) -> pl.DataFrame:
    known = (pl.col("person") == _KNOWN_BAD[0]) & (pl.col("lat") == _KNOWN_BAD[1])
    return _LINES.read(files).with_columns(problem=pl.when(known).then(pl.lit(_KNOWN)).otherwise("problem"))


def _body(content: bytes) -> tuple[bytes, str | None]:
    """The lines of points, each with its end, and what is wrong with the file."""
    if not content.startswith(_FIRST_LINE):
        return b"", "file of another kind (its first line is not 'Geolife trajectory')"
    body = content.split(b"\n", _HEADER_LINES)[_HEADER_LINES:]
    if not body or not body[0].strip():
        return b"", "file without points"
    return body[0].rstrip() + b"\n", None


def _seconds(written: pl.Expr) -> pl.Expr:
    return written.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False).dt.epoch("s")


_LINES = Lines(
    what="lines of GeoLife",
    columns=b"lat,lng,zero,altitude,days,date,clock\n",
    separator=",",
    body=_body,
    first=_HEADER_LINES + 1,
    written=pl.col("date") + " " + pl.col("clock").str.strip_chars_end("\r"),
    seconds=_seconds,
    latest_first=False,
)
