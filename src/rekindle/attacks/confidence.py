"""Agreement: how sure an attack may be of each point, from several recoveries of the same counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rekindle.attacks.alignment import align
from rekindle.attacks.base import Recovery
from rekindle.errors import InvalidData


def confidence_from_agreement(recoveries: Sequence[Recovery]) -> Recovery:
    """Give the first recovery with a confidence: the share of all of them that have the person in the same location.

    The paper's attacks decide between interchangeable people by the order in which they are listed. Where other orders
    (another `seed`) give the same answer, the counts decided; where they do not, the order did. People are matched
    between recoveries by the time they spend in the same locations.

    Parameters
    ----------
    recoveries
        At least two, of the same counts.
    """
    if len(recoveries) < 2:
        raise InvalidData(f"There are {len(recoveries)} recoveries; it takes at least two to agree.")
    first = recoveries[0].trajectories
    counts = first.counts()
    for other in recoveries[1:]:
        if other.trajectories.counts() != counts:
            raise InvalidData("The recoveries are not of the same counts.")
    aligned = align(
        [each.trajectories.cells for each in recoveries],
        0,
        lengths=np.ones(first.steps, np.int64),
        places=len(first.locations) + 1,  # the last is away: index -1
        rounds=1,
    )
    same = np.stack([each == first.cells for each in aligned]).mean(axis=0).astype(np.float32)
    return dataclasses.replace(recoveries[0], confidence=same)
