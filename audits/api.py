"""The library's two calls: `audit` one mechanism here and now, `verify` many claims in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accounting import Claim, Relation, check_relation, relation_name
from audits.claims_file import check_confidence, check_method, check_runs, read_claims
from audits.engine import Progress, audit_claim
from audits.progress import Reporter
from audits.runs import Settings, own_entries, run
from audits.verdicts import Verdict
from audits.verification import VerificationRun
from mechanisms import Domain, as_mechanism


def audit(
    mechanism: object,
    *,
    epsilon: float,
    delta: float = 0.0,
    relation: Relation | str,
    neighbours: Domain,
    confidence: float,
    max_runs: int,
    rng: np.random.Generator,
    parameters: Mapping[str, Any] | None = None,
    promise: str | None = None,
    source: str = "the caller",
    name: str | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Verdict:
    """Try to refute the claim that `mechanism` is (epsilon, delta)-DP under `relation`.

    mechanism: an object with ``release(dataset, *, rng)``, a function ``f(dataset, *, rng, **parameters)`` or a plain
        ``f(dataset)``; a ``distribution`` or ``release_many`` is used where it is offered (see
        `mechanisms.as_mechanism`).
    epsilon: nats. delta: in [0, 1]; 0 is the strongest claim. relation, neighbours: when two datasets are neighbours,
    and the pairs to try (`audits.neighbours`). confidence: 1 - (largest probability that a true claim is refuted),
    over all pairs and directions tried. max_runs: of the
        mechanism, both datasets of a pair together. Neither matters to an exact audit.
    method: "exact" calculates from ``distribution``; "sequential" draws samples; "auto" is exact where there is a
        distribution and the domain has at most `audits.engine.LARGEST_EXACT_DOMAIN` pairs.
    progress: called with (done, total) now and then. should_stop: polled; once it is true the audit ends with what it
    has.

    Guarantees: PROVED holds for every pair of neighbours in the domain, for the stated distribution. REFUTED by
    sampling is wrong with probability at most 1 - confidence. CONSISTENT is not a proof; `epsilon_detectable` says
    what it rules out. A mechanism that raises, returns what cannot be compared, or nothing but NaN gives INCONCLUSIVE
    with an `error`.

    Raises:
        TypeError, ValueError: a wrong argument, named with its rule and value.
    """
    claim = Claim.approximate(
        epsilon, delta, relation=check_relation("relation", relation), source=source, promise=promise
    )
    if not isinstance(neighbours, Domain):
        raise TypeError(f"neighbours must be a domain such as audits.neighbours.replace_one(...), got {neighbours!r}")
    if neighbours.relation is not claim.relation:
        raise ValueError(
            f"neighbours must be under the claim's relation {relation_name(claim.relation)}, "
            f"got {relation_name(neighbours.relation)}"
        )
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
    return audit_claim(
        as_mechanism(mechanism, parameters, name=name),
        claim,
        neighbours,
        name=name,
        method=check_method("method", method),
        confidence=check_confidence("confidence", confidence),
        max_runs=check_runs("max_runs", max_runs),
        rng=rng,
        progress=progress,
        should_stop=should_stop,
    )


def verify(
    claims: str | Path | None = None,
    *,
    own: bool | None = None,
    only: str | None = None,
    confidence: float | None = None,
    max_runs: int | None = None,
    timeout: float | None = None,
    budget_seconds: float | None = None,
    jobs: int = 1,
    seed: int | None = None,
    reporter: Reporter | None = None,
) -> VerificationRun:
    """Check every claim of a claims file, and the product's own claims; each in a process that may hang or crash.

    claims: a claims file; None checks the product itself. own: check the product's own mechanisms too; by default only
        when there is no claims file. only: a glob or a part of the names of the claims to check.
    confidence, max_runs, timeout: for all claims, in place of what the file sets for all; a claim's own keys win. The
        confidence is that of the whole run: 1 - confidence is divided evenly among the claims that are audited from
        samples.
    budget_seconds: after which nothing new is started and what runs is stopped. jobs: processes at a time. seed: None
    draws a fresh one; it is in the result. Equal seeds give equal verdicts, whatever the number of jobs, except for
        claims cut short and mechanisms that draw their own randomness.

    Raises:
        ClaimsFileError: the file cannot be used at all. A claim that cannot be checked is a row with an error, not an
        exception. TypeError, ValueError: a wrong argument.
    """
    file = None if claims is None else read_claims(Path(claims))
    entries = [*(own_entries() if own or (own is None and file is None) else ()), *(file.claims if file else ())]
    settings = Settings.of(
        file,
        confidence=confidence,
        max_runs=max_runs,
        timeout=timeout,
        budget_seconds=budget_seconds,
        jobs=jobs,
        seed=seed,
    )
    return run(entries, settings, only=only, reporter=reporter)
