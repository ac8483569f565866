"""Lists of locations as operators have them."""

import re

import pytest

import rekindle as rk

EXPECTED = rk.Locations.from_lat_lng([[59.9, 10.7], [59.95, 10.8]], ["a", "b"])


@pytest.mark.parametrize(
    "header",
    [
        "location,lat,lng",
        "cell_id,latitude,longitude",
        "Tower_ID,Lat,Lon",
        "id,lat,long",
        "name,lat,lng",
        "site;latitude;longitude",
    ],
)
def test_known_names(tmp_path, header):
    mark = ";" if ";" in header else ","
    rows = "\n".join(row.replace(",", mark) for row in ("a,59.9,10.7", "b,59.95,10.8"))
    (tmp_path / "towers.csv").write_text(f"{header}\n{rows}\n")
    assert rk.read_locations(tmp_path / "towers.csv") == EXPECTED


def test_names_that_are_given(tmp_path):
    (tmp_path / "towers.csv").write_text("mast;bredde;lengde;lat\na;59,9;10,7;\nb;59,95;10,8;\n")
    found = rk.read_locations(tmp_path / "towers.csv", location="mast", lat="bredde", lng="lengde")
    assert found == EXPECTED
    with pytest.raises(
        rk.errors.InvalidFile, match=r"towers.csv: no column .* is known as the location; .* `location`"
    ):
        rk.read_locations(tmp_path / "towers.csv")
    with pytest.raises(rk.errors.InvalidFile, match="`lat` is 'north', but the columns are"):
        rk.read_locations(tmp_path / "towers.csv", location="mast", lat="north", lng="lengde")


def test_our_own_names_come_first(tmp_path):
    (tmp_path / "towers.csv").write_text("id,name,location,lat,latitude,lng\n1,x,a,59.9,0,10.7\n2,y,b,59.95,0,10.8\n")
    assert rk.read_locations(tmp_path / "towers.csv") == EXPECTED
    (tmp_path / "towers.csv").write_text("cell_id,site_id,lat,lng\na,1,59.9,10.7\n")
    problem = re.escape("the columns ['cell_id', 'site_id'] could each be the location")
    with pytest.raises(rk.errors.InvalidFile, match=problem):
        rk.read_locations(tmp_path / "towers.csv")


def test_x_and_y_are_not_taken_for_degrees(tmp_path):
    (tmp_path / "towers.csv").write_text("cell_id,x,y\na,10,59\n")
    with pytest.raises(rk.errors.InvalidFile, match="known as the lat"):
        rk.read_locations(tmp_path / "towers.csv")
    assert rk.read_locations(tmp_path / "towers.csv", lat="y", lng="x").lat_lng.tolist() == [[59.0, 10.0]]
