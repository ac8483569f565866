"""Commands, called as a user types them."""

import contextlib
import io
import re
from dataclasses import dataclass

import pytest

from rekindle.cli import main


@dataclass
class Called:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def run(*arguments):
    """Run a command in this process; gives its exit code and leaves what it printed to `capsys`."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code or 0


def call(*arguments):
    """Run a command in this process and keep what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(*arguments)
    return Called(code, out.getvalue(), err.getvalue())


def plain(text):
    """A text without colours, frames and line breaks."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", re.sub(r"\x1b\[[0-9;]*m", "", text)).split())
