from datetime import UTC, datetime

import pytest
from tests.sources.raw import PORTO_COLUMNS, porto_row, write_porto

from rekindle.errors import InvalidFile
from rekindle.sources import read_porto
from rekindle.sources.engine import collect

S = int(datetime(2013, 7, 1, tzinfo=UTC).timestamp())
LINE = [(41.141412, -8.618643), (41.141376, -8.618499)]


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz"])
def test_a_trip_has_a_point_every_15_seconds(tmp_path, name):
    file = write_porto(tmp_path / name, [porto_row(20000589, S + 58, LINE)])
    points = read_porto(file)
    assert collect(points.frame).rows() == [
        ("20000589", 0, S + 58, 41.141412, -8.618643),
        ("20000589", 0, S + 73, 41.141376, -8.618499),
    ]
    assert collect(read_porto(tmp_path).frame).height == 2


def test_what_is_dropped(tmp_path):
    rows = [
        porto_row(1, S, LINE),
        porto_row(1, S, LINE),
        porto_row(2, S, LINE, missing=True),
        porto_row(3, S, "[]"),
        porto_row(4, S, LINE),
    ]
    file = write_porto(tmp_path / "train.csv", rows)
    points = read_porto(file)
    assert collect(points.frame)["trajectory"].unique().sort().to_list() == [0, 4]
    assert points.info["trips"] == 5
    assert points.info["dropped"] == {"missing points": 1, "no points": 1, "begun in the same second": 1}
    kept = read_porto(file, keep_missing=True)
    assert collect(kept.frame)["trajectory"].unique().sort().to_list() == [0, 2, 4]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (porto_row(1, S, "[[-8.6, 41.1], [-8.6"), "POLYLINE that does not parse"),
        (porto_row(1, S, "[[-8.6]]"), "POLYLINE that does not parse"),
        (porto_row(1, "soon", LINE), "time missing or not a number"),
        (porto_row(1, S, LINE, missing="perhaps"), "MISSING_DATA that is neither"),
        (porto_row(1, S, [(41.1, -208.6)]), "coordinates out of range"),
    ],
)
def test_bad_row(tmp_path, row, problem):
    file = write_porto(tmp_path / "train.csv", [porto_row(7, S, LINE), row, porto_row(8, S, LINE)])
    with pytest.raises(InvalidFile, match=rf"train.csv: line 3: {problem}.*`skip_bad=True`"):
        read_porto(file)
    points = read_porto(file, skip_bad=True)
    assert sum(points.info["skipped"].values()) == 1
    assert set(collect(points.frame)["person"]) == {"7", "8"}


def test_another_file(tmp_path):
    (tmp_path / "train.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidFile, match=r"'POLYLINE'.* missing"):
        read_porto(tmp_path)
    with pytest.raises(InvalidFile, match="does not exist"):
        read_porto(tmp_path / "nothing.csv")
    with pytest.raises(InvalidFile, match="0 files named like"):
        read_porto(tmp_path.joinpath("empty").mkdir() or tmp_path / "empty")
    assert PORTO_COLUMNS.count(",") == 8
