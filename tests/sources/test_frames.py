"""Frames of other packages: the real ones where they are installed, and what stands in for them where not."""

from datetime import datetime

import polars as pl
import pytest
from tests.sources.raw import some_points

from rekindle.errors import InvalidData
from rekindle.sources import points_from_frame
from rekindle.sources.engine import collect

pandas = pytest.importorskip("pandas")

LAT, LNG = [59.9, 59.91, 59.92, 59.93], [10.7, 10.8, 10.75, 10.9]
TIMES = pandas.date_range("2024-03-04 08:00", periods=4, freq="30min", tz="Europe/Oslo")
EXPECTED = pl.DataFrame(
    {"person": ["1", "1", "2", "2"], "time": [int(one.timestamp()) for one in TIMES], "lat": LAT, "lng": LNG}
)


def read(frame, **settings):
    return collect(points_from_frame(frame, **settings).frame)


def close(found, expected=EXPECTED):
    same = found.select("person", "time").equals(expected.select("person", "time"))
    return same and all((found[name] - expected[name]).abs().max() < 1e-9 for name in ("lat", "lng"))


def geo(crs=4326, **settings):
    """As trackintel's positionfixes."""
    geopandas = pytest.importorskip("geopandas")
    columns = {"user_id": [1, 1, 2, 2], "tracked_at": TIMES}
    frame = geopandas.GeoDataFrame(columns, geometry=geopandas.points_from_xy(LNG, LAT), crs=4326, **settings)
    return frame if crs == 4326 else frame.to_crs(crs)


def test_geometry_in_degrees_and_in_metres():
    assert close(read(geo()))
    assert close(read(geo(25832)))
    named = geo().rename_geometry("geom")
    before = named.copy()
    assert close(read(named))
    assert named.equals(before)
    assert list(named.columns) == list(before.columns)


def test_geometry_comes_before_columns_unless_these_are_named():
    frame = geo(25832)
    frame["x"], frame["y"] = frame.geometry.x, frame.geometry.y  # metres
    assert close(read(frame))
    frame["a"], frame["b"] = LAT[::-1], LNG[::-1]
    assert read(frame, lat="a", lng="b")["lat"].to_list() == LAT[::-1]


def test_geometry_that_is_no_position():
    with pytest.raises(InvalidData, match=r"no coordinate reference system.*set_crs\(4326\)"):
        read(geo().set_crs(None, allow_override=True))
    metres = geo(25832)
    with pytest.raises(InvalidData, match=r"'geometry' holds Polygon; expected one Point"):
        read(metres.set_geometry(metres.buffer(9)))
    missing = geo()
    missing.loc[1, "geometry"] = None
    with pytest.raises(InvalidData, match="position 1: coordinates missing"):
        read(missing)
    assert read(missing, skip_bad=True).height == 3
    with pytest.raises(InvalidData, match="without an active geometry"):
        read(type(missing)({"user_id": [1], "tracked_at": TIMES[:1]}))


def test_trackintel():
    trackintel = pytest.importorskip("trackintel")
    fixes = trackintel.Positionfixes(geo())
    points = points_from_frame(fixes)
    assert points.timezone == "Europe/Oslo"
    assert close(collect(points.frame))


class Collection:
    """What movingpandas' TrajectoryCollection offers."""

    def to_point_gdf(self):
        return geo().assign(t=TIMES.tz_localize(None)).drop(columns="tracked_at").set_index("t")


def collections():
    yield Collection()
    try:
        from movingpandas import TrajectoryCollection
    except ImportError:
        return
    yield TrajectoryCollection(Collection().to_point_gdf(), "user_id", t="t")


@pytest.mark.filterwarnings("ignore")
def test_movingpandas():
    local = EXPECTED.with_columns(time=pl.col("time") + 3_600)  # the clock in Oslo
    for collection in collections():
        points = points_from_frame(collection)
        assert points.timezone is None
        assert close(collect(points.frame), local)


def test_scikit_mobility_is_recognised_by_its_columns():
    class TrajDataFrame(pandas.DataFrame):
        @property
        def _constructor(self):
            return TrajDataFrame

    table = some_points().to_pandas()
    frame = TrajDataFrame(table.assign(tid=1))
    assert list(frame.columns[:4]) == ["uid", "datetime", "lat", "lng"]
    assert read(frame).equals(read(some_points()))


def test_times_and_people_in_the_index():
    table = some_points().to_pandas()
    expected = read(some_points())
    assert read(table.set_index("datetime")).equals(expected)
    assert read(table.set_index("datetime").rename_axis(None)).equals(expected)
    assert read(table.set_index(["uid", "datetime"])).equals(expected)
    named = table.rename(columns={"datetime": "when"}).set_index("when")
    assert read(named).equals(expected)
    assert read(named, time="when").equals(expected)
    # A column of times comes before an index of times.
    table.index = pandas.DatetimeIndex([datetime(1999, 1, 1)] * len(table))
    assert read(table).equals(expected)


def test_a_trajectory_is_a_person_only_where_nobody_is_named():
    frame = some_points().with_columns(traj_id=pl.int_range(pl.len()))
    assert read(frame).equals(read(some_points()))
    assert read(frame.drop("uid"))["person"].n_unique() == 600
