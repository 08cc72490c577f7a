"""Families on which the bounds of LabelBoost are attained in the limit: what makes its claims tight.

In each, the two datasets differ in one record, x against x'. One dichotomy z0 of the common points is split by x
(both labels occur) and not by x'; the dichotomies that carry almost all the weight are split by x' and not by x. A
point that does not split a dichotomy is labelled wrongly there. So ``g_1(z0)/g_2(z0)`` is ``1 + r`` (2 for unlabelled
points), and so is ``Z_2/Z_1`` in the limit: the probability of z0 changes by a factor of nearly ``(1+r)**2`` (4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dp_accounting import DpEvent

from accounting import Relation, Trust, check_int
from mechanisms.base import Law
from mechanisms.boolean_class import BooleanClass
from mechanisms.concepts import Sample
from mechanisms.datasets import ExplicitPairs
from mechanisms.exponential import ExponentialMechanism
from mechanisms.finite_class import FiniteClass
from mechanisms.label_boost import CarrierRelease, PublicLabelRelease
from mechanisms.lb_star import StarPublicRelease, StarRelease
from mechanisms.macro_block import MacroBlock
from mechanisms.oracles import ExponentialOracle
from mechanisms.relabel import RelabelRelease
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


class _AdversarialOracle:
    """The worst oracle that is still eps_A-DP, on the classes below: it tells labelling 0 apart and looks for x and x'.

    It is the exponential mechanism over two components only. The favoured one scores the records that are a common
    point with label 0, or x; the other scores the number of common records plus `lead` and the records that are x'.
    One record changes either score by at most 1, for any two samples. Given labelling 0 the other component is chosen
    almost always, so the probability of the favoured one changes by nearly ``r**2`` between x and x'; given another
    labelling it is at most ``r**-copies`` of that.
    """

    ignores_order = True
    trust = Trust.EXACT

    def __init__(
        self, favoured: Any, other: Any, common: tuple[Any, ...], copies: int, lead: int, epsilon: float
    ) -> None:
        def score(sample: Sample, component: Any) -> int:
            if component == favoured:
                return sum(1 for point, label in sample if (point in common and label == 0) or point == _X)
            return len(common) * copies + lead + sum(1 for point, _ in sample if point == _X_PRIME)

        self._mechanism = ExponentialMechanism(
            (favoured, other), score, epsilon, sensitivity=1, relation=Relation.REPLACE_ONE, ignores_order=True
        )

    @property
    def event(self) -> DpEvent:
        return self._mechanism.claim.event

    def choose(self, prefix: Sequence[Any], sample: Sample, *, rng: np.random.Generator | None) -> Any:
        return self._mechanism.release(sample, rng=rng)

    def choose_many(
        self, prefix: Sequence[Any], sample: Sample, size: int, *, rng: np.random.Generator | None
    ) -> list[Any]:
        return self._mechanism.release_many(sample, size, rng=rng)

    def distribution(self, prefix: Sequence[Any], sample: Sample) -> Law:
        return self._mechanism.distribution(sample)


def last_macro_block(k: int, copies: int, epsilon: float) -> tuple[MacroBlock, ExplicitPairs]:
    """A last macro-block (two components) whose loss tends to ``ln 4 + eps_A``, with eps_A = eps_LB = epsilon.

    The carrier holds `copies` of each common point of `splitting_class(k)`, and x against x'. With the oracle above,
    the event
    is that it chooses the favoured component: labelling 0, whose probability changes by 4, and then the oracle's
    ``r**2``.
    """
    base, common = splitting_class(k)
    concept_class = FiniteClass(
        base.domain, [base.concept(i) for i in range(len(base))], [(0, i) for i in range(len(base))]
    )
    return _adversarial_block(concept_class, (0, len(base) - 1), common, copies, epsilon, next_carrier=None)


def inner_macro_block(k: int, copies: int, codes: int, epsilon: float) -> tuple[MacroBlock, ExplicitPairs]:
    """A macro-block with a next carrier (three components), built on the same labellings and the same oracle.

    The favoured component leaves labelling 0 and `codes` labellings of further points, the next carrier; the first of
    them has both labels on x, the others 0. The loss tends to ``ln(2 r (1+r)**2)`` for eps_A = eps_LB, short of the
    claim's ``ln 4 + 2 ln r + 2 ln(1+r)``: as labelling 0 is split by x, the label of x is as often right as wrong in
    the second relabelling.
    """
    check_int("codes", codes, lo=2)
    _, common = splitting_class(k)
    further = tuple(f"u{position}" for position in range((codes - 1).bit_length()))
    concepts: list[tuple[int, ...]] = []
    components: list[tuple[Any, ...]] = []
    for code in range(codes):
        bits = tuple(code >> position & 1 for position in range(len(further)))
        for label in (0, 1) if code == 0 else (0,):
            concepts.append((*(0 for _ in common), label, 0, *bits))
            components.append((0, "favoured", (code, label)))
    for labelling in range(1, k):
        for label in (0, 1):
            bits = tuple(labelling >> position & 1 for position in common)
            concepts.append((*bits, 0, label, *(0 for _ in further)))
            components.append((0, "other", (labelling, label)))
    concept_class = FiniteClass((*common, _X, _X_PRIME, *further), concepts, components)
    return _adversarial_block(concept_class, ("favoured", "other"), common, copies, epsilon, next_carrier=further)


def _adversarial_block(
    concept_class: FiniteClass,
    choices: tuple[Any, Any],
    common: tuple[Any, ...],
    copies: int,
    epsilon: float,
    *,
    next_carrier: tuple[Any, ...] | None,
) -> tuple[MacroBlock, ExplicitPairs]:
    heavy = common * check_int("copies", copies, lo=1)
    oracles = ExponentialOracle(concept_class, epsilon), _AdversarialOracle(*choices, common, copies, copies, epsilon)
    block = MacroBlock(concept_class, (), (), oracles, epsilon, carrier_size=len(heavy) + 1, next_carrier=next_carrier)
    return block, ExplicitPairs([((*heavy, _X), (*heavy, _X_PRIME))], Relation.REPLACE_ONE)


def star_labelled_finite(k: int, epsilon: float) -> tuple[StarRelease, ExplicitPairs]:
    """LB* with one record, (x, 1) against (x, 0): x tells labelling 0 from the k - 1 others, ratio ``r (1 + (k-1) r) /
    (k - 1 + r)``, in the limit ``r**2``.
    """
    check_int("k", k, lo=2)
    common = tuple(range((k - 1).bit_length()))
    rows = [(*(labelling >> position & 1 for position in common), int(labelling == 0)) for labelling in range(k)]
    mechanism = StarRelease(FiniteClass((*common, _X), rows), common, epsilon)
    return mechanism, ExplicitPairs([(((_X, 1),), ((_X, 0),))], Relation.REPLACE_ONE)


def star_unlabelled_finite(k: int, epsilon: float) -> tuple[StarPublicRelease, ExplicitPairs]:
    """LB* with one private point of the carrier, x against x', and no labelled record: ``2 (2k - 1) / (k + 1)``."""
    concept_class, common = splitting_class(k)
    pair = ((_X,), (_X_PRIME,))
    return StarPublicRelease(concept_class, (), common, epsilon), ExplicitPairs([pair], Relation.REPLACE_ONE)


def star_unlabelled_thresholds(copies: int, epsilon: float) -> tuple[StarPublicRelease, ExplicitPairs]:
    """The same on a line, with the records and points of `unlabelled_thresholds`."""
    mechanism = StarPublicRelease(_LINE, _heavy(copies), _LINE_COMMON, epsilon)
    return mechanism, ExplicitPairs([((4,), (2,))], Relation.REPLACE_ONE)


def relabelled_xor(k: int, copies: int, epsilon: float) -> tuple[RelabelRelease, ExplicitPairs]:
    """ARelabel for the exclusive or of `splitting_class(k)` with itself; `copies` records with label 0 on each common
    point, and (x, 1) against (x', 1).

    A completion must repeat the labelling of the common points. Then labelling 0 keeps full agreement with (x, 1) for
    either label of x, and the others lose it; with (x', 1) it is the other way round. The ratio tends to ``4 r**2``.
    """
    concept_class, common = splitting_class(k)
    composed = BooleanClass((0, 1, 1, 0), (concept_class, concept_class))
    heavy = tuple((point, 0) for point in common) * check_int("copies", copies, lo=1)
    pair = ((*heavy, (_X, 1)), (*heavy, (_X_PRIME, 1)))
    return RelabelRelease(composed, common, epsilon), ExplicitPairs([pair], Relation.REPLACE_ONE)
