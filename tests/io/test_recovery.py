"""The recovery folder: whole days only, whatever happens."""

import json

import numpy as np
import polars as pl
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.io import RecoveryFolder

PEOPLE = random_truth(np.random.default_rng(1), people=5, places=3, steps=30, step="2h", start="2024-03-01 03:20")
DAYS = [PEOPLE.part(day) for day in PEOPLE.calendar.days()]


def start(path, **settings):
    given = {"attack": "Mine", "settings": {"x": 1}, "locations": PEOPLE.locations, "calendar": PEOPLE.calendar}
    return RecoveryFolder(path, **(given | {"people": PEOPLE.people} | settings))


def add(folder, day):
    costs = np.arange(day.steps, dtype=float)
    costs[0] = np.nan
    folder.add(day, details={"step_costs": costs, "link_costs": np.array([np.nan if folder.days == 0 else 2.5])})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_reading_along(tmp_path):
    folder = start(tmp_path / "out")
    assert rk.read_recovery(tmp_path / "out").trajectories.steps == 0
    for number, day in enumerate(DAYS):
        add(folder, day)
        found = rk.read_recovery(tmp_path / "out")
        assert found.trajectories == PEOPLE.part(slice(0, PEOPLE.calendar.day(number).stop))
        assert found.complete is (number == len(DAYS) - 1)
    assert (found.attack, found.settings, found.calendar) == ("Mine", {"x": 1}, PEOPLE.calendar)
    assert np.isnan(found.details["link_costs"][0])
    assert found.details["link_costs"][1:].tolist() == [2.5] * (len(DAYS) - 1)
    assert found.details["step_costs"][1] == 1.0


def test_going_on(tmp_path):
    add(start(tmp_path / "out"), DAYS[0])
    with pytest.raises(rk.errors.OutputExists, match="left as it is"):
        start(tmp_path / "out")
    folder = start(tmp_path / "out", resume=True)
    assert folder.days == 1
    assert folder.stored.trajectories == DAYS[0]
    for changes, word in (
        ({"attack": "Other"}, "attack"),
        ({"settings": {"x": 2}}, "settings"),
        ({"people": 6}, "people"),
        ({"calendar": PEOPLE.calendar.closed_at(29)}, "calendar"),
        ({"locations": rk.Locations(PEOPLE.locations.xy_km + 1)}, "locations"),
    ):
        with pytest.raises(rk.errors.InvalidData, match=f"cannot be resumed.*{word}"):
            start(tmp_path / "out", resume=True, **changes)


def fail(*_, **__):
    raise OSError(28, "No space left on device")


def test_a_failure_at_the_start_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("rekindle.io.recovery.write_json", fail)
    with pytest.raises(OSError, match="No space"):
        start(tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.parametrize("where", ["polars.DataFrame.write_parquet", "rekindle.io.recovery.write_json", "os.replace"])
def test_a_failure_in_a_day_leaves_the_days_before(tmp_path, monkeypatch, where):
    path = tmp_path / "out"
    folder = start(path)
    add(folder, DAYS[0])
    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(OSError, match="No space"):
            add(folder, DAYS[1])
    assert rk.read_recovery(path).trajectories == DAYS[0]
    assert not [name for name in names(path) if name.startswith(".")]
    folder = start(path, resume=True)
    for day in DAYS[1:]:
        add(folder, day)
    assert rk.read_recovery(path).trajectories == PEOPLE


def test_what_a_killed_process_left_goes_away(tmp_path):
    path = tmp_path / "out"
    add(start(path), DAYS[0])
    (path / ".day-0001.parquet.0123456789ab.unfinished.parquet").write_bytes(b"PAR1 half")
    (path / ".notes").touch()
    assert rk.read_recovery(path).trajectories == DAYS[0]
    start(path, resume=True)
    assert names(path) == [".notes", "day-0000.parquet", "locations.parquet", "recovery.json", "rekindle.json"]


def test_a_day_that_was_changed(tmp_path):
    path = tmp_path / "out"
    add(start(path), DAYS[0])
    others = rk.Trajectories(DAYS[0].cells, DAYS[0].locations, DAYS[0].calendar, "edcba")
    rk.write_trajectories(path / "day-0000.parquet", others, overwrite=True)
    with pytest.raises(rk.errors.InvalidFile, match=r"day-0000\.parquet: .*one of 5 known names"):
        rk.read_recovery(path)
    (path / "day-0000.parquet").unlink()
    with pytest.raises(rk.errors.InvalidFile, match=r"day-0000\.parquet: this file does not exist"):
        rk.read_recovery(path)


def test_no_recovery(tmp_path):
    (tmp_path / "file").touch()
    for name, word in (
        ("no", "does not exist"),
        ("file", "is a file"),
        (".", r"recovery\.json: this file does not exist"),
    ):
        with pytest.raises(rk.errors.InvalidFile, match=word):
            rk.read_recovery(tmp_path / name)


def test_confidence_comes_back(tmp_path):
    path = tmp_path / "out"
    sure = np.random.default_rng(2).random(PEOPLE.cells.shape, dtype=np.float32)
    folder = start(path)
    for day in PEOPLE.calendar.days():
        part = PEOPLE.part(day)
        folder.add(part, confidence=sure[:, day])
    found = rk.read_recovery(path)
    assert found.confidence.dtype == np.float32
    assert np.array_equal(found.confidence, sure)
    file = path / "day-0001.parquet"
    table = pl.read_parquet(file)
    table.sort("person", "datetime", descending=[False, True]).write_parquet(file)
    assert np.array_equal(rk.read_recovery(path).confidence, sure)
    for bad in (1.5, -0.5, np.nan, None):
        table.with_columns(confidence=pl.lit(bad, dtype=pl.Float32)).write_parquet(file)
        with pytest.raises(rk.errors.InvalidFile, match="confidence"):
            rk.read_recovery(path)
    table.drop("confidence").write_parquet(file)
    assert rk.read_recovery(path).confidence is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda head: head.update(format="other"), "its format is 'other'"),
        (lambda head: head.update(days={}), "'days' must be a list"),
        (lambda head: head.update(people=0), "'people' a whole number"),
        (lambda head: head.update(people=True), "'people' a whole number"),
        (lambda head: head.update(people=2**31 - 1), f"'people' is {2**31 - 1}; more than 10000000 are not read"),
        (lambda head: head.update(attack=3), "'attack' must be a name"),
        (lambda head: head.update(settings=[]), "'settings' an object"),
        (lambda head: head["days"].append(head["days"][0]), "it lists 4 days, but its calendar has 3"),
        (lambda head: head["days"].__setitem__(0, 7), "must have"),
        (lambda head: head["days"][1].pop("link_costs"), "must have"),
        (lambda head: head["days"][0].update(step_costs=[1.0, 2.0]), "must be 1 or 11 numbers"),
        (lambda head: head["days"][0].update(link_costs="x"), "must be 1 or 11 numbers"),
    ],
)
def test_a_damaged_description_is_refused(tmp_path, change, words):
    folder = start(tmp_path / "out")
    for day in DAYS:
        add(folder, day)
    path = tmp_path / "out" / "recovery.json"
    head = json.loads(path.read_text())
    change(head)
    path.write_text(json.dumps(head))
    with pytest.raises(rk.errors.InvalidFile, match=words):
        rk.read_recovery(path.parent)


def test_names_that_say_who_is_who_are_kept_and_checked(tmp_path):
    truth = rk.SyntheticCity(people=4, days=2).trajectories()
    names = ["ann", "bob", "eve", "unknown 1"]
    settings = {"names": names, "named": True, "known_people": ["ann"]}
    RecoveryFolder(
        tmp_path / "out",
        attack="A",
        settings={},
        locations=truth.locations,
        calendar=truth.calendar,
        people=4,
        **settings,
    )
    found = rk.read_recovery(tmp_path / "out")
    assert found.trajectories.people_ids == tuple(names)
    assert (found.named, found.known_people) == (True, ("ann",))
    head = json.loads((tmp_path / "out" / "recovery.json").read_text())
    for wrong in (
        {"names": names[:3]},
        {"names": 7},
        {"known_people": ["zoe"]},
        {"named": "yes"},
        {"names": ["ann"] * 4},
    ):
        (tmp_path / "out" / "recovery.json").write_text(json.dumps(head | wrong))
        with pytest.raises(rk.errors.InvalidFile, match="names"):
            rk.read_recovery(tmp_path / "out")
