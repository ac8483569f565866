"""One process at a time writes an output."""

import errno
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import filelock
import pytest

from rekindle.errors import OutputInUse
from rekindle.io.safety import folders, lock
from rekindle.io.safety.files import output

new_folder = partial(folders.new_folder, kind="thing")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_two_processes_do_not_write_the_same(tmp_path):
    script = (
        "import sys; from rekindle.io.safety.files import output\n"
        "with output(sys.argv[1]):\n    print('mine', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "mine\n"
        since = rf"a is being written by process {other.pid} on .+, since 20\d\d-.+\. Wait .* choose another output"
        for write in (output, new_folder):
            with pytest.raises(OutputInUse, match=since), write(tmp_path / "a"):
                pass
        with output(tmp_path / "b"):
            pass
        other.kill()
        other.wait()
        assert len(names(tmp_path)) == 1  # the lock file of the dead is no obstacle
        with output(tmp_path / "a"), new_folder(tmp_path / "a"):
            pass
    assert names(tmp_path) == ["a"]


def test_a_lock_is_for_one_thread(tmp_path):
    with output(tmp_path / "a"), ThreadPoolExecutor(1) as pool:
        with pytest.raises(OutputInUse, match=f"process {os.getpid()}"):
            pool.submit(output(tmp_path / "a").__enter__).result()
        with output(tmp_path / "a"):
            pass


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
    """Its last holder removes the file, perhaps between our opening and our locking it."""
    path, usual, asked = tmp_path / "out", os.open, []

    def removed_first(name, *arguments, **settings):
        file = usual(name, *arguments, **settings)
        if str(name) == str(lock.lock_file(path)):
            asked.append(name)
            if len(asked) == 1:
                os.unlink(name)
        return file

    monkeypatch.setattr("os.open", removed_first)
    with lock.locked(path):
        assert lock.lock_file(path).exists()
    assert len(asked) > 1


def test_where_nothing_may_be_written_beside_a_folder_it_is_locked_inside(tmp_path, monkeypatch):
    path, usual = tmp_path / "out", os.open
    path.mkdir()

    def refuse(name, *arguments, **settings):
        if os.path.dirname(name) == str(tmp_path):
            raise PermissionError(13, "no", str(name))
        return usual(name, *arguments, **settings)

    monkeypatch.setattr("os.open", refuse)
    with lock.locked(path):
        assert [entry.name for entry in path.iterdir()] == [lock.lock_file(path).name]
    assert list(path.iterdir()) == []
    with pytest.raises(PermissionError), lock.locked(tmp_path / "file"):
        pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_without_locks_nothing_is_locked(tmp_path, monkeypatch, number):
    def unsupported(self, *_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", unsupported)
    with lock.locked(tmp_path / "out"), lock.locked(tmp_path / "out"):
        pass
    monkeypatch.setattr(lock, "fcntl", None)
    assert not lock.in_use(tmp_path)


def test_other_failures_are_told(tmp_path, monkeypatch):
    def broken(self, *_, **__):
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(filelock.FileLock, "acquire", broken)
    with pytest.raises(OSError, match="gone"), lock.locked(tmp_path / "out"):
        pass
