"""Calibration: the parameter returned is within the target, and one slightly further is not."""

from __future__ import annotations

import math
from collections.abc import Callable

import dp_accounting as dpa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import (
    ApproximateDpEvent,
    InfeasibleError,
    PrivacyProfile,
    ProfileAccountant,
    Relation,
    calibrate,
    gaussian_delta,
    largest_sampling_rate,
    rough_sampling_rate,
)

ADD_REMOVE, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


@settings(max_examples=40)
@given(st.floats(min_value=1e-3, max_value=2000.0), st.floats(min_value=1e-15, max_value=0.1))
def test_calibrated_noise_never_overshoots(epsilon: float, delta: float) -> None:
    sigma = calibrate(dpa.GaussianDpEvent, epsilon, delta, relation=ADD_REMOVE, increasing=False)
    assert PrivacyProfile.gaussian(sigma).epsilon(delta) <= epsilon
    assert gaussian_delta(sigma, epsilon) <= delta * (1 + 1e-9)
    assert gaussian_delta(sigma * (1 - 1e-5), epsilon) > delta


def test_a_target_above_the_bracket() -> None:
    sigma = calibrate(dpa.GaussianDpEvent, 1000.0, 1e-6, relation=ADD_REMOVE, increasing=False)
    assert sigma == pytest.approx(0.0248504, rel=2e-6)


def test_dp_accountings_own_calibration_works_on_the_accountant() -> None:
    sigma = dpa.calibrate_dp_mechanism(
        lambda: ProfileAccountant(ADD_REMOVE), dpa.GaussianDpEvent, 1.0, 1e-6, dpa.ExplicitBracketInterval(0.5, 50.0)
    )
    assert PrivacyProfile.gaussian(sigma).epsilon(1e-6) <= 1.0
    assert sigma == pytest.approx(calibrate(dpa.GaussianDpEvent, 1.0, 1e-6, relation=ADD_REMOVE, increasing=False))


def test_which_base_was_meant() -> None:
    """(1, 1e-6) at q = .01 allows (5.1523, 1e-4): at that epsilon the base's delta takes all of the target's."""

    def sampled(epsilon: float) -> dpa.DpEvent:
        return dpa.SampledWithoutReplacementDpEvent(1000, 10, ApproximateDpEvent(epsilon, 1e-4 * (1 - 1e-9)))

    found = calibrate(sampled, 1.0, 1e-6, relation=REPLACE, increasing=True)
    assert found == pytest.approx(math.log1p(math.expm1(1.0) / 0.01), rel=1e-5)
    assert found <= 5.1523


@pytest.mark.parametrize(
    ("make_event", "increasing", "bracket", "integer"),
    [
        (lambda n: dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(10.0), n), True, None, True),
        (lambda n: dpa.SelfComposedDpEvent(ApproximateDpEvent(0.01, 1e-9), n), True, (1, 10**4), True),
        (lambda b: dpa.LaplaceDpEvent(b), False, None, False),
        (lambda q: dpa.PoissonSampledDpEvent(q, dpa.GaussianDpEvent(0.5)), True, (0, 1), False),
        (lambda s: dpa.GaussianDpEvent(float(s)), False, (0, 100), True),
    ],
)
def test_the_result_is_the_last_within_the_target(
    make_event: Callable[[float], dpa.DpEvent], increasing: bool, bracket: tuple[float, float] | None, integer: bool
) -> None:
    found = calibrate(
        make_event, 1.0, 1e-6, relation=ADD_REMOVE, increasing=increasing, bracket=bracket, integer=integer
    )

    def cost(parameter: float) -> float:
        return PrivacyProfile.from_event(make_event(parameter), relation=ADD_REMOVE).epsilon(1e-6)

    assert isinstance(found, int) is integer
    assert cost(found) <= 1.0
    step = (1 if integer else found * 1e-5) * (1 if increasing else -1)
    assert cost(found + step) > 1.0


def test_a_bracket_whose_costly_end_is_within_the_target_gives_that_end() -> None:
    assert calibrate(dpa.GaussianDpEvent, 1.0, 1e-6, relation=ADD_REMOVE, increasing=False, bracket=(7, 9)) == 7.0


def constant(epsilon: float) -> Callable[[float], dpa.DpEvent]:
    return lambda parameter: ApproximateDpEvent(epsilon)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("bracket", [None, (1.0, 10.0)])
def test_a_target_out_of_reach_is_infeasible(increasing: bool, bracket: tuple[float, float] | None) -> None:
    """cases/accounting-faults.md, 'unbounded search': a step that costs 2 whatever the parameter."""
    with pytest.raises(InfeasibleError, match="infeasible") as caught:
        calibrate(constant(2.0), 1.0, 1e-6, relation=REPLACE, increasing=increasing, bracket=bracket)
    assert caught.value.epsilon == pytest.approx(2.0, rel=1e-5)
    assert caught.value.target == 1.0


def test_a_search_without_a_best_parameter_says_so() -> None:
    with pytest.raises(ValueError, match="bracket must be given when there is no best parameter"):
        calibrate(constant(0.5), 1.0, 1e-6, relation=REPLACE, increasing=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"delta": 2.0}, "delta must be"),
        ({"relation": "neighbours"}, "relation must be"),
        ({"bracket": (2.0, 1.0)}, "bracket must have its lower end first"),
        ({"bracket": (-1.0, 1.0)}, r"bracket\[0\] must be"),
        ({"rtol": 0.0}, "rtol must be"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    given_arguments = {"epsilon": 1.0, "delta": 1e-6, "relation": ADD_REMOVE, "increasing": False, **arguments}
    with pytest.raises(ValueError, match=message):
        calibrate(dpa.GaussianDpEvent, **given_arguments)  # type: ignore[arg-type]


# Sampling rates.


def total(profile: PrivacyProfile, rate: float, count: int) -> PrivacyProfile:
    return profile.subsample_without_replacement(rate).self_compose(count)


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-3)])
def test_the_largest_rate_is_within_and_the_next_is_not(count: int, epsilon: float, delta: float) -> None:
    base = PrivacyProfile.bounded_range(1.4).compose(PrivacyProfile.approximate(2.0, 1e-9))
    rate = largest_sampling_rate([(base, count)], epsilon, delta)
    assert total(base, rate, count).delta(epsilon) <= delta
    if rate < 1:
        assert total(base, rate * (1 + 1e-5), count).delta(epsilon) > delta
    assert rough_sampling_rate([(base, count)], epsilon, delta) == pytest.approx(rate, rel=5e-3)


def test_one_use_of_a_pure_mechanism_in_closed_form() -> None:
    """One (e, 0) step meets (1, 0) up to q = (e^1 - 1)/(e^e - 1): Theorem 3.4 solved for q."""
    for base in (1.5, 4.0, 9.0):
        rate = largest_sampling_rate([(PrivacyProfile.pure(base), 1)], 1.0, 0.0)
        truth = math.expm1(1.0) / math.expm1(base)
        assert truth * (1 - 1e-6) <= rate <= truth


def test_rates_at_the_ends() -> None:
    assert largest_sampling_rate([], 1.0, 1e-6) == 1.0
    assert largest_sampling_rate([(PrivacyProfile.pure(5.0), 0)], 1.0, 1e-6) == 1.0
    assert largest_sampling_rate([(PrivacyProfile.pure(0.5), 2)], 1.0, 0.0) == 1.0
    assert 0 < largest_sampling_rate([(PrivacyProfile.unbounded(), 1)], 1.0, 1e-6) <= 1e-6
    assert largest_sampling_rate([(PrivacyProfile.unbounded(), 1)], 1.0, 0.0) == 0.0
