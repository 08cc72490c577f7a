"""Verification runs: what goes wrong in one claim stays there; budgets; seeds; the order of the rows."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import audits
from audits import verify
from audits.claims_file import read_claims
from audits.pool import GRACE_SECONDS
from audits.progress import Silent
from audits.runs import _seeds, own_entries
from audits.verdicts import Status, Verdict
from audits.verification import Row, Unchecked, VerificationRun
from tests.support.claims import MISBEHAVING, write_claims

FAILING = {
    "raises": "failed on the dataset [0, 0]: ZeroDivisionError: division by zero (misbehaving.py, line ",
    "exits": "failed on the dataset [0, 0]: SystemExit: 3",
    "returns_nan": "the mechanism returned NaN in every one of its",
    "returns_opaque": "an object of type Opaque, which equals only itself",
    "returns_unhashable": "an unhashable object of type Unhashable",
    "never_returns": "] did not return within 1 seconds; a longer time is allowed by timeout",
    "never_returns_nor_yields": "its process has not answered for",
    "kills_its_process": "ended with exit code 7; its last words were: out of cheese",
    "crashes_the_interpreter": "was ended by SIGSEGV",
    "RepeatsItsBatch": "whatever generator it is given",
    "WrongDistribution": "must sum to 1 within 1e-09, got 0.9",
    "Missing": "misbehaving.py has no 'Missing'",
    "typo": "unknown key 'epsilom' (did you mean \"epsilon\"?)",
}
NOTED = {
    "returns_nan_at_times": "outputs were NaN",
    "returns_lists": "outputs of type list were compared by their contents",
    "constant": "one and the same output every time",
    "seeds_itself": "one and the same output every time",
    "takes_no_rng": "takes no rng: it draws its own randomness and cannot be replayed",
    "ignores_its_rng": "equal generators gave different outputs",
}
FINE = ("good", "returns_enum", "prints", "Polluting", "fastidious")


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """One run with everything that can go wrong, and claims that hold at the start, in the middle and at the end."""
    names = ["good", *FAILING, "returns_enum", *NOTED, "Polluting", "fastidious", "prints"]
    path = write_claims(
        tmp_path_factory.mktemp("eventful") / "claims.toml",
        names,
        head={"timeout": 1.0, "max_runs": 400},
        extra={"typo": "epsilom = 1"},
    )
    found = verify(path, jobs=4, seed=3)
    assert [row.name for row in found.verdicts] == names
    assert found.exit_code(strict=False) == 2
    return {row.name: row for row in found.verdicts}


@pytest.mark.parametrize("name", FAILING)
def test_a_failing_mechanism_costs_its_own_claim_a_paragraph(eventful: dict[str, Row], name: str) -> None:
    row = eventful[name]
    assert row.status is Status.INCONCLUSIVE
    assert row.error is not None
    assert row.error.startswith(f"claim '{name}'")
    assert f"{MISBEHAVING}:{name}" in row.error
    assert FAILING[name] in row.error
    assert "\n" not in row.error
    assert "Traceback" not in row.error


@pytest.mark.parametrize("name", [*FINE, *NOTED])
def test_the_other_claims_are_checked_all_the_same(eventful: dict[str, Row], name: str) -> None:
    row = eventful[name]
    assert isinstance(row, Verdict)
    assert row.error is None
    assert row.status is Status.CONSISTENT
    assert row.runs > 100


@pytest.mark.parametrize("name", NOTED)
def test_what_is_odd_is_noted(eventful: dict[str, Row], name: str) -> None:
    row = eventful[name]
    assert isinstance(row, Verdict)
    assert any(NOTED[name] in note for note in row.notes), row.notes


def test_nothing_is_noted_of_a_sound_mechanism(eventful: dict[str, Row]) -> None:
    row = eventful["good"]
    assert isinstance(row, Verdict)
    assert not any(word in note for note in row.notes for word in ("replayed", "NaN", "every time", "compared by"))


def without_time(run: VerificationRun) -> list[Row]:
    return [dataclasses.replace(row, seconds=0.0) if isinstance(row, Verdict) else row for row in run.verdicts]


def test_verdicts_depend_on_the_seed_and_not_on_the_number_of_jobs(tmp_path: Path) -> None:
    path = write_claims(tmp_path / "claims.toml", ["good", "returns_enum", "returns_lists"], head={"max_runs": 2000})
    one, three, other = (verify(path, jobs=jobs, seed=seed) for jobs, seed in ((1, 7), (3, 7), (1, 8)))
    assert without_time(one) == without_time(three)
    assert without_time(one) != without_time(other)


def test_a_claims_seed_is_that_of_its_place_in_the_file(tmp_path: Path) -> None:
    claims = read_claims(write_claims(tmp_path / "claims.toml", ["good", "returns_enum"])).claims
    own = own_entries()[:3]
    alone, together = _seeds(claims, 7), _seeds([*own, *claims], 7)
    assert [child.spawn_key for child in alone] == [(0,), (1,)]
    assert [child.spawn_key for child in together] == [(2,), (3,), (4,), (0,), (1,)]
    assert {child.entropy for child in together} == {7}


def test_a_fresh_seed_is_drawn_and_told(tmp_path: Path) -> None:
    path = write_claims(tmp_path / "claims.toml", ["typo"], extra={"typo": "epsilom = 1"})
    first, second = verify(path).seed, verify(path).seed
    assert first != second
    assert 0 <= first < 2**53


def test_one_error_budget_over_the_claims_audited_from_samples(tmp_path: Path) -> None:
    path = write_claims(
        tmp_path / "claims.toml",
        ["good", "returns_enum", "returns_lists", "raises", "typo", "Missing", "WrongDistribution"],
        head={"max_runs": 100, "confidence": 0.9},
        extra={"typo": "epsilom = 1", "returns_enum": "confidence = 0.999", "returns_lists": "confidence = 0.5"},
    )
    run = verify(path, seed=1)
    rows = {row.name: row for row in run.verdicts if isinstance(row, Verdict)}
    # Four are sampled, one of which raises; the broken, the missing and the exact one take no share.
    assert run.statistical == 4
    assert rows["good"].confidence == pytest.approx(1 - 0.1 / 4)
    assert rows["returns_enum"].confidence == pytest.approx(0.999)  # asks for more
    assert rows["returns_lists"].confidence == pytest.approx(1 - 0.1 / 4)  # cannot ask for less
    assert run.error_budget == (
        "If every claim is true, the probability that this run refutes any is at most 0.1 over the 4 claims audited "
        "from samples, 0.025 for each of the 4."
    )
    assert verify(path, seed=1, only="good", confidence=0.8).verdicts[0].confidence == pytest.approx(0.8)  # type: ignore[union-attr]


def test_only_chooses_by_part_or_glob_and_names_what_there_is(tmp_path: Path) -> None:
    path = write_claims(
        tmp_path / "claims.toml", ["typo", "typo too"], extra={"typo": "epsilom = 1", "typo too": "x = 1"}
    )
    assert [row.name for row in verify(path, only="TOO").verdicts] == ["typo too"]
    assert [row.name for row in verify(path, only="t*o").verdicts] == ["typo", "typo too"]
    with pytest.raises(
        ValueError, match=r'no claim matches \'tipo\' \(did you mean "typo"\?\); the claims are: typo; typo too'
    ):
        verify(path, only="tipo")


def test_a_time_budget_ends_what_runs_and_starts_nothing_new(tmp_path: Path) -> None:
    path = write_claims(tmp_path / "claims.toml", ["slow", "good"], head={"max_runs": 10**6})
    began = time.monotonic()
    run = verify(path, budget_seconds=8, jobs=1, seed=1)
    assert time.monotonic() - began < 8 + GRACE_SECONDS + 5
    slow, good = run.verdicts
    assert isinstance(slow, Verdict)
    assert isinstance(good, Verdict)
    assert slow.error is None
    assert slow.reason == "the time budget of the run was used up before the audit was complete"
    assert (good.status, good.runs) == (Status.INCONCLUSIVE, 0)
    assert good.reason == "the time budget of the run was used up before the audit of this claim began"
    assert not run.interrupted
    assert (run.exit_code(strict=False), run.exit_code(strict=True)) == (0, 3)


def test_where_forks_are_not_safe_each_task_has_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_claims(
        tmp_path / "claims.toml", ["Polluting", "fastidious", "kills_its_process"], head={"max_runs": 2000}
    )
    forked = verify(path, seed=7, jobs=2)
    monkeypatch.setattr("audits.isolation._START", "from audits import worker; worker.FORKS = False; worker.main()")
    started = verify(path, seed=7, jobs=2)
    assert without_time(started) == without_time(forked)
    assert [row.status for row in started.verdicts] == [Status.CONSISTENT, Status.CONSISTENT, Status.INCONCLUSIVE]


class Killed(Exception):
    """Raised by a reporter, to see that nothing is left behind."""


def test_an_exception_in_the_parent_leaves_no_process(tmp_path: Path) -> None:
    class Raising(Silent):
        def started(self, name: str) -> None:
            raise Killed

    path = write_claims(tmp_path / "claims.toml", ["never_returns"])
    with pytest.raises(Killed):
        verify(path, reporter=Raising(), seed=1)
    assert not list(_children())


def _children() -> Iterator[str]:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = [
            line
            for line in subprocess.run(
                ["ps", "-o", "ppid=,args="], capture_output=True, text=True, check=True
            ).stdout.splitlines()
            if line.split()[0] == str(os.getpid()) and "audits.worker" in line
        ]
        if not found:
            return
        time.sleep(0.1)
    yield from found


@pytest.mark.parametrize(("second", "times"), [("slow", 1), ("never_returns", 2)])
def test_ctrl_c_keeps_what_was_found(tmp_path: Path, second: str, times: int) -> None:
    """Once lets the audit in progress end; twice is for one that does not."""
    path = write_claims(
        tmp_path / "claims.toml",
        ["good", second, "constant"],
        head={"max_runs": 10**6, "timeout": 100},
        extra={"good": "max_runs = 2000"},
    )
    json_file = tmp_path / "out.json"
    command = [sys.executable, "-m", "audits", "verify", str(path), "--jobs", "1", "--json", str(json_file)]
    with subprocess.Popen(
        command, cwd=Path(audits.__file__).parent.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        time.sleep(2.0)  # well into the second claim
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            time.sleep(0.5)
        out, err = process.communicate(timeout=60)
        took = time.monotonic() - began
    assert "good: CONSISTENT" in first
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Ctrl-C again stops at once" in err
    assert re.search(r"3 claims: (2 consistent, 1|1 consistent, 2) inconclusive; the run was interrupted", out)
    assert "the run was interrupted before the audit" in " ".join(out.split())
    assert "before the audit of this claim began" in " ".join(out.split())
    assert [row["interrupted"] for row in json.loads(json_file.read_text(encoding="utf-8"))["claims"]] == [
        False,
        True,
        True,
    ]
    assert times == 1 or took < GRACE_SECONDS


def test_exit_codes() -> None:
    def code(*rows: Row, strict: bool = False, interrupted: bool = False) -> int:
        return VerificationRun(rows, 1, 0.9, 1, 1.0, interrupted, ()).exit_code(strict=strict)

    proved, consistent, refuted, inconclusive = (_verdict(status) for status in Status)
    error = Unchecked("x", None, "why")
    assert code(proved, consistent) == 0
    assert code(proved, inconclusive) == 0
    assert code(proved, inconclusive, strict=True) == 3
    assert code(inconclusive, error, strict=True) == 2
    assert code(proved, interrupted=True, strict=True) == 130
    assert code(error, refuted, inconclusive, strict=True, interrupted=True) == 1


def _verdict(status: Status) -> Verdict:
    from accounting import Relation, Trust
    from audits.verdicts import Witness

    witness: Any = Witness(dataset=(0,), neighbour=(1,), event="e") if status is Status.REFUTED else None
    return Verdict(
        name=str(status),
        mechanism="m",
        relation=Relation.REPLACE_ONE,
        claim_epsilon=1.0,
        claim_delta=0.0,
        status=status,
        method="exact",
        source="s",
        trust=Trust.EXACT,
        domain="d",
        witness=witness,
    )
