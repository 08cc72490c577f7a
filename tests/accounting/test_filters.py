"""Privacy filters: what they cost and allow against the definitions, that they hold against any adaptive analyst, and
that what they replace does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import dp_accounting as dpa
import mpmath
import numpy as np
import pytest
from dp_accounting import DpEvent

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    Budget,
    BudgetExceededError,
    DiscreteGaussianDpEvent,
    GroupDpEvent,
    Ledger,
    LedgerFileError,
    PermuteAndFlipDpEvent,
    PrivacyProfile,
    RdpDpEvent,
    Relation,
    UnsupportedEventError,
)
from accounting.filter_costs import Spent, zcdp_cost
from accounting.filters import (
    AdaptiveChoiceError,
    BasicFilter,
    GaussianFilter,
    PrivacyFilter,
    RenyiFilter,
    ZCdpFilter,
    filter_from_json,
    filter_of,
)
from accounting.totals import counts_of, total_of
from tests.support.ledgers import REPLACE, TENTH, state

ADD_REMOVE = Relation.ADD_OR_REMOVE_ONE
FILTERS: list[PrivacyFilter] = [
    BasicFilter(),
    ZCdpFilter(),
    ZCdpFilter(Fraction(1, 10**7)),
    GaussianFilter(),
    RenyiFilter(20),
]
ORDERS = [1.001, 1.1, 1.5, 2.0, 3.0, 8.0, 32.0, 200.0]


def divergence(p: list[float], q: list[float], order: float) -> float:
    """D_order(p || q) from the definition."""
    with mpmath.workdps(40):
        total = sum(
            mpmath.mpf(x) ** order * mpmath.mpf(y) ** (1 - mpmath.mpf(order)) for x, y in zip(p, q, strict=True)
        )
        return float(mpmath.log(total) / (order - 1))


# Costs.


@pytest.mark.parametrize("eta", [0.1, 1.0, 3.0])
def test_bounded_range_pairs_keep_their_rho(eta: float) -> None:
    """Every two-point pair whose log-ratios are t and t - eta: the extremal ones (Dong, Durfee and Rogers 2020)."""
    cost = zcdp_cost(BoundedRangeDpEvent(eta), REPLACE)
    assert cost is not None
    rho, tightest = float(cost.amount), 0.0
    for t in np.linspace(0.001, eta - 0.001, 60):
        heavy = -math.expm1(t - eta) / (math.exp(t) - math.exp(t - eta))  # Q of the outcome with log-ratio t
        q = [heavy, 1 - heavy]
        p = [heavy * math.exp(t), (1 - heavy) * math.exp(t - eta)]
        for order in ORDERS:
            ratio = divergence(p, q, order) / (rho * order)
            assert ratio <= 1 + 1e-9
            tightest = max(tightest, ratio)
    assert tightest > 0.9 if eta <= 1 else tightest > 0.6  # a quarter of epsilon^2/2, and not much to spare


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_pure_pairs_keep_their_rho(epsilon: float) -> None:
    p = [1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))]
    for event in (ApproximateDpEvent(epsilon), PermuteAndFlipDpEvent(epsilon), dpa.LaplaceDpEvent(2 / epsilon)):
        cost = zcdp_cost(event, REPLACE)
        assert cost is not None
        assert float(cost.amount) == pytest.approx(epsilon**2 / 2)
        assert all(divergence(p, p[::-1], order) <= float(cost.amount) * order * (1 + 1e-12) for order in ORDERS)


COSTS: list[tuple[DpEvent, Relation, str, str]] = [
    (dpa.GaussianDpEvent(2.0), REPLACE, "1/2", "0"),
    (dpa.GaussianDpEvent(2.0), ADD_REMOVE, "1/8", "0"),
    (DiscreteGaussianDpEvent(2.0, 3), ADD_REMOVE, "9/8", "0"),
    (dpa.ZCDpEvent(0.3), REPLACE, "3/10", "0"),
    (ApproximateDpEvent(0.2, 1e-9), REPLACE, "1/50", "1/1000000000"),
    (GroupDpEvent(dpa.GaussianDpEvent(2.0), 3), ADD_REMOVE, "9/8", "0"),
    (dpa.SelfComposedDpEvent(dpa.ComposedDpEvent([dpa.ZCDpEvent(0.1), TENTH]), 4), REPLACE, "42/100", "0"),
    (dpa.NoOpDpEvent(), REPLACE, "0", "0"),
]


@pytest.mark.parametrize(("event", "relation", "rho", "delta"), COSTS)
def test_zcdp_costs(event: DpEvent, relation: Relation, rho: str, delta: str) -> None:
    assert zcdp_cost(event, relation) == Spent(Fraction(rho), Fraction(delta))


def test_sampled_pairs_are_amplified_before_they_are_summed() -> None:
    event = dpa.SampledWithoutReplacementDpEvent(100, 10, dpa.ComposedDpEvent([TENTH, ApproximateDpEvent(0.9, 1e-6)]))
    cost = BasicFilter().cost(event, REPLACE)
    assert float(cost.amount) == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-12)
    assert cost.amount >= Fraction(math.log1p(0.1 * math.expm1(1.0)))
    assert cost.delta == Fraction(1e-7) or float(cost.delta) == pytest.approx(1e-7, rel=1e-12)


def test_divergences_at_one_order() -> None:
    rule = RenyiFilter(3.0)
    assert rule.cost(dpa.GaussianDpEvent(2.0), ADD_REMOVE).amount == Fraction(3, 8)
    assert rule.cost(dpa.ZCDpEvent(0.25, 0.5), REPLACE).amount == Fraction(5, 4)
    assert rule.cost(ApproximateDpEvent(5.0), REPLACE).amount == 5  # epsilon itself, below epsilon^2/2 times the order
    assert rule.cost(RdpDpEvent((2.0, 3.0), (0.5, 0.75)), REPLACE).amount == Fraction(3, 4)
    assert rule.cost(RdpDpEvent((5.0, 9.0), (0.5, 0.75)), REPLACE).amount == Fraction(1, 2)
    # Between orders 2 and 4 the chord of (a - 1) D_a: (0.5 + 3 * 1) / 2 at a = 3, divided by 2.
    assert rule.cost(RdpDpEvent((2.0, 4.0), (0.5, 1.0)), REPLACE).amount == Fraction(7, 8)
    with pytest.raises(UnsupportedEventError):
        rule.cost(RdpDpEvent((2.0, 2.5), (0.5, 1.0)), REPLACE)
    with pytest.raises(UnsupportedEventError):
        rule.cost(ApproximateDpEvent(1.0, 1e-9), REPLACE)


@pytest.mark.parametrize("order", [2, 2.5, 16])
def test_sampled_gaussian_divergence_is_the_integral(order: float) -> None:
    """The larger of both directions, by quadrature of the definition (Mironov, Talwar and Zhang 2019, Section 3)."""
    rate, sigma = 0.1, 1.5
    with mpmath.workdps(30):

        def density(x: Any, mean: Any) -> Any:
            return mpmath.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * mpmath.sqrt(2 * mpmath.pi))

        def mixed(x: Any) -> Any:
            return (1 - rate) * density(x, 0) + rate * density(x, 1)

        points = [-60, -10, 0, 1, 10, 30, 60]
        up = mpmath.quad(lambda x: mixed(x) ** order * density(x, 0) ** (1 - order), points)
        down = mpmath.quad(lambda x: density(x, 0) ** order * mixed(x) ** (1 - order), points)
        truth = float(mpmath.log(max(up, down)) / (order - 1))
    event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(sigma))
    cost = float(RenyiFilter(order).cost(event, ADD_REMOVE).amount)
    assert truth <= cost <= truth * (1 + (1e-6 if order == int(order) else 2e-2))
    with pytest.raises(UnsupportedEventError, match="renyi filter cannot take PoissonSampledDpEvent under replace-one"):
        RenyiFilter(order).cost(event, REPLACE)


@pytest.mark.parametrize(
    ("rule", "event"),
    [
        (BasicFilter(), dpa.GaussianDpEvent(1.0)),
        (BasicFilter(), dpa.NonPrivateDpEvent()),
        (ZCdpFilter(), dpa.ZCDpEvent(0.1, 0.1)),
        (ZCdpFilter(), RdpDpEvent((2.0,), (1.0,))),
        (ZCdpFilter(), dpa.ComposedDpEvent([TENTH, dpa.GaussianDpEvent(0.0)])),
        (GaussianFilter(), TENTH),
        (GaussianFilter(), dpa.GaussianDpEvent(0.0)),
        (RenyiFilter(2.0), dpa.NonPrivateDpEvent()),
    ],
)
def test_what_no_theorem_covers_is_refused_and_leaves_the_ledger_unchanged(rule: PrivacyFilter, event: DpEvent) -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 1e-6) if rule.kind != "renyi" else (30, 1e-6), filter=rule)
    ledger.dataset("records")
    before = state(ledger)
    with pytest.raises(UnsupportedEventError, match=f"the {rule.kind} filter cannot take .* under replace-one"):
        ledger.charge("records", event, label="x")
    assert state(ledger) == before


# Limits.


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Canonne, Kamath and Steinke (2020), Proposition 12, minimised over a fine grid of orders: an upper bound."""
    orders = 1 + np.exp(np.linspace(-6, 14, 40001))
    exponent = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    return float(np.exp(exponent.min()))


@pytest.mark.parametrize("budget", [(1, 1e-6), ("0.1", "1e-9"), (5, 1e-3), (0.01, 1e-5), (20, 1e-12)])
def test_limits_stand_for_the_budget_and_waste_little(budget: Any) -> None:
    exact = Budget.of(budget)
    epsilon, delta = float(exact.epsilon), float(exact.delta)
    rho = float(ZCdpFilter().limits(exact, REPLACE).amount)
    assert zcdp_delta(rho, epsilon) <= delta * (1 + 1e-9)
    assert zcdp_delta(rho * 1.001, epsilon) > delta
    mu = math.sqrt(float(GaussianFilter().limits(exact, REPLACE).amount))
    assert PrivacyProfile.gaussian(1 / mu).delta(epsilon) <= delta * (1 + 1e-9)
    assert PrivacyProfile.gaussian(1 / (mu * 1.0001)).delta(epsilon) > delta
    with mpmath.workdps(40):
        order = mpmath.mpf(200)
        truth = mpmath.mpf(epsilon) - mpmath.log(1 - 1 / order) + (mpmath.log(delta) + mpmath.log(order)) / (order - 1)
    if truth > 0:
        limit = float(RenyiFilter(200).limits(exact, REPLACE).amount)
        assert limit == pytest.approx(float(truth), rel=1e-9)
    else:
        with pytest.raises(ValueError, match="order must be one at which the budget"):
            RenyiFilter(200).limits(exact, REPLACE)


def test_a_part_of_delta_can_be_set_aside_for_the_charges() -> None:
    budget = Budget.of((1, "1e-6"))
    limits = ZCdpFilter(Fraction("4e-7")).limits(budget, REPLACE)
    assert limits == Spent(ZCdpFilter().limits(Budget.of((1, "6e-7")), REPLACE).amount, Fraction("4e-7"))


@pytest.mark.parametrize(
    ("rule", "budget"),
    [
        ("zcdp", (1, 0)), ("gaussian", (1, 0)), (RenyiFilter(8), (1, 0)), (ZCdpFilter(Fraction(1, 100)), (1, 1e-6)),
        (RenyiFilter(2), (1, 1e-6)), ("basic", None),
    ],
)  # fmt: skip
def test_a_filter_that_the_budget_cannot_feed_is_refused_at_once(rule: Any, budget: Any) -> None:
    with pytest.raises(ValueError, match="budget"):
        Ledger(relation=REPLACE, budget=budget, filter=rule)


@pytest.mark.parametrize("rule", ["rdp", 3, None, BasicFilter])
def test_what_is_no_filter_is_refused(rule: Any) -> None:
    if rule is None:
        assert Ledger(relation=REPLACE, budget=(1, 0), filter=None).filter is None
        return
    with pytest.raises((TypeError, ValueError), match="filter must be"):
        filter_of(rule)


# Validity, against every adaptive analyst of a small game.


Counts = tuple[int, ...]


def worst_delta(options: tuple[float, ...], epsilon: float, allowed: Callable[[Counts], bool], depth: int) -> float:
    """The largest hockey-stick divergence that an analyst can reach who chooses, after every output, whether and with
    which of the options to run randomized response again, as long as the counts so far stay allowed. By recursion over
    all strategies, from the definition.
    """

    @cache
    def value(counts: Counts, loss: float) -> float:
        best = max(0.0, -math.expm1(epsilon - loss))
        for i, option in enumerate(options):
            longer = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            if sum(longer) <= depth and allowed(longer):
                likely, rare = 1 / (1 + math.exp(-option)), 1 / (1 + math.exp(option))
                after = likely * value(longer, round(loss + option, 9)) + rare * value(longer, round(loss - option, 9))
                best = max(best, after)
        return best

    return value((0,) * len(options), 0.0)


def test_stopping_by_the_composed_total_is_not_private() -> None:
    """Why adaptive charges are refused without a filter: an analyst who may choose between epsilon 0.2 and 1 along the
    way, and whom a composed total of (1.5, 0.02) lets go on, reaches 0.028. With a choice fixed in advance the same
    total is right.
    """
    options, budget = (0.2, 1.0), Budget.of((1.5, 0.02))
    events = [ApproximateDpEvent(option) for option in options]

    @cache
    def allowed(counts: Counts) -> bool:
        return total_of(counts_of(dict(zip(events, counts, strict=True))), REPLACE).fits(budget)

    assert worst_delta(options, 1.5, allowed, 30) > 1.35 * 0.02
    for one in range(2):

        def fixed(counts: Counts, one: int = one) -> bool:
            return allowed(counts) and counts[1 - one] == 0

        assert worst_delta(options, 1.5, fixed, 30) <= 0.02


@pytest.mark.parametrize("options", [(0.2, 1.0), (0.1, 0.6), (0.25, 0.5)])
@pytest.mark.parametrize("rule", ["basic", "zcdp", RenyiFilter(4.0)])
def test_filters_hold_against_every_analyst(options: tuple[float, ...], rule: Any) -> None:
    chosen, budget = filter_of(rule), Budget.of((1.5, 0.02))
    limits = chosen.limits(budget, REPLACE)
    costs = [chosen.cost(ApproximateDpEvent(option), REPLACE) for option in options]

    def allowed(counts: Counts) -> bool:
        return sum((cost.times(count) for cost, count in zip(costs, counts, strict=True)), Spent()).within(limits)

    reached = worst_delta(options, 1.5, allowed, 30)
    assert reached <= 0.02
    if chosen.kind == "zcdp":
        assert reached > 1e-4  # the game is not over before it begins


# Ledgers with a filter.


def test_ten_tenths_fit_and_the_eleventh_does_not() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 0), filter="basic")
    for _ in range(10):
        ledger.charge("records", TENTH, label="x", adaptive=True)
    assert ledger.epsilon(0.0) == 1.0
    assert ledger.remaining() == 0.0
    before = state(ledger)
    with pytest.raises(BudgetExceededError, match=r"got 1\.1 "):
        ledger.charge("records", TENTH, label="x", adaptive=True)
    assert state(ledger) == before


def test_adaptive_charges_need_a_filter() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 0))
    ledger.charge("records", TENTH, label="fixed")
    before = state(ledger)
    with pytest.raises(AdaptiveChoiceError, match=r"'chosen' was chosen after seeing outputs.*privacy filter"):
        ledger.charge("records", TENTH, label="chosen", adaptive=True)
    with pytest.raises(TypeError, match="adaptive must be True or False"):
        ledger.charge("records", TENTH, label="x", adaptive=1)  # type: ignore[call-overload]
    assert state(ledger) == before


@pytest.mark.parametrize("rule", FILTERS)
def test_a_filter_guarantees_the_budget_from_the_first_charge_on(rule: PrivacyFilter) -> None:
    ledger = Ledger(relation=REPLACE, budget=(3, "1e-6"), filter=rule)
    ledger.partition("records", {"a": 5, "b": 5})
    assert (ledger.epsilon(1e-6), ledger.delta(0.0)) == (0.0, 0.0)
    event = dpa.GaussianDpEvent(40.0) if rule.kind == "gaussian" else ApproximateDpEvent(0.01)
    ledger.charge("a", event, label="x")
    for dataset in (None, "a", "b"):
        assert ledger.epsilon(1e-6, dataset=dataset) <= 3.0
        assert ledger.epsilon(1e-6, dataset=dataset) > 2.99
        assert ledger.delta(3.0, dataset=dataset) <= 1e-6
    assert set(ledger.routes(1e-6)) == {"filter"}
    assert ledger.routes(1e-6)["filter"].source == rule.source
    assert ledger.epsilon(1e-9) >= ledger.epsilon(1e-6) or rule.kind == "basic"
    reading = ledger.spent()
    assert reading.unit == rule.unit
    assert reading.sums == rule.cost(event, REPLACE) == ledger.spent("a").sums
    assert ledger.spent("b").sums == Spent()
    assert ledger.remaining() == pytest.approx(float(reading.limits.amount - reading.sums.amount), rel=1e-12)
    assert ledger.would_be("a", event, delta=1e-6) == ledger.epsilon(1e-6)
    assert ledger.would_be("a", event, delta=1e-6, count=10**9) == math.inf
    number = ledger.affordable("b", event)
    ledger.charge("b", event, label="all", count=number)
    with pytest.raises(BudgetExceededError, match=rf"must keep {re.escape(rule.unit)} within") as caught:
        ledger.charge("b", event, label="one more")
    assert caught.value.would_be > 3 - 1e-3


def test_filters_count_along_a_records_path() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1, 0), filter="basic")
    ledger.partition("records", {"a": 5, "b": 5})
    ledger.charge("records", ApproximateDpEvent(0.4), label="both")
    ledger.charge({"a": ApproximateDpEvent(0.6), "b": ApproximateDpEvent(0.1)}, label="joint", adaptive=True)
    with pytest.raises(BudgetExceededError, match="records of 'a'"):
        ledger.charge("records", TENTH, label="both")
    ledger.charge("b", ApproximateDpEvent(0.5), label="b alone")
    assert [ledger.spent(name).sums.amount for name in ("a", "b")] == [1, 1]


def test_marginals_compare_charges_by_the_composition() -> None:
    fixed = Ledger(relation=REPLACE)
    chosen = Ledger(relation=REPLACE, budget=(3, 1e-6), filter="zcdp")
    for ledger in (fixed, chosen):
        ledger.charge("records", ApproximateDpEvent(0.1), label="x")
        ledger.charge("records", dpa.GaussianDpEvent(40.0), label="y")
    assert [row.cost for row in chosen.marginals(1e-6)] == [row.cost for row in fixed.marginals(1e-6)]
    with pytest.raises(ValueError, match="spent needs a ledger with a filter"):
        fixed.spent()


@pytest.mark.parametrize("rule", FILTERS)
def test_a_filter_travels_with_its_ledger(tmp_path: Path, rule: PrivacyFilter) -> None:
    assert filter_from_json(rule.to_json()) == rule
    ledger = Ledger(relation=REPLACE, budget=(3, "1e-6"), filter=rule)
    event = dpa.GaussianDpEvent(40.0) if rule.kind == "gaussian" else ApproximateDpEvent(0.01)
    ledger.charge("records", event, label="x", adaptive=True)
    ledger.save(tmp_path / "ledger.json")
    twin = Ledger.load(tmp_path / "ledger.json")
    assert (state(twin), twin.filter) == (state(ledger), rule)
    assert twin.charges[0].adaptive
    text = (tmp_path / "ledger.json").read_text(encoding="utf-8")
    (tmp_path / "ledger.json").write_text(text.replace(f'"kind":"{rule.kind}"', '"kind":"none"'), encoding="utf-8")
    with pytest.raises(LedgerFileError, match=r"filter\.kind must be basic, zcdp, gaussian or renyi, got 'none'"):
        Ledger.load(tmp_path / "ledger.json")


def test_a_filtered_interaction_can_be_one_charge_of_another_ledger() -> None:
    inner = Ledger(relation=REPLACE, budget=(0.5, 0), filter="basic")
    inner.charge("records", TENTH, label="x", adaptive=True)
    assert inner.filter is not None
    limits = inner.spent().limits
    outer = Ledger(relation=REPLACE, budget=(1, 0))
    outer.charge("records", inner.filter.guarantee(limits, REPLACE), label="the analyst's session")
    assert outer.epsilon(0.0) == 0.5
