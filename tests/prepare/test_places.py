import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.prepare.made import locate

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Locations
from rekindle.prepare import Extent, Grid, H3Cells, Towers

KM = 1 / 111.19508  # degrees of latitude


def test_cells_by_hand():
    # On the equator a degree is as long to the east as to the north. The box is 3 km x 2 km.
    square = np.array([[0.0, 0.0], [2 * KM, 3 * KM]])
    inside = np.array([[0.1, 0.1], [1.9, 2.9], [0.9, 1.1], [-5.0, 1.5], [9.0, 9.0]]) * KM
    locations, cells = locate(Grid(cell_km=1, box=(0, 100)), inside, square)
    assert len(locations) == 6
    assert [locations.ids[cell] for cell in cells] == ["(0, 0)", "(2, 1)", "(1, 0)", "(1, 0)", "(2, 1)"]
    assert np.allclose(locations.lat_lng[0], [0.5 * KM, 0.5 * KM], atol=1e-5)
    gaps = np.diff(locations.xy_km[:2], axis=0)
    assert np.allclose(gaps, [[0, 1]])


def test_percentiles_make_the_box():
    line = np.stack([np.linspace(0, 100, 101) * KM / 10, np.zeros(101)], axis=1)
    locations, cells = locate(Grid(cell_km=1, box=(5, 95)), line)
    assert len(locations) == 9  # from 0.5 km to 9.5 km
    assert cells[0] == 0
    assert cells[-1] == 8


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180), st.integers(1, 40)), min_size=1, max_size=60),
    st.tuples(st.floats(0, 100), st.floats(0, 100)),
    st.booleans(),
)
def test_percentiles_are_those_of_numpy(spells, percents, close):
    """Each position as often as its spell has steps; also where all lie in one bin."""
    lat, lng, steps = (np.array(column) for column in zip(*spells, strict=True))
    if close:
        lat, lng = lat / 1e12, lng / 1e12
    table = pl.LazyFrame({"lat": lat, "lng": lng, "begin": 3, "end": 3 + steps})
    every = np.repeat(np.stack([lat, lng], axis=1), steps, axis=0)
    found = Extent(nw.from_native(table), 100).percentiles(percents)
    assert np.array_equal(found, np.percentile(every, percents, axis=0))


@settings(deadline=None)
@given(arrays(np.float64, (30, 2), elements=st.floats(-0.2, 0.2)), st.sampled_from([0.5, 1.0, 3.0]))
def test_coarser_cells_are_joined_finer_cells(degrees, cell_km):
    fine, fine_cells = locate(Grid(cell_km=cell_km, box=(1, 99.5)), degrees)
    coarse, coarse_cells = locate(Grid(cell_km=2 * cell_km, box=(1, 99.5)), degrees)
    halves = [tuple(int(number) // 2 for number in name.strip("()").split(",")) for name in fine.ids]
    joined = [str(halves[cell]) for cell in fine_cells]
    assert joined == [coarse.ids[cell] for cell in coarse_cells]


@settings(deadline=None)
@given(arrays(np.float64, (20, 2), elements=st.floats(-0.2, 0.2)))
def test_a_position_inside_the_box_is_within_half_a_cell_of_its_centre(degrees):
    locations, cells = locate(Grid(cell_km=1, box=(0, 100)), degrees)
    gap = np.abs(degrees - locations.lat_lng[cells]) / KM
    assert gap.max() <= 0.5 + 0.002  # the box is rounded to metres


def test_settings_of_the_grid():
    with pytest.raises(InvalidSetting, match="`box` is 95, 5"):
        Grid(box=(95, 5))
    with pytest.raises(InvalidSetting, match=r"0.001"):
        Grid(cell_km=0)
    world = np.array([[-80.0, -170.0], [80.0, 170.0]])
    with pytest.raises(InvalidSetting, match="10 million"):
        locate(Grid(cell_km=1), world)


def test_nearest_tower():
    towers = Locations.from_lat_lng(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), ["A", "B", "C"])
    positions = np.array([[[0.1, 0.1], [0.0, 0.6]], [[0.8, 0.1], [0.4, 0.3]]])
    locations, cells = locate(Towers(towers), positions)
    assert [[locations.ids[cell] for cell in row] for row in cells] == [["A", "B"], ["C", "A"]]
    with pytest.raises(InvalidData, match="no lat and lng"):
        locate(Towers(Locations([[0, 0]])), positions)


def test_h3_cells():
    h3 = pytest.importorskip("h3", reason="needs the extra h3")
    positions = np.array([[[48.85, 2.35], [48.85, 2.35]], [[48.95, 2.35], [48.8501, 2.35]]])
    locations, cells = locate(H3Cells(resolution=7), positions)
    names = [[locations.ids[cell] for cell in row] for row in cells]
    assert names == [[h3.latlng_to_cell(lat, lng, 7) for lat, lng in row] for row in positions.tolist()]
    assert np.allclose(locations.lat_lng[cells[0, 0]], h3.cell_to_latlng(names[0][0]))
    with pytest.raises(InvalidSetting, match="from 0 to 15"):
        H3Cells(resolution=16)


def test_only_a_list_that_does_not_depend_on_the_data_is_public():
    here = np.array([[41.1, -8.6], [41.12, -8.58], [41.3, -8.4]])
    fixed = Grid(cell_km=1, bounds=(41.0, -8.7, 41.2, -8.5))
    assert locate(fixed, here)[0].public is True
    assert locate(fixed, here[:1])[0] == locate(fixed, here)[0]
    assert locate(Grid(cell_km=1, box=(0, 100)), here)[0].public is False
    towers = Locations.from_lat_lng(here)
    assert towers.public is None
    assert locate(Towers(towers), here)[0].public is True


def test_positions_outside_of_the_bounds_are_moved_onto_them():
    here = np.array([[41.1, -8.6], [45.0, -8.6], [41.1, 20.0]])
    locations, cells = locate(Grid(cell_km=1, bounds=(41.0, -8.7, 41.2, -8.5)), here)
    north_east = locations.lat_lng[cells]
    assert north_east[1, 0] == pytest.approx(41.2, abs=0.01)
    assert north_east[2, 1] == pytest.approx(-8.5, abs=0.01)


@pytest.mark.parametrize(
    "bounds", [(41.2, -8.7, 41.0, -8.5), (41.0, -8.5, 41.2, -8.7), (-91, 0, 1, 1), (0, 0, 1, 181)]
)
def test_refuses_bounds(bounds):
    with pytest.raises(InvalidSetting, match="`bounds` is"):
        Grid(bounds=bounds)
