"""Jobs in worker processes: a bounded number at a time, each watched for calls that never return, all of them
stoppable.
"""

from __future__ import annotations

import collections
import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Self

from audits.isolation import Gone, Worker
from audits.worker import Answer, Beat, Ended, Task

GRACE_SECONDS = 5.0
"""What a job that is told to stop gets to finish the call in progress and hand over what it has."""

LOADING_SECONDS = 60.0
"""The least that importing a user's module may take, whatever the timeout for a call."""

_STARTING_SECONDS = 120.0
_SILENCE_SECONDS = 5.0
_TICK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Job:
    """A task, and how long one call of the mechanism may take."""

    name: str
    task: Task
    timeout: float = math.inf


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended.

    answer: a result or an error; None when the job was given up. stopped: why it was told to end early ("budget",
    "interrupted"), None when it was not. started: whether it had a process.
    """

    answer: Answer | None = None
    stopped: str | None = None
    started: bool = True
    seconds: float = 0.0


@dataclass(slots=True)
class Interrupts:
    """Counts Ctrl-C (and SIGTERM) instead of raising, while entered in the main thread; elsewhere does nothing."""

    count: int = 0
    _former: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._former[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


class Observer:
    """Told of the jobs by their place in the list; this one does nothing."""

    def started(self, index: int) -> None:
        """The job has a process."""

    def progressed(self, index: int, done: int, total: int) -> None:
        """`done` of at most `total` steps are made."""

    def ended(self, index: int, ending: Ending) -> None:
        """The job is over."""


@dataclass(slots=True)
class _Active:
    index: int
    job: Job
    began: float
    answer: Answer | None = None
    told: float | None = None
    stopped: str | None = None


@dataclass(slots=True)
class Pool:
    """Runs jobs, at most `width` at a time; a context manager, for its processes wait for further jobs.

    deadline: on the monotonic clock. observer: told of progress, in this thread.
    """

    width: int
    interrupts: Interrupts
    deadline: float = math.inf
    observer: Observer = field(default_factory=Observer)
    _inbox: queue.SimpleQueue[tuple[Worker, Answer | Ended | Gone]] = field(default_factory=queue.SimpleQueue)
    _active: dict[Worker, _Active] = field(default_factory=dict)
    _idle: list[Worker] = field(default_factory=list)
    _looked: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for worker in self._active:
            worker.kill()
        for worker in self._idle:
            worker.dismiss()
        self._active.clear()
        self._idle.clear()

    def run(self, jobs: Sequence[Job]) -> list[Ending]:
        """One ending a job, in the order of the jobs; returns early, with what there is, when stopped."""
        endings: dict[int, Ending] = {}
        waiting = collections.deque(enumerate(jobs))

        def end(index: int, ending: Ending) -> None:
            endings[index] = ending
            self.observer.ended(index, ending)

        self._looked = time.monotonic()
        while waiting or self._active:
            reason = self._stopping()
            while waiting and reason is None and len(self._active) < self.width:
                self._start(*waiting.popleft())
            while waiting and reason is not None:
                end(waiting.popleft()[0], Ending(stopped=reason, started=False))
            self._receive(end)
            self._forgive_suspension()
            for worker, active in list(self._active.items()):
                self._look_after(worker, active, reason, end)
        return [endings[index] for index in range(len(jobs))]

    def _stopping(self) -> str | None:
        if self.interrupts.count:
            return "interrupted"
        return "budget" if time.monotonic() >= self.deadline else None

    def _start(self, index: int, job: Job) -> None:
        worker = self._idle.pop() if self._idle else Worker(self._inbox)
        self._active[worker] = _Active(index, job, time.monotonic())
        worker.begin(job.task)
        self.observer.started(index)

    def _receive(self, end: Callable[[int, Ending], None]) -> None:
        wait = _TICK_SECONDS
        while True:
            try:
                worker, message = self._inbox.get(timeout=wait) if wait else self._inbox.get_nowait()
            except queue.Empty:
                return
            wait = 0.0
            active = self._active.get(worker)
            if isinstance(message, Answer):
                if active is not None:
                    active.answer = message
                continue
            if active is not None:
                code = message.code if isinstance(message, Ended) else None
                del self._active[worker]
                answer = active.answer or Answer(error=_crash(worker, code))
                end(active.index, Ending(answer, stopped=active.stopped, seconds=time.monotonic() - active.began))
            if isinstance(message, Ended):
                self._idle.append(worker)
                continue
            worker.dismiss()
            if worker in self._idle:
                self._idle.remove(worker)

    def _forgive_suspension(self) -> None:
        """Count no silence against the workers while this process itself was stopped (Ctrl-Z) and could not hear."""
        now = time.monotonic()
        if now - self._looked > _SILENCE_SECONDS:
            for worker in self._active:
                worker.heard = now
        self._looked = now

    def _look_after(
        self, worker: Worker, active: _Active, reason: str | None, end: Callable[[int, Ending], None]
    ) -> None:
        now = time.monotonic()
        if worker.beat is not None:
            self.observer.progressed(active.index, worker.beat.done, worker.beat.total)
        error = _overdue(worker, active.job.timeout)
        if error is None and reason is not None and active.told is None:
            active.told, active.stopped = now, reason
            worker.stop()
        out_of_grace = active.told is not None and (self.interrupts.count > 1 or now - active.told > GRACE_SECONDS)
        if error is None and not out_of_grace:
            return
        worker.kill()
        del self._active[worker]
        given_up = None if error is None else Answer(error=error)
        end(active.index, Ending(active.answer or given_up, stopped=active.stopped, seconds=now - active.began))


def _crash(worker: Worker, code: int | None) -> str:
    during = f" during {worker.beat.doing}" if worker.beat and worker.beat.doing else ""
    return f"the process running the mechanism {worker.how_it_ended(code)}{during}"


def _overdue(worker: Worker, timeout: float) -> str | None:
    """Why a worker is given up, None while there is hope."""
    beat: Beat | None = worker.beat
    if beat is None:
        slow = worker.silent_for() > _STARTING_SECONDS
        return f"its process did not start within {_STARTING_SECONDS:g} seconds" if slow else None
    if beat.seconds is not None:
        limit = max(timeout, LOADING_SECONDS) if beat.loading else timeout
        if beat.seconds > limit:
            advice = "" if beat.loading else "; a longer time is allowed by timeout"
            return f"{beat.doing} did not return within {limit:g} seconds{advice}"
    if worker.silent_for() > timeout + _SILENCE_SECONDS:
        during = f", last seen in {beat.doing}" if beat.doing else ""
        return (
            f"its process has not answered for {worker.silent_for():.0f} seconds: a call that neither returns nor lets "
            f"the interpreter run{during}"
        )
    return None
