"""The exponential mechanism with a rational base: exact weights, exact sampling."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from accounting import Claim, Relation, Trust, check_fraction, check_int, check_relation, exp_bounds, log_bounds
from mechanisms.base import Dataset, is_hashable
from mechanisms.sampling import PowerSampler, check_rng, uniform_many

_BASE_SOURCE = "McSherry and Talwar (2007), Theorem 6; bounded range: Dong, Durfee and Rogers (2020), Lemma 3.2"


@lru_cache(maxsize=1024)
def rational_base(epsilon: float | Fraction, bits: int = 24) -> Fraction:
    """The largest ``r = P / 2**b`` with ``r**2 <= e**epsilon``: the weight of one unit of score.

    epsilon: in nats, taken as the exact rational it is; 0 gives 1. bits: b is `bits`, plus one for each factor of two
    by which epsilon is below 1, so that a small epsilon is not rounded to nothing.

    Guarantees: ``r**2`` is at most a rational lower bound of ``e**epsilon``, and ``(r + 2**-b)**2`` exceeds a rational
    upper bound of it.
    """
    exact = check_fraction("epsilon", epsilon)
    check_int("bits", bits, lo=1)
    if exact == 0:
        return Fraction(1)
    places = bits + max(0, exact.denominator.bit_length() - exact.numerator.bit_length())
    precision = 2 * places + 64
    while True:
        low, high = exp_bounds(exact, precision)
        candidate = math.isqrt(math.floor(low * 4**places))
        # e**epsilon is irrational for a rational epsilon other than 0 (Hermite, Lindemann), so this ends.
        if (candidate + 1) ** 2 > high * 4**places:
            return Fraction(candidate, 2**places)
        precision *= 2


def log_width_up(factor: Fraction) -> float:
    """``ln(factor)`` rounded up, factor at least 1: the width of a log-ratio as a float that is safe to claim."""
    return max(0.0, log_bounds(factor)[1])


def integer_weights(scores: Sequence[int], base: Fraction) -> list[int]:
    """Integers proportional to ``base**score``, with the smallest common scale for a base in lowest terms."""
    least, greatest = min(scores), max(scores)
    weight = {s: base.numerator ** (s - least) * base.denominator ** (greatest - s) for s in set(scores)}
    return [weight[s] for s in scores]


class ExponentialMechanism:
    """Selects candidate c with probability proportional to ``r**score(dataset, c)``, r the rational base of epsilon.

    candidates: a public, finite list of distinct hashable outcomes.
    score: ``score(dataset, candidate)``, an integer.
    epsilon: in nats, the guarantee asked for.
    sensitivity: the declared largest change of any candidate's score between neighbours, a positive integer. It is a
        declaration: an audit can refute it, the class cannot check it.
    relation: the neighbouring relation that the sensitivity is about.
    ignores_order: whether the score ignores the order of the records (declared).

    Guarantee: with ``r**2 <= e**(epsilon/sensitivity)``, each weight changes by a factor in ``[r**-s, r**s]`` for
    sensitivity s, so all log-ratios of outcome probabilities lie in a window of width ``2 s ln r <= epsilon``:
    bounded range, hence epsilon-DP. Sampling is exact (`PowerSampler`), so the guarantee holds for the running code.

    Raises:
        TypeError, ValueError: no candidates, one twice or unhashable; a score that is not an integer.
    """

    def __init__(
        self,
        candidates: Sequence[Hashable],
        score: Callable[[Dataset, Any], int],
        epsilon: float | Fraction,
        *,
        sensitivity: int,
        relation: Relation | str,
        ignores_order: bool = False,
    ) -> None:
        self.candidates = tuple(candidates)
        if not self.candidates:
            raise ValueError("candidates must hold at least one outcome, got none")
        seen: set[Hashable] = set()
        for candidate in self.candidates:
            if not is_hashable(candidate):
                raise TypeError(f"candidates must be hashable, got {candidate!r}")
            if candidate in seen:
                raise ValueError(f"candidates must be distinct, got {candidate!r} twice")
            seen.add(candidate)
        if not callable(score):
            raise TypeError(f"score must be a function of (dataset, candidate), got {score!r}")
        self.score = score
        self.sensitivity = check_int("sensitivity", sensitivity, lo=1)
        self.epsilon = check_fraction("epsilon", epsilon)
        self.relation = check_relation("relation", relation)
        self.ignores_order = ignores_order
        self.base = rational_base(self.epsilon / self.sensitivity)

    @property
    def claim(self) -> Claim:
        """``2 s ln r``-bounded-range, rounded up, for sensitivity s."""
        return Claim.bounded_range(
            log_width_up(self.base ** (2 * self.sensitivity)),
            relation=self.relation,
            source=_BASE_SOURCE,
            trust=Trust.EXACT,
        )

    def scores(self, dataset: Dataset) -> list[int]:
        """The score of each candidate, in their order."""
        return [
            check_int(f"score of candidate {candidate!r}", self.score(dataset, candidate))
            for candidate in self.candidates
        ]

    def distribution(self, dataset: Dataset) -> Mapping[Any, Fraction]:
        """The exact law."""
        weights = integer_weights(self.scores(dataset), self.base)
        total = sum(weights)
        return {candidate: Fraction(weight, total) for candidate, weight in zip(self.candidates, weights, strict=True)}

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Any:
        """One candidate."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Any]:
        """`size` independent candidates."""
        check_rng(rng)
        members: defaultdict[int, list[Any]] = defaultdict(list)
        for candidate, score in zip(self.candidates, self.scores(dataset), strict=True):
            members[score].append(candidate)
        levels = sorted(members, reverse=True)
        counts = [len(members[level]) for level in levels]
        drawn = PowerSampler(levels, counts, self.base).draw_many(size, rng)
        within = uniform_within(drawn, counts, rng)
        return [members[levels[level]][index] for level, index in zip(drawn.tolist(), within.tolist(), strict=True)]


def uniform_within(
    levels: np.ndarray[Any, np.dtype[np.int64]], counts: Sequence[int], rng: np.random.Generator | None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each drawn level a uniform index among its `counts[level]` members."""
    within = np.zeros(len(levels), dtype=np.int64)
    for level in np.unique(levels).tolist():
        here = levels == level
        within[here] = uniform_many(counts[level], int(here.sum()), rng)
    return within
