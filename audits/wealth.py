"""How a sequential test bets on categories: estimates of the two laws from the past, and the wealth that the bets make.

Each expert turns the past counts x, y of the categories into a presumed share ``r = p / (p + q)`` of every category
and bets the numeraire (`audits.numeraire`) of the laws ``p = m r``, ``q = m (1 - r)`` with m the categories'
frequencies. An expert is an estimate and a strength s of shrinkage: where the raw share ``r = x / (x + y)`` lies
outside the interval ``[1/(1+c), c/(1+c)]`` that pure epsilon-DP allows, its excess is multiplied by ``n / (n + s)``, n
the outcomes it rests on. The best s is about the n at which the excess shows; a geometric grid covers all. Estimates:

- each category for itself (`cell_shares`);
- the best event and the best opposite event: categories whose likelihood ratio is above, or below, a threshold, pooled
  (`event_shares`);
- for categories in order, the best monotone fit (`monotone_shares`).

Experts are mixed, never compared after the fact: a view's wealth is the sum of its experts', each started with a
share fixed beforehand. All experts do the same for every epsilon of a grid at once.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from audits.numeraire import LARGEST_EPSILON, numeraire
from audits.outcomes import View

Array: TypeAlias = npt.NDArray[np.float64]

STRENGTHS = np.array([1.0, 5.0, 30.0, 200.0, 2000.0])
_SEEN_MASS = 0.25
_UNSEEN_MASS = 0.01
"""Weights of a category beyond its count, in its presumed frequency: one that occurred, and one that did not."""
_TINY = 1e-300
_LARGEST_SHARE = 1.0 - 1e-15
_SIGNIFICANT = 2.0
_UNLIKE = 0.5
"""Past gain, in nats, by which two ratios must beat one common ratio to be used."""


def _shrink(x: Array, y: Array, upper: Array, strength: Array) -> Array:
    """Share of M(D) among x + y outcomes, its excess over [1 - upper, upper] shrunk; 1/2 where there are none."""
    n = x + y
    raw = np.divide(x, n, out=np.full_like(n, 0.5), where=n > 0.0)
    bound = np.clip(raw, 1.0 - upper, upper)
    return np.asarray(np.clip(bound + (raw - bound) * (n / (n + strength)), 1.0 - _LARGEST_SHARE, _LARGEST_SHARE))


def cell_shares(view: View, upper: Array) -> Array:
    """Shares by category, shape (strengths, G, K); upper: shape (G,), the share c/(1+c) that each epsilon allows."""
    return _shrink(view.x, view.y, upper[:, None], STRENGTHS[:, None, None])


def monotone_shares(view: View, upper: Array) -> Array:
    """As `cell_shares`, from the monotone fit (increasing or decreasing, as the means say) to categories in order."""
    x, y = view.x, view.y
    n = x + y
    places = np.arange(len(x))
    rising = x @ places * y.sum() >= y @ places * x.sum()
    raw = np.divide(x, n, out=np.full_like(n, 0.5), where=n > 0.0)
    fit = isotonic_regression(raw, weights=n + 1e-9, increasing=bool(rising))
    block = np.repeat(np.arange(len(fit.blocks) - 1), np.diff(fit.blocks))
    pooled_x = np.bincount(block, x)[block].astype(float)
    pooled_n = np.bincount(block, n)[block].astype(float)
    return _shrink(pooled_x, pooled_n - pooled_x, upper[:, None], STRENGTHS[:, None, None])


def event_shares(view: View, upper: Array) -> Array:
    """As `cell_shares`, from one event likelier on M(D), one likelier on M(D'), and the rest, each pooled.

    For each strength and epsilon the events are the ones above and below a threshold (`View.cuts`) that would have
    grown most on the past, if any would. Unless the past speaks clearly against it, their ratios are taken to be the
    same, one the inverse of the other, as in randomized response, Laplace or geometric noise: one number to learn,
    not two.
    """
    cuts = view.cuts()
    total_x, total_y = view.x.sum(), view.y.sum()
    low_x, low_y = total_x - cuts.x, total_y - cuts.y
    bound, strength = upper[:, None], STRENGTHS[:, None, None]
    above, below = _gain(cuts.x, cuts.y, bound, strength), _gain(low_x, low_y, bound, strength)
    top, low = np.argmax(above, axis=-1), np.argmax(below, axis=-1)
    pick = (*np.ogrid[: len(STRENGTHS), : len(upper)],)
    # Where the two events overlap, the one that grew more keeps its extent.
    first = above[(*pick, top)] >= below[(*pick, low)]
    places = np.arange(len(cuts.threshold))
    below = np.where(first[..., None] & (places > top[..., None]), 0.0, below)
    above = np.where(~first[..., None] & (places < low[..., None]), 0.0, above)
    top, low = np.argmax(above, axis=-1), np.argmax(below, axis=-1)
    has_top, has_low = above[(*pick, top)] > 0.0, below[(*pick, low)] > 0.0
    counts = np.stack([cuts.x[top], cuts.y[top]]) * has_top, np.stack([low_x[low], low_y[low]]) * has_low
    hits, misses = counts[0].max(axis=0) + counts[1].max(axis=0), counts[0].min(axis=0) + counts[1].min(axis=0)
    one, both = STRENGTHS[:, None], _gain(hits, misses, upper, STRENGTHS[:, None])
    shares = [
        np.where(
            above[(*pick, top)] + below[(*pick, low)] - both > _UNLIKE,
            _shrink(x, y, upper, one),
            np.where(x > y, _shrink(hits, misses, upper, one), _shrink(misses, hits, upper, one)),
        )
        for x, y in counts
    ]
    in_top = (cuts.rank >= cuts.threshold[top][..., None]) & has_top[..., None]
    in_low = (cuts.rank < cuts.threshold[low][..., None]) & has_low[..., None]
    middle = ~(in_top | in_low)
    middle_x, middle_y = np.sum(view.x * middle, axis=-1), np.sum(view.y * middle, axis=-1)
    rest = np.clip((middle_x + 0.5) / (middle_x + middle_y + 1.0), 1.0 - upper, upper)
    return np.asarray(np.where(in_top, shares[0][..., None], np.where(in_low, shares[1][..., None], rest[..., None])))


def _gain(x: Array, y: Array, upper: Array, strength: Array) -> Array:
    """What a bet on each event would have gained on its past counts."""
    share = _shrink(x, y, upper, strength)
    bound = np.clip(share, 1.0 - upper, upper)
    return np.asarray(x * np.log(share / bound) + y * np.log((1.0 - share) / (1.0 - bound)))


class Wealth:
    """The wealth of one view's experts against a grid of epsilons, on a log scale.

    epsilons: shape (G,). start: shape (G,): log of the view's starting share. Fair for each epsilon: while the two
    laws are (epsilon, delta)-indistinguishable, ``exp(total)`` has mean at most its start at every stopping time.
    """

    def __init__(self, view: View, epsilons: Array, delta: float, start: Array) -> None:
        self.view = view
        self._epsilons, self._delta = epsilons, delta
        self._upper = np.minimum(1.0 / (1.0 + np.exp(-epsilons)), _LARGEST_SHARE)
        self._estimates = (event_shares, monotone_shares) if view.ordered else (cell_shares, event_shares)
        experts = len(self._estimates) * len(STRENGTHS)
        self._log = np.tile(start - np.log(experts), (experts, 1))

    @property
    def total(self) -> Array:
        """Log of the view's wealth, shape (G,)."""
        return np.asarray(np.logaddexp.reduce(self._log, axis=0))

    def give(self, share: float) -> Array:
        """Take the fraction `share` of every expert's wealth away; the log of what was taken, shape (G,)."""
        taken = np.asarray(self.total + np.log(share))
        self._log += np.log1p(-share)
        return taken

    def settle(self, x: Array, y: Array, active: npt.NDArray[np.bool_]) -> None:
        """Bet on a batch in which the view's categories occur x and y times, for the epsilons `active` (shape (G,))."""
        if not np.any(active) or not (self.view.x.any() or self.view.y.any()):
            return
        upper = self._upper[active]
        shares = np.concatenate([estimate(self.view, upper) for estimate in self._estimates])
        seen = self.view.x + self.view.y
        mass = np.where(seen > 0.0, seen + _SEEN_MASS, _UNSEEN_MASS)
        p, q = mass * shares, mass * (1.0 - shares)
        p /= p.sum(axis=-1, keepdims=True)
        q /= q.sum(axis=-1, keepdims=True)
        bet = numeraire(p, q, epsilon=self._epsilons[active], delta=self._delta)
        self._log[:, active] += np.log(np.maximum(bet.a, _TINY)) @ x + np.log(np.maximum(bet.b, _TINY)) @ y


def best_event(view: View, epsilon: float, delta: float) -> tuple[npt.NDArray[np.bool_], bool]:
    """The event that violates, or comes nearest to violating, ``a <= e^epsilon b + delta``, among those of `View.cuts`.

    Returns its categories, and whether it is likelier on M(D) than on M(D'). If some event exceeds the claim by two
    standard errors of its past counts, the one that does so most; else the one whose ratio ``(a - delta)/b`` is most
    surely large (largest estimate less two standard errors), rare events and their opposites being unsure.
    """
    cuts = view.cuts()
    total_x, total_y = view.x.sum(), view.y.sum()
    above, below = (cuts.x, cuts.y), (total_x - cuts.x, total_y - cuts.y)
    first = np.stack([above[0], above[1], below[0], below[1]])
    second = np.stack([above[1], above[0], below[1], below[0]])
    c, slack = float(np.exp(min(epsilon, LARGEST_EPSILON))), delta * total_x
    merit = (first - c * second - slack) / np.sqrt(first + c * c * second + 1.0)
    if merit.max() < _SIGNIFICANT:
        counts = np.stack([first, second, total_x - first, total_y - second]) + 0.5
        ratio = np.log((np.maximum(first - slack, 0.0) + 0.5) / (second + 0.5))
        merit = ratio - _SIGNIFICANT * np.sqrt(np.sum(1.0 / counts, axis=0))
    kind, place = np.unravel_index(int(np.argmax(merit)), merit.shape)
    members = cuts.rank >= cuts.threshold[place]
    return (members if kind < 2 else ~members), bool(kind % 2 == 0)
