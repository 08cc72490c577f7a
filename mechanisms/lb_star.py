"""LB*: LabelBoost over the dichotomies of the carrier only.

Given a labelled sample S, unlabelled points T and a class C, the candidates are the dichotomies z that C induces on T,
with the score ``q(S, z)``, the best agreement with S of a concept that induces z. One is chosen with probability
proportional to ``r**q``, r the rational base of epsilon, and T is labelled by a best concept for it. Unlike
LabelBoost's, the set of candidates does not depend on S.

- A labelled record changes: the candidates stay and every score changes by at most 1. The exponential mechanism: ``2
  ln r``-bounded-range, at most epsilon.
- An unlabelled point changes: let z be the labels on the points of T that stay, b(z) the best agreement of a concept
  that induces z. The weight of z sums ``r**q`` over the one or two labels of the other point, of which one has ``q =
  b(z)`` and none more; so it lies in ``[1, 2] r**b(z)``, and b does not depend on the other point. The window of
  log-ratios has width ``ln 4``, whatever epsilon (as in `label_boost`).

LabelBoost pays ``2 ln(1+r)`` for the first; both bounds here are attained in the limit (`extremal`). Utility: with
probability at least ``1 - beta`` the concept's agreement is within ``(2/epsilon) ln(N/beta)`` of the best, N the
number of candidates, when ``r**2 = e**epsilon``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import eq
from typing import Any, Protocol, runtime_checkable

import numpy as np

from accounting import Claim, Relation, Trust, check_fraction
from mechanisms.base import Dataset
from mechanisms.concepts import ArrayLevels, Concept, ConceptClass, Sample, TraceLevels, check_points, split_sample
from mechanisms.exponential import integer_weights, log_width_up, rational_base
from mechanisms.label_boost import Boosted, Labels, draw_from


@runtime_checkable
class HasBestLevels(Protocol):
    """A class with its own way to the levels of LB*, faster than listing its traces."""

    def best_levels(self, sample: Sample, carrier: Sequence[Any]) -> TraceLevels:
        """The dichotomies of the carrier, grouped by the best agreement with the sample among their extensions."""
        ...


def best_levels(concept_class: ConceptClass, sample: Sample, carrier: Sequence[Any]) -> TraceLevels:
    """The candidates of LB*, grouped by score, each with a best concept."""
    if isinstance(concept_class, HasBestLevels):
        return concept_class.best_levels(sample, carrier)
    best = _best(concept_class, sample, carrier)
    concepts = [concept for _, concept in best.values()]
    return ArrayLevels(np.array([score for score, _ in best.values()], dtype=np.int64), concepts.__getitem__)


def _best(concept_class: ConceptClass, sample: Sample, carrier: Sequence[Any]) -> dict[Labels, tuple[int, Concept]]:
    """Each dichotomy of the carrier with its score and a best concept, by listing the trace."""
    points, given = split_sample(sample)
    best: dict[Labels, tuple[int, Concept]] = {}
    for labels, concept in concept_class.traces((*carrier, *points)):
        key, agreement = labels[: len(carrier)], sum(map(eq, labels[len(carrier) :], given))
        if key not in best or best[key][0] < agreement:
            best[key] = (agreement, concept)
    return best


def lb_star(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: float | Fraction,
    *,
    rng: np.random.Generator | None,
) -> Boosted:
    """LB*, sampled exactly by score level. The labels of the carrier are private for the sample; the sample relabelled
    by the concept is not, for its points are its own.

    Raises:
        TypeError, ValueError: malformed records, a point outside the class's domain, a negative epsilon.
    """
    concept = draw_from(best_levels(concept_class, sample, carrier), epsilon, 1, rng=rng)[0]
    return Boosted(concept, tuple([point for point, _ in sample]), tuple(carrier))


def star_law(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: float | Fraction,
    outcome: Callable[[Labels], Labels] = tuple,
) -> Mapping[Labels, Fraction]:
    """The exact law of a function of the labels of the carrier, by default the labels themselves."""
    best = _best(concept_class, sample, carrier)
    weights = integer_weights([score for score, _ in best.values()], rational_base(epsilon))
    mass: defaultdict[Labels, int] = defaultdict(int)
    for labels, weight in zip(best, weights, strict=True):
        mass[outcome(labels)] += weight
    total = sum(mass.values())
    return {labels: Fraction(weight, total) for labels, weight in mass.items()}


def _draw_labels(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: Fraction,
    size: int,
    read: Sequence[Any],
    rng: np.random.Generator | None,
) -> list[Labels]:
    concepts = draw_from(best_levels(concept_class, sample, carrier), epsilon, size, rng=rng)
    labels = {id(concept): concept.labels(read) for concept in concepts}
    return [labels[id(concept)] for concept in concepts]


class StarRelease:
    """LB* of a private labelled sample; releases the labels of public points.

    dataset: S, records (point, label). Output: a tuple of labels, one for each point of `carrier`.

    Guarantee, on all inputs, for one replaced record of S: ``2 ln r``-bounded-range, at most epsilon.

    Raises:
        TypeError, ValueError: a point of the carrier outside the domain, a negative epsilon.
    """

    ignores_order = True

    def __init__(self, concept_class: ConceptClass, carrier: Sequence[Any], epsilon: float | Fraction) -> None:
        self.concept_class = concept_class
        self.carrier = tuple(carrier)
        check_points(self.carrier)
        concept_class.levels((), self.carrier)
        self.epsilon = check_fraction("epsilon", epsilon)

    @property
    def claim(self) -> Claim:
        """``2 ln r``-bounded-range, rounded up."""
        return star_labelled_claim(self.epsilon)

    def distribution(self, dataset: Dataset) -> Mapping[Labels, Fraction]:
        """The exact law."""
        return star_law(dataset, self.carrier, self.concept_class, self.epsilon)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Labels:
        """One labelling of the carrier."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Labels]:
        """`size` independent labellings of the carrier."""
        return _draw_labels(dataset, self.carrier, self.concept_class, self.epsilon, size, self.carrier, rng)


class StarPublicRelease:
    """Labels of public points when the rest of LB*'s carrier is private.

    dataset: the private points of the carrier. sample: a public labelled sample. public_points: the public points of
    the carrier. Output: a tuple of labels, one for each public point.

    Guarantee, on all inputs, for one replaced point of the dataset: ``ln 4``-bounded-range for every epsilon.

    Raises:
        TypeError, ValueError: malformed records, a point outside the domain, a negative epsilon.
    """

    ignores_order = True

    def __init__(
        self, concept_class: ConceptClass, sample: Sample, public_points: Sequence[Any], epsilon: float | Fraction
    ) -> None:
        self.concept_class = concept_class
        self.sample = tuple(sample)
        self.public_points = tuple(public_points)
        check_points(self.public_points)
        concept_class.levels(self.sample, self.public_points)
        self.epsilon = check_fraction("epsilon", epsilon)

    @property
    def claim(self) -> Claim:
        """``ln 4``-bounded-range, rounded up."""
        return star_unlabelled_claim()

    def distribution(self, dataset: Dataset) -> Mapping[Labels, Fraction]:
        """The exact law."""
        shown = len(self.public_points)
        carrier = (*self.public_points, *dataset)
        return star_law(self.sample, carrier, self.concept_class, self.epsilon, lambda labels: labels[:shown])

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Labels:
        """One labelling of the public points."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Labels]:
        """`size` independent labellings of the public points."""
        carrier = (*self.public_points, *dataset)
        return _draw_labels(self.sample, carrier, self.concept_class, self.epsilon, size, self.public_points, rng)


def star_labelled_claim(epsilon: float | Fraction) -> Claim:
    """LB* when one labelled record is replaced: ``2 ln r``-bounded-range, rounded up."""
    return Claim.bounded_range(
        log_width_up(rational_base(epsilon) ** 2),
        relation=Relation.REPLACE_ONE,
        source="the exponential mechanism over the carrier's dichotomies (mechanisms.lb_star)",
        trust=Trust.EXACT,
    )


def star_unlabelled_claim() -> Claim:
    """LB* when one point of the carrier is replaced: ``ln 4``-bounded-range, rounded up."""
    return Claim.bounded_range(
        log_width_up(Fraction(4)),
        relation=Relation.REPLACE_ONE,
        source="best extensions within a factor of 2 on either side (mechanisms.lb_star)",
        trust=Trust.EXACT,
    )
