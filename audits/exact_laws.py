"""Finite output laws over a common integer denominator, with the question answered of which outcomes are the same."""

from __future__ import annotations

import enum
import math
import numbers
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from audits.canonical import canonical
from mechanisms import Law, check_law


class Arithmetic(enum.Enum):
    """What the probabilities of a law were given as."""

    INTEGERS = "integers, so 0 and 1 only: agrees with either of the others"
    FRACTIONS = "rational numbers, exact"
    FLOATS = "floating-point numbers, read as the dyadic rationals they are"


class RationalLaw:
    """A probability law as integer weights over one denominator: sums and comparisons are exact and stay cheap.

    weights: outcome -> positive int, zero probabilities left out. denominator: of all weights; a law given in floats
    need not sum to exactly 1 and is not rescaled. arithmetic: what the probabilities were given as.

    Which outcomes are one: those that are equal after `audits.canonical.canonical`. Python holds ``1``, ``1.0`` and
    ``True`` equal, and ``0.0`` and ``-0.0``; a mechanism whose receiver can tell them apart should return what the
    receiver sees, e.g. ``float.hex(x)`` or ``(type(x).__name__, x)``. All NaNs are one outcome, whatever their bits,
    though Python holds no two of them equal; otherwise two laws that both give NaN would seem to have different
    supports.

    Raises:
        TypeError, ValueError: not a law (`mechanisms.check_law`), or Fractions and floats mixed in it, or an outcome
        that cannot
            be compared by value (`audits.canonical.UncountableError`).
    """

    __slots__ = ("arithmetic", "denominator", "weights")

    def __init__(self, name: str, law: Law, *, checked: bool = False) -> None:
        """checked: `check_law` has passed it, as `AdaptedMechanism.distribution` does."""
        probabilities: Mapping[Any, Any] = law if checked else check_law(name, law)
        self.arithmetic = _arithmetic(name, probabilities)
        ratios = {outcome: _ratio(probability) for outcome, probability in probabilities.items() if probability != 0}
        self.denominator = math.lcm(*{below for _, below in ratios.values()})
        weights: dict[Hashable, int] = {}
        for outcome, (above, below) in ratios.items():
            same = canonical(outcome)
            weights[same] = weights.get(same, 0) + above * (self.denominator // below)
        self.weights = weights

    @property
    def key(self) -> Hashable:
        """Equal for equal laws given in the same arithmetic."""
        return self.arithmetic, self.denominator, frozenset(self.weights.items())


def _arithmetic(name: str, law: Mapping[Any, Any]) -> Arithmetic:
    kinds = {
        Arithmetic.INTEGERS
        if isinstance(probability, numbers.Integral)
        else Arithmetic.FRACTIONS
        if isinstance(probability, numbers.Rational)
        else Arithmetic.FLOATS
        for probability in law.values()
    } - {Arithmetic.INTEGERS}
    if len(kinds) > 1:
        raise ValueError(f"{name} must hold either Fractions or floats, got both")
    return kinds.pop() if kinds else Arithmetic.INTEGERS


def _ratio(probability: Any) -> tuple[int, int]:
    if isinstance(probability, numbers.Rational):
        return int(probability.numerator), int(probability.denominator)
    return float(probability).as_integer_ratio()


def as_fraction(value: Fraction | float) -> Fraction:
    """A finite number as the exact rational it is."""
    return value if isinstance(value, Fraction) else Fraction(value)


__all__ = ["Arithmetic", "RationalLaw", "as_fraction"]
