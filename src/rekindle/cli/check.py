"""`rekindle check`: what published tables give away by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rekindle.checking import RULES, Settings
from rekindle.checking import check as check_tables
from rekindle.checking.finding import Finding, Findings, Severity
from rekindle.checking.linter import read_config
from rekindle.cli.console import print_json, say
from rekindle.cli.formats import Case, print_cases
from rekindle.cli.options import GateFormat, Quiet
from rekindle.io.dataset import published_in

FOUND = 3
"""Exit code where something was found that is as grave as --fail-on says."""
COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def check(
    release: Annotated[
        list[Path],
        typer.Argument(
            help="Published tables (CSV or Parquet; counts or flows), or dataset folders. Several are checked together."
        ),
    ],
    ignore: Annotated[list[str] | None, typer.Option(help="A rule to skip; may be repeated.")] = None,
    withheld_below: Annotated[
        float | None, typer.Option(help="The publisher's threshold: withheld numbers lie below it.")
    ] = None,
    narrow: Annotated[
        float | None,
        typer.Option(help="Report withheld numbers whose limits are at most this far apart. Default: 2."),
    ] = None,
    mostly_empty: Annotated[
        float | None, typer.Option(help="Share of steps at which an isolated location is empty. Default: 0.95.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(help="Column of numbers, if it is not called count, value, trips or the like.")
    ] = None,
    fail_on: Annotated[
        Severity, typer.Option(help=f"Exit with {FOUND} if a finding is at least this severe.")
    ] = "error",
    output_format: GateFormat = "text",
    quiet: Quiet = False,
) -> None:
    """Check what published tables give away by themselves.

    Needs no ground truth and runs no attack, so it takes seconds. Settings can also be given in pyproject.toml, under
    [tool.rekindle.check].
    """
    config = read_config(Path.cwd())
    ignored = [*config.pop("ignore", []), *(ignore or [])]
    given = {"withheld_below": withheld_below, "narrow": narrow, "mostly_empty": mostly_empty}
    settings = Settings(**config | {name: number for name, number in given.items() if number is not None})
    tables = [table for path in release for table in published_in(path)]
    found = check_tables(*tables, ignore=ignored, settings=settings, value=value)
    if output_format == "json":
        print_json({"rules": [name for name in RULES if name not in ignored], "findings": found.to_json()})
    elif output_format != "text":
        print_cases(
            output_format, "check", _cases(found, fail_on, [name for name in RULES if name not in ignored], tables)
        )
    else:
        for one in found:
            _show(one)
        say(_summary(len(found), len(tables)))
    if found.at_least(fail_on):
        raise typer.Exit(FOUND)


def _cases(found: Findings, fail_on: Severity, rules: list[str], tables: list[Path]) -> list[Case]:
    """One for each finding, and one for each rule that found nothing."""
    fails = found.at_least(fail_on)
    files = {path.name: path for path in tables}
    cases = []
    for one in found:
        file = files.get(one.table)
        cases.append(
            Case(
                name=one.rule,
                what=f"{one.what}\n{one.why}\n{one.fix}",
                level="notice" if one.severity == "note" else "warning",
                failed=one in fails,
                where=_where(one),
                file=file,
                # Rows are counted without the header.
                line=one.rows[0] + 1 if one.rows and file is not None and file.suffix == ".csv" else None,
            )
        )
    return cases + [Case(name=rule) for rule in rules if rule not in {one.rule for one in found}]


def _where(one: Finding) -> str:
    if not one.rows:
        return one.table
    more = f" and {one.more:,} more" if one.more else ""
    return f"{one.table}, row{'s' if len(one.rows) > 1 else ''} {', '.join(map(str, one.rows))}{more}"


def _show(one: Finding) -> None:
    say(f"{_where(one)}: ", (one.severity, COLOURS[one.severity]), f" {one.rule}: {one.what}")
    say(f"    {one.why}")
    say(f"    {one.fix}\n")


def _summary(findings: int, tables: int) -> str:
    checked = f"{tables} table{'s' if tables > 1 else ''} checked"
    if not findings:
        return f"{checked}, nothing found. That does not make a release safe: run rekindle audit."
    return f"{checked}, {findings} finding{'s' if findings > 1 else ''}. To see what attacks recover, run rekindle audit."
