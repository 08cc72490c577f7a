"""Basic composition in exact arithmetic: (epsilon, delta) of an event where both are plain decimals, and their sums.

Source: Dwork and Roth (2014), Theorem 3.16: epsilons add up, deltas add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_accounting import DpEvent, NeighboringRelation, dp_event

from accounting.decimals import decimal
from accounting.events import ApproximateDpEvent, BoundedRangeDpEvent, GroupDpEvent, PermuteAndFlipDpEvent
from accounting.translate import distance


@dataclass(frozen=True, slots=True)
class BasicCost:
    """(epsilon, delta)-DP, exactly; costs add up by basic composition."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: BasicCost) -> BasicCost:
        return BasicCost(self.epsilon + other.epsilon, self.delta + other.delta)

    def times(self, count: int) -> BasicCost:
        """The cost of `count` uses."""
        return BasicCost(count * self.epsilon, count * self.delta)


def basic_cost(event: DpEvent, relation: NeighboringRelation) -> BasicCost | None:
    """The (epsilon, delta) of a checked event in exact decimals; None where its formula is not a rational one.

    Group privacy multiplies a pure epsilon by the group's size. A float parameter is read as the decimal it shows. Sums
    of bounded values move by one value when a record comes or goes and by two when it is replaced, hence the factor for
    additive noise under REPLACE_ONE.
    """
    match event:
        case dp_event.NoOpDpEvent():
            return BasicCost(Fraction(0))
        case ApproximateDpEvent(epsilon=epsilon, delta=delta):
            return BasicCost(decimal("epsilon", epsilon), decimal("delta", delta))
        case BoundedRangeDpEvent(eta=eta):
            return BasicCost(decimal("eta", eta))
        case PermuteAndFlipDpEvent(epsilon=epsilon):
            return BasicCost(decimal("epsilon", epsilon))
        case dp_event.LaplaceDpEvent(noise_multiplier=scale) if scale > 0:
            return BasicCost(distance(relation) / decimal("noise_multiplier", scale))
        case dp_event.DiscreteLaplaceDpEvent(noise_parameter=rate, sensitivity=sensitivity):
            return BasicCost(distance(relation) * decimal("noise_parameter", rate) * sensitivity)
        case dp_event.SelfComposedDpEvent(event=inner, count=count):
            once = basic_cost(inner, relation)
            return once.times(count) if once is not None else None
        case GroupDpEvent(event=inner, size=size):
            one = basic_cost(inner, relation)
            return one.times(size) if one is not None and one.delta == 0 else None
        case dp_event.ComposedDpEvent(events=parts):
            costs = [basic_cost(part, relation) for part in parts]
            known = [cost for cost in costs if cost is not None]
            return sum(known, BasicCost(Fraction(0))) if len(known) == len(costs) else None
        case _:
            return None
