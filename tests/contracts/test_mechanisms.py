"""What every registered mechanism owes, whoever wrote it: run over the registry.

Each statistical test is seeded, has a false-alarm rate of 1e-6, and a control that it must reject.
"""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, Relation
from mechanisms import AdaptedMechanism, AuditCase, Registration, as_mechanism, registered
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6
DRAWS = 6_000


@dataclass(frozen=True)
class Entry:
    registration: Registration
    case: AuditCase
    mechanism: AdaptedMechanism

    def pairs(self) -> Any:
        return self.case.domain.pairs(self.mechanism.ignores_order)

    def datasets(self, count: int) -> list[tuple[Any, ...]]:
        """A few datasets of the domain, spread out, each once."""
        every = list(dict.fromkeys(itertools.chain.from_iterable(itertools.islice(self.pairs(), 400))))
        return every[:: max(1, len(every) // count)][:count]


ENTRIES = [
    Entry(registration, case, as_mechanism(case.mechanism))
    for registration in registered()
    for case in registration.cases()
]


def each(entries: list[Entry]) -> pytest.MarkDecorator:
    names = [f"{entry.registration.name}: {entry.case.label}" for entry in entries]
    marked = [pytest.param(entry, marks=[pytest.mark.slow] * entry.case.thorough) for entry in entries]
    return pytest.mark.parametrize("entry", marked, ids=names)


each_entry = each(ENTRIES)


def test_the_mechanisms_of_the_paper_are_there() -> None:
    names = {registration.name for registration in registered()}
    assert {"label-boost-carrier", "label-boost-public", "macro-block", "amplified-reservoir"} <= names


@pytest.mark.parametrize("registration", registered(), ids=lambda registration: registration.name)
def test_cases_are_built_when_asked_and_named_apart(registration: Registration) -> None:
    first, second = registration.cases(), registration.cases()
    assert first
    assert [case.label for case in first] == [case.label for case in second]
    assert len({case.label for case in first}) == len(first)
    assert all(a.mechanism is not b.mechanism for a, b in zip(first, second, strict=True))


@each_entry
def test_the_claim_is_there_and_agrees_with_the_listing(entry: Entry) -> None:
    claim, registration = entry.case.claim, entry.registration
    assert claim.source.strip()
    assert (claim.promise is None) == (registration.promise is None)
    assert entry.case.domain.relation is claim.relation
    assert claim.relation is registration.relation
    if entry.case.paper_epsilon is not None:
        assert entry.case.paper_source
        assert claim.epsilon(entry.case.paper_delta or 0.0) <= entry.case.paper_epsilon + 1e-9
    assert f"under {'replace-one' if claim.relation is Relation.REPLACE_ONE else 'add-remove'}" in claim.statement()


@each_entry
def test_the_law_is_a_law_of_fractions(entry: Entry) -> None:
    for dataset in entry.datasets(4):
        law = entry.mechanism.distribution(dataset)
        assert all(isinstance(probability, Fraction) for probability in law.values())
        assert sum(law.values()) == 1


@each_entry
def test_equal_seeds_replay_and_unequal_ones_differ(entry: Entry) -> None:
    assert entry.mechanism.replayable
    dataset = entry.datasets(1)[0]
    one, again, other = (
        list(entry.mechanism.release_many(dataset, 40, rng=np.random.default_rng(seed))) for seed in (1, 1, 2)
    )
    assert one == again
    # Where one outcome has nearly all the mass, forty draws may well agree.
    assert one != other or max(entry.mechanism.distribution(dataset).values()) > 0.9
    first, repeat = (entry.mechanism.release(dataset, rng=np.random.default_rng(3)) for _ in range(2))
    assert first == repeat


@each_entry
def test_system_entropy_gives_outcomes_of_the_law(entry: Entry) -> None:
    dataset = entry.datasets(1)[0]
    law = entry.mechanism.distribution(dataset)
    assert entry.mechanism.release(dataset, rng=None) in law
    assert set(entry.mechanism.release_many(dataset, 20, rng=None)) <= set(law)


@each_entry
def test_draws_have_the_law(entry: Entry) -> None:
    dataset = entry.datasets(3)[-1]
    law = entry.mechanism.distribution(dataset)
    drawn = [_plain(o) for o in entry.mechanism.release_many(dataset, DRAWS, rng=np.random.default_rng(71))]
    assert p_value(drawn, law) > FALSE_ALARM
    if len(law) > 1 and max(law.values()) > 0.1:
        assert p_value(drawn, shifted(law)) < FALSE_ALARM


def _plain(outcome: Any) -> Any:
    return outcome.item() if isinstance(outcome, np.generic) else outcome


@each([entry for entry in ENTRIES if entry.mechanism.ignores_order])
def test_order_is_ignored_where_declared(entry: Entry) -> None:
    rng = np.random.default_rng(72)
    for dataset in entry.datasets(2):
        shuffled = tuple(dataset[i] for i in rng.permutation(len(dataset)))
        assert entry.mechanism.distribution(shuffled) == entry.mechanism.distribution(dataset)


@each_entry
def test_the_claim_holds_on_every_pair(entry: Entry) -> None:
    """Largest ratio, and for bounded range the window of ratios, in Fractions against 40-digit logarithms.

    Control: on an extremal case the claim less 1 % must fail, so a claim that is too small would be seen.
    """
    event = entry.case.claim.event
    if isinstance(event, ApproximateDpEvent) and event.delta > 0:
        _check_approximate(entry, event)
        return
    largest, widest = Fraction(1), Fraction(1)
    for one, other in entry.pairs():
        p, q = entry.mechanism.distribution(one), entry.mechanism.distribution(other)
        assert p.keys() == q.keys()
        ratios = [Fraction(p[outcome]) / Fraction(q[outcome]) for outcome in p]
        largest = max(largest, max(ratios), 1 / min(ratios))
        widest = max(widest, max(ratios) / min(ratios))
    claimed = entry.case.claim.epsilon(0.0)
    assert _log(largest) <= claimed
    if isinstance(entry.case.claim.event, BoundedRangeDpEvent):
        assert _log(widest) <= entry.case.claim.event.eta
    if entry.case.extremal:
        assert _log(largest) > 0.99 * claimed


def _check_approximate(entry: Entry, event: ApproximateDpEvent) -> None:
    """Both hockey-stick divergences at the claimed epsilon, with e**epsilon rounded down, against the claimed delta.

    Control: some pair must have two laws, so the comparison is not an empty one.
    """
    with mpmath.workdps(40):
        factor = Fraction(int(mpmath.floor(mpmath.exp(event.epsilon) * 2**100)), 2**100)
    worst = Fraction(0)
    seen = False
    for one, other in entry.pairs():
        p, q = entry.mechanism.distribution(one), entry.mechanism.distribution(other)
        for above, below in ((p, q), (q, p)):
            excess = (Fraction(x) - factor * Fraction(below.get(o, 0)) for o, x in above.items())
            worst = max(worst, sum((e for e in excess if e > 0), Fraction(0)))
        seen = seen or p != q
    assert worst <= Fraction(event.delta)
    assert seen


def _log(ratio: Fraction) -> Any:
    with mpmath.workdps(40):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@each_entry
def test_the_promise_is_asserted(entry: Entry) -> None:
    for dataset in entry.datasets(5):
        entry.mechanism.check_dataset(dataset)
    if entry.case.claim.promise is None:
        return
    points = sorted({point for point, _ in entry.datasets(1)[0]})
    broken = ((points[0], 0), (points[0], 1))
    with pytest.raises(ValueError, match="realizable"):
        entry.mechanism.check_dataset(broken)
    if getattr(entry.case.mechanism, "is_total", False):
        assert entry.mechanism.release(broken, rng=np.random.default_rng(0)) in entry.mechanism.distribution(broken)
        return
    for act in (
        lambda: entry.mechanism.distribution(broken),
        lambda: entry.mechanism.release(broken, rng=np.random.default_rng(0)),
    ):
        with pytest.raises(ValueError, match="realizable"):
            act()


@each_entry
def test_bad_arguments_are_refused(entry: Entry) -> None:
    dataset = entry.datasets(1)[0]
    for wrong in (7, "seed", np.random.RandomState(0)):
        with pytest.raises(TypeError, match="rng must be"):
            entry.mechanism.release(dataset, rng=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="size must be at least 0"):
        entry.mechanism.release_many(dataset, -1, rng=None)
    assert len(entry.mechanism.release_many(dataset, 0, rng=None)) == 0


@each_entry
def test_what_a_call_leaves_behind_does_not_change_later_answers(entry: Entry) -> None:
    """Caches must not leak: the same law before and after other calls, and none of a caller's edits kept."""
    datasets = entry.datasets(3)
    before: list[dict[Any, Any]] = [dict(entry.mechanism.distribution(dataset)) for dataset in datasets]
    for dataset in reversed(datasets):
        entry.mechanism.release(dataset, rng=np.random.default_rng(5))
        edited = entry.mechanism.distribution(dataset)
        if isinstance(edited, dict):
            edited.clear()
    assert [dict(entry.mechanism.distribution(dataset)) for dataset in datasets] == before


@each_entry
def test_claims_and_domains_travel_between_processes(entry: Entry) -> None:
    assert pickle.loads(pickle.dumps(entry.case.domain)) == entry.case.domain
    assert pickle.loads(pickle.dumps(entry.case.claim)) == entry.case.claim
