"""Files and folders are written whole or not at all."""

import os
import stat

import pytest

import rekindle as rk
from rekindle.io.files import new_file, new_folder, read_json, write_json


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail(_, problem):
    raise problem


def test_a_file_appears_when_it_is_whole(tmp_path):
    with new_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file(tmp_path, problem):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(problem), new_file(tmp_path / "a.txt", overwrite=True) as temporary:
        fail(temporary.write_text("half"), problem)
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(rk.OutputExists, match=r"a\.txt"), new_file(tmp_path / "a.txt"):
        pass
    with pytest.raises(rk.InvalidFile, match="folder does not exist"), new_file(tmp_path / "no" / "a.txt"):
        pass
    assert (tmp_path / "a.txt").read_text() == "old"


def test_usual_permissions(tmp_path):
    """Not those of `tempfile`, which nobody else may read."""
    mask = os.umask(0o022)
    try:
        with new_file(tmp_path / "a.txt"):
            pass
        with new_folder(tmp_path / "b"):
            pass
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o755


def test_what_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(rk.InvalidFile, match=r"file/b: it cannot be written"), new_folder(tmp_path / "file" / "b"):
        pass

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / ".hidden"))

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    for make in (new_file, new_folder):
        with (
            pytest.raises(rk.InvalidFile, match=r"/c: it cannot be written \(Permission denied\)"),
            make(tmp_path / "c"),
        ):
            pass


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_folder(tmp_path, problem):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "old").touch()
    with pytest.raises(problem), new_folder(folder, overwrite=True) as temporary:
        fail((temporary / "half").touch(), problem)
    assert names(folder) == ["old"]
    assert names(tmp_path) == ["a"]


def test_a_failed_exchange_puts_the_old_folder_back(tmp_path, monkeypatch):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "old").touch()
    replace = os.replace

    def fail(source, target):
        if target == folder and (source / "new").exists():
            raise OSError("disk gone")
        replace(source, target)

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk gone"), new_folder(folder, overwrite=True) as temporary:
        (temporary / "new").touch()
    assert names(folder) == ["old"]
    assert names(tmp_path) == ["a"]


def test_a_folder_is_replaced_whole(tmp_path):
    folder = tmp_path / "deep" / "a"
    for name in ("one", "two"):
        with new_folder(folder, overwrite=name == "two") as temporary:
            (temporary / name).touch()
    assert names(folder) == ["two"]
    assert names(folder.parent) == ["a"]
    with pytest.raises(rk.OutputExists, match="left as it is"), new_folder(folder):
        pass
    (tmp_path / "file").touch()
    for overwrite in (False, True):
        with (
            pytest.raises(rk.OutputExists, match="left as it is"),
            new_folder(tmp_path / "file", overwrite=overwrite),
        ):
            pass


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "a").mkdir()
    with new_folder(tmp_path / "a") as temporary:
        (temporary / "new").touch()
    assert names(tmp_path / "a") == ["new"]


def test_json_round_trip(tmp_path):
    value = {"ä": [1, None, "日本", {"x": 0.1}]}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}])
def test_only_plain_values(tmp_path, value):
    with pytest.raises(rk.InvalidData, match="plain JSON"):
        write_json(tmp_path / "a.json", value)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1]", "not a list"),
        (b'{"x": NaN}', "NaN is not a JSON value"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_json(tmp_path, content, words):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(rk.InvalidFile, match=words) as error:
        read_json(tmp_path / "a.json")
    assert str(error.value).startswith(str(tmp_path / "a.json"))


def test_missing_json(tmp_path):
    with pytest.raises(rk.InvalidFile, match="missing"):
        read_json(tmp_path / "a.json")
    with pytest.raises(rk.InvalidFile, match="cannot be opened"):
        read_json(tmp_path)
