"""One audit: which engine a claim goes to, and what is learnt of the mechanism beside the verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from accounting import Claim, Trust
from audits.exact import audit_exact
from audits.sequential import audit_sequential
from audits.verdicts import Status, Verdict
from audits.watch import CallClock, Watched, rehearse
from mechanisms import AdaptedMechanism, Domain

LARGEST_EXACT_DOMAIN = 50_000
"""Pairs of neighbours up to which method "auto" takes the exact audit."""

Progress = Callable[[int, int], None]


def audit_claim(
    mechanism: AdaptedMechanism,
    claim: Claim,
    domain: Domain,
    *,
    name: str | None,
    method: str,
    confidence: float,
    max_runs: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    clock: CallClock | None = None,
) -> Verdict:
    """Audit arguments that are checked and adapted already (`audits.audit`); clock: told of each call of the mechanism.

    Raises:
        ValueError: the method cannot be applied.
    """
    watched = Watched(mechanism, clock)
    adapted = watched.adapted()
    label = name or mechanism.name
    if choose_method(mechanism, domain, method) == "exact":
        return audit_exact(adapted, claim, domain, progress=progress, should_stop=should_stop, name=label)
    notes, refusal = rehearse(adapted, domain, rng=rng)
    if refusal is not None:
        error = f"claim {label!r} ({mechanism.name}): {refusal}"
        return without_result(claim, domain, name=label, mechanism=mechanism.name, method="sequential", error=error)
    verdict = audit_sequential(
        adapted,
        claim,
        domain,
        confidence=confidence,
        max_runs=max_runs,
        rng=rng,
        progress=progress,
        should_stop=should_stop,
        name=label,
    )
    verdict = dataclasses.replace(verdict, notes=(*verdict.notes, *notes, *watched.observations()))
    if watched.returned_only_nan and verdict.status is not Status.REFUTED:
        error = (
            f"claim {label!r} ({mechanism.name}): the mechanism returned NaN in every one of its {verdict.runs:,} "
            "runs: there is nothing to audit"
        )
        return dataclasses.replace(verdict, status=Status.INCONCLUSIVE, error=error)
    return verdict


def without_result(
    claim: Claim,
    domain: Domain,
    *,
    name: str,
    mechanism: str,
    method: str,
    error: str | None = None,
    reason: str | None = None,
    interrupted: bool = False,
    seconds: float = 0.0,
) -> Verdict:
    """The verdict on a claim that was not audited, or to no avail."""
    return Verdict(
        name=name,
        mechanism=mechanism,
        relation=claim.relation,
        claim_epsilon=getattr(claim.event, "epsilon", getattr(claim.event, "eta", math.inf)),
        claim_delta=getattr(claim.event, "delta", 0.0),
        status=Status.INCONCLUSIVE,
        method=method,
        source=claim.source,
        trust=Trust.EMPIRICAL,
        domain=domain.description,
        promise=claim.promise,
        statement=claim.statement(),
        seconds=seconds,
        error=error,
        reason=reason,
        interrupted=interrupted,
    )


def choose_method(mechanism: AdaptedMechanism, domain: Domain, method: str) -> str:
    """What `method` comes to, exact or sequential, for this mechanism and domain.

    Raises:
        ValueError: the method is "exact" and the mechanism offers no distribution.
    """
    if method == "exact" and not mechanism.has_distribution:
        raise ValueError(f"method must not be 'exact' for {mechanism.name}, which offers no distribution(dataset)")
    if method == "auto":
        small = mechanism.has_distribution and domain.count(mechanism.ignores_order) <= LARGEST_EXACT_DOMAIN
        return "exact" if small else "sequential"
    return method
