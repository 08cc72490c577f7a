"""Any Python value as short, stable, readable text and as plain JSON: datasets and outcomes come from users' code."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection
from fractions import Fraction
from typing import Any

import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEPTH = 6
_MEMBERS = 10_000


def readable(value: object, *, limit: int = 200) -> str:
    """`value` as text of at most `limit` characters that is the same in every run of the program.

    A Fraction is shown as ``1/3``, a numpy number as the number, sets in the order of their members' text, memory
    addresses are left out, long texts are cut in the middle. An object whose ``repr`` fails is named by its type.
    """
    return _cut(_render(value, budget=limit, depth=_DEPTH), limit)


def json_number(value: float | None) -> float | str | None:
    """A float as JSON holds it: infinities become ``"inf"`` and ``"-inf"``; None stays None.

    Raises:
        ValueError: `value` is NaN.
    """
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        raise ValueError(f"value must not be NaN, got {value!r}")
    return "inf" if value > 0 else "-inf"


def json_value(value: object, *, limit: int = 4000) -> Any:
    """`value` as plain JSON where it is plain data (numbers, strings, sequences, mappings), else as readable text.

    What would take more than about `limit` characters is readable text.
    """
    try:
        plain, _ = _plain(value, limit, _DEPTH)
    except _NotPlainError:
        return readable(value, limit=limit)
    return plain


class _NotPlainError(Exception):
    """The value is too long or too deep to be given whole."""


def _plain(value: Any, room: int, depth: int) -> tuple[Any, int]:
    """The JSON form of `value` and the characters left of `room`."""
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if depth < 0:
        raise _NotPlainError
    if value is None or kind is bool:
        return value, _left(room, 5)
    if kind is str:
        return value, _left(room, len(value))
    if kind is int:
        return value, _left(room, value.bit_length() // 3)
    if kind is float:
        return (value if math.isfinite(value) else repr(value)), _left(room, 20)
    if kind is tuple or kind is list:
        items = []
        for item in value:
            plain, room = _plain(item, _left(room, 2), depth - 1)
            items.append(plain)
        return items, room
    if kind is dict and all(type(key) is str for key in value):
        entries = {}
        for key, item in value.items():
            entries[key], room = _plain(item, _left(room, len(key) + 4), depth - 1)
        return entries, room
    text = readable(value, limit=max(room, 20))
    return text, _left(room, len(text))


def _left(room: int, used: int) -> int:
    if used > room:
        raise _NotPlainError
    return room - used


def _render(value: Any, budget: int, depth: int) -> str:
    if depth < 0:
        return "..."
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if kind is str and len(value) > 2 * budget:
        return repr(value[:budget]) + "..."
    if kind is tuple or kind is list:
        opening, closing = ("(", ")") if kind is tuple else ("[", "]")
        inside, count = _join(value, budget, depth)
        return opening + inside + ("," if kind is tuple and count == 1 else "") + closing
    if kind is set or kind is frozenset:
        members = sorted(_render(item, budget, depth - 1) for item in itertools.islice(value, _MEMBERS))
        return "{" + ", ".join(members) + "}"
    if kind is dict:
        inside, _ = _join(value.items(), budget, depth, pairs=True)
        return "{" + inside + "}"
    try:
        text = str(value) if kind is Fraction else repr(value)
    except Exception:
        return f"<{kind.__name__} without a repr>"
    return " ".join(_ADDRESS.sub("", text).split())


def _join(items: Collection[Any], budget: int, depth: int, *, pairs: bool = False) -> tuple[str, int]:
    parts: list[str] = []
    used = 0
    for item in items:
        if used > budget:
            parts.append(f"... {len(items) - len(parts)} more")
            break
        text = (
            f"{_render(item[0], budget, depth - 1)}: {_render(item[1], budget, depth - 1)}"
            if pairs
            else _render(item, budget, depth - 1)
        )
        parts.append(text)
        used += len(text) + 2
    return ", ".join(parts), len(items)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = min(limit // 4, 40)
    return text[: limit - tail - 5] + " ... " + text[len(text) - tail :] if limit > 20 else text[:limit]


__all__ = ["json_number", "json_value", "readable"]
