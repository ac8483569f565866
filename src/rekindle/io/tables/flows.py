"""Tables of flows: one row for each window, origin and destination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData
from rekindle.frames import name_column
from rekindle.io.safety.untrusted import check_unfolded, in_file
from rekindle.io.tables.columns import as_in_file, bad_cell, positions, require, step_numbers, whole_numbers
from rekindle.io.tables.counts import FLOWS, Layout, calendar_with_gaps
from rekindle.io.tables.table import write_table
from rekindle.model import AWAY, Calendar, Flows, Locations
from rekindle.model.calendar import format_step, parse_step


def read_flows(
    path: str | Path,
    locations: Locations | str | Path | None = None,
    *,
    window: str | timedelta | None = None,
    stayers: bool | None = None,
    cell_km: float = 1.0,
) -> Flows:
    """Read flows from a csv or parquet file; one whose numbers are withheld, rounded or noisy is read by `read_release`.

    Parameters
    ----------
    path
        A table with the columns ``datetime, origin, destination, count``, where `datetime` is when the window begins, an
        absent row means 0, and no origin or no destination means that people enter or leave. Where it holds flows of
        several windows, the column ``window`` says how long each is, such as ``2h``.
    locations
        The locations, or a file of them; without, as in `read_counts`.
    window
        How long the windows are: of several in the file, which to read. Without, it is what the column ``window`` says, or
        the most frequent interval between times.
    stayers
        Whether people who stay are in the flows; by default whether the file has a row of them.
    cell_km
        Side of the cells in km, as in `read_counts`.
    """
    return flows_in(Layout.read(path, locations, cell_km, flows=True), window, stayers)


def flows_in(layout: Layout, window: str | timedelta | None, stayers: bool | None = None) -> Flows:
    """Take flows from a table that was opened."""
    path, table = layout.path, layout.table
    with in_file(path):
        chosen, length = of_window(table, path, None if window is None else parse_step(window))
        when = layout.when[chosen]
        if length is None and (when == when[0]).all():
            raise InvalidData("there is a single time, so how long the window is is unknown; give `window`.")
        calendar, _ = calendar_with_gaps(when, length)
        calendar = calendar.closed_at((calendar.steps or 0) + 1)
        return flows_from_table(
            table.filter(chosen), path, layout.locations, calendar, stayers, renamed=layout.renamed
        )


def of_window(
    table: pl.DataFrame, path: Path, length: timedelta | None
) -> tuple[NDArray[np.bool_], timedelta | None]:
    """Which rows are of windows of that length, and the length where the table says it."""
    if "window" not in table.columns:
        return np.ones(table.height, bool), length
    rows, texts = positions(table["window"], path)
    lengths = []
    for number, text in enumerate(texts):
        try:
            lengths.append(Calendar("2000-01-01", text).step)
        except InvalidData:
            row = int(np.argmax(rows == number))
            raise bad_cell(path, table["window"], row, "how long a window is, such as 2h") from None
    there = ", ".join(map(format_step, sorted(set(lengths))))
    if length is None and len(set(lengths)) > 1:
        raise InvalidData(f"it holds flows of several windows ({there}); choose one with `window`.")
    length = lengths[0] if length is None else length
    if length not in lengths:
        raise InvalidData(f"it holds flows of {there}, but none of {format_step(length)}.")
    return np.array([one == length for one in lengths])[rows], length


def flows_from_table(
    table: pl.DataFrame,
    path: str | Path,
    locations: Locations,
    calendar: Calendar,
    stayers: bool | None = None,
    people: int | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Flows:
    """Take flows of one window from a table, whose errors name columns as the file does."""
    require(table, {"datetime", *FLOWS}, path)
    named = {name: as_in_file(table[name], renamed) for name in ("datetime", *FLOWS)}
    step = step_numbers(named["datetime"], path, calendar)
    origin, destination = (locations_of(named[name], path, locations) for name in ("origin", "destination"))
    count = whole_numbers(named["count"].to_frame(), path)[:, 0]
    if stayers is None:
        stayers = bool((origin == destination).any())
    # Flows are checked against each other by step and location.
    check_unfolded(path, 16 * (calendar.steps or 0) * len(locations), 8 * table.height * table.width)
    with in_file(path):
        return Flows(step, origin, destination, count, locations, calendar, stayers=stayers, people=people)


def locations_of(column: pl.Series, path: str | Path, locations: Locations) -> NDArray[np.int64]:
    """The index of each row's location; `AWAY` where there is none."""
    there = column.is_not_null().to_numpy()
    found = np.full(len(column), AWAY)
    found[there], _ = positions(column.filter(there), path, locations.ids)
    return found


def write_flows(path: str | Path, flows: Flows | Sequence[Flows], *, overwrite: bool = False) -> None:
    """Write flows as csv or parquet, by the ending of the name.

    Parameters
    ----------
    path
        The file.
    flows
        What to write; flows of several windows get the column ``window``.
    overwrite
        Replace a file that is there.
    """
    write_table(path, flows_table([flows] if isinstance(flows, Flows) else flows), overwrite=overwrite)


def flows_table(flows: Sequence[Flows]) -> pl.DataFrame:
    """Flows in long form: datetime, origin, destination, count, and window where there are several."""
    if not flows or any(one.steps < 2 for one in flows):
        raise InvalidData("There is no window: flows need at least two steps.")
    if len({one.window for one in flows}) < len(flows):
        raise InvalidData("Two of the flows have windows of the same length; expected one of each.")
    tables = []
    for one in flows:
        table = _table(one)
        if len(flows) > 1:
            table = table.with_columns(window=pl.lit(format_step(one.window)))
        tables.append(table)
    return pl.concat(tables)


def _table(flows: Flows) -> pl.DataFrame:
    """The flows of a window. A zero stands where nobody is in a flow, and says that there are stayers where nobody stays."""
    empty = np.setdiff1d(np.arange(flows.steps - 1), flows.step)
    end = 0 if flows.stayers else AWAY
    if flows.stayers and not len(empty) and not (flows.origin == flows.destination).any():
        empty = np.zeros(1, int)
    zero = np.zeros_like(empty)
    return pl.DataFrame(
        {
            "datetime": pl.Series(
                flows.calendar.times()[np.concatenate([flows.step, empty])].astype("datetime64[ms]")
            ),
            "origin": name_column(np.concatenate([flows.origin, zero]), flows.locations.ids),
            "destination": name_column(np.concatenate([flows.destination, zero + end]), flows.locations.ids),
            "count": np.concatenate([flows.count, zero]).astype(np.int64),
        }
    )
