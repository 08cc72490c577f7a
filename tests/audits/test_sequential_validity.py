"""False alarms: correct mechanisms whose claim is tight, tested with optional stopping, and controls that must fail.

A test at level 0.05 may refute a true claim in 5 % of its lives, each life with a look after every batch. Among `runs`
lives the number of false alarms is therefore at most Binomial(runs, 0.05); the thresholds below are its upper 1e-4
quantiles, so each of these tests fails by bad luck with probability below 1e-4 (and is seeded: always or never).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from audits.sequential import SequentialTest
from tests.support.samplers import (
    Draw,
    batch_sizes,
    discrete_laplace,
    draw_from,
    pairs_to_refute,
    randomized_response,
    threshold_release,
    truncated_geometric,
    uniform,
)

ALPHA = 0.05
LUCK = 1e-4

Null = tuple[float, float, Callable[[np.random.Generator], Draw]]
"""epsilon and delta that hold exactly and barely, and the sampler."""


def laplace(scale: float, width: int) -> Callable[[np.random.Generator], Draw]:
    """Vectors of Laplace noise that differ by 1 in the first coordinate; plain numbers for width 0."""

    def of(rng: np.random.Generator) -> Draw:
        shift = np.eye(max(width, 1))[0] if width else 1.0
        size = (width,) if width else ()
        return lambda n: (rng.laplace(0.0, scale, (n, *size)), rng.laplace(0.0, scale, (n, *size)) + shift)

    return of


NULLS: dict[str, Null] = {
    "randomized response": (1.0, 0.0, lambda rng: draw_from(randomized_response(1.0), rng)),
    "truncated geometric": (math.log(1.125), 0.0, lambda rng: draw_from(truncated_geometric(2), rng)),
    "discrete Laplace": (0.5, 0.0, lambda rng: draw_from(discrete_laplace(0.5), rng)),
    "uniform": (0.0, 0.0, lambda rng: draw_from(uniform(4), rng)),
    "threshold release": (
        1.0,
        math.exp(-4.0) / (1.0 + math.exp(-1.0)),
        lambda rng: draw_from(threshold_release()[0], rng),
    ),
    "Laplace": (1.0, 0.0, laplace(1.0, 0)),
    "Laplace vector": (0.5, 0.0, laplace(2.0, 3)),
}


def false_alarms(null: Null, *, runs: int, pairs: int, seed: int) -> int:
    """How many of `runs` tests, each looked at after every batch, ever refute."""
    epsilon, delta, sampler = null
    return sum(
        pairs_to_refute(SequentialTest(epsilon, delta, alpha=ALPHA), sampler(child), pairs, growth=0.15) < math.inf
        for child in np.random.default_rng(seed).spawn(runs)
    )


def test_the_nulls_are_true_and_tight() -> None:
    """The claimed pair (epsilon, delta) is the exact hockey-stick divergence of the laws, in the worse direction."""
    laws = {
        "randomized response": randomized_response(1.0),
        "truncated geometric": truncated_geometric(2),
        "discrete Laplace": discrete_laplace(0.5),
        "uniform": uniform(4),
        "threshold release": threshold_release()[0],
    }
    for name, (p, q) in laws.items():
        epsilon, delta, _ = NULLS[name]
        found = max(float(np.maximum(r - math.exp(epsilon) * s, 0.0).sum()) for r, s in ((p, q), (q, p)))
        assert found == pytest.approx(delta, abs=1e-12)
        if delta == 0.0:
            smaller = math.exp(epsilon) - 1e-3
            assert max(np.max(p - smaller * q), np.max(q - smaller * p)) > 0.0


def test_false_alarms_stay_within_the_level() -> None:
    """84 short lives in all."""
    runs = 12
    bound = int(binom.isf(LUCK, runs * len(NULLS), ALPHA))
    assert sum(false_alarms(null, runs=runs, pairs=120, seed=20) for null in NULLS.values()) <= bound


def test_the_criterion_catches_a_test_that_peeks() -> None:
    """Control: fixed-size 5 % tests, one for each direction, looked at after every batch, must exceed the same
    bound."""
    runs, alarms = 84, 0
    for child in np.random.default_rng(21).spawn(runs):
        draw = draw_from(randomized_response(1.0), child)
        counts = np.zeros((2, 2))
        for size in batch_sizes(1000, 0.05):
            counts += [np.bincount(side, minlength=2) for side in draw(size)]
            likelier, total = np.array([counts[0, 0], counts[1, 1]]), counts.sum(axis=0)
            if np.min(binom.sf(likelier - 1, total, math.e / (1.0 + math.e))) <= ALPHA:
                alarms += 1
                break
    assert alarms > int(binom.isf(LUCK, runs, ALPHA))


def test_the_criterion_catches_a_false_claim() -> None:
    """Control: the same lives with a claim of half the truth are refuted far more often than the bound."""
    null = (0.5, 0.0, NULLS["randomized response"][2])
    assert false_alarms(null, runs=40, pairs=120, seed=22) > int(binom.isf(LUCK, 40, ALPHA))


def test_the_lower_bound_covers() -> None:
    """`epsilon_lower` exceeds the true epsilon, which is on the grid, at any time in at most 5 % of 40 lives."""
    true, runs = 1.0, 40
    wrong = 0
    for child in np.random.default_rng(23).spawn(runs):
        # The grid of this claim has the true epsilon as its first point above the claim.
        test = SequentialTest(true / 1.05, 0.0, alpha=ALPHA)
        draw = draw_from(randomized_response(true), child)
        for size in batch_sizes(300, 0.2):
            test.update(*draw(size))
        wrong += test.epsilon_lower >= true * (1.0 - 1e-12)
    assert wrong <= int(binom.isf(LUCK, runs, ALPHA))


@pytest.mark.slow
@pytest.mark.parametrize("name", NULLS)
def test_false_alarms_of_each_null_over_long_lives(name: str) -> None:
    """300 lives of up to 2000 pairs."""
    bound = int(binom.isf(LUCK, 300, ALPHA))
    assert false_alarms(NULLS[name], runs=300, pairs=2000, seed=24) <= bound
