"""What the one-dimensional private selections share: exact draws from weighted groups, and parameter checks.

A selection draws one of astronomically many outcomes whose weights are powers of one rational base. The outcomes come
in groups of equal weight, of which only the size is written down.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accounting import check_fraction, check_int, log_bounds
from mechanisms.exponential import integer_weights
from mechanisms.sampling import check_rng, uniform_below

_WORD_BITS = 64
_GUARD_BITS = 64


class Groups:
    """Outcomes in groups: group g holds ``counts[g]`` outcomes of weight ``base**exponents[g]`` each.

    exponents, counts: integers, equally many; empty groups are allowed, not all. base: a rational above 1 whose
    denominator is a power of two, as `rational_base` gives it.

    Draws are exact. The exponents are levels; a level is found by a uniform real number u of which as many binary
    digits are drawn as it takes to see between which two of the levels' cumulated shares it falls. The shares are known
    to within integer bounds, tightened when u lies too close to one; both bounds hold at every precision, so the level
    is that of the infinite-precision draw. Unlike `PowerSampler`, which this follows, the bounds are relative to the
    heaviest level, so counts of ten thousand digits cost no more than small ones.
    """

    def __init__(self, exponents: Sequence[int], counts: Sequence[int], base: Fraction) -> None:
        self.exponents, self.counts, self.base = tuple(exponents), tuple(counts), base
        self._shift = base.denominator.bit_length() - 1
        if base <= 1 or base.denominator != 1 << self._shift:
            raise ValueError(f"base must be above 1 and have a power of two as denominator, got {base!r}")
        members: defaultdict[int, list[int]] = defaultdict(list)
        for group, (exponent, count) in enumerate(zip(self.exponents, self.counts, strict=True)):
            if count:
                members[exponent].append(group)
        if not members:
            raise ValueError("counts must hold a positive number, got none")
        self._levels = sorted(members, reverse=True)
        self._members = [members[exponent] for exponent in self._levels]
        self._ends = [list(itertools.accumulate(self.counts[group] for group in level)) for level in self._members]
        self._shares: dict[int, _Shares] = {}

    def draw_many(self, size: int, rng: np.random.Generator | None) -> list[tuple[int, int]]:
        """`size` independent outcomes, each as (group, index within the group)."""
        check_rng(rng)
        check_int("size", size, lo=0)
        return [self._within(self._draw_level(rng), rng) for _ in range(size)]

    def _draw_level(self, rng: np.random.Generator | None) -> int:
        word = digits = 0
        while True:
            word = (word << _WORD_BITS) | uniform_below(1 << _WORD_BITS, rng)
            digits += _WORD_BITS
            level = self._shares_to(digits + _GUARD_BITS).locate(word, digits)
            if level is not None:
                return level

    def _within(self, level: int, rng: np.random.Generator | None) -> tuple[int, int]:
        ends, members = self._ends[level], self._members[level]
        index = uniform_below(ends[-1], rng)
        place = bisect.bisect_right(ends, index)
        return members[place], index - (ends[place - 1] if place else 0)

    def _shares_to(self, precision: int) -> _Shares:
        if precision not in self._shares:
            precision_of_powers = precision + len(self._levels).bit_length() + self._levels[0].bit_length()
            self._shares[precision] = _Shares(self._level_bounds(precision_of_powers), precision)
        return self._shares[precision]

    def _level_bounds(self, precision: int) -> list[_Floating]:
        """The weight of each level, over that of one outcome of the first."""
        bounds = []
        power = _Floating(1, 1, 0)
        steps: dict[int, _Floating] = {}
        for level, exponent in enumerate(self._levels):
            if level:
                gap = self._levels[level - 1] - exponent
                if gap not in steps:
                    steps[gap] = _Floating.quotient(1 << self._shift * gap, self.base.numerator**gap, precision)
                power = power.times(steps[gap], precision)
            count = self._ends[level][-1]
            bounds.append(power.times(_Floating.rounded(count, count, 0, precision), precision))
        return bounds

    def outcome_probabilities(self) -> list[Fraction]:
        """The probability of one outcome of each group; for few and small exponents."""
        weights = integer_weights(self.exponents, self.base)
        total = sum(count * weight for count, weight in zip(self.counts, weights, strict=True))
        return [Fraction(weight, total) for weight in weights]

    def probability(self, chosen: Callable[[int], bool]) -> Fraction:
        """The exact probability of the groups chosen, by number; by Horner's rule, so exponents may be large."""
        part = total = 0
        top = previous = self._levels[0]
        for exponent, members in zip(self._levels, self._members, strict=True):
            step = self.base.numerator ** (previous - exponent)
            part, total, previous = part * step, total * step, exponent
            for group in members:
                here = self.counts[group] << self._shift * (top - exponent)
                total += here
                part += here if chosen(group) else 0
        return Fraction(part, total)


@dataclass(frozen=True, slots=True)
class _Floating:
    """A positive real between ``low * 2**exponent`` and ``high * 2**exponent``."""

    low: int
    high: int
    exponent: int

    @classmethod
    def rounded(cls, low: int, high: int, exponent: int, precision: int) -> _Floating:
        """The same bounds, widened to about `precision` bits."""
        surplus = max(0, low.bit_length() - precision)
        return cls(low >> surplus, -(-high >> surplus), exponent + surplus)

    @classmethod
    def quotient(cls, numerator: int, denominator: int, precision: int) -> _Floating:
        shift = max(0, precision + 1 + denominator.bit_length() - numerator.bit_length())
        low = (numerator << shift) // denominator
        return cls.rounded(low, low + 1, -shift, precision)

    def times(self, other: _Floating, precision: int) -> _Floating:
        return _Floating.rounded(
            self.low * other.low, self.high * other.high, self.exponent + other.exponent, precision
        )


class _Shares:
    """Integer bounds on the cumulated weights of levels, in one common unit."""

    def __init__(self, weights: Sequence[_Floating], precision: int) -> None:
        unit = max(weight.low.bit_length() + weight.exponent for weight in weights) - precision
        lows, highs = [], []
        for weight in weights:
            shift = weight.exponent - unit
            lows.append(weight.low << shift if shift >= 0 else weight.low >> -shift)
            highs.append(weight.high << shift if shift >= 0 else -(-weight.high >> -shift))
        self._low, self._high = list(itertools.accumulate(lows)), list(itertools.accumulate(highs))

    def locate(self, word: int, digits: int) -> int | None:
        """The level in whose share every u in ``[word, word + 1) / 2**digits`` falls; None when that is not sure.

        The share of levels 0..j lies between ``low / (low + all_high - high)`` and ``high / (high + all_low - low)``,
        low and high being the bounds on the weight of these levels.
        """
        low, high, last = self._low, self._high, len(self._low) - 1
        level = bisect.bisect_left(
            range(last), True, key=lambda j: word * (high[j] + low[last] - low[j]) < high[j] << digits
        )
        if level == last or (word + 1) * (low[level] + high[last] - high[level]) <= low[level] << digits:
            return level
        return None


def reaches(base: Fraction, exponent: int, goal: Fraction | int) -> bool:
    """Whether ``base**exponent >= goal``, exactly."""
    target = Fraction(goal)
    shift = base.denominator.bit_length() - 1
    return bool(base.numerator**exponent * target.denominator >= target.numerator << shift * exponent)


def smallest_exponent(base: Fraction, goal: Fraction | int) -> int:
    """The smallest integer ``e >= 0`` with ``base**e >= goal``, exactly; a goal of any size.

    base: above 1, its denominator a power of two.
    """
    target = Fraction(goal)
    if target <= 1:
        return 0
    # Logarithms only say where to look.
    exponent = round(log_bounds(target)[0] / log_bounds(base)[1])
    while not reaches(base, exponent, target):
        exponent += 1
    while exponent and reaches(base, exponent - 1, target):
        exponent -= 1
    return exponent


def check_positive_epsilon(epsilon: float | Fraction) -> Fraction:
    """Privacy parameter in nats, as the exact rational it is, above 0."""
    exact = check_fraction("epsilon", epsilon)
    if exact == 0:
        raise ValueError(f"epsilon must be positive, got {epsilon!r}: at 0 the data have no say in the choice")
    return exact


def check_inside_unit(name: str, value: float | Fraction) -> Fraction:
    """A probability strictly between 0 and 1, as the exact rational it is."""
    exact = check_fraction(name, value, lo=0, hi=1)
    if not 0 < exact < 1:
        raise ValueError(f"{name} must be in (0, 1), got {value!r}")
    return exact


def tree_depth(domain_size: int) -> int:
    """D, the depth of the complete binary tree over the ranks: ``ceil(log2 domain_size)``, at least 1."""
    return max(1, (check_int("domain_size", domain_size, lo=1) - 1).bit_length())
