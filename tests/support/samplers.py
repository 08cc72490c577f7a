"""Pairs of output laws to audit from samples, with their truth: finite laws as vectors, and simple samplers of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.sequential import SequentialTest

Array = npt.NDArray[np.float64]
Laws = tuple[Array, Array]
Draw = Callable[[int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


def randomized_response(epsilon: float) -> Laws:
    """epsilon-DP exactly."""
    a = 1.0 / (1.0 + math.exp(-epsilon))
    return np.array([a, 1.0 - a]), np.array([1.0 - a, a])


def discrete_laplace(epsilon: float, size: int = 40) -> Laws:
    """A count of 0 against 1, with discrete Laplace noise, clamped to [-size, size + 1]: epsilon-DP exactly."""
    values = np.arange(-size, size + 2)
    mass = np.stack([np.exp(-epsilon * np.abs(values - count)) for count in (0, 1)])
    mass *= math.tanh(epsilon / 2.0)
    # All mass beyond an end lies on it.
    for row in mass:
        row[0] /= 1.0 - math.exp(-epsilon)
        row[-1] /= 1.0 - math.exp(-epsilon)
    assert np.allclose(mass.sum(axis=1), 1.0)
    return mass[0], mass[1]


def truncated_geometric(count: int, *, n: int = 5, k: int = 3) -> Laws:
    """`count` against `count + 1` of n, by integer weights with base 1 + 2^-k; epsilon is ln(1 + 2^-k) exactly."""
    scale = (2 ** (k + 1) + 1) * (2**k + 1) ** (n - 1)

    def below(c: int, z: int) -> int:
        if z < c:
            return int(2 ** (k * (c - z)) * (2**k + 1) ** (n - (c - z)))
        return int(scale - 2 ** (k * (z - c + 1)) * (2**k + 1) ** (n - 1 - (z - c))) if z < n else scale

    first, second = (np.diff([0, *(below(c, z) for z in range(n + 1))]) / scale for c in (count, count + 1))
    return first, second


def threshold_release(size: int = 30) -> tuple[Laws, float]:
    """1 + discrete Laplace(1), released if at least 5, against nothing; the delta that is claimed (true: 0.01339)."""
    decay = math.exp(-1.0)
    tail = decay**4 / (1.0 + decay) * (1.0 - decay) * decay ** np.arange(size)
    silent = np.zeros(size + 1)
    silent[0] = 1.0
    return (np.array([1.0 - tail.sum(), *tail]), silent), math.exp(-5.0) / (1.0 + decay)


def uniform(size: int) -> Laws:
    """Equal laws."""
    return np.full(size, 1.0 / size), np.full(size, 1.0 / size)


def batch_sizes(limit: int, growth: float) -> Iterator[int]:
    """Sizes of batches that grow with the past and sum to `limit`."""
    done = 0
    while done < limit:
        size = min(max(1, int(growth * done)), limit - done)
        yield size
        done += size


def pairs_to_refute(
    test: SequentialTest,
    draw: Draw,
    limit: int,
    growth: float = 1 / 25,
) -> float:
    """Pairs of runs at which the claim was refuted; infinity if it was not by `limit`."""
    for size in batch_sizes(limit, growth):
        test.update(*draw(size))
        if test.refuted:
            return test.runs
    return math.inf


def draw_from(laws: Laws, rng: np.random.Generator) -> Draw:
    """Samples of category numbers."""

    def draw(size: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        first, second = (rng.choice(len(law), size=size, p=law) for law in laws)
        return first, second

    return draw
