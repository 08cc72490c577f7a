"""Private optimisation of a quasi-concave objective Q(S, .) on the ranks of a huge ordered domain (Proposition 8.6).

Q takes integers, and one replaced record moves it by at most 1 at every rank. Three mechanisms:

- `StepSelection`: the exponential mechanism over the pieces of Q. Pure, for every such Q, quasi-concave or not; loses
  about ``(2/epsilon) ln(N/beta)``.
- `QuasiConcaveTreeChoose`: (epsilon, delta)-DP **only between datasets on which Q is quasi-concave with the known
  maximum m = len(S)** (realizable ones); loses about ``(2/epsilon) (ln(1/delta) + 2 ln((4D + 2)/beta))``, D = log2 N.
- `TotalExtension`: the former, made total by answering the least rank where the promise fails (the paper's total
  extension, Section 8.2). Its claim is still about realizable datasets only: that is all that Assumption 4.4 asks.

QuasiConcaveTreeChoose takes the binary tree of mechanisms.tree_choose (ranks beyond N - 1 have the value there). For
a node u = [L, R] let ``A(u) = m - 1 - max(Q(L-1), Q(R+1))``, infinite for the root; missing neighbours do not count. A
node is admissible if A(u) >= 1 and Q reaches m in u. An admissible u has candidates p = c(u) and c(u) - 1 (a leaf:
itself), each of weight ``r**min(A(u) - h, max(Q(p) - T, 0))``; a default outcome, rank 0, has weight W. T is public.

Privacy. Outside an admissible u, Q <= m - 2 (otherwise quasi-concavity would lift a neighbour above m - 2), so u
holds all ranks with Q >= m - 1: there is at most one such node on each level, and if Q' is a neighbour of Q, the
admissible nodes of the two on one level, when both exist, agree, since a peak of Q has Q' >= m - 1. Exponents of
candidates admissible under both move by at most 1. A node becomes admissible only by A(u) passing from 0 to 1: if A(u)
>= 1 before, then Q reaches m - 1 in u (for Q' reaches m there) and m outside or in u; outside would give a neighbour of
u at least m - 1. So new candidates have weight at most kappa = ``r**(1-h)``, and there are at most B = 2D - 1 of them,
two on each level but the root's and one leaf. As for TreeChoose, with ``W (r - 1) >= B kappa``, the choice is
``(2 ln r, B kappa / W)``-DP.

Utility. Let e >= 1 with ``r**e >= (W + 2D)(1 - beta)/beta`` and T = m - h - 2e. On the path to the peak take the
deepest node u with both neighbours at most m - 1 - h - e (or missing); the root is one. If u is a leaf, p is the peak.
Otherwise the new neighbour of its child is c(u) or c(u) - 1, so that candidate has Q >= m - h - e = T + e. Either way
one candidate has weight at least ``r**e``. An outcome with Q <= T is the default or one of at most 2D candidates of
weight at most 1. So ``Q >= m - h - 2e + 1`` except with probability beta.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accounting import Claim, Relation, Trust, check_int, round_up
from mechanisms.base import Dataset
from mechanisms.concepts import NotRealizableError
from mechanisms.exponential import log_width_up, rational_base
from mechanisms.interior_point import step_draws, step_law
from mechanisms.sampling import check_rng
from mechanisms.selection import (
    Groups,
    check_inside_unit,
    check_positive_epsilon,
    smallest_exponent,
    tree_depth,
)
from mechanisms.step_function import PointOracle, StepFunction

PROMISE = "the sample is realizable: the objective is quasi-concave with maximum equal to the number of records"
"""The condition on inputs of QuasiConcaveTreeChoose, as its claim states it."""


class StepSelection:
    """The exponential mechanism on a step function: ``Pr[p] ~ r**Q(S, p)``, ``r**2 <= e**epsilon``.

    quality: maps a dataset to its objective, a `StepFunction` on 0..domain_size-1 of sensitivity 1 (declared: an audit
    can refute it, the class cannot check it). epsilon: in nats, positive. ignores_order: whether the objective ignores
    the order of the records (declared). Output: a rank.

    Guarantee, on all inputs and for every such objective: ``2 ln r``-bounded-range, hence epsilon-DP.

    Raises:
        TypeError, ValueError: an empty domain, epsilon not positive, an objective on another domain.
    """

    def __init__(
        self,
        quality: Callable[[Dataset], StepFunction],
        domain_size: int,
        epsilon: float | Fraction,
        *,
        ignores_order: bool = False,
    ) -> None:
        self.quality = quality
        self.domain_size = check_int("domain_size", domain_size, lo=1)
        self.epsilon = check_positive_epsilon(epsilon)
        self.base = rational_base(self.epsilon)
        self.ignores_order = ignores_order

    @property
    def claim(self) -> Claim:
        """``2 ln r``-bounded-range, rounded up."""
        return Claim.bounded_range(
            log_width_up(self.base**2),
            relation=Relation.REPLACE_ONE,
            source="McSherry and Talwar (2007), Theorem 6, over level sets (mechanisms.quasi_concave)",
            trust=Trust.EXACT,
        )

    def loss_bound(self, beta: float | Fraction) -> int:
        """The least E such that ``Q(output) >= max Q - E`` except with probability beta, for every objective.

        Attained by a single peak with E + 1 less everywhere else: ``r**(E+1) >= (N - 1)(1 - beta)/beta``.
        """
        chance = check_inside_unit("beta", beta)
        return max(0, smallest_exponent(self.base, (self.domain_size - 1) * (1 - chance) / chance) - 1)

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law, every rank listed; for small domains."""
        return step_law(self._objective(dataset), self.base)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks."""
        return step_draws(self._objective(dataset), self.base, size, rng)

    def _objective(self, dataset: Dataset) -> StepFunction:
        objective = self.quality(dataset)
        if objective.domain_size != self.domain_size:
            raise ValueError(f"quality must be on domain_size = {self.domain_size} ranks, got {objective.domain_size}")
        return objective


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A candidate on the path to the peak: c(u) of the node at `level`, or its predecessor; the leaf for level D."""

    level: int
    before: bool
    exponent: int


class QuasiConcaveTreeChoose:
    """Optimises a quasi-concave objective of known maximum; definition and proofs in the module's docstring.

    quality: maps a dataset S to its objective, a `PointOracle` on 0..domain_size-1 of sensitivity 1, with values at
    most len(S) (declared). It is evaluated at no more than 2D + 2 ranks. epsilon: in nats, positive. delta: in (0, 1).
    beta: in (0, 1), the failure probability that the outcomes' threshold T is set for. ignores_order: declared.
    Output: a rank; the least rank by default.

    Guarantee, **for one replaced record between datasets that keep the promise** (`PROMISE`): ``(2 ln r, (2D - 1)
    r**(1-h) / W)``-DP, hence (epsilon, delta)-DP. Nothing is guaranteed elsewhere, and it does fail there. The promise
    is asserted as far as the objective shows it: the peak must have value len(S), a `StepFunction` must be
    quasi-concave, and the values looked at must rise to the peak and fall after it.

    Utility, where the promise holds: ``Q(output) >= len(S) - loss`` except with probability beta.

    Raises:
        TypeError, ValueError: a parameter out of range.
        NotRealizableError: on release, when the promise is seen to fail.
    """

    def __init__(
        self,
        quality: Callable[[Dataset], PointOracle],
        domain_size: int,
        epsilon: float | Fraction,
        delta: float | Fraction,
        beta: float | Fraction,
        *,
        ignores_order: bool = False,
    ) -> None:
        self.quality = quality
        self.domain_size = check_int("domain_size", domain_size, lo=1)
        self.epsilon = check_positive_epsilon(epsilon)
        self.requested_delta = check_inside_unit("delta", delta)
        self.beta = check_inside_unit("beta", beta)
        self.ignores_order = ignores_order
        self.depth = tree_depth(self.domain_size)
        self.base = rational_base(self.epsilon)
        allowed = min(self.requested_delta, self.base - 1)
        self.threshold = 1 + smallest_exponent(self.base, 1 / allowed)
        births = (2 * self.depth - 1) * self.base ** (1 - self.threshold)
        self.default_weight = -(-births // allowed)
        self.delta = births / self.default_weight
        bad = self.default_weight + 2 * self.depth
        self._rise = max(1, smallest_exponent(self.base, bad * (1 - self.beta) / self.beta))

    @property
    def loss(self) -> int:
        """``h + 2e - 1``: how far below len(S) the objective at the output is at most, except with probability beta."""
        return self.threshold + 2 * self._rise - 1

    @property
    def claim(self) -> Claim:
        """``(2 ln r, (2D - 1) r**(1-h) / W)``-DP, both rounded up, on realizable datasets."""
        return Claim.approximate(
            log_width_up(self.base**2),
            round_up(self.delta),
            relation=Relation.REPLACE_ONE,
            source="own proof (mechanisms.quasi_concave); for the role of Proposition 8.6",
            promise=PROMISE,
            trust=Trust.EXACT,
        )

    def check_dataset(self, dataset: Dataset) -> None:
        """Raise `NotRealizableError` where the promise is seen to fail."""
        self._candidates(dataset)

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law of the ranks that can come out, at most 2D + 2."""
        candidates, peak = self._candidates(dataset)
        *each, default = self._groups(candidates).outcome_probabilities()
        law: defaultdict[int, Fraction] = defaultdict(Fraction, {0: default * self.default_weight})
        for candidate, probability in zip(candidates, each, strict=True):
            law[self._rank(candidate, peak)] += probability
        return dict(law)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks."""
        check_rng(rng)
        candidates, peak = self._candidates(dataset)
        drawn = self._groups(candidates).draw_many(size, rng)
        return [0 if group == len(candidates) else self._rank(candidates[group], peak) for group, _ in drawn]

    def _groups(self, candidates: list[_Candidate]) -> Groups:
        exponents = [candidate.exponent for candidate in candidates]
        return Groups([*exponents, 0], [*itertools.repeat(1, len(candidates)), self.default_weight], self.base)

    def _split(self, level: int, peak: int) -> int:
        """c(u) for the node at `level` on the path to the peak."""
        shift = self.depth - 1 - level
        return (peak >> shift | 1) << shift

    def _rank(self, candidate: _Candidate, peak: int) -> int:
        if candidate.level == self.depth:
            return peak
        return min(self._split(candidate.level, peak) - candidate.before, self.domain_size - 1)

    def _candidates(self, dataset: Dataset) -> tuple[list[_Candidate], int]:
        """The candidates of all admissible nodes, and the peak on whose path they lie."""
        objective, goal = self.quality(dataset), len(dataset)
        peak = check_int("the peak of quality", objective.peak(), lo=0, hi=self.domain_size - 1)
        top = objective.value(peak)
        if top != goal:
            raise NotRealizableError(
                f"dataset must be realizable, its objective reaching the number of records {goal}: it reaches {top}"
            )
        if isinstance(objective, StepFunction) and not objective.is_quasi_concave:
            raise NotRealizableError("dataset must be realizable: its objective is not quasi-concave")
        found: list[_Candidate] = []
        low: int | None = None  # Q at the neighbours of the node, None for a missing one
        high: int | None = None
        for level in range(self.depth + 1):
            outer = max((value for value in (low, high) if value is not None), default=None)
            if outer is not None and outer > goal - 2:
                break  # the neighbours of deeper nodes lie closer to the peak
            if level == self.depth:
                found.append(_Candidate(level, False, self._exponent(goal, outer, top)))
                break
            split = self._split(level, peak)
            before, after = self._value(objective, split - 1), self._value(objective, split)
            found.append(_Candidate(level, False, self._exponent(goal, outer, after)))
            found.append(_Candidate(level, True, self._exponent(goal, outer, before)))
            if peak >= split:
                self._check_rise(low, before, after)
                low = before
            else:
                self._check_rise(high, after, before)
                high = after
        return found, peak

    def _value(self, objective: PointOracle, rank: int) -> int:
        return check_int("a value of quality", objective.value(min(rank, self.domain_size - 1)))

    def _check_rise(self, *values: int | None) -> None:
        """Values at ranks ever closer to the peak, from one side; None for one that is missing."""
        present = [value for value in values if value is not None]
        if any(one > other for one, other in itertools.pairwise(present)):
            raise NotRealizableError("dataset must be realizable: its objective is not quasi-concave")

    def _exponent(self, goal: int, outer: int | None, value: int) -> int:
        """``min(A - h, max(Q - T, 0))`` with ``A = m - 1 - outer`` and ``T = m - h - 2e``, m the goal."""
        height = max(value - (goal - self.threshold - 2 * self._rise), 0)
        return height if outer is None else min(goal - 1 - outer - self.threshold, height)


class TotalExtension:
    """A mechanism under a promise, made total: it answers rank 0 where the promise is seen to fail (Section 8.2).

    Guarantee: the mechanism's, under its promise. Between a dataset that keeps the promise and one that does not,
    nothing is private: the answer 0 tells them apart (`mechanisms.selection_catalogue.counterexamples`).
    """

    is_total = True

    def __init__(self, mechanism: QuasiConcaveTreeChoose) -> None:
        self.mechanism = mechanism
        self.ignores_order = mechanism.ignores_order

    @property
    def claim(self) -> Claim:
        """The mechanism's, with its promise."""
        return self.mechanism.claim

    def check_dataset(self, dataset: Dataset) -> None:
        """Raise `NotRealizableError` where the promise is seen to fail."""
        self.mechanism.check_dataset(dataset)

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law."""
        try:
            return self.mechanism.distribution(dataset)
        except NotRealizableError:
            return {0: Fraction(1)}

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks."""
        try:
            return self.mechanism.release_many(dataset, size, rng=rng)
        except NotRealizableError:
            return [0] * size
