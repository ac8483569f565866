"""The tables of a dataset from spells: truth, counts, flows and shares, written by the engine that has the spells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw
import polars as pl

from rekindle.io.dataset import DATASET
from rekindle.io.safety.folders import Sensitive, mark_folder
from rekindle.io.tables.table import write_table
from rekindle.model import AWAY, Calendar, Locations
from rekindle.sources.engine import (
    Frame,
    Parts,
    beside,
    collect,
    computed,
    each_step,
    on_spark,
    with_names,
    with_times,
    write_frame,
)

ROWS_A_FILE = 5_000_000
"""A truth of more rows is written in parts."""


def counts_of(spells: Parts, calendar: Calendar) -> Frame:
    """`step`, `location` and `count`, without the zeros but for one at a step at which nobody is counted."""
    counts = _counts(spells.frame)
    there = set(collect(counts.select("step").unique())["step"])
    empty = [step for step in range(calendar.steps or 0) if step not in there]
    return _with_zeros(counts, step=empty, location=[0] * len(empty))


def _counts(spells: Frame) -> Frame:
    """One more person where a spell begins, one less where it ends: summed up, that is how many there are in between."""
    ends = nw.concat(
        [
            spells.select("location", step=nw.col(name), change=nw.lit(change, dtype=nw.Int64))
            for name, change in (("begin", 1), ("end", -1))
        ]
    )
    changes = ends.group_by("location", "step").agg(nw.col("change").sum())
    counts = changes.select(
        "location",
        begin="step",
        until=nw.col("step").shift(-1).over("location", order_by="step"),
        count=nw.col("change").cum_sum().over("location", order_by="step").cast(nw.Int64),
    )
    return each_step(counts.filter(nw.col("count") > 0), "begin", "until").select("step", "location", "count")


def flows_of(spells: Parts, calendar: Calendar) -> Frame:
    """`step` at which a window begins, `origin`, `destination` and `count`; zeros as in tables of flows."""
    windows = (calendar.steps or 0) - 1
    keys = ["step", "origin", "destination"]
    of_parts = spells.map(lambda part: _moves(part, windows))
    moves = computed(of_parts.frame.group_by(*keys).agg(nw.col("count").sum()))
    gone = moves.group_by("step", "origin").agg(gone=nw.col("count").sum()).rename({"origin": "location"})
    counts = _counts(spells.frame).filter(nw.col("step") < windows)
    staying = (
        counts.join(gone, on=["step", "location"], how="left")
        .with_columns(count=nw.col("count") - nw.coalesce(nw.col("gone"), nw.lit(0)))
        .filter(nw.col("count") > 0)
        .select("step", "count", origin="location", destination="location")
    )
    flows = computed(nw.concat([moves.select(*keys, "count"), staying.select(*keys, "count")]))
    there = set(collect(flows.select("step").unique())["step"])
    empty = [step for step in range(windows) if step not in there]
    if not empty and collect(staying.head(1)).is_empty():
        empty = [0]  # a zero says that stayers would be here, if there were any
    zeros = [0] * len(empty)
    return _with_zeros(flows, step=empty, origin=zeros, destination=zeros)


def _moves(spells: Frame, windows: int) -> Frame:
    """How many people change their location between steps, those who come and go included."""

    def neighbour(name: str, by: int) -> nw.Expr:
        return nw.col(name).shift(by).over("person", order_by="begin")

    spells = spells.with_columns(
        next=neighbour("location", -1), next_begin=neighbour("begin", -1), last_end=neighbour("end", 1)
    )
    follows = nw.coalesce(nw.col("next_begin") == nw.col("end"), nw.lit(False))
    leaving = spells.select(
        step=nw.col("end") - 1,
        origin="location",
        destination=nw.when(follows).then(nw.col("next")).otherwise(nw.lit(AWAY)).cast(nw.Int64),
    ).filter((nw.col("step") < windows) & (nw.col("origin") != nw.col("destination")))
    appears = nw.coalesce(nw.col("last_end") != nw.col("begin"), nw.lit(True)) & (nw.col("begin") > 0)
    coming = spells.filter(appears).select(
        step=nw.col("begin") - 1, origin=nw.lit(AWAY, dtype=nw.Int64), destination="location"
    )
    both = nw.concat([leaving, coming])
    return both.group_by("step", "origin", "destination").agg(count=nw.len().cast(nw.Int64))


def shares_of(spells: Frame) -> Frame:
    """How many steps of each `person` were `counted`, and how many `observed`."""
    seen = (nw.col("at") >= nw.col("begin")) & (nw.col("at") < nw.col("end"))
    lasts = spells.select(
        "person",
        counted=nw.col("end") - nw.col("begin"),
        observed=nw.when(seen).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int64),
    )
    return lasts.group_by("person").agg(nw.col("counted", "observed").sum(), spells=nw.len().cast(nw.Int64))


def _with_zeros(frame: Frame, **columns: list[int]) -> Frame:
    zeros = pl.DataFrame(
        columns | {"count": [0] * len(columns["step"])}, schema=dict.fromkeys([*columns, "count"], pl.Int64)
    )
    if zeros.is_empty():
        return frame
    return nw.concat([frame.select(*zeros.columns), beside(frame, zeros)])


@dataclass(frozen=True)
class Writer:
    """Writes tables into the folder of a dataset, by the engine that has them."""

    folder: Path
    locations: Locations
    calendar: Calendar

    def write(self, name: str, frame: Frame, names: tuple[str, ...] = ("location",)) -> None:
        """Write a table with `step`, and indices of locations in the columns of that name."""
        write_frame(self._readable(frame.sort("step", *names), names), self.folder / name)

    def write_truth(self, spells: Parts, *, filled: bool) -> None:
        """Write a row for each person and step at which they are counted; and, where some are filled, which were observed."""
        pieces = [spells.frame] if on_spark(spells.frame) else _pieces(spells)
        seen = {"observed": nw.coalesce(nw.col("at") == nw.col("step"), nw.lit(False))} if filled else {}
        for number, piece in enumerate(pieces):
            rows = each_step(piece.sort("person", "begin"), "begin", "end").select(
                "person", "step", "location", **seen
            )
            name = "truth" if isinstance(pieces, list) else f"truth/part-{number:05d}"
            write_frame(self._readable(rows, ("location",)), self.folder / name, private=True)
        self._mark("truth.parquet" if (self.folder / "truth.parquet").exists() else "truth/*.parquet", "the truth")

    def write_shares(self, spells: Parts) -> None:
        """Write which shares of each person's steps were filled, and at which they were away."""
        steps = self.calendar.steps or 0
        people = spells.map(shares_of)
        shares = people.frame.select(
            "person",
            filled=((nw.col("counted") - nw.col("observed")) / steps).round(6),
            away=(1 - nw.col("counted") / steps).round(6),
        )
        if on_spark(shares):
            write_frame(shares.sort("person"), self.folder / "filled", private=True)
        else:
            write_table(self.folder / "filled.csv", collect(shares.sort("person")), private=True)
        self._mark("filled/*.parquet" if on_spark(shares) else "filled.csv", "how often each person was observed")

    def _mark(self, name: str, what: str) -> None:
        mark_folder(self.folder, DATASET, {name: Sensitive(what, "truth")})

    def _readable(self, frame: Frame, names: tuple[str, ...]) -> Frame:
        """Times instead of steps, and names instead of indices."""
        columns = frame.collect_schema().names()
        frame = with_names(with_times(frame, self.calendar), names, self.locations.ids)
        return frame.select(*("datetime" if name == "step" else name for name in columns))


def _pieces(spells: Parts) -> list[Frame] | Iterator[Frame]:
    """All spells in one piece, or, where their steps are many, in pieces that each fit into memory."""
    rows = collect(spells.frame.select((nw.col("end") - nw.col("begin")).sum())).item()
    return [spells.frame] if rows <= ROWS_A_FILE else _each_piece(spells)


def _each_piece(spells: Parts) -> Iterator[Frame]:
    for part in spells.frames:
        found = collect(part).sort("person", "begin")
        piece = (found["end"] - found["begin"]).cum_sum() // ROWS_A_FILE
        for one in found.with_columns(_piece=piece).partition_by("_piece", maintain_order=True, include_key=False):
            yield nw.from_native(one.lazy())
