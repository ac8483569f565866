"""The data that attacks are compared on: fixed recipes, some to tune on and others to confirm on.

Real data stays where it is: an environment variable names the dataset folder of each recipe, which `rekindle prepare` has
made by the command that stands beside it. Recipes without a folder are left out, and that is said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rekindle as rk

GEOLIFE = "rekindle prepare geolife SRC OUT --fill nearest"


@dataclass(frozen=True)
class Recipe:
    """A dataset with its truth.

    Attributes
    ----------
    use
        "tune" or "confirm": what was looked at while an attack was made says little of how good it is.
    variable, command
        The environment variable that names the folder, and how the folder is made; of real data.
    city
        Settings of `rk.SyntheticCity`; of synthetic data. Every seed is another city.
    """

    use: str
    variable: str = ""
    command: str = ""
    city: dict[str, Any] = field(default_factory=dict)

    def truth(self, seed: int = 0) -> rk.Trajectories | None:
        """Where everyone was; None where the folder is not named. The same for every seed, but for cities."""
        if not self.variable:
            return rk.SyntheticCity(seed=self.city.get("seed", 0) + seed, **_without_seed(self.city)).trajectories()
        if not os.environ.get(self.variable):
            return None
        found = rk.read_dataset(Path(os.environ[self.variable])).truth
        if found is None:
            raise SystemExit(f"{os.environ[self.variable]} has no truth to compare with.")
        return found


def _without_seed(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "seed"}


CITY = {"people": 60, "days": 7, "step": "30min"}
NO_ROUTINE = {"share_without_routine": 1.0, "share_night_workers": 0.0, "share_without_work": 0.0}

RECIPES = {
    "geolife-36": Recipe("tune", "REKINDLE_GEOLIFE_36", f"{GEOLIFE} --step 2min --months 2 --box 5,95"),
    "geolife-41": Recipe("confirm", "REKINDLE_GEOLIFE_41", f"{GEOLIFE} --step 1min --months 3 --box 1,99"),
    "geolife-45": Recipe("tune", "REKINDLE_GEOLIFE_45", f"{GEOLIFE} --step 1min --months 5 --box 5,95"),
    "geolife-36-gaps": Recipe(
        "tune", "REKINDLE_GEOLIFE_36_GAPS", f"{GEOLIFE} --step 2min --months 2 --box 5,95 --max-gap 3h"
    ),
    "geolife-41-gaps": Recipe(
        "confirm", "REKINDLE_GEOLIFE_41_GAPS", f"{GEOLIFE} --step 1min --months 3 --box 1,99 --max-gap 3h"
    ),
    "geolife-45-gaps": Recipe(
        "tune", "REKINDLE_GEOLIFE_45_GAPS", f"{GEOLIFE} --step 1min --months 5 --box 5,95 --max-gap 3h"
    ),
    "cabspotting": Recipe("confirm", "REKINDLE_CABSPOTTING", "rekindle prepare cabspotting SRC OUT"),
    "cabspotting-gaps": Recipe(
        "confirm", "REKINDLE_CABSPOTTING_GAPS", "rekindle prepare cabspotting SRC OUT --max-gap 3h"
    ),
    "city": Recipe("tune", city=CITY),
    "city-fresh": Recipe("confirm", city=CITY | {"seed": 1000}),
    "city-no-routine": Recipe("confirm", city=CITY | NO_ROUTINE | {"seed": 1000}),
    "city-phones-off": Recipe("confirm", city=CITY | {"seed": 1000, "share_phones_off_at_night": 0.4}),
    "city-visitors": Recipe("confirm", city=CITY | {"seed": 1000, "share_visitors": 0.33}),
}
