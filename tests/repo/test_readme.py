"""What the README says works: its make targets exist, its commands are accepted, its example audits end as it says.

Its Python session runs as a doctest.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from audits.cli import app
from tests.repo import rules

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_targets_that_exist() -> None:
    assert {"make verify", "make test"} <= {*rules.commands(README, "make")}
    assert rules.unknown_targets(README, (ROOT / "Makefile").read_text(encoding="utf-8")) == []


def test_an_unknown_target_is_seen() -> None:
    readme = "make haste\n```sh\nmake test PYTHON=python3  # a comment\nmake cake\n```\nor `make tea` and `remake it`."
    assert rules.unknown_targets(readme, "test: .venv\n\tpytest\n.PHONY: cake\nCAKE = tea\n") == ["cake", "tea"]


def parse(command: str) -> None:
    """Parse a command line of ``dpledger`` without running it; the parser's error is raised."""
    name, *arguments = shlex.split(command)[1:]
    group = typer.main.get_group(app)
    group.commands[name].make_context(name, arguments, parent=None)


@pytest.mark.parametrize("command", rules.commands(README, "dpledger"))
def test_a_command_in_the_readme_is_accepted(command: str) -> None:
    parse(command)


@pytest.mark.parametrize(
    "command",
    [
        "dpledger bake",
        "dpledger verify --cake",
        "dpledger report --delta cake",
        "dpledger audit noisy.py:f --epsilon cake",
    ],
)
def test_a_command_that_does_not_exist_is_seen(command: str) -> None:
    with pytest.raises(Exception, match=r"bake|cake|[Mm]issing|valid number"):
        parse(command)


def test_the_example_audits_end_as_the_readme_says(tmp_path: Path) -> None:
    [code] = [block for block in rules.code_blocks(README, "python") if "def noisy_count" in block]
    (tmp_path / "noisy.py").write_text(code, encoding="utf-8")
    claimed, too_small = (command for command in rules.commands(README, "dpledger") if " audit " in command)
    for command, exit_code in ((claimed, 0), (too_small, 1)):
        arguments = [sys.executable, "-m", "audits", *shlex.split(command)[1:], "--seed", "1", "--max-runs", "20000"]
        done = subprocess.run(
            arguments, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        assert done.returncode == exit_code, done.stdout + done.stderr
