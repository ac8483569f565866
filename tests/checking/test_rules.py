"""Every rule on a small table that has its fault, and on one that has not."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest

import rekindle as rk
from rekindle.checking import RULES, Settings, check, read_published_table
from rekindle.checking.linter import read_config
from rekindle.errors import InvalidFile, InvalidSetting

HOURS = [f"2024-03-04 {hour:02d}:00" for hour in range(24)]


def clean_values(seed=0, steps=24, places=4):
    """Counts that no rule has anything against: large, and the same total at every step."""
    random = np.random.default_rng(seed)
    values = random.integers(40, 90, (steps, places))
    values[:, -1] += 400 - values.sum(axis=1)
    return values


def long(values, times=HOURS, names="ABCDEFGH", **more):
    values = np.asarray(values, dtype=object)
    steps, places = values.shape
    return pl.DataFrame(
        {
            "datetime": np.repeat(times[:steps], places).tolist(),
            **more,
            "location": list(names[:places]) * steps,
            "count": ["" if value is None else str(value) for value in values.ravel()],
        }
    )


@pytest.fixture
def write(tmp_path):
    def write(frame, name="table.csv"):
        frame.write_csv(tmp_path / name)
        return tmp_path / name

    return write


def found(rule, *paths, **settings):
    result = [one for one in check(*paths, settings=Settings(**settings)) if one.rule == rule]
    for one in result:
        assert one.what
        assert one.why
        assert one.fix
    return result


def test_a_clean_table_has_no_finding(write):
    assert check(write(long(clean_values()))) == ()


def test_small_numbers(write):
    values = clean_values()
    values[3, 0] += values[3, 1] - 1
    values[3, 1] = 1
    (one,) = found("small-numbers", write(long(values)))
    assert one.severity == "error"
    assert one.rows == (3 * 4 + 2,)
    assert "1 number of one person and 0 of two" in one.what


def test_small_numbers_behind_a_weight_are_seen(write):
    values = clean_values() * 3.7
    values[0, 0] = 3.7
    assert found("small-numbers", write(long(values)))[0].rows == (1,)


def test_withheld_number_from_the_total_of_its_row(write):
    values = clean_values().astype(object)
    total = values.sum(axis=1)
    values[5, 2] = None
    table = long(np.column_stack([values, total]), names=["A", "B", "C", "D", "Total"])
    (one,) = found("withheld-numbers", write(table))
    assert one.severity == "error"
    assert one.rows == (5 * 5 + 3,)
    assert f"the first is {clean_values()[5, 2]}" in one.what


def test_two_withheld_numbers_of_a_sum_are_safe(write):
    values = clean_values().astype(object)
    total = values.sum(axis=1)
    values[5, 2] = values[5, 3] = None
    assert not found(
        "withheld-numbers", write(long(np.column_stack([values, total]), names=["A", "B", "C", "D", "all"]))
    )


def test_two_withheld_numbers_below_a_small_limit_are_narrow(write):
    values = clean_values().astype(object)
    values[5, 2:] = [1, 2]
    total = values.sum(axis=1)
    values[5, 2:] = ["<3", "<3"]
    table = write(long(np.column_stack([values, total]), names=["A", "B", "C", "D", "all"]))
    assert [one.severity for one in found("withheld-numbers", table)] == ["warning"]
    assert found("withheld-numbers", table)[0].rows == (5 * 5 + 3, 5 * 5 + 4)


def test_withheld_number_across_files_with_a_category(write):
    # Unique visitors: 50 in all, 45 of them residents; the rest are below the limit of 15 and withheld.
    whole = pl.DataFrame({"datetime": HOURS[:2], "location": ["A", "A"], "visitors": ["50", "70"]})
    parts = pl.DataFrame(
        {
            "datetime": [HOURS[0]] * 2 + [HOURS[1]] * 2,
            "location": ["A"] * 4,
            "origin": ["resident", "tourist"] * 2,
            "visitors": ["45", "*", "40", "30"],
        }
    )
    (one,) = found("withheld-numbers", write(whole, "all.csv"), write(parts, "parts.csv"))
    assert (one.severity, one.table, one.rows) == ("error", "parts.csv", (2,))
    assert "the first is 5" in one.what


def test_withheld_numbers_by_both_margins_of_a_table(write):
    # Four withheld numbers in two rows and two columns; sums alone leave them open, both margins together do not.
    values = np.array([[20, 31, 47], [25, 0, 1], [33, 1, 0]], dtype=object)
    rows, columns = values.sum(axis=1), values.sum(axis=0)
    values[1:, 1:] = "<5"
    frame = pl.DataFrame(
        {
            "datetime": [HOURS[0]] * 15,
            "origin": ["A"] * 4 + ["B"] * 4 + ["C"] * 4 + ["Total"] * 3,
            "destination": ["A", "B", "C", "Total"] * 3 + ["A", "B", "C"],
            "trips": [str(x) for row, total in zip(values, rows, strict=True) for x in (*row, total)]
            + [str(x) for x in columns],
        }
    )
    (one,) = found("withheld-numbers", write(frame), narrow=1)
    assert one.severity == "warning"
    assert one.more + len(one.rows) == 4


def test_withheld_number_of_a_district(write):
    cells = pl.DataFrame(
        {
            "datetime": [HOURS[0]] * 4,
            "location": list("ABCD"),
            "district": list("xxyy"),
            "count": ["20", "*", "30", "*"],
        }
    )
    districts = pl.DataFrame({"datetime": [HOURS[0]] * 2, "district": ["x", "y"], "count": ["24", "39"]})
    (one,) = found("withheld-numbers", write(cells, "cells.csv"), write(districts, "districts.csv"))
    assert one.rows == (2, 4)
    assert "the first is 4" in one.what


def test_rows_that_are_absent_because_they_are_zero_are_no_finding(write):
    values = clean_values().astype(object)
    values[2, 1] = 0
    table = long(np.column_stack([values, values.sum(axis=1)]), names=["A", "B", "C", "D", "total"])
    assert not found("withheld-numbers", write(table.filter(pl.col("count") != "0")))


def test_sums_that_contradict_each_other_are_said(write):
    values = clean_values().astype(object)
    total = values.sum(axis=1) + 7
    values[5, 2] = None
    (one,) = found(
        "withheld-numbers", write(long(np.column_stack([values, total]), names=["A", "B", "C", "D", "Total"]))
    )
    assert one.severity == "note"
    assert "contradict" in one.what


def test_totals_have_names_in_other_languages(write):
    values = clean_values() + np.arange(24)[:, None]
    for name in ("Summe", "gesamt", "Suma"):
        table = long(np.column_stack([values, values.sum(axis=1)]), names=["A", "B", "C", "D", name])
        (one,) = found("changing-totals", write(table))
        assert f"add up to {values[0].sum():,}" in one.what


def test_exact_total_beside_rounded_parts(write):
    values = clean_values()
    table = np.column_stack([values // 5 * 5, values.sum(axis=1) + np.arange(24)])
    (one,) = found("exact-total", write(long(table, names=["A", "B", "C", "D", "Total"])))
    assert one.more + len(one.rows) == sum((400 + np.arange(24)) % 5 != 0)
    table[:, -1] = table[:, -1] // 5 * 5
    assert not found("exact-total", write(long(table, names=["A", "B", "C", "D", "Total"])))


def test_rounded_twice(write):
    values = clean_values()
    five, ten = (write(long(np.round(values / to).astype(int) * to), name=f"{to}.csv") for to in (5, 10))
    assert found("rounded-twice", five, ten)[0].severity == "warning"
    assert not found("rounded-twice", five, five)


def test_noise_averages_out(write):
    random = np.random.default_rng(0)
    values = clean_values()
    copies = [write(long(np.round(values + random.normal(0, 4, values.shape), 2)), f"{at}.csv") for at in range(3)]
    (one,) = found("noise-averages-out", *copies)
    assert "96 numbers are published 3 times" in one.what
    assert not found("noise-averages-out", copies[0])


def test_noise_at_two_resolutions(write):
    random = np.random.default_rng(0)
    days = [f"2024-03-{day:02d} {hour:02d}:00" for day in range(1, 9) for hour in range(24)]
    values = random.integers(40, 90, (len(days), 3))
    hourly = write(long(np.round(values + random.normal(0, 3, values.shape), 1), days), "hourly.csv")
    sums = values.reshape(8, 24, 3).sum(axis=1) + random.normal(0, 3, (8, 3))
    daily = write(long(np.round(sums, 1), [day[:10] for day in days[::24]]), "daily.csv")
    (one,) = found("noise-averages-out", hourly, daily)
    assert one.table == "daily.csv"
    assert "sums of those in hourly.csv over 24 steps" in one.what


def test_grossed_up(write):
    values = clean_values() * 7
    values[0, 0] = 7
    (one,) = found("grossed-up", write(long(values)))
    assert (one.severity, one.rows) == ("error", (1,))
    assert not found("grossed-up", write(long(clean_values() // 5 * 5)))
    assert not found("grossed-up", write(long(clean_values())))


def test_isolated_locations(write):
    values = np.column_stack([clean_values(), np.zeros(24, int)])
    assert not found("isolated-locations", write(long(values)))
    values[7, 4] = 1
    (one,) = found("isolated-locations", write(long(values)))
    assert one.rows == (7 * 5 + 5,)


def test_alone_at_night(write):
    values = np.column_stack([clean_values(), np.full(24, 9)])
    values[:6, 4] = 1
    (one,) = found("alone-at-night", write(long(values)))
    assert "E" in one.what
    values[3, 4] = 2
    assert not found("alone-at-night", write(long(values)))


def test_readable_path(write):
    values = np.tile([50, 60, 70, 0, 0, 0], (24, 1))
    values[:5, 3] = values[5:9, 4] = values[9:, 5] = 1
    (one,) = found("readable-path", write(long(values)))
    assert "D (2024-03-04 04:00) → E (2024-03-04 05:00) → F (2024-03-04 09:00)" in one.what
    values[5, :2] += [-1, 1]  # somebody else moves at the same moment
    assert not found("readable-path", write(long(values)))


def test_steps_missing_and_the_clock(write):
    values, times = clean_values(steps=48), [*HOURS, *(hour.replace("-04", "-05") for hour in HOURS)]
    table = long(values, times)
    assert not found("steps-missing", write(table))
    gap = found("steps-missing", write(table.filter(~pl.col("datetime").str.contains("-04 1[0-2]"))))
    assert "After 2024-03-04 09:00 comes 2024-03-04 13:00" in gap[0].what
    jump = found("steps-missing", write(table.filter(pl.col("datetime") != "2024-03-05 02:00")))
    assert "The clock changes at 2024-03-05 01:00" in jump[0].what


def test_listed_twice(write):
    table = long(clean_values())
    (one,) = found("listed-twice", write(pl.concat([table, table[:1]])))
    assert one.rows == (1, 97)


def test_changing_totals(write):
    values = clean_values()
    values[3, 0] += 10
    (one,) = found("changing-totals", write(long(values)))
    assert "400 (2024-03-04 00:00) to 410 (2024-03-04 03:00); 0 of 23 changes" in one.what
    values[3, 0] -= 9
    (one,) = found("changing-totals", write(long(values)))
    assert "2 of 23 changes from step to step are one or two people" in one.what
    assert "came or left at that time" in one.why


def test_wide_tables_and_releases_are_the_same(write):
    values = clean_values()
    values[:, 0] += values[:, 1] - 2
    values[:, 1] = 2
    wide = pl.DataFrame({"datetime": HOURS} | {name: values[:, at] for at, name in enumerate("ABCD")})
    (in_file,) = check(write(wide))
    locations = rk.Locations(np.arange(8.0).reshape(4, 2), "ABCD")
    counts = rk.Counts(values, locations, rk.Calendar("2024-03-04", "1h"))
    (in_memory,) = rk.check(counts)
    assert (in_file.rule, in_file.what) == (in_memory.rule, in_memory.what)
    assert rk.check(counts.values is not None and rk.Suppress(below=10)(counts)) == ()


def test_rules_can_be_ignored_and_unknown_ones_are_refused(write):
    table = write(long(clean_values() + np.arange(24)[:, None]))
    assert [one.rule for one in check(table)] == ["changing-totals"]
    assert check(table, ignore=["changing-totals"]) == ()
    with pytest.raises(InvalidSetting, match="choose one of"):
        check(table, ignore=["no-such-rule"])


def test_every_rule_has_its_page():
    pages = {
        path.stem for path in (pytest.importorskip("pathlib").Path(__file__).parents[2] / "docs/rules").glob("*.md")
    }
    assert pages - {"index"} == set(RULES)


def test_a_value_that_is_no_number_is_named(write):
    table = long(clean_values()).with_columns(pl.col("count").replace("60", "sixty"))
    table = table.with_columns(
        pl.when(pl.arange(pl.len()) == 2).then(pl.lit("sixty")).otherwise("count").alias("count")
    )
    with pytest.raises(InvalidFile, match="data row 3, column 'count': 'sixty' is neither a number"):
        check(write(table))
    wide = pl.DataFrame({"time": ["2024-03-04 00:00", "2024-03-04 01:00"], "A": ["60", "70"], "B": ["60", "6,0"]})
    with pytest.raises(InvalidFile, match=r"data row 2, column 'B': '6,0' is neither .* decimals with a point"):
        check(write(wide))


def test_many_multiples_of_a_base(write):
    """Found by fuzzing: the odds were a power that no float holds."""
    values = 10 * np.arange(1, 401).reshape(100, 4)
    times = np.datetime64("2024-03-04", "h") + np.arange(100)
    assert read_published_table(write(long(values, times))).unit == 10


@pytest.mark.parametrize("name", ["^.*$", "*", "time", "value", "step", "table", "entry", "name"])
def test_columns_of_any_name(write, name):
    table = long(clean_values())
    renamed = read_published_table(write(table.with_columns(pl.lit("x").alias(name))), value="count", time="datetime")
    assert len(renamed.keys) == 2
    assert [one.rule for one in check(renamed)] == [one.rule for one in check(write(table))]


@pytest.mark.parametrize("number", [1e300, float("inf"), -1e17])
def test_numbers_that_no_count_is(write, number):
    table = long(clean_values()).with_columns(pl.lit(number).alias("count"))
    with pytest.raises(InvalidFile, match="more than 2\\^53"):
        check(write(table))


def test_more_columns_than_levels_have_bits(write):
    table = long(clean_values()).with_columns(pl.lit("x").alias(f"c{at}") for at in range(70))
    assert [one.rule for one in check(write(table))] == [one.rule for one in check(write(long(clean_values())))]


@pytest.mark.parametrize(
    "text", ["tool = 1", "[tool]\nrekindle = 'a'", "[tool.rekindle.check]\nignore = 5", "\udcff"]
)
def test_settings_in_a_file_that_are_none(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text, errors="surrogateescape")
    with pytest.raises(InvalidFile, match=r"pyproject\.toml"):
        read_config(tmp_path)


def test_a_setting_that_is_too_large():
    with pytest.raises(InvalidSetting, match="narrow"):
        Settings(narrow=10**400)


def test_a_table_whose_columns_are_unknown_says_what_to_call_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Tid;Distrikt;Antal\n04.03.2024 00:00;a;3\n04.03.2024 00:00;b;<10\n")
    with pytest.raises(InvalidFile, match="Tid, Distrikt, Antal is known as the one of numbers; call it 'count'"):
        check(path)


@pytest.mark.parametrize("header", ["tid;fra;antal", "datetime;from;antal", "datetime;zone;antal"])
def test_a_long_table_is_never_taken_for_a_wide_one(tmp_path, header):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *(f"2024-03-04 0{hour}:00;1;2" for hour in range(3))]))
    with pytest.raises(InvalidFile, match="is known as the one of numbers; call it 'count', or name it with `value`"):
        check(path)


def test_flows_with_date_hour_and_kilometres(tmp_path):
    """As Spain's ministry of transport lays out its mobility study; kilometres tell no two numbers apart."""
    path = tmp_path / "a.csv"
    rows = [
        f"20240304|{hour:02d}|{a}|{b}|{10 * hour + 1}|{3.7 * hour + 0.1:.3f}"
        for hour in range(24)
        for a in "12"
        for b in "12"
    ]
    path.write_text("\n".join(["fecha|periodo|origen|destino|viajes|viajes_km", *rows]))
    table = read_published_table(path)
    assert table.keys == ("origen", "destino")
    assert table.frame["time"].n_unique() == 24
    assert table.frame["time"].max() == datetime(2024, 3, 4, 23)
    assert {one.rule for one in check(path)} == {"small-numbers", "changing-totals"}


def od(values, pairs, times=HOURS):
    """A table of flows in long form; what has no number has no row."""
    rows = [(time, *pair, count) for time, row in zip(times, values, strict=False) for pair, count in zip(pairs, row, strict=True) if count]  # fmt: skip
    return pl.DataFrame(rows, schema=["fecha", "origen", "destino", "personas"], orient="row")


def test_flows_are_spoken_of_as_pairs(write):
    values = np.full((24, 3), 40)
    values[:, 1] = 0
    values[3, 1] = 1
    path = write(od(values, ["AA", "AB", "BB"]))
    (one,) = found("small-numbers", path)
    assert one.what.endswith("in 1 origin-destination pair and 1 hour.")
    (one,) = found("isolated-locations", path)
    assert one.what.startswith("1 origin-destination pair has nobody at 95% or more of the steps")
    assert "A → B" in one.what
    (one,) = found("listed-twice", write(pl.concat([od(values, ["AA", "AB", "BB"])] * 2)))
    assert "for the same time and origin-destination pair" in one.what


def test_who_stays_all_night_is_alone_and_who_moves_is_not(write):
    values = np.ones((24, 2), int)
    (one,) = found("alone-at-night", write(od(values, ["AA", "AB"])))
    assert one.what == "In 1 location a single person stayed for a whole night (1 night in all): A."


def test_totals_without_everyone_say_nothing(write):
    values = np.array([[40, 12], [39, 0], [38, 11]] * 8)
    assert not found("changing-totals", write(od(values, ["AA", "AB"])))  # below 10 there is no row
    assert not found(
        "changing-totals", write(od([[5, 1], [4, 2], [1, 1]] * 8, ["AB", "BA"]))
    )  # who stays is left out
    assert found("changing-totals", write(od([[5, 1], [4, 2], [1, 1]] * 8, ["AA", "BA"])))


def test_flows_of_several_windows_are_checked_one_by_one(write):
    """Hours in which no daily window begins are not hours without daily flows, and no step adds both up."""
    hourly, daily = od(np.full((24, 2), 40), ["AA", "BB"]), od(np.full((1, 2), 40), ["AA", "BB"])
    both = pl.concat([hourly.with_columns(window=pl.lit("1h")), daily.with_columns(window=pl.lit("24h"))])
    assert check(write(both)) == ()
    both[-1, "personas"] = 1
    (one,) = found("small-numbers", write(both))
    assert (one.table, one.rows) == ("table.csv (24h)", (50,))


def test_one_negative_number_does_not_make_noise_of_all(write):
    values = np.random.default_rng(0).integers(1, 4, (24, 8))
    values[5, 5] = -3
    assert found("small-numbers", write(long(values)))
    noisy = values + np.random.default_rng(1).integers(-3, 4, values.shape)
    assert not found("small-numbers", write(long(noisy)))


def test_a_code_for_withheld_numbers_is_no_noise(write):
    values = np.where(clean_values() < 70, -999, clean_values())
    with pytest.raises(InvalidFile, match=r"-999 stands in it [\d,]+ times, and no other .* leave its field empty"):
        check(write(long(values)))


def test_what_a_column_holds_is_not_guessed(write):
    table = long(clean_values())
    with pytest.raises(InvalidFile, match="the column 'Zeitpunkt' seems to hold the times; call it 'datetime'"):
        check(write(table.rename({"datetime": "Zeitpunkt"})))
    both = table.rename({"count": "visitors"}).with_columns(people="visitors")
    with pytest.raises(InvalidFile, match=r"\['visitors', 'people'\] could each hold the numbers.*`value`"):
        check(write(both))
    assert check(write(both.drop("people"))) == ()


def test_a_point_between_thousands_is_no_decimal_point(write):
    def table(*numbers):
        return pl.DataFrame({"datetime": "2024-03-04 00:00", "location": list("abcd"), "count": numbers})

    with pytest.raises(
        InvalidFile, match=r"column 'count': '1\.200' may be a decimal, or have a point between thousands"
    ):
        check(write(table("950", "1.200", "12.500", "<10")))
    for numbers in (("950", "1.2", "12.500", "7"), ("0.125", "1.200", "3", "4"), ("9500", "1.200", "12.500", "<10")):
        check(write(table(*numbers)))
