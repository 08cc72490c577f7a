"""The blocks of the CarryForwardLearner that a reservoir is charged for.

A record of T_i lives on in S_i (`CarryForwardRound`) and is gone after the next round: `MacroBlock` is the map from
T_i through two rounds (Definition 6.1). `InitialBlock` is the learner's start (Lemma 6.4). Both release the carried
sample, which real learners keep to themselves, because the next step starts from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from accounting import Claim, Relation, check_fraction, check_int
from mechanisms.base import Dataset, Law
from mechanisms.concepts import ConceptClass, Sample, check_realizable
from mechanisms.label_boost import carrier_law, draw_labels, label_boost_law, labelled_claim, unlabelled_claim
from mechanisms.oracles import ComponentOracle, choose_many
from mechanisms.rounds import CarryForwardRound, Labelled, Mass, collect, composed, positions
from mechanisms.sampling import check_rng


class MacroBlock:
    """The two-round macro-block ``MB_i`` (Definition 6.1): the whole influence of one carrier T_i.

    dataset: T_i, `carrier_size` points. Output: ``(y_i, y_{i+1}, S_{i+1})``, S_{i+1} as records (point, label) of the
    next carrier; ``(y_{k-1}, y_k, ())`` when i = k - 1.

    concept_class: C, k components, none fixed. prefix: y_{<i}, of length i - 1 (so it determines i). state: S_{i-1},
    public here, realizable by C(prefix). oracles: (A_i, A_{i+1}). label_boost_epsilon: eps_LB. carrier_size: m.
    next_carrier, or next_reservoir: T_{i+1} as fixed points, or the opposite reservoir W, from which `carrier_size`
    points are drawn uniformly without replacement, in random order. Neither when i = k - 1.

    Guarantee, on all inputs, for one replaced point of T_i: the adaptive composition of ``ln 4``-bounded-range,
    A_{i+1}'s event and ``2 ln(1+r)``-bounded-range (without the last when i = k - 1). The paper (Lemma 6.2): ``(eps_A
    + 2 ln(4e), 4e delta_A)``.
    Proof: y_i does not depend on T_i. Let z be the labels that h_i gives the points common to S_{i-1} and the two
    carriers: its law is ln 4-bounded-range (`label_boost`, an unlabelled record). Given z, the one or two possible
    S_i are realizable by C(y_{<=i}) and equal to or neighbours of those of the other execution, so the second round
    (`CarryForwardRound`) costs its event; hockey-stick divergences are jointly convex, so mixing the two costs
    nothing. Delta_A is not multiplied: only the first term of ``e^eps P + delta`` is moved from one law of z to the
    other.

    The order of T_i matters only if A_{i+1} looks at it, and `ignores_order` says so.

    Raises:
        NotRealizableError: state is not realizable by C(prefix).
        TypeError, ValueError: lengths or carriers that do not fit.
    """

    def __init__(
        self,
        concept_class: ConceptClass,
        prefix: Sequence[Any],
        state: Sample,
        oracles: tuple[ComponentOracle, ComponentOracle],
        label_boost_epsilon: float | Fraction,
        *,
        carrier_size: int,
        next_carrier: Sequence[Any] | None = None,
        next_reservoir: Sequence[Any] | None = None,
    ) -> None:
        self.concept_class = concept_class
        self.prefix = tuple(prefix)
        self.state = tuple(state)
        if len(oracles) != 2:
            raise ValueError(f"oracles must be the two of rounds i and i + 1, got {len(oracles)}")
        self.first_oracle, self.second_oracle = oracles
        self.label_boost_epsilon = check_fraction("label_boost_epsilon", label_boost_epsilon)
        self.carrier_size = check_int("carrier_size", carrier_size, lo=1)
        self.round = len(self.prefix) + 1
        if self.round > concept_class.components - 1:
            raise ValueError(
                f"prefix must leave two of the {concept_class.components} components to choose, got {self.prefix!r}"
            )
        self.is_last = self.round == concept_class.components - 1
        check_realizable(concept_class.prefix(self.prefix), self.state, "state")
        self._next: dict[str, Any] = {"carrier": next_carrier, "reservoir": next_reservoir}
        if next_reservoir is not None:
            self._next["carrier_size"] = self.carrier_size
        self._rounds: dict[Any, CarryForwardRound] = {}
        self._first_law: Law | None = None
        for value in concept_class.prefix(self.prefix).next_values()[:1]:
            self._second_round(value)

    @property
    def ignores_order(self) -> bool:
        """Whether the law ignores the order of T_i: it does when A_{i+1} ignores that of its sample."""
        return self.second_oracle.ignores_order

    @property
    def claim(self) -> Claim:
        """``ln 4``-bounded-range, A_{i+1}'s event, ``2 ln(1+r)``-bounded-range (not when i = k - 1); on all inputs."""
        parts = [unlabelled_claim().event, self.second_oracle.event]
        if not self.is_last:
            parts.append(labelled_claim(self.label_boost_epsilon).event)
        return Claim(
            composed(*parts),
            Relation.REPLACE_ONE,
            "Lemma 6.2 with the constants of mechanisms.label_boost and an unmultiplied delta_A",
            trust=self.second_oracle.trust,
        )

    def check_dataset(self, dataset: Dataset) -> None:
        """Raise a ValueError unless T_i has `carrier_size` points."""
        if len(dataset) != self.carrier_size:
            raise ValueError(f"dataset must hold carrier_size = {self.carrier_size} points, got {len(dataset)}")

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> tuple[Any, Any, Labelled]:
        """One outcome."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(
        self, dataset: Dataset, size: int, *, rng: np.random.Generator | None
    ) -> list[tuple[Any, Any, Labelled]]:
        """`size` independent outcomes; runs that have met the same component and labels are drawn together."""
        check_rng(rng)
        self.check_dataset(dataset)
        values = choose_many(self.first_oracle, self.prefix, self.state, check_int("size", size, lo=0), rng=rng)
        met: list[Any] = [None] * size
        for first, runs in positions(values).items():
            extended = self.concept_class.prefix((*self.prefix, first))
            labels = draw_labels(
                self.state, dataset, extended, self.label_boost_epsilon, len(runs), read=dataset, rng=rng
            )
            for run, labelling in zip(runs, labels, strict=True):
                met[run] = (first, tuple(zip(dataset, labelling, strict=True)))
        outcomes: list[Any] = [None] * size
        for (first, carried), runs in positions(met).items():
            seconds = self._second_round(first).release_many(carried, len(runs), rng=rng)
            for run, second in zip(runs, seconds, strict=True):
                outcomes[run] = (first, *second)
        return outcomes

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law, by enumeration of every step."""
        self.check_dataset(dataset)
        return collect(self._outcomes(tuple(dataset)))

    def _outcomes(self, dataset: tuple[Any, ...]) -> Mass:
        if self._first_law is None:
            self._first_law = self.first_oracle.distribution(self.prefix, self.state)
        for first, probability in self._first_law.items():
            extended = self.concept_class.prefix((*self.prefix, first))
            for labels, weight in carrier_law(self.state, dataset, extended, self.label_boost_epsilon).items():
                carried = tuple(zip(dataset, labels, strict=True))
                for (second, state), share in self._second_round(first).law(carried).items():
                    yield (first, second, state), probability * weight * share

    def _second_round(self, first: Any) -> CarryForwardRound:
        if first not in self._rounds:
            self._rounds[first] = CarryForwardRound(
                self.concept_class, (*self.prefix, first), self.second_oracle, self.label_boost_epsilon, **self._next
            )
        return self._rounds[first]


class InitialBlock:
    """The learner's start (Lemma 6.4): relabel R_0 by LabelBoost over the whole class, then run round 1 on it.

    dataset: R_0, labelled records, arbitrary. Output: ``(y_1, S_1)`` as `CarryForwardRound`, with its arguments.

    Guarantee, on all inputs, for one replaced record of R_0: ``2 ln(1+r)``-bounded-range, A_1's event, and ``2
    ln(1+r)``-bounded-range again (without the last when k = 1). The paper: ``(eps_A + 2 ln(4e), 4e delta_A)``. Proof:
    as for `MacroBlock`, with a labelled record in place of the unlabelled one.
    """

    def __init__(
        self,
        concept_class: ConceptClass,
        oracle: ComponentOracle,
        label_boost_epsilon: float | Fraction,
        *,
        carrier: Sequence[Any] | None = None,
        reservoir: Sequence[Any] | None = None,
        carrier_size: int | None = None,
    ) -> None:
        self.round = CarryForwardRound(
            concept_class,
            (),
            oracle,
            label_boost_epsilon,
            carrier=carrier,
            reservoir=reservoir,
            carrier_size=carrier_size,
        )

    @property
    def ignores_order(self) -> bool:
        """Whether the law ignores the order of R_0: it does when A_1 ignores that of its sample."""
        return self.round.ignores_order

    @property
    def claim(self) -> Claim:
        """``2 ln(1+r)``-bounded-range, A_1's event, ``2 ln(1+r)``-bounded-range (not when k = 1); on all inputs."""
        labelled = labelled_claim(self.round.label_boost_epsilon).event
        parts = [labelled, self.round.oracle.event, *([] if self.round.is_last else [labelled])]
        return Claim(
            composed(*parts),
            Relation.REPLACE_ONE,
            "Lemma 6.4 with the constants of mechanisms.label_boost and an unmultiplied delta_A",
            trust=self.round.oracle.trust,
        )

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> tuple[Any, Labelled]:
        """One outcome."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(
        self, dataset: Dataset, size: int, *, rng: np.random.Generator | None
    ) -> list[tuple[Any, Labelled]]:
        """`size` independent outcomes; runs that have met the same labels are drawn together."""
        points = [point for point, _ in dataset]
        labels = draw_labels(
            dataset, (), self.round.concept_class, self.round.label_boost_epsilon, size, read=points, rng=rng
        )
        outcomes: list[Any] = [None] * size
        for labelling, runs in positions(labels).items():
            relabelled = tuple(zip(points, labelling, strict=True))
            for run, outcome in zip(runs, self.round.release_many(relabelled, len(runs), rng=rng), strict=True):
                outcomes[run] = outcome
        return outcomes

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law, by enumeration of every step."""
        return collect(self._outcomes(dataset))

    def _outcomes(self, dataset: Dataset) -> Mass:
        points = [point for point, _ in dataset]
        law = label_boost_law(dataset, (), self.round.concept_class, self.round.label_boost_epsilon)
        for (labels, _), weight in law.items():
            relabelled = tuple(zip(points, labels, strict=True))
            for outcome, share in self.round.law(relabelled).items():
                yield outcome, weight * share
