"""Private interior point of a huge ordered domain: by the exponential mechanism, and the choice of mechanism.

An interior point of x_1..x_n is any p with ``min x_i <= p <= max x_i``. Records are ranks 0..N-1; what the ranks stand
for is the caller's (`RankedDomain`). N is a Python integer and may have ten thousand digits.

`InteriorPoint` is pure and needs ``n ~ (4/epsilon) ln(N / (2 beta))`` records; `TreeChoose` (mechanisms.tree_choose) is
(epsilon, delta)-DP and needs ``n ~ (2/epsilon) (ln(1/delta) + 3 ln(3 log2 N / beta))``. `choose_interior_point` takes
the one that needs fewer, by public parameters only.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from accounting import Claim, Relation, Trust, check_int
from mechanisms.base import Dataset
from mechanisms.exponential import log_width_up, rational_base
from mechanisms.sampling import check_rng
from mechanisms.selection import Groups, check_inside_unit, check_positive_epsilon, reaches, smallest_exponent
from mechanisms.step_function import StepFunction, interior_depth

_LISTED = 1 << 20


@runtime_checkable
class RankedDomain(Protocol):
    """A finite ordered set, by rank: ``unrank`` is increasing and ``rank`` is its inverse."""

    @property
    def size(self) -> int:
        """How many elements; any Python integer."""
        ...

    def rank(self, value: Any) -> int:
        """How many elements lie below `value`, an element."""
        ...

    def unrank(self, rank: int) -> Any:
        """The element of this rank."""
        ...


@dataclass(frozen=True, slots=True)
class SortedDomain:
    """A `RankedDomain` listed in full.

    Raises:
        ValueError: no values, or values that are not strictly ascending.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("values must hold at least one element, got none")
        for low, high in zip(self.values, self.values[1:], strict=False):
            if not low < high:
                raise ValueError(f"values must be sorted and distinct, got {high!r} after {low!r}")

    @property
    def size(self) -> int:
        return len(self.values)

    def rank(self, value: Any) -> int:
        found = bisect.bisect_left(self.values, value)
        if found == self.size or self.values[found] != value:
            raise ValueError(f"records must be elements of the domain, got {value!r}")
        return found

    def unrank(self, rank: int) -> Any:
        return self.values[check_int("rank", rank, lo=0, hi=self.size - 1)]


class InteriorPointMechanism(Protocol):
    """A private interior point on ranks, with what a planner asks of it."""

    ignores_order: bool

    @property
    def domain_size(self) -> int: ...

    @property
    def claim(self) -> Claim: ...

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int: ...

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]: ...

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]: ...

    def records_needed(self, beta: float | Fraction) -> int:
        """A number of records at which no dataset makes the output miss with probability above beta."""
        ...


class InteriorPoint:
    """Interior point by the exponential mechanism: ``Pr[p] ~ r**q(p)``, ``q(p) = min(#{x_i <= p}, #{x_i >= p})``.

    Here r is the rational base of epsilon, ``r**2 <= e**epsilon``.

    dataset: ranks, integers in 0..domain_size-1. Output: a rank. An empty dataset gives a uniform rank.
    domain_size: N, at least 1. epsilon: in nats, positive.

    Guarantee, on all inputs, for one replaced record: a score moves by at most 1, so the mechanism is
    ``2 ln r``-bounded-range, hence epsilon-DP. Draws are exact.

    Utility, exact: with c_q ranks of score q, the output misses with probability ``c_0 / sum_q c_q r**q``. The worst
    datasets of n records are half at p and half at p + 1, or all at one p (`worst_failure`).

    >>> mechanism = InteriorPoint(2**10, 1)
    >>> mechanism.records_needed(0.05)
    37

    Raises:
        TypeError, ValueError: an empty domain, epsilon not positive, a record outside the domain.
    """

    ignores_order = True

    def __init__(self, domain_size: int, epsilon: float | Fraction) -> None:
        self.domain_size = check_int("domain_size", domain_size, lo=1)
        self.epsilon = check_positive_epsilon(epsilon)
        self.base = rational_base(self.epsilon)

    @classmethod
    def with_base(cls, domain_size: int, base: Fraction) -> InteriorPoint:
        """The mechanism of this r, above 1 and with a power of two as denominator, in place of epsilon's."""
        mechanism = cls(domain_size, 1)
        mechanism.base, mechanism.epsilon = base, Fraction(log_width_up(base**2))
        return mechanism

    @property
    def claim(self) -> Claim:
        """``2 ln r``-bounded-range, rounded up."""
        return Claim.bounded_range(
            log_width_up(self.base**2),
            relation=Relation.REPLACE_ONE,
            source="McSherry and Talwar (2007), Theorem 6, on a score of sensitivity 1 (mechanisms.interior_point)",
            trust=Trust.EXACT,
        )

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law, every rank listed; for small domains."""
        return step_law(interior_depth(self.domain_size, dataset), self.base)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks."""
        return step_draws(interior_depth(self.domain_size, dataset), self.base, size, rng)

    def failure_probability(self, dataset: Dataset) -> Fraction:
        """The exact probability that the output is no interior point of the dataset; 1 for an empty one."""
        depth = interior_depth(self.domain_size, dataset)
        return step_groups(depth, self.base).probability(lambda piece: depth.values[piece] == 0)

    def worst_failure(self, records: int) -> Fraction:
        """The largest failure probability of any dataset of so many records, attained.

        Proof. The odds of success are ``sum_{q>0} c_q r**q / c_0``. All records at one rank: ``r**n / (N - 1)``.
        Otherwise ``c_0 <= N - 2``, and the sum is at least ``r**ceil(n/2) + r**floor(n/2)``, with equality for two
        adjacent ranks of ceil(n/2) and floor(n/2) records. For even n with different middle order statistics, these two
        have scores of at least n/2. Else let v be the median, L records below it, R above, ``1 <= M = max(L, R) <=
        floor(n/2)``: v has score n - M, the next value on the fuller side has score M, and ``r**(n-M) + r**M`` is least
        for M nearest to n/2, by convexity.
        """
        n, others = check_int("records", records, lo=0), self.domain_size - 1
        if n == 0:
            return Fraction(1)
        single = Fraction(others, 1) / (others + self.base**n)
        if n == 1 or others < 2:
            return single
        double = self.base ** (n // 2) + self.base ** (n - n // 2)
        return max(single, (others - 1) / (others - 1 + double))

    def records_needed(self, beta: float | Fraction) -> int:
        """The smallest n with ``worst_failure(n) <= beta``: about ``(4/epsilon) ln((N - 2)(1 - beta)/(2 beta))``.

        Raises:
            TypeError, ValueError: beta is not in (0, 1).
        """
        chance = check_inside_unit("beta", beta)
        odds = (1 - chance) / chance
        single = smallest_exponent(self.base, (self.domain_size - 1) * odds)
        target = (self.domain_size - 2) * odds
        half = smallest_exponent(self.base, target / 2)
        # 2 half - 1 records suffice when r**half + r**(half-1), not only 2 r**half, reaches the target.
        odd = half > 0 and reaches(self.base, half - 1, target / (self.base + 1))
        return max(1, single, 2 * half - odd)


class OverDomain:
    """A mechanism on ranks, for records and outputs that are elements of a `RankedDomain`.

    Renaming records and outputs costs no privacy: the claim is the mechanism's.

    Raises:
        ValueError: the domain's size is not the mechanism's.
    """

    def __init__(self, mechanism: InteriorPointMechanism, domain: RankedDomain) -> None:
        if domain.size != mechanism.domain_size:
            raise ValueError(
                f"domain must have the mechanism's domain_size = {mechanism.domain_size}, got {domain.size}"
            )
        self.mechanism, self.domain = mechanism, domain
        self.ignores_order = mechanism.ignores_order

    @property
    def claim(self) -> Claim:
        """The mechanism's."""
        return self.mechanism.claim

    def distribution(self, dataset: Dataset) -> Mapping[Any, Fraction]:
        """The exact law, on elements."""
        law = self.mechanism.distribution(self._ranks(dataset))
        return {self.domain.unrank(rank): probability for rank, probability in law.items()}

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Any:
        """One element."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Any]:
        """`size` independent elements."""
        ranks = self.mechanism.release_many(self._ranks(dataset), size, rng=rng)
        return [self.domain.unrank(rank) for rank in ranks]

    def _ranks(self, dataset: Dataset) -> Sequence[int]:
        return tuple(self.domain.rank(value) for value in dataset)


def step_groups(function: StepFunction, base: Fraction) -> Groups:
    """The pieces of a step function as groups of weight ``base**value``."""
    _, counts, values = zip(*function.pieces(), strict=True)
    return Groups(values, counts, base)


def step_draws(function: StepFunction, base: Fraction, size: int, rng: np.random.Generator | None) -> list[int]:
    """`size` independent ranks p, each with probability proportional to ``base**function(p)``, exactly."""
    check_rng(rng)
    drawn = step_groups(function, base).draw_many(size, rng)
    return [function.starts[piece] + index for piece, index in drawn]


def step_law(function: StepFunction, base: Fraction) -> dict[int, Fraction]:
    """The law of `step_draws`, every rank listed.

    Raises:
        ValueError: there are too many ranks to list.
    """
    if function.domain_size > _LISTED:
        raise ValueError(f"an exact law lists at most {_LISTED} ranks, got a domain of {function.domain_size}")
    each = step_groups(function, base).outcome_probabilities()
    return {
        rank: probability
        for (start, count, _), probability in zip(function.pieces(), each, strict=True)
        for rank in range(start, start + count)
    }
