"""Concept classes against brute force over every concept."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import (
    ConceptClass,
    FiniteClass,
    NotRealizableError,
    Thresholds,
    best_agreement,
    check_realizable,
    is_realizable,
)
from mechanisms.concepts import Sample, split_sample

OFFSETS = (0, 2**70, -(2**90))


def brute_levels(concepts: list[Any], sample: Sample, carrier: list[Any]) -> Counter[int]:
    """Agreement of each dichotomy of the distinct points, by evaluating every concept."""
    points = sorted({*(x for x, _ in sample), *carrier}, key=repr)
    dichotomies = {tuple(concept(point) for point in points) for concept in concepts}
    return Counter(
        sum(dict(zip(points, dichotomy, strict=True))[x] == y for x, y in sample) for dichotomy in dichotomies
    )


def check_against(concept_class: ConceptClass, concepts: list[Any], sample: Sample, carrier: list[Any]) -> None:
    """Traces, levels and every representative, against the list of concepts."""
    traces = list(concept_class.traces(carrier))
    assert {labels for labels, _ in traces} == {tuple(c(x) for x in carrier) for c in concepts}
    assert len(traces) == len({labels for labels, _ in traces})
    for labels, representative in traces:
        assert representative.labels(carrier) == labels == tuple(representative(x) for x in carrier)
    levels = concept_class.levels(sample, carrier)
    assert dict(zip(levels.scores, levels.counts, strict=True)) == brute_levels(concepts, sample, carrier)
    assert list(levels.scores) == sorted(levels.scores, reverse=True)
    points = [*(x for x, _ in sample), *carrier]
    for position, (score, count) in enumerate(zip(levels.scores, levels.counts, strict=True)):
        chosen = [levels.pick(position, index) for index in range(count)]
        assert len({concept.labels(points) for concept in chosen}) == count
        assert all(sum(concept(x) == y for x, y in sample) == score for concept in chosen)
        assert all(any(all(c(x) == concept(x) for x in points) for c in concepts) for concept in chosen)
    assert best_agreement(concept_class, sample) == max(sum(c(x) == y for x, y in sample) for c in concepts)
    assert is_realizable(concept_class, sample) == any(all(c(x) == y for x, y in sample) for c in concepts)


points = st.integers(-4, 8)
records = st.tuples(points, st.integers(0, 1))


@given(
    st.integers(-3, 4),
    st.integers(0, 6),
    st.lists(records, max_size=6),
    st.lists(points, max_size=4),
    st.sampled_from(OFFSETS),
)
def test_thresholds(lo: int, size: int, sample: list[tuple[int, int]], carrier: list[int], offset: int) -> None:
    shifted = [(x + offset, y) for x, y in sample]
    concepts = [lambda x, t=t: int(x >= t) for t in range(lo + offset, lo + offset + size + 1)]
    check_against(Thresholds(lo + offset, lo + offset + size), concepts, shifted, [x + offset for x in carrier])


@given(
    st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=6),
    st.lists(st.integers(0, 3), max_size=4),
)
def test_finite_classes(rows: list[tuple[int, ...]], sample: list[tuple[int, int]], carrier: list[int]) -> None:
    check_against(FiniteClass(range(4), rows), [row.__getitem__ for row in rows], sample, carrier)


def test_finite_class_forms_agree() -> None:
    rows = [(0, 1, 1), (1, 0, 1)]
    maps = [dict(zip("xyz", row, strict=True)) for row in rows]
    for concepts in (rows, maps, [m.__getitem__ for m in maps], np.array(rows)):
        concept_class = FiniteClass("xyz", concepts)  # type: ignore[arg-type]
        assert [labels for labels, _ in concept_class.traces("zyx")] == [(1, 1, 0), (1, 0, 1)]
        assert concept_class.concept(1).components == (1,)


def test_finite_prefixes_restrict_and_complete() -> None:
    components = list(itertools.product((0, 1), "ab", (0, 1)))
    rows = [[i >> b & 1 for b in range(3)] for i in range(8)]
    full = FiniteClass(range(3), rows, components)
    assert (full.components, full.fixed, list(full.next_values())) == (3, (), [0, 1])
    for depth in range(4):
        for prefix in itertools.product(*[(0, 1), "ab", (0, 1)][:depth]):
            kept = [row for row, c in zip(rows, components, strict=True) if c[:depth] == prefix]
            restricted = full.prefix(prefix)
            assert restricted.fixed == prefix
            assert {labels for labels, _ in restricted.traces(range(3))} == {tuple(row) for row in kept}
            stepwise: FiniteClass = full
            for value in prefix:
                assert value in stepwise.next_values()
                stepwise = stepwise.prefix((value,))
            assert len(stepwise) == len(restricted) == len(kept)
    sparse = FiniteClass([0], [[0], [1]], [(0, 0), (1, 1)])
    assert list(sparse.prefix((1,)).next_values()) == [1]


@given(st.integers(-5, 5), st.integers(0, 20), st.sampled_from([(2, 2, 2, 2, 2), (3, 7), (21,), (5, 1, 5)]))
def test_threshold_digits_enumerate_the_range_once(lo: int, size: int, radices: tuple[int, ...]) -> None:
    full = Thresholds(lo, lo + size, radices=radices)

    def leaves(concept_class: Thresholds) -> list[int]:
        if len(concept_class.fixed) == concept_class.components:
            assert concept_class.lo == concept_class.hi
            return [concept_class.lo]
        return [t for value in concept_class.next_values() for t in leaves(concept_class.prefix((value,)))]

    assert leaves(full) == list(range(lo, lo + size + 1))
    assert full.prefix(()).fixed == ()


def test_astronomical_thresholds_by_sorting() -> None:
    grid = Thresholds(0, 10**1000, radices=(10**500, 10**501))
    sample = [(10**700, 0), (10**700 + 1, 1), (10**999, 1)]
    levels = grid.levels(sample, (5, 10**1001))
    assert list(zip(levels.scores, levels.counts, strict=True)) == [(3, 1), (2, 3), (1, 1)]
    assert levels.pick(0, 0).labels([10**700, 10**700 + 1]) == (0, 1)
    assert grid.prefix((10**199,)).next_values()[:2] == range(2)
    assert grid.next_values()[-1] == 10**499


def test_numpy_points_of_every_width() -> None:
    grid = Thresholds(0, 2**64)
    for dtype in (np.int32, np.uint8, np.uint64):
        labels = {z for z, _ in grid.traces(np.array([3, 5, 200], dtype=dtype))}  # type: ignore[arg-type]
        assert labels == {(1, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)}


def test_one_sided_points_are_constant() -> None:
    assert [z for z, _ in Thresholds(3, 5).traces((2, 5, -9, 77))] == [(0, 1, 0, 1)]


def test_realizability_is_refused_with_figures() -> None:
    line = Thresholds(0, 4)
    check_realizable(line, [(1, 0), (2, 1), (2, 1)], "sample")
    with pytest.raises(NotRealizableError, match=r"sample must be realizable .* labels 2 of its 3 records"):
        check_realizable(line, [(1, 1), (2, 0), (3, 1)], "sample")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Thresholds(3, 2), "hi must be at least lo = 3, got 2: an empty class"),
        (lambda: Thresholds(0, 7, radices=(2, 3)), "product of at least hi - lo \\+ 1 = 8"),
        (lambda: Thresholds(0, 7, radices=()), "product of at least"),
        (lambda: Thresholds(0, 7, radices=(8, 0)), r"radices\[1\] must be at least 1"),
        (lambda: Thresholds(0.0, 7), "lo must be an integer"),  # type: ignore[arg-type]
        (lambda: Thresholds(0, 5, radices=(2, 2, 2)).prefix((1, 1)), r"leave a completion .* \(1, 1\)"),
        (lambda: Thresholds(0, 5).prefix((6,)), r"values\[0\] must be in \[0, 5\], got 6"),
        (lambda: Thresholds(0, 5).prefix((1, 1)), "at most 1 components"),
        (lambda: Thresholds(0, 5).prefix((1,)).next_values(), "all 1 components are fixed"),
        (lambda: list(Thresholds(0, 5).traces((1.5,))), "points must be integers, .* got 1.5"),
        (lambda: list(Thresholds(0, 5).traces((True,))), "points must be integers"),
        (lambda: FiniteClass([1], []), "an empty class"),
        (lambda: FiniteClass([], [()]), "domain must hold distinct points"),
        (lambda: FiniteClass([1, 1], [(0, 0)]), "domain must hold distinct points"),
        (lambda: FiniteClass([[1]], [(0,)]), "points must be hashable"),
        (lambda: FiniteClass([1, 2], [(0, 2)]), r"labels of concepts\[0\] must be 0 or 1, got 2"),
        (lambda: FiniteClass([1, 2], [(0,)]), r"concepts\[0\] must have 2 labels, got 1"),
        (lambda: FiniteClass([1, 2], [{1: 0}]), r"concepts\[0\] must label every point .* 2 is missing"),
        (lambda: FiniteClass([1], [(0,), (1,)], [(0,)]), "one tuple for each of the 2 concepts"),
        (lambda: FiniteClass([1], [(0,), (1,)], [(0,), (0,)]), r"must differ between concepts, got \(0,\) twice"),
        (lambda: FiniteClass([1], [(0,), (1,)], [(0,), (0, 1)]), "tuples of one length"),
        (lambda: FiniteClass([1], [(0,)], [()]), "tuples of one length"),
        (lambda: FiniteClass([1], [(0,)]).prefix((3,)), r"leave a completion in the class, got the prefix \(3,\)"),
        (lambda: FiniteClass([1], [(0,)]).prefix((0, 0)), "at most 1 components"),
        (lambda: FiniteClass([1], [(0,)]).prefix((0,)).next_values(), "all 1 components are fixed"),
        (lambda: FiniteClass([1], [(0,)]).levels([(2, 0)]), "in the domain of the class, got 2"),
        (lambda: FiniteClass([1], [(0,)]).concept(0)(2), "in the domain of the class, got 2"),
        (lambda: split_sample([(1, 2)]), "labels must be 0 or 1, got 2"),
        (lambda: split_sample([(1, None)]), "labels must be 0 or 1, got None"),  # type: ignore[list-item]
        (lambda: split_sample([(1, 0), (1, 0, 0)]), r"pairs \(point, label\), got \(1, 0, 0\)"),  # type: ignore[list-item]
        (lambda: split_sample([7]), r"pairs \(point, label\), got 7"),  # type: ignore[list-item]
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
