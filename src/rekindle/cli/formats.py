"""What pipelines read: the same cases as JUnit XML, or as annotations of GitHub Actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML file may hold, not even escaped, and no log should."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One thing that was judged or measured: a gate, a rule, a number.

    Attributes
    ----------
    name
        What it is called.
    what
        What was found; empty where there is nothing to say.
    level
        How it is shown where it does not fail.
    failed
        Whether it makes the command end with exit code 3.
    where
        The rows concerned, in words.
    file, line
        The file concerned, as the user wrote it, and the first line of it.
    """

    name: str
    what: str = ""
    level: Literal["warning", "notice"] = "notice"
    failed: bool = False
    where: str = ""
    file: Path | None = None
    line: int | None = None


def print_cases(form: Literal["junit", "github"], command: str, cases: Sequence[Case]) -> None:
    """Print cases for a program, and nothing else."""
    if form == "junit":
        print(_junit(command, cases))
        return
    for one in cases:
        if one.what:
            print(_annotation(command, one))


def print_failure(form: Literal["junit", "github"], command: str, message: str) -> None:
    """Print that the command could not do its work: neither passed nor failed."""
    if form == "junit":
        print(_junit(command, [Case(name=command, what=message)], error=True))
    else:
        print(_annotation(command, Case(name="error", what=message, failed=True)))


def _junit(command: str, cases: Sequence[Case], error: bool = False) -> str:
    failures, errors = sum(one.failed for one in cases), len(cases) if error else 0
    numbers = {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors)}
    root = ElementTree.Element("testsuites", numbers)
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"rekindle {command}"} | numbers)
    for one in cases:
        name = f"{one.name} ({one.where})" if one.where else one.name
        case = ElementTree.SubElement(suite, "testcase", classname=f"rekindle.{command}", name=_clean(name))
        if one.file is not None:
            case.set("file", _clean(str(one.file)))
        if error or one.failed:
            kind = "error" if error else "failure"
            first = _clean(one.what.partition("\n")[0])
            ElementTree.SubElement(case, kind, message=first, type=_clean(one.name)).text = _clean(one.what)
        elif one.what:
            ElementTree.SubElement(case, "system-out").text = _clean(one.what)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False)


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("�", text)


def _annotation(command: str, one: Case) -> str:
    """A workflow command; text from the data is escaped, so that it can neither end the line nor begin a command."""
    properties = {"file": one.file, "line": one.line, "title": f"rekindle {command}: {one.name}"}
    written = ",".join(
        f"{name}={_escaped(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
        if value is not None
    )
    where = f"{one.where}: " if one.where else ""
    return f"::{'error' if one.failed else one.level} {written}::{_escaped(where + one.what)}"


def _escaped(text: str) -> str:
    return _clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
