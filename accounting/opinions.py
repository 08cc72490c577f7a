"""dp-accounting's own accountants, asked about the same charges.

Its Renyi accountant is a route of its own where it is right: `_CHECKED` lists the leaves, each with the relations, for
which its numbers were compared with exact ones. What it gets wrong in version 0.6.0 stays out: under REPLACE_ONE it
ignores that a replaced record moves a sum by two (Gaussian and Laplace noise, also under fixed-size sampling). The
dominating pairs of the listed leaves are attained, so no right answer can be below theirs.

Its PLD accountant is asked on the event as it stands, and its answer is shown, never counted: it drops the count of
randomized response, and below delta = 1e-12 its truncation shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dp_accounting import DpEvent, NeighboringRelation, UnsupportedEventError, dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

_ADD_REMOVE = NeighboringRelation.ADD_OR_REMOVE_ONE
_REPLACE = NeighboringRelation.REPLACE_ONE

_CHECKED: dict[type[DpEvent], tuple[NeighboringRelation, ...]] = {
    dp_event.GaussianDpEvent: (_ADD_REMOVE,),
    dp_event.LaplaceDpEvent: (_ADD_REMOVE,),
    dp_event.RandomizedResponseDpEvent: (_REPLACE,),
}
_ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(11, 64), 80, 96, 128, 192, 256, 512, 1024, 4096, 16384)

_GRID = 1e-4
_NODES = 10**5
_STEPS_AGREED = 10
_MOST_LEAVES = 24
"""Distinct leaves above which the PLD accountant, which transforms each, is not asked."""


def renyi_epsilon(leaves: Mapping[DpEvent, int], delta: float, relation: NeighboringRelation) -> float | None:
    """Epsilon at delta by dp-accounting's Renyi accountant, or None where some leaf was not checked.

    leaves: checked events with counts. At delta = 0 the accountant has no answer.
    """
    if not delta or not leaves or not all(_is_checked(leaf, relation) for leaf in leaves):
        return None
    accountant = RdpAccountant(_ORDERS, relation)
    for leaf, count in leaves.items():
        accountant.compose(leaf, count)
    return max(0.0, float(accountant.get_epsilon(delta))) if delta < 1 else 0.0


def _is_checked(leaf: DpEvent, relation: NeighboringRelation) -> bool:
    match leaf:
        case dp_event.GaussianDpEvent(noise_multiplier=sigma) | dp_event.LaplaceDpEvent(noise_multiplier=sigma):
            return sigma > 0 and relation in _CHECKED[type(leaf)]
        case dp_event.PoissonSampledDpEvent(event=dp_event.GaussianDpEvent(noise_multiplier=sigma)):
            return sigma > 0 and relation is _ADD_REMOVE
        case _:
            return relation in _CHECKED.get(type(leaf), ())


def pld_opinion(
    event: DpEvent, leaves: Mapping[DpEvent, int], delta: float, relation: NeighboringRelation, known: float
) -> tuple[float, str] | None:
    """(epsilon, what to say about it) by dp-accounting's PLD accountant; None where it does not support the event.

    known: epsilon by dominating pairs, to compare with. The accountant's grid of losses is 1e-4, coarser for totals
    past 10, so that its arrays stay small.
    """
    if not leaves or len(leaves) > _MOST_LEAVES or math.isinf(known):
        return None
    step = max(_GRID, known / _NODES)
    try:
        epsilon = float(PLDAccountant(relation, step).compose(event).get_epsilon(delta))
    except (UnsupportedEventError, NotImplementedError, TypeError, ValueError):
        return None
    gap = epsilon - known
    if abs(gap) <= _STEPS_AGREED * step:
        return epsilon, f"agrees with the dominating pairs within {_STEPS_AGREED} steps of its grid of {step:.3g}"
    uses = sum(leaves.values())
    if gap > 0:
        by = "its grid" if gap <= uses * step else "more than its grid"
        return epsilon, f"larger than the dominating pairs by {gap:.3g}: {by} of {step:.3g} over {uses} uses explains"
    return epsilon, f"smaller than the dominating pairs by {-gap:.3g}, which its grid of {step:.3g} does not explain"
