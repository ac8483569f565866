"""The paper's datasets, from small data in the real formats."""

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from tests.prepare.made import locate
from tests.small import random_truth
from tests.sources.raw import porto_row, some_porto_rows, write_geolife, write_porto

import rekindle as rk
from rekindle.io.tables.table import write_table
from rekindle.model.locations import project_to_plane
from rekindle.reproduce import PAPER, Sources
from rekindle.reproduce.subjects import PORTO, PortoGrid


def load(sources):
    return {name: subject() for name, subject in sources.loaders()}


@pytest.mark.parametrize("name", PORTO)
def test_porto_grid_is_the_published_one(name):
    grid = PortoGrid(*PORTO[name])
    places = grid.locations
    assert len(places) == PAPER[name].locations
    assert places.ids[:2] == ("(0, 0)", "(0, 1)")
    first = {"Porto 3x3": [-715.0, 4700.0], "Porto 7x7": [-717.5, 4695.5]}[name]  # as in the published files
    assert places.xy_km[0].tolist() == first
    same, cells = locate(grid, places.lat_lng)
    assert same == places
    assert cells.tolist() == list(range(len(places)))
    far = np.array([[41.9, -8.6], [40.5, -8.6]])  # to the north and to the south of it
    assert (locate(grid, far)[1] // grid.side).tolist() == [0, grid.side - 1]


def test_published_porto_cells_cover_six_square_km():
    grid = PortoGrid(*PORTO["Porto 3x3"])
    lat, lng = grid.locations.lat_lng[[0, 1, 3]].T
    along, across = project_to_plane(lat, lng, (lat[0], lng[0]))[1:]
    assert abs(along[0] * across[1] - along[1] * across[0]) == pytest.approx(6.2, abs=0.2)


def test_porto_with_a_part_of_the_year_says_so(tmp_path):
    found = load(Sources(porto=write_porto(tmp_path / "train.csv.gz", some_porto_rows(days=2))))
    assert list(found) == ["Porto 3x3", "Porto 7x7"]
    subject = found["Porto 3x3"]
    assert subject.paper is None
    assert "one day instead of the paper's 30" in subject.notes[0]
    assert subject.truth.steps == 145
    assert subject.truth.counts() == subject.counts


def test_porto_with_the_whole_year_is_the_papers_month(tmp_path):
    start = int(datetime(2014, 4, 30, 12, tzinfo=UTC).timestamp())
    rng = np.random.default_rng(0)
    rows = []
    for taxi, trips in ((1, 90), (2, 80), (3, 3)):
        for second in np.linspace(start, start + 32 * 86_400, trips).astype(int):
            spot = np.array([41.15, -8.61]) + rng.normal(0, 0.01, (3, 2))
            rows.append((second, porto_row(20000000 + taxi, second, spot.round(6).tolist())))
    subject = load(Sources(porto=write_porto(tmp_path / "train.csv", [row for _, row in sorted(rows)])))["Porto 7x7"]
    assert str(subject.counts.calendar.start) == "2014-05-01 00:00:00"
    assert subject.counts.steps == PAPER["Porto 7x7"].steps == 4321
    assert subject.truth.people_ids == ("20000001", "20000002")
    assert subject.paper is PAPER["Porto 7x7"]
    assert subject.notes == ("It has 2 people where the paper has 197.",)


def test_geolife_has_three_subdatasets(tmp_path):
    found = load(Sources(geolife=write_geolife(tmp_path, people=3)))
    assert list(found) == ["GeoLife 37", "GeoLife 38", "GeoLife 43"]
    for name, subject in found.items():
        assert subject.paper is PAPER[name]
        assert subject.positions.shape == (*subject.truth.cells.shape, 2)
        assert f"where the paper has {PAPER[name].people}" in subject.notes[0]
    assert [rk.Calendar("2000-01-01", PAPER[name].step).step for name in found] == [
        subject.counts.calendar.step for subject in found.values()
    ]


@pytest.fixture
def published(tmp_path):
    """A wide table with its grid, as the paper publishes, and one without a grid."""
    counts = random_truth(np.random.default_rng(0), people=5, places=9, steps=24).counts()
    folder = tmp_path / "published" / "processed"
    folder.mkdir(parents=True)
    ids = [f"({at // 3}, {at % 3})" for at in range(9)]
    wide = pl.DataFrame(
        {"datetime": counts.calendar.times().astype("datetime64[ms]")} | dict(zip(ids, counts.values.T, strict=True))
    )
    write_table(folder / "My town aggregated.csv", wide)
    write_table(folder / "Other aggregrated.csv", wide)
    towers = [f"({10.0 + 2 * (at // 3)}, {2.0 * (at % 3)})" for at in range(9)]
    write_table(folder / "My town grid.csv", pl.DataFrame({"ID": ids, "towerlocation": towers}))
    return tmp_path / "published"


def test_published_counts_come_with_their_grid_and_without_a_truth(published):
    found = load(Sources(published=published))
    assert list(found) == ["My town aggregated, published counts", "Other aggregrated, published counts"]
    with_grid, without = found.values()
    assert with_grid.truth is None
    assert with_grid.counts.locations.xy_km[3].tolist() == [0.0, 12.0]
    assert without.counts.locations.xy_km[3].tolist() == [0.5, 1.5]


def test_published_counts_beside_the_porto_file_are_found(published):
    write_porto(published / "train.csv", some_porto_rows(days=2))
    assert len(load(Sources(porto=published / "train.csv"))) == 4


def test_a_published_file_with_a_known_name_must_be_that(published):
    file = published / "processed" / "Other aggregrated.csv"
    file.rename(file.with_name("Porto taxi aggregated 3x3.csv"))
    with pytest.raises(rk.errors.InvalidData, match="5 people and 24 steps; the paper's Porto 3x3 has 197"):
        load(Sources(published=published))


def test_absent_data_is_named(published):
    nothing = Sources()
    assert [name for name, _ in nothing.loaders()] == ["Synthetic city"]
    assert [text.split(":")[0].split(" were")[0] for text in nothing.skipped] == [
        "GeoLife 37, 38 and 43",
        "Porto 3x3 and 7x7",
        "The published aggregates",
    ]
    some = Sources(published=published)
    assert "The published aggregate of GeoLife 38 is not among those given." in some.skipped
    with pytest.raises(rk.errors.InvalidFile, match="does not exist"):
        Sources(geolife=published / "nowhere").check()
    (published / "empty").mkdir()
    with pytest.raises(rk.errors.InvalidFile, match="no aggregate here"):
        Sources(published=published / "empty").check()
