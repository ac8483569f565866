"""What the commands share: reading what they are given, showing progress, printing tables."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from rekindle.attacks import ATTACKS, Attack
from rekindle.errors import InvalidFile, InvalidSetting, OutputExists
from rekindle.evaluation import Metric, Spread
from rekindle.io import read_counts, read_dataset
from rekindle.model import Dataset

__all__ = [
    "STOPPED",
    "check_output",
    "console",
    "errors",
    "label",
    "make_attack",
    "parse_time",
    "read_input",
    "short",
    "showing_progress",
    "stopped_by_signals",
    "table",
]

STOPPED = 130
"""Exit code of a command that was stopped."""

console = Console()
errors = Console(stderr=True)


def read_input(
    path: Path,
    locations: Path | None = None,
    step: str | None = None,
    cell_km: float = 1.0,
    *,
    truth: bool = True,
) -> Dataset:
    """Read a dataset folder, with its truth or without, or a table of counts."""
    if path.is_dir():
        return read_dataset(path, truth=truth)
    return Dataset(read_counts(path, locations, step=step, cell_km=cell_km))


def parse_time(text: str | None, option: str) -> datetime | None:
    """Read the value of --from or --to."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSetting(
            f"{option} is {text!r}; write a date such as 2014-05-03, or with a time 2014-05-03T00:00."
        ) from None


def check_output(path: Path | None, endings: tuple[str, ...], *, overwrite: bool) -> None:
    """Refuse a file that cannot be written at the end, before the work begins."""
    if path is None:
        return
    if path.suffix not in endings:
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use {' or '.join(endings)}.")
    if not path.parent.is_dir():
        raise InvalidFile(path, "its folder does not exist.")
    if path.exists() and not overwrite:
        raise OutputExists(f"{path} exists already; it was left as it is. Choose another name.")


def make_attack(name: str, settings: dict[str, Any]) -> Attack:
    """Build an attack by its name, or by package:Class for one's own."""
    kind: Any
    if name in ATTACKS:
        kind = ATTACKS[name]
    elif ":" in name:
        module, _, attribute = name.partition(":")
        sys.path.insert(0, os.getcwd())
        try:
            kind = getattr(importlib.import_module(module), attribute)
        except Exception as error:  # the module is someone's own: it may raise anything
            raise InvalidSetting(f"The attack {name!r} cannot be loaded ({type(error).__name__}: {error}).") from None
        finally:
            sys.path.remove(os.getcwd())
        if not (isinstance(kind, type) and issubclass(kind, Attack)):
            raise InvalidSetting(f"{name!r} is not an attack: it must be a subclass of rekindle.Attack.")
    else:
        raise InvalidSetting(
            f"There is no attack {name!r}; choose {', '.join(ATTACKS)}, or package:Class for your own."
        )
    try:
        attack: Attack = kind(**settings)
    except TypeError as error:
        raise InvalidSetting(f"The attack {name!r} does not take these settings: {error}.") from None
    return attack


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let a request to end (SIGTERM) do what Ctrl-C does.

    The first request stops the work and keeps what is finished. The second changes nothing: that takes a moment. The third
    ends the process at once; files are whole or absent then, too.
    """
    asked = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise KeyboardInterrupt
        if asked > 2:
            os._exit(STOPPED)
        os.write(2, b"Stopping; a third time stops at once.\n")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # A process that was asked to end is on its way out: another request must not change its exit code.
            signal.signal(number, signal.SIG_IGN if asked else handler)


@contextmanager
def showing_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar with what is done and the time left; gives the callback that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bars:
        bar = bars.add_task(what, total=None)

        def move(done: int, total: int | None) -> None:
            bars.update(bar, completed=done, total=total)

        yield move


def label(metric: Metric) -> str:
    """The name of a metric, with its unit."""
    return f"{metric.name.removesuffix('_' + metric.unit).replace('_', ' ')} ({metric.unit})"


def short(value: float | Spread) -> str:
    """A number in as many digits as one can use."""
    if isinstance(value, Spread):
        return f"{short(value.mean)} ± {short(value.sd)}"
    return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"


def table(title: str, head: list[str], rows: list[list[str]]) -> Table:
    """A table with the first column to the left and the others to the right."""
    result = Table(title=title, title_justify="left", title_style="bold")
    for number, name in enumerate(head):
        result.add_column(name, justify="right" if number else "left")
    for row in rows:
        result.add_row(*row)
    return result
