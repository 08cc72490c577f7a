"""A ledger as one JSON file, written all or nothing, read strictly.

    {"format": "dpledger-ledger", "schema": 1, "relation": ..., "budget": {"epsilon": "1", "delta": "0.000001"} or null,
     "filter": {"kind": ...} or null,
     "start": hash of the five fields above,
     "entries": [{"number": 1, "kind": ..., ..., "hash": hash over the hash before and this entry}, ...],
     "head": {"entries": how many, "hash": the last hash}}

See `chain` for what the hashes show and what they cannot.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accounting._checks import check_int
from accounting.book import Book
from accounting.chain import entry_hash, start_hash
from accounting.codec import canonical_json, check_list, parse_json, reading
from accounting.entries import Entry, entry_from_json, entry_to_json
from accounting.errors import LedgerFileError
from accounting.event_table import check_keys
from accounting.header import HEADER, book_of, header_of
from accounting.store_file import is_store, read_store

if TYPE_CHECKING:
    from accounting.ledger import Ledger


def save(ledger: Ledger, path: str | os.PathLike[str]) -> None:
    """See `Ledger.save`."""
    target = Path(os.path.realpath(path))
    header = header_of(ledger._book)
    chained, hashes = chain_of(ledger)
    rows = [canonical_json({**row, "hash": digest}) for row, digest in zip(chained, hashes[1:], strict=True)]
    if target.exists():
        with reading(str(path)):
            if is_store(target):
                raise LedgerFileError("is a ledger store, and is charged by LedgerStore; save to another file")
            _check_extends(hashes, target.read_bytes())
    head = {"entries": len(rows), "hash": hashes[-1]}
    lines = [f" {json.dumps(key)}: {canonical_json(value)}" for key, value in {**header, "start": hashes[0]}.items()]
    lines.append(' "entries": [' + ",".join(f"\n  {row}" for row in rows) + ("\n ]" if rows else "]"))
    lines.append(f' "head": {canonical_json(head)}')
    write_atomically(target, "{\n" + ",\n".join(lines) + "\n}\n")


def chain_of(ledger: Ledger) -> tuple[list[dict[str, Any]], list[str]]:
    """The entries as they are hashed, and the hashes: the start's, then one for each entry."""
    rows, hashes = [], [start_hash(header_of(ledger._book))]
    for number, entry in enumerate(ledger.entries, start=1):
        rows.append(entry_to_json(entry, number))
        hashes.append(entry_hash(hashes[-1], rows[-1]))
    return rows, hashes


def _check_extends(hashes: list[str], existing: bytes) -> None:
    """Refuse to write over charges: what is there must be an earlier state of this ledger."""
    *_, last = _rows(parse_json(existing))
    number, found = last
    if number >= len(hashes) or hashes[number] != found:
        raise LedgerFileError(
            f"holds {number} entries that are not the first {number} of this ledger: writing over it would lose charges"
        )


def load(path: str | os.PathLike[str]) -> tuple[Book, tuple[Entry, ...]]:
    """See `Ledger.load`."""
    if is_store(Path(path)):
        return read_store(Path(path).resolve())
    with reading(str(path)):
        document = parse_json(Path(path).read_bytes())
        book = _header(document)
        entries = []
        for number, _ in _rows(document):
            if number == 0:
                continue
            row = {key: value for key, value in document["entries"][number - 1].items() if key != "hash"}
            with reading(f"entry {number}"):
                entry = entry_from_json(row, number, book.relation)
                book = book.after(entry, enforce=False)
            entries.append(entry)
    return book, tuple(entries)


def _header(document: object) -> Book:
    if not isinstance(document, dict):
        raise TypeError(f"a ledger must be a JSON object, got {type(document).__name__}")
    book = book_of(document)
    check_keys(document, (*HEADER, "start", "entries", "head"), "the ledger")
    return book


def _rows(document: object) -> Iterator[tuple[int, str]]:
    """Verify the chain: yields (0, start hash), then each entry's number and hash once it is right."""
    _header(document)
    assert isinstance(document, dict)
    previous = start_hash({key: document[key] for key in HEADER})
    if document["start"] != previous:
        raise LedgerFileError(
            "the header (relation, budget, filter) was edited: it does not match the hash the chain starts from"
        )
    yield 0, previous
    rows = check_list("entries", document["entries"])
    head = check_keys(document["head"], ("entries", "hash"), "head")
    stated = check_int("head.entries", head["entries"], lo=0)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not isinstance(row.get("hash"), str):
            raise LedgerFileError(f"entry {number}: must be an object with a hash")
        previous = entry_hash(previous, {key: value for key, value in row.items() if key != "hash"})
        if row["hash"] != previous:
            raise LedgerFileError(
                f"entry {number}: was edited, or an entry before it was removed or inserted: it does not match its hash"
            )
        yield number, previous
    if len(rows) != stated:
        what = f"entries {len(rows) + 1} to {stated} are missing" if len(rows) < stated else "entries were added"
        raise LedgerFileError(f"holds {len(rows)} entries and its head says {stated}: {what}")
    if head["hash"] != previous:
        raise LedgerFileError(f"head.hash must be the hash of entry {len(rows)}, got {head['hash']!r}")


def write_atomically(target: Path, text: str) -> None:
    """Write the whole file or nothing: a temporary file beside it, synced, then renamed over it, permissions kept."""
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("x", encoding="utf-8") as file:
            if target.exists():
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
