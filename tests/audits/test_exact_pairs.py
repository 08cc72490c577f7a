"""The curve of a pair of laws against enumeration of all events, closed forms and mpmath."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accounting import PrivacyProfile, exp_bounds
from audits.exact import FinitePair, exact_curve

Law = dict[Hashable, Fraction]


def laws(size: int, *, largest: int = 12) -> st.SearchStrategy[Law]:
    """Rational laws on 0..size-1, zeros and equal ratios included."""
    weights = st.lists(st.integers(0, largest), min_size=size, max_size=size).filter(any)
    return weights.map(lambda w: {i: Fraction(x, sum(w)) for i, x in enumerate(w)})


pairs = st.integers(1, 6).flatmap(lambda size: st.tuples(laws(size), laws(size)))
factors = st.fractions(min_value=0, max_value=40, max_denominator=50)


def events(P: Mapping[Hashable, Fraction], Q: Mapping[Hashable, Fraction]) -> list[tuple[Fraction, Fraction]]:
    """(P(E), Q(E)) of every event E: the definition, without any ordering of outcomes."""
    outcomes = sorted({*P, *Q}, key=repr)
    zero = Fraction(0)
    subsets = itertools.chain.from_iterable(itertools.combinations(outcomes, n) for n in range(len(outcomes) + 1))
    return [(sum((P.get(o, zero) for o in E), zero), sum((Q.get(o, zero) for o in E), zero)) for E in subsets]


def least_factor(P: Law, Q: Law, delta: Fraction) -> Fraction | None:
    """Smallest c >= 1 with P(E) <= c Q(E) + delta for every event E."""
    needs = [(p, q) for p, q in events(P, Q) if p > delta]
    if any(q == 0 for _, q in needs):
        return None
    return max([Fraction(1), *((p - delta) / q for p, q in needs)])


@given(pairs, factors)
def test_divergence_is_the_best_of_all_events(pair: tuple[Law, Law], factor: Fraction) -> None:
    P, Q = pair
    expected = max(p - factor * q for p, q in events(P, Q))
    fresh, sorted_before = FinitePair(P, Q), FinitePair(P, Q)
    sorted_before.curve()
    assert fresh.divergence(factor) == sorted_before.divergence(factor) == expected
    assert fresh.reversed.divergence(factor) == max(q - factor * p for p, q in events(P, Q))


@given(pairs, st.fractions(min_value=0, max_value=1, max_denominator=30))
def test_least_factor_is_the_definition(pair: tuple[Law, Law], delta: Fraction) -> None:
    P, Q = pair
    expected = least_factor(P, Q, delta)
    found = FinitePair(P, Q)
    assert found.least_factor(delta) == expected
    bounds = found.epsilon(delta)
    if expected is None:
        assert bounds.lower == bounds.upper == math.inf
    else:
        with mpmath.workdps(60):
            truth = mpmath.log(mpmath.mpf(expected.numerator) / expected.denominator)
            assert bounds.lower <= truth <= bounds.upper
        assert bounds.upper - bounds.lower <= 4 * math.ulp(bounds.upper)


@given(pairs, st.fractions(min_value=0, max_value=1, max_denominator=30))
def test_event_at_shows_the_epsilon(pair: tuple[Law, Law], delta: Fraction) -> None:
    P, Q = pair
    found = FinitePair(P, Q)
    factor, event = found.least_factor(delta), found.event_at(delta)
    assert event.probability == sum((P.get(o, Fraction(0)) for o in event.outcomes), Fraction(0))
    assert event.neighbour_probability == sum((Q.get(o, Fraction(0)) for o in event.outcomes), Fraction(0))
    if factor is None:
        assert event.neighbour_probability == 0
        assert event.probability > delta
    elif factor > 1:
        assert event.probability == factor * event.neighbour_probability + delta


@given(pairs, st.floats(-3, 3))
def test_worst_event_and_hockey_stick_at_a_float_epsilon(pair: tuple[Law, Law], epsilon: float) -> None:
    P, Q = pair
    found = FinitePair(P, Q)
    with mpmath.workdps(60):
        c = mpmath.exp(mpmath.mpf(epsilon))

        def gain(p: Fraction, q: Fraction) -> mpmath.mpf:
            return mpmath.mpf(p.numerator) / p.denominator - c * q.numerator / q.denominator

        truth = max(gain(p, q) for p, q in events(P, Q))
        bounds = found.hockey_stick(epsilon)
        assert bounds.lower <= truth <= bounds.upper
        event = found.worst_event(epsilon)
        assert abs(gain(event.probability, event.neighbour_probability) - truth) < mpmath.mpf(10) ** -50
    assert found.exceeds(epsilon, bounds.upper) is False
    assert bounds.lower == 0 or found.exceeds(epsilon, math.nextafter(bounds.lower, 0.0)) is True


@given(pairs, factors)
def test_curve_is_linear_between_its_breakpoints(pair: tuple[Law, Law], factor: Fraction) -> None:
    found = FinitePair(*pair)
    curve = found.curve()
    assert [p.factor for p in curve] == sorted({p.factor for p in curve})
    below = [p for p in curve if p.factor <= factor][-1]
    above = [p for p in curve if p.factor > factor][:1]
    if not above:
        assert found.divergence(factor) == below.delta
    else:
        share = (factor - below.factor) / (above[0].factor - below.factor)
        assert found.divergence(factor) == below.delta + share * (above[0].delta - below.delta)


@given(pairs)
def test_likelihood_range_holds_the_extreme_ratios(pair: tuple[Law, Law]) -> None:
    P, Q = pair
    high, low = FinitePair(P, Q).likelihood_range()
    for p, q in ((P[o], Q[o]) for o in P):
        assert p * high.neighbour_probability <= q * high.probability
        assert p * low.neighbour_probability >= q * low.probability


@given(pairs)
def test_exact_curve_is_the_curve_rounded_up(pair: tuple[Law, Law]) -> None:
    found = FinitePair(*pair)
    curve = exact_curve(found)
    assert np.all(np.diff(curve.epsilons) > 0)
    for epsilon, forward, delta in zip(curve.epsilons, curve.forward, curve.delta, strict=True):
        assert forward >= found.hockey_stick(float(epsilon)).lower
        assert delta == max(forward, curve.backward[list(curve.epsilons).index(epsilon)])
        assert abs(forward - found.hockey_stick(float(epsilon)).upper) < 1e-14


@given(pairs, st.floats(-2, 4))
def test_the_accountant_bounds_the_same_curve(pair: tuple[Law, Law], epsilon: float) -> None:
    """Two implementations that share no code: exact here, floats rounded up there."""
    P, Q = pair
    found = FinitePair(P, Q)
    exact = max(found.hockey_stick(epsilon).upper, found.reversed.hockey_stick(epsilon).upper)
    bound = PrivacyProfile.from_distributions(P, Q).delta(epsilon)
    assert exact - 1e-15 <= bound <= exact * (1 + 1e-9) + 1e-12


def test_equal_digests_mean_equal_up_to_names() -> None:
    P, Q = {0: Fraction(1, 3), 1: Fraction(2, 3)}, {0: Fraction(1, 2), 1: Fraction(1, 2)}
    renamed = FinitePair({"b": P[1], "a": P[0]}, {"a": Q[0], "b": Q[1]})
    assert FinitePair(P, Q).digest() == renamed.digest()
    assert FinitePair(P, Q).digest() != FinitePair(Q, P).digest()
    assert FinitePair(P, Q).digest() != FinitePair(P, P).digest()


# Closed forms


@pytest.mark.parametrize("truth", [Fraction(3, 4), Fraction(2, 3), Fraction(99, 100)])
def test_randomized_response(truth: Fraction) -> None:
    pair = FinitePair({0: truth, 1: 1 - truth}, {0: 1 - truth, 1: truth})
    odds = truth / (1 - truth)
    assert pair.least_factor(0) == odds
    for delta in (Fraction(1, 10), Fraction(1, 4)):
        assert pair.least_factor(delta) == max(Fraction(1), (truth - delta) / (1 - truth))
    assert pair.divergence(1) == 2 * truth - 1
    assert pair.worst_event(0.1).outcomes == (0,)


def test_geometric_count_on_a_long_range() -> None:
    """Two-sided geometric noise, clamped to 0..N: the ratio of counts n and n+1 is 1/alpha up to n, alpha after."""
    alpha, size = Fraction(3, 5), 400

    def law(count: int) -> Law:
        inner: Law = {z: (1 - alpha) / (1 + alpha) * alpha ** abs(z - count) for z in range(1, size)}
        return {0: alpha**count / (1 + alpha), **inner, size: alpha ** (size - count) / (1 + alpha)}

    pair = FinitePair(law(200), law(201))
    assert pair.least_factor(0) == 1 / alpha
    for factor in (Fraction(1), Fraction(5, 4), Fraction(3, 2)):
        # E = {z <= 200}: P(E) = 1/(1 + alpha), Q(E) = alpha/(1 + alpha).
        assert pair.divergence(factor) == (1 - factor * alpha) / (1 + alpha)
        assert pair.reversed.divergence(factor) == (1 - factor * alpha) / (1 + alpha)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.4, 0.8])
def test_laplace_in_bins(epsilon: float) -> None:
    """delta(epsilon) = 1 - exp((epsilon - 1)/2) for Laplace(1) at distance 1; binning loses nothing when an edge is at
    the threshold (1 - epsilon)/2 of the best event.
    """
    edges = np.linspace(-30, 30, 601)
    P, Q = (dict(enumerate(_bins(stats.laplace(loc).cdf, edges))) for loc in (0, 1))
    bounds = FinitePair(P, Q).hockey_stick(epsilon)
    assert bounds.lower == pytest.approx(1 - math.exp((epsilon - 1) / 2), abs=1e-13)
    assert bounds.upper - bounds.lower < 1e-15


def test_gaussian_in_bins() -> None:
    """delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu); here the best event ends at 0."""
    edges = np.linspace(-12, 12, 481)
    P, Q = (dict(enumerate(_bins(stats.norm(loc).cdf, edges))) for loc in (0, 1))
    expected = stats.norm.cdf(0) - math.exp(0.5) * stats.norm.cdf(-1)
    assert FinitePair(P, Q).hockey_stick(0.5).upper == pytest.approx(expected, abs=1e-13)


def _bins(cdf: object, edges: np.ndarray) -> list[float]:
    assert callable(cdf)
    masses = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    return [float(x) for x in masses]


def test_three_valued_responses_sampled_without_replacement() -> None:
    """One record in ten sampled, 3-ary randomized response at epsilon 2, two rounds: delta(.4) = .036071.

    The recipe that composes ((1-q)Q + qP against Q), (P, Q) the extremal pair of 2-DP, and its mirror, each on its own,
    gives .018096: right for Poisson sampling, unsound here.
    """
    odds = exp_bounds(2.0)[0]

    def response(value: int) -> Law:
        return {o: (odds if o == value else Fraction(1)) / (odds + 2) for o in range(3)}

    def mixed(one: Law, other: Law) -> Law:
        return {o: (one[o] + 9 * other[o]) / 10 for o in one}

    def twice(law: Law) -> Law:
        return {(a, b): law[a] * law[b] for a in law for b in law}

    a, b, third = response(0), response(1), response(2)
    pair = FinitePair(twice(mixed(a, third)), twice(mixed(b, third)))
    for direction in (pair, pair.reversed):
        assert direction.hockey_stick(0.4).lower == pytest.approx(0.036071, abs=5e-7)
    P: Law = {0: odds / (odds + 1), 1: 1 / (odds + 1)}
    Q: Law = {0: P[1], 1: P[0]}
    recipe = FinitePair(twice(mixed(P, Q)), twice(Q))
    worst = max(direction.hockey_stick(0.4).upper for direction in (recipe, recipe.reversed))
    assert worst == pytest.approx(0.018096, abs=5e-7)


def test_ten_thousand_outcomes_agree_with_numpy() -> None:
    rng = np.random.default_rng(20240607)
    weights = rng.integers(1, 10**6, size=(2, 10_000))
    P, Q = ({i: Fraction(int(w), int(row.sum())) for i, w in enumerate(row)} for row in weights)
    pair = FinitePair(P, Q)
    p, q = weights / weights.sum(axis=1, keepdims=True)
    for epsilon in (0.0, 0.5, 3.0):
        expected = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert pair.hockey_stick(epsilon).upper == pytest.approx(expected, rel=1e-11)
    assert pair.hockey_stick(pair.epsilon(1e-3).upper).lower <= 1e-3
    assert len(pair.curve()) > 9_000


# Edges


def test_an_epsilon_next_to_a_log_ratio_is_settled_by_more_bits() -> None:
    """Ratios within 2^-400 of e on either side, which 128 bits cannot tell apart."""
    below, above = exp_bounds(1.0, 400)
    for ratio, expected in ((below, False), (above, True)):
        p = Fraction(1, 2)
        pair = FinitePair({0: p, 1: 1 - p}, {0: p / ratio, 1: 1 - p / ratio})
        assert pair.exceeds(1.0, 0) is expected
        assert pair.worst_event(1.0).outcomes == ((0,) if expected else ())


def test_identical_and_disjoint_laws() -> None:
    same = FinitePair({"a": Fraction(1, 3), "b": Fraction(2, 3)}, {"b": Fraction(2, 3), "a": Fraction(1, 3)})
    assert same.epsilon(0.0).upper == 0.0
    assert math.copysign(1, same.hockey_stick(0.0).upper) == 1
    disjoint = FinitePair({"a": 1}, {"b": 1})
    assert disjoint.exact
    assert disjoint.epsilon(0.5).lower == math.inf
    assert disjoint.epsilon(1.0).upper == 0.0
    assert disjoint.hockey_stick(math.inf).lower == 1.0
    assert disjoint.event_at(0).outcomes == ("a",)


@pytest.mark.parametrize("epsilon", [1e5, 1e300, -1e5, -1e300, math.inf, -math.inf, 5e-324])
def test_any_epsilon_is_answered(epsilon: float) -> None:
    pair = FinitePair({0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)})
    bounds = pair.hockey_stick(epsilon)
    expected = 0.0 if epsilon > 2 else 1.0 if epsilon < -2 else 0.5
    assert bounds.lower == pytest.approx(expected)
    assert bounds.upper == pytest.approx(expected)


def test_all_nans_are_one_outcome_even_inside_tuples() -> None:
    P = {float("nan"): 0.5, 1.0: 0.5}
    Q = {np.float64("nan"): 0.5, 1.0: 0.5}
    assert FinitePair(P, Q).epsilon(0.0).upper == 0.0
    R: dict[object, Fraction] = {(nan, "x"): Fraction(1, 2) for nan in (float("nan"), float("nan"))}
    S: dict[object, Fraction] = {(float("nan"), "x"): Fraction(1)}
    assert len(R) == 2
    assert FinitePair(R, S).epsilon(0).upper == 0.0


def test_outcomes_that_python_holds_equal_are_one() -> None:
    assert FinitePair({1: 1}, {True: 1}).epsilon(0).upper == 0.0
    assert FinitePair({0.0: 1}, {-0.0: 1}).epsilon(0).upper == 0.0
    assert FinitePair({("float", (0.0).hex()): 1}, {("float", (-0.0).hex()): 1}).epsilon(0).lower == math.inf


def test_float_laws_are_read_as_the_numbers_they_are() -> None:
    P, Q = {0: 0.75, 1: 0.25}, {0: 0.1, 1: 0.9}
    pair = FinitePair(P, Q)
    assert pair.exact is False
    assert pair.least_factor(0) == Fraction(0.75) / Fraction(0.1)
    assert FinitePair({0: 1}, {0: 0.5, 1: 0.5}).exact is False


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({0: Fraction(1, 2)}, "sum to exactly 1, got 1/2"),
        ({0: 0.5, 1: 0.5 + 1e-8}, "sum to 1 within 1e-09"),
        ({0: math.nan, 1: 1.0}, "in \\[0, 1\\], got nan"),
        ({0: Fraction(-1, 2), 1: Fraction(3, 2)}, "in \\[0, 1\\]"),
        ({0: Fraction(1, 2), 1: 0.5}, "either Fractions or floats, got both"),
        ({}, "at least one outcome"),
        ({0: "1"}, "a probability, got '1'"),
        ([0.5, 0.5], "a mapping"),
        ({object(): 1.0}, "object"),
    ],
)
def test_what_is_not_a_law_is_refused(law: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        FinitePair(law, {0: 1})  # type: ignore[arg-type]


def test_a_fraction_law_and_a_float_law_make_no_pair() -> None:
    with pytest.raises(ValueError, match="got one of each"):
        FinitePair({0: Fraction(1, 3), 1: Fraction(2, 3)}, {0: 0.5, 1: 0.5})


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1])
def test_a_delta_that_is_no_probability_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="delta must be"):
        FinitePair({0: 1}, {0: 1}).epsilon(bad)
