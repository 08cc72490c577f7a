"""The steps of the CarryForwardLearner as mechanisms: one round, the initial block, the two-round macro-block.

Round i of the learner holds a prefix y_{<i} and a labelled sample S_{i-1} that some concept of C(y_{<i}) labels. It
asks the oracle A_i for the next component, and carries the labels over to a fresh unlabelled carrier by LabelBoost:

    y_i <- A_i(y_{<i}; S_{i-1}),    h_i <- LabelBoost(S_{i-1}, T_i, C(y_{<=i})),    S_i <- T_i labelled by h_i.

`CarryForwardRound` is that map from S_{i-1} with T_i from a reservoir that is not the private one (Claim 6.3). A
record of
T_i lives on in S_i and is gone after the next round: `MacroBlock` is the map from T_i through two rounds (Definition
6.1). `InitialBlock` is the learner's start (Lemma 6.4). All three release the carried sample S, which real learners
keep to themselves, because the next step starts from it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from dp_accounting import ComposedDpEvent, DpEvent

from accounting import Claim, Relation, check_fraction, check_int
from mechanisms.base import Dataset, Law
from mechanisms.concepts import ConceptClass, Sample, check_realizable
from mechanisms.label_boost import carrier_law, label_boost, label_boost_law, labelled_claim, unlabelled_claim
from mechanisms.oracles import ComponentOracle
from mechanisms.reservoirs import sample_records, selections
from mechanisms.sampling import check_rng

Labelled = tuple[tuple[Any, int], ...]
Mass = Iterator[tuple[Any, Fraction | float]]


def composed(*events: DpEvent) -> ComposedDpEvent:
    """An adaptive composition whose parts nobody can change afterwards: a tuple, where dp-accounting's own has a
    list.
    """
    return ComposedDpEvent(cast("list[DpEvent]", events))


class CarryForwardRound:
    """One round on a fixed prefix: from a realizable labelled sample to (next component, carried sample) (Claim 6.3).

    dataset: S, labelled records that some concept of C(prefix) labels so. Output: ``(y, S')`` with y from the oracle
    and S' the next carrier's records (point, label), labelled by LabelBoost; ``(y, ())`` when y is the last
    component.

    concept_class: C, with no component fixed. prefix: y_{<i}. oracle: A_i. label_boost_epsilon: eps_LB.
    carrier: the next carrier's points, fixed; or reservoir and carrier_size: it is drawn from that (public or other)
    reservoir uniformly without replacement, in random order. None of the three on the last component.

    Guarantee, for one replaced record of S between realizable samples: the oracle's event, then for every y and carrier
    ``2 ln(1+r)``-bounded-range (`label_boost`, a labelled record). The promise is checked before the oracle is called.

    Raises:
        TypeError, ValueError: a prefix without completion or with nothing left, carriers that do not fit.
    """

    def __init__(
        self,
        concept_class: ConceptClass,
        prefix: Sequence[Any],
        oracle: ComponentOracle,
        label_boost_epsilon: float | Fraction,
        *,
        carrier: Sequence[Any] | None = None,
        reservoir: Sequence[Any] | None = None,
        carrier_size: int | None = None,
    ) -> None:
        if concept_class.fixed:
            raise ValueError(f"concept_class must have no component fixed, got {concept_class.fixed!r}")
        self.concept_class = concept_class
        self.prefix = tuple(prefix)
        self.prefix_class = concept_class.prefix(self.prefix)
        self.oracle = oracle
        self.label_boost_epsilon = check_fraction("label_boost_epsilon", label_boost_epsilon)
        left = concept_class.components - len(self.prefix)
        if left < 1:
            raise ValueError(f"prefix must leave a component to choose, got all {concept_class.components}: {prefix!r}")
        self.is_last = left == 1
        given = (carrier is not None, reservoir is not None or carrier_size is not None)
        if given not in ([(False, False)] if self.is_last else [(True, False), (False, True)]):
            rule = (
                "none of them on the last component"
                if self.is_last
                else "either carrier, or reservoir and carrier_size"
            )
            raise ValueError(
                f"give {rule}, got carrier={carrier!r}, reservoir={reservoir!r}, carrier_size={carrier_size!r}"
            )
        self._reservoir: tuple[Any, ...] = tuple(carrier if carrier is not None else reservoir or ())
        self._draws = carrier is None and not self.is_last
        self._size = len(self._reservoir)
        if self._draws:
            self._size = check_int("carrier_size", carrier_size, lo=1, hi=len(self._reservoir))
        self.prefix_class.levels((), self._reservoir)
        self._laws: dict[Hashable, dict[Any, Any]] = {}

    @property
    def ignores_order(self) -> bool:
        """LabelBoost ignores the order of S, so the round does when the oracle does."""
        return self.oracle.ignores_order

    @property
    def event(self) -> DpEvent:
        """What a replaced record of a realizable S costs."""
        return (
            self.oracle.event
            if self.is_last
            else composed(self.oracle.event, labelled_claim(self.label_boost_epsilon).event)
        )

    @property
    def claim(self) -> Claim:
        """The oracle's event, then ``2 ln(1+r)``-bounded-range (not on the last component); promised: realizable."""
        return Claim(
            self.event,
            Relation.REPLACE_ONE,
            "Claim 6.3, with the sharpened Lemma 3.17 (mechanisms.label_boost)",
            promise=f"the sample is labelled by a concept with prefix {self.prefix!r} (Definition 4.2)",
            trust=self.oracle.trust,
        )

    def check_dataset(self, dataset: Dataset) -> None:
        """Raise `NotRealizableError` when the promise does not hold."""
        check_realizable(self.prefix_class, dataset, "dataset")

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> tuple[Any, Labelled]:
        """One outcome."""
        check_rng(rng)
        self.check_dataset(dataset)
        value = self.oracle.choose(self.prefix, dataset, rng=rng)
        extended = self.concept_class.prefix((*self.prefix, value))
        if self.is_last:
            return value, ()
        carrier = sample_records(self._reservoir, self._size, rng=rng) if self._draws else self._reservoir
        return value, label_boost(dataset, carrier, extended, self.label_boost_epsilon, rng=rng).carrier

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law: over the oracle's value, the carrier drawn, and its labels."""
        key = frozenset(Counter(dataset).items()) if self.ignores_order else tuple(dataset)
        if key not in self._laws:
            self.check_dataset(dataset)
            self._laws[key] = _collect(self._outcomes(dataset))
        return self._laws[key]

    def _outcomes(self, dataset: Dataset) -> Mass:
        for value, probability in self.oracle.distribution(self.prefix, dataset).items():
            if self.is_last:
                yield (value, ()), probability
                continue
            extended = self.concept_class.prefix((*self.prefix, value))
            for carrier, share in self._carriers():
                for labels, weight in carrier_law(dataset, carrier, extended, self.label_boost_epsilon).items():
                    yield (value, tuple(zip(carrier, labels, strict=True))), probability * share * weight

    def _carriers(self) -> list[tuple[tuple[Any, ...], Fraction]]:
        if not self._draws:
            return [(self._reservoir, Fraction(1))]
        drawn = selections(self._reservoir, self._size, ordered=True)
        total = sum(times for _, times in drawn)
        return [(carrier, Fraction(times, total)) for carrier, times in drawn]


def _collect(outcomes: Mass) -> dict[Any, Any]:
    mass: defaultdict[Any, Any] = defaultdict(int)
    for outcome, probability in outcomes:
        mass[outcome] += probability
    return dict(mass)


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
        check_rng(rng)
        self.check_dataset(dataset)
        first = self.first_oracle.choose(self.prefix, self.state, rng=rng)
        extended = self.concept_class.prefix((*self.prefix, first))
        carried = label_boost(self.state, dataset, extended, self.label_boost_epsilon, rng=rng).carrier
        return (first, *self._second_round(first).release(carried, rng=rng))

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law, by enumeration of every step."""
        self.check_dataset(dataset)
        return _collect(self._outcomes(tuple(dataset)))

    def _outcomes(self, dataset: tuple[Any, ...]) -> Mass:
        if self._first_law is None:
            self._first_law = self.first_oracle.distribution(self.prefix, self.state)
        for first, probability in self._first_law.items():
            extended = self.concept_class.prefix((*self.prefix, first))
            for labels, weight in carrier_law(self.state, dataset, extended, self.label_boost_epsilon).items():
                carried = tuple(zip(dataset, labels, strict=True))
                for (second, state), share in self._second_round(first).distribution(carried).items():
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
        check_rng(rng)
        relabelled = label_boost(dataset, (), self.round.concept_class, self.round.label_boost_epsilon, rng=rng).sample
        return self.round.release(relabelled, rng=rng)

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law, by enumeration of every step."""
        return _collect(self._outcomes(dataset))

    def _outcomes(self, dataset: Dataset) -> Mass:
        points = [point for point, _ in dataset]
        law = label_boost_law(dataset, (), self.round.concept_class, self.round.label_boost_epsilon)
        for (labels, _), weight in law.items():
            relabelled = tuple(zip(points, labels, strict=True))
            for outcome, share in self.round.distribution(relabelled).items():
                yield outcome, weight * share
