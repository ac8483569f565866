"""Alignment: the people of several answers in one order, by the time that they spend in the same places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.assignment.kernels import compiled
from rekindle.assignment.sparse import Candidates, cheapest, in_threads, reassign, shortlist

__all__ = ["align"]

MOST_WORK = 2e9
"""Alignment looks at a sample of the ticks where it would otherwise take more comparisons than this."""
DENSE_UP_TO = 500
"""People up to whom all pairs are compared; beyond, those who were together most."""
MOST_ROUNDS_BY_LISTS = 2
MEETINGS = 5_000
"""Meetings of each person with others that alignment by lists looks at, about: a sample of the ticks."""
CROWD = 2_000
"""A place with more people than that at a tick (mostly: away) tells nothing of who is who."""
LISTED = 32
CHUNK = 512
STEPS = (0.05, 0.01, 0.002)
"""By how much prices rise in the auctions of an alignment by lists, as shares of the time."""


def align(
    answers: Sequence[NDArray[np.integer]],
    reference: int,
    *,
    lengths: NDArray[np.int64],
    places: int,
    rounds: int = 6,
) -> list[NDArray[np.integer]]:
    """Order the people of each answer alike.

    Parameters
    ----------
    answers
        Each (people, ticks) places.
    reference
        The answer that the others are matched to at first; then all are matched to the average of all.
    lengths
        (ticks,) int64: how much each tick counts.
    places
        How many places there are.
    rounds
        At most how often.

    Returns
    -------
    The answers, with their people in another order.
    """
    people, ticks = answers[0].shape
    if people > DENSE_UP_TO:
        return _align_by_lists(answers, reference, lengths, places, min(rounds, MOST_ROUNDS_BY_LISTS))
    every = max(1, int(np.ceil(len(answers) * people * people * ticks * rounds / MOST_WORK)))
    chosen = np.arange(0, ticks, every)
    weight = lengths[chosen].astype(np.float64)
    stack = np.stack([answer[:, chosen] for answer in answers]).astype(np.int32, order="C")
    orders = np.zeros((len(answers), people), np.int64)
    model = stack[reference : reference + 1]
    for _ in range(rounds):
        likeness = _likeness(model, stack, weight, places)
        new = np.stack([linear_sum_assignment(-each)[1] for each in likeness])
        if np.array_equal(new, orders):
            break
        orders = new
        model = np.ascontiguousarray(np.take_along_axis(stack, orders[:, :, None], axis=1))
    return [answer[order] for answer, order in zip(answers, orders, strict=True)]


def _align_by_lists(
    answers: Sequence[NDArray[np.integer]], reference: int, lengths: NDArray[np.int64], places: int, rounds: int
) -> list[NDArray[np.integer]]:
    people, ticks = answers[0].shape
    met = sum(_crowds(answers[reference][:, tick], places) for tick in range(0, ticks, max(1, ticks // 24)))
    met *= ticks / len(range(0, ticks, max(1, ticks // 24)))
    every = max(1, int(np.ceil(met / people / MEETINGS)))
    chosen = np.arange(every // 2, ticks, every)
    weight = lengths[chosen] / lengths[chosen].sum()
    # The last place may be written as -1.
    sampled = [np.ascontiguousarray(answer[:, chosen].T % places).astype(np.int32) for answer in answers]
    orders = [np.arange(people)] * len(answers)
    model = [sampled[reference]]
    for turn in range(rounds):
        for number, answer in enumerate(sampled):
            if turn == 0 and number == reference:
                continue
            costs = _Apart(model, answer, weight, places)
            one = np.ones(people, np.int64)
            orders[number] = reassign(costs, orders[number], one, steps=STEPS).columns
        model = [answer[:, order] for answer, order in zip(sampled, orders, strict=True)]
    return [answer[order] for answer, order in zip(answers, orders, strict=True)]


def _crowds(cells: NDArray[np.integer], places: int) -> float:
    """How many people meet how many, at one tick."""
    there = np.bincount(cells % places, minlength=places).astype(np.float64)
    return float((there[there <= CROWD] ** 2).sum())


class _Apart:
    """Costs of taking a person of an answer for one of the model: the share of the time that they are not together."""

    def __init__(
        self, model: list[NDArray[np.int32]], answer: NDArray[np.int32], weight: NDArray[np.float64], places: int
    ) -> None:
        ticks = len(answer)
        self.model, self.answer, self.weight = np.ascontiguousarray(np.stack(model)), answer, weight
        self.there = np.argsort(answer, axis=1, kind="stable").astype(np.int32)
        self.begin = np.zeros((ticks, places + 1), np.int64)
        for tick in range(ticks):
            self.begin[tick, 1:] = np.cumsum(np.bincount(answer[tick], minlength=places))

    def scan(self, rows: NDArray[np.int64], prices: NDArray[np.float64], slack: float) -> Candidates:
        columns = np.full((len(rows), LISTED), -1, np.int32)
        costs = np.full((len(rows), LISTED), np.inf)
        bound = np.empty(len(rows))
        by_price, equal = cheapest(prices, slack)

        def work(span: slice) -> None:
            _scan_together(
                span.start, rows[span], self.model, self.there, self.begin, self.weight, prices, by_price, equal,
                columns[span], costs[span], bound[span],
            )  # fmt: skip

        in_threads(work, len(rows), chunk=CHUNK)
        return Candidates(columns, costs, bound)

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(_apart(rows, columns, self.model, self.answer, self.begin, self.weight))


@compiled()
def _scan_together(first, rows, model, there, begin, weight, prices, by_price, equal, columns, costs, bound):
    """List the people of an answer who are together with each person of the model most."""
    members, ticks, people = model.shape
    together = np.zeros(people)
    met = np.zeros(people, np.bool_)
    found = np.empty(people, np.int64)
    cost = np.empty(people)
    value = np.empty(people)
    for at in range(len(rows)):
        known = np.int64(0)
        for tick in range(ticks):
            share = weight[tick] / members
            for member in range(members):
                place = model[member, tick, rows[at]]
                start, end = begin[tick, place], begin[tick, place + 1]
                if end - start > CROWD:
                    continue
                for entry in range(start, end):
                    other = there[tick, entry]
                    if not met[other]:
                        met[other] = True
                        found[known] = other
                        known += 1
                    together[other] += share
        for one in range(known):
            cost[one] = max(1.0 - together[found[one]], 0.0)
            together[found[one]] = 0.0
        bound[at] = shortlist(
            first + at, known, found, cost, met, 1.0, prices, by_price, equal, value, columns[at], costs[at]
        )


@compiled()
def _apart(rows, columns, model, answer, begin, weight):
    """Share of the time that people of the model and of the answer are not together: (rows, columns) float64."""
    members, ticks, _ = model.shape
    costs = np.ones((len(rows), len(columns)))
    for row in range(len(rows)):
        for tick in range(ticks):
            for member in range(members):
                place = model[member, tick, rows[row]]
                if begin[tick, place + 1] - begin[tick, place] > CROWD:
                    continue
                for column in range(len(columns)):
                    if answer[tick, columns[column]] == place:
                        costs[row, column] -= weight[tick] / members
    return np.maximum(costs, 0.0)


@compiled()
def _likeness(
    model: NDArray[np.int32], answers: NDArray[np.int32], weight: NDArray[np.float64], places: int
) -> NDArray[np.float64]:
    """Time that each person of the model, averaged over its members, and each of an answer spend together."""
    members, people, ticks = model.shape
    likeness = np.zeros((len(answers), people, people))
    votes = np.zeros((people, places))
    for tick in range(ticks):
        share = weight[tick] / members
        for member in range(members):
            for person in range(people):
                votes[person, model[member, person, tick]] += share
        for answer in range(len(answers)):
            for row in range(people):
                for column in range(people):
                    likeness[answer, row, column] += votes[row, answers[answer, column, tick]]
        for member in range(members):
            for person in range(people):
                votes[person, model[member, person, tick]] = 0.0
    return likeness
