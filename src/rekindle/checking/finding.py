"""What a rule found, where, why it matters and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rekindle.frames import Frame, Library, to_frame

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From the gravest on: a person or a withheld number can be read off; it becomes easier; good to know."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of one rule.

    Attributes
    ----------
    rule
        The name of the rule, as in `ignore` and in the title of its page.
    severity
        "error", "warning" or "note".
    what
        What was found, with its numbers.
    why
        Why it matters.
    fix
        What to do about it.
    table
        The file, or "release" for data that came from no file.
    rows
        Some of the rows concerned, counted from 1 without the header; empty where it concerns the whole table.
    more
        How many further rows are concerned.
    """

    rule: str
    severity: Severity
    what: str
    why: str
    fix: str
    table: str
    rows: tuple[int, ...] = ()
    more: int = 0

    def __repr__(self) -> str:
        return f"Finding({self.severity} {self.rule}: {self.table}, {len(self.rows) + self.more:,} rows)"

    def to_json(self) -> dict[str, Any]:
        """All of it in plain values."""
        return asdict(self)


class Findings(tuple[Finding, ...]):
    """Findings, the gravest first; what comes after depends only on the tables, not on the order of the rules."""

    __slots__ = ()

    def __new__(cls, found: Sequence[Finding] = ()) -> Findings:
        """Sort them."""
        return super().__new__(cls, sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.rule)))

    def at_least(self, severity: Severity) -> Findings:
        """Those that are as grave as a severity, or graver."""
        return Findings([one for one in self if SEVERITIES.index(one.severity) <= SEVERITIES.index(severity)])

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each finding, with its fields as columns."""
        columns = {name: [getattr(one, name) for one in self] for name in Finding.__dataclass_fields__}
        return to_frame(columns | {"rows": [list(one.rows) for one in self]}, library)

    def to_json(self) -> list[dict[str, Any]]:
        """All of them in plain values."""
        return [one.to_json() for one in self]

    def __repr__(self) -> str:
        count = {severity: sum(one.severity == severity for one in self) for severity in SEVERITIES}
        return f"Findings({', '.join(f'{number} {severity}s' for severity, number in count.items())})"
