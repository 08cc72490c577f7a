"""A report as one HTML page with its plots inside."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from accounting import report_text as tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from accounting.report import Report

_ACCENT, _MUTED = "#1f5fa8", "#8a8f98"


def page(report: Report) -> str:
    """See ``Report.to_html``."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("accounting"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html.j2").render(
        report=report,
        headline=tables.number(report.epsilon),
        facts=tables.facts(report),
        sections=[
            ("Totals", tables.TOTALS, tables.total_rows(report), "Upper bounds, epsilon in nats."),
            (
                "Routes",
                tables.ROUTES,
                tables.route_rows(report),
                "Ways to the same total. Each is a valid bound under what it assumes; the smallest is the answer.",
            ),
            (
                "Datasets and blocks",
                tables.BLOCKS,
                tables.block_rows(report),
                "A record lies in one block; it bears the charges on its block and on the datasets that contain it. "
                "The total is the largest over the blocks (parallel composition).",
            ),
            (
                "Charges",
                tables.CHARGES,
                tables.charge_rows(report),
                "What a charge adds: the epsilon of the whole ledger, or of the charge's own dataset, with all charges "
                "less the same without this one.",
            ),
        ],
        plots=[
            (profile_plot(report), "Privacy profile: the smallest delta (upper bound) at each epsilon."),
            (trade_off_plot(report), "Trade-off curve: no test of neighbouring inputs lies below it."),
        ],
        words=report.in_words(),
    )


def profile_plot(report: Report) -> Markup:
    """delta(epsilon), on a logarithmic axis, with the headline marked."""
    figure, axes = _figure()
    shown = [(e, d) for e, d in report.curve if d > 0]
    if shown:
        axes.semilogy([e for e, _ in shown], [d for _, d in shown], color=_ACCENT, linewidth=2)
    if math.isfinite(report.epsilon) and report.delta > 0:
        axes.plot([report.epsilon], [report.delta], "o", color=_ACCENT, markersize=7)
        label = f"epsilon {report.epsilon:.4g} at delta {report.delta:g}"
        right = bool(shown) and report.epsilon > 0.55 * shown[-1][0]
        axes.annotate(
            label,
            (report.epsilon, report.delta),
            xytext=(-10 if right else 10, 8),
            textcoords="offset points",
            ha="right" if right else "left",
        )
    axes.set_xlabel("epsilon (nats)")
    axes.set_ylabel("delta")
    return _svg(figure, "Privacy profile of the ledger")


def trade_off_plot(report: Report) -> Markup:
    """The lower bound of the type-II error of any test, against its type-I error."""
    figure, axes = _figure()
    axes.plot([0, 1], [1, 0], "--", color=_MUTED, linewidth=1.2, label="nothing can be told (perfect privacy)")
    axes.plot(
        [x for x, _ in report.trade_off],
        [y for _, y in report.trade_off],
        color=_ACCENT,
        linewidth=2,
        label="what the ledger allows at most",
    )
    axes.set_xlabel("type-I error (false alarm)")
    axes.set_ylabel("type-II error (miss), lower bound")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, loc="upper right")
    return _svg(figure, "Trade-off curve of the ledger")


def _figure() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#d9dce1", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _svg(figure: Figure, title: str) -> Markup:
    import matplotlib as mpl

    out = io.StringIO()
    # A fixed salt and no date: the same ledger gives the same page.
    with mpl.rc_context({"svg.hashsalt": "dpledger", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Title": title}, transparent=True)
    drawing = out.getvalue()
    return Markup(drawing[drawing.index("<svg") :])
