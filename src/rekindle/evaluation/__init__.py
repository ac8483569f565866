"""How much of the truth a recovery found, beside what anyone could reach."""

from rekindle.evaluation.chance import deal_at_random, stay_if_possible
from rekindle.evaluation.mapping import Mapping, map_people
from rekindle.evaluation.scores import (
    METRICS,
    Evaluation,
    Metric,
    PerPerson,
    ReferenceScores,
    Spread,
    evaluate,
    reference_scores,
)
from rekindle.evaluation.unique import distinct_sets, top_places, uniqueness
from rekindle.evaluation.usefulness import UTILITIES, Utility, UtilityMetric, implied_flows, utility

__all__ = [
    "METRICS",
    "UTILITIES",
    "Evaluation",
    "Mapping",
    "Metric",
    "PerPerson",
    "ReferenceScores",
    "Spread",
    "Utility",
    "UtilityMetric",
    "deal_at_random",
    "distinct_sets",
    "evaluate",
    "implied_flows",
    "map_people",
    "reference_scores",
    "stay_if_possible",
    "top_places",
    "uniqueness",
    "utility",
]
