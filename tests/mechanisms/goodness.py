"""Goodness of fit for the statistical tests of this folder, and generators whose bits a test chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import stats

_SMALLEST_EXPECTED = 20.0


def p_value(outcomes: Iterable[Any], law: Mapping[Any, Any]) -> float:
    """Chi-square p-value of independent outcomes against a law; 0 if one falls outside its support.

    Cells expected fewer than 20 times are pooled, so that the chi-square tail is trustworthy where the tests use it.
    """
    counts = Counter(outcomes)
    size = counts.total()
    if any(outcome not in law or law[outcome] == 0 for outcome in counts):
        return 0.0
    observed: list[int] = []
    expected: list[float] = []
    rare_observed, rare_expected = 0, 0.0
    for outcome, probability in law.items():
        mean = size * float(probability)
        if mean >= _SMALLEST_EXPECTED:
            observed.append(counts[outcome])
            expected.append(mean)
        else:
            rare_observed += counts[outcome]
            rare_expected += mean
    if rare_expected > 0:
        observed.append(rare_observed)
        expected.append(rare_expected)
    if len(observed) < 2:
        return 1.0
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def shifted(law: Mapping[Any, Any]) -> dict[Any, Any]:
    """A wrong law for controls: half the mass of the most probable outcome moved to the least probable one."""
    wrong = dict(law)
    most, least = max(wrong, key=wrong.__getitem__), min(wrong, key=wrong.__getitem__)
    if most == least:
        most = next(outcome for outcome in wrong if outcome != least)
    half = wrong[most] / 2
    wrong[most] -= half
    wrong[least] += half
    return wrong


class Scripted(np.random.Generator):
    """A generator that returns the bytes it is given, then fails: what a sampler does with every possible input."""

    def __new__(cls, *_: Any) -> Scripted:
        return super().__new__(cls, np.random.PCG64(0))  # type: ignore[call-arg]

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__(np.random.PCG64(0))
        self._chunks: Iterator[bytes] = iter(chunks)

    def bytes(self, length: int) -> bytes:
        chunk = next(self._chunks)
        assert len(chunk) == length
        return chunk
