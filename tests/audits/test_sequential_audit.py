"""Statistical audits: many pairs in one error budget, verdicts, interruptions, mechanisms that misbehave."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent

from accounting import Claim, Relation, RelationMismatchError, Trust
from audits.allocation import Allocation, harmonic_log_weights
from audits.candidates import CANDIDATE_LIMIT, candidate_pairs
from audits.sequential import PROFILE_DELTA, audit_sequential, point_of
from audits.verdicts import Status, Verdict
from mechanisms import AddOrRemoveOne, Domain, ExplicitPairs, ReplaceOne, are_neighbours, as_mechanism

SOURCE = "the test"


class Response:
    """Randomized response on one bit, per-record epsilon given by `epsilon_of`."""

    def __init__(self, epsilon_of: Callable[[int], float]) -> None:
        self.epsilon_of = epsilon_of
        self.calls = 0

    def release(self, dataset: Sequence[Any], *, rng: np.random.Generator | None) -> Any:
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Sequence[Any], size: int, *, rng: np.random.Generator | None) -> Any:
        assert rng is not None
        self.calls += 1
        record = int(dataset[0])
        return (rng.random(size) < 1.0 / (1.0 + math.exp(-self.epsilon_of(record // 2)))) == bool(record % 2)


def bits(count: int) -> ExplicitPairs:
    """Pairs ((2 i,), (2 i + 1,)): bit 0 against bit 1 under the i-th epsilon."""
    return ExplicitPairs([((2 * i,), (2 * i + 1,)) for i in range(count)], Relation.REPLACE_ONE)


def audit(
    target: object, domain: Domain, epsilon: float = 1.0, delta: float = 0.0, *, seed: int = 1, **options: Any
) -> Verdict:
    promise = options.pop("promise", None)
    claim = Claim.approximate(epsilon, delta, relation=domain.relation, source=SOURCE, promise=promise)
    options = {"confidence": 0.95, "max_runs": 4000, **options}
    return audit_sequential(as_mechanism(target), claim, domain, rng=np.random.default_rng(seed), **options)


def noisy_count(dataset: Sequence[int], *, rng: np.random.Generator) -> float:
    return sum(dataset) + rng.laplace(0.0, 0.5)


def test_a_false_claim_is_refuted_with_its_witness() -> None:
    verdict = audit(Response(lambda _: 2.5), bits(1))
    assert verdict.status is Status.REFUTED
    assert verdict.method == "sequential"
    assert verdict.trust is Trust.EMPIRICAL
    assert verdict.confidence == 0.95
    assert verdict.epsilon_lower is not None
    assert verdict.epsilon_lower >= 1.0
    assert verdict.runs < 200
    witness = verdict.witness
    assert witness is not None
    assert {witness.dataset, witness.neighbour} == {(0,), (1,)}
    assert witness.outcomes in ((True,), (False,))
    assert witness.probability is not None
    assert witness.neighbour_probability is not None
    assert witness.probability > math.e * witness.neighbour_probability
    assert "REFUTED" in verdict.summary()
    verdict.to_json()


def test_a_true_claim_is_consistent_and_says_what_it_rules_out() -> None:
    told: list[tuple[int, int]] = []
    verdict = audit(Response(lambda _: 1.0), bits(1), max_runs=8001, progress=lambda *step: told.append(step))
    assert verdict.status is Status.CONSISTENT
    assert verdict.runs == 8000
    assert (verdict.pairs_tried, verdict.pairs_total) == (1, 1)
    assert verdict.epsilon_lower is not None
    assert 0.8 <= verdict.epsilon_lower < 1.0
    assert verdict.epsilon_detectable is not None
    assert 1.0 < verdict.epsilon_detectable < 1.2
    assert verdict.witness is None
    assert verdict.worst_pair is not None
    assert told[0] == (0, 8001)
    assert told[-1] == (8000, 8001)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_equal_seeds_give_equal_verdicts() -> None:
    verdicts = [audit(Response(lambda i: 2.0 if i == 3 else 1.0), bits(6), seed=seed) for seed in (5, 5, 6)]
    shown = [{**verdict.to_json(), "seconds": 0, "summary": ""} for verdict in verdicts]
    assert shown[0] == shown[1]
    assert shown[0]["runs"] != shown[2]["runs"]


def test_runs_go_where_the_violation_is() -> None:
    """One violating pair of eight, the others exactly tight: found in less than equal shares would take.

    Medians over 9 seeds; a known pair takes about 35 pairs of runs, equal shares would take 8 times that, and more for
    the choice among eight.
    """
    totals = []
    for seed in range(9):
        epsilons = [2.0 if i == seed % 8 else 1.0 for i in range(8)]
        verdict = audit(Response(epsilons.__getitem__), bits(8), seed=seed, max_runs=6000)
        if verdict.witness is not None:
            assert {verdict.witness.dataset[0] // 2, verdict.witness.neighbour[0] // 2} == {seed % 8}
        totals.append(verdict.runs / 2 if verdict.status is Status.REFUTED else math.inf)
    assert np.median(totals) < 240


def test_one_violating_pair_of_sixty_four() -> None:
    """Equal shares would take 64 times the 60 pairs of runs that this pair needs with its prior weight."""
    totals = []
    for seed in range(3):
        verdict = audit(Response(lambda i: 2.0 if i == 40 else 0.5), bits(64), seed=seed, max_runs=8000)
        assert verdict.status is Status.REFUTED
        assert verdict.witness is not None
        assert verdict.witness.dataset[0] // 2 == 40
        totals.append(verdict.runs / 2)
    assert np.median(totals) < 1200


def test_false_alarms_over_many_pairs() -> None:
    """16 pairs, all exactly tight, one budget of 5 %: of 10 audits at most 4 may refute (probability 6e-5 of more)."""
    verdicts = [audit(Response(lambda _: 1.0), bits(16), seed=seed, max_runs=1000) for seed in range(10)]
    assert sum(verdict.status is Status.REFUTED for verdict in verdicts) <= 4


def test_weights_are_a_distribution_that_costs_little_more_than_equal_ones() -> None:
    for count in (1, 8, 1000):
        log_weights = harmonic_log_weights(count)
        assert np.exp(log_weights).sum() == pytest.approx(1.0)
        assert np.all(np.diff(log_weights) < 0.0)
        assert -log_weights[-1] <= math.log(count) + math.log(math.log(count) + 1.0) + 1e-9


def test_allocation_leaves_what_is_excluded_and_what_is_hopeless() -> None:
    weights = harmonic_log_weights(6)
    allocation = Allocation(weights, epsilon=1.0, delta=0.0, log_level=3.0, rng=np.random.default_rng(0))
    for pair, (first, second) in enumerate([(500, 480), (900, 20), (500, 510)]):
        allocation.observe(pair, runs=1000, first=first, second=second, log_wealth=0.0)
    for pair in (3, 4, 5):
        allocation.exclude(pair)
    assert {allocation.choose() for _ in range(50)} == {1}
    for pair in (0, 1, 2):
        allocation.exclude(pair)
    assert allocation.choose() is None


def test_a_user_function_and_continuous_outcomes() -> None:
    verdict = audit(noisy_count, AddOrRemoveOne([0, 1], 2), max_runs=6000)
    assert verdict.status is Status.REFUTED
    assert verdict.pairs_total == AddOrRemoveOne([0, 1], 2).count()
    assert 1 <= verdict.pairs_tried <= verdict.pairs_total


def test_stop_and_interrupt_keep_what_was_found() -> None:
    asked = iter([False] * 300 + [True] * 1000)
    verdict = audit(Response(lambda _: 1.0), bits(1), max_runs=10**9, should_stop=lambda: next(asked))
    assert verdict.status is Status.CONSISTENT
    assert verdict.reason is not None
    assert "on request" in verdict.reason
    assert verdict.runs > 1000
    assert verdict.epsilon_detectable is not None
    at_once = audit(Response(lambda _: 1.0), bits(1), should_stop=lambda: True)
    assert (at_once.status, at_once.runs, at_once.pairs_tried) == (Status.INCONCLUSIVE, 0, 0)

    class Interrupted(Response):
        def release_many(self, dataset: Sequence[Any], size: int, *, rng: np.random.Generator | None) -> Any:
            if self.calls > 400:
                raise KeyboardInterrupt
            return super().release_many(dataset, size, rng=rng)

    verdict = audit(Interrupted(lambda _: 1.0), bits(1), max_runs=10**9)
    assert verdict.interrupted
    assert verdict.status is Status.CONSISTENT
    assert verdict.runs > 1000


def test_slow_mechanisms_are_asked_whether_to_stop_within_a_batch() -> None:
    calls = 0

    def slow(dataset: Sequence[int], *, rng: np.random.Generator) -> bool:
        nonlocal calls
        calls += 1
        return bool(rng.random() < 0.5)

    verdict = audit(slow, bits(1), max_runs=10**9, should_stop=lambda: calls > 20_000)
    assert 20_000 < calls <= 20_000 + 256
    assert verdict.runs <= 20_000


def test_too_few_runs_are_inconclusive() -> None:
    verdict = audit(Response(lambda _: 1.0), bits(1), max_runs=8)
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.reason == "8 runs on 1 pair are too few to show any violation"


def test_a_constant_output_is_consistent_and_says_that_it_shows_nothing() -> None:
    verdict = audit(lambda dataset, *, rng: "same", bits(1))
    assert verdict.status is Status.CONSISTENT
    assert verdict.epsilon_detectable == math.inf


def test_a_failing_mechanism_is_reported_in_one_paragraph() -> None:
    def fails(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
        if rng.random() < 0.01:
            raise ZeroDivisionError("no records")
        return int(rng.random() < 0.5)

    verdict = audit(fails, bits(1), name="count")
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.error is not None
    assert "'count'" in verdict.error
    assert "ZeroDivisionError: no records" in verdict.error
    assert "[0]" in verdict.error or "[1]" in verdict.error
    uncountable = audit(lambda dataset, *, rng: object(), bits(1))
    assert uncountable.status is Status.INCONCLUSIVE
    assert uncountable.error is not None
    assert "equals only itself" in uncountable.error


def test_pairs_outside_the_promise_are_left_out() -> None:
    class Promised(Response):
        def check_dataset(self, dataset: Sequence[Any]) -> None:
            if dataset[0] >= 4:
                raise ValueError("too large")

    verdict = audit(Promised(lambda i: 3.0 if i >= 2 else 1.0), bits(5), promise="small records", max_runs=2000)
    assert verdict.status is Status.CONSISTENT
    assert verdict.pairs_tried == 2
    assert verdict.pairs_total == 2
    assert any("3 pairs that do not keep the promise" in note for note in verdict.notes)
    without = audit(Promised(lambda i: 3.0 if i >= 2 else 1.0), bits(5), max_runs=4000)
    assert without.status is Status.REFUTED
    nowhere = ExplicitPairs([((6,), (7,))], Relation.REPLACE_ONE)
    verdict = audit(Promised(lambda _: 1.0), nowhere, promise="small records")
    assert (verdict.status, verdict.pairs_tried) == (Status.INCONCLUSIVE, 0)


def test_claims_of_other_kinds_are_tested_at_a_point_they_imply() -> None:
    relation = Relation.REPLACE_ONE
    assert point_of(Claim.bounded_range(1.5, relation=relation, source=SOURCE)) == (1.5, 0.0)
    assert point_of(Claim.approximate(0.3, 0.2, relation=relation, source=SOURCE)) == (0.3, 0.2)
    gaussian = Claim(GaussianDpEvent(4.0), relation, SOURCE)
    epsilon, delta = point_of(gaussian)
    assert delta == PROFILE_DELTA
    assert gaussian.delta(epsilon) <= delta + 1e-9
    given: dict[str, Any] = {"confidence": 0.95, "max_runs": 4000, "rng": np.random.default_rng(1)}
    private = audit_sequential(as_mechanism(Response(lambda _: 6.0)), gaussian, bits(1), **given)
    assert private.status is Status.REFUTED
    assert any("which it implies" in note for note in private.notes)
    unknown = Claim(NonPrivateDpEvent(), relation, SOURCE)
    nothing = audit_sequential(as_mechanism(Response(lambda _: 6.0)), unknown, bits(1), **given)
    assert nothing.status is Status.INCONCLUSIVE
    assert nothing.error is not None


def test_wrong_arguments_are_refused() -> None:
    claim = Claim.pure(1.0, relation=Relation.ADD_OR_REMOVE_ONE, source=SOURCE)
    good: dict[str, Any] = {"confidence": 0.95, "max_runs": 100, "rng": np.random.default_rng(1)}
    mechanism = as_mechanism(Response(lambda _: 1.0))
    with pytest.raises(RelationMismatchError):
        audit_sequential(mechanism, claim, bits(1), **good)
    claim = Claim.pure(1.0, relation=Relation.REPLACE_ONE, source=SOURCE)
    for change, error, match in (
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"max_runs": 1}, ValueError, "max_runs"),
        ({"rng": 7}, TypeError, "rng"),
        ({"name": " "}, ValueError, "name"),
    ):
        with pytest.raises(error, match=match):
            audit_sequential(mechanism, claim, bits(1), **{**good, **change})
    with pytest.raises(TypeError, match="mechanism"):
        audit_sequential(Response(lambda _: 1.0), claim, bits(1), **good)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="claim"):
        audit_sequential(mechanism, 1.0, bits(1), **good)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="domain"):
        audit_sequential(mechanism, claim, [((0,), (1,))], **good)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "domain",
    [
        ReplaceOne([0, 5, 9], 3),
        AddOrRemoveOne(["a", "b"], 3),
        bits(5),
        ReplaceOne(range(60), 9),
        AddOrRemoveOne(range(60), 9),
    ],
)
def test_candidates_are_different_pairs_of_the_domain(domain: Domain) -> None:
    pairs = candidate_pairs(domain, ignore_order=False, rng=np.random.default_rng(1))
    assert len(pairs) == min(domain.count(), CANDIDATE_LIMIT)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert all(are_neighbours(*pair, domain.relation) for pair in pairs[:200])
    if domain.count() <= CANDIDATE_LIMIT:
        assert {frozenset(pair) for pair in pairs} == {frozenset(pair) for pair in domain.pairs()}


def test_extreme_pairs_come_first() -> None:
    one, other = candidate_pairs(ReplaceOne([3, 0, 10], 3), ignore_order=True, rng=np.random.default_rng(1))[0]
    assert abs(sum(one) - sum(other)) == 10
    added = candidate_pairs(AddOrRemoveOne([0, 1, 50], 4), ignore_order=False, rng=np.random.default_rng(1))
    assert all(abs(sum(one) - sum(other)) == 50 for one, other in added[:10])
