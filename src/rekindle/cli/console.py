"""What the commands print: the answer to standard output; progress, notes and errors to standard error.

Both consoles take text as it is. Rich's markup is off, so that a path or a name with brackets in it is printed, not obeyed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from rekindle.progress import duration

console = Console(markup=False, emoji=False, highlight=False)
errors = Console(stderr=True, markup=False, emoji=False, highlight=False)


def be_quiet(quiet: bool) -> None:
    """Print only errors and JSON from now on, or everything."""
    console.quiet = quiet


def say(*parts: str | tuple[str, str]) -> None:
    """Print a line of the answer, unbroken; a part may come with its style."""
    console.print(Text.assemble(*parts), soft_wrap=True)


def note(text: str) -> None:
    """Tell the user something that is not the answer."""
    if not console.quiet:
        errors.print(text, soft_wrap=True)


def print_json(values: Mapping[str, Any]) -> None:
    """Print numbers as JSON, to be read by a program."""
    print(json.dumps(values, indent=1, allow_nan=False))


@contextmanager
def showing_progress(what: str, *, share: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar with what is done and the time left, or a line each minute where there is no terminal.

    Parameters
    ----------
    what
        What is being done.
    share
        Show the share that is done, not how many of how many.

    Yields
    ------
    The callback that moves it.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn() if share else MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    hidden = console.quiet or not errors.is_terminal
    began: tuple[float, int] | None = None
    said = time.monotonic()
    with Progress(*columns, console=errors, transient=True, disable=hidden) as bars:
        bar = bars.add_task(what, total=None, left="")

        def move(done: int, total: int | None) -> None:
            nonlocal began, said
            now = time.monotonic()
            began = began or (now, done)  # what was there before says nothing of the speed
            left = ""
            if total and done - began[1] > SOME * total and now > began[0]:
                left = f"about {duration((total - done) * (now - began[0]) / (done - began[1]))} left"
            bars.update(bar, completed=done, total=total, left=left)
            if hidden and now >= said + LINE_SECONDS:
                said = now
                how_far = (
                    f"{done / total:.0%}" if share and total else f"{done:,}" + (f" of {total:,}" if total else "")
                )
                note(f"{what}: {how_far} done{', ' * bool(left)}{left}.")

        yield move


SOME = 0.02
"""The share of the work after which it can be said how long the rest takes."""

LINE_SECONDS = 60
"""How often a line says how far the work is, where there is no terminal."""


def table(title: str, head: list[str], rows: list[list[str]]) -> Table:
    """A table with the first column to the left and the others to the right."""
    result = Table(title=title, title_justify="left", title_style="bold")
    for number, name in enumerate(head):
        result.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        result.add_row(*row)
    return result
