"""A ledger that several processes charge at once: one SQLite file, one transaction for each charge.

A charge takes the file's write lock, reads what others have added, checks the rules and the budget, appends, and
commits to disk before it returns. So charges of all processes come one after another, together they stay within the
budget, and a process killed at any instant loses no charge that `charge` has returned for and undoes none: it may at
most leave a charge whose release never happened, which is the safe side.

The entries and their hash chain are those of a ledger file (see `ledger_file`); the chain is verified when a store is
opened and whenever entries of others are read.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dp_accounting import DpEvent, NeighboringRelation

from accounting._checks import check_real, check_relation
from accounting.book import Book
from accounting.claims import Claim
from accounting.decimals import Budget, Number
from accounting.entries import (
    Charge,
    Dataset,
    DatasetEntry,
    Entry,
    PartitionEntry,
    ReleaseEntry,
    Scalar,
)
from accounting.errors import LedgerFileError
from accounting.filters import PrivacyFilter, filter_of
from accounting.header import header_of
from accounting.ledger import Ledger
from accounting.statement import implicit, planned
from accounting.store_file import (
    Place,
    append,
    beginning,
    check_pages,
    connect,
    failures,
    follow,
    make,
    make_durable,
    opened,
    use_log,
)

_left_behind: list[sqlite3.Connection] = []
"""Connections inherited through a fork: closing one in the child could fold up the parent's write-ahead log."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A charge that is on disk; the release it pays for may go ahead.

    Use it as ``with store.charge(...) as ticket: release()``. Leaving the block does nothing: if the release fails the
    charge stays, because nobody can know how much of it had come out.

    charges: one for each dataset read. number, hash: the entry and its place in the chain.
    """

    charges: tuple[Charge, ...]
    number: int
    hash: str

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class LedgerStore:
    """The shared ledger in the file at `path`. See `Ledger` for what its totals mean.

    Opens what `create` made. Threads may share one; so may processes that fork or unpickle it, each on a connection of
    its own. The file must be on a local disk: locks over networks cannot be relied on.

    timeout: how many seconds a charge waits for other processes before it gives up.

    Raises:
        LedgerFileError: no ledger store, of a newer schema, damaged or edited; the message names the file and the
            entry.
        FileNotFoundError: there is no such file.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, timeout: float = 60.0, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._path = Path(path).resolve()
        self._timeout = check_real("timeout", timeout, lo=0.0)
        self._clock = clock if clock is not None else _now
        self._lock = threading.RLock()
        if not self._path.exists():
            raise FileNotFoundError(f"{path}: there is no ledger store; LedgerStore.create makes one")
        self._open()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        relation: NeighboringRelation | str,
        budget: tuple[Number, Number] | Budget | None = None,
        filter: PrivacyFilter | str | None = None,
        exist_ok: bool = False,
        timeout: float = 60.0,
        clock: Callable[[], datetime] | None = None,
    ) -> Self:
        """Make a store and open it; relation, budget and filter as for `Ledger`.

        exist_ok: open the store if it is there already, with the same relation, budget and filter.

        Raises:
            FileExistsError: there is a store, and not exist_ok.
            LedgerFileError: there is another file, or a store with another relation, budget or filter.
        """
        book = Book(
            check_relation("relation", relation),
            None if budget is None else Budget.of(budget),
            None if filter is None else filter_of(filter),
        )
        header = header_of(book)
        made = make(Path(path).resolve(), header, check_real("timeout", timeout, lo=0.0))
        if not made and not exist_ok:
            raise FileExistsError(f"{path}: there is a ledger store already")
        store = cls(path, timeout=timeout, clock=clock)
        if header_of(store._place.book) != header:
            store.close()
            raise LedgerFileError(f"{path}: is a ledger store with another relation, budget or filter")
        return store

    # Charges.

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
    ) -> Ticket:
        """As `Ledger.charge`; when it returns, the charge is on disk.

        Raises: as `Ledger.charge`, and
            TimeoutError: others held the file for too long; nothing was charged.
            OSError: the disk failed; the charge may stand or not, and the release must not be made.
        """
        time = self._clock().astimezone(UTC).isoformat(timespec="seconds")

        def plan(book: Book) -> tuple[Entry, ...]:
            return planned(
                book,
                dataset,
                event,
                label=label,
                source=source,
                promise=promise,
                count=count,
                parameters=parameters,
                release=release,
                adaptive=adaptive,
                time=time,
            )

        entries, place = self._append(plan)
        last = entries[-1]
        assert isinstance(last, ReleaseEntry)
        return Ticket(last.charges, place.book.length, place.hash)

    def dataset(self, name: str, size: int | None = None) -> Dataset:
        """As `Ledger.dataset`."""
        self._append(lambda _: (DatasetEntry(name, size),))
        return self._place.book.dataset(name)

    def partition(self, parent: str, blocks: Mapping[str, int | None]) -> tuple[Dataset, ...]:
        """As `Ledger.partition`."""
        if not isinstance(blocks, Mapping):
            raise TypeError(f"blocks must be a mapping from names to sizes, got {blocks!r}")
        self._append(lambda book: (*implicit(book, parent), PartitionEntry(parent, tuple(blocks.items()))))
        return tuple(self._place.book.dataset(name) for name in blocks)

    # Reading.

    def ledger(self) -> Ledger:
        """What the store holds now, as a ledger of its own: for totals, reports, and for `Ledger.save`.

        The whole chain is read and verified again.
        """
        with self._lock, self._transaction("DEFERRED") as connection:
            place, entries = follow(connection, self._path, beginning(connection, self._path))
        return Ledger._of(place.book, entries)

    def epsilon(self, delta: float, *, dataset: str | None = None) -> float:
        """As `Ledger.epsilon`, of what the store holds now."""
        return self._view().epsilon(delta, dataset=dataset)

    def remaining(self, dataset: str | None = None) -> float | None:
        """As `Ledger.remaining`, of what the store holds now."""
        return self._view().remaining(dataset)

    @property
    def head(self) -> tuple[int, str]:
        """How many entries there are now, and the last hash: note it elsewhere, and a rewritten file shows."""
        with self._lock, self._transaction("DEFERRED") as connection:
            self._catch_up(connection)
            return self._place.book.length, self._place.hash

    def close(self) -> None:
        """Let go of the file; the store can be used no more."""
        with self._lock:
            if self._process == os.getpid():
                self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        clock = None if self._clock is _now else self._clock
        return _reopen, (type(self), str(self._path), self._timeout, clock)

    def __repr__(self) -> str:
        return f"LedgerStore({str(self._path)!r})"

    # Inside.

    def _open(self) -> None:
        self._process = os.getpid()
        with failures(self._path, self._timeout):
            self._connection = connect(self._path, self._timeout)
        opened.add(self)
        try:
            with self._transaction("DEFERRED") as connection:
                check_pages(connection, self._path)
                self._place, _ = follow(connection, self._path, beginning(connection, self._path))
            with failures(self._path, self._timeout):
                use_log(self._connection, self._path, self._timeout)
        except BaseException:
            self._connection.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def _view(self) -> Ledger:
        """The totals' side of the store, without its entries."""
        with self._lock, self._transaction("DEFERRED") as connection:
            self._catch_up(connection)
            return Ledger._of(self._place.book, ())

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        if self._process != os.getpid():
            _left_behind.append(self._connection)
            self._open()
        connection = self._connection
        with failures(self._path, self._timeout):
            connection.execute(f"BEGIN {kind}")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _append(self, plan: Callable[[Book], tuple[Entry, ...]]) -> tuple[tuple[Entry, ...], Place]:
        with self._lock:
            with self._transaction("IMMEDIATE") as connection:
                self._catch_up(connection)
                entries = plan(self._place.book)
                place = append(connection, self._place, entries)
            self._place = place
        make_durable(self._path)
        return entries, place

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Apply what others have appended since this process looked."""
        self._place, _ = follow(connection, self._path, self._place)


def _now() -> datetime:
    return datetime.now(UTC)


def _reopen(cls: type[LedgerStore], path: str, timeout: float, clock: Callable[[], datetime] | None) -> LedgerStore:
    return cls(path, timeout=timeout, clock=clock)
