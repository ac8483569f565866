"""Spark gives the same dataset as Polars, row for row, on a sample of each source."""

import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from tests.sources.raw import some_points, some_porto_rows, write_cabs, write_geolife, write_porto, zipped

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io import read_dataset
from rekindle.io.safety.folders import read_mark
from rekindle.model import Locations
from rekindle.prepare import Grid, H3Cells, Towers, prepare_geolife, prepare_points, prepare_porto
from rekindle.sources import points_from_frame, read_cabspotting, read_geolife, read_points, read_porto
from rekindle.sources.engine import collect

pytestmark = pytest.mark.slow

pyspark = pytest.importorskip("pyspark", reason="needs the extra spark: pip install 'rekindle-mobility[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("needs Java 17 for Spark", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "America/New_York",  # must not matter
    }
    builder = SparkSession.builder.master("local[2]").appName("rekindle tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def assert_same(ours, spark):
    assert spark.truth == ours.truth
    assert spark.truth.counts() == ours.truth.counts()
    assert np.array_equal(spark.observed, ours.observed)
    assert spark.info == ours.info
    if ours.positions is not None:
        assert np.array_equal(spark.positions, ours.positions, equal_nan=True)


@pytest.fixture
def handed(monkeypatch, session):
    """How many rows the driver was handed, each time it asked."""
    found = []
    kind = type(session.range(1))
    whole = kind.toArrow

    def counting(frame):
        table = whole(frame)
        found.append(table.num_rows)
        return table

    monkeypatch.setattr(kind, "toArrow", counting)
    return found


def on_both(read, source, **settings):
    """The points of a source, read by Polars and by Spark."""
    ours, spark = (read(source, engine=engine, **settings) for engine in ("polars", "spark"))
    assert spark.frame.implementation.is_spark_like()
    assert (spark.timezone, spark.info) == (ours.timezone, ours.info)
    return ours, spark


def test_geolife(tmp_path, monkeypatch, handed):
    monkeypatch.setattr("rekindle.sources.lines.BATCH_BYTES", 20_000)  # several tasks
    ours, spark = on_both(read_geolife, write_geolife(tmp_path, people=3))
    settings = {"step": "10min", "months": 1, "min_days": 3.0}
    found = prepare_geolife(ours, **settings)
    assert found.truth.people >= 2
    on_spark = prepare_geolife(spark, engine="spark", **settings)
    assert max(handed) < 150 < collect(ours.frame).height
    assert_same(found, on_spark)
    _, zipped_points = on_both(read_geolife, zipped(tmp_path, tmp_path / "all.zip"))
    settings |= {"align": "day", "max_gap": "3h", "places": Grid(outside="away")}
    found = prepare_geolife(ours, **settings)
    assert not found.truth.counted.all()
    assert_same(found, prepare_geolife(zipped_points, engine="spark", **settings))


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz"])
def test_porto(tmp_path, monkeypatch, name):
    monkeypatch.setattr("rekindle.sources.porto._PIECE_BYTES", 20_000)  # several tasks
    ours, spark = on_both(read_porto, write_porto(tmp_path / name, some_porto_rows()))
    found = prepare_porto(ours, days=2)
    assert 1 < found.truth.people < 6
    assert_same(found, prepare_porto(spark, days=2, engine="spark"))


def test_cabspotting(tmp_path, monkeypatch):
    monkeypatch.setattr("rekindle.sources.lines.BATCH_BYTES", 10_000)  # several tasks
    ours, spark = on_both(read_cabspotting, write_cabs(tmp_path))
    settings = {"start": datetime(2008, 5, 18), "days": 2, "min_coverage": 0.2, "places": Grid(cell_km=2)}
    assert_same(prepare_points(ours, **settings), prepare_points(spark, engine="spark", **settings))


def test_bad_lines_and_files_are_named_by_spark_too(tmp_path):
    write_cabs(tmp_path, cabs=1)
    (tmp_path / "new_b.txt").write_text("37.7 -122.3 0 1213084600\n37.7 -222.3 0 1213084600\n")
    (tmp_path / "new_c.txt").write_text("")
    with pytest.raises(InvalidFile, match=r"new_b.txt: line 2: coordinates out of range \(person 'b', time"):
        read_cabspotting(tmp_path, engine="spark")
    _, spark = on_both(read_cabspotting, tmp_path, skip_bad=True)
    assert spark.info["skipped"] == {"coordinates out of range": 1, "file without points": 1}


def test_a_file_that_a_worker_cannot_read(tmp_path, monkeypatch):
    file = write_geolife(tmp_path, people=1, days=2) / "gone.plt"
    from rekindle.sources import geolife
    from rekindle.sources.lines import File

    found = [*geolife._files(tmp_path), File(file, 1, "000", 9)]
    monkeypatch.setattr(geolife, "_files", lambda _: found)
    for engine in ("polars", "spark"):
        with pytest.raises(InvalidData, match=r"gone.plt: .*(No such file|does not exist)"):
            read_geolife(tmp_path, engine=engine)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_points(tmp_path, kind):
    table = some_points()
    if kind == "csv":
        zoned = table.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%S+02:00"))
        zoned.write_csv(tmp_path / "points.csv")
        settings = {"timezone": "Europe/Paris"}
    else:
        table.with_columns(pl.col("datetime").dt.replace_time_zone("UTC")).write_parquet(tmp_path / "points.parquet")
        settings = {"timezone": "Asia/Shanghai"}
    ours = read_points(tmp_path, **settings)
    spark = read_points(tmp_path, engine="spark", **settings)
    assert_same(prepare_points(ours), prepare_points(spark, engine="spark"))


def test_a_spark_frame_of_call_records(session):
    towers = Locations.from_lat_lng(np.array([[1.0, 2.0], [1.5, 2.0]]), ["A", "B"])
    table = some_points().select(
        "uid",
        pl.col("datetime").dt.replace_time_zone("UTC"),
        cell=pl.when(pl.col("lat") > 48.85).then(pl.lit("A")).otherwise(pl.lit("B")),
    )
    frame = session.createDataFrame(table.to_arrow())
    settings = {"location": "cell", "towers": towers, "timezone": "Asia/Shanghai"}
    ours, spark = points_from_frame(table, **settings), points_from_frame(frame, **settings)
    assert spark.frame.implementation.is_spark_like()
    places = Towers(towers)
    assert_same(prepare_points(ours, places=places), prepare_points(spark, engine="spark", places=places))


@pytest.mark.parametrize(
    ("form", "python"), [("%d.%m.%Y %H:%M", None), ("%m/%d/%y %I:%M %p", None), ("%d-%b-%Y %R", "%d-%b-%Y %H:%M")]
)
def test_other_forms_and_separators(tmp_path, form, python):
    table = some_points().with_columns(pl.col("datetime").dt.strftime(python or form))
    table.write_csv(tmp_path / "points.csv", separator=";")
    ours = read_points(tmp_path, time_format=form)
    spark = read_points(tmp_path, time_format=form, engine="spark")
    assert_same(prepare_points(ours), prepare_points(spark, engine="spark"))


def test_a_clock_change(tmp_path):
    """Offsets that differ, and an hour that comes twice."""
    minutes = range(0, 600, 7)
    times = [datetime(2024, 10, 26, 22, tzinfo=UTC) + timedelta(minutes=minute) for minute in minutes]
    zone = ZoneInfo("Europe/Oslo")
    table = pl.DataFrame(
        {
            "uid": "a",
            "datetime": [time.astimezone(zone).isoformat() for time in times],
            "lat": [59.9 + minute / 1_000 for minute in minutes],
            "lng": 10.7,
        }
    )
    table.write_csv(tmp_path / "points.csv")
    ours, spark = (read_points(tmp_path, timezone="Europe/Oslo", engine=engine) for engine in ("polars", "spark"))
    assert_same(prepare_points(ours), prepare_points(spark, engine="spark"))


@pytest.mark.parametrize(
    ("fill", "max_gap", "kind"), [("nearest", "3h", "towers"), ("linear", "3h", "grid"), ("last", "auto", "h3")]
)
def test_the_dataset_is_written_by_the_workers(tmp_path, handed, fill, max_gap, kind):
    """The driver is handed nothing that has a row for each point, and the folder is the same dataset."""
    table = some_points()
    table.write_parquet(tmp_path / "points.parquet")
    lat_lng = table.select("lat", "lng").unique().sort("lat", "lng")[::40].to_numpy()
    towers = Towers(Locations.from_lat_lng(lat_lng))
    places = {"towers": towers, "grid": Grid(cell_km=1, outside="away"), "h3": H3Cells(resolution=8)}[kind]
    found = []
    for engine in ("polars", "spark"):
        points = read_points(tmp_path / "points.parquet", engine=engine)
        prepared = prepare_points(points, engine=engine, fill=fill, max_gap=max_gap, places=places)
        prepared.write(tmp_path / engine, flows=True)
        found.append(read_dataset(tmp_path / engine))
    ours, spark = found
    assert max(handed) <= max(ours.calendar.steps, len(ours.locations), 100) < table.height
    assert (spark.truth, spark.counts, spark.flows, spark.info) == (ours.truth, ours.counts, ours.flows, ours.info)
    assert spark.locations == ours.locations
    for part in ({"people": 2, "seed": 1}, {"days": slice(1, 3)}, {"people": ["p1"], "days": 1}):
        ours, spark = (read_dataset(tmp_path / engine, **part) for engine in ("polars", "spark"))
        assert (spark.truth, spark.counts, spark.flows) == (ours.truth, ours.counts, ours.flows)
    kinds = {path.name for path in (tmp_path / "spark").iterdir()}
    assert {"truth", "counts", "flows", "filled"} <= kinds
    assert not {"truth.parquet", "counts.parquet"} & kinds
    sensitive = read_mark(tmp_path / "spark").sensitive_files(tmp_path / "spark")
    assert {path.parent.name for path, _ in sensitive} == {"truth", "filled"}
    assert all(path.stat().st_mode & 0o077 == 0 for path, _ in sensitive)
    assert not list((tmp_path / "spark").rglob("*.crc"))


def test_the_zone_of_a_column(tmp_path, session):
    some_points().with_columns(pl.col("datetime").dt.replace_time_zone("Asia/Tokyo")).write_parquet(
        tmp_path / "a.parquet"
    )
    ours, spark = (read_points(tmp_path / "a.parquet", engine=engine) for engine in ("polars", "spark"))
    assert ours.timezone == spark.timezone == "Asia/Tokyo"
    assert_same(prepare_points(ours), prepare_points(spark, engine="spark"))
    with pytest.raises(InvalidSetting, match="`timezone`"):  # the session's zone is not the data's
        points_from_frame(session.read.parquet(str(tmp_path / "a.parquet")))


def test_times_without_a_zone_are_local_on_spark_too(session):
    frame = session.sql("select 'a' person, timestamp_ntz'2020-03-02 12:00:00' time, 1.0D lat, 2.0D lng")
    points = points_from_frame(frame)
    assert points.timezone is None
    assert collect(points.frame)["time"].to_list() == [int(datetime(2020, 3, 2, 12, tzinfo=UTC).timestamp())]


def test_a_bad_row_is_named_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text("uid,datetime,lat,lng\na,2020-01-01T09:30,1,2\na,2020-01-01T10:30,north,2\n")
    with pytest.raises(InvalidFile, match=r"a.csv: line 3: coordinates missing"):
        read_points(tmp_path, engine="spark")
    found = read_points(tmp_path, engine="spark", skip_bad=True)
    assert found.info["skipped"] == {"coordinates missing or not a number": 1}
    assert collect(found.frame).height == 1
