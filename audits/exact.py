"""Exact audits: a claim against the output laws of a mechanism, over every pair of neighbours of a finite domain.

Where a mechanism states its law (`distribution`), nothing is estimated: PROVED means that every pair of the domain was
compared in exact arithmetic, REFUTED comes with the pair and the event that break the claim. What a verdict leaves
open: datasets outside the domain, and whether `release` follows the law that `distribution` states. Tolerances: see
`audits.exact_checks`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from dp_accounting import ZCDpEvent

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    Claim,
    RdpDpEvent,
    RelationMismatchError,
    Trust,
    UnsupportedEventError,
    check_text,
    log_bounds,
    relation_name,
    round_up,
)
from audits.exact_checks import ApproximateCheck, BoundedRangeCheck, ClaimCheck, Findings, Where
from audits.exact_laws import Arithmetic, RationalLaw
from audits.exact_pairs import Bounds, CurvePoint, Event, FinitePair
from audits.exact_profiles import ProfileCheck
from audits.exact_renyi import RdpCheck, ZcdpCheck
from audits.loading import describe_exception
from audits.rendering import readable
from audits.verdicts import Status, Verdict
from mechanisms import AdaptedMechanism, Domain

_SECONDS_BETWEEN_REPORTS = 0.1


def audit_exact(
    mechanism: AdaptedMechanism,
    claim: Claim,
    domain: Domain,
    *,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    name: str | None = None,
) -> Verdict:
    """Compare the claim with the mechanism's laws on every pair of neighbours of the domain, in both directions.

    mechanism: offers `distribution`; when it declares `ignores_order`, pairs are enumerated as multisets. claim:
    (epsilon, delta), bounded range, or any event with a privacy profile, which is compared as a whole curve. progress:
    called with (pairs done, pairs in all), at most about ten times a second, at the start and at the end. should_stop:
    asked after every pair. name: of the claim, for the verdict; defaults to the mechanism's.

    The verdict:
        PROVED: every pair was compared and none exceeds the claim; REFUTED: some pair does, and the worst pair seen is
        the witness; INCONCLUSIVE: neither, because the audit was stopped, the claim's kind has no known profile, float
        laws are too coarse, or `distribution` raised, gave no probability law, or mixed Fractions and floats (`error`,
        one paragraph). One bad dataset does not end the audit: the other pairs are still compared. Ctrl-C ends it and
        keeps what was found: ``interrupted`` is True, and the caller decides whether to go on with other claims. Where
        the claim makes a promise and the mechanism has `check_dataset`, pairs outside the promise are left out, and
        counted in the notes.

    Raises:
        TypeError: mechanism, claim or domain is of the wrong type, or the mechanism offers no distribution.
        accounting.RelationMismatchError: claim and domain are under different relations.
    """
    audit = ExactAudit(mechanism, claim, domain, name=name)
    total = audit.pairs_total
    reported = time.monotonic()
    if progress is not None:
        progress(0, total)
    try:
        for done in audit.steps():
            now = time.monotonic()
            if progress is not None and now - reported >= _SECONDS_BETWEEN_REPORTS:
                progress(done, total)
                reported = now
            if should_stop is not None and done < total and should_stop():
                audit.stop("stopped before the end, on request")
                break
        if progress is not None:
            progress(audit.pairs_done, total)
    except KeyboardInterrupt:
        audit.stop("interrupted by the user", interrupted=True)
    return audit.verdict()


class ExactAudit:
    """An exact audit in steps: iterate over `steps`, ask for the `verdict` on what was seen at any time.

    Laws are computed once per dataset, and pairs of laws that are the same up to the names of outcomes are compared
    once (known by their SHA-256 digest), so a mechanism's symmetries need not be declared. Arguments and exceptions
    are those of `audit_exact`.
    """

    def __init__(self, mechanism: AdaptedMechanism, claim: Claim, domain: Domain, *, name: str | None = None) -> None:
        if not isinstance(mechanism, AdaptedMechanism):
            raise TypeError(f"mechanism must come from mechanisms.as_mechanism, got {mechanism!r}")
        if not mechanism.has_distribution:
            raise TypeError(f"mechanism must offer distribution(dataset) for an exact audit, got {mechanism.name}")
        if not isinstance(claim, Claim):
            raise TypeError(f"claim must be a Claim, got {claim!r}")
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be a domain of datasets (mechanisms.Domain), got {domain!r}")
        if domain.relation is not claim.relation:
            raise RelationMismatchError(
                f"domain must be under the claim's relation {relation_name(claim.relation)}, "
                f"got {relation_name(domain.relation)}"
            )
        self.mechanism, self.claim, self.domain = mechanism, claim, domain
        self.name = check_text("name", name) if name is not None else mechanism.name
        self.pairs_total = domain.count(ignore_order=mechanism.ignores_order)
        self.pairs_done = 0
        self._laws: dict[Any, _CachedLaw] = {}
        self._distinct: dict[Any, RationalLaw] = {}
        self._seen: set[frozenset[int] | bytes] = set()
        self._kinds: set[Arithmetic] = set()
        self._compared = self._outside = self._unusable = 0
        self._error: str | None = None
        self._stopped: str | None = None
        self._interrupted = False
        self._started = time.monotonic()
        self._check: ClaimCheck | None = None
        try:
            self._check = check_for(claim)
        except UnsupportedEventError as error:
            self._error = f"claim {self.name!r}: no privacy profile is known for {claim.statement()}: {error}"

    def steps(self) -> Iterator[int]:
        """Look at the pairs one by one; yields the number of pairs done."""
        if self._check is None:
            return
        for one, other in self.domain.pairs(ignore_order=self.mechanism.ignores_order):
            self._look_at(self._check, one, other)
            self.pairs_done += 1
            yield self.pairs_done

    def stop(self, reason: str, *, interrupted: bool = False) -> None:
        """Note why not all pairs will be seen."""
        self._stopped, self._interrupted = reason, interrupted

    def _look_at(self, check: ClaimCheck, one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        laws = self._law(one), self._law(other)
        if any(law.outside_promise for law in laws):
            self._outside += 1
            return
        if laws[0].law is None or laws[1].law is None:
            self._unusable += 1
            return
        try:
            self._compare(check, laws[0].law, laws[1].law, (one, other))
            self._compared += 1
        except ArithmeticError as error:
            self._unusable += 1
            self._error = self._error or (
                f"claim {self.name!r}: the laws of {self.mechanism.name} on the datasets {readable(one)} and "
                f"{readable(other)} cannot be compared: {error}"
            )

    def _compare(self, check: ClaimCheck, one: RationalLaw, other: RationalLaw, where: Where) -> None:
        """Show the check a pair of laws, unless it has seen them, perhaps under other names of the outcomes."""
        both = frozenset({id(one), id(other)})
        if both in self._seen:
            return
        pair = FinitePair.of_laws(one, other)
        digest = pair.digest()
        if digest not in self._seen:
            check.observe(pair, where)
        self._seen |= {both, digest}

    def _law(self, dataset: tuple[Any, ...]) -> _CachedLaw:
        key = tuple(map(_record_key, dataset))
        if key not in self._laws:
            self._laws[key] = self._compute(dataset)
        return self._laws[key]

    def _compute(self, dataset: tuple[Any, ...]) -> _CachedLaw:
        try:
            if self.claim.promise is not None and not _keeps_promise(self.mechanism, dataset):
                return _CachedLaw(dataset, None, outside_promise=True)
            law = RationalLaw("the law", self.mechanism.distribution(dataset), checked=True)
            if {law.arithmetic, *self._kinds} >= {Arithmetic.FRACTIONS, Arithmetic.FLOATS}:
                raise ValueError("all laws must hold Fractions, or all floats; this one holds the other kind")
            self._kinds.add(law.arithmetic)
        except (Exception, SystemExit) as error:
            # A user's code may raise anything; the claim is then not checked on this dataset, and the verdict says so.
            if self._error is None:
                self._error = (
                    f"claim {self.name!r}: the distribution of {self.mechanism.name} on the dataset "
                    f"{readable(dataset)} cannot be used: {describe_exception(error)}"
                )
            return _CachedLaw(dataset, None)
        return _CachedLaw(dataset, self._distinct.setdefault(law.key, law))

    def verdict(self) -> Verdict:
        """The verdict on the pairs seen so far."""
        findings = self._check.findings() if self._check is not None and self._compared else None
        status, reason = self._status(findings)
        point = findings or _unseen(self.claim)
        float_curve = isinstance(self._check, ProfileCheck)
        return Verdict(
            name=self.name,
            mechanism=self.mechanism.name,
            relation=self.claim.relation,
            promise=self.claim.promise,
            statement=self.claim.statement(),
            claim_epsilon=point.claim_epsilon,
            claim_delta=point.claim_delta,
            status=status,
            method="exact",
            source=self.claim.source,
            trust=Trust.IDEALISED if float_curve or Arithmetic.FLOATS in self._kinds else Trust.EXACT,
            domain=self.domain.description,
            epsilon_lower=point.epsilon_lower,
            epsilon_upper=point.epsilon_upper,
            delta_found=point.delta_found,
            pairs_tried=self._compared,
            pairs_total=self.pairs_total - self._outside,
            witness=point.worst if status is Status.REFUTED else None,
            worst_pair=point.worst,
            found=point.found,
            seconds=time.monotonic() - self._started,
            notes=(*point.notes, *self._notes()),
            reason=reason,
            error=self._error,
            interrupted=self._interrupted,
        )

    def _status(self, findings: Findings | None) -> tuple[Status, str | None]:
        if findings is not None and findings.violated:
            return Status.REFUTED, self._stopped
        if self._stopped is not None:
            return Status.INCONCLUSIVE, self._stopped
        if self._error is not None:
            return Status.INCONCLUSIVE, None
        if self.pairs_done < self.pairs_total:
            return Status.INCONCLUSIVE, "not all pairs were looked at"
        if findings is None:
            return Status.INCONCLUSIVE, "no pair of the domain lies within the promise"
        if findings.undecided is not None:
            return Status.INCONCLUSIVE, findings.undecided
        return Status.PROVED, None

    def _notes(self) -> Iterator[str]:
        yield from self.mechanism.notes
        if Arithmetic.FLOATS in self._kinds:
            yield "the laws are given in floating point: read as the numbers they are, compared at 1e-9"
        if self.mechanism.ignores_order:
            yield "the mechanism is declared to ignore the order of records: datasets were enumerated as multisets"
        if self._outside:
            yield f"{self._outside} pairs lie outside the promise and are not covered"
        if self._unusable:
            yield f"{self._unusable} pairs could not be compared because of the error"


def check_for(claim: Claim) -> ClaimCheck:
    """The check for the claim's kind.

    Raises:
        dp_accounting.UnsupportedEventError: no theorem gives the privacy profile of this event.
    """
    match claim.event:
        case ApproximateDpEvent(epsilon=epsilon, delta=delta):
            return ApproximateCheck(epsilon, delta)
        case BoundedRangeDpEvent(eta=eta):
            return BoundedRangeCheck(eta)
        case RdpDpEvent(orders=orders, values=values):
            return RdpCheck(orders, values)
        case ZCDpEvent(rho=rho, xi=xi):
            return ZcdpCheck(rho, xi)
        case _:
            return ProfileCheck(claim.profile)


@dataclass(frozen=True, slots=True)
class ExactCurve:
    """The privacy profile of one pair of laws at the breakpoints of both directions, for plots.

    epsilons: rising, shape (k,), nats. forward, backward: H of P against Q and of Q against P there, rounded up, shape
    (k,). Both are linear in e^epsilon between the points and constant after the last.
    """

    epsilons: npt.NDArray[np.float64]
    forward: npt.NDArray[np.float64]
    backward: npt.NDArray[np.float64]

    @property
    def delta(self) -> npt.NDArray[np.float64]:
        """The profile at each epsilon: the larger of the two directions."""
        return np.maximum(self.forward, self.backward)


def exact_curve(pair: FinitePair) -> ExactCurve:
    """The whole curve of a pair of laws for plots; `FinitePair.curve` has it in exact numbers."""
    back = pair.reversed
    points = (*pair.curve(), *back.curve())
    factors = sorted({Fraction(1)} | {point.factor for point in points if point.factor > 0})
    return ExactCurve(
        np.array([log_bounds(factor)[1] for factor in factors]),
        np.array([round_up(pair.divergence(factor)) for factor in factors]),
        np.array([round_up(back.divergence(factor)) for factor in factors]),
    )


@dataclass(frozen=True, slots=True)
class _CachedLaw:
    """A dataset's law. The dataset is kept because the cache may know its records by identity."""

    dataset: tuple[Any, ...]
    law: RationalLaw | None
    outside_promise: bool = False


_BY_VALUE = frozenset({int, bool, str, bytes, type(None), Fraction})


def _record_key(record: Any) -> Any:
    """A key that never takes two records for one that a mechanism could tell apart, such as 1 and True, or 0.0 and
    -0.0.
    """
    kind = type(record)
    if kind in _BY_VALUE:
        return kind, record
    if kind is float:
        return kind, record.hex()
    if kind is tuple:
        return kind, tuple(map(_record_key, record))
    return kind, id(record)


def _keeps_promise(mechanism: AdaptedMechanism, dataset: tuple[Any, ...]) -> bool:
    try:
        mechanism.check_dataset(dataset)
    except ValueError:
        return False
    return True


def _unseen(claim: Claim) -> Findings:
    """What stands in a verdict before any pair was compared."""
    match claim.event:
        case ApproximateDpEvent(epsilon=epsilon, delta=delta):
            pass
        case BoundedRangeDpEvent(eta=eta):
            epsilon, delta = eta, 0.0
        case _:
            epsilon, delta = math.inf, 0.0
    return Findings(
        violated=False,
        undecided=None,
        claim_epsilon=epsilon,
        claim_delta=delta,
        epsilon_lower=None,
        epsilon_upper=None,
        delta_found=None,
        worst=None,
    )


__all__ = ["Bounds", "CurvePoint", "Event", "ExactAudit", "ExactCurve", "FinitePair", "audit_exact", "exact_curve"]
