"""Names that a spreadsheet would compute: guarded with a ' when a csv file is written, and unguarded when it is read."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl
import polars.selectors as cs

_FORMULA = r"^'*[=+\-@\t\r＝＋－＠]"
_SIGNED_NUMBER = r"^'*[+-][0-9]+(\.[0-9]+)?$"


def guard_table(table: pl.DataFrame) -> pl.DataFrame:
    """Put a ' before every text and column name that a spreadsheet would take for a formula."""
    table = _with_texts(table, _with_mark)
    table.columns = [_guarded(name) for name in table.columns]
    return table


def unguard_texts(table: pl.DataFrame) -> pl.DataFrame:
    """Remove the ' that `guard_table` put before texts."""
    return _with_texts(table, _without_mark)


def unguard_name(name: str) -> str:
    """Remove the ' that `guard_table` put before a column name."""
    return name[1:] if name.startswith("'") and _guarded(name[1:]) != name[1:] else name


def _guarded(name: str) -> str:
    """A name that spreadsheets show and do not compute: where they would, with a ' before it."""
    return f"'{name}" if re.search(_FORMULA, name) and not re.fullmatch(_SIGNED_NUMBER, name) else name


def _with_texts(table: pl.DataFrame, change: Callable[[pl.Expr], pl.Expr]) -> pl.DataFrame:
    """Change all texts. Columns get numbers meanwhile, as some names are patterns to Polars."""
    result = table.clone()
    result.columns = [str(number) for number in range(table.width)]
    names = result.select(cs.string() | cs.enum() | cs.categorical()).columns
    result = result.with_columns(change(pl.col(name).cast(pl.String)).alias(name) for name in names)
    result.columns = table.columns
    return result


def _with_mark(text: pl.Expr) -> pl.Expr:
    return pl.when(_is_formula(text)).then(pl.concat_str(pl.lit("'"), text)).otherwise(text)


def _without_mark(text: pl.Expr) -> pl.Expr:
    rest = text.str.slice(1)
    return pl.when(text.str.starts_with("'") & _is_formula(rest)).then(rest).otherwise(text)


def _is_formula(text: pl.Expr) -> pl.Expr:
    """Whether a spreadsheet would compute a text that begins so; any quotation marks before it were put there by us."""
    return text.str.contains(_FORMULA) & ~text.str.contains(_SIGNED_NUMBER)
