"""Axis-aligned rectangles on an integer grid in up to three dimensions: products of intervals.

A non-empty set that a rectangle cuts out of some points has one tight rectangle, whose every free side touches a
point of the set; so the dichotomies are the tight rectangles and the empty set. They are found one dimension after the
other: for each extent in the first dimension the points in it, of which later some on either side must be kept; in the
last dimension the extents that keep some are counted with prefix sums, all at once.

(The inclusion-exclusion ``T(i, j) - T(i+1, j) - T(i, j-1) + T(i+1, j-1)`` over the sets T(i, j) that intervals of the
second dimension cut out of columns i..j does not count the sets of extent (i, j): a set without points in column i
need not be cut out of columns i..j. It gives -1 for the points (0, 0) and (1, 0).)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting import check_int
from mechanisms.concepts import ArrayLevels, Concept, Sample, split_sample
from mechanisms.thresholds import integer_points

MAX_RECTANGLES = 1 << 26


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The concept that labels x with 1 if ``a_l <= x_l <= b_l`` in every dimension; sides: the (a_l, b_l)."""

    sides: tuple[tuple[int, int], ...]

    def __call__(self, point: Any) -> int:
        return int(all(a <= x <= b for (a, b), x in zip(self.sides, point, strict=True)))

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        return tuple(self(point) for point in points)


@dataclass(frozen=True)
class _Block:
    """Tight rectangles that differ only in the last dimension: those from row ``lows[i]`` to row ``highs[i]``.

    sums: the gains of the points inside. sides: the other dimensions. rows: the coordinates in the last one.
    """

    sums: NDArray[np.int64]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    sides: tuple[tuple[int, int], ...]
    rows: list[int]

    def rectangle(self, index: int) -> Rectangle:
        return Rectangle((*self.sides, (self.rows[self.lows[index]], self.rows[self.highs[index]])))


class Rectangles:
    """The rectangles within lo..hi in each of `dimension` dimensions, and the empty one.

    Points are tuples of `dimension` integers in lo..hi. Components: a_1, b_1, a_2, b_2, .., with a_l in lo..hi and b_l
    in a_l-1..hi; ``b_l = a_l - 1`` makes the rectangle empty.

    Listing takes time in proportion to the dichotomies, O(M^(2 dimension)) in the worst case for M distinct points.

    Example: three points on a diagonal; no rectangle has the outer two without the one between.

    >>> square = Rectangles(2, 0, 9)
    >>> len(list(square.traces([(1, 1), (2, 2), (3, 3)])))
    7

    Raises:
        TypeError, ValueError: a dimension other than 1, 2, 3, an empty grid; more than 2**26 candidates to look at.
    """

    def __init__(self, dimension: int, lo: int, hi: int) -> None:
        self.dimension = check_int("dimension", dimension, lo=1, hi=3)
        self.lo = check_int("lo", lo)
        self.hi = check_int("hi", hi)
        if self.hi < self.lo:
            raise ValueError(f"hi must be at least lo = {lo}, got {hi}: an empty grid")
        self.fixed: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        fixed = f", fixed={self.fixed!r}" if self.fixed else ""
        return f"Rectangles({self.dimension}, {self.lo}, {self.hi}{fixed})"

    @property
    def components(self) -> int:
        return 2 * self.dimension

    def prefix(self, values: Sequence[Any]) -> Rectangles:
        fixed = (*self.fixed, *values)
        if len(fixed) > self.components:
            raise ValueError(
                f"values must be at most {self.components - len(self.fixed)} components, got {tuple(values)!r}"
            )
        for position, value in enumerate(fixed):
            least = fixed[position - 1] - 1 if position % 2 else self.lo
            check_int(f"values[{position - len(self.fixed)}]", value, lo=least, hi=self.hi)
        restricted = Rectangles(self.dimension, self.lo, self.hi)
        restricted.fixed = tuple(map(int, fixed))
        return restricted

    def next_values(self) -> Sequence[Any]:
        if len(self.fixed) == self.components:
            raise ValueError(f"all {self.components} components are fixed already, to {self.fixed!r}")
        return range(self.fixed[-1] - 1 if len(self.fixed) % 2 else self.lo, self.hi + 1)

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        distinct = list(dict.fromkeys(self._grid(points)))
        for concept in self._all(distinct, np.zeros(len(distinct), dtype=np.int64))[1]:
            yield concept.labels(points), concept

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> ArrayLevels:
        points, labels = split_sample(sample)
        xs, ts = self._grid(points), self._grid(carrier)
        gain = dict.fromkeys((*xs, *ts), 0)
        for x, label in zip(xs, labels, strict=True):
            gain[x] += 2 * label - 1
        sums, concepts = self._all(list(gain), np.array(list(gain.values()), dtype=np.int64))
        return ArrayLevels(sums + (len(labels) - sum(labels)), concepts.__getitem__)

    def _all(self, points: list[tuple[int, ...]], gains: NDArray[np.int64]) -> tuple[NDArray[np.int64], _Concepts]:
        """The gain of every dichotomy of distinct points, and its rectangle."""
        if len(self.fixed) == self.components:
            whole = Rectangle(tuple(zip(self.fixed[::2], self.fixed[1::2], strict=True)))
            inside = np.array(whole.labels(points), dtype=np.int64)
            return np.array([inside @ gains]), _Concepts(whole, [])
        self._check_size(points)
        blocks = list(self._blocks(np.array(points, dtype=object).reshape(-1, self.dimension), gains, (), []))
        a = (*self.fixed[::2], *[self.lo] * self.dimension)[: self.dimension]
        b = (*self.fixed[1::2], *[self.hi] * self.dimension)[: self.dimension - 1]
        empty = Rectangle((*zip(a[:-1], b, strict=True), (a[-1], a[-1] - 1)))
        return np.concatenate([[0], *(block.sums for block in blocks)]).astype(np.int64), _Concepts(empty, blocks)

    def _check_size(self, points: list[tuple[int, ...]]) -> None:
        candidates = 1
        for axis in range(self.dimension):
            rows, fixed = len({point[axis] for point in points}), len(self.fixed[2 * axis : 2 * axis + 2])
            candidates *= (rows * (rows + 1) // 2, rows, 1)[fixed]
        if candidates > MAX_RECTANGLES:
            raise ValueError(
                f"{len(points)} distinct points leave up to {candidates} rectangles to list, more than {MAX_RECTANGLES}"
            )

    def _blocks(
        self,
        points: NDArray[Any],
        gains: NDArray[np.int64],
        sides: tuple[tuple[int, int], ...],
        kept: list[NDArray[np.bool_]],
    ) -> Iterator[_Block]:
        """The tight rectangles around non-empty sets of the points, given the first sides.

        kept: for each free side so far, the points that touch it, of which one must stay.
        """
        axis = len(sides)
        a, b = (self.fixed[i] if i < len(self.fixed) else None for i in (2 * axis, 2 * axis + 1))
        inside = np.ones(len(points), dtype=np.bool_)
        if a is not None:
            inside &= (points[:, axis] >= a).astype(np.bool_)
        if b is not None:
            inside &= (points[:, axis] <= b).astype(np.bool_)
        points, gains, kept = points[inside], gains[inside], [touching[inside] for touching in kept]
        if not len(points) or not all(touching.any() for touching in kept):
            return
        rows = sorted(set(points[:, axis].tolist()))
        at = np.searchsorted(np.array(rows, dtype=object), points[:, axis]).astype(np.int64)
        if axis == self.dimension - 1:
            yield self._last_dimension(rows, at, gains, sides, kept, a)
            return
        lows = range(len(rows)) if a is None else [0]
        for low in lows:
            for high in range(low, len(rows)) if b is None else [len(rows) - 1]:
                chosen = (at >= low) & (at <= high)
                touching = [t[chosen] for t in kept]
                touching += [at[chosen] == side for side, fixed in ((low, a), (high, b)) if fixed is None]
                side = (rows[low] if a is None else a, rows[high] if b is None else b)
                yield from self._blocks(points[chosen], gains[chosen], (*sides, side), touching)

    def _last_dimension(
        self,
        rows: list[int],
        at: NDArray[np.int64],
        gains: NDArray[np.int64],
        sides: tuple[tuple[int, int], ...],
        kept: list[NDArray[np.bool_]],
        a: int | None,
    ) -> _Block:
        prefix = np.zeros(len(rows) + 1, dtype=np.int64)
        np.add.at(prefix[1:], at, gains)
        prefix = np.cumsum(prefix)
        # Up to which row the lower side may go so that every side keeps a point, for each upper row.
        highest = np.arange(len(rows))
        for touching in kept:
            touched = np.full(len(rows), -1)
            touched[at[touching]] = at[touching]
            highest = np.minimum(highest, np.maximum.accumulate(touched))
        if a is None:
            low, high = np.nonzero(np.arange(len(rows))[:, None] <= highest)
        else:
            high = np.flatnonzero(highest >= 0)
            low = np.zeros(len(high), dtype=np.int64)
        return _Block(prefix[high + 1] - prefix[low], low, high, sides, rows)

    def _grid(self, points: Sequence[Any]) -> list[tuple[int, ...]]:
        for point in points:
            if not isinstance(point, tuple) or len(point) != self.dimension:
                raise ValueError(f"points must be tuples of {self.dimension} integers, got {point!r}")
        flat = integer_points([x for point in points for x in point]).tolist()
        checked = [tuple(flat[i : i + self.dimension]) for i in range(0, len(flat), self.dimension)]
        for point in checked:
            if not all(self.lo <= x <= self.hi for x in point):
                raise ValueError(f"points must be in the grid {self.lo}..{self.hi} in each dimension, got {point!r}")
        return checked


class _Concepts(Sequence[Rectangle]):
    """The empty rectangle and then those of the blocks, built when asked for."""

    def __init__(self, first: Rectangle, blocks: list[_Block]) -> None:
        self._first, self._blocks = first, blocks
        self._starts = list(itertools.accumulate((len(block.sums) for block in blocks), initial=1))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index == 0:
            return self._first
        block = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self._blocks[block].rectangle(index - self._starts[block])
