"""Porto Taxi: the trips of 442 taxis over a year (ECML/PKDD 2015 challenge, 2013 to 2014)."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import narwhals as nw
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import check_table, files_in, packed_as, reading
from rekindle.sources.engine import Engine, collect, computed, read_each
from rekindle.sources.points import SCHEMA, Points, of_bad_rows, range_problem, sift

_SECONDS_BETWEEN_POINTS = 15
_PAIR = r"\[\s*-?\d+(\.\d+)?([eE]-?\d+)?\s*,\s*-?\d+(\.\d+)?([eE]-?\d+)?\s*\]"
_POLYLINE = rf"^\s*\[\s*({_PAIR}(\s*,\s*{_PAIR})*)?\s*\]\s*$"
_NEEDED = ("TAXI_ID", "TIMESTAMP", "MISSING_DATA", "POLYLINE")
_WHAT = "the train.csv of Porto Taxi"
_PIECE_BYTES = 16 * 2**20
"""So much text is parsed at a time."""

_SCHEMA = SCHEMA | {"_trip": pl.String}
_KEPT, _MISSING, _EMPTY = "kept", "missing points", "no points"
"""What `_trip` says in the one row that stands for a trip, without a position; null in those of its points."""


def read_porto(
    source: str | Path,
    *,
    timezone: str = "Europe/Lisbon",
    keep_missing: bool = False,
    skip_bad: bool = False,
    engine: Engine = "polars",
) -> Points:
    """Read the original ``train.csv``, also gzipped.

    Parameters
    ----------
    source
        The file, or the folder that holds it.
    timezone
        The zone whose local time counts; the file is in UTC.
    keep_missing
        Keep trips that the data mark as having missing points. Trips without any point, and all but the first of
        several trips that a taxi begins in the same second, are dropped in any case.
    skip_bad
        Go on without what cannot be read, and count it by kind.
    engine
        As in `prepare_points`; Spark must see the same paths. A gzipped file is read by one of its workers alone.

    Returns
    -------
    One trajectory for each trip, numbered by its row, with a point every 15 seconds. `info` says under
    ``"dropped"`` how many trips were dropped, and why.
    """
    file = _file(Path(source)).absolute()
    rows = read_each(engine, _pieces(file, engine), partial(_read, keep_missing=keep_missing), _SCHEMA)
    good, skipped = sift(rows, skip_bad=skip_bad)
    trips = good.filter(~nw.col("_trip").is_null())
    numbers = dict(collect(trips.group_by("_trip").agg(trips=nw.len().cast(nw.Int64))).iter_rows())
    first = computed(
        trips.filter(nw.col("_trip") == _KEPT).group_by("person", "time").agg(nw.col("trajectory").min())
    )
    points = good.filter(nw.col("_trip").is_null()).drop("_trip").join(first, on="trajectory", how="semi")
    info = {
        "source": "Taxi Service Trajectory, Prediction Challenge, ECML PKDD 2015 (UCI)",
        "licence": "CC BY 4.0",
        "skipped": skipped,
        "trips": sum(numbers.values()),
        "dropped": {
            **{kind: numbers.get(kind, 0) for kind in (_MISSING, _EMPTY)},
            "begun in the same second": numbers.get(_KEPT, 0) - collect(first.select(nw.len())).item(),
        },
    }
    return Points(points, timezone, info)


def _file(source: Path) -> Path:
    if not source.is_dir():
        if not source.exists():
            raise InvalidFile(source, "this does not exist; give the train.csv of Porto Taxi.")
        return source
    files = files_in(source, "*train*.csv", "*train*.csv.gz")
    if len(files) != 1:
        raise InvalidFile(source, f"there are {len(files)} files named like train.csv in it; name one.")
    return files[0]


@dataclass(frozen=True)
class _Piece:
    """The lines of a file that begin from one byte to before another; of a gzipped one, all bytes are counted unpacked.

    `row` is the number of the first of them.
    """

    file: Path
    header: bytes
    packed: bool
    begin: int
    end: int
    row: int = 0

    def texts(self) -> Iterator[bytes]:
        """The lines, as many at a time as are parsed at once."""
        with gzip.open(self.file) if self.packed else open(self.file, "rb") as file:
            file.seek(self.begin - 1)
            at = self.begin - 1 + len(file.readline())
            while text := file.read(max(0, min(self.end - at, _PIECE_BYTES))):
                text += b"" if text.endswith(b"\n") else file.readline()
                at += len(text)
                yield text


def _pieces(file: Path, engine: Engine) -> list[_Piece]:
    """Divide a file; a first look at all of it tells which row each piece begins with."""
    header = check_table(file)
    with reading(file, _WHAT):
        columns = pl.read_csv(header, infer_schema=False, encoding="utf8-lossy").columns
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise InvalidFile(file, f"the columns {missing} are missing; is this the train.csv of Porto Taxi?")
    with open(file, "rb") as content:
        packed = packed_as(content.read(4)) == "gzip"
    whole = _Piece(file, header, packed, len(header), sys.maxsize)
    if packed:  # nobody can begin in the middle
        return [whole]
    begins = range(len(header), max(file.stat().st_size, len(header) + 1), _PIECE_BYTES)
    pieces = [replace(whole, begin=begin, end=begin + _PIECE_BYTES) for begin in begins]
    counted = read_each(engine, list(enumerate(pieces)), _count, {"piece": pl.Int64, "lines": pl.Int64})
    lines = collect(counted).sort("piece")["lines"]
    return [replace(piece, row=row) for piece, row in zip(pieces, accumulate(lines, initial=0), strict=False)]


def _count(numbered: tuple[int, _Piece]) -> Iterator[pl.DataFrame]:
    number, piece = numbered
    yield pl.DataFrame({"piece": [number], "lines": [sum(text.count(b"\n") for text in piece.texts())]})


def _read(piece: _Piece, *, keep_missing: bool) -> Iterator[pl.DataFrame]:
    row = piece.row
    for text in piece.texts():
        with reading(piece.file, _WHAT):
            table = pl.read_csv(piece.header + text, infer_schema=False, encoding="utf8-lossy")
        yield _rows(table, row, f"{piece.file}", keep_missing=keep_missing)
        row += table.height


def _rows(table: pl.DataFrame, row: int, file: str, *, keep_missing: bool) -> pl.DataFrame:
    """A row for each bad row of the file, for each trip, and for each point of those that are kept."""
    time = pl.col("TIMESTAMP").cast(pl.Int64, strict=False)
    readable = pl.col("POLYLINE").str.contains(_POLYLINE).fill_null(False)
    problem = (
        pl.when(pl.col("TAXI_ID").is_null())
        .then(pl.lit("taxi missing"))
        .when(time.is_null())
        .then(pl.lit("time missing or not a number"))
        .when(~pl.col("MISSING_DATA").is_in(["True", "False"]).fill_null(False))
        .then(pl.lit("MISSING_DATA that is neither True nor False"))
        .when(~readable)
        .then(pl.lit("POLYLINE that does not parse"))
    )
    trip = (
        pl.when((pl.col("MISSING_DATA") == "True") & (not keep_missing))
        .then(pl.lit(_MISSING))
        .when(pl.col("POLYLINE").str.contains(r"^\s*\[\s*\]\s*$"))
        .then(pl.lit(_EMPTY))
        .otherwise(pl.lit(_KEPT))
    )
    trips = table.with_row_index("trajectory", row).select(
        pl.col("trajectory").cast(pl.Int64),
        "POLYLINE",
        person="TAXI_ID",
        time=time,
        problem=problem,
        file=pl.lit(file),
        line=pl.col("trajectory").cast(pl.Int64) + 2,
        seen_time="TIMESTAMP",
        _trip=pl.when(problem.is_null()).then(trip),
    )
    points = (
        trips.lazy()
        .filter(pl.col("_trip") == _KEPT)
        .with_columns(pair=pl.col("POLYLINE").str.json_decode(pl.List(pl.List(pl.Float64))))
        .with_columns(nth=pl.int_ranges(pl.col("pair").list.len()))
        .drop("POLYLINE")
        .explode("pair", "nth")
        .with_columns(
            time=pl.col("time") + pl.col("nth") * _SECONDS_BETWEEN_POINTS,
            lat=pl.col("pair").list.get(1),
            lng=pl.col("pair").list.get(0),
            _trip=pl.lit(None, pl.String),
        )
    )
    found = nw.from_native(points).with_columns(problem=range_problem()).to_native().collect()
    rows = pl.concat([trips.drop("POLYLINE"), found.drop("pair", "nth")], how="diagonal")
    return rows.with_columns(of_bad_rows("file", "line", "seen_time"))
