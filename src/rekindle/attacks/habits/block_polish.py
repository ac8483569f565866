"""Polish block by block: what takes the square of the people is done for some at a time, wherever there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rekindle.attacks.habits.blocks import Block, group
from rekindle.attacks.habits.flow_polish import polish_flows
from rekindle.attacks.habits.parallel import in_parallel
from rekindle.attacks.habits.polish import Profile, polish
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.search import HabitModel


def polish_blocks(
    problem: Problem,
    model: HabitModel,
    answers: Sequence[NDArray[np.int32]],
    *,
    size: int,
    rounds: int,
    known: Callable[[Problem, NDArray[np.int64]], Profile] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    workers: int = 1,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Polish a consensus in blocks of people who share places: everyone keeps to the counts, or flows, that their block has.

    Parameters
    ----------
    problem, model, answers, rounds, stopped
        As in `polish`. The counts of a block are those of the first answer.
    size
        About how many people are in a block.
    known
        Gives the habits that some people, by their row numbers, have beside those of the answers, in the places of a block.
    workers
        How many blocks are polished side by side; the result does not depend on it.

    Returns
    -------
    (people, ticks) int32 places and (people, ticks) float32 probability of each; one half in blocks after a stop.
    """
    tracks = answers[0].copy()
    probability = np.full(tracks.shape, 0.5, np.float32)
    groups = group(problem, tracks, size, 0)

    def task(rows: NDArray[np.int64]) -> tuple[Block, int, Profile | None]:
        block = Block.of(problem, model, [answer[rows] for answer in answers])
        return block, rounds, known(block.problem, rows) if known is not None else None

    for rows, found in zip(groups, in_parallel(polish_block, map(task, groups), workers, stopped), strict=True):
        if found is not None:
            tracks[rows], probability[rows] = found
    return tracks, probability


def polish_block(
    block: Block, rounds: int, known: Profile | None, stopped: Callable[[], bool]
) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
    """Polish one block: places of the whole problem, and their probability; None after a stop."""
    if stopped():
        return None
    flows = block.problem.flows
    if flows is None:
        tracks, probability = polish(block.problem, block.model, block.answers, rounds=rounds, known=known)
    else:
        tracks, probability = polish_flows(block.problem, flows, block.model, block.answers, rounds=rounds, exact=1)
    return block.back(tracks), probability
