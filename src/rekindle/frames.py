"""Results as data frames, and as short tables in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rekindle.checks import choice
from rekindle.errors import InvalidSetting

if TYPE_CHECKING:
    import polars as pl

Library = Literal["polars", "pandas"]
Frame = Any
"""A Polars data frame, or a pandas one where that was asked for."""


def to_frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]], library: Library = "polars") -> Frame:
    """Make a data frame of columns, or of rows.

    pandas gets it without a detour through Arrow, which pandas does not bring with it: names become categories.
    """
    import polars as pl

    choice("library", library, ("polars", "pandas"))
    table = pl.DataFrame(columns, infer_schema_length=None)
    if library == "polars":
        return table
    pandas = optional("pandas")

    def series(column: pl.Series) -> Any:
        if isinstance(column.dtype, pl.Enum):
            return pandas.Categorical.from_codes(column.to_physical().to_numpy(), column.dtype.categories.to_list())
        return column.to_list() if column.dtype == pl.List else column.to_numpy()

    return pandas.DataFrame({column.name: series(column) for column in table})


def name_column(codes: NDArray[np.integer], ids: tuple[str, ...]) -> pl.Series:
    """A column of names from their positions, each stored once; nothing where the position is below 0."""
    import polars as pl

    if (codes < 0).any():
        return pl.Series(ids, dtype=pl.Enum(ids)).gather(pl.Series(codes).set(pl.Series(codes < 0), None))
    return pl.Series(ids, dtype=pl.Enum(ids)).gather(codes)


def geoframe(columns: Mapping[str, Any], xy: NDArray[np.float64], crs: str | None) -> Any:
    """A `geopandas.GeoDataFrame` of points: `xy` is (rows, 2) float64 in the units of `crs`."""
    geopandas = optional("geopandas")
    return geopandas.GeoDataFrame(
        to_frame(columns, "pandas"), geometry=geopandas.points_from_xy(xy[:, 0], xy[:, 1]), crs=crs
    )


def optional(package: str, *, extra: str | None = None, what: str = "This") -> Any:
    """Import a package, or a part of one, that Rekindle does not bring with it, or only as an extra; `what` needs it."""
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        install = name if extra is None else f"'rekindle-mobility[{extra}]'"
        raise InvalidSetting(
            f"{what} needs the package {name}, which is not installed: pip install {install}."
        ) from None


def html_table(title: str, rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A short table for a notebook; everything in it is escaped, since names come from the data."""

    def row(values: Sequence[object], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(str(value))}</{kind}>" for value in values) + "</tr>"

    top = row(head, "th") if head else ""
    return f"<table><caption>{escape(title)}</caption>{top}{''.join(row(one, 'td') for one in rows)}</table>"
