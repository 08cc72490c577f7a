"""``python -m tests.benchmarks [NAME ...]``: measure, print, and write the table that the README quotes.

Every ratio is between things measured in this one run. Times are medians of wall time on whatever else the machine was
doing.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from tests.benchmarks import accounting, audits
from tests.benchmarks.table import Row, Section, as_markdown

SECTIONS: dict[str, Section] = {"accounting": accounting.SECTION, "audits": audits.SECTION}
TABLE = Path(__file__).with_name("results.md")


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    parts = [_header()]
    for name in names or SECTIONS:
        section = SECTIONS[name]
        print(f"\n{section.title}")
        rows: list[Row] = []
        for row in section.rows():
            rows.append(row)
            print(
                f"  {row.what}: {row.ours} against {row.peer}, ratio {row.ratio}, target {row.target}"
                f"{'' if row.met else '  NOT MET'}",
                flush=True,
            )
        parts.append(as_markdown(section, rows))
    temporary = TABLE.with_suffix(".tmp")
    temporary.write_text("\n".join(parts), encoding="utf-8")
    temporary.replace(TABLE)
    print(f"\nwritten to {TABLE}")
    return 0


def _header() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "dp-accounting"))
    return (
        "# Benchmarks\n\n"
        "Written by `make bench`, or by `python -m tests.benchmarks NAME ...` for some sections; do not edit.\n"
        "Ratios are between things measured in one run.\n"
        f"Python {platform.python_version()}, {versions}, {os.cpu_count()} cores.\n"
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
