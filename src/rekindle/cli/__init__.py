"""The command line: parse, call the library, show."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from rekindle import __version__
from rekindle.cli import prepare
from rekindle.cli.attack import attack
from rekindle.cli.audit import audit
from rekindle.cli.clean import clean
from rekindle.cli.defend import defend
from rekindle.cli.demo import demo
from rekindle.cli.evaluate import evaluate_command
from rekindle.cli.reproduce import reproduce
from rekindle.cli.shared import STOPPED, errors, stopped_by_signals
from rekindle.errors import RekindleError

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """All commands: each may be stopped."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command; where it was stopped, say so and leave with 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            errors.print("Stopped. What was whole before is still there; start the same command again.")
            raise typer.Exit(STOPPED) from None


app = typer.Typer(
    name="rekindle",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""Audit a release of people counts before it goes out.

    Counts of people per place and time look harmless. Rekindle tries to rebuild every person's path from them, and, where
    you have the truth, says how much was recovered and who is exposed. Begin with: rekindle demo""",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"rekindle {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command()(demo)
app.add_typer(prepare.app, name="prepare")
app.command()(attack)
app.command("evaluate")(evaluate_command)
app.command()(defend)
app.command()(audit)
app.command()(clean)
app.command()(reproduce)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; an error that is the input's fault becomes one message and exit code 2."""
    try:
        with stopped_by_signals():
            app(args=arguments)
    except RekindleError as error:
        message = str(error)
    except MemoryError:
        message = "There is not enough memory. Try a part of the data, coarser data, or another machine."
    except OSError as error:
        message = f"{error.filename}: {error.strerror}." if error.filename else str(error)
    else:
        return
    errors.print(f"[bold red]Error:[/bold red] {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(2)
