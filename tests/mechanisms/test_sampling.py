"""The exact samplers, against Fractions bit by bit where possible, against frequencies elsewhere.

Statistical tests are seeded; each has a false-alarm rate of 1e-6 (chi-square) and a control that it must reject.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.sampling import (
    PowerSampler,
    check_rng,
    draw_index,
    draw_indices,
    random_order,
    uniform_below,
    uniform_many,
)
from tests.mechanisms.goodness import Scripted, p_value, shifted

FALSE_ALARM = 1e-6
BASES = (Fraction(1), Fraction(1 + 2**20, 2**20), Fraction(3, 2), Fraction(1000))
LEVELS = [
    ([0], [3]),
    ([5, 3, 0], [2, 1, 7]),
    ([4, 3, 2, 1, -200], [1, 10**30, 3, 1, 10**40]),
    (list(range(40, 0, -1)), [1] * 40),
]


def shares(exponents: list[int], counts: list[int], base: Fraction) -> list[Fraction]:
    """The boundaries between levels, from the definition."""
    weights = [count * base**exponent for exponent, count in zip(exponents, counts, strict=True)]
    return [sum_ / sum(weights) for sum_ in itertools.accumulate(weights)]


@pytest.mark.parametrize("bound", [1, 2, 5, 7, 8, 100, 256])
def test_uniform_below_is_uniform_over_every_byte(bound: int) -> None:
    accepted: Counter[int] = Counter()
    rejected = 0
    for byte in range(256):
        try:
            accepted[uniform_below(bound, Scripted([bytes([byte])] if bound > 1 else [b""]))] += 1
        except StopIteration:
            rejected += 1
    assert set(accepted) == set(range(bound))
    assert len(set(accepted.values())) == 1
    assert rejected < 128


def test_uniform_below_takes_bounds_of_any_size() -> None:
    bound = 3**400
    drawn = [uniform_below(bound, np.random.default_rng(seed)) for seed in range(200)]
    assert all(0 <= value < bound for value in drawn)
    assert max(drawn) > bound // 2 > min(drawn)
    assert 0 <= uniform_below(bound, None) < bound


@pytest.mark.parametrize("bound", [1, 3, 2**40 + 1, 2**63])
def test_uniform_many_stays_below_its_bound(bound: int) -> None:
    for rng in (np.random.default_rng(1), None):
        drawn = uniform_many(bound, 500, rng)
        assert len(drawn) == 500
        assert int(drawn.min()) >= 0
        assert int(drawn.max()) < bound
    assert bound < 100 or len(set(drawn.tolist())) > 400


def test_uniform_many_frequencies() -> None:
    drawn = uniform_many(6, 60_000, np.random.default_rng(2)).tolist()
    law = dict.fromkeys(range(6), Fraction(1, 6))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM


def test_random_order_frequencies() -> None:
    rng = np.random.default_rng(3)
    drawn = [random_order(4, 2, rng) for _ in range(24_000)]
    law = dict.fromkeys(itertools.permutations(range(4), 2), Fraction(1, 12))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value([tuple(sorted(pair)) for pair in drawn], law) < FALSE_ALARM


def test_random_order_from_system_entropy_is_a_selection() -> None:
    assert sorted(random_order(9, 9, None)) == list(range(9))
    assert len(set(random_order(9, 4, None))) == 4
    assert random_order(0, 0, None) == ()


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize(("exponents", "counts"), LEVELS, ids=range(len(LEVELS)))
def test_a_settled_word_lies_inside_its_level(exponents: list[int], counts: list[int], base: Fraction) -> None:
    """Every first word of 8 bits that settles the level does so rightly, and hardly any is left unsettled."""
    bits = 8
    scale = 1 << bits
    sampler = PowerSampler(exponents, counts, base, word_bits=bits)
    levels, settled = sampler._locate_words(np.arange(scale))
    ends = [Fraction(0), *shares(exponents, counts, base)]
    for word in np.flatnonzero(settled).tolist():
        level = int(levels[word])
        assert ends[level] <= Fraction(word, scale)
        assert Fraction(word + 1, scale) <= ends[level + 1]
    assert scale - settled.sum() <= len(counts) - 1


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize(("exponents", "counts"), LEVELS, ids=range(len(LEVELS)))
def test_an_unsettled_word_is_resolved_by_further_digits(
    exponents: list[int], counts: list[int], base: Fraction
) -> None:
    sampler = PowerSampler(exponents, counts, base, word_bits=8)
    ends = [Fraction(0), *shares(exponents, counts, base)]
    _, settled = sampler._locate_words(np.arange(256))
    rng = np.random.default_rng(4)
    for word in np.flatnonzero(~settled).tolist():
        for digits in (rng.bytes(8), b"\x00" * 8, b"\xff" * 8):
            further = [digits, *(rng.bytes(8) for _ in range(6))]
            level = sampler._resolve(word, Scripted(further))
            # Wherever the first 72 digits decide, the level must be theirs; else it must touch their interval.
            start = Fraction(word << 64 | int.from_bytes(digits, "little"), 1 << 72)
            assert ends[level] < start + Fraction(1, 1 << 72)
            assert start < ends[level + 1]


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize(("exponents", "counts"), LEVELS, ids=range(len(LEVELS)))
def test_boundaries_are_bounded_at_every_precision(exponents: list[int], counts: list[int], base: Fraction) -> None:
    """Even at precisions far too low to be useful: rounding is always outwards."""
    sampler = PowerSampler(exponents, counts, base)
    ends = shares(exponents, counts, base)
    for precision in (1, 2, 3, 5, 9, 20, 64):
        table = sampler._table(precision)
        bounds = zip(table.low, table.low_total, table.high, table.high_total, strict=True)
        for end, (low, low_total, high, high_total) in zip(ends, bounds, strict=False):
            assert Fraction(low, low_total) <= end <= Fraction(high, high_total)


def test_levels_with_weights_too_long_to_write_down() -> None:
    """A million levels at base 1.65: the law is geometric in the first few hundred."""
    base = Fraction(3457619, 2097152)
    sampler = PowerSampler(range(10**6, 0, -1), [1] * 10**6, base)
    drawn = sampler.draw_many(30_000, np.random.default_rng(5)).tolist()
    law = {level: float((1 - 1 / base) / base**level) for level in range(200)}
    assert p_value(drawn, law) > FALSE_ALARM
    steeper = {level: 0.5 * 0.5**level for level in range(200)}
    assert p_value(drawn, steeper) < FALSE_ALARM


@given(st.lists(st.integers(0, 2**80), min_size=1, max_size=6).filter(any), st.integers(0, 2**32))
def test_draw_index_and_draw_indices_stay_in_the_support(weights: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    support = {index for index, weight in enumerate(weights) if weight}
    assert draw_index(weights, rng) in support
    assert set(draw_indices(weights, 5, rng).tolist()) <= support
    assert draw_index(weights, None) in support


def test_draw_frequencies() -> None:
    weights = [3**60, 0, 2 * 3**60, 3**61]
    law = {index: Fraction(weight, sum(weights)) for index, weight in enumerate(weights)}
    rng = np.random.default_rng(6)
    for drawn in (draw_indices(weights, 30_000, rng).tolist(), [draw_index(weights, rng) for _ in range(6_000)]):
        assert p_value(drawn, law) > FALSE_ALARM
        assert p_value(drawn, {0: 0.25, 1: 0.0, 2: 0.25, 3: 0.5}) < FALSE_ALARM


def test_equal_seeds_replay_and_draws_differ() -> None:
    sampler = PowerSampler([3, 2, 1], [1, 1, 1], Fraction(3, 2))
    first, again, other = (sampler.draw_many(50, np.random.default_rng(seed)).tolist() for seed in (7, 7, 8))
    assert first == again != other
    assert sampler.draw(np.random.default_rng(7)) == first[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_index([], None), "weights must not all be zero"),
        (lambda: draw_indices([0, 0], 3, None), "weights must not all be zero"),
        (lambda: draw_index([1, -1], None), r"weights\[1\] must be at least 0, got -1"),
        (lambda: draw_index([1, 0.5], None), r"weights\[1\] must be an integer, got 0.5"),  # type: ignore[list-item]
        (lambda: uniform_below(0, None), "bound must be at least 1, got 0"),
        (lambda: random_order(3, 4, None), r"count must be in \[0, 3\], got 4"),
        (lambda: PowerSampler([], [], Fraction(2)), "equally many and not empty"),
        (lambda: PowerSampler([1], [1], Fraction(1, 2)), "base must be at least 1"),
        (lambda: check_rng(np.random.RandomState(0)), "rng must be a numpy.random.Generator"),
        (lambda: check_rng(7), "rng must be a numpy.random.Generator"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_the_shares_of_the_test_sum_to_one() -> None:
    assert all(shares(e, c, b)[-1] == 1 for (e, c), b in itertools.product(LEVELS, BASES))
    assert math.isclose(float(shares([1, 0], [1, 1], Fraction(3, 2))[0]), 0.6)
