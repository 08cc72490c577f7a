"""How large a random block of a sample must be so that what fits the block fits nearly all of the sample; exact.

B is a uniform subset of b of m records. Two bounds on the chance that something consistent with B fails on more than v
of the m records, both in exact hypergeometric probabilities and free of distributional assumptions:

- `GrowthBound`, for every concept of a class at once (the statement of Theorem 3.10). A concept with k > v errors on
  the sample has none on B with probability ``C(m-k, b)/C(m, b) <= C(m-v-1, b)/C(m, b)``, and there are at most Pi(m)
  labellings of the sample to consider, Pi the growth function.
- `BasisBound`, for one solution of an optimisation problem in which every block's solution is that of at most s of its
  constraints (a linear program in s - 1 variables and a margin, say) and V of the m constraints are violated by it:

      Pr[V > v] <= Pr[Hyp(m, b, v + s) <= s - 1] = sum_{i<s} C(v+s, i) C(m-v-s, b-i) / C(m, b).

  Proof. Break ties, so that every block has one basis. Order the constraints by priority, and let ext(B) be the basis
  of B, filled up to s members with the first others of B. For a set J of s, let V'(J) hold the constraints whose
  presence would change ext(J): the violators, and those before the last filler. Then ext(B) = J iff B contains J and
  misses V'(J), which has probability ``C(m-s-|V'|, b-s)/C(m, b)``. These sum to 1 for each b = m, m-1, .., s, which
  forces exactly ``C(v+s-1, s-1)`` sets J to have |V'| = v. So |V'| is distributed as the number of records not drawn
  before the s-th that is drawn, in a fixed order of all, and V <= |V'|. (The finite form of the scenario bound.)

With B one of t blocks that partition the sample, m = t b and a union bound over blocks: `smallest_block`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from accounting import check_int
from mechanisms.selection import check_inside_unit

_LARGEST_BLOCK = 1 << 24


class BlockBound(Protocol):
    """A bound on the chance that a block's solution has too many errors on the sample."""

    def failure(self, population: int, block: int, errors: int) -> Fraction:
        """At least the probability that it has more than `errors` errors among `population` records.

        block: how many of the records the block holds.
        """
        ...


def hypergeometric_at_most(population: int, block: int, marked: int, most: int) -> Fraction:
    """The probability that a uniform subset of `block` of `population` records holds at most `most` of `marked` ones.

    Raises:
        TypeError, ValueError: block or marked is not in 0..population.
    """
    check_int("population", population, lo=0)
    check_int("block", block, lo=0, hi=population)
    check_int("marked", marked, lo=0, hi=population)
    ways = sum(
        math.comb(marked, i) * math.comb(population - marked, block - i) for i in range(min(most, block, marked) + 1)
    )
    return Fraction(ways, math.comb(population, block))


@dataclass(frozen=True, slots=True)
class BasisBound:
    """For a rule whose solution on a block is determined by at most `dimension` of its records.

    >>> round(float(BasisBound(3).failure(2000, 200, 60)), 3)
    0.04

    Raises:
        TypeError, ValueError: dimension is below 1.
    """

    dimension: int

    def __post_init__(self) -> None:
        check_int("dimension", self.dimension, lo=1)

    def failure(self, population: int, block: int, errors: int) -> Fraction:
        """``Pr[Hyp(m, b, v + s) <= s - 1]``; 1 for a block of fewer than s records, 0 where v + s > m."""
        check_int("errors", errors, lo=0)
        if block < self.dimension:
            return Fraction(1)
        if errors + self.dimension > population:
            return Fraction(0)
        return hypergeometric_at_most(population, block, errors + self.dimension, self.dimension - 1)


@dataclass(frozen=True, slots=True)
class GrowthBound:
    """For every concept of a class that is consistent with the block: any choice among them will do.

    growth: an upper bound on the number of labellings that the class induces on m points, for each m (`vc_growth`, or
    the class's own).
    """

    growth: Callable[[int], int]

    def failure(self, population: int, block: int, errors: int) -> Fraction:
        """``min(1, Pi(m) C(m - v - 1, b)/C(m, b))``."""
        check_int("errors", errors, lo=0)
        if errors >= population:
            return Fraction(0)
        missed = hypergeometric_at_most(population, block, errors + 1, 0)
        return min(Fraction(1), check_int("growth", self.growth(population), lo=1) * missed)


def vc_growth(dimension: int) -> Callable[[int], int]:
    """Sauer's bound ``m -> sum_{i <= v} C(m, i)`` on the growth function of a class of VC dimension v."""
    check_int("dimension", dimension, lo=0)
    return lambda points: sum(math.comb(points, i) for i in range(dimension + 1))


def smallest_block(bound: BlockBound, *, blocks: int, rho: float | Fraction, beta: float | Fraction) -> int:
    """A block size b such that, of m = b blocks records, all blocks err on at most ``rho m``, except with probability
    beta.

    blocks: t, which partition the sample at random. Guarantee: ``t failure(t b, b, floor(rho t b)) <= beta``, while
    this fails for b - 1.

    Raises:
        TypeError, ValueError: a parameter out of range, or no block up to 2**24 records suffices.
    """
    check_int("blocks", blocks, lo=1)
    share, chance = check_inside_unit("rho", rho), check_inside_unit("beta", beta)

    def suffices(block: int) -> bool:
        population = blocks * block
        return blocks * bound.failure(population, block, math.floor(share * population)) <= chance

    enough = 1
    while not suffices(enough):
        enough *= 2
        if enough > _LARGEST_BLOCK:
            raise ValueError(f"rho = {rho!r} and beta = {beta!r} need blocks of more than {_LARGEST_BLOCK} records")
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if suffices(middle) else (middle, enough)
    return enough


def published_block(dimension: int, *, rho: float, beta: float) -> int:
    """The block size of Theorem 3.10 with the constants of its source, Blumer et al. (1989), Theorem A2.2.

    ``max((4/rho) log2(2/beta), (8 v/rho) log2(13/rho))`` for VC dimension v, one block, failure probability beta.
    """
    check_int("dimension", dimension, lo=1)
    share, chance = float(check_inside_unit("rho", rho)), float(check_inside_unit("beta", beta))
    return math.ceil(max(4 / share * math.log2(2 / chance), 8 * dimension / share * math.log2(13 / share)))
