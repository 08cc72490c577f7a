"""The command line, ``dpledger``.

Results go to standard output, progress and errors to standard error. Exit codes: 0 every claim holds (to the stated
power), 1 a claim is refuted, 2 wrong usage, bad input, or a claim that could not be checked, 3 inconclusive under
``--strict``, 70 a defect of this program, 130 interrupted. Where several apply, a refutation comes first, then an
error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from accounting import check_epsilon, check_probability, relation_name
from audits.claims_file import (
    ClaimSpec,
    check_confidence,
    check_method,
    check_neighbouring,
    check_parameters,
    check_timeout,
    read_claims,
)
from audits.delivery import Files, Output, bad_input, deliver, errors, is_stdout, write_json
from audits.files import write_text
from audits.loading import split_target
from audits.neighbours import from_config
from audits.progress import reporter_for
from audits.report_command import planned, saved, show_plan
from audits.reports import show_ledger
from audits.runs import Settings, choose, own_entries, run
from audits.tables import show_mechanisms
from audits.verification import EXIT_INTERRUPTED
from mechanisms import registered

app = typer.Typer(
    name="dpledger",
    help="Check differential-privacy claims: verify them, audit a mechanism, report what a ledger adds up to.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

EXIT_DEFECT = 70

JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON; - for standard output.")
]
HtmlFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the results as one HTML page.")]
JunitFile = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML.")]
Seed = Annotated[int | None, typer.Option(help="Seed of all randomness; drawn afresh and printed when left out.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 when a claim stays inconclusive.")]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="C", help="1 - (the probability that the run refutes any true claim); 0.95 if nothing sets it."
    ),
]
MaxRuns = Annotated[
    int | None,
    typer.Option(
        "--max-runs", metavar="N", help="Runs of a mechanism for one claim, at most; 200,000 if nothing sets it."
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(metavar="S", help="Seconds that one call of a mechanism may take; 30 if nothing sets it."),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget-seconds", metavar="S", help="Seconds for the whole run; what is not done is inconclusive."),
]


def main() -> None:
    """The entry point of ``dpledger`` and ``python -m audits``."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(EXIT_INTERRUPTED))  # a run in progress handles it by itself
    try:
        app()
    except Exception:
        traceback.print_exc()
        errors().print(Text("dpledger: this is a defect of dpledger, not of your input; please report it."))
        sys.exit(EXIT_DEFECT)


@app.command()
def verify(
    claims: Annotated[
        Path | None, typer.Argument(metavar="CLAIMS.toml", help="A claims file; without one, the product itself.")
    ] = None,
    own: Annotated[bool, typer.Option("--own", help="Check the product's own mechanisms too.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only claims whose name matches: a part of it, or a glob.")
    ] = None,
    confidence: Confidence = None,
    max_runs: MaxRuns = None,
    timeout: Timeout = None,
    budget_seconds: Budget = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Processes at a time; as many as processors when left out.")
    ] = None,
    thorough: Annotated[bool, typer.Option("--thorough", help="With the slow cases of the own mechanisms.")] = False,
    seed: Seed = None,
    strict: Strict = False,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    junit_file: JunitFile = None,
) -> None:
    """Verify the privacy claims of a claims file, or of this product.

    Exit codes: 0 every claim holds (to the stated power), 1 one is refuted,
    2 wrong input, or a claim could not be checked, 3 inconclusive (--strict),
    130 interrupted.
    """
    files = Files(json_file, html_file, junit_file)
    with bad_input():
        files.prepare()
        file = None if claims is None else read_claims(claims)
        settings = Settings.of(
            file,
            confidence=confidence,
            max_runs=max_runs,
            timeout=timeout,
            budget_seconds=budget_seconds,
            jobs=jobs if jobs is not None else os.cpu_count() or 1,
            seed=seed,
        )
        ours = own_entries(thorough=thorough) if own or file is None else []
        entries = [*ours, *(file.claims if file is not None else ())]
        choose([entry.name for entry in entries], only)
    deliver(run(entries, settings, only=only, reporter=reporter_for(errors())), files, strict=strict)


@app.command()
def audit(
    target: Annotated[
        str, typer.Argument(metavar="MODULE_OR_FILE:NAME", help="The mechanism: pkg.module:name or path/file.py:name.")
    ],
    epsilon: Annotated[float, typer.Option(metavar="E", help="The claimed epsilon, in nats.")],
    delta: Annotated[float, typer.Option(metavar="D", help="The claimed delta; 0 is the strongest claim.")] = 0.0,
    relation: Annotated[
        str | None, typer.Option(metavar="replace-one|add-remove", help="When two datasets are neighbours.")
    ] = None,
    values: Annotated[
        str | None, typer.Option(metavar="JSON", help="A list of possible records, e.g. [0, 1]; with --size.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(metavar="N", help="Records in a dataset; under add-remove the most there can be.")
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="A list of pairs of neighbouring datasets, in place of --values."),
    ] = None,
    parameters: Annotated[
        str | None, typer.Option(metavar="JSON", help="Keyword arguments of the mechanism, e.g. '{\"scale\": 1.0}'.")
    ] = None,
    promise: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The condition under which the claim holds.")
    ] = None,
    method: Annotated[str, typer.Option(metavar="auto|exact|sequential", help="How to audit.")] = "auto",
    confidence: Confidence = None,
    max_runs: MaxRuns = None,
    timeout: Timeout = None,
    budget_seconds: Budget = None,
    seed: Seed = None,
    strict: Strict = False,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    junit_file: JunitFile = None,
) -> None:
    """Audit one mechanism: try to refute that it is (epsilon, delta)-DP.

    Exit codes are those of verify.
    """
    files = Files(json_file, html_file, junit_file)
    with bad_input():
        files.prepare()
        split_target(target)
        known = check_neighbouring("--relation", relation)
        spec = ClaimSpec(
            name=target,
            mechanism=target,
            folder=Path.cwd(),
            parameters=check_parameters("--parameters", _json("--parameters", parameters or "{}")),
            epsilon=check_epsilon("--epsilon", epsilon),
            delta=check_probability("--delta", delta),
            domain=from_config(_neighbours(relation_name(known), values, size, pairs), known, key="neighbours"),
            source="the command line",
            promise=promise,
            method=check_method("--method", method),
        )
        settings = Settings.of(
            None,
            confidence=None if confidence is None else check_confidence("--confidence", confidence),
            max_runs=max_runs,
            timeout=None if timeout is None else check_timeout("--timeout", timeout),
            budget_seconds=budget_seconds,
            seed=seed,
        )
    deliver(run([spec], settings, reporter=reporter_for(errors())), files, strict=strict)


@app.command()
def report(
    ledger_file: Annotated[
        Path | None, typer.Argument(metavar="[LEDGER.json]", help="A ledger, as Ledger.save or a LedgerStore wrote it.")
    ] = None,
    deltas: Annotated[
        list[float] | None,
        typer.Option("--delta", metavar="D", help="Report epsilon at this delta; may be repeated; else the budget's."),
    ] = None,
    plan: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of a ledger, a plan: carry-forward.")
    ] = None,
    components: Annotated[int | None, typer.Option(metavar="K", help="Plan: how many components.")] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Plan: the target, with one --delta.")] = None,
    records: Annotated[int | None, typer.Option(metavar="N", help="Plan: the largest sample for N records.")] = None,
    active_sample: Annotated[
        int | None, typer.Option("--active-sample", metavar="M", help="Plan: the fewest records for a sample of M.")
    ] = None,
    oracle_epsilon: Annotated[
        float | None, typer.Option("--oracle-epsilon", metavar="EA", help="Plan: eps_A of the oracles; else chosen.")
    ] = None,
    label_boost_epsilon: Annotated[
        float | None, typer.Option("--label-boost-epsilon", metavar="ELB", help="Plan: eps_LB; else chosen.")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Plan: paper, tight or star (the default).")
    ] = None,
    oracle: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Plan: the oracles are approximate or bounded-range."),
    ] = None,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write the report as Markdown.")
    ] = None,
) -> None:
    """Report what a ledger's charges add up to, or what a plan would cost."""
    options = {
        "components": components,
        "epsilon": epsilon,
        "records": records,
        "active_sample": active_sample,
        "oracle_epsilon": oracle_epsilon,
        "label_boost_epsilon": label_boost_epsilon,
        "variant": variant,
        "oracle": oracle,
    }
    with bad_input():
        Files(json_file, html_file, markdown_file).prepare()
        if (ledger_file is None) == (plan is None):
            raise ValueError("give either a ledger file or --plan")
        if plan is None:
            extra = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
            if extra:
                raise ValueError(f"{', '.join(extra)} goes with --plan, not with a ledger file")
        subject = (
            saved(ledger_file, deltas or ())
            if ledger_file is not None
            else planned(plan or "", deltas or (), **options)
        )
        if json_file is not None:
            write_json(json_file, subject.document())
        if html_file is not None:
            write_text(html_file, subject.html())
        if markdown_file is not None:
            write_text(markdown_file, subject.markdown())
    if json_file is None or not is_stdout(json_file):
        if subject.plan is not None:
            show_plan(Output(), subject.plan)
        show_ledger(Output(), subject.ledger, subject.deltas)


@app.command()
def mechanisms(json_file: JsonFile = None) -> None:
    """List every registered mechanism with its claim, relation, promise and source."""
    with bad_input():
        Files(json_file).prepare()
    listed = registered()
    if json_file is not None:
        rows = [
            {
                "name": entry.name,
                "summary": entry.summary,
                "claim": entry.guarantee,
                "relation": relation_name(entry.relation),
                "promise": entry.promise,
                "source": entry.source,
            }
            for entry in listed
        ]
        write_json(json_file, {"schema": 1, "mechanisms": rows})
    if json_file is None or not is_stdout(json_file):
        show_mechanisms(Output(), listed)


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} must be JSON, got {text!r}: {error}") from None


def _neighbours(relation: str, values: str | None, size: int | None, pairs: Path | None) -> dict[str, Any]:
    """The options as the table that a claims file would have."""
    if pairs is not None:
        if values is not None or size is not None:
            raise ValueError("--pairs stands alone: give either --pairs, or --values and --size")
        return {"pairs": _json(f"--pairs {pairs}", pairs.read_text(encoding="utf-8"))}
    if values is None or size is None:
        raise ValueError("the datasets to try are needed: give --values and --size, or --pairs")
    return {"values": _json("--values", values), "size" if relation == "replace-one" else "max_size": size}
