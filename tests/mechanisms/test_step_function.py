"""Step functions against plain lists of values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import StepFunction, from_level_oracle, threshold_agreement
from mechanisms.step_function import interior_depth

VALUES = st.lists(st.integers(-2, 3), min_size=1, max_size=9)


def listed(function: StepFunction) -> list[int]:
    return [function.value(rank) for rank in range(function.domain_size)]


def quasi_concave(values: list[int]) -> bool:
    """By the definition: no value lies below both a value before it and one after it."""
    return all(
        values[j] >= min(values[i], values[k])
        for i in range(len(values))
        for j in range(i, len(values))
        for k in range(j, len(values))
    )


@given(VALUES)
def test_a_list_of_values(values: list[int]) -> None:
    function = StepFunction.from_values(values)
    assert listed(function) == values
    assert (function.maximum, function.peak()) == (max(values), values.index(max(values)))
    assert [value for _, count, value in function.pieces() for _ in range(count)] == values
    assert function.is_quasi_concave == quasi_concave(values)
    inside = [rank for rank, value in enumerate(values) if value >= 1]
    if inside and inside == list(range(inside[0], inside[-1] + 1)):
        assert function.level(1) == (inside[0], inside[-1])
    else:
        with pytest.raises(ValueError, match=r"value must be at most|must be an interval"):
            function.level(1)


@given(VALUES)
def test_levels_give_back_a_quasi_concave_function(values: list[int]) -> None:
    function = StepFunction.from_values([max(0, value) for value in values])
    if function.is_quasi_concave:
        assert from_level_oracle(function.domain_size, function) == function
    elif function.maximum > 0:
        with pytest.raises(ValueError, match="interval"):
            from_level_oracle(function.domain_size, function)


@given(st.integers(1, 9), st.data())
def test_interior_depth_is_the_definition(size: int, data: st.DataObject) -> None:
    points = data.draw(st.lists(st.integers(0, size - 1), max_size=7))
    depth = interior_depth(size, points)
    assert listed(depth) == [min(sum(x <= p for x in points), sum(x >= p for x in points)) for p in range(size)]
    assert depth.is_quasi_concave


@given(st.integers(1, 7), st.lists(st.tuples(st.integers(-3, 9), st.sampled_from([0, 1])), max_size=6))
def test_threshold_agreement_is_the_definition(size: int, sample: list[tuple[int, int]]) -> None:
    function = threshold_agreement(size, sample)
    assert listed(function) == [sum(int(x >= t) == y for x, y in sample) for t in range(size)]
    if function.maximum == len(sample):
        assert function.is_quasi_concave  # Lemma A.2 of the paper
    # F15: the lemma needs realizability.
    assert not threshold_agreement(3, [(0, 0), (0, 1), (1, 1), (1, 0)] * 2 + [(0, 1), (1, 0)]).is_quasi_concave


def test_bad_step_functions_are_refused() -> None:
    for size, starts, values in (
        (0, (0,), (1,)),
        (3, (), ()),
        (3, (1,), (1,)),
        (3, (0, 0), (1, 2)),
        (3, (0, 3), (1, 2)),
    ):
        with pytest.raises(ValueError, match=r"domain_size|starts"):
            StepFunction(size, starts, values)
    with pytest.raises(TypeError, match=r"values\[0\] must be an integer"):
        StepFunction(3, (0,), (0.5,))  # type: ignore[arg-type]
    for levels in ([(2, 1)], [(0, 5)], [(1, 2), (0, 2)]):
        with pytest.raises(ValueError, match="must be an interval inside"):
            StepFunction.from_levels(4, levels)
    with pytest.raises(ValueError, match="rank must be in"):
        StepFunction(3, (0,), (1,)).value(3)
    with pytest.raises(ValueError, match=r"dataset\[1\] must be in \[0, 3\]"):
        interior_depth(4, (1, 4))
