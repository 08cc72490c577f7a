"""Exact audits when a user's code misbehaves, when arguments are wrong, and when the user stops them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from dp_accounting import DpEvent

from accounting import Claim, Relation, RelationMismatchError
from audits.exact import ExactAudit, audit_exact
from audits.neighbours import add_or_remove_one, replace_one
from audits.verdicts import Status
from mechanisms import as_mechanism
from tests.audits.stated import SOURCE, LawOf, Stated, adapted, pure, responses


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
