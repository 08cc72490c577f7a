"""What a verification run says, in the words that the terminal, the HTML page and the JUnit file share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accounting import Trust, relation_name
from audits.figures import counted, shown, shown_lower, shown_upper
from audits.loading import one_paragraph
from audits.verdicts import Status, Verdict
from audits.verification import Row, VerificationRun
from audits.watch import OF_MECHANISM

MEANINGS = {
    Status.PROVED: (
        "Every pair of neighbours in the stated finite domain was compared by exact calculation from the distribution "
        "that the mechanism states, and none exceeds the claim. Datasets outside the domain are not covered, nor is a "
        "sampler that departs from the stated distribution."
    ),
    Status.CONSISTENT: (
        "The samples drawn do not contradict the claim. This is not a proof. The epsilon under 'would catch' says how "
        "large a violation, on the events seen and the pairs tried, would have been refuted with 95 % power; smaller "
        "violations, rarer events and other datasets are not excluded."
    ),
    Status.REFUTED: (
        "The claim is false: two neighbouring datasets and an event are shown whose probabilities differ by more than "
        "the claim allows; by exact calculation, or from samples with at most the stated probability of error."
    ),
    Status.INCONCLUSIVE: "Neither: the audit was stopped before it could tell, or the claim could not be checked.",
}


@dataclass(frozen=True, slots=True)
class RowText:
    """One row of a verification run as text.

    word: PROVED, CONSISTENT, REFUTED, INCONCLUSIVE, or ERROR for a claim that could not be checked. claimed, paper,
    found, catches: epsilons. ratio: found / claimed. effort: what was done. said: the verdict in a sentence. stopped:
    why an audit without a refutation ended early.
    """

    name: str
    mechanism: str
    word: str
    relation: str
    promise: str | None
    claimed: str
    paper: str | None
    found: str
    catches: str
    ratio: str
    effort: str
    seconds: str
    source: str | None
    domain: str | None
    trust: str | None
    notes: tuple[str, ...]
    said: str
    stopped: str | None
    error: str | None


def row_text(row: Row) -> RowText:
    """The text of one row, fit to be printed whatever the user's names hold."""
    word = "ERROR" if row.error is not None and row.status is Status.INCONCLUSIVE else row.status.value
    if not isinstance(row, Verdict):
        return RowText(
            name=one_paragraph(row.name),
            mechanism=one_paragraph(row.mechanism or "-"),
            word=word,
            relation="-",
            promise=None,
            claimed="-",
            paper=None,
            found="-",
            catches="-",
            ratio="-",
            effort="-",
            seconds="-",
            source=None,
            domain=None,
            trust=None,
            notes=(),
            said=row.summary(),
            stopped=None,
            error=row.error,
        )
    return RowText(
        name=one_paragraph(row.name),
        mechanism=one_paragraph(row.mechanism),
        word=word,
        relation=relation_name(row.relation),
        promise=None if row.promise is None else one_paragraph(row.promise),
        claimed=_with_delta(shown(row.claim_epsilon), row.claim_delta),
        paper=None if row.paper_epsilon is None else _with_delta(shown(row.paper_epsilon), row.paper_delta or 0.0),
        found=_found(row),
        catches="-" if row.status is Status.REFUTED else shown_upper(row.epsilon_detectable),
        ratio=_ratio(row),
        effort=_effort(row),
        seconds=f"{row.seconds:.1f}",
        source=row.source,
        domain=row.domain,
        trust=_TRUST[row.trust],
        notes=row.notes,
        said=row.summary(),
        stopped=row.reason if row.status is Status.CONSISTENT else None,
        error=row.error,
    )


_TRUST = {
    Trust.EXACT: "exact arithmetic",
    Trust.IDEALISED: "exact for the numbers as given in floating point",
    Trust.EMPIRICAL: "a confidence statement from samples",
}


def headline(run: VerificationRun) -> str:
    """How many claims there were and what became of them."""
    errors = sum(row_text(row).word == "ERROR" for row in run.verdicts)
    counts = {status.value.lower(): run.count(status) for status in Status}
    counts["inconclusive"] -= errors
    parts = [f"{count} {word}" for word, count in (*counts.items(), ("not checked", errors)) if count]
    stopped = "; the run was interrupted" if run.interrupted else ""
    return f"{counted(len(run), 'claim')}: {', '.join(parts)}{stopped}"


def how_to_repeat(run: VerificationRun) -> str:
    """Seed, confidence and time in a line."""
    return f"seed {run.seed}, confidence {run.confidence:g}, {run.seconds:.1f} s"


def shared_notes(run: VerificationRun) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(note, names of the claims that it is about): each note on a mechanism once, in order.

    Notes on how an audit was made are found with its details in the page and in the JSON file.
    """
    found: dict[str, list[str]] = {}
    for row in run.verdicts:
        for note in row.notes if isinstance(row, Verdict) else ():
            if note.startswith(OF_MECHANISM):
                text = one_paragraph(note.removeprefix(OF_MECHANISM))
                found.setdefault(text, []).append(one_paragraph(row.name))
    return tuple((note, tuple(names)) for note, names in found.items())


def _with_delta(epsilon: str, delta: float) -> str:
    return f"{epsilon}, {shown(delta)}" if delta else epsilon


def _found(row: Verdict) -> str:
    if row.epsilon_upper is None:
        if row.epsilon_lower is None:
            return "-"
        return "inf" if row.epsilon_lower == math.inf else f">= {shown_lower(row.epsilon_lower)}"
    lower, upper = row.epsilon_lower, row.epsilon_upper
    if lower is None:
        return f"<= {shown_upper(upper)}"
    if math.isclose(lower, upper, rel_tol=1e-6, abs_tol=1e-9) or lower == upper:
        return shown(upper)
    return f"{shown_lower(lower)} to {shown_upper(upper)}"


def _ratio(row: Verdict) -> str:
    found = row.epsilon_upper if row.epsilon_upper is not None else row.epsilon_lower
    if found is None or not 0 < row.claim_epsilon < math.inf:
        return "-"
    ratio = found / row.claim_epsilon
    if ratio == math.inf:
        return "inf"
    return f"{ratio:.1%}" if ratio < 10 else f"{shown(ratio)}x"


def _effort(row: Verdict) -> str:
    if not row.pairs_tried and not row.runs:
        return "-"
    pairs = counted(row.pairs_tried, "pair")
    return f"{counted(row.runs, 'run')}, {pairs}" if row.runs else f"{row.method}, {pairs}"
