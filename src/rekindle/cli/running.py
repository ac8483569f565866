"""How a command runs: loaded when it is called, stopped when the user asks, its errors told in the words of its options."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from rekindle.cli.console import errors, note
from rekindle.cli.formats import print_failure
from rekindle.errors import RekindleError

STOPPED = 130
"""Exit code of a command that was stopped."""

FAILED = 2
"""Exit code of a command that could not do its work."""

OPTIONS = {
    "attacks": "attack",
    "defences": "defence",
    "families": "family",
    "below": "suppress_below",
    "km": "merge_km",
    "to": "round_to",
    "at": "cap_at",
    "share": "sample",
    "unit": "per",
    "resolution": "h3",
    "places": "towers",
    "more_than": "fail_if_exposed",
    "above": "exposed_above",
    "release": "published",
}
"""Settings of the library that options call by other names; all others are called alike."""

OPPOSITES = {"busy_only": "all_taxis", "zeros": "keep_zeros"}
"""Settings whose option says the opposite."""


class Commands(TyperGroup):
    """The commands by name. Their overview is at hand; a command's module is loaded only when the command is called."""

    overview: Mapping[str, str] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the overview."""
        return list(self.overview)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the overview says of a command."""
        return TyperCommand(cmd_name, help=self.overview[cmd_name]) if cmd_name in self.overview else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that was called."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, known if known is None else load(str(name)), rest


def load(name: str) -> Any:
    """Load a command: a function, or a group of them, that its module calls by the same name."""
    made = getattr(importlib.import_module(f"rekindle.cli.{name}"), name)
    if not isinstance(made, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, cls=Command)(made)
        made = alone
    return typer.main.get_command(made)


def unwrap(text: str) -> str:
    """Put each paragraph on one line, to be wrapped to the width of the terminal."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))


class Command(TyperCommand):
    """A command that may be stopped, and that tells an error in one message."""

    def __init__(self, *arguments: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002
        super().__init__(*arguments, help=escape(unwrap(help or "")), **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; one that was stopped ends with 130, one whose input was at fault with 2."""
        try:
            with showing_notes():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            errors.print("Stopped. Finished files are kept; run the same command again.", soft_wrap=True)
            raise typer.Exit(STOPPED) from None
        except RekindleError as error:
            message = in_flags(error, ctx)
        except MemoryError:
            message = "There is not enough memory. Try a part of the data, coarser data, or another machine."
        except OSError as error:
            message = f"{error.filename}: {error.strerror}." if error.filename else str(error)
        errors.print("[bold red]Error:[/bold red]", end=" ", markup=True)
        errors.print(message, soft_wrap=True)
        if (form := ctx.params.get("output_format")) in ("junit", "github"):
            print_failure(form, str(ctx.command.name), message)
        raise typer.Exit(FAILED)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def showing_notes() -> Iterator[None]:
    """Show what the library logs, such as that it compiles its kernels."""
    logger, notes = logging.getLogger("rekindle"), _Notes(logging.INFO)
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)
        logger.setLevel(before)


def in_flags(said: RekindleError | str, ctx: Any) -> str:
    """What an error or another text says, with its settings as the user types them: `fail_above` as --fail-above."""
    known = {parameter.name: parameter for parameter in ctx.command.params}

    def written(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name in OPPOSITES:
            name, value = OPPOSITES[name], "True"
        parameter = known.get(name) or known.get(OPTIONS.get(name, ""))
        if parameter is None:
            return match[0]
        if parameter.param_type_name == "argument":
            return str(parameter.metavar or parameter.name).upper()
        flag = str(parameter.opts[0])
        if value == "[]":
            return f"{flag} none"
        if value in ("False", "None"):
            return str(parameter.secondary_opts[0]) if parameter.secondary_opts else f"no {flag}"
        if value in (None, "True"):
            return flag
        plain = value.replace("'", "").replace('"', "")
        return f"{flag} {shlex.quote(plain)}"

    return re.sub(r"`(\w+)(?:=([^`]*))?`", written, str(said))


def _being_handled() -> bool:
    """Whether the interrupted code is already on its way out."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let a request to end (SIGTERM) do what Ctrl-C does, and let neither be lost.

    The first request stops the work and keeps what is finished. Python drops an interrupt that arrives in a callback of C code,
    as happens while kernels are compiled, so it is repeated until it is noticed. A further request changes nothing while
    work is being put away; the third ends the process at once; files are whole or absent then, too.
    """
    asked = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if number != signal.SIGALRM:
            asked += 1
        if asked > 2:
            os._exit(STOPPED)
        if not _being_handled():
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            raise KeyboardInterrupt
        if number != signal.SIGALRM:
            os.write(2, b"Stopping. Ask a third time to stop at once.\n")

    def ignored(problem: Any) -> None:
        # Python closes a file that was being opened as the interrupt came, and warns of it.
        if not (asked and isinstance(problem.exc_value, KeyboardInterrupt | ResourceWarning)):
            hook(problem)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hook = sys.unraisablehook
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    sys.unraisablehook = ignored
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        for number, handler in before.items():
            # A process that was asked to end is on its way out: another request must not change its exit code.
            signal.signal(number, signal.SIG_IGN if asked else handler)
