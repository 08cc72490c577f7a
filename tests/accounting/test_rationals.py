"""exp and log bounds against mpmath at 400 digits; rounding against the definition."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import exp_bounds, log_bounds, round_down, round_up

RATIONALS = st.fractions(min_value=-700, max_value=700, max_denominator=10**12)


def exact(x: Fraction) -> mp.mpf:
    return mp.mpf(x.numerator) / x.denominator


@given(RATIONALS, st.sampled_from([16, 53, 128, 512]))
def test_exp_bounds_enclose_and_are_narrow(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with mp.workdps(400):
        assert exact(low) <= mp.exp(exact(x)) <= exact(high)
    assert (high - low) * 2**bits <= low
    assert low > 0


@given(st.floats(-700, 700))
def test_exp_bounds_take_a_float_as_the_rational_it_is(x: float) -> None:
    assert exp_bounds(x) == exp_bounds(Fraction(x))
    assert exp_bounds(x)[0] <= exp_bounds(math.nextafter(x, math.inf))[1]


@pytest.mark.parametrize("x", [1e5, -1e5, 2.0**-1074, -(2.0**-1074), 1e-300, Fraction(1, 10**400)])
def test_exp_bounds_at_extremes(x: float | Fraction) -> None:
    low, high = exp_bounds(x)
    with mp.workdps(900):
        assert exact(low) <= mp.exp(exact(Fraction(x))) <= exact(high)
    assert (low > 1) == (x > 0) or low <= 1 <= high


def test_exp_of_zero_is_exactly_one() -> None:
    one = Fraction(1)
    assert exp_bounds(0) == exp_bounds(0.0) == exp_bounds(-0.0) == (one, one)
    assert log_bounds(Fraction(1)) == (0.0, 0.0)


@given(st.fractions(min_value=Fraction(1, 10**300), max_value=10**300).filter(bool))
def test_log_bounds_enclose_and_are_narrow(x: Fraction) -> None:
    low, high = log_bounds(x)
    with mp.workdps(400):
        assert mp.mpf(low) <= mp.log(exact(x)) <= mp.mpf(high)
    assert high - low <= 4 * math.ulp(max(abs(low), abs(high)))


@pytest.mark.parametrize(
    "x", [Fraction(1, 10**2000), Fraction(10**2000), 1 + Fraction(1, 10**50), 1 - Fraction(1, 10**50)]
)
def test_log_bounds_at_extremes(x: Fraction) -> None:
    low, high = log_bounds(x)
    with mp.workdps(400):
        assert mp.mpf(low) <= mp.log(exact(x)) <= mp.mpf(high)
    assert high - low <= 1e-12 * abs(low)


def test_log_of_nothing_and_of_less() -> None:
    assert log_bounds(Fraction(0)) == (-math.inf, -math.inf)
    with pytest.raises(ValueError, match="x must be at least 0, got"):
        log_bounds(Fraction(-1, 7))


@given(
    st.fractions(min_value=-(10**320), max_value=10**320)
    | RATIONALS
    | st.floats(allow_nan=False, allow_infinity=False).map(Fraction)
)
def test_rounding_is_to_the_nearest_float_on_its_side(x: Fraction) -> None:
    down, up = round_down(x), round_up(x)
    for value, side in ((down, 1), (up, -1)):
        if math.isfinite(value):
            assert side * Fraction(value) <= side * x
            beyond = math.nextafter(value, side * math.inf)
            assert math.isinf(beyond) or side * Fraction(beyond) > side * x or value == x
    if math.isfinite(down) and math.isfinite(up):
        assert up in (down, math.nextafter(down, math.inf))


def test_rounding_beyond_the_range_of_doubles() -> None:
    largest = math.nextafter(math.inf, 0)
    huge, tiny = Fraction(10**400), Fraction(1, 10**400)
    assert (round_down(huge), round_up(huge)) == (largest, math.inf)
    assert (round_down(-huge), round_up(-huge)) == (-math.inf, -largest)
    assert (round_down(tiny), round_up(tiny)) == (0.0, 5e-324)
    assert (round_down(-tiny), round_up(-tiny)) == (-5e-324, 0.0)
    assert round_down(Fraction(largest) + 1) == largest
    assert round_up(Fraction(1, 3)) > Fraction(1, 3) > round_down(Fraction(1, 3))
