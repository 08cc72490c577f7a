"""The DpEvents that dp-accounting lacks.

An event is a frozen value; its docstring defines the mechanism well enough to write an accountant from it. Validation
runs in ``__attrs_post_init__`` because attrs validators can be switched off for a whole process.
"""

from __future__ import annotations

import math
from itertools import pairwise

import attr
from dp_accounting import DpEvent

from accounting._checks import check_epsilon, check_int, check_probability, check_real


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


@attr.s(frozen=True, slots=True, auto_attribs=True)
class DiscreteGaussianDpEvent(DpEvent):
    """Discrete Gaussian noise, ``Pr[k] ~ exp(-k^2 / (2 sigma^2))`` on the integers, added to one integer-valued query.

    sigma: over 0. sensitivity: how much adding or removing one record changes the query, a whole number; substituting a
    record changes it by up to twice that. Source: Canonne, Kamath and Steinke (2020), Definition 1.
    """

    sigma: float
    sensitivity: int = 1

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_real("sigma", self.sigma, lo=0.0, lo_open=True))
        object.__setattr__(self, "sensitivity", check_int("sensitivity", self.sensitivity, lo=0))


@attr.s(frozen=True, slots=True, auto_attribs=True)
class PermuteAndFlipDpEvent(DpEvent):
    """Permute-and-flip selection: candidates in random order, each accepted with probability ``exp(epsilon (q - max q)
    / 2)``.

    epsilon in nats; scores of sensitivity 1 under the relation meant. It is epsilon-DP and no more is claimed: it is
    not epsilon-bounded-range (it is report-noisy-max with exponential noise), so neither that profile nor
    rho = epsilon^2/8 holds. Source: McKenna and Sheldon (2020), Theorem 1; Ding, Kifer, Kamalaruban and others (2021).
    """

    epsilon: float

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon("epsilon", self.epsilon))


@attr.s(frozen=True, slots=True, auto_attribs=True)
class RdpDpEvent(DpEvent):
    """Any mechanism with Renyi divergence ``D_order(M(D) || M(D')) <= value`` for neighbours, at each listed order.

    orders: increasing, each over 1. values: nats, non-negative, as many. Source: Mironov (2017), Definition 4.
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def __attrs_post_init__(self) -> None:
        orders = tuple(check_real(f"orders[{i}]", a, lo=1.0, lo_open=True) for i, a in enumerate(self.orders))
        values = tuple(check_epsilon(f"values[{i}]", v) for i, v in enumerate(self.values))
        if not orders or any(b <= a for a, b in pairwise(orders)):
            raise ValueError(f"orders must be increasing and not empty, got {orders!r}")
        if len(values) != len(orders):
            raise ValueError(f"values must have as many numbers as orders ({len(orders)}), got {len(values)}")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "values", values)


@attr.s(frozen=True, slots=True, auto_attribs=True)
class GroupDpEvent(DpEvent):
    """`event`, counted for neighbours that differ in up to `size` records instead of one (group privacy)."""

    event: DpEvent
    size: int

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.event, DpEvent):
            raise TypeError(f"event must be a dp_accounting.DpEvent, got {self.event!r}")
        object.__setattr__(self, "size", check_int("size", self.size, lo=1))
