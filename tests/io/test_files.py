"""Files are written whole or not at all."""

import errno
import os
import stat
import sys
from contextlib import contextmanager
from functools import partial

import pytest

import rekindle as rk
from rekindle.errors import OutputFailed
from rekindle.io.safety import files, folders
from rekindle.io.safety.files import leftovers, new_file, output, read_json, remove_leftovers, write_json

new_folder = partial(folders.new_folder, kind="thing")


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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("make", [new_file, new_folder])
def test_an_interrupt_at_any_line(tmp_path, make):
    """At every line of the module in turn, until one is never reached; `ended` is what is there then."""
    ended = []
    for until in range(200):
        folder = tmp_path / str(until)
        folder.mkdir()
        try:
            with interrupt_at_line(until), make(folder / "a") as temporary:
                (temporary if make is new_file else temporary / "b").write_text("new")
            break
        except KeyboardInterrupt:
            with output(folder / "a"):
                pass
            ended.append(names(folder))
    assert 20 < until < 199
    assert {tuple(found) for found in ended} == {(), ("a",)}
    assert ended[0] == []
    assert names(folder) == ["a"]


@contextmanager
def interrupt_at_line(number):
    """Raise KeyboardInterrupt before a line of the module that makes files, counted from the first that runs."""
    left = number

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename != files.__file__:
            return None
        if event == "line" and left >= 0:
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def test_an_existing_file_is_kept(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(rk.errors.OutputExists, match=r"a\.txt"), new_file(tmp_path / "a.txt"):
        pass
    with pytest.raises(rk.errors.InvalidFile, match="folder does not exist"), new_file(tmp_path / "no" / "a.txt"):
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
    with (
        pytest.raises(rk.errors.InvalidFile, match=r"file/b: it cannot be written"),
        new_folder(tmp_path / "file" / "b"),
    ):
        pass

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / ".hidden"))

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    for make in (new_file, new_folder):
        with (
            pytest.raises(rk.errors.InvalidFile, match=r"/c: it cannot be written \(Permission denied\)"),
            make(tmp_path / "c"),
        ):
            pass


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_temporary_files_are_for_the_owner_alone(tmp_path):
    mask = os.umask(0o022)
    try:
        with new_folder(tmp_path / "b") as folder, new_file(folder / "a.txt") as file:
            assert (mode(folder), mode(file)) == (0o700, 0o600)
        with new_folder(tmp_path / "c", private=True) as folder, new_file(folder / "a.txt", private=True):
            pass
    finally:
        os.umask(mask)
    assert [mode(tmp_path / name) for name in ("b", "b/a.txt", "c", "c/a.txt")] == [0o755, 0o644, 0o700, 0o600]
    (tmp_path / "c").chmod(0o750)
    (tmp_path / "c/a.txt").chmod(0o640)
    with new_file(tmp_path / "c/a.txt", overwrite=True, private=True):
        pass
    assert mode(tmp_path / "c/a.txt") == 0o640  # as its owner set it
    with new_folder(tmp_path / "c", overwrite=True, private=True):
        pass
    assert mode(tmp_path / "c") == 0o750


def test_leftovers_go_away_but_not_those_of_the_living(tmp_path):
    with new_file(tmp_path / "a.txt") as alive, new_folder(tmp_path / "b") as folder:
        (tmp_path / ".c.txt.0123456789ab.unfinished.txt").touch()
        (tmp_path / ".d.0123456789ab.unfinished").mkdir()
        (tmp_path / ".d.0123456789ab.unfinished/x").touch()
        (tmp_path / ".mine").touch()
        assert len(leftovers(tmp_path)) == 2
        remove_leftovers(tmp_path)
        assert alive.exists()
        assert folder.exists()
        assert leftovers(tmp_path) == []
    assert names(tmp_path) == [".mine", "a.txt", "b"]


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EROFS, "another folder"),
        (errno.EIO, "still connected"),
        (errno.EFBIG, "limit"),
        (errno.EBUSY, "folder in it"),
        (99, r"\)\.$"),
    ],
)
def test_a_failure_says_what_to_do(tmp_path, number, way_out):
    def broken():
        raise OSError(number, os.strerror(number), "hidden")

    with pytest.raises(OutputFailed, match=way_out) as error, new_file(tmp_path / "a.txt"):
        broken()
    assert str(error.value).startswith(f"{tmp_path / 'a.txt'}: it cannot be written ({os.strerror(number)}).")
    assert names(tmp_path) == []


def test_json_round_trip(tmp_path):
    value = {"ä": [1, None, "日本", {"x": 0.1}]}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value


@pytest.mark.parametrize("value", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}])
def test_only_plain_values(tmp_path, value):
    with pytest.raises(rk.errors.InvalidData, match="plain JSON"):
        write_json(tmp_path / "a.json", value)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1]", "not a list"),
        (b'{"x": NaN}', "NaN is not a JSON value"),
        (b'{"x": 1e999}', "too large for a number"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_json(tmp_path, content, words):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(rk.errors.InvalidFile, match=words) as error:
        read_json(tmp_path / "a.json")
    assert str(error.value).startswith(str(tmp_path / "a.json"))


def test_missing_json(tmp_path):
    with pytest.raises(rk.errors.InvalidFile, match="missing"):
        read_json(tmp_path / "a.json")
    with pytest.raises(rk.errors.InvalidFile, match="this is a folder"):
        read_json(tmp_path)


def test_an_output_needs_its_folder(tmp_path):
    with pytest.raises(rk.errors.InvalidFile, match="its folder does not exist"), output(tmp_path / "no" / "file"):
        pass
