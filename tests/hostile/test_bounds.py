"""Files that would unfold to gigabytes, take minutes or never end are refused at once."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hostile.readers import people

import rekindle as rk
from rekindle.io.safety.untrusted import check_file, check_parquet, files_in, open_zip, read_arrays, read_content
from rekindle.sources import read_cabspotting, read_geolife, read_points

MOST_MEMORY = 500_000_000
"""Bytes that reading may add: a description of 15 MB takes 400 million, nothing else more than 140 million."""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is measured on Linux only")
@pytest.mark.slow
def test_bombs_are_refused_in_little_time_and_memory(tmp_path):
    command = [sys.executable, "-m", "tests.hostile.bombs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > 35
    for name, outcome, seconds, grown in found:
        assert outcome.startswith("InvalidFile: "), (name, outcome)
        assert seconds < 5, name
        assert grown < MOST_MEMORY, name


def dataset(path):
    rk.write_dataset(path, counts=people().counts(), truth=people())
    return path


@pytest.mark.parametrize("name", ["dataset.json", "counts.parquet", "locations.parquet", "truth.parquet"])
def test_a_link_out_of_a_dataset_is_refused(tmp_path, name):
    folder, elsewhere = dataset(tmp_path / "data"), tmp_path / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(rk.errors.InvalidFile, match="leads out of its folder"):
        rk.read_dataset(folder)
    (folder / name).unlink()
    elsewhere.rename(folder / "inside")
    (folder / name).symlink_to("inside")
    assert rk.read_dataset(folder).truth == people()


def test_a_link_to_a_whole_folder_may_be_given(tmp_path):
    dataset(tmp_path / "data")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert rk.read_dataset(tmp_path / "link").counts == people().counts()


def test_links_that_go_in_circles(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(rk.errors.InvalidFile, match="cannot be opened"):
        rk.read_counts(tmp_path / "a.csv")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "round").symlink_to(tmp_path / "deep", target_is_directory=True)
    for read in (read_points, read_geolife, read_cabspotting):
        with pytest.raises(rk.errors.InvalidFile):
            read(tmp_path / "deep")


def test_links_out_of_folders_of_points(tmp_path):
    (tmp_path / "secret.csv").write_text("person,time,lat,lng\na,0,1,2\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "new_a.txt").symlink_to(tmp_path / "secret.csv")
    for read in (read_points, read_cabspotting):
        with pytest.raises(rk.errors.InvalidFile, match="leads out of its folder"):
            read(tmp_path / "in")


def test_names_that_no_file_has(tmp_path):
    for name in ("a\0b.csv", "x" * 5000 + ".csv"):
        with pytest.raises(rk.errors.InvalidFile, match="cannot be opened"):
            rk.read_counts(tmp_path / name)


def test_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(b"12345")
    monkeypatch.setattr("rekindle.io.safety.untrusted.check_file", lambda *a, **k: 4)
    with pytest.raises(rk.errors.InvalidFile, match="changed while it was read"):
        read_content(path)


def test_a_file_that_may_not_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.touch()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(rk.errors.InvalidFile, match="Permission denied"):
        read_content(path)


def test_a_folder_that_may_not_be_listed(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rglob", refuse)
    with pytest.raises(rk.errors.InvalidFile, match="cannot be listed"):
        files_in(tmp_path, "*")


def test_a_plain_file_is_measured(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    assert check_file(tmp_path / "a") == 3


@pytest.mark.parametrize("name", ["../x.plt", "/x.plt", "a/../../x.plt", "a\\..\\..\\x.plt", "C:\\x.plt"])
def test_zip_paths_that_climb_out(tmp_path, name):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(rk.errors.InvalidFile, match="climbs out"), open_zip(tmp_path / "a.zip"):
        pass


def test_a_link_in_a_zip(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        entry = zipfile.ZipInfo("000/Trajectory/1.plt")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, b"/etc/passwd")
    with pytest.raises(rk.errors.InvalidFile, match="is a link"):
        read_geolife(tmp_path / "a.zip")


def test_an_archive_with_other_things_than_arrays(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.txt", b"")
    with pytest.raises(rk.errors.InvalidFile, match="is not an array"):
        read_arrays(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"PAR1", "cut off"),
        (b"PAR1" + bytes(8) + b"PARX", "cut off"),
        (b"PAR1" + bytes(4) + b"\xff\xff\xff\x7fPAR1", "longer than the file"),
        (b"PAR1" + b"\x19\xf0\xff\xff\xff\x07" + b"\x06\0\0\0PAR1", "longer than the header"),
        (b"PAR1" + b"\x1c" * 20 + b"\x14\0\0\0PAR1", "nested too deep"),
        (b"PAR1" + b"\x1f\0" + b"\x02\0\0\0PAR1", "unknown kind"),
        (b"PAR1" + b"\x16" + b"\xff" * 12 + b"\x0d\0\0\0PAR1", "too long"),
        (b"PAR1" + b"\x18\x7f" + b"\x02\0\0\0PAR1", "beyond its end"),
    ],
)
def test_parquet_headers_that_lie(content, word):
    with pytest.raises(rk.errors.InvalidFile, match=word):
        check_parquet(Path("a.parquet"), io.BytesIO(content))
