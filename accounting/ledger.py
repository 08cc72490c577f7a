"""The ledger: what was released about which records, and the most that it can have cost any of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Self, overload

from dp_accounting import DpEvent, NeighboringRelation

from accounting._checks import check_relation
from accounting.book import Book
from accounting.claims import Claim
from accounting.decimals import Budget, Number
from accounting.entries import Charge, Dataset, DatasetEntry, Entry, PartitionEntry, Scalar
from accounting.filters import PrivacyFilter, filter_of
from accounting.statement import Statement, implicit, planned


class Ledger(Statement):
    """Append-only charges on named datasets, under one neighbouring relation, within one budget.

    What a total means. Two datasets are neighbours when the relation holds between them: one record of *one* dataset
    differs. A dataset may be split into blocks by a rule that ignores what the records hold; neighbours then differ in
    one record of one block, and that record is read only by the charges on its block and on the datasets that contain
    it; every other release has, given the outputs before it, the same law on both. So charges on a block and on its
    containers compose sequentially, and the total is the *largest* over the blocks (parallel composition: McSherry
    2009, Theorem 4). A person with records in two datasets of a ledger is covered only as far as the relation covers
    them: put such data in one dataset.

    What may depend on what. Without a filter, totals are compositions of the charges' profiles, and valid when the
    charges (which events, and how many) were fixed before anything was released: outputs may shape later queries, but
    not their privacy parameters, and not when to stop. A ledger with a privacy filter admits charges chosen in any way
    while the filter's sums stay within their limits, and guarantees the budget, no more and no less; see `filters`.

    relation: the neighbouring relation every charge must be under.
    budget: (epsilon, delta), each a float, int, str, Decimal or Fraction; a float is the decimal it shows, so ten
        charges of 0.1 fill a budget of 1 exactly. None: nothing is refused for its cost.
    filter: None, or the privacy filter that keeps the budget: "basic", "zcdp", "gaussian", or a value of `filters`.

    Any exception leaves the ledger as it was. Charge first, then release: what is refused must not have touched data.
    Threads may share a ledger; for processes there is `LedgerStore`.

    >>> from accounting import ApproximateDpEvent, Ledger
    >>> ledger = Ledger(relation="replace-one", budget=(1, 0))
    >>> _ = ledger.partition("records", {"even": 500, "odd": 500})
    >>> for _ in range(10):
    ...     _ = ledger.charge("even", ApproximateDpEvent(0.1), label="a count")
    >>> ledger.epsilon(0.0), ledger.epsilon(0.0, dataset="odd"), ledger.remaining("odd")
    (1.0, 0.0, 1.0)
    """

    def __init__(
        self,
        *,
        relation: NeighboringRelation | str,
        budget: tuple[Number, Number] | Budget | None = None,
        filter: PrivacyFilter | str | None = None,
    ) -> None:
        book = Book(
            check_relation("relation", relation),
            None if budget is None else Budget.of(budget),
            None if filter is None else filter_of(filter),
        )
        super().__init__(book)
        self._lock = threading.RLock()

    def dataset(self, name: str, size: int | None = None) -> Dataset:
        """Declare a dataset. size: its number of records where the relation makes that public, else None.

        The first dataset a ledger hears of needs no declaration; every further one does, so that a misspelt name does
        not open an account of its own.

        Raises:
            TypeError, ValueError: the name is taken, or a size is negative or given under add-remove.
        """
        with self._lock:
            self._commit(DatasetEntry(name, size))
            return self._book.dataset(name)

    def partition(self, parent: str, blocks: Mapping[str, int | None]) -> tuple[Dataset, ...]:
        """Split `parent` into disjoint blocks (name: size); each can be charged, and split again, by itself.

        The rule that assigns records to blocks must not look at what the records hold: their positions in a fixed order
        or a random permutation (sizes are public), or a draw or public identifier of each record's own. Sizes must add
        up to at most the parent's, where that is stated; records left over belong to the parent alone. Under
        ADD_OR_REMOVE_ONE sizes are not public and must be None. A dataset is partitioned once.

        Raises:
            TypeError, ValueError: an unknown parent, a second partition, a name that is taken, or sizes against these
                rules.
        """
        if not isinstance(blocks, Mapping):
            raise TypeError(f"blocks must be a mapping from names to sizes, got {blocks!r}")
        with self._lock:
            self._commit(*implicit(self._book, parent), PartitionEntry(parent, tuple(blocks.items())))
            return tuple(self._book.dataset(name) for name in blocks)

    @overload
    def charge(
        self,
        dataset: str,
        event: DpEvent | Claim,
        *,
        label: str,
        source: str | None = None,
        promise: str | None = None,
        count: int = 1,
        parameters: Mapping[str, Scalar] | None = None,
        release: str | None = None,
        adaptive: bool = False,
    ) -> Charge: ...

    @overload
    def charge(
        self,
        dataset: Mapping[str, DpEvent | Claim],
        event: None = None,
        *,
        label: str,
        source: str | None = None,
        promise: str | None = None,
        count: int = 1,
        parameters: Mapping[str, Scalar] | None = None,
        release: str | None = None,
        adaptive: bool = False,
    ) -> tuple[Charge, ...]: ...

    def charge(
        self,
        dataset: str | Mapping[str, DpEvent | Claim],
        event: DpEvent | Claim | None = None,
        *,
        label: str,
        source: str | None = None,
        promise: str | None = None,
        count: int = 1,
        parameters: Mapping[str, Scalar] | None = None,
        release: str | None = None,
        adaptive: bool = False,
    ) -> Charge | tuple[Charge, ...]:
        """Enter `count` releases that each guarantee `event`, before they are made.

        dataset, event: the dataset read and what is guaranteed for it; or one mapping {dataset: event} for a release
            that reads several disjoint blocks, each with what is guaranteed when one record of that block changes.
        event: a DpEvent, or a Claim, which brings its relation, source, promise and trust along.
        label: what is released. source, promise: added to what a claim says of itself.
        parameters: public facts for the report.
        release: a name for the release. Guarantees of outputs that share random draws do not add up, so such outputs
            are one release with one joint event; a name that was already charged is refused.
        adaptive: True if the event, the count or the charge itself was chosen after seeing outputs about these records.

        Raises:
            BudgetExceededError: some record's total would exceed the budget.
            RelationMismatchError: a claim under another relation.
            AdaptiveChoiceError: an adaptive charge on a ledger without a filter, whose total is not valid for it.
            UnsupportedEventError: no theorem covers the event under this relation, or lets the filter take it.
            TypeError, ValueError: any other argument against its rule; see `Charge` and `check_event`.
        """
        with self._lock:
            entries = planned(
                self._book,
                dataset,
                event,
                label=label,
                source=source,
                promise=promise,
                count=count,
                parameters=parameters,
                release=release,
                adaptive=adaptive,
            )
            self._commit(*entries)
        charges = entries[-1].charges
        return charges if isinstance(dataset, Mapping) else charges[0]

    def _commit(self, *entries: Entry) -> None:
        book, before = self._state
        for entry in entries:
            book = book.after(entry)
        self._state = (book, (*before, *entries))

    # Files.

    @property
    def head(self) -> tuple[int, str]:
        """How many entries there are, and their chain's last hash: note it elsewhere, and a rewritten file shows."""
        from accounting.ledger_file import chain_of

        _, hashes = chain_of(self)
        return len(hashes) - 1, hashes[-1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to a JSON file, all or nothing, over an earlier state of the same ledger or over nothing.

        Raises:
            LedgerFileError: the file there holds something else: another ledger, entries that this one lacks, no ledger
                at all.
            OSError: the file cannot be written; what was there is still there.
        """
        from accounting.ledger_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, or a `LedgerStore`'s file, checking the hash chain and every entry.

        Raises:
            LedgerFileError: the file is damaged, edited, foreign or of a newer schema; the message names the file, the
                entry and the rule.
            OSError: the file cannot be read.
        """
        from accounting.ledger_file import load

        return cls._of(*load(path))

    @classmethod
    def _of(cls, book: Book, entries: tuple[Entry, ...]) -> Self:
        ledger = cls(relation=book.relation, budget=book.budget, filter=book.filter)
        ledger._state = (book, entries)
        return ledger

    def __getstate__(self) -> dict[str, Any]:
        return {"_state": self._state}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._state = state["_state"]
        self._lock = threading.RLock()
