"""A small random generator for compiled loops: the same numbers with and without compilation, on any thread."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled

__all__ = ["generator", "gumbel", "uniform", "whole"]

_M1, _A1 = 2147483563, 40014
_M2, _A2 = 2147483399, 40692


def generator(*seed: int) -> NDArray[np.int64]:
    """Give the state of a new generator, the combined one of L'Ecuyer (1988): (2,) int64."""
    drawn = np.random.default_rng(seed).integers(1, _M2 - 1, 2)
    return np.asarray(drawn, dtype=np.int64)


@compiled()
def uniform(state: NDArray[np.int64]) -> float:
    """Draw from the open interval between 0 and 1."""
    state[0] = (state[0] * _A1) % _M1
    state[1] = (state[1] * _A2) % _M2
    z = (state[0] - state[1]) % (_M1 - 1)
    return float((z + 1.0) / (_M1 + 1.0))


@compiled()
def whole(state: NDArray[np.int64], below: int) -> int:
    """Draw a whole number from 0 to `below` - 1."""
    return min(int(uniform(state) * below), below - 1)


@compiled()
def gumbel(state: NDArray[np.int64]) -> float:
    """Draw from the standard Gumbel distribution."""
    return -math.log(-math.log(uniform(state)))
