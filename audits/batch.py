"""Fixed-size exact tests: p-values and lower confidence bounds for an event chosen before the runs were made.

An event E has probability p under M(D) and q under M(D'). The claims tested are boundaries ``p <= B(q)`` with B
non-decreasing: ``B(q) = e^epsilon q + delta`` for (epsilon, delta)-DP, ``B(q) = Phi(Phi^-1(q) + mu)`` for mu-GDP. Every
p-value here is at least the true one, and every lower bound is rounded down; none needs a large sample.

A bound says nothing unless the event, the pair of datasets and the numbers of runs were fixed before these runs, on
other runs if need be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from accounting import check_epsilon, check_int, check_probability, check_real

Array = npt.NDArray[Any]
Order = Callable[[Array, Array], Array]

_REFINEMENTS = 4
_FIRST_CELLS = 8
_PATIENCE = 0.03
_RESOLUTION = 1e-3
_WALD = 1.645


def conditional_p_value(inside: int, inside_neighbour: int, *, epsilon: float) -> float:
    """p-value of epsilon-DP (delta = 0) from labelled runs.

    Each run drew a fair coin to choose between D and D', and independently of the others. inside, inside_neighbour: how
    many of the D and D' runs fell into the event. Given their sum s, ``inside ~ Bin(s, p / (p + q))`` exactly, and the
    claim says ``p / (p + q) <= e^epsilon / (1 + e^epsilon)``.
    """
    x, y = check_int("inside", inside, lo=0), check_int("inside_neighbour", inside_neighbour, lo=0)
    share = special.expit(check_epsilon("epsilon", epsilon))
    return 1.0 if x == 0 else min(1.0, float(special.betainc(x, y + 1, share)) * (1 + 1e-10))


def conditional_epsilon_lower(inside: int, inside_neighbour: int, *, confidence: float) -> float:
    """Lower confidence bound for epsilon at delta = 0, by inverting ``conditional_p_value`` (Clopper and Pearson 1934).

    ``logit(Beta^-1(alpha; x, y + 1))``, at least 0. It also settles events that D' never reaches: y = 0 gives
    logit(alpha^(1/x)).
    """
    x, y = check_int("inside", inside, lo=0), check_int("inside_neighbour", inside_neighbour, lo=0)
    alpha = 1 - check_real("confidence", confidence, lo=0.0, hi=1.0, lo_open=True, hi_open=True)
    if x == 0:
        return 0.0
    share = float(special.betaincinv(x, y + 1, alpha))
    return max(0.0, float(special.logit(share)) - 1e-9)


def dp_boundary(epsilon: float, delta: float) -> Callable[[float], float]:
    """Q -> e^epsilon q + delta, at most 1."""
    rate, shift = math.exp(check_epsilon("epsilon", epsilon)), check_probability("delta", delta)
    return lambda q: min(1.0, rate * q + shift)


def gdp_boundary(mu: float) -> Callable[[float], float]:
    """Q -> Phi(Phi^-1(q) + mu). Source: Dong, Roth and Su (2022), Definition 3."""
    shift = check_epsilon("mu", mu)
    return lambda q: float(special.ndtr(special.ndtri(q) + shift))


@dataclass(frozen=True, slots=True)
class Counts:
    """What was seen: `inside` of `runs` runs on D fell into the event, and `inside_neighbour` of `runs_neighbour` on
    D'.

    All runs are independent, and their numbers were fixed beforehand.
    """

    inside: int
    runs: int
    inside_neighbour: int
    runs_neighbour: int

    def __post_init__(self) -> None:
        n, m = check_int("runs", self.runs, lo=1), check_int("runs_neighbour", self.runs_neighbour, lo=1)
        check_int("inside", self.inside, lo=0, hi=n)
        check_int("inside_neighbour", self.inside_neighbour, lo=0, hi=m)


def dp_p_value(counts: Counts, *, epsilon: float, delta: float, alpha: float) -> float:
    """p-value of (epsilon, delta)-DP; alpha: the level at which it will be read. See ``_boundary_p_value``."""
    return _boundary_p_value(counts, dp_boundary(epsilon, delta), _ratio_order(counts, delta), alpha)


def gdp_p_value(counts: Counts, *, mu: float, alpha: float) -> float:
    """p-value of mu-GDP; alpha: the level at which it will be read. See ``_boundary_p_value``."""
    return _boundary_p_value(counts, gdp_boundary(mu), _probit_order(counts), alpha)


def _boundary_p_value(counts: Counts, boundary: Callable[[float], float], order: Order, alpha: float) -> float:
    """p-value of the claim ``p <= boundary(q)``, never below an exact unconditional one.

    Outcomes (x, y) are ordered by a Wald lower bound of their distance from the claim; the order does not depend on
    epsilon or mu, so p-values of nested claims are nested. The p-value is ``alpha/50`` plus the largest probability,
    over p at the boundary and q in a 1 - alpha/50 confidence interval (Clopper and Pearson 1934), of an outcome at
    least as far (Berger and Boos 1994). Because "at least as far" is an up-set in (x, -y), its probability for q in a
    cell [lo, hi] is at most the one with p = boundary(hi) and q = lo; cells are halved while that matters.
    """
    share = alpha / 50
    y, m = counts.inside_neighbour, counts.runs_neighbour
    low = float(special.betaincinv(y, m - y + 1, share / 2)) if y > 0 else 0.0
    high = float(special.betaincinv(y + 1, m - y, 1 - share / 2)) if y < m else 1.0
    region = _Region(counts, order)
    edges = np.linspace(low, high, _FIRST_CELLS + 1)
    cells = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    bounds = [region.probability(boundary(hi), lo) for lo, hi in cells]
    for _ in range(_REFINEMENTS):
        inner = max(region.probability(boundary(lo), lo) for lo, _ in cells)
        limit = max(inner + _PATIENCE * alpha, _PATIENCE * alpha)
        if max(bounds) <= limit or inner > 1.2 * alpha:
            break
        kept, values = [], []
        for (lo, hi), bound in zip(cells, bounds, strict=True):
            middle = (lo + hi) / 2
            halves = [(lo, hi)] if bound <= limit else [(lo, middle), (middle, hi)]
            kept += halves
            values += [bound] if bound <= limit else [region.probability(boundary(b), a) for a, b in halves]
        cells, bounds = kept, values
    return min(1.0, max(bounds) * (1 + 1e-9) + share)


def epsilon_lower(counts: Counts, *, delta: float, confidence: float) -> float:
    """Lower confidence bound for epsilon at `delta`, in nats, to 1e-3 and rounded down.

    The p-value of ``dp_p_value`` grows with epsilon, because the claims are nested and the order of outcomes is
    one for all: so every epsilon below the bound is refuted at level 1 - confidence.
    """
    alpha = 1 - check_real("confidence", confidence, lo=0.0, hi=1.0, lo_open=True, hi_open=True)
    check_probability("delta", delta)
    return _largest_refuted(lambda epsilon: dp_p_value(counts, epsilon=epsilon, delta=delta, alpha=alpha), alpha)


def mu_lower(counts: Counts, *, confidence: float) -> float:
    """Lower confidence bound for mu in mu-GDP, to 1e-3 and rounded down; as ``epsilon_lower``."""
    alpha = 1 - check_real("confidence", confidence, lo=0.0, hi=1.0, lo_open=True, hi_open=True)
    return _largest_refuted(lambda mu: gdp_p_value(counts, mu=mu, alpha=alpha), alpha)


def one_run_p_value(correct: int, guesses: int, canaries: int, *, epsilon: float, delta: float = 0.0) -> float:
    """p-value of (epsilon, delta)-DP from one run with `canaries` records, each included by a fair coin of its own.

    An auditor that sees the output guesses for `guesses` of the canaries whether they were in; `correct` of the guesses
    are right. With ``W ~ Bin(guesses, e^epsilon / (1 + e^epsilon))`` and ``b = P[W >= correct]`` the p-value is
    ``b + 2 canaries delta max_{i >= 1} (P[W >= correct - i] - b) / i``, at most 1.

    The rule that turns an output into guesses must not depend on the coins. Relation: add or remove one.
    Source: Steinke, Nasr and Jagielski (2023), Theorem 5.2.
    """
    total = check_int("canaries", canaries, lo=1)
    r = check_int("guesses", guesses, lo=0, hi=total)
    v = check_int("correct", correct, lo=0, hi=r)
    share = float(special.expit(check_epsilon("epsilon", epsilon)))
    shift = check_probability("delta", delta)
    at_least = stats.binom.sf(np.arange(v - 1, -2, -1), r, share)  # P[W >= v], P[W >= v - 1], ..., P[W >= 0]
    base = float(at_least[0])
    gains = (at_least[1:] - base) / np.arange(1, v + 1)
    slope = float(gains.max()) if v > 0 else 0.0
    return min(1.0, (base + 2 * total * shift * slope) * (1 + 1e-9))


def one_run_epsilon_lower(correct: int, guesses: int, canaries: int, *, delta: float, confidence: float) -> float:
    """Lower confidence bound for epsilon at `delta` from one run with canaries, to 1e-3 and rounded down.

    Every multiple of 1e-3 up to the bound is refuted by ``one_run_p_value``; if the bound exceeds the true epsilon, the
    first multiple at or above the truth was refuted although it holds, which happens with probability at most 1 -
    confidence.
    """
    alpha = 1 - check_real("confidence", confidence, lo=0.0, hi=1.0, lo_open=True, hi_open=True)
    reached = 0
    while (
        reached < 100_000
        and one_run_p_value(correct, guesses, canaries, epsilon=reached * _RESOLUTION, delta=delta) <= alpha
    ):
        reached += 1
    return max(0, reached - 1) * _RESOLUTION


def _largest_refuted(p_value: Callable[[float], float], alpha: float) -> float:
    """The end of the refuted range of a non-decreasing p-value, from inside the range; 0 if nothing is refuted."""
    if p_value(0.0) > alpha:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(high) <= alpha:
        low, high = high, 2 * high
        if high > 700:
            return low
    while high - low > _RESOLUTION:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle) <= alpha else (low, middle)
    return low


def _ratio_order(counts: Counts, delta: float) -> Order:
    """Wald lower bound of ln((p - delta) / q): how far outcomes lie from an (epsilon, delta) claim."""
    n, m = counts.runs, counts.runs_neighbour

    def order(x: Array, y: Array) -> Array:
        p, q = x / n - delta, (y + 0.5) / (m + 1)
        positive = np.maximum(p, 1e-12)
        variance = (x + 0.5) * (n - x + 0.5) / n**3 / positive**2 + (1 - q) / (m * q)
        return np.where(p > 0, np.log(positive) - np.log(q) - _WALD * np.sqrt(np.maximum(variance, 0.0)), -np.inf)

    return order


def _probit_order(counts: Counts) -> Order:
    """Wald lower bound of Phi^-1(p) - Phi^-1(q): how far outcomes lie from a mu-GDP claim."""
    n, m = counts.runs, counts.runs_neighbour

    def order(x: Array, y: Array) -> Array:
        p, q = (x + 0.5) / (n + 1), (y + 0.5) / (m + 1)
        z, w = special.ndtri(p), special.ndtri(q)
        variance = p * (1 - p) / n / stats.norm.pdf(z) ** 2 + q * (1 - q) / m / stats.norm.pdf(w) ** 2
        return np.asarray(z - w - _WALD * np.sqrt(variance))

    return order


class _Region:
    """The outcomes (x, y) at least as far from the claim as the one observed, as ``x >= need(y)``."""

    def __init__(self, counts: Counts, order: Order) -> None:
        self._counts, self._order = counts, order
        self._observed = float(order(np.array([counts.inside]), np.array([counts.inside_neighbour]))[0])
        self._need: dict[tuple[int, int], Array] = {}

    def need(self, low: int, high: int) -> Array:
        """The least x for each y = low..high, by bisection; non-decreasing, and n + 1 where no x will do."""
        key = (low, high)
        if key not in self._need:
            y = np.arange(low, high + 1)
            below, above = np.full(len(y), -1), np.full(len(y), self._counts.runs + 1)
            slack = 1e-12 * (1 + abs(self._observed))  # rounding may only enlarge the region
            while np.any(above - below > 1):
                middle = (below + above) // 2
                far = self._order(middle, y) >= self._observed - slack
                above, below = np.where(far, middle, above), np.where(far, below, middle)
            self._need[key] = np.minimum.accumulate(above[::-1])[::-1]
        return self._need[key]

    def probability(self, p: float, q: float) -> float:
        """P[(x, y) in the region] for x ~ Bin(n, p) and y ~ Bin(m, q); the last 2e-15 of y is counted as inside."""
        n, m = self._counts.runs, self._counts.runs_neighbour
        low = max(int(stats.binom.ppf(1e-15, m, q)) - 1, 0) if q > 0 else 0
        high = min(int(stats.binom.isf(1e-15, m, q)) + 1, m) if q > 0 else 0
        # Whole blocks of 256, so that neighbouring cells share their bisections.
        low, high = low // 256 * 256, min(-(-(high + 1) // 256) * 256 - 1, m)
        y = np.arange(low, high + 1)
        inside = stats.binom.pmf(y, m, q) @ stats.binom.sf(self.need(low, high) - 1, n, p)
        return min(1.0, float(inside) + 2e-15)
