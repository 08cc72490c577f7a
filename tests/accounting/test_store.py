"""The shared store, seen from one process: the same ledger, kept in a file that notices damage."""

from __future__ import annotations

import os
import pickle
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dp_accounting as dpa
import pytest

from accounting import (
    ApproximateDpEvent,
    BudgetExceededError,
    Claim,
    Ledger,
    LedgerFileError,
    Relation,
    RelationMismatchError,
    UnsupportedEventError,
)
from accounting.filters import AdaptiveChoiceError
from accounting.store import LedgerStore
from tests.support.ledgers import REPLACE, TENTH, state

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def noon() -> datetime:
    return NOON


def fill(store: LedgerStore) -> LedgerStore:
    store.dataset("records", 100)
    store.partition("records", {"a": 40, "b": 50})
    store.charge("a", ApproximateDpEvent(0.1, 1e-9), label="first", parameters={"m": 3})
    claim = Claim.bounded_range(0.125, relation=REPLACE, source="Lemma 2", promise="sorted")
    store.charge({"a": claim, "b": TENTH}, label="joint", release="run 1")
    return store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[LedgerStore]:
    with LedgerStore.create(path, relation=REPLACE, budget=("1/3", 1e-6), clock=noon) as made:
        yield fill(made)


def test_a_store_is_a_ledger(store: LedgerStore, tmp_path: Path) -> None:
    twin = Ledger(relation=REPLACE, budget=("1/3", 1e-6))
    fill(twin)  # type: ignore[arg-type]
    ledger = store.ledger()
    assert (ledger.datasets, ledger.budget) == (twin.datasets, twin.budget)
    assert [charge.event for charge in ledger] == [charge.event for charge in twin]
    for delta in (0.0, 1e-6):
        assert store.epsilon(delta) == ledger.epsilon(delta) == twin.epsilon(delta)
        assert store.epsilon(delta, dataset="b") == twin.epsilon(delta, dataset="b")
    assert store.remaining() == twin.remaining()
    ledger.save(tmp_path / "ledger.json")
    assert state(Ledger.load(tmp_path / "ledger.json")) == state(ledger)
    assert store.head[0] == 4
    assert store.head == ledger.head == Ledger.load(tmp_path / "ledger.json").head


def test_what_is_charged_is_there_after_reopening(store: LedgerStore, path: Path) -> None:
    before, head = state(store.ledger()), store.head
    store.close()
    with LedgerStore(path) as again:
        assert (state(again.ledger()), again.head) == (before, head)
        with pytest.raises(ValueError, match="already paid for"):
            again.charge("a", TENTH, label="x", release="run 1")
        with pytest.raises(BudgetExceededError):
            again.charge("a", ApproximateDpEvent(0.3), label="x")
        assert again.head == head
        assert again.charge("b", ApproximateDpEvent(0.01), label="x").number == 5


def test_charges_carry_the_time_in_utc(store: LedgerStore, path: Path) -> None:
    assert {charge.time for charge in store.ledger()} == {"2026-01-02T12:00:00+00:00"}
    east = datetime(2026, 1, 2, 12, 0, tzinfo=timezone(timedelta(hours=5)))
    with LedgerStore(path, clock=lambda: east) as other:
        ticket = other.charge("b", ApproximateDpEvent(0.01), label="x")
    assert ticket.charges[0].time == "2026-01-02T07:00:00+00:00"
    with LedgerStore(path) as real:
        real.charge("b", ApproximateDpEvent(0.01), label="x")
    stamp = store.ledger().charges[-1].time
    assert stamp is not None
    assert abs(datetime.now(UTC) - datetime.fromisoformat(stamp)) < timedelta(minutes=5)


def test_a_charge_stands_when_its_release_fails(store: LedgerStore) -> None:
    ticket = store.charge("b", ApproximateDpEvent(0.01), label="x")
    assert store.head == (ticket.number, ticket.hash)
    with pytest.raises(ZeroDivisionError), ticket as entered:
        raise ZeroDivisionError
    assert entered is ticket
    assert store.ledger().charges[-1] == ticket.charges[0]


def test_stores_on_one_file_see_each_other(store: LedgerStore, path: Path) -> None:
    with LedgerStore(path) as other:
        for i in range(6):
            (store, other)[i % 2].charge("b", ApproximateDpEvent(0.03), label=f"x{i}")
        assert state(store.ledger()) == state(other.ledger())
        for each in (store, other):
            with pytest.raises(BudgetExceededError):
                each.charge("b", ApproximateDpEvent(0.06), label="over")
        assert store.epsilon(0.0) == other.epsilon(0.0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda store: store.charge("a", dpa.GaussianDpEvent(float("nan")), label="x"), ValueError),
        (lambda store: store.charge("a", dpa.UnsupportedDpEvent(), label="x"), UnsupportedEventError),
        (lambda store: store.charge("z", TENTH, label="x"), ValueError),
        (lambda store: store.charge("a", TENTH, label=""), ValueError),
        (lambda store: store.charge("a", TENTH, label="x", count=0), ValueError),
        (lambda store: store.charge("a", TENTH, label="x", adaptive=True), AdaptiveChoiceError),
        (
            lambda store: store.charge("a", Claim.pure(0.1, relation="add-remove", source="s"), label="x"),
            RelationMismatchError,
        ),
        (lambda store: store.partition("records", {"c": 1}), ValueError),
        (lambda store: store.partition("records", 3), TypeError),
        (lambda store: store.dataset("a", 1), ValueError),
    ],
)
def test_what_a_ledger_refuses_a_store_refuses_unchanged(
    store: LedgerStore, call: Callable[[LedgerStore], object], error: type[Exception]
) -> None:
    before = store.head
    with pytest.raises(error):
        call(store)
    assert store.head == before


def test_a_store_keeps_its_filter(path: Path) -> None:
    with LedgerStore.create(path, relation=REPLACE, budget=(1, 1e-6), filter="zcdp") as made:
        made.charge("records", ApproximateDpEvent(0.1), label="x", adaptive=True)
    with LedgerStore(path) as store:
        filter = store.ledger().filter
        assert filter is not None
        assert filter.kind == "zcdp"
        with pytest.raises(BudgetExceededError, match="must keep rho within"):
            store.charge("records", ApproximateDpEvent(0.3), label="x", adaptive=True)


def test_creating_twice(store: LedgerStore, path: Path) -> None:
    with pytest.raises(FileExistsError):
        LedgerStore.create(path, relation=REPLACE, budget=("1/3", 1e-6))
    with LedgerStore.create(path, relation=REPLACE, budget=("1/3", 1e-6), exist_ok=True) as same:
        assert same.head == store.head
    others: list[dict[str, Any]] = [
        {"relation": REPLACE, "budget": ("1/4", 1e-6)},
        {"relation": REPLACE},
        {"relation": Relation.ADD_OR_REMOVE_ONE, "budget": ("1/3", 1e-6)},
        {"relation": REPLACE, "budget": ("1/3", 1e-6), "filter": "basic"},
    ]
    for other in others:
        with pytest.raises(LedgerFileError, match="another relation, budget or filter"):
            LedgerStore.create(path, exist_ok=True, **other)


def test_bad_arguments_leave_no_file(path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"relation": "both"},
        {"relation": REPLACE, "budget": (-1, 0)},
        {"relation": REPLACE, "filter": "basic"},
    ]
    for arguments in bad:
        with pytest.raises(ValueError, match="must"):
            LedgerStore.create(path, **arguments)
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match=r"LedgerStore\.create makes one"):
        LedgerStore(path)
    assert not path.exists()
    with pytest.raises(OSError, match="unable to open"):
        LedgerStore.create(path.parent / "no folder" / "ledger.db", relation=REPLACE)


@pytest.mark.parametrize("content", [b"", b"hello", b"{}", b"SQLite format 3\x00 but not really" * 50])
def test_foreign_files_are_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerFileError, match=r"ledger\.db: "):
        LedgerStore(path)
    if content:
        with pytest.raises(LedgerFileError, match=r"ledger\.db: "):
            LedgerStore.create(path, relation=REPLACE)
        assert path.read_bytes() == content
    else:
        LedgerStore.create(path, relation=REPLACE).close()


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LedgerFileError, match="not a ledger store"):
        LedgerStore(path)
    with pytest.raises(LedgerFileError, match="not a ledger store"):
        LedgerStore.create(path, relation=REPLACE, exist_ok=True)
    assert path.read_bytes() == before


EDITS: list[tuple[str, str]] = [
    ("UPDATE entries SET entry = replace(entry, '0.1', '0.0') WHERE number = 3", "entry 3: was edited"),
    ("UPDATE entries SET entry = replace(entry, 'joint', 'other') WHERE number = 4", "entry 4: was edited"),
    ("UPDATE entries SET entry = '{' WHERE number = 2", "entry 2: ends too early"),
    ("UPDATE entries SET entry = 3 WHERE number = 2", "entry 2: was edited"),
    ("UPDATE entries SET hash = 'x' WHERE number = 1", "entry 1: was edited"),
    ("DELETE FROM entries WHERE number = 2", "entry 2: is missing"),
    ("DELETE FROM entries WHERE number = 4", "holds 3 entries and its head says 4"),
    ("DELETE FROM entries", "holds 0 entries and its head says 4"),
    ("INSERT INTO entries SELECT 5, entry, hash FROM entries WHERE number = 4", "entry 5: was edited"),
    ("UPDATE entries SET number = 6 WHERE number = 4", "entry 4: is missing"),
    ("UPDATE ledger SET entries = 3", "holds 4 entries and its head says 3"),
    ("UPDATE ledger SET head = 'x'", "holds 4 entries"),
    ("UPDATE ledger SET header = replace(header, '1/3', '2')", "the header was edited"),
    ("UPDATE ledger SET header = replace(header, 'replace-one', 'anything')", "the header was edited"),
    ("UPDATE ledger SET header = '[]'", "the header must be an object"),
    ("DELETE FROM ledger", "the header was removed"),
    ("DROP TABLE entries", "no ledger store, or damaged"),
    ("PRAGMA user_version = 2", "schema must be at most 1, which this version reads, got the newer 2"),
    ("PRAGMA application_id = 1", "not a ledger store"),
]


@pytest.mark.parametrize(("statement", "message"), EDITS)
def test_edits_are_refused_and_named(store: LedgerStore, path: Path, statement: str, message: str) -> None:
    store.close()
    connection = sqlite3.connect(path)
    for name in ("entries_are_kept", "entries_stay_as_they_are", "the_ledger_is_kept", "its_header_stays_as_it_is"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()
    attempts: list[Callable[[Path], object]] = [LedgerStore, Ledger.load]
    for attempt in attempts:
        with pytest.raises(LedgerFileError, match=message) as caught:
            attempt(path)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM entries", "UPDATE entries SET hash = ''", "DELETE FROM ledger", "UPDATE ledger SET header = ''"],
)
def test_the_tables_are_append_only_to_anyone_who_does_not_insist(
    store: LedgerStore, path: Path, statement: str
) -> None:
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_an_edit_under_an_open_store_is_noticed(store: LedgerStore, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER entries_are_kept")
    connection.execute("DELETE FROM entries WHERE number = 4")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerFileError, match="entry 4: was edited or removed while the store was open"):
        store.charge("b", ApproximateDpEvent(0.01), label="x")


def test_no_flipped_byte_changes_what_a_store_says(store: LedgerStore, path: Path) -> None:
    """One byte of the file changed, at places spread over it: refused, or nothing that the ledger says has changed."""
    before = state(store.ledger())
    store.close()
    whole, refused = path.read_bytes(), 0
    for place in range(16, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            with LedgerStore(path) as damaged:
                assert state(damaged.ledger()) == before, place
        except LedgerFileError:
            refused += 1
    assert refused > 5


def test_a_file_cut_short_is_refused(store: LedgerStore, path: Path) -> None:
    store.close()
    whole = path.read_bytes()
    for size in range(1, len(whole), 1000):
        path.write_bytes(whole[:size])
        with pytest.raises((LedgerFileError, OSError)):
            LedgerStore(path)


def test_a_busy_file_is_waited_for_and_then_given_up(store: LedgerStore, path: Path) -> None:
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    before = store.head
    with LedgerStore(path, timeout=0.05) as hasty:
        with pytest.raises(TimeoutError, match=r"held the ledger for more than 0\.05 s; nothing was charged"):
            hasty.charge("b", ApproximateDpEvent(0.01), label="x")
        blocker.execute("ROLLBACK")
        blocker.close()
        assert hasty.head == before
        assert hasty.charge("b", ApproximateDpEvent(0.01), label="x").number == before[0] + 1


def test_a_failed_sync_is_an_error_and_the_charge_stands(store: LedgerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    before = store.head[0]
    with pytest.raises(OSError, match="input/output error"):
        store.charge("b", ApproximateDpEvent(0.01), label="x")
    monkeypatch.undo()
    assert store.head[0] == before + 1


def test_a_closed_store_says_so(store: LedgerStore) -> None:
    store.close()
    store.close()
    with pytest.raises(ValueError, match="the store was closed"):
        store.charge("b", TENTH, label="x")
    with pytest.raises(ValueError, match="the store was closed"):
        store.ledger()


def test_a_store_travels_by_pickle_and_ledgers_load_from_its_file(store: LedgerStore, path: Path) -> None:
    with pickle.loads(pickle.dumps(store)) as twin:
        assert twin.head == store.head
        assert repr(twin) == repr(store) == f"LedgerStore({str(path)!r})"
    ledger = Ledger.load(path)
    assert state(ledger) == state(store.ledger())
    with pytest.raises(LedgerFileError, match="is a ledger store"):
        ledger.save(path)
    store.charge("b", ApproximateDpEvent(0.01), label="the locks are still there")


def test_threads_never_overspend_together(path: Path) -> None:
    done: list[int] = []
    with LedgerStore.create(path, relation=REPLACE, budget=("2", 0)) as store:

        def work() -> None:
            try:
                for _ in range(40):
                    done.append(store.charge("records", TENTH, label="x").number)
            except BudgetExceededError:
                pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == list(range(2, 22))
        assert store.epsilon(0.0) == 2.0


def test_timeouts_are_numbers(path: Path) -> None:
    for bad in (-1.0, float("nan"), "1", None):
        with pytest.raises((TypeError, ValueError), match="timeout must be"):
            LedgerStore.create(path, relation=REPLACE, timeout=bad)  # type: ignore[arg-type]


def test_notes_in_times_are_checked() -> None:
    from accounting import Charge

    for bad in ("noon", "2026-01-02T12:00:00", "2026-01-02T12:00:00+05:00", ""):
        with pytest.raises(ValueError, match="time must"):
            Charge(dataset="a", event=TENTH, relation=REPLACE, label="x", time=bad)
    value: Any = 3
    with pytest.raises(TypeError, match="time must"):
        Charge(dataset="a", event=TENTH, relation=REPLACE, label="x", time=value)
