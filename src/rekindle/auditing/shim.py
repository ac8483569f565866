"""Chance and naive as attacks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rekindle.attacks import Attack, Recovery
from rekindle.evaluation import deal_at_random, stay_if_possible


@dataclass(frozen=True, kw_only=True)
class Chance(Attack):
    seed: int = 0

    def start(self, locations: Any, calendar: Any, *, people: int, progress: Any = None) -> Any:
        raise NotImplementedError

    def recover(self, counts: Any, *, progress: Any = None) -> Recovery:
        return Recovery(deal_at_random(counts, seed=self.seed), self, np.zeros(0), np.zeros(0))


class Naive(Chance):
    def recover(self, counts: Any, *, progress: Any = None) -> Recovery:
        return Recovery(stay_if_possible(counts, seed=self.seed), self, np.zeros(0), np.zeros(0))


REFERENCES: dict[str, type[Chance]] = {"chance": Chance, "naive": Naive}
