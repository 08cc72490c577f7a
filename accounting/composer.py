"""Composition of many dominating pairs, as an upper bound that keeps its relative accuracy at tiny delta.

For a target epsilon the P-masses of every lattice pair are tilted by ``e^{t loss}`` and renormalised, with t such that
the tilted total loss is centred at epsilon; the product of their discrete Fourier transforms is inverted; the tilt is
undone on the way to delta. Rounding in a transform is of the order of 1e-16 of the largest mass, which after tilting
sits where the answer is read off.

Everything that is left out is added: P-mass past the window (Chernoff), rounding in the transforms (a norm bound),
rounding in the masses (``MASS_ERROR`` for each use). Aliasing only adds mass to the window, which is the safe side.
Source of the idea: exponential tilting of lattice distributions, Gopi, Lee and Wutschitz (2021) use the untilted
transform.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import fft

from accounting.convolution import Parts, common_step, simplify
from accounting.cumulants import Cumulants, Window
from accounting.pairs import MASS_ERROR, Lattice, Pair, discretise
from accounting.transform import UNIT, Curve, deltas_from_masses, tilted_product

NODES = 1 << 20
_COARSE = 1024
# Relative effect on delta that the choice of the lattice step aims at; the step shrinks until the lattice is full.
_GRID_ERROR = 1e-5
_FULL_TILT = -46.0


class Composer:
    """Upper bounds of delta and epsilon for the adaptive composition of dominating pairs in one direction.

    parts: (pair, count) with count >= 1. Equal pairs are grouped and discretised once; no array exceeds ``nodes``
    doubles by more than a factor of four.
    """

    def __init__(self, parts: Parts, nodes: int = NODES) -> None:
        self.parts = simplify(parts)
        self.nodes = nodes
        self.uses = sum(count for _, count in self.parts)
        finite = math.fsum(
            count * math.log1p(-pair.infinite) if pair.infinite < 1 else -math.inf for pair, count in self.parts
        )
        self.infinite = -math.expm1(finite)
        self.max_loss = _sum_up([(pair.max_loss, count) for pair, count in self.parts])
        self._curves: dict[tuple[float, float], Curve] = {}
        self._coarse: Cumulants | None = None

    def delta(self, epsilon: float) -> float:
        """Upper bound of delta at a real epsilon."""
        if not self.parts:
            return max(0.0, -math.expm1(epsilon))
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            return min(1.0, _inflate(self.parts[0][0].delta(epsilon), 1))
        if epsilon >= self.max_loss or self.infinite >= 1:
            return min(1.0, _inflate(self.infinite, self.uses)) if self.infinite > 0 else 0.0
        return min(self._curve_at(epsilon).delta(epsilon), 1.0)

    def epsilon(self, delta: float) -> float:
        """Upper bound of the smallest epsilon >= 0 with delta(epsilon) at most `delta`; inf if there is none."""
        if not self.parts:
            return 0.0
        if (_inflate(self.infinite, self.uses) if self.infinite > 0 else 0.0) > delta:
            return math.inf
        pure = max(self.max_loss, 0.0)
        if delta == 0:
            return pure
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            return min(pure, _smallest(self.delta, delta, pure))
        cumulants = self.cumulants
        finite_log = math.log(max(delta - self.infinite, delta * 1e-9))
        if cumulants.log_delta(0.0) < finite_log + 1 and self.delta(0.0) <= delta:
            return 0.0
        best, guess = math.inf, min(cumulants.epsilon_for(finite_log), pure)
        for _ in range(4):
            found = min(self._curve_at(guess).epsilon(delta), pure)
            if found >= best * (1 - 1e-9):
                break
            close = abs(found - guess) * cumulants.tilt_for(guess) < 3
            best, guess = found, found
            if close:
                break
        return max(0.0, best)

    @property
    def cumulants(self) -> Cumulants:
        """Cumulants of a coarse lattice; they guide the choice of tilt, window and step and never enter an answer."""
        if self._coarse is None:
            lattices = []
            for pair, _ in self.parts:
                step = common_step(((pair, 1),), _COARSE)
                lo, hi = pair.span(1e-30)
                lattices.append(discretise(pair, step or max((hi - lo) / _COARSE, 1e-300), 1e-30))
            self._coarse = Cumulants(lattices, [count for _, count in self.parts])
        return self._coarse

    def plan(self, epsilon: float) -> tuple[Window, float]:
        """(window with its tilt, P-mass that each use may move to infinity) for questions near `epsilon`.

        Tilts and tails are rounded, so that near questions share one transform.
        """
        log_delta = min(0.0, max(self.cumulants.log_delta(epsilon), -140.0))
        # A full tilt is needed only where delta nears the rounding of a transform; less of it keeps heavy upper tails
        # short.
        t = float(f"{self.cumulants.tilt_for(epsilon) * min(1.0, log_delta / _FULL_TILT):.2g}")
        tail = 10.0 ** math.floor((log_delta - math.log(self.uses)) / math.log(10) - 12)
        return self.cumulants.window(t, epsilon), tail

    def step(self, window: Window, tail: float, epsilon: float) -> float:
        """The lattice step: one that holds every loss if there is one, else by accuracy, as far as the nodes reach."""
        common = common_step(self.parts, self.nodes)
        if common is not None:
            return common
        low, high, _ = window.ends(self.cumulants)
        reach = max(hi - lo for lo, hi in (pair.span(tail) for pair, _ in self.parts))
        steepest = self.cumulants.tilt_for(epsilon)
        # Connecting the dots adds about step^2 t (t + 1) / 12 to the exponent of a tilted moment, for each use.
        accurate = math.sqrt(12 * _GRID_ERROR / (self.uses * (steepest + 1) * (steepest + 2)))
        wanted = max(accurate, (high - low) / self.nodes, reach / self.nodes)
        return 2.0 ** min(math.ceil(math.log2(wanted)), math.floor(math.log2(max(high - low, 1e-300) / 64)))

    def _curve_at(self, epsilon: float) -> Curve:
        window, tail = self.plan(epsilon)
        key = (window.tilt, tail)
        if key not in self._curves:
            self._curves[key] = self._transform(window, tail, epsilon)
        return self._curves[key]

    def _transform(self, window: Window, tail: float, epsilon: float) -> Curve:
        step, t = self.step(window, tail, epsilon), window.tilt
        lattices = [discretise_cached(pair, step, tail) for pair, _ in self.parts]
        counts = [count for _, count in self.parts]
        exact = Cumulants(lattices, counts)
        low, high, past = window.ends(exact)
        first = math.floor(low / step) - 1
        size = int(fft.next_fast_len(max(16, math.ceil(high / step) + 2 - first), real=True))
        masses, error = tilted_product(lattices, counts, t, first, size)
        infinite = -math.expm1(
            math.fsum(n * math.log1p(-min(x.infinite, 1 - 1e-16)) for x, n in zip(lattices, counts, strict=True))
        )
        with np.errstate(over="ignore", under="ignore"):
            losses = step * np.arange(first, first + size, dtype=np.float64)
            scale = np.exp(np.minimum(exact(t)[0] - t * losses, 700.0))
            # Rounding of the transforms (Cauchy-Schwarz over the tail weights) and the mass past the window.
            spread = math.sqrt(min(size, 1 / -math.expm1(-2 * t * step) if t > 0 else size))
            deltas = deltas_from_masses(masses * scale, step) + scale * (error * spread) + past
        relative = self.uses * MASS_ERROR * (1 + t) + size * UNIT
        deltas = np.minimum(1.0, (deltas + infinite) * (1 + relative))
        return Curve(step, first, np.minimum.accumulate(deltas))


@lru_cache(maxsize=512)
def discretise_cached(pair: Pair, step: float, tail: float) -> Lattice:
    """`discretise`, remembered for pairs that return in later compositions."""
    return discretise(pair, step, tail)


def _inflate(value: float, uses: int) -> float:
    return value * (1 + max(uses, 1) * MASS_ERROR + 1e-12)


def _sum_up(losses: Sequence[tuple[float, int]]) -> float:
    """The sum of count * loss, rounded up; exact when it is a double."""
    if any(math.isinf(loss) for loss, _ in losses):
        return math.inf
    total = sum((Fraction(loss) * count for loss, count in losses), Fraction(0))
    near = float(total)
    return near if Fraction(near) >= total else math.nextafter(near, math.inf)


def _smallest(curve: Callable[[float], float], delta: float, high: float) -> float:
    """Smallest epsilon with curve(epsilon) <= delta by bisection that always returns the end that satisfies it."""
    low = 0.0
    if not math.isfinite(high):
        high = 1.0
        while curve(high) > delta:
            low, high = high, 2 * high
            if high > 1e12:
                return math.inf
    while high - low > 1e-13 * max(high, 1e-3):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high
