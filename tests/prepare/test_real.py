"""The published figures, on the real data. Each test skips where its data is absent."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest
from tests.real import folder

from rekindle.prepare import Grid, prepare_geolife, prepare_points, prepare_porto
from rekindle.sources import read_cabspotting, read_geolife, read_porto
from rekindle.sources.engine import collect

pytestmark = pytest.mark.real


def data(variable, beside=None):
    """Like tests.real.folder, but for one test and not for the module."""
    try:
        return folder(variable, beside)
    except pytest.skip.Exception as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def geolife():
    return read_geolife(data("REKINDLE_GEOLIFE"))


@pytest.mark.parametrize(
    ("step", "months", "box", "people", "steps", "last"),
    [
        ("2min", 2, (5, 95), 36, 5_088, "(13, 14)"),
        ("1min", 3, (1, 99), 41, 10_176, "(27, 33)"),
        ("1min", 5, (5, 95), 45, 10_103, "(10, 12)"),
    ],
)
def test_geolife_as_published(geolife, step, months, box, people, steps, last):
    found = prepare_geolife(geolife, step=step, months=months, fill="nearest", places=Grid(cell_km=1, box=box))
    assert (found.truth.people, found.truth.steps, found.truth.locations.ids[-1]) == (people, steps, last)


def test_cabspotting():
    points = read_cabspotting(data("REKINDLE_CABSPOTTING"))
    found = prepare_points(
        points, step="10min", start=datetime(2008, 5, 18), days=10, min_coverage=0.7, places=Grid(cell_km=2)
    )
    assert (found.truth.people, found.truth.steps) == (243, 1_440)


@pytest.fixture(scope="module")
def porto():
    path = data("REKINDLE_PORTO", "porto")
    files = sorted(path.glob("*train*.csv*"))
    return read_porto(files[0])


def test_porto_trips(porto):
    points = collect(porto.frame)
    assert porto.info["trips"] == 7_732
    dropped = porto.info["dropped"]
    assert points["trajectory"].n_unique() == 7_732 - sum(dropped.values())
    assert dropped == {"missing points": 0, "no points": 32, "begun in the same second": 1}


def test_porto_selection_and_sampling(porto):
    """The rules once more, in plain steps over the eager table."""
    points = collect(porto.frame).with_columns(pl.col("time") + 3_600)  # Lisbon's offset in July
    trips = points.group_by("person", "trajectory").agg(pl.col("time").min())
    by_day = trips.group_by(pl.col("time") // 86_400).len().sort("len", "time", descending=[True, False])
    day = by_day["time"][0]
    on_day = trips.filter(pl.col("time") // 86_400 == day)["person"].value_counts()
    busy = sorted(on_day.filter(pl.col("count") > pl.col("count").mean())["person"])

    found = prepare_porto(porto, days=1)
    assert found.truth.calendar.start == datetime(1970, 1, 1) + (datetime(1970, 1, 2) - datetime(1970, 1, 1)) * day
    assert list(found.truth.people_ids) == busy
    assert found.truth.steps == 145

    taxi = found.truth.people_ids[7]
    own = points.filter(pl.col("person") == taxi).sort("time", "lat", "lng")
    seconds, positions = own["time"].to_numpy() - day * 86_400, own.select("lat", "lng").to_numpy()
    last = None
    for step in range(145):
        within = np.flatnonzero((seconds >= 600 * step) & (seconds < 600 * (step + 1)))
        assert found.observed[7, step] == (len(within) > 0)
        if len(within):
            last = positions[within[0]]
        if last is not None:
            assert np.array_equal(found.positions[7, step], last)
