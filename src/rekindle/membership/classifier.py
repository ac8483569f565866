"""Membership by a classifier trained on simulated releases, with and without the person.

Knock Knock (Pyrgelis, Troncoso, De Cristofaro 2018) simulates them from a reference of real traces; with zero auxiliary
knowledge (Guan, Guépin et al. 2024) they are invented from the release alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rekindle.frames import optional
from rekindle.membership.channel import Channel

TRAINING, VALIDATION = 400, 100
"""Simulated releases to train on, in pairs with the same others, and to choose the threshold with."""
MOST_NUMBERS = 4_000
"""Numbers of a release that the classifier looks at: where the person is counted, and the largest ones."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Releases of random groups of people.

    Attributes
    ----------
    traces
        (people, numbers) sparse: in which numbers of a release each person is counted.
    size
        People in a group.
    channel
        What is done to a number before it is published.
    """

    traces: csr_array
    size: int
    channel: Channel

    def looking_at(self, numbers: NDArray[np.int64]) -> Groups:
        """The same people, counted in some numbers only."""
        return Groups(self.traces[:, numbers], self.size, self.channel)

    def others(self, groups: int, random: np.random.Generator, without: int | None = None) -> NDArray[np.float64]:
        """Counts of groups that are one person short: (groups, numbers) float64."""
        people = np.arange(self.traces.shape[0])
        options = people if without is None else np.delete(people, without)
        chosen = [random.choice(options, self.size - 1, replace=False) for _ in range(groups)]
        rows = np.repeat(np.arange(groups), self.size - 1)
        drawn = csr_array((np.ones(len(rows)), (rows, np.concatenate(chosen))), shape=(groups, len(people)))
        return np.asarray((drawn @ self.traces).toarray(), np.float64)

    def anyone(self, number: int, random: np.random.Generator, without: int | None = None) -> NDArray[np.float64]:
        """Random people: (number, numbers) float64."""
        people = np.arange(self.traces.shape[0])
        options = people if without is None else np.delete(people, without)
        return np.asarray(self.traces[random.choice(options, number)].toarray(), np.float64)

    def publish(self, counts: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float32]:
        """Protect counts; withheld numbers become 0."""
        return np.nan_to_num(self.channel.publish(counts, random)).astype(np.float32)


def choose_numbers(person: NDArray[np.int64], busy: NDArray[np.float64]) -> NDArray[np.int64]:
    """The numbers that the classifier looks at: (numbers,) int64 positions in the flattened release."""
    largest = np.argsort(-busy, kind="stable")
    rest = largest[~np.isin(largest, person)][: max(MOST_NUMBERS - len(person), 0)]
    return np.sort(np.concatenate([person, rest]))


def score_releases(
    groups: Groups, person: NDArray[np.float64], releases: NDArray[np.float32], random: np.random.Generator
) -> tuple[NDArray[np.float64], float]:
    """Train on simulated releases, and say of others how much they look as if the person were in them.

    Parameters
    ----------
    groups
        Where simulated groups come from; the person is not among them.
    person
        (numbers,) float64: in which numbers the person is known to be counted.
    releases
        (releases, numbers) float32: published numbers to score.
    random
        Where groups and noise come from.

    Returns
    -------
    (releases,) float64 scores, and the threshold with the largest difference of true and false positives.
    """
    others = groups.others(TRAINING // 2, random)
    pairs = np.concatenate([others + person, others + groups.anyone(len(others), random)])
    train, labels = groups.publish(pairs, random), np.repeat([1, 0], len(others))
    mean, spread = train.mean(axis=0), train.std(axis=0)
    varies = spread > 0
    if not varies.any():  # all is withheld, with the person and without
        return np.zeros(len(releases)), 0.0

    def standard(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(((values - mean) / np.where(varies, spread, 1.0))[:, varies], np.float32)

    model = _logistic()
    model.fit(standard(train), labels)
    is_in = np.arange(VALIDATION) % 2 == 1
    unpaired = np.where(is_in[:, None], person, groups.anyone(VALIDATION, random))
    found = model.decision_function(standard(groups.publish(groups.others(VALIDATION, random) + unpaired, random)))
    levels = np.unique(found)
    gain = [(found[is_in] >= level).sum() - (found[~is_in] >= level).sum() for level in levels]
    return np.asarray(model.decision_function(standard(releases)), np.float64), float(levels[int(np.argmax(gain))])


def _logistic() -> Any:
    linear = optional("sklearn.linear_model", extra="membership", what="A classifier")
    return linear.LogisticRegression(l1_ratio=1.0, solver="liblinear", C=1.0, random_state=0)
