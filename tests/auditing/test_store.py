"""Finished tasks are kept under their own names, and only they are ever removed."""

import os

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing.store import TASKS, Store, begin_output, remove_tasks
from rekindle.auditing.tasks import Result, Task


def work(number):
    return Result({"number": number, "part": number / 3}, {"array": np.arange(number)})


def task(number):
    return Task(work, (number,))


def key(number):
    return Store(None).key(task(number))


def tasks_in(folder):
    return sorted(folder.glob("[0-9a-f]*.npz"))


def test_store_gives_back_what_it_got(tmp_path):
    store = Store(tmp_path / "tasks")
    assert store.get(key(3)) is None
    store.put(key(3), work(3))
    found = store.get(key(3))
    assert found.numbers == {"number": 3, "part": 1.0}
    assert found.arrays["array"].tolist() == [0, 1, 2]
    assert store.get(key(4)) is None
    assert len(tasks_in(tmp_path / "tasks")) == 1


def test_a_damaged_file_is_as_good_as_none(tmp_path):
    store = Store(tmp_path)
    store.put(key(3), work(3))
    path = tasks_in(tmp_path)[0]
    whole = path.read_bytes()
    for damaged in (b"", b"no zip", whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(damaged)
        assert store.get(key(3)) is None
    path.write_bytes(whole)
    assert store.get(key(3)) is not None


def test_a_pickle_in_the_store_is_not_opened(tmp_path):
    store = Store(tmp_path)
    store.put(key(3), work(3))
    np.savez(tmp_path / f"{key(3)}.npz", numbers=np.array([{"a": 1}], dtype=object))
    assert store.get(key(3)) is None


def test_store_is_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(rk.errors.OutputExists, match="folder"):
        Store(tmp_path / "file")


def test_keys_tell_tasks_apart():
    assert key(1) == key(1)
    assert key(1) != key(2)
    assert key(1) != Store(None).key(Task(tasks_in, (1,)))


def test_a_file_that_was_replaced_by_another_s_is_not_its_own(tmp_path):
    store = Store(tmp_path)
    for number in (3, 4):
        store.put(key(number), work(number))
    (tmp_path / f"{key(3)}.npz").write_bytes((tmp_path / f"{key(4)}.npz").read_bytes())
    assert store.get(key(3)) is None
    assert store.get(key(4)).numbers["number"] == 4


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.npz").write_bytes(b"years of work")
    with pytest.raises(rk.errors.InvalidData, match=r"no rekindle\.json"):
        Store(tmp_path)


def test_only_what_an_audit_made_is_removed(tmp_path):
    folder = begin_output(tmp_path / "out")
    store = Store(folder)
    for number in range(3):
        store.put(key(number), work(number))
    kept = tmp_path / "precious.npz"
    kept.write_bytes(b"years of work")
    (folder / "precious.npz").write_bytes(b"years of work")
    (folder / ("0" * 40 + ".npz")).symlink_to(kept)
    assert remove_tasks(folder) == 3
    assert kept.read_bytes() == (folder / "precious.npz").read_bytes() == b"years of work"
    assert (folder / ("0" * 40 + ".npz")).is_symlink()


def test_nothing_is_removed_from_a_folder_that_no_audit_made(tmp_path):
    name = "0" * 40 + ".npz"
    (tmp_path / TASKS).mkdir()
    (tmp_path / TASKS / name).write_bytes(b"years of work")
    assert remove_tasks(tmp_path / TASKS) == 0
    for resume in (True, False):
        with pytest.raises(rk.errors.InvalidData, match="left as it is"):
            begin_output(tmp_path, resume=resume)
    assert (tmp_path / TASKS / name).read_bytes() == b"years of work"


def test_nothing_is_removed_through_a_link(tmp_path):
    folder = begin_output(tmp_path / "one")
    Store(folder).put(key(1), work(1))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / TASKS).symlink_to(folder)
    assert remove_tasks(tmp_path / "two" / TASKS) == 0
    with pytest.raises(rk.errors.InvalidData, match="left as it is"):
        begin_output(tmp_path / "two", resume=False)
    assert len(tasks_in(folder)) == 1


def test_an_output_of_version_0_1_is_named_and_left_alone(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / ("a" * 40 + ".npz")).write_bytes(b"old")
    (tmp_path / "audit.json").write_text("{}")
    for resume in (True, False):
        with pytest.raises(rk.errors.InvalidData, match=r"Rekindle 0\.1"):
            begin_output(tmp_path, resume=resume)
    assert (tmp_path / "cells" / ("a" * 40 + ".npz")).read_bytes() == b"old"


def test_an_output_is_for_its_owner_and_resumes_unless_told_otherwise(tmp_path):
    folder = begin_output(tmp_path / "out")
    assert [os.stat(one).st_mode & 0o777 for one in (tmp_path / "out", folder)] == [0o700] * 2
    Store(folder).put(key(1), work(1))
    assert os.stat(tasks_in(folder)[0]).st_mode & 0o777 == 0o600
    assert begin_output(tmp_path / "out") == folder
    assert len(tasks_in(folder)) == 1
    begin_output(tmp_path / "out", resume=False)
    assert tasks_in(folder) == []
