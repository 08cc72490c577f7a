"""Amplified reservoir access: a value-independent partition, and mechanisms run on a uniform sample of a reservoir.

The paper's learner splits its records into blocks by position alone, so that a replaced record touches one block, and
runs each step on a uniform sample of fixed size from a block, so that most steps do not see it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from dp_accounting import SampledWithoutReplacementDpEvent

from accounting import Claim, Relation, check_epsilon, check_int, check_probability, check_text, relation_name
from mechanisms.base import AdaptedMechanism, Dataset, Law, Mechanism, as_mechanism, check_law
from mechanisms.sampling import check_rng, random_order

_CACHED_LAWS = 4096
_MAX_SELECTIONS = 10**7


def partition(size: int, blocks: Mapping[str, int], *, rng: np.random.Generator | None) -> dict[str, tuple[int, ...]]:
    """Split the indices 0..size-1 at random into named blocks; indices beyond the sum of the block sizes go unused.

    blocks: name to number of records. The split is a uniform permutation cut into pieces: it looks at no record, so a
    replaced record is in exactly one block (or none), the same one on both neighbours.

    Raises:
        TypeError, ValueError: an empty name, a negative size, or more records asked for than there are.
    """
    check_int("size", size, lo=0)
    for name, count in blocks.items():
        check_text("the name of a block", name)
        check_int(f"blocks[{name!r}]", count, lo=0)
    wanted = sum(blocks.values())
    if wanted > size:
        raise ValueError(f"blocks must hold at most size = {size} records, got {wanted}")
    order = random_order(size, wanted, rng)
    ends = list(itertools.accumulate(blocks.values()))
    return {name: order[end - count : end] for (name, count), end in zip(blocks.items(), ends, strict=True)}


def sample_records(reservoir: Sequence[Any], count: int, *, rng: np.random.Generator | None) -> tuple[Any, ...]:
    """`count` records of the reservoir, uniform without replacement, in uniformly random order."""
    check_int("count", count, lo=0, hi=len(reservoir))
    return tuple(reservoir[index] for index in random_order(len(reservoir), count, rng))


def selections(reservoir: Sequence[Any], count: int, *, ordered: bool) -> list[tuple[tuple[Any, ...], int]]:
    """What `sample_records` can return, with multiplicities; unordered: one order for each multiset of records.

    Raises:
        ValueError: there are too many to list.
    """
    size = len(reservoir)
    total = math.perm(size, count) if ordered else math.comb(size, count)
    if total > _MAX_SELECTIONS:
        raise ValueError(f"an exact law needs at most {_MAX_SELECTIONS} samples of the reservoir, got {total}")
    if ordered:
        return list(Counter(itertools.permutations(reservoir, count)).items())
    first = {record: index for index, record in reversed(list(enumerate(reservoir)))}
    grouped = sorted(reservoir, key=first.__getitem__)
    return list(Counter(itertools.combinations(grouped, count)).items())


def paper_amplification(epsilon: float, delta: float, *, reservoir_size: int, sample_size: int) -> tuple[float, float]:
    """Theorem 3.4 of the paper: ``(ln(1 + q (e**epsilon - 1)), q delta)`` with q = sample_size / reservoir_size."""
    q = sample_size / reservoir_size
    return math.log1p(q * math.expm1(check_epsilon("epsilon", epsilon))), q * check_probability("delta", delta)


class AmplifiedReservoir:
    """Runs `mechanism` on `sample_size` records drawn from a reservoir, uniformly without replacement, in random order.

    dataset: the reservoir W, exactly `reservoir_size` records. Output: the mechanism's.
    mechanism: anything `as_mechanism` takes. claim: its claim, under REPLACE_ONE and without a promise, which a
    sample of an arbitrary reservoir could break.

    Guarantee: with q = sample_size / reservoir_size and d the mechanism's profile, for e' >= 0,
    ``H(e') <= q d(ln(1 + (e**e' - 1)/q))`` (Balle, Barthe, Gaboardi 2018, Theorem 9; the paper's Theorem 3.4). The
    random order is part of it (the paper's Remark 6.7): in reservoir order, samples that differ by a swap are not
    neighbours position by position, and two of three records by randomized response at ln 3 have a ratio of 13/5,
    above 7/3.

    The law needs every sample of the reservoir, so it is for small ones: C(M, m) samples when the mechanism ignores
    order, ``m!`` times as many when it does not.

    Raises:
        TypeError, ValueError: sizes that do not fit, or a claim under another relation or with a promise.
    """

    ignores_order = True

    def __init__(self, mechanism: Mechanism, *, reservoir_size: int, sample_size: int, claim: Claim) -> None:
        self.mechanism: AdaptedMechanism = as_mechanism(mechanism)
        self.reservoir_size = check_int("reservoir_size", reservoir_size, lo=1)
        self.sample_size = check_int("sample_size", sample_size, lo=1, hi=self.reservoir_size)
        if claim.relation is not Relation.REPLACE_ONE:
            raise ValueError(f"claim must be under replace-one, got {relation_name(claim.relation)}")
        if claim.promise is not None:
            raise ValueError(f"claim must hold on all inputs, got one that is promised: {claim.promise}")
        self.inner_claim = claim
        self._laws: dict[tuple[Any, ...], Law] = {}

    @property
    def claim(self) -> Claim:
        """The mechanism's event, sampled without replacement."""
        return Claim(
            SampledWithoutReplacementDpEvent(
                source_dataset_size=self.reservoir_size, sample_size=self.sample_size, event=self.inner_claim.event
            ),
            Relation.REPLACE_ONE,
            f"Balle, Barthe and Gaboardi (2018), Theorem 9 (the paper's Theorem 3.4), over: {self.inner_claim.source}",
            trust=self.inner_claim.trust,
        )

    @property
    def has_distribution(self) -> bool:
        """Whether `distribution` may be called: it may when the mechanism offers one."""
        return self.mechanism.has_distribution

    def check_dataset(self, dataset: Dataset) -> None:
        """Raise a ValueError unless the reservoir has the size that the claim speaks of."""
        if len(dataset) != self.reservoir_size:
            raise ValueError(f"dataset must hold reservoir_size = {self.reservoir_size} records, got {len(dataset)}")

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Any:
        """One outcome, on a fresh sample."""
        check_rng(rng)
        self.check_dataset(dataset)
        return self.mechanism.release(sample_records(dataset, self.sample_size, rng=rng), rng=rng)

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Any]:
        """`size` independent outcomes, each on a sample of its own."""
        check_rng(rng)
        self.check_dataset(dataset)
        drawn: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for position in range(check_int("size", size, lo=0)):
            drawn[random_order(self.reservoir_size, self.sample_size, rng)].append(position)
        outcomes: list[Any] = [None] * size
        for indices, positions in drawn.items():
            sample = tuple(dataset[index] for index in indices)
            released = self.mechanism.release_many(sample, len(positions), rng=rng)
            for position, outcome in zip(positions, released, strict=True):
                outcomes[position] = outcome
        return outcomes

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law: the mechanism's, averaged over samples (and their orders, unless it ignores order)."""
        self.check_dataset(dataset)
        mass: defaultdict[Any, Any] = defaultdict(int)
        total = 0
        for sample, times in selections(dataset, self.sample_size, ordered=not self.mechanism.ignores_order):
            total += times
            for outcome, probability in self._law(sample).items():
                mass[outcome] += times * probability
        return check_law("distribution", {outcome: weight * Fraction(1, total) for outcome, weight in mass.items()})

    def _law(self, sample: tuple[Any, ...]) -> Law:
        if sample not in self._laws:
            if len(self._laws) >= _CACHED_LAWS:
                self._laws.clear()
            self._laws[sample] = self.mechanism.distribution(sample)
        return self._laws[sample]
