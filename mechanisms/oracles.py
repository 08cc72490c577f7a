"""Component oracles: private choices of the next component of a concept (Assumption 4.4 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from dp_accounting import DpEvent

from accounting import BoundedRangeDpEvent, Relation, Trust
from mechanisms.base import Law
from mechanisms.concepts import ConceptClass, Sample, best_agreement
from mechanisms.exponential import ExponentialMechanism, log_width_up, rational_base

_MAX_VALUES = 1 << 20


@runtime_checkable
class ComponentOracle(Protocol):
    """Chooses the next component y_i of a concept, given the prefix y_{<i} and a labelled sample.

    Validity: on every sample, the value chosen extends the prefix to one that has a completion. Privacy, for every
    fixed
    prefix: `event` describes the map from samples to values under REPLACE_ONE between samples that are both
    realizable by the prefix's class (Definition 4.3); on other samples nothing is asked.
    """

    @property
    def event(self) -> DpEvent:
        """The privacy of one call, on realizable samples."""
        ...

    @property
    def trust(self) -> Trust:
        """What the event rests on, for the running code. The rest of a block is exact, so a block's trust is its
        oracle's.
        """
        ...

    @property
    def ignores_order(self) -> bool:
        """Whether the law ignores the order of the sample's records."""
        ...

    def choose(self, prefix: Sequence[Any], sample: Sample, *, rng: np.random.Generator | None) -> Any:
        """The next component."""
        ...

    def distribution(self, prefix: Sequence[Any], sample: Sample) -> Law:
        """The exact law of `choose`."""
        ...


def choose_many(
    oracle: ComponentOracle, prefix: Sequence[Any], sample: Sample, size: int, *, rng: np.random.Generator | None
) -> Sequence[Any]:
    """`size` independent choices: the oracle's own ``choose_many`` where it has one, else a loop."""
    many = getattr(oracle, "choose_many", None)
    if many is None:
        return [oracle.choose(prefix, sample, rng=rng) for _ in range(size)]
    return cast("Sequence[Any]", many(prefix, sample, size, rng=rng))


class ExponentialOracle:
    """The exponential mechanism over the next component's values; for components with few values, which it lists.

    The score is the best agreement with the sample that a completion of (prefix, value) reaches. One record changes
    it by at most 1 on any two samples, so the oracle is bounded-range, hence epsilon-DP, on all inputs, not only
    realizable ones.

    concept_class: the class with no component fixed. epsilon: in nats, eps_A. score: another score in its place,
    declared to have sensitivity 1 and to ignore the order of the sample.
    """

    ignores_order = True
    trust = Trust.EXACT

    def __init__(self, concept_class: ConceptClass, epsilon: float | Fraction) -> None:
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.base = rational_base(epsilon)

    @property
    def event(self) -> BoundedRangeDpEvent:
        """``2 ln r``-bounded-range, rounded up."""
        return BoundedRangeDpEvent(log_width_up(self.base**2))

    def choose(self, prefix: Sequence[Any], sample: Sample, *, rng: np.random.Generator | None) -> Any:
        return self.choose_many(prefix, sample, 1, rng=rng)[0]

    def choose_many(
        self, prefix: Sequence[Any], sample: Sample, size: int, *, rng: np.random.Generator | None
    ) -> list[Any]:
        """`size` independent choices."""
        return self._over(tuple(prefix)).release_many(sample, size, rng=rng)

    def distribution(self, prefix: Sequence[Any], sample: Sample) -> Mapping[Any, Fraction]:
        return self._over(tuple(prefix)).distribution(sample)

    def _over(self, prefix: tuple[Any, ...]) -> ExponentialMechanism:
        values = self.concept_class.prefix(prefix).next_values()
        if values[_MAX_VALUES:]:  # len would overflow on a range beyond 2**63
            raise ValueError(f"an ExponentialOracle lists at most {_MAX_VALUES} values of a component, got more")
        return ExponentialMechanism(
            values,
            lambda sample, value: best_agreement(self.concept_class.prefix((*prefix, value)), sample),
            self.epsilon,
            sensitivity=1,
            relation=Relation.REPLACE_ONE,
            ignores_order=True,
        )
