"""Figures for everyone: each function takes the nouns of the model and returns a matplotlib Axes or Figure.

Nothing here touches pyplot, so a figure neither opens a window nor changes one that is open. Where `axes` can be
given, the figure is drawn into them; otherwise it gets a figure of its own, which is ``axes.figure``. Each attack has the
same colour everywhere: see `COLOURS`. `explore` gives a page to move about in instead.
"""

from rekindle.report.colours import COLOURS, colours_of
from rekindle.report.figures.bars import (
    draw_accuracies,
    draw_confidence,
    draw_costs,
    draw_enhancements,
    draw_errors,
    draw_lookback,
    draw_uniqueness,
)
from rekindle.report.figures.interactive import Map, explore
from rekindle.report.figures.maps import draw_grid, draw_paths, draw_person
from rekindle.report.figures.style import new_figure, save_figure

__all__ = [
    "COLOURS",
    "Map",
    "colours_of",
    "draw_accuracies",
    "draw_confidence",
    "draw_costs",
    "draw_enhancements",
    "draw_errors",
    "draw_grid",
    "draw_lookback",
    "draw_paths",
    "draw_person",
    "draw_uniqueness",
    "explore",
    "new_figure",
    "save_figure",
]
