"""A plot of the locations over the points that were put into them, like the paper's figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rekindle.model import Locations

__all__ = ["plot_grid"]

_MOST_POINTS = 50_000


def plot_grid(path: str | Path, locations: Locations, positions: NDArray[np.float64] | None) -> None:
    """Draw the centres of the locations (red) over people's positions (blue), and the borders of square cells.

    Positions further out than the locations reach are drawn on the border, where the preparation moves them.

    Parameters
    ----------
    path
        A PNG file; the same input gives the same bytes.
    locations
        The places; on a map where they have `lat_lng`, on the plane otherwise.
    positions
        (..., 2) float64, latitude and longitude in degrees, or None. At most 50,000 of them, evenly picked, are drawn.
    """
    figure = Figure(figsize=(8, 8), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    on_map = locations.lat_lng is not None
    centres = locations.xy_km if locations.lat_lng is None else locations.lat_lng[:, ::-1]
    columns, rows = (_borders(np.unique(centres[:, axis])) for axis in (0, 1))
    is_grid = (len(columns) - 1) * (len(rows) - 1) == len(centres)
    if positions is not None and on_map:
        points = positions.reshape(-1, 2)[:, ::-1]
        points = points[:: -(-len(points) // _MOST_POINTS)]
        if is_grid:
            points = np.clip(points, (columns[0], rows[0]), (columns[-1], rows[-1]))
        axes.scatter(points[:, 0], points[:, 1], s=2, color="tab:blue", alpha=0.3, label="positions")
    axes.scatter(centres[:, 0], centres[:, 1], s=8, color="tab:red", label="centres")
    if is_grid:
        axes.vlines(columns, rows[0], rows[-1], color="tab:green", linestyle="--", linewidth=0.5)
        axes.hlines(rows, columns[0], columns[-1], color="tab:green", linestyle="--", linewidth=0.5)
    if on_map:
        axes.set(xlabel="longitude", ylabel="latitude")
        axes.set_aspect(1 / max(float(np.cos(np.radians(np.median(centres[:, 1])))), 0.01))
    else:
        axes.set(xlabel="km to the east", ylabel="km to the north")
        axes.set_aspect("equal")
    axes.set_title(f"{len(locations)} locations")
    figure.legend(loc="outside lower center", ncols=2)
    canvas.print_png(str(path), metadata={"Software": None})  # type: ignore[no-untyped-call]


def _borders(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lines half-way between centres, and half a cell beyond the outer ones."""
    if len(centres) < 2:
        return np.array([centres[0] - 0.01, centres[0] + 0.01])
    half = (centres[1] - centres[0]) / 2
    return np.append(centres - half, centres[-1] + half)
