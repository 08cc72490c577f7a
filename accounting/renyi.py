"""Renyi curves as dominating pairs: an upper bound of a profile, made convex and put on losses, composes with all
else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accounting.pairs import Array, AtomicPair, Cells

# Orders at which a curve known as a formula is tabulated; the conversion stays an upper bound at any choice of them.
ORDERS: tuple[float, ...] = tuple(float(x) for x in 1 + np.geomspace(1e-3, 1e5, 480))
_NODES = 4096
_TAIL = 1e-60


@dataclass(frozen=True, slots=True)
class RenyiPair:
    """A mechanism with ``D_order <= value`` at each order, in both directions.

    ``delta(e) = min over orders a of exp((a - 1)(value - e)) (1 - 1/a)^a / (a - 1)``, at most 1, and symmetric.
    Source: Canonne, Kamath and Steinke (2020), Proposition 12.
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def infinite(self) -> float:
        return _table(self).infinite

    @property
    def max_loss(self) -> float:
        return math.inf

    def span(self, tail: float) -> tuple[float, float]:
        return _table(self).span(tail)

    def cells(self, edges: Array) -> Cells:
        return _table(self).cells(edges)

    def delta(self, epsilon: float) -> float:
        if epsilon < 0:
            return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * self.delta(-epsilon))
        return float(_bound(self, np.array([epsilon]))[0])

    def atoms(self) -> Array | None:
        return None


def merge_renyi(pairs: Sequence[tuple[RenyiPair, int]]) -> RenyiPair:
    """The composition of Renyi pairs: curves add, order by order, on the union of their orders.

    A curve is read at an order it does not list by convexity of ``(a - 1) D_a`` between two listed ones (a chord bounds
    it from above), and as unbounded past the last; before the first, D_a is at most the first value, because D grows.
    Source: Mironov (2017), Proposition 1; van Erven and Harremoes (2014), Corollary 2.
    """
    orders = np.array(sorted({order for pair, _ in pairs for order in pair.orders}))
    total = np.zeros(len(orders))
    for pair, count in pairs:
        known, values = np.array(pair.orders), np.array(pair.values)
        chord = np.interp(orders, known, (known - 1) * values, right=np.inf) / (orders - 1)
        total += count * np.where(orders < known[0], values[0], chord)
    kept = np.isfinite(total)
    return RenyiPair(tuple(orders[kept].tolist()), tuple(total[kept].tolist()))


def _bound(pair: RenyiPair, epsilon: Array) -> Array:
    orders, values = np.array(pair.orders), np.array(pair.values)
    constant = orders * np.log1p(-1 / orders) - np.log(orders - 1)
    log_delta = np.min((orders - 1) * (values - epsilon[:, None]) + constant, axis=1)
    bound: Array = np.exp(np.minimum(log_delta, 0.0))
    return bound


@lru_cache(maxsize=64)
def _table(pair: RenyiPair) -> AtomicPair:
    """The largest convex symmetric curve under the bound's chords, as atoms.

    The true profile is convex in e^epsilon and below the bound at every node, so it is below the chords between nodes,
    and below their convex minorant.
    """
    high = 1.0
    while _bound(pair, np.array([high]))[0] > _TAIL and high < 600:
        high *= 1.5
    epsilons = np.linspace(0.0, min(high, 600.0), _NODES)
    right = _bound(pair, epsilons)
    x = np.concatenate([np.exp(-epsilons[:0:-1]), np.exp(epsilons)])
    y = np.concatenate([(-np.expm1(-epsilons) + np.exp(-epsilons) * right)[:0:-1], right])
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1 and (y[hull[-1]] - y[hull[-2]]) / (x[hull[-1]] - x[hull[-2]]) >= (y[i] - y[hull[-1]]) / (
            x[i] - x[hull[-1]]
        ):
            hull.pop()
        hull.append(i)
    corners = np.array(hull)
    slopes = np.append(np.diff(y[corners]) / np.diff(x[corners]), 0.0)
    change = np.maximum(np.diff(slopes, prepend=slopes[0]), 0.0)
    above = (x[corners] > 1) & (change > 0)
    q = change[above]
    p = q * x[corners][above]
    losses = np.log(x[corners][above])
    infinite = float(right[-1])
    centre = max(0.0, 1.0 - math.fsum([*p, *q, infinite]))
    return AtomicPair(
        (*(-losses[::-1]).tolist(), 0.0, *losses.tolist()),
        (*q[::-1].tolist(), centre, *p.tolist()),
        (*p[::-1].tolist(), centre, *q.tolist()),
        infinite,
    )
