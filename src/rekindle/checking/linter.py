"""Check tables by every rule."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rekindle.checking.finding import Findings
from rekindle.checking.rules import RULES, Settings, Subject
from rekindle.checking.table import Table, read_published_table, to_table
from rekindle.checks import choice
from rekindle.errors import InvalidFile, InvalidSetting
from rekindle.model import Counts, Flows, Release

Checkable = Table | Release | Counts | Flows | str | Path


def check(
    *tables: Checkable, ignore: Collection[str] = (), settings: Settings | None = None, value: str | None = None
) -> Findings:
    """Check what a release gives away by itself: no truth is needed, and no attack is run.

    Parameters
    ----------
    tables
        Releases, counts, or files of published tables (csv or parquet; counts or flows, long or wide). Several are checked
        together: one may give away what another withholds.
    ignore
        Names of rules to leave out.
    settings
        What the rules are told.
    value
        The column of numbers, where files call it by an unusual name.

    Examples
    --------
    >>> import rekindle as rk
    >>> counts = rk.SyntheticCity(people=20, days=2).trajectories().counts()
    >>> [finding.rule for finding in rk.check(counts).at_least("error")]
    ['alone-at-night', 'readable-path', 'small-numbers']
    """
    if not tables:
        raise InvalidSetting("There is nothing to check; give at least one release or file.")
    for name in ignore:
        choice("ignore", name, tuple(RULES))
    read = tuple(part for one in tables for part in _table(one, value).by_window())
    subject = Subject(read, settings or Settings())
    return Findings([found for name, rule in RULES.items() if name not in ignore for found in rule(subject)])


def _table(data: Checkable, value: str | None) -> Table:
    if isinstance(data, Table):
        return data
    if isinstance(data, (Release, Counts, Flows)):
        return to_table(data)
    if isinstance(data, (str, Path)):
        return read_published_table(data, value=value)
    raise InvalidSetting(f"A {type(data).__name__} cannot be checked; give a release, counts, or a file.")


def read_config(start: Path) -> dict[str, Any]:
    """Read `[tool.rekindle.check]` from the first pyproject.toml in a folder or above it; empty where there is none.

    Keys are `ignore` and the names of `Settings`, with hyphens or underscores.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return _config(file)
    return {}


def _config(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise InvalidFile(file, f"it is not valid TOML ({error}).") from None
    for name in ("tool", "rekindle", "check"):
        found = found.get(name, {})
        if not isinstance(found, dict):
            raise InvalidFile(file, f"{name!r} of [tool.rekindle.check] is {found!r:.80}, not a table.")
    found = {key.replace("-", "_"): value for key, value in found.items()}
    unknown = set(found) - {"ignore", *Settings.__dataclass_fields__}
    if unknown:
        raise InvalidFile(file, f"[tool.rekindle.check] has an unknown key {sorted(unknown)[0]!r}.")
    ignored = found.get("ignore", [])
    if not isinstance(ignored, list) or not all(isinstance(one, str) for one in ignored):
        raise InvalidFile(file, f"'ignore' of [tool.rekindle.check] is {ignored!r:.80}, not a list of rules.")
    return found
