"""Concept classes given concept by concept over a finite domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.concepts import ArrayLevels, Concept, Sample, check_points, split_sample

LabelMap = Mapping[Any, int] | Callable[[Any], int] | Sequence[int]


@dataclass(frozen=True, slots=True)
class FiniteConcept:
    """One concept of a `FiniteClass`; equal when the components are."""

    components: tuple[Any, ...]
    _labels: Mapping[Any, int] = field(repr=False, compare=False)

    def __call__(self, point: Any) -> int:
        return self.labels((point,))[0]

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        try:
            return tuple(self._labels[point] for point in points)
        except KeyError as missing:
            raise ValueError(f"point must be in the domain of the class, got {missing.args[0]!r}") from None


class FiniteClass:
    """Concepts listed one by one over a finite domain.

    domain: distinct hashable points. concepts: each a mapping from points to labels, a function of a point, or the
    labels in the order of the domain; labels are 0 or 1. components: for each concept its tuple (y_1, ..., y_k), all
    of one length and no two equal; by default the concept's position, k = 1. Two components may give the same
    function.

    Example: the four functions on two points, by the label of each point.

    >>> square = FiniteClass("ab", [(0, 0), (0, 1), (1, 0), (1, 1)], components=[(0, 0), (0, 1), (1, 0), (1, 1)])
    >>> [labels for labels, _ in square.prefix((1,)).traces("b")]
    [(0,), (1,)]

    Raises:
        TypeError, ValueError: no concept, no or repeated points, a label that is not 0 or 1, components that do not
        fit.
    """

    def __init__(
        self,
        domain: Sequence[Any],
        concepts: Sequence[LabelMap],
        components: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        self.domain = tuple(domain)
        check_points(self.domain)
        self._column = {point: position for position, point in enumerate(self.domain)}
        if not self.domain or len(self._column) != len(self.domain):
            raise ValueError(f"domain must hold distinct points, at least one, got {self.domain!r}")
        if len(concepts) == 0:
            raise ValueError(
                "concepts must hold at least one concept, got none: an empty class has no hypothesis to choose"
            )
        self._matrix = _label_matrix(self.domain, concepts)
        self._components = _component_tuples(components, len(concepts))
        self.components = len(self._components[0])
        self.fixed: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        fixed = f", fixed={self.fixed!r}" if self.fixed else ""
        return f"FiniteClass(<{len(self._components)} concepts on {len(self.domain)} points>{fixed})"

    def __len__(self) -> int:
        return len(self._components)

    def concept(self, position: int) -> FiniteConcept:
        """The concept at a position of the list."""
        row = self._matrix[position].tolist()
        return FiniteConcept(self._components[position], dict(zip(self.domain, row, strict=True)))

    def prefix(self, values: Sequence[Any]) -> Self:
        start = (*self.fixed, *values)
        if len(start) > self.components:
            raise ValueError(
                f"values must be at most {self.components - len(self.fixed)} components, got {tuple(values)!r}"
            )
        kept = [i for i, components in enumerate(self._components) if components[: len(start)] == start]
        if not kept:
            raise ValueError(f"values must leave a completion in the class, got the prefix {start!r}")
        restricted = object.__new__(type(self))
        restricted.domain, restricted._column = self.domain, self._column
        restricted._matrix = self._matrix[kept]
        restricted._components = [self._components[i] for i in kept]
        restricted.components, restricted.fixed = self.components, start
        return restricted

    def next_values(self) -> Sequence[Any]:
        position = len(self.fixed)
        if position == self.components:
            raise ValueError(f"all {self.components} components are fixed already, to {self.fixed!r}")
        return tuple(dict.fromkeys(components[position] for components in self._components))

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        rows, labels = self._trace(points)
        for row, dichotomy in zip(rows, labels.tolist(), strict=True):
            yield tuple(dichotomy), self.concept(row)

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> ArrayLevels:
        points, labels = split_sample(sample)
        ones = Counter(point for point, label in zip(points, labels, strict=True) if label == 1)
        total = Counter(points)
        distinct = tuple(dict.fromkeys((*points, *carrier)))
        rows, trace = self._trace(distinct)
        gain = np.array([2 * ones[point] - total[point] for point in distinct], dtype=np.int64)
        agreements = trace.astype(np.int64) @ gain + (len(points) - sum(ones.values()))
        return ArrayLevels(agreements, lambda index: self.concept(rows[index]))

    def _trace(self, points: Sequence[Any]) -> tuple[list[int], NDArray[np.uint8]]:
        """The positions of one concept for each dichotomy of the points, and the dichotomies as rows."""
        try:
            columns = [self._column[point] for point in points]
        except KeyError as missing:
            raise ValueError(f"points must be in the domain of the class, got {missing.args[0]!r}") from None
        labels = self._matrix[:, columns]
        packed = np.packbits(labels, axis=1)
        width, raw = packed.shape[1], packed.tobytes()
        first: dict[bytes, int] = {}
        for row in range(len(labels)):
            first.setdefault(raw[row * width : (row + 1) * width], row)
        rows = list(first.values())
        return rows, labels[rows]


def _label_matrix(domain: tuple[Any, ...], concepts: Sequence[LabelMap]) -> NDArray[np.uint8]:
    rows: list[list[Any]] = []
    for position, concept in enumerate(concepts):
        if callable(concept):
            row = [concept(point) for point in domain]
        elif isinstance(concept, Mapping):
            missing = [point for point in domain if point not in concept]
            if missing:
                raise ValueError(
                    f"concepts[{position}] must label every point of the domain, {missing[0]!r} is missing"
                )
            row = [concept[point] for point in domain]
        else:
            row = list(concept)
            if len(row) != len(domain):
                raise ValueError(f"concepts[{position}] must have {len(domain)} labels, got {len(row)}")
        for label in row:
            if label not in (0, 1):
                raise ValueError(f"labels of concepts[{position}] must be 0 or 1, got {label!r}")
        rows.append(row)
    return np.array(rows, dtype=np.uint8)


def _component_tuples(components: Sequence[Sequence[Any]] | None, count: int) -> list[tuple[Any, ...]]:
    if components is None:
        return [(position,) for position in range(count)]
    tuples = [tuple(values) for values in components]
    if len(tuples) != count:
        raise ValueError(f"components must have one tuple for each of the {count} concepts, got {len(tuples)}")
    lengths = {len(values) for values in tuples}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"components must be tuples of one length, at least 1, got lengths {sorted(lengths)}")
    repeated = [values for values, times in Counter(tuples).items() if times > 1]
    if repeated:
        raise ValueError(f"components must differ between concepts, got {repeated[0]!r} twice")
    return tuples
