"""Exhaustive audits of tiny mechanisms whose true epsilon is known by hand; every claim has a broken twin to refute."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from dp_accounting import DpEvent

from accounting import Claim, Relation, RelationMismatchError, Trust
from audits.exact import ExactAudit, FinitePair, audit_exact
from audits.exact_checks import ApproximateCheck, Where
from audits.neighbours import add_or_remove_one, explicit, replace_one
from audits.verdicts import Status, Verdict
from mechanisms import AdaptedMechanism, as_mechanism

SOURCE = "test"
LawOf = Callable[[Sequence[Any]], Any]


@dataclass
class Stated:
    """A mechanism that is nothing but its law; it counts how often the law is asked for."""

    law: LawOf
    name: str = "stated"
    ignores_order: bool = False
    calls: list[Any] = field(default_factory=list)

    def release(self, dataset: Sequence[Any], *, rng: object) -> Any:
        raise NotImplementedError

    def distribution(self, dataset: Sequence[Any]) -> Any:
        self.calls.append(dataset)
        return self.law(dataset)


def adapted(law: LawOf, *, ignores_order: bool = False) -> AdaptedMechanism:
    return as_mechanism(Stated(law, ignores_order=ignores_order))


def pure(epsilon: float, relation: str = "replace-one", promise: str | None = None) -> Claim:
    return Claim.pure(epsilon, relation=relation, source=SOURCE, promise=promise)


def approximate(epsilon: float, delta: float, relation: str = "replace-one") -> Claim:
    return Claim.approximate(epsilon, delta, relation=relation, source=SOURCE)


def responses(truth: Fraction | float) -> LawOf:
    """Randomized response on each bit: ln(truth/(1 - truth))-DP under replace-one, exactly."""

    def law(dataset: Sequence[int]) -> Mapping[Hashable, Any]:
        outcomes = itertools.product((0, 1), repeat=len(dataset))
        return {o: math.prod(truth if a == b else 1 - truth for a, b in zip(o, dataset, strict=True)) for o in outcomes}

    return law


def truncated_geometric(k: int, n: int = 5) -> LawOf:
    """A count on 0..n with two-sided geometric noise of ratio alpha = 2^k/(2^k + 1), clamped: ln(1 + 2^-k)-DP, exactly.

    Balcer and Vadhan (2018) take k = ceil(log2(2/epsilon)); often coded with the natural logarithm.
    """
    alpha = Fraction(2**k, 2**k + 1)

    def law(dataset: Sequence[int]) -> Mapping[Hashable, Any]:
        count = sum(dataset)
        inner: dict[Hashable, Fraction] = {z: (1 - alpha) / (1 + alpha) * alpha ** abs(z - count) for z in range(1, n)}
        return {0: alpha**count / (1 + alpha), **inner, n: alpha ** (n - count) / (1 + alpha)}

    return law


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


# What goes wrong in a user's code


def _raises(dataset: Sequence[int]) -> Any:
    return {0: Fraction(1, len(dataset))}


def _half_float(dataset: Sequence[int]) -> Any:
    return {0: 1.0} if dataset == (1, 1) else {0: Fraction(1, 2), 1: Fraction(1, 2)}


def _exits(dataset: Sequence[int]) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("law", "relation", "message"),
    [
        (_raises, "add-remove", "ZeroDivisionError"),
        (_half_float, "replace-one", "Fractions, or all floats"),
        (_exits, "replace-one", "SystemExit"),
        (lambda d: {0: Fraction(1, 3)}, "replace-one", "sum to exactly 1, got 1/3"),
        (lambda d: {0: math.nan}, "replace-one", "got nan"),
        (lambda d: [1.0], "replace-one", "a mapping"),
        (lambda d: None, "replace-one", "a mapping"),
        (lambda d: {0: 0.5, 1: Fraction(1, 2)}, "replace-one", "got both"),
    ],
)
def test_a_bad_distribution_gives_a_verdict_that_names_claim_dataset_and_rule(
    law: LawOf, relation: str, message: str
) -> None:
    domain = replace_one([0, 1], 2) if relation == "replace-one" else add_or_remove_one([0, 1], 2)
    found = audit_exact(adapted(law), pure(1.0, relation), domain, name="my claim")
    assert found.status is Status.INCONCLUSIVE
    assert found.error is not None
    assert "\n" not in found.error
    assert found.error.startswith("claim 'my claim': the distribution of stated on the dataset (")
    assert message in found.error
    assert message in found.summary()


def test_one_bad_dataset_does_not_hide_a_violation_elsewhere() -> None:
    law = responses(Fraction(9, 10))

    def broken(dataset: Sequence[int]) -> Any:
        if dataset == (0, 0):
            raise RuntimeError("no")
        return law(dataset)

    found = audit_exact(adapted(broken), pure(1.0), replace_one([0, 1], 2))
    assert found.status is Status.REFUTED
    assert found.error is not None
    assert (found.pairs_tried, found.pairs_total) == (2, 4)
    assert any("2 pairs could not be compared" in note for note in found.notes)
    harmless = audit_exact(adapted(broken), pure(3.0), replace_one([0, 1], 2))
    assert harmless.status is Status.INCONCLUSIVE


class UnknownDpEvent(DpEvent):
    """An event that no theorem of ours covers."""


def test_a_claim_of_unknown_kind_is_inconclusive() -> None:
    claim = Claim(UnknownDpEvent(), Relation.REPLACE_ONE, SOURCE)
    found = audit_exact(adapted(responses(Fraction(3, 4))), claim, replace_one([0, 1], 1))
    assert found.status is Status.INCONCLUSIVE
    assert found.error is not None
    assert "UnknownDpEvent" in found.error


def test_wrong_arguments_raise() -> None:
    mechanism, domain = adapted(responses(Fraction(3, 4))), replace_one([0, 1], 1)
    with pytest.raises(RelationMismatchError, match="add-remove, got replace-one"):
        audit_exact(mechanism, pure(1.0, "add-remove"), domain)
    with pytest.raises(TypeError, match="as_mechanism"):
        audit_exact(Stated(_raises), pure(1.0), domain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must offer distribution"):
        audit_exact(as_mechanism(lambda dataset: 0, name="sampler"), pure(1.0), domain)
    with pytest.raises(TypeError, match="claim must be a Claim"):
        audit_exact(mechanism, 1.0, domain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="domain must be"):
        audit_exact(mechanism, pure(1.0), [((0,), (1,))])  # type: ignore[arg-type]


# Stopping


@pytest.mark.parametrize(("truth", "status"), [(Fraction(3, 4), "INCONCLUSIVE"), (Fraction(99, 100), "REFUTED")])
def test_ctrl_c_keeps_what_was_found(truth: Fraction, status: str) -> None:
    law = responses(truth)

    def slow(dataset: Sequence[int]) -> Any:
        if dataset == (1, 1, 1):
            raise KeyboardInterrupt
        return law(dataset)

    found = audit_exact(adapted(slow), pure(1.1), replace_one([0, 1], 3))
    assert found.status == status
    assert found.interrupted
    assert 0 < found.pairs_tried < 12
    assert found.worst_pair is not None
    assert "interrupted by the user" in found.summary()


def test_it_stops_when_asked_and_tells_how_far_it_came() -> None:
    seen: list[tuple[int, int]] = []
    budget = iter([False, False, True])
    found = audit_exact(
        adapted(responses(Fraction(3, 4))),
        pure(1.1),
        replace_one([0, 1], 3),
        progress=lambda done, total: seen.append((done, total)),
        should_stop=lambda: next(budget),
    )
    assert found.status is Status.INCONCLUSIVE
    assert not found.interrupted
    assert found.pairs_tried == 3
    assert (seen[0], seen[-1]) == ((0, 12), (3, 12))


def test_an_audit_in_steps_can_be_asked_at_any_time() -> None:
    audit = ExactAudit(adapted(responses(Fraction(3, 4))), pure(1.1), replace_one([0, 1], 2))
    assert audit.verdict().status is Status.INCONCLUSIVE
    assert audit.verdict().worst_pair is None
    steps = audit.steps()
    assert next(steps) == 1
    assert audit.verdict().status is Status.INCONCLUSIVE
    assert audit.verdict().epsilon_upper == pytest.approx(math.log(3))
    assert list(steps) == [2, 3, 4]
    assert audit.verdict().status is Status.PROVED


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
