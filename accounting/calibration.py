"""Parameters from targets: the largest or smallest one whose total is within (epsilon, delta), never one beyond it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from dp_accounting import DpEvent, ExplicitBracketInterval, NeighboringRelation, calibrate_dp_mechanism

from accounting._checks import check_epsilon, check_int, check_probability, check_real, check_relation
from accounting.accountant import ProfileAccountant
from accounting.composer import Composer
from accounting.profiles import PrivacyProfile

_DOUBLINGS = 64
_COARSE_NODES = 1 << 12


class InfeasibleError(ValueError):
    """No parameter in reach meets the target.

    Attributes: parameter (the one that came closest), epsilon (its total at the target's delta), target.
    """

    def __init__(self, message: str, *, parameter: float, epsilon: float, target: float) -> None:
        super().__init__(message)
        self.parameter, self.epsilon, self.target = parameter, epsilon, target


def calibrate(
    make_event: Callable[[Any], DpEvent],
    epsilon: float,
    delta: float,
    *,
    relation: NeighboringRelation | str,
    increasing: bool,
    bracket: tuple[float, float] | None = None,
    integer: bool = False,
    rtol: float = 1e-6,
) -> float:
    """The parameter that spends (epsilon, delta) best: the largest within it if `increasing`, else the smallest.

    make_event: parameter -> event, monotone in cost.
    increasing: whether a larger parameter costs more (a rate, a number of rounds) or less (a noise multiplier).
    bracket: the parameters to look between, at least 0, ends included. None: positive ones, from 1 by doubling and
        halving up to a factor of 2**64.
    integer: whether the parameter is a whole number; `make_event` then gets ints, and an int comes back.
    rtol: how far from the best, relative to it, the result may be.

    The search is `dp_accounting.calibrate_dp_mechanism` on a `ProfileAccountant`, between two ends one of which is
    known to be within the target; its answer is checked, and given up for that end if it is not.

    Guarantees: the accountant's epsilon of the result at `delta` is at most `epsilon`.

    Raises:
        InfeasibleError: every parameter in reach costs more.
        ValueError: the bracket is empty or upside down; without one, every parameter in reach is within the target, so
            that there is no best one.

    >>> from dp_accounting import GaussianDpEvent
    >>> round(calibrate(GaussianDpEvent, 1.0, 1e-6, relation="add-remove", increasing=False), 4)
    4.2247
    """
    epsilon, delta = check_epsilon("epsilon", epsilon), check_probability("delta", delta)
    relation = check_relation("relation", relation)
    check_real("rtol", rtol, lo=0.0, lo_open=True, hi=1.0)

    @cache
    def cost(parameter: float) -> float:
        event = make_event(round(parameter) if integer else parameter)
        return ProfileAccountant(relation).compose(event).get_epsilon(delta)

    within, beyond = _ends(cost, epsilon, increasing=increasing, bracket=bracket, integer=integer)
    if beyond is None:
        return round(within) if integer else within
    within, beyond = _narrow(cost, epsilon, within, beyond, integer=integer)
    if abs(within - beyond) <= (1 if integer else rtol * min(within, beyond)):
        return round(within) if integer else within
    found = calibrate_dp_mechanism(
        lambda: ProfileAccountant(relation),
        make_event,
        epsilon,
        delta,
        ExplicitBracketInterval(*sorted((within, beyond))),
        discrete=integer,
        tol=None if integer else rtol * min(within, beyond),
    )
    if integer:
        # A whole-number search may stop one short of the best.
        step = 1 if increasing else -1
        while cost(found) > epsilon:
            found -= step
        while found + step != beyond and cost(found + step) <= epsilon:
            found += step
        return round(found)
    return found if cost(found) <= epsilon else within


def _ends(
    cost: Callable[[float], float],
    epsilon: float,
    *,
    increasing: bool,
    bracket: tuple[float, float] | None,
    integer: bool,
) -> tuple[float, float | None]:
    """A parameter within the target, and one beyond it: None if even the costliest of the bracket is within."""
    if bracket is not None:
        low, high = (check_real(f"bracket[{i}]", end, lo=0.0) for i, end in enumerate(bracket))
        if not low < high:
            raise ValueError(f"bracket must have its lower end first, got {bracket!r}")
        cheap, dear = (low, high) if increasing else (high, low)
        spent = cost(cheap)
        if not spent <= epsilon:
            raise InfeasibleError(
                f"infeasible: within {bracket!r} the cheapest parameter is {cheap!r} and costs epsilon {spent:.6g}, "
                f"which must be at most {epsilon:g}",
                parameter=cheap,
                epsilon=spent,
                target=epsilon,
            )
        return (dear, None) if cost(dear) <= epsilon else (cheap, dear)
    smallest = 1.0 if integer else 2.0**-_DOUBLINGS
    within = _walk(cost, epsilon, up=not increasing, wanted=True, smallest=smallest)
    if within is None:
        end = smallest if increasing else 2.0**_DOUBLINGS
        spent = cost(end)
        raise InfeasibleError(
            f"infeasible: no parameter from {smallest:g} to {2.0**_DOUBLINGS:g} costs at most epsilon {epsilon:g}; at "
            f"{end:g} it is {spent:.6g}. Give a bracket if other parameters are meant",
            parameter=end,
            epsilon=spent,
            target=epsilon,
        )
    beyond = _walk(cost, epsilon, up=increasing, wanted=False, smallest=smallest, start=within)
    if beyond is None:
        if integer and not increasing:
            return smallest, None
        raise ValueError(
            f"bracket must be given when there is no best parameter: every one from {smallest:g} to "
            f"{2.0**_DOUBLINGS:g} costs at most epsilon {epsilon:g}"
        )
    return (beyond / 2 if increasing else beyond * 2), beyond


def _walk(
    cost: Callable[[float], float], epsilon: float, *, up: bool, wanted: bool, smallest: float, start: float = 1.0
) -> float | None:
    """The first of start, start * 2, ... (or start / 2, ...) whose cost is within the target, or is not, as wanted."""
    at = start
    while smallest <= at <= 2.0**_DOUBLINGS:
        if (cost(at) <= epsilon) is wanted:
            return at
        at *= 2.0 if up else 0.5
    return None


def _narrow(
    cost: Callable[[float], float], epsilon: float, within: float, beyond: float, *, integer: bool
) -> tuple[float, float]:
    """Bring the ends together until they are within a factor of two, which makes a relative tolerance an absolute one,
    and until the cost of the outer one is finite, as root finders need.
    """
    while not (within <= 2 * beyond <= 4 * within and math.isfinite(cost(beyond))):
        if integer:
            middle = float((within + beyond) // 2)
        elif within and beyond:
            middle = math.sqrt(within) * math.sqrt(beyond)
        else:
            middle = (within + beyond) / 1024
        if middle in (within, beyond):
            break
        within, beyond = (middle, beyond) if cost(middle) <= epsilon else (within, middle)
    return within, beyond


def largest_sampling_rate(
    steps: Sequence[tuple[PrivacyProfile, int]], epsilon: float, delta: float, *, rtol: float = 1e-7
) -> float:
    """The largest rate q at which all `steps` together are (epsilon, delta)-DP under REPLACE_ONE.

    steps: (profile, count): `count` runs of a mechanism, each on its own fixed-size sample without replacement, at rate
    q. rtol: how far below the best the result may be, relative to it.

    Guarantees: at the result, the composition's upper bound of delta at `epsilon` is at most `delta`. 1 when no
    sampling is needed; 0 when no rate is small enough (a step without any guarantee).

    Source: Theorem 3.4 of the paper, read as a whole curve (`PrivacyProfile.subsample_without_replacement`).

    >>> block = PrivacyProfile.approximate(4.0, 1e-8)
    >>> round(1 / largest_sampling_rate([(block, 10)], 1.0, 1e-6), 1)
    185.7
    """
    epsilon, delta = check_epsilon("epsilon", epsilon), check_probability("delta", delta)
    used = [(profile, count) for profile, count in steps if check_int("count", count, lo=0)]
    return _largest_rate(used, epsilon, delta, rtol)


def rough_sampling_rate(
    steps: Sequence[tuple[PrivacyProfile, int]], epsilon: float, delta: float, *, near: float | None = None
) -> float:
    """About `largest_sampling_rate`, within 1e-2 and much faster, on coarse grids: for comparing alternatives.

    near: a guess, such as the rate of a similar case.
    """
    used = [(profile, count) for profile, count in steps if check_int("count", count, lo=0)]
    return _largest_rate(used, check_epsilon("epsilon", epsilon), check_probability("delta", delta), near=near or 1e-2)


def _largest_rate(
    steps: Sequence[tuple[PrivacyProfile, int]],
    epsilon: float,
    delta: float,
    rtol: float | None = None,
    *,
    near: float = 1e-2,
) -> float:
    """rtol: None for a rough answer."""
    if not steps:
        return 1.0

    def gap(log_rate: float, nodes: int | None) -> float:
        """How far past the target, as ln(delta reached / delta allowed); at most 0 is within."""
        rate = math.exp(log_rate)
        sampled = [profile.subsample_without_replacement(rate).self_compose(count) for profile, count in steps]
        total = PrivacyProfile.nothing().compose(*sampled)
        if nodes is None:
            reached = total.delta(epsilon)
        else:
            (parts,) = total._directions
            reached = Composer(parts, nodes).delta(epsilon)
        if reached <= delta:
            return math.log(reached / delta) if reached > 0 else -math.inf
        return math.log(reached / delta) if delta > 0 else math.inf

    start = math.log(near)
    tolerance = 1e-2 if rtol is None else 1e-3
    rough = _last_within(lambda x: gap(x, _COARSE_NODES), start - 0.3, min(0.0, start + 0.3), tolerance)
    if rtol is None or rough == -math.inf:
        return math.exp(rough)
    exact = _last_within(lambda x: gap(x, None), rough - 1e-3, min(0.0, rough + 1e-3), rtol)
    return math.exp(exact)


def _last_within(gap: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """The largest x with gap(x) <= 0, for an increasing gap, at most `tolerance` short of it; always such an x.

    low, high: a first guess of an interval around it, widened as need be (never past 0). Regula falsi with the
    Illinois weights, and bisection where a gap is infinite.
    """
    width = max(high - low, tolerance)
    below, above = gap(low), math.nan
    while below > 0:
        high, above, low, width = low, below, low - width, 2 * width
        below = gap(low)
        if low < -700:
            return -math.inf
    if math.isnan(above):
        above = gap(high)
        while above <= 0 and high < 0.0:
            low, below, high, width = high, above, min(0.0, high + width), 2 * width
            above = gap(high)
        if above <= 0:
            return high
    side = 0
    weight_low, weight_high = below, above
    while high - low > tolerance:
        if math.isfinite(weight_low) and math.isfinite(weight_high) and weight_high > weight_low:
            x = low + (high - low) * (-weight_low) / (weight_high - weight_low)
            x = float(np.clip(x, low + tolerance / 2, high - tolerance / 2))
        else:
            x = (low + high) / 2
        value = gap(x)
        if value <= 0:
            low, weight_low = x, value
            weight_high = weight_high / 2 if side == -1 else weight_high
            side = -1
        else:
            high, weight_high = x, value
            weight_low = weight_low / 2 if side == 1 else weight_low
            side = 1
    return low
