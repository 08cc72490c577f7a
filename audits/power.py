"""What a pass means: how large a violation would have had to be for these runs to show it."""

from __future__ import annotations

import math

import numpy as np

from audits.numeraire import numeraire

LEARNING_COST = 2.5
"""Wealth, in nats, that learning the laws costs beside knowing them; measured on mechanisms with few outcomes."""
_POWER_QUANTILE = 1.645
_LARGEST_EPSILON = 40.0
_GRID = 400
_REFINEMENTS = 3


def detectable_epsilon(
    mass: float, runs: int, *, epsilon: float, delta: float, log_level: float, learning_cost: float = LEARNING_COST
) -> float:
    """Smallest epsilon' above the claim that `runs` pairs of runs would have refuted with 95 % power.

    mass: frequency of the best event on the two datasets together, in [0, 2] (an event or its opposite: the smaller
    counts).
    log_level: log wealth at which the claim is refuted.

    The alternative is a mechanism that has an event of this mass with probabilities ``a = c' b + delta``, ``a + b =
    mass``, ``c' = e^epsilon'``. Against it the wealth of the best bet grows by ``rate(epsilon')`` nats a pair on
    average, with variance var, and the answer is the smallest epsilon' with

        runs rate(epsilon') >= log_level + learning_cost + 1.645 sqrt(runs var(epsilon')).

    It says: a mechanism whose best event is as frequent as the one seen here, and whose epsilon at this delta is at
    least epsilon', would have been refuted in 95 of 100 such audits. It says nothing of rarer events (with frequency
    below about 3/runs: nothing at all) nor of other pairs of datasets. Infinity when no violation, however large,
    would have been shown.
    """
    smaller = min(mass, 2.0 - mass)
    if runs <= 0 or not smaller > delta:
        return math.inf
    low, high = epsilon, max(_LARGEST_EPSILON, epsilon + _LARGEST_EPSILON)
    for _ in range(_REFINEMENTS):
        candidates = np.linspace(low, high, _GRID)
        b = (smaller - delta) / (1.0 + np.exp(candidates))
        p = np.stack([smaller - b, 1.0 - smaller + b], axis=-1)
        q = np.stack([b, 1.0 - b], axis=-1)
        bet = numeraire(p, q, epsilon=epsilon, delta=delta)
        log_a, log_b = np.log(np.maximum(bet.a, 1e-300)), np.log(np.maximum(bet.b, 1e-300))
        mean_a, mean_b = np.sum(p * log_a, axis=-1), np.sum(q * log_b, axis=-1)
        variance = np.sum(p * log_a**2, axis=-1) - mean_a**2 + np.sum(q * log_b**2, axis=-1) - mean_b**2
        needed = log_level + learning_cost + _POWER_QUANTILE * np.sqrt(runs * np.maximum(variance, 0.0))
        shown = runs * bet.growth >= needed
        if not shown.any():
            return math.inf
        first = int(np.argmax(shown))
        if first == 0:
            return float(candidates[0])
        low, high = float(candidates[first - 1]), float(candidates[first])
    return high
