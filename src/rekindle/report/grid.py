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


def plot_grid(
    path: str | Path,
    locations: Locations,
    positions: NDArray[np.float64] | None,
    *,
    cell_km: float | None = None,
) -> None:
    """Draw the centres of the locations (red) over people's positions (blue), and the borders of square cells.

    Parameters
    ----------
    path
        A PNG file; the same input gives the same bytes.
    locations
        With `lat_lng`.
    positions
        (..., 2) float64, latitude and longitude in degrees, or None. At most 50,000 of them, evenly picked, are drawn.
    cell_km
        The side of the cells, where they are square.
    """
    figure = Figure(figsize=(8, 8), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    centres = locations.xy_km if locations.lat_lng is None else locations.lat_lng[:, ::-1]
    if positions is not None and locations.lat_lng is not None:
        points = positions.reshape(-1, 2)
        points = points[:: -(-len(points) // _MOST_POINTS)]
        axes.scatter(points[:, 1], points[:, 0], s=2, color="tab:blue", alpha=0.3, label="positions", rasterized=True)
    axes.scatter(centres[:, 0], centres[:, 1], s=8, color="tab:red", label="centres")
    if cell_km is not None:
        for axis, values in ((0, np.unique(centres[:, 0])), (1, np.unique(centres[:, 1]))):
            draw = axes.axvline if axis == 0 else axes.axhline
            for border in _borders(values):
                draw(border, color="tab:green", linestyle="--", linewidth=0.5)
    if locations.lat_lng is None:
        axes.set(xlabel="km to the east", ylabel="km to the north", aspect="equal")
    else:
        lat = float(np.median(centres[:, 1]))
        axes.set(xlabel="longitude", ylabel="latitude", aspect=1 / max(np.cos(np.radians(lat)), 0.01))
    axes.set_title(f"{len(locations)} locations")
    figure.legend(loc="outside lower center", ncols=2)
    canvas.print_png(str(path), metadata={"Software": None})


def _borders(centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lines half-way between centres, and half a cell beyond the outer ones."""
    if len(centres) < 2:
        return np.empty(0)
    half = (centres[1] - centres[0]) / 2
    return np.append(centres - half, centres[-1] + half)
