"""Closed forms of the textbooks: amplification, composition, groups, conversions. One function for each theorem.

Every function evaluates its formula in ball arithmetic and returns its safe end, so a result is a guarantee as it
stands: an upper bound of epsilon and delta, except `base_for_amplified`, which answers how much the base *may* cost and
rounds down. Epsilons are in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from accounting._checks import check_epsilon, check_fraction, check_int, check_probability, check_real
from accounting.balls import ball, rounded_down, rounded_up
from accounting.leaves import GaussianPair
from accounting.profiles import PrivacyProfile


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """An (epsilon, delta)-DP guarantee.

    epsilon: in nats, at least 0; inf where no finite one is known. delta: in [0, 1].
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon("epsilon", self.epsilon, allow_infinite=True))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))


# Sampling.


def amplify(step: EpsilonDelta, rate: Fraction | float) -> EpsilonDelta:
    """What `step` costs when run on a uniform sample: ``(ln(1 + rate (e^epsilon - 1)), rate delta)``. Upper bounds.

    rate: in [0, 1]; sample size over dataset size for fixed-size sampling without replacement under REPLACE_ONE
    (give the Fraction to have it exact), or the inclusion probability of Poisson sampling under ADD_OR_REMOVE_ONE.

    Source: Theorem 3.4 of the paper (Balle, Barthe and Gaboardi 2018, Theorem 9; for Poisson sampling Theorem 8).

    >>> amplify(EpsilonDelta(1.0, 1e-6), 0.01)
    EpsilonDelta(epsilon=0.017036863236176553, delta=1e-08)
    """
    q = check_fraction("rate", rate, hi=1)
    if q == 0:
        return EpsilonDelta(0.0, 0.0)
    if math.isinf(step.epsilon):
        return EpsilonDelta(math.inf, _delta(q * Fraction(step.delta)))
    epsilon = rounded_up(lambda: (ball(q) * ball(step.epsilon).expm1()).log1p())
    return EpsilonDelta(epsilon, _delta(q * Fraction(step.delta)))


def base_for_amplified(target: EpsilonDelta, rate: Fraction | float) -> EpsilonDelta:
    """The most that a step may cost so that `amplify(step, rate)` is within `target`; both parts rounded *down*.

    ``(ln(1 + (e^epsilon - 1)/rate), min(1, delta/rate))``, with rate in (0, 1].

    Source: Theorem 3.4 of the paper, solved for the base.

    >>> base = base_for_amplified(EpsilonDelta(1.0, 1e-6), 0.01)
    >>> round(base.epsilon, 4), round(base.delta, 6)
    (5.1523, 0.0001)
    """
    q = check_fraction("rate", rate, hi=1)
    if q == 0:
        raise ValueError(f"rate must be over 0: a step on an empty sample may cost anything; got {rate!r}")
    if math.isinf(target.epsilon):
        return EpsilonDelta(math.inf, min(1.0, rounded_down(lambda: ball(target.delta) / ball(q))))
    epsilon = rounded_down(lambda: (ball(target.epsilon).expm1() / ball(q)).log1p())
    return EpsilonDelta(max(0.0, epsilon), min(1.0, max(0.0, rounded_down(lambda: ball(target.delta) / ball(q)))))


# Composition.


def basic_composition(steps: Iterable[tuple[EpsilonDelta, int]]) -> EpsilonDelta:
    """The sums of epsilons and deltas over steps (each with its count), of adaptively chosen mechanisms. Upper bounds.

    Source: Dwork and Roth (2014), Theorem 3.16.

    >>> basic_composition([(EpsilonDelta(0.5, 1e-6), 3), (EpsilonDelta(1.0), 1)]).epsilon
    2.5
    """
    epsilon = delta = Fraction(0)
    unbounded = False
    for step, count in steps:
        check_int("count", count, lo=0)
        if count and math.isinf(step.epsilon):
            unbounded = True
        elif count:
            epsilon += count * Fraction(step.epsilon)
        delta += count * Fraction(step.delta)
    return EpsilonDelta(math.inf if unbounded else rounded_up(lambda: ball(epsilon)), _delta(delta))


def advanced_composition(step: EpsilonDelta, count: int, slack: float) -> EpsilonDelta:
    """`count` adaptive uses of a mechanism that costs `step` in every round. Upper bounds.

    ``(sqrt(2 count ln(1/slack)) epsilon + count epsilon (e^epsilon - 1), count delta + slack)``, slack in (0, 1].

    Source: Theorem 3.5 of the paper (Dwork, Rothblum and Vadhan 2010, Theorem III.3).

    >>> round(advanced_composition(EpsilonDelta(0.1, 1e-8), 100, 1e-6).epsilon, 4)
    6.3082
    """
    count = check_int("count", count, lo=0)
    slack = check_real("slack", slack, lo=0.0, hi=1.0, lo_open=True)
    delta = _delta(count * Fraction(step.delta) + Fraction(slack))
    if count == 0 or step.epsilon == 0:
        return EpsilonDelta(0.0, delta)
    if math.isinf(step.epsilon):
        return EpsilonDelta(math.inf, delta)
    epsilon = rounded_up(
        lambda: ball(step.epsilon) * ((-2 * count * ball(slack).log()).sqrt() + count * ball(step.epsilon).expm1())
    )
    return EpsilonDelta(epsilon, delta)


def advanced_composition_epsilon(step: EpsilonDelta, count: int, delta: float) -> float:
    """The smallest epsilon that `advanced_composition` gives at a total of `delta`; inf if it gives none.

    Epsilon falls as the slack grows, so the best slack is all of ``delta - count * step.delta``.
    """
    count = check_int("count", count, lo=0)
    check_probability("delta", delta)
    left = Fraction(delta) - count * Fraction(step.delta)
    slack = rounded_down(lambda: ball(left))
    return advanced_composition(step, count, slack).epsilon if slack > 0 else math.inf


# Groups and conversions.


def group_privacy(step: EpsilonDelta, size: int) -> EpsilonDelta:
    """What `step` guarantees to datasets that differ in up to `size` records: upper bounds.

    ``(size epsilon, delta (e^{size epsilon} - 1)/(e^epsilon - 1))``, delta at most 1, its limit ``size delta`` at
    epsilon = 0. `step` must hold for all neighbours: a promise that a path between the two datasets leaves is not
    enough.

    Source: Vadhan (2017), Lemma 2.2 (the sum of the geometric series in its proof).
    """
    size = check_int("size", size, lo=0)
    if size == 0:
        return EpsilonDelta(0.0, 0.0)
    if step.epsilon == 0 or step.delta == 0 or math.isinf(step.epsilon):
        epsilon = rounded_up(lambda: ball(size * Fraction(step.epsilon))) if step.epsilon < math.inf else math.inf
        lost = _delta(size * Fraction(step.delta)) if step.epsilon == 0 else float(step.delta > 0)
        return EpsilonDelta(epsilon, lost)
    delta = rounded_up(lambda: ball(step.delta) * (size * ball(step.epsilon)).expm1() / ball(step.epsilon).expm1())
    return EpsilonDelta(rounded_up(lambda: ball(size * Fraction(step.epsilon))), min(1.0, delta))


def renyi_epsilon(orders: Sequence[float], divergences: Sequence[float], delta: float) -> float:
    """Smallest epsilon >= 0 at `delta` that bounds on Renyi divergences imply: an upper bound.

    ``min over orders a of D_a + ln(1 - 1/a) - (ln delta + ln a)/(a - 1)``, at least 0.

    orders: each over 1. divergences: D_a at each order, in nats, at least 0; inf where none is known. delta in [0, 1];
    0 gives inf (or 0, when some divergence is 0: then the two laws are equal).

    Source: Canonne, Kamath and Steinke (2020), Proposition 12.

    >>> round(renyi_epsilon([8.0, 12.0, 16.0], [4.0, 6.0, 8.0], 1e-6), 4)
    5.543
    """
    check_probability("delta", delta)
    if len(orders) != len(divergences) or not orders:
        raise ValueError(f"divergences must be one for each of at least one order, got {len(divergences)}")
    best = math.inf
    for i, (order, divergence) in enumerate(zip(orders, divergences, strict=True)):
        a = check_real(f"orders[{i}]", order, lo=1.0, lo_open=True)
        d = check_real(f"divergences[{i}]", divergence, lo=0.0, allow_infinite=True)
        if d == 0:
            return 0.0
        if delta > 0 and d < math.inf:
            best = min(best, _renyi_epsilon(a, d, delta))
    return max(0.0, best)


def _renyi_epsilon(a: float, d: float, delta: float) -> float:
    return rounded_up(lambda: ball(d) + (1 - 1 / ball(a)).log() - (ball(delta).log() + ball(a).log()) / (ball(a) - 1))


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Delta at any real epsilon of Gaussian noise of standard deviation noise_multiplier times the L2 sensitivity.

    ``Phi(1/(2 s) - epsilon s) - e^epsilon Phi(-1/(2 s) - epsilon s)``, s = noise_multiplier; exact, hence an upper and
    a lower bound up to a relative 1e-11 that is added on top.

    Source: Balle and Wang (2018), Theorem 8.
    """
    sigma = check_real("noise_multiplier", noise_multiplier, lo=0.0, lo_open=True)
    return min(1.0, GaussianPair(1 / sigma).delta(check_real("epsilon", epsilon)) * (1 + 1e-11))


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """The smallest epsilon >= 0 with `gaussian_delta` at most delta: an upper bound, inf at delta = 0."""
    sigma = check_real("noise_multiplier", noise_multiplier, lo=0.0, lo_open=True)
    return PrivacyProfile.gaussian(sigma).epsilon(delta)


def _delta(exact: Fraction) -> float:
    return min(1.0, rounded_up(lambda: ball(exact)))
