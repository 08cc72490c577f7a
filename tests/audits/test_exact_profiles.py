"""Whole-curve claims against curves known in closed form, and against enumeration on a dense grid."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, DpEvent, GaussianDpEvent, RandomizedResponseDpEvent, SelfComposedDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accounting import ApproximateDpEvent, Claim, DominatingPairDpEvent, Relation, Trust
from audits.exact import FinitePair, audit_exact
from audits.exact_checks import Findings
from audits.exact_profiles import Profile, ProfileCheck
from audits.neighbours import explicit, replace_one
from audits.verdicts import Status, Verdict
from mechanisms import as_mechanism

Law = dict[Hashable, Fraction]
Laws = Mapping[tuple[int, ...], Mapping[Any, Fraction] | Mapping[Any, float]]
THREE_QUARTERS = Fraction(3, 4)


class Stated:
    """A mechanism that is nothing but its laws, by dataset."""

    def __init__(self, laws: Laws) -> None:
        self.laws = laws

    def release(self, dataset: tuple[int, ...], *, rng: object) -> object:
        raise NotImplementedError

    def distribution(self, dataset: tuple[int, ...]) -> Mapping[Any, Fraction] | Mapping[Any, float]:
        return self.laws[tuple(dataset)]


class Endless:
    """A claimed curve that never stops falling."""

    def epsilon(self, delta: float) -> float:
        return math.inf


class Line(Endless):
    """A claimed curve: the largest of some lines in c = e^epsilon, each (value at c = 0, slope)."""

    def __init__(self, *lines: tuple[float, float], scale: float = 1.0) -> None:
        self.lines, self.scale = lines, scale

    def delta(self, epsilon: float) -> float:
        return self.scale * max(0.0, *(a + b * math.exp(epsilon) for a, b in self.lines))


def response(truth: Fraction) -> dict[tuple[int, ...], Law]:
    return {(0,): {0: truth, 1: 1 - truth}, (1,): {0: 1 - truth, 1: truth}}


def audit_event(event: DpEvent, laws: Laws) -> Verdict:
    claim = Claim(event, Relation.REPLACE_ONE, "test")
    return audit_exact(as_mechanism(Stated(laws)), claim, replace_one([0, 1], 1))


def check(profile: Profile, *pairs: tuple[Law, Law]) -> Findings:
    checker = ProfileCheck(profile)
    for number, (P, Q) in enumerate(pairs):
        checker.observe(FinitePair(P, Q), ((number,), (-number,)))
    return checker.findings()


def test_a_mechanism_with_exactly_the_claimed_curve_is_proved() -> None:
    found = audit_event(RandomizedResponseDpEvent(0.5, 2), response(THREE_QUARTERS))
    assert found.status is Status.PROVED
    assert found.trust is Trust.IDEALISED
    assert audit_event(RandomizedResponseDpEvent(0.5 + 1e-6, 2), response(THREE_QUARTERS)).status is Status.REFUTED


def test_two_responses_have_the_curve_of_the_composition() -> None:
    one = response(THREE_QUARTERS)
    laws = {d: {(a, b): law[a] * law[b] for a in law for b in law} for d, law in one.items()}
    event = SelfComposedDpEvent(ApproximateDpEvent(math.log(3)), 2)
    assert audit_event(event, laws).status is Status.PROVED
    less = ComposedDpEvent([ApproximateDpEvent(math.log(3)), ApproximateDpEvent(math.log(3) - 1e-4)])
    refuted = audit_event(less, laws)
    assert refuted.status is Status.REFUTED
    assert refuted.witness is not None
    assert refuted.witness.outcomes is not None
    there, here = (sum(laws[d][o] for o in refuted.witness.outcomes) for d in ((1,), (0,)))
    p, q = (here, there) if refuted.witness.dataset == (0,) else (there, here)
    assert p > math.exp(refuted.claim_epsilon) * q + refuted.claim_delta


def test_a_composition_of_pure_claims_is_reported_and_compared_at_delta_0() -> None:
    """The sum of the largest losses is claimed; a violation on a mass of 1e-20 is one all the same."""
    truth = Fraction(3, 4)
    event = ComposedDpEvent([ApproximateDpEvent(math.log(3) / 2), ApproximateDpEvent(math.log(3) / 2)])
    tiny = Fraction(1, 10**20)
    rare: dict[tuple[int, ...], Law] = {
        (0,): {0: Fraction(1, 2) - tiny, 1: Fraction(1, 2) - tiny, 2: 2 * tiny},
        (1,): {0: Fraction(1, 2) - tiny / 2, 1: Fraction(1, 2) - tiny / 2, 2: tiny},
    }
    right = audit_event(ComposedDpEvent([ApproximateDpEvent(0.35), ApproximateDpEvent(0.35)]), rare)
    wrong = audit_event(ComposedDpEvent([ApproximateDpEvent(0.3), ApproximateDpEvent(0.3)]), rare)
    assert right.status is Status.PROVED
    assert wrong.status is Status.REFUTED
    for found, claimed in ((right, 0.7), (wrong, 0.6)):
        assert found.claim_epsilon == pytest.approx(claimed)
        assert found.claim_delta == 0.0
        assert found.epsilon_lower == pytest.approx(math.log(2), rel=1e-14)
    elsewhere = audit_event(event, response(truth))
    assert elsewhere.status is Status.REFUTED
    assert elsewhere.claim_delta > 0


def test_a_claim_given_as_a_dominating_pair() -> None:
    laws = response(Fraction(7, 10))
    assert audit_event(DominatingPairDpEvent((0.7, 0.3), (0.3, 0.7)), laws).status is Status.PROVED
    assert audit_event(DominatingPairDpEvent((0.69, 0.31), (0.31, 0.69)), laws).status is Status.REFUTED


@pytest.mark.parametrize(("sigma", "status"), [(1.0, "PROVED"), (1.01, "REFUTED")])
def test_gaussian_differential_privacy(sigma: float, status: str) -> None:
    """Gaussian noise of scale 1 at distance 2 (replace-one), seen through bins of width .02: below its own curve, and
    above that of one per cent more noise.
    """
    edges = np.linspace(-8, 8, 801)
    laws: dict[tuple[int, ...], dict[Hashable, float]] = {}
    for dataset, location in (((0,), -1.0), ((1,), 1.0)):
        below, above = stats.norm(location).cdf(edges), stats.norm(location).sf(edges)
        # Differences of the smaller tail, so that every mass is accurate relative to itself.
        inner = np.where(edges[1:] <= location, np.diff(below), -np.diff(above))
        masses = np.concatenate([below[:1], inner, above[-1:]])
        laws[dataset] = {i: float(p) for i, p in enumerate(masses)}
    found = audit_event(GaussianDpEvent(sigma), laws)
    assert found.status == status


def test_a_claim_may_dip_below_a_found_chord_between_its_breakpoints() -> None:
    """F = 3/4 - c/4 on [1, 3]; the claim meets it at both ends and is 1/20 lower at c = 2."""
    pair = (response(THREE_QUARTERS)[(0,)], response(THREE_QUARTERS)[(1,)])
    dipping = Line((0.8, -0.3), (0.6, -0.2))
    found = check(dipping, pair)
    assert found.violated
    assert found.claim_epsilon == pytest.approx(math.log(2), abs=0.3)
    touching = Line((0.75, -0.25))
    assert not check(touching, pair).violated
    assert check(touching, pair).undecided is None
    below = check(Line((0.75, -0.25), scale=1 - 1e-6), pair)
    assert below.violated


def test_a_curve_that_touches_a_chord_inside_is_proved() -> None:
    """F = 3/4 - c/4 on [1, 3]; the claim is strictly convex and its tangent at c = 3/2 is F."""
    pair = (response(THREE_QUARTERS)[(0,)], response(THREE_QUARTERS)[(1,)])

    class Touching(Endless):
        def delta(self, epsilon: float) -> float:
            c = math.exp(epsilon)
            return 0.375 * math.exp(-(c - 1.5) / 1.5)

    found = check(Touching(), pair)
    assert not found.violated
    assert found.undecided is None

    class Crossing(Touching):
        def delta(self, epsilon: float) -> float:
            return super().delta(epsilon) * (1 - 1e-6)

    assert check(Crossing(), pair).violated


def test_mass_outside_the_support_needs_a_claim_that_allows_it() -> None:
    leak = Fraction(1, 1000)
    pair: tuple[Law, Law] = {0: 1 - leak, "leak": leak}, {0: Fraction(1)}
    assert check(Line((1e-3, 0.0)), pair).undecided is None
    assert not check(Line((1e-3, 0.0)), pair).violated
    assert check(Line((0.999e-3, 0.0)), pair).violated
    # The Gaussian curve ends below any mass.
    event = GaussianDpEvent(0.5)
    claim = Claim(event, Relation.REPLACE_ONE, "test")
    stated = Stated({(0,): pair[0], (1,): pair[1]})
    assert audit_exact(as_mechanism(stated), claim, explicit([((0,), (1,))], "replace-one")).status is Status.REFUTED


def test_an_excess_within_rounding_is_left_open() -> None:
    """H is 1e-13 above a claimed curve: less than its float evaluation is trusted to."""
    leak = Fraction(1, 10**13)
    pair: tuple[Law, Law] = {0: 1 - leak, "leak": leak}, {0: Fraction(1)}
    found = check(Line((0.0, 0.0)), pair)
    assert not found.violated
    assert found.undecided is not None
    assert "rounding" in found.undecided


def laws(size: int) -> st.SearchStrategy[Law]:
    weights = st.lists(st.integers(0, 12), min_size=size, max_size=size).filter(any)
    return weights.map(lambda w: {i: Fraction(x, sum(w)) for i, x in enumerate(w)})


several = st.integers(2, 5).flatmap(lambda n: st.lists(st.tuples(laws(n), laws(n)), min_size=1, max_size=4))


@settings(max_examples=150)
@given(several, st.floats(0.5, 3.0), st.floats(0.02, 2.0), st.floats(0.0, 0.05))
def test_answers_agree_with_a_dense_grid(pairs: list[tuple[Law, Law]], scale: float, rate: float, floor: float) -> None:
    """Claims ``floor + scale e^{-rate c}``, convex in c; the found curve by the definition, on 4000 points."""

    class Claimed(Endless):
        def delta(self, epsilon: float) -> float:
            return floor + scale * math.exp(-rate * math.exp(epsilon))

    c = np.geomspace(1.0, 1e6, 4001)
    F = np.zeros_like(c)
    for P, Q in pairs:
        p, q = (np.array([float(law[o]) for o in P]) for law in (P, Q))
        for one, other in ((p, q), (q, p)):
            F = np.maximum(F, np.maximum(one[:, None] - c * other[:, None], 0).sum(axis=0))
    gap = floor + scale * np.exp(-rate * c) - F
    found = check(Claimed(), *pairs)
    if gap.min() < -1e-6:
        assert found.violated
    elif gap.min() > 1e-4:
        assert not found.violated
        assert found.undecided is None
    if found.violated:
        assert found.delta_found is not None
        assert found.delta_found > found.claim_delta


@given(several)
def test_the_pooled_curve_is_the_largest_of_all(pairs: list[tuple[Law, Law]]) -> None:
    """A claim equal to the pooled curve is never refuted; one a thousandth lower is, wherever it has mass."""

    class Pooled(Endless):
        def __init__(self, scale: Fraction) -> None:
            self.scale = scale

        def delta(self, epsilon: float) -> float:
            c = Fraction(math.exp(epsilon))
            found = [FinitePair(P, Q) for P, Q in pairs]
            return float(self.scale * max(h for f in found for h in (f.divergence(c), f.reversed.divergence(c))))

    same = check(Pooled(Fraction(1)), *pairs)
    assert not same.violated
    assert same.undecided is None
    if Pooled(Fraction(1)).delta(0.0) > 0:
        assert check(Pooled(Fraction(999, 1000)), *pairs).violated
