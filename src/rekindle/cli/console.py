"""What the commands print: the answer to standard output; progress, notes and errors to standard error.

Both consoles take text as it is. Rich's markup is off, so that a path or a name with brackets in it is printed, not obeyed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

__all__ = ["be_quiet", "console", "errors", "note", "print_json", "say", "showing_progress", "table"]

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
def showing_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar with what is done and the time left; gives the callback that moves it."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    hidden = console.quiet or not errors.is_terminal
    with Progress(*columns, console=errors, transient=True, disable=hidden) as bars:
        bar = bars.add_task(what, total=None)

        def move(done: int, total: int | None) -> None:
            bars.update(bar, completed=done, total=total)

        yield move


def table(title: str, head: list[str], rows: list[list[str]]) -> Table:
    """A table with the first column to the left and the others to the right."""
    result = Table(title=title, title_justify="left", title_style="bold")
    for number, name in enumerate(head):
        result.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        result.add_row(*row)
    return result
