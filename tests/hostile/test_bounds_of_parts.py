"""What is installed lies within the bounds that pyproject.toml states."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
OPTIONAL = [
    Requirement(text)
    for extra in ("spark", "h3", "dp", "cluster", "fuzz")
    for text in PROJECT["optional-dependencies"][extra]
]


@pytest.mark.parametrize("part", NEEDED + OPTIONAL, ids=str)
def test_parts_are_bounded_on_both_sides(part):
    assert {bound.operator for bound in part.specifier} == {">=", "<"}


@pytest.mark.parametrize("part", NEEDED + OPTIONAL, ids=str)
def test_what_is_installed_is_within_the_bounds(part):
    try:
        installed = version(part.name)
    except PackageNotFoundError:
        assert part not in NEEDED
        pytest.skip(f"{part.name} is not installed")
    assert part.specifier.contains(installed, prereleases=True)
