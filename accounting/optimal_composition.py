"""The exact total of k uses of an (epsilon, delta)-DP mechanism: nothing that uses only the two numbers can be smaller.

The extremal mechanism says with probability delta which dataset it saw, and otherwise answers by randomized response
with odds ``e^epsilon``. So with ``p_j = C(k, j) e^{(k-j) epsilon} / (1 + e^epsilon)^k`` the probability of j wrong
answers and ``loss_j = (k - 2j) epsilon`` their loss,

    delta_k(e) = 1 - (1 - delta)^k (1 - sum over j with loss_j > e of p_j (1 - e^{e - loss_j})).

Source: Kairouz, Oh and Viswanath (2015), Theorem 3.3. The sums run in ball arithmetic, from the largest term that
counts downwards, and end when a geometric bound on the rest is below 2^-128 of the sum.
"""

from __future__ import annotations

import math
from fractions import Fraction

import flint

from accounting._checks import check_epsilon, check_int, check_probability
from accounting.balls import ball, rounded_up
from accounting.theorems import EpsilonDelta

_NEGLIGIBLE = 128


def optimal_composition_delta(step: EpsilonDelta, count: int, epsilon: float) -> float:
    """Smallest delta at `epsilon` >= 0 of `count` adaptive uses of any mechanism that costs `step`: an upper bound,
    within one unit in the last place.

    >>> round(optimal_composition_delta(EpsilonDelta(0.1), 100, 3.0), 6)
    0.001361
    """
    count, target = check_int("count", count, lo=0), check_epsilon("epsilon", epsilon)
    if count == 0 or step == EpsilonDelta(0.0, 0.0):
        return 0.0
    if math.isinf(step.epsilon):
        return 1.0
    return min(1.0, rounded_up(lambda: _delta_at(step, count, target)))


def optimal_composition_epsilon(step: EpsilonDelta, count: int, delta: float) -> float:
    """Smallest epsilon >= 0 at `delta` of `count` adaptive uses of any mechanism that costs `step`: an upper bound.

    Between two losses delta is linear in e^epsilon, so the end is solved for, not searched. inf when the deltas of the
    steps alone exceed `delta`.

    >>> round(optimal_composition_epsilon(EpsilonDelta(0.1), 100, 1e-6), 4)
    4.7746
    """
    count, target = check_int("count", count, lo=0), check_probability("delta", delta)
    if count == 0 or step == EpsilonDelta(0.0, 0.0) or target == 1:
        return 0.0
    if math.isinf(step.epsilon) or not rounded_up(lambda: _lost(step, count)) <= target:
        return math.inf
    if step.epsilon == 0 or optimal_composition_delta(step, count, 0.0) <= target:
        return 0.0
    within, beyond = 0, count // 2 + 1  # indices of losses: at loss_0 delta is small enough; past 0 it is not
    while beyond - within > 1:
        middle = (within + beyond) // 2
        small = rounded_up(lambda j=middle: _delta_at(step, count, _loss(step, count, j))) <= target  # type: ignore[misc]
        within, beyond = (middle, beyond) if small else (within, middle)
    top = rounded_up(lambda: ball(_loss(step, count, within)))
    solved = rounded_up(lambda: _solve(step, count, within, target))
    floor = rounded_up(lambda: ball(max(_loss(step, count, within + 1), Fraction(0))))
    return min(top, max(solved, floor))


def _loss(step: EpsilonDelta, count: int, j: int) -> Fraction:
    return (count - 2 * j) * Fraction(step.epsilon)


def _lost(step: EpsilonDelta, count: int) -> flint.arb:
    """``1 - (1 - delta)^k``: the probability that some answer gives the dataset away."""
    if count == 1 or step.delta == 1:
        return ball(step.delta)  # exactly, so that a step is within its own delta
    return -(count * (-ball(step.delta)).log1p()).expm1()


def _kept(step: EpsilonDelta, count: int) -> flint.arb:
    return 1 - _lost(step, count)


def _delta_at(step: EpsilonDelta, count: int, epsilon: Fraction | float) -> flint.arb:
    if step.epsilon == 0:
        return _lost(step, count)
    largest = (
        math.ceil((count - Fraction(epsilon) / Fraction(step.epsilon)) / 2) - 1
    )  # the last j with loss_j > epsilon
    p, q = _sums(step, count, largest)
    return _lost(step, count) + _kept(step, count) * (p - ball(Fraction(epsilon)).exp() * q)


def _solve(step: EpsilonDelta, count: int, largest: int, delta: float) -> flint.arb:
    """The epsilon where delta is reached, if it lies between losses `largest` and `largest` + 1."""
    p, q = _sums(step, count, largest)
    excess = p - (ball(delta) - _lost(step, count)) / _kept(step, count)
    return (excess / q).log() if excess > 0 else flint.arb("-inf")


def _sums(step: EpsilonDelta, count: int, largest: int) -> tuple[flint.arb, flint.arb]:
    """``sum of p_j`` and ``sum of p_j e^{-loss_j}`` over j = 0..largest.

    The second is the first seen from the other dataset. A term's ratio to the one before it falls with j on the way
    down, so what is left out is less than a geometric series.
    """
    if largest < 0:
        return flint.arb(0), flint.arb(0)
    odds = ball(step.epsilon).exp()
    j = min(largest, count)
    p = flint.arb.bin_uiui(count, j) * ((count - j) * ball(step.epsilon) - count * (1 + odds).log()).exp()
    q = p * (-ball(_loss(step, count, j))).exp()
    total_p, total_q = p, q
    shrink = flint.arb(1) / (1 << _NEGLIGIBLE)
    while j:
        # p_{j-1} / p_j = j e^epsilon / (count - j + 1), and q_{j-1} / q_j = j e^-epsilon / (count - j + 1).
        share = flint.arb(j) / (count - j + 1)
        p, q = p * share * odds, q * share / odds
        total_p, total_q, j = total_p + p, total_q + q, j - 1
        if j % 16 == 0 and j:
            ratio = odds * j / (count - j + 1)
            if ratio < 1 and (rest := p * ratio / (1 - ratio)) < total_p * shrink:
                left_out = flint.arb(0).union(rest)
                return total_p + left_out, total_q + left_out * (q / p)
    return total_p, total_q
