"""Rational bounds on exp and log, so that exact answers never pass through rounded arithmetic.

Ball arithmetic is Arb's (python-flint); this module turns its balls into exact ``Fraction`` end points.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import flint

_MAX_BITS = 1 << 14


def _dyadic(x: flint.arb) -> Fraction:
    """The exact value of a ball of radius zero."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def _ends(x: flint.arb) -> tuple[Fraction, Fraction]:
    mid, rad = _dyadic(x.mid()), _dyadic(x.rad())
    return mid - rad, mid + rad


def _arb(x: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


@lru_cache(maxsize=4096)
def exp_bounds(x: Fraction | float, bits: int = 128) -> tuple[Fraction, Fraction]:
    """Rationals ``lo <= e**x <= hi`` with ``hi - lo <= 2**-bits * lo``; both are 1 for x == 0.

    x: an exact rational, or a float taken as the rational it is.
    """
    exact = Fraction(x)
    if exact == 0:
        return Fraction(1), Fraction(1)
    precision = bits + 32
    while True:
        with flint.ctx.workprec(precision):
            lo, hi = _ends(_arb(exact).exp())
        if lo > 0 and (hi - lo) * (1 << bits) <= lo:
            return lo, hi
        precision *= 2
        if precision > _MAX_BITS + bits:
            raise ArithmeticError(f"e**x could not be bounded to {bits} bits at x = {x!r}")


def log_bounds(x: Fraction) -> tuple[float, float]:
    """Floats ``lo <= ln(x) <= hi``, at most a few units in the last place apart; x > 0. ``(-inf, -inf)`` for x == 0."""
    if x < 0:
        raise ValueError(f"x must be at least 0, got {x!r}")
    if x == 0:
        return -math.inf, -math.inf
    if x == 1:
        return 0.0, 0.0
    with flint.ctx.workprec(256):
        lo, hi = _ends(_arb(x).log())
    return round_down(lo), round_up(hi)


def round_down(x: Fraction) -> float:
    """The largest float at most x (``-inf`` below the range of doubles)."""
    try:
        near = float(x)
    except OverflowError:
        return -math.inf if x < 0 else math.nextafter(math.inf, 0.0)
    return near if Fraction(near) <= x else math.nextafter(near, -math.inf)


def round_up(x: Fraction) -> float:
    """The smallest float at least x (``inf`` above the range of doubles)."""
    return 0.0 - round_down(-x)
