"""The family of errors. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = [
    "ContractBroken",
    "InvalidData",
    "InvalidFile",
    "InvalidSetting",
    "OutputExists",
    "OutputFailed",
    "OutputInUse",
    "RekindleError",
    "Stopped",
    "TooLarge",
]


class RekindleError(Exception):
    """Base of every error that Rekindle raises on purpose."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that the message names, each in backticks: arguments in Python, options at the command line."""
        return tuple(dict.fromkeys(re.findall(r"`(\w+)(?:=[^`]*)?`", str(self))))


class InvalidData(RekindleError, ValueError):  # noqa: N818
    """Values that break a rule of the model: a negative count, a row with another sum, a step twice."""


class InvalidFile(InvalidData):
    """A file that cannot be read as what it should be. The message begins with its path."""

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = Path(path)
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.problem)


class InvalidSetting(RekindleError, ValueError):  # noqa: N818
    """A setting or argument outside of what it may be."""


class OutputExists(RekindleError, FileExistsError):  # noqa: N818
    """The output is already there, and nothing said that it may be replaced."""


class OutputFailed(InvalidFile, OSError):  # noqa: N818
    """An output that cannot be written: a full disk, a read-only folder, a disk that is gone."""


class OutputInUse(RekindleError):  # noqa: N818
    """Another process is writing the same output."""


class TooLarge(RekindleError, MemoryError):  # noqa: N818
    """Work that would need more memory than there is."""


class Stopped(RekindleError):  # noqa: N818
    """Work was asked to stop. What was finished before is still there."""


class ContractBroken(RekindleError, AssertionError):  # noqa: N818
    """An attack or a defence that does not do what every one of them must do; see `rekindle.testing`."""
