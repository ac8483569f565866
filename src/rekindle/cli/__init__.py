"""The command line: parse, call the library, show."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rekindle import __version__
from rekindle.cli.running import Commands, stopped_by_signals, unwrap

__all__ = ["app", "main"]


class Overview(Commands):
    """All commands, in the order in which one needs them."""

    overview = {  # noqa: RUF012
        "demo": "Audit a synthetic city and explain what its counts give away.",
        "prepare": "Turn raw points into a dataset.",
        "check": "Check what published tables give away by themselves.",
        "attack": "Recover everyone's trajectory from counts or flows, as an attacker would.",
        "evaluate": "Compare a recovery with the ground truth.",
        "defend": "Protect counts and write a release for publication.",
        "audit": "Find out how much a release exposes people, and what would protect them.",
        "recommend": "Find the least lossy release within limits of risk, and write it.",
        "clean": "Remove what was derived from the ground truth.",
        "reproduce": "Compute the paper's tables and figures.",
    }


app = typer.Typer(
    name="rekindle",
    cls=Overview,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=unwrap("""Audit a release of people counts before it goes out.

    Counts of people per location and time look harmless. Rekindle tries to recover every person's trajectory from them, and,
    where you have the ground truth, says how much was recovered and who is exposed. Start with: rekindle demo"""),
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"rekindle {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    with stopped_by_signals():
        # What was typed, for reports.
        app(args=arguments, obj=["rekindle", *(sys.argv[1:] if arguments is None else arguments)])
