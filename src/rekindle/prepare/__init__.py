"""Points to trajectories: select, align, sample, fill, locate; on Polars or on Spark."""

from rekindle.prepare.fill import fill_steps
from rekindle.prepare.pipeline import BEIJING, Area, Prepared, prepare_geolife, prepare_points, prepare_porto
from rekindle.prepare.places import Grid, H3Cells, Places, Towers

__all__ = [
    "BEIJING",
    "Area",
    "Grid",
    "H3Cells",
    "Places",
    "Prepared",
    "Towers",
    "fill_steps",
    "prepare_geolife",
    "prepare_points",
    "prepare_porto",
]
