"""One worker process as its parent sees it: started, told, watched, killed.

A process of its own, not a fork: nothing of the parent's threads and locks is carried over. It is started by a command
line, not by `multiprocessing`, so that a user's script which calls `verify` needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import collections
import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from audits.loading import one_paragraph
from audits.worker import Answer, Beat, Ended, Stop, Task

_START = "from audits import worker; worker.main()"
_LAST_WORDS = 20
_LAST_WORDS_SECONDS = 0.1
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Gone:
    """The process has ended."""


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process, for one task after the other.

    What it says arrives in `inbox` as (worker, message): to each task an `Answer`, if it comes so far, then `Ended`, or
    `Gone` when the worker takes no more tasks. `beat` is the last sign of life of the task in progress.
    """

    inbox: queue.SimpleQueue[tuple[Worker, Answer | Ended | Gone]]
    beat: Beat | None = None
    heard: float = field(default_factory=time.monotonic)
    _process: subprocess.Popen[bytes] = field(init=False)
    _last_words: collections.deque[str] = field(init=False)

    def __post_init__(self) -> None:
        search = [entry or str(Path.cwd()) for entry in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = {search!r}; {_START}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_ONE_THREAD, **os.environ},  # parallel claims must not fight over cores, nor sum in another order
            process_group=0 if os.name == "posix" else None,  # Ctrl-C reaches the parent alone
        )
        self._last_words = collections.deque(maxlen=_LAST_WORDS)
        threading.Thread(target=self._keep_last_words, daemon=True).start()
        threading.Thread(target=self._receive, daemon=True).start()

    def begin(self, task: Task) -> None:
        """Hand over a task."""
        self.beat, self.heard = None, time.monotonic()
        self._last_words.clear()
        self._send(task)

    def stop(self) -> None:
        """Ask the task in progress to end soon, with what it has."""
        self._send(Stop())

    def _send(self, message: Task | Stop) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a dead process is not told; its `Gone` is on the way
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def dismiss(self) -> None:
        """Let the process end; it has nothing to do."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """End the process, and any that the mechanism has started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self.dismiss()
        self._process.wait()

    def how_it_ended(self, code: int | None) -> str:
        """In words, with the last line that was printed. code: of `Ended`; None after `Gone`."""
        code = self._process.wait() if code is None else code
        time.sleep(_LAST_WORDS_SECONDS)  # they come by another way than the news of the end
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            ended = f"was ended by {name}"
        else:
            ended = f"ended with exit code {code}"
        words = [line for line in self._last_words if line.strip()]
        return ended + (f"; its last words were: {one_paragraph(words[-1], 200)}" if words else "")

    def silent_for(self) -> float:
        """Seconds since it was last heard of."""
        return time.monotonic() - self.heard

    def _receive(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            while True:
                try:
                    message = pickle.load(stream)
                except EOFError:
                    break
                except Exception:  # torn in the middle of a message
                    self._process.kill()
                    break
                self.heard = time.monotonic()
                if isinstance(message, Beat):
                    self.beat = message
                else:
                    self.inbox.put((self, message))
        self._process.wait()
        self.inbox.put((self, Gone()))

    def _keep_last_words(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while line := stream.readline(1000):
                self._last_words.append(line.decode("utf-8", "replace"))
