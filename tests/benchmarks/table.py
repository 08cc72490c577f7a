"""Rows of a benchmark: what was measured, beside the limit or the peer measured in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One line. ours, peer: as printed, with units; ratio: ours over the peer or limit; met: whether the target is
    reached."""

    what: str
    ours: str
    peer: str
    ratio: str
    target: str
    met: bool


@dataclass(frozen=True)
class Section:
    """A titled group of rows; `rows` does the measuring when it is iterated, so that progress can be shown."""

    title: str
    note: str
    rows: Callable[[], Iterator[Row]]


def seconds(action: Callable[[], T], repeats: int = 3) -> tuple[float, T]:
    """Median wall time of `repeats` calls, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def as_markdown(section: Section, rows: list[Row]) -> str:
    """The section as a Markdown table."""
    lines = [f"## {section.title}", "", section.note, "", "| what | ours | peer or limit | ratio | target | met |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    lines += [
        f"| {row.what} | {row.ours} | {row.peer} | {row.ratio} | {row.target} | {'yes' if row.met else 'NO'} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
