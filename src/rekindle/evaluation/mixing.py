"""What flows leave open: the truth, in which identities are mixed wherever people meet."""

from __future__ import annotations

import numpy as np

from rekindle import checks
from rekindle.model import AWAY, Trajectories


def mix_identities(truth: Trajectories, order: int = 1, seed: int = 0) -> Trajectories:
    """Mix who is who at random, at every step, among people in the same location who came there from the same ones.

    That is what an attacker gets who knows every flow of an order, and nobody's habits. Order 1: how many go from each location to each
    other one. Order 2, 3, ...: how many of those who came from a location, and before that from another one, go on to which.
    Being away counts as a location.

    Parameters
    ----------
    truth
        Where everyone really was.
    order
        How many locations a person must share with another to be mistaken for them: where they are, and where they were
        before that.
    seed
        A whole number of at least 0; another seed gives another mix.

    Returns
    -------
    As many people, without names, with the same flows of that order.
    """
    checks.whole("order", order, least=1)
    rng = np.random.default_rng(checks.whole("seed", seed))
    who = np.arange(truth.people)
    # The locations that each true person was in last, the current one first; before the first there is none.
    last = np.full((order, truth.people), AWAY - 1, dtype=np.int64)
    cells = np.empty_like(truth.cells)
    for step in range(truth.steps):
        now = truth.cells[:, step]
        moved = now != last[0]
        last[1:, moved] = last[:-1, moved]
        last[0] = now
        cells[:, step] = now[who]
        listed = np.lexsort(last[:, who])
        drawn = np.lexsort((rng.random(truth.people), *last[:, who]))
        who[listed] = who[drawn]
    return Trajectories(cells, truth.locations, truth.calendar)
