"""Rectangles against every rectangle of a small grid."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from mechanisms.concepts import ConceptClass
from mechanisms.rectangles import Rectangle, Rectangles
from tests.mechanisms.boxes import check_class


@pytest.mark.parametrize(("dimension", "hi", "rounds"), [(1, 5, 60), (2, 3, 120), (3, 1, 60)])
def test_rectangles(dimension: int, hi: int, rounds: int) -> None:
    rng = random.Random(61)
    sides = [(a, b) for a in range(hi + 1) for b in range(a - 1, hi + 1)]
    every = list(itertools.product(sides, repeat=dimension))
    for _ in range(rounds):
        fixed = tuple(itertools.chain(*rng.choice(every)))[: rng.randint(0, 2 * dimension)]
        drawn = [tuple(rng.randint(0, hi) for _ in range(dimension)) for _ in range(rng.randint(0, 8))]
        sample = [(point, rng.randint(0, 1)) for point in drawn[:5]]
        concepts = [Rectangle(s) for s in every if tuple(itertools.chain(*s))[: len(fixed)] == fixed]
        check_class(Rectangles(dimension, 0, hi).prefix(fixed), concepts, sample, drawn[4:])


def test_two_points_in_a_row_have_four_dichotomies() -> None:
    """Where an inclusion-exclusion over slabs counts -1 sets that span both columns."""
    assert Rectangles(2, 0, 1).levels((), ((0, 0), (1, 0))).counts == [4]


def test_points_in_general_position() -> None:
    """Points on a rising diagonal: the rectangles cut out runs, as intervals do, n (n + 1) / 2 + 1 of them."""
    for dimension in (1, 2, 3):
        diagonal = [(x,) * dimension for x in range(12)]
        assert sum(Rectangles(dimension, 0, 11).levels((), diagonal).counts) == 79


def test_edges() -> None:
    square = Rectangles(2, 0, 9)
    assert isinstance(square, ConceptClass)
    assert [z for z, _ in square.traces(())] == [()]
    assert len(list(square.traces([(1, 2), (1, 2)]))) == 2
    assert square.next_values() == range(10)
    assert square.prefix((3,)).next_values() == range(2, 10)
    assert square.prefix((3, 4, 5)).prefix((6,)).fixed == (3, 4, 5, 6)
    huge = Rectangles(2, 0, 2**80)
    assert len(list(huge.traces([(2**79, 1), (2**79 + 1, 2)]))) == 4


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Rectangles(4, 0, 1), r"dimension must be in \[1, 3\]"),
        (lambda: Rectangles(2, 1, 0), "an empty grid"),
        (lambda: Rectangles(2, 0, 5).prefix((3, 1)), r"values\[1\] must be in \[2, 5\], got 1"),
        (lambda: Rectangles(1, 0, 5).prefix((3, 3, 3)), "at most 2 components"),
        (lambda: Rectangles(1, 0, 5).prefix((3, 3)).next_values(), "all 2 components are fixed"),
        (lambda: list(Rectangles(2, 0, 5).traces([(1, 6)])), r"in the grid 0..5 in each dimension, got \(1, 6\)"),
        (lambda: list(Rectangles(2, 0, 5).traces([1])), "tuples of 2 integers, got 1"),
        (lambda: list(Rectangles(2, 0, 5).traces([(1, 0.5)])), "points must be integers"),
        (
            lambda: Rectangles(3, 0, 99).levels((), [(x, (7 * x) % 100, (13 * x) % 100) for x in range(100)]),
            "100 distinct points leave up to 128787625000 rectangles to list",
        ),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
