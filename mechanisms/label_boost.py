"""LabelBoost (Algorithm 1 of the paper; Beimel, Nissim, Stemmer 2015, Algorithm 2): relabel a sample by a concept of
a class.

Given a labelled sample S, unlabelled points T and a class C, take one concept for each dichotomy of the distinct
points of S and T, choose one with probability proportional to ``r**(agreement with S)``, and relabel S and T by it.
Here r is the rational base of eps_LB, ``r**2 <= e**eps_LB`` (the paper: eps_LB = 1). The result is realizable by C
whatever S was.

The relabelled database contains its own records, so by itself it is not private. What is private is what leaves
records behind; the two forms here release labels of public points only. Their bounds sharpen Lemmas 3.14 and 3.17.
Let two inputs differ in one record, let K be the points they share and w_i(z) the probability that the chosen concept
induces z on K. Then ``w_i(z) = r**s(z) * g_i(z) / Z_i``, where s(z) is the agreement on the unchanged records, all of
whose points are in K, and g_i(z) sums over the one or two dichotomies that restrict to z:

- a labelled record changes: g_i(z) is in {1, r, 1 + r}, so ``ln(g_1/g_2)`` lies in a window of width ``2 ln(1+r)``;
- an unlabelled record changes: g_i(z) is in {1, 2}, so it lies in a window of width ``ln 4``, whatever eps_LB.

``ln(w_1/w_2)`` adds ``ln(Z_2/Z_1)``, which does not depend on z: the window moves and keeps its width. That is
bounded range, hence DP with the same parameter; the paper has ``ln(4e)`` for both. Both widths are attained in the
limit (`extremal`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import eq
from typing import Any

import numpy as np

from accounting import Claim, Relation, Trust, check_fraction
from mechanisms.base import Dataset
from mechanisms.concepts import Concept, ConceptClass, Sample, TraceLevels, check_points, split_sample
from mechanisms.exponential import integer_weights, log_width_up, rational_base, uniform_within
from mechanisms.sampling import PowerSampler, check_rng

Labels = tuple[int, ...]

PAPER_EPSILON = 1.0 + math.log(4.0)
"""c_LB = ln(4e), the paper's privacy loss of LabelBoost with eps_LB = 1 for one changed record of either kind."""


@dataclass(frozen=True, slots=True)
class Boosted:
    """What LabelBoost hands on: the chosen concept and the points it relabels. Not private by itself.

    concept: the representative chosen. sample_points, carrier_points: U(S) and T.
    """

    concept: Concept
    sample_points: tuple[Any, ...]
    carrier_points: tuple[Any, ...]

    @property
    def sample(self) -> tuple[tuple[Any, int], ...]:
        """S relabelled by the concept."""
        return tuple(zip(self.sample_points, self.concept.labels(self.sample_points), strict=True))

    @property
    def carrier(self) -> tuple[tuple[Any, int], ...]:
        """T labelled by the concept."""
        return tuple(zip(self.carrier_points, self.concept.labels(self.carrier_points), strict=True))


def label_boost(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: float | Fraction,
    *,
    rng: np.random.Generator | None,
) -> Boosted:
    """Algorithm 1 with eps_LB = epsilon, sampled exactly by score level; O(M log M) for thresholds on M records.

    sample: records (point, label). carrier: points. rng: None draws from system entropy.

    Raises:
        TypeError, ValueError: malformed records, a point outside the class's domain, a negative epsilon.
    """
    concept = draw_concepts(sample, carrier, concept_class, epsilon, 1, rng=rng)[0]
    return Boosted(concept, tuple([point for point, _ in sample]), tuple(carrier))


def draw_concepts(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: float | Fraction,
    size: int,
    *,
    rng: np.random.Generator | None,
) -> list[Concept]:
    """The concepts that `size` independent runs of LabelBoost choose; runs that choose the same share one object."""
    check_rng(rng)
    return draw_from(concept_class.levels(sample, carrier), epsilon, size, rng=rng)


def draw_from(
    levels: TraceLevels, epsilon: float | Fraction, size: int, *, rng: np.random.Generator | None
) -> list[Concept]:
    """The concepts of `size` independent draws with probability proportional to ``r**score``: a level, then a uniform
    member of it. Draws of the same member share one object.
    """
    check_rng(rng)
    drawn = PowerSampler(levels.scores, levels.counts, rational_base(epsilon)).draw_many(size, rng)
    within = uniform_within(drawn, levels.counts, rng)
    keys = list(zip(drawn.tolist(), within.tolist(), strict=True))
    chosen = {key: levels.pick(*key) for key in dict.fromkeys(keys)}
    return [chosen[key] for key in keys]


def draw_labels(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: float | Fraction,
    size: int,
    *,
    read: Sequence[Any],
    rng: np.random.Generator | None,
) -> list[Labels]:
    """The labels that `size` independent runs give the points `read`, which are among those of sample and carrier."""
    concepts = draw_concepts(sample, carrier, concept_class, epsilon, size, rng=rng)
    labels = {id(concept): concept.labels(read) for concept in concepts}
    return [labels[id(concept)] for concept in concepts]


def label_boost_law(
    sample: Sample, carrier: Sequence[Any], concept_class: ConceptClass, epsilon: float | Fraction
) -> Mapping[tuple[Labels, Labels], Fraction]:
    """The exact law of (labels of the sample, labels of the carrier), by enumeration of the trace."""
    size = len(sample)
    return _law(sample, carrier, concept_class, epsilon, lambda labels: (labels[:size], labels[size:]))


def carrier_law(
    sample: Sample, carrier: Sequence[Any], concept_class: ConceptClass, epsilon: float | Fraction
) -> Mapping[Labels, Fraction]:
    """The exact law of the labels of the carrier alone."""
    size = len(sample)
    return _law(sample, carrier, concept_class, epsilon, lambda labels: labels[size:])


def _law(
    sample: Sample,
    carrier: Sequence[Any],
    concept_class: ConceptClass,
    epsilon: float | Fraction,
    outcome: Callable[[Labels], Any],
) -> dict[Any, Fraction]:
    """The law of a function of the labels on the sample's points and then the carrier's."""
    points, given = split_sample(sample)
    dichotomies = [labels for labels, _ in concept_class.traces((*points, *carrier))]
    agreements = [sum(map(eq, labels, given)) for labels in dichotomies]
    mass: defaultdict[Any, int] = defaultdict(int)
    for labels, weight in zip(dichotomies, integer_weights(agreements, rational_base(epsilon)), strict=True):
        mass[outcome(labels)] += weight
    total = sum(mass.values())
    return {key: Fraction(weight, total) for key, weight in mass.items()}


class CarrierRelease:
    """Carrier-only release (Lemma 3.17): the labelled sample S is private, the points T are public; out come labels
    of T.

    dataset: S, records (point, label). Output: a tuple of labels, one for each point of `carrier`.

    Guarantee, on all inputs, for one replaced record of S: ``2 ln(1+r)``-bounded-range (1.948 for eps_LB = 1; the
    paper: ln(4e) = 2.386). Proof: T is part of the shared points K for every S, so the output is a function of z, and
    bounded range survives post-processing: a ratio of sums lies between the least and the greatest ratio of the
    terms.

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
        """``2 ln(1+r)``-bounded-range, rounded up."""
        return labelled_claim(self.epsilon)

    def distribution(self, dataset: Dataset) -> Mapping[Labels, Fraction]:
        """The exact law."""
        return carrier_law(dataset, self.carrier, self.concept_class, self.epsilon)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Labels:
        """One labelling of the carrier."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Labels]:
        """`size` independent labellings of the carrier."""
        return draw_labels(dataset, self.carrier, self.concept_class, self.epsilon, size, read=self.carrier, rng=rng)


class PublicLabelRelease:
    """Labels of public points when the private records are unlabelled carriers (what Lemma 3.15 needs of LabelBoost).

    dataset: the private points. sample: a public labelled sample. public_points: public points. Output: a tuple of
    labels, one for each public point.

    Guarantee, on all inputs, for one replaced point of the dataset: ``ln 4``-bounded-range for every eps_LB (the paper:
    ln(4e)). The output is a function of the dichotomy of the shared points, which hold sample and public points.

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
        return unlabelled_claim()

    def distribution(self, dataset: Dataset) -> Mapping[Labels, Fraction]:
        """The exact law."""
        start, end = len(self.sample), len(self.sample) + len(self.public_points)
        carrier = (*self.public_points, *dataset)
        return _law(self.sample, carrier, self.concept_class, self.epsilon, lambda labels: labels[start:end])

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Labels:
        """One labelling of the public points."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Labels]:
        """`size` independent labellings of the public points."""
        carrier = (*self.public_points, *dataset)
        return draw_labels(
            self.sample, carrier, self.concept_class, self.epsilon, size, read=self.public_points, rng=rng
        )


def labelled_claim(epsilon: float | Fraction) -> Claim:
    """LabelBoost when one labelled record is replaced: ``2 ln(1+r)``-bounded-range, rounded up."""
    return Claim.bounded_range(
        log_width_up((1 + rational_base(epsilon)) ** 2),
        relation=Relation.REPLACE_ONE,
        source="sharpened Lemma 3.17: weights within a window of (1+r)^2 (mechanisms.label_boost)",
        trust=Trust.EXACT,
    )


def unlabelled_claim() -> Claim:
    """LabelBoost when one unlabelled record is replaced: ``ln 4``-bounded-range, rounded up."""
    return Claim.bounded_range(
        log_width_up(Fraction(4)),
        relation=Relation.REPLACE_ONE,
        source="sharpened Lemma 3.14: weights within a window of 4 (mechanisms.label_boost)",
        trust=Trust.EXACT,
    )
