"""Amplification by sampling, as a map of dominating pairs: nothing is approximated, so amplified pairs compose tightly.

An atom (p, q) of the base pair at a loss l becomes, with sampling rate r, the atom ``(r p + (1 - r) q, q)`` at the loss
``ln(1 - r + r e^l)``; densities likewise. The two theorems below say which atoms to keep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accounting.convolution import Parts, composed_pair
from accounting.pairs import Array, Cells, Pair


def _up(product: float) -> float:
    """A product of two doubles, rounded up; 0 stays 0."""
    return math.nextafter(product, math.inf) if product > 0 else 0.0


def _mixed_loss(loss: float, rate: float) -> float:
    """ln(1 - rate + rate e^loss), without overflow."""
    if loss > 700:
        return loss + math.log(rate + (1 - rate) * math.exp(-loss))
    return math.log1p(rate * math.expm1(loss))


def _base_loss(loss: Array, rate: float) -> Array:
    """The inverse of ``_mixed_loss``; -inf at and below ln(1 - rate)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.log1p(np.expm1(loss) / rate)
        large = loss + np.log1p(-(1 - rate) * np.exp(-loss)) - math.log(rate)
    result = np.where(loss > 30, large, inner)
    return np.where(np.isnan(result), -np.inf, result)


@dataclass(frozen=True, slots=True)
class WithoutReplacementPair:
    """Fixed-size sampling without replacement under REPLACE_ONE, rate = m/M, around a composition of symmetric pairs.

    Profile: ``h(e') = rate * d(ln(1 + (e^{e'} - 1)/rate))`` for e' >= 0, symmetric below 0 (Balle, Barthe and Gaboardi
    2018, Theorem 9, read as a whole curve). Its symmetric pair keeps the mixed atoms of the base losses above 0,
    mirrors them, and puts what is left at loss 0. Keeping the mixed atoms of all base losses instead, once for each
    direction, is sound for Poisson sampling under add/remove but not here.
    """

    rate: float
    parts: Parts

    @property
    def base(self) -> Pair:
        return composed_pair(self.parts)

    @property
    def infinite(self) -> float:
        return _up(self.rate * self.base.infinite)

    @property
    def max_loss(self) -> float:
        return max(0.0, _mixed_loss(self.base.max_loss, self.rate) * (1 + 4e-16)) if self.base.max_loss > 0 else 0.0

    def span(self, tail: float) -> tuple[float, float]:
        hi = max(_mixed_loss(max(self.base.span(tail)[1], 0.0), self.rate), 1e-300)
        return -hi, hi

    def cells(self, edges: Array) -> Cells:
        full = np.union1d(edges, [0.0])
        p_up, q_up = self._above_zero(full[full >= 0])
        p_down, q_down = self._above_zero(-full[full <= 0][::-1])
        # The mirror image swaps the two laws: losses below zero carry (q, p).
        p, q = np.concatenate([q_down[::-1], p_up]), np.concatenate([p_down[::-1], q_up])
        total_p, total_q = self._above_zero(np.zeros(1))
        centre = max(0.0, 1.0 - float(total_p[0]) - float(total_q[0]) - self.infinite)
        zero = len(q_down) - 1
        p[zero] += centre
        q[zero] += centre
        if len(full) > len(edges):  # 0 is no edge of the caller's: the two bins that meet there are one.
            p = np.concatenate([p[:zero], [p[zero] + p[zero + 1]], p[zero + 2 :]])
            q = np.concatenate([q[:zero], [q[zero] + q[zero + 1]], q[zero + 2 :]])
        return Cells(p[1:-1], q[1:-1], float(p[0]), float(p[-1]) + self.infinite)

    def _above_zero(self, edges: Array) -> tuple[Array, Array]:
        """P- and Q-masses of the mixed atoms in (edges[i], edges[i+1]] and over the last edge; edges[0] = 0."""
        base = self.base.cells(np.append(_base_loss(edges, self.rate), np.inf))
        return self.rate * base.p + (1 - self.rate) * base.q, base.q

    def delta(self, epsilon: float) -> float:
        if epsilon < 0:
            return -math.expm1(epsilon) + math.exp(epsilon) * self.delta(-epsilon)
        return self.rate * self.base.delta(float(_base_loss(np.array([epsilon]), self.rate)[0]))

    def atoms(self) -> Array | None:
        losses = self.base.atoms()
        if losses is None:
            return None
        mixed = np.array([_mixed_loss(float(loss), self.rate) for loss in losses if loss > 0])
        return np.concatenate([-mixed[::-1], [0.0], mixed])


@dataclass(frozen=True, slots=True)
class PoissonPair:
    """Poisson sampling under ADD_OR_REMOVE_ONE around a composition of symmetric pairs, in one direction.

    removal: ``((1 - rate) Q + rate P, Q)``, the larger dataset first; addition: ``(Q, (1 - rate) Q + rate P)``. A
    mechanism is dominated by the first in one order and by the second in the other; compositions keep the orders apart.
    Source: Zhu, Dong and Wang (2022), Theorem 11.
    """

    rate: float
    parts: Parts
    removal: bool

    @property
    def base(self) -> Pair:
        return composed_pair(self.parts)

    @property
    def infinite(self) -> float:
        if self.removal:
            return _up(self.rate * self.base.infinite)
        return self.base.infinite if self.rate == 1 else 0.0

    @property
    def max_loss(self) -> float:
        if self.removal:
            return _mixed_loss(self.base.max_loss, self.rate) * (1 + 4e-16)
        if self.rate < 1 and (self.base.infinite > 0 or math.isinf(self.base.max_loss)):
            return -math.log1p(-self.rate) * (1 + 4e-16)
        return -_mixed_loss(-self.base.max_loss, self.rate) * (1 + 4e-16)

    def span(self, tail: float) -> tuple[float, float]:
        # The base's losses end at the same distance on both sides: its P-mass ends above, its Q-mass below.
        top = max(self.base.span(tail)[1], 0.0)
        lo, hi = _mixed_loss(-top, self.rate), _mixed_loss(top, self.rate)
        if self.base.infinite > 0 and self.rate < 1:
            lo = math.log1p(-self.rate)
        return (lo, hi) if self.removal else (-hi, -lo)

    def cells(self, edges: Array) -> Cells:
        infinite = self.infinite
        if self.removal:
            upper, lower = self._bins(edges)
            return Cells(upper[1:-1], lower[1:-1], float(upper[0]), float(upper[-1]) + infinite)
        upper, lower = (masses[::-1] for masses in self._bins(-edges[::-1]))
        return Cells(lower[1:-1], upper[1:-1], float(lower[0]), float(lower[-1]) + infinite)

    def _bins(self, edges: Array) -> tuple[Array, Array]:
        """Masses of ((1 - rate) Q + rate P, Q) at losses up to edges[0], between the edges, and over the last one."""
        base = self.base.cells(np.concatenate([[-np.inf], _base_loss(edges, self.rate), [np.inf]]))
        upper, lower = self.rate * base.p + (1 - self.rate) * base.q, base.q.copy()
        if self.base.infinite > 0 and self.rate < 1:
            # The base's Q-only mass, as large as its P-only mass, keeps (1 - rate) of itself in the mixture.
            where = int(np.searchsorted(edges, math.log1p(-self.rate), side="left"))
            upper[where] += (1 - self.rate) * self.base.infinite
            lower[where] += self.base.infinite
        return upper, lower

    def delta(self, epsilon: float) -> float:
        r = self.rate
        if self.removal:
            if r < 1 and epsilon <= math.log1p(-r):
                return -math.expm1(epsilon)
            return r * self.base.delta(float(_base_loss(np.array([epsilon]), r)[0]))
        # (1 - a (1 - r)) d(ln(a r / (1 - a (1 - r)))) with a = e^epsilon, by the symmetry of the base.
        rest = 1 - (1 - r) * math.exp(epsilon) if epsilon < 700 else -1.0
        if rest <= 0:
            return 0.0
        return rest * self.base.delta(epsilon + math.log(r) - math.log(rest))

    def atoms(self) -> Array | None:
        losses = self.base.atoms()
        if losses is None:
            return None
        mixed = np.array([_mixed_loss(float(loss), self.rate) for loss in losses])
        if self.base.infinite > 0 and self.rate < 1:
            mixed = np.concatenate([[math.log1p(-self.rate)], mixed])
        return mixed if self.removal else -mixed[::-1]
