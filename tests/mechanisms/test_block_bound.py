"""Block bounds: exact distributions on small populations, simulation on large ones, and the published constants."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms import (
    BasisBound,
    GrowthBound,
    hypergeometric_at_most,
    published_block,
    smallest_block,
    vc_growth,
)


def test_hypergeometric_tail_is_a_count_of_subsets() -> None:
    for population, block, marked in itertools.product(range(7), repeat=3):
        if max(block, marked) > population:
            continue
        drawn = Counter(
            sum(index < marked for index in subset) for subset in itertools.combinations(range(population), block)
        )
        for most in range(-1, 8):
            expected = Fraction(sum(drawn[k] for k in range(most + 1)), drawn.total())
            assert hypergeometric_at_most(population, block, marked, most) == expected


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_basis_bound_is_attained(dimension: int) -> None:
    """Rules on distinct numbers: the maximum (one record decides) and the smallest enclosing interval (two do)."""
    population = 9
    for block in range(1, population + 1):
        outside: Counter[int] = Counter()
        for subset in itertools.combinations(range(population), block):
            lowest = subset[0] if dimension == 2 else 0
            outside[sum(not lowest <= x <= subset[-1] for x in range(population))] += 1
        for errors in range(population):
            tail = Fraction(sum(n for v, n in outside.items() if v > errors), outside.total())
            bound = BasisBound(dimension).failure(population, block, errors)
            assert tail <= bound
            if block >= dimension:
                assert tail == bound


def test_the_growth_bound_holds_for_every_consistent_threshold() -> None:
    """All thresholds at once, with repeated points: the worst consistent one, over every block of every size."""
    points = (0, 1, 1, 2, 3, 4, 4, 4, 5)
    concepts = [tuple(int(x >= t) for x in points) for t in range(7)]
    for truth, block in itertools.product(concepts, (1, 3, 5, 8)):
        worst: Counter[int] = Counter()
        for subset in itertools.combinations(range(len(points)), block):
            consistent = [c for c in concepts if all(c[i] == truth[i] for i in subset)]
            worst[max(sum(a != b for a, b in zip(c, truth, strict=True)) for c in consistent)] += 1
        for errors in range(len(points)):
            tail = Fraction(sum(n for v, n in worst.items() if v > errors), worst.total())
            assert tail <= GrowthBound(lambda m: m + 1).failure(len(points), block, errors)


def test_the_bounds_against_a_simulation() -> None:
    """The widest-margin threshold of a random block (two records decide), 6000 blocks of 60 out of 1200 records.

    The Clopper-Pearson lower bound at 1e-6 of each tail must stay below the bound; the bound for one dimension less, a
    wrong one, must be exceeded.
    """
    population, block, cut = 1200, 60, 500
    rng = np.random.default_rng(17)
    blocks = rng.random((6000, population)).argpartition(block, axis=1)[:, :block]
    left = np.where(blocks < cut, blocks, -1).max(axis=1)
    right = np.where(blocks >= cut, blocks, population).min(axis=1)
    violated = right - left - 1
    refuted = 0
    for errors in (10, 40, 80, 120):
        hits = int((violated > errors).sum())
        lowest = stats.beta.ppf(1e-6, hits, len(violated) - hits + 1) if hits else 0.0
        assert lowest <= float(BasisBound(2).failure(population, block, errors))
        refuted += bool(lowest > float(BasisBound(1).failure(population, block, errors)))
    assert refuted >= 3


def test_the_smallest_block_is_where_the_bound_starts_to_hold() -> None:
    for bound in (BasisBound(1), BasisBound(3), GrowthBound(vc_growth(2)), GrowthBound(lambda m: m + 1)):
        for blocks, rho, beta in ((2, 0.1, 0.2), (7, 0.05, 0.01), (40, 0.3, 0.05)):
            size = smallest_block(bound, blocks=blocks, rho=rho, beta=beta)
            failing = [
                blocks * bound.failure(blocks * b, b, math.floor(Fraction(rho) * blocks * b)) for b in (size - 1, size)
            ]
            assert failing[1] <= beta < failing[0]


def test_blocks_are_shorter_than_published() -> None:
    """Section C of the specification at rho = 0.005, beta_net / t = 1.25e-4: about a sixteenth to a twenty-third."""
    for dimension, figure, published in ((2, 2281, 36302), (3, 2705, 54453), (4, 3091, 72604)):
        ours = smallest_block(BasisBound(dimension), blocks=40, rho=0.005, beta=0.005)
        uniform = smallest_block(GrowthBound(vc_growth(dimension)), blocks=40, rho=0.005, beta=0.005)
        assert published_block(dimension, rho=0.005, beta=0.005 / 40) == published
        assert 0.99 * figure <= ours <= figure
        assert ours < uniform < published / 5


def test_edges_and_bad_input() -> None:
    assert BasisBound(3).failure(10, 2, 0) == 1
    assert BasisBound(3).failure(10, 10, 0) == 0
    assert BasisBound(3).failure(10, 4, 8) == 0
    assert GrowthBound(vc_growth(1)).failure(5, 0, 0) == 1
    assert GrowthBound(vc_growth(1)).failure(5, 2, 5) == 0
    assert [vc_growth(2)(m) for m in range(5)] == [1, 2, 4, 7, 11]
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        BasisBound(0)
    with pytest.raises(ValueError, match=r"block must be in \[0, 4\]"):
        hypergeometric_at_most(4, 5, 1, 0)
    for rho, beta in ((0, 0.1), (1, 0.1), (0.1, 0), (0.1, 1)):
        with pytest.raises(ValueError, match=r"rho|beta"):
            smallest_block(BasisBound(1), blocks=2, rho=rho, beta=beta)
    with pytest.raises(ValueError, match="blocks must be at least 1"):
        smallest_block(BasisBound(1), blocks=0, rho=0.1, beta=0.1)
