"""The public numbers of Reorder-Slice-Compute, and the privacy that they give (proofs: mechanisms.reorder_slice)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from accounting import check_int
from mechanisms.selection import check_inside_unit, smallest_exponent

_FIXED_BITS = 192


@dataclass(frozen=True, slots=True)
class SliceParameters:
    """The public numbers of the algorithm, in the words of the module's docstring.

    shrink: lam. swap: A. swaps: k. weight: r. test_weight: s. threshold: h_S. test_threshold: h_H. cut: t. border,
    core: the least sizes of the slices.

    Raises:
        TypeError, ValueError: a number out of the range for which the proof holds.
    """

    shrink: Fraction
    swap: Fraction
    swaps: int
    weight: Fraction
    test_weight: Fraction
    threshold: int
    test_threshold: int
    cut: int
    border: int
    core: int

    def __post_init__(self) -> None:
        check_inside_unit("shrink", self.shrink)
        for name in ("swap", "weight", "test_weight"):
            if not getattr(self, name) > 1:
                raise ValueError(f"{name} must be above 1, got {getattr(self, name)!r}")
        for name in ("swaps", "threshold", "test_threshold"):
            check_int(name, getattr(self, name), lo=1)
        check_int("cut", self.cut, lo=self.test_threshold)
        check_int("border", self.border, lo=0)
        check_int("core", self.core, lo=2 * self.cut)
        if self.weight ** (1 - self.threshold) > self.weight - 1:
            raise ValueError(f"threshold must be such that weight**(1-threshold) <= weight - 1, got {self.threshold}")

    @property
    def settled(self) -> Fraction:
        """c, rounded down."""
        return settled_share(self.shrink, self.swap)

    def privacy(self, levels: int) -> tuple[Fraction, Fraction]:
        """``(e**epsilon, delta)`` of the whole for one replaced record, exact but for the rounding of c."""
        check_int("levels", levels, lo=1)
        tests = self.test_weight**levels
        first = (self.swap * self.weight**2) ** self.swaps * tests
        second = self.weight**2 * tests / self.shrink
        each = (
            self.weight ** (1 - self.threshold)
            + self.test_weight ** (1 - self.test_threshold)
            + self.test_weight ** (self.test_threshold - self.cut)
        )
        return first * second, (1 - self.settled) ** self.swaps + (1 + first) * levels * each


def settled_share(shrink: Fraction, swap: Fraction) -> Fraction:
    """``c = sum_g (1-lam) lam**g f_g`` with ``f_0 = 0, f_{g+1} = min(1, (f_g + A - 1)/lam)``, rounded down.

    For lam near 1 and ``A = lam**-a`` it is about ``a ln(1 + 1/a)``. Rounding f down keeps the proof, which only asks
    that ``1 - f_g + lam f_{g+1} <= A``.
    """
    one = 1 << _FIXED_BITS
    keep, whole = shrink.numerator, shrink.denominator
    step = math.floor((swap - 1) * one)
    if step == 0:
        raise ValueError(f"swap must exceed 1 by at least 2**-{_FIXED_BITS}, got {swap!r}")
    fraction, tail, total = 0, one, 0  # f_g, lam**g and the sum so far
    while fraction < one:
        total += tail * (whole - keep) // whole * fraction >> _FIXED_BITS
        tail = tail * keep // whole
        fraction = min(one, (fraction + step) * whole // keep)
    return Fraction(total + tail, one)


def least_slices(weight: Fraction, threshold: int, cut: int, chance: Fraction) -> tuple[int, int]:
    """The least border and core at which steps 6 and 5 fail with probability at most `chance` each."""
    return smallest_exponent(weight, 2 / chance), max(2 * cut, threshold + smallest_exponent(weight, 1 / chance))


def longest_tail(shrink: Fraction, chance: Fraction) -> int:
    """An e >= 0 with ``shrink**e <= chance``, the smallest but for rounding."""
    exponent = math.ceil(math.log(chance) / math.log(shrink))
    while shrink**exponent > chance:
        exponent += 1
    return exponent
