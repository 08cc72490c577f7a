"""Thresholds on an integer grid: ``h_t(x) = 1`` if ``x >= t``. Grids may be astronomically large; traces come from
sorting.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting import check_int
from mechanisms.concepts import ArrayLevels, Concept, Sample, split_sample


@dataclass(frozen=True, slots=True)
class Threshold:
    """The concept that labels x with 1 if ``x >= t``, with 0 otherwise."""

    t: int

    def __call__(self, point: Any) -> int:
        return int(point >= self.t)

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        return tuple((integer_points(points) >= self.t).astype(np.uint8).tolist())


class Thresholds:
    """The thresholds t in lo..hi (both included); the domain is all integers.

    radices: splits t into components, the digits of ``t - lo`` in this mixed radix, most significant first; the
    default is one component, ``t - lo`` itself. Their product must be at least ``hi - lo + 1``. A prefix of digits
    fixes a sub-range.

    Points below every threshold are always labelled 0, points at or above hi always 1.

    Example: 2**200 thresholds in two components, three points, and the four dichotomies of a range around them.

    >>> huge = Thresholds(0, 2**200 - 1, radices=(2**100, 2**100))
    >>> len(list(huge.prefix((0,)).traces((5, 9, 2**150))))
    3

    Raises:
        TypeError, ValueError: an empty range, a radix below 1, or radices whose product is too small.
    """

    def __init__(self, lo: int, hi: int, *, radices: Sequence[int] | None = None) -> None:
        self.lo = check_int("lo", lo)
        self.hi = check_int("hi", hi)
        if self.hi < self.lo:
            raise ValueError(f"hi must be at least lo = {lo}, got {hi}: an empty class has no hypothesis to choose")
        size = self.hi - self.lo + 1
        self.radices = (
            (size,)
            if radices is None
            else tuple(check_int(f"radices[{i}]", radix, lo=1) for i, radix in enumerate(radices))
        )
        if math.prod(self.radices) < size or not self.radices:
            raise ValueError(f"radices must have a product of at least hi - lo + 1 = {size}, got {self.radices!r}")
        self.fixed: tuple[Any, ...] = ()
        self._origin = self.lo

    def __repr__(self) -> str:
        fixed = f", fixed={self.fixed!r}" if self.fixed else ""
        return f"Thresholds({self.lo}, {self.hi}, radices={self.radices!r}{fixed})"

    @property
    def components(self) -> int:
        return len(self.radices)

    def prefix(self, values: Sequence[Any]) -> Thresholds:
        left = self.radices[len(self.fixed) :]
        if len(values) > len(left):
            raise ValueError(f"values must be at most {len(left)} components, got {tuple(values)!r}")
        start = self._start
        lo, hi = self.lo, self.hi
        for position, value in enumerate(values):
            width = math.prod(left[position + 1 :])
            start += check_int(f"values[{position}]", value, lo=0, hi=left[position] - 1) * width
            lo, hi = max(lo, start), min(hi, start + width - 1)
        if lo > hi:
            raise ValueError(f"values must leave a completion in the class, got the prefix {(*self.fixed, *values)!r}")
        restricted = object.__new__(type(self))
        restricted.lo, restricted.hi, restricted.radices = lo, hi, self.radices
        restricted.fixed, restricted._origin = (*self.fixed, *(int(value) for value in values)), self._origin
        return restricted

    @property
    def _start(self) -> int:
        """The number whose digits are the fixed ones and then zeros, as a threshold."""
        place, start = math.prod(self.radices), self._origin
        for radix, digit in zip(self.radices, self.fixed, strict=False):
            place //= radix
            start += digit * place
        return start

    def next_values(self) -> Sequence[Any]:
        left = self.radices[len(self.fixed) :]
        if not left:
            raise ValueError(f"all {self.components} components are fixed already, to {self.fixed!r}")
        width = math.prod(left[1:])
        return range((self.lo - self._start) // width, (self.hi - self._start) // width + 1)

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        distinct = sorted_distinct(integer_points(points))
        for gap in range(*self._gaps(distinct)):
            concept = self._representative(distinct, gap)
            yield concept.labels(points), concept

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> ArrayLevels:
        distinct, agreements, _ = self._agreements(sample, carrier)
        first, end = self._gaps(distinct)
        return ArrayLevels(agreements[first:end], lambda index: self._representative(distinct, first + index))

    def best_levels(self, sample: Sample, carrier: Sequence[Any]) -> ArrayLevels:
        """The dichotomies of the carrier, grouped by the best agreement with the sample among their extensions."""
        distinct, agreements, carried = self._agreements(sample, carrier)
        first, end = self._gaps(distinct)
        # As many carrier points lie below gap g as among distinct[:g]; gaps with equally many share a dichotomy.
        below = np.searchsorted(carried, np.arange(first, end))
        order = np.lexsort((-agreements[first:end], below))
        best = order[np.concatenate([[True], np.diff(below[order]) > 0])]
        return ArrayLevels(
            agreements[first:end][best], lambda index: self._representative(distinct, first + int(best[index]))
        )

    def _agreements(
        self, sample: Sample, carrier: Sequence[Any]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """The distinct points, the agreement of a threshold in each gap, the positions of the carrier's points."""
        points, labels = split_sample(sample)
        xs, ts, ys = integer_points(points), integer_points(carrier), np.array(labels, dtype=np.int64)
        distinct = sorted_distinct(np.concatenate([xs, ts]) if len(ts) else xs)
        # Looking up sorted points is several times faster: neighbours in the array are neighbours in memory.
        ones, zeros = (
            np.bincount(np.searchsorted(distinct, np.sort(xs[ys == label])), minlength=len(distinct))
            for label in (1, 0)
        )
        # The threshold in gap g labels distinct[:g] with 0 and distinct[g:] with 1.
        agreements = np.concatenate([[0], np.cumsum(zeros - ones)]) + int(ones.sum())
        return distinct, agreements, np.searchsorted(distinct, sorted_distinct(ts)).astype(np.int64)

    def _gaps(self, distinct: NDArray[Any]) -> tuple[int, int]:
        """The range of g for which some threshold lies above exactly g of the points: it has no holes."""
        return int(np.searchsorted(distinct, self.lo)), int(np.searchsorted(distinct, self.hi)) + 1

    def _representative(self, distinct: NDArray[Any], gap: int) -> Threshold:
        return Threshold(self.lo if gap == 0 else max(self.lo, int(distinct[gap - 1]) + 1))


def sorted_distinct(values: NDArray[Any]) -> NDArray[Any]:
    """np.unique by sorting: its hash tables take a hundred times as long on a million integers."""
    ascending = np.sort(values)
    return ascending[np.concatenate([[True], ascending[1:] != ascending[:-1]])] if len(ascending) else ascending


def integer_points(points: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """The points as an array of int64, or of Python ints when one does not fit."""
    if isinstance(points, np.ndarray) and points.dtype.kind in "iu":
        return points.astype(np.int64) if points.dtype != np.uint64 else integer_points(points.tolist())
    for point in points:
        if type(point) is not int and (isinstance(point, bool) or not isinstance(point, numbers.Integral)):
            raise ValueError(f"points must be integers, the domain of the class, got {point!r}")
    try:
        return np.fromiter(points, dtype=np.int64, count=len(points))
    except OverflowError:
        kept = np.empty(len(points), dtype=object)
        kept[:] = [int(point) for point in points]
        return kept
