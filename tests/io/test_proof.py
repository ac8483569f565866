"""Corners of reading and writing that the other tests leave out."""

import gzip
import json
import os
import shutil
import threading

import numpy as np
import polars as pl
import pytest

import rekindle as rk
from rekindle.errors import InvalidData, InvalidFile, OutputInUse
from rekindle.io import files, lock, read_recovery, untrusted
from rekindle.io.safety.files import _exchange, new_folder, output, write_failure
from rekindle.io.safety.untrusted import _Thrift, check_parquet, check_table


@pytest.fixture
def folder(tmp_path):
    """The recovery of a small city, as `rekindle attack` leaves it."""
    from rekindle.cli import main

    truth = rk.SyntheticCity(people=4, days=2, step="4h", width_km=2, height_km=2).trajectories()
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth)
    with pytest.raises(SystemExit) as end:
        main(["attack", str(tmp_path / "data"), "--attack", "baseline", "--out", str(tmp_path / "found")])
    assert not end.value.code
    return tmp_path / "found"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda head: head.update(format="other"), "its format is 'other'"),
        (lambda head: head.update(days={}), "'days' must be a list"),
        (lambda head: head.update(people=0), "'people' a whole number"),
        (lambda head: head.update(people=True), "'people' a whole number"),
        (lambda head: head.update(people=2**31 - 1), "are not read|cannot|memory|people"),
        (lambda head: head.update(attack=3), "'attack' must be a name"),
        (lambda head: head.update(settings=[]), "'settings' an object"),
        (lambda head: head["days"].append(head["days"][0]), "it lists 3 days, but its calendar has 2"),
        (lambda head: head["days"].__setitem__(0, 7), "must have"),
        (lambda head: head["days"][0].pop("gaps"), "must have"),
        (lambda head: head["days"][0].update(step_costs=[1.0]), "must be 1 or 6 numbers"),
        (lambda head: head["days"][0].update(link_costs="x"), "must be 1 or 6 numbers"),
    ],
)
def test_a_damaged_recovery_is_refused(folder, change, words):
    path = folder / "recovery.json"
    head = json.loads(path.read_text())
    change(head)
    path.write_text(json.dumps(head))
    with pytest.raises(InvalidFile, match=words):
        read_recovery(folder)


def test_confidence_beyond_one_is_refused(folder):
    path = folder / "day-0000.parquet"
    table = pl.read_parquet(path)
    table.with_columns(confidence=pl.lit(1.5, pl.Float32)).write_parquet(path)
    with pytest.raises(InvalidFile, match="a confidence is from 0 to 1"):
        read_recovery(folder)


def test_what_is_no_recovery_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="a file, not a recovery folder"):
        read_recovery(tmp_path / "file")
    with pytest.raises(InvalidFile, match="does not exist"):
        read_recovery(tmp_path / "nothing")


def test_an_output_is_locked_for_others_and_not_for_oneself(tmp_path):
    path, said = tmp_path / "out", []
    with lock.locked(path):
        assert lock.is_lock_file(lock.lock_file(path))
        with lock.locked(path):
            assert lock.lock_file(path).exists()

        def other():
            with pytest.raises(OutputInUse) as refused, lock.locked(path):
                pass
            said.append(str(refused.value))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert lock.in_use(lock.lock_file(path))
    assert f"process {os.getpid()} on " in said[0]
    assert not lock.lock_file(path).exists()
    assert not lock.is_lock_file(lock.lock_file(path))
    assert not lock.in_use(path)


def test_a_lock_that_was_removed_meanwhile_is_taken_again(tmp_path, monkeypatch):
    path, usual, asked = tmp_path / "out", lock.hold, []

    def removed_first(file):
        asked.append(file)
        if len(asked) == 1:
            lock.lock_file(path).unlink()
        return usual(file)

    monkeypatch.setattr(lock, "hold", removed_first)
    with lock.locked(path):
        assert lock.lock_file(path).exists()
    assert len(asked) == 2


def test_where_nothing_may_be_written_beside_a_folder_it_is_locked_inside(tmp_path, monkeypatch):
    path, usual = tmp_path / "out", os.open
    path.mkdir()

    def refuse(name, *flags):
        if os.path.dirname(name) == str(tmp_path):
            raise PermissionError(13, "no", str(name))
        return usual(name, *flags)

    monkeypatch.setattr(lock.os, "open", refuse)
    with lock.locked(path):
        assert [entry.name for entry in path.iterdir()] == [lock.lock_file(path).name]
    with pytest.raises(PermissionError), lock.locked(tmp_path / "file"):
        pass


def test_without_locks_nothing_is_locked(tmp_path, monkeypatch):
    class Without:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(file, how):
            raise OSError(95, "not supported")

    monkeypatch.setattr(lock, "fcntl", Without)
    with lock.locked(tmp_path / "out"):
        pass
    monkeypatch.setattr(lock, "fcntl", None)
    with lock.locked(tmp_path / "out"):
        assert not lock.lock_file(tmp_path / "out").exists()


def test_folders_are_exchanged_in_two_steps_where_the_system_cannot_in_one(tmp_path, monkeypatch):
    new, old = tmp_path / "new", tmp_path / "old"
    for path in (new, old):
        path.mkdir()
        (path / path.name).write_text("")
    monkeypatch.setattr(files, "_swap", lambda one, other: False)
    usual, asked = os.replace, []

    def fail_once(one, other):
        asked.append(other)
        if len(asked) == 2:
            raise OSError(5, "unplugged")
        usual(one, other)

    monkeypatch.setattr(files.os, "replace", fail_once)
    with pytest.raises(OSError, match="unplugged"):
        _exchange(new, old)
    assert [entry.name for entry in old.iterdir()] == ["old"]
    _exchange(new, old)
    assert [entry.name for entry in old.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    monkeypatch.setattr(files.sys, "platform", "plan9")
    monkeypatch.undo()


def test_other_systems_exchange_in_their_own_way(tmp_path, monkeypatch):
    class Library:
        def renamex_np(self, one, other, how):
            return how - 2

    monkeypatch.setattr(files.ctypes, "CDLL", lambda name: Library())
    monkeypatch.setattr(files.sys, "platform", "darwin")
    assert files._swap(tmp_path, tmp_path)
    monkeypatch.setattr(files.sys, "platform", "linux")
    assert not files._swap(tmp_path, tmp_path)
    monkeypatch.setattr(files.sys, "platform", "plan9")
    assert not files._swap(tmp_path, tmp_path)


def test_a_temporary_that_another_took_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    usual, asked = files.hold, []

    def taken(file):
        asked.append(file)
        return len(asked) > 1 and usual(file)

    monkeypatch.setattr(files, "hold", taken)
    with new_folder(tmp_path / "out") as made:
        (made / "a").write_text("x")
    assert len(asked) == 2
    assert (tmp_path / "out" / "a").read_text() == "x"


def test_an_output_needs_its_folder(tmp_path):
    with pytest.raises(InvalidFile, match="its folder does not exist"), output(tmp_path / "no" / "file"):
        pass


@pytest.mark.parametrize(
    ("number", "words"), [(28, "disk is full"), (30, "another place"), (5, "connected"), (99, "$")]
)
def test_a_failure_says_what_to_do(tmp_path, number, words):
    found = write_failure(tmp_path, OSError(number, "why"))
    assert found.errno == number
    assert found.args
    with pytest.raises(type(found), match=words):
        raise found


def test_numbers_too_large_and_values_that_are_no_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1e999}')
    with pytest.raises(InvalidFile, match="too large for a number"):
        files.read_json(path)
    with pytest.raises(InvalidData, match="not plain JSON"):
        files.write_json(path, {"a": object()})
    path.write_text("[1]")
    with pytest.raises(InvalidFile, match="not a list"):
        files.read_json(path)


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
        (b"\xff" * 12, "too long|unknown kind|longer"),
        (b"\x15" + b"\x80" * 11, "too long"),
        (b"\x17" + bytes(3), "beyond its end"),
        (b"\x1d", "unknown kind 13"),
        (b"\x19\xf5\x7f", "longer than the header"),
        (b"\x1c" * 20 + bytes(20), "nested too deep"),
    ],
)
def test_headers_that_lie(content, words):
    with pytest.raises(ValueError, match=words):
        _Thrift(content, 0, len(content)).struct()


def test_a_header_by_hand():
    # Field 1: true; 2: byte 7; 4: -3; 5: 8 bytes passed over; 6: text passed over; 7: list of two; 40: a struct.
    content = b"\x11\x13\x07\x25\x05\x17" + bytes(8) + b"\x18\x02hi\x19\x25\x02\x04\x0c\x50\x12\x00\x00"
    found = _Thrift(content, 0, len(content)).struct()
    assert found == {1: True, 2: 7, 4: -3, 5: None, 6: None, 7: [1, 2], 40: {1: False}}


@pytest.mark.parametrize("damage", [lambda data: data[:20], lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1"])
def test_a_parquet_file_that_was_cut_is_refused(tmp_path, damage):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": np.arange(50)}).write_parquet(path)
    content = path.read_bytes()
    check_parquet(path, content)
    with pytest.raises(InvalidFile, match="parquet"):
        check_parquet(path, damage(content))


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidFile, match="a pipe"):
        rk.read_counts(tmp_path / "pipe")
    shutil.copytree(tmp_path, tmp_path / "folder.csv", ignore=lambda *_: ["pipe", "folder.csv"])
    with pytest.raises(InvalidFile, match="a folder"):
        rk.read_counts(tmp_path / "folder.csv")
