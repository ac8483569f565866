"""The attack of Xu et al. (2017), as D'Silva et al. (2024) describe it."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.attacks.costs import MoveCost, Stay, Velocity
from rekindle.attacks.day_by_day import DayByDay


@dataclass(frozen=True, kw_only=True)
class Baseline(DayByDay):
    """Xu et al.'s attack: people stay at night, keep their velocity by day, and resemble themselves the day before.

    Every day begins from its own counts. Transitions that depart before 06:00 cost the distance; the others cost the
    distance to the point that the last movement extrapolates to. Days are linked by information gain.

    The parameters are those of `DayByDay`, with these defaults: ``first=Stay(), night=Stay(), day=Velocity(),
    linking=InformationGain(), lookback_days=1, seed=None``.

    References
    ----------
    F. Xu, Z. Tu, Y. Li, P. Zhang, X. Fu, D. Jin. Trajectory Recovery From Ash: User Privacy Is NOT Preserved in Aggregated
    Mobility Data. WWW 2017.
    """

    night: MoveCost = Stay()
    day: MoveCost = Velocity()
