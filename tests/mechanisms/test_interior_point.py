"""The pure interior point against its definition, its exact worst case, and the figures it must reach."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accounting import BoundedRangeDpEvent, Relation
from mechanisms import InteriorPoint, OverDomain, SortedDomain, TreeChoose, choose_interior_point, rational_base
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6

A3_EXACT_WORST_CASE = {  # epsilon: records for success 0.95 at 2**10, 2**32, 2**64, 2**1000, 2**30000
    0.5: (74, 196, 373, 5564, 166374),
    1: (37, 98, 187, 2782, 83187),
    4: (9, 25, 47, 695, 20797),
}
A3_BITS = (10, 32, 64, 1000, 30000)


def by_definition(size: int, dataset: tuple[int, ...], base: Fraction) -> dict[int, Fraction]:
    weights = [base ** min(sum(x <= p for x in dataset), sum(x >= p for x in dataset)) for p in range(size)]
    return {p: weight / sum(weights) for p, weight in enumerate(weights)}


@pytest.mark.parametrize("epsilon", [0.3, 2])
def test_laws_and_failures_on_all_small_datasets(epsilon: float) -> None:
    for size, records in itertools.product((1, 2, 3, 5, 8), range(5)):
        mechanism = InteriorPoint(size, epsilon)
        worst = Fraction(0)
        for dataset in itertools.combinations_with_replacement(range(size), records):
            law = mechanism.distribution(dataset)
            assert law == by_definition(size, dataset, rational_base(epsilon))
            missed = sum(
                (p for point, p in law.items() if not (dataset and dataset[0] <= point <= dataset[-1])), Fraction(0)
            )
            assert mechanism.failure_probability(dataset) == missed
            worst = max(worst, missed)
        assert mechanism.worst_failure(records) == worst


def test_records_needed_is_the_least_that_suffices() -> None:
    for size, epsilon, beta in itertools.product((1, 2, 3, 4, 17, 10**6), (0.2, 1, 5), (0.5, 0.05, 1e-9)):
        mechanism = InteriorPoint(size, epsilon)
        needed = mechanism.records_needed(beta)
        assert mechanism.worst_failure(needed) <= beta
        assert mechanism.worst_failure(needed - 1) > beta


@pytest.mark.parametrize("epsilon", A3_EXACT_WORST_CASE)
def test_the_figures_of_the_specification(epsilon: float) -> None:
    needed = tuple(InteriorPoint(1 << bits, epsilon).records_needed(0.05) for bits in A3_BITS)
    assert needed == A3_EXACT_WORST_CASE[epsilon]
    assert all(
        n <= (4 / epsilon) * (bits * math.log(2) + math.log(10)) + 2 for n, bits in zip(needed, A3_BITS, strict=True)
    )


def test_draws_have_the_law() -> None:
    """20000 draws; false alarm 1e-6, and the shifted law is rejected."""
    mechanism, dataset = InteriorPoint(9, 1.5), (2, 2, 4, 7, 3)
    drawn = mechanism.release_many(dataset, 20_000, rng=np.random.default_rng(11))
    law = mechanism.distribution(dataset)
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM


def test_a_domain_of_ten_thousand_digits() -> None:
    """1500 records succeed with the probability that is computed exactly, here all but certain."""
    size = 10**10000
    mechanism = InteriorPoint(size, 100)
    picks = random.Random(4)
    dataset = [picks.randrange(size // 3, size // 2) for _ in range(mechanism.records_needed(1e-9))]
    assert mechanism.failure_probability(dataset) < 1e-9
    for rng in (np.random.default_rng(5), None):
        assert min(dataset) <= mechanism.release(dataset, rng=rng) <= max(dataset)


def test_the_claim_is_the_window_of_the_weights() -> None:
    claim = InteriorPoint(10, 0.7).claim
    assert isinstance(claim.event, BoundedRangeDpEvent)
    with mpmath.workdps(40):
        base = rational_base(0.7)
        width = 2 * mpmath.log(mpmath.mpf(base.numerator) / base.denominator)
    assert width <= claim.event.eta <= 0.7
    assert claim.relation is Relation.REPLACE_ONE
    assert claim.promise is None


def test_records_and_outputs_can_be_elements_of_a_domain() -> None:
    letters = SortedDomain(tuple("aeiou"))
    inner = InteriorPoint(5, 1)
    named = OverDomain(inner, letters)
    ranks = inner.distribution((1, 3, 3))
    assert named.distribution(("e", "o", "o")) == {"aeiou"[rank]: p for rank, p in ranks.items()}
    assert named.claim == inner.claim
    assert named.release(("e", "o"), rng=np.random.default_rng(1)) in "aeiou"
    with pytest.raises(ValueError, match="records must be elements of the domain, got 'b'"):
        named.release(("b",), rng=None)
    with pytest.raises(ValueError, match="domain_size = 4, got 5"):
        OverDomain(InteriorPoint(4, 1), letters)
    for wrong in (("b", "a"), ("a", "a")):
        with pytest.raises(ValueError, match="sorted and distinct"):
            SortedDomain(wrong)
    with pytest.raises(ValueError, match="at least one element"):
        SortedDomain(())


def test_the_choice_is_by_the_public_numbers() -> None:
    for bits, epsilon, delta in itertools.product((1, 10, 20, 30, 1000), (0.5, 4), (1e-6, 1e-10)):
        pure, approximate = InteriorPoint(1 << bits, epsilon), TreeChoose(1 << bits, epsilon, delta)
        chosen = choose_interior_point(1 << bits, epsilon=epsilon, delta=delta, beta=0.05)
        assert chosen.records_needed(0.05) == min(pure.records_needed(0.05), approximate.records_needed(0.05))
    assert isinstance(choose_interior_point(1 << 900, epsilon=1, delta=0, beta=0.1), InteriorPoint)
    enough = choose_interior_point(1 << 40, epsilon=1, delta=1e-6, beta=0.05).records_needed(0.05)
    choose_interior_point(1 << 40, epsilon=1, delta=1e-6, beta=0.05, records=enough)
    with pytest.raises(ValueError, match=f"records must be at least {enough}"):
        choose_interior_point(1 << 40, epsilon=1, delta=1e-6, beta=0.05, records=enough - 1)


def test_bad_input_is_refused() -> None:
    for size in (0, -3):
        with pytest.raises(ValueError, match="domain_size must be at least 1"):
            InteriorPoint(size, 1)
    with pytest.raises(TypeError, match="domain_size must be an integer"):
        InteriorPoint(2.0, 1)  # type: ignore[arg-type]
    for epsilon in (0, -1, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            InteriorPoint(5, epsilon)
    mechanism = InteriorPoint(5, 1)
    for outside in (-1, 5, 10**40):
        with pytest.raises(ValueError, match=r"dataset\[1\] must be in \[0, 4\]"):
            mechanism.release((1, outside), rng=None)
    for wrong in (1.0, True, "2"):
        with pytest.raises(TypeError, match=r"dataset\[0\] must be an integer"):
            mechanism.release((wrong,), rng=None)
    for beta in (0, 1):
        with pytest.raises(ValueError, match="beta must be in"):
            mechanism.records_needed(beta)
    with pytest.raises(ValueError, match="lists at most"):
        InteriorPoint(1 << 40, 1).distribution((3,))
