"""What an audit concluded: frozen records that say what they show, how surely, and what they leave open."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from accounting import Relation, Trust, check_relation, relation_name
from audits.rendering import json_number, json_value, readable


class Status(enum.StrEnum):
    """The four answers of an audit; the value is the word that is printed."""

    PROVED = "PROVED"
    CONSISTENT = "CONSISTENT"
    REFUTED = "REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Two neighbouring datasets and an event that tells them apart.

    dataset, neighbour: the datasets D and D'; the event is the likelier one on `dataset`.
    event: the event in words, short.
    probability, neighbour_probability: of the event on D and on D'. Exact audits give the nearest floats to the exact
        values; statistical audits give estimates, without a guarantee of their own; None where not estimated.
    outcomes: the outcomes that make up the event, where it is a finite set known to the audit.
    """

    dataset: Any
    neighbour: Any
    event: str
    probability: float | None = None
    neighbour_probability: float | None = None
    outcomes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("probability", "neighbour_probability"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {value!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain data where the records are plain data, readable text otherwise."""
        return {
            "dataset": json_value(self.dataset),
            "neighbour": json_value(self.neighbour),
            "event": self.event,
            "probability": json_number(self.probability),
            "neighbour_probability": json_number(self.neighbour_probability),
        }

    def describe(self) -> str:
        """The pair and the event in one clause."""
        text = f"on {readable(self.dataset)} against {readable(self.neighbour)}, the event {self.event}"
        if self.probability is None or self.neighbour_probability is None:
            return text
        return f"{text} has probability {self.probability:.6g} against {self.neighbour_probability:.6g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one audit of one claim.

    name: of the claim. mechanism: its name. relation, promise, source: as the claim states them.
    claim_epsilon, claim_delta: the claimed (epsilon, delta), nats. For a bounded-range claim (eta, 0); for a claim of
        another kind the point of the claimed curve that the audit came closest to.
    status: PROVED (exact, over `domain`), CONSISTENT (not refuted), REFUTED (with `witness`), INCONCLUSIVE (`reason`
        or `error` says why).
    method: "exact", "sequential", ...
    epsilon_lower, epsilon_upper: bounds on the true epsilon at claim_delta over the pairs tried; None where unknown.
        Exact audits: a certified interval, both ends rounded outward. Statistical audits: a lower confidence bound.
    epsilon_detectable: the smallest epsilon that this audit would have refuted with 95 % power; None for exact audits.
    runs: of the mechanism (both datasets together). pairs_tried: pairs of neighbours, each counted once for both
        directions. pairs_total: of the domain; None when it has no end.
    confidence: 1 - (probability that a true claim is refuted), over everything this audit tried; None for exact audits.
    witness: the refuting pair, present when, and only when, REFUTED. worst_pair: the pair that came closest.
    delta_found: exact audits: the largest hockey-stick divergence at claim_epsilon, rounded up.
    domain: the datasets that were covered, in words. statement: the claim in words.
    trust: what the verdict rests on. notes: what a careful reader must know, one sentence each.
    reason: why the audit is inconclusive or stopped early. interrupted: the user stopped it.
    error: what went wrong in the mechanism, one paragraph naming claim, dataset and rule.
    found: further certified findings by name, bounds as (lower, upper), e.g. "range" for bounded-range claims.

    Raises:
        ValueError: a number is NaN; REFUTED without a witness or a witness without REFUTED; PROVED on EMPIRICAL trust,
            with an error, or cut short.
    """

    name: str
    mechanism: str
    relation: Relation
    claim_epsilon: float
    claim_delta: float
    status: Status
    method: str
    source: str
    trust: Trust
    domain: str
    promise: str | None = None
    statement: str | None = None
    epsilon_lower: float | None = None
    epsilon_upper: float | None = None
    epsilon_detectable: float | None = None
    runs: int = 0
    pairs_tried: int = 0
    pairs_total: int | None = None
    confidence: float | None = None
    witness: Witness | None = None
    worst_pair: Witness | None = None
    delta_found: float | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    paper_epsilon: float | None = None
    paper_delta: float | None = None
    paper_source: str | None = None
    reason: str | None = None
    error: str | None = None
    interrupted: bool = False
    found: tuple[tuple[str, tuple[float, float]], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))
        object.__setattr__(self, "relation", check_relation("relation", self.relation))
        object.__setattr__(self, "notes", tuple(self.notes))
        for name in _FLOATS:
            value = getattr(self, name)
            if value is not None and math.isnan(value):
                raise ValueError(f"{name} must not be NaN, got {value!r}")
        if self.confidence is not None and not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence must be in (0, 1), got {self.confidence!r}")
        if (self.status is Status.REFUTED) != (self.witness is not None):
            raise ValueError(f"witness must be present when, and only when, status is REFUTED, got {self.witness!r}")
        if self.status is Status.PROVED and (self.trust is Trust.EMPIRICAL or self.error or self.interrupted):
            raise ValueError("status must not be PROVED on empirical trust, after an error or when cut short")

    @property
    def verdict(self) -> Status:
        """The status; it compares equal to its word, ``verdict.verdict == "REFUTED"``."""
        return self.status

    @property
    def claim(self) -> str:
        """The claim in words."""
        if self.statement is not None:
            return self.statement
        what = (
            f"({self.claim_epsilon:.6g}, {self.claim_delta:.3g})-DP"
            if self.claim_delta
            else f"{self.claim_epsilon:.6g}-DP"
        )
        condition = f", promised: {self.promise}" if self.promise else ""
        return f"{what} under {relation_name(self.relation)}{condition}"

    def to_json(self) -> dict[str, Any]:
        """The claim's entry of the ``--json`` file (INTERFACES): plain data, infinities as ``"inf"``, never NaN."""
        return {
            "name": self.name,
            "mechanism": self.mechanism,
            "relation": relation_name(self.relation),
            "promise": self.promise,
            "claimed": {"epsilon": json_number(self.claim_epsilon), "delta": json_number(self.claim_delta)},
            "verdict": self.status.value,
            "method": self.method,
            "epsilon_lower": json_number(self.epsilon_lower),
            "epsilon_upper": json_number(self.epsilon_upper),
            "epsilon_detectable": json_number(self.epsilon_detectable),
            "runs": self.runs,
            "pairs_tried": self.pairs_tried,
            "witness": None if self.witness is None else self.witness.to_json(),
            "seconds": json_number(self.seconds),
            "source": self.source,
            "statement": self.claim,
            "pairs_total": self.pairs_total,
            "confidence": self.confidence,
            "delta_found": json_number(self.delta_found),
            "worst_pair": None if self.worst_pair is None else self.worst_pair.to_json(),
            "trust": self.trust.name,
            "domain": self.domain,
            "paper": {
                "epsilon": json_number(self.paper_epsilon),
                "delta": json_number(self.paper_delta),
                "source": self.paper_source,
            },
            "found": {name: [json_number(lower), json_number(upper)] for name, (lower, upper) in self.found},
            "notes": list(self.notes),
            "reason": self.reason,
            "error": self.error,
            "interrupted": self.interrupted,
            "summary": self.summary(),
        }

    def summary(self) -> str:
        """One line in plain words: what the verdict says, and what it does not."""
        return f"{self.status}: {_SUMMARIES[self.status](self)}"


_FLOATS = (
    "claim_epsilon",
    "claim_delta",
    "epsilon_lower",
    "epsilon_upper",
    "epsilon_detectable",
    "delta_found",
    "seconds",
    "paper_epsilon",
    "paper_delta",
)


def _pairs(verdict: Verdict) -> str:
    total = verdict.pairs_total
    if total is None or total == verdict.pairs_tried:
        return f"{verdict.pairs_tried} pair{'' if verdict.pairs_tried == 1 else 's'} of neighbours"
    return f"{verdict.pairs_tried} of {total} pairs of neighbours"


def _worst(verdict: Verdict) -> str:
    if verdict.epsilon_upper is None:
        return ""
    return f"; the worst of them has epsilon {verdict.epsilon_upper:.6g} at delta {verdict.claim_delta:.3g}"


def _proved(verdict: Verdict) -> str:
    basis = " (partly in floating point, see the notes)" if verdict.trust is Trust.IDEALISED else ""
    return (
        f"{verdict.claim}, by exact calculation over all {_pairs(verdict)} ({verdict.domain}){basis}{_worst(verdict)}."
        " Other datasets are not covered, nor is a sampler that departs from the stated distribution."
    )


def _consistent(verdict: Verdict) -> str:
    power = (
        "how large a violation would have been caught was not computed"
        if verdict.epsilon_detectable is None
        else "no violation, however large, was sure to be caught with so few runs"
        if math.isinf(verdict.epsilon_detectable)
        else f"epsilon {verdict.epsilon_detectable:.4g} at the same delta would have been caught with 95 % power"
    )
    sure = "" if verdict.confidence is None else f" at confidence {verdict.confidence:g}"
    return (
        f"{verdict.claim}, not refuted by {verdict.runs:,} runs on {_pairs(verdict)} ({verdict.domain}){sure};"
        f" {power}. This is not a proof: smaller violations, rarer events and datasets not tried are not excluded."
    )


def _refuted(verdict: Verdict) -> str:
    assert verdict.witness is not None
    sure = (
        "by exact calculation"
        if verdict.confidence is None
        else f"at confidence {verdict.confidence:g} after {verdict.runs:,} runs"
    )
    bound = ""
    if verdict.epsilon_lower is not None:
        size = "infinite" if math.isinf(verdict.epsilon_lower) else f"at least {verdict.epsilon_lower:.6g}"
        bound = f"; the true epsilon at delta {verdict.claim_delta:.3g} is {size}"
    early = f" {verdict.reason}" if verdict.reason else ""
    return f"{verdict.claim}, is false {sure}: {verdict.witness.describe()}{bound}.{early}"


def _inconclusive(verdict: Verdict) -> str:
    why = verdict.error or verdict.reason or "the audit could not decide"
    return (
        f"{verdict.claim}, neither proved nor refuted over {_pairs(verdict)} ({verdict.domain}): {why.rstrip('.')}"
        f"{_worst(verdict) if verdict.pairs_tried else ''}."
    )


_SUMMARIES = {
    Status.PROVED: _proved,
    Status.CONSISTENT: _consistent,
    Status.REFUTED: _refuted,
    Status.INCONCLUSIVE: _inconclusive,
}

__all__ = ["Status", "Verdict", "Witness"]
