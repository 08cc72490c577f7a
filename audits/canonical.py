"""Outcomes as values that can be compared and counted.

Whatever a mechanism returns is mapped by a fixed function before an audit sees it. By post-processing a refutation of
the image refutes the mechanism; the map only merges outcomes that hold the same values (a list and a tuple of equal
numbers, say).
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from typing import Any

import numpy as np

NAN = float("nan")
"""The one NaN that audits see. NaN differs from itself, so each NaN of a mechanism would otherwise be an outcome of
its own.
"""

_ADVICE = "return a number, a string, None, or a tuple, list, dict or array of such"
_PLAIN = frozenset({bool, int, str, bytes, type(None)})


class UncountableError(TypeError):
    """An outcome cannot be compared with others by value."""


def canonical(outcome: Any) -> Hashable:
    """A hashable stand-in with equal values for `outcome`.

    NaN of any kind becomes `NAN`; numpy scalars Python scalars; lists and arrays nested tuples; a dict the tuple of
    its (key, value) pairs sorted by the text of the key; a set a frozenset. Other objects are kept if they compare by
    value.

    Raises:
        UncountableError: an object that is unhashable, or that equals only itself, so that no two runs could agree.
    """
    kind = type(outcome)
    if kind in _PLAIN:
        return outcome  # type: ignore[no-any-return]
    if isinstance(outcome, float | np.floating):
        return outcome if outcome == outcome else NAN
    if isinstance(outcome, np.generic):
        return canonical(outcome.item()) if not isinstance(outcome, np.void) else canonical(outcome.tolist())
    if kind is tuple or kind is list:
        return tuple(map(canonical, outcome))
    if isinstance(outcome, np.ndarray):
        return canonical(outcome.tolist())
    if isinstance(outcome, dict):
        pairs = ((canonical(key), canonical(value)) for key, value in outcome.items())
        return tuple(sorted(pairs, key=lambda pair: repr(pair[0])))
    if isinstance(outcome, set | frozenset):
        return frozenset(map(canonical, outcome))
    if isinstance(outcome, tuple):
        return tuple(map(canonical, outcome))
    if getattr(kind, "__eq__", None) is object.__eq__ and not isinstance(outcome, enum.Enum | type):
        raise UncountableError(
            f"an object of type {kind.__name__}, which equals only itself, so no two runs can be compared: {_ADVICE}"
        )
    try:
        hash(outcome)
        return outcome if outcome == outcome else NAN
    except Exception:
        raise UncountableError(
            f"an unhashable object of type {kind.__name__}, which cannot be counted: {_ADVICE}"
        ) from None


def canonical_batch(outcomes: Any) -> Any:
    """`canonical` of each outcome of a batch; a vector of numbers without NaN stays the array that it is."""
    if isinstance(outcomes, np.ndarray):
        simple = outcomes.dtype.kind in "biuUS" or (outcomes.dtype.kind == "f" and not np.isnan(outcomes).any())
        if simple and outcomes.ndim == 1:
            return outcomes
        if simple and outcomes.ndim == 2:
            return list(map(tuple, outcomes.tolist()))
        return list(map(canonical, outcomes.tolist()))
    kept = outcomes if isinstance(outcomes, list | tuple) else list(outcomes)
    return kept if _PLAIN.issuperset(map(type, kept)) else list(map(canonical, kept))
