"""Closed forms against high-precision evaluations of the same statements, and enumeration of what they bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import (
    EpsilonDelta,
    advanced_composition,
    advanced_composition_epsilon,
    amplify,
    base_for_amplified,
    basic_composition,
    gaussian_delta,
    gaussian_epsilon,
    group_privacy,
    optimal_composition_delta,
    optimal_composition_epsilon,
    renyi_epsilon,
)

mp.mp.dps = 60

epsilons = st.floats(min_value=1e-6, max_value=20.0)
deltas = st.one_of(st.just(0.0), st.floats(min_value=1e-20, max_value=0.2))
rates = st.floats(min_value=1e-8, max_value=1.0)
counts = st.integers(1, 300)


def just_over(value: Any, truth: mp.mpf, units: int = 4) -> bool:
    """Whether a float is at least the truth, and at most a few units in the last place over it."""
    slack = units * (mp.mpf(2) ** -52 * abs(truth) + mp.mpf(2) ** -1074)
    return bool(truth <= mp.mpf(value) <= truth + slack)


# Sampling.


@given(epsilons, deltas, rates)
def test_amplification_is_theorem_3_4_rounded_up(epsilon: float, delta: float, rate: float) -> None:
    found = amplify(EpsilonDelta(epsilon, delta), rate)
    assert just_over(found.epsilon, mp.log1p(mp.mpf(rate) * mp.expm1(epsilon)))
    assert just_over(found.delta, mp.mpf(rate) * mp.mpf(delta))


@given(epsilons, deltas, rates)
def test_the_base_is_the_most_that_amplifies_to_the_target(epsilon: float, delta: float, rate: float) -> None:
    base = base_for_amplified(EpsilonDelta(epsilon, delta), rate)
    truth = mp.log1p(mp.expm1(epsilon) / mp.mpf(rate))
    assert just_over(-base.epsilon, -truth)
    assert mp.mpf(base.delta) <= mp.mpf(delta) / mp.mpf(rate)
    assert base.delta == 1 or just_over(-base.delta, -mp.mpf(delta) / mp.mpf(rate))


def test_which_base_was_meant() -> None:
    base = base_for_amplified(EpsilonDelta(1.0, 1e-6), Fraction(1, 100))
    assert round(base.epsilon, 4) == 5.1523
    assert base.delta == pytest.approx(1e-4)
    again = amplify(base, Fraction(1, 100))
    assert again.epsilon <= 1.0 + 1e-15
    assert again.delta <= 1e-6


def test_amplification_at_the_ends() -> None:
    step = EpsilonDelta(3.0, 1e-5)
    assert amplify(step, 0) == EpsilonDelta(0.0, 0.0)
    assert just_over(amplify(step, 1).epsilon, mp.mpf(3))
    assert amplify(step, 1).delta == 1e-5
    assert amplify(EpsilonDelta(math.inf, 0.5), 0.5) == EpsilonDelta(math.inf, 0.25)
    with pytest.raises(ValueError, match="rate must be over 0"):
        base_for_amplified(step, 0)


# Composition.


@given(st.lists(st.tuples(epsilons, deltas, counts), max_size=5))
def test_basic_composition_is_the_exact_sum_rounded_up(parts: list[tuple[float, float, int]]) -> None:
    found = basic_composition([(EpsilonDelta(epsilon, delta), count) for epsilon, delta, count in parts])
    assert just_over(found.epsilon, mp.mpf(sum(Fraction(e) * n for e, _, n in parts)), 1)
    assert found.delta == 1 or just_over(found.delta, mp.mpf(sum(Fraction(d) * n for _, d, n in parts)), 1)


@given(epsilons, deltas, counts, st.floats(min_value=1e-20, max_value=1.0))
def test_advanced_composition_is_theorem_3_5_rounded_up(e: float, d: float, count: int, slack: float) -> None:
    found = advanced_composition(EpsilonDelta(e, d), count, slack)
    truth = mp.sqrt(2 * count * mp.log(1 / mp.mpf(slack))) * mp.mpf(e) + count * mp.mpf(e) * mp.expm1(e)
    assert just_over(found.epsilon, truth)
    assert found.delta == 1 or just_over(found.delta, count * mp.mpf(d) + mp.mpf(slack))


@given(epsilons, counts, st.floats(min_value=1e-12, max_value=0.1), st.floats(min_value=0.01, max_value=0.99))
def test_the_whole_rest_of_delta_is_the_best_slack(e: float, count: int, delta: float, share: float) -> None:
    step = EpsilonDelta(e, delta / (2 * count))
    best = advanced_composition_epsilon(step, count, delta)
    assert best <= advanced_composition(step, count, share * (delta - count * step.delta)).epsilon
    assert advanced_composition_epsilon(step, 3 * count, delta) == math.inf


def brute_delta(epsilon: float, delta: float, count: int, at: float) -> mp.mpf:
    """delta of `count` extremal answers, by summing over every number of wrong ones."""
    e, d, target = mp.mpf(epsilon), mp.mpf(delta), mp.mpf(at)
    wrong, right = 1 / (1 + mp.exp(e)), mp.exp(e) / (1 + mp.exp(e))
    caught = mp.mpf(0)
    for j in range(count + 1):
        p = mp.binomial(count, j) * right ** (count - j) * wrong**j
        q = mp.binomial(count, j) * right**j * wrong ** (count - j)
        caught += max(mp.mpf(0), p - mp.exp(target) * q)
    return 1 - (1 - d) ** count * (1 - caught)


@given(epsilons, deltas, st.integers(1, 40), st.floats(min_value=0.0, max_value=1.2))
def test_optimal_composition_is_the_sum_over_wrong_answers(e: float, d: float, count: int, share: float) -> None:
    with mp.workdps(120):
        truth = brute_delta(e, d, count, share * e * count)
    found = optimal_composition_delta(EpsilonDelta(e, d), count, share * e * count)
    assert truth - mp.mpf(10) ** -100 <= found <= truth * (1 + mp.mpf(2) ** -51) + mp.mpf(10) ** -100


@given(epsilons, deltas, st.integers(1, 40), st.floats(min_value=1e-18, max_value=0.9))
def test_optimal_epsilon_meets_delta_and_nothing_less_does(e: float, d: float, count: int, delta: float) -> None:
    found = optimal_composition_epsilon(EpsilonDelta(e, d), count, delta)
    with mp.workdps(120):
        if found == math.inf:
            assert 1 - (1 - mp.mpf(d)) ** count > delta * (1 - mp.mpf(2) ** -50)
        else:
            assert brute_delta(e, d, count, found) <= mp.mpf(delta) * (1 + mp.mpf(10) ** -100)
            assert found == 0 or brute_delta(e, d, count, found * (1 - 1e-14)) > delta * (1 - mp.mpf(10) ** -13)


def test_optimal_composition_of_two_is_the_worst_of_all_post_processed_pairs() -> None:
    """Two randomized responses, by enumeration of the four joint outcomes in Fractions with odds 3."""
    right, wrong = Fraction(3, 4), Fraction(1, 4)
    epsilon = math.log(3)
    for at in (0.0, 0.5, 1.0, 2.0):
        pairs = [(a * b, c * d) for (a, c), (b, d) in itertools.product([(right, wrong), (wrong, right)], repeat=2)]
        truth = sum(max(0.0, float(p) - math.exp(at) * float(q)) for p, q in pairs)
        assert optimal_composition_delta(EpsilonDelta(epsilon), 2, at) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(
    ("step", "count", "delta", "truth"),
    [
        (EpsilonDelta(0.1), 100, 1e-6, 4.7745675880),  # cases/accounting-faults.md: a missing logarithm
        (EpsilonDelta(5e-5), 1000, 1e-6, 0.0045111226),  # ... tiny per-step epsilon
        (EpsilonDelta(1.0), 10, 0.0, 10.0),  # ... pure DP at delta 0
    ],
)
def test_known_totals(step: EpsilonDelta, count: int, delta: float, truth: float) -> None:
    assert optimal_composition_epsilon(step, count, delta) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0])
def test_a_hundred_thousand_uses_are_stable(epsilon: float) -> None:
    """At 1e5 uses the loss is a binomial count; its tail is summed here in floating point, term by term."""
    count, step = 10**5, EpsilonDelta(epsilon, 1e-13)
    found = optimal_composition_epsilon(step, count, 1e-6)
    log_odds = math.log1p(math.exp(epsilon))
    log_caught: list[float] = []
    for j in range(count + 1):
        loss = (count - 2 * j) * epsilon
        if loss > found:
            log_choose = math.lgamma(count + 1) - math.lgamma(j + 1) - math.lgamma(count - j + 1)
            log_p = log_choose + (count - j) * epsilon - count * log_odds
            log_caught.append(log_p + math.log(-math.expm1(found - loss)))
    delta = count * 1e-13 + math.fsum(map(math.exp, log_caught))
    assert delta == pytest.approx(1e-6, rel=1e-7)


def test_optimal_is_at_most_advanced_and_basic() -> None:
    for epsilon, delta, count in itertools.product((0.01, 0.5, 3.0), (0.0, 1e-9), (1, 2, 17, 400)):
        step = EpsilonDelta(epsilon, delta)
        best = optimal_composition_epsilon(step, count, 1e-6)
        assert best <= basic_composition([(step, count)]).epsilon
        assert best <= advanced_composition_epsilon(step, count, 1e-6)


# Groups and conversions.


@given(epsilons, st.floats(min_value=1e-20, max_value=1e-6), st.integers(1, 6))
def test_a_group_is_a_chain_of_neighbours(epsilon: float, delta: float, size: int) -> None:
    """Moving along a chain: Pr_g <= e^epsilon Pr_{g-1} + delta, written out."""
    added = mp.mpf(0)
    for _ in range(size):
        added = added * mp.exp(epsilon) + mp.mpf(delta)
    found = group_privacy(EpsilonDelta(epsilon, delta), size)
    assert just_over(found.epsilon, size * mp.mpf(epsilon))
    assert found.delta == 1 if added >= 1 else just_over(found.delta, added)


def test_groups_at_the_ends() -> None:
    assert group_privacy(EpsilonDelta(1.0, 0.1), 0) == EpsilonDelta(0.0, 0.0)
    assert group_privacy(EpsilonDelta(0.0, 0.125), 3) == EpsilonDelta(0.0, 0.375)
    assert group_privacy(EpsilonDelta(2.0), 3) == EpsilonDelta(6.0)
    assert group_privacy(EpsilonDelta(math.inf, 0.1), 2) == EpsilonDelta(math.inf, 1.0)


@given(
    st.lists(st.floats(min_value=1.001, max_value=500.0), min_size=1, max_size=5),
    st.floats(min_value=0.001, max_value=20.0),
    st.floats(min_value=1e-20, max_value=0.5),
)
def test_renyi_conversion_is_proposition_12_rounded_up(orders: list[float], rho: float, delta: float) -> None:
    divergences = [rho * order for order in orders]
    truth = min(
        mp.mpf(d) + mp.log(1 - 1 / mp.mpf(a)) - (mp.log(delta) + mp.log(a)) / (mp.mpf(a) - 1)
        for a, d in zip(orders, divergences, strict=True)
    )
    found = renyi_epsilon(orders, divergences, delta)
    assert found == 0 if truth <= 0 else just_over(found, truth)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_renyi_conversion_is_above_the_exact_gaussian(sigma: float, delta: float) -> None:
    orders = [1 + 10 ** (x / 10) for x in range(-20, 30)]
    found = renyi_epsilon(orders, [a / (2 * sigma**2) for a in orders], delta)
    assert gaussian_epsilon(sigma, delta) <= found <= gaussian_epsilon(sigma, delta) * 1.3 + 0.1


@given(st.floats(min_value=0.05, max_value=20.0), st.floats(min_value=0.0, max_value=30.0))
def test_gaussian_delta_is_the_two_tails(sigma: float, epsilon: float) -> None:
    s, e = mp.mpf(sigma), mp.mpf(epsilon)
    truth = mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)
    found = gaussian_delta(sigma, epsilon)
    assert truth <= mp.mpf(found) * (1 + mp.mpf(1e-14)) + mp.mpf(1e-300)
    assert mp.mpf(found) <= truth * (1 + mp.mpf(1e-9)) + mp.mpf(1e-300)


@pytest.mark.parametrize(("sigma", "delta", "truth"), [(0.5, 1e-6, 10.9971512), (0.05, 1e-5, 284.392), (20, 0.3, 0.0)])
def test_gaussian_epsilons(sigma: float, delta: float, truth: float) -> None:
    assert gaussian_epsilon(sigma, delta) == pytest.approx(truth, rel=1e-6)


# Bad input.

STEP = EpsilonDelta(1.0, 1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EpsilonDelta(-0.1), r"epsilon must be in \[0, inf\], got -0.1"),
        (lambda: EpsilonDelta(math.nan), r"epsilon must be in \[0, inf\], got nan"),
        (lambda: EpsilonDelta(1.0, 1.5), r"delta must be in \[0, 1\], got 1.5"),
        (lambda: amplify(STEP, 1.5), r"rate must be in \[0, 1\], got 1.5"),
        (lambda: amplify(STEP, math.nan), "rate must be finite, got nan"),
        (lambda: base_for_amplified(STEP, -1), r"rate must be in \[0, 1\], got -1"),
        (lambda: basic_composition([(STEP, -1)]), "count must be at least 0, got -1"),
        (lambda: advanced_composition(STEP, 2, 0.0), r"slack must be in \(0, 1\], got 0.0"),
        (lambda: advanced_composition(STEP, 2, math.nan), r"slack must be in \(0, 1\] and finite, got nan"),
        (lambda: advanced_composition_epsilon(STEP, 2, 2.0), r"delta must be in \[0, 1\], got 2.0"),
        (lambda: optimal_composition_delta(STEP, -2, 1.0), "count must be at least 0, got -2"),
        (lambda: optimal_composition_delta(STEP, 2, -1.0), "epsilon must be"),
        (lambda: optimal_composition_epsilon(STEP, 2, math.nan), "delta must be"),
        (lambda: group_privacy(STEP, -1), "size must be at least 0, got -1"),
        (lambda: renyi_epsilon([1.0], [1.0], 1e-6), r"orders\[0\] must be"),
        (lambda: renyi_epsilon([2.0], [math.nan], 1e-6), r"divergences\[0\] must be"),
        (lambda: renyi_epsilon([2.0, 3.0], [1.0], 1e-6), "divergences must be one for each"),
        (lambda: gaussian_delta(0.0, 1.0), "noise_multiplier must be"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_counts_must_be_whole() -> None:
    with pytest.raises(TypeError, match=r"count must be an integer, got 2\.0"):
        advanced_composition(STEP, 2.0, 1e-6)  # type: ignore[arg-type]
