"""Processes that charge one store, for the tests: some can be killed, some die at a chosen place.

A worker writes down every ticket after `charge` has returned, in one unbuffered write: its notes are what a killed
process knew to be charged.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from accounting import ApproximateDpEvent, BudgetExceededError, LedgerStore
from accounting import store as store_module

COST = ApproximateDpEvent(0.1)


def context() -> ForkServerContext:
    """Processes forked from a clean one that has imported the product: quick to start, without the tests' threads."""
    chosen = multiprocessing.get_context("forkserver")
    chosen.set_forkserver_preload(["tests.support.spenders"])
    return chosen


def spend(path: str, notes: str, attempts: int) -> None:
    """Charge up to `attempts` times, noting each ticket; exit code 3 when the budget is used up."""
    handle = os.open(notes, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with LedgerStore(path) as store:
        for _ in range(attempts):
            try:
                ticket = store.charge("records", COST, label=f"by {os.getpid()}")
            except BudgetExceededError:
                os._exit(3)
            os.write(handle, f"{ticket.number} {ticket.hash}\n".encode())
    os._exit(0)


def noted(folder: Path) -> list[tuple[int, str]]:
    """Every ticket that some worker has written down."""
    rows = [line.split() for notes in sorted(folder.glob("*.notes")) for line in notes.read_text().splitlines()]
    return [(int(number), digest) for number, digest in rows]


def start(path: Path, notes: Path, attempts: int) -> BaseProcess:
    """A running worker."""
    process = context().Process(target=spend, args=(str(path), str(notes), attempts))
    process.start()
    return process


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _before(function: Callable[..., Any]) -> Callable[..., Any]:
    def patched(*arguments: Any) -> Any:
        _die()
        return function(*arguments)

    return patched


def _after(function: Callable[..., Any]) -> Callable[..., Any]:
    def patched(*arguments: Any) -> Any:
        found = function(*arguments)
        _die()
        return found

    return patched


PLACES = {
    "before anything is written": ("append", _before, False),
    "after the entry is written, before the commit": ("append", _after, False),
    "after the commit, before the sync": ("make_durable", _before, True),
    "after the sync": ("make_durable", _after, True),
}
"""Where a worker may die: the function of the store, before or after it, and whether the charge must then be there."""


def die_at(path: str, place: str) -> None:
    """Charge once, and be killed on the way."""
    name, when, _ = PLACES[place]
    setattr(store_module, name, when(getattr(store_module, name)))
    LedgerStore(path).charge("records", COST, label=place)


def spend_inherited(store: LedgerStore, notes: str) -> None:
    """Charge a store that came through a fork or a pickle."""
    ticket = store.charge("records", COST, label="by a child")
    Path(notes).write_text(f"{ticket.number} {ticket.hash}\n")
