"""The other side: lower bounds of a composed pair's delta and epsilon, which show how much the upper bounds give away.

Merging the outcomes of a cell is post-processing, so the merged pair is dominated by the original. A merged cell of
P-mass p and Q-mass q has the loss ln(p/q); every cell's loss is lowered to its lattice node plus one common offset, the
largest that lowers them all. Lowering losses under P lowers delta. What rounding may have added is subtracted.

A lower bound here speaks of the pairs themselves (which a mechanism may or may not attain), never of a running
mechanism.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft

from accounting.composer import Composer
from accounting.cumulants import LOW_TAIL, Cumulants
from accounting.pairs import MASS_ERROR, Lattice, Pair
from accounting.transform import UNIT, Curve, deltas_from_masses, tilted_product


def merged(pair: Pair, step: float, tail: float) -> tuple[Lattice, float]:
    """(lattice, offset): the pair with losses ``step * node + offset`` is dominated by `pair`."""
    lo, hi = pair.span(tail)
    first, last = math.floor(lo / step), math.ceil(hi / step)
    edges = step * (np.arange(first, last + 2, dtype=np.float64) - 0.5)
    cells = pair.cells(edges)
    nodes = step * np.arange(first, last + 1, dtype=np.float64)
    # Cells of negligible mass are dropped rather than allowed to set the offset of all.
    kept = (cells.p > tail) & (cells.q > 0)
    masses = np.where(kept, cells.p, 0.0)
    excess = np.log(cells.p[kept] / cells.q[kept]) - nodes[kept]
    # Each logarithm and each node is off by a few roundings of the loss.
    offset = float(excess.min()) - 8 * UNIT * (1 + float(np.abs(nodes).max())) if kept.any() else 0.0
    return Lattice(step, np.arange(first, last + 1, dtype=np.int64), masses, pair.infinite), offset


class LowerBound:
    """Lower bounds for the composition of the pairs of `composer`."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._curves: dict[tuple[float, float, float], tuple[Curve, float]] = {}

    def delta(self, epsilon: float) -> float:
        """A number that the composed pairs' delta at `epsilon` is not below."""
        composer = self._composer
        if not composer.parts:
            return max(0.0, -math.expm1(epsilon))
        if len(composer.parts) == 1 and composer.parts[0][1] == 1:
            return max(0.0, composer.parts[0][0].delta(epsilon) * (1 - 1e-12 - MASS_ERROR))
        if epsilon >= composer.max_loss or composer.infinite >= 1:
            return max(0.0, composer.infinite * (1 - composer.uses * MASS_ERROR))
        curve, offset = self._curve(epsilon)
        return max(0.0, curve.delta(epsilon - offset)) if epsilon - offset >= curve.step * curve.first else 0.0

    def epsilon(self, delta: float) -> float:
        """A number that the smallest epsilon of the composed pairs at `delta` is not below, at least 0."""
        low, high = 0.0, self._composer.epsilon(delta)
        if high == math.inf or high == 0 or self.delta(0.0) <= delta:
            return high if high == math.inf else 0.0
        if delta == 0:
            return high * (1 - 1e-12)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
            if high - low <= 1e-9 * high:
                break
        return low

    def _curve(self, epsilon: float) -> tuple[Curve, float]:
        composer = self._composer
        window, tail = composer.plan(epsilon)
        step, t = composer.step(window, tail, epsilon), window.tilt
        key = (step, t, tail)
        if key not in self._curves:
            self._curves[key] = self._transform(step, t, tail, epsilon)
        return self._curves[key]

    def _transform(self, step: float, t: float, tail: float, epsilon: float) -> tuple[Curve, float]:
        composer = self._composer
        pieces = [merged(pair, step, tail) for pair, _ in composer.parts]
        counts = [count for _, count in composer.parts]
        lattices = [lattice for lattice, _ in pieces]
        offset = math.fsum(count * shift for (_, shift), count in zip(pieces, counts, strict=True))
        cumulants = Cumulants([(x.losses, x.masses, n) for x, n in zip(lattices, counts, strict=True)])
        value, _, _ = cumulants(t)
        window = composer.cumulants.window(t, epsilon)
        low, high, _ = window.ends(cumulants)
        first = math.floor(low / step) - 1
        size = int(fft.next_fast_len(max(16, math.ceil(high / step) + 2 - first), real=True))
        masses, error = tilted_product(lattices, counts, t, first, size)
        # Tilted mass that wrapped round: at most LOW_TAIL from below, and Chernoff's bound from above.
        u = max(window.above - t, 1e-3)
        over = math.exp(min(0.0, cumulants(t + u)[0] - value - u * high)) if high < cumulants.support[1] else 0.0
        with np.errstate(over="ignore", under="ignore"):
            losses = step * np.arange(first, first + size, dtype=np.float64)
            scale = np.exp(np.minimum(value - t * losses, 700.0))
            spread = math.sqrt(min(size, 1 / -math.expm1(-2 * t * step) if t > 0 else size))
            slack = scale * (error * spread + LOW_TAIL + over)
            deltas = np.maximum(deltas_from_masses(masses * scale, step) - slack, 0.0)
        relative = composer.uses * MASS_ERROR * (1 + t) + size * UNIT
        return Curve(step, first, (deltas + composer.infinite) * (1 - relative), slack), offset
