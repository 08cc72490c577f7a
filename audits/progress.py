"""How a long run shows that it is alive: a bar for each claim on a terminal, plain lines in a log, nothing in a
library.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from audits.verification import Row


class Reporter(Protocol):
    """Told what happens, in the thread that runs the claims."""

    def begin(self, total: int) -> None:
        """So many claims will be checked."""
        ...

    def started(self, name: str) -> None:
        """The audit of a claim starts."""
        ...

    def progressed(self, name: str, done: int, total: int) -> None:
        """`done` of at most `total` steps (runs or pairs) of a claim are made."""
        ...

    def finished(self, row: Row) -> None:
        """A claim has its verdict."""
        ...

    def say(self, text: str) -> None:
        """Something else that the user should know now."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...


class Silent:
    """Shows nothing."""

    def begin(self, total: int) -> None: ...

    def started(self, name: str) -> None: ...

    def progressed(self, name: str, done: int, total: int) -> None: ...

    def finished(self, row: Row) -> None: ...

    def say(self, text: str) -> None: ...

    def end(self) -> None: ...


class Lines:
    """One line a verdict, and a sign of life for a claim that takes long; for logs."""

    _QUIET_SECONDS = 20.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._done = 0
        self._total = 0
        self._last = time.monotonic()

    def begin(self, total: int) -> None:
        self._total = total

    def started(self, name: str) -> None: ...

    def progressed(self, name: str, done: int, total: int) -> None:
        if time.monotonic() - self._last > self._QUIET_SECONDS:
            self.say(f"{name}: {done:,} of at most {total:,}")

    def finished(self, row: Row) -> None:
        self._done += 1
        self.say(f"[{self._done}/{self._total}] {row.name}: {'ERROR' if row.error else row.status}")

    def say(self, text: str) -> None:
        self._last = time.monotonic()
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def end(self) -> None: ...


class Bars:
    """A bar for all claims and one for each that is running, gone when the run is over; for terminals."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._all: TaskID | None = None
        self._running: dict[str, TaskID] = {}

    def begin(self, total: int) -> None:
        self._all = self._progress.add_task("claims", total=total, amount=f"0/{total}")
        self._progress.start()

    def started(self, name: str) -> None:
        self._running[name] = self._progress.add_task(name, total=None, amount="")

    def progressed(self, name: str, done: int, total: int) -> None:
        if name in self._running and total:
            self._progress.update(self._running[name], completed=done, total=total, amount=f"{done:,}/{total:,}")

    def finished(self, row: Row) -> None:
        if row.name in self._running:
            self._progress.remove_task(self._running.pop(row.name))
        if self._all is not None:
            self._progress.advance(self._all)
            task = next(task for task in self._progress.tasks if task.id == self._all)
            self._progress.update(self._all, amount=f"{int(task.completed)}/{int(task.total or 0)}")

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False)

    def end(self) -> None:
        self._progress.stop()


def reporter_for(console: Console) -> Reporter:
    """Bars where there is a terminal to draw them on, lines elsewhere."""
    return Bars(console) if console.is_terminal else Lines(console)
