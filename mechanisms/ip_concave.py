"""IPConcave (Algorithm 3 of the paper; Nissim, Stemmer and Vadhan): optimise by a private interior point of blocks.

Split the sample at random into t blocks, let each block name its maximiser, and release a private interior point of the
t maximisers. Where the objective is quasi-concave and every block's maximiser is good for the whole sample, so is every
point between them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, Claim, Relation, check_int
from mechanisms.base import Dataset
from mechanisms.block_bound import BlockBound, smallest_block
from mechanisms.interior_point import InteriorPoint, InteriorPointMechanism
from mechanisms.sampling import check_rng, random_order
from mechanisms.step_function import PointOracle
from mechanisms.tree_choose import TreeChoose, choose_interior_point

_MAX_SPLITS = 10**6


class IPConcave:
    """Algorithm 3: blocks, one maximiser each, a private interior point of the maximisers.

    dataset: any records; they are split into `blocks` random blocks of floor(n/t) or ceil(n/t) records, some empty when
    there are fewer records than blocks. Output: a rank of the interior-point mechanism's domain.
    block_rule: maps a block, its records in the order of the dataset, to a rank. It must be total, and a function of
    the block alone: with the other blocks in view, or with coins shared between blocks, the proof fails.
    interior_point: an interior-point mechanism whose claim is under replace-one and on all inputs.
    rule_ignores_order: whether the rule ignores the order of the records (declared).

    Guarantee, on all inputs, for one replaced record: the interior-point mechanism's (epsilon, delta) (Theorem 8.10).
    Proof: given the split, which looks at no record, one block changes, hence at most one maximiser; and a mixture of
    (epsilon, delta)-private laws over a split is (epsilon, delta)-private. (Bounded range does not survive mixtures,
    so the claim is epsilon-DP there.)

    Utility: when all blocks' maximisers z have ``Q(z) >= (1 - rho) m``, the output has, except with the failure
    probability of the interior point; `plan_ip_concave` chooses block and sample size.

    Raises:
        TypeError, ValueError: no blocks, or an interior-point mechanism with another kind of claim.
    """

    def __init__(
        self,
        block_rule: Callable[[Dataset], int],
        interior_point: InteriorPointMechanism,
        blocks: int,
        *,
        rule_ignores_order: bool = False,
    ) -> None:
        self.block_rule = block_rule
        self.interior_point = interior_point
        self.blocks = check_int("blocks", blocks, lo=1)
        self.ignores_order = rule_ignores_order
        self._epsilon_delta(interior_point.claim)

    @staticmethod
    def _epsilon_delta(claim: Claim) -> tuple[float, float]:
        if claim.relation is not Relation.REPLACE_ONE or claim.promise is not None:
            raise ValueError(
                f"interior_point must have a claim under replace-one on all inputs, got: {claim.statement()}"
            )
        match claim.event:
            case BoundedRangeDpEvent(eta=eta):
                return eta, 0.0
            case ApproximateDpEvent(epsilon=epsilon, delta=delta):
                return epsilon, delta
            case event:
                raise ValueError(f"interior_point must claim bounded range or (epsilon, delta)-DP, got {event!r}")

    @property
    def claim(self) -> Claim:
        """The (epsilon, delta) of the interior-point mechanism."""
        inner = self.interior_point.claim
        epsilon, delta = self._epsilon_delta(inner)
        return Claim.approximate(
            epsilon,
            delta,
            relation=Relation.REPLACE_ONE,
            source=f"Theorem 8.10 (mechanisms.ip_concave), over: {inner.source}",
            trust=inner.trust,
        )

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank, on a fresh split."""
        check_rng(rng)
        return self.interior_point.release(self._maximisers(dataset, rng), rng=rng)

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks, each on a split of its own."""
        check_rng(rng)
        return [self.release(dataset, rng=rng) for _ in range(check_int("size", size, lo=0))]

    def _maximisers(self, dataset: Dataset, rng: np.random.Generator | None) -> tuple[int, ...]:
        order = random_order(len(dataset), len(dataset), rng)
        ends = list(itertools.accumulate(self._sizes(len(dataset))))
        pieces = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return tuple(self.block_rule(tuple(dataset[index] for index in sorted(piece))) for piece in pieces)

    def _sizes(self, records: int) -> list[int]:
        each, more = divmod(records, self.blocks)
        return [each + (block < more) for block in range(self.blocks)]

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law, by listing every split; for small datasets.

        Raises:
            ValueError: there are too many splits to list.
        """
        sizes = self._sizes(len(dataset))
        splits = math.factorial(len(dataset)) // math.prod(math.factorial(size) for size in sizes)
        if splits > _MAX_SPLITS:
            raise ValueError(f"an exact law lists at most {_MAX_SPLITS} splits of the dataset, got {splits}")
        named: dict[tuple[Any, ...], int] = {}

        def maximiser(block: tuple[Any, ...]) -> int:
            if block not in named:
                named[block] = self.block_rule(block)
            return named[block]

        inputs: Counter[tuple[int, ...]] = Counter()
        for split in _splits(tuple(range(len(dataset))), sizes):
            ranks = [maximiser(tuple(dataset[index] for index in piece)) for piece in split]
            inputs[tuple(sorted(ranks) if self.interior_point.ignores_order else ranks)] += 1
        law: defaultdict[int, Fraction] = defaultdict(Fraction)
        for named_ranks, times in inputs.items():
            for outcome, probability in self.interior_point.distribution(named_ranks).items():
                law[outcome] += probability * Fraction(times, splits)
        return dict(law)


def _splits(indices: tuple[int, ...], sizes: list[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to split the indices into pieces of these sizes, each piece in order."""
    if not sizes:
        yield ()
        return
    for piece in itertools.combinations(indices, sizes[0]):
        taken = set(piece)
        rest = tuple(index for index in indices if index not in taken)
        for others in _splits(rest, sizes[1:]):
            yield (piece, *others)


def block_maximiser(quality: Callable[[Dataset], PointOracle]) -> Callable[[Dataset], int]:
    """The block rule of Algorithm 3: the least rank at which the block's own objective is largest."""
    return lambda block: quality(block).peak()


@dataclass(frozen=True, slots=True)
class IPConcavePlan:
    """Sizes for IPConcave: `blocks` blocks of `block_size` records, `records` in all."""

    interior_point: InteriorPoint | TreeChoose
    blocks: int
    block_size: int

    @property
    def records(self) -> int:
        """``blocks * block_size``."""
        return self.blocks * self.block_size


def plan_ip_concave(
    domain_size: int,
    bound: BlockBound,
    *,
    rho: float | Fraction,
    epsilon: float | Fraction,
    delta: float | Fraction,
    beta_net: float | Fraction,
    beta_ip: float | Fraction,
) -> IPConcavePlan:
    """The interior-point mechanism with the fewest blocks, and the smallest blocks that `bound` allows.

    Guarantee, on a realizable sample of exactly `records` records: ``Q(output) >= (1 - rho) m`` except with probability
    ``beta_net + beta_ip`` (Lemmas 8.12 and 8.13, with exact bounds in place of their constants).

    Raises:
        TypeError, ValueError: a parameter out of range.
    """
    interior_point = choose_interior_point(domain_size, epsilon=epsilon, delta=delta, beta=beta_ip)
    blocks = interior_point.records_needed(beta_ip)
    return IPConcavePlan(interior_point, blocks, smallest_block(bound, blocks=blocks, rho=rho, beta=beta_net))
