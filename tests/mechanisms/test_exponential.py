"""The exponential mechanism against its definition, and the proof obligation of its rational base against mpmath."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import BoundedRangeDpEvent, Relation
from mechanisms import ExponentialMechanism, rational_base
from mechanisms.exponential import integer_weights, log_width_up
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6


def votes(dataset: Sequence[Any], candidate: Any) -> int:
    return sum(record == candidate for record in dataset)


def mode(epsilon: float = 1.0, candidates: Any = "abc") -> ExponentialMechanism:
    return ExponentialMechanism(
        candidates, votes, epsilon, sensitivity=1, relation=Relation.REPLACE_ONE, ignores_order=True
    )


@given(st.floats(1e-12, 60.0) | st.fractions(Fraction(1, 999), 40, max_denominator=999))
def test_rational_base_is_the_largest_of_its_precision(epsilon: float | Fraction) -> None:
    base = rational_base(epsilon)
    exact = Fraction(epsilon)
    places = 24 + max(0, exact.denominator.bit_length() - exact.numerator.bit_length())
    step = Fraction(1, 2**places)
    assert (base / step).denominator == 1
    with mpmath.workdps(120):
        limit = mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)
        square, next_square = (mpmath.mpf(s.numerator) / s.denominator for s in (base**2, (base + step) ** 2))
        assert square < limit < next_square
        # No more than a ten-millionth of the privacy budget is lost to rounding.
        assert 2 * mpmath.log(mpmath.mpf(base.numerator) / base.denominator) > float(exact) * (1 - 4e-7)


def test_rational_base_at_the_ends() -> None:
    assert rational_base(0.0) == 1
    assert rational_base(1.0) == Fraction(3457619, 2097152)
    assert rational_base(1.0, bits=1) == Fraction(3, 2)


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=6), st.fractions(1, 5, max_denominator=50))
def test_integer_weights_are_proportional_to_powers(scores: list[int], base: Fraction) -> None:
    weights = integer_weights(scores, base)
    assert all(weight > 0 for weight in weights)
    for (s, w), (t, v) in itertools.product(zip(scores, weights, strict=True), repeat=2):
        assert Fraction(w, v) == base ** (s - t)


@given(st.text("abc", max_size=6), st.sampled_from([0.0, 0.3, 1.0, 5.0]))
def test_distribution_is_the_definition(dataset: str, epsilon: float) -> None:
    law = mode(epsilon).distribution(dataset)
    base = rational_base(epsilon)
    total = sum(base ** dataset.count(c) for c in "abc")
    assert law == {c: base ** dataset.count(c) / total for c in "abc"}
    assert sum(law.values()) == 1


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_claim_covers_the_steepest_scores_and_not_much_more(sensitivity: int) -> None:
    """One candidate down and all others up by the sensitivity: the log-ratio range is the claim, before rounding up."""
    mechanism = ExponentialMechanism(
        range(3),
        lambda d, c: sensitivity * int((c == 0) == d[0]),
        0.7,
        sensitivity=sensitivity,
        relation=Relation.REPLACE_ONE,
    )
    event = mechanism.claim.event
    assert isinstance(event, BoundedRangeDpEvent)
    p, q = mechanism.distribution((True,)), mechanism.distribution((False,))
    ratios = [p[c] / q[c] for c in range(3)]
    width = max(ratios) / min(ratios)
    assert width == mechanism.base ** (2 * sensitivity)
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.mpf(width.numerator) / width.denominator)
        assert exact <= event.eta <= 0.7
        assert event.eta < exact + 1e-15


def test_release_many_has_the_law() -> None:
    dataset = "aabc"
    mechanism = mode()
    law = mechanism.distribution(dataset)
    drawn = mechanism.release_many(dataset, 30_000, rng=np.random.default_rng(11))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    one_by_one = [mechanism.release(dataset, rng=rng) for rng in np.random.default_rng(12).spawn(1500)]
    assert p_value(one_by_one, law) > FALSE_ALARM
    assert p_value(one_by_one, mode().distribution("bbca")) < FALSE_ALARM


def test_ties_and_huge_scores() -> None:
    mechanism = ExponentialMechanism(
        range(4), lambda d, c: 10**30 if c < 3 else -(10**30), 1.0, sensitivity=1, relation="replace-one"
    )
    drawn = mechanism.release_many((), 3000, rng=np.random.default_rng(13))
    assert p_value(drawn, {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)}) > FALSE_ALARM
    assert mechanism.release((), rng=None) in (0, 1, 2)


def test_log_width_up_is_above_the_logarithm() -> None:
    assert log_width_up(Fraction(1)) == 0.0
    assert math.log(4) <= log_width_up(Fraction(4)) <= math.nextafter(math.log(4), 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: mode(candidates=""), "candidates must hold at least one outcome"),
        (lambda: mode(candidates="aba"), "candidates must be distinct, got 'a' twice"),
        (lambda: mode(candidates=[[1]]), r"candidates must be hashable, got \[1\]"),
        (lambda: mode(-1.0), "epsilon must be in"),
        (lambda: mode(math.nan), "epsilon must be finite"),
        (lambda: rational_base(1.0, bits=0), "bits must be at least 1"),
        (
            lambda: ExponentialMechanism("a", votes, 1.0, sensitivity=0, relation=Relation.REPLACE_ONE),
            "sensitivity must be at least 1",
        ),
        (lambda: ExponentialMechanism("a", votes, 1.0, sensitivity=1, relation="swap"), "relation must be"),
        (
            lambda: ExponentialMechanism("a", lambda d, c: 0.5, 1.0, sensitivity=1, relation="add-remove").scores(()),  # type: ignore[arg-type, return-value]
            "score of candidate 'a' must be an integer, got 0.5",
        ),
        (lambda: mode().release("a", rng=3), "rng must be"),  # type: ignore[arg-type]
        (lambda: mode().release_many("a", -1, rng=None), "size must be at least 0"),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
