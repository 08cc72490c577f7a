"""Products of tilted discrete Fourier transforms with a bound on their rounding, and the curves read off them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import fft, signal

from accounting.pairs import Array, Lattice

UNIT = 2.0**-53


@dataclass(frozen=True)
class Curve:
    """Upper bounds of delta on a lattice of epsilons; linear in e^epsilon between nodes, as the true curve of the
    lattice pair is.
    """

    step: float
    first: int
    deltas: Array = field(repr=False)
    slack: Array = field(repr=False)
    """What was added to each node for rounding in the transforms and for the mass past the window."""

    def precise(self, epsilon: float) -> bool:
        """Whether that is below 1e-6 of delta at this epsilon, so that no other tilt is worth a transform."""
        i = math.floor(epsilon / self.step) - self.first
        return 0 <= i < len(self.deltas) and bool(self.slack[i] <= 1e-6 * self.deltas[i])

    def delta(self, epsilon: float) -> float:
        x = epsilon / self.step - self.first
        if x < 0:
            return 1.0
        i = min(math.floor(x), len(self.deltas) - 1)
        if i + 1 >= len(self.deltas):
            return float(self.deltas[-1])
        # (e^{(x - i) step} - 1) / (e^step - 1), also for steps whose exponential overflows.
        h = self.step
        share = math.expm1(-(x - i) * h) / math.expm1(-h) * math.exp((x - i - 1) * h)
        low, high = float(self.deltas[i]), float(self.deltas[i + 1])
        # The exponents are off by a few roundings of epsilon.
        return (low + (high - low) * min(max(share, 0.0), 1.0)) * (1 + 1e-15 * (1 + abs(epsilon)))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon on the curve with bound at most delta; inf when the curve never gets there."""
        under = np.flatnonzero(self.deltas <= delta)
        if not len(under):
            return math.inf
        i = int(under[0])
        if i == 0:
            return self.step * self.first
        high, low = float(self.deltas[i - 1]), float(self.deltas[i])
        share = (high - delta) / (high - low)
        inside = 1 + math.log(max(math.exp(-self.step) - share * math.expm1(-self.step), 5e-324)) / self.step
        return self.step * (self.first + i - 1 + min(max(inside, 0.0), 1.0)) * (1 + 1e-14) + 1e-300


def tilted_product(
    lattices: Sequence[Lattice], counts: Sequence[int], t: float, first: int, size: int
) -> tuple[Array, float]:
    """Masses of the tilted composition at nodes first .. first + size - 1 (others wrap round into them), and a bound on
    the 2-norm of their rounding error.

    A transform of a vector with 1-norm 1 has each coefficient within ``e = 8 u log2(size)`` of the truth (depth of the
    butterfly times the rounding of one complex multiplication and addition); powers and products follow by the triangle
    inequality.
    """
    unit = 8 * UNIT * math.log2(size)
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    log_bound = np.zeros(size // 2 + 1)
    relative = np.zeros(size // 2 + 1)
    for lattice, count in zip(lattices, counts, strict=True):
        with np.errstate(divide="ignore"):
            weights = np.log(lattice.masses) + t * lattice.losses
        weights -= weights.max()
        tilted = np.exp(weights)
        tilted /= tilted.sum()
        spectrum = fft.rfft(np.bincount(lattice.nodes % size, tilted, minlength=size))
        size_of = np.abs(spectrum) + unit
        log_bound += count * np.log(size_of)
        relative += count * (unit / size_of + 8 * UNIT)
        product *= spectrum if count == 1 else spectrum**count
    bound = np.exp(np.minimum(log_bound, 1.0)) * np.minimum(1.0, relative)
    twice = np.full(len(bound), 2.0)
    twice[0] = 1.0
    if size % 2 == 0:
        twice[-1] = 1.0
    masses = fft.irfft(product, size)
    error = math.sqrt(float(twice @ bound**2) / size) + unit * float(np.linalg.norm(masses))
    return np.roll(np.maximum(masses, 0.0), -(first % size)), error


def deltas_from_masses(masses: Array, step: float) -> Array:
    """The delta at every node: ``D_j = sum_{i > j} m_i (1 - e^{-(i - j) step})``, by a recurrence of positive terms."""
    after = np.concatenate([np.cumsum(masses[::-1])[::-1][1:], [0.0]])
    # D_{j-1} = (1 - e^-step) * (mass at or after j) + e^-step D_j
    shrink = math.exp(-step)
    backwards = signal.lfilter([-math.expm1(-step)], [1.0, -shrink], after[::-1])
    return np.asarray(backwards[::-1], dtype=np.float64)
