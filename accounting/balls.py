"""Ball arithmetic for closed forms: a formula is evaluated once with its error, and the safe end is read off.

The balls are Arb's (python-flint). Numbers enter as the exact rationals they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import flint

BITS = 192
_MAX_BITS = 1 << 14


def ball(x: Fraction | float) -> flint.arb:
    """An int, Fraction or finite float as a ball of its exact value (a Fraction: to working precision)."""
    if isinstance(x, Fraction):
        return flint.arb(flint.fmpq(x.numerator, x.denominator))
    return flint.arb(x)


def rounded_up(formula: Callable[[], flint.arb]) -> float:
    """The smallest float at least the formula's value, or the one after it; inf where it is past the range of doubles.

    formula: builds its value from `ball`; it is called with 192 bits of working precision.
    """
    with flint.ctx.workprec(BITS):
        return _float_up(formula())


def rounded_down(formula: Callable[[], flint.arb]) -> float:
    """The largest float at most the formula's value, or the one before it."""
    with flint.ctx.workprec(BITS):
        return -_float_up(-formula())


def whole(formula: Callable[[], flint.arb]) -> int:
    """The largest integer at most the formula's value, exactly.

    Raises:
        ArithmeticError: the value cannot be told from an integer.
    """
    bits = BITS
    while bits <= _MAX_BITS:
        with flint.ctx.workprec(bits):
            found = formula().floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2
    raise ArithmeticError(f"the formula's value is within 2**-{_MAX_BITS} of an integer, and cannot be rounded")


def _float_up(x: flint.arb) -> float:
    end = x.upper()
    if end.is_nan():
        raise ArithmeticError("a closed form is undefined at these arguments")
    near = float(end)
    return near if near == math.inf or flint.arb(near) >= end else math.nextafter(near, math.inf)
