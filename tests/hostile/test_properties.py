"""Whatever is written is read back equal, or refused before it is written; whatever is read is read or refused."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hostile.readers import READERS, TEXTS, attempt

import rekindle as rk
from rekindle.attacks.saving import SavedRun, read_run, write_run
from rekindle.io.safety.files import read_json, write_json
from rekindle.io.tables.locations import write_locations
from rekindle.io.tables.release import write_release
from rekindle.io.tables.trajectories import read_trajectories, write_trajectories

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
"""Any name, of which some are formulas, patterns, or have quotation marks, separators or ends of lines in them."""


@st.composite
def crowds(draw):
    """A few people with any names in places with any names."""
    places = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    finite = st.floats(-5e4, 5e4, allow_subnormal=False)
    xy = draw(st.lists(st.tuples(finite, finite), min_size=len(places), max_size=len(places)))
    cells = draw(
        st.lists(
            st.lists(st.integers(0, len(places) - 1), min_size=3, max_size=3),
            min_size=len(names),
            max_size=len(names),
        )
    )
    return rk.Trajectories(cells, rk.Locations(xy, places), rk.Calendar("2024-03-01", "1h", 3), names)


def written(write, read, suffix: str):
    """Write to a file and read it; None where one of our errors refuses to write it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        try:
            write(path)
        except rk.errors.RekindleError:
            return None
        return read(path)


def clash(locations: rk.Locations) -> bool:
    """Whether places have names that are columns."""
    return "datetime" in locations.ids or {"location", "count"} <= set(locations.ids)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
class TestRoundTrips:
    @QUICK
    @given(truth=crowds(), form=st.sampled_from(["long", "wide"]))
    def test_counts(self, suffix, truth, form):
        counts = truth.counts()
        found = written(
            lambda path: rk.write_counts(path, counts, form=form),
            lambda path: rk.read_counts(path, truth.locations),
            suffix,
        )
        assert found == counts or (found is None and clash(truth.locations))

    @QUICK
    @given(truth=crowds(), stayers=st.booleans())
    def test_flows(self, suffix, truth, stayers):
        flows = truth.flows(stayers=stayers)
        found = written(
            lambda path: rk.write_flows(path, flows),
            lambda path: rk.read_flows(path, truth.locations),
            suffix,
        )
        assert found.first_difference(flows) is None
        assert (found.calendar, found.stayers) == (flows.calendar, stayers)

    @QUICK
    @given(truth=crowds(), form=st.sampled_from(["long", "wide"]), below=st.integers(1, 3))
    def test_releases(self, suffix, truth, form, below):
        values = np.where(truth.counts().values < below, np.nan, truth.counts().values - 0.5)
        values[0, 0] = -0.0
        release = rk.Release(values, truth.locations, truth.calendar)
        found = written(
            lambda path: write_release(path, release, form=form),
            lambda path: rk.read_release(path, truth.locations),
            suffix,
        )
        if found is None:
            assert clash(truth.locations)
        else:
            assert found.calendar == release.calendar
            assert np.array_equal(found.values, release.values, equal_nan=True)

    @QUICK
    @given(truth=crowds())
    def test_locations(self, suffix, truth):
        found = written(lambda path: write_locations(path, truth.locations), rk.read_locations, suffix)
        assert found == truth.locations

    @QUICK
    @given(truth=crowds())
    def test_trajectories(self, suffix, truth):
        found = written(
            lambda path: write_trajectories(path, truth),
            lambda path: read_trajectories(path, truth.locations, truth.calendar),
            suffix,
        )
        assert found == truth


@QUICK
@given(truth=crowds(), source=NAMES)
def test_datasets(truth, source):
    found = written(
        lambda path: rk.write_dataset(path, counts=truth.counts(), truth=truth, info={"source": source}),
        rk.read_dataset,
        "",
    )
    assert (found.counts, found.truth, found.info) == (truth.counts(), truth, {"source": source})


@QUICK
@given(truth=crowds())
def test_saved_runs(truth):
    run = SavedRun("Baseline", {}, truth.locations, truth.calendar, truth.people, {"cells": np.asarray(truth.cells)})
    found = written(lambda path: write_run(path, run), read_run, ".npz")
    # NumPy drops zeros at the end of a text.
    if not any(name.endswith("\0") for name in truth.locations.ids):
        assert found.locations == run.locations
    assert np.array_equal(found.arrays["cells"], truth.cells)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(value=st.dictionaries(NAMES, PLAIN, max_size=4))
def test_descriptions(value):
    assert written(lambda path: write_json(path, value), read_json, ".json") == value


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"a": "\\ud800"}', "half of a character"),
        ('{"\\udfff": 1}', "half of a character"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": -1e999}', "too large"),
        ("[1]", "one JSON object"),
        ('{"a": 1} x', "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_descriptions_that_are_refused(tmp_path, text, word):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(rk.errors.InvalidFile, match=word):
        read_json(tmp_path / "a.json")


def test_descriptions_that_are_read(tmp_path):
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": "\\ud83d\\ude00",\r\n"b": -0.0}\r\n')
    assert read_json(tmp_path / "a.json") == {"a": "😀", "b": 0.0}
    (tmp_path / "a.json").write_bytes(json.dumps({"a": "é"}).encode("utf-16"))
    with pytest.raises(rk.errors.InvalidFile, match="not valid JSON"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_refused(name):
    """By hypothesis: bytes that choose a change of a valid file, a file of hostile values, or are the file itself."""
    reader = READERS[name]

    @settings(QUICK, max_examples=15)
    @given(data=st.binary(max_size=256))
    def check(data):
        with tempfile.TemporaryDirectory() as folder:
            kind = attempt(reader, reader.make(data), Path(folder))
            assert kind == "read" or kind.startswith("Invalid")

    check()
