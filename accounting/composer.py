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
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import fft, optimize, signal

from accounting.convolution import Parts, common_step, simplify
from accounting.pairs import MASS_ERROR, Array, Lattice, Pair, discretise

NODES = 1 << 20
_UNIT = 2.0**-53
_COARSE = 1024
# Relative effect on delta that the choice of the lattice step aims at; the step shrinks until the lattice is full.
_GRID_ERROR = 1e-5
_LOW_TAIL, _HIGH_TAIL = 1e-12, 1e-15
_FULL_TILT = -46.0


class _Cumulants:
    """K(t) = sum_i n_i ln E_P[e^{t loss_i}; finite] of lattice pairs, and its first two derivatives."""

    def __init__(self, lattices: Sequence[Lattice], counts: Sequence[int]) -> None:
        self._terms = [
            (np.log(lattice.masses[used]), lattice.losses[used], count)
            for lattice, count in zip(lattices, counts, strict=True)
            for used in [np.flatnonzero(lattice.masses)]
        ]

    def __call__(self, t: float) -> tuple[float, float, float]:
        value = mean = variance = 0.0
        for log_masses, losses, count in self._terms:
            weights = log_masses + t * losses
            top = float(weights.max())
            tilted = np.exp(weights - top)
            total = float(tilted.sum())
            first = float(tilted @ losses) / total
            second = float(tilted @ (losses - first) ** 2) / total
            value += count * (top + math.log(total))
            mean += count * first
            variance += count * second
        return value, mean, variance

    @property
    def support(self) -> tuple[float, float]:
        """Least and largest finite total loss."""
        least, most = (sum(count * float(losses[end]) for _, losses, count in self._terms) for end in (0, -1))
        return least, most

    def tilt_for(self, epsilon: float) -> float:
        """The t >= 0 with K'(t) = epsilon, capped where e^{t loss} would leave the range of doubles."""
        reach = max(float(np.abs(losses).max()) for _, losses, _ in self._terms)
        cap = 600.0 / max(reach, 1e-12)
        if self(0.0)[1] >= epsilon:
            return 0.0
        high = min(1.0, cap)
        while self(high)[1] < epsilon:
            if high >= cap:
                return cap
            high = min(2 * high, cap)
        return float(optimize.brentq(lambda t: self(t)[1] - epsilon, 0.0, high, rtol=1e-6))

    def log_delta(self, epsilon: float) -> float:
        """Saddle-point guess of ln delta(epsilon) (finite losses only); a guide for choosing lattices, never an
        answer.
        """
        t = self.tilt_for(epsilon)
        value, _, variance = self(t)
        return value - t * epsilon - math.log1p(t * (t + 1) * math.sqrt(max(variance, 1e-300) * 2 * math.pi))

    def epsilon_for(self, log_delta: float) -> float:
        """Guess of the epsilon at which ln delta is `log_delta`; 0 when delta(0) is already smaller."""
        if self.log_delta(0.0) <= log_delta:
            return 0.0
        high = max(1e-6, self(0.0)[1])
        ceiling = sum(count * float(losses[-1]) for _, losses, count in self._terms)
        while high < ceiling and self.log_delta(high) > log_delta:
            high *= 2
        high = min(high, ceiling)
        if self.log_delta(high) >= log_delta:
            return high
        return float(optimize.brentq(lambda e: self.log_delta(e) - log_delta, 0.0, high, xtol=1e-9, rtol=1e-6))

    def window(self, t: float, epsilon: float) -> _Window:
        """Exponents for the window of a transform tilted by t and read off near epsilon, best on a geometric grid."""
        base, _, variance = self(t)
        steps = (np.geomspace(0.05, 200.0, 30) / max(math.sqrt(variance), 1e-12)).tolist()
        best = self.tilt_for(epsilon)
        log_past = self(best)[0] - best * epsilon + math.log(_HIGH_TAIL)
        with np.errstate(over="ignore"):
            below = max(steps, key=lambda u: -(self(t - u)[0] - base - math.log(_LOW_TAIL)) / u)
            above = min(
                (u for u in (best, *(best + s for s in steps)) if u > 0), key=lambda u: (self(u)[0] - log_past) / u
            )
        return _Window(t, below, above, log_past)


@dataclass(frozen=True, slots=True)
class _Window:
    """Chernoff exponents: ``below`` for the lower tail of the law tilted by ``tilt``, ``above`` for the upper tail
    untilted.
    """

    tilt: float
    below: float
    above: float
    log_past: float

    def ends(self, cumulants: _Cumulants) -> tuple[float, float, float]:
        """(low, high, past): at most _LOW_TAIL of the tilted law is below low; past bounds P[finite loss > high].

        Mass that wraps round from below low lands at the top, where undoing the tilt makes it negligible; mass from
        above high only adds to the bound.
        """
        base = cumulants(self.tilt)[0]
        low = -(cumulants(self.tilt - self.below)[0] - base - math.log(_LOW_TAIL)) / self.below
        high = (cumulants(self.above)[0] - self.log_past) / self.above
        least, most = cumulants.support
        return max(low, least), min(high, most), math.exp(min(self.log_past, 0.0)) if high < most else 0.0


@dataclass(frozen=True)
class Curve:
    """Upper bounds of delta on a lattice of epsilons; linear in e^epsilon between nodes, as the true curve of the
    lattice pair is.
    """

    step: float
    first: int
    deltas: Array = field(repr=False)

    def delta(self, epsilon: float) -> float:
        x = epsilon / self.step - self.first
        if x < 0:
            return 1.0
        i = min(math.floor(x), len(self.deltas) - 1)
        if i + 1 >= len(self.deltas):
            return float(self.deltas[-1])
        share = math.expm1((x - i) * self.step) / math.expm1(self.step)
        low, high = float(self.deltas[i]), float(self.deltas[i + 1])
        return low + (high - low) * min(max(share, 0.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon on the curve with bound at most delta; inf when the curve never gets there."""
        under = np.flatnonzero(self.deltas <= delta)
        if not len(under):
            return math.inf
        i = int(under[0])
        if i == 0:
            return self.step * self.first
        high, low = float(self.deltas[i - 1]), float(self.deltas[i])
        share = (high - delta) / (high - low)
        inside = math.log1p(share * math.expm1(self.step)) / self.step
        return self.step * (self.first + i - 1 + min(max(inside, 0.0), 1.0)) * (1 + 1e-14) + 1e-300


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
        self._coarse: _Cumulants | None = None

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
        cumulants = self._cumulants
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
    def _cumulants(self) -> _Cumulants:
        if self._coarse is None:
            lattices = []
            for pair, _ in self.parts:
                step = common_step(((pair, 1),), _COARSE)
                lo, hi = pair.span(1e-30)
                lattices.append(discretise(pair, step or max((hi - lo) / _COARSE, 1e-300), 1e-30))
            self._coarse = _Cumulants(lattices, [count for _, count in self.parts])
        return self._coarse

    def _curve_at(self, epsilon: float) -> Curve:
        """The curve of the lattice tilted for `epsilon`; tilts are rounded so that near questions share one
        transform.
        """
        cumulants = self._cumulants
        log_delta = min(0.0, max(cumulants.log_delta(epsilon), -140.0))
        # A full tilt is needed only where delta nears the rounding of a transform; less of it keeps heavy upper tails
        # short.
        t = float(f"{cumulants.tilt_for(epsilon) * min(1.0, log_delta / _FULL_TILT):.2g}")
        tail = 10.0 ** math.floor((log_delta - math.log(self.uses)) / math.log(10) - 12)
        key = (t, tail)
        if key not in self._curves:
            self._curves[key] = self._transform(t, tail, epsilon)
        return self._curves[key]

    def _transform(self, t: float, tail: float, epsilon: float) -> Curve:
        window = self._cumulants.window(t, epsilon)
        low, high, _ = window.ends(self._cumulants)
        step = common_step(self.parts, self.nodes)
        if step is None:
            reach = max(hi - lo for lo, hi in (pair.span(tail) for pair, _ in self.parts))
            steepest = self._cumulants.tilt_for(epsilon)
            accurate = math.sqrt(12 * _GRID_ERROR / (self.uses * (steepest + 1) * (steepest + 2)))
            wanted = max(accurate, (high - low) / self.nodes, reach / self.nodes)
            step = 2.0 ** min(math.ceil(math.log2(wanted)), math.floor(math.log2(max(high - low, 1e-300) / 64)))
        lattices = [discretise_cached(pair, step, tail) for pair, _ in self.parts]
        counts = [count for _, count in self.parts]
        exact = _Cumulants(lattices, counts)
        value, _, _ = exact(t)
        low, high, past = window.ends(exact)
        first = math.floor(low / step) - 1
        size = int(fft.next_fast_len(max(16, math.ceil(high / step) + 2 - first), real=True))
        masses, error = _tilted_product(lattices, counts, t, size)
        masses = np.roll(masses, -(first % size))
        losses = step * np.arange(first, first + size, dtype=np.float64)
        infinite = -math.expm1(
            math.fsum(n * math.log1p(-min(x.infinite, 1 - 1e-16)) for x, n in zip(lattices, counts, strict=True))
        )
        with np.errstate(over="ignore", under="ignore"):
            scale = np.exp(np.minimum(value - t * losses, 700.0))
            deltas = _delta_from_masses(masses * scale, step)
            # Rounding of the transforms (Cauchy-Schwarz over the tail weights) and the mass past the window.
            spread = math.sqrt(min(size, 1 / -math.expm1(-2 * t * step) if t > 0 else size))
            deltas += scale * (error * spread) + past
        relative = self.uses * MASS_ERROR * (1 + t) + size * _UNIT
        deltas = np.minimum(1.0, (deltas + infinite) * (1 + relative))
        return Curve(step, first, np.minimum.accumulate(deltas))


@lru_cache(maxsize=512)
def discretise_cached(pair: Pair, step: float, tail: float) -> Lattice:
    """`discretise`, remembered for pairs that return in later compositions."""
    return discretise(pair, step, tail)


def _tilted_product(lattices: Sequence[Lattice], counts: Sequence[int], t: float, size: int) -> tuple[Array, float]:
    """Masses of the tilted composition, index = lattice node mod size, and a bound on the 2-norm of their rounding
    error.

    A transform of a vector with 1-norm 1 has each coefficient within ``e = 8 u log2(size)`` of the truth (depth of the
    butterfly times the rounding of one complex multiplication and addition); powers and products follow by the triangle
    inequality.
    """
    unit = 8 * _UNIT * math.log2(size)
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    log_bound = np.zeros(size // 2 + 1)
    relative = np.zeros(size // 2 + 1)
    for lattice, count in zip(lattices, counts, strict=True):
        with np.errstate(divide="ignore"):
            weights = np.log(lattice.masses) + t * lattice.losses
        weights -= weights.max()
        tilted = np.exp(weights)
        tilted /= tilted.sum()
        nodes = np.arange(lattice.first, lattice.first + len(tilted)) % size
        spectrum = fft.rfft(np.bincount(nodes, tilted, minlength=size))
        size_of = np.abs(spectrum) + unit
        log_bound += count * np.log(size_of)
        relative += count * (unit / size_of + 8 * _UNIT)
        product *= spectrum if count == 1 else spectrum**count
    bound = np.exp(np.minimum(log_bound, 1.0)) * np.minimum(1.0, relative)
    twice = np.full(len(bound), 2.0)
    twice[0] = 1.0
    if size % 2 == 0:
        twice[-1] = 1.0
    masses = fft.irfft(product, size)
    error = math.sqrt(float(twice @ bound**2) / size) + unit * float(np.linalg.norm(masses))
    return np.maximum(masses, 0.0), error


def _delta_from_masses(masses: Array, step: float) -> Array:
    """The delta at every node: ``D_j = sum_{i > j} m_i (1 - e^{-(i - j) step})``, by a recurrence of positive terms."""
    after = np.concatenate([np.cumsum(masses[::-1])[::-1][1:], [0.0]])
    # D_{j-1} = (1 - e^-step) * (mass at or after j) + e^-step D_j
    shrink = math.exp(-step)
    backwards = signal.lfilter([-math.expm1(-step)], [1.0, -shrink], after[::-1])
    return np.asarray(backwards[::-1], dtype=np.float64)


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
