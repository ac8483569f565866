"""The paper's numbers fit each other."""

from rekindle.reproduce import PAPER
from rekindle.reproduce.pictures import METRICS


def test_paper_numbers_fit_each_other():
    """Levenshtein is slightly above accuracy, as the paper says; enhanced is above baseline; errors go the other way."""
    for name, paper in PAPER.items():
        for attack in ("baseline", "enhanced"):
            assert 0 < paper.levenshtein_accuracy[attack] - paper.accuracy[attack] < 0.04, name
            assert 1 < paper.mean_error_km[attack] < 4, name
        assert paper.accuracy["enhanced"] > paper.accuracy["baseline"]
        assert paper.mean_error_km["enhanced"] < paper.mean_error_km["baseline"]
        assert {len(values) for values in paper.distinct_sets.values()} == {5}
    assert "accuracy" in METRICS
