"""Dominating pairs of distributions: how a privacy loss is put on a lattice without ever losing any of it.

A *pair* is two laws (P, Q), seen through the privacy loss ``L = ln(dP/dQ)``. ``H_a(P||Q) = sum (P - a Q)_+`` is the
hockey-stick divergence and ``delta(epsilon) = H_{e^epsilon}(P||Q)``. A pair *dominates* a mechanism when its delta is
at least the mechanism's at every epsilon and for every two neighbours; then products of pairs dominate adaptive
compositions (Zhu, Dong and Wang 2022, Theorem 10), which is all that the composer uses.

A cell holding P-mass p and Q-mass q at losses inside [a, b] is replaced by the two-point pair on {a, b} with the same p
and q ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). The original is a post-processing of
it, so the result dominates; P-mass above the last node moves to an infinite loss, P-mass below the first node moves up
to that node.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from accounting.rationals import log_bounds, round_up

Array = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.int64]

# Relative error allowed for each cell mass of a pair; the composer inflates its answers by this much for each use of a
# pair.
MASS_ERROR = 2e-14


@dataclass(frozen=True, slots=True)
class Cells:
    """Masses of the loss in the cells (edges[i], edges[i+1]].

    p, q: shape (len(edges) - 1,). below: P-mass at losses up to edges[0]. above: P-mass at losses over edges[-1],
    infinity included.
    """

    p: Array
    q: Array
    below: float
    above: float


class Pair(Hashable, Protocol):
    """A hashable dominating pair."""

    @property
    def infinite(self) -> float:
        """P-mass where Q has none."""

    @property
    def max_loss(self) -> float:
        """Essential supremum of the finite loss under P (inf when unbounded)."""

    def span(self, tail: float) -> tuple[float, float]:
        """(lo, hi): finite losses such that P-mass at most `tail` lies below lo and at most `tail` finite mass above
        hi.
        """

    def cells(self, edges: Array) -> Cells:
        """Masses between sorted edges; -inf and inf are allowed as edges."""

    def delta(self, epsilon: float) -> float:
        """H_{e^epsilon}(P||Q) in closed form, up to a relative error of 1e-12; any real epsilon."""

    def atoms(self) -> Array | None:
        """The finite losses when there are few of them, else None: lets the composer choose a lattice that holds them
        all.
        """


@dataclass(frozen=True)
class Lattice:
    """A pair on the lattice ``step * Z``: P-masses of the losses step * nodes, and P-mass at infinity.

    nodes: shape (n,), increasing integers. masses: shape (n,), non-negative. The Q-mass at a loss l is its P-mass times
    exp(-l).
    """

    step: float
    nodes: Nodes
    masses: Array
    infinite: float

    @property
    def losses(self) -> Array:
        losses: Array = self.step * self.nodes.astype(np.float64)
        return losses


def connect_dots(pair: Pair, losses: Array) -> tuple[Array, float]:
    """(masses, infinite): a pair on the increasing `losses`, and at infinity, that dominates `pair`."""
    cells = pair.cells(losses)
    # The mass at the right end of a cell [a, b] solves x_a + x_b = p and x_a e^-a + x_b e^-b = q.
    with np.errstate(over="ignore", invalid="ignore"):
        right = (cells.p - cells.q * np.exp(losses[:-1])) / -np.expm1(-np.diff(losses))
    right = np.clip(np.where(np.isfinite(right), right, 0.0), 0.0, cells.p)
    masses = np.zeros(len(losses))
    masses[1:] += right
    masses[:-1] += cells.p - right
    masses[0] += cells.below
    return masses, cells.above


def node_over(loss: float, step: float) -> int:
    """A lattice node above `loss` by more than rounding: an atom there must not be lost, or count as infinite."""
    node = math.ceil(loss / step)
    return node if step * node > loss + 1e-12 * abs(loss) else node + 1


def discretise(pair: Pair, step: float, tail: float, nodes: Nodes | None = None) -> Lattice:
    """Put `pair` on the lattice ``step * Z``, or on some of its nodes; the result dominates the pair.

    P-mass at most `tail` goes from finite to infinite loss, or more if the last of `nodes` is too low.
    """
    if nodes is None:
        lo, hi = pair.span(tail)
        first = math.floor(lo / step)
        nodes = np.arange(first, max(node_over(hi, step), first + 1) + 1, dtype=np.int64)
    masses, infinite = connect_dots(pair, step * nodes.astype(np.float64))
    return Lattice(step, nodes, masses, infinite)


@dataclass(frozen=True, slots=True)
class AtomicPair:
    """A pair with finitely many losses.

    losses: increasing, finite; p, q: the masses there, ``p = e^loss q``; infinite: P-mass where Q has none.
    """

    losses: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    infinite: float = 0.0

    @property
    def max_loss(self) -> float:
        return max((loss for loss, mass in zip(self.losses, self.p, strict=True) if mass > 0), default=-math.inf)

    def span(self, tail: float) -> tuple[float, float]:
        return (self.losses[0], self.losses[-1]) if self.losses else (0.0, 0.0)

    def cells(self, edges: Array) -> Cells:
        losses, p, q = _arrays(self)
        where = np.searchsorted(edges, losses, side="left")
        n = len(edges) - 1
        inside = (where >= 1) & (where <= n)
        below = float(p[where == 0].sum())
        above = float(p[where > n].sum()) + self.infinite
        cell = where[inside] - 1
        return Cells(
            np.bincount(cell, p[inside], minlength=n).astype(np.float64),
            np.bincount(cell, q[inside], minlength=n).astype(np.float64),
            below,
            above,
        )

    def delta(self, epsilon: float) -> float:
        losses, p, _ = _arrays(self)
        over = losses > epsilon
        return min(1.0, self.infinite + float(np.sum(p[over] * -np.expm1(epsilon - losses[over]))))

    def atoms(self) -> Array | None:
        return _arrays(self)[0] if len(self.losses) <= 64 else None


@lru_cache(maxsize=1024)
def _arrays(pair: AtomicPair) -> tuple[Array, Array, Array]:
    return np.array(pair.losses), np.array(pair.p), np.array(pair.q)


class GridPair:
    """The symmetric pair whose delta, at epsilon >= 0, is that of a lattice pair: a composition inside a sampling step.

    Only the lattice's losses above 0 enter. They are mirrored, with P and Q exchanged, and what is left of the mass is
    put at loss 0: a symmetric profile is fixed by its values at epsilon >= 0, and nothing is lost to the tiny P-masses
    of very negative losses, whose Q-masses are large. Equal only to itself: it is made once for each composition.
    """

    def __init__(self, lattice: Lattice) -> None:
        up = lattice.nodes > 0
        losses, p = lattice.losses[up], lattice.masses[up]
        q = p * np.exp(-losses)
        self.infinite = lattice.infinite
        centre = max(0.0, 1.0 - math.fsum([float(p.sum()), float(q.sum()), self.infinite]))
        self.losses = np.concatenate([-losses[::-1], [0.0], losses])
        self.p = np.concatenate([q[::-1], [centre], p])
        self.q = np.concatenate([p[::-1], [centre], q])

    @property
    def max_loss(self) -> float:
        used = np.flatnonzero(self.p)
        return float(self.losses[used[-1]]) if len(used) else -math.inf

    def span(self, tail: float) -> tuple[float, float]:
        above = np.cumsum(self.p[::-1])[::-1]
        hi = len(above) - 1 - int(np.searchsorted(above[::-1], tail, side="right"))
        top = max(0.0, float(self.losses[max(hi, 0)]))
        return -top, top

    def cells(self, edges: Array) -> Cells:
        where = np.searchsorted(edges, self.losses, side="left")
        n = len(edges) - 1
        p = np.bincount(where, self.p, minlength=n + 2).astype(np.float64)
        q = np.bincount(where, self.q, minlength=n + 2).astype(np.float64)
        return Cells(p[1 : n + 1], q[1 : n + 1], float(p[0]), float(p[n + 1]) + self.infinite)

    def delta(self, epsilon: float) -> float:
        over = self.losses > epsilon
        tail = self.p[over] * -np.expm1(epsilon - self.losses[over])
        return min(1.0, self.infinite + float(np.sum(tail)))

    def atoms(self) -> Array | None:
        return None


def symmetric_pair(upper: Sequence[Any], lower: Sequence[Any]) -> AtomicPair:
    """The symmetric pair whose delta is the larger of H(upper||lower) and H(lower||upper) at every epsilon >= 0.

    upper, lower: probabilities of the same outcomes (floats or Fractions; Fractions are summed exactly before
    rounding).

    As functions of ``a = e^epsilon`` the two divergences are convex and piecewise linear; so is their maximum. Its
    slope changes are the Q-masses of the wanted pair at losses ln(a); the losses below 0 mirror those above.
    """
    curves = (_Hinge(upper, lower), _Hinge(lower, upper))
    corners = sorted({a for curve in curves for a in curve.corners if a > 1})
    corners = sorted({*corners, *_crossings(curves, [1, *corners])})
    nodes = [1, *corners]
    values = [max(curve(a) for curve in curves) for a in nodes]
    infinite = max(curve.at_infinity for curve in curves)
    slopes = [
        (values[i + 1] - values[i]) / (nodes[i + 1] - nodes[i]) if i + 1 < len(nodes) else 0 for i in range(len(nodes))
    ]
    losses, p, q = [], [], []
    for i in range(1, len(nodes)):
        change = slopes[i] - slopes[i - 1]
        if change > 0:
            losses.append(log_bounds(Fraction(nodes[i]))[1])
            q.append(float(change))
            p.append(float(change * nodes[i]))
    infinite = round_up(Fraction(infinite))
    centre = max(0.0, 1.0 - math.fsum([*p, *q, infinite]))
    return AtomicPair(
        (*(-loss for loss in reversed(losses)), 0.0, *losses),
        (*reversed(q), centre, *p),
        (*reversed(p), centre, *q),
        infinite,
    )


class _Hinge:
    """a -> sum (p - a q)_+ for a >= 1, evaluated from suffix sums over the likelihood ratios."""

    def __init__(self, p: Sequence[Any], q: Sequence[Any]) -> None:
        self.at_infinity = sum((x for x, y in zip(p, q, strict=True) if y == 0), start=0 * p[0])
        ratios = sorted(((x / y, x, y) for x, y in zip(p, q, strict=True) if y > 0 and x > y), key=lambda item: item[0])
        self.corners = [ratio for ratio, _, _ in ratios]
        self._p, self._q = [self.at_infinity], [0 * self.at_infinity]
        for _, x, y in reversed(ratios):
            self._p.append(self._p[-1] + x)
            self._q.append(self._q[-1] + y)

    def __call__(self, a: Any) -> Any:
        over = len(self.corners) - bisect.bisect_right(self.corners, a)
        return self._p[over] - a * self._q[over]


def _crossings(curves: tuple[_Hinge, _Hinge], nodes: list[Any]) -> list[Any]:
    """Where the two curves cross strictly between neighbouring nodes, or past the last one; both are linear in
    between.
    """
    found = []
    for left, right in pairwise(nodes):
        gap_left, gap_right = (curves[0](a) - curves[1](a) for a in (left, right))
        if gap_left * gap_right < 0:
            found.append(left + (right - left) * gap_left / (gap_left - gap_right))
    return [a for a in found if a > 1]
