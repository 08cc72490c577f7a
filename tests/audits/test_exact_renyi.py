"""Renyi and concentrated claims against closed forms and a dense grid of orders."""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import DpEvent
from dp_accounting.dp_event import ZCDpEvent
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accounting import Claim, RdpDpEvent, Relation, Trust, exp_bounds
from audits.exact import FinitePair, audit_exact, check_for
from audits.exact_checks import Findings
from audits.exact_renyi import LogMoments
from audits.neighbours import replace_one
from audits.verdicts import Status, Verdict
from mechanisms import as_mechanism

Law = dict[Hashable, Fraction]
TRUTH = Fraction(3, 4)
RESPONSE: tuple[Law, Law] = {0: TRUTH, 1: 1 - TRUTH}, {0: 1 - TRUTH, 1: TRUTH}


def findings(event: DpEvent, P: Law | dict[Hashable, float], Q: Law | dict[Hashable, float]) -> Findings:
    check = check_for(Claim(event, Relation.REPLACE_ONE, "test"))
    check.observe(FinitePair(P, Q), ("D", "D'"))
    return check.findings()


def answer(event: DpEvent, P: Law | dict[Hashable, float], Q: Law | dict[Hashable, float]) -> str:
    found = findings(event, P, Q)
    return "REFUTED" if found.violated else "OPEN" if found.undecided else "PROVED"


def divergence(order: float, P: Law, Q: Law) -> float:
    """D_order(P||Q) by its formula, 40 digits."""
    with mpmath.workdps(40):
        a = mpmath.mpf(order)
        terms = []
        for o, weight in P.items():
            p = mpmath.mpf(weight.numerator) / weight.denominator
            q = mpmath.mpf(Q[o].numerator) / Q[o].denominator
            if p > 0 and q == 0:
                return math.inf
            if p > 0:
                terms.append(p**a * q ** (1 - a))
        return float(mpmath.log(mpmath.fsum(terms)) / (a - 1))


ORDERS = (1.25, 2.0, 7.5, 64.0)


def test_renyi_orders_of_randomized_response() -> None:
    exact = [divergence(a, *RESPONSE) for a in ORDERS]
    assert answer(RdpDpEvent(ORDERS, tuple(exact)), *RESPONSE) == "PROVED"
    for i in range(len(ORDERS)):
        low = tuple(v - (1e-12 if i == j else -1.0) for j, v in enumerate(exact))
        found = findings(RdpDpEvent(ORDERS, low), *RESPONSE)
        assert found.violated
        assert dict(found.found)["order"] == (ORDERS[i], ORDERS[i])
        lower, upper = dict(found.found)["divergence"]
        assert lower - 1e-15 <= exact[i] <= upper + 1e-15


def test_zcdp_of_randomized_response() -> None:
    """D_a/a of randomized response falls in a: the sharp rho is KL = (2 truth - 1) ln(odds), approached at order 1."""
    rho = 0.5 * math.log(3)
    assert answer(ZCDpEvent(rho), *RESPONSE) == "PROVED"
    assert answer(ZCDpEvent(rho * (1 + 1e-9)), *RESPONSE) == "PROVED"
    assert answer(ZCDpEvent(rho * (1 - 1e-9)), *RESPONSE) == "REFUTED"
    # epsilon-DP implies epsilon^2/2-zCDP (Bun and Steinke 2016, Proposition 3.3).
    assert answer(ZCDpEvent(math.log(3) ** 2 / 2), *RESPONSE) == "PROVED"


def test_permute_and_flip_accounted_as_an_exponential_mechanism() -> None:
    """(.932, .068) against (.5, .5), claimed rho = .5: the sharp rho of this pair is .7275."""
    tail = exp_bounds(-2.0)[0] / 2
    P: Law = {0: 1 - tail, 1: tail}
    Q: Law = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    orders = 1 + np.geomspace(1e-4, 1e3, 2000)
    sharp = max(divergence(a, *pair) / a for a in orders for pair in ((P, Q), (Q, P)))
    assert sharp == pytest.approx(0.7275, abs=5e-5)
    assert answer(ZCDpEvent(0.5), P, Q) == "REFUTED"
    assert answer(ZCDpEvent(sharp * (1 - 1e-5)), P, Q) == "REFUTED"
    assert answer(ZCDpEvent(sharp * (1 + 1e-5)), P, Q) == "PROVED"


def test_a_bound_without_growth_is_a_bound_on_the_largest_loss() -> None:
    assert answer(ZCDpEvent(0.0, math.log(3)), *RESPONSE) == "PROVED"
    assert answer(ZCDpEvent(0.0, math.log(3) - 1e-12), *RESPONSE) == "REFUTED"
    same: Law = {0: Fraction(1)}
    assert answer(ZCDpEvent(0.0, 0.0), same, same) == "PROVED"
    assert answer(RdpDpEvent((2.0,), (0.0,)), same, same) == "PROVED"
    assert answer(RdpDpEvent((2.0,), (0.0,)), *RESPONSE) == "REFUTED"


def test_supports_that_differ_violate_every_renyi_claim() -> None:
    P: Law = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    Q: Law = {0: Fraction(1), 1: Fraction(0)}
    for event in (ZCDpEvent(1e6), RdpDpEvent((2.0,), (1e6,))):
        found = findings(event, P, Q)
        assert found.violated
        assert dict(found.found)["divergence"] == (math.inf, math.inf)


def test_float_laws() -> None:
    p = 0.75
    P: dict[Hashable, float] = {0: p, 1: 1 - p}
    Q: dict[Hashable, float] = {0: 1 - p, 1: p}
    assert answer(ZCDpEvent(0.55), P, Q) == "PROVED"
    assert answer(ZCDpEvent(0.54), P, Q) == "REFUTED"
    assert answer(RdpDpEvent((2.0,), (divergence(2.0, *RESPONSE),)), P, Q) == "PROVED"
    leak: dict[Hashable, float] = {0: 1 - 1e-12, 1: 1e-12}
    certain: dict[Hashable, float] = {0: 1.0}
    assert answer(ZCDpEvent(5.0), leak, certain) == "OPEN"


laws = st.lists(st.integers(1, 12), min_size=3, max_size=3).map(
    lambda w: {i: Fraction(x, sum(w)) for i, x in enumerate(w)}
)


@settings(max_examples=60)
@given(laws, laws, st.floats(1e-3, 1.0), st.floats(0.0, 0.2))
def test_zcdp_agrees_with_a_dense_grid_of_orders(P: Law, Q: Law, rho: float, xi: float) -> None:
    assume(P != Q)
    p, q = (np.array([float(x) for x in law.values()]) for law in (P, Q))
    t = np.geomspace(1e-6, 1e4, 4000)
    worst = -math.inf
    for one, other in ((p, q), (q, p)):
        loss = np.log(one / other)
        exponent = t[:, None] * loss + np.log(one)
        top = exponent.max(axis=1)
        K = top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
        worst = max(worst, float(np.max(K / t - xi - rho * (1 + t))))
    found = answer(ZCDpEvent(rho, xi), P, Q)
    if worst > 1e-6:
        assert found == "REFUTED"
    elif worst < -1e-6:
        assert found == "PROVED"


@given(laws, laws, st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=100))
def test_log_moments(P: Law, Q: Law, t: Fraction) -> None:
    moments = LogMoments(FinitePair(P, Q))
    expected = divergence(float(1 + t), P, Q)
    lower, upper = moments.bounds(t)
    assert lower == pytest.approx(expected, abs=1e-12)
    assert lower <= upper <= lower + 1e-13 * (1 + upper)
    assert moments.above(t) >= Fraction(lower) * t
    if P != Q:
        assert moments.at_most(t, t * Fraction(upper))
        assert not moments.at_most(t, t * Fraction(lower) * (1 - Fraction(1, 10**12)))


def test_the_verdict_says_what_was_compared() -> None:
    class Stated:
        def release(self, dataset: tuple[int, ...], *, rng: object) -> object:
            raise NotImplementedError

        def distribution(self, dataset: tuple[int, ...]) -> Law:
            return RESPONSE[dataset[0]]

    def audited(rho: float) -> Verdict:
        claim = Claim(ZCDpEvent(rho), Relation.REPLACE_ONE, "test")
        return audit_exact(as_mechanism(Stated()), claim, replace_one([0, 1], 1))

    right, wrong = audited(0.6), audited(0.3)
    assert (right.status, right.trust) == (Status.PROVED, Trust.EXACT)
    assert wrong.status is Status.REFUTED
    assert wrong.witness is not None
    assert "Renyi divergence of order" in wrong.witness.event
    assert wrong.witness.outcomes == (0,)
    assert any("Renyi" in note for note in right.notes)
    assert right.to_json()["claimed"] == {"epsilon": "inf", "delta": 0.0}
