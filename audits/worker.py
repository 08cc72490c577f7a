"""The process in which one claim is audited: it may hang, crash or be killed without harm to the others.

The parent (`audits.isolation`) talks to it through its standard input and output, which are taken away from the
mechanism before any of its code is imported. Messages are pickles: tasks and `Stop` come in, a `Beat` goes out several
times a second for as long as the interpreter lives, and an `Answer` for each task.

Each task is worked on in a fork of a process that has imported this product and nothing else, and has no threads: so
no task sees what another's code has done, and none has to wait for the imports. Where forks are not safe (all but
Linux), a process takes one task and ends.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from audits.claims_file import ClaimSpec
from audits.engine import audit_claim, choose_method
from audits.loading import describe_exception, load, one_paragraph
from audits.rendering import readable
from audits.verdicts import Verdict, Witness
from audits.watch import CallClock
from mechanisms import AdaptedMechanism, AuditCase, as_mechanism, registered

BEAT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Load:
    """Find out whether the mechanism of a claim can be had, and by which method it would be audited."""

    spec: ClaimSpec


@dataclass(frozen=True, slots=True)
class Audit:
    """Audit a claim about a mechanism named by text."""

    spec: ClaimSpec
    confidence: float
    max_runs: int
    seed: np.random.SeedSequence


@dataclass(frozen=True, slots=True)
class AuditOwn:
    """Audit one case of a mechanism registered by this product."""

    registration: str
    case: int
    name: str
    confidence: float
    max_runs: int
    seed: np.random.SeedSequence


@dataclass(frozen=True, slots=True)
class Stop:
    """End the task in progress soon, with what there is."""


Task = Load | Audit | AuditOwn


@dataclass(frozen=True, slots=True)
class Beat:
    """The interpreter lives. seconds, doing: of the call of the user's code in progress, None between calls."""

    seconds: float | None
    doing: str | None
    loading: bool
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Answer:
    """To a task: a method for `Load`, a verdict for the others, or one paragraph on why there is none."""

    method: str | None = None
    verdict: Verdict | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The fork that worked on the last task has ended; code: as `subprocess` has it, negative for a signal."""

    code: int


FORKS = sys.platform == "linux"


@dataclass(slots=True)
class _State:
    clock: CallClock
    stop: threading.Event
    loading: bool = False
    done: int = 0
    total: int = 0

    def progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total


class _Wire:
    """The way out; two threads write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Beat | Answer | Ended) -> None:
        data = pickle.dumps(message)  # whole before it is sent: half a message would end the conversation
        with self._lock:
            self._stream.write(data)
            self._stream.flush()


def main() -> None:
    """Work off tasks until the parent goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    incoming, outgoing = _take_standard_streams()
    while True:
        try:
            message = pickle.load(incoming)
        except EOFError:
            return
        if isinstance(message, Stop):  # meant for a task that has ended since
            continue
        if not FORKS:
            _serve(message, incoming, outgoing)
            return
        child = os.fork()
        if child == 0:
            try:
                _serve(message, incoming, outgoing)
                os._exit(0)
            finally:  # reached by an exception only, a defect of ours
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        _Wire(outgoing).send(Ended(os.waitstatus_to_exitcode(status)))


def _serve(task: Task, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    wire, state = _Wire(outgoing), _State(CallClock(), threading.Event())
    threading.Thread(target=_listen, args=(incoming, state.stop), daemon=True).start()
    threading.Thread(target=_beat, args=(wire, state), daemon=True).start()
    wire.send(_answer(task, state))


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private copies of standard input and output; what the mechanism prints goes to standard error from here on."""
    sys.stdout.flush()
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a crash would lose what is buffered
    return incoming, outgoing


def _listen(incoming: BinaryIO, stop: threading.Event) -> None:
    while True:
        try:
            pickle.load(incoming)  # while a task is worked on, the parent sends nothing but Stop
        except EOFError:
            os._exit(0)  # the parent is gone
        stop.set()


def _beat(wire: _Wire, state: _State) -> None:
    wake = threading.Event()
    while True:
        call = state.clock.current()
        seconds, doing = call if call is not None else (None, None)
        try:
            wire.send(Beat(seconds, doing, state.loading, state.done, state.total))
        except OSError:
            os._exit(0)
        wake.wait(BEAT_SECONDS)


def _answer(task: Task, state: _State) -> Answer:
    try:
        if isinstance(task, AuditOwn):
            return Answer(verdict=_audit_own(task, state))
        mechanism = _load(task.spec, state)
        method = choose_method(mechanism, task.spec.domain, task.spec.method)
        if isinstance(task, Load):
            return Answer(method=method)
        return Answer(verdict=_portable(_audit(task, mechanism, state)))
    except (ValueError, TypeError) as error:
        return Answer(error=_told(error))
    except (Exception, SystemExit) as error:
        return Answer(error=describe_exception(error))


def _told(error: Exception) -> str:
    """Errors of ours say what is wrong; those that only pass through here need their type and place."""
    inner = error.__traceback__
    while inner is not None and inner.tb_next is not None:
        inner = inner.tb_next
    ours = inner is not None and Path(inner.tb_frame.f_code.co_filename).parent.parent == Path(__file__).parent.parent
    return one_paragraph(error, 1000) if ours else describe_exception(error)


def _load(spec: ClaimSpec, state: _State) -> AdaptedMechanism:
    state.loading = True
    state.clock.start(f"loading {spec.mechanism}", None)
    try:
        return as_mechanism(load(spec.mechanism, folder=spec.folder), spec.parameters, name=spec.mechanism)
    finally:
        state.clock.stop()
        state.loading = False


def _audit(task: Audit, mechanism: AdaptedMechanism, state: _State) -> Verdict:
    spec = task.spec
    return audit_claim(
        mechanism,
        spec.claim,
        spec.domain,
        name=spec.name,
        method=spec.method,
        confidence=task.confidence,
        max_runs=task.max_runs,
        rng=np.random.default_rng(task.seed),
        progress=state.progress,
        should_stop=state.stop.is_set,
        clock=state.clock,
    )


def _audit_own(task: AuditOwn, state: _State) -> Verdict:
    case = _cases(task.registration)[task.case]
    verdict = audit_claim(
        as_mechanism(case.mechanism, name=task.registration),
        case.claim,
        case.domain,
        name=task.name,
        method="auto",
        confidence=task.confidence,
        max_runs=task.max_runs,
        rng=np.random.default_rng(task.seed),
        progress=state.progress,
        should_stop=state.stop.is_set,
    )
    return dataclasses.replace(
        verdict,
        paper_epsilon=case.paper_epsilon,
        paper_delta=case.paper_delta,
        paper_source=case.paper_source,
    )


def _cases(registration: str) -> Sequence[AuditCase]:
    return next(entry for entry in registered() if entry.name == registration).cases()


def _portable(verdict: Verdict) -> Verdict:
    """A verdict without objects of the user's classes, which the parent could not unpickle."""
    return dataclasses.replace(
        verdict, witness=_plain_witness(verdict.witness), worst_pair=_plain_witness(verdict.worst_pair)
    )


def _plain_witness(witness: Witness | None) -> Witness | None:
    if witness is None:
        return None
    return dataclasses.replace(
        witness,
        dataset=_plain(witness.dataset),
        neighbour=_plain(witness.neighbour),
        outcomes=None if witness.outcomes is None else tuple(map(_plain, witness.outcomes)),
    )


def _plain(value: Any) -> Any:
    if type(value) in (bool, int, float, str, bytes, type(None)):
        return value
    if type(value) in (tuple, list, frozenset, set):
        return type(value)(map(_plain, value))
    return readable(value)
