"""What all figures share: their size, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from rekindle.errors import InvalidSetting
from rekindle.io.safety.files import new_file

_PRIVATE = "_rekindle_private"


def new_figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """Make an empty figure that pyplot does not know of.

    Parameters
    ----------
    width, height
        Size in inches.
    """
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def mark_private(figure: Figure) -> None:
    """Note that a figure shows where people really were, so that its file becomes private."""
    setattr(figure, _PRIVATE, True)


def save_figure(figure: Figure | Axes, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a figure as PNG, SVG or PDF, by the ending of the name.

    Figures that show where people really were (`draw_paths`, `draw_person`, `draw_grid` with positions) are readable by
    their owner alone.

    Parameters
    ----------
    figure
        The figure, or one of its Axes.
    path
        The file. The same figure always gives the same bytes.
    overwrite
        Replace an existing file.
    """
    path = Path(path)
    # No dates, versions or random names in the file: the same figure gives the same bytes.
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    if path.suffix not in metadata:
        raise InvalidSetting(f"{path} ends in {path.suffix!r}; use .png, .svg or .pdf.")
    whole = cast(Figure, figure.figure) if isinstance(figure, Axes) else figure
    private = bool(getattr(whole, _PRIVATE, False))
    with (
        new_file(path, overwrite=overwrite, private=private) as temporary,
        matplotlib.rc_context({"svg.hashsalt": "rekindle"}),
    ):
        whole.savefig(temporary, dpi=130, format=path.suffix[1:], metadata=metadata[path.suffix])
