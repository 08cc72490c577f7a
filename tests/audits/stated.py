"""Mechanisms that are nothing but their laws, and claims about them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from accounting import Claim
from mechanisms import AdaptedMechanism, as_mechanism

SOURCE = "test"
LawOf = Callable[[Sequence[Any]], Any]


@dataclass
class Stated:
    """A mechanism that is nothing but its law; it counts how often the law is asked for."""

    law: LawOf
    name: str = "stated"
    ignores_order: bool = False
    calls: list[Any] = field(default_factory=list)

    def release(self, dataset: Sequence[Any], *, rng: object) -> Any:
        raise NotImplementedError

    def distribution(self, dataset: Sequence[Any]) -> Any:
        self.calls.append(dataset)
        return self.law(dataset)


def adapted(law: LawOf, *, ignores_order: bool = False) -> AdaptedMechanism:
    return as_mechanism(Stated(law, ignores_order=ignores_order))


def pure(epsilon: float, relation: str = "replace-one", promise: str | None = None) -> Claim:
    return Claim.pure(epsilon, relation=relation, source=SOURCE, promise=promise)


def approximate(epsilon: float, delta: float, relation: str = "replace-one") -> Claim:
    return Claim.approximate(epsilon, delta, relation=relation, source=SOURCE)


def responses(truth: Fraction | float) -> LawOf:
    """Randomized response on each bit: ln(truth/(1 - truth))-DP under replace-one, exactly."""

    def law(dataset: Sequence[int]) -> Mapping[Hashable, Any]:
        outcomes = itertools.product((0, 1), repeat=len(dataset))
        return {o: math.prod(truth if a == b else 1 - truth for a, b in zip(o, dataset, strict=True)) for o in outcomes}

    return law


def truncated_geometric(k: int, n: int = 5) -> LawOf:
    """A count on 0..n with two-sided geometric noise of ratio alpha = 2^k/(2^k + 1), clamped: ln(1 + 2^-k)-DP, exactly.

    Balcer and Vadhan (2018) take k = ceil(log2(2/epsilon)); often coded with the natural logarithm.
    """
    alpha = Fraction(2**k, 2**k + 1)

    def law(dataset: Sequence[int]) -> Mapping[Hashable, Any]:
        count = sum(dataset)
        inner: dict[Hashable, Fraction] = {z: (1 - alpha) / (1 + alpha) * alpha ** abs(z - count) for z in range(1, n)}
        return {0: alpha**count / (1 + alpha), **inner, n: alpha ** (n - count) / (1 + alpha)}

    return law
