"""Mechanisms that go wrong in every way that a run must survive, and a few that are only odd."""

from __future__ import annotations

import ctypes
import enum
import os
import re
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np


def good(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    """ln 3-DP when one of the records, 0 or 1, is replaced: randomized response on the first."""
    return int(dataset[0] if rng.random() < 0.75 else 1 - dataset[0]) if dataset else 0


def raises(dataset: Sequence[int], *, rng: np.random.Generator) -> float:
    return 1 / sum(dataset)


def exits(dataset: Sequence[int], *, rng: np.random.Generator) -> NoReturn:
    raise SystemExit(3)


def returns_nan(dataset: Sequence[int], *, rng: np.random.Generator) -> float:
    return float("nan")


def returns_nan_at_times(dataset: Sequence[int], *, rng: np.random.Generator) -> float:
    return float("nan") if rng.random() < 0.5 else 0.0


class Opaque:
    """Equal to itself only."""


class Unhashable:
    """Equal to its like, but not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)


class Bit(enum.Enum):
    """Compares by identity, and may: there is one object for each value."""

    ZERO = 0
    ONE = 1


def returns_opaque(dataset: Sequence[int], *, rng: np.random.Generator) -> Opaque:
    return Opaque()


def returns_unhashable(dataset: Sequence[int], *, rng: np.random.Generator) -> Unhashable:
    return Unhashable()


def returns_lists(dataset: Sequence[int], *, rng: np.random.Generator) -> list[Any]:
    return [int(rng.integers(2)), {"a": [1]}]


def returns_enum(dataset: Sequence[int], *, rng: np.random.Generator) -> Bit:
    return Bit(int(rng.integers(2)))


def never_returns(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    while sum(dataset):
        time.sleep(0.05)
    return 0


def never_returns_nor_yields(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    """Hangs inside one call into C that holds the interpreter's lock."""
    if sum(dataset):
        re.match(r"(a+)+$", "a" * 80 + "b")
    return 0


def kills_its_process(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    if sum(dataset):
        print("out of cheese")
        os._exit(7)
    return 0


def crashes_the_interpreter(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    ctypes.string_at(0)
    return 0


def prints(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    print("chatter" * 100)
    return int(rng.integers(2))


def constant(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    return 5


def seeds_itself(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    return int(np.random.default_rng(3).integers(10**9))


class RepeatsItsBatch:
    """Every batch is drawn with the same seed."""

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator) -> int:
        return int(np.random.default_rng(3).integers(10))

    def release_many(self, dataset: Sequence[int], size: int, *, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.random.default_rng(3).integers(10, size=size)


def takes_no_rng(dataset: Sequence[int]) -> int:
    return int(np.random.default_rng().integers(2))


def ignores_its_rng(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    return int(np.random.default_rng().integers(2**40))


def slow(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    time.sleep(0.002)
    return int(rng.integers(2))


class WrongDistribution:
    """States probabilities that do not sum to 1."""

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator) -> int:
        return 0

    def distribution(self, dataset: Sequence[int]) -> dict[int, float]:
        return {0: 0.5, 1: 0.4}


class Polluting:
    """Leaves something behind for everyone in its process; `fastidious` cannot stand it."""

    def __init__(self) -> None:
        os.environ["POLLUTED"] = "yes"

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator) -> int:
        return int(rng.integers(2))


def fastidious(dataset: Sequence[int], *, rng: np.random.Generator) -> int:
    if "POLLUTED" in os.environ:
        raise RuntimeError("someone was here before")
    return int(rng.integers(2))
