"""Halfspaces ``h(x) = 1 if <a, x> >= w`` on the integer grid {-X..X}^d, d = 1, 2, 3, with components (w, a_1, .., a_d).

w is -1 or 1 and the a_l are real, given exactly as rationals (Definition 8.1 of the paper). Scaling makes any w other
than 0 one of the two, and on a finite set of points w = 0 acts as a small negative w; so all halfspaces are there.

A prefix fixes w and some a_l; each point then is a constraint on the r components left, and a dichotomy is a face of
their arrangement (`arrangement`): O(M log M) for r = 1, O(M^2 log M) for r = 2 on M distinct points, O(M^3 log M) for
r = 3. When only w is fixed every dichotomy is realised on an open cell: if points u_j on a common boundary had ``0 =
sum m_j u_j`` for some m_j >= 0, not all zero, then ``0 = sum m_j <a, u_j> = w sum m_j``. With more components fixed
that can fail, and lower-dimensional faces are counted too.

With w free the two arrangements share some dichotomies. One that both w = 1 and w = -1 realise is realised by w = 0
in between, on an open cell of the central arrangement ``<a, x> = 0``, and each of these cells is realised by both; a
sample with the origin has none, as w alone labels the origin.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting import check_int
from mechanisms.arrangement import Constraints, Faces, count_faces, faces, integer_array
from mechanisms.concepts import ArrayLevels, Concept, Sample, split_sample

_KEY_TRIES = 64


@dataclass(frozen=True, slots=True)
class Halfspace:
    """The concept that labels x with 1 if ``<a, x> >= w``, with 0 otherwise."""

    w: int
    a: tuple[Fraction, ...]

    def __call__(self, point: Any) -> int:
        return self.labels((point,))[0]

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        scale = math.lcm(*(value.denominator for value in self.a))
        normal = [int(value * scale) for value in self.a]
        threshold = self.w * scale
        return tuple(int(sum(map(int.__mul__, normal, map(int, point))) >= threshold) for point in points)


class Halfspaces:
    """The halfspaces on the grid {-bound..bound}^dimension, as a class of ``dimension + 1`` components.

    Points are tuples of `dimension` integers. A prefix is (w, a_1, .., a_l), the a_l as integers or Fractions; every
    prefix has a completion.

    coordinates: what `next_values` answers for a_l, given the components fixed so far: a finite domain of the
    coordinate. Without it only w has values to list, since the a_l are real. It does not restrict traces, which range
    over all real completions.

    Example: with w = 1, three of the four labellings of two points on one side of the origin are realised.

    >>> line = Halfspaces(1, 8)
    >>> sorted(labels for labels, _ in line.prefix((1,)).traces([(2,), (3,)]))
    [(0, 0), (0, 1), (1, 1)]
    >>> len(list(line.traces([(2,), (3,)])))
    4

    Raises:
        TypeError, ValueError: a dimension other than 1, 2, 3, a bound below 1.
    """

    def __init__(
        self,
        dimension: int,
        bound: int,
        *,
        coordinates: Callable[[tuple[Any, ...]], Sequence[Fraction]] | None = None,
    ) -> None:
        self.dimension = check_int("dimension", dimension, lo=1, hi=3)
        self.bound = check_int("bound", bound, lo=1, hi=1 << 30)
        self.coordinates = coordinates
        self.fixed: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        fixed = f", fixed={self.fixed!r}" if self.fixed else ""
        return f"Halfspaces({self.dimension}, {self.bound}{fixed})"

    @property
    def components(self) -> int:
        return self.dimension + 1

    def prefix(self, values: Sequence[Any]) -> Halfspaces:
        left = self.components - len(self.fixed)
        if len(values) > left:
            raise ValueError(f"values must be at most {left} components, got {tuple(values)!r}")
        checked: list[Any] = []
        for position, value in enumerate(values):
            name = f"values[{position}]"
            if isinstance(value, bool) or not isinstance(value, numbers.Rational):
                raise TypeError(f"{name} must be an integer or a Fraction, exact, got {value!r}")
            if len(self.fixed) + position == 0:
                if value not in (-1, 1):
                    raise ValueError(f"{name}, w, must be -1 or 1, got {value!r}")
                checked.append(1 if value == 1 else -1)
            else:
                checked.append(Fraction(value))
        restricted = Halfspaces(self.dimension, self.bound, coordinates=self.coordinates)
        restricted.fixed = (*self.fixed, *checked)
        return restricted

    def next_values(self) -> Sequence[Any]:
        if len(self.fixed) == self.components:
            raise ValueError(f"all {self.components} components are fixed already, to {self.fixed!r}")
        if not self.fixed:
            return (-1, 1)
        if self.coordinates is None:
            raise ValueError(
                f"component {len(self.fixed)} is a real coordinate: it has values to list only for a class built with "
                "coordinates, a finite domain"
            )
        return self.coordinates(self.fixed)

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        _, _, concept, count = self._dichotomies(self._distinct(self._grid(points)), np.int64(0))
        for index in range(count):
            chosen = concept(index)
            yield chosen.labels(points), chosen

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> ArrayLevels:
        points, gains, zeros, _ = self._weighted(sample, carrier)
        sums, _, concept, _ = self._dichotomies(points, gains)
        return ArrayLevels(sums + zeros, concept)

    def best_levels(self, sample: Sample, carrier: Sequence[Any]) -> ArrayLevels:
        """The dichotomies of the carrier, grouped by the best agreement with the sample among their extensions."""
        points, gains, zeros, on_carrier = self._weighted(sample, carrier)
        expected = self._count(points[on_carrier])
        for keys in _key_sets(len(points)):
            keys[~on_carrier] = 0
            parts, starts, sums, marks = self._faces(points, gains, keys)
            # In each group of equal marks the largest sum comes first.
            order = np.lexsort((-sums, marks))
            first = np.concatenate([[True], marks[order][1:] != marks[order][:-1]])
            best = order[first]
            if len(best) == expected:
                break
        return ArrayLevels(sums[best] + zeros, lambda index: self._concept(parts, starts, int(best[index])))

    def _weighted(
        self, sample: Sample, carrier: Sequence[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int, NDArray[np.bool_]]:
        """The distinct points, records labelled 1 less those labelled 0 on each, how many are labelled 0 in all, and
        which of the points are in the carrier.
        """
        xs, ys = split_sample(sample)
        grid = self._grid([*xs, *carrier])
        points, where = np.unique(grid, axis=0, return_inverse=True)
        where = where.reshape(-1)
        gains = np.zeros(len(points), dtype=np.int64)
        np.add.at(gains, where[: len(xs)], 2 * np.array(ys, dtype=np.int64) - 1)
        on_carrier = np.zeros(len(points), dtype=np.bool_)
        on_carrier[where[len(xs) :]] = True
        return points, gains, len(ys) - sum(ys), on_carrier

    def _dichotomies(
        self, points: NDArray[np.int64], gains: NDArray[np.int64] | np.int64
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Callable[[int], Halfspace], int]:
        """Each dichotomy of distinct points once: its gain, its face, and the concept at an index."""
        gains = np.broadcast_to(gains, len(points)).astype(np.int64)
        if self.fixed and self._free < 3:
            parts, starts, sums, _ = self._faces(points, gains, np.zeros(len(points), dtype=np.int64))
            chosen = np.arange(len(sums))
        else:
            # Marks of labels find the repeats; their number is known, so a collision of marks cannot pass.
            expected = self._count(points)
            for keys in _key_sets(len(points)):
                parts, starts, sums, marks = self._faces(points, gains, keys)
                _, chosen = np.unique(marks, return_index=True)
                if len(chosen) == expected:
                    break
        return sums[chosen], chosen, lambda index: self._concept(parts, starts, int(chosen[index])), len(chosen)

    @property
    def _free(self) -> int:
        return self.components - max(1, len(self.fixed))

    def _faces(
        self, points: NDArray[np.int64], gains: NDArray[np.int64], keys: NDArray[np.int64]
    ) -> tuple[list[tuple[int, Faces]], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The faces of each w with the starts of their indices, and their sums and marks."""
        parts = [
            (w, faces(self._constraints(w, points, gains, keys), open_only=len(self.fixed) <= 1))
            for w in (self.fixed[:1] or (-1, 1))
        ]
        starts = np.cumsum([0, *(len(part.sums) for _, part in parts)])
        return (
            parts,
            starts,
            np.concatenate([part.sums for _, part in parts]),
            np.concatenate([part.marks for _, part in parts]),
        )

    def _concept(self, parts: list[tuple[int, Faces]], starts: NDArray[np.int64], face: int) -> Halfspace:
        part = int(np.searchsorted(starts, face, side="right")) - 1
        w, found = parts[part]
        return Halfspace(w, (*self.fixed[1:], *(a / self._scale for a in found.witness(face - int(starts[part])))))

    @property
    def _scale(self) -> int:
        return math.lcm(*(value.denominator for value in self.fixed[1:]))

    def _constraints(
        self, w: int, points: NDArray[np.int64], gains: NDArray[np.int64], keys: NDArray[np.int64]
    ) -> Constraints:
        """``<a, x> >= w`` as constraints on the free components, times the common denominator of the fixed ones."""
        fixed = [int(value * self._scale) for value in self.fixed[1:]]
        offsets = [w * self._scale - sum(a * x for a, x in zip(fixed, row, strict=False)) for row in points.tolist()]
        return Constraints(points[:, len(fixed) :], integer_array(offsets), gains, keys)

    def _count(self, points: NDArray[np.int64]) -> int:
        """How many dichotomies the points have, by counting alone."""
        nothing = np.zeros(len(points), dtype=np.int64)
        ws = self.fixed[:1] or (-1, 1)
        total = sum(
            count_faces(self._constraints(w, points, nothing, nothing), open_only=len(self.fixed) <= 1) for w in ws
        )
        return total - (_central_cells(points) if not self.fixed else 0)

    def _distinct(self, grid: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.unique(grid, axis=0)

    def _grid(self, points: Sequence[Any]) -> NDArray[np.int64]:
        for point in points:
            if not (
                isinstance(point, tuple)
                and len(point) == self.dimension
                and all(isinstance(x, numbers.Integral) and not isinstance(x, bool) for x in point)
            ):
                raise ValueError(f"points must be tuples of {self.dimension} integers, got {point!r}")
            if max(map(abs, point)) > self.bound:
                raise ValueError(
                    f"points must be on the grid {{-{self.bound}..{self.bound}}}^{self.dimension}, got {point!r}"
                )
        return np.array([tuple(map(int, point)) for point in points], dtype=np.int64).reshape(
            len(points), self.dimension
        )


def _key_sets(size: int) -> Iterator[NDArray[np.int64]]:
    """Keys to mark points by. Any keys lead to the same answer, or are noticed to collide: this is no randomness."""
    for attempt in range(_KEY_TRIES):
        yield np.random.default_rng(attempt).integers(1, 1 << 62, size, dtype=np.int64)
    raise RuntimeError(f"{_KEY_TRIES} sets of keys collided, which cannot happen by chance")


def _central_cells(points: NDArray[np.int64]) -> int:
    """The number of open cells of ``<a, x> = 0`` over the points, 0 if the origin is among them."""
    if len(points) == 0:
        return 1
    if not points.any(axis=1).all():
        return 0
    dimension = points.shape[1]
    directions = sorted({_primitive(row) for row in points.tolist()})
    if dimension == 1 or len(directions) == 1:
        return 2
    if dimension == 2:
        return 2 * len(directions)
    meets: dict[tuple[int, ...], int] = {}
    for i, (x1, x2, x3) in enumerate(directions):
        for y1, y2, y3 in directions[:i]:
            vertex = _primitive([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1])
            meets[vertex] = meets.get(vertex, 0) + 1
    # q lines through a vertex of the projective plane meet there in q (q - 1) / 2 pairs, and add q - 1 cells.
    return 2 + 2 * sum((1 + math.isqrt(1 + 8 * pairs)) // 2 - 1 for pairs in meets.values())


def _primitive(row: list[int]) -> tuple[int, ...]:
    divisor = math.gcd(*row) * next(1 if x > 0 else -1 for x in row if x)
    return tuple(x // divisor for x in row)
