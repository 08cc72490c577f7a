"""Exact decimal numbers for budgets and sums.

The ledger reads a float as the decimal number that its ``repr`` shows: 0.1 is one tenth, not the binary fraction next
to it. Ten charges of 0.1 then add up to exactly 1, and a total is shown as the float whose ``repr`` is that number, or
the next one up.
"""

from __future__ import annotations

import math
import numbers
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Self

from accounting.rationals import round_down

Number = float | str | Decimal | Fraction

_TEXT = re.compile(r"\s*(\d+/\d+|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?)\s*")


def decimal(name: str, value: object) -> Fraction:
    """The exact number that `value` shows: a float by its ``repr``, a str as written ("0.1", "1e-6", "1/3").

    Raises:
        TypeError: not a number and not a string (booleans are not numbers here).
        ValueError: NaN, infinite, negative, or a string that is not a number.
    """
    if isinstance(value, str):
        if not _TEXT.fullmatch(value) or re.fullmatch(r".*/0+\s*", value):
            raise ValueError(f"{name} must be a number at least 0, such as '0.1', '1e-6' or '1/3', got {value!r}")
        return Fraction(value)
    if isinstance(value, Decimal):
        if not (value.is_finite() and value >= 0):
            raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number or its decimal text, got {value!r}")
    if isinstance(value, numbers.Rational):
        exact = Fraction(value)
    elif math.isfinite(value):
        exact = Fraction(repr(float(value)))
    else:
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    if exact < 0:
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    return exact


def decimal_up(x: Fraction) -> float:
    """The smallest float that shows a decimal at least x >= 0; ``inf`` beyond the range of doubles."""
    near = round_down(x)  # at most x in binary; the float that shows x or the next above is within one step of it
    while near != math.inf and Fraction(repr(near)) < x:
        near = math.nextafter(near, math.inf)
    return near


def decimal_down(x: Fraction) -> float:
    """The largest float that shows a decimal at most x >= 0."""
    near = math.nextafter(round_down(x), math.inf)
    while near == math.inf or Fraction(repr(near)) > x:
        near = math.nextafter(near, 0.0)
    return near


def decimal_text(x: Fraction) -> str:
    """A number at least 0 in full: "1", "0.1", "0.000001", and "1/3" where no decimal ends."""
    rest, places = x.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        return f"{x.numerator}/{x.denominator}"
    digits = str(x.numerator * 10**places // x.denominator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


@dataclass(frozen=True, slots=True)
class Budget:
    """(epsilon, delta), exactly: nothing on the ledger may cost more than epsilon, in nats, at delta."""

    epsilon: Fraction
    delta: Fraction

    @classmethod
    def of(cls, value: object) -> Self:
        """A budget from a pair, each a float (the decimal it shows), int, str, Decimal or Fraction; delta in [0, 1].

        Raises:
            TypeError, ValueError: not a pair, or a number that is NaN, infinite, negative, or a delta above 1.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise TypeError(f"budget must be a pair (epsilon, delta), got {value!r}")
        epsilon, delta = decimal("budget epsilon", value[0]), decimal("budget delta", value[1])
        if delta > 1:
            raise ValueError(f"budget delta must be at most 1, got {value[1]!r}")
        return cls(epsilon, delta)

    def __str__(self) -> str:
        return f"({decimal_text(self.epsilon)}, {decimal_text(self.delta)})"
