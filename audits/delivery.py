"""What the commands share: where results go, and how wrong input is told."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from audits.files import prepare, write_text
from audits.junit import junit_xml
from audits.loading import one_paragraph
from audits.pages import verification_page
from audits.tables import show_errors, show_run
from audits.verification import VerificationRun

EXIT_BAD_INPUT = 2


class Output(Console):
    """Standard output, whose reader may go away (``| head``) without changing the exit code."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@dataclass(frozen=True, slots=True)
class Files:
    """Where a run is written to."""

    json: Path | None = None
    html: Path | None = None
    junit: Path | None = None

    def prepare(self) -> None:
        """Refuse a place that cannot be written before the work, not after it."""
        for path in (self.json, self.html, self.junit):
            if path is not None and not is_stdout(path):
                prepare(path)


def errors() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False)


@contextlib.contextmanager
def bad_input() -> Iterator[None]:
    """Turns what a check of the user's input raises into one paragraph on standard error and exit code 2."""
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        errors().print(Text(f"dpledger: {one_paragraph(error, 2000)}", style="bold red"), soft_wrap=True)
        raise typer.Exit(EXIT_BAD_INPUT) from None


def deliver(found: VerificationRun, files: Files, *, strict: bool) -> None:
    """Write the files, print the tables, exit."""
    command = shlex.join(["dpledger", *sys.argv[1:]])
    if files.json is None or not is_stdout(files.json):
        show_run(Output(highlight=False), found)
    show_errors(errors(), found)
    with bad_input():  # a full disk, a folder that went away: the results are on the screen
        if files.json is not None:
            write_json(files.json, {**found.to_json(), "command": command})
        if files.html is not None:
            write_text(files.html, verification_page(found, command=command))
        if files.junit is not None:
            write_text(files.junit, junit_xml(found, strict=strict))
    raise typer.Exit(found.exit_code(strict=strict))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` to the file, or to standard output for ``-``."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if is_stdout(path):
        typer.echo(text, nl=False)
    else:
        write_text(path, text)


def is_stdout(path: Path) -> bool:
    """Whether the path stands for standard output."""
    return str(path) == "-"
