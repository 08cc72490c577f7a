"""The command line: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

import audits
from accounting import ApproximateDpEvent, Claim, Ledger
from audits.cli import app
from mechanisms import registered
from tests.support.claims import write_claims

EXAMPLES = Path(__file__).parent.parent / "examples"
CLAMPED = f"{EXAMPLES / 'noisy.py'}:ClampedCount"


def dpledger(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_line(text: str) -> str:
    return " ".join(text.split())


def exact_claims(tmp_path: Path, **epsilons: float) -> Path:
    """Claims on the clamped count, whose true epsilon is ln(8/3) = 0.98083, each under the name given."""
    path = tmp_path / "exact.toml"
    claims = [
        f'[[claims]]\nname = "{name}"\nmechanism = "{CLAMPED}"\nparameters = {{ ratio = "3/8", top = 3 }}\n'
        f'epsilon = {epsilon}\nrelation = "replace-one"\nneighbours = {{ values = [0, 1], size = 2 }}\n'
        for name, epsilon in epsilons.items()
    ]
    path.write_text("schema = 1\n" + "\n".join(claims), encoding="utf-8")
    return path


# verify


def test_verify_prints_writes_and_exits_with_0_when_every_claim_holds(tmp_path: Path) -> None:
    files = {kind: tmp_path / "new" / f"out.{kind}" for kind in ("json", "html", "junit")}
    options = [part for kind, file in files.items() for part in (f"--{kind}", file)]
    result = dpledger("verify", exact_claims(tmp_path, holds=1.0), "--seed", 5, *options)
    assert result.exit_code == 0, result.output
    assert "1 claim: 1 proved" in result.stdout
    assert "seed 5, confidence 0.95" in result.stdout
    document = json.loads(files["json"].read_text(encoding="utf-8"))
    assert (document["schema"], document["seed"], document["confidence"]) == (1, 5, 0.95)
    (row,) = document["claims"]
    asked = {
        "name", "mechanism", "relation", "promise", "claimed", "verdict", "method", "epsilon_lower", "epsilon_upper",
        "epsilon_detectable", "runs", "pairs_tried", "witness", "seconds", "source",
    }  # fmt: skip
    assert asked <= row.keys()
    assert (row["verdict"], row["method"], row["relation"]) == ("PROVED", "exact", "replace-one")
    assert row["claimed"] == {"epsilon": 1.0, "delta": 0.0}
    assert row["epsilon_lower"] <= 0.9808292530117262 <= row["epsilon_upper"] <= 0.98083
    assert files["html"].read_text(encoding="utf-8").startswith("<!doctype html>")
    (suite,) = ElementTree.parse(files["junit"]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    assert not [path for path in files["json"].parent.iterdir() if path.name.startswith(".")]


def test_verify_exits_with_1_and_shows_the_witness_when_a_claim_is_refuted(tmp_path: Path) -> None:
    result = dpledger("verify", exact_claims(tmp_path, holds=1.0, fails=0.9), "--json", "-")
    assert result.exit_code == 1
    holds, fails = json.loads(result.stdout)["claims"]
    assert (holds["verdict"], fails["verdict"]) == ("PROVED", "REFUTED")
    assert sorted(fails["witness"]) == ["dataset", "event", "neighbour", "neighbour_probability", "probability"]
    assert (
        one_line(dpledger("verify", tmp_path / "exact.toml", "--only", "fails").stdout).count("is false by exact") == 1
    )


def test_errors_come_on_standard_error_and_exit_with_2_unless_something_is_refuted(tmp_path: Path) -> None:
    path = write_claims(
        tmp_path / "claims.toml", ["typo", "good"], extra={"typo": "epsilom = 1"}, head={"max_runs": 200}
    )
    result = dpledger("verify", path, "--seed", 1)
    assert result.exit_code == 2
    assert "claim 'typo'" in one_line(result.stderr)
    assert 'did you mean "epsilon"?' in one_line(result.stderr)
    assert "claim 'typo'" not in result.stdout
    assert "2 claims: 1 consistent, 1 not checked" in result.stdout
    assert "[1/2] typo: ERROR" in result.stderr
    path.write_text(
        path.read_text(encoding="utf-8") + exact_claims(tmp_path, fails=0.5).read_text(encoding="utf-8")[11:]
    )
    assert dpledger("verify", path, "--seed", 1).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.toml"], "there is no claims file missing.toml"),
        (["{exact}", "--only", "hodls"], "no claim matches 'hodls' (did you mean \"holds\"?); the claims are: holds"),
        (["{exact}", "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["{exact}", "--confidence", "1"], "confidence must be in (0, 1), got 1.0"),
        (["{exact}", "--confidence", "nan"], "confidence must be in (0, 1) and finite, got nan"),
        (["{exact}", "--timeout", "0"], "timeout must be in (0, inf], got 0.0"),
        (["{exact}", "--budget-seconds", "-1"], "budget_seconds must be in (0, inf], got -1.0"),
        (["{exact}", "--max-runs", "0"], "max_runs must be at least 1, got 0"),
        (["{exact}", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["{exact}", "--json", "{folder}"], "is a folder, not a file"),
        (["{exact}", "--html", "{exact}/x.html"], "exact.toml"),
    ],
)
def test_wrong_input_to_verify_is_one_paragraph_and_exit_code_2(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    exact = exact_claims(tmp_path, holds=1.0)
    result = dpledger("verify", *(argument.format(exact=exact, folder=tmp_path) for argument in arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert result.stderr.startswith("dpledger: ")
    assert result.stderr.count("\n") == 1


def test_wrong_usage_exits_with_2() -> None:
    assert dpledger("verify", "--no-such-option").exit_code == 2
    assert dpledger("no-such-command").exit_code == 2
    assert dpledger("audit", "x:y").exit_code == 2


def test_strict_exits_with_3_when_a_claim_stays_inconclusive(tmp_path: Path) -> None:
    path = write_claims(tmp_path / "claims.toml", ["good"])
    junit = tmp_path / "out.xml"
    assert dpledger("verify", path, "--budget-seconds", 0.001, "--seed", 1, "--junit", junit).exit_code == 0
    (suite,) = ElementTree.parse(junit).getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert dpledger("verify", path, "--budget-seconds", 0.001, "--strict", "--junit", junit).exit_code == 3
    (suite,) = ElementTree.parse(junit).getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")


# audit


def audit_clamped(*arguments: object) -> Result:
    return dpledger("audit", CLAMPED, "--parameters", '{"ratio": "3/8", "top": 3}', *arguments)


def test_audit_by_values_and_by_pairs(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.json"
    pairs.write_text("[[[0, 1], [1, 1]]]", encoding="utf-8")
    by_values = audit_clamped(
        "--epsilon", 1, "--relation", "replace-one", "--values", "[0, 1]", "--size", 2, "--json", "-"
    )
    by_pairs = audit_clamped("--epsilon", 0.9, "--relation", "replace-one", "--pairs", pairs, "--json", "-")
    assert (by_values.exit_code, by_pairs.exit_code) == (0, 1)
    (row,) = json.loads(by_pairs.stdout)["claims"]
    assert sorted([row["witness"]["dataset"], row["witness"]["neighbour"]]) == [[0, 1], [1, 1]]
    (row,) = json.loads(by_values.stdout)["claims"]
    assert (row["name"], row["pairs_tried"]) == (CLAMPED, 2)  # as multisets, for the count ignores order


PLACE = "--relation add-remove --values [0] --size 1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "--relation must be replace-one or add-remove, got None"),
        ("--relation replace-on", "got 'replace-on' (did you mean \"replace-one\"?)"),
        ("--relation add-remove", "the datasets to try are needed: give --values and --size, or --pairs"),
        ("--relation add-remove --values [0 --size 1", "--values must be JSON, got '[0'"),
        ("--relation add-remove --values [0] --size 0", "neighbours.max_size must be at least 1, got 0"),
        ("--relation add-remove --pairs none.json", "No such file"),
        ("--relation add-remove --pairs x --size 3", "--pairs stands alone"),
        (f"{PLACE} --method x", "--method must be one of auto,"),
        (f"{PLACE} --parameters 3", "--parameters must be a table"),
        (f"{PLACE} --delta 2", "--delta must be in [0, 1], got 2"),
    ],
)
def test_wrong_input_to_audit(options: str, said: str) -> None:
    result = dpledger("audit", CLAMPED, "--epsilon", 1, *options.split())
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_audit_of_what_is_not_there_is_an_error_of_its_claim(tmp_path: Path) -> None:
    place = ("--epsilon", 1, "--relation", "replace-one", "--values", "[0, 1]", "--size", 1)
    assert "written pkg.module:name" in dpledger("audit", "noisy.py", *place).stderr
    result = dpledger("audit", f"{tmp_path}/noisy.py:f", *place)
    assert result.exit_code == 2
    assert f"there is no file {tmp_path}/noisy.py" in one_line(result.stderr)


# report and mechanisms


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    ledger = Ledger(relation="replace-one", budget=(2, 1e-6))
    ledger.partition("records", {"even": 5000, "odd": 4000})
    claim = Claim.pure(0.5, relation="replace-one", source="Lemma 1", promise="realizable")
    ledger.charge("even", claim, label="a count", count=2)
    ledger.charge("odd", ApproximateDpEvent(0.25, 1e-7), label="another")
    path = tmp_path / "ledger.json"
    ledger.save(path)
    return path


def test_report_in_text_and_as_json(ledger_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    result = dpledger("report", ledger_file, "--delta", 0, "--delta", 1e-6, "--json", out)
    assert result.exit_code == 0, result.output
    text = one_line(result.stdout)
    assert "2 charges under replace-one, budget (2, 1e-06), of which epsilon" in text
    assert "epsilon <= inf at delta 0" in text  # the block "odd" has no finite epsilon there
    assert "Holds only as promised: realizable" in text
    document = json.loads(out.read_text(encoding="utf-8"))
    assert (document["schema"], document["relation"], document["delta"], document["epsilon"]) == (
        1,
        "replace-one",
        0,
        "inf",
    )
    assert document["routes"]
    assert all({"epsilon", "bound", "source"} <= route.keys() for route in document["routes"].values())
    blocks = {block["name"]: block for block in document["blocks"]}
    assert (blocks["even"]["records"], blocks["odd"]["records"], blocks["records"]["records"]) == (5000, 4000, None)
    # Two releases that are 0.5-DP: 1-DP, and no better at delta 0.
    assert blocks["even"]["epsilon"] == pytest.approx(1.0, rel=1e-9)
    (charge,) = blocks["even"]["charges"]
    assert (charge["label"], charge["count"], charge["promise"], charge["source"]) == (
        "a count",
        2,
        "realizable",
        "Lemma 1",
    )
    deltas = [delta for _, delta in document["curve"]]
    assert deltas == sorted(deltas, reverse=True)
    assert document["totals"][1]["delta"] == 1e-6


def test_report_takes_the_budgets_delta_and_asks_for_one_where_there_is_none(ledger_file: Path, tmp_path: Path) -> None:
    assert json.loads(dpledger("report", ledger_file, "--json", "-").stdout)["delta"] == 1e-6
    bare = tmp_path / "bare.json"
    Ledger(relation="add-remove").save(bare)
    result = dpledger("report", bare)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--delta is needed" in result.stderr
    assert dpledger("report", bare, "--delta", 0).exit_code == 0


def test_report_pages_of_a_ledger(ledger_file: Path, tmp_path: Path) -> None:
    page, notes = tmp_path / "report.html", tmp_path / "report.md"
    result = dpledger("report", ledger_file, "--html", page, "--markdown", notes)
    assert result.exit_code == 0, result.output
    assert "verified from the first of 4 entries to the last" in page.read_text(encoding="utf-8")
    assert "| even | records | 5000 |" in notes.read_text(encoding="utf-8")


def test_report_of_a_plan(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    plan = ("--plan", "carry-forward", "--components", 3, "--epsilon", 1, "--oracle-epsilon", 0.5)
    result = dpledger(
        "report", *plan, "--label-boost-epsilon", 1, "--delta", 1e-6, "--active-sample", 500, "--json", out
    )
    assert result.exit_code == 0, result.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["plan"]["active_sample"] == 500
    assert document["plan"]["records"] <= 23.75 * 500  # the known figure for k = 3 is 23.7, to one decimal
    assert document["epsilon"] <= 1.0
    assert sum(block["records"] for block in document["blocks"] if block["parent"]) == document["plan"]["records"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either a ledger file or --plan"),
        (("--plan", "sideways", "--delta", 1e-6), "--plan must be one of carry-forward"),
        (("--plan", "carry-forward", "--delta", 1e-6, "--epsilon", 1), "--components is needed"),
        (("--plan", "carry-forward", "--components", 3, "--epsilon", 1), "takes one --delta"),
        (("--plan", "carry-forward", "--components", 3, "--epsilon", 1, "--delta", 1e-6, "--records", 9), "at least"),
    ],
)
def test_report_of_a_plan_that_cannot_be(arguments: tuple[object, ...], said: str) -> None:
    result = dpledger("report", *arguments)
    assert result.exit_code == 2
    assert said in one_line(result.stderr)


def test_plan_options_do_not_go_with_a_ledger(ledger_file: Path) -> None:
    result = dpledger("report", ledger_file, "--components", 3)
    assert result.exit_code == 2
    assert "--components goes with --plan" in one_line(result.stderr)


@pytest.mark.parametrize(
    ("content", "said"), [("{", "bad.json"), ("{}", "bad.json"), (None, "No such file"), ("[1]", "bad.json")]
)
def test_report_on_what_is_no_ledger(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    result = dpledger("report", path, "--delta", 1e-6)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_mechanisms_lists_each_with_claim_relation_promise_and_source() -> None:
    text = one_line(dpledger("mechanisms").stdout)
    document = json.loads(dpledger("mechanisms", "--json", "-").stdout)
    assert [row["name"] for row in document["mechanisms"]] == [entry.name for entry in registered()]
    for row in document["mechanisms"]:
        assert set(row) == {"name", "summary", "claim", "relation", "promise", "source"}
        assert row["name"] in text


# the process


def run_module(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "audits", *arguments],
        cwd=Path(audits.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_python_m_audits_is_the_command_and_shows_no_traceback(tmp_path: Path) -> None:
    result = run_module("verify", str(tmp_path / "missing.toml"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"dpledger: there is no claims file {tmp_path / 'missing.toml'}\n"


def test_a_reader_that_goes_away_does_not_change_the_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "audits", "verify", str(exact_claims(tmp_path, holds=1.0))]
    with subprocess.Popen(
        command, cwd=Path(audits.__file__).parent.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode == 0
    assert "BrokenPipe" not in err


def test_a_defect_is_not_taken_for_a_refutation(tmp_path: Path) -> None:
    """Python exits with 1 after an exception, which here would mean that a claim is refuted."""
    code = "import audits.cli as cli\ncli.registered = None\ncli.main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "mechanisms"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 70
    assert "this is a defect of dpledger" in result.stderr
