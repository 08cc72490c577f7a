"""What charges cost a privacy filter, and what a budget allows it: one function for each theorem, rounded safely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dp_accounting import DpEvent, NeighboringRelation, dp_event
from dp_accounting.rdp import RdpAccountant

from accounting.balls import ball, rounded_down
from accounting.basic import basic_cost
from accounting.decimals import decimal, decimal_text
from accounting.events import BoundedRangeDpEvent, DiscreteGaussianDpEvent, GroupDpEvent, RdpDpEvent
from accounting.routes import closed_form
from accounting.theorems import gaussian_delta
from accounting.translate import distance

_ACCOUNTANT_ERROR = Fraction(1, 10**9)
"""Relative error allowed to dp-accounting's Renyi divergences."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums on both sides of a filter. amount: in the filter's unit; delta: of the charges themselves."""

    amount: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.amount + other.amount, self.delta + other.delta)

    def times(self, count: int) -> Spent:
        """The cost of `count` releases."""
        return Spent(count * self.amount, count * self.delta)

    def within(self, limits: Spent) -> bool:
        """Whether neither sum is over its limit."""
        return self.amount <= limits.amount and self.delta <= limits.delta


def zcdp_cost(event: DpEvent, relation: NeighboringRelation) -> Spent | None:
    """(rho, delta) such that a checked event is delta-approximately rho-zCDP, or None.

    epsilon-DP: epsilon^2/2 (Bun and Steinke 2016, Proposition 1.4), with a delta likewise (their Lemma 8.8).
    eta-bounded range: eta^2/8 (Cesar and Rogers 2021, Lemma 3.2). Gaussian noise, continuous or discrete:
    (distance/sigma)^2/2 (Bun and Steinke 2016, Proposition 1.6; Canonne, Kamath and Steinke 2020, Theorem 4). Groups of
    g: g^2 rho (Bun and Steinke 2016, Proposition 1.9).
    """
    match event:
        case dp_event.ZCDpEvent(rho=rho, xi=xi):
            return Spent(decimal("rho", rho)) if xi == 0 else None
        case dp_event.GaussianDpEvent(noise_multiplier=sigma):
            return Spent((distance(relation) / decimal("noise_multiplier", sigma)) ** 2 / 2) if sigma > 0 else None
        case DiscreteGaussianDpEvent(sigma=sigma, sensitivity=sensitivity):
            return Spent((sensitivity * distance(relation) / decimal("sigma", sigma)) ** 2 / 2)
        case BoundedRangeDpEvent(eta=eta):
            return Spent(decimal("eta", eta) ** 2 / 8)
        case dp_event.SelfComposedDpEvent(event=inner, count=count):
            once = zcdp_cost(inner, relation)
            return None if once is None else once.times(count)
        case dp_event.ComposedDpEvent(events=parts):
            return _sum([zcdp_cost(part, relation) for part in parts])
        case GroupDpEvent(event=inner, size=size):
            one = zcdp_cost(inner, relation)
            if one is not None and one.delta == 0:
                return Spent(size**2 * one.amount)
    pair = pair_cost(event, relation)
    return None if pair is None else Spent(pair.amount**2 / 2, pair.delta)


def pair_cost(event: DpEvent, relation: NeighboringRelation) -> Spent | None:
    """(epsilon, delta) of a checked event by a closed form, or None where there is no finite one."""
    exact = basic_cost(event, relation)
    if exact is not None:
        return Spent(exact.epsilon, exact.delta)
    pair = closed_form(event, relation)
    if pair is None or math.isinf(pair.epsilon):
        return None
    return Spent(Fraction(pair.epsilon), Fraction(pair.delta))


def _sum(costs: list[Spent | None]) -> Spent | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known, Spent()) if len(known) == len(costs) else None


def renyi_cost(event: DpEvent, order: float, relation: NeighboringRelation) -> Fraction | None:
    """A bound on the Renyi divergence of the order, rounded up, or None. A divergence never exceeds a pure epsilon."""
    match event:
        case RdpDpEvent(orders=orders, values=values):
            return _read_curve(orders, values, order)
        case dp_event.ZCDpEvent(rho=rho, xi=xi):
            return decimal("xi", xi) + decimal("rho", rho) * Fraction(order)
        case dp_event.SelfComposedDpEvent(event=inner, count=count):
            once = renyi_cost(inner, order, relation)
            return None if once is None else count * once
        case dp_event.ComposedDpEvent(events=parts):
            found = [renyi_cost(part, order, relation) for part in parts]
            known = [value for value in found if value is not None]
            return sum(known, Fraction(0)) if len(known) == len(found) else None
        case dp_event.PoissonSampledDpEvent(event=dp_event.GaussianDpEvent(noise_multiplier=sigma)) if sigma > 0:
            if relation is not NeighboringRelation.ADD_OR_REMOVE_ONE:
                return None
            value = float(RdpAccountant([order], relation).compose(event)._rdp[0])
            return Fraction(value) * (1 + _ACCOUNTANT_ERROR) if math.isfinite(value) and value >= 0 else None
    concentrated, pair = zcdp_cost(event, relation), pair_cost(event, relation)
    bounds = [concentrated.amount * Fraction(order)] if concentrated is not None and concentrated.delta == 0 else []
    bounds += [pair.amount] if pair is not None and pair.delta == 0 else []
    return min(bounds, default=None)


def _read_curve(orders: tuple[float, ...], values: tuple[float, ...], order: float) -> Fraction | None:
    """D at an order: (a - 1) D_a is convex, so chords between listed orders bound it, and D grows up to the first."""
    if order <= orders[0]:
        return decimal("values", values[0])
    for left, right, low, high in zip(orders, orders[1:], values, values[1:], strict=False):
        if left <= order <= right:
            a, b, x = Fraction(left), Fraction(right), Fraction(order)
            ends = (a - 1) * decimal("values", low), (b - 1) * decimal("values", high)
            return (ends[0] * (b - x) + ends[1] * (x - a)) / ((b - a) * (x - 1))
    return None


# Limits.


def renyi_limit(order: float, epsilon: Fraction, delta: Fraction) -> float:
    """The largest divergence at this order that implies (epsilon, delta)-DP by Proposition 12, rounded down."""

    def limit() -> Any:
        a = ball(order)
        return ball(epsilon) - (1 - 1 / a).log() + (ball(delta).log() + a.log()) / (a - 1)

    return rounded_down(limit)


def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, nearly the largest, with rho-zCDP implying (epsilon, delta)-DP; any order gives one that is valid."""

    def value(exponent: float) -> float:
        order = 1 + math.exp(exponent)
        slope = (math.log(delta) + math.log(order)) / (order - 1)
        return (float(epsilon) - math.log1p(-1 / order) + slope) / order

    grid = [x / 50 for x in range(-400, 900)]
    order = 1 + math.exp(max(grid, key=value))
    rho = Fraction(renyi_limit(order, epsilon, delta)) / Fraction(order)
    if rho <= 0:
        raise ValueError(f"the budget must allow some rho over 0, got ({decimal_text(epsilon)}, {decimal_text(delta)})")
    return rho


def smallest_sigma(epsilon: float, delta: float) -> float:
    """Nearly the smallest noise over sensitivity that meets (epsilon, delta): the upper end of a bracket."""
    low, high = 1e-6, 1e9
    if not (0 < delta < 1 and gaussian_delta(high, epsilon) <= delta):
        raise ValueError(
            f"the budget must be one that Gaussian noise can meet, got epsilon {epsilon!r}, delta {delta!r}"
        )
    while high > low * (1 + 1e-12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian_delta(middle, epsilon) <= delta else (middle, high)
    return high
