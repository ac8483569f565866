"""Files that came from elsewhere: what they are and what they expand to is checked before they are read."""

import gzip
import io
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.hostile.bombs import memory

import rekindle as rk
from rekindle.errors import InvalidFile
from rekindle.io.safety import untrusted
from rekindle.io.safety.untrusted import _Thrift, check_parquet, check_table


def test_packed_tables(tmp_path, monkeypatch):
    plain = b"a,b\n" + b"1,2\n" * 50_000
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(plain[:100_000]) + gzip.compress(plain[100_000:]))
    check_table(path)
    monkeypatch.setattr(untrusted, "LARGEST_UNFOLDED", 100)
    monkeypatch.setattr(untrusted, "LARGEST_TEXT_RATIO", 10_000)
    check_table(path)
    monkeypatch.setattr(untrusted, "LARGEST_TEXT_RATIO", 2)
    with pytest.raises(InvalidFile, match="bytes expand to"):
        check_table(path)
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(InvalidFile, match="it is compressed with"):
        check_table(path)
    path.write_bytes(b"")
    with pytest.raises(InvalidFile, match="empty"):
        check_table(path)
    monkeypatch.setattr(untrusted, "MOST_COLUMNS", 3)
    path.write_bytes(b"a,b,c,d\n")
    with pytest.raises(InvalidFile, match="more than 3 columns"):
        check_table(path)
    pl.DataFrame({"a": [1], "b": [1], "c": [2], "d": [3]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InvalidFile, match="more than 3"):
        check_table(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "beyond its end"),
        (b"\xff" * 12, "unknown kind 15"),
        (b"\x15" + b"\x80" * 11, "too long"),
        (b"\x17" + bytes(3), "beyond its end"),
        (b"\x1d", "unknown kind 13"),
        (b"\x19\xf5\x7f", "longer than the header"),
        (b"\x1c" * 20 + bytes(20), "nested too deep"),
    ],
)
def test_headers_that_lie(content, words):
    with pytest.raises(ValueError, match=words):
        _Thrift(io.BytesIO(content), 0, len(content)).struct()


def test_a_header_by_hand():
    # Field 1: true; 2: byte 7; 4: -3; 5: 8 bytes passed over; 6: text passed over; 7: list of two; 40: a struct.
    content = b"\x11\x13\x07\x25\x05\x17" + bytes(8) + b"\x18\x02hi\x19\x25\x02\x04\x0c\x50\x12\x00\x00"
    found = _Thrift(io.BytesIO(content), 0, len(content)).struct()
    assert found == {1: True, 2: 7, 4: -3, 5: None, 6: None, 7: [1, 2], 40: {1: False}}


@pytest.mark.parametrize("damage", [lambda data: data[:20], lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1"])
def test_a_parquet_file_that_was_cut_is_refused(tmp_path, damage):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": np.arange(50)}).write_parquet(path)
    content = path.read_bytes()
    check_parquet(path, io.BytesIO(content))
    with pytest.raises(InvalidFile, match="parquet"):
        check_parquet(path, io.BytesIO(damage(content)))


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is measured on Linux only")
def test_a_large_parquet_file_takes_no_memory_to_check(tmp_path):
    path, values = tmp_path / "a.parquet", np.random.default_rng(0).random(2**22)
    pl.DataFrame({"a": values}).write_parquet(path, compression="uncompressed", data_page_size=2**15)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    check_table(path)
    assert memory("VmHWM") - before < path.stat().st_size / 8


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidFile, match="a pipe"):
        rk.read_counts(tmp_path / "pipe")
    shutil.copytree(tmp_path, tmp_path / "folder.csv", ignore=lambda *_: ["pipe", "folder.csv"])
    with pytest.raises(InvalidFile, match="a folder"):
        rk.read_counts(tmp_path / "folder.csv")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("header", ["location", "Zürich"])
def test_text_in_another_encoding_is_said_to_be(tmp_path, encoding, header):
    (tmp_path / "a.csv").write_bytes(f"{header},x_km,y_km\nZürich,0,0\n".encode(encoding))
    with pytest.raises(rk.errors.InvalidFile, match="not text in UTF-8"):
        rk.read_locations(tmp_path / "a.csv")
