"""Exhaustive audits of tiny mechanisms whose true epsilon is known by hand; every claim has a broken twin to refute."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from dp_accounting import ComposedDpEvent, DpEvent, ZCDpEvent

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, Claim, RdpDpEvent, Relation, Trust
from audits.exact import ExactAudit, FinitePair, audit_exact
from audits.exact_checks import ApproximateCheck, Where
from audits.neighbours import add_or_remove_one, explicit, replace_one
from audits.verdicts import Status, Verdict
from mechanisms import AdaptedMechanism, as_mechanism
from tests.audits.stated import SOURCE, LawOf, Stated, adapted, approximate, pure, responses, truncated_geometric

# Right and wrong


def test_randomized_response_is_proved_at_its_epsilon_and_refuted_below() -> None:
    mechanism, domain = adapted(responses(Fraction(3, 4))), replace_one([0, 1], 3)
    right = audit_exact(mechanism, pure(math.log(3)), domain)
    assert right.status is Status.PROVED
    assert right.trust is Trust.EXACT
    assert (right.pairs_tried, right.pairs_total, right.witness) == (12, 12, None)
    assert right.epsilon_lower is not None
    assert right.epsilon_upper is not None
    assert right.epsilon_lower <= math.log(3) <= right.epsilon_upper
    assert right.delta_found == 0.0
    wrong = audit_exact(mechanism, pure(1.09), domain)
    assert wrong.status is Status.REFUTED
    assert wrong.epsilon_lower == right.epsilon_lower
    _check_witness(wrong, responses(Fraction(3, 4)))


def test_the_truncated_geometric_as_often_coded_is_refuted() -> None:
    """ceil(ln 20) = 3 gives ln(9/8) = .1178 for a claimed .1; ceil(log2 20) = 5 gives ln(33/32)."""
    domain = add_or_remove_one([0, 1], 5)
    claim = pure(0.1, "add-remove")
    broken = audit_exact(adapted(truncated_geometric(math.ceil(math.log(20)))), claim, domain)
    assert broken.status is Status.REFUTED
    assert broken.epsilon_lower == pytest.approx(math.log(9 / 8), rel=1e-15)
    assert broken.epsilon_lower == pytest.approx(0.1178, abs=5e-5)
    _check_witness(broken, truncated_geometric(3))
    repaired = audit_exact(adapted(truncated_geometric(math.ceil(math.log2(20)))), claim, domain)
    assert repaired.status is Status.PROVED
    assert repaired.epsilon_upper == pytest.approx(math.log(33 / 32), rel=1e-15)


def test_supports_that_differ_give_infinity() -> None:
    """A length that is released as it is."""
    found = audit_exact(adapted(lambda d: {len(d): 1}), pure(50.0, "add-remove"), add_or_remove_one([0], 2))
    assert found.status is Status.REFUTED
    assert found.epsilon_lower == math.inf
    assert found.witness is not None
    assert (found.witness.probability, found.witness.neighbour_probability) == (1.0, 0.0)
    assert found.to_json()["epsilon_lower"] == "inf"
    assert "infinite" in found.summary()


def test_a_release_over_a_threshold_has_the_delta_of_its_tail() -> None:
    """Count 1 + discrete Laplace(1), shown from 5 on: P[noise >= 4] = a^4/(1 + a), a = 1/e: .01339, claimed .00493."""
    with mpmath.workdps(30):
        a = mpmath.e**-1
        tail = [float((1 - a) / (1 + a) * a**z) for z in range(4, 60)]
        truth = float(a**4 / (1 + a))

    def law(dataset: Sequence[int]) -> Mapping[Hashable, float]:
        shown: dict[Hashable, float] = {5 + i: p for i, p in enumerate(tail)} if dataset else {}
        return {**shown, None: 1 - math.fsum(shown.values())}

    domain = explicit([([1], [])], "add-remove")
    broken = audit_exact(adapted(law), approximate(1.0, 0.00493, "add-remove"), domain)
    assert broken.status is Status.REFUTED
    assert broken.delta_found == pytest.approx(truth, rel=1e-12)
    assert broken.delta_found == pytest.approx(0.01339, abs=5e-6)
    assert broken.trust is Trust.IDEALISED
    assert audit_exact(adapted(law), approximate(1.0, 0.0134, "add-remove"), domain).status is Status.PROVED


@pytest.mark.parametrize("delta", [0.0, 0.1, 0.3])
def test_epsilon_at_delta_over_a_domain(delta: float) -> None:
    """One bit of randomized response at 3/4: P(E) - delta = c Q(E) gives c = (3/4 - delta)/(1/4)."""
    epsilon = math.log((0.75 - delta) / 0.25)
    domain = replace_one([0, 1], 2)
    mechanism = adapted(responses(Fraction(3, 4)))
    right = audit_exact(mechanism, approximate(epsilon, delta), domain)
    assert right.status is Status.PROVED
    assert right.epsilon_upper == pytest.approx(epsilon, rel=1e-15)
    assert audit_exact(mechanism, approximate(epsilon - 1e-12, delta), domain).status is Status.REFUTED
    if delta:
        assert audit_exact(mechanism, approximate(epsilon, delta - 1e-12), domain).status is Status.REFUTED


def test_one_direction_that_breaks_is_enough() -> None:
    """Only the larger dataset can give 1, so H in the other direction is 0 at epsilon = 1."""

    def law(dataset: Sequence[int]) -> Mapping[Hashable, Fraction]:
        leak = Fraction(len(dataset), 10)
        return {1: leak, 0: 1 - leak}

    full: list[int] = [7]
    empty: list[int] = []
    for pair in ((full, empty), (empty, full)):
        found = audit_exact(adapted(law), pure(1.0, "add-remove"), explicit([pair], "add-remove"))
        assert found.status is Status.REFUTED
        assert found.witness is not None
        assert (found.witness.dataset, found.witness.neighbour) == ((7,), ())
        assert found.witness.outcomes == (1,)


# Bounded range


def test_bounded_range_is_about_the_width_of_the_log_ratio() -> None:
    """One randomized response has log-ratios +-ln 3: range 2 ln 3, although it is ln 3-DP."""
    mechanism, domain = adapted(responses(Fraction(3, 4))), replace_one([0, 1], 2)
    claims = [
        Claim.bounded_range(eta, relation="replace-one", source=SOURCE)
        for eta in (2 * math.log(3), 2 * math.log(3) - 1e-12, 1.2)
    ]
    right, close, wrong = (audit_exact(mechanism, claim, domain) for claim in claims)
    assert [v.status for v in (right, close, wrong)] == [Status.PROVED, Status.REFUTED, Status.REFUTED]
    ((name, (lower, upper)),) = right.found
    assert name == "range"
    assert lower <= 2 * math.log(3) <= upper
    assert right.epsilon_upper == pytest.approx(math.log(3), rel=1e-15)
    assert wrong.witness is not None
    assert "2.19722 above" in wrong.witness.event


def test_an_exponential_mechanism_has_range_epsilon() -> None:
    """Weights r^(score), r rational, scores that move by at most 1: log-ratios within a window of width 2 ln r."""
    r = Fraction(3, 2)

    def law(dataset: Sequence[tuple[int, ...]]) -> Mapping[Hashable, Fraction]:
        weights = {c: r ** sum(c in record for record in dataset) for c in (0, 1)}
        return {c: w / sum(weights.values()) for c, w in weights.items()}

    domain = replace_one([(), (0,), (1,), (0, 1)], 2)
    eta = 2 * math.log(1.5)
    right = audit_exact(adapted(law), Claim.bounded_range(eta, relation="replace-one", source=SOURCE), domain)
    assert right.status is Status.PROVED
    assert dict(right.found)["range"][1] == pytest.approx(eta, rel=1e-15)
    wrong = audit_exact(adapted(law), Claim.bounded_range(0.99 * eta, relation="replace-one", source=SOURCE), domain)
    assert wrong.status is Status.REFUTED
    # Epsilon itself stays below eta/2 + something: the range claim is refuted although .99 eta-DP holds.
    assert wrong.epsilon_upper is not None
    assert wrong.epsilon_upper < 0.99 * eta


def test_bounded_range_needs_equal_supports() -> None:
    def law(dataset: Sequence[int]) -> Mapping[Hashable, Fraction]:
        return {0: Fraction(1, 2), dataset[0]: Fraction(1, 2)}

    claim = Claim.bounded_range(10.0, relation="replace-one", source=SOURCE)
    found = audit_exact(adapted(law), claim, replace_one([1, 2], 1))
    assert found.status is Status.REFUTED
    assert dict(found.found)["range"] == (math.inf, math.inf)
    assert found.to_json()["found"]["range"] == ["inf", "inf"]


# Tolerance


def test_the_tolerance_is_eight_units_in_the_last_place() -> None:
    domain = replace_one([0, 1], 1)
    claimed = math.log(3)

    def with_odds(epsilon: Fraction) -> AdaptedMechanism:
        """Log-odds equal to `epsilon` within 1e-40."""
        with mpmath.workdps(60):
            odds = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            exact = Fraction(int(odds * 10**50), 10**50)
        return adapted(responses(exact / (1 + exact)))

    ulp = Fraction(math.ulp(claimed))
    for units, status in ((-1, "PROVED"), (7, "PROVED"), (9, "REFUTED")):
        found = audit_exact(with_odds(Fraction(claimed) + units * ulp), pure(claimed), domain)
        assert found.status == status, units
        assert any("stands for the reals" in note for note in found.notes) is (units == 7)


def test_zero_is_not_widened() -> None:
    tiny = Fraction(1, 10**300)
    law = responses(Fraction(1, 2) + tiny)
    assert audit_exact(adapted(law), pure(0.0), replace_one([0, 1], 1)).status is Status.REFUTED
    leak = {0: {0: 1 - tiny, "leak": tiny}, 1: {0: 1}}
    found = audit_exact(adapted(lambda d: leak[d[0]]), pure(5.0), replace_one([0, 1], 1))
    assert found.status is Status.REFUTED
    assert audit_exact(adapted(responses(Fraction(1, 2))), pure(0.0), replace_one([0, 1], 2)).status is Status.PROVED


def test_float_laws_are_proved_at_their_rounding_and_refuted_beyond_1e_9() -> None:
    domain = replace_one([0, 1], 2)
    truth = math.exp(1.0) / (1 + math.exp(1.0))
    mechanism = adapted(responses(truth))
    right = audit_exact(mechanism, pure(1.0), domain)
    assert right.status is Status.PROVED
    assert right.trust is Trust.IDEALISED
    assert any("floating point" in note for note in right.notes)
    assert audit_exact(mechanism, pure(1.0 - 1e-7), domain).status is Status.REFUTED
    at_delta = approximate(0.5, 2 * truth - 1 - (math.exp(0.5) - 1) * (1 - truth))
    assert audit_exact(mechanism, at_delta, domain).status is Status.PROVED


@pytest.mark.parametrize(("mass", "status"), [(1e-12, "INCONCLUSIVE"), (1e-8, "REFUTED")])
@pytest.mark.parametrize("claim", [pure(1.0), Claim.bounded_range(1.0, relation="replace-one", source=SOURCE)])
def test_a_float_excess_that_rounding_may_have_made_is_left_open(mass: float, status: str, claim: Claim) -> None:
    leak: dict[int, dict[Hashable, float]] = {0: {0: 1 - mass, "leak": mass}, 1: {0: 1.0}}
    found = audit_exact(adapted(lambda d: leak[d[0]]), claim, replace_one([0, 1], 1))
    assert found.status == status
    assert found.epsilon_upper == math.inf
    if status == "INCONCLUSIVE":
        assert found.epsilon_lower is not None
        assert found.epsilon_lower <= 1e-8
        assert "Fractions" in found.summary()


@pytest.mark.parametrize(
    "event",
    [
        ApproximateDpEvent(1.0),
        BoundedRangeDpEvent(2.0),
        RdpDpEvent((2.0,), (0.5,)),
        ZCDpEvent(0.3),
        ComposedDpEvent([ApproximateDpEvent(0.5), ApproximateDpEvent(0.5)]),
    ],
)
def test_the_witness_is_a_sure_violation_not_the_largest_artefact(event: DpEvent) -> None:
    """The pair (0, 1) differs in support on a mass of 1e-12, the pair (0, 2) violates the claim plainly."""
    laws: dict[int, dict[Hashable, float]] = {
        0: {"a": 0.5, "b": 0.5},
        1: {"a": 0.5, "b": 0.5 - 1e-12, "rare": 1e-12},
        2: {"a": 0.9, "b": 0.1},
    }
    domain = explicit([((0,), (1,)), ((0,), (2,))], "replace-one")
    found = audit_exact(adapted(lambda d: laws[d[0]]), Claim(event, Relation.REPLACE_ONE, SOURCE), domain)
    assert found.status is Status.REFUTED
    assert found.witness is not None
    assert {found.witness.dataset, found.witness.neighbour} == {(0,), (2,)}
    assert found.epsilon_lower == pytest.approx(math.log(5), abs=1e-7)


# Enumeration


def test_a_mechanism_that_ignores_order_is_enumerated_by_multisets() -> None:
    law = truncated_geometric(3, n=3)
    domain, claim = add_or_remove_one([0, 1], 3), pure(0.12, "add-remove")
    sequences = audit_exact(adapted(law), claim, domain)
    multisets = audit_exact(adapted(law, ignores_order=True), claim, domain)
    assert multisets.pairs_tried == 2 * (1 + 2 + 3)
    assert multisets.pairs_tried < sequences.pairs_tried
    assert multisets.epsilon_upper == sequences.epsilon_upper
    assert any("multisets" in note for note in multisets.notes)


def test_each_law_is_computed_once() -> None:
    stated = Stated(responses(Fraction(3, 4)))
    audit_exact(as_mechanism(stated), pure(2.0), replace_one([0, 1], 3))
    assert len(stated.calls) == len(set(stated.calls)) == 8


def test_equal_pairs_of_laws_are_compared_once_but_all_count() -> None:
    """Randomized response on three bits: one pair up to names. A count up to 3: 0-0, 1-0, 1-1 (so 2-2), 2-1, 3-2."""
    seen: list[object] = []

    class Counting(ApproximateCheck):
        def observe(self, pair: FinitePair, where: Where) -> None:
            seen.append(where)
            super().observe(pair, where)

    for law, relation, domain, distinct in (
        (responses(Fraction(3, 4)), "replace-one", replace_one([0, 1], 3), 1),
        (truncated_geometric(3, n=3), "add-remove", add_or_remove_one([0, 1], 3), 5),
    ):
        seen.clear()
        audit = ExactAudit(adapted(law), pure(1.1, relation), domain)
        audit._check = Counting(1.1, 0.0)
        assert len(list(audit.steps())) == audit.verdict().pairs_tried == domain.count()
        assert len(seen) == distinct


def test_records_that_python_holds_equal_are_told_apart() -> None:
    """1 and True, 0.0 and -0.0: a mechanism may look at the type or the sign."""

    def law(dataset: Sequence[Any]) -> Mapping[Hashable, Any]:
        (record,) = dataset
        told = record is True or (record == 0 and math.copysign(1, record) < 0)
        return {0: Fraction(3, 4), 1: Fraction(1, 4)} if told else {0: Fraction(1, 2), 1: Fraction(1, 2)}

    for plain, telling in ((1, True), (0.0, -0.0), ((1,), (1,))):
        stated = Stated(law)
        domain = explicit([([plain], ["other"]), ([telling], ["other"])], "replace-one")
        stated.law = lambda d: {0: 1} if d == ("other",) or isinstance(d[0], tuple) else law(d)
        found = audit_exact(as_mechanism(stated), pure(0.1), domain)
        assert len(stated.calls) == (2 if isinstance(plain, tuple) else 3)
        assert found.status == ("PROVED" if isinstance(plain, tuple) else "REFUTED")


def test_unhashable_records_are_audited() -> None:
    def law(dataset: Sequence[Any]) -> Any:
        return responses(Fraction(3, 4))([record["bit"] for record in dataset])

    found = audit_exact(adapted(law), pure(1.1), replace_one([{"bit": 0}, {"bit": 1}], 2))
    assert found.status is Status.PROVED
    assert found.worst_pair is not None
    assert found.to_json()["worst_pair"]["dataset"] == [{"bit": 0}, {"bit": 0}]


def test_pairs_outside_the_promise_are_left_out_and_counted() -> None:
    """Randomized response that stops randomizing when all bits are 1."""

    class Promising(Stated):
        def check_dataset(self, dataset: Sequence[int]) -> None:
            if all(dataset):
                raise ValueError("some bit must be 0")

    law = responses(Fraction(3, 4))
    target = Promising(lambda d: {tuple(d): 1} if all(d) else law(d))
    domain = replace_one([0, 1], 3)
    kept = audit_exact(as_mechanism(target), pure(1.1, promise="some bit is 0"), domain)
    assert kept.status is Status.PROVED
    assert (kept.pairs_tried, kept.pairs_total) == (9, 9)
    assert any("3 pairs lie outside the promise" in note for note in kept.notes)
    assert "promised: some bit is 0" in kept.summary()
    assert audit_exact(as_mechanism(target), pure(1.1), domain).status is Status.REFUTED
    none = audit_exact(as_mechanism(target), pure(1.1, promise="some bit is 0"), explicit([([1], [0])], "replace-one"))
    assert none.status is Status.INCONCLUSIVE
    assert "promise" in none.summary()


def _check_witness(verdict: Verdict, law: LawOf) -> None:
    """The witness stands on its own: recompute both probabilities from the law and violate the claim with them."""
    witness = verdict.witness
    assert witness is not None
    assert witness.outcomes is not None
    here, there = (sum(law(d)[o] for o in witness.outcomes) for d in (witness.dataset, witness.neighbour))
    assert (witness.probability, witness.neighbour_probability) == (float(here), float(there))
    assert here > math.exp(verdict.claim_epsilon) * there + verdict.claim_delta
    assert verdict.epsilon_lower is not None
    assert math.log((here - verdict.claim_delta) / there) == pytest.approx(verdict.epsilon_lower, rel=1e-14)
