"""Composition by direct convolution: every term is positive, so each mass keeps its relative accuracy however small it
is.

This is what the inside of a sampling step needs (amplification reads the whole curve of the base mechanism, deep tails
included); long compositions go through the tilted transforms of ``accounting.composer``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from accounting.leaves import GaussianPair
from accounting.pairs import Array, GridPair, Lattice, Pair, discretise
from accounting.renyi import RenyiPair, merge_renyi

Parts = tuple[tuple[Pair, int], ...]

INNER_NODES = 1 << 13
_TAIL = 1e-40
_UNIT = 2.0**-53


def simplify(parts: Parts) -> Parts:
    """Group equal pairs, merge Gaussians (mu adds in squares) and Renyi curves (which add), drop pairs that carry no
    loss at all.
    """
    counts: dict[Pair, int] = {}
    squares = []
    curves = []
    for pair, count in parts:
        if count == 0 or (pair.max_loss <= 0 and pair.infinite == 0):
            continue
        if isinstance(pair, GaussianPair):
            squares.append(count * pair.mu**2)
        elif isinstance(pair, RenyiPair):
            curves.append((pair, count))
        else:
            counts[pair] = counts.get(pair, 0) + count
    if squares:
        counts[GaussianPair(math.sqrt(math.fsum(squares)))] = 1
    if curves:
        counts[merge_renyi(curves)] = 1
    return tuple(counts.items())


def common_step(parts: Parts, nodes: int) -> float | None:
    """A step whose lattice holds every finite loss of every part, if the whole composition then fits into `nodes`
    nodes.

    Losses that are multiples of the step only up to rounding (1e-13 of the largest) count as such: connecting the dots
    takes care of the difference.
    """
    positive: list[float] = []
    reach = 0.0
    for pair, count in parts:
        losses = pair.atoms()
        if losses is None:
            return None
        positive += [abs(float(loss)) for loss in losses if loss != 0]
        reach += count * pair.max_loss
    if not positive:
        return None
    tolerance = 1e-13 * max(positive)
    step = 0.0
    for loss in positive:
        a, b = max(step, loss), min(step, loss)
        while b > tolerance * 100:
            a, b = b, math.remainder(a, b)
            b = abs(b)
        step = a
        if step < 2 * reach / nodes:
            return None
    # Re-fit the step to the largest loss, so that rounding in the remainders does not accumulate.
    largest = max(positive)
    step = largest / round(largest / step)
    return step if all(abs(x - step * round(x / step)) <= tolerance for x in positive) else None


@lru_cache(maxsize=256)
def composed_pair(parts: Parts, nodes: int = INNER_NODES) -> Pair:
    """One pair that dominates the adaptive composition of `parts` (symmetric pairs), from a lattice of about `nodes`
    nodes.
    """
    parts = simplify(parts)
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    if not parts:
        return GridPair(Lattice(1.0, np.zeros(1, dtype=np.int64), np.ones(1), 0.0))
    step = common_step(parts, 4 * nodes)
    if step is None:
        width = 0.0
        for pair, count in parts:
            lo, hi = pair.span(_TAIL)
            width += min(count, 40 * math.sqrt(count)) * (hi - lo)
        step = width / nodes if width > 0 else 1.0
    total: Lattice | None = None
    for pair, count in parts:
        power = _power(discretise(pair, step, _TAIL), count)
        total = power if total is None else _convolve(total, power)
    assert total is not None
    return GridPair(total)


def _power(lattice: Lattice, count: int) -> Lattice:
    result: Lattice | None = None
    square = lattice
    while True:
        if count & 1:
            result = square if result is None else _convolve(result, square)
        count >>= 1
        if not count:
            assert result is not None
            return result
        square = _convolve(square, square)


def _convolve(a: Lattice, b: Lattice) -> Lattice:
    """Both on consecutive nodes, and so is the result."""
    infinite = min(1.0, (a.infinite + b.infinite - a.infinite * b.infinite) * (1 + 4 * _UNIT))
    # A mass is a sum of so many positive products; raising all by their largest rounding scales delta up with them.
    terms = min(len(a.masses), len(b.masses))
    masses = np.convolve(a.masses, b.masses) * (1 + 2 * terms * _UNIT)
    first = int(a.nodes[0] + b.nodes[0])
    return _trim(Lattice(a.step, np.arange(first, first + len(masses), dtype=np.int64), masses, infinite))


def _trim(lattice: Lattice) -> Lattice:
    """Drop far tails: mass above goes to infinity, mass below moves up; together less than 1e-40."""
    masses: Array = lattice.masses
    above = np.cumsum(masses[::-1])[::-1]
    last = len(masses) - int(np.searchsorted(above[::-1], _TAIL, side="right"))
    below = np.cumsum(masses)
    first = min(int(np.searchsorted(below, _TAIL, side="right")), max(last - 1, 0))
    if first == 0 and last >= len(masses):
        return lattice
    last = max(last, first + 1)
    kept = masses[first:last].copy()
    kept[0] += below[first - 1] if first else 0.0
    infinite = lattice.infinite + (float(above[last]) if last < len(masses) else 0.0)
    return Lattice(lattice.step, lattice.nodes[first:last], kept, infinite)
