"""Porto Taxi: the trips of 442 taxis over a year (ECML/PKDD 2015 challenge, 2013 to 2014)."""

from __future__ import annotations

from pathlib import Path

import narwhals as nw
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import check_table, files_in, reading
from rekindle.sources.engine import collect
from rekindle.sources.points import Points, range_problem, scan_csv, sift

_SECONDS_BETWEEN_POINTS = 15
_PAIR = r"\[\s*-?\d+(\.\d+)?([eE]-?\d+)?\s*,\s*-?\d+(\.\d+)?([eE]-?\d+)?\s*\]"
_POLYLINE = rf"^\s*\[\s*({_PAIR}(\s*,\s*{_PAIR})*)?\s*\]\s*$"
_NEEDED = ("TAXI_ID", "TIMESTAMP", "MISSING_DATA", "POLYLINE")


def read_porto(
    source: str | Path, *, timezone: str = "Europe/Lisbon", keep_missing: bool = False, skip_bad: bool = False
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

    Returns
    -------
    Lazily, one trajectory for each trip, numbered by its row, with a point every 15 seconds. `info` says under
    ``"dropped"`` how many trips were dropped, and why.
    """
    file = _file(Path(source))
    check_table(file)
    with reading(file, "the train.csv of Porto Taxi"):
        scan = scan_csv(file, row_index_name="trajectory")
        columns = scan.collect_schema().names()
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise InvalidFile(file, f"the columns {missing} are missing; is this the train.csv of Porto Taxi?")

    time = pl.col("TIMESTAMP").cast(pl.Int64, strict=False)
    readable = pl.col("POLYLINE").str.contains(_POLYLINE)
    problem = (
        pl.when(pl.col("TAXI_ID").is_null())
        .then(pl.lit("taxi missing"))
        .when(time.is_null())
        .then(pl.lit("time missing or not a number"))
        .when(~pl.col("MISSING_DATA").is_in(["True", "False"]).fill_null(False))
        .then(pl.lit("MISSING_DATA that is neither True nor False"))
        .when(~readable.fill_null(False))
        .then(pl.lit("POLYLINE that does not parse"))
    )
    rows = scan.select(
        person=pl.col("TAXI_ID"),
        trajectory=pl.col("trajectory").cast(pl.Int64),
        time=time,
        seen_time=pl.col("TIMESTAMP"),
        polyline=pl.when(readable).then("POLYLINE"),
        has_missing=pl.col("MISSING_DATA") == "True",
        problem=problem,
        file=pl.lit(str(file)),
        line=pl.col("trajectory").cast(pl.Int64) + 2,
    )
    _, skipped = sift(nw.from_native(rows.drop("polyline", "has_missing")), skip_bad=skip_bad)
    good = rows.filter(pl.col("problem").is_null())
    empty = pl.col("polyline").str.contains(r"^\s*\[\s*\]\s*$")
    kept = good.filter(~empty if keep_missing else ~empty & ~pl.col("has_missing"))
    first = kept.group_by("person", "time").agg(pl.col("trajectory").min())
    parts = [
        good.select(
            trips=pl.len(), missing=pl.col("has_missing").sum(), empty=(empty & ~pl.col("has_missing")).sum()
        ),
        kept.select(kept=pl.len()),
        first.select(different=pl.len()),
    ]
    numbers = collect(nw.from_native(pl.concat(parts, how="horizontal"))).row(0, named=True)
    points = (
        kept.join(first, on=["person", "time", "trajectory"], how="semi")
        .with_columns(pair=pl.col("polyline").str.json_decode(pl.List(pl.List(pl.Float64))))
        .with_columns(nth=pl.int_ranges(pl.col("pair").list.len()))
        .explode("pair", "nth")
        .select(
            "person",
            "trajectory",
            time=pl.col("time") + pl.col("nth") * _SECONDS_BETWEEN_POINTS,
            lat=pl.col("pair").list.get(1),
            lng=pl.col("pair").list.get(0),
            file="file",
            line="line",
        )
    )
    frame = nw.from_native(points).with_columns(problem=range_problem())
    frame, outside = sift(frame, skip_bad=skip_bad)
    info = {
        "source": "Taxi Service Trajectory, Prediction Challenge, ECML PKDD 2015 (UCI)",
        "licence": "CC BY 4.0",
        "skipped": skipped | outside,
        "trips": numbers["trips"],
        "dropped": {
            "missing points": 0 if keep_missing else numbers["missing"],
            "no points": numbers["empty"],
            "begun in the same second": numbers["kept"] - numbers["different"],
        },
    }
    return Points(frame, timezone, info)


def _file(source: Path) -> Path:
    if not source.is_dir():
        if not source.exists():
            raise InvalidFile(source, "this does not exist; give the train.csv of Porto Taxi.")
        return source
    files = files_in(source, "*train*.csv", "*train*.csv.gz")
    if len(files) != 1:
        raise InvalidFile(source, f"there are {len(files)} files named like train.csv in it; name one.")
    return files[0]
