"""Counts and histograms as users write them, in plain numpy: correct ones, and ones with a common mistake.

``claims.toml`` states claims that hold, ``broken.toml`` claims that do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt


def discrete_laplace(scale: float, size: int | tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Integers with probability proportional to exp(-|x| / scale): the difference of two geometric variables."""
    p = 1 - math.exp(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def noisy_count(dataset: Sequence[int], *, rng: np.random.Generator, scale: float) -> int:
    """How many records are 1, plus noise: 1/scale-DP."""
    return int(sum(dataset) + discrete_laplace(scale, 1, rng)[0])


def noisy_count_many(
    dataset: Sequence[int], size: int, *, rng: np.random.Generator, scale: float
) -> npt.NDArray[np.int64]:
    """Many outputs of `noisy_count` at once."""
    return sum(dataset) + discrete_laplace(scale, size, rng)


noisy_count.release_many = noisy_count_many  # type: ignore[attr-defined]
noisy_count.ignores_order = True  # type: ignore[attr-defined]


def plain_count(dataset: Sequence[int]) -> int:
    """A count that takes no generator, as much code does: it can be audited, but not replayed."""
    rng = np.random.default_rng()
    return int(sum(dataset) + discrete_laplace(1.0, 1, rng)[0])


class ClampedCount:
    """A noisy count clamped to [0, top], which knows its own distribution and so is checked exactly.

    ratio: of the probabilities of neighbouring integers. Being a fraction at least exp(-epsilon), it makes the count
    epsilon-DP with nothing rounded: 3/8 > exp(-1) = 0.3679.
    """

    ignores_order = True

    def __init__(self, ratio: str, top: int) -> None:
        self.ratio, self.top = Fraction(ratio), top

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator | None) -> int:
        noise = discrete_laplace(-1 / math.log(self.ratio), 1, rng or np.random.default_rng())
        return int(np.clip(sum(dataset) + noise[0], 0, self.top))

    def distribution(self, dataset: Sequence[int]) -> Mapping[int, Fraction]:
        count, r = sum(dataset), self.ratio
        inside = {x: (1 - r) / (1 + r) * r ** abs(x - count) for x in range(1, self.top)}
        below, above = r**count / (1 + r), r ** (self.top - count) / (1 + r)
        return {0: below, **inside, self.top: above}


class NoisyHistogram:
    """The number of records in each bin, plus independent noise: 1/scale-DP when one record is added or removed."""

    ignores_order = True

    def __init__(self, bins: Sequence[Any], scale: float) -> None:
        self.bins, self.scale = tuple(bins), scale

    def release(self, dataset: Sequence[Any], *, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        return self.release_many(dataset, 1, rng=rng)[0]  # type: ignore[no-any-return]

    def release_many(self, dataset: Sequence[Any], size: int, *, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        counts = np.array([list(dataset).count(label) for label in self.bins])
        return counts + discrete_laplace(self.scale, (size, len(self.bins)), rng)


def histogram_of_labels_present(dataset: Sequence[str], *, rng: np.random.Generator, scale: float) -> dict[str, int]:
    """Broken: a noisy count for each label that occurs, so the set of labels is published as it is."""
    return {label: list(dataset).count(label) + int(discrete_laplace(scale, 1, rng)[0]) for label in sorted({*dataset})}


def one_sided_count(dataset: Sequence[int], *, rng: np.random.Generator, scale: float) -> int:
    """Broken: noise that is never negative, so a small output rules out a large count."""
    return int(sum(dataset) + rng.geometric(1 - math.exp(-1 / scale)))


def average(dataset: Sequence[int], *, rng: np.random.Generator, scale: float) -> float:
    """Broken: an average with noise scaled to the dataset's own size, which is private when records come and go."""
    n = max(len(dataset), 1)
    return round(float((sum(dataset) + discrete_laplace(scale, 1, rng)[0]) / n), 6)
