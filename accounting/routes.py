"""One total by every route that applies, side by side, and the check that they come in the order in which they must.

- `PAPER`: each sampled step by Theorem 3.4, then Theorem 3.5 (Corollary 6.11) at the worst step. Applies when every
  charge is (epsilon, delta)-DP in closed form.
- `BASIC`: sums of the same pairs. `OPTIMAL`: the best total that the same pairs allow.
- `DOMINATING`: composition of dominating pairs. Always applies.
- `RDP`: dp-accounting's Renyi accountant, for charges on which it was checked to be right.
- `OPINION`: dp-accounting's PLD accountant, for charges that it supports; shown, not counted.

A pair of numbers says less than a curve, and sums say less than the best composition, so
``DOMINATING <= OPTIMAL <= PAPER, BASIC`` and ``DOMINATING <= RDP``. Where that fails, one of the two is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dp_accounting import DpEvent, NeighboringRelation, dp_event

from accounting._checks import check_probability, check_relation
from accounting.basic import basic_cost
from accounting.decimals import decimal, decimal_up
from accounting.event_table import check_event
from accounting.events import GroupDpEvent, PermuteAndFlipDpEvent
from accounting.leaves import randomized_response_pair
from accounting.opinions import pld_opinion, renyi_epsilon
from accounting.optimal_composition import optimal_composition_epsilon
from accounting.profiles import PrivacyProfile
from accounting.theorems import (
    EpsilonDelta,
    advanced_composition_epsilon,
    amplify,
    basic_composition,
    group_privacy,
)

PAPER = "paper"
BASIC = "basic"
OPTIMAL = "optimal composition of amplified pairs"
DOMINATING = "dominating pairs"
RDP = "rdp"
OPINION = "dp-accounting PLD"

_NAMES = (PAPER, BASIC, OPTIMAL, DOMINATING, RDP, OPINION)
_TOLERANCE = 1e-5
_INNER_TOLERANCE = 1e-2
"""Inside a sampling step a composition is kept on a lattice of 2**13 nodes, and its largest loss rounded up on it."""
_PAIRS = "each charge is (epsilon, delta)-DP; nothing else is known of it"


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a total.

    name: a constant of this module. epsilon: in nats, at the delta that was asked for. source: the theorems it rests
    on. assumes: what it takes from the charges. bound: "upper", or "opinion" for a number that is shown beside the
    others and never counted. note: what there is to say about it, or None.
    """

    name: str
    epsilon: float
    source: str
    assumes: str
    bound: str = "upper"
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields but the name; infinity as the string "inf"."""
        epsilon = self.epsilon if math.isfinite(self.epsilon) else "inf"
        record = {"epsilon": epsilon, "bound": self.bound, "source": self.source, "assumes": self.assumes}
        return record if self.note is None else {**record, "note": self.note}


class RouteOrderError(ArithmeticError):
    """Two routes to one total are in an order that theory excludes: one of the two numbers is wrong.

    Attributes: lower, upper (the routes that should satisfy lower.epsilon <= upper.epsilon), delta.
    """

    def __init__(self, lower: Route, upper: Route, delta: float) -> None:
        super().__init__(
            f"route {lower.name!r} must not exceed route {upper.name!r} at delta {delta:g}, "
            f"got {lower.epsilon!r} and {upper.epsilon!r}"
        )
        self.lower, self.upper, self.delta = lower, upper, delta


def all_routes(
    event: DpEvent, delta: float, *, relation: NeighboringRelation | str, second_opinion: bool = True
) -> dict[str, Route]:
    """The total epsilon at `delta` of an event tree, by every route that applies: name to route.

    second_opinion: whether to run dp-accounting's PLD accountant too, which can take seconds.

    Raises:
        RouteOrderError: two routes contradict each other.
        UnsupportedEventError: no theorem covers the event under the relation.
        TypeError, ValueError: a parameter against its rule.

    >>> from dp_accounting import SampledWithoutReplacementDpEvent, SelfComposedDpEvent
    >>> from accounting.events import ApproximateDpEvent
    >>> block = SampledWithoutReplacementDpEvent(10_000, 10, ApproximateDpEvent(8.8, 1e-9))
    >>> found = all_routes(SelfComposedDpEvent(block, 10), 1e-6, relation="replace-one")
    >>> [(name, round(route.epsilon, 2)) for name, route in found.items()]
    [('paper', 168.61), ('basic', 20.33), ('optimal composition of amplified pairs', 20.33),
     ('dominating pairs', 4.05)]
    """
    delta, relation = check_probability("delta", delta), check_relation("relation", relation)
    checked = check_event(event)
    leaves: dict[DpEvent, int] = {}
    _collect(checked, 1, leaves)
    dominating = Route(
        DOMINATING,
        PrivacyProfile.from_event(checked, relation=relation).epsilon(delta),
        "Zhu, Dong and Wang (2022), Theorem 10; under sampling Balle, Barthe and Gaboardi (2018), Theorem 9",
        "each charge's whole privacy profile",
    )

    def again(at: float) -> float:
        return PrivacyProfile.from_event(checked, relation=relation).epsilon(at)

    found = _from_pairs(checked, leaves, delta, relation)
    if found:
        inner = any(isinstance(leaf, _SAMPLED) and isinstance(leaf.event, _COMPOSED) for leaf in leaves)
        tolerance = _INNER_TOLERANCE if inner else _TOLERANCE
        dominating = _ordered(dominating, found[OPTIMAL], again, delta, tolerance)
    renyi = renyi_epsilon(leaves, delta, relation)
    if renyi is not None:
        found[RDP] = Route(
            RDP,
            renyi,
            "Mironov (2017); Canonne, Kamath and Steinke (2020), Proposition 12 (dp-accounting's RdpAccountant)",
            "charges for which that accountant was checked under this relation",
        )
        dominating = _ordered(dominating, found[RDP], again, delta)
    found[DOMINATING] = dominating
    if second_opinion:
        opinion = pld_opinion(checked, leaves, delta, relation, dominating.epsilon)
        if opinion is not None:
            epsilon, note = opinion
            found[OPINION] = Route(OPINION, epsilon, "dp-accounting's PLDAccountant", "as it stands", "opinion", note)
    return {name: found[name] for name in _NAMES if name in found}


def all_routes_over(
    events: Iterable[DpEvent], delta: float, *, relation: NeighboringRelation | str, second_opinion: bool = True
) -> dict[str, Route]:
    """The total over disjoint blocks, one event tree each: by every route that applies to all, the largest.

    Source of the maximum: McSherry (2009), Theorem 4. Raises: as `all_routes`.
    """
    relation = check_relation("relation", relation)
    trees = list(events) or [dp_event.NoOpDpEvent()]
    each = [all_routes(tree, delta, relation=relation, second_opinion=second_opinion) for tree in trees]
    names = [name for name in each[0] if all(name in found for found in each)]
    largest = {name: max((found[name] for found in each), key=lambda route: route.epsilon) for name in names}
    notes = [found[OPINION].note for found in each if OPINION in found and found[OPINION].note]
    if OPINION in largest and len(each) > 1:
        largest[OPINION] = replace(largest[OPINION], note="; ".join(dict.fromkeys(map(str, notes))))
    return largest


def tightest(found: Mapping[str, Route]) -> Route:
    """The smallest of the routes that are upper bounds: the answer."""
    return min((route for route in found.values() if route.bound == "upper"), key=lambda route: route.epsilon)


def _collect(event: DpEvent, count: int, leaves: dict[DpEvent, int]) -> None:
    match event:
        case dp_event.NoOpDpEvent():
            pass
        case dp_event.ComposedDpEvent(events=parts):
            for part in parts:
                _collect(part, count, leaves)
        case dp_event.SelfComposedDpEvent(event=inner, count=times):
            _collect(inner, count * times, leaves)
        case _ if count:
            leaves[event] = leaves.get(event, 0) + count


def _from_pairs(
    event: DpEvent, leaves: Mapping[DpEvent, int], delta: float, relation: NeighboringRelation
) -> dict[str, Route]:
    pairs: dict[EpsilonDelta, int] = {}
    for leaf, count in leaves.items():
        pair = closed_form(leaf, relation)
        if pair is None:
            return {}
        pairs[pair] = pairs.get(pair, 0) + count
    then = "Theorem 3.4, then " if any(isinstance(leaf, _SAMPLED) for leaf in leaves) else ""
    paper = Route(PAPER, _paper(pairs, delta), f"{then}Theorem 3.5 (Corollary 6.11) of the paper", _PAIRS)
    basic_source = f"{then}basic composition: Dwork and Roth (2014), Theorem 3.16"
    basic = Route(BASIC, _basic(event, pairs, delta, relation), basic_source, _PAIRS)
    best = Route(OPTIMAL, _optimal(pairs, delta), f"{then}Kairouz, Oh and Viswanath (2015), Theorem 3.3", _PAIRS)
    for upper in (paper, basic):
        best = _ordered(best, upper, lambda at: _optimal(pairs, at), delta)
    return {PAPER: paper, BASIC: basic, OPTIMAL: best}


_SAMPLED = (dp_event.SampledWithoutReplacementDpEvent, dp_event.PoissonSampledDpEvent)
_COMPOSED = (dp_event.ComposedDpEvent, dp_event.SelfComposedDpEvent)


def closed_form(event: DpEvent, relation: NeighboringRelation) -> EpsilonDelta | None:
    """(epsilon, delta) of a checked event by a closed form, rounded up, or None where there is none.

    Sampling steps are amplified by Theorem 3.4, compositions inside them added up.
    """
    plain = basic_cost(event, relation)
    if plain is not None:
        return EpsilonDelta(decimal_up(plain.epsilon), min(1.0, decimal_up(plain.delta)))
    match event:
        case dp_event.NonPrivateDpEvent():
            return EpsilonDelta(math.inf, 0.0)
        case PermuteAndFlipDpEvent(epsilon=epsilon):
            return EpsilonDelta(epsilon)
        case dp_event.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=buckets):
            pair = randomized_response_pair(noise, buckets)
            loss = math.inf if pair.infinite else max(0.0, pair.max_loss)
            return EpsilonDelta(math.nextafter(loss, math.inf) if 0 < loss < math.inf else loss)
        case GroupDpEvent(event=inner, size=size):
            step = closed_form(inner, relation)
            return None if step is None else group_privacy(step, size)
        case dp_event.ComposedDpEvent(events=parts):
            steps = [closed_form(part, relation) for part in parts]
            known = [(step, 1) for step in steps if step is not None]
            return basic_composition(known) if len(known) == len(steps) else None
        case dp_event.SelfComposedDpEvent(event=inner, count=count):
            step = closed_form(inner, relation)
            return None if step is None else basic_composition([(step, count)])
        case dp_event.SampledWithoutReplacementDpEvent(source_dataset_size=source, sample_size=drawn, event=inner):
            step = closed_form(inner, relation)
            return None if step is None else amplify(step, Fraction(drawn, source))
        case dp_event.PoissonSampledDpEvent(sampling_probability=probability, event=inner):
            step = closed_form(inner, relation)
            return None if step is None else amplify(step, probability)
        case _:
            return None


def _paper(pairs: Mapping[EpsilonDelta, int], delta: float) -> float:
    """Theorem 3.5 wants one pair that holds in every round: the largest epsilon with the largest delta."""
    count = sum(pairs.values())
    if not count:
        return 0.0
    worst = EpsilonDelta(max(pair.epsilon for pair in pairs), max(pair.delta for pair in pairs))
    if count == 1:
        return worst.epsilon if worst.delta <= delta else math.inf
    return advanced_composition_epsilon(worst, count, delta)


def _basic(event: DpEvent, pairs: Mapping[EpsilonDelta, int], delta: float, relation: NeighboringRelation) -> float:
    exact = basic_cost(event, relation)  # in decimals, so that ten charges of 0.1 are 1
    if exact is not None:
        return decimal_up(exact.epsilon) if exact.delta <= decimal("delta", delta) else math.inf
    total = basic_composition(pairs.items())
    return total.epsilon if total.delta <= delta else math.inf


def _optimal(pairs: Mapping[EpsilonDelta, int], delta: float) -> float:
    if len(pairs) == 1:
        ((pair, count),) = pairs.items()
        return optimal_composition_epsilon(pair, count, delta)
    if any(math.isinf(pair.epsilon) for pair in pairs):
        return math.inf
    steps = [PrivacyProfile.approximate(pair.epsilon, pair.delta).self_compose(count) for pair, count in pairs.items()]
    return PrivacyProfile.nothing().compose(*steps).epsilon(delta)


def _ordered(
    lower: Route, upper: Route, again: Callable[[float], float], delta: float, tolerance: float = _TOLERANCE
) -> Route:
    """`lower`, which must be at most `upper`, and is made so where rounding alone leaves it above.

    again: `lower`'s epsilon at another delta. Rounding delta up by a relative 1e-12 can turn a charge that takes all of
    delta into one that takes more, and its epsilon into infinity; a delta larger by 1e-9 of itself settles that.
    """
    if lower.epsilon <= upper.epsilon:
        return lower
    allowed = upper.epsilon * (1 + tolerance) + 1e-2 * tolerance
    if not (lower.epsilon <= allowed or again(min(1.0, delta * (1 + 1e-9))) <= allowed):
        raise RouteOrderError(lower, upper, delta)
    return replace(lower, epsilon=upper.epsilon)
