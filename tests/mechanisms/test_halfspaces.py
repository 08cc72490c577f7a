"""Halfspaces against Fourier-Motzkin elimination of every labelling, in exact arithmetic."""

from __future__ import annotations

import itertools
import random
import resource
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from mechanisms import (
    CarrierRelease,
    NotRealizableError,
    Thresholds,
    arrangement,
    best_agreement,
    check_realizable,
    halfspaces,
    label_boost,
)
from mechanisms.halfspaces import Halfspaces

Row = tuple[tuple[Fraction, ...], Fraction, bool]


def is_feasible(rows: list[Row], unknowns: int) -> bool:
    """Whether ``<u, a> >= b`` (strictly where the row says so) has a solution: eliminate one unknown after another."""
    for v in range(unknowns):
        below, above = [r for r in rows if r[0][v] > 0], [r for r in rows if r[0][v] < 0]
        rows = [r for r in rows if r[0][v] == 0]
        for (u, b, s), (t, c, q) in itertools.product(below, above):
            combined = tuple(-t[v] * x + u[v] * y for x, y in zip(u, t, strict=True))
            rows.append((combined, -t[v] * b + u[v] * c, s or q))
        rows = list(dict.fromkeys(rows))
    return all(b < 0 or (b == 0 and not strict) for _, b, strict in rows)


def labelling_rows(points: Sequence[Any], labels: Sequence[int], w: int, fixed: Sequence[Any]) -> list[Row]:
    rows: list[Row] = []
    for x, label in zip(points, labels, strict=True):
        normal = tuple(map(Fraction, x[len(fixed) :]))
        offset = Fraction(w) - sum((a * c for a, c in zip(fixed, x, strict=False)), Fraction(0))
        rows.append((normal, offset, False) if label else (tuple(-c for c in normal), -offset, True))
    return rows


def brute_dichotomies(points: Sequence[Any], dimension: int, fixed: Sequence[Any]) -> set[tuple[int, ...]]:
    return {
        labels
        for w in (fixed[:1] or (-1, 1))
        for labels in itertools.product((0, 1), repeat=len(points))
        if is_feasible(labelling_rows(points, labels, w, fixed[1:]), dimension - len(fixed[1:]))
    }


def random_instance(rng: random.Random) -> tuple[int, int, tuple[Any, ...], list[Any], list[Any]]:
    """Small grids, so that points are collinear, on hyperplanes, opposite or the origin more often than not."""
    dimension, bound = rng.choice((1, 2, 2, 2, 3, 3)), rng.choice((1, 1, 2, 3))
    size = rng.randint(0, 6 if dimension < 3 else 4)
    points = [tuple(rng.randint(-bound, bound) for _ in range(dimension)) for _ in range(size)]
    values = [rng.choice((-1, 1)), *(Fraction(rng.randint(-6, 6), rng.choice((1, 1, 2, 3, 4))) for _ in range(3))]
    fixed = tuple(values[: rng.randint(0, dimension + 1)])
    sample = [(p, rng.randint(0, 1)) for p in points[: size // 2 + 1] for _ in range(rng.randint(1, 2))]
    return dimension, bound, fixed, sample, points[size // 2 :]


def brute_levels(traces: Any, points: list[Any], sample: list[Any], read: list[Any]) -> tuple[Counter[int], Any]:
    """Agreements of the dichotomies, and the best agreement over each dichotomy of the points `read`."""
    agreements: list[int] = []
    best: dict[tuple[int, ...], int] = {}
    for z in traces:
        labels = dict(zip(points, z, strict=True))
        agreements.append(sum(labels[x] == y for x, y in sample))
        shown = tuple(labels[x] for x in read)
        best[shown] = max(best.get(shown, 0), agreements[-1])
    return Counter(agreements), Counter(best.values())


def test_dichotomies_and_levels_on_degenerate_instances() -> None:
    rng = random.Random(41)
    thin = 0
    for _ in range(500):
        dimension, bound, fixed, sample, carrier = random_instance(rng)
        concept_class = Halfspaces(dimension, bound).prefix(fixed)
        points = list(dict.fromkeys([*(x for x, _ in sample), *carrier]))
        expected = brute_dichotomies(points, dimension, fixed)
        traces = list(concept_class.traces(points))
        assert len(traces) == len(expected)
        assert {labels for labels, _ in traces} == expected
        for labels, concept in traces:
            assert labels == tuple(concept(x) for x in points)
            assert (concept.w, *concept.a)[: len(fixed)] == fixed  # type: ignore[attr-defined]
        levels, best = concept_class.levels(sample, carrier), concept_class.best_levels(sample, carrier)
        both = brute_levels(expected, points, sample, carrier)
        for found, right in zip((levels, best), both, strict=True):
            assert dict(zip(found.scores, found.counts, strict=True)) == right
            assert found.scores == sorted(found.scores, reverse=True)
        for position, (score, count) in enumerate(zip(best.scores, best.counts, strict=True)):
            chosen = [best.pick(position, index) for index in range(count)]
            assert len({concept.labels(carrier) for concept in chosen}) == count
            assert all(sum(concept(x) == y for x, y in sample) == score for concept in chosen)
        whole = [levels.pick(level, index) for level, count in enumerate(levels.counts) for index in range(count)]
        assert len({concept.labels(points) for concept in whole}) == len(whole)
        thin += len(expected) - len(open_dichotomies(points, dimension, fixed)) if len(fixed) > 1 else 0
    assert thin > 15  # faces that are no cells have been met


def open_dichotomies(points: list[Any], dimension: int, fixed: tuple[Any, ...]) -> set[tuple[int, ...]]:
    """Those realised with no point on the boundary."""
    return {
        labels
        for labels in itertools.product((0, 1), repeat=len(points))
        if is_feasible(
            [(u, b, True) for u, b, _ in labelling_rows(points, labels, fixed[0], fixed[1:])],
            dimension - len(fixed[1:]),
        )
    }


def test_lines_of_both_orientations_and_concurrent_ones() -> None:
    """Arrangements where sets of constraints hold on an edge or at a vertex only, which samples rarely have."""
    rng = random.Random(44)
    directions = [u for u in itertools.product((-1, 0, 1, 2), repeat=2) if any(u)]
    thin = 0
    for _ in range(250):
        rows = list({(rng.choice(directions), rng.choice((-1, 0, 0, 1))) for _ in range(rng.randint(1, 5))})
        size = len(rows)
        gains = np.array([rng.randint(-2, 2) for _ in rows])
        marks = 1 << np.arange(size)
        constraints = arrangement.Constraints(
            np.array([u for u, _ in rows]), np.array([b for _, b in rows]), gains, marks
        )
        expected: dict[bool, set[int]] = {}
        for open_only in (False, True):
            expected[open_only] = {
                sum(1 << j for j, holds in enumerate(held) if holds)
                for held in itertools.product((0, 1), repeat=size)
                if is_feasible(
                    [
                        (tuple(Fraction(c if h else -c) for c in u), Fraction(b if h else -b), open_only or not h)
                        for (u, b), h in zip(rows, held, strict=True)
                    ],
                    2,
                )
            }
            found = arrangement.faces(constraints, open_only=open_only)
            assert sorted(found.marks.tolist()) == sorted(expected[open_only])
            assert arrangement.count_faces(constraints, open_only=open_only) == len(found.marks)
            for face, mark in enumerate(found.marks.tolist()):
                held_sum = sum(int(gain) for j, gain in enumerate(gains) if mark >> j & 1)
                assert found.sums[face] == held_sum
                a = found.witness(face)
                holding = [u[0] * a[0] + u[1] * a[1] >= b for u, b in rows]
                assert mark == sum(1 << j for j, holds in enumerate(holding) if holds)
        thin += len(expected[False] - expected[True])
    assert thin > 30


@pytest.mark.slow
def test_agreement_with_linear_programming() -> None:
    """The largest strict margin by scipy's HiGHS, on instances of every kind."""
    rng = random.Random(42)
    for _ in range(300):
        dimension, bound, fixed, sample, _ = random_instance(rng)
        points = list(dict.fromkeys(x for x, _ in sample))
        free = dimension - max(0, len(fixed) - 1)
        expected = set()
        for w, labels in itertools.product(fixed[:1] or (-1, 1), itertools.product((0, 1), repeat=len(points))):
            rows = labelling_rows(points, labels, w, fixed[1:])
            # -<u, a> + margin <= -b for strict rows; the margin is at most 1.
            left = [[*(-float(c) for c in u), float(strict)] for u, _, strict in rows]
            solved = linprog(
                [0.0] * free + [-1.0],
                A_ub=np.array(left).reshape(len(rows), free + 1),
                b_ub=np.array([-float(b) for _, b, _ in rows]),
                bounds=[(None, None)] * free + [(0, 1)],
            )
            if solved.status == 0 and -solved.fun > 1e-6:
                expected.add(labels)
        assert {labels for labels, _ in Halfspaces(dimension, bound).prefix(fixed).traces(points)} == expected


def test_cells_of_a_grid_by_eulers_formula() -> None:
    """All points of a grid at once: cells = 1 + lines + the sum over vertices of (lines through it - 1)."""
    for w, bound in itertools.product((-1, 1), (2, 4)):
        points = list(itertools.product(range(-bound, bound + 1), repeat=2))
        meets: Counter[Any] = Counter()
        for x, y in itertools.combinations([p for p in points if any(p)], 2):
            if det := x[0] * y[1] - x[1] * y[0]:
                meets[Fraction(w * (y[1] - x[1]), det), Fraction(w * (x[0] - y[0]), det)] += 1
        through = [next(q for q in range(2, 99) if q * (q - 1) == 2 * pairs) for pairs in meets.values()]
        levels = Halfspaces(2, bound).prefix((w,)).levels((), points)
        assert levels.counts == [len(points) + sum(q - 1 for q in through)]


def test_counts_of_threshold_functions() -> None:
    """Of one to three bits: 4, 14, 104 (OEIS A000609), wherever the cube lies; of n x n grids: A114146."""
    for dimension, count in ((1, 4), (2, 14), (3, 104)):
        for low, high in ((0, 1), (-1, 1), (2, 3)):
            cube = list(itertools.product((low, high), repeat=dimension))
            assert sum(Halfspaces(dimension, 3).levels((), cube).counts) == count
    for size, count in ((2, 14), (3, 58), (4, 174), (5, 402)):
        for start in (-2, 0):
            square = list(itertools.product(range(start, start + size), repeat=2))
            assert sum(Halfspaces(2, 4).levels((), square).counts) == count


def test_one_dimension_is_two_directions_of_thresholds() -> None:
    points = [(x,) for x in (-5, -2, -2, 0, 1, 4)]
    rising = {z for z, _ in Thresholds(-6, 6).traces([x for (x,) in points])}
    either = rising | {tuple(1 - y for y in z) for z in rising}
    assert {z for z, _ in Halfspaces(1, 6).traces(points)} == either
    right = {z for z in either if not z[3]}
    assert {z for z, _ in Halfspaces(1, 6).prefix((1,)).traces(points)} == right


def test_huge_numbers_stay_exact() -> None:
    """Offsets of hundreds of digits: the same dichotomies as for the same order of small critical values."""
    tiny = Fraction(1, 3**500)
    plane = Halfspaces(2, 4)
    points = [(1, 1), (1, 2), (2, 2), (3, -1)]
    for a in (1 + tiny, 1 - tiny):
        assert {z for z, _ in plane.prefix((1, a)).traces(points)} == brute_dichotomies(points, 2, (1, a))
    solid = Halfspaces(3, 4).prefix((1, Fraction(2**200 + 1, 2**201)))
    corners = [(1, 1, 0), (2, 1, 0), (1, 0, 1), (2, 2, 1), (0, 1, 1)]
    assert {z for z, _ in solid.traces(corners)} == brute_dichotomies(corners, 3, solid.fixed)
    far = Halfspaces(2, 2**30).prefix((-1,))
    wide = [(2**30, 1), (2**30, 2), (-(2**30), 2**30), (2**30 - 1, 2**30)]
    assert {z for z, _ in far.traces(wide)} == brute_dichotomies(wide, 2, (-1,))


def test_colliding_marks_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks of one bit collide at once; the known number of dichotomies shows it, and better keys are tried."""
    points, sample = [(1, 0), (0, 1), (-1, 2), (2, 2)], [((1, 1), 1), ((2, -1), 0)]
    right = Halfspaces(2, 2).levels(sample, points), Halfspaces(2, 2).best_levels(sample, points)
    good = halfspaces._key_sets

    def bad_first(size: int) -> Any:
        yield np.ones(size, dtype=np.int64)
        yield from good(size)

    monkeypatch.setattr(halfspaces, "_key_sets", bad_first)
    again = Halfspaces(2, 2).levels(sample, points), Halfspaces(2, 2).best_levels(sample, points)
    assert [(x.scores, x.counts) for x in again] == [(x.scores, x.counts) for x in right]


def test_ordinary_edge_cases() -> None:
    plane = Halfspaces(2, 3)
    assert [z for z, _ in plane.traces([])] == [()]
    assert sorted(z for z, _ in plane.traces([(0, 0)])) == [(0,), (1,)]
    assert [z for z, _ in plane.prefix((1,)).traces([(0, 0), (0, 0)])] == [(0, 0)]
    assert len(list(plane.traces([(1, 1), (1, 1), (1, 1)]))) == 2
    assert [z for z, _ in plane.prefix((1, 0, 0)).traces([(1, 1), (2, 3)])] == [(0, 0)]
    assert [z for z, _ in plane.prefix((1, 1, 0)).traces([(1, 3), (0, 3)])] == [(1, 0)]  # a point on the line
    assert plane.prefix(()).fixed == ()
    assert best_agreement(plane, [((1, 1), 1), ((1, 1), 0), ((2, 2), 1)]) == 2
    assert list(plane.next_values()) == [-1, 1]
    listed = Halfspaces(1, 3, coordinates=lambda fixed: [Fraction(fixed[0], 2)])
    assert list(listed.prefix((-1,)).next_values()) == [Fraction(-1, 2)]
    assert CarrierRelease(plane, [(1, 2)], 1.0).distribution(()) == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}


def test_prefixes_compose() -> None:
    space = Halfspaces(3, 2)
    assert space.prefix((1,)).prefix((Fraction(1, 2), 3)).fixed == space.prefix((1, Fraction(1, 2), 3)).fixed
    assert space.components == 4


def test_realizability() -> None:
    with pytest.raises(NotRealizableError, match="labels 3 of its 4 records"):
        check_realizable(Halfspaces(2, 1), [((0, 0), 1), ((1, 0), 0), ((0, 1), 0), ((1, 1), 1)], "sample")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("concept_class", "bound"),
    [
        (Halfspaces(2, 16).prefix((1,)), 16),
        (Halfspaces(2, 5000).prefix((-1,)), 5000),
        (Halfspaces(3, 64).prefix((1, Fraction(2**34 * 5 + 1, 2**80))), 64),
    ],
    ids=["grid", "wide grid", "dyadic prefix"],
)
def test_a_thousand_points_with_two_free_coordinates(concept_class: Halfspaces, bound: int) -> None:
    rng = np.random.default_rng(43)
    points: list[Any] = []
    while len(points) < 1000:
        drawn = rng.integers(-bound, bound + 1, (2000, concept_class.dimension)).tolist()
        points = list(dict.fromkeys(map(tuple, [*points, *drawn])))[:1000]
    sample = [(p, int(3 * p[0] - 2 * p[1] >= 1) ^ int(rng.random() < 0.1)) for p in points]
    start = time.process_time()
    boosted = label_boost(sample, (), concept_class, 1.0, rng=rng)
    assert time.process_time() - start < 10
    assert sum(y == z for (_, y), (_, z) in zip(sample, boosted.sample, strict=True)) > 600
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * 1024**2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Halfspaces(4, 2), r"dimension must be in \[1, 3\], got 4"),
        (lambda: Halfspaces(2, 0), r"bound must be in"),
        (lambda: Halfspaces(2, 2).prefix((0,)), r"values\[0\], w, must be -1 or 1, got 0"),
        (lambda: Halfspaces(2, 2).prefix((1, 0.5)), r"values\[1\] must be an integer or a Fraction, exact, got 0.5"),
        (lambda: Halfspaces(2, 2).prefix((True,)), r"values\[0\] must be an integer or a Fraction"),
        (lambda: Halfspaces(1, 2).prefix((1, 1, 1)), "at most 2 components"),
        (lambda: Halfspaces(1, 2).prefix((1, 1)).next_values(), "all 2 components are fixed"),
        (lambda: Halfspaces(1, 2).prefix((1,)).next_values(), "component 1 is a real coordinate"),
        (lambda: list(Halfspaces(2, 2).traces([(3, 0)])), r"on the grid \{-2..2\}\^2, got \(3, 0\)"),
        (lambda: list(Halfspaces(2, 2).traces([(1,)])), r"tuples of 2 integers, got \(1,\)"),
        (lambda: list(Halfspaces(2, 2).traces([(1.0, 2)])), "tuples of 2 integers"),
        (lambda: Halfspaces(2, 2).levels([((1, 1), 2)]), "labels must be 0 or 1"),
        (
            lambda: Halfspaces(3, 9).prefix((1,)).levels((), [(x, y, 1) for x in range(17) for y in range(17)][:257]),
            "grid",
        ),
        (
            lambda: Halfspaces(3, 16).prefix((1,)).levels((), [(x, y, 1) for x in range(17) for y in range(17)][:257]),
            "at most 256 planes, got 257",
        ),
        (
            lambda: arrangement.faces(
                arrangement.Constraints(*(np.ones((1, 3), int), *(np.ones(1, int),) * 3)), open_only=False
            ),
            "open_only must be true",
        ),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
