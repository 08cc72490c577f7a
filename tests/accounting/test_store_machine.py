"""The ledger's machine, run on a store that is open twice: each charge goes through one of the two, in turn."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

from accounting import Dataset, Ledger, LedgerStore
from tests.accounting.test_ledger_machine import PureLedger
from tests.support.ledgers import REPLACE


class Twice:
    """Two stores on one file, with a ledger's face."""

    def __init__(self, one: LedgerStore, other: LedgerStore) -> None:
        self.stores, self.turn = (one, other), 0

    def next(self) -> LedgerStore:
        self.turn = 1 - self.turn
        return self.stores[self.turn]

    def charge(self, *arguments: Any, **options: Any) -> object:
        return self.next().charge(*arguments, **options)

    def dataset(self, name: str, size: int | None = None) -> Dataset:
        return self.next().dataset(name, size)

    def partition(self, parent: str, blocks: dict[str, int | None]) -> object:
        return self.next().partition(parent, blocks)

    def epsilon(self, delta: float) -> float:
        return self.next().epsilon(delta)

    def remaining(self) -> float | None:
        return self.next().remaining()

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def __len__(self) -> int:
        return len(self.next().ledger())

    def __getattr__(self, name: str) -> Any:
        ledger: Ledger = self.next().ledger()
        return getattr(ledger, name)


class PureStore(PureLedger):
    def fresh(self) -> Twice:
        made = LedgerStore.create(self.file, relation=REPLACE, budget=(self.budget, 0))
        return Twice(made, LedgerStore(self.file))

    def reopened(self) -> Twice:
        self.ledger.close()
        return Twice(LedgerStore(self.file), LedgerStore(self.file))

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
        super().teardown()


PureStore.TestCase.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
TestPureStore = PureStore.TestCase
