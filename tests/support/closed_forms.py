"""Profiles of textbook mechanisms in 50-digit arithmetic, each from densities or sums, not from the library's forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import numpy.typing as npt

from tests.support.finite import Pair, Real, number

_TWO = mp.mpf(2)

Curve = Callable[[float], Real]


def gaussian_delta(mu: float | Real, epsilon: float | Real) -> Real:
    """N(mu, 1) against N(0, 1): the worst event is x > epsilon / mu + mu / 2."""
    mu, epsilon = number(mu), number(epsilon)
    cut = epsilon / mu + mu / 2
    return _upper_tail(cut - mu) - mp.exp(epsilon) * _upper_tail(cut)


def gaussian_epsilon(mu: float | Real, delta: float | Real) -> Real:
    """The epsilon >= 0 with gaussian_delta = delta, by bisection."""
    mu, delta = number(mu), number(delta)
    if gaussian_delta(mu, 0) <= delta:
        return mp.mpf(0)
    high = mp.mpf(1)
    while gaussian_delta(mu, high) > delta:
        high *= 2
    low = mp.mpf(0)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def laplace_delta(shift: float | Real, epsilon: float | Real) -> Real:
    """Laplace noise of scale 1 at `shift` against 0: the loss grows with x, so the worst event is a half-line; the
    supremum over half-lines from their probabilities.
    """
    shift, epsilon = number(shift), number(epsilon)
    if epsilon >= shift:
        return mp.mpf(0)
    if epsilon <= -shift:
        return 1 - mp.exp(epsilon)
    cut = (epsilon + shift) / 2
    return _laplace_tail(cut - shift) - mp.exp(epsilon) * _laplace_tail(cut)


def homogeneous_delta(epsilon0: float, delta0: float, count: int, epsilon: float | Real) -> Real:
    """`count` uses of an (epsilon0, delta0)-DP mechanism: Kairouz, Oh and Viswanath (2015), Theorem 4, as a sum."""
    e0, d0, epsilon = number(epsilon0), number(delta0), number(epsilon)
    grow, lift = mp.exp(e0), mp.exp(epsilon)
    total, choose, weight = mp.mpf(0), mp.mpf(1), grow**count
    for losses in range(count + 1):
        if (count - 2 * losses) * e0 <= epsilon:
            break
        total += choose * (weight - lift * grow**losses)
        choose = choose * (count - losses) / (losses + 1)
        weight /= grow
    finite = count * mp.log1p(-d0)
    return -mp.expm1(finite) + mp.exp(finite) * total / (1 + grow) ** count


def bounded_range_delta(eta: float, epsilon: float) -> Real:
    """The largest divergence over the two-point pairs with log-ratios t and t - eta, t in [0, eta]: the best of a grid,
    then a ternary search around it.
    """
    width, lift = number(eta), mp.exp(number(epsilon))

    def height(t: Real) -> Real:
        q = (1 - mp.exp(t - width)) / (mp.exp(t) - mp.exp(t - width))
        p = mp.exp(t) * q
        return max(p - lift * q, mp.mpf(0)) + max((1 - p) - lift * (1 - q), mp.mpf(0))

    best = max(range(1, 100), key=lambda i: height(width * i / 100))
    return height(_lowest(lambda t: -height(t), width * (best - 1) / 100, width * (best + 1) / 100))


def discrete_pair(log_mass: Any, shift: int, reach: int) -> Pair:
    """A law on the integers with the given log-mass (up to a constant) against the same moved by `shift`, outcomes cut
    at +-reach around both centres.
    """
    masses = {k: mp.exp(log_mass(k)) for k in range(-reach - shift, reach + shift + 1)}
    total = mp.fsum(masses.values())
    zero = mp.mpf(0)
    return [(masses[k] / total, masses.get(k - shift, zero) / total) for k in masses]


def randomized_response_pair(noise: float, buckets: int) -> Pair:
    """With probability `noise` a uniform bucket, else the true one: bucket 0 against bucket 1."""
    other = number(noise) / buckets
    true = 1 - number(noise) + other
    return [(true, other), (other, true), *([(other, other)] * (buckets - 2))]


def poisson_gaussian_delta(mu: float | Real, rate: float, epsilon: float, *, removal: bool) -> Real:
    """One step of Poisson-sampled Gaussian noise: the likelihood ratio grows with x, so the worst event is a half-line
    that starts where the ratio crosses e^epsilon.
    """
    mu, r, a = number(mu), number(rate), mp.exp(number(epsilon))
    if removal:
        if a <= 1 - r:
            return 1 - a
        cut = mp.log((a - 1 + r) / r) / mu + mu / 2
        return r * _upper_tail(cut - mu) + (1 - r) * _upper_tail(cut) - a * _upper_tail(cut)
    if a * (1 - r) >= 1:
        return mp.mpf(0)
    cut = mp.log((1 - a * (1 - r)) / (a * r)) / mu + mu / 2
    lower, shifted = _upper_tail(-cut), _upper_tail(mu - cut)
    return lower - a * ((1 - r) * lower + r * shifted)


def poisson_laplace_delta(shift: float, rate: float, epsilon: float, *, removal: bool) -> Real:
    """One step of Poisson-sampled Laplace noise, by quadrature of the densities between their kinks."""
    s, r, a = number(shift), number(rate), mp.exp(number(epsilon))

    def gap(x: Real) -> Real:
        far, near = mp.exp(-abs(x - s)) / 2, mp.exp(-abs(x)) / 2
        mixed = r * far + (1 - r) * near
        return mixed - a * near if removal else near - a * mixed

    kinks = [mp.mpf(-80), mp.mpf(0), s, s + 80]
    grid = [left + (right - left) * i / 8 for left, right in itertools.pairwise(kinks) for i in range(8)] + [kinks[-1]]
    roots = [
        mp.findroot(gap, (left, right), solver="anderson", tol=1e-40)
        for left, right in itertools.pairwise(grid)
        if gap(left) * gap(right) < 0
    ]
    pieces = itertools.pairwise(sorted({*grid, *roots}))
    return mp.fsum(mp.quad(gap, [left, right]) for left, right in pieces if gap((left + right) / 2) > 0)


def poisson_laplace_bracket(shift: float, rate: float, count: int, epsilon: float, cells: int) -> tuple[float, float]:
    """(lower, upper) bounds of delta of `count` removal steps: x is cut into cells, each cell's loss is rounded down or
    up to a grid, and probabilities are convolved directly.

    The loss grows with x and is constant outside [0, shift].
    """
    edges = np.linspace(0.0, shift, cells + 1)
    noise = np.diff(-np.expm1(-edges)) / 2  # mass of Laplace noise at 0 in each cell
    shifted = np.diff(np.exp(edges - shift)) / 2
    outside = np.array([math.exp(-shift) / 2, 0.5])  # of the shifted noise, below 0 and above shift
    mixed = rate * np.concatenate([outside, shifted]) + (1 - rate) * np.concatenate([outside[::-1], noise])

    def loss(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.log1p(rate * np.expm1(2 * x - shift))

    ends = loss(np.array([0.0, shift]))
    step = float(ends[1] - ends[0]) / cells
    bounds = []
    for left, rounded in ((edges[:-1], np.floor), (edges[1:], np.ceil)):
        nodes = rounded(np.concatenate([ends, loss(left)]) / step).astype(int)
        law = np.bincount(nodes - nodes.min(), mixed)
        total = np.ones(1)
        for _ in range(count):
            total = np.convolve(total, law)
        losses = step * (count * nodes.min() + np.arange(len(total)))
        over = losses > epsilon
        bounds.append(float(total[over] @ -np.expm1(epsilon - losses[over])))
    return bounds[0], bounds[1]


def renyi_divergence(pair: Pair, order: float) -> Real:
    """ln(sum p^order q^(1 - order)) / (order - 1)."""
    a = number(order)
    return mp.log(mp.fsum(p**a * q ** (1 - a) for p, q in pair if p > 0)) / (a - 1)


def renyi_delta(curve: Any, epsilon: float) -> Real:
    """The smallest delta over orders that a Renyi curve implies (Canonne, Kamath and Steinke 2020, Proposition 12)."""

    def log_delta(order: Real) -> Real:
        return (order - 1) * (curve(order) - epsilon) + order * mp.log1p(-1 / order) - mp.log(order - 1)

    orders = [1 + mp.mpf(10) ** (mp.mpf(i) / 100) for i in range(-300, 501)]
    best = min(range(len(orders)), key=lambda i: log_delta(orders[i]))
    low, high = orders[max(best - 1, 0)], orders[min(best + 1, len(orders) - 1)]
    return min(mp.mpf(1), mp.exp(log_delta(_lowest(log_delta, low, high))))


def permute_and_flip_law(scores: Sequence[float], epsilon: float) -> dict[int, Real]:
    """Permute-and-flip by enumeration of the orders: each candidate in turn is accepted with probability
    exp(epsilon (q - max q) / 2), over sensitivity 1.
    """
    accept = [mp.exp(number(epsilon) * (score - max(scores)) / 2) for score in scores]
    law = {i: mp.mpf(0) for i in range(len(scores))}
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = mp.mpf(1)
        for i in order:
            law[i] += reached * accept[i] / len(orders)
            reached *= 1 - accept[i]
    return law


def evenly(low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """`count` rationals from low to high."""
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def _lowest(height: Any, low: Real, high: Real) -> Real:
    """Where a function with one valley in [low, high] is lowest, by ternary search."""
    for _ in range(90):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if height(one) < height(two) else (one, high)
    return (low + high) / 2


def _upper_tail(x: Real) -> Real:
    return mp.erfc(x / mp.sqrt(_TWO)) / 2


def _laplace_tail(x: Real) -> Real:
    return mp.exp(-x) / 2 if x >= 0 else 1 - mp.exp(x) / 2
