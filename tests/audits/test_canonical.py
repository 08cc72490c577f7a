"""Outcomes as values that can be compared and counted."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.canonical import NAN, UncountableError, canonical, canonical_batch
from tests.support.misbehaving import Bit, Opaque, Unhashable

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
nested = st.recursive(
    plain,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner) | st.frozensets(plain),
    max_leaves=12,
)


def copied(value: Any) -> Any:
    """An equal value that shares no container and no NaN with `value`."""
    if isinstance(value, float):
        return float(str(value))
    if isinstance(value, list | tuple | frozenset):
        return type(value)(map(copied, value))
    if isinstance(value, dict):
        return {key: copied(item) for key, item in reversed(value.items())}
    return value


@given(nested)
def test_equal_outcomes_have_one_stand_in_that_can_be_counted(value: Any) -> None:
    one, other = canonical(value), canonical(copied(value))
    assert {one: "counted"}[other] == "counted"
    assert canonical(one) == one or one is NAN


@given(st.lists(plain, min_size=1))
def test_a_batch_is_its_outcomes_one_by_one(values: list[Any]) -> None:
    for batch in (values, tuple(values), np.array(values, dtype=object)):
        kept = list(canonical_batch(batch))
        assert all(a is b or a == b for a, b in zip(kept, map(canonical, values), strict=True))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ([1, [2, 3]], (1, (2, 3))),
        ({"b": [1], "a": 2}, (("a", 2), ("b", (1,)))),
        ({1, 2}, frozenset({1, 2})),
        (np.array([[1, 2], [3, 4]]), ((1, 2), (3, 4))),
        (np.array(3.0), 3.0),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (Fraction(1, 3), Fraction(1, 3)),
        (Bit.ONE, Bit.ONE),
        (Bit, Bit),
    ],
)
def test_what_outcomes_become(outcome: Any, expected: object) -> None:
    assert canonical(outcome) == expected


@pytest.mark.parametrize(
    "nan", [float("nan"), -float("nan"), np.float32("nan"), decimal.Decimal("NaN"), complex(0, math.nan), [math.nan]]
)
def test_every_nan_is_the_same_outcome(nan: Any) -> None:
    kept = canonical(nan)
    assert (kept[0] if isinstance(kept, tuple) else kept) is NAN


def test_arrays_of_numbers_stay_arrays_and_rows_become_tuples() -> None:
    vector = np.array([1.0, 2.0])
    assert canonical_batch(vector) is vector
    assert canonical_batch(np.array([1.0, math.nan]))[1] is NAN
    assert canonical_batch(np.array([[1, 2], [3, 4]])) == [(1, 2), (3, 4)]
    assert canonical_batch(np.array([[1.0, math.nan]]))[0][1] is NAN


@pytest.mark.parametrize(("outcome", "said"), [(Opaque(), "equals only itself"), (Unhashable(), "unhashable")])
def test_what_cannot_be_compared_is_refused_with_advice(outcome: object, said: str) -> None:
    for value in (outcome, [outcome], {"key": outcome}):
        with pytest.raises(UncountableError, match=f"{said}.*return a number, a string, None, or a tuple"):
            canonical(value)
