"""Families on which the bounds of LabelBoost are attained in the limit: what makes its claims tight.

In each, the two datasets differ in one record, x against x'. One dichotomy z0 of the common points is split by x
(both labels occur) and not by x'; the dichotomies that carry almost all the weight are split by x' and not by x. A
point that does not split a dichotomy is labelled wrongly there. So ``g_1(z0)/g_2(z0)`` is ``1 + r`` (2 for unlabelled
points), and so is ``Z_2/Z_1`` in the limit: the probability of z0 changes by a factor of nearly ``(1+r)**2`` (4).
"""

from __future__ import annotations

from typing import Any

from accounting import Relation, check_int
from mechanisms.datasets import ExplicitPairs
from mechanisms.finite_class import FiniteClass
from mechanisms.label_boost import CarrierRelease, PublicLabelRelease
from mechanisms.thresholds import Thresholds

_X, _X_PRIME = "x", "x'"


def splitting_class(k: int) -> tuple[FiniteClass, tuple[Any, ...]]:
    """Labellings 0..k-1 encoded on ``ceil(log2 k)`` common points, each with two concepts, and those common points.

    Labelling 0 has both labels on x and 0 on x'; all others 0 on x and both labels on x'.
    """
    check_int("k", k, lo=2)
    common = tuple(range((k - 1).bit_length()))
    concepts: list[tuple[int, ...]] = []
    for labelling in range(k):
        bits = tuple(labelling >> position & 1 for position in common)
        split = (1, 0) if labelling == 0 else (0, 1)
        concepts += [(*bits, 0, 0), (*bits, *split)]
    return FiniteClass((*common, _X, _X_PRIME), concepts), common


def labelled_finite(k: int, epsilon: float) -> tuple[CarrierRelease, ExplicitPairs]:
    """One record, (x, 1) against (x', 1): the ratio is ``(1+r) (1 + (k-1)(1+r)) / (k+r)``."""
    concept_class, common = splitting_class(k)
    pair = (((_X, 1),), ((_X_PRIME, 1),))
    return CarrierRelease(concept_class, common, epsilon), ExplicitPairs([pair], Relation.REPLACE_ONE)


def unlabelled_finite(k: int, epsilon: float) -> tuple[PublicLabelRelease, ExplicitPairs]:
    """One point, x against x', and no labelled record: the ratio is ``2 (2k - 1) / (k + 1)``."""
    concept_class, common = splitting_class(k)
    return PublicLabelRelease(concept_class, (), common, epsilon), ExplicitPairs(
        [((_X,), (_X_PRIME,))], Relation.REPLACE_ONE
    )


_LINE = Thresholds(0, 6)
_LINE_COMMON = (1, 3, 5)


def _heavy(copies: int) -> tuple[tuple[int, int], ...]:
    """Records that put almost all the weight on the thresholds in (1, 3], which 2 splits and 4 does not."""
    return ((1, 0), (3, 1)) * check_int("copies", copies, lo=1)


def labelled_thresholds(copies: int, epsilon: float) -> tuple[CarrierRelease, ExplicitPairs]:
    """The same on a line: 2 `copies` fixed records, and (4, 0) against (2, 1); z0 is the thresholds in (3, 5]."""
    heavy = _heavy(copies)
    pair = ((*heavy, (4, 0)), (*heavy, (2, 1)))
    return CarrierRelease(_LINE, _LINE_COMMON, epsilon), ExplicitPairs([pair], Relation.REPLACE_ONE)


def unlabelled_thresholds(copies: int, epsilon: float) -> tuple[PublicLabelRelease, ExplicitPairs]:
    """The same on a line: a fixed sample of 2 `copies` records, and the point 4 against the point 2."""
    mechanism = PublicLabelRelease(_LINE, _heavy(copies), _LINE_COMMON, epsilon)
    return mechanism, ExplicitPairs([((4,), (2,))], Relation.REPLACE_ONE)
