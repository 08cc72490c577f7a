"""The evidence against a claim from one pair of datasets: an e-process for every epsilon of a grid, from one stream
of runs.

While the two output laws are (epsilon, delta)-indistinguishable, the wealth against that epsilon is a non-negative
supermartingale that starts at 1, so with probability at least 1 - alpha it never reaches 1/alpha (Ville's
inequality), however often one looks and whenever one stops. Bets depend on earlier batches only. See
`audits.numeraire` for why each bet is fair, `audits.wealth` for what is bet and `audits.outcomes` for what it is bet
on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accounting import check_epsilon, check_probability, check_real
from audits.outcomes import Batch, CellView
from audits.power import detectable_epsilon
from audits.scores import OrdinalView, ScoreView
from audits.wealth import Wealth, best_event

Array: TypeAlias = npt.NDArray[np.float64]

_BELOW = np.array([0.0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98])
_ABOVE = np.array([0.05, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0])
_SMALLEST_SCALE = 0.2
_MANY_NUMBERS = 12
_MANY_VECTORS = 8
_EARLY_PAIRS = 1 << 12
_PAIRS_TO_REPEAT = 256
_SHARE_OF_ORDER = 0.5
_SHARE_IF_ALL_DIFFER = 0.95


def epsilon_grid(epsilon: float) -> Array:
    """The epsilons tested together with the claimed one, increasing: fractions of it below, steps of its size above."""
    return np.unique(np.concatenate([_BELOW * epsilon, [epsilon], epsilon + _ABOVE * max(epsilon, _SMALLEST_SCALE)]))


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """The event that separates the two laws best so far, likelier on the first dataset if `on_first`, else on the
    second.

    outcomes: its outcomes, where they are listed. first, second: how often it occurred on each dataset in `runs`
    pairs of runs. The event was chosen on the same runs, so the frequencies flatter it.
    """

    text: str
    outcomes: tuple[Any, ...] | None
    on_first: bool
    first: int
    second: int
    runs: int


class PairEvidence:
    """Wealth against each epsilon of a grid, for one pair of datasets and one delta.

    epsilons: shape (G,), increasing. log_wealth: shape (G,), starts at 0. runs: pairs of runs settled.
    """

    def __init__(self, epsilons: Array, delta: float) -> None:
        self.epsilons, self.delta = epsilons, delta
        self.runs = 0
        self.log_wealth: Array = np.zeros(len(epsilons))
        self._cells = CellView()
        self._parts = [Wealth(self._cells, epsilons, delta, np.zeros(len(epsilons)))]
        self._early: list[tuple[Batch, Batch]] | None = []

    def update(self, xs: Any, ys: Any, active: npt.NDArray[np.bool_] | None = None) -> None:
        """Settle the bets on equally many outcomes of each side; against the epsilons `active` only, the others stay
        as they are.

        Raises:
            ValueError: the two sides have different lengths.
            audits.canonical.UncountableError: an outcome cannot be compared by value; nothing is changed.
        """
        first, second = Batch.of(xs), Batch.of(ys)
        if len(first) != len(second):
            raise ValueError(f"xs and ys must be equally long, got {len(first)} and {len(second)} outcomes")
        if len(first) == 0:
            return
        chosen = np.ones(len(self.epsilons), dtype=bool) if active is None else active
        # Where no outcome ever repeats (continuous noise), the view of single outcomes is of no use.
        idle = len(self._parts) > 1 and self.runs >= _PAIRS_TO_REPEAT and not self._cells.repeated
        for part in self._parts:
            if idle and part.view is self._cells:
                continue
            counts = part.view.count(first), part.view.count(second)
            part.settle(*counts, chosen)
            part.view.learn(first, second, counts)
        self.log_wealth = np.asarray(np.logaddexp.reduce([part.total for part in self._parts], axis=0))
        self.runs += len(first)
        if self._early is not None:
            self._early.append((first, second))
            self._look_for_order(first, second)

    def _look_for_order(self, first: Batch, second: Batch) -> None:
        """Give part of the wealth to a view of numbers or vectors once there are many different ones.

        Wealth may be moved between bets at any time. Where no outcome has repeated so far, almost all of it is moved.
        """
        assert self._early is not None
        all_differ = self.runs >= 2 and self._cells.distinct >= 2 * self.runs
        view: OrdinalView | None = None
        for one, other, many in (
            (first.vectors, second.vectors, _MANY_VECTORS),
            (first.numbers, second.numbers, _MANY_NUMBERS),
        ):
            if one is None or other is None:
                continue
            all_differ &= bool(np.any(one != np.floor(one)) and np.any(other != np.floor(other)))
            if all_differ or self._cells.distinct > many:
                view = OrdinalView() if one.ndim == 1 else ScoreView(one.shape[1])
        if view is not None:
            for xs, ys in self._early:
                view.learn(xs, ys, (view.count(xs), view.count(ys)))
            share = _SHARE_IF_ALL_DIFFER if all_differ else _SHARE_OF_ORDER
            self._parts.append(Wealth(view, self.epsilons, self.delta, self._parts[0].give(share)))
        if view is not None or self.runs >= _EARLY_PAIRS:
            self._early = None

    def event(self, epsilon: float) -> FoundEvent | None:
        """The event that violates (epsilon, delta) most, or comes nearest to it (`best_event`); None before any run."""
        if self.runs == 0:
            return None
        place = int(np.argmin(np.abs(self.epsilons - epsilon)))
        view = max(self._parts, key=lambda part: float(part.total[place])).view
        members, on_first = best_event(view, epsilon, self.delta)
        text, outcomes = view.describe(members)
        counted = int(view.x.sum())
        return FoundEvent(
            text, outcomes, on_first, int(view.x[members].sum()), int(view.y[members].sum()), max(counted, 1)
        )


class LowerBound:
    """The largest epsilon refuted so far, valid at all times together, from the wealth against a grid of epsilons.

    An epsilon counts as refuted once it and every smaller one of the grid has had wealth 1/alpha. Let e be the
    smallest epsilon of the grid for which the mechanism is (e, delta)-DP. The bound exceeds the truth only if the
    wealth against e ever reaches 1/alpha: one event, of probability at most alpha, for the whole grid, all times and
    the claim together.
    """

    def __init__(self, epsilons: Array, alpha: float) -> None:
        self.epsilons, self.log_level = epsilons, math.log(1.0 / alpha)
        self._reached = np.zeros(len(epsilons), dtype=bool)

    def update(self, log_wealth: Array) -> None:
        """Take note of the wealth now."""
        self._reached |= log_wealth >= self.log_level

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """The epsilons against which wealth has not yet reached the level."""
        return ~self._reached

    @property
    def value(self) -> float:
        """The bound; 0 when nothing is refuted."""
        refuted = int(np.argmin(self._reached)) if not self._reached.all() else len(self._reached)
        return float(self.epsilons[refuted - 1]) if refuted else 0.0

    def refutes(self, epsilon: float) -> bool:
        """Whether this epsilon of the grid is refuted."""
        return bool(np.all(self._reached[: int(np.searchsorted(self.epsilons, epsilon)) + 1]))


class SequentialTest:
    """Anytime-valid test of (epsilon, delta)-indistinguishability of two output laws, from pairs of runs.

    epsilon: nats. delta: in [0, 1). alpha: probability, over the whole life of the test, that a true claim is refuted
    or that `epsilon_lower` exceeds the truth, at most. Both directions are tested at once. One look or a thousand,
    stopping at will,
    runs added later: all allowed, provided the runs are independent draws from the two laws.

    Outcomes: any that compare by value (`audits.canonical`); one-dimensional arrays and two-dimensional arrays (an
    outcome a row) are fast. Bets within one call of `update` are fixed before it, so hand over batches that grow
    slowly, about 5 % of the past.
    """

    def __init__(self, epsilon: float, delta: float, *, alpha: float) -> None:
        self.epsilon = check_epsilon("epsilon", epsilon)
        self.delta = check_probability("delta", delta)
        self.alpha = check_real("alpha", alpha, lo=0.0, hi=1.0, lo_open=True, hi_open=True)
        grid = epsilon_grid(self.epsilon)
        self._evidence = PairEvidence(grid, self.delta)
        self._bound = LowerBound(grid, self.alpha)

    def update(self, xs: Any, ys: Any) -> None:
        """Settle equally many outcomes of M(D) and M(D').

        Raises:
            ValueError: the two sides have different lengths.
            audits.canonical.UncountableError: an outcome cannot be compared by value; nothing is changed.
        """
        self._evidence.update(xs, ys, self._bound.active)
        self._bound.update(self._evidence.log_wealth)

    @property
    def runs(self) -> int:
        """Pairs of runs settled: one run on each dataset."""
        return self._evidence.runs

    @property
    def log_wealth(self) -> float:
        """Log of the wealth against the claim, an e-value at all times; it stands still once it has reached 1/alpha."""
        return float(self._evidence.log_wealth[int(np.searchsorted(self._evidence.epsilons, self.epsilon))])

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at level alpha."""
        return self._bound.refutes(self.epsilon)

    @property
    def epsilon_lower(self) -> float:
        """Running lower confidence bound for epsilon at this delta; valid for all times together (`LowerBound`)."""
        return self._bound.value

    @property
    def epsilon_detectable(self) -> float:
        """See `audits.power.detectable_epsilon`; infinity when no violation could be expected to show."""
        event = self._evidence.event(self.epsilon)
        if event is None:
            return math.inf
        return detectable_epsilon(
            (event.first + event.second) / event.runs,
            self.runs,
            epsilon=self.epsilon,
            delta=self.delta,
            log_level=self._bound.log_level,
        )

    @property
    def witness_event(self) -> FoundEvent | None:
        """The event that separates the two laws best so far; None before any run."""
        return self._evidence.event(self.epsilon)
