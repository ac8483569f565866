"""Tables of flows: what is written is read again; what is wrong is named."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.small import line, truths

import rekindle as rk

TRUTH = line([0, 1, 1, 2, 2], [0, 0, 1, 1, 1], [3, rk.AWAY, rk.AWAY, rk.AWAY, 3])
HEAD = "datetime,origin,destination,count\n"
GRID = rk.Locations([[0.5, 0.5], [1.5, 0.5]], ["(0, 0)", "(0, 1)"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(truth=truths(away=True), stayers=st.booleans())
def test_round_trips(tmp_path, truth, stayers):
    flows = truth.flows(stayers=stayers)
    if truth.steps == 1:
        with pytest.raises(rk.errors.InvalidData, match="no window"):
            rk.write_flows(tmp_path / "flows.csv", flows)
        return
    for ending in ("csv", "parquet"):
        path = tmp_path / f"flows.{ending}"
        rk.write_flows(path, flows, overwrite=True)
        found = rk.read_flows(path, truth.locations, window=truth.calendar.step)
        assert found.first_difference(flows) is None
        assert (found.calendar, found.stayers, found.locations) == (flows.calendar, stayers, truth.locations)
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth, flows=flows, overwrite=True)
    assert rk.read_dataset(tmp_path / "data").flows == (flows,)
    assert rk.read_dataset(tmp_path / "data", truth=False).flows == (flows,)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_several_windows(tmp_path, ending):
    flows = [TRUTH.flows(), TRUTH.flows("2h", stayers=False)]
    path = tmp_path / f"flows.{ending}"
    rk.write_flows(path, flows)
    with pytest.raises(rk.errors.InvalidFile, match=r"several windows \(1h, 2h\).*`window`"):
        rk.read_flows(path, TRUTH.locations)
    with pytest.raises(rk.errors.InvalidFile, match="none of 3h"):
        rk.read_flows(path, TRUTH.locations, window="3h")
    for one in flows:
        found = rk.read_flows(path, TRUTH.locations, window=one.window)
        assert found.first_difference(one) is None
        assert (found.calendar, found.stayers) == (one.calendar, one.stayers)
    with pytest.raises(rk.errors.InvalidData, match="same length"):
        rk.write_flows(path, [flows[0], flows[0]], overwrite=True)


def test_a_dataset_with_several_windows(tmp_path):
    flows = (TRUTH.flows(), TRUTH.flows("2h", stayers=False))
    rk.write_dataset(tmp_path / "data", counts=TRUTH.counts(), truth=TRUTH, flows=flows)
    data = rk.read_dataset(tmp_path / "data")
    assert data.flows == flows
    assert repr(data).endswith("with the truth, flows of 1h, flows of 2h)")
    stated = json.loads((tmp_path / "data" / "dataset.json").read_text())["flows"]
    assert stated[1] == {"window": "2h", "start": "2024-03-01 00:00:00", "steps": 3, "stayers": False}
    longer = rk.Locations(np.vstack([TRUTH.locations.xy_km, [9.0, 9.0]])[::-1], ["x", *reversed(TRUTH.locations.ids)])
    moved = data.with_locations(longer)
    assert moved.flows[0] == moved.truth.flows()


def test_flows_of_somebody_else(tmp_path):
    """Counts are the same, but others moved."""
    truth = line([0, 0], [1, 1])
    crossed = line([0, 1], [1, 0])
    with pytest.raises(
        rk.errors.InvalidData, match=r"does not fit the flows.*from '0' to '0' at 2024-03-01 00:00:00"
    ):
        rk.Dataset(truth.counts(), truth, flows=(crossed.flows(),))
    assert rk.Dataset(truth.counts(), flows=(crossed.flows(),)).truth is None
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), flows=crossed.flows())
    table = pl.read_parquet(tmp_path / "data" / "flows.parquet")
    table.with_columns(pl.col("count") + 1).write_parquet(tmp_path / "data" / "flows.parquet")
    with pytest.raises(rk.errors.InvalidFile, match=r"flows\.parquet: `people` is 2"):
        rk.read_dataset(tmp_path / "data")


@pytest.mark.parametrize(
    ("flows", "words"),
    [
        (5, ["'flows' must be a list", "5"]),
        ([5], ["'flows' must be a list"]),
        ([{"window": "1h"}], ["start"]),
        ([{"window": "1h", "start": "2024-03-01", "steps": 2, "stayers": None}], ["'stayers' is None"]),
        ([{"window": "1h", "start": "2024-03-01", "steps": 10**7, "stayers": True}], ["bytes expand to"]),
        ([{"window": "2h", "start": "2024-03-01", "steps": 2, "stayers": True}], ["no part of"]),
    ],
)
def test_bad_descriptions(tmp_path, flows, words):
    truth = line([0, 1])
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), flows=truth.flows())
    about = json.loads((tmp_path / "data" / "dataset.json").read_text()) | {"flows": flows}
    (tmp_path / "data" / "dataset.json").write_text(json.dumps(about))
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_dataset(tmp_path / "data")
    for word in words:
        assert word in str(error.value)


def test_a_table_of_others(tmp_path):
    """A grid by its names, entries and exits as empty fields, a window without a row."""
    path = tmp_path / "flows.csv"
    rows = ['08:00,"(0, 0)","(0, 1)",3', '09:00,,"(0, 0)",2', '11:00,"(0, 0)",,1']
    path.write_text(HEAD + "".join(f"2024-03-01 {row}\n" for row in rows))
    flows = rk.read_flows(path, window="1h")
    assert (flows.stayers, flows.steps, flows.locations) == (False, 5, GRID)
    assert [part.tolist() for part in flows.at(1)] == [[rk.AWAY], [0], [2]]
    assert [part.tolist() for part in flows.at(2)] == [[], [], []]
    assert rk.read_flows(path).calendar.steps == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("datetime,location,count\n2024-03-01,a,1\n", ["'destination' is missing"]),
        (HEAD + "2024-03-01,a,b,1\n", ["locations"]),
        (HEAD + '2024-03-01,"(0, 0)","(0, 1)",1\n', ["single time", "`window`"]),
        (HEAD + '2024-03-01 00:00,"(0, 0)","(0, 1)",1.5\n', ["row 1", "'count'", "1.5"]),
        (
            HEAD + "".join(f'2024-03-01 0{hour}:00,"(0, 0)","(0, 0)",{hour}\n' for hour in (1, 2)),
            ["02:00:00", "'(0, 0)'", "1 people arrive", "2 leave", "release"],
        ),
        (HEAD + '2024-03-01,"(0, 0)","(0, 1)",1\n' * 2 + '2024-03-02,"(0, 1)","(0, 1)",1\n', ["listed twice"]),
        (HEAD[:-1] + ',window\n2024-03-01,"(0, 0)","(0, 1)",1,soon\n', ["row 1", "'window'", "'soon'"]),
    ],
)
def test_bad_flows(tmp_path, text, words):
    path = tmp_path / "flows.csv"
    path.write_text(text)
    window = "1h" if "1.5" in text else None
    with pytest.raises(rk.errors.InvalidFile) as error:
        rk.read_flows(path, window=window)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_flows_are_not_counts(tmp_path):
    rk.write_flows(tmp_path / "flows.csv", TRUTH.flows())
    with pytest.raises(rk.errors.InvalidFile, match="holds flows"):
        rk.read_counts(tmp_path / "flows.csv", TRUTH.locations)


# Releases of flows


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("stayers", [True, False])
def test_releases(tmp_path, ending, stayers):
    """Zeros and withheld numbers are written, so that what is read is what was published."""
    release = rk.Suppress(below=2, zeros=False).of_flows(TRUTH, stayers=stayers)
    path = tmp_path / f"release.{ending}"
    rk.write_release(path, release)
    assert rk.read_release(path, TRUTH.locations) == release
    with pytest.raises(rk.errors.InvalidSetting, match="long form"):
        rk.write_release(tmp_path / "wide.csv", release, form="wide")


def test_a_published_table(tmp_path):
    path = tmp_path / "od.csv"
    rows = ["08:00,a,b,12", "08:00,a,a,<10", "09:00,,a,30", "09:00,a,b,*"]
    path.write_text(HEAD + "".join(f"2024-03-01 {row}\n" for row in rows))
    places = rk.Locations([[0, 0], [1, 0]], ["a", "b"])
    release = rk.read_release(path, places)
    assert release.pairs.tolist() == [[rk.AWAY, 0], [0, 0], [0, 1]]
    assert np.array_equal(release.values, [[np.nan, np.nan, 12], [30, np.nan, np.nan]], equal_nan=True)
    assert rk.read_release(path, places, absent="zero").values[0, 0] == 0
    path.write_text(path.read_text() + "2024-03-01 09:00,,a,30\n")
    with pytest.raises(rk.errors.InvalidFile, match=r"row 3 is listed twice at 2024-03-01 09:00:00"):
        rk.read_release(path, places)


NAMES = "fecha|periodo|origen|destino|personas\n"
PLACES = rk.Locations([[0, 0], [1, 0]], ["a", "b"])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("20240301|9|a|z|3", ["data row 2, column 'destino'", "'z'"]),
        ("20240301|9|z|a|3", ["data row 2, column 'origen'", "'z'"]),
        ("20240301|9|a|b|few", ["row 2, column 'personas'", "'few'"]),
        ("20240301|25|a|b|3", ["data row 2, column 'periodo'", "'25'"]),
    ],
)
@pytest.mark.parametrize("read", [rk.read_flows, rk.read_release])
def test_errors_name_the_columns_of_the_file(tmp_path, row, words, read):
    path = tmp_path / "od.csv"
    path.write_text(f"{NAMES}20240301|8|a|b|3\n{row}\n")
    with pytest.raises(rk.errors.InvalidFile) as error:
        read(path, PLACES)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_what_may_be_a_mistake_in_a_release_is_said(tmp_path):
    path = tmp_path / "od.csv"
    path.write_text(NAMES + "".join(f"20240301|{hour}|a|b|{count}\n" for hour, count in ((8, 30), (9, -3), (10, -4))))
    said = r"at 2024-03-01 09:00:00 from 'a' to 'b' is -3 \(the first of 2 numbers below 0\)"
    with pytest.warns(UserWarning, match=said):
        rk.read_release(path, PLACES)
    assert "is -3 (the first of 2" in rk.io.read_published(path, PLACES).note
    path.write_text(NAMES + "".join(f"20240301|{hour}|a|b|12\n" for hour in (7, 8, 10, 11)))
    with pytest.warns(UserWarning, match="There is no number at 2024-03-01 09:00:00: all are taken to be withheld"):
        assert rk.read_release(path, PLACES).withheld[:, 0].tolist() == [False, False, True, False, False]
    with pytest.raises(rk.errors.InvalidFile, match=r"no row at 2024-03-01 09:00:00.*`absent='withheld'`"):
        rk.read_release(path, PLACES, absent="zero")
    path.write_text(NAMES + "20240301|8|a|b|1\n20240301|9|b|a|20\n")
    with pytest.warns(UserWarning, match=r"50% of the flows are taken to be withheld.*`absent='zero'`"):
        rk.read_release(path, PLACES)


def test_noise_that_is_stated_is_no_mistake(tmp_path):
    flows = rk.Release.of(TRUTH.flows())
    noise = rk.model.AppliedDefence(name="Noise", adds_noise=True)
    rk.write_release(tmp_path / "noisy.csv", flows.with_values(flows.values - 2.0, [noise]))
    assert rk.read_release(tmp_path / "noisy.csv", TRUTH.locations).values.min() == -2
