"""Counts to a release, and a release back to counts."""

from rekindle.defences.base import Chain, Defence, NothingLeft
from rekindle.defences.coarsen import CoarserSpace, CoarserTime
from rekindle.defences.noise import Budget, GeometricNoise, LaplaceNoise, Noise, budgets
from rekindle.defences.numbers import Cap, Round, Suppress
from rekindle.defences.parse import DEFENCES, format_defence, make_defence, parse_defence
from rekindle.defences.presets import PRESETS, Preset
from rekindle.defences.sample import Sample

__all__ = [
    "DEFENCES",
    "PRESETS",
    "Budget",
    "Cap",
    "Chain",
    "CoarserSpace",
    "CoarserTime",
    "Defence",
    "GeometricNoise",
    "LaplaceNoise",
    "Noise",
    "NothingLeft",
    "Preset",
    "Round",
    "Sample",
    "Suppress",
    "budgets",
    "format_defence",
    "make_defence",
    "parse_defence",
]
