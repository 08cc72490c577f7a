"""Runs that a violation takes to be refuted, against the information limit log(1/alpha)/growth and known figures.

Each figure is a median over seeds (relative standard error about 0.7/sqrt(seeds)), so it is compared with room for
that; being seeded, a test here passes always or never. `automatic` is what an earlier prototype took, `limit` what no
test of the level can beat on average; a test that took less than half the limit would be no test at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from audits.numeraire import numeraire
from audits.sequential import SequentialTest
from tests.support.samplers import (
    Draw,
    Laws,
    draw_from,
    pairs_to_refute,
    randomized_response,
    threshold_release,
    truncated_geometric,
)

ALPHA = 0.05


def median_pairs(
    sampler: Callable[[np.random.Generator], Draw],
    *,
    epsilon: float,
    delta: float = 0.0,
    limit: float,
    seeds: int,
    growth: float,
) -> float:
    """Median pairs of runs to refute, lives cut at 12 times the limit."""
    return float(
        np.median(
            [
                pairs_to_refute(
                    SequentialTest(epsilon, delta, alpha=ALPHA), sampler(child), int(12 * limit) + 60, growth=growth
                )
                for child in np.random.default_rng(31).spawn(seeds)
            ]
        )
    )


def limit_of(laws: Laws, epsilon: float, delta: float = 0.0) -> float:
    return -math.log(ALPHA) / float(numeraire(*laws, epsilon=epsilon, delta=delta).growth)


def test_limits_are_the_published_ones() -> None:
    threshold, delta = threshold_release()
    assert limit_of(threshold, 1.0, delta) == pytest.approx(1253.0, rel=1e-3)
    assert limit_of(truncated_geometric(2), 0.1) == pytest.approx(38_010.0, rel=1e-3)


@pytest.mark.parametrize(("true", "automatic"), [(4.0, 13.0), (2.0, 40.0), (1.5, 123.0)])
def test_randomized_response(true: float, automatic: float) -> None:
    laws = randomized_response(true)
    limit = limit_of(laws, 1.0)
    found = median_pairs(lambda rng: draw_from(laws, rng), epsilon=1.0, limit=limit, seeds=25, growth=1 / 16)
    assert 0.5 * limit <= found <= 1.25 * automatic


def test_a_histogram_with_noise_of_a_hundredth() -> None:
    """Hist2: 5 counts with Laplace(epsilon) for Laplace(1/epsilon), epsilon = .1: true epsilon 10 (automatic: 13)."""

    def sampler(rng: np.random.Generator) -> Draw:
        shift = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
        return lambda n: (1.0 + rng.laplace(0.0, 0.1, (n, 5)), 1.0 + shift + rng.laplace(0.0, 0.1, (n, 5)))

    found = median_pairs(sampler, epsilon=0.1, limit=2.4, seeds=25, growth=1 / 16)
    assert 1.2 <= found <= 13.0


def svt_without_query_noise(rng: np.random.Generator) -> Draw:
    """SVT5: 10 queries, all 1 against one 2 and nine 0, threshold 1 + Laplace(20), no query noise (automatic: 298)."""

    def answers(queries: list[float], size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(queries) >= 1.0 + rng.laplace(0.0, 20.0, (size, 1))

    return lambda n: (answers([1.0] * 10, n), answers([2.0] + [0.0] * 9, n))


def test_answers_without_noise() -> None:
    found = median_pairs(svt_without_query_noise, epsilon=0.1, limit=93.7, seeds=11, growth=1 / 8)
    assert 47.0 <= found <= 1.35 * 298.0


@pytest.mark.slow
@pytest.mark.parametrize(("true", "most"), [(1.2, 660.0), (1.1, 2800.0)])
def test_small_violations_of_randomized_response(true: float, most: float) -> None:
    laws = randomized_response(true)
    limit = limit_of(laws, 1.0)
    found = median_pairs(lambda rng: draw_from(laws, rng), epsilon=1.0, limit=limit, seeds=60, growth=1 / 25)
    assert 0.5 * limit <= found <= most


@pytest.mark.slow
def test_truncated_geometric_as_often_coded() -> None:
    """True epsilon .1178, claimed .1."""
    laws = truncated_geometric(0)
    limit = limit_of(laws, 0.1)
    found = median_pairs(lambda rng: draw_from(laws, rng), epsilon=0.1, limit=limit, seeds=30, growth=1 / 16)
    assert 0.5 * limit <= found <= 2.4 * limit


@pytest.mark.slow
def test_threshold_release() -> None:
    """True delta .01339, claimed .00493 (a known event, bet adaptively, takes 2402)."""
    laws, delta = threshold_release()
    limit = limit_of(laws, 1.0, delta)
    found = median_pairs(
        lambda rng: draw_from(laws, rng), epsilon=1.0, delta=delta, limit=limit, seeds=20, growth=1 / 16
    )
    assert 0.5 * limit <= found <= 2.4 * limit


@pytest.mark.slow
def test_laplace_noise_a_quarter_too_small() -> None:
    """Laplace(1) claimed .8: limit 523, automatic 1231."""

    def sampler(rng: np.random.Generator) -> Draw:
        return lambda n: (rng.laplace(0.0, 1.0, n), rng.laplace(1.0, 1.0, n))

    found = median_pairs(sampler, epsilon=0.8, limit=523.0, seeds=30, growth=1 / 16)
    assert 260.0 <= found <= 1231.0
