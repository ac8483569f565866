"""Folders are written whole or not at all, and say what made them."""

import json
import os
from functools import partial

import pytest

import rekindle as rk
from rekindle.io.safety import files, folders
from rekindle.io.safety.files import output
from rekindle.io.safety.folders import MARK, Sensitive, check_new_folder, mark_folder, read_mark

new_folder = partial(folders.new_folder, kind="thing")


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != MARK)


def fail(_, problem):
    raise problem


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_folder(tmp_path, problem):
    folder = tmp_path / "a"
    with new_folder(folder) as temporary:
        (temporary / "old").touch()
    with pytest.raises(problem), new_folder(folder, overwrite=True) as temporary:
        fail((temporary / "half").touch(), problem)
    assert names(folder) == ["old"]
    assert names(tmp_path) == ["a"]


def test_a_failed_exchange_puts_the_old_folder_back(tmp_path, monkeypatch):
    folder = tmp_path / "a"
    with new_folder(folder) as temporary:
        (temporary / "old").touch()
    replace = os.replace

    def fail(source, target):
        if target == folder and (source / "new").exists():
            raise OSError("disk gone")
        replace(source, target)

    monkeypatch.setattr("rekindle.io.safety.folders._swap", lambda *_: False)
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
    with pytest.raises(rk.errors.OutputExists, match="left as it is"), new_folder(folder):
        pass
    (tmp_path / "file").touch()
    for overwrite in (False, True):
        with (
            pytest.raises(rk.errors.OutputExists, match="left as it is"),
            new_folder(tmp_path / "file", overwrite=overwrite),
        ):
            pass


@pytest.mark.parametrize("swaps", [True, False])
def test_an_overwritten_folder_is_there_at_every_moment(tmp_path, monkeypatch, swaps):
    """Killed before any of the renames, the name holds the old folder or the new one, at the latest at the next start."""
    replace, seen = os.replace, []

    def die(*_):
        raise SystemExit

    def watching(source, target):
        replace(source, target)
        if tmp_path / "a" not in (source, target):
            return
        seen.append((tmp_path / "a").exists())
        monkeypatch.setattr("os.replace", die)
        monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
        die()

    with new_folder(tmp_path / "a") as temporary:
        (temporary / "old").touch()
    if not swaps:
        monkeypatch.setattr("rekindle.io.safety.folders._swap", lambda *_: False)
        monkeypatch.setattr("os.replace", watching)
        with pytest.raises(SystemExit), new_folder(tmp_path / "a", overwrite=True) as temporary:
            (temporary / "new").touch()
        assert seen == [False]
        monkeypatch.undo()
        assert [name.endswith((".unfinished", ".replaced")) for name in names(tmp_path)] == [True, True]
        with output(tmp_path / "a"):
            assert names(tmp_path / "a") == ["old"]
    else:
        monkeypatch.setattr("os.replace", watching)
        with new_folder(tmp_path / "a", overwrite=True) as temporary:
            (temporary / "new").touch()
        assert seen == []
        assert names(tmp_path / "a") == ["new"]
    assert names(tmp_path) == ["a"]


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "a").mkdir()
    with new_folder(tmp_path / "a") as temporary:
        (temporary / "new").touch()
    assert names(tmp_path / "a") == ["new"]


def test_other_systems_exchange_in_their_own_way(tmp_path, monkeypatch):
    class Library:
        def renamex_np(self, one, other, how):
            return how - 2

    monkeypatch.setattr(folders.ctypes, "CDLL", lambda name: Library())
    monkeypatch.setattr(folders.sys, "platform", "darwin")
    assert folders._swap(tmp_path, tmp_path)
    monkeypatch.setattr(folders.sys, "platform", "linux")
    assert not folders._swap(tmp_path, tmp_path)
    monkeypatch.setattr(folders.sys, "platform", "plan9")
    assert not folders._swap(tmp_path, tmp_path)


def test_a_temporary_that_another_took_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    usual, asked = files.hold, []

    def taken(file):
        asked.append(file)
        return len(asked) > 1 and usual(file)

    monkeypatch.setattr(files, "hold", taken)
    with new_folder(tmp_path / "out") as made:
        (made / "a").write_text("x")
    assert len(asked) == 3  # twice for the folder, once for its mark
    assert (tmp_path / "out" / "a").read_text() == "x"


@pytest.mark.parametrize("old", ["dataset.json", "recovery.json", "audit.json", "reproduction.json", "thesis.txt"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_without_our_mark_is_never_replaced(tmp_path, old, overwrite):
    """Version 0.1 left no mark, and neither does anyone else."""
    (tmp_path / old).write_text("{}")
    with (
        pytest.raises(rk.errors.InvalidFile, match=r"no rekindle\.json.*Rekindle 0\.1.*left as it is"),
        new_folder(tmp_path, overwrite=overwrite),
    ):
        pass
    assert names(tmp_path) == [old]


def test_an_output_of_another_kind_is_never_replaced(tmp_path):
    with new_folder(tmp_path / "a"):
        pass
    with pytest.raises(rk.errors.InvalidFile, match="holds the output 'thing', not 'audit'"):
        check_new_folder(tmp_path / "a", "audit", overwrite=True)
    with pytest.raises(rk.errors.OutputExists, match="`overwrite=True`") as error:
        check_new_folder(tmp_path / "a", "thing")
    assert error.value.settings == ("overwrite",)
    check_new_folder(tmp_path / "a", "thing", overwrite=True)


def test_datasets_and_recoveries_of_version_0_1_are_read_but_not_replaced(tmp_path):
    truth = rk.Trajectories([[0, 1], [1, 1]], rk.Locations([[0, 0], [1, 0]]), rk.Calendar("2024-03-01", "1h"))
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth)
    (tmp_path / "data" / MARK).unlink()
    before = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}
    assert rk.read_dataset(tmp_path / "data").truth == truth
    with pytest.raises(rk.errors.InvalidFile, match=r"Rekindle 0\.1"):
        rk.write_dataset(tmp_path / "data", counts=truth.counts(), overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()} == before


def test_a_mark_lists_what_is_sensitive(tmp_path):
    mark_folder(tmp_path, "audit", {"tasks/*.npz": Sensitive("task")})
    mark_folder(tmp_path, "audit", {"report.html": Sensitive("report"), "truth.parquet": Sensitive("truth", "truth")})
    (tmp_path / "tasks").mkdir()
    for name in ("tasks/a.npz", "tasks/b.txt", "report.html", "other.html"):
        (tmp_path / name).touch()
    (tmp_path / "truth.parquet").symlink_to(tmp_path / "other.html")
    found = read_mark(tmp_path)
    assert found.kind == "audit"
    assert {path.name: one.what for path, one in found.sensitive_files(tmp_path)} == {
        "a.npz": "task",
        "report.html": "report",
    }
    before = (tmp_path / MARK).stat().st_ino
    mark_folder(tmp_path, "audit", {"report.html": Sensitive("report")})
    assert (tmp_path / MARK).stat().st_ino == before  # nothing new to say


def test_linked_folders_are_not_looked_into(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.npz").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tasks").symlink_to(tmp_path / "elsewhere")
    mark_folder(tmp_path / "out", "audit", {"tasks/*.npz": Sensitive("task")})
    assert read_mark(tmp_path / "out").sensitive_files(tmp_path / "out") == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"kind": 3, "sensitive": {}}',
        '{"kind": "audit", "sensitive": []}',
        '{"kind": "audit", "sensitive": {"a": "b"}}',
        *(
            json.dumps({"kind": "audit", "sensitive": {name: {"what": "x", "why": "derived"}}})
            for name in ("../a", "/etc/passwd", "a/../b", "a/b/c", "*", "**/a", ".ssh/id", "a/", "")
        ),
        '{"kind": "audit", "sensitive": {"a": {"what": "x", "why": "because"}}}',
    ],
)
def test_a_mark_that_is_none_of_ours_counts_for_nothing(tmp_path, content):
    (tmp_path / MARK).write_text(content)
    assert read_mark(tmp_path) is None


def test_a_linked_mark_counts_for_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    mark_folder(tmp_path / "a", "audit")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / MARK).symlink_to(tmp_path / "a" / MARK)
    assert read_mark(tmp_path / "b") is None
