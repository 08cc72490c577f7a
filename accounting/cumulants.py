"""Cumulants of lattice pairs: where a composed loss lies, which tilt to use, which window holds it (Chernoff)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from accounting.pairs import Array

LOW_TAIL, HIGH_TAIL = 1e-12, 1e-15


class Cumulants:
    """K(t) = sum_i n_i ln E_P[e^{t loss_i}; finite] and its first two derivatives.

    terms: (losses, P-masses, n_i) of finitely supported pairs.
    """

    def __init__(self, terms: Iterable[tuple[Array, Array, int]]) -> None:
        used = [(losses[masses > 0], masses[masses > 0], count) for losses, masses, count in terms]
        sizes = [len(losses) for losses, _, _ in used]
        self._losses = np.concatenate([losses for losses, _, _ in used])
        self._log_masses = np.log(np.concatenate([masses for _, masses, _ in used]))
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._owner = np.repeat(np.arange(len(sizes)), sizes)
        self._counts = np.array([count for _, _, count in used], dtype=np.float64)
        self._reach = float(np.abs(self._losses).max())
        ends = np.cumsum(sizes) - 1
        least, most = self._losses[self._starts], self._losses[ends]
        self.support = (float(self._counts @ least), float(self._counts @ most))
        """Least and largest finite total loss."""

    def __call__(self, t: float) -> tuple[float, float, float]:
        weights = self._log_masses + t * self._losses
        top = np.maximum.reduceat(weights, self._starts)
        tilted = np.exp(weights - top[self._owner])
        total = np.add.reduceat(tilted, self._starts)
        first = np.add.reduceat(tilted * self._losses, self._starts) / total
        spread = tilted * (self._losses - first[self._owner]) ** 2
        second = np.add.reduceat(spread, self._starts) / total
        value = self._counts @ (top + np.log(total))
        return float(value), float(self._counts @ first), float(self._counts @ second)

    def delta_bound(self, epsilon: float) -> float:
        """Chernoff's upper bound of delta(epsilon) from finite losses: ``e^{K(t) - t epsilon} t^t / (t + 1)^(t + 1)``.

        Because ``(1 - e^-x)_+ <= e^{t x} t^t / (t + 1)^(t + 1)`` for every x.
        """
        t = self.tilt_for(epsilon)
        return math.exp(min(0.0, self(t)[0] - t * epsilon + special.xlogy(t, t) - (t + 1) * math.log1p(t)))

    def tilt_for(self, epsilon: float) -> float:
        """The t >= 0 with K'(t) = epsilon, capped where e^{t loss} would leave the range of doubles."""
        cap = 600.0 / max(self._reach, 1e-12)
        if self(0.0)[1] >= epsilon:
            return 0.0
        high = min(1.0, cap)
        while self(high)[1] < epsilon:
            if high >= cap:
                return cap
            high = min(2 * high, cap)
        return float(optimize.brentq(lambda t: self(t)[1] - epsilon, 0.0, high, rtol=1e-3))

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
        ceiling = self.support[1]
        while high < ceiling and self.log_delta(high) > log_delta:
            high *= 2
        high = min(high, ceiling)
        if self.log_delta(high) >= log_delta:
            return high
        return float(optimize.brentq(lambda e: self.log_delta(e) - log_delta, 0.0, high, rtol=1e-3))

    def window(self, t: float, epsilon: float) -> Window:
        """Exponents for the window of a transform tilted by t and read off near epsilon, best on a geometric grid."""
        base, _, variance = self(t)
        steps = (np.geomspace(0.05, 200.0, 16) / max(math.sqrt(variance), 1e-12)).tolist()
        best = self.tilt_for(epsilon)
        log_past = self(best)[0] - best * epsilon + math.log(HIGH_TAIL)
        with np.errstate(over="ignore"):
            below = max(steps, key=lambda u: -(self(t - u)[0] - base - math.log(LOW_TAIL)) / u)
            above = min(
                (u for u in (best, *(best + s for s in steps)) if u > 0), key=lambda u: (self(u)[0] - log_past) / u
            )
        return Window(t, below, above, log_past)


@dataclass(frozen=True, slots=True)
class Window:
    """Chernoff exponents: ``below`` for the lower tail of the law tilted by ``tilt``, ``above`` for the upper tail
    untilted.
    """

    tilt: float
    below: float
    above: float
    log_past: float

    def ends(self, cumulants: Cumulants) -> tuple[float, float, float]:
        """(low, high, past): at most LOW_TAIL of the tilted law is below low; past bounds P[finite loss > high].

        Mass that wraps round from below low lands at the top, where undoing the tilt makes it negligible; mass from
        above high only adds to the bound.
        """
        base = cumulants(self.tilt)[0]
        low = -(cumulants(self.tilt - self.below)[0] - base - math.log(LOW_TAIL)) / self.below
        high = (cumulants(self.above)[0] - self.log_past) / self.above
        least, most = cumulants.support
        return max(low, least), min(high, most), math.exp(min(self.log_past, 0.0)) if high < most else 0.0
