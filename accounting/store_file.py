"""The SQLite side of a ledger store: its tables, its log, and the reading that verifies the chain."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

from accounting.book import Book
from accounting.chain import entry_hash, start_hash
from accounting.codec import canonical_json, parse_json, reading
from accounting.entries import Entry, entry_from_json, entry_to_json
from accounting.errors import LedgerFileError
from accounting.event_table import check_keys
from accounting.header import HEADER, SCHEMA, book_of

APPLICATION_ID = 0x64706C67  # "dplg", in the file's header: says whose SQLite file this is

opened: WeakSet[Any] = WeakSet()
"""Stores of this process. Whoever opens and closes a database's file by other means drops SQLite's locks on it."""

_TABLES = (
    "CREATE TABLE ledger (one INTEGER PRIMARY KEY CHECK (one = 1), header TEXT NOT NULL, start TEXT NOT NULL, "
    "entries INTEGER NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER {name} BEFORE {what} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        for name, what in (
            ("entries_are_kept", "DELETE ON entries"),
            ("entries_stay_as_they_are", "UPDATE ON entries"),
            ("the_ledger_is_kept", "DELETE ON ledger"),
            ("its_header_stays_as_it_is", "UPDATE OF one, header, start ON ledger"),
        )
    ),
)


def is_store(path: Path) -> bool:
    """Whether there is an SQLite database at `path`, found out without touching the locks of an open store."""
    if not path.is_file():
        return False
    if any(store.path.exists() and store.path.samefile(path) for store in opened):
        return True
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that leaves transactions, and the syncing of commits, to the store."""
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def make(path: Path, header: Mapping[str, Any], timeout: float) -> bool:
    """Create the tables; False if the file has some already."""
    with failures(path, timeout):
        connection = connect(path, timeout)
        try:
            if _has_tables(connection):
                return False
            use_log(connection, path, timeout)
            connection.execute("BEGIN IMMEDIATE")
            try:
                found = _has_tables(connection)
                if not found:
                    for statement in (*_TABLES, f"PRAGMA application_id = {APPLICATION_ID}"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {SCHEMA}")
                    start = start_hash(header)
                    values = (canonical_json(dict(header)), start, start)
                    connection.execute("INSERT INTO ledger VALUES (1, ?, ?, 0, ?)", values)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            make_durable(path)
            return not found
        finally:
            connection.close()


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def use_log(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    """Turn the write-ahead log on. SQLite does not wait for others here, so this does."""
    deadline = monotonic() + timeout
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.01)
            continue
        if mode != "wal":
            raise LedgerFileError(f"{path}: must be where SQLite can keep a write-ahead log: on a local disk")
        return


def make_durable(path: Path) -> None:
    """Sync the write-ahead log, outside the write lock, so that the syncs of several processes can be one.

    A commit has put its transaction into the log: from then on it survives the death of any process, and once the log
    is synced also that of the machine. Should the log have been folded into the database in between, then SQLite has
    synced both before reusing it.
    """
    handle = os.open(f"{path}-wal", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Place:
    """How far the chain has been read: the ledger's state there, and the last hash."""

    book: Book
    hash: str


def beginning(connection: sqlite3.Connection, path: Path) -> Place:
    """The empty ledger that the file's header describes.

    Raises:
        LedgerFileError: not a ledger store, of a newer schema, or with an edited header.
    """
    with reading(str(path)):
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise LedgerFileError("is an SQLite database, but not a ledger store")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA:
            raise LedgerFileError(f"schema must be at most {SCHEMA}, which this version reads, got the newer {version}")
        text, start = _only(connection.execute("SELECT header, start FROM ledger").fetchone())
        header = check_keys(parse_json(text), HEADER, "the header")
        if start_hash(header) != start:
            raise LedgerFileError("the header was edited: it does not match the hash the chain starts from")
        return Place(book_of(header), start)


def follow(connection: sqlite3.Connection, path: Path, place: Place) -> tuple[Place, tuple[Entry, ...]]:
    """Verify and apply the entries after `place`, up to the head.

    Raises:
        LedgerFileError: an entry is missing, edited or against the rules; the message names it.
    """
    book, last, entries = place.book, place.hash, []
    with reading(str(path)):
        if book.length:
            known = connection.execute("SELECT hash FROM entries WHERE number = ?", (book.length,)).fetchone()
            if known is None or known[0] != last:
                raise LedgerFileError(f"entry {book.length}: was edited or removed while the store was open")
        query = "SELECT number, entry, hash FROM entries WHERE number > ? ORDER BY number"
        for number, text, stored in connection.execute(query, (book.length,)):
            if number != book.length + 1:
                raise LedgerFileError(f"entry {book.length + 1}: is missing")
            with reading(f"entry {number}"):
                row = parse_json(text)
                if not isinstance(row, dict) or entry_hash(last, row) != stored:
                    raise LedgerFileError("was edited, or an entry before it: it does not match its hash")
                entry = entry_from_json(row, number, book.relation)
                book = book.after(entry, enforce=False)
            entries.append(entry)
            last = stored
        length, head = _only(connection.execute("SELECT entries, head FROM ledger").fetchone())
        if (length, head) != (book.length, last):
            raise LedgerFileError(f"holds {book.length} entries and its head says {length}: some were cut off or added")
    return Place(book, last), tuple(entries)


def _only(row: tuple[Any, Any] | None) -> tuple[Any, Any]:
    if row is None:
        raise LedgerFileError("the header was removed")
    return row


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Let SQLite look for damage that the chain would not show.

    Raises:
        LedgerFileError: it found some.
    """
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise LedgerFileError(f"{path}: the database is damaged: {found}")


def read_store(path: Path, timeout: float = 60.0) -> tuple[Book, tuple[Entry, ...]]:
    """All that a store holds, verified."""
    with failures(path, timeout):
        connection = connect(path, timeout)
        try:
            connection.execute("BEGIN")
            check_pages(connection, path)
            place, entries = follow(connection, path, beginning(connection, path))
            connection.execute("COMMIT")
        finally:
            connection.close()
    return place.book, entries


def append(connection: sqlite3.Connection, place: Place, entries: Sequence[Entry]) -> Place:
    """Apply `entries` after `place`, and write them and the head.

    Raises: as `Book.after`; then the transaction must be rolled back.
    """
    for entry in entries:
        book = place.book.after(entry)
        row = entry_to_json(entry, book.length)
        place = Place(book, entry_hash(place.hash, row))
        values = (book.length, canonical_json(row), place.hash)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", values)
    connection.execute("UPDATE ledger SET entries = ?, head = ?", (place.book.length, place.hash))
    return place


@contextmanager
def failures(path: Path, timeout: float) -> Iterator[None]:
    """What SQLite says, in words of the ledger."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise TimeoutError(
                f"{path}: other processes held the ledger for more than {timeout:g} s; nothing was charged"
            ) from error
        if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise LedgerFileError(f"{path}: is no ledger store, or damaged: {error}") from error
        raise OSError(f"{path}: {error}") from error
    except sqlite3.ProgrammingError as error:
        raise ValueError(f"{path}: the store was closed") from error
    except sqlite3.DatabaseError as error:
        raise LedgerFileError(f"{path}: is no ledger store, or damaged: {error}") from error
