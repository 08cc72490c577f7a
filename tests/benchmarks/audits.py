"""Statistical audits: pairs of runs until a false claim is refuted, against the information limit, and false alarms.

The limit is ``log(1/alpha) / growth``: no test of level alpha that knows both laws needs fewer pairs on average, where
growth is that of the log-optimal bet (``audits.numeraire``), computed here from the true laws.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from audits.numeraire import numeraire
from audits.pairwise import SequentialTest
from tests.benchmarks.table import Row, Section

_ALPHA = 0.05
_SEEDS = 11
_NULL_RUNS = 1000
_NULL_PAIRS = 500

Sampler = Callable[[np.random.Generator, int], npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Case:
    """Two laws on finitely many cells (for the limit), how to draw from them, and a claim that they break.

    prototype: median pairs of the throw-away engine that set the target.
    """

    name: str
    first: npt.NDArray[np.float64]
    second: npt.NDArray[np.float64]
    draw: tuple[Sampler, Sampler]
    epsilon: float
    delta: float
    prototype: float


def _finite(name: str, first: list[float], second: list[float], epsilon: float, delta: float, prototype: float) -> Case:
    p, q = np.array(first), np.array(second)

    def sampler(law: npt.NDArray[np.float64]) -> Sampler:
        return lambda rng, size: rng.choice(len(law), size=size, p=law / law.sum())

    return Case(name, p, q, (sampler(p), sampler(q)), epsilon, delta, prototype)


def _response(truth: float, prototype: float) -> Case:
    likely = math.exp(truth) / (1 + math.exp(truth))
    name = f"randomized response {truth:g}, claimed 1"
    return _finite(name, [likely, 1 - likely], [1 - likely, likely], 1.0, 0.0, prototype)


def _laplace(name: str, shift: float, epsilon: float, prototype: float) -> Case:
    """Laplace(1) noise on 0 and on `shift`; the limit from 4000 cells."""
    edges = np.concatenate([[-np.inf], np.linspace(-12, 12 + shift, 4000), [np.inf]])

    def cdf(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)

    def sampler(centre: float) -> Sampler:
        return lambda rng, size: centre + rng.laplace(size=size)

    first, second = np.diff(cdf(edges)), np.diff(cdf(edges - shift))
    return Case(name, first, second, (sampler(0.0), sampler(shift)), epsilon, 0.0, prototype)


def _growth(case: Case) -> float:
    p, q = case.first / case.first.sum(), case.second / case.second.sum()
    return float(numeraire(p, q, epsilon=case.epsilon, delta=case.delta).growth)


def _cases() -> Iterator[Case]:
    for truth, prototype in ((1.1, 2534), (1.2, 565), (1.5, 123), (2.0, 40), (4.0, 13)):
        yield _response(truth, prototype)
    yield _laplace("Laplace of scale 1, claimed .8", 1.0, 0.8, 1231)
    yield _laplace("histogram with Laplace(eps) for Laplace(1/eps), claimed .1", 10.0, 0.1, 13)


def _pairs_to_refute(case: Case, seed: int, most: int) -> float:
    rng = np.random.default_rng(seed)
    test = SequentialTest(case.epsilon, case.delta, alpha=_ALPHA)
    pairs = 0
    while pairs < most:
        size = max(1, pairs // 16)
        test.update(case.draw[0](rng, size), case.draw[1](rng, size))
        pairs += size
        if test.refuted:
            return pairs
    return math.inf


def _power_row(case: Case) -> Row:
    limit = math.log(1 / _ALPHA) / _growth(case)
    found = [_pairs_to_refute(case, seed, int(40 * limit) + 500) for seed in range(_SEEDS)]
    median = float(np.median(found))
    return Row(
        case.name,
        f"{median:.0f} pairs (median of {_SEEDS})",
        f"{limit:.4g}",
        f"{median / limit:.2f}",
        f"under {case.prototype:.0f} pairs",
        median < case.prototype,
    )


def _false_alarms() -> Row:
    """Tight randomized response, refuted at any of the looks up to the last pair."""
    likely = math.e / (1 + math.e)
    case = _finite("", [likely, 1 - likely], [1 - likely, likely], 1.0, 0.0, 0.0)
    alarms = sum(math.isfinite(_pairs_to_refute(case, 10_000 + seed, _NULL_PAIRS)) for seed in range(_NULL_RUNS))
    share = alarms / _NULL_RUNS
    return Row(
        f"false alarms, tight randomized response, {_NULL_RUNS} runs, optional stopping at {_NULL_PAIRS} pairs",
        f"{100 * share:.1f} %",
        f"stated level {100 * _ALPHA:g} %",
        f"{share / _ALPHA:.2f}",
        "at most the level",
        share <= _ALPHA,
    )


def _throughput() -> Row:
    rng = np.random.default_rng(1)
    case = _laplace("", 1.0, 1.0, 0.0)
    batches = [(case.draw[0](rng, 1 << 17), case.draw[1](rng, 1 << 17)) for _ in range(8)]
    test = SequentialTest(1.0, 0.0, alpha=_ALPHA)
    for size in (16, 256, 4096, 1 << 16):
        test.update(case.draw[0](rng, size), case.draw[1](rng, size))
    start = time.perf_counter()
    for x, y in batches:
        test.update(x, y)
    rate = 8 * 2 * (1 << 17) / (time.perf_counter() - start)
    return Row(
        "audited scalar samples a second, continuous output",
        f"{rate:.2g}",
        "-",
        "-",
        "5e6 (a later goal)",
        rate >= 5e6,
    )


def rows() -> Iterator[Row]:
    """Measure."""
    for case in _cases():
        yield _power_row(case)
    yield _false_alarms()
    yield _throughput()


SECTION = Section(
    "Statistical audits",
    "Pairs of runs to refute a false claim at level .05, nothing known of the mechanism; the limit knows both laws.",
    rows,
)
