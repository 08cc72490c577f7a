"""The ledger: totals, partitions, budgets, refusals that change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import DpEvent, dp_event
from hypothesis import given
from hypothesis import strategies as st

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    Budget,
    BudgetExceededError,
    Claim,
    GroupDpEvent,
    Ledger,
    PermuteAndFlipDpEvent,
    PrivacyProfile,
    Relation,
    check_event,
)
from tests.support.ledgers import REPLACE, TENTH, homogeneous_delta, state

# Exact budgets.


@pytest.mark.parametrize("budget", [1, 1.0, "1", Decimal(1), Fraction(1)])
def test_ten_tenths_fill_a_budget_of_one_and_an_eleventh_is_refused(budget: Any) -> None:
    ledger = Ledger(relation=REPLACE, budget=(budget, 0))
    for i in range(10):
        assert ledger.remaining() == pytest.approx(1 - i / 10)
        ledger.charge("records", TENTH, label=f"count {i}")
    assert ledger.epsilon(0.0) == 1.0
    assert ledger.remaining() == 0.0
    before = state(ledger)
    with pytest.raises(BudgetExceededError, match=r"'eleventh' on 'records' must keep epsilon within 1 .*, got 1\.1 "):
        ledger.charge("records", TENTH, label="eleventh")
    assert state(ledger) == before
    assert ledger.epsilon(0.0) == 1.0


@given(st.integers(1, 60), st.integers(1, 3000), st.integers(0, 4))
def test_any_decimal_cost_fills_its_multiple_exactly(count: int, digits: int, places: int) -> None:
    cost = digits / 10**places
    exact = Fraction(digits, 10**places)
    ledger = Ledger(relation=REPLACE, budget=(count * exact, "0"))
    for _ in range(count):
        ledger.charge("records", ApproximateDpEvent(cost), label="x")
    assert Fraction(repr(ledger.epsilon(0.0))) >= count * exact
    assert ledger.epsilon(0.0) == pytest.approx(float(count * exact), rel=1e-15)
    with pytest.raises(BudgetExceededError):
        ledger.charge("records", ApproximateDpEvent(1e-30), label="a hair too much")


def test_the_exact_route_also_serves_a_budget_with_delta() -> None:
    ledger = Ledger(relation=REPLACE, budget=(0.3, 3e-7))
    for _ in range(3):
        ledger.charge("records", ApproximateDpEvent(0.1, 1e-7), label="x")
    with pytest.raises(BudgetExceededError):
        ledger.charge("records", ApproximateDpEvent(0.0, 1e-9), label="no delta left")


def test_laplace_and_bounded_range_costs_are_decimals_too() -> None:
    for relation, scale in ((REPLACE, 20), (Relation.ADD_OR_REMOVE_ONE, 10), (Relation.REPLACE_SPECIAL, 10)):
        ledger = Ledger(relation=relation, budget=("1", 0))
        for event in (dpa.LaplaceDpEvent(scale), BoundedRangeDpEvent(0.1), dpa.NoOpDpEvent()):
            ledger.charge("records", dpa.SelfComposedDpEvent(event, 4), label="four")
        pair = [GroupDpEvent(ApproximateDpEvent(0.05), 2), PermuteAndFlipDpEvent(0.1)]
        ledger.charge("records", dpa.ComposedDpEvent(pair), label="two")
        assert ledger.epsilon(0.0) == 1.0, relation
        with pytest.raises(BudgetExceededError):
            ledger.charge("records", dpa.LaplaceDpEvent(1e9), label="x")


@pytest.mark.parametrize(
    "budget",
    [
        (math.nan, 0), (math.inf, 0), (-1, 0), (1, -1e-9), (1, 1.5), (1, math.nan), ("one", 0), ("nan", 0), ("1/0", 0),
        (Decimal("NaN"), 0), (Decimal("-1"), 0), (True, 0), (None, 0), (1,), (1, 2, 3), 1.0, "ab", {1: 2},
    ],
)  # fmt: skip
def test_a_budget_that_is_no_budget_is_refused(budget: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="budget"):
        Ledger(relation=REPLACE, budget=budget)


def test_the_relation_must_be_named() -> None:
    with pytest.raises(TypeError):
        Ledger()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="relation must be"):
        Ledger(relation="replace-two")
    assert Ledger(relation="replace-one").relation is REPLACE


@given(st.fractions(min_value=0, max_value=10**6))
def test_a_budget_is_kept_exactly(epsilon: Fraction) -> None:
    assert Budget.of((epsilon, 0)).epsilon == epsilon
    assert Budget.of((str(epsilon), "1e-6")) == Budget(epsilon, Fraction(1, 10**6))


# Totals against independent arithmetic.


@pytest.mark.parametrize(("e0", "d0", "k"), [(0.1, 0.0, 100), (0.1, 1e-9, 30), (1.0, 1e-8, 5)])
def test_equal_charges_cost_what_optimal_composition_says(e0: float, d0: float, k: int) -> None:
    ledger = Ledger(relation=REPLACE)
    for _ in range(k):
        ledger.charge("records", ApproximateDpEvent(e0, d0), label="x")
    epsilon = ledger.epsilon(1e-6)
    assert homogeneous_delta(e0, d0, k, epsilon) <= 1e-6 <= homogeneous_delta(e0, d0, k, epsilon * (1 - 1e-4))


# Faults reported for accountants, as far as they can be seen through a ledger, at delta = 1e-6: an interval for the
# right answer. Its ends are a figure give or take its last digit, or the truth in 40 digits (by enumeration, and by the
# Gaussian's closed form) and what a correct accountant in use says.
FAULTS: list[tuple[str, Relation, DpEvent, int, float, float]] = [
    ("relation ignored", REPLACE, dpa.GaussianDpEvent(1.0), 1, 10.9971, 10.9973),
    ("correlated releases", REPLACE, dpa.GaussianDpEvent(2 / math.sqrt(1.25)), 1, 5.5508, 5.5510),
    ("count dropped", REPLACE, dpa.RandomizedResponseDpEvent(0.5, 4), 10, 16.0942691671, 16.0949),
    (
        "integer parameter",
        Relation.ADD_OR_REMOVE_ONE,
        dpa.PoissonSampledDpEvent(0.1, dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(2), 100)),
        1,
        30.8011472429,
        32.7792,
    ),
    ("missing logarithm", REPLACE, ApproximateDpEvent(0.1), 100, 4.7745, 4.7751),
    ("tiny per-step epsilon", REPLACE, ApproximateDpEvent(5e-5), 1000, 0.0045105, 0.004511 * 1.01),
    ("less noise billed less", REPLACE, dpa.GaussianDpEvent(2.0), 1, 4.8865, 4.8867),
    ("less noise billed less", REPLACE, dpa.GaussianDpEvent(0.02), 1, 5474.3, 5474.5),
]


@pytest.mark.parametrize(("kind", "relation", "event", "count", "low", "high"), FAULTS)
def test_known_faults_of_other_accountants(
    kind: str, relation: Relation, event: DpEvent, count: int, low: float, high: float
) -> None:
    ledger = Ledger(relation=relation)
    for _ in range(count):
        ledger.charge("records", event, label=kind)
    at_once = Ledger(relation=relation)
    at_once.charge("records", event, label=kind, count=count)
    assert low <= ledger.epsilon(1e-6) == at_once.epsilon(1e-6) <= high


def test_pure_total_at_delta_zero_is_the_sum() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", ApproximateDpEvent(1.0), label="x", count=10)
    assert ledger.epsilon(0.0) == 10.0


def test_asking_changes_nothing() -> None:
    ledger = Ledger(relation=REPLACE, budget=(5, 1e-6))
    ledger.charge("records", dpa.GaussianDpEvent(5.0), label="x", count=3)
    ledger.charge("records", TENTH, label="y")
    before = state(ledger)

    def answers() -> list[object]:
        return [
            ledger.epsilon(1e-6), ledger.epsilon(1e-9), ledger.delta(1.0), ledger.delta(-1.0), ledger.remaining(),
            ledger.routes(1e-6), ledger.would_be("records", TENTH, delta=1e-6), ledger.marginals(1e-6),
            ledger.affordable("records", TENTH), ledger.profile().epsilon(1e-6),
        ]  # fmt: skip

    assert answers() == answers()
    assert state(ledger) == before


def test_order_and_grouping_do_not_matter() -> None:
    events = [dpa.GaussianDpEvent(9.0), TENTH, BoundedRangeDpEvent(0.2), dpa.GaussianDpEvent(9.0)]
    one, other = Ledger(relation=REPLACE), Ledger(relation=REPLACE)
    for event in events:
        one.charge("records", event, label="x")
    for event in reversed(events[:3]):
        other.charge("records", event, label="x", count=events.count(event))
    assert one.epsilon(1e-6) == other.epsilon(1e-6)


def test_an_empty_ledger_costs_nothing() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 1e-6))
    assert (ledger.epsilon(0.0), ledger.delta(0.0), ledger.remaining(), len(ledger), bool(ledger)) == (0, 0, 1, 0, True)
    ledger.dataset("records", 100)
    assert (ledger.epsilon(0.0), ledger.delta(0.0)) == (0, 0)
    assert ledger.routes(1e-6)["dominating pairs"].epsilon == 0


def test_no_guarantee_is_infinite_and_never_fits() -> None:
    for event in (dpa.NonPrivateDpEvent(), dpa.GaussianDpEvent(0.0)):
        ledger = Ledger(relation=REPLACE)
        ledger.charge("records", event, label="raw data")
        assert ledger.epsilon(1e-6) == math.inf
        with pytest.raises(BudgetExceededError, match="got inf"):
            Ledger(relation=REPLACE, budget=(1e9, 0.5)).charge("records", event, label="raw data")


def test_sampled_totals_are_those_of_the_profile() -> None:
    step = dpa.ComposedDpEvent([BoundedRangeDpEvent(1.0), ApproximateDpEvent(1.0, 1e-8)])
    event = dpa.SampledWithoutReplacementDpEvent(1000, 10, step)
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"even": 1000, "odd": 1000})
    ledger.charge("even", event, label="odd rounds", count=60)
    ledger.charge("odd", event, label="even rounds", count=50)
    inner = PrivacyProfile.approximate(1.0, 1e-8).compose(PrivacyProfile.bounded_range(1.0))
    longhand = inner.subsample_without_replacement(0.01).self_compose(60)
    assert ledger.epsilon(1e-6) == pytest.approx(longhand.epsilon(1e-6), rel=1e-9)


def test_dp_event_names_are_available() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", dp_event.DiscreteLaplaceDpEvent(0.25, 2), label="x")
    assert ledger.epsilon(0.0) == 1.0


# Partitions.


def test_blocks_compose_in_parallel_and_their_containers_sequentially() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.dataset("records", 100)
    ledger.partition("records", {"a": 40, "b": 50})
    ledger.partition("b", {"b1": 25, "b2": 25})
    costs = {"records": 0.5, "a": 3.0, "b": 0.25, "b1": 2.0, "b2": 1.0}
    for name, cost in costs.items():
        ledger.charge(name, ApproximateDpEvent(cost), label=name)
    assert ledger.epsilon(0.0) == 3.5
    assert {name: ledger.epsilon(0.0, dataset=name) for name in costs} == {
        "records": 3.5, "a": 3.5, "b": 2.75, "b1": 2.75, "b2": 1.75,
    }  # fmt: skip
    assert set(ledger.profiles()) == set(ledger.events()) == {"a", "b1", "b2"}
    assert ledger.events()["b2"] == check_event(dpa.ComposedDpEvent([ApproximateDpEvent(x) for x in (0.25, 0.5, 1.0)]))
    assert ledger.profile("b2").epsilon(0.0) == pytest.approx(1.75)
    with pytest.raises(ValueError, match="3 different totals"):
        ledger.profile()
    ledger.charge("b1", ApproximateDpEvent(1.0), label="more")
    assert ledger.epsilon(0.0) == 3.75


def test_a_charge_before_the_partition_counts_for_every_block() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", ApproximateDpEvent(1.0), label="before")
    ledger.partition("records", {"a": 1, "b": 1})
    ledger.charge("a", ApproximateDpEvent(1.0), label="after")
    assert (ledger.epsilon(0.0, dataset="a"), ledger.epsilon(0.0, dataset="b")) == (2.0, 1.0)


def test_the_maximum_over_blocks_is_taken_at_each_delta_and_epsilon() -> None:
    """A pure and a Gaussian block: which of the two is the worse depends on delta."""
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 10, "b": 10})
    ledger.charge("a", ApproximateDpEvent(2.0), label="pure")
    ledger.charge("b", dpa.GaussianDpEvent(4.0), label="Gaussian")
    pure, gaussian = PrivacyProfile.pure(2.0), PrivacyProfile.gaussian(2.0)
    for delta in (0.3, 1e-2, 1e-12):
        assert ledger.epsilon(delta) == pytest.approx(max(pure.epsilon(delta), gaussian.epsilon(delta)), rel=1e-9)
    for epsilon in (0.0, 1.0, 2.5):
        assert ledger.delta(epsilon) == pytest.approx(max(pure.delta(epsilon), gaussian.delta(epsilon)), rel=1e-9)
    assert gaussian.epsilon(0.3) < pure.epsilon(0.3)
    assert gaussian.epsilon(1e-12) > pure.epsilon(1e-12)


def test_parallel_composition_is_right_by_enumeration() -> None:
    """Two records in two blocks, randomized response on each, then on both: every output of every two neighbours."""
    keep = {"a": Fraction(3, 4), "b": Fraction(2, 3), "both": Fraction(4, 5)}
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 1, "b": 1})
    for name, dataset in (("a", "a"), ("b", "b")):
        ledger.charge(dataset, ApproximateDpEvent(math.log(keep[name] / (1 - keep[name]))), label=name)
    ledger.charge("records", ApproximateDpEvent(2 * math.log(keep["both"] / (1 - keep["both"]))), label="both, twice")

    def law(bits: tuple[int, int]) -> dict[tuple[int, ...], Fraction]:
        found = {}
        for index in range(16):
            out = tuple(index >> i & 1 for i in range(4))
            truth = (bits[0], bits[1], bits[0] ^ bits[1], bits[0] & bits[1])
            keeps = (keep["a"], keep["b"], keep["both"], keep["both"])
            answers = ((k if o == t else 1 - k) for o, t, k in zip(out, truth, keeps, strict=True))
            found[out] = math.prod(answers, start=Fraction(1))
        return found

    worst = Fraction(0)
    for x in range(4):
        for flip in (1, 2):
            p, q = law((x >> 1, x & 1)), law(((x ^ flip) >> 1, (x ^ flip) & 1))
            worst = max(worst, max(p[o] / q[o] for o in p))
    assert math.log(worst) <= ledger.epsilon(0.0) * (1 + 1e-12)
    assert math.log(worst) >= ledger.epsilon(0.0) * (1 - 1e-12)  # XOR and AND both change when the second record does


def test_a_joint_release_is_entered_for_each_block_it_read() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 0))
    ledger.partition("records", {"even": 5, "odd": 5})
    both = ledger.charge(
        {
            "even": ApproximateDpEvent(0.75),
            "odd": Claim.pure(0.5, relation=REPLACE, source="Lemma 1", promise="sorted"),
        },
        label="joint",
        source="Lemma 2",
        parameters={"rounds": 2},
    )
    assert [charge.dataset for charge in both] == ["even", "odd"]
    assert {charge.number for charge in both} == {len(ledger.entries)}
    assert [charge.source for charge in both] == ["Lemma 2", "Lemma 2; Lemma 1"]
    assert [charge.promise for charge in both] == [None, "sorted"]
    assert ledger.epsilon(0.0) == 0.75
    before = state(ledger)
    with pytest.raises(BudgetExceededError, match="records of 'even'"):
        ledger.charge({"odd": TENTH, "even": ApproximateDpEvent(0.5)}, label="all or nothing")
    assert state(ledger) == before
    assert ledger.epsilon(0.0, dataset="odd") == 0.5


def test_a_joint_release_may_not_name_a_block_and_what_contains_it() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 1, "b": 1})
    ledger.partition("a", {"a1": 1})
    for names in (("records", "a"), ("a1", "records"), ("b", "a", "a1")):
        with pytest.raises(ValueError, match="must not overlap"):
            ledger.charge(dict.fromkeys(names, TENTH), label="marginals")
    assert len(ledger) == 0


def test_a_release_is_paid_for_once() -> None:
    """Correlated outputs cannot be entered one by one: a second charge for the same release is refused."""
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", dpa.GaussianDpEvent(1.0), label="f", release="run 7")
    before = state(ledger)
    with pytest.raises(ValueError, match=r"release 'run 7' is already paid for by entry 2.*joint event"):
        ledger.charge("records", dpa.GaussianDpEvent(2.0), label="f / 2", release="run 7")
    assert state(ledger) == before
    ledger.charge("records", dpa.GaussianDpEvent(2.0), label="f / 2", release="run 8")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ledger: ledger.partition("records", {"c": 1}), "partitioned once"),
        (lambda ledger: ledger.partition("a", {}), "at least one block"),
        (lambda ledger: ledger.partition("a", {"b": 1}), "must be new, got 'b'"),
        (lambda ledger: ledger.partition("a", {"a": 1}), "must be new, got 'a'"),
        (lambda ledger: ledger.partition("a", {"a1": 3, "a2": 3}), "at most its 5 records together, got 6"),
        (lambda ledger: ledger.partition("a", {"a1": -1}), "the size of 'a1' must be at least 0, got -1"),
        (lambda ledger: ledger.partition("a", {"a1": 1.0}), "the size of 'a1' must be an integer"),
        (lambda ledger: ledger.partition("a", {"": 1}), "must not be empty"),
        (lambda ledger: ledger.partition("a", {3: 1}), "must be a string"),
        (lambda ledger: ledger.partition("a", ["a1", "a2"]), "must be a mapping"),
        (lambda ledger: ledger.partition("z", {"a1": 1}), "dataset must be one of the ledger's .*, got 'z'"),
        (lambda ledger: ledger.dataset("a", 5), "must be new, got 'a'"),
        (lambda ledger: ledger.dataset("c", -5), "size must be at least 0"),
        (lambda ledger: ledger.charge("recrods", TENTH, label="x"), "one of the ledger's .*'records'.*, got 'recrods'"),
        (lambda ledger: ledger.epsilon(0.0, dataset="z"), "got 'z'"),
    ],
)
def test_structure_that_does_not_fit_is_refused(call: Callable[[Ledger], object], message: str) -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 5, "b": 5})
    before = state(ledger)
    with pytest.raises((TypeError, ValueError), match=message):
        call(ledger)
    assert state(ledger) == before


def test_sizes_are_not_public_under_add_remove() -> None:
    ledger = Ledger(relation=Relation.ADD_OR_REMOVE_ONE)
    with pytest.raises(ValueError, match="'a' must be None under add-remove"):
        ledger.partition("records", {"a": 5, "b": 5})
    with pytest.raises(ValueError, match="size must be None under add-remove"):
        ledger.dataset("records", 10)
    assert ledger.datasets == ()
    ledger.partition("records", {"a": None, "b": None})
    ledger.charge("a", TENTH, label="x")
    assert ledger.epsilon(0.0) == 0.1


def test_a_second_dataset_is_declared_and_has_a_total_of_its_own() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 0))
    ledger.charge("patients", ApproximateDpEvent(1.0), label="x")
    with pytest.raises(ValueError, match="got 'visits'"):
        ledger.charge("visits", ApproximateDpEvent(1.0), label="x")
    ledger.dataset("visits", 10)
    ledger.charge("visits", ApproximateDpEvent(0.5), label="x")
    assert (ledger.epsilon(0.0), ledger.epsilon(0.0, dataset="visits")) == (1.0, 0.5)


def test_samples_are_not_larger_than_what_they_are_drawn_from() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 100, "b": None})

    def sampled(source: int, drawn: int, inner: DpEvent = TENTH) -> DpEvent:
        return dpa.SampledWithoutReplacementDpEvent(source, drawn, inner)

    ledger.charge("a", dpa.SelfComposedDpEvent(sampled(100, 10), 3), label="right size")
    ledger.charge("a", sampled(50, 10), label="of the first half")
    ledger.charge("b", sampled(10**6, 10), label="size not stated")
    for event in (sampled(101, 10), dpa.ComposedDpEvent([TENTH, dpa.SelfComposedDpEvent(sampled(200, 10), 2)])):
        with pytest.raises(ValueError, match="source_dataset_size must be at most its 100 records"):
            ledger.charge("a", event, label="too large")
