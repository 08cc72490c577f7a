"""The hockey-stick curve of a pair of finite laws, in exact arithmetic on the numbers given.

For laws P and Q, ``H_c(P||Q) = sum over outcomes of max(P(o) - c Q(o), 0)``, the largest ``P(E) - c Q(E)`` over events
E; P and Q are (epsilon, delta)-indistinguishable in this direction when ``H_{e^epsilon}(P||Q) <= delta``. With the
outcomes sorted by falling likelihood ratio P(o)/Q(o), the best event is always a prefix (Neyman and Pearson), so
``H_c`` is convex, falling and piecewise linear in c, with its breakpoints at the likelihood ratios. Everything here is
integer arithmetic on that picture; e^epsilon enters as a rational interval, refined until the answer does not depend
on where in it the number lies. That always ends: e^epsilon is irrational for rational epsilon != 0 (Lindemann), so it
never coincides with the rational number at which a comparison turns.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from accounting import check_probability, check_real, exp_bounds, log_bounds, round_down, round_up
from audits.exact_laws import Arithmetic, RationalLaw, as_fraction
from mechanisms import Law

_FIRST_BITS = 128
_LARGE = 64
_VERY_LARGE = 1 << 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """A real number known to lie in [lower, upper]; both ends are rounded outward."""

    lower: float
    upper: float


def log_factor(factor: Fraction | None) -> Bounds:
    """The epsilon that belongs to a factor of at least 1; None stands for an infinite one."""
    if factor is None:
        return Bounds(math.inf, math.inf)
    lower, upper = log_bounds(factor)
    return Bounds(max(lower, 0.0), upper)


def _outward(lower: Fraction, upper: Fraction) -> Bounds:
    return Bounds(round_down(lower), round_up(upper) + 0.0)  # the sum turns -0.0 into 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outcomes with its exact probabilities under P and under Q; `others` are the outcomes outside it."""

    outcomes: tuple[Hashable, ...]
    others: tuple[Hashable, ...]
    probability: Fraction
    neighbour_probability: Fraction


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A breakpoint of c -> H_c(P||Q); the epsilon it belongs to is ln(factor)."""

    factor: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """Outcomes grouped by likelihood ratio, highest first; sums are over the group and all groups before it.

    order: indices of outcomes. ends[g]: how many of them lie in groups 0..g. above[g], below[g]: integer weight under
    P and Q. infinite: 1 if the first group has Q = 0, else 0.
    """

    order: tuple[int, ...]
    ends: tuple[int, ...]
    above: tuple[int, ...]
    below: tuple[int, ...]
    infinite: int


class FinitePair:
    """Two laws over finitely many outcomes, in the direction P against Q; `reversed` is the other direction.

    P, Q: mappings from hashable outcomes to probabilities, both in Fractions (ints allowed) or both in floats. An
    outcome that is missing has probability 0. Which outcomes are held to be the same: see `RationalLaw`. exact: True
    for rational laws. Float laws are read as the rationals they are and not rescaled, so every answer is exact for the
    numbers given; what it says of the real law behind them is up to whoever rounded them.

    Raises:
        TypeError, ValueError: P or Q is not a law, or one holds Fractions and the other floats.

    >>> truth, lie = Fraction(3, 4), Fraction(1, 4)
    >>> pair = FinitePair({0: truth, 1: lie}, {0: lie, 1: truth})
    >>> pair.divergence(2), pair.least_factor(0)
    (Fraction(1, 4), Fraction(3, 1))
    >>> pair.epsilon(0.0).lower <= math.log(3) <= pair.epsilon(0.0).upper
    True
    """

    exact: bool
    _outcomes: tuple[Hashable, ...]
    _above: list[int]
    _below: list[int]
    _scale_above: int
    _scale_below: int
    _prefixes: _Prefixes | None

    __slots__ = ("_above", "_below", "_outcomes", "_prefixes", "_scale_above", "_scale_below", "exact")

    def __init__(self, P: Law, Q: Law) -> None:
        other = self.of_laws(RationalLaw("P", P), RationalLaw("Q", Q))
        for slot in FinitePair.__slots__:
            setattr(self, slot, getattr(other, slot))

    @classmethod
    def of_laws(cls, one: RationalLaw, other: RationalLaw) -> FinitePair:
        """The pair of two laws that were checked before."""
        kinds = {one.arithmetic, other.arithmetic}
        if kinds >= {Arithmetic.FRACTIONS, Arithmetic.FLOATS}:
            raise ValueError("P and Q must both hold Fractions or both hold floats, got one of each")
        missing = [outcome for outcome in other.weights if outcome not in one.weights]
        below = other.weights
        return cls._build(
            (*one.weights, *missing),
            [*one.weights.values(), *(0 for _ in missing)],
            [*(below.get(outcome, 0) for outcome in one.weights), *(below[outcome] for outcome in missing)],
            one.denominator,
            other.denominator,
            exact=Arithmetic.FLOATS not in kinds,
        )

    @classmethod
    def _build(
        cls,
        outcomes: tuple[Hashable, ...],
        above: list[int],
        below: list[int],
        scale_above: int,
        scale_below: int,
        *,
        exact: bool,
    ) -> FinitePair:
        self = cls.__new__(cls)
        self._outcomes, self._above, self._below = outcomes, above, below
        self._scale_above, self._scale_below = scale_above, scale_below
        self.exact = exact
        self._prefixes = None
        return self

    @property
    def reversed(self) -> FinitePair:
        """The direction Q against P."""
        return FinitePair._build(
            self._outcomes, self._below, self._above, self._scale_below, self._scale_above, exact=self.exact
        )

    def __len__(self) -> int:
        """The number of outcomes that either law gives."""
        return len(self._outcomes)

    def digest(self) -> bytes:
        """SHA-256 of what the curve depends on: equal for pairs that differ in the names of their outcomes only."""
        weights = sorted(zip(self._above, self._below, strict=True))
        return hashlib.sha256(repr((self._scale_above, self._scale_below, weights)).encode()).digest()

    def divergence(self, factor: Fraction | int) -> Fraction:
        """H_c(P||Q) at the rational c = factor >= 0, exactly."""
        c = Fraction(factor)
        if c < 0:
            raise ValueError(f"factor must be at least 0, got {factor!r}")
        gain, loss = self._scale_below * c.denominator, self._scale_above * c.numerator
        if self._prefixes is not None:
            group = self._groups_above(c) - 1
            total = 0 if group < 0 else self._prefixes.above[group] * gain - self._prefixes.below[group] * loss
        else:
            total = 0
            for above, below in zip(self._above, self._below, strict=True):
                excess = above * gain - below * loss
                if excess > 0:
                    total += excess
        return Fraction(total, self._scale_above * gain)

    def hockey_stick(self, epsilon: Fraction | float) -> Bounds:
        """H_{e^epsilon}(P||Q), the smallest delta at this epsilon: any number of nats, infinite included."""
        if not isinstance(epsilon, Fraction):
            check_real("epsilon", epsilon, allow_infinite=True)
            if math.isinf(epsilon):
                limit = self.only_here if epsilon > 0 else self.divergence(0)
                return _outward(limit, limit)
        lower, upper = self._factor_bounds(as_fraction(epsilon), _FIRST_BITS)
        return _outward(self.divergence(upper), self.divergence(lower))

    def divergence_at_most(self, epsilon: Fraction | float) -> Fraction:
        """A rational at least H_{e^epsilon}(P||Q), and within a factor 2^-128 of e^epsilon of it; epsilon is finite."""
        return self.divergence(self._factor_bounds(as_fraction(epsilon), _FIRST_BITS)[0])

    def exceeds(self, epsilon: Fraction | float, delta: Fraction | float) -> bool:
        """Whether H_{e^epsilon}(P||Q) > delta, decided exactly; floats are read as the rationals they are."""
        exponent, limit = as_fraction(epsilon), as_fraction(delta)
        bits = _FIRST_BITS
        while True:
            lower, upper = self._factor_bounds(exponent, bits)
            if self.divergence(lower) <= limit:
                return False
            if self.divergence(upper) > limit:
                return True
            bits *= 2

    @property
    def only_here(self) -> Fraction:
        """The probability under P of the outcomes that Q never gives: the limit of H_c for large c."""
        weight = sum(above for above, below in zip(self._above, self._below, strict=True) if below == 0)
        return Fraction(weight, self._scale_above)

    def least_factor(self, delta: Fraction | float) -> Fraction | None:
        """The smallest c >= 1 with H_c(P||Q) <= delta, an exact rational; None when no c is large enough."""
        limit = as_fraction(delta)
        group = self._turning_group(limit)
        if group is None:
            return None
        if group < 0:
            return Fraction(1)
        prefixes = self._sorted()
        above = Fraction(prefixes.above[group], self._scale_above)
        return (above - limit) * self._scale_below / prefixes.below[group]

    def epsilon(self, delta: Fraction | float) -> Bounds:
        """The smallest epsilon >= 0, in nats, with H_{e^epsilon}(P||Q) <= delta; infinite when none will do."""
        if not isinstance(delta, Fraction):
            check_probability("delta", delta)
        return log_factor(self.least_factor(delta))

    def worst_event(self, epsilon: Fraction | float) -> Event:
        """The smallest event E at which P(E) - e^epsilon Q(E) is largest: all outcomes with P(o) > e^epsilon Q(o)."""
        exponent = as_fraction(epsilon)
        bits = _FIRST_BITS
        while True:
            lower, upper = (self._groups_above(c) for c in self._factor_bounds(exponent, bits))
            if lower == upper:
                return self._event(lower - 1)
            bits *= 2

    def event_at(self, delta: Fraction | float) -> Event:
        """An event that shows the smallest epsilon at this delta: ``P(E) = e^epsilon Q(E) + delta``.

        For an infinite epsilon, all outcomes that Q never gives; for epsilon clipped at 0, those with P(o) > Q(o).
        """
        group = self._turning_group(as_fraction(delta))
        if group is None:
            return self._event(self._sorted().infinite - 1)
        return self._event(self._groups_above(Fraction(1)) - 1 if group < 0 else group)

    def curve(self) -> tuple[CurvePoint, ...]:
        """The breakpoints of c -> H_c(P||Q) by rising c, from c = 0: linear between them, constant after the last."""
        prefixes = self._sorted()
        points = [CurvePoint(Fraction(0), self.divergence(0))]
        for group in range(len(prefixes.ends) - 1, prefixes.infinite - 1, -1):
            factor = self._ratio(group)
            if factor > 0:
                points.append(CurvePoint(factor, self._at_ratio(group)))
        return tuple(points)

    def prefix_points(self) -> list[tuple[float, float]]:
        """(Q(E), P(E)) for the likelihood-ratio prefixes E, from the empty event on, as the nearest floats."""
        prefixes = self._sorted()
        sums = zip(prefixes.below, prefixes.above, strict=True)
        return [(0.0, 0.0)] + [(below / self._scale_below, above / self._scale_above) for below, above in sums]

    def merged(self) -> list[tuple[Fraction, Fraction]]:
        """(P, Q) of the outcomes of equal likelihood ratio taken together, highest ratio first."""
        prefixes = self._sorted()
        groups = []
        above = below = 0
        for sum_above, sum_below in zip(prefixes.above, prefixes.below, strict=True):
            mass = Fraction(sum_above - above, self._scale_above), Fraction(sum_below - below, self._scale_below)
            groups.append(mass)
            above, below = sum_above, sum_below
        return groups

    def likelihood_range(self) -> tuple[Event, Event]:
        """The outcomes of highest and of lowest likelihood ratio P(o)/Q(o), each as an event."""
        prefixes = self._sorted()
        last = len(prefixes.ends) - 1
        start = prefixes.ends[last - 1] if last else 0
        return self._event_of(0, prefixes.ends[0]), self._event_of(start, prefixes.ends[last])

    def _factor_bounds(self, epsilon: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        """Rationals around e^epsilon, or around another factor past all likelihood ratios where e^epsilon is past
        them.
        """
        if epsilon > _LARGE:
            beyond = max(self._above).bit_length() + self._scale_below.bit_length()
            if epsilon > beyond:
                return Fraction(1 << beyond), Fraction(1 << beyond)
        if epsilon < -_VERY_LARGE:
            return Fraction(0), Fraction(1, 1 << _VERY_LARGE)
        return exp_bounds(epsilon, bits)

    def _sorted(self) -> _Prefixes:
        if self._prefixes is None:
            self._prefixes = self._sort()
        return self._prefixes

    def _sort(self) -> _Prefixes:
        # Ratios of integers below 2**b differ by more than 2**-2b or not at all, so a quotient with 2b further bits
        # orders and identifies them as exactly as cross-multiplication, at one division per outcome.
        shift = 2 * max(self._below).bit_length()
        infinity = (max(self._above) + 1) << shift
        keys = [
            (above << shift) // below if below else infinity
            for above, below in zip(self._above, self._below, strict=True)
        ]
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
        ends: list[int] = []
        sums_above: list[int] = []
        sums_below: list[int] = []
        above = below = 0
        for position, index in enumerate(order):
            if position and keys[index] != keys[order[position - 1]]:
                ends.append(position)
                sums_above.append(above)
                sums_below.append(below)
            above += self._above[index]
            below += self._below[index]
        ends.append(len(order))
        sums_above.append(above)
        sums_below.append(below)
        infinite = 1 if keys[order[0]] == infinity else 0
        return _Prefixes(tuple(order), tuple(ends), tuple(sums_above), tuple(sums_below), infinite)

    def _ratio(self, group: int) -> Fraction:
        """The likelihood ratio of a group with Q > 0."""
        prefixes = self._sorted()
        index = prefixes.order[prefixes.ends[group] - 1]
        return Fraction(self._above[index] * self._scale_below, self._below[index] * self._scale_above)

    def _at_ratio(self, group: int) -> Fraction:
        """H_c at the likelihood ratio c of a group with Q > 0."""
        if group == 0:
            return Fraction(0)
        prefixes = self._sorted()
        above = Fraction(prefixes.above[group - 1], self._scale_above)
        return above - self._ratio(group) * prefixes.below[group - 1] / self._scale_below

    def _groups_above(self, factor: Fraction) -> int:
        """How many groups have a likelihood ratio above `factor`."""
        prefixes = self._sorted()
        low, high = prefixes.infinite, len(prefixes.ends)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._ratio(middle) > factor else (low, middle)
        return low

    def _turning_group(self, delta: Fraction) -> int | None:
        """The group below whose ratio H_c first exceeds delta; -1 when H_1 <= delta already, None when H_c > delta for
        all c.
        """
        if self.divergence(1) <= delta:
            return -1
        prefixes = self._sorted()
        low, high = prefixes.infinite, len(prefixes.ends) - 1
        if low > high or self._at_ratio(low) > delta:
            return None
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._at_ratio(middle) <= delta else (low, middle - 1)
        return low

    def _event(self, group: int) -> Event:
        """The prefix that ends with `group`; the empty event for -1."""
        return self._event_of(0, self._sorted().ends[group] if group >= 0 else 0)

    def _event_of(self, start: int, end: int) -> Event:
        order = self._sorted().order
        inside = set(order[start:end])
        chosen = sorted(inside)
        return Event(
            tuple(self._outcomes[index] for index in chosen),
            tuple(outcome for index, outcome in enumerate(self._outcomes) if index not in inside),
            Fraction(sum(self._above[index] for index in chosen), self._scale_above),
            Fraction(sum(self._below[index] for index in chosen), self._scale_below),
        )


__all__ = ["Bounds", "CurvePoint", "Event", "FinitePair", "log_factor"]
