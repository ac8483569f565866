"""A short, seeded round of the fuzzer over every reader; `python -m tests.hostile.fuzz` does a long one."""

import random

import polars as pl
import pytest
from tests.hostile.fuzz import SHARES
from tests.hostile.readers import READERS, attempt, kind_of

import rekindle as rk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", READERS)
def test_every_input_is_read_or_refused(name, tmp_path):
    reader, rng = READERS[name], random.Random(name)
    kinds = [attempt(reader, content, tmp_path) for content in reader.valid()]
    assert set(kinds) == {"read"}
    for _ in range(40):
        kinds.append(attempt(reader, reader.make(rng.randbytes(rng.choice((16, 64, 256)))), tmp_path))
    assert any(kind != "read" for kind in kinds)


def test_every_reader_has_its_share():
    assert SHARES.keys() == READERS.keys()


def test_kinds_leave_names_and_numbers_out():
    assert kind_of("data row 3, column 'a b': expected a number") == kind_of(
        "data row 17, column 'c': expected a number"
    )


def parquet(tmp_path, **columns):
    path = tmp_path / "a.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**62])
def test_times_that_no_calendar_has(tmp_path, unit, value):
    """Polars panics on these when it converts them."""
    when = pl.Series([value, value], dtype=pl.Int64).cast(pl.Datetime(unit))
    path = parquet(tmp_path, datetime=when, location=["(0, 0)"] * 2, count=[1, 1])
    for read in (rk.read_counts, rk.read_release):
        with pytest.raises(rk.errors.InvalidFile, match="local clock time"):
            read(path)


def test_dates_that_no_calendar_has(tmp_path):
    path = parquet(
        tmp_path, datetime=pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date), location=["(0, 0)"], count=[1]
    )
    with pytest.raises(rk.errors.InvalidFile, match="local clock time"):
        rk.read_counts(path)


@pytest.mark.parametrize("kind", [pl.Duration("us"), pl.Time, pl.Date, pl.Binary, pl.List(pl.Int64)])
def test_names_that_are_none(tmp_path, kind):
    """Polars cannot turn these into text, or only by chance."""
    names = (
        pl.Series([b"\xff"], dtype=pl.Binary)
        if kind == pl.Binary
        else pl.Series([None], dtype=kind).fill_null(strategy="zero")
        if kind != pl.List(pl.Int64)
        else pl.Series([[1]])
    )
    path = parquet(tmp_path, location=names, x_km=[0.0], y_km=[0.0])
    with pytest.raises(rk.errors.InvalidFile):
        rk.read_locations(path)


def test_a_release_with_a_wrong_year_is_refused_at_once(tmp_path):
    """Found by fuzzing: 6024 instead of 2024 made a table of millions of withheld steps."""
    times = ["2024-03-01 00:00:00", "2024-03-01 04:00:00", "6024-03-01 08:00:00"]
    (tmp_path / "a.csv").write_text('datetime,"(0, 0)","(0, 1)"\n' + "".join(f"{time},1,2\n" for time in times))
    with pytest.raises(rk.errors.InvalidFile, match="bytes expand to"):
        rk.read_release(tmp_path / "a.csv")


def test_a_zero_below_zero_as_a_name(tmp_path):
    """Found by fuzzing: 0.0 and -0.0 are one number to Polars, but two names."""
    when = pl.Series(["2024-03-01 00:00:00"] * 2).str.to_datetime()
    path = parquet(tmp_path, datetime=when, location=[0.0, -0.0], count=[1, 1])
    places = rk.Locations([[0, 0], [1, 1]], ["0.0", "-0.0"])
    assert rk.read_counts(path, places, step="1h").values.tolist() == [[1, 1]]
