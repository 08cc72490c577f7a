"""Argument checks: what passes, what is refused, and that a message names the argument, the rule and the value."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import (
    Relation,
    check_epsilon,
    check_fraction,
    check_int,
    check_probability,
    check_real,
    check_relation,
    check_text,
    relation_name,
)

NOT_NUMBERS: tuple[Any, ...] = (True, False, np.True_, "1", "nan", None, 1j, [1.0], (), Decimal(1), b"1")


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_not_a_number_is_a_type_error_that_names_the_argument(value: Any) -> None:
    for check in (check_real, check_epsilon, check_probability, check_int, check_fraction):
        with pytest.raises(TypeError, match=r"noise must be .*, got "):
            check("noise", value)


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), math.inf, -math.inf, np.float32("inf")], ids=repr)
def test_nan_and_infinity_pass_no_check(value: Any) -> None:
    for check in (check_real, check_epsilon, check_probability):
        with pytest.raises(ValueError, match="noise must "):
            check("noise", value)
    with pytest.raises(ValueError, match="noise must be finite, got "):
        check_fraction("noise", value)


def test_an_integer_past_the_doubles_is_refused_where_a_float_is_meant() -> None:
    with pytest.raises(ValueError, match="noise must fit a double-precision number, got 1000"):
        check_real("noise", 10**400)
    assert check_fraction("noise", 10**400) == 10**400


def test_infinity_passes_where_it_is_allowed_and_nan_never_does() -> None:
    assert check_real("x", math.inf, allow_infinite=True) == math.inf
    assert check_epsilon("x", math.inf, allow_infinite=True) == math.inf
    with pytest.raises(ValueError, match="x must"):
        check_epsilon("x", -math.inf, allow_infinite=True)
    with pytest.raises(ValueError, match="x must"):
        check_real("x", math.nan, allow_infinite=True)
    with pytest.raises(ValueError, match="x must"):
        check_real("x", math.nan, lo=0, hi=1, lo_open=True, hi_open=True, allow_infinite=True)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.booleans(),
    st.booleans(),
)
def test_intervals(value: float, lo: float, hi: float, lo_open: bool, hi_open: bool) -> None:
    inside = (lo < value if lo_open else lo <= value) and (value < hi if hi_open else value <= hi)
    if inside:
        assert check_real("x", value, lo=lo, hi=hi, lo_open=lo_open, hi_open=hi_open) == value
    else:
        with pytest.raises(ValueError, match="x must be in") as caught:
            check_real("x", value, lo=lo, hi=hi, lo_open=lo_open, hi_open=hi_open)
        assert repr(value) in str(caught.value)
        assert ("(" if lo_open else "[") in str(caught.value)


@pytest.mark.parametrize("value", [1, 1.0, Fraction(1), np.float32(1), np.int64(1)], ids=repr)
def test_every_kind_of_real_number_becomes_a_float(value: Any) -> None:
    for check in (check_real, check_epsilon, check_probability):
        got = check("x", value)
        assert type(got) is float
        assert got == 1.0
    assert check_fraction("x", value) == 1


@pytest.mark.parametrize(("value", "message"), [(-1e-300, r"\[0, inf\]"), (-3, "got -3")])
def test_epsilon_is_not_negative(value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_epsilon("epsilon", value)


@pytest.mark.parametrize("value", [-5e-324, math.nextafter(1, 2), 2, -1])
def test_probabilities_end_at_zero_and_one(value: float) -> None:
    with pytest.raises(ValueError, match=r"p must be in \[0, 1\], got "):
        check_probability("p", value)
    assert [check_probability("p", edge) for edge in (0, 1, 0.0, 1.0)] == [0, 1, 0, 1]


@pytest.mark.parametrize("value", [1.0, 2.5, Fraction(3), np.float64(2)])
def test_whole_floats_are_no_integers(value: Any) -> None:
    with pytest.raises(TypeError, match="n must be an integer, got "):
        check_int("n", value)


@pytest.mark.parametrize(
    ("lo", "hi", "value", "rule"),
    [(0, None, -1, "at least 0"), (None, 5, 6, "at most 5"), (0, 5, 6, r"in \[0, 5\]"), (0, 5, -1, r"in \[0, 5\]")],
)
def test_integer_bounds(lo: int | None, hi: int | None, value: int, rule: str) -> None:
    with pytest.raises(ValueError, match=f"n must be {rule}, got {value}"):
        check_int("n", value, lo=lo, hi=hi)


def test_integers_of_any_size_and_kind() -> None:
    assert check_int("n", 10**400, lo=0) == 10**400
    assert type(check_int("n", np.uint8(200))) is int
    assert check_int("n", 0, lo=0, hi=0) == 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_fractions_are_exact(value: float) -> None:
    got = check_fraction("x", value, lo=Fraction(-(2**1100)))
    assert got == Fraction(value)
    assert float(got) == value


def test_fraction_bounds() -> None:
    third = Fraction(1, 3)
    assert check_fraction("x", third, lo=third, hi=third) == third
    for value in (third - Fraction(1, 10**40), third + Fraction(1, 10**40)):
        with pytest.raises(ValueError, match=r"x must be in \[1/3, 1/3\], got "):
            check_fraction("x", value, lo=third, hi=third)
    with pytest.raises(ValueError, match=r"x must be in \[0, inf\], got "):
        check_fraction("x", -1)


@pytest.mark.parametrize("value", ["", "  ", "\n\t"])
def test_text_says_something(value: str) -> None:
    with pytest.raises(ValueError, match="source must not be empty, got "):
        check_text("source", value)
    with pytest.raises(TypeError, match="source must be a string, got 3"):
        check_text("source", 3)
    assert check_text("source", "Theorem 1") == "Theorem 1"


@pytest.mark.parametrize("relation", list(Relation))
def test_relations_by_member_and_by_name(relation: Relation) -> None:
    assert check_relation("relation", relation) is relation
    assert check_relation("relation", relation_name(relation)) is relation


@pytest.mark.parametrize("value", ["replace_one", "REPLACE_ONE", "", None, 1, True, b"1"])
def test_unknown_relations_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"relation must be .*replace-one, add-remove, replace-special, got "):
        check_relation("relation", value)
