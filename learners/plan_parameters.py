"""Sampling rates of a plan's blocks, and the choice of its oracle's and its relabelling's epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from dp_accounting import DpEvent
from scipy import optimize

from accounting import PrivacyProfile, Relation, largest_sampling_rate, rough_sampling_rate
from learners.plan_shapes import Shape

LEAST_EPSILON, MOST_EPSILON = 0.01, 4.0
"""Where eps_A and eps_LB are looked for, as shares of epsilon (the lower end) and at most (Assumption 4.4)."""

_USUAL = (0.6, 0.75)
"""Shares of epsilon near which the best (eps_A, eps_LB) usually lies."""


@lru_cache(maxsize=256)
def _profile(event: DpEvent) -> PrivacyProfile:
    return PrivacyProfile.from_event(event, relation=Relation.REPLACE_ONE)


def block_rates(shapes: Sequence[Shape], epsilon: float, delta: float) -> tuple[float, ...]:
    """For each block the largest sampling rate at which it is (epsilon, delta)-DP."""
    return tuple(largest_sampling_rate(_steps(shape), epsilon, delta) for shape in shapes)


class RoughRatio:
    """(eps_A, eps_LB) -> about n/m, the sum of 1/q over the blocks; each search starts from the last one's rates.

    shapes: (eps_A, eps_LB) -> the blocks.
    """

    def __init__(self, shapes: Callable[[float, float], Sequence[Shape]], epsilon: float, delta: float) -> None:
        self._shapes, self._epsilon, self._delta = shapes, epsilon, delta
        self._rates: dict[str, float] = {}

    def __call__(self, oracle_epsilon: float, label_boost_epsilon: float) -> float:
        for shape in self._shapes(oracle_epsilon, label_boost_epsilon):
            near = self._rates.get(shape.name)
            self._rates[shape.name] = rough_sampling_rate(_steps(shape), self._epsilon, self._delta, near=near)
        return sum(1 / rate if rate else math.inf for rate in self._rates.values())


def _steps(shape: Shape) -> list[tuple[PrivacyProfile, int]]:
    return [(_profile(step.event), step.count) for step in shape.steps]


def choose_epsilons(
    ratio: Callable[[float, float], float],
    epsilon: float,
    oracle_epsilon: float | None,
    label_boost_epsilon: float | None,
) -> tuple[float, float]:
    """(eps_A, eps_LB), those not given chosen to minimise ``n/m (1/eps_A + 1/eps_LB)``, to two digits.

    Why this: n/m alone falls with either epsilon, down to values at which the learner learns nothing. To keep its
    error, an active sample must grow as ``m ~ c_A / eps_A + c_LB / eps_LB`` (the oracle's loss of depth and the
    relabelling's loss of agreement, over m); with c_A = c_LB the product is the number of records at fixed error.

    ratio: (eps_A, eps_LB) -> n/m.
    """
    if oracle_epsilon is not None and label_boost_epsilon is not None:
        return oracle_epsilon, label_boost_epsilon
    given = (oracle_epsilon, label_boost_epsilon)
    low, high = math.log(LEAST_EPSILON * epsilon), math.log(MOST_EPSILON)

    def both(free: Sequence[float]) -> tuple[float, float]:
        values = iter(free)
        a, b = (math.exp(min(max(next(values), low), high)) if value is None else value for value in given)
        return a, b

    def cost(free: Sequence[float]) -> float:
        a, b = both(free)
        if a == 0 or b == 0:
            return ratio(a, b)
        return math.log(ratio(a, b) * (1 / a + 1 / b))

    if given == (None, None):
        start = [min(max(math.log(share * epsilon), low), high) for share in _USUAL]
        corners = [start, [start[0] + 0.3, start[1]], [start[0], start[1] + 0.3]]
        options = {"initial_simplex": corners, "xatol": 0.05, "fatol": 2e-3, "maxfev": 20}
        found = optimize.minimize(cost, start, method="Nelder-Mead", options=options).x
    else:
        found = [optimize.minimize_scalar(lambda x: cost([x]), bounds=(low, high), options={"xatol": 0.05}).x]
    a, b = both([float(x) for x in found])
    return (
        oracle_epsilon if oracle_epsilon is not None else float(f"{a:.2g}"),
        label_boost_epsilon if label_boost_epsilon is not None else float(f"{b:.2g}"),
    )
