"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rekindle.errors import InvalidData, InvalidFile, OutputExists

__all__ = ["check_new_folder", "new_file", "new_folder", "read_json", "remove_leftovers", "write_json"]

LEFTOVER = ".unfinished"
"""What the names of temporary files and folders contain."""

_LARGEST_JSON = 16 * 2**20


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to; it takes its real name when the block ends well, and goes away otherwise."""
    path = Path(path)
    if not overwrite and path.exists():
        raise OutputExists(f"{path} exists already; it was left as it is. Choose another name, or allow overwriting.")
    if not path.parent.is_dir():
        raise InvalidFile(path, "its folder does not exist.")
    temporary = _beside(path)
    with _naming(path):
        temporary.touch(exist_ok=False)
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_new_folder(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a file, and, unless it may be overwritten, a folder with anything in it."""
    if path.exists() and not path.is_dir():
        raise OutputExists(f"{path} is a file, not a folder; it was left as it is.")
    if not overwrite and path.exists() and any(path.iterdir()):
        raise OutputExists(f"{path} exists already; it was left as it is. Choose another name, or allow overwriting.")


@contextmanager
def new_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes its real name when the block ends well, and goes away otherwise."""
    path = Path(path)
    check_new_folder(path, overwrite=overwrite)
    temporary = _beside(path)
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        if path.exists():
            old = _beside(path)
            os.replace(path, old)
            try:
                os.replace(temporary, path)
            except BaseException:
                os.replace(old, path)
                raise
            shutil.rmtree(old)
        else:
            os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A hidden name beside a file or folder. What is made there gets the usual permissions, unlike with `tempfile`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{LEFTOVER}{path.suffix}")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file that was wanted, not the temporary one, where nothing can be written."""
    try:
        yield
    except OSError as error:
        raise InvalidFile(path, f"it cannot be written ({error.strerror}).") from None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that a process which was killed left in a folder."""
    for file in folder.glob(f".*{LEFTOVER}*"):
        file.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def write_json(path: Path, value: dict[str, Any], *, overwrite: bool = True) -> None:
    """Write a JSON file, whole or not at all."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidData(f"{path} cannot be written: its content is not plain JSON values ({error}).") from None
    with new_file(path, overwrite=overwrite) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


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
    except OSError as error:
        raise InvalidFile(path, f"it cannot be opened ({error.strerror}).") from None
    except InvalidFile:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"it is not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise InvalidFile(path, f"it must hold one JSON object, not a {type(value).__name__}.")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
