"""A line in a notebook, and nothing anywhere else."""

import sys
from types import SimpleNamespace

import pytest

from rekindle import progress
from rekindle.progress import shown_in_notebooks


@shown_in_notebooks("Work")
def work(number, *, progress=None):
    """Work."""
    for done in range(number + 1):
        if progress is not None:
            progress(done, number)
    if not number:
        raise ValueError
    return number


@pytest.fixture
def shown(monkeypatch):
    """What a notebook's cell shows, one line after the other."""
    lines = []

    class Handle:
        def update(self, data, *, raw):
            lines.append(data["text/plain"])

    def display(data, *, raw, display_id):
        lines.append(data["text/plain"])
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return lines


def test_a_line_in_a_notebook(shown, monkeypatch):
    monkeypatch.setattr(progress, "_SHOW_SECONDS", 0)
    assert work(4) == 4
    assert shown == [
        "Work: begins.",
        "Work: 0%.",
        "Work: 25%.",
        "Work: 50%.",
        "Work: 75%.",
        "Work: 100%.",
        "Work: done.",
    ]


def test_it_is_not_written_too_often(shown):
    work(1000)
    assert len(shown) < 10


def test_time_left(shown, monkeypatch):
    now = iter(range(0, 100_000, 600))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    work(2)
    assert shown[2:4] == ["Work: 50%, about 20 min left.", "Work: 100%."]


def test_the_users_own_progress_comes_first(shown):
    seen = []
    work(2, progress=lambda done, total: seen.append(done))
    assert seen == [0, 1, 2]
    assert shown == []


def test_failed_work_is_not_done(shown):
    with pytest.raises(ValueError):
        work(0)
    assert shown == ["Work: begins."]


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["no shell", "a terminal"])
def test_nothing_elsewhere(shown, monkeypatch, shell, capsys):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert work(3) == 3
    monkeypatch.delitem(sys.modules, "IPython")
    assert work(3) == 3
    assert shown == []
    assert capsys.readouterr() == ("", "")


def test_an_audit_has_it_and_keeps_its_signature():
    import inspect

    import rekindle as rk

    assert rk.audit.__wrapped__
    assert "attacks" in inspect.signature(rk.audit).parameters
