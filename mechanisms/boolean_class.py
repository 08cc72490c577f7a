"""Boolean compositions ``G(H_1, .., H_k)``: the functions ``x -> G(h_1(x), .., h_k(x))`` with h_i in H_i (section 8.4
of the paper). The components are the concepts h_i themselves.

Traces are those of the parts, combined and freed of repeats: choosing a tuple of traces instead would be another
mechanism, whose weights one new point can split 2^k ways. Combining lists every tuple, so it is for small traces, and
what is too large is refused with its count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.concepts import ArrayLevels, Concept, ConceptClass, Sample, split_sample

MAX_PARTS = 8
MAX_LABELS = 1 << 28
"""The most labels, tuples of traces times points, that are combined."""
_MAX_VALUES = 1 << 16
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class BooleanConcept:
    """``x -> G(h_1(x), .., h_k(x))``; table: G's values in the order of the numbers (h_1 .. h_k) in binary."""

    table: tuple[int, ...]
    parts: tuple[Concept, ...]

    def __call__(self, point: Any) -> int:
        return self.labels((point,))[0]

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        rows = [part.labels(points) for part in self.parts]
        return tuple(self.table[int("".join(map(str, column)), 2)] for column in zip(*rows, strict=True))


class BooleanClass:
    """The composition of `parts`, concept classes on one domain, by a truth table.

    function: G, as a function of k labels, or its ``2**k`` values in the order of the numbers (h_1 .. h_k) in binary,
    h_1 the highest digit. parts: H_1, .., H_k with no component fixed, at most 8.

    A prefix is (h_1, .., h_i); each h_j must be a concept of its H_j, which is not checked.

    Example: intervals from thresholds.

    >>> from mechanisms import Thresholds
    >>> between = BooleanClass(lambda low, high: low and not high, [Thresholds(0, 9), Thresholds(0, 9)])
    >>> len(list(between.traces((2, 4, 6))))
    7

    Raises:
        TypeError, ValueError: no part, too many, a table of another length, or values other than 0 and 1.
    """

    def __init__(self, function: Callable[..., Any] | Sequence[int], parts: Sequence[ConceptClass]) -> None:
        self.parts = tuple(parts)
        if not 1 <= len(self.parts) <= MAX_PARTS:
            raise ValueError(f"parts must be 1 to {MAX_PARTS} classes, got {len(self.parts)}")
        for position, part in enumerate(self.parts):
            if not isinstance(part, ConceptClass):
                raise TypeError(f"parts[{position}] must be a concept class, got {part!r}")
        k = len(self.parts)
        values = [function(*bits) for bits in itertools.product((0, 1), repeat=k)] if callable(function) else function
        if len(values) != 2**k or any(value not in (0, 1) for value in values):
            raise ValueError(f"function must have {2**k} values 0 or 1, one for each tuple of labels, got {values!r}")
        self.table = tuple(int(value) for value in values)
        self.fixed: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        fixed = f", fixed={self.fixed!r}" if self.fixed else ""
        return f"BooleanClass({self.table!r}, {list(self.parts)!r}{fixed})"

    @property
    def components(self) -> int:
        return len(self.parts)

    def prefix(self, values: Sequence[Any]) -> BooleanClass:
        left = self.components - len(self.fixed)
        if len(values) > left:
            raise ValueError(f"values must be at most {left} components, got {tuple(values)!r}")
        for position, value in enumerate(values):
            if not callable(getattr(value, "labels", None)):
                raise TypeError(f"values[{position}] must be a concept of its class, got {value!r}")
        restricted = BooleanClass(self.table, self.parts)
        restricted.fixed = (*self.fixed, *values)
        return restricted

    def next_values(self) -> Sequence[Any]:
        return tuple(_concepts(self._next_part))

    @property
    def _next_part(self) -> ConceptClass:
        if len(self.fixed) == self.components:
            raise ValueError(f"all {self.components} components are fixed already, to {self.fixed!r}")
        return self.parts[len(self.fixed)]

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        labels, concept = self._dichotomies(points)
        for index, row in enumerate(labels.tolist()):
            yield tuple(row), concept(index)

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> ArrayLevels:
        points, gains, zeros = _weighted(sample, carrier)
        labels, concept = self._dichotomies(points)
        return ArrayLevels(labels.astype(np.int64) @ gains + zeros, concept)

    def component_levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> ArrayLevels:
        """The dichotomies that the next part H_i induces on the points, grouped by `component_scores`."""
        found, scores = self.component_scores(sample, carrier)
        return ArrayLevels(scores, lambda index: found[index][1])

    def component_scores(
        self, sample: Sample, carrier: Sequence[Any] = ()
    ) -> tuple[list[tuple[tuple[int, ...], Concept]], NDArray[np.int64]]:
        """Each dichotomy that the next part H_i induces on the sample's and then the carrier's points, with one
        representative h; and the best agreement with the sample that a completion of h reaches: ``|S| - q_i(S, h)``
        with the completion score q_i of Proposition 8.16.

        For a fixed choice of the parts after i, the agreement is linear in the labels of h, so that all pairs of a
        dichotomy and a choice are one matrix product; exact, as every partial sum is an integer below 2^53.
        """
        points, gains, zeros = _weighted(sample, carrier)
        position, read = len(self.fixed), (*(point for point, _ in sample), *carrier)
        own = list(self._next_part.traces(read))
        traces = [[concept.labels(points)] for concept in self.fixed]
        traces += [[labels for labels, _ in part.traces(points)] for part in self.parts[position + 1 :]]
        self._check_count([*map(len, traces), len(own)], len(points))
        place = {point: at for at, point in enumerate(read)}
        columns_read = [place[point] for point in points]
        ours = np.array([labels for labels, _ in own], dtype=np.float64).reshape(len(own), len(read))[:, columns_read]
        table = np.moveaxis(np.array(self.table).reshape((2,) * self.components), position, 0)
        best = np.full(len(own), -math.inf)
        for rest in _chunks([len(rows) for rows in traces], len(points) + len(own)):
            columns = [np.array(rows, dtype=np.int8)[index] for rows, index in zip(traces, rest, strict=True)]
            shape = (len(rest[0]) if rest else 1, len(points))
            without, having = (np.broadcast_to(table[(label, *columns)], shape) * gains for label in (0, 1))
            agreement = ours @ (having - without).T.astype(np.float64) + without.sum(axis=1)
            best = np.maximum(best, agreement.max(axis=1))
        return own, best.astype(np.int64) + zeros

    def _dichotomies(self, points: Sequence[Any]) -> tuple[NDArray[np.uint8], Callable[[int], BooleanConcept]]:
        """Each dichotomy of the points once, as rows, and the concept at an index."""
        options: list[list[tuple[tuple[int, ...], Concept]]] = [[(c.labels(points), c)] for c in self.fixed]
        options += [list(part.traces(points)) for part in self.parts[len(self.fixed) :]]
        sizes = [len(found) for found in options]
        self._check_count(sizes, len(points))
        table = np.array(self.table, dtype=np.uint8).reshape((2,) * self.components)
        rows = [np.array([labels for labels, _ in found], dtype=np.int8) for found in options]
        first: dict[bytes, tuple[int, ...]] = {}
        for tuples in _chunks(sizes, len(points)):
            labels = table[tuple(matrix[index] for matrix, index in zip(rows, tuples, strict=True))]
            packed = np.packbits(labels, axis=1)
            _, kept = np.unique(packed, axis=0, return_index=True)
            for at in np.sort(kept).tolist():
                first.setdefault(packed[at].tobytes(), tuple(int(index[at]) for index in tuples))
        chosen = list(first.values())
        packed = np.frombuffer(b"".join(first), dtype=np.uint8).reshape(len(chosen), -1)
        distinct = np.unpackbits(packed, axis=1, count=len(points)) if len(points) else packed[:, :0]

        def concept(index: int) -> BooleanConcept:
            picked = tuple(found[at][1] for found, at in zip(options, chosen[index], strict=True))
            return BooleanConcept(self.table, picked)

        return distinct, concept

    def _check_count(self, sizes: list[int], points: int) -> None:
        if math.prod(sizes) * max(1, points) > MAX_LABELS:
            shown = " x ".join(map(str, sizes))
            raise ValueError(
                f"{points} points leave {shown} tuples of traces to combine, {math.prod(sizes) * points} labels, more "
                f"than {MAX_LABELS}"
            )


def _weighted(sample: Sample, carrier: Sequence[Any]) -> tuple[tuple[Any, ...], NDArray[np.int64], int]:
    """The distinct points, records labelled 1 less those labelled 0 on each, how many are labelled 0 in all."""
    points, labels = split_sample(sample)
    gains = dict.fromkeys((*points, *carrier), 0)
    for point, label in zip(points, labels, strict=True):
        gains[point] += 2 * label - 1
    return tuple(gains), np.array(list(gains.values()), dtype=np.int64), len(labels) - sum(labels)


def _chunks(sizes: list[int], width: int) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """All tuples of indices, a bounded number of them at once, as one array for each place."""
    total, step = math.prod(sizes), max(1, _CHUNK // max(1, width))
    for first in range(0, total, step):
        yield np.unravel_index(np.arange(first, min(first + step, total)), sizes) if sizes else ()


def _concepts(concept_class: ConceptClass) -> Iterator[Concept]:
    """Every concept of a class, by walking through its components."""
    found = 0
    waiting = [concept_class]
    while waiting:
        current = waiting.pop()
        if len(current.fixed) == current.components:
            found += 1
            yield next(current.traces(()))[1]
            continue
        values = current.next_values()
        if found + len(waiting) + len(values[: _MAX_VALUES + 1]) > _MAX_VALUES:
            raise ValueError(f"a component is listed up to {_MAX_VALUES} values, {concept_class!r} has more")
        waiting += [current.prefix((value,)) for value in reversed(values)]
