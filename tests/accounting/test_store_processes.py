"""The shared store under several processes: together they never overspend, and killing them loses and frees nothing."""

from __future__ import annotations

import os
import random
import signal
import time
from fractions import Fraction
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from accounting import Ledger, LedgerStore
from tests.support.ledgers import REPLACE
from tests.support.spenders import COST, PLACES, context, die_at, noted, spend_inherited, start


def check(path: Path, folder: Path, budget: Fraction) -> int:
    """What must hold of the store after any run: returns the number of charges.

    The chain is whole; the charges are within the budget, exactly; every noted ticket is an entry with the noted hash;
    nobody was given the same ticket twice.
    """
    ledger = Ledger.load(path)
    hashes = _hashes(path)
    assert len(ledger) * Fraction(1, 10) <= budget
    assert Fraction(repr(ledger.epsilon(0.0))) == len(ledger) * Fraction(1, 10)
    tickets = noted(folder)
    assert len(set(tickets)) == len(tickets) <= len(ledger)
    assert all(hashes[number] == digest for number, digest in tickets)
    return len(ledger)


def _hashes(path: Path) -> dict[int, str]:
    import sqlite3

    connection = sqlite3.connect(path)
    rows = dict(connection.execute("SELECT number, hash FROM entries").fetchall())
    connection.close()
    return rows


def run_with_kills(folder: Path, *, workers: int, attempts: int, charges: int, kills: int, seed: int) -> None:
    """`workers` processes charge until the budget, of `charges` tenths, is used up; now and then one is killed and
    another takes its place.
    """
    path, budget = folder / "ledger.db", Fraction(charges, 10)
    with LedgerStore.create(path, relation=REPLACE, budget=(budget, 0)) as store:
        store.dataset("records")
    rng, started = random.Random(seed), 0
    running: list[BaseProcess] = []

    def launch() -> BaseProcess:
        nonlocal started
        started += 1
        return start(path, folder / f"{started}.notes", attempts)

    running = [launch() for _ in range(workers)]
    killed = 0
    while killed < kills:
        time.sleep(rng.uniform(0.02, 0.12))
        victim = rng.randrange(workers)
        process = running[victim].pid
        assert process is not None
        if running[victim].exitcode is None:
            os.kill(process, signal.SIGKILL)
            killed += 1
        running[victim].join()
        if running[victim].exitcode == 3:
            break  # the budget is used up: there is nothing left to interrupt
        running[victim] = launch()
    for worker in running:
        worker.join()
    assert {worker.exitcode for worker in running} <= {0, 3, -signal.SIGKILL}
    found = check(path, folder, budget)
    if any(worker.exitcode == 3 for worker in running):
        assert found == charges
    # A charge without a note belongs to a process killed between its commit and its note: at most one for each kill.
    assert found - killed <= len(noted(folder)) <= found


def test_processes_fill_the_budget_exactly(tmp_path: Path) -> None:
    """Three processes with 120 attempts for 90 charges, one of them killed twice."""
    run_with_kills(tmp_path, workers=3, attempts=40, charges=90, kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_processes_with_random_kills(tmp_path: Path, seed: int) -> None:
    run_with_kills(tmp_path, workers=8, attempts=1000, charges=6000, kills=60, seed=seed)


@pytest.mark.slow
def test_eight_processes_of_a_thousand_charges_each_are_all_entered(tmp_path: Path) -> None:
    """None refused, none lost, and in well under a minute on an idle machine."""
    path = tmp_path / "ledger.db"
    with LedgerStore.create(path, relation=REPLACE, budget=(800, 0)) as store:
        store.dataset("records")
    workers = [start(path, tmp_path / f"{i}.notes", 1000) for i in range(8)]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert check(path, tmp_path, Fraction(800)) == 8000 == len(noted(tmp_path))


@pytest.mark.parametrize("place", PLACES)
def test_death_at_any_place_leaves_a_whole_ledger(tmp_path: Path, place: str) -> None:
    path = tmp_path / "ledger.db"
    with LedgerStore.create(path, relation=REPLACE, budget=("0.4", 0)) as store:
        store.charge("records", COST, label="before")
        worker = context().Process(target=die_at, args=(str(path), place))
        worker.start()
        worker.join()
        assert worker.exitcode == -signal.SIGKILL
        there = PLACES[place][2]
        assert [charge.label for charge in store.ledger()] == ["before", place][: 1 + there]
        store.charge("records", COST, label="after")  # nobody holds the lock any more
    assert check(path, tmp_path, Fraction(4, 10)) == 2 + there


def test_a_store_may_be_inherited(tmp_path: Path) -> None:
    """By pickle, into a fresh process; and by a plain fork, into one that shares this one's memory."""
    path = tmp_path / "ledger.db"
    with LedgerStore.create(path, relation=REPLACE, budget=("0.4", 0)) as store:
        store.charge("records", COST, label="by the parent")
        worker = context().Process(target=spend_inherited, args=(store, str(tmp_path / "1.notes")))
        worker.start()
        worker.join()
        assert worker.exitcode == 0
        child = os.fork()
        if child == 0:
            try:
                spend_inherited(store, str(tmp_path / "2.notes"))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        store.charge("records", COST, label="by the parent")
        assert len(noted(tmp_path)) == 2
    assert check(path, tmp_path, Fraction(4, 10)) == 4


def test_processes_may_create_the_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    workers = [context().Process(target=_create, args=(str(path),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert len(Ledger.load(path)) == 4


def _create(path: str) -> None:
    with LedgerStore.create(path, relation=REPLACE, budget=(1, 0), exist_ok=True) as store:
        store.charge("records", COST, label="x")
