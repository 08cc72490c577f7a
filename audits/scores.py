"""Views of numbers and of vectors of numbers: few categories in order, cut where the past says (`audits.outcomes`)."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from audits.outcomes import Batch, Cuts, from_top

Array: TypeAlias = npt.NDArray[np.float64]

HISTORY_LIMIT = 1 << 14
"""Pairs of runs whose numbers are kept to place cuts; then the cuts are final and only counts are kept."""
_RELEARN_GROWTH = 1.2
_DISTINCT_AS_BINS = 40
_COORDINATE_BINS = 12
_FOLDS = 4

_TAIL_LEVELS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.04, 0.07)
_LEVELS = np.array(
    [*_TAIL_LEVELS, *np.linspace(0.1, 0.9, 17), *(1.0 - level for level in reversed(_TAIL_LEVELS))], dtype=float
)


class OrdinalView:
    """Real numbers between cuts at quantiles of the past (both sides pooled), at single values while there are few.

    Category 0 is for what is not a real number (NaN, None, ...); the others are in increasing order. The cuts follow
    the past until `HISTORY_LIMIT` pairs of runs; then they are final.
    """

    ordered = True

    def __init__(self) -> None:
        self.edges: Array = np.empty(0)
        self.x, self.y = np.zeros(2), np.zeros(2)
        self._history: tuple[list[Array], list[Array]] | None = ([], [])
        self._pairs = self._learned_at = 0

    def _read(self, batch: Batch) -> Array:
        found = batch.numbers
        return np.full(len(batch), np.nan) if found is None else found

    def _rank(self, rows: Array) -> Array:
        """The number that places an outcome between the cuts; NaN for category 0."""
        return rows

    def _retrain(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Learn `_rank` from the past; the ranks of the past outcomes, as if they had not been learned from."""
        return first, second

    @property
    def _history_limit(self) -> int:
        return HISTORY_LIMIT

    def count(self, batch: Batch) -> Array:
        return self._count_ranks(self._rank(self._read(batch)))

    def _count_ranks(self, ranks: Array) -> Array:
        place = np.searchsorted(self.edges, ranks, side="right") + 1
        place[np.isnan(ranks)] = 0
        return np.asarray(np.bincount(place, minlength=len(self.edges) + 2), dtype=float)

    def learn(self, first: Batch, second: Batch, counts: tuple[Array, Array]) -> None:
        self.x, self.y = self.x + counts[0], self.y + counts[1]
        if self._history is None:
            return
        for past, batch in zip(self._history, (first, second), strict=True):
            past.append(self._read(batch))
        self._pairs += len(first)
        last = self._pairs >= self._history_limit
        if last or self._pairs >= _RELEARN_GROWTH * self._learned_at:
            self._relearn(np.concatenate(self._history[0]), np.concatenate(self._history[1]))
            self._learned_at = self._pairs
        if last:
            self._history = None

    def _relearn(self, first: Array, second: Array) -> None:
        ranks = self._retrain(first, second)
        pooled = np.concatenate(ranks)
        self.edges = _edges(pooled[~np.isnan(pooled)], _LEVELS, _DISTINCT_AS_BINS)
        self.x, self.y = self._count_ranks(ranks[0]), self._count_ranks(ranks[1])

    def cuts(self) -> Cuts:
        """Events "category at or above a place in the order"."""
        rank = np.arange(len(self.x), dtype=float)
        return Cuts(rank, rank[1:], from_top(self.x)[1:], from_top(self.y)[1:])

    def describe(self, members: npt.NDArray[np.bool_]) -> tuple[str, tuple[Any, ...] | None]:
        return _intervals("outcome", self.edges, self._occurred(members), "outcome is not a real number"), None

    def _occurred(self, members: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Without category 0 where it never occurred: then it is only a matter of words."""
        kept = members.copy()
        kept[0] &= self.x[0] + self.y[0] > 0.0
        return kept


def _edges(values: Array, levels: Array, distinct: int) -> Array:
    """Cuts between categories [cut, next cut): at each value but the smallest if there are few, else at quantiles."""
    if len(values) == 0:
        return np.empty(0)
    ordered = np.sort(values)
    different = ordered[np.append(True, ordered[1:] > ordered[:-1])]
    if len(different) <= distinct:
        return np.asarray(different[1:])
    usable = levels[(levels * len(ordered) >= 2.0) & ((1.0 - levels) * len(ordered) >= 2.0)]
    chosen = np.unique(ordered[np.ceil(usable * len(ordered)).astype(int)])
    return np.asarray(chosen[chosen > ordered[0]])


def _intervals(name: str, cuts: Array, members: npt.NDArray[np.bool_], otherwise: str) -> str:
    parts = []
    edges = [-math.inf, *cuts.tolist(), math.inf]
    start: float | None = None
    for place, member in enumerate([*members[1:].tolist(), False]):
        if member and start is None:
            start = edges[place]
        elif not member and start is not None:
            parts.append(_interval(name, start, edges[place]))
            start = None
    if members[0]:
        parts.append(otherwise)
    return " or ".join(parts) or "nothing"


def _interval(name: str, low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return f"any {name}"
    if math.isinf(low):
        return f"{name} < {high:.6g}"
    return f"{name} >= {low:.6g}" if math.isinf(high) else f"{low:.6g} <= {name} < {high:.6g}"


class ScoreView(OrdinalView):
    """Vectors of `width` numbers by a learned score, the sum over coordinates of shrunken log-likelihood ratios.

    Each coordinate is cut at quantiles of the past (NaN apart), and a bin in which x outcomes of M(D) and y of M(D')
    fell gets ``log((x + 1)/(y + 1)) n/(n + 4)`` with n = x + y. Past outcomes are scored by ratios learned from the
    other folds of the past, so that the counts of the score's categories are as honest as those of outcomes yet to
    come. (Leaving out each outcome alone would not do: it shifts equal outcomes of the two sides apart, always the same
    way.) Category 0 is for other outcomes.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self._coordinate_edges: list[Array] = [np.empty(0)] * width
        self._table = np.zeros((width, 2))

    @property
    def _history_limit(self) -> int:
        return max(256, min(HISTORY_LIMIT, (1 << 20) // self.width))

    def _read(self, batch: Batch) -> Array:
        found = batch.vectors
        if found is not None and found.shape[1] == self.width:
            return found
        rows = np.full((len(batch), self.width), np.nan)
        if not isinstance(batch.values, np.ndarray):
            for place, value in enumerate(batch.values):
                single = Batch([value]).vectors
                if single is not None and single.shape[1] == self.width:
                    rows[place] = single[0]
        return rows

    def _places(self, rows: Array) -> npt.NDArray[np.int64]:
        """Bin of each coordinate of each row, shape (n, width); bin 0 is NaN."""
        places = np.empty(rows.shape, dtype=np.int64)
        for column, cuts in enumerate(self._coordinate_edges):
            places[:, column] = np.searchsorted(cuts, rows[:, column], side="right") + 1
        places[np.isnan(rows)] = 0
        return places

    def _score(self, places: npt.NDArray[np.int64], table: Array) -> Array:
        score = np.zeros(len(places))
        for column in range(self.width):
            score += table[column, places[:, column]]
        score[np.all(places == 0, axis=1)] = np.nan
        return score

    def _rank(self, rows: Array) -> Array:
        return self._score(self._places(rows), self._table)

    def _retrain(self, first: Array, second: Array) -> tuple[Array, Array]:
        bins = min(2 + len(first) // 16, _COORDINATE_BINS)
        levels = np.arange(1, bins) / bins
        pooled = np.concatenate([first, second])
        self._coordinate_edges = [
            _edges(column[~np.isnan(column)], levels, _COORDINATE_BINS if bins > 2 else 2) for column in pooled.T
        ]
        places = self._places(first), self._places(second)
        size = 2 + max(map(len, self._coordinate_edges))
        self._table = _log_ratio(*(_bin_counts(side, size) for side in places))
        scores = np.empty(len(first)), np.empty(len(second))
        folds = min(_FOLDS, len(first))
        for fold in range(folds):
            inside = np.arange(len(first)) % folds == fold
            table = _log_ratio(*(_bin_counts(side[~inside], size) for side in places))
            for score, side in zip(scores, places, strict=True):
                score[inside] = self._score(side[inside], table)
        return scores

    def describe(self, members: npt.NDArray[np.bool_]) -> tuple[str, tuple[Any, ...] | None]:
        weights = np.ptp(self._table[:, 1:], axis=1)
        heaviest = ", ".join(str(place) for place in np.argsort(-weights, kind="stable")[: min(3, self.width)])
        event = _intervals("score", self.edges, self._occurred(members), "no score")
        return f"{event}, for a score learned from the runs (coordinates {heaviest} weigh most)", None


def _bin_counts(places: npt.NDArray[np.int64], size: int) -> Array:
    """How often each bin of each coordinate occurs, shape (width, size)."""
    return np.stack([np.bincount(column, minlength=size) for column in places.T]).astype(float)


def _log_ratio(x: Array, y: Array) -> Array:
    return np.log((x + 1.0) / (y + 1.0)) * (x + y) / (x + y + 4.0)
