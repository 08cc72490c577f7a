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

import numpy as np
from scipy import fft

from accounting.convolution import Parts, common_step, simplify
from accounting.cumulants import Cumulants, Window
from accounting.pairs import MASS_ERROR, Array, Lattice, Nodes, connect_dots, discretise, node_over
from accounting.transform import UNIT, Curve, deltas_from_masses, tilted_product

NODES = 1 << 20
_COARSE = 48
# Relative effect on delta that the choice of the lattice step aims at; the step shrinks until the lattice is full.
_GRID_ERROR = 2e-6
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
        single = len(self.parts) == 1 and self.parts[0][1] == 1
        joint = min(1.0, -math.expm1(finite) * (1 + 2e-15))
        self.infinite = max(0.0, self.parts[0][0].infinite if single else joint)
        self.max_loss = _sum_up([(pair.max_loss, count) for pair, count in self.parts])
        self._curves: dict[tuple[float, float], Curve | None] = {}
        self._coarse: list[tuple[Array, Array]] | None = None
        self._guide: Cumulants | None = None

    def delta(self, epsilon: float) -> float:
        """Upper bound of delta at a real epsilon."""
        if not self.parts:
            return max(0.0, -math.expm1(epsilon))
        if epsilon >= self.max_loss or self.infinite >= 1:
            return self.infinite
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            finite = max(0.0, self.parts[0][0].delta(epsilon) - self.infinite)
            return min(1.0, (self.infinite + _inflate(finite, 1)) * (1 + 3e-16))
        curve = self._curve_at(epsilon)
        return self.quick_delta(epsilon) if curve is None else min(curve.delta(epsilon), self.quick_delta(epsilon))

    def epsilon(self, delta: float) -> float:
        """Upper bound of the smallest epsilon >= 0 with delta(epsilon) at most `delta`; inf if there is none."""
        if not self.parts:
            return 0.0
        if self.infinite > delta:
            return math.inf
        pure = max(self.max_loss, 0.0)
        if self.infinite == delta:
            return pure
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            return min(pure, _smallest(self.delta, delta, pure))
        cumulants = self.cumulants
        finite_log = math.log(delta - self.infinite)
        if cumulants.log_delta(0.0) < finite_log + 1 and self.delta(0.0) <= delta:
            return 0.0
        best, guess = math.inf, min(cumulants.epsilon_for(finite_log), pure)
        for _ in range(4):
            curve = self._curve_at(guess)
            if curve is None:
                return _smallest(self.quick_delta, delta, pure)
            found = min(curve.epsilon(delta), pure)
            if found >= best * (1 - 1e-9):
                break
            best, guess = found, found
            if curve.precise(found):
                break
        return max(0.0, best)

    @property
    def coarse(self) -> list[tuple[Array, Array]]:
        """(losses, masses) of every pair on a few hundred nodes, dense where the mass is; each dominates its pair."""
        if self._coarse is None:
            self._coarse = []
            for pair, _ in self.parts:
                losses = pair.atoms()
                if losses is None or len(losses) < 2:
                    spans = [pair.span(tail) for tail in (1e-30, 1e-14, 1e-5, 1e-1)]
                    lo, hi = spans[0]
                    runs = [np.linspace(lo, hi, _COARSE) for lo, hi in spans if hi > lo]
                    losses = np.unique(np.concatenate([*runs, [lo, hi]])) if hi > lo else np.array([lo, lo + 1e-3])
                # An atom at the largest loss may come out above it by rounding; what is past the last node is dropped.
                losses = np.append(losses, losses[-1] + 1e-9 * max(abs(float(losses[-1])), 1e-300))
                self._coarse.append((losses, connect_dots(pair, losses)[0]))
        return self._coarse

    @property
    def cumulants(self) -> Cumulants:
        """Cumulants of the coarse pairs: a guide to tilts, windows and steps, and an upper bound of the true ones."""
        if self._guide is None:
            terms = zip(self.coarse, self.parts, strict=True)
            self._guide = Cumulants((losses, masses, count) for (losses, masses), (_, count) in terms)
        return self._guide

    def quick_delta(self, epsilon: float) -> float:
        """A cheap, looser upper bound of delta (Chernoff), for questions that it settles and for counts past any
        lattice.
        """
        if not self.parts or self.infinite >= 1:
            return self.infinite
        rounding = min(self.uses * (4e-15 + MASS_ERROR * (1 + self.cumulants.tilt_for(epsilon))), 700.0)
        return min(1.0, self.infinite + self.cumulants.delta_bound(epsilon) * math.exp(rounding) + 1e-30 * self.uses)

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
        target = min(accurate, (high - low) / 4096)
        wanted = max(target, (high - low) / self.nodes, reach / self.nodes)
        return 2.0 ** math.ceil(math.log2(wanted)) if wanted > 0 else 1.0

    def _lattices(self, step: float, tail: float, t: float) -> list[Lattice]:
        """Every pair on the lattice; where little tilted mass is left, on every second, fourth, ... node only.

        Connecting dots that are H apart adds about ``H^2 (t + 1)(t + 2) / 12`` times the tilted mass there, and that is
        kept below a small share of what the step itself adds.
        """
        share = 12 * _GRID_ERROR / (30 * self.uses * (t + 1) * (t + 2))
        found = []
        for (pair, _), (losses, masses) in zip(self.parts, self.coarse, strict=True):
            atoms = pair.atoms()
            if atoms is not None:
                top = [node_over(float(atoms[-1]), step)]
                around = np.unique(np.concatenate([np.floor(atoms / step), np.ceil(atoms / step), top]))
                nodes = around.astype(np.int64) if len(around) > 1 else None
                found.append(discretise(pair, step, tail, nodes))
                continue
            with np.errstate(divide="ignore"):
                logs = np.log(masses) + t * losses
            weights = np.exp(logs - logs.max())
            above = np.cumsum(weights[::-1])[::-1] / weights.sum()
            below = np.cumsum(masses) / masses.sum()
            with np.errstate(divide="ignore", over="ignore"):  # a mass that underflowed to 0 allows any spacing
                rising, falling = np.sqrt(share / above), np.sqrt(share / below)
            nodes = sparse_nodes(losses, rising, falling, pair.span(tail), step)
            found.append(discretise(pair, step, tail, nodes))
        return found

    def _curve_at(self, epsilon: float) -> Curve | None:
        window, tail = self.plan(epsilon)
        key = (window.tilt, tail)
        if key not in self._curves:
            self._curves[key] = self._transform(window, tail, epsilon)
        return self._curves[key]

    def _transform(self, window: Window, tail: float, epsilon: float) -> Curve | None:
        """The curve from one product of transforms; None where no lattice within the limit is fine enough."""
        step, t = self.step(window, tail, epsilon), window.tilt
        lattices = self._lattices(step, tail, self.cumulants.tilt_for(epsilon))
        counts = [count for _, count in self.parts]
        exact = Cumulants((x.losses, x.masses, n) for x, n in zip(lattices, counts, strict=True))
        low, high, past = window.ends(exact)
        first = math.floor(low / step) - 1
        if high / step - first > 4 * self.nodes:
            return None
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
            slack = scale * (error * spread) + past
            deltas = deltas_from_masses(masses * scale, step) + slack
        relative = self.uses * MASS_ERROR * (1 + t) + size * UNIT
        deltas = np.minimum(1.0, infinite * (1 + 2e-15) + deltas * (1 + relative))
        return Curve(step, first, np.minimum.accumulate(deltas), slack)


def sparse_nodes(losses: Array, rising: Array, falling: Array, span: tuple[float, float], step: float) -> Nodes:
    """Lattice nodes covering `span`, spaced by powers of two: the largest that the allowed spacings permit.

    rising[i]: spacing allowed above losses[i], non-decreasing in i. falling[i]: spacing allowed below losses[i],
    non-increasing in i. Nodes spaced by 2^j are multiples of 2^j, so runs of different spacing join.
    """
    first, last = math.floor(span[0] / step), math.ceil(span[1] / step) + 1
    levels = max(0, int(math.log2((last - first) / 32))) if last - first > 64 else 0
    middle = round(float(losses[int(np.argmin(np.maximum(rising, falling)))]) / step)
    up = down = min(max(middle, first), last)
    ups, downs = [], []
    for j in range(levels + 1):
        width = 1 << j
        # The next spacing starts where it is allowed, at the first of its own multiples outwards.
        top, bottom = last, first
        if j < levels:
            above = losses[rising >= 2 * width * step]
            below = losses[falling >= 2 * width * step]
            top = min(top, math.ceil(above[0] / step)) if len(above) else top
            bottom = max(bottom, math.floor(below[-1] / step)) if len(below) else bottom
        top, bottom = -(-max(top, up) // (2 * width)) * 2 * width, min(bottom, down) // (2 * width) * 2 * width
        ups.append(np.arange(up, top, width))
        downs.append(np.arange(down, bottom, -width))
        up, down = top, bottom
    descending = np.concatenate([*downs, [down]])
    return np.concatenate([descending[:0:-1], *ups, [up]]).astype(np.int64)


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
