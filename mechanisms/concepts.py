"""Concept classes: what LabelBoost and the component oracles ask of a class of 0/1-valued functions.

A class C is parameterised by k components; ``C.prefix(y)`` is C(y), the concepts whose components start with y, and
is a class again. On finitely many points a class is its *trace*: the set of dichotomies (labellings) it induces
there. A class lists a trace with one representative each, or groups it by agreement with a sample, which is all that
exact sampling needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Point = Hashable
Sample = Sequence[tuple[Any, int]]
"""Labelled records (point, label), label 0 or 1; points may repeat."""


class NotRealizableError(ValueError):
    """A sample that was promised to be labelled by some concept of a class is not."""


class Concept(Protocol):
    """A function from points to {0, 1}."""

    def __call__(self, point: Any) -> int:
        """The label of one point."""
        ...

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        """The labels of many points, in their order."""
        ...


class TraceLevels(Protocol):
    """The dichotomies of some points, grouped by their agreement with a sample.

    scores: the agreements that occur, strictly decreasing. counts: how many dichotomies have each.
    """

    @property
    def scores(self) -> Sequence[int]: ...

    @property
    def counts(self) -> Sequence[int]: ...

    def pick(self, level: int, index: int) -> Concept:
        """A representative of dichotomy number `index` among the ``counts[level]`` at ``scores[level]``."""
        ...


@runtime_checkable
class ConceptClass(Protocol):
    """A non-empty class of concepts with `components` components, of which `fixed` are fixed already."""

    @property
    def components(self) -> int:
        """k, the number of components of a full representation."""
        ...

    @property
    def fixed(self) -> tuple[Any, ...]:
        """The prefix common to all concepts of the class; empty for the class as first built."""
        ...

    def prefix(self, values: Sequence[Any]) -> ConceptClass:
        """The concepts whose next components are `values`.

        Raises:
            ValueError: no concept has these components, or they are more than are left.
        """
        ...

    def next_values(self) -> Sequence[Any]:
        """The values of the next component that leave a completion, each once.

        Raises:
            ValueError: no component is left.
        """
        ...

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        """Each dichotomy of the points once, as labels in their order, with one representative.

        A repeated point has the same label each time.

        Raises:
            ValueError: a point is outside the domain.
        """
        ...

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> TraceLevels:
        """The dichotomies of the distinct points of sample and carrier, grouped by agreement with the sample.

        The agreement counts a repeated record as often as it occurs.

        Raises:
            ValueError: a point is outside the domain, or a label is not 0 or 1.
        """
        ...


class ArrayLevels:
    """`TraceLevels` from the agreement of every dichotomy, given as an array, and a function from its index to a
    concept.
    """

    def __init__(self, agreements: NDArray[np.int64], concept: Callable[[int], Concept]) -> None:
        scores, counts = np.unique(agreements, return_counts=True)
        self.scores: list[int] = scores[::-1].tolist()
        self.counts: list[int] = counts[::-1].tolist()
        self._agreements = agreements
        self._concept = concept
        self._members: dict[int, NDArray[np.int64]] = {}

    def pick(self, level: int, index: int) -> Concept:
        if level not in self._members:
            self._members[level] = np.flatnonzero(self._agreements == self.scores[level])
        return self._concept(int(self._members[level][index]))


def split_sample(sample: Sample) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The points and the labels of a labelled sample, checked.

    Raises:
        TypeError: a record is not a pair (point, label).
        ValueError: a label is not 0 or 1.
    """
    if len(sample) == 0:
        return (), ()
    try:
        points = tuple([point for point, _ in sample])
        labels = tuple([label for _, label in sample])
    except (TypeError, ValueError):
        culprit = next((record for record in sample if not _is_pair(record)), None)
        raise TypeError(f"records must be pairs (point, label), got {culprit!r}") from None
    for label in labels:
        if label not in (0, 1):
            raise ValueError(f"labels must be 0 or 1, got {label!r}")
    return points, labels


def _is_pair(record: object) -> bool:
    try:
        return len(record) == 2  # type: ignore[arg-type]
    except TypeError:
        return False


def check_points(points: Sequence[Any]) -> None:
    """Raise a TypeError naming the first unhashable point."""
    for point in points:
        try:
            hash(point)
        except TypeError:
            raise TypeError(f"points must be hashable, got {point!r}") from None


def best_agreement(concept_class: ConceptClass, sample: Sample) -> int:
    """The largest number of records of the sample that one concept of the class labels as the sample does."""
    return concept_class.levels(sample).scores[0]


def is_realizable(concept_class: ConceptClass, sample: Sample) -> bool:
    """Whether some concept of the class labels every record as the sample does (an empty sample: yes)."""
    return best_agreement(concept_class, sample) == len(sample)


def check_realizable(concept_class: ConceptClass, sample: Sample, what: str) -> None:
    """Raise `NotRealizableError` unless the sample is realizable by the class (Definition 4.2 of the paper)."""
    agreement = best_agreement(concept_class, sample)
    if agreement != len(sample):
        raise NotRealizableError(
            f"{what} must be realizable by the class with prefix {concept_class.fixed!r}: "
            f"the best concept labels {agreement} of its {len(sample)} records"
        )
