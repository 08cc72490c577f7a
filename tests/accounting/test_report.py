"""Reports: the same facts in every form, nothing of the user's unescaped, nothing that JSON cannot carry."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, SelfComposedDpEvent, ZCDpEvent

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, Ledger, RdpDpEvent
from accounting.describe import describe
from accounting.event_table import event_kinds
from accounting.report import Report, build_report

HOSTILE = "<script>alert('x')</script> | pipes"


@pytest.fixture
def report() -> Report:
    ledger = Ledger(relation="replace-one", budget=(2, 1e-6))
    ledger.partition("records", {"left": 100, "right": 200})
    ledger.charge("left", ApproximateDpEvent(0.25), label=HOSTILE, count=2, source="a theorem")
    ledger.charge("right", BoundedRangeDpEvent(0.75), label="choice", promise="labels are binary")
    ledger.charge("records", ApproximateDpEvent(0.5, 1e-8), label="count")
    return build_report(ledger, deltas=(1e-6, 0.0), title="A run")


def test_total_is_the_worst_block_and_every_form_shows_it(report: Report) -> None:
    assert report.epsilon <= 1.25  # right: .75 and .5, at most their sum
    assert report.totals[1] == (0.0, math.inf)  # a positive delta never fits into 0
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert data["epsilon"] == report.epsilon
    assert data["totals"][1]["epsilon"] == "inf"
    headline = f"{report.epsilon:.6g}"
    for form in (report.to_text(), report.to_markdown(), report.to_html()):
        assert headline in form
        assert "labels are binary" in form
        assert "a theorem" in form


def test_blocks_list_their_own_charges(report: Report) -> None:
    blocks = {block["name"]: block for block in report.to_json()["blocks"]}
    assert [charge["label"] for charge in blocks["left"]["charges"]] == [HOSTILE]
    assert blocks["left"]["records"] == 100
    assert blocks["left"]["parent"] == "records"
    assert blocks["left"]["epsilon"] == pytest.approx(_left_block(), rel=1e-9)
    assert [charge["label"] for charge in blocks["records"]["charges"]] == ["count"]


def test_marginal_cost_is_the_difference_of_two_totals(report: Report) -> None:
    by_label = {summary.charge.label: summary.cost for summary in report.charges}
    assert by_label[HOSTILE] == 0.0  # the other block is the worse one
    own = {summary.charge.label: summary.own_cost for summary in report.charges}
    assert own[HOSTILE] == pytest.approx(_left_block() - 0.5, abs=1e-5)  # without it (.5, 1e-8) remains
    assert by_label["choice"] == pytest.approx(report.epsilon - _left_block(), rel=1e-9)


def _left_block() -> float:
    """Two times .25-DP and (.5, 1e-8)-DP at 1e-6: only the outcome with the largest total loss is above epsilon."""
    likely = (math.exp(0.25) / (1 + math.exp(0.25))) ** 2 * math.exp(0.5) / (1 + math.exp(0.5)) * (1 - 1e-8)
    return 1.0 + math.log1p(-(1e-6 - 1e-8) / likely)


def test_html_escapes_the_users_words_and_needs_nothing_from_outside(report: Report) -> None:
    html = report.to_html()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    remote = [value for tag, attrs in _tags(html) for name, value in attrs if name in {"src", "href"} if tag != "use"]
    assert [value for value in remote if value and not value.startswith("#")] == []


def test_plots_are_well_formed_and_labelled(report: Report) -> None:
    html = report.to_html()
    drawings = html.split("<svg")[1:]
    assert len(drawings) == 2
    for drawing in drawings:
        root = ET.fromstring("<svg" + drawing.split("</svg>")[0] + "</svg>")
        assert root.tag.endswith("svg")


def test_markdown_tables_keep_their_columns(report: Report) -> None:
    for line in report.to_markdown().splitlines():
        if line.startswith("| ") and "script" in line:
            assert line.replace("\\|", "").count("|") == 10


def test_same_ledger_same_page() -> None:
    def page() -> str:
        ledger = Ledger(relation="add-remove")
        ledger.charge("d", GaussianDpEvent(2.0), label="mean")
        return build_report(ledger).to_html().split("<h2>Curves</h2>")[1]

    assert page() == page()


def test_power_statement_matches_the_gaussian_trade_off() -> None:
    """For one Gaussian of multiplier 1 the best test at level .05 has power Phi(1 + Phi^-1(.05)) (Neyman-Pearson)."""
    from scipy.stats import norm

    ledger = Ledger(relation="add-remove")
    ledger.charge("d", GaussianDpEvent(1.0), label="mean")
    exact = norm.cdf(1 + norm.ppf(0.05))
    found = build_report(ledger, deltas=(1e-9,)).power
    assert exact <= found <= exact * 1.02  # from a finite set of epsilons: an upper bound, and not a loose one


def test_empty_and_unbounded_ledgers_have_reports() -> None:
    empty = build_report(Ledger(relation="add-remove"))
    assert empty.epsilon == 0.0
    assert "none" in empty.to_html()
    ledger = Ledger(relation="add-remove")
    ledger.charge("d", NonPrivateDpEvent(), label="raw rows")
    unbounded = build_report(ledger)
    assert unbounded.epsilon == math.inf
    json.dumps(unbounded.to_json(), allow_nan=False)
    assert "No finite epsilon" in unbounded.to_text()
    assert "infinite" in unbounded.to_html()


def test_bad_delta_names_the_rule() -> None:
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\]"):
        build_report(Ledger(relation="add-remove"), deltas=(1.5,))


def test_every_kind_of_event_has_words_of_its_own() -> None:
    examples = [SelfComposedDpEvent(GaussianDpEvent(1.0), 3), ZCDpEvent(0.5), RdpDpEvent((2.0,), (1.0,))]
    assert [describe(event) for event in examples] == [
        "3 x Gaussian, noise multiplier 1",
        "0.5-zCDP",
        "Renyi curve at 1 orders",
    ]
    assert event_kinds()


class _Collector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))


def _tags(html: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    collector = _Collector()
    collector.feed(html)
    return collector.tags


def test_marginal_costs_are_left_out_past_their_limit() -> None:
    from accounting.report import MARGINAL_LIMIT

    ledger = Ledger(relation="replace-one")
    for i in range(MARGINAL_LIMIT + 1):
        ledger.charge("d", ApproximateDpEvent(0.001 * (i + 1)), label=f"release {i}")
    report = build_report(ledger)
    assert {summary.cost for summary in report.charges} == {None}
    assert "not computed" in report.to_text()
