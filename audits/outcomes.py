"""Outcomes sorted into few categories, by maps that are learned on the past only.

A sequential test bets on categories. A map from outcomes to categories may be anything as long as it is fixed before
the outcomes it is applied to are drawn, so a view learns only from the batches before. Three views:

- `CellView`: a category for every outcome seen before (strings, tuples, small integers, ...), in no order;
- `OrdinalView` (`audits.scores`): real numbers in order, cut at quantiles of the past;
- `ScoreView` (`audits.scores`): vectors of numbers by the sum over coordinates of estimated log-likelihood ratios, the
  sums again in order and cut at quantiles.

In each, category 0 is for what the view has no category for. Two outcomes are the same when they are equal as Python
values: True is 1 is 1.0, and -0.0 is 0.0 (tell them apart in the mechanism if that is what you audit). Every NaN is
one outcome.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from audits.canonical import NAN, canonical_batch
from audits.rendering import readable

Array: TypeAlias = npt.NDArray[np.float64]

CELL_LIMIT = 512
"""Categories of a `CellView`; what comes later stays in category 0."""
_FREE_CELLS = 16
"""So many first outcomes become categories at once; a later one when it is seen a second time."""
_FEW_CELLS = 8
_CANDIDATE_LIMIT = 4096
_DENSE_RANGE = 1 << 16
_SHOWN_OUTCOMES = 8


@dataclass(frozen=True)
class Batch:
    """Outcomes of one side of a batch, in canonical form (`audits.canonical`).

    values: a one-dimensional array of bools, integers, floats or texts; a two-dimensional array of numbers whose rows
        are the outcomes; or a list of hashable values.
    """

    values: npt.NDArray[Any] | list[Hashable]

    @classmethod
    def of(cls, outcomes: Any) -> Batch:
        """From what a mechanism returned: a sequence or array of outcomes along the first axis.

        Raises:
            audits.canonical.UncountableError: an outcome cannot be compared by value.
        """
        if isinstance(outcomes, np.ndarray) and outcomes.dtype.kind in "biuf" and outcomes.ndim in (1, 2):
            return cls(outcomes[:, 0] if outcomes.ndim == 2 and outcomes.shape[1] == 1 else outcomes)
        return cls(canonical_batch(outcomes))

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def numbers(self) -> Array | None:
        """The outcomes as floats, NaN for what is not a real number; None when none of them is a real number."""
        if isinstance(self.values, np.ndarray):
            return self.values.astype(float) if self.values.ndim == 1 and self.values.dtype.kind in "biuf" else None
        if not any(isinstance(value, numbers.Real) for value in self.values):
            return None
        return np.array([_as_float(value) for value in self.values])

    @cached_property
    def vectors(self) -> Array | None:
        """The outcomes as rows of floats, when each is a tuple of real numbers of one length, at least 2."""
        if isinstance(self.values, np.ndarray):
            return self.values.astype(float) if self.values.ndim == 2 else None
        if not self.values or not isinstance(self.values[0], tuple) or len(self.values[0]) < 2:
            return None
        rows: list[list[float]] = []
        for value in self.values:
            if not isinstance(value, tuple) or len(value) != len(self.values[0]):
                return None
            if not all(isinstance(item, numbers.Real) for item in value):
                return None
            rows.append([_as_float(item) for item in value])
        return np.array(rows)

    def head(self, size: int) -> Batch:
        """The first outcomes."""
        return self if len(self) <= size else Batch(self.values[:size])

    @cached_property
    def tally(self) -> Counter[Hashable]:
        """How often each outcome occurs."""
        values = self.values
        if not isinstance(values, np.ndarray):
            return Counter(values)
        if values.ndim == 2:
            _, places, counts = np.unique(_row_keys(values), return_index=True, return_counts=True)
            tally: Counter[Hashable] = Counter()
            for row, seen in zip(map(tuple, values[places].tolist()), counts.tolist(), strict=True):
                tally[_one_nan_each(row)] += seen
            return tally
        if values.dtype.kind == "b":
            ones = int(np.count_nonzero(values))
            return Counter({key: seen for key, seen in ((False, len(values) - ones), (True, ones)) if seen})
        if values.dtype.kind in "iu" and len(values):
            low, span, offsets = _offsets(values)
            if span < _DENSE_RANGE:
                dense = np.bincount(offsets)
                return Counter({low + int(place): int(dense[place]) for place in np.flatnonzero(dense)})
        keys, counts = np.unique(values, return_counts=True)
        return Counter(dict(zip(map(_one_nan, keys.tolist()), counts.tolist(), strict=True)))


def _offsets(values: npt.NDArray[Any]) -> tuple[int, int, npt.NDArray[np.int64]]:
    """Smallest value, largest minus smallest, and values minus smallest (which wrap around if they exceed 64 bits)."""
    whole = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    low, high = int(whole.min()), int(whole.max())
    return low, high - low, (whole - whole.min()).astype(np.int64)


def _row_keys(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One comparable key for each row: the same for rows of the same bits, different for rows of different numbers."""
    if rows.dtype.kind in "biu" and rows.size:
        columns = [_offsets(column) for column in rows.T]
        if math.prod(span + 1 for _, span, _ in columns) < 1 << 62:
            keys = np.zeros(len(rows), dtype=np.int64)
            for _, span, offsets in columns:
                keys = keys * (span + 1) + offsets
            return keys
    packed = np.ascontiguousarray(rows)
    return packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))).ravel()


def _as_float(value: object) -> float:
    if not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value == abs(value) else -math.inf


def _one_nan(value: Hashable) -> Hashable:
    return NAN if value != value else value


def _one_nan_each(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_one_nan, row)) if any(item != item for item in row) else row


@dataclass(frozen=True, slots=True)
class Cuts:
    """Candidate events "rank of the category >= threshold", with their past counts.

    rank: shape (K,). threshold: shape (J,), J >= 1. x, y: shape (J,): past outcomes of M(D) and M(D') in each event.
    """

    rank: Array
    threshold: Array
    x: Array
    y: Array


class View(Protocol):
    """A map from outcomes to categories 0, ..., K - 1, with the past counts of both sides under the present map."""

    @property
    def ordered(self) -> bool:
        """Whether the order of the categories 1, 2, ... means something."""
        ...

    @property
    def x(self) -> Array:
        """How often each category occurred on M(D) in the past, shape (K,)."""
        ...

    @property
    def y(self) -> Array:
        """How often each category occurred on M(D') in the past, shape (K,)."""
        ...

    def count(self, batch: Batch) -> Array:
        """How often each category occurs in `batch` under the present map."""
        ...

    def learn(self, first: Batch, second: Batch, counts: tuple[Array, Array]) -> None:
        """Take a settled batch (and its counts under the present map) into the past; the map may change."""
        ...

    def cuts(self) -> Cuts:
        """The events worth a look, counted such that choosing among them by the counts flatters little."""
        ...

    def describe(self, members: npt.NDArray[np.bool_]) -> tuple[str, tuple[Any, ...] | None]:
        """The event "the category is one of `members`" in words, and its outcomes where they are listed."""
        ...


class CellView:
    """A category of its own for each outcome that was seen before, up to `CELL_LIMIT`; the rest is category 0.

    An outcome becomes a category after the batch that brings it, with the counts it has so far. Of a large batch only
    the first `_CANDIDATE_LIMIT` outcomes are searched for new ones.
    """

    ordered = False

    def __init__(self) -> None:
        self._index: dict[Hashable, int] = {}
        self._candidates: dict[Hashable, Array] = {}
        # Past counts by half of the batches (odd, even), by side and by category.
        self.halves = np.zeros((2, 2, 1))
        self._batches = 0

    @property
    def x(self) -> Array:
        return np.asarray(self.halves[:, 0].sum(axis=0))

    @property
    def y(self) -> Array:
        return np.asarray(self.halves[:, 1].sum(axis=0))

    @property
    def repeated(self) -> bool:
        """Whether any outcome was seen twice."""
        return bool(np.any(self.x[1:] + self.y[1:] > 1.0))

    @property
    def distinct(self) -> int:
        """Outcomes known, as categories or as candidates."""
        return len(self._index) + len(self._candidates)

    def count(self, batch: Batch) -> Array:
        values = batch.values
        if isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.ndim == 1:
            return self._count_floats(values)
        counts = np.zeros(self.halves.shape[-1])
        for key, number in batch.tally.items():
            counts[self._index.get(key, 0)] += number
        return counts

    def _count_floats(self, values: npt.NDArray[Any]) -> Array:
        """As `count`, without a Python step for each distinct value."""
        known = sorted((float(key), i) for key, i in self._index.items() if isinstance(key, int | float) and key == key)
        counts = np.zeros(self.halves.shape[-1])
        if known:
            keys, index = np.array([key for key, _ in known]), np.array([i for _, i in known])
            place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
            counts += np.bincount(index[place[keys[place] == values]], minlength=len(counts))
        counts[self._index.get(NAN, 0)] += np.count_nonzero(np.isnan(values))
        counts[0] += len(values) - counts.sum()
        return counts

    def learn(self, first: Batch, second: Batch, counts: tuple[Array, Array]) -> None:
        half = self._batches % 2
        self._batches += 1
        self.halves[half] += counts
        if len(self._index) >= CELL_LIMIT:
            return
        for side, batch in enumerate((first, second)):
            for key, number in batch.head(_CANDIDATE_LIMIT).tally.items():
                if key not in self._index and (key in self._candidates or len(self._candidates) < _CANDIDATE_LIMIT):
                    self._candidates.setdefault(key, np.zeros((2, 2)))[half, side] += number
        fresh = []
        for key, seen in self._candidates.items():
            if len(self._index) >= CELL_LIMIT:
                break
            if len(self._index) < _FREE_CELLS or seen.sum() > 1.0:
                self._index[key] = len(self._index) + 1
                fresh.append(key)
        if fresh:
            seen = np.stack([self._candidates.pop(key) for key in fresh], axis=-1)
            self.halves = np.concatenate([self.halves, seen], axis=-1)
            self.halves[:, :, 0] -= seen.sum(axis=-1)
        if len(self._candidates) >= _CANDIDATE_LIMIT:
            self._candidates.clear()

    def cuts(self) -> Cuts:
        """Events "estimated likelihood ratio above a threshold".

        The outcomes of one half of the batches are counted in the event if the other half ranks their category high
        enough, so no outcome is evidence for an event that it helped to choose. Among few categories there is little to
        choose, and all outcomes are counted.
        """
        x, y = self.x, self.y
        if len(x) <= _FEW_CELLS:
            rank = _ratio(x, y)
            threshold = np.unique(rank)
            return Cuts(rank, threshold, _at_least(rank, x, threshold), _at_least(rank, y, threshold))
        (odd_x, odd_y), (even_x, even_y) = self.halves
        by_odd, by_even = _ratio(odd_x, odd_y), _ratio(even_x, even_y)
        threshold = np.unique(np.concatenate([by_odd, by_even]))
        return Cuts(
            _ratio(x, y),
            threshold,
            _at_least(by_odd, even_x, threshold) + _at_least(by_even, odd_x, threshold),
            _at_least(by_odd, even_y, threshold) + _at_least(by_even, odd_y, threshold),
        )

    def describe(self, members: npt.NDArray[np.bool_]) -> tuple[str, tuple[Any, ...] | None]:
        listed = tuple(key for key, index in self._index.items() if members[index])
        if members[0] and self.halves[:, :, 0].any():
            others = [key for key, index in self._index.items() if not members[index]]
            return f"outcome not in {_listing(others)}", None
        return f"outcome in {_listing(listed)}", listed


def _listing(outcomes: Sequence[Hashable]) -> str:
    shown = ", ".join(readable(outcome, limit=80) for outcome in outcomes[:_SHOWN_OUTCOMES])
    more = len(outcomes) - _SHOWN_OUTCOMES
    return f"{{{shown}, and {more} more}}" if more > 0 else f"{{{shown}}}"


def _ratio(x: Array, y: Array) -> Array:
    return (x + 1.0) / (x + y + 2.0)


def from_top(counts: Array) -> Array:
    """Sums of `counts` from each place to the end."""
    return np.asarray(np.cumsum(counts[::-1])[::-1])


def _at_least(rank: Array, weight: Array, threshold: Array) -> Array:
    """Total weight of the ranks >= each threshold."""
    order = np.argsort(rank)
    above = np.append(from_top(weight[order]), 0.0)
    return np.asarray(above[np.searchsorted(rank[order], threshold, side="left")])
