"""What a set of charges costs one record: two upper bounds, and the smaller of them.

- *basic*: exact decimal sums of the charges' (epsilon, delta), where every charge is plainly (epsilon, delta)-DP;
- *composed*: the privacy profile of the composition of all charges.

A total is computed from nothing but its charges, so it depends neither on their order nor on what was asked before;
equal sets of charges share one computation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import cast

from dp_accounting import DpEvent, NeighboringRelation, dp_event

from accounting._checks import check_probability, check_real
from accounting.basic import BasicCost, basic_cost
from accounting.codec import canonical_json
from accounting.decimals import Budget, decimal, decimal_up
from accounting.event_table import dump_event
from accounting.filter_costs import Spent
from accounting.filters import PrivacyFilter
from accounting.profiles import PrivacyProfile
from accounting.rationals import round_down

Counts = frozenset[tuple[DpEvent, int]]
"""Equal events grouped: each with how often it was charged."""

_DIGITS = (3, 6, 9)


def counts_of(groups: Mapping[DpEvent, int]) -> Counts:
    """The groups as a hashable value; an event charged 0 times is none."""
    return frozenset((event, count) for event, count in groups.items() if count)


@dataclass(frozen=True)
class Total:
    """The total of `counts`; get one from `total_of`, which shares equal ones."""

    counts: Counts
    relation: NeighboringRelation

    @cached_property
    def basic(self) -> BasicCost | None:
        """The exact sums, or None if some charge has no exact (epsilon, delta)."""
        sums = BasicCost(Fraction(0))
        for event, count in self.counts:
            cost = basic_cost(event, self.relation)
            if cost is None:
                return None
            sums += cost.times(count)
        return sums

    @cached_property
    def event(self) -> DpEvent:
        """All charges as one event, in an order of their own."""
        ordered = sorted(self.counts, key=lambda item: canonical_json(dump_event(item[0])))
        parts = tuple(event if count == 1 else dp_event.SelfComposedDpEvent(event, count) for event, count in ordered)
        return dp_event.ComposedDpEvent(cast("list[DpEvent]", parts))

    @cached_property
    def profile(self) -> PrivacyProfile:
        """The profile of the composition.

        Raises:
            UnsupportedEventError: no theorem covers a charge under the relation.
        """
        return PrivacyProfile.from_event(self.event, relation=self.relation)

    def epsilon(self, delta: float) -> float:
        """Smallest known epsilon, in nats, at delta (the decimal it shows); an upper bound, inf if there is none."""
        check_probability("delta", delta)
        basic = self.basic_epsilon(delta)
        if delta == 0 and basic < math.inf:
            return basic  # pure costs attain their sum, so no other bound is below it
        return min(basic, self.profile.epsilon(delta))

    def basic_epsilon(self, delta: float) -> float:
        """Epsilon at delta by the exact sums; inf where they do not apply or their delta is larger."""
        if self.basic is None or self.basic.delta > decimal("delta", delta):
            return math.inf
        return decimal_up(self.basic.epsilon)

    def delta(self, epsilon: float) -> float:
        """Smallest known delta at epsilon, any real number of nats; an upper bound."""
        check_real("epsilon", epsilon)
        basic = 1.0
        if self.basic is not None and epsilon >= 0 and self.basic.epsilon <= decimal("epsilon", epsilon):
            basic = min(1.0, decimal_up(self.basic.delta))
        return min(basic, self.profile.delta(epsilon))

    def fits(self, budget: Budget) -> bool:
        """Whether some bound is within the budget: the sums exactly, the profile rounded against the charges.

        Charges are within a budget when more charges are, because dropping outputs is post-processing. So the counts
        are first rounded up to few binary digits, which long runs of charges share; only near the limit are they looked
        at one by one.
        """
        if self.basic is not None:
            if self.basic.epsilon <= budget.epsilon and self.basic.delta <= budget.delta:
                return True
            if budget.delta == 0 and self.basic.delta == 0:
                return False
        rounded = (_rounded_up(self.counts, digits) for digits in _DIGITS)
        return any(_profile_fits(counts, self.relation, budget) for counts in (*rounded, self.counts))


@dataclass(frozen=True)
class FilterTotal:
    """What a filter's sums stand for: the guarantee of an interaction that was kept within them.

    known: an (epsilon, delta) that the sums imply, exactly; None if only the guarantee's profile says.
    """

    rule: PrivacyFilter
    sums: Spent
    relation: NeighboringRelation
    known: Budget | None = None

    @cached_property
    def profile(self) -> PrivacyProfile:
        """The profile of the guarantee."""
        return PrivacyProfile.from_event(self.rule.guarantee(self.sums, self.relation), relation=self.relation)

    def epsilon(self, delta: float) -> float:
        """Epsilon at delta, an upper bound, as `Total.epsilon`."""
        check_probability("delta", delta)
        if self.known is None or self.known.delta > decimal("delta", delta):
            return self.profile.epsilon(delta)
        return min(decimal_up(self.known.epsilon), self.profile.epsilon(delta))

    def delta(self, epsilon: float) -> float:
        """Delta at epsilon, an upper bound, as `Total.delta`."""
        check_real("epsilon", epsilon)
        if self.known is None or epsilon < 0 or self.known.epsilon > decimal("epsilon", epsilon):
            return self.profile.delta(epsilon)
        return min(decimal_up(self.known.delta), self.profile.delta(epsilon))


@lru_cache(maxsize=4096)
def _profile_fits(counts: Counts, relation: NeighboringRelation, budget: Budget) -> bool:
    return total_of(counts, relation).profile.epsilon(round_down(budget.delta)) <= round_down(budget.epsilon)


def _rounded_up(counts: Counts, digits: int) -> Counts:
    """Every count rounded up to a multiple of the power of two that leaves it so many binary digits."""
    found = set()
    for event, count in counts:
        shift = max(count.bit_length() - digits, 0)
        found.add((event, -(-count >> shift) << shift))
    return frozenset(found)


@lru_cache(maxsize=256)
def total_of(counts: Counts, relation: NeighboringRelation) -> Total:
    """The total of these charges under this relation."""
    return Total(counts, relation)
