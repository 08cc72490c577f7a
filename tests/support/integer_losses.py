"""Compositions of pairs whose losses are whole multiples of one unit, by direct convolution of probabilities.

All terms are positive, so every probability keeps about 15 digits however small it is; there is no transform, no tilt
and no rounding of losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class IntegerLoss:
    """P-law of the composed finite loss, unit * (lowest + i), with everything else at an infinite loss."""

    def __init__(self, unit: Fraction) -> None:
        self.unit = unit
        self.lowest = 0
        self.masses: Array = np.ones(1)
        self.log_finite = 0.0

    def compose(self, atoms: Iterable[tuple[int, float]], infinite: float = 0.0) -> None:
        """One more pair: (loss in units, P-mass given a finite loss) and P-mass of an infinite loss."""
        atoms = list(atoms)
        least, most = min(k for k, _ in atoms), max(k for k, _ in atoms)
        total = np.zeros(len(self.masses) + most - least)
        for k, mass in atoms:
            total[k - least : k - least + len(self.masses)] += mass * self.masses
        self.masses, self.lowest = total, self.lowest + least
        self.log_finite += math.log1p(-infinite)

    def extremal(self, loss: int, delta: float = 0.0) -> None:
        """One more (unit * loss, delta)-DP mechanism."""
        odds = math.exp(-float(self.unit * loss))
        self.compose([(loss, 1 / (1 + odds)), (-loss, odds / (1 + odds))], delta)

    def delta(self, epsilon: float) -> float:
        losses = float(self.unit) * np.arange(self.lowest, self.lowest + len(self.masses))
        over = losses > epsilon
        finite = float(self.masses[over] @ -np.expm1(epsilon - losses[over]))
        return -math.expm1(self.log_finite) + math.exp(self.log_finite) * finite

    def epsilon(self, delta: float) -> float:
        """By bisection; inf when the infinite losses alone exceed delta."""
        if -math.expm1(self.log_finite) > delta:
            return math.inf
        low, high = 0.0, float(self.unit) * (self.lowest + len(self.masses))
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high
