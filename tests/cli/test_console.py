"""How a command shows how far it is."""

import pytest

from rekindle.cli import console


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on when it is told to."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    found = Clock()
    monkeypatch.setattr(console, "time", found)
    return found


def test_a_line_a_minute_where_there_is_no_terminal(clock, capsys):
    with console.showing_progress("Audit", share=True) as move:
        for second in range(0, 301, 10):
            clock.now = float(second)
            move(1000 + 10 * second, 7000)  # the first thousand was there before
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "Audit: 23% done, about 9 min left.",
        "Audit: 31% done, about 8 min left.",
        "Audit: 40% done, about 7 min left.",
        "Audit: 49% done, about 6 min left.",
        "Audit: 57% done, about 5 min left.",
    ]


def test_days_are_counted(clock, capsys):
    with console.showing_progress("Days recovered") as move:
        for day in range(3):
            clock.now = 61.0 * day
            move(day, 3)
    assert capsys.readouterr().err.splitlines() == [
        "Days recovered: 1 of 3 done, about 2 min left.",
        "Days recovered: 2 of 3 done, about 1 min left.",
    ]


def test_quiet_is_quiet(clock, capsys):
    console.be_quiet(True)
    try:
        with console.showing_progress("Audit") as move:
            move(0, 2)
            clock.now = 100.0
            move(1, 2)
    finally:
        console.be_quiet(False)
    assert capsys.readouterr().err == ""
