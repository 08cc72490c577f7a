"""Draws from weighted groups: exact shares, exact probabilities, and the search for exponents."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import rational_base
from mechanisms.selection import (
    Groups,
    check_inside_unit,
    check_positive_epsilon,
    reaches,
    smallest_exponent,
    tree_depth,
)
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6
BASE = rational_base(1)


def shares(exponents: list[int], counts: list[int], base: Fraction) -> list[Fraction]:
    """The probability of each level, highest exponent first, by definition."""
    weight = {e: sum(c for f, c in zip(exponents, counts, strict=True) if f == e) * base**e for e in set(exponents)}
    kept = [weight[e] for e in sorted(weight, reverse=True) if weight[e]]
    return [w / sum(kept) for w in kept]


@given(
    st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 10**30)), min_size=1, max_size=6),
    st.sampled_from([Fraction(3, 2), BASE, Fraction(2)]),
    st.integers(1, 7),
)
def test_located_levels_are_those_of_the_exact_shares(
    groups: list[tuple[int, int]], base: Fraction, digits: int
) -> None:
    """Every word of a few digits: where a level is named, the whole of [word, word + 1) lies in its exact share."""
    exponents, counts = [e for e, _ in groups], [c for _, c in groups]
    if not any(counts):
        return
    ends = list(itertools.accumulate(shares(exponents, counts, base)))
    located = Groups(exponents, counts, base)._shares_to(40)
    for word in range(1 << digits):
        level = located.locate(word, digits)
        low, high = Fraction(word, 1 << digits), Fraction(word + 1, 1 << digits)
        inside = [j for j, end in enumerate(ends) if (ends[j - 1] if j else 0) <= low and high <= end]
        if level is not None:
            assert inside == [level]
        else:
            # Only a word that meets a boundary, to within the precision, may stay undecided.
            assert any(low - Fraction(1, 1 << 30) <= end <= high + Fraction(1, 1 << 30) for end in ends)


def test_an_undecided_word_is_decided_by_further_digits() -> None:
    """Two equal levels: the all-but-first words sit on the boundary for any number of digits that are all ones."""
    even = Groups([1, 0], [2, 3], Fraction(3, 2))
    located = even._shares_to(70)
    boundary = (1 << 63) - 1
    assert located.locate(boundary, 64) is None or located.locate(boundary, 64) == 0
    assert located.locate(boundary + 1, 64) in (None, 1)
    deeper = even._shares_to(300)
    assert deeper.locate((1 << 127) - 1, 128) in (None, 0)
    assert deeper.locate((1 << 127) + 1, 128) == 1


@pytest.mark.parametrize("scale", [1, 10**40, 1 << 5000], ids=["1", "10^40", "2^5000"])
def test_draws_have_the_law(scale: int) -> None:
    """20000 draws of a group and an index; false alarm 1e-6 each, and the shifted law is rejected."""
    exponents, counts = [3, -2, 3, 0], [2 * scale, 60 * scale, scale, 9 * scale]
    drawn = Groups(exponents, counts, BASE).draw_many(20_000, np.random.default_rng(3))
    weights = [c * BASE**e for e, c in zip(exponents, counts, strict=True)]
    law = {group: weight / sum(weights) for group, weight in enumerate(weights)}
    groups = [group for group, _ in drawn]
    assert p_value(groups, law) > FALSE_ALARM
    assert p_value(groups, shifted(law)) < FALSE_ALARM
    thirds = {third: Fraction(1, 3) for third in range(3)}
    within = [index * 3 // counts[group] for group, index in drawn if counts[group] % 3 == 0 or scale > 1]
    assert all(0 <= index < counts[group] for group, index in drawn)
    assert p_value(within, thirds) > FALSE_ALARM


def test_probabilities_are_those_of_the_weights() -> None:
    exponents, counts = [2, -1, 2, 5], [3, 4, 0, 1]
    groups = Groups(exponents, counts, BASE)
    total = sum(c * BASE**e for e, c in zip(exponents, counts, strict=True))
    assert groups.outcome_probabilities() == [BASE**e / total for e in exponents]
    assert groups.probability(lambda group: group in (0, 1)) == (3 * BASE**2 + 4 / BASE) / total
    assert groups.probability(lambda group: True) == 1
    assert groups.probability(lambda group: False) == 0


def test_groups_refuse_what_they_cannot_draw() -> None:
    with pytest.raises(ValueError, match="counts must hold a positive number"):
        Groups([1], [0], BASE)
    for base in (Fraction(1), Fraction(4, 3), Fraction(1, 2)):
        with pytest.raises(ValueError, match="power of two"):
            Groups([1], [1], base)
    with pytest.raises(ValueError, match="size must be at least 0"):
        Groups([1], [1], BASE).draw_many(-1, None)
    with pytest.raises(TypeError, match="rng must be"):
        Groups([1], [1], BASE).draw_many(1, 5)  # type: ignore[arg-type]


@given(st.fractions(0, 10**30), st.sampled_from([0.01, 0.5, 1.0, 7.0]))
def test_smallest_exponent_is_the_smallest(goal: Fraction, epsilon: float) -> None:
    base = rational_base(epsilon)
    found = smallest_exponent(base, goal)
    assert base**found >= goal
    assert found == 0 or base ** (found - 1) < goal
    assert reaches(base, found, goal)
    assert found == 0 or not reaches(base, found - 1, goal)


def test_smallest_exponent_at_exact_powers_and_huge_goals() -> None:
    assert [smallest_exponent(Fraction(3, 2), Fraction(3, 2) ** e) for e in (0, 1, 7, 400)] == [0, 1, 7, 400]
    assert smallest_exponent(Fraction(2), 10**10000) == 33220


def test_parameters() -> None:
    assert [tree_depth(size) for size in (1, 2, 3, 4, 5, 1 << 30000)] == [1, 1, 2, 2, 3, 30000]
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="epsilon"):
            check_positive_epsilon(wrong)
    for wrong in (0, 1, -0.1, 1.5):
        with pytest.raises(ValueError, match="beta must be in"):
            check_inside_unit("beta", wrong)
    with pytest.raises(TypeError, match="delta must be"):
        check_inside_unit("delta", "0.1")  # type: ignore[arg-type]
