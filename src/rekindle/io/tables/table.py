"""Tables as csv and parquet files: read with suspicion, written whole or not at all."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from rekindle.errors import InvalidFile
from rekindle.io.safety.files import new_file
from rekindle.io.safety.untrusted import MOST_COLUMNS, check_parquet, files_in, packed_as, read_content, reading
from rekindle.io.tables.spreadsheet import guard_table, unguard_name, unguard_texts

ROWS_AT_ONCE = 2**21
"""Of trajectories: they take hundreds of MB as a table, and there may be hundreds of times as many."""


def separator_of(header: bytes) -> str:
    """What separates the columns of a csv file: the first comma, semicolon, tab or bar of its first line outside of quotes.

    Not the most frequent one: later columns may be named ``(0, 1)`` or ``a|b``.
    """
    found = re.search(rb"[,;\t|]", re.sub(rb'"[^"]*("|$)', b"", header))
    return found[0].decode() if found else ","


def read_table(path: str | Path, *, within: Path | None = None) -> pl.DataFrame:
    """Read a csv (every column as text) or parquet file, told apart by its first bytes, not only by its name.

    Parameters
    ----------
    path
        The file; or a folder of parquet files that are parts of one table, as Spark writes it.
    within
        The folder that was handed in, where the file is part of one.
    """
    path = Path(path)
    divided = os.path.isdir(path) and not (path / "dataset.json").exists()  # unlike Path.is_dir, this takes any name
    parts = files_in(path, "*.parquet") if divided else []
    if parts:
        return pl.concat(_alike((piece for file in parts for piece in read_pieces(file, within=within)), path))
    return next(read_pieces(path, within=within, rows=sys.maxsize))


def read_pieces(path: str | Path, *, within: Path | None = None, rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Read a table as `read_table` does, of a parquet file so many rows at a time: whole, it takes many times its file."""
    path, rows = Path(path), rows or ROWS_AT_ONCE
    content = read_content(path, "csv or parquet file", within=within)
    if not content:
        raise InvalidFile(path, "the file is empty.")
    parquet = content.startswith(b"PAR1")
    if parquet != (path.suffix == ".parquet"):
        found = "a parquet file" if parquet else "not a parquet file"
        raise InvalidFile(path, f"the content is {found}, but the name ends in {path.suffix!r}.")
    if parquet:
        check_parquet(path, io.BytesIO(content))
        with reading(path, "parquet"):
            height = int(pl.scan_parquet(content).select(pl.len()).collect().item())
    else:
        table = _read_csv(path, content)
        height = table.height
    if not height:
        raise InvalidFile(path, "it has no rows.")
    if not parquet:
        yield table
        return
    for first in range(0, height, rows):
        with reading(path, "parquet"):
            table = pl.scan_parquet(content).slice(first, min(rows, height - first)).collect()
        yield table


def stored(folder: Path, name: str) -> list[Path]:
    """The files of a table of a dataset folder: ``name.parquet``, or those in a folder ``name``, in order; none."""
    file, parts = folder / f"{name}.parquet", folder / name
    if os.path.lexists(file):
        return [file]
    if not parts.is_dir():
        return []
    if not parts.resolve().is_relative_to(folder.resolve()):
        raise InvalidFile(parts, "it is a link that leads out of its folder; put the files themselves there.")
    return files_in(parts, "*.parquet")


def table_in(folder: Path, name: str) -> Path | None:
    """Where a table of a dataset folder is: its file, or the folder of its parts; None where it has none."""
    file = folder / f"{name}.parquet"
    files = stored(folder, name)
    return (file if files == [file] else folder / name) if files else None


def read_stored(folder: Path, name: str) -> tuple[Path, Iterator[pl.DataFrame]]:
    """Say where a table of a dataset folder is, and read it piece by piece, so that all of it need not fit into memory.

    Parameters
    ----------
    folder, name
        As in `stored`; there must be such a table.
    """
    files = stored(folder, name) or [folder / f"{name}.parquet"]
    path = table_in(folder, name) or files[0]
    return path, _alike((piece for file in files for piece in read_pieces(file, within=folder)), path)


def _alike(pieces: Iterator[pl.DataFrame], path: Path) -> Iterator[pl.DataFrame]:
    """Refuse pieces with other columns than the first."""
    first: pl.Schema | None = None
    for piece in pieces:
        first = piece.schema if first is None else first
        if piece.schema != first:
            raise InvalidFile(
                path, f"it cannot be read as parts of one table: they hold {first!s:.200} and {piece.schema!s:.200}."
            )
        yield piece


def _read_csv(path: Path, content: bytes) -> pl.DataFrame:
    if kind := packed_as(content):
        raise InvalidFile(path, f"it is compressed with {kind}; unpack it first.")
    separator = separator_of(content.partition(b"\n")[0])
    with reading(path, "csv"):
        # Polars leaves doubled quotation marks in the header as they are, and renames a column that is there twice.
        lines = csv.reader(
            io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=""), delimiter=separator
        )
        columns = [unguard_name(name) for name in next((line for line in lines if line), [])]
        if len(columns) > MOST_COLUMNS:
            raise InvalidFile(
                path, f"it has {len(columns)} columns; more than {MOST_COLUMNS} are not read. Give the long form."
            )
        if len(set(columns)) < len(columns):
            twice = next(name for name, times in Counter(columns).items() if times > 1)
            raise InvalidFile(path, f"there are two columns {twice!r}; expected one.")
        table = pl.read_csv(content, infer_schema=False, separator=separator)
        if table.width != len(columns):
            raise InvalidFile(path, f"its header has {len(columns)} columns, its rows have {table.width}.")
        if b"'" in content:
            table = unguard_texts(table)
        table.columns = columns
        return table


def write_table(
    path: str | Path, table: pl.DataFrame | Iterator[pl.DataFrame], *, overwrite: bool = False, private: bool = False
) -> None:
    """Write a table, or its pieces as one table, to csv or parquet, whole or not at all.

    In a csv file, a name that a spreadsheet would take for a formula (it begins with =, +, - or @) gets a ' before it,
    which `read_table` takes away again.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use .csv or .parquet.")
    pieces = iter([table] if isinstance(table, pl.DataFrame) else table)
    with new_file(path, overwrite=overwrite, private=private) as temporary:
        if path.suffix == ".csv":
            with open(temporary, "wb") as file:
                for number, piece in enumerate(pieces):
                    guard_table(piece).write_csv(file, datetime_format="%Y-%m-%d %H:%M:%S", include_header=not number)
            return
        first, second = next(pieces), next(pieces, None)
        if second is None:
            first.write_parquet(temporary, statistics=False)
        else:
            chained = itertools.chain([first, second], pieces)
            register_io_source(lambda *_: chained, schema=first.schema).sink_parquet(temporary, statistics=False)
