"""ARelabel (Alon, Beimel, Moran and Stemmer 2020, Algorithm 2; Proposition 8.16 of the paper): LabelBoost with another
score.

For a composition ``G(H_1, .., H_k)`` with a prefix fixed, the candidates are the dichotomies that the next part H_i
induces on the distinct points of S and T, and the score is the best agreement with S that a completion reaches. One is
chosen with probability proportional to ``r**score``, and S and T are relabelled by it: realizable by H_i, whatever S
was.

Bound. Let a labelled record change, let K be the points shared, and w_i(z) the probability that the choice induces z
on K. Two concepts of H_i that agree on K have completions that agree there, so the best agreement s(z) with the
unchanged records is a function of z alone, and the record adds 0 or 1 to it. Hence ``w_i(z) = r**s(z) g_i(z) / Z_i``
with one or two terms in g_i(z), each 1 or r: ``g_i(z)`` is in [1, 2r], and ``ln(w_1/w_2)`` lies in a window of width
``ln(4 r^2)``, at most ``ln 4 + epsilon``. For LabelBoost two terms have different labels, hence are 1 and r; here both
can be r, each with a completion of its own. So ln(4e) at epsilon = 1, too large for LabelBoost, is attained here
(`extremal.relabelled_xor`). When an unlabelled point changes, g_i(z) is in {1, 2}: a window of ``ln 4``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from accounting import Claim, Relation, Trust, check_fraction
from mechanisms.base import Dataset
from mechanisms.boolean_class import BooleanClass
from mechanisms.concepts import Sample, check_points
from mechanisms.exponential import integer_weights, log_width_up, rational_base
from mechanisms.label_boost import Boosted, Labels, draw_from

PAPER_EPSILON_RELABEL = 3.0
"""What relabelling adds to eps_B in Corollary 8.17, which rounds ln(4e) up."""


def relabel(
    sample: Sample,
    carrier: Sequence[object],
    concept_class: BooleanClass,
    epsilon: float | Fraction,
    *,
    rng: np.random.Generator | None,
) -> Boosted:
    """ARelabel by the next part of a composition, sampled exactly by score level. Not private by itself.

    concept_class: the composition with the components before i fixed.

    Raises:
        TypeError, ValueError: malformed records, a point outside the domain, a negative epsilon, no component left,
        more traces to combine than is feasible.
    """
    levels = concept_class.component_levels(sample, carrier)
    concept = draw_from(levels, epsilon, 1, rng=rng)[0]
    return Boosted(concept, tuple([point for point, _ in sample]), tuple(carrier))


class RelabelRelease:
    """ARelabel of a private labelled sample; releases the labels that the chosen concept gives public points.

    dataset: S, records (point, label). Output: a tuple of labels, one for each point of `carrier`.

    Guarantee, on all inputs, for one replaced record of S: ``ln(4 r^2)``-bounded-range, at most ``ln 4 + epsilon``.

    concept_class: the composition with the components before i fixed.

    Raises:
        TypeError, ValueError: a point of the carrier outside the domain, a negative epsilon, no component left.
    """

    ignores_order = True

    def __init__(self, concept_class: BooleanClass, carrier: Sequence[object], epsilon: float | Fraction) -> None:
        self.concept_class = concept_class
        self.carrier = tuple(carrier)
        check_points(self.carrier)
        concept_class.component_levels((), self.carrier)
        self.epsilon = check_fraction("epsilon", epsilon)

    @property
    def claim(self) -> Claim:
        """``ln(4 r^2)``-bounded-range, rounded up."""
        return relabel_claim(self.epsilon)

    def distribution(self, dataset: Dataset) -> Mapping[Labels, Fraction]:
        """The exact law, by listing the dichotomies."""
        found, scores = self.concept_class.component_scores(dataset, self.carrier)
        mass: defaultdict[Labels, int] = defaultdict(int)
        weights = integer_weights(scores.tolist(), rational_base(self.epsilon))
        for (labels, _), weight in zip(found, weights, strict=True):
            mass[labels[len(dataset) :]] += weight
        total = sum(mass.values())
        return {labels: Fraction(weight, total) for labels, weight in mass.items()}

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Labels:
        """One labelling of the carrier."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[Labels]:
        """`size` independent labellings of the carrier."""
        concepts = draw_from(self.concept_class.component_levels(dataset, self.carrier), self.epsilon, size, rng=rng)
        labels = {id(concept): concept.labels(self.carrier) for concept in concepts}
        return [labels[id(concept)] for concept in concepts]


def relabel_claim(epsilon: float | Fraction) -> Claim:
    """ARelabel when one labelled record is replaced: ``ln(4 r^2)``-bounded-range, rounded up."""
    return Claim.bounded_range(
        log_width_up(4 * rational_base(epsilon) ** 2),
        relation=Relation.REPLACE_ONE,
        source="Alon et al. (2020), Lemma 25, as a window of ratios (mechanisms.relabel)",
        trust=Trust.EXACT,
    )
