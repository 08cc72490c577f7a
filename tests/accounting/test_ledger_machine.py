"""The ledger against a plain model, under any sequence of declarations, charges, refusals and trips through a file.

The model is a list of what was charged where; its total is recomputed from scratch with Fractions. In the pure machine
the budget's delta is 0, where sums are the exact total, so the model says of every charge whether it must be accepted.
"""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import dp_accounting as dpa
import pytest
from dp_accounting import DpEvent
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    BudgetExceededError,
    Claim,
    Ledger,
    RelationMismatchError,
    UnsupportedEventError,
)
from tests.support.ledgers import REPLACE, state

costs = st.integers(0, 40).map(lambda hundredths: Fraction(hundredths, 100))
BROKEN: list[dict[str, Any]] = [
    {"event": dpa.GaussianDpEvent(math.nan)},
    {"event": dpa.ComposedDpEvent([dpa.NoOpDpEvent(), dpa.LaplaceDpEvent(-1.0)])},
    {"event": dpa.UnsupportedDpEvent()},
    {"event": dpa.PoissonSampledDpEvent(0.5, dpa.GaussianDpEvent(1.0))},
    {"event": Claim.pure(0.01, relation="add-remove", source="s")},
    {"count": 0},
    {"label": " "},
    {"parameters": {"x": math.inf}},
    {"dataset": "nowhere"},
]


def pure_event(cost: Fraction, how: int) -> DpEvent:
    """One of several events that cost exactly this, once."""
    number = float(cost)
    return [
        ApproximateDpEvent(number),
        BoundedRangeDpEvent(number),
        dpa.ComposedDpEvent([dpa.NoOpDpEvent(), ApproximateDpEvent(number)]),
        dpa.SelfComposedDpEvent(ApproximateDpEvent(number), 1),
    ][how]


class PureLedger(RuleBasedStateMachine):
    datasets: Bundle[str] = Bundle("datasets")
    undivided: Bundle[str] = Bundle("undivided")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "ledger.json"
        self.parents: dict[str, str | None] = {}
        self.spent: list[tuple[str, Fraction]] = []
        self.charges = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    def fresh(self) -> Any:
        return Ledger(relation=REPLACE, budget=(self.budget, 0))

    def reopened(self) -> Any:
        self.ledger.save(self.file)
        return Ledger.load(self.file)

    def cost_of(self, name: str, extra: dict[str, Fraction]) -> Fraction:
        """What a record below `name` bears on `name` and deeper, at worst."""
        own = sum((cost for where, cost in self.spent if where == name), Fraction(0)) + extra.get(name, Fraction(0))
        below = [self.cost_of(child, extra) for child, parent in self.parents.items() if parent == name]
        return own + max(below, default=Fraction(0))

    def total(self, **extra: Fraction) -> Fraction:
        roots = [name for name, parent in self.parents.items() if parent is None]
        return max((self.cost_of(root, extra) for root in roots), default=Fraction(0))

    @initialize(target=datasets, budget=st.integers(0, 300))
    def open(self, budget: int) -> str:
        self.budget = Fraction(budget, 100)
        self.ledger: Any = self.fresh()
        self.ledger.dataset("d0", 1000)
        self.parents["d0"] = None
        return "d0"

    @initialize(target=undivided)
    def first_leaf(self) -> str:
        return "d0"

    @rule(target=datasets)
    def declare(self) -> str:
        name = f"d{len(self.parents)}"
        self.ledger.dataset(name)
        self.parents[name] = None
        return name

    @rule(parent=consumes(undivided), count=st.integers(1, 3), data=st.data())
    def partition(self, parent: str, count: int, data: st.DataObject) -> None:
        names = [f"d{len(self.parents) + i}" for i in range(count)]
        self.ledger.partition(parent, dict.fromkeys(names, 1))
        self.parents.update(dict.fromkeys(names, parent))

    @rule(data=st.data(), cost=costs, how=st.integers(0, 3), count=st.integers(1, 12))
    def charge(self, data: st.DataObject, cost: Fraction, how: int, count: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.parents)))
        self.enter(
            {name: cost * count}, lambda: self.ledger.charge(name, pure_event(cost, how), label="x", count=count)
        )

    @rule(data=st.data(), cost=costs, other=costs)
    def charge_jointly(self, data: st.DataObject, cost: Fraction, other: Fraction) -> None:
        pairs = [
            (one, two)
            for one, parent in self.parents.items()
            for two, uncle in self.parents.items()
            if one < two and parent == uncle
        ]
        if pairs:
            one, two = data.draw(st.sampled_from(pairs))
            costs = {one: pure_event(cost, 0), two: pure_event(other, 1)}
            self.enter({one: cost, two: other}, lambda: self.ledger.charge(costs, label="joint"))

    def enter(self, extra: dict[str, Fraction], act: Any) -> None:
        before = state(self.ledger)
        if self.total(**extra) <= self.budget:
            act()
            self.spent.extend(extra.items())
            self.charges += len(extra)
        else:
            with pytest.raises(BudgetExceededError):
                act()
            assert state(self.ledger) == before

    @rule(change=st.sampled_from(BROKEN))
    def charge_wrongly(self, change: dict[str, Any]) -> None:
        before = state(self.ledger)
        good = {"dataset": "d0", "event": ApproximateDpEvent(0.0), "label": "x"}
        with pytest.raises((TypeError, ValueError, UnsupportedEventError, RelationMismatchError)):
            self.ledger.charge(**{**good, **change})
        assert state(self.ledger) == before

    @rule()
    def save_and_load(self) -> None:
        before = state(self.ledger)
        self.ledger = self.reopened()
        assert state(self.ledger) == before

    @invariant()
    def the_total_is_the_models(self) -> None:
        if self.parents:
            total = self.total()
            assert total <= self.budget
            assert Fraction(repr(self.ledger.epsilon(0.0))) == total
            assert Fraction(repr(self.ledger.remaining())) == self.budget - total
            assert len(self.ledger) == self.charges


PureLedger.TestCase.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
TestPureLedger = PureLedger.TestCase


class MixedLedger(RuleBasedStateMachine):
    """A budget with delta, events without sums: what fits by sums is accepted, and nothing exceeds the budget."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(relation=REPLACE, budget=(3, 1e-6))
        self.ledger.partition("records", {"a": 100, "b": 100})
        self.sums = {"a": [Fraction(0), Fraction(0)], "b": [Fraction(0), Fraction(0)]}

    events = st.one_of(
        st.builds(ApproximateDpEvent, st.sampled_from([0.1, 0.5]), st.sampled_from([0.0, 1e-7])),
        st.builds(dpa.GaussianDpEvent, st.sampled_from([20.0, 40.0])),
        st.just(dpa.SampledWithoutReplacementDpEvent(100, 5, dpa.GaussianDpEvent(4.0))),
    )

    @rule(dataset=st.sampled_from(["records", "a", "b"]), event=events, count=st.integers(1, 8))
    def charge(self, dataset: str, event: DpEvent, count: int) -> None:
        before = state(self.ledger)
        touched = ["a", "b"] if dataset == "records" else [dataset]
        if isinstance(event, ApproximateDpEvent):
            added = [count * Fraction(repr(event.epsilon)), count * Fraction(repr(event.delta))]
        else:
            added = [Fraction(1000), Fraction(0)]
        sums = {name: [x + y for x, y in zip(self.sums[name], added, strict=True)] for name in touched}
        said = self.ledger.would_be(dataset, event, delta=1e-6, count=count)
        try:
            self.ledger.charge(dataset, event, label="x", count=count)
        except BudgetExceededError:
            assert state(self.ledger) == before
            assert any(epsilon > 3 or delta > Fraction(1, 10**6) for epsilon, delta in sums.values())
            assert said > 3
        else:
            self.sums.update(sums)
            assert self.ledger.epsilon(1e-6) == said

    @invariant()
    def the_budget_holds(self) -> None:
        worst = max(self.ledger.epsilon(1e-6, dataset=name) for name in ("a", "b"))
        assert self.ledger.epsilon(1e-6) == worst <= 3


MixedLedger.TestCase.settings = settings(max_examples=6, stateful_step_count=8, deadline=None)
TestMixedLedger = MixedLedger.TestCase
