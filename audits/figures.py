"""Privacy parameters as text, rounded to the side that keeps them true."""

from __future__ import annotations

import decimal
import math

_DIGITS = 4


def shown(value: float | None, *, rounding: str = decimal.ROUND_HALF_EVEN) -> str:
    """At most four significant digits; "-" for None, "inf" for infinity.

    rounding: ROUND_FLOOR for a lower bound and ROUND_CEILING for an upper bound, so that the text is a bound, too.
    """
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    nearest = f"{value:.{_DIGITS}g}"
    wrong_side = {decimal.ROUND_FLOOR: float(nearest) > value, decimal.ROUND_CEILING: float(nearest) < value}
    if not wrong_side.get(rounding, False):
        return nearest
    rounded = decimal.Context(prec=_DIGITS, rounding=rounding).create_decimal_from_float(value)
    return f"{float(rounded):.{_DIGITS}g}"


def shown_lower(value: float | None) -> str:
    """A lower bound, rounded down."""
    return shown(value, rounding=decimal.ROUND_FLOOR)


def shown_upper(value: float | None) -> str:
    """An upper bound, rounded up."""
    return shown(value, rounding=decimal.ROUND_CEILING)


def counted(count: int, noun: str) -> str:
    """``1 pair``, ``2 pairs``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
