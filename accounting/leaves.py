"""The pairs that are known in closed form. Each is symmetric: (P, Q) and (Q, P) have the same profile.

For a symmetric pair ``delta(-e) = 1 - exp(-e) + exp(-e) delta(e)``, because ``H_a(P||Q) = 1 - a + a H_{1/a}(Q||P)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from accounting.pairs import Array, AtomicPair, Cells

# Gauss-Legendre rules, and the roughness of a cell, width * (|x| + 1), below which their error is below rounding.
_RULES = ((0.01, *np.polynomial.legendre.leggauss(3)), (0.5, *np.polynomial.legendre.leggauss(8)))


def approximate_pair(epsilon: float, delta: float) -> AtomicPair:
    """The extremal (epsilon, delta)-DP pair: losses +-epsilon with odds e^epsilon, and delta at infinity.

    Source: Kairouz, Oh and Viswanath (2015), Theorem 3.
    """
    if epsilon == 0:
        return AtomicPair((0.0,), (1 - delta,), (1 - delta,), delta)
    likely = (1 - delta) / (1 + math.exp(-epsilon))
    rare = (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return AtomicPair((-epsilon, epsilon), (rare, likely), (likely, rare), delta)


def randomized_response_pair(noise: float, buckets: int) -> AtomicPair:
    """k-ary randomized response: with probability `noise` a uniform bucket, else the true one; two different true
    buckets.
    """
    lie, truth = noise / buckets, 1 - noise + noise / buckets
    if lie == 0:
        return AtomicPair((0.0,), (0.0,), (0.0,), 1.0)
    loss = math.log(truth / lie) * (1 + 4e-16)  # rounded up
    rest = max(0.0, 1 - truth - lie)
    return (
        AtomicPair((-loss, 0.0, loss), (lie, rest, truth), (truth, rest, lie)) if loss > 0 else approximate_pair(0, 0)
    )


def discrete_laplace_pair(rate: float, shift: int) -> AtomicPair:
    """Discrete Laplace noise, Pr[k] ~ exp(-rate |k|), against the same shifted by `shift`: losses rate (shift - 2j), j
    = 0..shift.
    """
    base = math.tanh(rate / 2)
    end = 1 / (1 + math.exp(-rate))
    losses, p = [-rate * shift], [math.exp(-rate * shift) * end]
    for j in range(1, shift):
        losses.append(rate * (2 * j - shift))
        p.append(base * math.exp(-rate * (shift - j)))
    losses.append(math.nextafter(rate * shift, math.inf))
    p.append(end)
    return AtomicPair(tuple(losses), tuple(p), tuple(reversed(p)))


@dataclass(frozen=True, slots=True)
class BoundedRangePair:
    """Worst profile of eta-bounded-range pairs.

    ``delta(e) = (1 - exp((e - eta)/2))^2 / (1 - exp(-eta))`` for |e| <= eta.

    Its slope in e^e has no jumps: under P the loss has density ``exp((l - eta)/2) / (2 (1 - exp(-eta)))`` on [-eta,
    eta].
    Source: Dong, Durfee and Rogers (2020), Theorem 4 (the supremum over the two-point pairs, attained at t = (e +
    eta)/2).
    """

    eta: float

    @property
    def infinite(self) -> float:
        return 0.0

    @property
    def max_loss(self) -> float:
        return self.eta

    def span(self, tail: float) -> tuple[float, float]:
        return -self.eta, self.eta

    def cells(self, edges: Array) -> Cells:
        cut = np.clip(edges, -self.eta, self.eta)
        width = np.diff(cut)
        scale = -math.expm1(-self.eta)
        p = np.exp((cut[1:] - self.eta) / 2) * -np.expm1(-width / 2) / scale
        q = np.exp(-(cut[:-1] + self.eta) / 2) * -np.expm1(-width / 2) / scale
        below = math.exp((cut[0] - self.eta) / 2) * -math.expm1(-(cut[0] + self.eta) / 2) / scale
        above = -math.expm1((cut[-1] - self.eta) / 2) / scale
        return Cells(p, q, below, above)

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.eta:
            return 0.0
        if epsilon <= -self.eta:
            return -math.expm1(epsilon)
        root = math.expm1((epsilon - self.eta) / 2)
        return root / -math.expm1(-self.eta) * root

    def atoms(self) -> Array | None:
        return None


@dataclass(frozen=True, slots=True)
class GaussianPair:
    """N(mu, 1) against N(0, 1): the loss is N(mu^2/2, mu^2) under P. Source: Balle and Wang (2018), Theorem 8."""

    mu: float

    @property
    def infinite(self) -> float:
        return 0.0

    @property
    def max_loss(self) -> float:
        return math.inf

    def span(self, tail: float) -> tuple[float, float]:
        reach = -float(special.ndtri_exp(math.log(tail)))
        return self.mu**2 / 2 - self.mu * reach, self.mu**2 / 2 + self.mu * reach

    def cells(self, edges: Array) -> Cells:
        x = (edges + self.mu**2 / 2) / self.mu
        below, above = float(special.ndtr(x[0] - self.mu)), float(special.ndtr(self.mu - x[-1]))
        return Cells(_normal_cells(x - self.mu), _normal_cells(x), below, above)

    def delta(self, epsilon: float) -> float:
        if epsilon < 0:
            return -math.expm1(epsilon) + math.exp(epsilon) * self.delta(-epsilon)
        a, b = epsilon / self.mu - self.mu / 2, epsilon / self.mu + self.mu / 2
        # With Mills' ratio R, delta = phi(a) (R(a) - R(b)); erfcx keeps it finite and accurate far in the tail.
        root2 = math.sqrt(2)
        if a > -5 and self.mu < 0.25:
            # R' = z R - 1: integrating it over [a, b] avoids the difference of two nearly equal ratios.
            nodes, weights = _RULES[1][1:]
            z = (a + b) / 2 + self.mu / 2 * nodes
            slope = 1 - z * math.sqrt(math.pi / 2) * special.erfcx(z / root2)
            return max(0.0, math.exp(-a * a / 2) / math.sqrt(2 * math.pi) * self.mu / 2 * float(weights @ slope))
        if a > -5:
            mills = float(special.erfcx(a / root2)) - float(special.erfcx(b / root2))
            return max(0.0, math.exp(-a * a / 2) * mills / 2)
        return max(0.0, float(special.ndtr(-a)) - math.exp(epsilon + float(special.log_ndtr(-b))))

    def atoms(self) -> Array | None:
        return None


def _normal_cells(x: Array) -> Array:
    """Standard normal masses of (x[i], x[i+1]], each to a few units in the last place relative to itself.

    Differences of the distribution function lose that for narrow cells, so those are integrated by Gauss-Legendre,
    which adds positive terms only; the rule's error is below rounding while width * (|x| + 1) < 1/2.
    """
    # An infinite edge cuts where the density has vanished below the smallest double.
    x = np.clip(x, -60.0, 60.0)
    half, centre = np.diff(x) / 2, (x[1:] + x[:-1]) / 2
    roughness = 2 * half * (np.abs(centre) + 1)
    masses = np.empty(len(half))
    done = np.zeros(len(half), dtype=bool)
    for limit, nodes, weights in _RULES:
        cell = ~done & (roughness < limit)
        total = np.zeros(int(cell.sum()))
        for node, weight in zip(nodes, weights, strict=True):
            z = centre[cell] + half[cell] * node
            total += weight * np.exp(-0.5 * z * z)
        masses[cell] = half[cell] * total / math.sqrt(2 * math.pi)
        done |= cell
    left, right = x[:-1][~done], x[1:][~done]
    flip = left > 0
    low, high = np.where(flip, -right, left), np.where(flip, -left, right)
    masses[~done] = special.ndtr(high) - special.ndtr(low)
    return masses


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """Laplace noise of scale 1 against the same shifted by `shift`: losses +-shift with atoms, a density in between.

    delta(e) = 1 - exp((e - shift)/2) for |e| <= shift.
    """

    shift: float

    @property
    def infinite(self) -> float:
        return 0.0

    @property
    def max_loss(self) -> float:
        return self.shift

    def span(self, tail: float) -> tuple[float, float]:
        return -self.shift, self.shift

    def cells(self, edges: Array) -> Cells:
        s = self.shift
        cut = np.clip(edges, -s, s)
        share = -np.expm1(-np.diff(cut) / 2) / 2
        p = np.exp((cut[1:] - s) / 2) * share
        q = np.exp(-(cut[:-1] + s) / 2) * share
        ends = AtomicPair((-s, s), (math.exp(-s) / 2, 0.5), (0.5, math.exp(-s) / 2)).cells(edges)
        below = math.exp((cut[0] - s) / 2) * -math.expm1(-(cut[0] + s) / 2) / 2
        above = -math.expm1((cut[-1] - s) / 2) / 2
        return Cells(p + ends.p, q + ends.q, below + ends.below, above + ends.above)

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.shift:
            return 0.0
        if epsilon <= -self.shift:
            return -math.expm1(epsilon)
        return -math.expm1((epsilon - self.shift) / 2)

    def atoms(self) -> Array | None:
        return None


@lru_cache(maxsize=64)
def discrete_gaussian_pair(sigma: float, shift: int) -> AtomicPair:
    """Discrete Gaussian noise against the same shifted by `shift`: losses ``shift (2 x - shift) / (2 sigma^2)`` at
    outcomes x.

    Outcomes with mass below 1e-70 of the largest are left out; their mass goes to infinite loss. Source: Canonne,
    Kamath and Steinke (2020), Definition 1.
    """
    reach = math.ceil(18 * sigma) + 2
    noise = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-(noise**2) / (2 * sigma**2))
    masses /= masses.sum()
    outcomes = noise + shift
    losses = shift * (2 * outcomes - shift) / (2 * sigma**2)
    q = np.exp(-(outcomes**2) / (2 * sigma**2)) / np.exp(-(noise**2) / (2 * sigma**2)).sum()
    return AtomicPair(tuple(losses.tolist()), tuple(masses.tolist()), tuple(q.tolist()), 1e-70)
