"""Pairs of laws with finitely many outcomes, by enumeration in 50-digit arithmetic.

A pair is a list of atoms (p, q): the probabilities of one outcome under the two laws. Everything here is the definition
written out; nothing is read from the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath as mp

mp.mp.dps = 50

Real = Any  # an mpmath number; mpmath has no types
Pair = list[tuple[Real, Real]]


def number(x: float | Fraction | Real) -> Real:
    """The exact value of an int, a float or a Fraction."""
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mp.mpf(x)


def pair_of(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> Pair:
    """Two laws as one list of atoms."""
    outcomes = dict.fromkeys([*first, *second])
    return [(number(first.get(outcome, 0)), number(second.get(outcome, 0))) for outcome in outcomes]


def extremal(epsilon: float | Real, delta: float | Real = 0) -> Pair:
    """The pair that every (epsilon, delta)-DP mechanism is a post-processing of (Kairouz, Oh, Viswanath 2015)."""
    grow, delta = mp.exp(number(epsilon)), number(delta)
    high, low = (1 - delta) * grow / (1 + grow), (1 - delta) / (1 + grow)
    leak = [(delta, mp.mpf(0)), (mp.mpf(0), delta)] if delta else []
    return [(high, low), (low, high), *leak]


def flipped(pair: Pair) -> Pair:
    return [(q, p) for p, q in pair]


def one_way(pair: Pair, epsilon: float | Real) -> Real:
    """sum (p - e^epsilon q)_+."""
    a = mp.exp(number(epsilon))
    return mp.fsum(p - a * q for p, q in pair if p > a * q)


def both_ways(pair: Pair, epsilon: float | Real) -> Real:
    return max(one_way(pair, epsilon), one_way(flipped(pair), epsilon))


def merged(pair: Pair) -> Pair:
    """The same pair with atoms of one likelihood ratio (to 30 digits) put together, which changes no divergence."""
    groups: dict[str, tuple[Real, Real]] = {}
    for p, q in pair:
        key = "inf" if q == 0 else mp.nstr(p / q, 30)
        old = groups.get(key, (mp.mpf(0), mp.mpf(0)))
        groups[key] = (old[0] + p, old[1] + q)
    return list(groups.values())


def product(pairs: Iterable[Pair]) -> Pair:
    """Independent uses of all the pairs."""
    total: Pair = [(mp.mpf(1), mp.mpf(1))]
    for pair in pairs:
        total = merged([(p * r, q * s) for (p, q), (r, s) in itertools.product(total, pair)])
    return total


def power(pair: Pair, count: int) -> Pair:
    return product([pair] * count)


def symmetric(pair: Pair) -> Pair:
    """The pair whose divergence is the larger of the two directions of `pair`, at every epsilon.

    Both directions are convex and piecewise linear in a = e^epsilon, so their maximum is; the change of its slope at
    a > 1 is the second law's mass at the likelihood ratio a, and below 1 the picture is mirrored.
    """

    def height(a: Real) -> Real:
        return both_ways(pair, mp.log(a))

    def gap(a: Real) -> Real:
        return one_way(pair, mp.log(a)) - one_way(flipped(pair), mp.log(a))

    ratios = {r for p, q in [*pair, *flipped(pair)] if p > 0 and q > 0 for r in [p / q] if r > 1}
    corners = sorted(ratios | {mp.mpf(1)})
    corners.append(2 * corners[-1])
    for left, right in itertools.pairwise(list(corners)):
        if gap(left) * gap(right) < 0:
            corners.append(left + (right - left) * gap(left) / (gap(left) - gap(right)))
    corners = _apart(sorted(corners))
    never = max(mp.fsum(p for p, q in side if q == 0) for side in (pair, flipped(pair)))
    slopes = [(height(b) - height(a)) / (b - a) for a, b in itertools.pairwise(corners)] + [mp.mpf(0)]
    result: Pair = []
    for a, (before, after) in zip(corners[1:], itertools.pairwise(slopes), strict=True):
        mass = after - before
        if mass > mp.mpf(10) ** -35:
            result += [(mass * a, mass), (mass, mass * a)]
    rest = 1 - never - mp.fsum(p for p, _ in result)
    leak = [(never, mp.mpf(0)), (mp.mpf(0), never)] if never else []
    return [*result, (rest, rest), *leak]


def _apart(numbers: list[Real]) -> list[Real]:
    """Increasing numbers without those that differ from the one before by rounding only."""
    return numbers[:1] + [b for a, b in itertools.pairwise(numbers) if b - a > mp.mpf(10) ** -40 * b]


def poisson_removal(pair: Pair, rate: float | Real) -> Pair:
    """((1 - rate) Q + rate P, Q): the larger dataset first (Zhu, Dong, Wang 2022, Theorem 11)."""
    rate = number(rate)
    return [(rate * p + (1 - rate) * q, q) for p, q in pair]


def poisson_addition(pair: Pair, rate: float | Real) -> Pair:
    return flipped(poisson_removal(pair, rate))


def without_replacement(pair: Pair, rate: float | Real) -> Pair:
    """The symmetric pair with profile ``rate d(ln(1 + (e^x - 1) / rate))`` at x >= 0, for a symmetric pair with profile
    d (Balle, Barthe, Gaboardi 2018, Theorem 9).
    """
    rate = number(rate)
    up = [(rate * p + (1 - rate) * q, q) for p, q in pair if p > q > 0]
    never = rate * mp.fsum(p for p, q in pair if q == 0)
    rest = 1 - never - mp.fsum(p + q for p, q in up)
    leak = [(never, mp.mpf(0)), (mp.mpf(0), never)] if never else []
    return [*up, *flipped(up), (rest, rest), *leak]


def worst_order(pairs: Sequence[Pair], epsilon: float | Real) -> Real:
    """The largest divergence over all choices of a direction for each pair: what adaptive mechanisms can attain."""
    choices = itertools.product(*((pair, flipped(pair)) for pair in pairs))
    return max(one_way(product(choice), epsilon) for choice in choices)
