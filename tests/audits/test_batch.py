"""Fixed-size tests: their size is enumerated, not simulated, and a test that ignores uncertainty fails that check."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from audits.batch import (
    Counts,
    conditional_epsilon_lower,
    conditional_p_value,
    dp_boundary,
    dp_p_value,
    epsilon_lower,
    gdp_boundary,
    gdp_p_value,
    mu_lower,
    one_run_epsilon_lower,
    one_run_p_value,
)

ALPHA = 0.05


def _size(p_value: Callable[[int, int], float], n: int, m: int, p: float, q: float) -> float:
    """P[p-value <= ALPHA] for x ~ Bin(n, p), y ~ Bin(m, q), over every outcome."""
    x_mass, y_mass = stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(m + 1), m, q)
    return float(
        sum(
            x_mass[x] * y_mass[y]
            for x, y in itertools.product(range(n + 1), range(m + 1))
            if x_mass[x] * y_mass[y] > 1e-9 and p_value(x, y) <= ALPHA
        )
    )


def _naive(boundary: Callable[[float], float], n: int, m: int) -> Callable[[int, int], float]:
    """The control: takes the estimate of q for its true value, as if y carried no uncertainty."""
    return lambda x, y: float(stats.binom.sf(x - 1, n, boundary(y / m)))


@pytest.mark.parametrize("q", [0.05, 0.2, 0.35])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.02)])
def test_size_of_the_unconditional_test_is_at_most_its_level(epsilon: float, delta: float, q: float) -> None:
    n = m = 11
    boundary = dp_boundary(epsilon, delta)
    table = {
        (x, y): dp_p_value(Counts(x, n, y, m), epsilon=epsilon, delta=delta, alpha=ALPHA)
        for x, y in itertools.product(range(n + 1), range(m + 1))
    }
    assert _size(lambda x, y: table[x, y], n, m, boundary(q), q) <= ALPHA


def test_the_size_check_can_fail() -> None:
    """The naive test exceeds its level by far at the same sizes."""
    boundary = dp_boundary(0.5, 0.0)
    assert _size(_naive(boundary, 11, 11), 11, 11, boundary(0.2), 0.2) > 2 * ALPHA


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_size_for_gdp_claims(mu: float) -> None:
    n = m = 9
    boundary = gdp_boundary(mu)
    table = {
        (x, y): gdp_p_value(Counts(x, n, y, m), mu=mu, alpha=ALPHA)
        for x, y in itertools.product(range(n + 1), range(m + 1))
    }
    for q in (0.1, 0.4):
        assert _size(lambda x, y: table[x, y], n, m, boundary(q), q) <= ALPHA


def test_p_value_bounds_the_exact_supremum_and_is_close_to_it() -> None:
    """Against the probability of the same region, maximised over a fine grid of q with an independent sum."""
    from audits.batch import _ratio_order, _Region

    counts = Counts(30, 40, 8, 40)
    boundary = dp_boundary(0.6, 0.01)
    found = dp_p_value(counts, epsilon=0.6, delta=0.01, alpha=ALPHA)
    need = _Region(counts, _ratio_order(counts, 0.01)).need(0, 40)

    def exact(q: float) -> float:
        p = boundary(q)
        return sum(
            math.comb(40, y) * q**y * (1 - q) ** (40 - y) * math.comb(40, x) * p**x * (1 - p) ** (40 - x)
            for y in range(41)
            for x in range(int(need[y]), 41)
        )

    interval = stats.binomtest(8, 40).proportion_ci(1 - ALPHA / 50, method="exact")
    grid = np.linspace(interval.low, min(interval.high, 0.54), 120)
    largest = max(exact(float(q)) for q in grid)
    assert largest <= found <= 1.3 * largest + ALPHA / 50 + 0.03 * ALPHA


def test_conditional_p_value_is_the_binomial_tail() -> None:
    share = Fraction(3, 4)  # epsilon = ln 3
    exact = sum(math.comb(20, x) * share**x * (1 - share) ** (20 - x) for x in range(18, 21))
    assert conditional_p_value(18, 2, epsilon=math.log(3)) == pytest.approx(float(exact), rel=1e-9)
    assert conditional_p_value(0, 5, epsilon=1.0) == 1.0


def test_conditional_bound_inverts_its_p_value() -> None:
    lower = conditional_epsilon_lower(90, 20, confidence=0.95)
    assert conditional_p_value(90, 20, epsilon=lower) <= ALPHA
    assert conditional_p_value(90, 20, epsilon=lower + 1e-6) > ALPHA
    assert conditional_epsilon_lower(40, 0, confidence=0.95) == pytest.approx(
        math.log(0.05 ** (1 / 40) / (1 - 0.05 ** (1 / 40))), abs=1e-8
    )
    assert conditional_epsilon_lower(5, 9, confidence=0.95) == 0.0


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_size_of_the_conditional_test(epsilon: float) -> None:
    """With s runs in the event, x ~ Bin(s, c/(1+c)) at the boundary: the size is a sum, for every s."""
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    for s in range(1, 40):
        size = sum(
            stats.binom.pmf(x, s, share)
            for x in range(s + 1)
            if conditional_p_value(x, s - x, epsilon=epsilon) <= ALPHA
        )
        assert size <= ALPHA


def test_epsilon_lower_reaches_the_figures_of_known_cases() -> None:
    """A rare event, 27 and 10 of 10^4: at least what the conditional test gives, which needs labelled runs."""
    rare = epsilon_lower(Counts(27, 10_000, 10, 10_000), delta=0.0, confidence=0.95)
    assert 0.34 < rare < 0.993  # below ln 2.7, the estimate
    response = epsilon_lower(Counts(953, 1000, 47, 1000), delta=0.0, confidence=0.95)
    assert 2.7 < response < 3.01


def test_mu_lower_for_a_gaussian_shift() -> None:
    counts = Counts(round(2000 * 0.5), 2000, round(2000 * stats.norm.cdf(-1)), 2000)
    assert 0.85 < mu_lower(counts, confidence=0.95) < 1.0


def test_one_run_p_value_against_its_formula_in_fractions() -> None:
    r, v, m, delta = 12, 10, 40, Fraction(1, 1000)
    share = Fraction(3, 4)
    at_least = [sum(math.comb(r, x) * share**x * (1 - share) ** (r - x) for x in range(k, r + 1)) for k in range(r + 2)]
    slope = max((at_least[v - i] - at_least[v]) / i for i in range(1, v + 1))
    exact = at_least[v] + 2 * m * delta * slope
    assert one_run_p_value(v, r, m, epsilon=math.log(3), delta=0.001) == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_run_test_on_randomized_response_canaries(epsilon: float) -> None:
    """Each canary answers truthfully with the largest allowed probability: guesses are Bin(m, c/(1+c)) right."""
    m = 60
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    refuted = [v for v in range(m + 1) if one_run_p_value(v, m, m, epsilon=epsilon) <= ALPHA]
    assert sum(stats.binom.pmf(v, m, share) for v in refuted) <= ALPHA
    broken = math.exp(epsilon + 2) / (1 + math.exp(epsilon + 2))
    assert sum(stats.binom.pmf(v, m, broken) for v in refuted) > 0.5


def test_one_run_lower_bound() -> None:
    lower = one_run_epsilon_lower(90, 100, 1000, delta=1e-5, confidence=0.95)
    assert one_run_p_value(90, 100, 1000, epsilon=lower, delta=1e-5) <= ALPHA
    assert one_run_p_value(90, 100, 1000, epsilon=lower + 2e-3, delta=1e-5) > ALPHA


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Counts(5, 4, 0, 4), r"inside must be in \[0, 4\]"),
        (lambda: conditional_p_value(1, 1, epsilon=float("nan")), "epsilon must be"),
        (lambda: epsilon_lower(Counts(1, 2, 1, 2), delta=2.0, confidence=0.95), r"delta must be in \[0, 1\]"),
        (lambda: one_run_p_value(5, 4, 10, epsilon=1.0), r"correct must be in \[0, 4\]"),
    ],
)
def test_bad_input_names_the_argument(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
