"""The attack of D'Silva et al. (2024)."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.attacks.costs import MoveCost, Popular
from rekindle.attacks.day_by_day import DayByDay


@dataclass(frozen=True, kw_only=True)
class Enhanced(DayByDay):
    """D'Silva et al.'s attack: it remembers where people usually go next, and looks back several days.

    Only the first transition of a day costs the distance. The others cost the distance to the nearest of the extrapolated
    point and the most frequent next locations over all fully predicted days. A day is linked by the least information gain
    over the last `lookback_days`.

    The parameters are those of `DayByDay`, with these defaults: ``first=Stay(), night=Popular(), day=Popular(),
    linking=InformationGain(), lookback_days=3, seed=None, first_step_counts="each_day"``. ``first_step_counts="first_day"`` is for comparison with
    the published code, which does not follow the paper's text there: see `DayByDay`.

    References
    ----------
    N. D'Silva, T. Shahi, Ø. T. D. Husveg, A. Sanjeeve, E. Buchholz, S. S. Kanhere. Demystifying Trajectory Recovery From
    Ash: An Open-Source Evaluation and Enhancement. SIN 2024.
    """

    night: MoveCost = Popular()
    day: MoveCost = Popular()
    lookback_days: int = 3
