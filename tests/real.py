"""Where real data is, for the tests that use it. They skip, and say so, where it is absent."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def folder(variable, beside=None):
    """The folder that an environment variable names, or one that lies beside the repository."""
    path = Path(os.environ[variable]) if variable in os.environ else BESIDE / beside if beside else None
    if path is None or not path.is_dir():
        pytest.skip(f"needs real data: set {variable} to its folder", allow_module_level=True)
    return path
