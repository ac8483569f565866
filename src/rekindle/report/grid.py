"""A plot of the locations over the points that were put into them, like the paper's figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rekindle.model import Locations
from rekindle.report.figures import draw_grid, save_figure

__all__ = ["plot_grid"]


def plot_grid(path: str | Path, locations: Locations, positions: NDArray[np.float64] | None) -> None:
    """Write a PNG of the places over people's positions; see `draw_grid`. The same input gives the same bytes."""
    save_figure(draw_grid(locations, positions=positions), path)
