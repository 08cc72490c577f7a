"""The numeraire bet against independent derivations: a general convex solver, a linear program, exact vertices, closed
forms.

Fairness is the property everything else rests on, so it is checked three ways, and with factors from arbitrary dual
numbers, since it must not depend on the solver.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from audits.numeraire import factors, numeraire, worst_null_mean

Array = npt.NDArray[np.float64]

EPSILONS = (0.0, 0.1, 1.0, 4.0)
DELTAS = (0.0, 1e-5, 0.01, 0.3)


def laws(seed: int, categories: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(categories, 0.6), size=2)
    return p, q


def largest_mean(a: Array, b: Array, epsilon: float, delta: float) -> float:
    """sup of E_p0[a] + E_q0[b] over the null, by linear programming: unknowns p0, q0 and the two positive parts."""
    size, c = len(a), math.exp(epsilon)
    one, zero, eye = np.ones(size), np.zeros(size), np.eye(size)
    null = np.zeros((size, size))
    solution = linprog(
        -np.concatenate([a, b, zero, zero]),
        A_ub=np.vstack(
            [
                np.hstack([eye, -c * eye, -eye, null]),
                np.hstack([-c * eye, eye, null, -eye]),
                np.concatenate([zero, zero, one, zero]),
                np.concatenate([zero, zero, zero, one]),
            ]
        ),
        b_ub=np.concatenate([zero, zero, [delta, delta]]),
        A_eq=np.vstack([np.concatenate([one, zero, zero, zero]), np.concatenate([zero, one, zero, zero])]),
        b_eq=[1.0, 1.0],
        bounds=(0.0, None),
        method="highs",
    )
    assert solution.success
    return float(-solution.fun)


def smallest_divergence(p: Array, q: Array, epsilon: float, delta: float) -> float:
    """min of KL(p || p0) + KL(q || q0) over the null, by SLSQP on the primal problem."""
    size, c = len(p), math.exp(epsilon)
    one, zero, eye, null = np.ones(size), np.zeros(size), np.eye(size), np.zeros((size, size))
    slack = np.vstack([np.hstack([-eye, c * eye, eye, null]), np.hstack([c * eye, -eye, null, eye])])
    totals = np.vstack([np.concatenate([one, zero, zero, zero]), np.concatenate([zero, one, zero, zero])])
    caps = np.vstack([np.concatenate([zero, zero, one, zero]), np.concatenate([zero, zero, zero, one])])
    found = minimize(
        lambda z: -(p @ np.log(z[:size]) + q @ np.log(z[size : 2 * size])),
        np.concatenate([one / size, one / size, zero, zero]),
        jac=lambda z: np.concatenate([-p / z[:size], -q / z[size : 2 * size], zero, zero]),
        constraints=[
            {"type": "eq", "fun": lambda z: totals @ z - 1.0, "jac": lambda _: totals},
            {"type": "ineq", "fun": lambda z: slack @ z, "jac": lambda _: slack},
            {"type": "ineq", "fun": lambda z: delta - caps @ z, "jac": lambda _: -caps},
        ],
        bounds=[(1e-12, 1.0)] * (2 * size) + [(0.0, 1.0)] * (2 * size),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert found.success
    return float(found.fun + p @ np.log(p) + q @ np.log(q))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_growth_equals_the_smallest_divergence_found_by_a_general_solver(epsilon: float, delta: float) -> None:
    for seed in range(4):
        p, q = laws(seed, 2 + seed)
        p, q = 0.99 * p + 0.01 / len(p), 0.99 * q + 0.01 / len(q)
        expected = smallest_divergence(p, q, epsilon, delta)
        assert numeraire(p, q, epsilon=epsilon, delta=delta).growth == pytest.approx(expected, abs=1e-7)


@given(
    seed=st.integers(0, 10**6),
    categories=st.integers(1, 6),
    epsilon=st.one_of(st.just(0.0), st.floats(1e-3, 6.0)),
    delta=st.one_of(st.just(0.0), st.floats(1e-9, 1.0)),
)
def test_bets_are_fair(seed: int, categories: int, epsilon: float, delta: float) -> None:
    p, q = laws(seed, categories)
    bet = numeraire(p, q, epsilon=epsilon, delta=delta)
    # A category outside the K ones is part of the outcome space too.
    a, b = np.append(bet.a, bet.alpha), np.append(bet.b, bet.beta)
    assert np.all(a >= 0.0)
    assert np.all(b >= 0.0)
    assert worst_null_mean(a, b, epsilon=epsilon, delta=delta) <= 2.0 + 1e-12
    assert largest_mean(a, b, epsilon, delta) <= 2.0 + 1e-7


@given(
    seed=st.integers(0, 10**6),
    epsilon=st.floats(0.0, 6.0),
    delta=st.one_of(st.just(0.0), st.floats(1e-9, 1.0)),
    dual=st.tuples(*[st.floats(0.0, 5.0)] * 4).filter(lambda numbers: numbers[0] + numbers[1] > 1e-3),
)
def test_factors_are_fair_whatever_the_solver_returns(
    seed: int, epsilon: float, delta: float, dual: tuple[float, float, float, float]
) -> None:
    p, q = laws(seed, 5)
    a, b, _ = factors(np.array([dual]), p[None], q[None], np.exp([epsilon]), np.array([delta]))
    assert worst_null_mean(a[0], b[0], epsilon=epsilon, delta=delta) <= 2.0 + 1e-12


def test_a_greedier_bet_is_unfair() -> None:
    """Control of the two tests above: raising the factors by a hundredth of a per cent is noticed."""
    p, q = np.array([0.8, 0.2]), np.array([0.2, 0.8])
    for delta in DELTAS:
        bet = numeraire(p, q, epsilon=0.5, delta=delta)
        assert worst_null_mean(1.0001 * bet.a, 1.0001 * bet.b, epsilon=0.5, delta=delta) > 2.0 + 1e-5
        assert largest_mean(1.0001 * bet.a, 1.0001 * bet.b, 0.5, delta) > 2.0 + 1e-5


@given(
    seed=st.integers(0, 10**6),
    categories=st.integers(1, 6),
    epsilon=st.one_of(st.just(0.0), st.floats(1e-3, 5.0)),
    delta=st.one_of(st.just(0.0), st.floats(1e-6, 1.0)),
)
def test_worst_null_mean_is_the_linear_programs_value(seed: int, categories: int, epsilon: float, delta: float) -> None:
    a, b = np.random.default_rng(seed).exponential(size=(2, categories))
    expected = largest_mean(a, b, epsilon, delta)
    assert worst_null_mean(a, b, epsilon=epsilon, delta=delta) == pytest.approx(expected, abs=1e-6)


def null_vertices(c: Fraction, delta: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Vertices of the null for two categories, as the probabilities (a, b) of the first: exact crossings of its
    edges."""
    lines = [
        (Fraction(1), -c, delta),
        (-c, Fraction(1), delta),
        (Fraction(-1), c, c - 1 + delta),
        (c, Fraction(-1), c - 1 + delta),
        (Fraction(1), Fraction(0), Fraction(1)),
        (Fraction(0), Fraction(1), Fraction(1)),
        (Fraction(-1), Fraction(0), Fraction(0)),
        (Fraction(0), Fraction(-1), Fraction(0)),
    ]
    found = []
    for (r, s, t), (u, v, w) in itertools.combinations(lines, 2):
        determinant = r * v - s * u
        if determinant == 0:
            continue
        point = ((t * v - s * w) / determinant, (r * w - t * u) / determinant)
        if all(x * point[0] + y * point[1] <= z for x, y, z in lines):
            found.append(point)
    return found


@pytest.mark.parametrize("delta", DELTAS)
def test_means_at_the_vertices_of_the_null_of_two_categories(delta: float) -> None:
    """In exact arithmetic, for the float factors as they are: the sum of means and the mean of the product."""
    for epsilon, (p1, q1) in itertools.product((0.1, 1.0), ((0.9, 0.1), (0.3, 0.01), (0.02, 0.4), (0.999, 0.5))):
        bet = numeraire([p1, 1.0 - p1], [q1, 1.0 - q1], epsilon=epsilon, delta=delta)
        a, b = [Fraction(float(x)) for x in bet.a], [Fraction(float(x)) for x in bet.b]
        for p0, q0 in null_vertices(Fraction(math.exp(epsilon)), Fraction(delta)):
            mean_a, mean_b = p0 * a[0] + (1 - p0) * a[1], q0 * b[0] + (1 - q0) * b[1]
            assert mean_a + mean_b <= 2
            assert mean_a * mean_b <= 1


def test_the_product_has_mean_at_most_one_over_random_members_of_the_null() -> None:
    rng = np.random.default_rng(7)
    c, delta = math.exp(0.7), 0.05
    p, q = laws(3, 6)
    bet = numeraire(p, q, epsilon=0.7, delta=delta)
    tried = 0
    for _ in range(4000):
        p0 = rng.dirichlet(np.ones(6))
        mixed = rng.uniform(0.0, 1.0)
        q0 = mixed * p0 + (1.0 - mixed) * rng.dirichlet(np.ones(6))
        inside = np.maximum(p0 - c * q0, 0.0).sum() <= delta and np.maximum(q0 - c * p0, 0.0).sum() <= delta
        if inside:
            tried += 1
            assert (p0 @ bet.a) * (q0 @ bet.b) <= 1.0
    assert tried > 500


@pytest.mark.parametrize(("true", "limit"), [(1.1, 1573.0), (1.2, 407.0), (1.5, 72.6), (2.0, 22.3), (4.0, 6.2)])
def test_randomized_response(true: float, limit: float) -> None:
    """Here the projection is randomized response at the claimed epsilon, by symmetry; the limits are
    THEORY-audits.md's."""
    a, a0 = 1.0 / (1.0 + math.exp(-true)), 1.0 / (1.0 + math.exp(-1.0))
    expected = 2.0 * (a * math.log(a / a0) + (1.0 - a) * math.log((1.0 - a) / (1.0 - a0)))
    bet = numeraire([a, 1.0 - a], [1.0 - a, a], epsilon=1.0)
    assert bet.growth == pytest.approx(expected, rel=1e-10)
    assert math.log(20.0) / float(bet.growth) == pytest.approx(limit, rel=5e-3)
    assert bet.a == pytest.approx([a / a0, (1.0 - a) / (1.0 - a0)], rel=1e-9)


def test_threshold_release() -> None:
    """1 + discrete Laplace(1), released if at least 5, against nothing: a delta-claim with q = 0 on the event (limit
    1253)."""
    decay = math.exp(-1.0)
    tail = decay**4 / (1.0 + decay)
    bet = numeraire([1.0 - tail, tail], [1.0, 0.0], epsilon=1.0, delta=0.0049263)
    assert math.log(20.0) / float(bet.growth) == pytest.approx(1253.0, rel=2e-3)


def test_one_claim_inside_the_null_is_not_bet_against() -> None:
    inside = numeraire([0.5, 0.5], [0.4, 0.6], epsilon=0.3)
    assert inside.growth == 0.0
    assert np.all(inside.a == 1.0)
    assert np.all(inside.b == 1.0)
    nothing_claimed = numeraire([1.0, 0.0], [0.0, 1.0], epsilon=0.0, delta=1.0)
    assert nothing_claimed.growth == 0.0


def test_growth_falls_with_the_claim_and_vanishes_where_it_holds() -> None:
    p, q = laws(11, 5)
    for delta in (0.0, 0.02):
        growth = numeraire(p, q, epsilon=np.linspace(0.0, 12.0, 40), delta=delta).growth
        assert np.all(np.diff(growth) <= 1e-12)
    true = float(np.max(np.abs(np.log(p / q))))
    assert numeraire(p, q, epsilon=true * 1.0001).growth == 0.0
    assert numeraire(p, q, epsilon=true * 0.999).growth > 0.0


def test_sides_are_treated_alike() -> None:
    p, q = laws(5, 4)
    for delta in DELTAS:
        one, other = numeraire(p, q, epsilon=0.4, delta=delta), numeraire(q, p, epsilon=0.4, delta=delta)
        assert one.growth == pytest.approx(float(other.growth), rel=1e-9, abs=1e-12)
        assert one.a == pytest.approx(other.b, abs=1e-5)


def test_many_problems_at_once_are_the_problems_one_by_one() -> None:
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(3), size=(2, 5, 1)), rng.dirichlet(np.ones(3), size=(2, 5, 1))
    epsilon, delta = np.array([0.1, 0.5, 1.0]), np.array([[0.0], [0.01]])[:, :, None]
    bet = numeraire(p, q, epsilon=epsilon, delta=np.broadcast_to(delta, (2, 5, 3)))
    assert bet.a.shape == (2, 5, 3, 3)
    for i, j, k in itertools.product(range(2), range(5), range(3)):
        single = numeraire(p[i, j, 0], q[i, j, 0], epsilon=epsilon[k], delta=float(delta[i, 0, 0]))
        assert bet.growth[i, j, k] == pytest.approx(float(single.growth), abs=1e-10)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        numeraire([0.5, float("nan")], [0.5, 0.5], epsilon=1.0)
    with pytest.raises(ValueError, match="non-negative"):
        numeraire([1.5, -0.5], [0.5, 0.5], epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        numeraire([0.5, 0.5], [0.5, 0.5], epsilon=-1.0)
    with pytest.raises(ValueError, match="epsilon"):
        numeraire([0.5, 0.5], [0.5, 0.5], epsilon=1.0, delta=1.5)
