"""Faces of arrangements of hyperplanes in up to three dimensions: which of the constraints ``<u, a> >= b`` can hold
together while the others do not.

One dimension is a sorted sweep, two is `line_arrangement`. In three dimensions every open cell has a facet, and the
facets on one plane are the cells of the line arrangement that the other planes cut on it: M line arrangements list
every cell at least once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.line_arrangement import (
    MAX_LINES,
    Constraints,
    Faces,
    Vector,
    count_cells,
    integer_array,
    line_faces,
    step_inside,
)

__all__ = ["MAX_LINES", "MAX_PLANES", "Constraints", "Faces", "count_faces", "faces", "integer_array"]

MAX_PLANES = 256


def faces(constraints: Constraints, *, open_only: bool) -> Faces:
    """The faces on which different sets of constraints hold, in 0 to 3 unknowns.

    Each set appears exactly once, in three dimensions at least once (`Faces.repeats`). A constraint with a zero normal
    holds everywhere or nowhere.

    open_only: list only the open cells, which is enough when every set of constraints that holds somewhere holds on an
    open cell. Required in three dimensions, where different constraints must also have different planes.

    Raises:
        ValueError: more than `MAX_LINES` lines or `MAX_PLANES` planes.
    """
    cutting, held_sum, held_mark = _cutting(constraints)
    found = _BY_DIMENSION[constraints.normals.shape[1]](cutting, open_only)
    return replace(found, sums=found.sums + held_sum, marks=found.marks ^ held_mark)


def count_faces(constraints: Constraints, *, open_only: bool) -> int:
    """How many different sets of constraints hold on the faces, by counting alone, in O(1) memory for each face."""
    cutting, _, _ = _cutting(constraints)
    dimension = constraints.normals.shape[1]
    if dimension == 3:
        _check_planes(cutting)
        # Adding plane n splits as many cells as the planes before it cut out on it.
        return 1 + sum(
            count_faces(_on_plane(cutting, n, np.arange(n)), open_only=True) for n in range(len(cutting.offsets))
        )
    if dimension == 2 and open_only:
        return count_cells(cutting)
    return len(faces(cutting, open_only=open_only).sums)


def _cutting(constraints: Constraints) -> tuple[Constraints, int, np.int64]:
    """The constraints with a non-zero normal, and what the others add where they hold, which is everywhere."""
    if constraints.normals.shape[1] == 0:
        zero = np.ones(len(constraints.offsets), dtype=np.bool_)
    else:
        zero = (constraints.normals == 0).all(axis=1)
    held = zero & (constraints.offsets <= 0).astype(np.bool_)
    mark = np.bitwise_xor.reduce(constraints.marks[held]) if held.any() else np.int64(0)
    return constraints.select(~zero), int(constraints.gains[held].sum()), mark


def _whole_space(_: Constraints, __: bool) -> Faces:
    return Faces(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), lambda _: ())


def _ray_faces(constraints: Constraints, open_only: bool) -> Faces:
    """On a line: open gaps from left to right, then the points at which constraints of both orientations hold."""
    normals, offsets = constraints.normals[:, 0].tolist(), constraints.offsets.tolist()
    critical = [Fraction(b, u) for u, b in zip(normals, offsets, strict=True)]
    at = sorted(set(critical))
    index = {value: position for position, value in enumerate(at)}
    right, left, right_marks, left_marks = np.zeros((4, len(at)), dtype=np.int64)
    has_right, has_left = np.zeros((2, len(at)), dtype=np.bool_)
    position = np.array([index[value] for value in critical], dtype=np.int64)
    rightward = np.array([u > 0 for u in normals], dtype=np.bool_)
    for side, sums, marks, has in (
        (rightward, right, right_marks, has_right),
        (~rightward, left, left_marks, has_left),
    ):
        np.add.at(sums, position[side], constraints.gains[side])
        np.bitwise_xor.at(marks, position[side], constraints.marks[side])
        has[position[side]] = True
    start_sum, start_mark = left.sum(), np.bitwise_xor.reduce(left_marks) if at else np.int64(0)
    gap_sums = np.concatenate([[0], np.cumsum(right - left)]) + start_sum
    gap_marks = np.bitwise_xor.accumulate(np.concatenate([[start_mark], right_marks ^ left_marks]))
    pinned = np.flatnonzero(has_right & has_left) if not open_only else np.empty(0, dtype=np.int64)
    sums = np.concatenate([gap_sums, gap_sums[pinned] + right[pinned]])
    marks = np.concatenate([gap_marks, gap_marks[pinned] ^ right_marks[pinned]])

    def witness(face: int) -> Vector:
        if face > len(at):
            return (at[pinned[face - len(at) - 1]],)
        if not at:
            return (Fraction(0),)
        if face == 0:
            return (at[0] - 1,)
        return (at[-1] + 1,) if face == len(at) else ((at[face - 1] + at[face]) / 2,)

    return Faces(sums, marks, witness)


def _check_planes(constraints: Constraints) -> None:
    if len(constraints.offsets) > MAX_PLANES:
        raise ValueError(
            f"an arrangement of planes is enumerated for at most {MAX_PLANES} planes, got {len(constraints.offsets)}"
        )


def _on_plane(constraints: Constraints, n: int, others: NDArray[np.int64]) -> Constraints:
    """Some constraints on the plane of constraint n, in the coordinates other than its pivot."""
    pivot, free = _pivot(constraints, n)
    normal = [int(u) for u in constraints.normals[n]]
    sign, offset = (1 if normal[pivot] > 0 else -1), int(constraints.offsets[n])
    rows = constraints.normals[others].astype(object).reshape(len(others), 3)
    reduced = [(rows[:, axis] * normal[pivot] - rows[:, pivot] * normal[axis]) * sign for axis in free]
    right = (constraints.offsets[others].astype(object) * normal[pivot] - rows[:, pivot] * offset) * sign
    columns = [integer_array(column.tolist()) for column in reduced]
    return Constraints(
        np.stack(columns, axis=1),
        integer_array(right.tolist()),
        constraints.gains[others],
        constraints.marks[others],
    )


def _pivot(constraints: Constraints, n: int) -> tuple[int, list[int]]:
    pivot = int(np.flatnonzero(constraints.normals[n] != 0)[0])
    return pivot, [axis for axis in range(3) if axis != pivot]


def _plane_faces(constraints: Constraints, open_only: bool) -> Faces:
    if not open_only:
        raise ValueError("open_only must be true in three dimensions")
    _check_planes(constraints)
    planes = len(constraints.offsets)
    if planes == 0:
        return Faces(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), lambda _: (Fraction(0),) * 3)
    facets = []
    for n in range(planes):
        others = np.delete(np.arange(planes), n)
        facets.append(faces(_on_plane(constraints, n, others), open_only=True))
    # Facets of plane n come twice: first the cells where constraint n fails, then those where it holds.
    sums = np.concatenate(
        [f.sums + gain for f, g in zip(facets, constraints.gains.tolist(), strict=True) for gain in (0, g)]
    )
    marks = np.concatenate([f.marks ^ m for f, own in zip(facets, constraints.marks, strict=True) for m in (0, own)])
    starts = np.cumsum([0, *(2 * len(f.sums) for f in facets)])

    def witness(face: int) -> Vector:
        n = int(np.searchsorted(starts, face, side="right")) - 1
        inside, cell = divmod(face - int(starts[n]), len(facets[n].sums))
        pivot, _ = _pivot(constraints, n)
        normal = [Fraction(int(u)) for u in constraints.normals[n]]
        point = list(facets[n].witness(cell))
        point.insert(pivot, Fraction(0))
        dot = sum((u * a for u, a in zip(normal, point, strict=True)), Fraction(0))
        point[pivot] = (int(constraints.offsets[n]) - dot) / normal[pivot]
        direction = tuple(u if inside else -u for u in normal)
        return step_inside(constraints, tuple(point), direction)

    return Faces(sums, marks, witness, repeats=True)


_BY_DIMENSION: dict[int, Callable[[Constraints, bool], Faces]] = {
    0: _whole_space,
    1: _ray_faces,
    2: lambda constraints, open_only: line_faces(constraints, open_only=open_only),
    3: _plane_faces,
}
