"""A verification run: which claims, under which error budget and seeds, in which processes; and the verdicts in order.

One error budget a run: 1 - confidence is divided evenly among the claims audited from samples, so the mechanisms are
loaded first, to see which those are. Each claim of a file is audited in a fresh process with the seed of its place in
the file, so its verdict does not depend on the number of jobs, on the other claims' order of completion, or on what
their code does.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accounting import Claim, check_int
from audits.claims_file import BrokenClaim, ClaimsFile, ClaimSpec, check_confidence, check_runs, check_timeout
from audits.engine import choose_method, without_result
from audits.loading import hint
from audits.pool import Ending, Interrupts, Job, Observer, Pool
from audits.progress import Reporter, Silent
from audits.verdicts import Verdict
from audits.verification import Row, Unchecked, VerificationRun, versions
from audits.worker import Audit, AuditOwn, Load
from mechanisms import AuditCase, Domain, as_mechanism, registered

DEFAULT_CONFIDENCE = 0.95
DEFAULT_MAX_RUNS = 200_000
DEFAULT_TIMEOUT = 30.0
_SEED_BITS = 53  # exact in JSON readers that have only doubles

_STOPPED = {
    "interrupted": "the run was interrupted",
    "budget": "the time budget of the run was used up",
}


@dataclass(frozen=True, slots=True)
class OwnCase:
    """A case of a mechanism that this product registers."""

    name: str
    registration: str
    index: int
    case: AuditCase


Entry = ClaimSpec | BrokenClaim | OwnCase


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a whole run; see `audits.verify`."""

    confidence: float
    max_runs: int
    timeout: float
    budget_seconds: float
    jobs: int
    seed: int

    @classmethod
    def of(
        cls,
        file: ClaimsFile | None,
        *,
        confidence: float | None = None,
        max_runs: int | None = None,
        timeout: float | None = None,
        budget_seconds: float | None = None,
        jobs: int = 1,
        seed: int | None = None,
    ) -> Settings:
        """What is given, else what the file says, else the defaults; a fresh seed where none is given.

        Raises:
            TypeError, ValueError: a number is of the wrong kind or out of range.
        """

        def pick(given: object, in_file: object, default: object) -> object:
            return given if given is not None else in_file if in_file is not None else default

        return cls(
            confidence=check_confidence("confidence", pick(confidence, file and file.confidence, DEFAULT_CONFIDENCE)),
            max_runs=check_runs("max_runs", pick(max_runs, file and file.max_runs, DEFAULT_MAX_RUNS)),
            timeout=check_timeout("timeout", pick(timeout, file and file.timeout, DEFAULT_TIMEOUT)),
            budget_seconds=math.inf if budget_seconds is None else check_timeout("budget_seconds", budget_seconds),
            jobs=check_int("jobs", jobs, lo=1),
            seed=secrets.randbits(_SEED_BITS) if seed is None else check_int("seed", seed, lo=0),
        )


def own_entries(*, thorough: bool = False) -> list[OwnCase]:
    """The cases of every mechanism that this product registers; those that take long only if `thorough`."""
    return [
        OwnCase(f"{entry.name}: {case.label}", entry.name, index, case)
        for entry in registered()
        for index, case in enumerate(entry.cases())
        if thorough or not case.thorough
    ]


def run(
    entries: Sequence[Entry], settings: Settings, *, only: str | None = None, reporter: Reporter | None = None
) -> VerificationRun:
    """Check the entries whose name matches `only` (all, when None).

    Raises:
        ValueError: nothing matches.
    """
    began = time.monotonic()
    chosen = choose([entry.name for entry in entries], only)
    seeds = _seeds(entries, settings.seed)
    audience = reporter or Silent()
    with Interrupts() as interrupts:
        rows = _Rows([entries[index] for index in chosen], [seeds[index] for index in chosen], settings, audience)
        audience.begin(len(chosen))
        try:
            rows.fill(interrupts, began + settings.budget_seconds)
        finally:
            audience.end()
        return VerificationRun(
            verdicts=rows.in_order(),
            seed=settings.seed,
            confidence=settings.confidence,
            statistical=rows.statistical,
            seconds=time.monotonic() - began,
            interrupted=interrupts.count > 0,
            versions=versions(),
        )


def _seeds(entries: Sequence[Entry], seed: int) -> list[np.random.SeedSequence]:
    """One child each by the place among the claims of the file; neither `only` nor own cases beside them change it."""
    order = sorted(range(len(entries)), key=lambda index: isinstance(entries[index], OwnCase))
    children = np.random.SeedSequence(seed).spawn(len(entries))
    return [child for _, child in sorted(zip(order, children, strict=True), key=lambda pair: pair[0])]


def choose(names: Sequence[str], only: str | None) -> list[int]:
    """The places of the names that match `only` (all, when None).

    Raises:
        ValueError: none does.
    """
    chosen = [index for index, name in enumerate(names) if only is None or _matches(name, only)]
    if not chosen:
        listed = "; ".join(names[:20]) + ("; ..." if len(names) > 20 else "")
        raise ValueError(f"no claim matches {only!r}{hint(only or '', names)}; the claims are: {listed or 'none'}")
    return chosen


class _Rows:
    """The rows of a run as they fill up."""

    def __init__(
        self,
        entries: Sequence[Entry],
        seeds: Sequence[np.random.SeedSequence],
        settings: Settings,
        reporter: Reporter,
    ) -> None:
        self._entries, self._seeds, self._settings, self.reporter = entries, seeds, settings, reporter
        self._rows: dict[int, Row] = {}
        self.statistical = 0

    def in_order(self) -> tuple[Row, ...]:
        return tuple(self._rows[index] for index in range(len(self._entries)))

    def fill(self, interrupts: Interrupts, deadline: float) -> None:
        for index, entry in enumerate(self._entries):
            if isinstance(entry, BrokenClaim):
                where = "" if entry.mechanism is None else f" ({entry.mechanism})"
                problems = "; ".join(entry.problems)
                self._settle(index, Unchecked(entry.name, entry.mechanism, f"claim {entry.name!r}{where}: {problems}"))
        with Pool(self._settings.jobs, interrupts, deadline) as pool:
            self.statistical = len(self._load(pool))
            share = (1.0 - self._settings.confidence) / max(self.statistical, 1)
            left = [index for index in range(len(self._entries)) if index not in self._rows]
            jobs = [self._job(index, 1.0 - share) for index in left]
            pool.observer = _Telling(self, interrupts, [job.name for job in jobs], left)
            pool.run(jobs)

    def _load(self, pool: Pool) -> set[int]:
        """The claims to be audited from samples. Those that cannot be loaded get their error here."""
        specs = {
            index: entry
            for index, entry in enumerate(self._entries)
            if isinstance(entry, ClaimSpec) and index not in self._rows
        }
        statistical = {
            index
            for index, entry in enumerate(self._entries)
            if isinstance(entry, OwnCase)
            and choose_method(as_mechanism(entry.case.mechanism), entry.case.domain, "auto") == "sequential"
        }
        jobs = [Job(spec.name, Load(spec), self._timeout(spec)) for spec in specs.values()]
        for (index, spec), ending in zip(specs.items(), pool.run(jobs), strict=True):
            if ending.answer is None or ending.answer.error is not None:
                self._settle(index, self._unfinished(spec, ending))
            elif ending.answer.method == "sequential":
                statistical.add(index)
        return statistical

    def settle(self, index: int, ending: Ending) -> None:
        verdict = ending.answer.verdict if ending.answer is not None else None
        if verdict is None:
            verdict = self._unfinished(self._entries[index], ending)
        elif ending.stopped is not None and verdict.reason is not None:
            reason = f"{_STOPPED[ending.stopped]} before the audit was complete"
            verdict = dataclasses.replace(verdict, reason=reason, interrupted=ending.stopped == "interrupted")
        self._settle(index, verdict)

    def _settle(self, index: int, row: Row) -> None:
        self._rows[index] = row
        self.reporter.finished(row)

    def _timeout(self, spec: ClaimSpec) -> float:
        return self._settings.timeout if spec.timeout is None else spec.timeout

    def _job(self, index: int, confidence: float) -> Job:
        entry, seed = self._entries[index], self._seeds[index]
        if isinstance(entry, OwnCase):
            task = AuditOwn(entry.registration, entry.index, entry.name, confidence, self._settings.max_runs, seed)
            return Job(entry.name, task)
        assert isinstance(entry, ClaimSpec)
        wanted = max(confidence, entry.confidence or 0.0)
        audit = Audit(entry, wanted, entry.max_runs or self._settings.max_runs, seed)
        return Job(entry.name, audit, self._timeout(entry))

    def _unfinished(self, entry: Entry, ending: Ending) -> Verdict:
        """The row of a claim without a verdict of its own."""
        assert not isinstance(entry, BrokenClaim)
        error = None if ending.answer is None else ending.answer.error
        mechanism, claim, domain = _subject(entry)
        reason = None
        if ending.stopped is not None:
            when = "before the audit had a result" if ending.started else "before the audit of this claim began"
            reason = f"{_STOPPED[ending.stopped]} {when}"
        return without_result(
            claim,
            domain,
            name=entry.name,
            mechanism=mechanism,
            method=entry.method if isinstance(entry, ClaimSpec) else "auto",
            error=None if error is None else f"claim {entry.name!r} ({mechanism}): {error}",
            reason=reason,
            interrupted=ending.stopped == "interrupted",
            seconds=ending.seconds,
        )


@dataclass(slots=True)
class _Telling(Observer):
    """Passes what happens in a pool on to the rows and to the user."""

    rows: _Rows
    interrupts: Interrupts
    names: Sequence[str]
    indices: Sequence[int]
    said: bool = False

    def started(self, index: int) -> None:
        self.rows.reporter.started(self.names[index])

    def progressed(self, index: int, done: int, total: int) -> None:
        if self.interrupts.count == 1 and not self.said:
            self.said = True
            self.rows.reporter.say("Stopping: the calls in progress are let finish. Ctrl-C again stops at once.")
        self.rows.reporter.progressed(self.names[index], done, total)

    def ended(self, index: int, ending: Ending) -> None:
        self.rows.settle(self.indices[index], ending)


def _subject(entry: ClaimSpec | OwnCase) -> tuple[str, Claim, Domain]:
    if isinstance(entry, OwnCase):
        return entry.registration, entry.case.claim, entry.case.domain
    return entry.mechanism, entry.claim, entry.domain


def _matches(name: str, pattern: str) -> bool:
    """A glob over the whole name, or a part of it; capitals do not matter."""
    return pattern.lower() in name.lower() or fnmatch.fnmatchcase(name.lower(), pattern.lower())
