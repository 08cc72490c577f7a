"""IPConcave against its definition, its privacy on small samples, and the accuracy that its plan promises."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, Claim, Relation
from mechanisms import (
    BasisBound,
    InteriorPoint,
    IPConcave,
    RandomizedResponse,
    StepFunction,
    TreeChoose,
    block_maximiser,
    plan_ip_concave,
    threshold_agreement,
)
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6
SIZE = 6


def quality(dataset: Sequence[tuple[int, int]]) -> StepFunction:
    return threshold_agreement(SIZE, dataset)


def by_definition(mechanism: IPConcave, dataset: tuple[tuple[int, int], ...]) -> dict[int, Fraction]:
    """The law from every permutation of the records, cut into blocks."""
    n, t = len(dataset), mechanism.blocks
    ends = [sum(n // t + (j < n % t) for j in range(i)) for i in range(t + 1)]
    law: defaultdict[int, Fraction] = defaultdict(Fraction)
    orders = list(itertools.permutations(range(n)))
    for order in orders:
        pieces = [sorted(order[start:end]) for start, end in itertools.pairwise(ends)]
        ranks = tuple(quality([dataset[i] for i in piece]).peak() for piece in pieces)
        for outcome, probability in mechanism.interior_point.distribution(ranks).items():
            law[outcome] += probability / len(orders)
    return dict(law)


@pytest.mark.parametrize("blocks", [1, 2, 3, 7])
def test_the_law_is_that_of_all_permutations(blocks: int) -> None:
    mechanism = IPConcave(block_maximiser(quality), TreeChoose(SIZE, 1, 0.1), blocks, rule_ignores_order=True)
    for dataset in (
        (),
        ((2, 1),),
        ((0, 0), (4, 1)),
        ((3, 0), (3, 0), (1, 1), (5, 0)),
        ((0, 0), (1, 0), (2, 1), (4, 1), (4, 0)),
    ):
        law = mechanism.distribution(dataset)
        assert law == by_definition(mechanism, dataset)
        assert mechanism.distribution(dataset[::-1]) == law


def test_a_block_keeps_the_order_of_the_dataset() -> None:
    """A rule that reads the order: one block gives its first record, whatever the permutation."""
    mechanism = IPConcave(lambda block: block[0], InteriorPoint(SIZE, 40), 1)
    assert mechanism.release_many((5, 0, 1, 2), 60, rng=np.random.default_rng(44)) == [5] * 60


def test_draws_have_the_law() -> None:
    """8000 draws; false alarm 1e-6, and the shifted law is rejected."""
    mechanism = IPConcave(block_maximiser(quality), InteriorPoint(SIZE, 2), 3, rule_ignores_order=True)
    dataset = ((0, 0), (1, 0), (2, 1), (4, 1), (4, 0))
    drawn = mechanism.release_many(dataset, 8_000, rng=np.random.default_rng(41))
    law = mechanism.distribution(dataset)
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM


def test_the_claim_is_the_interior_points_as_epsilon_delta() -> None:
    for inner in (InteriorPoint(SIZE, 1), TreeChoose(SIZE, 1, 0.1)):
        claim = IPConcave(block_maximiser(quality), inner, 2).claim
        assert isinstance(claim.event, ApproximateDpEvent)
        inner_event = inner.claim.event
        if isinstance(inner_event, BoundedRangeDpEvent):
            assert (claim.event.epsilon, claim.event.delta) == (inner_event.eta, 0.0)
        else:
            assert claim.event == inner_event
        assert claim.event.epsilon <= 1
        assert claim.event.delta <= 0.1
        assert claim.promise is None


def test_a_rule_that_sees_the_other_blocks_would_not_be_private() -> None:
    """Control of the privacy cases: let every block name the maximum of the whole sample, and one record moves all."""
    inner = InteriorPoint(SIZE, 1)
    sample, neighbour = (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 5)
    one, other = (inner.distribution((max(d),) * 6) for d in (sample, neighbour))
    assert max(one[p] / other[p] for p in one) > inner.base**2
    honest = IPConcave(lambda block: max(block, default=0), inner, 6, rule_ignores_order=True)
    one, other = (dict(honest.distribution(d)) for d in (sample, neighbour))
    assert max(max(one[p] / other[p], other[p] / one[p]) for p in one) <= inner.base**2


def test_a_plan_keeps_its_promise() -> None:
    """Widest-margin thresholds on 2**20 ranks, 300 runs on the hardest sample (all points distinct, evenly spaced).

    Q(output) >= (1 - rho) m may fail with probability 0.1; more than 54 failures in 300 has probability below 1e-5.
    Control: blocks of a tenth of the size must fail more often than that.
    """
    size, rho = 1 << 20, 0.2
    plan = plan_ip_concave(size, BasisBound(1), rho=rho, epsilon=4, delta=1e-3, beta_net=0.05, beta_ip=0.05)
    assert plan.records == plan.blocks * plan.block_size
    assert plan.interior_point.records_needed(0.05) == plan.blocks

    def leftmost(block: Sequence[tuple[int, int]]) -> int:
        """The least threshold that fits a realizable block: one record decides."""
        return max((x + 1 for x, label in block if label == 0), default=0)

    def failures(records: int) -> int:
        step = size // records
        sample = tuple((i * step, 0) for i in range(records))
        mechanism = IPConcave(leftmost, plan.interior_point, plan.blocks)
        rng = np.random.default_rng(43)
        runs = mechanism.release_many(sample, 300, rng=rng)
        return sum(sum(x < t for x, _ in sample) < (1 - rho) * records for t in runs)

    assert stats.binom.sf(54, 300, 0.1) < 1e-5
    assert failures(plan.records) <= 54
    assert failures(plan.blocks * max(1, plan.block_size // 10)) > 54


def test_bad_input_is_refused() -> None:
    inner = InteriorPoint(SIZE, 1)
    with pytest.raises(ValueError, match="blocks must be at least 1"):
        IPConcave(block_maximiser(quality), inner, 0)
    with pytest.raises(ValueError, match=r"dataset\[0\] must be in \[0, 5\]"):
        IPConcave(lambda block: 17, inner, 2).release(((0, 1),), rng=None)
    with pytest.raises(ValueError, match="at most 1000000 splits"):
        IPConcave(block_maximiser(quality), inner, 5).distribution(((0, 1),) * 30)
    with pytest.raises(TypeError, match="rng must be"):
        IPConcave(block_maximiser(quality), inner, 5).release((), rng=1)  # type: ignore[arg-type]

    class Promised(InteriorPoint):
        @property
        def claim(self) -> Claim:
            return Claim.pure(1.0, relation=Relation.REPLACE_ONE, source="a test", promise="some inputs")

    with pytest.raises(ValueError, match="on all inputs"):
        IPConcave(block_maximiser(quality), Promised(SIZE, 1), 2)
    assert RandomizedResponse((0, 1), 1.0).claim.promise is None
