"""Intervals against every interval of a small grid."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms import intervals, label_boost
from mechanisms.concepts import ConceptClass
from mechanisms.intervals import Interval, Intervals
from mechanisms.lb_star import lb_star
from tests.mechanisms.boxes import check_class

points = st.integers(0, 7)
samples = st.lists(st.tuples(points, st.integers(0, 1)), max_size=7)
carriers = st.lists(points, max_size=4)


@settings(max_examples=150)
@given(samples, carriers, st.integers(0, 2), points, st.integers(-1, 7), st.sampled_from((0, 2**70)))
def test_intervals(sample: Any, carrier: Any, fixed: int, a: int, length: int, offset: int) -> None:
    prefix = (a, min(7, a + length))[:fixed]
    every = [(a, b) for a in range(8) for b in range(a - 1, 8) if (a, b)[:fixed] == prefix]
    concept_class = Intervals(offset, 7 + offset).prefix([value + offset for value in prefix])
    concepts = [Interval(a + offset, b + offset) for a, b in every]
    check_class(concept_class, concepts, [(x + offset, y) for x, y in sample], [x + offset for x in carrier])


def test_counting_by_blocks_and_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(51)
    high, low = rng.integers(-30, 30, (2, 300))
    expected = Counter(int(high[j] - low[i]) for i, j in itertools.combinations_with_replacement(range(300), 2))
    for block, direct in ((512, 1), (1, 1 << 14), (7, 0)):
        monkeypatch.setattr(intervals, "_BLOCK", block)
        monkeypatch.setattr(intervals, "_DIRECT", direct)
        assert intervals._difference_counts(high, low) == expected


def test_edges() -> None:
    grid = Intervals(0, 10**40)
    assert isinstance(grid, ConceptClass)
    assert [z for z, _ in grid.traces(())] == [()]
    assert sorted(z for z, _ in grid.traces((10**39, 10**39))) == [(0, 0), (1, 1)]
    assert grid.prefix((5,)).next_values()[0] == 4
    assert grid.next_values()[-1] == 10**40
    assert [z for z, _ in grid.prefix((5, 4)).traces((4, 5))] == [(0, 0)]
    assert grid.prefix((5,)).prefix((9,)).fixed == (5, 9)


@pytest.mark.slow
def test_a_hundred_thousand_records() -> None:
    rng = np.random.default_rng(52)
    points = rng.integers(0, 10**9, 10**5).tolist()
    sample = [(x, int(3e8 <= x <= 6e8) ^ int(flip)) for x, flip in zip(points, rng.random(10**5) < 0.1, strict=True)]
    start = time.process_time()
    for boosted in (
        label_boost(sample, (), Intervals(0, 10**9), 1.0, rng=rng),
        lb_star(sample, points[:3000], Intervals(0, 10**9), 1.0, rng=rng),
    ):
        found = boosted.concept
        assert isinstance(found, Interval)
        assert abs(found.a - 3e8) < 1e6
        assert abs(found.b - 6e8) < 1e6
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Intervals(3, 2), "hi must be at least lo = 3, got 2: an empty grid"),
        (lambda: Intervals(0, 9).prefix((10,)), r"values\[0\] must be in \[0, 9\], got 10"),
        (lambda: Intervals(0, 9).prefix((5,)).prefix((3,)), r"values\[0\] must be in \[4, 9\], got 3"),
        (lambda: Intervals(0, 9).prefix((5, 6, 7)), "at most 2 components"),
        (lambda: Intervals(0, 9).prefix((5, 6)).next_values(), "all 2 components are fixed"),
        (lambda: list(Intervals(0, 9).traces((3, 10))), r"points must be in the grid 0..9, got 10"),
        (lambda: Intervals(0, 9).levels([(0.5, 1)]), "points must be integers"),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
