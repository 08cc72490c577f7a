"""Statistical audits: a claim against runs of a black box, valid at all times, over many pairs of datasets in one
budget.

Every pair of datasets has an e-process (`audits.pairwise`), the audit's wealth is their average with prior weights
(`audits.allocation`), and a true claim is refuted with probability at most 1 - confidence: over both directions, all
pairs, all events, and every moment at which the audit might have been stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    Claim,
    RelationMismatchError,
    Trust,
    UnsupportedEventError,
    check_int,
    check_real,
    check_text,
    relation_name,
)
from audits.allocation import Allocation, harmonic_log_weights
from audits.candidates import candidate_pairs
from audits.canonical import UncountableError
from audits.loading import describe_exception
from audits.pairwise import LowerBound, PairEvidence, SequentialTest, epsilon_grid
from audits.power import detectable_epsilon
from audits.rendering import readable
from audits.verdicts import Status, Verdict, Witness
from mechanisms import AdaptedMechanism, Domain, Pair

PROFILE_DELTA = 0.01
"""A claim given as a privacy profile is tested at this delta: violations at smaller ones take far more runs to see."""
_GROWTH_OF_ONE = 1 / 25
_GROWTH_OF_MANY = 1 / 6
_LARGEST_BATCH = 1 << 17
_PORTION = 256
_SECONDS_BETWEEN_REPORTS = 0.1


def audit_sequential(
    mechanism: AdaptedMechanism,
    claim: Claim,
    domain: Domain,
    *,
    confidence: float,
    max_runs: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    name: str | None = None,
) -> Verdict:
    """Try to refute the claim from runs on pairs of neighbours in the domain; stops as soon as it is refuted.

    claim: (epsilon, delta) as it stands; eta-bounded-range as eta-DP, which it implies; any other as the point
        (epsilon, delta) of its profile at delta = `PROFILE_DELTA`. confidence: 1 - (largest probability that a true
        claim is refuted, or that `epsilon_lower` exceeds the truth). max_runs: of the mechanism, both datasets of a
        pair together. rng: each pair gets generators of its own by spawning, so equal seeds give equal verdicts for a
        replayable mechanism.
    progress: called with (runs made, max_runs), at most about ten times a second, at the start and at the end.
        should_stop: asked between batches, and every 256 runs of a mechanism that is not vectorised; once it is true,
        the runs of the unfinished batch are dropped and the verdict is given on the rest.

    The verdict: REFUTED, with the pair and the event that separates it best; its probabilities are frequencies in
        these runs. CONSISTENT: not refuted; `epsilon_detectable` says what would have been (`audits.power`), for the
        pair that was run most. INCONCLUSIVE: the runs were too few to show any violation, the mechanism failed
        (`error`), or no pair of the domain keeps the claim's promise. `pairs_tried` of `pairs_total` pairs were run,
        promising ones more. `runs` counts runs of the mechanism, one on each dataset of a pair at a time. Ctrl-C ends
        the audit and keeps what was found.

    Raises:
        TypeError, ValueError: a wrong argument, named with its rule and value.
        accounting.RelationMismatchError: claim and domain are under different relations.
    """
    audit = _Audit(mechanism, claim, domain, confidence, max_runs, rng, name)
    try:
        audit.run(progress, should_stop)
    except KeyboardInterrupt:
        audit.stopped, audit.interrupted = "interrupted by the user", True
    return audit.verdict()


class _StopAskedError(Exception):
    """The caller wants the audit to end."""


@dataclass
class _Arm:
    """One pair of datasets under audit."""

    pair: Pair
    evidence: PairEvidence
    generators: list[np.random.Generator]


@dataclass
class _Audit:
    mechanism: AdaptedMechanism
    claim: Claim
    domain: Domain
    confidence: float
    max_runs: int
    rng: np.random.Generator
    given_name: str | None
    stopped: str | None = None
    interrupted: bool = False
    error: str | None = None
    runs: int = 0
    arms: dict[int, _Arm] = field(default_factory=dict)
    outside: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, AdaptedMechanism):
            raise TypeError(f"mechanism must come from mechanisms.as_mechanism, got {self.mechanism!r}")
        if not isinstance(self.claim, Claim):
            raise TypeError(f"claim must be a Claim, got {self.claim!r}")
        if not isinstance(self.domain, Domain):
            raise TypeError(f"domain must be a domain of datasets (mechanisms.Domain), got {self.domain!r}")
        if self.domain.relation is not self.claim.relation:
            raise RelationMismatchError(
                f"domain must be under the claim's relation {relation_name(self.claim.relation)}, "
                f"got {relation_name(self.domain.relation)}"
            )
        self.name = check_text("name", self.mechanism.name if self.given_name is None else self.given_name)
        check_real("confidence", self.confidence, lo=0.0, hi=1.0, lo_open=True, hi_open=True)
        check_int("max_runs", self.max_runs, lo=2)
        if not isinstance(self.rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {self.rng!r}")
        self._started = time.monotonic()
        ignore_order = self.mechanism.ignores_order
        self.pairs_total = self.domain.count(ignore_order)
        try:
            self.epsilon, self.delta = point_of(self.claim)
        except UnsupportedEventError as error:
            self.epsilon, self.delta = math.inf, 0.0
            self.error = f"claim {self.name!r}: no privacy profile is known for {self.claim.statement()}: {error}"
            return
        self._grid = epsilon_grid(self.epsilon)
        self._place = int(np.searchsorted(self._grid, self.epsilon))
        self.bound = LowerBound(self._grid, 1.0 - self.confidence)
        choosing, selecting = self.rng.spawn(2)
        self._pairs = candidate_pairs(self.domain, ignore_order=ignore_order, rng=selecting)
        self._log_weights = harmonic_log_weights(len(self._pairs))
        # Log of weight times wealth of every pair, run or not, against every epsilon of the grid.
        self._wealth = np.tile(self._log_weights[:, None], (1, len(self._grid)))
        self._allocation = Allocation(
            self._log_weights, epsilon=self.epsilon, delta=self.delta, log_level=self.bound.log_level, rng=choosing
        )

    def run(self, progress: Callable[[int, int], None] | None, should_stop: Callable[[], bool] | None) -> None:
        """Run until the claim is refuted, the runs are spent, or something ends it."""
        if self.error is not None:
            return
        growth = _GROWTH_OF_ONE if len(self._pairs) == 1 else _GROWTH_OF_MANY
        told = time.monotonic()
        if progress is not None:
            progress(0, self.max_runs)
        while not self.bound.refutes(self.epsilon):
            left = (self.max_runs - self.runs) // 2
            chosen = self._allocation.choose() if left else None
            if chosen is None:
                break
            arm = self._open(chosen)
            if arm is None:
                self.outside += 1
                self._allocation.exclude(chosen)
                continue
            size = min(max(1, int(growth * arm.evidence.runs)), _LARGEST_BATCH, left)
            try:
                settled = self._settle(chosen, arm, size, should_stop)
            except _StopAskedError:
                self.stopped = "stopped before the end, on request"
                break
            if not settled:
                break
            if progress is not None and time.monotonic() - told >= _SECONDS_BETWEEN_REPORTS:
                progress(self.runs, self.max_runs)
                told = time.monotonic()
        if progress is not None:
            progress(self.runs, self.max_runs)

    def _open(self, chosen: int) -> _Arm | None:
        """The arm of a pair, made when it is first chosen; None when the pair does not keep the promise."""
        if chosen not in self.arms:
            pair = self._pairs[chosen]
            if self.claim.promise is not None and not all(_keeps_promise(self.mechanism, side) for side in pair):
                return None
            self.arms[chosen] = _Arm(pair, PairEvidence(self._grid, self.delta), self.rng.spawn(2))
        return self.arms[chosen]

    def _settle(self, chosen: int, arm: _Arm, size: int, should_stop: Callable[[], bool] | None) -> bool:
        """Run a pair and settle its bets; False when the mechanism failed (then `error` says why)."""
        sides = []
        for dataset, generator in zip(arm.pair, arm.generators, strict=True):
            try:
                sides.append(_draw(self.mechanism, dataset, size, generator, should_stop))
            except _StopAskedError:
                raise
            except UncountableError as error:
                return self._fail(f"the mechanism returned {error}")
            except (Exception, SystemExit) as error:
                # A user's code may raise anything; the audit ends there, and the verdict says so.
                where = f"on the dataset {readable(list(dataset))}"
                return self._fail(f"the mechanism failed {where}: {describe_exception(error)}")
        try:
            arm.evidence.update(sides[0], sides[1], self.bound.active)
        except UncountableError as error:
            return self._fail(f"the mechanism returned {error}")
        self.runs += 2 * size
        event = arm.evidence.event(self.epsilon)
        assert event is not None
        self._allocation.observe(
            chosen,
            runs=event.runs,
            first=event.first,
            second=event.second,
            log_wealth=float(arm.evidence.log_wealth[self._place]),
        )
        self._wealth[chosen] = arm.evidence.log_wealth + self._log_weights[chosen]
        self.bound.update(np.asarray(np.logaddexp.reduce(self._wealth, axis=0)))
        return True

    def _fail(self, why: str) -> bool:
        self.error = f"claim {self.name!r} ({self.mechanism.name}): {why}"
        return False

    @property
    def _tried(self) -> list[int]:
        """The pairs that were run."""
        return [place for place, arm in self.arms.items() if arm.evidence.runs]

    @property
    def _richest(self) -> int:
        return max(self._tried, key=lambda place: float(self._wealth[place, self._place]))

    @property
    def _most_run(self) -> int:
        return max(self._tried, key=lambda place: self.arms[place].evidence.runs)

    def verdict(self) -> Verdict:
        """The verdict on the runs settled so far."""
        tried = self._tried
        status, reason = self._status()
        shown = None
        if tried:
            shown = self._witness(self._richest if status is Status.REFUTED else self._most_run)
        return Verdict(
            name=self.name,
            mechanism=self.mechanism.name,
            relation=self.claim.relation,
            promise=self.claim.promise,
            statement=self.claim.statement(),
            claim_epsilon=self.epsilon,
            claim_delta=self.delta,
            status=status,
            method="sequential",
            source=self.claim.source,
            trust=Trust.EMPIRICAL,
            domain=self.domain.description,
            epsilon_lower=self.bound.value if tried else None,
            epsilon_detectable=self._detectable() if status is Status.CONSISTENT else None,
            runs=self.runs,
            pairs_tried=len(tried),
            pairs_total=self.pairs_total - self.outside,
            confidence=self.confidence,
            witness=shown if status is Status.REFUTED else None,
            worst_pair=shown,
            seconds=time.monotonic() - self._started,
            notes=(*self.mechanism.notes, *self._notes()),
            reason=reason,
            error=self.error,
            interrupted=self.interrupted,
        )

    def _status(self) -> tuple[Status, str | None]:
        tried = self._tried
        if tried and self.bound.refutes(self.epsilon):
            return Status.REFUTED, None
        if self.error is not None:
            return Status.INCONCLUSIVE, None
        if not tried:
            outside = "no pair of the domain keeps the claim's promise" if self.outside else "nothing was run"
            return Status.INCONCLUSIVE, self.stopped or outside
        runs = self.arms[self._most_run].evidence.runs
        # The event that shows a violation soonest has mass 1: if even that cannot be seen, nothing can.
        if math.isinf(self._detectable_from(1.0, runs)):
            pairs = f"{len(tried)} pair{'s' * (len(tried) > 1)}"
            few = f"{self.runs:,} runs on {pairs} are too few to show any violation"
            return Status.INCONCLUSIVE, f"{self.stopped}: {few}" if self.stopped else few
        return Status.CONSISTENT, self.stopped

    def _detectable(self) -> float:
        arm = self.arms[self._most_run]
        event = arm.evidence.event(self.epsilon)
        assert event is not None
        return self._detectable_from((event.first + event.second) / event.runs, arm.evidence.runs)

    def _detectable_from(self, mass: float, runs: int) -> float:
        costliest = float(self._log_weights[self._tried].min())
        return detectable_epsilon(
            mass, runs, epsilon=self.epsilon, delta=self.delta, log_level=self.bound.log_level - costliest
        )

    def _witness(self, place: int) -> Witness:
        arm = self.arms[place]
        event = arm.evidence.event(self.epsilon)
        assert event is not None
        (dataset, neighbour), counts = arm.pair, (event.first, event.second)
        if not event.on_first:
            dataset, neighbour, counts = neighbour, dataset, (counts[1], counts[0])
        return Witness(
            dataset=dataset,
            neighbour=neighbour,
            event=event.text,
            probability=min(counts[0] / event.runs, 1.0),
            neighbour_probability=min(counts[1] / event.runs, 1.0),
            outcomes=event.outcomes,
        )

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self._tried:
            most = self.arms[self._most_run].evidence.runs
            notes.append(
                f"the pair that was run most was run {most:,} times on each of its datasets; "
                f"events rarer than {3.0 / most:.2g} there, and pairs that were not tried, are not excluded"
            )
        if not isinstance(self.claim.event, ApproximateDpEvent):
            notes.append(f"of the claim, ({self.epsilon:.6g}, {self.delta:.3g})-DP was tested, which it implies")
        if self.outside:
            notes.append(f"{self.outside} pairs that do not keep the promise were left out")
        return tuple(notes)


def point_of(claim: Claim) -> tuple[float, float]:
    """The (epsilon, delta) that is tested for a claim, implied by it (`audit_sequential`).

    Raises:
        UnsupportedEventError: no profile is known for the claim's event.
    """
    match claim.event:
        case ApproximateDpEvent(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case BoundedRangeDpEvent(eta=eta):
            return eta, 0.0
    profile = claim.profile
    epsilon = profile.epsilon(PROFILE_DELTA)
    if math.isinf(epsilon):
        raise UnsupportedEventError(f"it guarantees nothing at delta {PROFILE_DELTA:g}, where it would be tested")
    return (epsilon, PROFILE_DELTA) if epsilon > 0.0 else (0.0, profile.delta(0.0))


def _draw(
    mechanism: AdaptedMechanism,
    dataset: tuple[Any, ...],
    size: int,
    rng: np.random.Generator,
    should_stop: Callable[[], bool] | None,
) -> Any:
    """`size` outcomes on `dataset`; slow mechanisms are asked in small portions, so that the user can stop them."""
    portion = size if mechanism.vectorised else _PORTION
    outcomes: list[Any] = []
    while True:
        if should_stop is not None and should_stop():
            raise _StopAskedError
        drawn = mechanism.release_many(dataset, min(portion, size - len(outcomes)), rng=rng)
        if len(drawn) == size:
            return drawn
        outcomes.extend(drawn)
        if len(outcomes) == size:
            return outcomes


def _keeps_promise(mechanism: AdaptedMechanism, dataset: tuple[Any, ...]) -> bool:
    try:
        mechanism.check_dataset(dataset)
    except ValueError:
        return False
    return True


__all__ = ["PROFILE_DELTA", "SequentialTest", "audit_sequential", "point_of"]
