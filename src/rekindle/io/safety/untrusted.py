"""Opening files that came from elsewhere: what they are and what they unfold to is checked before they are read."""

from __future__ import annotations

import gzip
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile, RekindleError

LARGEST_UNFOLDED = 2**26
"""Bytes that any file may unfold to."""
LARGEST_RATIO = 1_000
"""A file may unfold to more than that if it is no more than so many times its own size."""
LARGEST_TEXT_RATIO = 100
"""The same for text in gzip."""

MOST_COLUMNS = 50_000
"""Of a table. Each costs Polars some 5 kB, and a location needs no column of its own in long form."""
_DEFLATE_RATIO = 1_032
"""Deflate can do no more."""
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x78\x01": "zlib",
    b"\x78\x9c": "zlib",
    b"\x78\xda": "zlib",
}


def check_file(path: Path, expected: str = "file", *, within: Path | None = None) -> int:
    """Refuse what is not a plain file, such as a folder, a pipe or a device, and give its size in bytes.

    Parameters
    ----------
    path
        The file.
    expected
        What it should be, for the message.
    within
        The folder that was handed in: a link in it that leads out of it is refused.
    """
    try:
        found = path.stat()
        if within is not None and path.is_symlink() and not path.resolve().is_relative_to(within.resolve()):
            raise InvalidFile(path, "it is a link that leads out of its folder; put the file itself there.")
    except FileNotFoundError:
        raise InvalidFile(path, "this file does not exist.") from None
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a NUL in the name
        raise InvalidFile(path, f"it cannot be opened ({getattr(error, 'strerror', None) or error}).") from None
    if stat.S_ISDIR(found.st_mode):
        raise InvalidFile(path, f"this is a folder, where a {expected} was expected.")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidFile(path, f"this is a pipe, a socket or a device, where a {expected} was expected.")
    return found.st_size


def read_content(
    path: Path, expected: str = "file", *, largest: int | None = None, within: Path | None = None
) -> bytes:
    """Read a file at once, so that what is checked is what is used, even if the file changes meanwhile."""
    size = check_file(path, expected, within=within)
    if largest is not None and size > largest:
        raise InvalidFile(path, f"it has {size} bytes; more than {largest} is no {expected}.")
    try:
        # Not to hang where a pipe took its place.
        with open(
            os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb"
        ) as file:
            content = file.read(size + 1)
    except OSError as error:
        raise InvalidFile(path, f"it cannot be opened ({error.strerror}).") from None
    if content is None or len(content) != size:
        raise InvalidFile(path, "it changed while it was read; wait until it is complete.")
    return content


def files_in(folder: Path, *patterns: str, only: Callable[[Path], bool] = lambda _: True) -> list[Path]:
    """All files below a folder with such names, in order; linked folders are not entered, links that lead out refused."""
    try:
        found = {file for pattern in patterns for file in folder.rglob(pattern) if only(file) and not file.is_dir()}
    except OSError as error:
        raise InvalidFile(folder, f"it cannot be listed ({error.strerror}).") from None
    for file in found:
        check_file(file, within=folder)
    return sorted(found)


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Turn whatever a parser raises, a panic of Polars included, into an error that names the file."""
    try:
        yield
    except RekindleError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        if isinstance(error, UnicodeDecodeError) or "utf-8" in line.lower():
            raise InvalidFile(path, "it is not text in UTF-8; save it again in that encoding.") from None
        raise InvalidFile(path, f"it cannot be read as {what} ({line}).") from None


@contextmanager
def in_file(path: str | Path) -> Iterator[None]:
    """Name the file whose content breaks a rule of the model."""
    try:
        yield
    except InvalidFile:
        raise
    except InvalidData as error:
        raise InvalidFile(path, str(error)) from None


def check_unfolded(path: str | Path, unfolded: int, size: int, ratio: int = LARGEST_RATIO) -> None:
    """Refuse a file that would take far more memory than its size suggests."""
    if unfolded > max(LARGEST_UNFOLDED, ratio * size):
        raise InvalidFile(
            path,
            f"rejected: its {size} bytes expand to {unfolded}, more than {ratio} times as many. "
            "If you trust it, write it again in several files, or uncompressed.",
        )


def packed_as(head: bytes) -> str | None:
    """How a file with that beginning is compressed, of the ways that Polars would unpack by itself."""
    return next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)


def check_table(path: Path) -> bytes:
    """Refuse a csv (also gzipped) or parquet file that unfolds to too much, before it is scanned bit by bit.

    Returns
    -------
    The first line of a csv file; nothing of a parquet file.
    """
    size = check_file(path, "csv or parquet file")
    if not size:
        raise InvalidFile(path, "the file is empty.")
    with reading(path, "table"), open(path, "rb") as file:
        head = file.read(4)
        if head == b"PAR1" or path.name.lower().endswith(".parquet"):
            check_parquet(path, file)
            return b""
        kind = packed_as(head)
        if kind not in (None, "gzip"):
            raise InvalidFile(path, f"it is compressed with {kind}; unpack it, or use gzip.")
        file.seek(0)
        if kind == "gzip" and size * _DEFLATE_RATIO > LARGEST_UNFOLDED:
            _check_gzip(path, file, size)
            file.seek(0)
        with gzip.GzipFile(fileobj=file) if kind else file as text:
            header = text.readline(2**24)
            if max(map(header.count, (b",", b";", b"\t", b"|"))) >= MOST_COLUMNS:
                raise InvalidFile(
                    path, f"it has more than {MOST_COLUMNS} columns; leave out those that are not needed."
                )
            return header


def _check_gzip(path: Path, file: BinaryIO, size: int) -> None:
    unfolded, largest = 0, max(LARGEST_UNFOLDED, LARGEST_TEXT_RATIO * size)
    unpack = zlib.decompressobj(wbits=31)
    while content := unpack.unconsumed_tail or unpack.unused_data or file.read(2**20):
        if unpack.eof:
            unpack = zlib.decompressobj(wbits=31)
        unfolded += len(unpack.decompress(content, 2**24))
        if unfolded > largest:
            check_unfolded(path, unfolded, size, LARGEST_TEXT_RATIO)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip whose entries stay inside, are no links, and unfold to no more than they may."""
    size = check_file(path, "zip")
    with reading(path, "zip"), zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = PurePosixPath(entry.filename.replace("\\", "/"))
            if name.is_absolute() or ".." in name.parts or entry.filename[1:2] == ":":
                raise InvalidFile(
                    path, f"its entry {entry.filename!r} climbs out of the folder; this zip is refused."
                )
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise InvalidFile(path, f"its entry {entry.filename!r} is a link; this zip is refused.")
        # Reading an entry never gives more bytes than it declares.
        check_unfolded(path, sum(entry.file_size for entry in archive.infolist()), size)
        yield archive


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file: plain numbers and text, never objects, none larger than what is there."""
    arrays = {}
    with open_zip(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename or name in arrays:
                raise InvalidFile(path, f"its entry {entry.filename!r} is not an array, or appears twice.")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, _, dtype = read_header[version](file)
                if dtype.hasobject or dtype.kind not in "biufUS" or min(shape, default=0) < 0:
                    raise InvalidFile(path, f"its array {name!r} holds {dtype}; expected plain numbers or text.")
                if file.tell() + prod(shape) * dtype.itemsize != entry.file_size:
                    raise InvalidFile(path, f"its array {name!r} is not as long as it says.")
            with archive.open(entry) as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


class _Thrift:
    """Reads the compact form of Thrift, in which the headers of a parquet file are written, into dicts by field."""

    def __init__(self, file: BinaryIO, at: int, end: int) -> None:
        self.file, self.at, self.end = file, at, end
        file.seek(at)

    def byte(self) -> int:
        if not 0 <= self.at < self.end:
            raise ValueError("a header goes beyond its end")
        self.at += 1
        return self.file.read(1)[0]

    def varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("a number in a header is too long")

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, length: int) -> None:
        if length > self.end - self.at:
            raise ValueError("a header goes beyond its end")
        self.at = self.file.seek(self.at + length)

    def value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.number()
        if kind == 7:
            return self.skip(8)
        if kind == 8:
            return self.skip(self.varint())
        if kind in (9, 10):
            return self.list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"a header holds a value of the unknown kind {kind}")

    def list(self, depth: int) -> list[Any]:
        head = self.byte()
        size = head >> 4 if head < 0xF0 else self.varint()
        if size > self.end - self.at:
            raise ValueError("a list in a header is longer than the header")
        kind = 3 if head & 0x0F in (1, 2) else head & 0x0F
        return [self.value(kind, depth) for _ in range(size)]

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > 16:
            raise ValueError("a header is nested too deep")
        fields: dict[int, Any] = {}
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.number()
            fields[field] = self.value(head & 0x0F, depth)
        return fields


def check_parquet(path: Path, file: BinaryIO) -> None:
    """Refuse a parquet file whose pages declare more than the file can be trusted to hold.

    Polars allocates what the headers of the pages declare, so that these are added up first. By hand: libraries that read
    the footer believe it, and none lists the pages. The file is not mapped into memory: the headers are everywhere in it, and
    the system would count what lies around them, nearly all of it, as memory of this process.
    """
    with reading(path, "parquet"):
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(4)
        file.seek(max(size - 8, 0))
        tail = file.read(8)
        if size < 12 or head != b"PAR1" or tail[4:] != b"PAR1":
            raise ValueError("it does not begin and end as parquet does; was it cut off?")
        length = int.from_bytes(tail[:4], "little")
        if length > size - 12:
            raise ValueError(f"its footer of {length} bytes is longer than the file")
        footer = _Thrift(file, size - 8 - length, size - 8).struct()
        unfolded = 0
        for group in footer[4]:
            if len(group[1]) > MOST_COLUMNS:
                raise InvalidFile(path, f"it has {len(group[1])} columns; more than {MOST_COLUMNS} are not read.")
            for chunk in group[1]:
                meta = chunk[3]
                first = min(meta[9], meta.get(11) or meta[9])
                unfolded += _unfolded_pages(file, size, first, first + meta[7]) + 16 * max(group[3], 0)
        check_unfolded(path, max(unfolded, 16 * footer[3]), size)


def _unfolded_pages(file: BinaryIO, size: int, at: int, end: int) -> int:
    """Bytes that the pages of a column unfold to by their headers: unpacked, and then 16 for each value."""
    if not 4 <= at <= end <= size:
        raise ValueError("a column lies outside of the file")
    unfolded = 0
    while at < end:
        header = _Thrift(file, at, end)
        page = header.struct()
        values = [page[kind][1] for kind in (5, 7, 8) if kind in page]
        if page[2] < 0 or page[3] < 0 or min(values, default=0) < 0:
            raise ValueError("a page has a negative size")
        unfolded += page[2] + 16 * sum(values)
        at = header.at + page[3]
    return unfolded
