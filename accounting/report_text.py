"""A report for terminals and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accounting.describe import describe

if TYPE_CHECKING:
    from accounting.report import Report


def number(value: float) -> str:
    """An epsilon for people: six digits, "inf" in words."""
    return "infinite" if math.isinf(value) else f"{value:.6g}"


def _cost(value: float | None) -> str:
    return "not computed" if value is None else number(value)


def total_rows(report: Report) -> list[list[str]]:
    """delta, epsilon."""
    return [[f"{delta:g}", number(epsilon)] for delta, epsilon in report.totals]


def route_rows(report: Report) -> list[list[str]]:
    """route, epsilon, bound, source."""
    return [[name, number(route.epsilon), route.bound, route.source] for name, route in report.routes.items()]


def block_rows(report: Report) -> list[list[str]]:
    """dataset, part of, records, epsilon, charges."""
    return [
        [
            block.name,
            block.parent or "-",
            "not stated" if block.records is None else str(block.records),
            number(block.epsilon),
            str(len(block.charges)),
        ]
        for block in report.blocks
    ]


def charge_rows(report: Report) -> list[list[str]]:
    """One row a charge, in the order of ``CHARGES``."""
    return [
        [
            str(summary.charge.number),
            summary.charge.dataset,
            summary.charge.label,
            describe(summary.charge.event),
            str(summary.charge.count),
            _cost(summary.cost),
            _cost(summary.own_cost),
            summary.charge.source or "nobody named",
            summary.charge.promise or "-",
        ]
        for summary in report.charges
    ]


TOTALS = ("delta", "epsilon (upper bound)")
ROUTES = ("route", "epsilon", "bound", "source")
BLOCKS = ("dataset", "part of", "records", "epsilon", "charges")
CHARGES = (
    "entry",
    "dataset",
    "release",
    "event",
    "count",
    "adds to the total",
    "adds to its dataset",
    "source",
    "promise",
)


def facts(report: Report) -> list[tuple[str, str]]:
    """The lines above the tables."""
    from accounting.report import UNITS

    budget = "none" if report.budget is None else f"epsilon {report.budget[0]} at delta {report.budget[1]}"
    return [
        ("relation", f"{report.relation} ({UNITS[report.relation]})"),
        ("budget", budget),
        ("promises", "; ".join(report.promises) if report.promises else "none"),
        ("trust", "; ".join(report.trusts) if report.trusts else "no charges"),
        ("hash chain", report.chain),
        ("versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())),
        ("made", report.made),
    ]


def text(report: Report) -> str:
    """See ``Report.to_text``."""
    lines = [report.title, "=" * len(report.title), ""]
    lines += [f"{name + ':':<12} {value}" for name, value in facts(report)]
    for heading, header, rows in _tables(report):
        lines += ["", heading, *_aligned(header, rows)]
    for paragraph in report.in_words():
        lines += ["", paragraph]
    return "\n".join(lines) + "\n"


def markdown(report: Report) -> str:
    """See ``Report.to_markdown``."""
    lines = [f"# {_escaped(report.title)}", ""]
    lines += [f"- **{name}**: {_escaped(value)}" for name, value in facts(report)]
    for heading, header, rows in _tables(report):
        lines += ["", f"## {heading}", "", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
        lines += [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows]
    lines += ["", "## In words"]
    for paragraph in report.in_words():
        lines += ["", paragraph]
    return "\n".join(lines) + "\n"


def _tables(report: Report) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    return [
        ("Total", TOTALS, total_rows(report)),
        ("Routes", ROUTES, route_rows(report)),
        ("Datasets and blocks", BLOCKS, block_rows(report)),
        ("Charges", CHARGES, charge_rows(report)),
    ]


def _aligned(header: Sequence[str], rows: list[list[str]]) -> list[str]:
    table = [list(header), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
