"""Tables, page and JUnit file: they hold together at every width, and keep what they are given as text."""

from __future__ import annotations

import io
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from accounting import ApproximateDpEvent, Ledger, Relation, Trust
from audits.figures import counted, shown, shown_lower, shown_upper
from audits.files import prepare, write_text
from audits.junit import junit_xml
from audits.pages import verification_page
from audits.progress import Bars, Lines
from audits.reports import show_ledger
from audits.tables import show_errors, show_mechanisms, show_run
from audits.verdicts import Status, Verdict, Witness
from audits.verification import Unchecked, VerificationRun
from mechanisms import registered

HOSTILE = "<script>alert('x')</script> [bold]&amp; \x00 \N{SNOWMAN}"


def verdict(name: str, status: Status, **fields: Any) -> Verdict:
    known: dict[str, Any] = {
        "mechanism": "noisy.py:count",
        "relation": Relation.ADD_OR_REMOVE_ONE,
        "claim_epsilon": 1.0,
        "claim_delta": 0.0,
        "method": "sequential",
        "source": "claims.toml",
        "trust": Trust.EMPIRICAL,
        "domain": "all datasets of 0 to 4 records from {0, 1}, one record added or removed",
    }
    if status is Status.REFUTED:
        known["witness"] = Witness(
            dataset=(0, 1), neighbour=(0,), event="outcome = 3", probability=0.75, neighbour_probability=0.1
        )
    return Verdict(name=name, status=status, **{**known, **fields})


RUN = VerificationRun(
    verdicts=(
        verdict(
            "label-boost: a labelled record changes, extremal family of 64 labellings",
            Status.PROVED,
            method="exact",
            trust=Trust.EXACT,
            claim_epsilon=1.9482,
            epsilon_lower=1.9470,
            epsilon_upper=1.9470000000001,
            paper_epsilon=2.3863,
            paper_delta=0.0,
            paper_source="Lemma 3.11",
            pairs_tried=1234567,
            delta_found=0.0,
        ),
        verdict(
            "noisy count",
            Status.CONSISTENT,
            promise="at most four records",
            epsilon_lower=0.91239,
            epsilon_detectable=1.10001,
            runs=1_000_000,
            pairs_tried=20,
            confidence=0.99,
            claim_delta=1e-6,
            reason="the run was interrupted before the audit was complete",
            notes=("mechanism: it takes no rng", "a note on the audit"),
        ),
        verdict("x" * 70, Status.REFUTED, epsilon_lower=math.inf, runs=40, confidence=0.99),
        verdict(
            HOSTILE,
            Status.REFUTED,
            mechanism=HOSTILE,
            promise=HOSTILE,
            notes=("mechanism: " + HOSTILE,),
            source=HOSTILE,
        ),
        verdict("stopped", Status.INCONCLUSIVE, reason="the time budget of the run was used up"),
        verdict("failed", Status.INCONCLUSIVE, error="claim 'failed' (noisy.py:count): the mechanism failed"),
        Unchecked("claim 7", None, "claim 'claim 7': the key 'name' is missing"),
    ),
    seed=12,
    confidence=0.99,
    statistical=3,
    seconds=3.21,
    interrupted=True,
    versions=(("dpledger", "0.1.0"), ("numpy", "2.0")),
)


def printed(width: int) -> str:
    out = io.StringIO()
    show_run(Console(file=out, width=width, highlight=False), RUN)
    return out.getvalue()


@pytest.mark.parametrize("width", [72, 80, 100, 140, 200])
def test_the_table_fits_and_says_every_verdict(width: int) -> None:
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("PROVED", "CONSISTENT", "REFUTED", "INCONCLUSIVE", "ERROR"):
        assert re.search(rf"^.* {word}\b", text, flags=re.MULTILINE), word  # whole, in the last column
    flat = " ".join(text.split())
    assert "7 claims: 1 proved, 1 consistent, 2 refuted, 1 inconclusive, 2 not checked; the run was interrupted" in flat
    assert "seed 12, confidence 0.99, 3.2 s" in flat
    assert "the event outcome = 3 has probability 0.75 against 0.1" in flat
    assert "[bold]" in text  # the user's text is not markup
    assert "noisy count: it takes no rng" in flat
    assert "a note on the audit" not in flat
    assert "noisy count: the run was interrupted before the audit was complete (1,000,000 runs, 20 pairs)" in flat


def test_numbers_stand_on_their_safe_side() -> None:
    text = printed(140)
    assert ">= 0.9123" in text  # a lower bound, 0.91239
    assert shown_lower(0.95) == "0.95"
    assert "1.101" in text  # an upper bound, 1.10001
    assert "1.947" in text
    assert "99.9%" in text
    assert "1, 1e-06" in text


@given(st.floats(allow_nan=False))
def test_rounded_text_is_on_the_side_it_should_be(value: float) -> None:
    assert float(shown_lower(value)) <= value <= float(shown_upper(value))
    if 1e-300 < abs(value) < 1e300:
        assert float(shown(value)) == pytest.approx(value, rel=1e-3)


def test_figures() -> None:
    assert [shown(None), shown(math.inf), shown(-math.inf), shown(0.0), shown(1.0)] == ["-", "inf", "-inf", "0", "1"]
    assert [counted(1, "pair"), counted(1200, "run")] == ["1 pair", "1,200 runs"]


def test_errors_are_paragraphs_of_their_own() -> None:
    out = io.StringIO()
    show_errors(Console(file=out, width=80), RUN)
    assert out.getvalue().splitlines() == [
        "claim 'failed' (noisy.py:count): the mechanism failed",
        "claim 'claim 7': the key 'name' is missing",
    ]


class _Page(HTMLParser):
    """Collects what a page would load, its tags and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "data")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_self_contained_and_keeps_the_users_text_as_text() -> None:
    html = verification_page(RUN, command="dpledger verify '<b>.toml'")
    page = _Page()
    page.feed(html)
    assert page.loaded == []
    assert "script" not in page.tags
    assert "@import" not in html
    assert "url(" not in html
    flat = " ".join(page.text.split())
    for wanted in (
        "<script>alert('x')</script>",
        "dpledger verify '<b>.toml'",
        "seed 12",
        "confidence 0.99",
        "numpy 2.0",
        "at most four records",
        "This is not a proof.",
        "Lemma 3.11",
        "0.75 against 0.1",
        "the key 'name' is missing",
        "the run was interrupted before the audit was complete",
    ):
        assert wanted in flat, wanted
    assert page.tags.count("details") == len(RUN)
    assert page.tags.count("th") * 1 == len(re.findall(r"<th ", html))
    (columns,) = set(re.findall(r'colspan="(\d+)"', html))
    assert int(columns) == page.tags.count("th")


def test_junit_counts_what_ci_should_see_and_is_xml_whatever_the_names() -> None:
    (suite,) = ElementTree.fromstring(junit_xml(RUN, strict=False))
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "7", "failures": "2", "errors": "2", "skipped": "1"}
    cases = suite.findall("testcase")
    assert [len(case.findall("failure")) for case in cases] == [0, 0, 1, 1, 0, 0, 0]
    assert cases[3].get("name") == HOSTILE.replace("\x00", "?")
    (suite,) = ElementTree.fromstring(junit_xml(RUN, strict=True))
    assert (suite.get("failures"), suite.get("skipped")) == ("3", "0")


def test_json_has_no_bare_infinity() -> None:
    rows = RUN.to_json()["claims"]
    assert rows[2]["epsilon_lower"] == "inf"
    assert set(rows[6]) <= set(rows[0])


@pytest.mark.parametrize("width", [80, 140])
def test_mechanisms_and_ledgers_fit(width: int) -> None:
    ledger = Ledger(relation="replace-one")
    ledger.partition("records", {"a block with a long name, for the sake of it": 10, "odd": 20})
    ledger.charge("odd", ApproximateDpEvent(0.5), label="a release with a long label " * 4, source="Lemma 6.2 " * 9)
    out = io.StringIO()
    show_mechanisms(Console(file=out, width=width), registered())
    show_ledger(Console(file=out, width=width), ledger, (0.0, 1e-6))
    assert max(map(len, out.getvalue().splitlines())) <= width


def test_progress_lines_and_bars() -> None:
    for reporter_type, terminal in ((Lines, False), (Bars, True)):
        out = io.StringIO()
        reporter = reporter_type(Console(file=out, width=80, force_terminal=terminal))
        reporter.begin(2)
        reporter.started("noisy count")
        reporter.progressed("noisy count", 10, 100)
        reporter.say("Stopping")
        reporter.finished(RUN.verdicts[1])
        reporter.finished(RUN.verdicts[6])
        reporter.end()
        assert "Stopping" in out.getvalue()
        if not terminal:
            assert out.getvalue().splitlines()[1:] == ["[1/2] noisy count: CONSISTENT", "[2/2] claim 7: ERROR"]


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "out.json"
    prepare(path)
    write_text(path, "one")
    monkeypatch.setattr("audits.files.os.fsync", lambda handle: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_text(path, "two")
    assert path.read_text(encoding="utf-8") == "one"
    assert [found.name for found in path.parent.iterdir()] == ["out.json"]
    assert path.stat().st_mode & 0o444 == 0o444
    with pytest.raises(IsADirectoryError):
        prepare(tmp_path)
