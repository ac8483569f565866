"""What defences do, on numbers that can be checked by hand."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.defences import (
    PRESETS,
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    Round,
    Sample,
    Suppress,
    format_defence,
    make_defence,
    parse_defence,
)
from rekindle.model import Release

row = rk.Locations(np.column_stack([np.arange(6) + 0.5, np.full(6, 0.5)]))
counts = rk.Counts([[0, 1, 2, 3, 7, 12], [1, 0, 3, 4, 8, 9]], row, rk.Calendar("2024-03-01", "6h"))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Suppress(below=0), "`below` is 0"),
        (lambda: Suppress(below="10"), "is '10'"),
        (lambda: Round(to=-5), "`to` is -5"),
        (lambda: Round(to=float("nan")), "is nan"),
        (lambda: Cap(at=float("inf")), "`at` is inf"),
        (lambda: CoarserSpace(km=True), "`km` is True"),
        (lambda: CoarserSpace(km=0.5)(counts), "merges none of the 6 locations"),
        (lambda: CoarserTime(step="7h"), "divide 24 hours"),
        (lambda: CoarserTime(step="8h")(counts), "multiple"),
        (lambda: CoarserTime(step="1h")(counts), "multiple"),
        (lambda: Sample(share=0), "`share` is 0"),
        (lambda: Sample(share=1.5), "`share` is 1.5"),
        (lambda: Sample(share=0.5, seed=-1), "`seed` is -1"),
        (lambda: make_defence("blur", {}), "no defence 'blur'; choose cap"),
        (lambda: make_defence("round", {"base": 5}), "no setting 'base'; it has to"),
        (lambda: make_defence("round", {}), "does not take these settings"),
        (lambda: parse_defence("round:5"), "'5' of the defence 'round' is not a setting"),
        (lambda: parse_defence("Round!"), "'Round!' is not a defence"),
        (lambda: parse_defence(""), "is not a defence"),
    ],
)
def test_refuses(make, problem):
    with pytest.raises((rk.errors.InvalidSetting, rk.errors.InvalidData), match=problem):
        make()


def test_parse():
    assert parse_defence("suppress:below=10") == Suppress(below=10)
    assert parse_defence(" suppress:below=10, zeros=false + round:to=2.5") == Chain(
        [Suppress(below=10, zeros=False), Round(to=2.5)]
    )
    assert parse_defence("coarser-time:step=1h") == CoarserTime(step="1h")
    assert parse_defence("opensafely").defences == (Suppress(below=8), Round(to=5))
    assert parse_defence("none") == Chain()
    assert parse_defence("none")(counts) == Release.of(counts)


@pytest.mark.parametrize(
    "text",
    ["suppress:below=10", "coarser-time:step=2h", "sample:share=0.5", "round:to=5 + suppress:below=2", *PRESETS],
)
def test_what_is_written_is_read_again(text):
    defence = parse_defence(text)
    assert parse_defence(format_defence(defence)) == defence
    assert format_defence(parse_defence("none")) == "none"
