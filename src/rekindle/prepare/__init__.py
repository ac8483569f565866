"""Points to trajectories: select, align, sample, fill, locate; on Polars or on Spark."""

from rekindle.prepare.assemble import Prepared
from rekindle.prepare.fill import choose_max_gap, counted_steps, fill_steps
from rekindle.prepare.geolife import BEIJING, Area, prepare_geolife
from rekindle.prepare.places import Grid, H3Cells, Places, Towers
from rekindle.prepare.points import dataset_from_frame, prepare_points
from rekindle.prepare.porto import prepare_porto

__all__ = [
    "BEIJING",
    "Area",
    "Grid",
    "H3Cells",
    "Places",
    "Prepared",
    "Towers",
    "choose_max_gap",
    "counted_steps",
    "dataset_from_frame",
    "fill_steps",
    "prepare_geolife",
    "prepare_points",
    "prepare_porto",
]
