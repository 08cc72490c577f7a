"""A verification run as a JUnit file, for continuous integration."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from audits.presenting import row_text
from audits.verdicts import Status, Verdict
from audits.verification import Row, VerificationRun

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(run: VerificationRun, *, strict: bool) -> str:
    """One test case a claim. REFUTED is a failure, a claim that could not be checked an error; INCONCLUSIVE is
    skipped, or a failure if `strict`.
    """
    suite = ElementTree.Element("testsuite", name="dpledger")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("seed", str(run.seed)), ("confidence", repr(run.confidence)), *run.versions):
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    outcomes = [_add_case(suite, row, strict=strict) for row in run.verdicts]
    suite.attrib.update(
        tests=str(len(outcomes)),
        failures=str(outcomes.count("failure")),
        errors=str(outcomes.count("error")),
        skipped=str(outcomes.count("skipped")),
        time=f"{run.seconds:.3f}",
    )
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ElementTree.Element, row: Row, *, strict: bool) -> str:
    seconds = row.seconds if isinstance(row, Verdict) else 0.0
    text = row_text(row)
    case = ElementTree.SubElement(
        suite, "testcase", name=_xml(row.name), classname=_xml(text.mechanism), time=f"{seconds:.3f}"
    )
    outcome = "passed"
    if row.status is Status.REFUTED:
        outcome = "failure"
    elif row.error is not None:
        outcome = "error"
    elif row.status is Status.INCONCLUSIVE:
        outcome = "failure" if strict else "skipped"
    if outcome != "passed":
        found = ElementTree.SubElement(case, outcome, message=_xml(row.error or row.summary()))
        if outcome != "skipped":
            found.set("type", row.status.value)
    ElementTree.SubElement(case, "system-out").text = _xml(row.summary())
    return outcome


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)
