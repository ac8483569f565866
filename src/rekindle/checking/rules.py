"""The rules: each a small function of the tables that yields what it found. Each has its page in docs/rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.checking.finding import Finding, Severity
from rekindle.checking.sums import MOST_IN_A_GROUP, Entries, limits_of_withheld
from rekindle.checking.table import Table
from rekindle.checks import positive, share

USUAL_BASES = (2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 50, 100, 200, 250, 500, 1000)
"""What publishers round to. Multiples of anything else look like a weight."""
MOST_SMALL = 3
"""Tables in which no number is below this, and not all have a row, leave out small numbers."""
_SHOWN = 5
_PATHS_SHOWN = 3
_HOUR = np.timedelta64(1, "h")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the rules may be told.

    Parameters
    ----------
    withheld_below
        What withheld numbers lie below, where the publisher says so. Marks such as `<10` say it themselves.
    narrow
        A withheld number is as good as published where its limits are at most so far apart.
    mostly_empty
        A location is isolated if its number is 0 in at least this share of the steps.
    """

    withheld_below: float | None = None
    narrow: float = 2.0
    mostly_empty: float = 0.95

    def __post_init__(self) -> None:
        if self.withheld_below is not None:
            positive("withheld_below", self.withheld_below)
        positive("narrow", self.narrow)
        share("mostly_empty", self.mostly_empty)


@dataclass(frozen=True, eq=False)
class Subject:
    """The tables that are checked together."""

    tables: tuple[Table, ...]
    settings: Settings

    @cached_property
    def rounded_to(self) -> list[float]:
        """What each table was rounded to; 1 where it was not."""
        return [unit if (unit := table.unit) in USUAL_BASES else 1.0 for table in self.tables]

    @cached_property
    def entries(self) -> Entries | None:
        """The numbers of all tables, each entry once; None where they are too many."""
        return Entries.of(self.tables, self.rounded_to)

    @cached_property
    def repeated(self) -> pl.DataFrame:
        """Entries that are published more than once: `entry`, and lists of `table`, `row`, `value` and `half`."""
        if self.entries is None:
            lists = {"table": pl.Int64, "row": pl.Int64, "value": pl.Float64, "half": pl.Float64}
            return pl.DataFrame(schema={"entry": pl.Int64, **{name: pl.List(kind) for name, kind in lists.items()}})
        published = self.entries.frame.drop_nulls("value")
        return (
            published.group_by("entry", maintain_order=True)
            .agg(pl.all().exclude("most"))
            .filter(pl.col("row").list.len() > 1)
        )


Rule = Callable[[Subject], Iterator[Finding]]
RULES: dict[str, Rule] = {}
"""Every rule by its name."""


def rule(function: Rule) -> Rule:
    """Add a rule under the name of its function, with hyphens; its findings get that name."""
    name = function.__name__.replace("_", "-")
    RULES[name] = lambda subject: (replace(one, rule=name) for one in function(subject))
    return function


def _finding(
    severity: Severity, table: str, what: str, why: str, fix: str, rows: Sequence[int] | pl.Series = ()
) -> Finding:
    """What a rule found; `rule` gives it the name."""
    listed = tuple(int(row) for row in rows[:_SHOWN])
    shown = {"what": what, "why": why, "fix": fix, "table": table, "rows": listed, "more": len(rows) - len(listed)}
    return Finding(rule="", severity=severity, **shown)  # type: ignore[arg-type]


def _number(count: int, noun: str, one: str = "", several: str = "") -> str:
    """A number with its noun, and with the verb that fits."""
    return f"{count:,} {noun} {one}".rstrip() if count == 1 else f"{count:,} {noun}s {several}".rstrip()


@rule
def small_numbers(subject: Subject) -> Iterator[Finding]:
    """Numbers that are one or two people."""
    for table in subject.tables:
        if table.is_noisy:
            continue
        unit = table.unit if table.unit not in USUAL_BASES else 1.0
        frame = table.frame.with_columns(pl.col("value") / unit)
        ones, twos = (frame.filter((pl.col("value") - size).abs() < 1e-6) for size in (1, 2))
        if not (ones.height or twos.height):
            continue
        shown = ones if ones.height else twos
        share_small = (ones.height + twos.height) / max(int((frame["value"] > 0).sum()), 1)
        where = [_number(shown.select(table.keys).n_unique(), table.noun)] if table.keys else []
        hours = shown["time"].drop_nulls().dt.truncate("1h").n_unique()
        where += [_number(hours, "hour")] if hours else []
        yield _finding(
            "error" if ones.height else "warning",
            table.name,
            f"{_number(ones.height, 'number')} of one person and {twos.height:,} of two, {share_small:.0%} of all numbers "
            f"above 0{', in ' + ' and '.join(where) if where else ''}.",
            "A number of one is a person: it says when somebody is where, and changes when that person moves.",
            "Withhold or round small numbers, or count in larger areas.",
            shown["row"],
        )


@rule
def withheld_numbers(subject: Subject) -> Iterator[Finding]:
    """Withheld numbers that sums give back, exactly or nearly."""
    names = ", ".join(table.name for table in subject.tables)
    entries = subject.entries
    if not any(table.frame["value"].null_count() for table in subject.tables):
        return
    if any(table.is_noisy for table in subject.tables):
        return  # sums of noisy numbers bound nothing
    if entries is None:
        yield _finding(
            "note",
            names,
            "There are too many numbers to compare sums with their parts, so withheld ones were not computed.",
            "What a reader could compute was not checked.",
            "Check fewer days or fewer locations at a time.",
        )
        return
    found = limits_of_withheld(entries, subject.settings.withheld_below)
    if not found.consistent:
        yield _finding(
            "note",
            names,
            "The published numbers contradict each other: a sum does not equal its parts, so withheld ones were not computed.",
            "Either the numbers were changed by more than rounding, or they are not sums of each other.",
            "Check tables of the same people and times together, and others on their own.",
        )
        return
    marked = (
        entries.frame.filter(pl.col("value").is_null())
        .group_by("entry")
        .agg(pl.col("row").min(), pl.col("table").first())
    )
    marked = marked.join(
        pl.DataFrame({"entry": found.entries, "low": found.low, "high": found.high}).with_columns(
            pl.col("entry").cast(marked["entry"].dtype)
        ),
        on="entry",
    ).filter(pl.col("row").is_not_null() | (pl.col("low") > 0))
    exact = marked.filter(pl.col("low") == pl.col("high")).sort("row", nulls_last=True)
    close = marked.filter(
        (pl.col("low") < pl.col("high")) & (pl.col("high") - pl.col("low") <= subject.settings.narrow)
    ).sort("row", nulls_last=True)
    for severity, rows, how in (("error", exact, "computed exactly"), ("warning", close, "narrowed down")):
        if not rows.height:
            continue
        first = rows.row(0, named=True)
        value = f"{first['low']:g}" if severity == "error" else f"between {first['low']:g} and {first['high']:g}"
        yield _finding(
            severity,  # type: ignore[arg-type]
            subject.tables[first["table"]].name,
            f"{_number(rows.height, 'withheld number')} can be {how} from published sums; the first is {value}.",
            "A total and all its other parts give the withheld number away.",
            "Withhold a second number of every such sum, or round the totals too.",
            rows["row"].drop_nulls(),
        )
    if found.open:
        yield _finding(
            "note",
            names,
            f"{_number(found.open, 'withheld number', 'is', 'are')} linked to too many others (more than {MOST_IN_A_GROUP}, or "
            "too many groups): only simple differences were checked.",
            "A reader with more patience could compute more.",
            "Check fewer tables, days or categories at a time.",
        )


@rule
def exact_total(subject: Subject) -> Iterator[Finding]:
    """A total that is published exactly beside parts that are rounded."""
    for table in subject.tables:
        total = (
            table.frame.filter(pl.any_horizontal(pl.col(key).is_null() for key in table.keys)) if table.keys else None
        )
        rest = Table(table.name, table.parts, table.keys)
        base = rest.unit
        if total is not None and total.height and base in USUAL_BASES:
            yield from _exact_beside(table.name, total, base)
    for coarse, fine in ((one, other) for one in subject.tables for other in subject.tables):
        base = fine.unit
        if set(coarse.keys) < set(fine.keys) and base in USUAL_BASES and not coarse.is_noisy:
            yield from _exact_beside(coarse.name, coarse.frame, base)


def _exact_beside(name: str, total: pl.DataFrame, base: float) -> Iterator[Finding]:
    exact = total.filter((pl.col("value") % base) != 0)
    if exact.height:
        yield _finding(
            "warning",
            name,
            f"{_number(exact.height, 'total', 'is', 'are')} published exactly, while the parts are rounded to {base:g}.",
            "The exact total reveals the sum of the rounding errors of the parts, and so narrows them down.",
            "Round the totals like their parts, each on its own.",
            exact["row"],
        )


@rule
def rounded_twice(subject: Subject) -> Iterator[Finding]:
    """The same number, rounded in two ways."""
    if any(table.is_noisy for table in subject.tables):
        return
    several = subject.repeated.filter((pl.col("half").list.max() > 0) & (pl.col("value").list.n_unique() > 1))
    if not several.height:
        return
    limits = (
        several.explode("table", "row", "value", "half")
        .group_by("entry", maintain_order=True)
        .agg(
            pl.col("table").first(),
            pl.col("row").first(),
            (pl.col("value") + pl.col("half")).min().alias("high"),
            (pl.col("value") - pl.col("half")).max().alias("low"),
            (2 * pl.col("half")).filter(pl.col("half") > 0).min().alias("width"),
        )
    )
    narrower = limits.filter(pl.col("high") - pl.col("low") < pl.col("width"))
    if narrower.height:
        yield _finding(
            "warning",
            subject.tables[int(narrower["table"][0])].name,
            f"{_number(narrower.height, 'number', 'is', 'are')} published more than once, rounded differently each time.",
            "Both values hold at once: the true number lies where the two intervals overlap.",
            "Round a number once, and publish the same value everywhere.",
            narrower["row"],
        )


@rule
def noise_averages_out(subject: Subject) -> Iterator[Finding]:
    """The same quantity, published several times with noise of its own each time."""
    noisy = [table.is_noisy for table in subject.tables]
    if not any(noisy):
        return
    several = subject.repeated.filter(pl.col("value").list.n_unique() > 1)
    if several.height:
        spread = float(np.sqrt(several["value"].list.var().mean() or 0.0))  # type: ignore[arg-type]
        times = float(several["value"].list.len().mean() or 1.0)  # type: ignore[arg-type]
        yield _averaged(
            subject.tables[int(several["table"][0][0])].name,
            f"{_number(several.height, 'number', 'is', 'are')} published {times:.3g} times on average with different noise (standard "
            f"deviation about {spread:.2g}); their average is good to {spread / np.sqrt(times):.2g}.",
            several["row"].list.first(),
        )
    for one, other in combinations(subject.tables, 2):
        if set(one.keys) == set(other.keys) and (one.is_noisy or other.is_noisy):
            yield from _same_over_time(one, other)


def _averaged(table: str, what: str, rows: Sequence[int] | pl.Series = ()) -> Finding:
    return _finding(
        "warning",
        table,
        what,
        "Independent noise averages out: m copies are as good as one with noise smaller by the square root of m, and each "
        "of them spends privacy budget.",
        "Draw the noise once, and compute all other tables from that one; or count the budget of every copy.",
        rows,
    )


def _same_over_time(one: Table, other: Table) -> Iterator[Finding]:
    """Whether the numbers of one table are sums or means of the other's over longer intervals."""
    if one.step is None or other.step is None or one.step == other.step:
        return
    fine, coarse = (one, other) if one.step < other.step else (other, one)
    long, short = max(one.step, other.step), min(one.step, other.step)
    every = f"{int(long / np.timedelta64(1, 's'))}s"
    names = ["time", *fine.keys]
    means = fine.frame.drop_nulls("value").with_columns(pl.col("time").dt.truncate(every)).group_by(names)
    both = (
        coarse.frame.drop_nulls("value")
        .join(
            means.agg(
                pl.col("value").sum().alias("sum"), pl.col("value").mean().alias("mean"), pl.len().alias("times")
            ),
            on=names,
        )
        .filter(pl.col("value").abs() > 10)
    )
    for how in ("sum", "mean"):
        apart = (both[how] / both["value"] - 1).abs().median() if both.height >= 5 else None
        if apart is not None and apart < 0.1:  # type: ignore[operator]
            spread = float(np.sqrt(np.mean((both["value"] - both[how]).to_numpy() ** 2)))
            yield _averaged(
                coarse.name,
                f"Its numbers are the {how}s of those in {fine.name} over {int(long / short)} steps each, with noise of their "
                f"own (they differ by {spread:.2g}): the same quantity is published twice.",
            )
            return


@rule
def grossed_up(subject: Subject) -> Iterator[Finding]:
    """Numbers that are multiples of one weight."""
    for table in subject.tables:
        unit = table.unit
        if unit == 1.0 or unit in USUAL_BASES:
            continue
        single = table.frame.filter((pl.col("value") - unit).abs() < 1e-6 * unit)
        yield _finding(
            "error" if single.height else "warning",
            table.name,
            f"All numbers are multiples of {unit:g}, and {_number(single.height, 'number')} of just that size.",
            "A sample that is grossed up by one weight still shows single people: a number of one weight is one person.",
            "Withhold by the number of people in the sample, not by the grossed-up number, or round to more than the weight.",
            single["row"],
        )


@rule
def isolated_locations(subject: Subject) -> Iterator[Finding]:
    """Locations that are almost always empty, and flows that almost never have anyone in them."""
    for table, _, names, values in _exact(subject):
        filled = (values > 0).sum(axis=0)
        empty = (values == 0).mean(axis=0)
        alone = (values == 1).sum(axis=0)
        found = np.flatnonzero((empty >= subject.settings.mostly_empty) & (filled > 0) & (alone > 0))
        if len(found):
            there, such = (
                ("there", "such locations") if table.ends is None else ("that way", "the locations of such pairs")
            )
            yield _finding(
                "warning",
                table.name,
                f"{_number(len(found), table.noun, 'has', 'have')} nobody at {subject.settings.mostly_empty:.0%} or more of the "
                f"steps and a single person at some: {_listed(names, found)}.",
                f"Someone who ever goes {there} stands out, and anyone who knows that a person does can find that person.",
                f"Merge {such} with their neighbours, or leave them out.",
                _rows_of(table, names, found),
            )


@rule
def alone_at_night(subject: Subject) -> Iterator[Finding]:
    """Locations with a single person all night; of flows, with a single person who stays all night."""
    for table, when, names, values in _exact(subject):
        hours = (when - when.astype("datetime64[D]")) // _HOUR
        nights, night = np.unique(when[hours < 6].astype("datetime64[D]"), return_inverse=True)
        if not len(nights):
            continue
        alone = np.zeros((len(nights), len(names)), np.int64)
        np.add.at(alone, night, values[hours < 6] == 1)
        whole = (alone == np.bincount(night)[:, None]) & (np.bincount(night)[:, None] > 1)
        shown = names
        if table.ends is not None:
            stays = table.parts.filter(pl.col(table.ends[0]) == pl.col(table.ends[1]))
            there = dict(stays.select(table.naming, table.ends[0]).unique().iter_rows())
            whole &= np.isin(names, list(there))
            shown = [there.get(name, name) for name in names]
        found = np.flatnonzero(whole.any(axis=0))
        if len(found):
            alone_was = "one person was alone" if table.ends is None else "a single person stayed"
            yield _finding(
                "error",
                table.name,
                f"In {_number(len(found), 'location')} {alone_was} for a whole night ({_number(int(whole.sum()), 'night')} in "
                f"all): {_listed(shown, found)}.",
                "Someone who is alone somewhere all night lives there: an address book turns the location into a name.",
                "Count in larger areas at night, or withhold small numbers.",
                _rows_of(table, names, found),
            )


@rule
def readable_path(subject: Subject) -> Iterator[Finding]:
    """A person whose path can be read off the table, with no attack."""
    for table, when, names, values in _exact(subject):
        if len(table.keys) != 1:
            continue
        paths = sorted(_paths(values), key=lambda path: (-len({place for _, place in path}), path[0]))
        paths = [path for path in paths if len({place for _, place in path}) >= 3]
        if not paths:
            continue
        shown = "; ".join(
            " → ".join(f"{names[place]} ({str(when[step]).replace('T', ' ')[:16]})" for step, place in path[:6])
            for path in paths[:_PATHS_SHOWN]
        )
        yield _finding(
            "error",
            table.name,
            f"{_number(len(paths), 'path')} can be read off the numbers. {shown}.",
            "Between two steps one location lost one person and one location gained one: that is the same person, who was "
            "alone in both.",
            "Withhold small numbers, or publish longer steps and larger areas; then run rekindle audit.",
        )


def _paths(values: NDArray[np.float64]) -> list[list[tuple[int, int]]]:
    """Follow everyone who is alone through moves that only one person made: lists of (step, location)."""
    change = np.diff(values, axis=0)
    step, place = np.nonzero(change)
    starts = np.searchsorted(step, np.arange(len(change) + 1))
    active: dict[int, list[tuple[int, int]]] = {}
    done: list[list[tuple[int, int]]] = []
    for at in range(len(change)):
        changed = place[starts[at] : starts[at + 1]]
        size = change[at, changed]
        ended = [active.pop(int(one)) for one in changed if int(one) in active]
        if len(changed) == 2 and set(size.tolist()) == {1.0, -1.0}:
            left, reached = (int(changed[np.flatnonzero(size == sign)[0]]) for sign in (-1.0, 1.0))
            if values[at, left] == 1 and values[at, reached] == 0:
                path = next((one for one in ended if one[-1][1] == left), [(at, left)])
                ended = [one for one in ended if one is not path]
                active[reached] = [*path, (at + 1, reached)]
        done += [path for path in ended if len(path) > 1]
    return done + [path for path in active.values() if len(path) > 1]


@rule
def steps_missing(subject: Subject) -> Iterator[Finding]:
    """Steps that are missing, or not evenly spaced."""
    for table in subject.tables:
        when = np.unique(table.frame["time"].drop_nulls().to_numpy()).astype("datetime64[s]")
        if len(when) < 3:
            continue
        gaps = np.diff(when)
        sizes, frequency = np.unique(gaps, return_counts=True)
        usual = sizes[frequency.argmax()]
        odd = np.flatnonzero(gaps != usual)
        jumps = [at for at in odd if gaps[at] == usual + _HOUR and 0 <= _hour(when[at]) < 4]
        others = [at for at in odd if at not in set(jumps)]
        if others:
            yield _finding(
                "note",
                table.name,
                f"After {_text(when[others[0]])} comes {_text(when[others[0] + 1])}, while steps are usually {_span(usual)} "
                f"apart; there {'is' if len(others) == 1 else 'are'} {_number(len(others), 'such gap')}.",
                "Attacks that follow people from step to step need every step; an audit takes missing ones to be withheld, and says so.",
                "Publish every step, or say in the documentation which are left out and why.",
            )
        if jumps or len(table.offsets) > 1:
            where = f"at {_text(when[jumps[0]])}" if jumps else f"from {table.offsets[0]} to {table.offsets[-1]}"
            yield _finding(
                "note",
                table.name,
                f"The clock changes {where}: an hour is missing, or appears twice.",
                "A day with 23 or 25 hours shifts habits by an hour, and an hour that appears twice counts people twice.",
                "Publish times in one offset from UTC, or name the time zone.",
            )


@rule
def listed_twice(subject: Subject) -> Iterator[Finding]:
    """The same time and location, or flow, in two rows of one table."""
    for table in subject.tables:
        again = table.frame.filter(table.frame.select("time", *table.keys).is_duplicated())
        if again.height:
            yield _finding(
                "warning",
                table.name,
                f"{_number(again.height, 'row', 'appears', 'appear')} more than once, for the same time and {table.noun}.",
                "It is not clear which of them is right; if they differ, the difference itself gives something away.",
                "Publish each number once. After a clock change, name the offset from UTC.",
                again["row"],
            )


@rule
def changing_totals(subject: Subject) -> Iterator[Finding]:
    """A total that changes from step to step, where it is that of the people who are counted."""
    for table, when, _, values in _exact(subject):
        if np.isnan(values).any() or _leaves_out(table, values):
            continue
        totals = values.sum(axis=1)
        if totals.min() < totals.max():
            change = np.abs(np.diff(totals))
            few = int(((change > 0) & (change <= 2)).sum())
            yield _finding(
                "note",
                table.name,
                f"The numbers of a step add up to {totals.min():g} ({_text(when[totals.argmin()])}) to {totals.max():g} "
                f"({_text(when[totals.argmax()])}); {few} of {_number(len(change), 'change')} from step to step "
                f"{'is' if few == 1 else 'are'} one or two people.",
                "People come and go, which is normal. The totals say when: a change of one is a person who came or left at "
                "that time, and the locations whose numbers change with it say where.",
                "This alone requires no change. Where many changes are one or two people, publish longer steps or round all numbers. The audit takes people who are not counted at a step to be away.",
            )


def _leaves_out(table: Table, values: NDArray[np.float64]) -> bool:
    """Whether some people are not in the table: small numbers have no rows, or those who stay are not in the flows."""
    rows = table.parts
    if table.ends is not None and not (rows[table.ends[0]] == rows[table.ends[1]]).any():
        return True
    return rows.height < values.size and not (rows["value"] < MOST_SMALL).any()


def _exact(subject: Subject) -> Iterator[tuple[Table, NDArray[np.datetime64], list[str], NDArray[Any]]]:
    """Tables of plain counts over time, with their times, names and numbers."""
    for table in subject.tables:
        if not table.is_noisy and table.unit == 1.0 and (dense := table.dense) is not None:
            yield table, *dense


def _rows_of(table: Table, names: list[str], found: NDArray[np.int64]) -> pl.Series:
    wanted = [names[at] for at in found]
    return table.parts.filter(table.naming.is_in(wanted) & (pl.col("value") == 1))["row"]


def _listed(names: list[str], found: NDArray[np.int64]) -> str:
    shown = ", ".join(names[at] for at in found[:_PATHS_SHOWN])
    return shown if len(found) <= _PATHS_SHOWN else f"{shown} and {len(found) - _PATHS_SHOWN:,} more"


def _hour(time: np.datetime64) -> int:
    return int((time - time.astype("datetime64[D]")) // _HOUR)


def _text(time: np.datetime64) -> str:
    return str(time).replace("T", " ")[:16]


def _span(gap: np.timedelta64) -> str:
    minutes = int(gap / np.timedelta64(1, "m"))
    return f"{minutes // 60} h" if minutes and minutes % 60 == 0 else f"{minutes} min"
