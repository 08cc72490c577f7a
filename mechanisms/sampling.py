"""Exact random draws: integers, orders, and levels with weights in powers of a rational. No floating point anywhere.

Every function takes `rng`: None draws from the operating system's entropy (what a release should use); a numpy
Generator draws from it, for replay. Bits are the only thing ever taken from either, so the laws below hold exactly
when the bits are fair.
"""

from __future__ import annotations

import bisect
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accounting import check_int

_WORD_BITS = 62  # a word and the word after it both fit a signed 64-bit integer
_GUARD_BITS = 64


def check_rng(rng: object) -> np.random.Generator | None:
    """`rng` itself, if it is a numpy Generator or None (system entropy); anything else is a TypeError."""
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    raise TypeError(f"rng must be a numpy.random.Generator, or None for system entropy, got {rng!r}")


def _entropy(count: int, rng: np.random.Generator | None) -> bytes:
    return secrets.token_bytes(count) if rng is None else rng.bytes(count)


def _bits(count: int, rng: np.random.Generator | None) -> int:
    """A uniform integer of `count` bits."""
    return int.from_bytes(_entropy((count + 7) // 8, rng), "little") & ((1 << count) - 1)


def _words(count: int, bits: int, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """`count` independent uniform integers below ``2**bits``, bits at most 63."""
    raw = np.frombuffer(_entropy(8 * count, rng), dtype=np.uint64)
    return (raw >> np.uint64(64 - bits)).astype(np.int64)


def uniform_below(bound: int, rng: np.random.Generator | None) -> int:
    """A uniform integer in [0, bound), by rejection; bound may have any number of digits."""
    check_int("bound", bound, lo=1)
    bits = (bound - 1).bit_length()
    while True:
        candidate = _bits(bits, rng)
        if candidate < bound:
            return candidate


def uniform_many(bound: int, size: int, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """`size` independent uniform integers in [0, bound), bound at most 2**63."""
    check_int("bound", bound, lo=1, hi=1 << 63)
    kept = np.empty(0, dtype=np.int64)
    bits = (bound - 1).bit_length()
    if bits == 0:
        return np.zeros(size, dtype=np.int64)
    while len(kept) < size:
        words = _words(size - len(kept), bits, rng)
        kept = np.concatenate([kept, words[words <= bound - 1]])
    return kept


def random_order(size: int, count: int, rng: np.random.Generator | None) -> tuple[int, ...]:
    """A uniform ordered selection of `count` of the indices 0..size-1, without replacement."""
    check_int("size", size, lo=0)
    check_int("count", count, lo=0, hi=size)
    check_rng(rng)
    if rng is None:
        return tuple(secrets.SystemRandom().sample(range(size), count))
    # Generator.permutation is a Fisher-Yates shuffle whose bounded integers are drawn by rejection: exactly uniform.
    return tuple(rng.permutation(size)[:count].tolist())


def draw_index(weights: Sequence[int], rng: np.random.Generator | None) -> int:
    """Index i with probability ``weights[i] / sum(weights)``, exactly.

    weights: non-negative integers of any size, not all zero.

    Raises:
        TypeError, ValueError: a weight is not a non-negative integer, or all are zero.
    """
    check_rng(rng)
    cumulative: list[int] = []
    total = 0
    for position, weight in enumerate(weights):
        total += check_int(f"weights[{position}]", weight, lo=0)
        cumulative.append(total)
    if total == 0:
        raise ValueError(f"weights must not all be zero, got {list(weights)!r}")
    return bisect.bisect_right(cumulative, uniform_below(total, rng))


@dataclass(frozen=True)
class _Table:
    """Bounds on the boundaries between levels, as fractions of the total weight, at one working precision.

    Boundary j, the share of levels 0..j, lies in ``[low[j] / low_total[j], high[j] / high_total[j]]``. The boundaries
    stop at the level from which the weights are too small for this precision.
    """

    low: list[int]
    low_total: list[int]
    high: list[int]
    high_total: list[int]

    def boundaries_passed(self, word: int, digits: int) -> int:
        """How many boundaries every u in ``[word, word + 1) / 2**digits`` has reached for sure."""
        boundaries = range(len(self.high))
        return bisect.bisect_left(boundaries, True, key=lambda j: word * self.high_total[j] < self.high[j] << digits)

    def is_below(self, word: int, digits: int, boundary: int) -> bool:
        """Whether every u in ``[word, word + 1) / 2**digits`` is below the boundary for sure."""
        return (word + 1) * self.low_total[boundary] <= self.low[boundary] << digits


class PowerSampler:
    """Draws level j with probability proportional to ``counts[j] * base**exponents[j]``, exactly.

    exponents: integers, strictly decreasing. counts: positive integers, one for each. base: a rational, at least 1.

    The weights themselves can have millions of digits, so they are never written out. A draw is a uniform real number
    u of which as many binary digits are drawn as it takes to see between which two boundaries (shares of the levels
    up to j) it falls; the boundaries are known to within integer bounds that are tightened when u lies too close to
    one. Both bounds hold at every precision, so the level found is the level of the infinite-precision draw: the law
    is exact.

    word_bits: digits of u drawn at first; only tests change it.
    """

    def __init__(
        self, exponents: Sequence[int], counts: Sequence[int], base: Fraction, *, word_bits: int = _WORD_BITS
    ) -> None:
        if not exponents or len(exponents) != len(counts):
            raise ValueError(
                f"exponents and counts must be equally many and not empty, got {len(exponents)} and {len(counts)}"
            )
        if base < 1:
            raise ValueError(f"base must be at least 1, got {base!r}")
        self._exponents, self._counts = exponents, counts
        self._shrink = 1 / base
        self._word_bits = check_int("word_bits", word_bits, lo=1, hi=_WORD_BITS)
        self._total_count = sum(counts)
        precision = word_bits + _GUARD_BITS + self._total_count.bit_length()
        self._tables: dict[int, _Table] = {}
        self._first_precision = precision
        table = self._table(precision)
        scale = 1 << word_bits
        # A word k stands for u in [k, k+1) / scale: below boundary j for sure if k < surely_below[j], above it if k
        # >= surely_above[j].
        self._surely_below = np.array(
            [low * scale // total for low, total in zip(table.low, table.low_total, strict=True)], dtype=np.int64
        )
        self._surely_above = np.array(
            [-(-high * scale // total) for high, total in zip(table.high, table.high_total, strict=True)],
            dtype=np.int64,
        )

    def draw(self, rng: np.random.Generator | None) -> int:
        """One level, as its position."""
        return int(self.draw_many(1, rng)[0])

    def draw_many(self, size: int, rng: np.random.Generator | None) -> NDArray[np.int64]:
        """`size` independent levels, as positions."""
        check_rng(rng)
        words = _words(check_int("size", size, lo=0), self._word_bits, rng)
        levels, settled = self._locate_words(words)
        for position in np.flatnonzero(~settled).tolist():
            levels[position] = self._resolve(int(words[position]), rng)
        return levels

    def _locate_words(self, words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The level of each word and whether it is settled by that word alone."""
        boundaries = len(self._surely_above)
        levels = np.searchsorted(self._surely_above, words, side="right").astype(np.int64)
        settled = levels == len(self._counts) - 1
        inner = levels < boundaries
        settled[inner] = words[inner] < self._surely_below[levels[inner]]
        return levels, settled

    def _resolve(self, word: int, rng: np.random.Generator | None) -> int:
        """The level of a u that starts with `word`, drawing further digits until it is settled."""
        digits, precision = self._word_bits, self._first_precision
        while True:
            word = (word << _GUARD_BITS) | _bits(_GUARD_BITS, rng)
            digits += _GUARD_BITS
            precision *= 2
            table = self._table(precision)
            level = table.boundaries_passed(word, digits)
            if level == len(self._counts) - 1:
                return level
            if level < len(table.low) and table.is_below(word, digits, level):
                return level

    def _table(self, precision: int) -> _Table:
        if precision in self._tables:
            return self._tables[precision]
        low, high = [], []  # cumulative bounds, in units of 2**-precision of the first level's power
        power_low = power_high = 1 << precision
        sum_low = sum_high = seen = 0
        steps: dict[int, tuple[int, int]] = {}
        for j, count in enumerate(self._counts):
            if j:
                gap = self._exponents[j - 1] - self._exponents[j]
                if gap not in steps:
                    steps[gap] = _power_bounds(self._shrink, gap, precision)
                step_low, step_high = steps[gap]
                power_low = power_low * step_low >> precision
                power_high = -(-power_high * step_high >> precision)
            if power_low == 0:
                break
            sum_low += count * power_low
            sum_high += count * power_high
            seen += count
            low.append(sum_low)
            high.append(sum_high)
        total_low = sum_low
        total_high = sum_high + (self._total_count - seen) * power_high
        boundaries = min(len(low), len(self._counts) - 1)
        low, high = low[:boundaries], high[:boundaries]
        table = _Table(
            low=low,
            low_total=[lo + total_high - hi for lo, hi in zip(low, high, strict=True)],
            high=high,
            high_total=[hi + total_low - lo for lo, hi in zip(low, high, strict=True)],
        )
        self._tables[precision] = table
        return table


def draw_indices(weights: Sequence[int], size: int, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """`size` independent draws of `draw_index`, exactly and fast, however large the weights."""
    kept = [position for position, weight in enumerate(weights) if check_int(f"weights[{position}]", weight, lo=0)]
    if not kept:
        raise ValueError(f"weights must not all be zero, got {list(weights)!r}")
    sampler = PowerSampler(range(len(kept), 0, -1), [weights[position] for position in kept], Fraction(1))
    return np.array(kept, dtype=np.int64)[sampler.draw_many(size, rng)]


def _power_bounds(base: Fraction, exponent: int, precision: int) -> tuple[int, int]:
    """Integers ``lo <= base**exponent * 2**precision <= hi``, base in [0, 1]: repeated squaring, rounded outwards."""
    low = high = 1 << precision
    square_low = (base.numerator << precision) // base.denominator
    square_high = -((-base.numerator << precision) // base.denominator)
    while exponent:
        if exponent & 1:
            low = low * square_low >> precision
            high = -(-high * square_high >> precision)
        square_low = square_low * square_low >> precision
        square_high = -(-square_high * square_high >> precision)
        exponent >>= 1
    return low, high
