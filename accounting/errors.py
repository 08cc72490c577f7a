"""Errors a caller may want to catch; each carries the objects it speaks of."""

from __future__ import annotations

from dp_accounting import UnsupportedEventError


class BudgetExceededError(ValueError):
    """A charge would take a ledger past its budget; nothing was charged.

    Attributes: dataset (str), label (str), delta (float), would_be (float, epsilon with the charge), budget (float).
    """

    def __init__(self, message: str, *, dataset: str, label: str, delta: float, would_be: float, budget: float) -> None:
        super().__init__(message)
        self.dataset, self.label, self.delta, self.would_be, self.budget = dataset, label, delta, would_be, budget


class LedgerFileError(ValueError):
    """A ledger or claims file is damaged, foreign or of a newer schema; the message says which entry and why."""


class RelationMismatchError(ValueError):
    """Guarantees under different neighbouring relations were about to be mixed."""


BudgetExceeded = BudgetExceededError

__all__ = [
    "BudgetExceeded",
    "BudgetExceededError",
    "LedgerFileError",
    "RelationMismatchError",
    "UnsupportedEventError",
]
