import json
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.raw import (
    porto_row,
    some_points,
    some_porto_rows,
    write_cabs,
    write_geolife,
    write_plt,
    write_porto,
)

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting, OutputExists
from rekindle.io import read_dataset
from rekindle.io.safety.folders import read_mark
from rekindle.model import Locations
from rekindle.prepare import Area, Grid, Towers, fill_steps, prepare_geolife, prepare_points, prepare_porto
from rekindle.sources import points_from_frame, read_cabspotting, read_geolife, read_porto
from rekindle.sources.points import collect

T = datetime(2020, 3, 2)


def table(*rows):
    """Points from (person, minutes after midnight, lat, lng)."""
    return pl.DataFrame(
        [(person, T + timedelta(minutes=minute), lat, lng) for person, minute, lat, lng in rows],
        schema=["person", "time", "lat", "lng"],
        orient="row",
    )


def test_points_by_hand():
    rows = [("a", 9, 1.0, 1.0), ("a", 5, 2.0, 2.0), ("a", 31, 3.0, 3.0), ("b", 10, 4.0, 4.0)]
    places = Grid(cell_km=50, box=(0, 100))
    found = prepare_points(points_from_frame(table(*rows)), step="10min", max_gap=None, places=places)
    # a: the first record of a step counts; the last known fills; b: its first record counts before it, too.
    assert found.positions[:, :, 0].tolist() == [[2, 2, 2, 3], [4, 4, 4, 4]]
    assert found.observed.tolist() == [[True, False, False, True], [False, True, False, False]]
    assert found.truth.people_ids == ("a", "b")
    assert found.truth.calendar.to_json() == {"start": "2020-03-02 00:00:00", "step": "10min", "steps": 4}
    assert found.filled.tolist() == [0.5, 0.75]
    assert found.info["points"] == {"observed": 0.375, "filled": 0.625, "away": 0.0}
    assert found.truth.observed.tolist() == found.observed.tolist()
    assert found.info["preparation"]["max_gap"] is None


def test_long_gaps_are_left_open():
    rows = [("a", 0, 1.0, 1.0), ("a", 50, 3.0, 3.0), ("b", 10, 4.0, 4.0), ("b", 30, 2.0, 2.0)]
    points = points_from_frame(table(*rows))
    places = Grid(cell_km=50, box=(0, 100))
    found = prepare_points(points, step="10min", max_gap="20min", places=places)
    seen = [[1, 1, 1, None, None, 3], [None, 4, 4, 2, 2, 2]]
    assert np.array_equal(found.positions[:, :, 0], np.array(seen, float), equal_nan=True)
    assert found.truth.counted.tolist() == [[at is not None for at in row] for row in seen]
    assert found.observed.tolist() == [[True, *[False] * 4, True], [False, True, False, True, False, False]]
    assert found.truth.counts().totals.tolist() == [1, 2, 2, 1, 1, 2]
    assert found.truth.counts().people == 2
    assert found.info["points"] == {"observed": round(4 / 12, 6), "filled": round(5 / 12, 6), "away": 0.25}
    assert found.info["preparation"]["max_gap"] == "20min"
    assert found.filled.tolist() == [2 / 6, 3 / 6]
    nearest = prepare_points(points, step="10min", max_gap="20min", fill="nearest", places=places)
    assert nearest.truth.counted.tolist()[0] == [True, True, False, False, True, True]
    only = prepare_points(points, step="10min", max_gap=timedelta(0), places=places)
    assert only.truth.observed is None  # nothing was filled
    assert np.array_equal(only.observed, only.truth.counted)
    assert only.info["points"]["filled"] == 0
    for wrong in ("soon", "3", timedelta(hours=-1), 3):
        with pytest.raises(InvalidSetting, match="`max_gap` is"):
            prepare_points(points, max_gap=wrong)


@pytest.mark.parametrize("fill", ["last", "nearest", "linear"])
def test_a_gap_may_reach_over_the_ends_of_the_window(fill):
    hour = 60
    rows = [("a", 23 * hour, 1.0, 0.0), ("a", 26 * hour, 2.0, 0.0), ("a", 48 * hour + 20, 3.0, 0.0)]
    rows += [("b", 23 * hour, 1.0, 1.0)]  # has no record in the window
    points = points_from_frame(table(*rows, ("a", 50 * hour, 9.0, 9.0), ("a", 12 * hour, 9.0, 9.0)))
    window = {"start": T + timedelta(days=1), "days": 1, "step": "1h", "fill": fill}
    found = prepare_points(points, max_gap="3h", places=Grid(box=(0, 100)), **window)
    assert found.truth.people_ids == ("a",)
    assert np.flatnonzero(found.observed[0]).tolist() == [2]
    known = found.positions[0, :, 0]
    if fill == "last":
        assert known[:6].tolist() == [1, 1, 2, 2, 2, 2]
        assert np.isnan(known[6:]).all()
    elif fill == "nearest":
        assert known[:4].tolist() == [1, 2, 2, 2]
        assert np.isnan(known[4:-1]).all()
        assert known[-1] == 3
    else:
        assert known[:3] == pytest.approx([4 / 3, 5 / 3, 2])
        assert np.isnan(known[3:]).all()
    carried = prepare_points(points, max_gap=None, places=Grid(box=(0, 100)), **window)
    assert (carried.positions[0, :, 0] == 2).all()
    with pytest.raises(InvalidData, match="no point at all"):
        prepare_points(points, start=T + timedelta(hours=51), step="1h")


def test_the_gap_is_chosen_by_the_data():
    regular = [("a", minute, 1.0, 1.0) for minute in range(0, 3_000, 90)]
    found = prepare_points(points_from_frame(table(*regular, ("a", 3_600, 2.0, 2.0))), step="10min")
    assert found.info["preparation"]["max_gap"] == "2h"  # 90 minutes, rounded up
    assert found.info["points"]["away"] > 0


def test_people_outside_the_box_may_be_away(tmp_path):
    rows = [("a", 0, 1.0, 1.0), ("a", 10, 1.0, 9.0), ("a", 20, 1.1, 1.1), ("b", 0, 1.0, 9.0), ("c", 20, 0.9, 0.9)]
    bounds = (0.9, 0.9, 1.1, 1.1)
    points = points_from_frame(table(*rows))
    found = prepare_points(points, step="10min", places=Grid(cell_km=50, bounds=bounds, outside="away"))
    assert found.truth.people_ids == ("a", "c")
    assert found.info["dropped"] == {"people who are never inside the box": 1}
    assert found.truth.counted.tolist() == [[True, False, True], [False, False, True]]
    assert found.truth.observed is None
    assert np.isnan(found.positions[0, 1]).all()
    assert found.info["preparation"]["places"]["outside"] == "away"
    found.write(tmp_path / "out")
    assert read_dataset(tmp_path / "out").truth == found.truth
    edge = prepare_points(points, step="10min", places=Grid(cell_km=50, bounds=bounds))
    assert edge.truth.people == 3
    assert edge.truth.counted[0].all()
    with pytest.raises(InvalidData, match=r"Nobody is ever inside.*`bounds`"):
        prepare_points(points, places=Grid(bounds=(50.0, 50.0, 51.0, 51.0), outside="away"))


def test_the_box_is_that_of_counted_positions():
    rows = [("a", 0, 1.0, 1.0), ("a", 10, 2.0, 2.0), ("a", 1_000, 1.0, 1.0)]
    points = points_from_frame(table(*rows))
    box = (0, 60)
    carried, left_open = (
        prepare_points(points, step="10min", max_gap=gap, places=Grid(box=box)) for gap in (None, "0min")
    )
    assert len(carried.truth.locations) > len(left_open.truth.locations)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2_000), st.floats(48, 49), st.floats(2, 3)),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(["last", "nearest", "linear"]),
    st.sampled_from([None, "auto", "0min", "3h"]),
)
def test_counts_are_those_of_the_truth(rows, fill, max_gap):
    points = points_from_frame(table(*rows))
    found = prepare_points(points, step="30min", fill=fill, max_gap=max_gap, places=Grid(cell_km=20))
    counts = found.truth.counts()
    if max_gap is None:
        assert (counts.values.sum(axis=1) == len({row[0] for row in rows})).all()
    else:
        assert found.truth.counted.any(axis=1).all()
    for step in (0, counts.steps - 1):
        for place in range(len(counts.locations)):
            assert counts.values[step, place] == (found.truth.cells[:, step] == place).sum()
    assert found.observed.sum() == len({(row[0], row[1] // 30) for row in rows})


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2_000), st.floats(48, 49), st.floats(2, 3)),
        min_size=1,
        max_size=60,
    )
)
def test_finer_steps_joined_again_are_the_coarser_steps(rows):
    """The records of the finer steps, two and two, are those of the coarser steps, and filled they are the same."""
    points = points_from_frame(table(*rows))
    fine, coarse = (
        prepare_points(points, step=step, max_gap=None, places=Grid(cell_km=20)) for step in ("10min", "20min")
    )
    for own, seen, expected, expected_seen in zip(
        fine.positions, fine.observed, coarse.positions, coarse.observed, strict=True
    ):
        steps = np.flatnonzero(seen)
        joined, first = np.unique(steps // 2, return_index=True)
        assert np.array_equal(joined, np.flatnonzero(expected_seen))
        before, _, _ = fill_steps(joined, coarse.truth.steps, "last")
        assert np.array_equal(own[steps[first]][before], expected)


def test_the_order_of_rows_means_nothing():
    rows = some_points()
    ahead, back = (prepare_points(points_from_frame(frame)) for frame in (rows, rows.reverse()))
    assert ahead.truth == back.truth
    assert ahead.info == back.info


def files(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_preparing_twice_gives_the_same_bytes(tmp_path):
    raw = write_geolife(tmp_path / "raw")
    for out in ("one", "two"):
        prepare_geolife(read_geolife(raw), step="10min").write(tmp_path / out)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert set(files(tmp_path / "one")) == {
        "counts.parquet",
        "dataset.json",
        "filled.csv",
        "locations.parquet",
        "rekindle.json",
        "truth.parquet",
    }


def test_a_picture_is_written_with_the_folder_or_not_at_all(tmp_path):
    prepared = prepare_points(points_from_frame(some_points()))

    def interrupted(path):
        path.touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared.write(tmp_path / "out", picture=("grid.png", interrupted))
    assert list(tmp_path.iterdir()) == []
    prepared.write(tmp_path / "out", picture=("grid.png", lambda path: path.touch()))
    sensitive = {path.name for path, _ in read_mark(tmp_path / "out").sensitive_files(tmp_path / "out")}
    assert sensitive == {"filled.csv", "grid.png", "truth.parquet"}
    assert "p1" not in (tmp_path / "out" / "dataset.json").read_text()
    assert (tmp_path / "out" / "filled.csv").stat().st_mode & 0o077 == 0


def test_what_is_written_is_what_was_prepared(tmp_path):
    prepared = prepare_points(points_from_frame(some_points()))
    prepared.write(tmp_path / "out")
    dataset = read_dataset(tmp_path / "out")
    assert dataset.truth == prepared.truth
    assert dataset.info == json.loads(json.dumps(dict(prepared.info)))


def test_nothing_is_overwritten_or_left_half_written(tmp_path, monkeypatch):
    prepared = prepare_points(points_from_frame(some_points()))
    out = tmp_path / "out"
    prepared.write(out)
    before = files(out)
    with pytest.raises(OutputExists, match="`overwrite=True`"):
        prepared.write(out)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rekindle.prepare.assemble.write_table", interrupted)
    for target in (out, tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            prepared.write(target, overwrite=True)
    assert files(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(InvalidFile, match=r"no rekindle\.json"):
        prepared.write(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_window_and_coverage():
    points = points_from_frame(some_points())
    found = prepare_points(points, step="10min", start=datetime(2020, 3, 3), days=1)
    assert found.truth.steps == 144
    assert found.truth.calendar.start == datetime(2020, 3, 3)
    best = found.observed.mean(axis=1).max()
    selected = prepare_points(points, step="10min", start=datetime(2020, 3, 3), days=1, min_coverage=best)
    assert 1 <= selected.truth.people < found.truth.people
    with pytest.raises(InvalidData, match=r"Nobody is left.*`min_coverage`"):
        prepare_points(points, min_coverage=1.0)
    with pytest.raises(InvalidData, match="no record lies in the time window"):
        prepare_points(points, start=datetime(2021, 1, 1), days=1)
    with pytest.raises(InvalidSetting, match="`days` is set, but not `start`"):
        prepare_points(points, days=3)
    with pytest.raises(InvalidSetting, match=r"`fill` is 'spline'.*last, nearest, linear"):
        prepare_points(points, fill="spline")
    with pytest.raises(InvalidSetting, match="from 0 to 1"):
        prepare_points(points, min_coverage=70)
    with pytest.raises(InvalidSetting, match="not a step"):
        prepare_points(points, start=datetime(2020, 3, 3, 0, 5), days=1)


def test_the_clock_is_that_on_the_wall_through_a_change():
    # Clocks in Paris went forward on 2020-03-29. Noon UTC is 13:00 before and 14:00 after.
    times = [datetime(2020, 3, day, 12) for day in (28, 29, 30)]
    frame = pl.DataFrame({"person": "a", "time": times, "lat": [1.0, 2.0, 3.0], "lng": 0.0})
    found = prepare_points(points_from_frame(frame, utc=True, timezone="Europe/Paris"), step="1h")
    assert found.truth.calendar.start == datetime(2020, 3, 28)
    assert np.flatnonzero(found.observed[0]).tolist() == [13, 24 + 14, 48 + 14]
    assert found.info["preparation"]["clock_changes"] == ["2020-03-29 02:00:00 becomes 03:00"]
    later = prepare_points(points_from_frame(frame, utc=True, timezone="Europe/Paris"), start=datetime(2020, 3, 30))
    assert "clock_changes" not in later.info["preparation"]
    with pytest.raises(InvalidSetting, match="'Paris'"):
        points_from_frame(frame, utc=True, timezone="Paris")


def test_local_times_and_instants_of_the_same_clock_give_the_same_steps():
    """Without a zone, 08:00 is 08:00; with one, too, whatever the offset of the day, on any side of a change."""
    zone = ZoneInfo("Europe/Oslo")
    local = [datetime(2024, 3, 25, 8) + timedelta(days=day, hours=3 * day) for day in range(10)]
    for start, days in ((None, None), (datetime(2024, 3, 30), 4)):
        found = [
            prepare_points(
                points_from_frame(pl.DataFrame({"person": "a", "time": times, "lat": 1.0, "lng": 2.0}), **settings),
                step="1h",
                start=start,
                days=days,
            )
            for times, settings in (
                (local, {}),
                ([time.replace(tzinfo=zone).isoformat() for time in local], {"timezone": "Europe/Oslo"}),
            )
        ]
        assert found[0].truth == found[1].truth
        assert np.array_equal(found[0].observed, found[1].observed)


def test_an_hour_that_comes_twice():
    # Clocks in Oslo went back at 01:00 UTC. The first record of a step is the first by time, not by clock.
    times = ["2024-10-27T02:40+02:00", "2024-10-27T02:10+01:00", "2024-10-27T04:00+01:00"]
    frame = pl.DataFrame({"person": "a", "time": times, "lat": [1.0, 2.0, 3.0], "lng": 0.0})
    found = prepare_points(points_from_frame(frame, timezone="Europe/Oslo"), step="1h")
    assert np.flatnonzero(found.observed[0]).tolist() == [2, 4]
    assert found.positions[0, [2, 4], 0].tolist() == [1.0, 3.0]
    assert found.info["preparation"]["clock_changes"] == ["2024-10-27 03:00:00 becomes 02:00"]
    assert found.truth.calendar.number_of_days == 1


def test_points_of_all_centuries_are_no_calendar():
    frame = pl.DataFrame({"person": "a", "time": ["2024-01-01T00:00Z", "9999-12-31T23:59Z"], "lat": 1.0, "lng": 2.0})
    with pytest.raises(InvalidData, match=r"between 2024-01-01 00:00:00 and 9999-12-31.*`start`"):
        prepare_points(points_from_frame(frame, timezone="Europe/Oslo"))


def test_call_records_keep_their_towers():
    # Two towers on one mast: only the name tells them apart.
    towers = Locations.from_lat_lng(np.array([[1.0, 2.0], [1.0, 2.0], [1.5, 2.0]]), ["A", "B", "C"])
    frame = pl.DataFrame(
        {"person": ["x", "x", "y"], "time": [T, T + timedelta(minutes=40), T], "cell": ["B", "C", "A"]}
    )
    points = points_from_frame(frame, location="cell", towers=towers)
    found = prepare_points(points, step="10min", places=Towers(towers), fill="nearest", max_gap=None)
    assert found.truth.cells.tolist() == [[1, 1, 1, 2, 2], [0, 0, 0, 0, 0]]
    assert found.truth.locations == towers
    left_open = prepare_points(points, step="10min", places=Towers(towers), max_gap="20min")
    assert left_open.truth.cells.tolist() == [[1, 1, 1, -1, 2], [0, 0, 0, -1, -1]]
    with pytest.raises(InvalidSetting, match="no line between two names"):
        prepare_points(points, places=Towers(towers), fill="linear")
    with pytest.raises(InvalidSetting, match="`places`"):
        prepare_points(points)


DAY = 86_400


def test_porto_by_hand(tmp_path):
    """Six days in UTC; 10 trips begin on days 1 and 2 (from 0), more than on any two other days in a row."""
    start = 1_372_636_800  # 2013-07-01 00:00 UTC
    here, there = (41.15, -8.61), (41.25, -8.50)
    rows = [porto_row(1, start + 10, [here]), porto_row(2, start + 20, [here])]
    rows += [porto_row(1, start + DAY + 600 * i, [here] * 41) for i in range(4)]
    rows += [porto_row(2, start + DAY + 50_000 + i, [there]) for i in range(3)]
    rows += [porto_row(1, start + 2 * DAY + 1_300, [there, here])]
    rows += [porto_row(3, start + 2 * DAY + i, [there]) for i in range(2)]
    rows += [porto_row(3, start + 5 * DAY + i, [here]) for i in range(8)]
    points = read_porto(write_porto(tmp_path / "train.csv", rows), timezone="UTC")
    found = prepare_porto(points, days=2, places=Grid(cell_km=2, box=(0, 100)))
    assert found.truth.calendar.start == datetime(2013, 7, 2)
    assert found.truth.steps == 2 * 144 + 1
    # Trips in the period: 5 of taxi 1, 3 of taxi 2, 2 of taxi 3; the average is 3.33.
    assert found.truth.people_ids == ("1",)
    assert np.flatnonzero(found.observed[0]).tolist() == [0, 1, 2, 3, 4, 146]
    assert found.positions[0, 4, 0] == 41.15  # 41 points are 10 minutes: the last lies in the next step
    assert found.positions[0, 146].tolist() == list(there)
    everyone = prepare_porto(points, days=2, busy_only=False)
    assert everyone.truth.people_ids == ("1", "2", "3")
    later = prepare_porto(points, days=1, start=datetime(2013, 7, 6), busy_only=False)
    assert (later.truth.people_ids, later.truth.steps) == (("3",), 145)
    with pytest.raises(InvalidSetting, match="midnight"):
        prepare_porto(points, days=1, start=datetime(2013, 7, 6, 1))


def test_nobody_above_average(tmp_path):
    points = read_porto(write_porto(tmp_path / "train.csv", [porto_row(1, 1_372_636_800, [(41.15, -8.61)])]))
    with pytest.raises(InvalidData, match="`busy_only=False`"):
        prepare_porto(points, days=1)
    assert prepare_porto(points, days=1, busy_only=False).truth.people == 1


def test_recipes_that_need_trajectories():
    points = points_from_frame(some_points())
    for prepare in (prepare_geolife, prepare_porto):
        with pytest.raises(InvalidData, match="no trajectory"):
            prepare(points)


def test_thirty_days_are_4321_steps(tmp_path):
    points = read_porto(write_porto(tmp_path / "train.csv", some_porto_rows()))
    assert prepare_porto(points).truth.steps == 4_321


def walk(root, person, start, hours, lat=39.95):
    """A record every hour."""
    write_plt(root, person, [(start + timedelta(hours=i), lat, 116.35) for i in range(hours)])


def test_geolife_by_hand(tmp_path):
    """Two people who are seen for nine and eight days; the clock is kept or lost."""
    first = datetime(2008, 10, 6, 1, 30)  # 09:30 in Beijing
    for day in range(9):
        walk(tmp_path, "000", first + timedelta(days=day), 10)
    for day in range(8):
        walk(tmp_path, "001", datetime(2009, 4, 6, 3, 10) + timedelta(days=day), 10, lat=40.05)
    walk(tmp_path, "002", first, 10)  # a single trajectory
    walk(tmp_path, "003", first, 10)  # less than seven days
    walk(tmp_path, "003", first + timedelta(days=1), 10)
    for day in range(9):
        walk(tmp_path, "004", first + timedelta(days=day), 10, lat=41.95)  # outside
    points = read_geolife(tmp_path)
    found = prepare_geolife(points, step="1h")
    assert found.truth.people_ids == ("000", "001")
    # The second ends first: seven days and nine hours after its first record.
    assert found.truth.steps == 7 * 24 + 9 + 1
    assert found.truth.calendar.start == datetime(2000, 1, 1)
    assert np.flatnonzero(found.observed[0])[:11].tolist() == [*range(10), 24]
    kept = prepare_geolife(points, step="1h", align="day")
    assert np.flatnonzero(kept.observed[0])[0] == 9  # 09:30
    assert np.flatnonzero(kept.observed[1])[0] == 11  # 11:10
    assert kept.truth.steps == 7 * 24 + 11 + 9 + 1
    alone = prepare_geolife(points, step="1h", area=Area(41.95, 116.35, 0.2))
    assert alone.truth.people_ids == ("004",)
    with pytest.raises(InvalidData, match=r"Nobody is left.*`min_days`"):
        prepare_geolife(points, step="1h", min_days=12)


def test_aligned_by_day_everyone_keeps_the_clock(tmp_path):
    """Although gaps of days are closed, every record stays at its time of the day."""
    points = read_geolife(write_geolife(tmp_path))
    found = prepare_geolife(points, step="10min", min_days=4, align="day")
    original = collect(points.frame).with_columns(of_day=(pl.col("time") + 8 * 3_600) // 600 % 144)
    moved = 0
    for person, observed in zip(found.truth.people_ids, found.observed, strict=True):
        own = set(original.filter(pl.col("person") == person)["of_day"])
        assert set(np.flatnonzero(observed) % 144) <= own
        moved += len(own) < 144
    assert moved == found.truth.people > 1
    with pytest.raises(InvalidSetting, match="loses the clock"):
        prepare_geolife(points, align="day", merging="published")


def test_geolife_window_and_settings(tmp_path):
    points = read_geolife(write_geolife(tmp_path))
    everyone = prepare_geolife(points, step="10min", min_days=3)
    early = prepare_geolife(points, step="10min", min_days=3, start=datetime(2008, 1, 1), days=365)
    assert early.truth.people < everyone.truth.people
    for wrong in ({"merging": "x"}, {"align": "week"}, {"box_over": "x"}, {"months": 0}, {"merge_km": -1.0}):
        with pytest.raises(InvalidSetting, match=next(iter(wrong))):
            prepare_geolife(points, **wrong)
    with pytest.raises(InvalidSetting, match="radius"):
        Area(1.0, 2.0, -1.0)
    with pytest.raises(InvalidSetting, match="engine"):
        prepare_geolife(points, engine="abacus")


def test_the_box_looks_at_whole_or_cut_trajectories(tmp_path):
    first = datetime(2008, 10, 6)
    for day in range(12):
        walk(tmp_path, "000", first + timedelta(days=day), 10, lat=39.95 if day < 8 else 39.95 + (day - 7) * 0.02)
    for day in range(8):
        walk(tmp_path, "001", first + timedelta(days=day), 10)
    points = read_geolife(tmp_path)
    whole, cut = (
        prepare_geolife(points, step="1h", box_over=over, places=Grid(box=(0, 100))) for over in ("whole", "cut")
    )
    assert whole.truth.steps == cut.truth.steps
    assert len(whole.truth.locations) == 9  # 0.08 degrees are 8.9 km
    assert len(cut.truth.locations) == 1


def test_cabs(tmp_path):
    points = read_cabspotting(write_cabs(tmp_path))
    found = prepare_points(points, start=datetime(2008, 5, 18), days=2, min_coverage=0.2)
    assert found.truth.steps == 288
    assert "cab0" not in found.truth.people_ids
    assert found.truth.people == 3
