"""Charges: what a ledger accepts, what it refuses without a trace, and what it says beforehand."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from typing import Any

import dp_accounting as dpa
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import (
    ApproximateDpEvent,
    BudgetExceededError,
    Claim,
    Ledger,
    RelationMismatchError,
    Trust,
    UnsupportedEventError,
)
from tests.support.ledgers import REPLACE, TENTH, homogeneous_delta, state

# Charges.


def test_a_claim_brings_its_source_promise_and_trust() -> None:
    ledger = Ledger(relation=REPLACE)
    claim = Claim.approximate(0.5, 1e-9, relation=REPLACE, source="Theorem 1", promise="realizable", trust=Trust.EXACT)
    charge = ledger.charge("records", claim, label="step", count=2, promise="sorted", parameters={"m": 3, "q": 0.5})
    assert (charge.event, charge.source, charge.trust) == (claim.event, "Theorem 1", Trust.EXACT)
    assert charge.promise == "sorted; realizable"
    assert charge.parameters == (("m", 3), ("q", 0.5))
    assert (charge.number, charge.count, list(ledger)) == (2, 2, [charge])
    assert ledger.epsilon(2e-9) == 1.0
    plain = ledger.charge("records", claim.event, label="the same, on nobody's word")
    assert (plain.source, plain.promise, plain.trust) == (None, None, Trust.IDEALISED)


def test_relations_do_not_mix() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", TENTH, label="x")
    before = state(ledger)
    with pytest.raises(
        RelationMismatchError, match="'y' must be under the ledger's relation replace-one, got add-remove"
    ):
        ledger.charge("records", Claim.pure(0.1, relation="add-remove", source="s"), label="y")
    assert state(ledger) == before


BAD_CHARGES: list[tuple[dict[str, Any], str]] = [
    ({"event": dpa.GaussianDpEvent(math.nan)}, r"event\.noise_multiplier must be .* got nan"),
    ({"event": dpa.GaussianDpEvent(-1.0)}, r"got -1\.0"),
    ({"event": dpa.GaussianDpEvent(math.inf)}, "got inf"),
    ({"event": dpa.SelfComposedDpEvent(dpa.LaplaceDpEvent(math.nan), 3)}, r"event\.event\.noise_multiplier"),
    ({"event": dpa.ComposedDpEvent([TENTH, dpa.ZCDpEvent(-1.0)])}, r"event\.events\[1\]\.rho"),
    ({"event": dpa.UnsupportedDpEvent()}, "UnsupportedDpEvent"),
    ({"event": dpa.PoissonSampledDpEvent(0.1, TENTH)}, "Poisson sampling has a theorem under add-remove"),
    ({"event": 1.0}, "event must be a dp_accounting.DpEvent"),
    ({"event": None}, "event must be a DpEvent or a Claim, got None"),
    ({"count": 0}, "count must be at least 1, got 0"),
    ({"count": -1}, "count must be at least 1, got -1"),
    ({"count": 1.0}, "count must be an integer"),
    ({"count": True}, "count must be an integer"),
    ({"label": ""}, "label must not be empty"),
    ({"label": None}, "label must be a string"),
    ({"source": ""}, "source must not be empty"),
    ({"promise": 3}, "promise must be a string"),
    ({"release": ""}, "release must not be empty"),
    ({"parameters": {"m": math.nan}}, r"parameters\['m'\] must be finite, got nan"),
    ({"parameters": {"m": [1]}}, r"parameters\['m'\] must be a number"),
    ({"parameters": {3: 1}}, "name must be a string"),
    ({"parameters": "m=1"}, "parameters must be a mapping"),
    ({"dataset": 3}, "dataset must be a string"),
    ({"dataset": {}, "event": None}, "must name at least one block"),
    ({"dataset": {"records": TENTH}}, "event must be left out"),
]


@pytest.mark.parametrize("budget", [None, (100, 1e-3)])
@pytest.mark.parametrize(("change", "message"), BAD_CHARGES)
def test_a_bad_charge_is_refused_and_leaves_the_ledger_unchanged(
    change: dict[str, Any], message: str, budget: Any
) -> None:
    ledger = Ledger(relation=REPLACE, budget=budget)
    ledger.charge("records", TENTH, label="x")
    before, total = state(ledger), ledger.epsilon(1e-6)
    with pytest.raises((TypeError, ValueError, UnsupportedEventError), match=message):
        ledger.charge(**{"dataset": "records", "event": TENTH, "label": "y", **change})
    assert state(ledger) == before
    assert ledger.epsilon(1e-6) == total


def test_a_refused_first_charge_does_not_even_declare_the_dataset() -> None:
    ledger = Ledger(relation=REPLACE, budget=(0.05, 0))
    with pytest.raises(BudgetExceededError):
        ledger.charge("records", TENTH, label="x")
    assert ledger.datasets == ()


def test_the_refusal_carries_its_numbers() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 1e-6))
    with pytest.raises(BudgetExceededError) as caught:
        ledger.charge("records", dpa.GaussianDpEvent(1.0), label="loud")
    error = caught.value
    assert (error.dataset, error.label, error.delta, error.budget) == ("records", "loud", 1e-6, 1.0)
    assert error.would_be == pytest.approx(10.9972, abs=1e-3)


@pytest.mark.parametrize("delta", [math.nan, -1e-9, 1.1, "0", None])
def test_a_delta_that_is_none_is_refused(delta: Any) -> None:
    ledger = Ledger(relation=REPLACE)
    for ask in (ledger.epsilon, ledger.routes, ledger.marginals):
        with pytest.raises((TypeError, ValueError), match="delta must be"):
            ask(delta)
    with pytest.raises((TypeError, ValueError), match="delta must be"):
        ledger.would_be("records", TENTH, delta=delta)
    for epsilon in (math.nan, math.inf, "1"):
        with pytest.raises((TypeError, ValueError), match="epsilon must be"):
            ledger.delta(epsilon)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    ledger = Ledger(relation=REPLACE, budget=(np.float64(1.0), np.float64(0.0)))
    ten: Any = np.int64(10)
    ledger.charge("records", ApproximateDpEvent(np.float64(0.1)), label="x", count=ten)
    assert ledger.epsilon(0.0) == 1.0
    assert type(ledger.charges[0].count) is int


# What if.


def test_would_be_is_what_the_charge_then_makes_it() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 5, "b": 5})
    ledger.charge("a", dpa.GaussianDpEvent(4.0), label="x")
    for dataset in ("a", "b", "records"):
        said = ledger.would_be(dataset, dpa.GaussianDpEvent(6.0), delta=1e-6, count=2)
        trial = copy.deepcopy(ledger)
        trial.charge(dataset, dpa.GaussianDpEvent(6.0), label="y", count=2)
        assert said == trial.epsilon(1e-6)
    assert len(ledger) == 1


@given(st.integers(0, 30), st.integers(1, 40))
def test_affordable_is_the_number_that_fits(spent: int, limit: int) -> None:
    ledger = Ledger(relation=REPLACE, budget=("3", 0))
    if spent:
        ledger.charge("records", TENTH, label="x", count=spent)
    number = ledger.affordable("records", TENTH, limit=limit)
    assert number == min(30 - spent, limit)
    if number:
        copy.deepcopy(ledger).charge("records", TENTH, label="x", count=number)


def test_affordable_by_composition_is_more_than_by_sums() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 1e-6))
    number = ledger.affordable("records", ApproximateDpEvent(0.01))
    assert homogeneous_delta(0.01, 0.0, number, 1.0) <= 1e-6 < homogeneous_delta(0.01, 0.0, number + 2, 1.0)
    assert number > 500  # by sums, 100 would fit
    with pytest.raises(ValueError, match="needs a ledger with a budget"):
        Ledger(relation=REPLACE).affordable("records", TENTH)


def test_one_by_one_as_many_charges_fit_as_at_once() -> None:
    event = ApproximateDpEvent(0.05, 1e-9)
    ledger = Ledger(relation=REPLACE, budget=(1, 1e-6))
    number = ledger.affordable("records", event)
    for _ in range(number):
        ledger.charge("records", event, label="x")
    with pytest.raises(BudgetExceededError):
        ledger.charge("records", event, label="x")
    assert ledger.epsilon(1e-6) <= 1
    assert number > 20  # more than the sum of the epsilons would allow


def test_marginal_costs() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.partition("records", {"a": 5, "b": 5})
    for dataset, cost in (("a", 1.0), ("a", 0.5), ("b", 0.75), ("records", 0.25)):
        ledger.charge(dataset, ApproximateDpEvent(cost), label="x")
    rows = ledger.marginals(0.0)
    assert [row.charge for row in rows] == list(ledger)
    assert [row.epsilon_without for row in rows] == [1.0, 1.25, 1.75, 1.5]
    assert [row.cost for row in rows] == [0.75, 0.5, 0.0, 0.25]


def test_routes_agree_with_the_total() -> None:
    ledger = Ledger(relation=REPLACE)
    ledger.charge("records", ApproximateDpEvent(0.1, 1e-9), label="x", count=50)
    routes = ledger.routes(1e-6)
    assert set(routes) == {"paper", "basic", "optimal composition of amplified pairs", "dominating pairs"}
    assert routes["basic"].epsilon == 5.0
    assert ledger.epsilon(1e-6) == pytest.approx(routes["dominating pairs"].epsilon, rel=1e-9)
    assert routes["dominating pairs"].epsilon < 5.0
    assert ledger.routes(0.0)["basic"].epsilon == math.inf
    ledger.charge("records", dpa.GaussianDpEvent(9.0), label="no sum")
    assert set(ledger.routes(1e-6)) == {"dominating pairs"}


# Sharing.


def test_threads_never_overspend_together() -> None:
    ledger = Ledger(relation=REPLACE, budget=("10", 0))
    done: list[int] = []

    def work() -> None:
        for _ in range(40):
            try:
                ledger.charge("records", TENTH, label="x")
            except BudgetExceededError:
                return
            done.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(ledger) == 100
    assert ledger.epsilon(0.0) == 10.0


def test_a_copy_is_a_ledger_of_its_own() -> None:
    ledger = Ledger(relation=REPLACE, budget=("0.2", 0))
    ledger.charge("records", TENTH, label="x")
    for twin in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert state(twin) == state(ledger)
        twin.charge("records", TENTH, label="y")
        assert len(ledger) == 1
    assert repr(ledger) == "Ledger(relation=REPLACE_ONE, budget=(0.2, 0), 1 charges on 1 datasets)"
