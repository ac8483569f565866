"""One colour for each attack, in figures and pages alike."""

from __future__ import annotations

from collections.abc import Iterable

COLOURS = {
    "truth": "#222222",
    "chance": "#999999",
    "naive": "#CC79A7",
    "baseline": "#E69F00",
    "enhanced": "#0072B2",
    "enhanced, first day": "#56B4E9",
    "habits": "#009E73",
}
"""One colour for each attack everywhere, told apart by colour-blind people too (Okabe and Ito)."""

_SPARE_COLOURS = ("#D55E00", "#F0E442", "#8B4513", "#5D3A9B")


def colours_of(attacks: Iterable[str]) -> dict[str, str]:
    """Give each attack its colour; attacks of your own get the spare ones, in the order in which they are named."""
    names = list(attacks)
    others = [name for name in names if name not in COLOURS]
    return {
        name: COLOURS.get(name) or _SPARE_COLOURS[others.index(name) % len(_SPARE_COLOURS)]
        for name in dict.fromkeys(names)
    }
