"""Membership by a classifier trained on simulated releases, with and without the person.

Knock Knock (Pyrgelis, Troncoso, De Cristofaro 2018) simulates them from a reference of real traces; with zero auxiliary
knowledge (Guan, Guépin et al. 2024) they are invented from the release alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidSetting
from rekindle.membership.traces import Traces

__all__ = ["Groups", "score_releases"]

TRAINING, VALIDATION = 400, 100
"""Simulated releases to train on, in pairs with the same others, and to choose the threshold with."""
MOST_FEATURES = 4_000
"""Numbers of a release that the classifier looks at: those of the steps and locations at which the person is counted, and the busiest."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Releases of groups of people.

    Attributes
    ----------
    traces
        The people that groups are drawn from.
    size
        People in a group.
    shape
        Steps and locations of a release.
    protect
        What the publisher does to counts (steps, locations) float64; drawn afresh at each call.
    """

    traces: Traces
    size: int
    shape: tuple[int, int]
    protect: Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]

    def others(self, random: np.random.Generator, without: int | None = None) -> NDArray[np.float64]:
        """Counts of a random group that is one person short: (steps, locations) float64."""
        options = np.arange(len(self.traces)) if without is None else np.delete(np.arange(len(self.traces)), without)
        counts = np.zeros(self.shape)
        for person in random.choice(options, min(self.size - 1, len(options)), replace=False):
            np.add.at(counts, self.traces[person], 1)
        return counts

    def release(
        self,
        counts: NDArray[np.float64],
        person: tuple[NDArray[np.int64], NDArray[np.int64]],
        features: NDArray[np.int64],
        random: np.random.Generator,
    ) -> NDArray[np.float32]:
        """Publish the counts of others and one person: the features, withheld numbers as 0."""
        counts = counts.copy()
        np.add.at(counts, person, 1)
        return np.nan_to_num(self.protect(counts, random)).ravel()[features].astype(np.float32)


def choose_features(
    person: tuple[NDArray[np.int64], NDArray[np.int64]], busy: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The numbers that the classifier looks at: (features,) int64 positions in the flattened release."""
    own = np.unique(np.ravel_multi_index(person, busy.shape))
    rest = np.argsort(-busy.ravel(), kind="stable")
    rest = rest[~np.isin(rest, own)][: max(MOST_FEATURES - len(own), 0)]
    return np.sort(np.concatenate([own, rest]))


def score_releases(
    groups: Groups,
    person: tuple[NDArray[np.int64], NDArray[np.int64]],
    releases: Sequence[NDArray[np.float64]],
    *,
    busy: NDArray[np.float64],
    random: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """Train on simulated releases, and say of others how much they look as if the person were in them.

    Parameters
    ----------
    groups
        Where simulated groups come from; the person is not among them.
    person
        Steps and locations at which the person is known to be counted.
    releases
        Published numbers (steps, locations) float64 to score.
    busy
        (steps, locations) float64: how much is published where, to choose features by.
    random
        Where groups and noise come from.

    Returns
    -------
    (releases,) float64 scores, and the threshold with the largest difference of true and false positives.
    """
    features = choose_features(person, busy)
    rows, labels = [], []
    for _ in range(TRAINING // 2):
        counts = groups.others(random)
        other = groups.traces[int(random.integers(len(groups.traces)))]
        for member, label in ((person, 1), (other, 0)):
            rows.append(groups.release(counts, member, features, random))
            labels.append(label)
    train = np.array(rows)
    mean, spread = train.mean(axis=0), train.std(axis=0)
    varies = spread > 0

    def standard(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(((values - mean) / np.where(varies, spread, 1.0))[:, varies], np.float32)

    model = _logistic()
    model.fit(standard(train), np.array(labels))
    check, truth = [], np.arange(VALIDATION) % 2
    for is_in in truth:
        other = groups.traces[int(random.integers(len(groups.traces)))]
        check.append(groups.release(groups.others(random), person if is_in else other, features, random))
    found = model.decision_function(standard(np.array(check)))
    levels = np.unique(found)
    gain = [((found >= level) & (truth == 1)).sum() - ((found >= level) & (truth == 0)).sum() for level in levels]
    given = np.array([np.nan_to_num(one).ravel()[features] for one in releases], np.float32)
    return np.asarray(model.decision_function(standard(given)), np.float64), float(levels[int(np.argmax(gain))])


def _logistic() -> Any:
    try:
        linear: Any = importlib.import_module("sklearn.linear_model")
    except ImportError:
        raise InvalidSetting(
            "The classifiers need scikit-learn, which is not installed: pip install 'rekindle-mobility[membership]'."
        ) from None
    return linear.LogisticRegression(l1_ratio=1.0, solver="liblinear", C=1.0, random_state=0)
