"""Intervals on an integer grid: ``h_{a,b}(x) = 1`` if ``a <= x <= b``. Traces come from sorting, not from listing.

A non-empty set that an interval cuts out of M distinct points is a pair of a first and a last one. With prefix sums P
of the gains its agreement is a difference ``P[last + 1] - P[first]``, so the number of dichotomies at each agreement
is a count of differences over ordered pairs: divide and conquer, one exact convolution a step, O(n log^2 n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from accounting import check_int
from mechanisms.concepts import ArrayLevels, Concept, Sample, TraceLevels, split_sample
from mechanisms.thresholds import integer_points, sorted_distinct

_BLOCK = 512  # below this many points all pairs are formed
_DIRECT = 1 << 14  # below this many products a convolution is formed directly


@dataclass(frozen=True, slots=True)
class Interval:
    """The concept that labels x with 1 if ``a <= x <= b``, with 0 otherwise; empty if b < a."""

    a: int
    b: int

    def __call__(self, point: Any) -> int:
        return int(self.a <= point <= self.b)

    def labels(self, points: Sequence[Any]) -> tuple[int, ...]:
        xs = integer_points(points)
        return tuple(((xs >= self.a) & (xs <= self.b)).astype(np.uint8).tolist())


class Intervals:
    """The intervals [a, b] within lo..hi, both included, and the empty one; points are the integers lo..hi.

    Components: a in lo..hi, then b in a-1..hi. ``b = a - 1`` is the empty interval, whatever a is.

    Example: seven labellings of three points, three of them with a = 4.

    >>> grid = Intervals(0, 10**30)
    >>> len(list(grid.traces((3, 5, 8)))), len(list(grid.prefix((4,)).traces((3, 5, 8))))
    (7, 3)

    Raises:
        TypeError, ValueError: an empty range.
    """

    components = 2

    def __init__(self, lo: int, hi: int) -> None:
        self.lo = check_int("lo", lo)
        self.hi = check_int("hi", hi)
        if self.hi < self.lo:
            raise ValueError(f"hi must be at least lo = {lo}, got {hi}: an empty grid")
        self.fixed: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        fixed = f", fixed={self.fixed!r}" if self.fixed else ""
        return f"Intervals({self.lo}, {self.hi}{fixed})"

    def prefix(self, values: Sequence[Any]) -> Intervals:
        fixed = (*self.fixed, *values)
        if len(fixed) > 2:
            raise ValueError(f"values must be at most {2 - len(self.fixed)} components, got {tuple(values)!r}")
        checked: list[int] = []
        for position, value in enumerate(fixed):
            name = f"values[{position - len(self.fixed)}]"
            checked.append(check_int(name, value, lo=checked[0] - 1 if position else self.lo, hi=self.hi))
        restricted = Intervals(self.lo, self.hi)
        restricted.fixed = tuple(checked)
        return restricted

    def next_values(self) -> Sequence[Any]:
        if len(self.fixed) == 2:
            raise ValueError(f"all 2 components are fixed already, to {self.fixed!r}")
        return range(self.fixed[0] - 1 if self.fixed else self.lo, self.hi + 1)

    def traces(self, points: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], Concept]]:
        for concept in self._representatives(sorted_distinct(self._grid(points))):
            yield concept.labels(points), concept

    def levels(self, sample: Sample, carrier: Sequence[Any] = ()) -> TraceLevels:
        distinct, prefix, zeros, _ = self._weighted(sample, carrier)
        if self.fixed:
            start, ends = self._runs(distinct)
            return ArrayLevels(prefix[ends] - prefix[start] + zeros, lambda i: self._run(distinct, start, int(ends[i])))
        return PairLevels(
            prefix[1:],
            prefix[:-1],
            zeros,
            zeros,
            lambda first, last: Interval(int(distinct[first]), int(distinct[last])),
            self._empty(),
        )

    def best_levels(self, sample: Sample, carrier: Sequence[Any]) -> TraceLevels:
        """The dichotomies of the carrier, grouped by the best agreement with the sample among their extensions."""
        distinct, prefix, zeros, at = self._weighted(sample, carrier)
        if self.fixed:
            start, ends = self._runs(distinct)
            # An interval that ends before distinct[e] covers as many carrier points as lie in between.
            changes = np.flatnonzero(np.diff(np.searchsorted(at, ends)))
            best = [int(run[np.argmax(prefix[run])]) for run in np.split(ends, changes + 1)]
            return ArrayLevels(prefix[best] - prefix[start] + zeros, lambda i: self._run(distinct, start, best[i]))
        # Gap g holds the ends e with distinct[at[g-1]] < distinct[e] <= distinct[at[g]]: an interval may start there
        # when its first carrier point is at[g], or stop before there when its last one is at[g-1].
        gaps = np.split(np.arange(len(distinct) + 1), at + 1)
        low = [int(gap[np.argmin(prefix[gap])]) for gap in gaps[:-1]]
        high = [int(gap[np.argmax(prefix[gap])]) for gap in gaps[1:]]
        gain, empty = max(((0, self._empty()), *self._inside(gaps, prefix, distinct)), key=lambda found: found[0])
        return PairLevels(
            prefix[high],
            prefix[low],
            zeros,
            zeros + gain,
            lambda first, last: Interval(int(distinct[low[first]]), int(distinct[high[last] - 1])),
            empty,
        )

    def _empty(self) -> Interval:
        return Interval(self.lo, self.lo - 1)

    @staticmethod
    def _inside(
        gaps: list[NDArray[np.int64]], prefix: NDArray[np.int64], distinct: NDArray[Any]
    ) -> Iterator[tuple[int, Interval]]:
        """The best non-empty interval between two neighbouring carrier points, for each gap that has any."""
        for gap in gaps:
            if len(gap) > 1:
                least = np.minimum.accumulate(prefix[gap])
                end = 1 + int(np.argmax(prefix[gap][1:] - least[:-1]))
                start = int(np.argmin(prefix[gap][:end]))
                first, last = distinct[gap[start]], distinct[gap[end] - 1]
                yield int(prefix[gap[end]] - prefix[gap[start]]), Interval(int(first), int(last))

    def _weighted(
        self, sample: Sample, carrier: Sequence[Any]
    ) -> tuple[NDArray[Any], NDArray[np.int64], int, NDArray[np.int64]]:
        """The distinct points, the prefix sums of their gains, the number of labels 0, the carrier's positions."""
        points, labels = split_sample(sample)
        xs, ts, ys = self._grid(points), self._grid(carrier), np.array(labels, dtype=np.int64)
        distinct = sorted_distinct(np.concatenate([xs, ts]) if len(ts) else xs)
        prefix = np.zeros(len(distinct) + 1, dtype=np.int64)
        for label, sign in ((1, 1), (0, -1)):
            found = np.searchsorted(distinct, np.sort(xs[ys == label]))
            prefix[1:] += sign * np.bincount(found, minlength=len(distinct))
        at = np.searchsorted(distinct, sorted_distinct(ts)).astype(np.int64)
        return distinct, np.cumsum(prefix), int((ys == 0).sum()), at

    def _runs(self, distinct: NDArray[Any]) -> tuple[int, NDArray[np.int64]]:
        """With a fixed: the first point that can be covered, and the possible ends of the run of points covered."""
        start = int(np.searchsorted(distinct, self.fixed[0]))
        if len(self.fixed) == 2:
            return start, np.array([max(start, int(np.searchsorted(distinct, self.fixed[1], side="right")))])
        return start, np.arange(start, len(distinct) + 1)

    def _run(self, distinct: NDArray[Any], start: int, end: int) -> Interval:
        if len(self.fixed) == 2:
            return Interval(*self.fixed)
        return Interval(self.fixed[0], int(distinct[end - 1]) if end > start else self.fixed[0] - 1)

    def _representatives(self, distinct: NDArray[Any]) -> Iterator[Interval]:
        """One interval for each set that is cut out."""
        if self.fixed:
            start, ends = self._runs(distinct)
            yield from (self._run(distinct, start, end) for end in ends.tolist())
            return
        yield self._empty()
        for first in range(len(distinct)):
            for last in range(first, len(distinct)):
                yield Interval(int(distinct[first]), int(distinct[last]))

    def _grid(self, points: Sequence[Any]) -> NDArray[Any]:
        xs = integer_points(points)
        if len(xs) and not (self.lo <= xs.min() and xs.max() <= self.hi):
            outside = next(x for x in xs.tolist() if not self.lo <= x <= self.hi)
            raise ValueError(f"points must be in the grid {self.lo}..{self.hi}, got {outside!r}")
        return xs


class PairLevels:
    """Dichotomies indexed by pairs first <= last with score ``base + high[last] - low[first]``, and one more with a
    score of its own, grouped by score.
    """

    def __init__(
        self,
        high: NDArray[np.int64],
        low: NDArray[np.int64],
        base: int,
        single_score: int,
        concept: Callable[[int, int], Concept],
        single: Concept,
    ) -> None:
        self._high, self._low, self._base = high, low, base
        self._single_score, self._single, self._concept = single_score, single, concept
        counts = {base + difference: count for difference, count in _difference_counts(high, low).items()}
        counts[single_score] = counts.get(single_score, 0) + 1
        self.scores: list[int] = sorted(counts, reverse=True)
        self.counts: list[int] = [counts[score] for score in self.scores]
        # Positions of `low` by value and then place, as single numbers that a binary search finds.
        self._values, codes = np.unique(low, return_inverse=True)
        self._keys = np.sort(codes.astype(np.int64) * len(low) + np.arange(len(low)))
        self._runs: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def pick(self, level: int, index: int) -> Concept:
        if self.scores[level] == self._single_score:
            if index == 0:
                return self._single
            index -= 1
        if level not in self._runs:
            self._runs[level] = self._pairs_at(self.scores[level] - self._base)
        starts, ends = self._runs[level]
        last = int(np.searchsorted(ends, index, side="right"))
        within = index - (int(ends[last - 1]) if last else 0)
        return self._concept(int(self._keys[starts[last] + within]) % len(self._high), last)

    def _pairs_at(self, value: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each last, where its firsts start among the keys; and how many pairs there are up to this last."""
        wanted = self._high - value
        code = np.searchsorted(self._values, wanted)
        present = self._values[np.minimum(code, len(self._values) - 1)] == wanted
        starts = np.searchsorted(self._keys, code * len(self._high))
        stops = np.searchsorted(self._keys, code * len(self._high) + np.arange(len(self._high)), side="right")
        return starts, np.cumsum(np.where(present, stops - starts, 0))


def _difference_counts(high: NDArray[np.int64], low: NDArray[np.int64]) -> dict[int, int]:
    """How many pairs i <= j have each difference ``high[j] - low[i]``."""
    if len(high) == 0:
        return {}
    least = int(high.min() - low.max())
    counts = np.zeros(int(high.max() - low.min()) - least + 1, dtype=np.int64)

    def add(start: int, end: int) -> None:
        if end - start <= _BLOCK:
            differences = np.subtract.outer(high[start:end], low[start:end])[np.tril_indices(end - start)]
            floor = int(differences.min())
            found = np.bincount(differences - floor)
            counts[floor - least : floor - least + len(found)] += found
            return
        middle = (start + end) // 2
        add(start, middle)
        add(middle, end)
        left, right = low[start:middle], high[middle:end]
        top, bottom = int(left.max()), int(right.min())
        crossing = _convolution(np.bincount(top - left), np.bincount(right - bottom))
        offset = bottom - top - least
        counts[offset : offset + len(crossing)] += crossing

    add(0, len(high))
    kept = np.flatnonzero(counts)
    return dict(zip((kept + least).tolist(), counts[kept].tolist(), strict=True))


def _convolution(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(one) * len(other) <= _DIRECT:
        return np.convolve(one, other)
    product = (flint.fmpz_poly(one.tolist()) * flint.fmpz_poly(other.tolist())).coeffs()
    return np.array([int(value) for value in product], dtype=np.int64)
