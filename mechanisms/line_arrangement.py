"""Faces of arrangements of lines in the plane, exactly, with every degeneracy: concurrent, parallel, repeated lines.

A constraint (u, b) holds at a when ``<u, a> >= b``. The constraints' lines cut the plane into faces on which the same
constraints hold. An open cell either reaches a_1 = -infinity or has one leftmost vertex v (no line is vertical, after
a shear); it is then the wedge to the right of v between two lines of consecutive slope through v, and belongs to the
lower of them. So sweeping every line from left to right over its crossings, with running sums, meets every cell once:
O(M^2 log M) for M lines. Crossings are compared as exact rationals: by the integer ``floor(num * D^2 / den)`` for
denominators up to D, which keeps order and equality because two unequal such rationals differ by at least ``1/D^2``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = tuple[Fraction, ...]

_CHUNK = 1 << 20  # entries of a sweep held at once
_INT64 = 1 << 62
MAX_LINES = 20_000


@dataclass(frozen=True)
class Constraints:
    """M constraints ``<normals[j], a> >= offsets[j]`` in r unknowns, in integers (int64, or objects when larger).

    gains: what a constraint adds to a face's sum where it holds. marks: what it is XORed with there.
    """

    normals: NDArray[Any]
    offsets: NDArray[Any]
    gains: NDArray[np.int64]
    marks: NDArray[np.int64]

    def select(self, chosen: NDArray[Any]) -> Constraints:
        """Some of the constraints, by index or mask."""
        return Constraints(self.normals[chosen], self.offsets[chosen], self.gains[chosen], self.marks[chosen])


@dataclass(frozen=True)
class Faces:
    """Faces of an arrangement: the sum of gains and the XOR of marks of the constraints that hold on each.

    witness: a point of the face with a given index. repeats: whether a face may be listed more than once.
    """

    sums: NDArray[np.int64]
    marks: NDArray[np.int64]
    witness: Callable[[int], Vector]
    repeats: bool = False


def integer_array(values: list[int]) -> NDArray[Any]:
    """int64 where everything fits with room to spare, Python ints otherwise."""
    if all(-_INT64 < value < _INT64 for value in values):
        return np.array(values, dtype=np.int64)
    kept = np.empty(len(values), dtype=object)
    kept[:] = values
    return kept


def _magnitude(values: NDArray[Any]) -> int:
    return max((abs(int(value)) for value in (values.min(), values.max())), default=0) if values.size else 0


def step_inside(constraints: Constraints, start: Vector, direction: Vector) -> Vector:
    """A point ``start + s * direction``, s > 0, before the next boundary that the ray from `start` meets."""
    nearest: Fraction | None = None
    for normal, offset in zip(constraints.normals.tolist(), constraints.offsets.tolist(), strict=True):
        slack = sum((u * a for u, a in zip(normal, start, strict=True)), Fraction(-offset))
        speed = sum((u * m for u, m in zip(normal, direction, strict=True)), Fraction(0))
        if slack and speed and (reach := -slack / speed) > 0 and (nearest is None or reach < nearest):
            nearest = reach
    step = Fraction(1) if nearest is None else nearest / 2
    return tuple(a + step * m for a, m in zip(start, direction, strict=True))


@dataclass(frozen=True)
class _Sweep:
    """The crossings of some lines (rows), each in order from left to right.

    order: the line crossed. steeper: whether it is steeper than the row. ends: the last crossing at each vertex;
    crossings of parallel lines do not exist and come last, marked nowhere. sums, marks: on the row just after the
    crossing, without the row itself; start_sums, start_marks: before the first.
    """

    order: NDArray[np.int64]
    steeper: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    sums: NDArray[np.int64]
    marks: NDArray[np.int64]
    start_sums: NDArray[np.int64]
    start_marks: NDArray[np.int64]

    def wedges(self) -> NDArray[np.bool_]:
        """Where a vertex has a steeper line: the cell above the row, to the right of it, starts there."""
        seen = np.cumsum(self.steeper, axis=1)
        before = np.zeros_like(seen)
        before[:, 1:] = np.maximum.accumulate(np.where(self.ends, seen, 0), axis=1)[:, :-1]
        return self.ends & (seen > before)

    def groups(self, row: int) -> Iterator[tuple[int, int]]:
        """The crossings ``first:end`` at each vertex of a row."""
        first = 0
        for last in np.flatnonzero(self.ends[row]).tolist():
            yield first, last + 1
            first = last + 1


class _Lines:
    """The distinct lines of constraints with non-zero normals, sheared so that none is vertical.

    Line l is ``<(u1, u2)[l], a> = b[l]`` with u2 > 0; "above" is the side where the left is larger. A line may carry
    constraints of both orientations: `above` and `below` are the sums over those that hold above and below it.
    """

    def __init__(self, constraints: Constraints) -> None:
        if len(constraints.offsets) > MAX_LINES:
            raise ValueError(
                f"an arrangement of lines is enumerated for at most {MAX_LINES} lines, got {len(constraints.offsets)}"
            )
        widest = [_magnitude(constraints.normals[:, axis]) for axis in (0, 1)] if len(constraints.offsets) else [0, 0]
        self.shear = 1 + widest[1]
        index: dict[tuple[int, int, int], int] = {}
        line_of = np.empty(len(constraints.offsets), dtype=np.int64)
        upward = np.empty(len(constraints.offsets), dtype=np.bool_)
        for j, ((u1, u2), b) in enumerate(zip(constraints.normals.tolist(), constraints.offsets.tolist(), strict=True)):
            sheared = u2 + self.shear * u1
            divisor = gcd(u1, sheared, b) * (1 if sheared > 0 else -1)
            line_of[j] = index.setdefault((u1 // divisor, sheared // divisor, b // divisor), len(index))
            upward[j] = sheared > 0
        self.count = len(index)
        self.u1, self.u2, self.b = (integer_array([key[axis] for key in index]) for axis in range(3))
        self.above_sums, self.below_sums, self.above_marks, self.below_marks = np.zeros((4, self.count), dtype=np.int64)
        np.add.at(self.above_sums, line_of[upward], constraints.gains[upward])
        np.add.at(self.below_sums, line_of[~upward], constraints.gains[~upward])
        np.bitwise_xor.at(self.above_marks, line_of[upward], constraints.marks[upward])
        np.bitwise_xor.at(self.below_marks, line_of[~upward], constraints.marks[~upward])
        self.has_above, self.has_below = np.zeros((2, self.count), dtype=np.bool_)
        self.has_above[line_of[upward]] = True
        self.has_below[line_of[~upward]] = True
        # The shear has determinant 1, so it leaves the denominators of crossings as they were.
        denominator = max(1, 2 * widest[0] * widest[1])
        self.scale = denominator**2
        self.reach = 2 * _magnitude(self.b) * _magnitude(self.u2)
        self._last = self.reach * self.scale + 1
        self._wide = np.int64 if self._last < _INT64 else object
        self._det = np.int64 if 2 * _magnitude(self.u1) * _magnitude(self.u2) < _INT64 else object

    def sweep(self, rows: NDArray[np.int64]) -> _Sweep:
        u1, u2 = self.u1.astype(self._det), self.u2.astype(self._det)
        det = u1[rows, None] * u2 - u2[rows, None] * u1
        wide_u2, wide_b = self.u2.astype(self._wide), self.b.astype(self._wide)
        numerator = wide_b[rows, None] * wide_u2 - wide_b * wide_u2[rows, None]
        crossing, steeper = (det != 0).astype(np.bool_), (det > 0).astype(np.bool_)
        floor = numerator * self.scale // np.where(crossing, det, 1)
        keys = np.where(crossing, floor, self._last)
        # Left of the crossing a row is above the steeper lines and below the others; parallel lines stay where they
        # are. The row itself counts as parallel and below, and is taken out again.
        left_above = steeper | (~crossing & (numerator > 0).astype(np.bool_))
        start_sums = np.where(left_above, self.above_sums, self.below_sums).sum(axis=1) - self.below_sums[rows]
        held = np.where(left_above, self.above_marks, self.below_marks)
        start_marks = np.bitwise_xor.reduce(held, axis=1) ^ self.below_marks[rows]
        change = self.below_sums - self.above_sums
        deltas = np.where(steeper, change, -change) * crossing
        flips = np.where(crossing, self.above_marks ^ self.below_marks, 0)
        order = np.argsort(keys, axis=1)
        keys = np.take_along_axis(keys, order, axis=1)
        ends = (keys != self._last).astype(np.bool_)
        ends[:, :-1] &= (keys[:, :-1] != keys[:, 1:]).astype(np.bool_)
        return _Sweep(
            order,
            np.take_along_axis(steeper, order, axis=1),
            ends,
            start_sums[:, None] + np.cumsum(np.take_along_axis(deltas, order, axis=1), axis=1),
            start_marks[:, None] ^ np.bitwise_xor.accumulate(np.take_along_axis(flips, order, axis=1), axis=1),
            start_sums,
            start_marks,
        )

    def chunks(self) -> Iterator[NDArray[np.int64]]:
        size = max(1, _CHUNK // max(1, self.count))
        for first in range(0, self.count, size):
            yield np.arange(first, min(first + size, self.count), dtype=np.int64)

    def top_down(self) -> list[int]:
        """The lines as met at a_1 = -infinity from above: by slope, parallel ones by height."""
        lines = zip(self.u1.tolist(), self.u2.tolist(), self.b.tolist(), strict=True)
        keys = [(Fraction(-u1, u2), Fraction(-b, u2)) for u1, u2, b in lines]
        return sorted(range(self.count), key=keys.__getitem__)

    def slope(self, line: int) -> Fraction:
        return Fraction(-int(self.u1[line]), int(self.u2[line]))

    def height(self, line: int, a1: Fraction) -> Fraction:
        return (int(self.b[line]) - int(self.u1[line]) * a1) / int(self.u2[line])

    def crossing(self, row: int, line: int) -> Fraction:
        u1, u2, b = ([int(values[i]) for i in (row, line)] for values in (self.u1, self.u2, self.b))
        return Fraction(b[0] * u2[1] - b[1] * u2[0], u1[0] * u2[1] - u2[0] * u1[1])

    def unsheared(self, a1: Fraction, a2: Fraction) -> Vector:
        return (a1 + self.shear * a2, a2)


def line_faces(constraints: Constraints, *, open_only: bool) -> Faces:
    """Each face of the arrangement on which another set of constraints holds, once. Normals must not be zero.

    open_only: list the open cells only. Otherwise also the edges and vertices on which a set of constraints holds
    that holds on no open cell.
    """
    lines = _Lines(constraints)
    chain = lines.top_down()
    sums, marks, counts = [_far_left_sums(lines, chain)], [_far_left_marks(lines, chain)], []
    extra: list[tuple[int, int, Vector]] = []
    for rows in lines.chunks():
        sweep = lines.sweep(rows)
        wedges = sweep.wedges()
        counts.append(wedges.sum(axis=1))
        at, position = np.nonzero(wedges)
        sums.append(sweep.sums[at, position] + lines.above_sums[rows[at]])
        marks.append(sweep.marks[at, position] ^ lines.above_marks[rows[at]])
        if not open_only:
            for i, row in enumerate(rows.tolist()):
                extra += _thin_faces(lines, sweep, i, row)
    starts = np.cumsum(np.concatenate([[len(chain) + 1], *counts]))
    sums.append(np.array([face[0] for face in extra], dtype=np.int64))
    marks.append(np.array([face[1] for face in extra], dtype=np.int64))

    def witness(index: int) -> Vector:
        if index <= len(chain):
            return lines.unsheared(*_far_left_point(lines, chain, index))
        if index >= starts[-1]:
            return extra[index - int(starts[-1])][2]
        row = int(np.searchsorted(starts, index, side="right")) - 1
        vertex, direction = _wedge(lines, row, index - int(starts[row]))
        return step_inside(constraints, lines.unsheared(*vertex), lines.unsheared(*direction))

    return Faces(np.concatenate(sums), np.concatenate(marks), witness)


def count_cells(constraints: Constraints) -> int:
    """The number of open cells, by counting alone."""
    lines = _Lines(constraints)
    return 1 + lines.count + sum(int(lines.sweep(rows).wedges().sum()) for rows in lines.chunks())


def _far_left_sums(lines: _Lines, chain: list[int]) -> NDArray[np.int64]:
    crossed = (lines.below_sums - lines.above_sums)[chain]
    return int(lines.above_sums.sum()) + np.concatenate([[0], np.cumsum(crossed)]).astype(np.int64)


def _far_left_marks(lines: _Lines, chain: list[int]) -> NDArray[np.int64]:
    top = np.bitwise_xor.reduce(lines.above_marks) if chain else np.int64(0)
    return np.bitwise_xor.accumulate(np.concatenate([[top], (lines.above_marks ^ lines.below_marks)[chain]]))


def _far_left_point(lines: _Lines, chain: list[int], cell: int) -> tuple[Fraction, Fraction]:
    """A point of the cell below the first `cell` lines of the chain, left of every vertex."""
    a1 = Fraction(-lines.reach - 1)
    around = [lines.height(line, a1) for line in chain[max(0, cell - 1) : cell + 1]]
    if not around:
        return a1, Fraction(0)
    if cell == 0:
        return a1, around[0] + 1
    return a1, around[0] - 1 if cell == len(chain) else (around[0] + around[1]) / 2


def _wedge(lines: _Lines, row: int, number: int) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """The vertex of the row's wedge of that number, and a direction into the wedge."""
    sweep = lines.sweep(np.array([row], dtype=np.int64))
    last = int(np.flatnonzero(sweep.wedges()[0])[number])
    first, end = next((first, end) for first, end in sweep.groups(0) if end == last + 1)
    crossed = sweep.order[0, first:end].tolist()
    steeper = [line for line, up in zip(crossed, sweep.steeper[0, first:end].tolist(), strict=True) if up]
    a1 = lines.crossing(row, crossed[0])
    slope = (lines.slope(row) + min(lines.slope(line) for line in steeper)) / 2
    return (a1, lines.height(row, a1)), (Fraction(1), slope)


def _thin_faces(lines: _Lines, sweep: _Sweep, i: int, row: int) -> Iterator[tuple[int, int, Vector]]:
    """Edges of the row and vertices (those where it is the flattest line) whose constraints hold on no open cell.

    On an edge all constraints of the line hold; a neighbouring cell has the same unless they are of both
    orientations. At a vertex all constraints of its lines hold.
    """
    own_sum = int(lines.above_sums[row] + lines.below_sums[row])
    own_mark = int(lines.above_marks[row] ^ lines.below_marks[row])
    groups = list(sweep.groups(i))
    after = [(int(sweep.start_sums[i]), int(sweep.start_marks[i]))]
    after += [(int(sweep.sums[i, end - 1]), int(sweep.marks[i, end - 1])) for _, end in groups]
    both = lines.has_above & lines.has_below
    if both[row]:
        at = [lines.crossing(row, int(sweep.order[i, first])) for first, _ in groups]
        inner = [(left + right) / 2 for left, right in itertools.pairwise(at)]
        points = [at[0] - 1, *inner, at[-1] + 1] if at else [Fraction(0)]
        for a1, (total, mark) in zip(points, after, strict=True):
            yield total + own_sum, mark ^ own_mark, lines.unsheared(a1, lines.height(row, a1))
    for (first, end), (total, mark) in zip(groups, after, strict=False):
        crossed = sweep.order[i, first:end]
        if not sweep.steeper[i, first:end].all() or (end - first == 1 and not both[row]):
            continue
        through = [row, *sorted(crossed.tolist(), key=lines.slope)]
        if _holds_beside([0 if both[j] else 1 if lines.has_above[j] else -1 for j in through]):
            continue
        a1 = lines.crossing(row, through[1])
        total += own_sum + int(lines.below_sums[crossed].sum())
        mark ^= own_mark ^ int(np.bitwise_xor.reduce(lines.below_marks[crossed]))
        yield total, mark, lines.unsheared(a1, lines.height(row, a1))


def _holds_beside(sides: list[int]) -> bool:
    """Whether all constraints of the lines through a vertex, in order of slope, hold on a cell or edge beside it.

    sides: 1 for constraints that hold above the line, -1 below, 0 for a line with both. A cell lies above the lines up
    to some slope and below the rest, or the other way round; an edge likewise, but on its own line.
    """
    if sides.count(0) > 1:
        return False
    cut = sides.index(0) if 0 in sides else next((i for i, side in enumerate(sides) if side != sides[0]), len(sides))
    before, after = set(sides[:cut]), set(sides[cut:]) - {0}
    return len(before) <= 1 and len(after) <= 1 and before != after
