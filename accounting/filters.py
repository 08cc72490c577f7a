"""Privacy filters: budgets for releases whose privacy parameters are chosen after seeing earlier outputs.

Composition theorems add up parameters that were fixed in advance. When they are chosen along the way, the sum of what
was spent is a random variable, and putting it into such a theorem afterwards proves nothing: stopping when a composed
curve crosses the budget is not even valid for trade-off functions, hence not for privacy loss distributions. What is
valid is a *filter*: a rule, fixed before the first release, that admits a release as long as some sums stay within
their limits. The whole interaction, however it went, then has the guarantee the limits stand for, no more and no less.

| filter | a charge costs | limits | the interaction then is |
|---|---|---|---|
| `BasicFilter` | its (epsilon, delta) | the budget | (epsilon, delta)-DP |
| `ZCdpFilter` | its rho, and its delta | rho for the budget; the delta set aside | delta-approximately rho-zCDP |
| `GaussianFilter` | mu^2, Gaussian noise only | mu^2 for the budget | mu-Gaussian-DP |
| `RenyiFilter` | its Renyi divergence at one order | that of the budget | bounded at that order |

Sources: Rogers, Roth, Ullman and Vadhan (2016) for filters and for basic sums; Feldman and Zrnic (2021) for Renyi
divergences of one order; Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1, for approximate zCDP; Smith and Thakurta
(2022) for Gaussian DP. Limits round down, costs up.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, runtime_checkable

from dp_accounting import DpEvent, NeighboringRelation, UnsupportedEventError, dp_event

from accounting._checks import check_real, check_text, relation_name
from accounting.balls import ball, rounded_up
from accounting.decimals import Budget, decimal, decimal_text, decimal_up
from accounting.event_table import check_keys
from accounting.events import ApproximateDpEvent, RdpDpEvent
from accounting.filter_costs import (
    Spent,
    largest_rho,
    pair_cost,
    renyi_cost,
    renyi_limit,
    smallest_sigma,
    zcdp_cost,
)
from accounting.rationals import round_down
from accounting.translate import distance


class AdaptiveChoiceError(ValueError):
    """A charge was chosen after seeing outputs, and the ledger's total is not valid for such charges."""


@runtime_checkable
class PrivacyFilter(Hashable, Protocol):
    """A rule fixed in advance. Filters are frozen values; equal ones are the same rule."""

    @property
    def kind(self) -> str:
        """Its name in files."""

    @property
    def unit(self) -> str:
        """What the amounts are."""

    @property
    def source(self) -> str:
        """The theorem that makes it valid."""

    def limits(self, budget: Budget, relation: NeighboringRelation) -> Spent:
        """The largest sums that the budget allows, rounded down.

        Raises:
            ValueError: it allows none.
        """

    def cost(self, event: DpEvent, relation: NeighboringRelation) -> Spent:
        """What one release of a checked event costs, rounded up.

        Raises:
            UnsupportedEventError: no theorem puts this event into the filter's unit.
        """

    def guarantee(self, limits: Spent, relation: NeighboringRelation) -> DpEvent:
        """What the whole interaction satisfies."""

    def to_json(self) -> dict[str, object]:
        """The filter in a file's header."""


@dataclass(frozen=True, slots=True)
class BasicFilter:
    """Sums of epsilons and deltas within the budget's. Source: Rogers, Roth, Ullman and Vadhan (2016), Section 3."""

    kind = "basic"
    unit = "epsilon"
    source = "basic composition filter: Rogers, Roth, Ullman and Vadhan (2016)"

    def limits(self, budget: Budget, relation: NeighboringRelation) -> Spent:
        return Spent(budget.epsilon, budget.delta)

    def cost(self, event: DpEvent, relation: NeighboringRelation) -> Spent:
        pair = pair_cost(event, relation)
        if pair is None:
            raise _unsupported(
                self, event, relation, "enter it as an ApproximateDpEvent with numbers that it satisfies"
            )
        return pair

    def guarantee(self, limits: Spent, relation: NeighboringRelation) -> DpEvent:
        return ApproximateDpEvent(decimal_up(limits.amount), min(1.0, decimal_up(limits.delta)))

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind}


@dataclass(frozen=True, slots=True)
class ZCdpFilter:
    """Sums of zCDP's rho, and of deltas, within what the budget stands for.

    charges_delta: the part of the budget's delta set aside for deltas of the charges themselves; the rest turns rho
    into epsilon, by Canonne, Kamath and Steinke (2020), Proposition 12. Numbers as in a budget.

    Source: Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1. Costs: see `zcdp_cost`.
    """

    charges_delta: Fraction = Fraction(0)

    kind = "zcdp"
    unit = "rho"
    source = "approximate zCDP filter: Whitehouse, Ramdas, Rogers and Wu (2023), Theorem 1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "charges_delta", decimal("charges_delta", self.charges_delta))

    def limits(self, budget: Budget, relation: NeighboringRelation) -> Spent:
        slack = budget.delta - self.charges_delta
        if slack <= 0:
            raise ValueError(
                f"charges_delta must leave some of the budget's delta {decimal_text(budget.delta)} to turn rho into "
                f"epsilon, got {decimal_text(self.charges_delta)}"
            )
        return Spent(largest_rho(budget.epsilon, slack), self.charges_delta)

    def cost(self, event: DpEvent, relation: NeighboringRelation) -> Spent:
        cost = zcdp_cost(event, relation)
        if cost is None:
            raise _unsupported(self, event, relation, "no theorem here gives it a rho")
        return cost

    def guarantee(self, limits: Spent, relation: NeighboringRelation) -> DpEvent:
        curve = dp_event.ZCDpEvent(decimal_up(limits.amount))
        if not limits.delta:
            return curve
        return dp_event.ComposedDpEvent([curve, ApproximateDpEvent(0.0, decimal_up(limits.delta))])

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "charges_delta": decimal_text(self.charges_delta)}


@dataclass(frozen=True, slots=True)
class GaussianFilter:
    """Sums of mu^2 of Gaussian noise within that of the largest mu whose profile meets the budget: no loss against
    parameters fixed in advance. Source: Smith and Thakurta (2022); Koskela, Tobaben and Honkela (2023).
    """

    kind = "gaussian"
    unit = "mu^2"
    source = "Gaussian DP filter: Smith and Thakurta (2022)"

    def limits(self, budget: Budget, relation: NeighboringRelation) -> Spent:
        sigma = smallest_sigma(round_down(budget.epsilon), round_down(budget.delta))
        return Spent(1 / Fraction(sigma) ** 2)

    def cost(self, event: DpEvent, relation: NeighboringRelation) -> Spent:
        match event:
            case dp_event.NoOpDpEvent():
                return Spent()
            case dp_event.GaussianDpEvent(noise_multiplier=sigma) if sigma > 0:
                return Spent((distance(relation) / decimal("noise_multiplier", sigma)) ** 2)
            case dp_event.SelfComposedDpEvent(event=inner, count=count):
                return self.cost(inner, relation).times(count)
            case dp_event.ComposedDpEvent(events=parts):
                return sum((self.cost(part, relation) for part in parts), Spent())
            case _:
                raise _unsupported(self, event, relation, "it takes Gaussian noise only")

    def guarantee(self, limits: Spent, relation: NeighboringRelation) -> DpEvent:
        mu = rounded_up(lambda: ball(limits.amount).sqrt())
        return dp_event.GaussianDpEvent(round_down(distance(relation) / Fraction(mu)))

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind}


@dataclass(frozen=True, slots=True)
class RenyiFilter:
    """Sums of Renyi divergences at one order, over 1, within what the budget stands for at that order.

    The order is fixed with the filter: picking the best one afterwards would need a union bound. Only charges without a
    delta of their own. Source: Feldman and Zrnic (2021).
    """

    order: float

    kind = "renyi"
    source = "Renyi filter at a fixed order: Feldman and Zrnic (2021)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check_real("order", self.order, lo=1.0, lo_open=True))

    @property
    def unit(self) -> str:
        return f"Renyi divergence of order {self.order:g}"

    def limits(self, budget: Budget, relation: NeighboringRelation) -> Spent:
        limit = renyi_limit(self.order, budget.epsilon, budget.delta) if budget.delta else -1.0
        if limit <= 0:
            raise ValueError(f"order must be one at which the budget {budget} allows some, got {self.order:g}")
        return Spent(Fraction(limit))

    def cost(self, event: DpEvent, relation: NeighboringRelation) -> Spent:
        divergence = renyi_cost(event, self.order, relation)
        if divergence is None:
            raise _unsupported(self, event, relation, "no theorem here bounds its divergence at this order")
        return Spent(divergence)

    def guarantee(self, limits: Spent, relation: NeighboringRelation) -> DpEvent:
        return RdpDpEvent((self.order,), (decimal_up(limits.amount),))

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "order": self.order}


@lru_cache(maxsize=4096)
def filter_cost(rule: PrivacyFilter, event: DpEvent, relation: NeighboringRelation) -> Spent:
    """`rule.cost`, remembered."""
    return rule.cost(event, relation)


@lru_cache(maxsize=256)
def filter_limits(rule: PrivacyFilter, budget: Budget, relation: NeighboringRelation) -> Spent:
    """`rule.limits`, remembered."""
    return rule.limits(budget, relation)


# Files.


def filter_of(value: object) -> PrivacyFilter:
    """A filter, or one of the names "basic", "zcdp" and "gaussian" for a filter without parameters."""
    if isinstance(value, PrivacyFilter) and not isinstance(value, type):
        return value
    named: dict[str, PrivacyFilter] = {"basic": BasicFilter(), "zcdp": ZCdpFilter(), "gaussian": GaussianFilter()}
    if isinstance(value, str) and value in named:
        return named[value]
    raise ValueError(f"filter must be a privacy filter or one of {', '.join(named)}, got {value!r}")


def filter_from_json(value: object) -> PrivacyFilter:
    """The inverse of a filter's `to_json`.

    Raises:
        TypeError, ValueError: an unknown kind, a missing or extra key, a number against its rule.
    """
    kind = value.get("kind") if isinstance(value, Mapping) else None
    match kind:
        case "basic" | "gaussian":
            check_keys(value, ("kind",), "filter")
            return BasicFilter() if kind == "basic" else GaussianFilter()
        case "zcdp":
            fields = check_keys(value, ("kind", "charges_delta"), "filter")
            return ZCdpFilter(decimal("charges_delta", check_text("filter.charges_delta", fields["charges_delta"])))
        case "renyi":
            fields = check_keys(value, ("kind", "order"), "filter")
            return RenyiFilter(fields["order"])
        case _:
            raise ValueError(f"filter.kind must be basic, zcdp, gaussian or renyi, got {kind!r}")


def _unsupported(rule: PrivacyFilter, event: DpEvent, relation: NeighboringRelation, why: str) -> UnsupportedEventError:
    what = f"{type(event).__name__} under {relation_name(relation)}"
    return UnsupportedEventError(f"the {rule.kind} filter cannot take {what} ({why}), got {event!r}")
