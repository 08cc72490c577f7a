"""One round of the CarryForwardLearner as a mechanism.

Round i of the learner holds a prefix y_{<i} and a labelled sample S_{i-1} that some concept of C(y_{<i}) labels. It
asks the oracle A_i for the next component, and carries the labels over to a fresh unlabelled carrier by LabelBoost:

    y_i <- A_i(y_{<i}; S_{i-1}),    h_i <- LabelBoost(S_{i-1}, T_i, C(y_{<=i})),    S_i <- T_i labelled by h_i.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from dp_accounting import ComposedDpEvent, DpEvent

from accounting import Claim, Relation, check_fraction, check_int
from mechanisms.base import Dataset, Law
from mechanisms.concepts import ConceptClass, check_realizable
from mechanisms.label_boost import carrier_law, draw_labels, labelled_claim
from mechanisms.oracles import ComponentOracle, choose_many
from mechanisms.reservoirs import sample_records, selections
from mechanisms.sampling import check_rng

_KEPT_LAWS = 4096

Labelled = tuple[tuple[Any, int], ...]
Mass = Iterator[tuple[Any, Fraction | float]]


def composed(*events: DpEvent) -> ComposedDpEvent:
    """An adaptive composition whose parts cannot be changed afterwards: a tuple, not dp-accounting's list."""
    return ComposedDpEvent(cast("list[DpEvent]", events))


def positions(items: Sequence[Hashable]) -> dict[Any, list[int]]:
    """Where each distinct item occurs."""
    found: defaultdict[Any, list[int]] = defaultdict(list)
    for position, item in enumerate(items):
        found[item].append(position)
    return found


def collect(outcomes: Mass) -> dict[Any, Any]:
    """The law in which an outcome has the sum of its shares."""
    mass: defaultdict[Any, Any] = defaultdict(int)
    for outcome, probability in outcomes:
        mass[outcome] += probability
    return dict(mass)


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
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(
        self, dataset: Dataset, size: int, *, rng: np.random.Generator | None
    ) -> list[tuple[Any, Labelled]]:
        """`size` independent outcomes; runs that have met the same value and carrier are drawn together."""
        check_rng(rng)
        self.check_dataset(dataset)
        values = choose_many(self.oracle, self.prefix, dataset, check_int("size", size, lo=0), rng=rng)
        if self.is_last:
            for value in dict.fromkeys(values):
                self.concept_class.prefix((*self.prefix, value))
            return [(value, ()) for value in values]
        drawn = [(value, self._draw_carrier(rng)) for value in values]
        outcomes: list[Any] = [None] * size
        for (value, carrier), runs in positions(drawn).items():
            extended = self.concept_class.prefix((*self.prefix, value))
            labels = draw_labels(dataset, carrier, extended, self.label_boost_epsilon, len(runs), read=carrier, rng=rng)
            for run, labelling in zip(runs, labels, strict=True):
                outcomes[run] = (value, tuple(zip(carrier, labelling, strict=True)))
        return outcomes

    def _draw_carrier(self, rng: np.random.Generator | None) -> tuple[Any, ...]:
        return sample_records(self._reservoir, self._size, rng=rng) if self._draws else self._reservoir

    def distribution(self, dataset: Dataset) -> Law:
        """The exact law: over the oracle's value, the carrier drawn, and its labels."""
        return dict(self.law(dataset))

    def law(self, dataset: Dataset) -> Mapping[Any, Any]:
        """`distribution`, kept for the next call with the same records; not to be edited."""
        key = frozenset(Counter(dataset).items()) if self.ignores_order else tuple(dataset)
        if key not in self._laws:
            if len(self._laws) >= _KEPT_LAWS:
                self._laws.clear()
            self.check_dataset(dataset)
            self._laws[key] = collect(self._outcomes(dataset))
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
