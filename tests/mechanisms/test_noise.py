"""Randomized response and the bounded geometric count against their definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import AddOrRemoveOne, BoundedGeometricCount, RandomizedResponse, ReplaceOne
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6


@given(st.integers(2, 4), st.sampled_from([0.0, 0.5, math.log(3)]), st.lists(st.integers(0, 1), max_size=3))
def test_randomized_response_is_the_definition(k: int, epsilon: float, dataset: list[int]) -> None:
    mechanism = RandomizedResponse(range(k), epsilon)
    ratio = mechanism.ratio
    with mpmath.workdps(40):
        assert mpmath.mpf(ratio.numerator) / ratio.denominator <= mpmath.exp(epsilon)
    law = mechanism.distribution(dataset)
    for outcome in itertools.product(range(k), repeat=len(dataset)):
        expected = math.prod(ratio if a == b else Fraction(1) for a, b in zip(outcome, dataset, strict=True))
        assert law[outcome] == expected / (ratio + k - 1) ** len(dataset)
    assert sum(law.values()) == 1


def test_randomized_response_reaches_its_claim_and_no_more() -> None:
    mechanism = RandomizedResponse("abc", 1.0)
    worst = max(
        max(p[o] / q[o], q[o] / p[o])
        for one, other in ReplaceOne("abc", 2).pairs()
        for p, q in [(mechanism.distribution(one), mechanism.distribution(other))]
        for o in p
    )
    assert worst == mechanism.ratio
    assert math.log(worst) <= mechanism.claim.epsilon(0.0) <= 1.0


def _by_summing(count: int, maximum: int, ratio: Fraction) -> dict[int, float]:
    """Noise from its definition over a long range, summed and clamped in floats."""
    law = dict.fromkeys(range(maximum + 1), 0.0)
    r = float(ratio)
    for z in range(-200, 201):
        law[min(max(min(count, maximum) + z, 0), maximum)] += (r - 1) / (r + 1) * r ** -abs(z)
    return law


@pytest.mark.parametrize("count", [0, 1, 3, 5, 9])
@pytest.mark.parametrize("maximum", [1, 5])
def test_bounded_count_is_the_definition(count: int, maximum: int) -> None:
    mechanism = BoundedGeometricCount(bool, 0.5, maximum=maximum)
    law = mechanism.distribution([1] * count + [0] * 2)
    assert sum(law.values()) == 1
    expected = _by_summing(count, maximum, mechanism.ratio)
    assert {k: float(p) for k, p in law.items()} == pytest.approx(expected, rel=1e-12)


def test_bounded_count_reaches_its_claim_and_no_more() -> None:
    mechanism = BoundedGeometricCount(bool, 0.5, maximum=4)
    ratios = [
        max(p[o] / q[o], q[o] / p[o])
        for one, other in AddOrRemoveOne((0, 1), 4).pairs(ignore_order=True)
        for p, q in [(mechanism.distribution(one), mechanism.distribution(other))]
        for o in p
    ]
    assert max(ratios) == mechanism.ratio
    assert math.log(mechanism.ratio) <= mechanism.claim.epsilon(0.0) <= 0.5


@pytest.mark.parametrize(
    ("mechanism", "dataset", "other"),
    [
        (RandomizedResponse("ab", 1.0), "ab", "bb"),
        (BoundedGeometricCount(bool, 0.5, maximum=5), (1, 1, 0), (1, 1, 1)),
    ],
)
def test_draws_have_the_law(mechanism: Any, dataset: Any, other: Any) -> None:
    rng = np.random.default_rng(61)
    law = mechanism.distribution(dataset)
    drawn = list(mechanism.release_many(dataset, 20_000, rng=rng))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, mechanism.distribution(other)) < FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    assert p_value([mechanism.release(dataset, rng=rng) for _ in range(800)], law) > FALSE_ALARM
    assert mechanism.release(dataset, rng=None) in law


def test_no_records() -> None:
    assert RandomizedResponse("ab", 1.0).release_many((), 3, rng=None) == [(), (), ()]
    assert RandomizedResponse("ab", 1.0).distribution(()) == {(): 1}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RandomizedResponse("a", 1.0), "distinct and at least two"),
        (lambda: RandomizedResponse("aa", 1.0), "distinct and at least two"),
        (lambda: RandomizedResponse([[1], [2]], 1.0), r"values must be hashable, got \[1\]"),
        (lambda: RandomizedResponse("ab", -1.0), "epsilon must be in"),
        (lambda: RandomizedResponse("ab", 1.0).release("ac", rng=None), "one of .* got 'c'"),
        (lambda: RandomizedResponse("ab", 1.0).distribution("c"), "one of .* got 'c'"),
        (lambda: BoundedGeometricCount(bool, 0.0, maximum=3), "epsilon must be positive"),
        (lambda: BoundedGeometricCount(bool, 1.0, maximum=0), "maximum must be at least 1"),
        (lambda: BoundedGeometricCount("x", 1.0, maximum=1), "counted must be a function"),  # type: ignore[arg-type]
        (lambda: BoundedGeometricCount(bool, 1.0, maximum=1).release((), rng=0), "rng must be"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
