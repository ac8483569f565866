"""Results as data frames and as short tables: the same numbers, nothing of the data obeyed, no person shown by chance."""

import re
import sys
from datetime import datetime

import numpy as np
import polars as pl
import pytest

import rekindle as rk
from rekindle.errors import InvalidSetting
from rekindle.frames import html_table

LOCATIONS = rk.Locations([[0, 0], [1, 0], [0, 1]], ["A", "B", "C"], [[59.9, -120.7], [59.9, 239.4], [60.0, -120.7]])
CALENDAR = rk.Calendar("2024-03-01 01:00", "1h")
TRUTH = rk.Trajectories([[0, 0, 1], [2, 1, 1]], LOCATIONS, CALENDAR, ["<b>ann</b>", "bob"])
COUNTS = TRUTH.counts()


def with_steps_away(cells):
    """The same people, not counted where a cell is below 0."""
    return rk.Trajectories(cells, LOCATIONS, CALENDAR, TRUTH.people_ids)


@pytest.fixture(scope="module")
def audit():
    return rk.audit(TRUTH, attacks=[rk.Baseline()], defences=[rk.Round(to=2)], seeds=1, workers=1, membership="none")


def test_counts():
    assert COUNTS.to_frame().rows() == [
        (datetime(2024, 3, 1, 1), "A", 1),
        (datetime(2024, 3, 1, 1), "C", 1),
        (datetime(2024, 3, 1, 2), "A", 1),
        (datetime(2024, 3, 1, 2), "B", 1),
        (datetime(2024, 3, 1, 3), "B", 2),
    ]


def test_a_release_has_its_withheld_numbers():
    frame = rk.Suppress(below=2)(COUNTS).to_frame()
    assert frame.height == 9
    assert frame.filter(pl.col("count").is_nan()).height == 8
    assert frame.filter(pl.col("count") == 2)["location"].to_list() == ["B"]


def test_trajectories_and_steps_away():
    frame = with_steps_away([[0, -1, 1], [-1, -1, -1]]).to_frame()
    assert frame.columns == ["person", "datetime", "location"]
    assert frame.select("person", "location").rows() == [("<b>ann</b>", "A"), ("<b>ann</b>", "B")]
    assert TRUTH.to_frame().height == 6
    seen = [[True, False, False], [True, True, False]]
    frame = rk.Trajectories(TRUTH.cells, LOCATIONS, CALENDAR, observed=seen).to_frame()
    assert frame["observed"].to_list() == [*seen[0], *seen[1]]


def test_pandas_needs_no_arrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = TRUTH.to_frame("pandas")
    assert str(frame["datetime"].dtype) == "datetime64[ms]"
    assert frame["location"].tolist() == ["A", "A", "B", "C", "B", "B"]
    assert frame["location"].dtype == "category"
    assert frame["person"].tolist() == TRUTH.to_frame()["person"].to_list()
    assert rk.check(COUNTS).to_frame("pandas")["rows"][0] == list(rk.check(COUNTS)[0].rows)


def test_another_library_is_refused(monkeypatch):
    with pytest.raises(InvalidSetting, match="'dask'"):
        COUNTS.to_frame("dask")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidSetting, match="pip install pandas"):
        COUNTS.to_frame("pandas")


def test_geographic_frames():
    geopandas = pytest.importorskip("geopandas")
    frame = with_steps_away([[0, -1, 1], [2, 2, -1]]).to_geoframe()
    assert isinstance(frame, geopandas.GeoDataFrame)
    assert frame.crs == "EPSG:4326"
    assert frame.geometry.x.round(3).tolist() == [-120.7, -120.6, -120.7, -120.7]
    assert frame.geometry.y.tolist() == [59.9, 59.9, 60.0, 60.0]
    assert LOCATIONS.to_geoframe()["location"].tolist() == ["A", "B", "C"]
    plane = rk.Locations([[3.0, 4.0]]).to_geoframe()
    assert plane.crs is None
    assert (plane.geometry.x[0], plane.geometry.y[0]) == (3.0, 4.0)


def test_locations():
    assert LOCATIONS.to_frame().columns == ["location", "x_km", "y_km", "lat", "lng"]
    assert rk.Locations([[0, 0]]).to_frame().rows() == [("0", 0.0, 0.0)]


def test_a_recovery_has_its_confidence():
    assert rk.Baseline().recover(COUNTS).to_frame().columns == ["person", "datetime", "location"]
    sure = np.arange(6, dtype=np.float32).reshape(2, 3) / 10
    found = rk.Recovery(with_steps_away([[0, -1, 1], [2, 1, 1]]), rk.Baseline(), sure)
    assert found.to_frame()["confidence"].round(1).to_list() == pytest.approx([0.0, 0.2, 0.3, 0.4, 0.5])


def test_an_evaluation():
    result = rk.evaluate(TRUTH, TRUTH)
    known = {
        name: value for name, value in result.scores.items() if name != "accuracy_observed"
    }  # the truth does not say
    assert dict(result.to_frame().select("metric", "value").iter_rows()) == known
    assert result.per_person.to_frame()["accuracy"].to_list() == [1.0, 1.0]
    frame = rk.reference_scores(TRUTH, seeds=2).to_frame()
    assert set(frame["reference"]) == {"chance", "naive"}


def test_an_audit(audit):
    frame = audit.to_frame()
    assert frame.height == sum(len(one.attacks) for one in audit.releases)
    row = frame.row(by_predicate=(pl.col("release") == "As given") & (pl.col("attack") == "baseline"), named=True)
    risk = audit.given.attacks["baseline"]
    assert (row["advantage"], row["advantage_high"]) == (risk.advantage.value, risk.advantage.high)
    assert row["exposed"] == risk.exposed.half.people
    unknown = rk.audit(COUNTS, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1).to_frame()
    assert unknown["accuracy"].null_count() == unknown.height


def test_short_tables(audit):
    shown = [COUNTS, rk.Baseline().recover(COUNTS), rk.evaluate(TRUTH, TRUTH), audit]
    for one in shown:
        text = one._repr_html_()
        assert len(text) < 2000
        assert re.fullmatch(r"<table>.*</table>", text, re.S)
        assert "ann" not in re.sub("advantage over chance", "", text)
    assert "As given" in audit._repr_html_()
    assert "80%" in COUNTS._repr_html_()


def test_names_from_the_data_are_escaped():
    assert html_table("<i>", [("<script>", 3)], ("a&b",)) == (
        "<table><caption>&lt;i&gt;</caption><tr><th>a&amp;b</th></tr><tr><td>&lt;script&gt;</td><td>3</td></tr></table>"
    )


def test_texts_of_parts_are_short(audit):
    result = rk.evaluate(TRUTH, TRUTH)
    for one in (
        audit.given,
        audit.given.strongest,
        audit.verdict,
        audit.given.exposed,
        result.mapping,
        result.per_person,
    ):
        assert len(repr(one)) < 150, repr(one)
    assert len(repr(rk.Dataset(COUNTS, TRUTH, {"source": "x" * 500}))) < 150
    assert len(repr(rk.check(COUNTS)[0])) < 150
