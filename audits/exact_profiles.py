"""Whole-curve claims: the worst curve over all pairs seen, against the claimed privacy profile.

Both curves are convex in c = e^epsilon. The found one is ``F(c) = max (p - c q)`` over the points (q, p) = (Q(E),
P(E)) of all events of all pairs in both directions, so it is kept as the upper hull of those points. Only c >= 1
matters: at smaller c one direction is the other at 1/c, ``H_c(P||Q) = 1 - c + c H_{1/c}(Q||P)``. Between two values of
c, F lies below its chord and the claimed curve above the extensions of its chords on either side; where the first is
below the second the claim holds on the whole interval, else the interval is divided.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np

from audits.exact_checks import FLOAT_SLACK, ClaimCheck, Findings, Where, event_witness
from audits.exact_pairs import Bounds, FinitePair, log_factor

CURVE_SLACK = Fraction(1, 10**12)
"""How far below the true claimed curve its float evaluation is allowed to lie before an excess counts as a violation.
"""

LARGEST_EPSILON = 700.0
"""The claim is compared up to this epsilon: e^epsilon is a double."""

FINEST = 2.0**-10
"""The step in epsilon below which the claimed curve is interpolated."""

_RELATIVE = float(FLOAT_SLACK)
_FIRST_POINTS = 65
_MOST_POINTS = 8000
_ROUNDING = 1e-15
_APART = 1 + 1e-4


class Profile(Protocol):
    """What is asked of a claimed curve: upper bounds, convex in e^epsilon."""

    def delta(self, epsilon: float) -> float:
        """The smallest delta known to hold at this epsilon."""
        ...

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon known to hold at this delta, inf if none is."""
        ...


@dataclass(frozen=True, slots=True)
class _Vertex:
    """An event on the hull: its probabilities under Q and P, and the direction that it comes from."""

    below: float
    above: float
    direction: FinitePair
    where: Where


class _Hull:
    """The upper hull of the points (Q(E), P(E)), where its slope is at least 1; vertices from left to right."""

    def __init__(self) -> None:
        self.vertices: list[_Vertex] = []
        self._below = np.zeros(1)
        self._above = np.zeros(1)

    def add(self, direction: FinitePair, where: Where) -> None:
        points = np.array(direction.prefix_points())
        # The points of one pair are concave, so those of slope at least 1 end where P(E) - Q(E) is largest.
        points = points[: int(np.argmax(points[:, 1] - points[:, 0])) + 1]
        hull = np.interp(points[:, 0], self._below, self._above)
        beyond = points[:, 0] - self._below[-1]
        hull = np.where(beyond > 0, self._above[-1] + beyond, hull)
        if self.vertices and not np.any(points[:, 1] > hull * (1 + _ROUNDING)):
            return
        news = [_Vertex(float(below), float(above), direction, where) for below, above in points]
        self.vertices = _upper_hull([*self.vertices, *news])
        self._below = np.array([vertex.below for vertex in self.vertices])
        self._above = np.array([vertex.above for vertex in self.vertices])

    def breakpoints(self) -> list[float]:
        """The values of c >= 1 at which the best event changes, rising."""
        slopes = [(b.above - a.above) / (b.below - a.below) for a, b in pairwise(self.vertices)]
        return [slope for slope in reversed(slopes) if slope >= 1.0]

    def best(self, factor: float) -> _Vertex:
        """The event of largest P(E) - factor Q(E)."""
        return self.vertices[int(np.argmax(self._above - factor * self._below))]

    def value(self, factor: float) -> float:
        """F at c = factor."""
        return float(np.max(self._above - factor * self._below))


def _upper_hull(vertices: list[_Vertex]) -> list[_Vertex]:
    hull: list[_Vertex] = []
    for vertex in sorted(vertices, key=lambda v: (v.below, -v.above)):
        if hull and vertex.below == hull[-1].below:
            continue
        while len(hull) > 1 and _rise(hull[-2], hull[-1], vertex) <= 0:
            hull.pop()
        if not hull or vertex.above - vertex.below > hull[-1].above - hull[-1].below:
            hull.append(vertex)
    return hull


def _rise(a: _Vertex, b: _Vertex, c: _Vertex) -> float:
    """Positive where b lies above the line from a to c."""
    return (b.above - a.above) * (c.below - a.below) - (c.above - a.above) * (b.below - a.below)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A point of the claimed curve that the found curve exceeds beyond the relative tolerance."""

    factor: float
    violated: bool
    excess: float


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of the claimed curve, and the epsilon found at its delta with the direction that needs it."""

    epsilon: float
    delta: float
    bounds: Bounds
    vertex: _Vertex


class ProfileCheck(ClaimCheck):
    """A claimed profile D: ``H_{e^epsilon}(P||Q) <= D(epsilon)`` at every epsilon, in both directions of every pair.

    What is proof: F is exact up to double rounding, and each answer rests on values of D at finitely many points, on
    the convexity of D in e^epsilon between them (every privacy profile is convex; an accountant's bound on one is so
    up to its accuracy), and on its monotonicity beyond the last likelihood ratio, up to epsilon = 700. Where the
    curves nearly touch, D is taken as linear in e^epsilon between points `FINEST` apart. D is a float calculation, so
    trust is IDEALISED. As it is an upper bound on the curve of the claimed event, "holds" is about D, and a violation
    of D is one of the event. "Holds" allows 1e-9 in epsilon and a relative 1e-9 in delta. A violation is decided in
    exact arithmetic, against D enlarged by that and by `CURVE_SLACK` in delta (`FLOAT_SLACK` for float laws); an
    excess between the two is undecided.

    Reported as claimed is the point where D reaches its floor, if it does (epsilon at delta = 0 for a composition of
    pure claims): largest losses add up exactly, so this point is also compared without `CURVE_SLACK` when the floor is
    0. Where D has no such point, or the violation is elsewhere: the point where F/D is largest, or F - D where the
    claim is violated.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._hull = _Hull()
        self._values: dict[float, float] = {}

    def observe(self, pair: FinitePair, where: Where) -> None:
        self._hull.add(pair, where)
        self._hull.add(pair.reversed, where[::-1])

    def findings(self) -> Findings:
        if not self._hull.vertices:
            at_zero = self._claimed(1.0)
            return Findings(
                violated=False,
                undecided=None,
                claim_epsilon=0.0,
                claim_delta=at_zero,
                epsilon_lower=None,
                epsilon_upper=None,
                delta_found=None,
                worst=None,
            )
        candidates, unproved = self._compare()
        violations = [candidate for candidate in candidates if candidate.violated]
        undecided = None
        if candidates and not violations:
            excess = max(candidate.excess for candidate in candidates)
            undecided = (
                f"the found curve exceeds the claimed one by no more than {excess:.2g} in delta, which rounding of "
                "either may have made"
            )
        elif unproved and not violations:
            undecided = f"the two curves are too close to be told apart near epsilon {math.log(unproved[0]):.6g}"
        floor = self._floor()
        if floor is not None:
            broken = floor.bounds.lower > floor.epsilon + _RELATIVE
            pure = broken and floor.delta == 0 and floor.vertex.direction.exact
            if pure or (violations and broken) or not violations:
                return self._report(floor, violated=pure or bool(violations), undecided=None if pure else undecided)
        factor = max(violations, key=lambda c: c.excess).factor if violations else self._closest()
        point = self._point(max(math.log(factor), 0.0), min(self._claimed(factor), 1.0))
        return self._report(point, violated=bool(violations), undecided=undecided)

    def _floor(self) -> _Point | None:
        """The point from which on D is as small as it gets; None when it never stops falling."""
        delta = min(self._claimed(math.exp(LARGEST_EPSILON)), 1.0)
        epsilon = self._profile.epsilon(delta)
        return self._point(epsilon, delta) if epsilon < LARGEST_EPSILON else None

    def _point(self, epsilon: float, delta: float) -> _Point:
        holders = list({id(vertex.direction): vertex for vertex in self._hull.vertices}.values())
        upper, vertex = self._most_needing(holders, Fraction(delta))
        if vertex.direction.exact:
            return _Point(epsilon, delta, log_factor(upper), vertex)
        lower, vertex = self._most_needing(holders, Fraction(delta) + FLOAT_SLACK)
        return _Point(epsilon, delta, Bounds(log_factor(lower).lower, log_factor(upper).upper), vertex)

    @staticmethod
    def _most_needing(holders: list[_Vertex], delta: Fraction) -> tuple[Fraction | None, _Vertex]:
        needs = [(vertex.direction.least_factor(delta), vertex) for vertex in holders]
        return max(needs, key=lambda need: math.inf if need[0] is None else need[0])

    def _report(self, point: _Point, *, violated: bool, undecided: str | None) -> Findings:
        return Findings(
            violated=violated,
            undecided=undecided,
            claim_epsilon=point.epsilon,
            claim_delta=point.delta,
            epsilon_lower=point.bounds.lower,
            epsilon_upper=point.bounds.upper,
            delta_found=max(self._hull.value(math.exp(min(point.epsilon, LARGEST_EPSILON))), 0.0),
            worst=event_witness(point.vertex.direction.event_at(point.delta), point.vertex.where),
            notes=(
                "what is compared is the whole curve that the claim implies, as the accountant bounds it from above: "
                f"values at {len(self._values)} points, convexity between them, up to epsilon {LARGEST_EPSILON:g}; "
                "epsilon and delta shown as claimed are one point of it",
            ),
        )

    def _claimed(self, factor: float) -> float:
        if factor not in self._values:
            self._values[factor] = float(self._profile.delta(math.log(factor)))
        return self._values[factor]

    def _closest(self) -> float:
        def share(factor: float) -> float:
            found, claimed = self._hull.value(factor), self._values[factor]
            return round(found / claimed, 9) if claimed > 0 else (0.0 if found <= 0 else math.inf)

        return max(sorted(self._values), key=share)

    def _candidate(self, factor: float) -> _Candidate | None:
        """The comparison at one point; None where the claim holds."""
        claimed = self._claimed(factor)
        if self._needed(factor) <= claimed * (1 + _RELATIVE):
            return None
        direction = self._hull.best(factor).direction
        epsilon = Fraction(math.log(factor)) + FLOAT_SLACK
        limit = Fraction(claimed) * (1 + FLOAT_SLACK) + (CURVE_SLACK if direction.exact else FLOAT_SLACK)
        return _Candidate(factor, direction.exceeds(epsilon, limit), self._hull.value(factor) - claimed)

    def _needed(self, factor: float) -> float:
        """F, with epsilon enlarged by the tolerance."""
        return max(self._hull.value(factor * (1 + _RELATIVE)), 0.0)

    def _compare(self) -> tuple[list[_Candidate], list[float]]:
        """Where the found curve exceeds the claimed one, and where the comparison could not be brought to an end."""
        breakpoints = self._hull.breakpoints()
        step = max(1, math.ceil(len(breakpoints) / _FIRST_POINTS))
        last = math.exp(LARGEST_EPSILON)
        grid = sorted({1.0, *breakpoints[::step], *breakpoints[-1:], last})
        failed = [candidate for candidate in map(self._candidate, grid) if candidate is not None]
        if any(candidate.violated for candidate in failed):
            return failed, []
        unproved: list[float] = []
        queue = list(pairwise(grid))
        while queue:
            low, high = queue.pop()
            if self._holds_between(low, high, grid):
                continue
            if any(candidate.factor in (low, high) for candidate in failed) or len(grid) > _MOST_POINTS:
                unproved.append(low)
                continue
            if high <= low * (1 + FINEST):
                # F is convex, so below D at both ends it is below the chord of D.
                continue
            middle = self._middle(low, high, breakpoints)
            bisect.insort(grid, middle)
            candidate = self._candidate(middle)
            if candidate is not None:
                failed.append(candidate)
                if candidate.violated:
                    break
            queue += [(low, middle), (middle, high)]
        return failed, unproved

    def _holds_between(self, low: float, high: float, grid: list[float]) -> bool:
        """Whether the chord of F over [low, high] is below the largest of the lower bounds on D there."""
        scale = 1 + _RELATIVE
        start, end = self._needed(low), self._needed(high)
        if start <= self._claimed(high) * scale:
            return True
        position = bisect.bisect_left(grid, low)
        lines = [(self._claimed(high), self._claimed(high))]
        for chord in (self._left_chord(position, low, high, grid), self._right_chord(position + 1, low, high, grid)):
            if chord is not None:
                lines.append(chord)
        # Values at the two ends of linear lower bounds on D; relative to the chord of F their maximum is convex and
        # piecewise linear, so its minimum is at an end or where two of them cross.
        gaps = [(at_low * scale - start, at_high * scale - end) for at_low, at_high in lines]
        shares = {0.0, 1.0}
        for index, (a0, a1) in enumerate(gaps):
            for b0, b1 in gaps[:index]:
                turn = (a0 - b0) - (a1 - b1)
                if turn != 0 and 0 < (a0 - b0) / turn < 1:
                    shares.add((a0 - b0) / turn)
        return all(max(at_low + share * (at_high - at_low) for at_low, at_high in gaps) >= 0 for share in shares)

    def _left_chord(self, position: int, low: float, high: float, grid: list[float]) -> tuple[float, float] | None:
        """The line through D at `low` and at a point to its left, at least half as far as `high`, so that noise does
        not grow.
        """
        at = bisect.bisect_right(grid, low - (high - low) / 2, 0, position) - 1
        if at < 0:
            return None
        slope = (self._claimed(low) - self._claimed(grid[at])) / (low - grid[at])
        return self._claimed(low), self._claimed(low) + slope * (high - low)

    def _right_chord(self, position: int, low: float, high: float, grid: list[float]) -> tuple[float, float] | None:
        at = bisect.bisect_left(grid, high + (high - low) / 2, position)
        if at >= len(grid):
            return None
        slope = (self._claimed(grid[at]) - self._claimed(high)) / (grid[at] - high)
        return self._claimed(high) - slope * (high - low), self._claimed(high)

    def _middle(self, low: float, high: float, breakpoints: list[float]) -> float:
        """Where to divide: the middle breakpoint of F inside, else half way in epsilon."""
        first, end = bisect.bisect_right(breakpoints, low * _APART), bisect.bisect_left(breakpoints, high / _APART)
        return breakpoints[(first + end) // 2] if first < end else math.sqrt(low) * math.sqrt(high)


__all__ = ["CURVE_SLACK", "FINEST", "LARGEST_EPSILON", "Profile", "ProfileCheck"]
