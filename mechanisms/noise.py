"""Two classics with exact rational laws: randomized response and the geometric mechanism on a bounded count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from accounting import Claim, Relation, Trust, check_fraction, check_int
from mechanisms.base import Dataset, is_hashable
from mechanisms.exponential import log_width_up, rational_base
from mechanisms.sampling import check_rng, draw_indices


class RandomizedResponse:
    """Each record is kept or replaced at random (k-ary randomized response, Warner 1965 for k = 2).

    values: the k possible records, public. epsilon: in nats. Output: a tuple, one value for each record: the record
    itself with probability ``r/(r + k - 1)``, each other value with probability ``1/(r + k - 1)``, r the largest
    rational of its precision with ``r <= e**epsilon``.

    Guarantee, for one replaced record: ``ln r``-DP, attained. The order of the records shows in the output.

    Raises:
        TypeError, ValueError: fewer than two values, one twice or unhashable; a record that is none of them.
    """

    ignores_order = False

    def __init__(self, values: Sequence[Any], epsilon: float | Fraction) -> None:
        self.values = tuple(values)
        for value in self.values:
            if not is_hashable(value):
                raise TypeError(f"values must be hashable, got {value!r}")
        self._position = {value: position for position, value in enumerate(self.values)}
        if len(self._position) != len(self.values) or len(self.values) < 2:
            raise ValueError(f"values must be distinct and at least two, got {self.values!r}")
        self.epsilon = check_fraction("epsilon", epsilon)
        self.ratio = rational_base(2 * self.epsilon)

    @property
    def claim(self) -> Claim:
        """``ln r``, rounded up."""
        return Claim.pure(
            log_width_up(self.ratio),
            relation=Relation.REPLACE_ONE,
            source="Warner (1965); Kairouz, Oh and Viswanath (2014), Section 2",
            trust=Trust.EXACT,
        )

    def distribution(self, dataset: Dataset) -> Mapping[tuple[Any, ...], Fraction]:
        """The exact law of all records together."""
        rows = [self._row(record) for record in dataset]
        return {
            outcome: math.prod((row[i] for row, i in zip(rows, indices, strict=True)), start=Fraction(1))
            for indices in itertools.product(range(len(self.values)), repeat=len(rows))
            for outcome in [tuple(self.values[i] for i in indices)]
        }

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> tuple[Any, ...]:
        """One noisy copy of the dataset."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[tuple[Any, ...]]:
        """`size` independent noisy copies."""
        check_rng(rng)
        check_int("size", size, lo=0)
        columns = []
        for record in dataset:
            weights = [self.ratio.denominator] * len(self.values)
            weights[self._index(record)] = self.ratio.numerator
            columns.append([self.values[i] for i in draw_indices(weights, size, rng).tolist()])
        return list(zip(*columns, strict=True)) if columns else [()] * size

    def _row(self, record: Any) -> list[Fraction]:
        total = self.ratio + len(self.values) - 1
        row = [1 / total] * len(self.values)
        row[self._index(record)] = self.ratio / total
        return row

    def _index(self, record: Any) -> int:
        if record not in self._position:
            raise ValueError(f"records must be one of {self.values!r}, got {record!r}")
        return self._position[record]


class BoundedGeometricCount:
    """A count with two-sided geometric noise, clamped to 0..maximum (Ghosh, Roughgarden, Sundararajan 2009).

    counted: which records count. epsilon: in nats. maximum: the largest output. Output: an integer in 0..maximum.
    Noise z has probability ``(r-1)/(r+1) * r**-|z|``, r the largest rational of its precision with ``r <=
    e**epsilon``; a count beyond `maximum` is clamped before the noise, the sum after it.

    Guarantee, for one record added or removed: ``ln r``-DP, attained: clamping is post-processing.

    Raises:
        TypeError, ValueError: epsilon is not positive, or maximum is below 1.
    """

    ignores_order = True

    def __init__(self, counted: Callable[[Any], bool], epsilon: float | Fraction, *, maximum: int) -> None:
        if not callable(counted):
            raise TypeError(f"counted must be a function of a record, got {counted!r}")
        self.counted = counted
        self.epsilon = check_fraction("epsilon", epsilon)
        if self.epsilon == 0:
            raise ValueError(f"epsilon must be positive, got {epsilon!r}: the noise has no distribution at 0")
        self.maximum = check_int("maximum", maximum, lo=1)
        self.ratio = rational_base(2 * self.epsilon)

    @property
    def claim(self) -> Claim:
        """``ln r``, rounded up."""
        return Claim.pure(
            log_width_up(self.ratio),
            relation=Relation.ADD_OR_REMOVE_ONE,
            source="Ghosh, Roughgarden and Sundararajan (2009), Section 2",
            trust=Trust.EXACT,
        )

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law."""
        weights = self._weights(dataset)
        total = sum(weights)
        return {outcome: Fraction(weight, total) for outcome, weight in enumerate(weights)}

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One noisy count."""
        return int(self.release_many(dataset, 1, rng=rng)[0])

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> np.ndarray[Any, Any]:
        """`size` independent noisy counts, as an integer array."""
        check_rng(rng)
        return draw_indices(self._weights(dataset), check_int("size", size, lo=0), rng)

    def _weights(self, dataset: Dataset) -> list[int]:
        """Integers proportional to the law: inside ``(r-1) r**-|z|``, at each end the tail ``r * r**-|z|``."""
        count = min(sum(bool(self.counted(record)) for record in dataset), self.maximum)
        up, down = self.ratio.numerator, self.ratio.denominator
        weights = []
        for outcome in range(self.maximum + 1):
            away = abs(outcome - count)
            factor = up if outcome in (0, self.maximum) else up - down
            weights.append(factor * down**away * up ** (self.maximum - away))
        return weights
