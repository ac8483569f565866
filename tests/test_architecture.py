"""Data flows in one direction: rooms import only what docs/architecture.md says they may."""

import ast
import re
from pathlib import Path

import pytest

import rekindle

ROOT = Path(rekindle.__file__).parent
PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
EVERYWHERE = {"errors", "checks", "progress", "memory", "frames"}


def table():
    """What each room may import, by the table of the page."""
    for left, right in re.findall(r"^\| ([^|]*) \| ?([^|]*) ?\|$", PAGE.read_text(), re.M):
        for room in re.findall(r"`(\w+)`", left):
            yield room, set(re.findall(r"`(\w+)`", right))


ALLOWED = dict(table())


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".")[1] for name in names if name.startswith("rekindle."))


def test_every_room_is_in_the_table():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert ALLOWED.keys() == rooms - {"cli"}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_what_it_may(room):
    found = {name for path in (ROOT / room).rglob("*.py") for name in imports(path)} - {room} - EVERYWHERE
    assert found <= ALLOWED[room]
    assert ALLOWED[room] <= found, "the table allows what is not needed"
