from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.raw import PORTO_COLUMNS, porto_row, some_porto_rows, write_porto

from rekindle.errors import InvalidFile
from rekindle.sources import porto, read_porto
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


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz"])
@pytest.mark.parametrize("size", [100, 5_000])
def test_pieces_do_not_matter(tmp_path, monkeypatch, name, size):
    file = write_porto(tmp_path / name, some_porto_rows())
    order = ["trajectory", "time"]
    whole = collect(read_porto(file).frame).sort(order)
    monkeypatch.setattr(porto, "_PIECE_BYTES", size)
    assert collect(read_porto(file).frame).sort(order).equals(whole)


@settings(deadline=None)
@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    size=st.integers(1, 30),
    ends=st.booleans(),
)
def test_pieces_share_the_lines_among_them(tmp_path_factory, lines, size, ends):
    """However a file is cut, each line is in one piece, whole, and each piece knows how many lines were before it."""
    header = f"{PORTO_COLUMNS}\n".encode()
    text = b"\n".join(lines) + (b"\n" if ends else b"")
    file = tmp_path_factory.getbasetemp() / "train.csv"
    file.write_bytes(header + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(porto, "_PIECE_BYTES", size)
        pieces = porto._pieces(file, "polars")
        texts = [b"".join(piece.texts()) for piece in pieces]
    assert b"".join(texts) == text
    assert all(one.endswith(b"\n") for one in [one for one in texts if one][:-1])
    before = [b"".join(texts[:number]).count(b"\n") for number in range(len(texts))]
    assert [piece.row for piece in pieces] == before


def test_a_bad_first_point_leaves_the_rest_of_its_trip(tmp_path):
    file = write_porto(tmp_path / "train.csv", [porto_row(7, S, [(91.0, -8.6), *LINE])])
    points = read_porto(file, skip_bad=True)
    assert points.info["skipped"] == {"coordinates out of range": 1}
    assert points.info["trips"] == 1
    assert collect(points.frame)["time"].to_list() == [S + 15, S + 30]


def test_a_header_alone(tmp_path):
    for text in (PORTO_COLUMNS, f"{PORTO_COLUMNS}\n"):
        (tmp_path / "train.csv").write_text(text)
        points = read_porto(tmp_path)
        assert collect(points.frame).is_empty()
        assert collect(points.frame).schema["lat"] == pl.Float64
        assert points.info["trips"] == 0


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
