"""How the runs of an audit are spread over many pairs of datasets: by chance, in proportion to how promising each
looks.

Every pair has an e-process of its own; the audit's wealth is their average with prior weights fixed beforehand. At
each step only one pair is run, chosen from the past and from chance, and the average of e-processes under any such
choice is again one: the error budget is that of a single test, for any number of pairs.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from audits.numeraire import numeraire

Array: TypeAlias = npt.NDArray[np.float64]

_WINDOW = 4
"""So many pairs that were not run yet take part in the choice."""
_SMALLEST_NEED = 0.5


def harmonic_log_weights(count: int) -> Array:
    """Log prior weights of the pairs in their order: proportional to 1/1, 1/2, 1/3, ..., summing to 1.

    The i-th of N costs ``log(i) + log(H_N)`` nats, hardly more than equal weights cost (log N), and the first ones
    much less.
    """
    weights = 1.0 / np.arange(1, count + 1)
    return np.asarray(np.log(weights / weights.sum()))


class Allocation:
    """Thompson sampling on the growth rate.

    For every pair the probabilities (a, b) of its best event on the two datasets are drawn from their posterior under
    independent Beta(1/2, 1/2) priors, and the pair is run that would then refute the claim in the fewest runs: wealth
    still needed (its prior weight counted in) over the growth rate of the best bet on that event.
    """

    def __init__(
        self, log_weights: Array, *, epsilon: float, delta: float, log_level: float, rng: np.random.Generator
    ) -> None:
        self._log_weights = log_weights
        self._epsilon, self._delta = epsilon, delta
        self._log_level = log_level
        self._rng = rng
        count = len(log_weights)
        self._runs, self._first, self._second = np.zeros(count), np.zeros(count), np.zeros(count)
        self._log_wealth = np.zeros(count)
        self._excluded = np.zeros(count, dtype=bool)
        self._opened = 0

    def choose(self) -> int | None:
        """The pair to run next; None when all are excluded."""
        window = np.flatnonzero(~self._excluded[: self._opened + _WINDOW])
        while len(window) == 0:
            if self._opened >= len(self._excluded):
                return None
            self._opened += _WINDOW
            window = np.flatnonzero(~self._excluded[: self._opened + _WINDOW])
        if len(window) == 1 and len(self._excluded) == 1:
            return 0
        runs = self._runs[window]
        a = self._rng.beta(self._first[window] + 0.5, runs - self._first[window] + 0.5)
        b = self._rng.beta(self._second[window] + 0.5, runs - self._second[window] + 0.5)
        p, q = np.stack([a, 1.0 - a], axis=-1), np.stack([b, 1.0 - b], axis=-1)
        rate = numeraire(p, q, epsilon=self._epsilon, delta=self._delta).growth
        need = np.maximum(self._log_level - self._log_weights[window] - self._log_wealth[window], _SMALLEST_NEED)
        if rate.max() > 0.0:
            return int(window[np.argmax(rate / need)])
        return int(window[np.argmin(runs)])

    def exclude(self, pair: int) -> None:
        """Never choose this pair again."""
        self._excluded[pair] = True

    def observe(self, pair: int, *, runs: int, first: int, second: int, log_wealth: float) -> None:
        """What is known of a pair after it was run: how often its best event occurred on each side, its wealth."""
        self._opened = max(self._opened, pair + 1)
        self._runs[pair], self._first[pair], self._second[pair] = runs, first, second
        self._log_wealth[pair] = log_wealth
