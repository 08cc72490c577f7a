"""The DpEvents that dp-accounting lacks.

An event is a frozen value; its docstring defines the mechanism well enough to write an accountant from it. Validation
runs in ``__attrs_post_init__`` because attrs validators can be switched off for a whole process.
"""

from __future__ import annotations

import math

import attr
from dp_accounting import DpEvent

from accounting._checks import check_epsilon, check_probability


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ApproximateDpEvent(DpEvent):
    """Any (epsilon, delta)-DP mechanism: ``Pr[M(D) in E] <= e^epsilon Pr[M(D') in E] + delta`` for neighbours D, D'.

    epsilon in nats, at least 0; delta in [0, 1]. Nothing else is known of the mechanism, so the dominating pair is the
    extremal one of Kairouz, Oh and Viswanath (2015), Theorem 3.
    """

    epsilon: float
    delta: float = 0.0

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BoundedRangeDpEvent(DpEvent):
    """Any eta-bounded-range mechanism: for neighbours D, D' some t has ``t - eta <= ln(Pr[M(D)=o]/Pr[M(D')=o]) <= t``
    for all o.

    eta in nats, at least 0. An exponential mechanism with weights ``exp(epsilon q / 2)`` and sensitivity 1 is
    epsilon-bounded-range; eta-bounded-range implies eta-DP. Source: Durfee and Rogers (2019), Definition 3.1; Dong,
    Durfee and Rogers (2020), Lemma 3.2.
    """

    eta: float

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "eta", check_epsilon("eta", self.eta))


@attr.s(frozen=True, slots=True, auto_attribs=True)
class DominatingPairDpEvent(DpEvent):
    """Any mechanism whose output laws on every pair of neighbours, in both orders, are dominated by the finite pair
    (upper, lower).

    upper, lower: probabilities of the same outcomes in the same order, each summing to 1 within 1e-9. Dominated means:
    ``H_a(M(D) || M(D')) <= max(H_a(upper || lower), H_a(lower || upper))`` for every a >= 0. Source: Zhu, Dong and Wang
    (2022), Definition 7.
    """

    upper: tuple[float, ...]
    lower: tuple[float, ...]

    def __attrs_post_init__(self) -> None:
        for name in ("upper", "lower"):
            masses = tuple(check_probability(f"{name}[{i}]", p) for i, p in enumerate(getattr(self, name)))
            total = math.fsum(masses)
            if not abs(total - 1.0) <= 1e-9:
                raise ValueError(f"{name} must sum to 1 within 1e-9, got {total!r}")
            object.__setattr__(self, name, masses)
        if len(self.upper) != len(self.lower):
            raise ValueError(f"lower must have as many outcomes as upper ({len(self.upper)}), got {len(self.lower)}")
