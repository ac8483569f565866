"""Small data in the real formats, made by the tests themselves."""

import gzip
import zipfile
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

HEADER = (
    "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
)


def plt_text(points):
    """The text of a PLT file; points are (datetime in UTC, lat, lng)."""
    days = datetime(1899, 12, 30)
    lines = (
        f"{lat},{lng},0,492,{(when - days) / timedelta(days=1):.10f},{when:%Y-%m-%d,%H:%M:%S}\r\n"
        for when, lat, lng in points
    )
    return HEADER + "".join(lines)


def write_plt(root, person, points):
    file = root / "Data" / person / "Trajectory" / f"{points[0][0]:%Y%m%d%H%M%S}.plt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(plt_text(points), newline="")
    return file


def write_geolife(root, people=4, days=12, seed=0):
    """People who walk from 8 to 18 o'clock on most days, a few minutes between points."""
    rng = np.random.default_rng(seed)
    for person in range(people):
        first = datetime(2008 + person % 2, 10, 3 + person) - timedelta(hours=8)
        home = np.array([39.95, 116.35]) + rng.normal(0, 0.02, 2)
        for day in range(days):
            if person and rng.random() < 0.2:
                continue
            when = first + timedelta(days=day + (4 if day > days // 2 else 0), hours=8, minutes=int(rng.integers(60)))
            points = []
            spot = home.copy()
            for _ in range(60):
                points.append((when, round(float(spot[0]), 6), round(float(spot[1]), 6)))
                when += timedelta(seconds=int(rng.integers(0, 1200)))
                spot = home + 0.9 * (spot - home) + rng.normal(0, 0.003, 2)
            write_plt(root, f"{person:03}", points)
    return root


def zipped(root, file):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.plt")):
            archive.write(path, path.relative_to(root).as_posix())
    return file


PORTO_COLUMNS = "TRIP_ID,CALL_TYPE,ORIGIN_CALL,ORIGIN_STAND,TAXI_ID,TIMESTAMP,DAY_TYPE,MISSING_DATA,POLYLINE"


def porto_row(taxi, second, polyline, missing=False):
    text = (
        polyline if isinstance(polyline, str) else "[" + ", ".join(f"[{lng}, {lat}]" for lat, lng in polyline) + "]"
    )
    return f'{second}62{taxi},B,,7,{taxi},{second},A,{missing},"{text}"'


def write_porto(file, rows):
    text = "\n".join([PORTO_COLUMNS, *rows]) + "\n"
    if file.suffix == ".gz":
        with gzip.open(file, "wt") as stream:
            stream.write(text)
    else:
        file.write_text(text)
    return file


def some_porto_rows(taxis=6, days=4, seed=0):
    rng = np.random.default_rng(seed)
    start = int(datetime(2013, 7, 1, tzinfo=UTC).timestamp())
    rows = []
    for taxi in range(taxis):
        for _ in range(int(rng.integers(5, 40))):
            second = start + int(rng.integers(days * 86_400))
            spot = np.array([41.15, -8.61]) + np.cumsum(rng.normal(0, 0.002, (int(rng.integers(1, 60)), 2)), axis=0)
            rows.append((second, porto_row(20000000 + taxi, second, np.round(spot, 6).tolist())))
    return [row for _, row in sorted(rows)]


def write_cabs(root, cabs=4, days=3, seed=0):
    rng = np.random.default_rng(seed)
    root.mkdir(parents=True, exist_ok=True)
    start = int(datetime(2008, 5, 18, 7, tzinfo=UTC).timestamp())  # midnight in San Francisco
    for cab in range(cabs):
        when = np.sort(rng.integers(start - 7_200, start + days * 86_400, 300 if cab else 20))[::-1]
        spots = np.array([37.76, -122.42]) + rng.normal(0, 0.02, (len(when), 2))
        lines = (f"{lat:.5f} {lng:.5f} {cab % 2} {second}\n" for (lat, lng), second in zip(spots, when, strict=True))
        (root / f"new_cab{cab}.txt").write_text("".join(lines))
    return root


def some_points(people=3, rows=200, seed=0):
    """A table with scikit-mobility's columns, sorted by person and time; local clock times."""
    rng = np.random.default_rng(seed)
    tables = []
    for person in range(people):
        minutes = np.sort(rng.integers(0, 3 * 1440, rows))
        tables.append(
            pl.DataFrame(
                {
                    "uid": [f"p{person}"] * rows,
                    "datetime": [datetime(2020, 3, 2) + timedelta(minutes=int(minute)) for minute in minutes],
                    "lat": np.round(48.85 + rng.normal(0, 0.02, rows), 6),
                    "lng": np.round(2.35 + rng.normal(0, 0.02, rows), 6),
                }
            )
        )
    return pl.concat(tables)
