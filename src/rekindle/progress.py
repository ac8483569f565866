"""Progress: how long work says how far it is."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

Progress = Callable[[int, int | None], None]
"""Called as ``progress(done, total)``; `total` is None where it is not known."""

Given = ParamSpec("Given")
Result = TypeVar("Result")

_SHOW_SECONDS = 0.5
"""How often at most a line is shown again."""


_WHOLE = 1_000_000
"""What is counted where work has parts that count differently."""


def within(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """The progress of a part of some work, which is the share of it from `begin` to `end`."""
    if progress is None or (begin, end) == (0.0, 1.0):
        return progress

    def part(done: int, total: int | None) -> None:
        share = done / total if total else 0.0
        progress(round(_WHOLE * (begin + (end - begin) * share)), _WHOLE)

    return part


def shown_in_notebooks(what: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a long function show a line below its cell of a notebook, unless it is given a `progress`.

    Only in a notebook: there nobody sees a log, and a cell that says nothing looks as if it hung. Everywhere else the library
    shows nothing by itself.
    """

    def decorate(work: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(work)
        def showing(*arguments: Given.args, **settings: Given.kwargs) -> Result:
            cell = _cell() if settings.get("progress") is None else None
            if cell is None:
                return work(*arguments, **settings)
            line = _Line(what, cell)
            settings["progress"] = line.show
            result = work(*arguments, **settings)
            line.write("done.")
            return result

        return showing

    return decorate


class _Line:
    """One line of text that is written again and again."""

    def __init__(self, what: str, display: Any) -> None:
        self._what = what
        self._begin = self._shown = time.monotonic()
        self._handle = display(self._text("begins."), raw=True, display_id=True)

    def show(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if not total or now - self._shown < _SHOW_SECONDS:
            return
        self._shown = now
        left = (now - self._begin) * (total - done) / done if done else 0.0
        about = f", about {duration(left)} left" if left >= 1 else ""
        self.write(f"{done / total:.0%}{about}.")

    def write(self, text: str) -> None:
        self._handle.update(self._text(text), raw=True)

    def _text(self, text: str) -> dict[str, str]:
        return {"text/plain": f"{self._what}: {text}"}


def duration(seconds: float) -> str:
    """A time in as many digits as an estimate deserves."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _cell() -> Any:
    """IPython's `display`, where the code runs in a notebook; None elsewhere, also in IPython at a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return import_module("IPython.display").display if hasattr(shell, "kernel") else None
