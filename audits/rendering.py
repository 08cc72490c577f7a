"""Any Python value as short, stable, readable text and as plain JSON: datasets and outcomes come from users' code."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEPTH = 6


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


def _plain(value: object, room: int, depth: int) -> tuple[Any, int]:
    """The JSON form of `value` and the characters left of `room`."""
    if room <= 0 or depth < 0:
        raise _NotPlainError
    if value is None or isinstance(value, (bool, str)):
        return value, room - (len(value) if isinstance(value, str) else 5)
    if isinstance(value, numbers.Integral):
        return int(value), room - len(str(value))
    if isinstance(value, (float, numbers.Real)) and not isinstance(value, numbers.Rational):
        number = float(value)
        return (number if math.isfinite(number) else readable(number)), room - 20
    if type(value) in (tuple, list):
        items = []
        for item in value:  # type: ignore[attr-defined]
            plain, room = _plain(item, room - 2, depth - 1)
            items.append(plain)
        return items, room
    if type(value) is dict:
        entries = {}
        for key, item in value.items():
            if not isinstance(key, str):
                break
            entries[key], room = _plain(item, room - len(key) - 4, depth - 1)
        else:
            return entries, room
    text = readable(value, limit=room)
    return text, room - len(text)


def _render(value: object, budget: int, depth: int) -> str:
    if depth < 0:
        return "..."
    kind = type(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, numbers.Number) and kind.__module__ == "numpy":
        return repr(value.item())  # type: ignore[attr-defined]
    if kind is str and len(value) > 2 * budget:  # type: ignore[arg-type]
        return repr(value[:budget]) + "..."  # type: ignore[index]
    if kind is tuple or kind is list:
        opening, closing = ("(", ")") if kind is tuple else ("[", "]")
        inside, whole = _join(value, budget, depth)  # type: ignore[arg-type]
        return opening + inside + ("," if kind is tuple and whole == 1 else "") + closing
    if kind is set or kind is frozenset:
        members = sorted(_render(item, budget, depth - 1) for item in _some(value, 10_000))  # type: ignore[arg-type]
        return "{" + ", ".join(members) + "}" if members else "{}"
    if kind is dict:
        inside, _ = _join(value.items(), budget, depth, pairs=True)  # type: ignore[attr-defined]
        return "{" + inside + "}"
    try:
        text = repr(value)
    except Exception:
        return f"<{kind.__name__} without a repr>"
    return " ".join(_ADDRESS.sub("", text).split()) if text.startswith("<") else " ".join(text.split("\n"))


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


def _some(items: Iterable[Any], count: int) -> Iterable[Any]:
    for index, item in enumerate(items):
        if index == count:
            return
        yield item


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = min(limit // 4, 40)
    return text[: limit - tail - 5] + " ... " + text[len(text) - tail :] if limit > 20 else text[:limit]


__all__ = ["json_number", "json_value", "readable"]
