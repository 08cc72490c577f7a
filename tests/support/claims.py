"""Claims files for tests, written from a table of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import misbehaving

MISBEHAVING = Path(misbehaving.__file__)


def write_claims(
    path: Path,
    names: Sequence[str],
    *,
    head: Mapping[str, object] | None = None,
    extra: Mapping[str, str] | None = None,
) -> Path:
    """A claims file with one claim for each mechanism: 2-DP when one of two records, 0 or 1, is replaced.

    head: keys for the whole file. extra: further lines for the claim of that name.
    """
    lines = ["schema = 1", *(f"{key} = {value}" for key, value in (head or {}).items())]
    for name in names:
        lines += [
            "[[claims]]",
            f'name = "{name}"',
            f'mechanism = "{MISBEHAVING}:{name}"',
            "epsilon = 2.0",
            'relation = "replace-one"',
            "neighbours = { values = [0, 1], size = 2 }",
            (extra or {}).get(name, ""),
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
