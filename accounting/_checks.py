"""Argument checks shared by every layer: the message names the argument, the rule and the value.

Every condition is stated positively (``lo <= x <= hi``), so NaN, which compares false with everything, is refused.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction

from dp_accounting import NeighboringRelation

_RELATION_NAMES = {
    "replace-one": NeighboringRelation.REPLACE_ONE,
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-special": NeighboringRelation.REPLACE_SPECIAL,
}


def check_real(
    name: str,
    value: object,
    *,
    lo: float = -math.inf,
    hi: float = math.inf,
    lo_open: bool = False,
    hi_open: bool = False,
    allow_infinite: bool = False,
) -> float:
    """Return `value` as a float in the given interval; infinities are refused unless `allow_infinite`.

    Raises:
        TypeError: `value` is not a real number (booleans are not numbers here).
        ValueError: `value` is NaN, infinite or outside the interval.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must fit a double-precision number, got {value!r}") from None
    above = lo < number if lo_open else lo <= number
    below = number < hi if hi_open else number <= hi
    finite = allow_infinite or math.isfinite(number)
    if not (above and below and finite):
        interval = f"{'(' if lo_open else '['}{lo:g}, {hi:g}{')' if hi_open else ']'}"
        rule = f"in {interval}" if math.isfinite(lo) or math.isfinite(hi) else "a finite number"
        if not allow_infinite and not math.isfinite(number):
            rule += " and finite" if rule.startswith("in ") else ""
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return number


def check_epsilon(name: str, value: object, *, allow_infinite: bool = False) -> float:
    """A privacy parameter in nats, at least 0."""
    return check_real(name, value, lo=0.0, allow_infinite=allow_infinite)


def check_probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    return check_real(name, value, lo=0.0, hi=1.0)


def check_int(name: str, value: object, *, lo: int | None = None, hi: int | None = None) -> int:
    """Return `value` as an int in [lo, hi]; a float is refused even when it is a whole number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if (lo is not None and number < lo) or (hi is not None and number > hi):
        if hi is None:
            rule = f"at least {lo}"
        elif lo is None:
            rule = f"at most {hi}"
        else:
            rule = f"in [{lo}, {hi}]"
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return number


def check_fraction(name: str, value: object, *, lo: Fraction | int = 0, hi: Fraction | int | None = None) -> Fraction:
    """Return an int, Fraction or finite float as the exact rational it is, in [lo, hi]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a rational number, got {value!r}")
    if not isinstance(value, numbers.Rational) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    exact = Fraction(value) if isinstance(value, numbers.Rational) else Fraction(float(value))
    if exact < lo or (hi is not None and exact > hi):
        raise ValueError(f"{name} must be in [{lo}, {hi if hi is not None else 'inf'}], got {value!r}")
    return exact


def check_text(name: str, value: object) -> str:
    """A string that says something."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}")
    if not value.strip():
        raise ValueError(f"{name} must not be empty, got {value!r}")
    return value


def check_relation(name: str, value: object) -> NeighboringRelation:
    """A neighbouring relation, given as the enum member or by its name in files and on the command line."""
    if isinstance(value, NeighboringRelation):
        return value
    if isinstance(value, str) and value in _RELATION_NAMES:
        return _RELATION_NAMES[value]
    raise ValueError(
        f"{name} must be a dp_accounting.NeighboringRelation or one of {', '.join(_RELATION_NAMES)}, got {value!r}"
    )


def relation_name(relation: NeighboringRelation) -> str:
    """The name used in files and on the command line: replace-one, add-remove or replace-special."""
    return next(name for name, member in _RELATION_NAMES.items() if member is relation)
