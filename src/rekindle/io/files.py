"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rekindle.errors import InvalidFile, OutputExists

__all__ = ["new_file", "new_folder", "read_json", "write_json"]

_LARGEST_JSON = 16 * 2**20


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to; it takes its real name when the block ends well, and goes away otherwise."""
    path = Path(path)
    if not overwrite and path.exists():
        raise OutputExists(f"{path} exists already; it was left as it is. Choose another name, or allow overwriting.")
    if not path.parent.is_dir():
        raise InvalidFile(path, "its folder does not exist.")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes its real name when the block ends well, and goes away otherwise."""
    path = Path(path)
    if not overwrite and path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise OutputExists(f"{path} exists already; it was left as it is. Choose another name, or allow overwriting.")
    if path.exists() and not path.is_dir():
        raise OutputExists(f"{path} is a file, not a folder; it was left as it is.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old)
        else:
            os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def write_json(path: Path, value: dict[str, Any], *, overwrite: bool = True) -> None:
    """Write a JSON file, whole or not at all."""
    with new_file(path, overwrite=overwrite) as temporary:
        temporary.write_text(
            json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise InvalidFile(
                path, f"it has {path.stat().st_size} bytes; more than {_LARGEST_JSON} is no description."
            )
        value = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_no_constant)
    except FileNotFoundError:
        raise InvalidFile(path, "this file is missing.") from None
    except (ValueError, RecursionError, OSError) as error:
        if isinstance(error, InvalidFile):
            raise
        raise InvalidFile(path, f"it is not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise InvalidFile(path, f"it must hold one JSON object, not a {type(value).__name__}.")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
