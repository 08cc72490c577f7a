"""Functions on the ranks 0..N-1 of a huge ordered domain that are constant on few pieces.

This is how an objective Q(S, .) is handed to a private selection: N may have thousands of digits, the pieces are as
many as the data make them. The two protocols are for objectives that are dearer: `LevelOracle` for one that knows its
level sets, `PointOracle` for one that can only be evaluated.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from accounting import check_int
from mechanisms.concepts import Sample, split_sample

Interval = tuple[int, int]
"""First and last rank, both included."""


class PointOracle(Protocol):
    """A function on the ranks 0..N-1 that can be evaluated, and knows where it is largest."""

    def value(self, rank: int) -> int:
        """Q at `rank`."""
        ...

    def peak(self) -> int:
        """The least rank at which Q is largest."""
        ...


class LevelOracle(Protocol):
    """A quasi-concave function with values in 0..maximum, known by its level sets."""

    @property
    def maximum(self) -> int:
        """The largest value."""
        ...

    def level(self, value: int) -> Interval:
        """The ranks at which Q is at least `value`, for 1 <= value <= maximum: an interval, and not empty."""
        ...


@dataclass(frozen=True, slots=True)
class StepFunction:
    """An integer function on 0..domain_size-1, constant on pieces.

    starts: the first rank of each piece, ascending from 0. values: one for each piece.

    >>> hill = StepFunction.from_levels(10**30, [(5, 10**29), (7, 7)])
    >>> hill.maximum, hill.peak(), hill.value(6), hill.value(4)
    (2, 7, 1, 0)

    Raises:
        TypeError, ValueError: an empty domain, or pieces that do not cover it in order.
    """

    domain_size: int
    starts: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        check_int("domain_size", self.domain_size, lo=1)
        if not self.starts or len(self.starts) != len(self.values):
            raise ValueError(f"starts and values must be equally many and not empty, got {self.starts!r}")
        ordered = all(a < b for a, b in itertools.pairwise(self.starts))
        if not (ordered and self.starts[0] == 0 and self.starts[-1] < self.domain_size):
            raise ValueError(
                f"starts must ascend from 0 and stay below domain_size = {self.domain_size}, got {self.starts!r}"
            )
        for position, value in enumerate(self.values):
            if type(value) is not int:
                check_int(f"values[{position}]", value)

    @classmethod
    def from_values(cls, values: Sequence[int]) -> StepFunction:
        """The function with these values at 0, 1, ..."""
        return cls.from_pieces(len(values), enumerate(values))

    @classmethod
    def from_pieces(cls, domain_size: int, pieces: Iterable[tuple[int, int]]) -> StepFunction:
        """From pairs (first rank, value) in order; neighbouring pieces of equal value become one."""
        starts: list[int] = []
        values: list[int] = []
        for start, value in pieces:
            if not values or values[-1] != value:
                starts.append(start)
                values.append(value)
        return cls(domain_size, tuple(starts), tuple(values))

    @classmethod
    def from_changes(cls, domain_size: int, base: int, changes: Mapping[int, int]) -> StepFunction:
        """The function that is `base` before the first change and goes up by ``changes[p]`` at each rank p.

        Changes at or beyond domain_size, where nothing is left to change, are ignored.
        """
        kept = {0: 0} | {rank: changes[rank] for rank in sorted(changes) if rank < domain_size}
        return cls.from_pieces(
            domain_size, zip(kept, (base + total for total in itertools.accumulate(kept.values())), strict=True)
        )

    @classmethod
    def from_levels(cls, domain_size: int, levels: Iterable[Interval]) -> StepFunction:
        """The quasi-concave function that is at least s exactly on the s-th of `levels`, for s = 1, 2, ...

        Raises:
            ValueError: a level is empty, outside the domain, or not inside the one before it.
        """
        rising, falling = [(0, 0)], []
        outer = (0, check_int("domain_size", domain_size, lo=1) - 1)
        for value, level in enumerate(levels, start=1):
            lo, hi = level
            if not outer[0] <= lo <= hi <= outer[1]:
                raise ValueError(
                    f"level {value} must be an interval inside {outer!r}, the level below it, got {level!r}"
                )
            if lo > outer[0]:
                rising.append((lo, value))
            else:
                rising[-1] = (lo, value)
            if hi < outer[1]:
                falling.append((hi + 1, value - 1))
            outer = (lo, hi)
        return cls.from_pieces(domain_size, (*rising, *reversed(falling)))

    @property
    def maximum(self) -> int:
        """The largest value."""
        return max(self.values)

    def peak(self) -> int:
        """The least rank at which the function is largest."""
        return self.starts[self.values.index(self.maximum)]

    def value(self, rank: int) -> int:
        """The value at `rank`."""
        check_int("rank", rank, lo=0, hi=self.domain_size - 1)
        return self.values[bisect.bisect_right(self.starts, rank) - 1]

    def pieces(self) -> Iterator[tuple[int, int, int]]:
        """Each piece as (first rank, number of ranks, value)."""
        for start, end, value in zip(self.starts, (*self.starts[1:], self.domain_size), self.values, strict=True):
            yield start, end - start, value

    @property
    def is_quasi_concave(self) -> bool:
        """Whether every level set is an interval: the values rise, then fall."""
        top = self.values.index(self.maximum)
        rises = all(a <= b for a, b in itertools.pairwise(self.values[: top + 1]))
        return rises and all(a >= b for a, b in itertools.pairwise(self.values[top:]))

    def level(self, value: int) -> Interval:
        """The ranks at which the function is at least `value`.

        Raises:
            ValueError: there are none, or they are not an interval.
        """
        inside = [index for index, here in enumerate(self.values) if here >= value]
        if not inside:
            raise ValueError(f"value must be at most the maximum {self.maximum}, got {value!r}")
        first, last = inside[0], inside[-1]
        if len(inside) != last - first + 1:
            raise ValueError(f"the level set of {value} must be an interval: the function is not quasi-concave")
        end = self.starts[last + 1] if last + 1 < len(self.starts) else self.domain_size
        return self.starts[first], end - 1


def from_level_oracle(domain_size: int, oracle: LevelOracle) -> StepFunction:
    """The function that the oracle describes; its level sets are checked to be nested intervals."""
    return StepFunction.from_levels(domain_size, (oracle.level(s) for s in range(1, oracle.maximum + 1)))


def interior_depth(domain_size: int, points: Sequence[int]) -> StepFunction:
    """``min(#{i : x_i <= p}, #{i : x_i >= p})`` at each rank p; at least 1 exactly on [min, max].

    Both counts are at least s iff p lies between the s-th smallest and the s-th largest point, so these are the level
    sets, as long as the first is not the larger.

    Raises:
        TypeError, ValueError: a point is not a rank of the domain.
    """
    ordered = sorted_ranks(domain_size, points)
    levels = itertools.takewhile(lambda level: level[0] <= level[1], zip(ordered, reversed(ordered), strict=True))
    return StepFunction.from_levels(domain_size, levels)


def threshold_agreement(domain_size: int, sample: Sample) -> StepFunction:
    """How many records (x, y) of the sample the threshold ``t`` labels as given (1 iff ``x >= t``), for each t.

    This is the depth of a halfspace's last coordinate in one dimension, the smallest instance of Definition 8.1. It is
    quasi-concave with maximum len(sample) if some threshold labels all records as given; else it need not be.
    """
    points, labels = split_sample(sample)
    changes: defaultdict[int, int] = defaultdict(int)
    for position, (point, label) in enumerate(zip(points, labels, strict=True)):
        if type(point) is not int:
            point = check_int(f"points[{position}]", point)
        changes[max(0, point + 1)] += -1 if label else 1
    return StepFunction.from_changes(domain_size, sum(labels), changes)


def sorted_ranks(domain_size: int, points: Sequence[int]) -> list[int]:
    """The points in order, each checked to be a rank of a domain of this size."""
    last = check_int("domain_size", domain_size, lo=1) - 1
    for position, point in enumerate(points):
        if type(point) is not int or not 0 <= point <= last:
            check_int(f"dataset[{position}]", point, lo=0, hi=last)
    return sorted(int(point) for point in points)
