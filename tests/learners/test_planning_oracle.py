"""A plan's blocks against an accountant of our own: densities by quadrature, sampling by formula, composition by
dp-accounting's grids. It shares no code with the planner.

The macro-block of the sharper learners is BR(ln 4), A, BR(eta), with A an (eps_A, delta_A)-DP or bounded-range oracle.
The worst profile of BR(eta) is the best over t of the pair on losses t and t - eta; under the pair with this profile
the loss has density exp((l - eta)/2) / (2 (1 - e^-eta)) on [-eta, eta].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from learners import Block, Plan, plan_carry_forward

Array = npt.NDArray[np.float64]
Curve = Callable[[Array], Array]

EPSILON, DELTA, STEP = 1.0, 1e-6, 1e-3


def nothing(e: Array) -> Array:
    return np.maximum(0.0, -np.expm1(np.minimum(e, 0.0)))


@lru_cache
def bounded_range(eta: float) -> Curve:
    """The largest over t of Pr[loss t] (1 - e^{e - t})_+, with Pr[loss t] = (e^{eta - t} - 1)/(e^{eta - t} - e^-t)."""
    t = np.linspace(0.0, eta, 1501)
    table_e = np.linspace(-eta, eta, 2001)
    share = np.expm1(eta - t) / (np.exp(eta - t) - np.exp(-t))
    below = (1 - share) * np.maximum(0.0, -np.expm1(table_e[:, None] - (t - eta)))
    table = np.max(share * np.maximum(0.0, -np.expm1(table_e[:, None] - t)) + below, axis=1)
    return lambda e: np.where(e < -eta, nothing(e), np.interp(e, table_e, table, right=0.0))


def then_bounded_range(rest: Curve, eta: float, nodes: int = 60) -> Curve:
    """delta of a BR(eta) step before `rest`: the average of rest(e - l) over the density, by Gauss-Legendre."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    losses, weights = eta * x, eta * w * np.exp((eta * x - eta) / 2) / (2 * -math.expm1(-eta))
    return lambda e: np.asarray(rest(np.asarray(e)[..., None] - losses) @ weights)


def then_approximate(rest: Curve, epsilon: float, delta: float) -> Curve:
    likely, rare = ((1 - delta) / (1 + math.exp(-s * epsilon)) for s in (1, -1))
    return lambda e: delta + likely * rest(np.asarray(e) - epsilon) + rare * rest(np.asarray(e) + epsilon)


def sampled_total(steps: Sequence[tuple[Curve, float, int]], rate: float, at: float) -> float:
    """delta at `at` of counts of steps (curve, largest loss), each on a fixed-size sample: Theorem 3.4 as a curve, on a
    grid.
    """
    total = None
    for curve, largest, count in steps:
        top = math.ceil(math.log1p(rate * math.expm1(largest)) / STEP) + 1
        e = STEP * np.arange(top + 1)
        right = np.minimum.accumulate(np.clip(rate * curve(np.log1p(np.expm1(e) / rate)), 0.0, 1.0))
        left = -np.expm1(-e[1:]) + np.exp(-e[1:]) * right[1:]
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            STEP, -top, top, np.concatenate([left[::-1], right]).tolist()
        )
        pld = PrivacyLossDistribution(pmf)
        pld = pld.self_compose(count) if count > 1 else pld
        total = pld if total is None else total.compose(pld)
    assert total is not None
    return float(total.get_delta_for_epsilon(at))


def curves(plan: Plan) -> dict[str, tuple[Curve, float]]:
    """The profile and the largest loss of each kind of activation."""
    eps_a, eps_lb, carrier = plan.oracle_epsilon, plan.label_boost_epsilon, math.log(4)
    relabel = eps_lb if plan.variant == "star" else 2 * math.log1p(math.exp(eps_lb / 2))

    def oracle(rest: Curve) -> Curve:
        if plan.oracle == "approximate":
            return then_approximate(rest, eps_a, plan.oracle_delta)
        return then_bounded_range(rest, eps_a, 20)

    final = bounded_range(relabel)
    last = oracle(bounded_range(carrier))  # the order of the two does not change the product
    return {
        "macro-block": (then_bounded_range(oracle(final), carrier), carrier + eps_a + relabel),
        "last macro-block": (last, carrier + eps_a),
        "initial block": (then_bounded_range(oracle(final), relabel), 2 * relabel + eps_a),
        "first relabelling": (final, relabel),
    }


def delta_of(plan: Plan, block: Block, growth: float = 1.0) -> float:
    known = curves(plan)
    return sampled_total(
        [(*known[step.label], step.count) for step in block.steps], min(1.0, float(block.rate) * growth), EPSILON
    )


@pytest.mark.parametrize("k", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("variant", "oracle"), [("tight", "approximate"), ("star", "bounded-range")])
def test_blocks_are_as_large_as_the_independent_accountant_allows(variant: str, oracle: str, k: int) -> None:
    plan = plan_carry_forward(
        k,
        EPSILON,
        DELTA,
        active_sample=10**5,
        oracle_epsilon=0.5,
        label_boost_epsilon=1.0,
        variant=variant,
        oracle=oracle,
    )
    for block in plan.blocks:
        if block.sample == block.size:
            assert delta_of(plan, block) <= DELTA
            continue
        assert delta_of(plan, block) <= DELTA * 1.01
        assert delta_of(plan, block, 1.002) >= DELTA * 0.99
