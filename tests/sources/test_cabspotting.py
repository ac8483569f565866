import pytest

from rekindle.errors import InvalidFile
from rekindle.sources import read_cabspotting
from rekindle.sources.engine import collect

GOOD = "37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 0 1213084659\n"


def test_points_of_a_cab(tmp_path):
    (tmp_path / "new_abboip.txt").write_text(GOOD)
    (tmp_path / "_cabs.txt").write_text('<cab id="abboip" updates="2"/>\n')
    points = read_cabspotting(tmp_path)
    assert collect(points.frame).rows() == [
        ("abboip", 1213084687, 37.75134, -122.39488),
        ("abboip", 1213084659, 37.75136, -122.39527),
    ]
    assert points.timezone == "America/Los_Angeles"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("37.7 -122.3\n", "broken line"),
        ("here there 0 1213084600\n", "broken line"),
        ("37.7 -222.3 0 1213084600\n", "coordinates out of range"),
        ("37.7 -122.3 0 1213084900\n", "time out of order"),
    ],
)
def test_bad_line(tmp_path, line, problem):
    (tmp_path / "new_a.txt").write_text(GOOD + line)
    with pytest.raises(InvalidFile, match=rf"new_a.txt: line 3: {problem}.*`skip_bad=True`"):
        read_cabspotting(tmp_path)
    points = read_cabspotting(tmp_path, skip_bad=True)
    assert points.info["skipped"] == {problem: 1}
    assert collect(points.frame).height == 2


def test_no_cabs(tmp_path):
    with pytest.raises(InvalidFile, match="no file new_"):
        read_cabspotting(tmp_path)
    (tmp_path / "new_a.txt").write_text("")
    with pytest.raises(InvalidFile, match=r"without points.*`skip_bad=True`"):
        read_cabspotting(tmp_path)
    with pytest.raises(InvalidFile, match="no file holds a good point"):
        read_cabspotting(tmp_path, skip_bad=True)


def test_broken_first_line(tmp_path):
    (tmp_path / "new_a.txt").write_text("nonsense\n" + GOOD)
    with pytest.raises(InvalidFile, match="line 1: broken line"):
        read_cabspotting(tmp_path)
    assert collect(read_cabspotting(tmp_path, skip_bad=True).frame).height == 2
