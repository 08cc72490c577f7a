"""A verification run as one self-contained HTML page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import jinja2

from audits.figures import shown
from audits.presenting import MEANINGS, headline, row_text
from audits.rendering import json_number, readable
from audits.verdicts import Verdict, Witness
from audits.verification import Row, VerificationRun

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("audits"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
)


def verification_page(run: VerificationRun, *, command: str | None = None) -> str:
    """The page's HTML. command: the command line that made it, to be shown."""
    rows = [row_text(row) for row in run.verdicts]
    with_paper = any(text.paper is not None for text in rows)
    with_power = any(text.catches != "-" for text in rows)
    return _TEMPLATES.get_template("verification.html.j2").render(
        headline=headline(run),
        error_budget=run.error_budget,
        rows=[
            {"text": text, "witness": isinstance(row, Verdict) and row.witness, "facts": tuple(_facts(row))}
            for row, text in zip(run.verdicts, rows, strict=True)
        ],
        with_paper=with_paper,
        with_power=with_power,
        columns=6 + with_paper + with_power,
        meanings=[(status.value, meaning) for status, meaning in MEANINGS.items()],
        command=command,
        seed=run.seed,
        confidence=f"{run.confidence:g}",
        seconds=f"{run.seconds:.1f}",
        interrupted=run.interrupted,
        versions=run.versions,
    )


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """(name, value) of what the sentence of the verdict leaves out."""
    if not isinstance(row, Verdict):
        return
    if row.witness is not None:
        yield from _witness(row.witness)
    elif row.worst_pair is not None:
        yield "closest pair", row.worst_pair.describe()
    text = row_text(row)
    if text.effort != "-":
        yield (
            "how",
            f"{row.method} audit: {text.effort.removeprefix('exact, ')}, {text.seconds} s; rests on {text.trust}",
        )
    if text.stopped:
        yield "stopped", text.stopped
    if row.paper_source:
        yield "paper", f"{text.paper} by {row.paper_source}"
    if row.delta_found is not None:
        yield "delta found", f"{shown(row.delta_found)} at the claimed epsilon"
    for name, (lower, upper) in row.found:
        yield name, f"{json_number(lower)} to {json_number(upper)}"
    yield "source", row.source
    yield "domain", row.domain


def _witness(witness: Witness) -> Iterator[tuple[str, str]]:
    yield "dataset", readable(witness.dataset, limit=2000)
    yield "neighbour", readable(witness.neighbour, limit=2000)
    yield "event", witness.event
    if witness.probability is not None and witness.neighbour_probability is not None:
        yield "probability", f"{shown(witness.probability)} against {shown(witness.neighbour_probability)}"
