"""The one-dimensional selections as registered: guarantees, and the cases by which they are audited."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from accounting import Claim, Relation
from mechanisms.base import AuditCase, Dataset, Registration, register
from mechanisms.datasets import Domain, ExplicitPairs, ReplaceOne
from mechanisms.interior_point import InteriorPoint
from mechanisms.ip_concave import IPConcave, block_maximiser
from mechanisms.quasi_concave import PROMISE, QuasiConcaveTreeChoose, StepSelection, TotalExtension
from mechanisms.reorder_slice import ReorderSliceChoose
from mechanisms.slice_parameters import SliceParameters
from mechanisms.step_function import StepFunction, threshold_agreement
from mechanisms.tree_choose import TreeChoose


class ThresholdAgreement:
    """The objective of the cases: how many records (x, y) the threshold t labels as given, for t in 0..size-1."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, dataset: Dataset) -> StepFunction:
        return threshold_agreement(self.size, dataset)


def _records(points: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(itertools.product(points, (0, 1)))


def _realizable_pairs(size: int, points: Sequence[int], records: int) -> ExplicitPairs:
    """All pairs of neighbours that some threshold below `size` labels as given, up to the order of the records."""
    objective, values = ThresholdAgreement(size), _records(points)

    def fits(sample: Sequence[tuple[int, int]]) -> bool:
        return objective(sample).maximum == len(sample)

    return ExplicitPairs(
        [
            ((*shared, one), (*shared, other))
            for shared in itertools.combinations_with_replacement(values, records - 1)
            if fits(shared)
            for one, other in itertools.combinations([value for value in values if fits((*shared, value))], 2)
        ],
        Relation.REPLACE_ONE,
    )


def _stated(label: str, mechanism: Any, domain: Domain, source: str, **flags: bool) -> AuditCase:
    """A case beside the published (epsilon, delta), for the parameters that the mechanism was asked for."""
    delta = float(getattr(mechanism, "requested_delta", 0))
    return AuditCase(label, mechanism, mechanism.claim, domain, float(mechanism.epsilon), delta, source, **flags)


def _interior_point_cases() -> list[AuditCase]:
    small, single, wide = InteriorPoint(8, 1), InteriorPoint(5, 0.5), InteriorPoint(24, 2)
    return [
        AuditCase("three records on eight ranks", small, small.claim, ReplaceOne(range(8), 3)),
        AuditCase("one record on five ranks", single, single.claim, ReplaceOne(range(5), 1)),
        AuditCase("four records on 24 ranks", wide, wide.claim, ReplaceOne((0, 3, 11, 12, 23), 4)),
    ]


def _tree_choose_cases() -> list[AuditCase]:
    source = "Theorem 8.9"
    return [
        _stated("three records on seven ranks", TreeChoose(7, 1, 0.1), ReplaceOne(range(7), 3), source),
        _stated("one record on two ranks", TreeChoose(2, 0.5, 0.3), ReplaceOne(range(2), 1), source),
        _stated("five records on four ranks", TreeChoose(4, 4, 0.01), ReplaceOne(range(4), 5), source),
        _stated("four records on 16 ranks", TreeChoose(16, 2, 0.05), ReplaceOne(range(16), 4), source, thorough=True),
    ]


def _step_selection_cases() -> list[AuditCase]:
    # Three records on both sides, so that the objective is often not quasi-concave.
    few = StepSelection(ThresholdAgreement(6), 6, 1, ignores_order=True)
    huge_loss = StepSelection(ThresholdAgreement(40), 40, 0.5, ignores_order=True)
    return [
        AuditCase("thresholds, three records of any labels", few, few.claim, ReplaceOne(_records(range(5)), 3)),
        AuditCase("thresholds, two records", huge_loss, huge_loss.claim, ReplaceOne(_records((0, 7, 20, 38)), 2)),
    ]


def _realizable(size: int, epsilon: float, delta: float, beta: float) -> QuasiConcaveTreeChoose:
    return QuasiConcaveTreeChoose(ThresholdAgreement(size), size, epsilon, delta, beta, ignores_order=True)


def _quasi_concave_cases() -> list[AuditCase]:
    source = "Proposition 8.6"
    # beta near 1 puts the threshold T inside the range of so few records; privacy holds for every T.
    low, high = _realizable(6, 2, 0.4, 0.99), _realizable(9, 4, 0.3, 0.99)
    plain = _realizable(5, 1, 0.2, 0.1)
    return [
        _stated("thresholds, five records", low, _realizable_pairs(6, range(5), 5), source),
        _stated("thresholds, six records at four points", high, _realizable_pairs(9, (0, 3, 4, 7), 6), source),
        _stated("thresholds, one record", plain, _realizable_pairs(5, range(4), 1), source),
        AuditCase(
            "total extension, four records",
            TotalExtension(low),
            low.claim,
            _realizable_pairs(6, range(5), 4),
            float(low.epsilon),
            float(low.requested_delta),
            "Lemma 8.7",
        ),
    ]


def _ip_concave_cases() -> list[AuditCase]:
    rule = block_maximiser(ThresholdAgreement(6))
    by_tree = IPConcave(rule, TreeChoose(6, 1, 0.1), 3, rule_ignores_order=True)
    by_weight = IPConcave(rule, InteriorPoint(6, 1), 2, rule_ignores_order=True)
    source = "Theorem 8.10"
    return [
        AuditCase(
            "thresholds, four records in three blocks",
            by_tree,
            by_tree.claim,
            ReplaceOne(_records((0, 2, 4)), 4),
            1.0,
            0.1,
            source,
        ),
        AuditCase(
            "thresholds, five records in two blocks",
            by_weight,
            by_weight.claim,
            ReplaceOne(_records((1, 3)), 5),
            1.0,
            0.0,
            source,
        ),
    ]


def _reorder_slice_cases() -> list[AuditCase]:
    # Thresholds small enough for the law to move, large enough for a delta below 1: a weak audit of so few records. The
    # lemma itself is tested on its own.
    given = SliceParameters(Fraction(1, 2), Fraction(3), 4, Fraction(9, 4), Fraction(2), 22, 26, 52, 0, 104)
    one, two = ReorderSliceChoose(5, given), ReorderSliceChoose(4, given, levels=2)
    return [
        AuditCase("three records on five ranks, one level", one, one.claim, ReplaceOne(range(5), 3)),
        AuditCase("two records on four ranks, two levels", two, two.claim, ReplaceOne(range(4), 2)),
    ]


def counterexamples() -> tuple[AuditCase, ...]:
    """Claims that are false, to be refuted: what goes wrong outside a promise. They are not registered.

    The total extension of QuasiConcaveTreeChoose, on all datasets instead of realizable ones: its law is its default
    on a sample that no threshold labels, and nearly never that next to one that all fit.
    """
    mechanism = TotalExtension(_realizable(6, 2, 0.05, 0.1))
    inner = mechanism.claim
    claim = Claim(inner.event, inner.relation, f"outside the promise of: {inner.source}", None, inner.trust)
    return (
        AuditCase(
            "quasi-concave optimiser outside its promise: every sample of three records",
            mechanism,
            claim,
            ReplaceOne(_records((1, 3)), 3),
        ),
    )


def register_selections() -> None:
    """Enter the selections of this layer."""
    replace = Relation.REPLACE_ONE
    approximate = "(2 ln r, B r^(1-h) / W) <= (epsilon, delta), r^2 <= e^epsilon"
    for registration in (
        Registration(
            "interior-point",
            "an interior point of a huge ordered domain by the exponential mechanism",
            "2 ln r-bounded-range <= epsilon, r^2 <= e^epsilon",
            replace,
            None,
            "McSherry and Talwar (2007), Theorem 6",
            _interior_point_cases,
        ),
        Registration(
            "tree-choose",
            "an interior point by choice among tree nodes; its sample size grows with log log of the domain",
            f"{approximate}, B = D = log2 of the domain",
            replace,
            None,
            "own proof (mechanisms.tree_choose), in the role of Theorem 8.9",
            _tree_choose_cases,
        ),
        Registration(
            "step-selection",
            "optimises an objective of sensitivity 1 with few pieces on a huge ordered domain",
            "2 ln r-bounded-range <= epsilon, r^2 <= e^epsilon, for every objective",
            replace,
            None,
            "McSherry and Talwar (2007), Theorem 6",
            _step_selection_cases,
        ),
        Registration(
            "quasi-concave-tree-choose",
            "optimises a quasi-concave objective of known maximum on a huge ordered domain",
            f"{approximate}, B = 2D - 1, between realizable samples",
            replace,
            PROMISE,
            "own proof (mechanisms.quasi_concave), in the role of Proposition 8.6 and Lemma 8.7",
            _quasi_concave_cases,
        ),
        Registration(
            "reorder-slice-choose",
            "an interior point by Reorder-Slice-Compute (log* of the domain, at large constants; for comparison)",
            "(ln R1 R2, (1-c)^k + e + R1 e), R1 = (A r^2)^k s^T, R2 = r^2 s^T / lam",
            replace,
            None,
            "own proof (mechanisms.reorder_slice), after Cohen et al. (2023); Theorem 8.9",
            _reorder_slice_cases,
        ),
        Registration(
            "ip-concave",
            "a private interior point of the maximisers of random blocks (Algorithm 3)",
            "(epsilon, delta) of the interior-point mechanism",
            replace,
            None,
            "Theorem 8.10",
            _ip_concave_cases,
        ),
    ):
        register(registration)
