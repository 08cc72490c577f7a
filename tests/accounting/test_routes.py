"""Routes: each number against an independent one, and the order that they must keep."""

from __future__ import annotations

import math
from typing import Any, cast

import dp_accounting as dpa
import mpmath as mp
import pytest
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, ZCDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st

import accounting.routes as route_names
from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    GroupDpEvent,
    PermuteAndFlipDpEvent,
    Relation,
    RouteOrderError,
    all_routes,
    all_routes_over,
    closed_form,
    gaussian_epsilon,
    optimal_composition_epsilon,
    tightest,
)
from accounting.routes import BASIC, DOMINATING, OPINION, OPTIMAL, PAPER, RDP

ADD_REMOVE, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def composed(*events: dpa.DpEvent) -> dpa.DpEvent:
    return dpa.ComposedDpEvent(cast("list[dpa.DpEvent]", events))


def times(event: dpa.DpEvent, count: int) -> dpa.DpEvent:
    return dpa.SelfComposedDpEvent(event, count)


def sampled(event: dpa.DpEvent, drawn: int, source: int) -> dpa.DpEvent:
    return dpa.SampledWithoutReplacementDpEvent(source, drawn, event)


def epsilons(event: dpa.DpEvent, delta: float, relation: Relation, **options: bool) -> dict[str, float]:
    return {name: route.epsilon for name, route in all_routes(event, delta, relation=relation, **options).items()}


# The routes over pairs.


def test_the_papers_route_is_theorem_3_4_then_3_5() -> None:
    found = epsilons(times(sampled(ApproximateDpEvent(3.0, 1e-9), 10, 10_000), 40), 1e-6, REPLACE)
    eta, zeta = mp.log1p(mp.mpf(10) / 10_000 * mp.expm1(3)), mp.mpf(10) / 10_000 * mp.mpf(1e-9)
    slack = mp.mpf(1e-6) - 40 * zeta
    truth = mp.sqrt(2 * 40 * mp.log(1 / slack)) * eta + 40 * eta * mp.expm1(eta)
    assert found[PAPER] == pytest.approx(float(truth), rel=1e-12)
    assert found[BASIC] == pytest.approx(float(40 * eta), rel=1e-12)


def test_the_papers_route_takes_the_worst_step_for_all() -> None:
    mixed = epsilons(composed(ApproximateDpEvent(0.1, 1e-9), ApproximateDpEvent(0.2, 1e-12)), 1e-6, REPLACE)
    worst = epsilons(times(ApproximateDpEvent(0.2, 1e-9), 2), 1e-6, REPLACE)
    assert mixed[PAPER] == worst[PAPER]
    assert mixed[BASIC] == pytest.approx(0.3)


def test_one_use_needs_no_composition_theorem() -> None:
    found = epsilons(sampled(ApproximateDpEvent(2.0, 1e-9), 1, 100), 1e-6, REPLACE)
    assert found[PAPER] == found[BASIC] == pytest.approx(math.log1p(0.01 * math.expm1(2.0)))
    assert epsilons(ApproximateDpEvent(2.0, 1e-5), 1e-6, REPLACE)[PAPER] == math.inf


@pytest.mark.parametrize(("uses", "pairs", "curves"), [(10, 20.34, 4.05), (100, 203.0, 7.99), (1000, 1745.0, 17.98)])
def test_pairs_lose_what_curves_keep(uses: int, pairs: float, curves: float) -> None:
    """THEORY-accounting.md, section 3, second trap; figures to reach or beat."""
    found = epsilons(times(sampled(ApproximateDpEvent(8.8), 1, 1000), uses), 1e-6, REPLACE)
    assert 0.9 * pairs < found[OPTIMAL] <= pairs * 1.002
    assert found[DOMINATING] <= curves + 0.005


def test_equal_pairs_go_by_the_closed_form_and_others_by_the_composer() -> None:
    step = ApproximateDpEvent(0.3, 1e-9)
    equal = epsilons(times(step, 50), 1e-6, REPLACE)[OPTIMAL]
    pair = closed_form(step, REPLACE)
    assert pair is not None
    assert equal == optimal_composition_epsilon(pair, 50, 1e-6)
    nearly = composed(times(step, 25), times(ApproximateDpEvent(0.3 * (1 + 1e-12), 1e-9), 25))
    assert epsilons(nearly, 1e-6, REPLACE)[OPTIMAL] == pytest.approx(equal, rel=1e-6)


@pytest.mark.parametrize(
    ("event", "relation", "epsilon", "delta"),
    [
        (dpa.NoOpDpEvent(), REPLACE, 0.0, 0.0),
        (ApproximateDpEvent(0.5, 1e-7), REPLACE, 0.5, 1e-7),
        (BoundedRangeDpEvent(0.7), ADD_REMOVE, 0.7, 0.0),
        (PermuteAndFlipDpEvent(0.6), REPLACE, 0.6, 0.0),
        (dpa.LaplaceDpEvent(4.0), REPLACE, 0.5, 0.0),
        (DiscreteLaplaceDpEvent(0.25, 2), ADD_REMOVE, 0.5, 0.0),
        (dpa.RandomizedResponseDpEvent(0.5, 4), REPLACE, math.log(5), 0.0),
        (dpa.RandomizedResponseDpEvent(1.0, 4), REPLACE, 0.0, 0.0),
        (dpa.RandomizedResponseDpEvent(0.0, 4), REPLACE, math.inf, 0.0),
        (dpa.NonPrivateDpEvent(), REPLACE, math.inf, 0.0),
        (GroupDpEvent(ApproximateDpEvent(0.5, 1e-7), 2), REPLACE, 1.0, 1e-7 * (1 + math.exp(0.5))),
        (times(ApproximateDpEvent(0.5, 1e-7), 3), REPLACE, 1.5, 3e-7),
        (sampled(times(ApproximateDpEvent(0.5, 1e-7), 2), 1, 4), REPLACE, math.log1p(math.expm1(1) / 4), 5e-8),
        (dpa.PoissonSampledDpEvent(0.25, dpa.LaplaceDpEvent(1.0)), ADD_REMOVE, math.log1p(math.expm1(1) / 4), 0.0),
    ],
)
def test_closed_forms_of_leaves(event: dpa.DpEvent, relation: Relation, epsilon: float, delta: float) -> None:
    found = closed_form(event, relation)
    assert found is not None
    assert found.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert found.delta == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize(
    "event", [dpa.GaussianDpEvent(1.0), ZCDpEvent(0.1, 0.0), sampled(dpa.GaussianDpEvent(1.0), 1, 9)]
)
def test_what_is_no_pair_has_no_route_over_pairs(event: dpa.DpEvent) -> None:
    assert closed_form(event, REPLACE) is None
    assert not {PAPER, BASIC, OPTIMAL} & set(all_routes(event, 1e-6, relation=REPLACE, second_opinion=False))


# Order.

pairs = st.builds(ApproximateDpEvent, st.floats(0.001, 4.0), st.sampled_from([0.0, 1e-12, 1e-9, 1e-7]))
leaves = st.one_of(pairs, st.builds(BoundedRangeDpEvent, st.floats(0.001, 4.0)))
insides = st.one_of(leaves, st.lists(leaves, min_size=1, max_size=3).map(lambda parts: composed(*parts)))
steps = st.one_of(leaves, st.builds(sampled, insides, st.integers(1, 200), st.integers(200, 10_000)))
trees = st.lists(st.builds(times, steps, st.integers(1, 60)), min_size=1, max_size=3).map(
    lambda parts: composed(*parts)
)


@settings(max_examples=20)
@given(trees, st.sampled_from([1e-12, 1e-6, 1e-2]))
def test_routes_nest_on_random_trees(tree: dpa.DpEvent, delta: float) -> None:
    found = epsilons(tree, delta, REPLACE, second_opinion=False)
    assert found[DOMINATING] <= found[OPTIMAL] <= min(found[PAPER], found[BASIC])


noises = st.one_of(
    st.builds(dpa.GaussianDpEvent, st.floats(0.5, 20.0)),
    st.builds(dpa.LaplaceDpEvent, st.floats(0.5, 20.0)),
    st.builds(dpa.PoissonSampledDpEvent, st.floats(0.001, 0.5), st.builds(dpa.GaussianDpEvent, st.floats(0.7, 5.0))),
)


@settings(max_examples=6)
@given(st.lists(st.builds(times, noises, st.integers(1, 30)), min_size=1, max_size=3), st.sampled_from([1e-9, 1e-5]))
def test_the_renyi_route_is_above_the_dominating_pairs(parts: list[dpa.DpEvent], delta: float) -> None:
    found = epsilons(composed(*parts), delta, ADD_REMOVE, second_opinion=False)
    assert found[DOMINATING] <= found[RDP]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_charges_that_take_all_of_delta_stay_finite(count: int) -> None:
    for tree in (
        times(ApproximateDpEvent(1.0, 1e-12), count),
        times(sampled(ApproximateDpEvent(1.0, 1e-9), 1, 8), count),
    ):
        found = epsilons(tree, _basic_delta(tree), REPLACE)
        assert found[DOMINATING] <= found[OPTIMAL] <= found[BASIC] < math.inf


def _basic_delta(tree: dpa.DpEvent) -> float:
    pair = closed_form(tree, REPLACE)
    assert pair is not None
    return pair.delta


def test_routes_out_of_order_are_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_names, "optimal_composition_epsilon", lambda pair, count, delta: 0.25)
    with pytest.raises(RouteOrderError, match=f"route '{DOMINATING}' must not exceed route '{OPTIMAL}'") as caught:
        all_routes(ApproximateDpEvent(1.0), 1e-6, relation=REPLACE)
    assert (caught.value.lower.name, caught.value.upper.name, caught.value.delta) == (DOMINATING, OPTIMAL, 1e-6)
    assert caught.value.upper.epsilon == 0.25


# dp-accounting.


@pytest.mark.parametrize("sigma", [0.5, 1.0, 10.0])
def test_renyi_is_used_where_it_is_right(sigma: float) -> None:
    route = all_routes(dpa.GaussianDpEvent(sigma), 1e-6, relation=ADD_REMOVE)[RDP]
    assert gaussian_epsilon(sigma, 1e-6) <= route.epsilon <= 1.1 * gaussian_epsilon(sigma, 1e-6)


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (dpa.GaussianDpEvent(1.0), REPLACE),  # it says 5.22 where 10.997 is right
        (dpa.LaplaceDpEvent(1.0), REPLACE),
        (sampled(dpa.GaussianDpEvent(4.0), 100, 1000), REPLACE),
        (composed(dpa.GaussianDpEvent(1.0), ApproximateDpEvent(0.1)), ADD_REMOVE),
    ],
)
def test_renyi_is_left_out_where_it_is_wrong_or_silent(event: dpa.DpEvent, relation: Relation) -> None:
    assert RDP not in all_routes(event, 1e-6, relation=relation, second_opinion=False)


def test_a_second_opinion_that_agrees() -> None:
    for event, relation in [
        (times(dpa.GaussianDpEvent(10.0), 100), ADD_REMOVE),
        (dpa.GaussianDpEvent(1.0), REPLACE),
        (times(dpa.PoissonSampledDpEvent(0.1, dpa.LaplaceDpEvent(1.0)), 10), ADD_REMOVE),
    ]:
        route = all_routes(event, 1e-6, relation=relation)[OPINION]
        assert route.bound == "opinion"
        assert route.note is not None
        assert route.note.startswith("agrees")


def test_a_second_opinion_that_is_wrong_is_reported_and_not_counted() -> None:
    """It drops the count of randomized response: 1.6095 where ten uses cost 16.0949."""
    found = all_routes(times(dpa.RandomizedResponseDpEvent(0.5, 4), 10), 1e-9, relation=REPLACE)
    assert found[OPINION].epsilon < 1.7
    assert str(found[OPINION].note).startswith("smaller than the dominating pairs by 14.5")
    assert tightest(found).epsilon == pytest.approx(10 * math.log(5), rel=1e-5)


def test_a_second_opinion_can_be_declined_and_is_skipped_for_many_leaves() -> None:
    assert OPINION not in all_routes(dpa.GaussianDpEvent(1.0), 1e-6, relation=REPLACE, second_opinion=False)
    many = composed(*(dpa.GaussianDpEvent(10.0 + i) for i in range(30)))
    assert OPINION not in all_routes(many, 1e-6, relation=REPLACE)
    assert OPINION not in all_routes(ApproximateDpEvent(1.0), 1e-6, relation=REPLACE)


# Blocks, records, bad input.


def test_over_blocks_each_route_is_the_largest_and_must_apply_to_all() -> None:
    pair, noise = times(ApproximateDpEvent(0.1), 10), times(dpa.GaussianDpEvent(10.0), 3)
    both = all_routes_over([pair, times(pair, 2)], 1e-6, relation=REPLACE, second_opinion=False)
    assert both == all_routes(times(pair, 2), 1e-6, relation=REPLACE, second_opinion=False)
    mixed = all_routes_over([pair, noise], 1e-6, relation=REPLACE, second_opinion=False)
    assert set(mixed) == {DOMINATING}
    alone = [epsilons(tree, 1e-6, REPLACE)[DOMINATING] for tree in (pair, noise)]
    assert mixed[DOMINATING].epsilon == max(alone)


def test_nothing_costs_nothing_by_every_route() -> None:
    for found in (all_routes(dpa.NoOpDpEvent(), 0.0, relation=REPLACE), all_routes_over([], 0.0, relation=REPLACE)):
        assert {route.epsilon for route in found.values()} == {0.0}
    assert tightest(found).epsilon == 0


def test_ten_tenths_are_one_and_an_infinite_cost_stays_infinite() -> None:
    assert epsilons(times(ApproximateDpEvent(0.1), 10), 0.0, REPLACE)[BASIC] == 1.0
    for delta in (0.0, 0.5):
        found = all_routes(composed(dpa.NonPrivateDpEvent(), ApproximateDpEvent(0.1)), delta, relation=REPLACE)
        assert {route.epsilon for route in found.values()} == {math.inf}


def test_json_of_a_route() -> None:
    found = all_routes(times(ApproximateDpEvent(0.1), 10), 0.0, relation="replace-one")
    assert found[PAPER].to_json()["epsilon"] == "inf"
    record = found[DOMINATING].to_json()
    assert set(record) == {"epsilon", "bound", "source", "assumes"}
    assert record["bound"] == "upper"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"delta": math.nan}, ValueError, "delta must be"),
        ({"relation": "both"}, ValueError, "relation must be"),
        ({"event": 3}, TypeError, "event must be a dp_accounting.DpEvent"),
        ({"event": dpa.GaussianDpEvent(math.nan)}, ValueError, "noise_multiplier must be"),
        ({"event": dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(1.0))}, dpa.UnsupportedEventError, "Poisson"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    given_arguments = {"event": ApproximateDpEvent(1.0), "delta": 1e-6, "relation": REPLACE, **arguments}
    event, delta = given_arguments.pop("event"), given_arguments.pop("delta")
    with pytest.raises(error, match=message):
        all_routes(event, delta, **given_arguments)
