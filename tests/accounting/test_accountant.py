"""ProfileAccountant keeps dp-accounting's contract, and keeps it where the stock accountants do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    UnsupportedDpEvent,
    UnsupportedEventError,
)
from dp_accounting.dp_event import RandomizedResponseDpEvent, ZCDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, PrivacyProfile, ProfileAccountant, Relation
from tests.support import closed_forms as truth

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE
HALF = GaussianDpEvent(2.0)

EVERY_EVENT: list[tuple[DpEvent, Relation]] = [
    (NoOpDpEvent(), REPLACE),
    (NonPrivateDpEvent(), REPLACE),
    (GaussianDpEvent(3.0), REPLACE),
    (LaplaceDpEvent(3.0), ADD_REMOVE),
    (ApproximateDpEvent(0.3, 1e-6), REPLACE),
    (BoundedRangeDpEvent(0.5), ADD_REMOVE),
    (ZCDpEvent(0.05), REPLACE),
    (RandomizedResponseDpEvent(0.6, 3), REPLACE),
    (ComposedDpEvent([HALF, ApproximateDpEvent(0.3), SelfComposedDpEvent(HALF, 3)]), REPLACE),
    (PoissonSampledDpEvent(0.1, HALF), ADD_REMOVE),
    (SampledWithoutReplacementDpEvent(10, 1, ComposedDpEvent([HALF, ApproximateDpEvent(0.3)])), REPLACE),
]
ASKED = (1e-3, 1e-6)
each_event = pytest.mark.parametrize(("event", "relation"), EVERY_EVENT, ids=lambda value: str(value)[:50])


class UnknownDpEvent(DpEvent):
    """An event that nobody has a theorem for."""


def answers(accountant: ProfileAccountant) -> list[float]:
    return [*map(accountant.get_epsilon, ASKED), accountant.get_delta(0.0), accountant.get_delta(0.7)]


@pytest.mark.parametrize("event", [UnsupportedDpEvent(), UnknownDpEvent()])
@pytest.mark.parametrize(
    "nest",
    [lambda event: event, lambda event: ComposedDpEvent([HALF, event]), lambda event: SelfComposedDpEvent(event, 10)],
    ids=["plain", "composed", "repeated"],
)
def test_the_culprit_is_named_as_upstream_names_it(event: DpEvent, nest: Callable[[DpEvent], DpEvent]) -> None:
    """What dp-accounting's own suite asks of an accountant (privacy_accountant_test.PrivacyAccountantTest)."""
    accountant = ProfileAccountant(REPLACE)
    details = accountant._maybe_compose(nest(event), 1, False)
    assert details is not None
    assert details.invalid_event == event
    assert not accountant.supports(nest(event))
    with pytest.raises(UnsupportedEventError, match="caused by subevent"):
        accountant.compose(nest(event))


def test_nothing_and_everything_as_upstream_has_them() -> None:
    """But for epsilon at delta 1, which is 0 for every mechanism and inf upstream for NonPrivateDpEvent."""
    for relation in Relation:
        nothing = ProfileAccountant(relation).compose(NoOpDpEvent())
        assert [nothing.get_epsilon(delta) for delta in (0, 1e-12, 1)] == [0, 0, 0]
        assert [nothing.get_delta(epsilon) for epsilon in (0, 1e-12)] == [0, 0]
        for event in (NonPrivateDpEvent(), SelfComposedDpEvent(NonPrivateDpEvent(), 10)):
            everything = ProfileAccountant(relation).compose(event)
            assert [everything.get_epsilon(delta) for delta in (0, 0.99)] == [math.inf, math.inf]
            assert [everything.get_delta(epsilon) for epsilon in (0, 100)] == [1, 1]


def test_delta_at_an_infinite_epsilon_as_upstream_has_it() -> None:
    assert ProfileAccountant(REPLACE).get_delta(math.inf) == 0
    assert ProfileAccountant(REPLACE).compose(NonPrivateDpEvent()).get_delta(math.inf) == 1
    assert ProfileAccountant(REPLACE).compose(ApproximateDpEvent(1.0, 0.25)).get_delta(math.inf) == 0.25


@each_event
def test_count_is_repetition(event: DpEvent, relation: Relation) -> None:
    counted = ProfileAccountant(relation).compose(event, 6)
    nested = ProfileAccountant(relation).compose(SelfComposedDpEvent(SelfComposedDpEvent(event, 2), 3))
    listed = ProfileAccountant(relation).compose(ComposedDpEvent([event] * 6))
    repeated = ProfileAccountant(relation)
    for _ in range(6):
        repeated.compose(event)
    for other in (nested, listed, repeated):
        assert answers(other) == pytest.approx(answers(counted), rel=1e-9)


@each_event
def test_the_accountant_says_what_the_profile_says(event: DpEvent, relation: Relation) -> None:
    accountant = ProfileAccountant(relation).compose(event)
    profile = PrivacyProfile.from_event(event, relation=relation)
    assert answers(accountant) == [*map(profile.epsilon, ASKED), profile.delta(0.0), profile.delta(0.7)]
    assert accountant.profile.relation is relation


@each_event
def test_asking_changes_nothing(event: DpEvent, relation: Relation) -> None:
    accountant = ProfileAccountant(relation).compose(event, 3)
    before, ledger = answers(accountant), accountant.ledger
    assert accountant.supports(event)
    assert accountant.supports(UnsupportedDpEvent()) is False
    accountant.get_delta(2.2)
    accountant.get_epsilon(0.1)
    assert answers(accountant) == before
    assert accountant.ledger == ledger


@each_event
def test_order_of_composition_does_not_matter(event: DpEvent, relation: Relation) -> None:
    other = LaplaceDpEvent(7.0)
    one, two = (ProfileAccountant(relation) for _ in range(2))
    one.compose(event).compose(other)
    two.compose(other).compose(event)
    assert answers(one) == pytest.approx(answers(two), rel=1e-6)


REFUSED: list[tuple[DpEvent, Relation]] = [
    (UnsupportedDpEvent(), REPLACE),
    (GaussianDpEvent(math.nan), REPLACE),
    (GaussianDpEvent(-1.0), REPLACE),
    (LaplaceDpEvent(math.inf), REPLACE),
    (ZCDpEvent(-1.0), REPLACE),
    (SelfComposedDpEvent(HALF, -2), REPLACE),
    (SelfComposedDpEvent(HALF, 1.5), REPLACE),  # type: ignore[arg-type]
    (PoissonSampledDpEvent(0.1, HALF), REPLACE),
    (PoissonSampledDpEvent(math.nan, HALF), ADD_REMOVE),
    (PoissonSampledDpEvent(0.1, PoissonSampledDpEvent(0.1, HALF)), ADD_REMOVE),
    (SampledWithoutReplacementDpEvent(10, 1, HALF), ADD_REMOVE),
    (SampledWithoutReplacementDpEvent(10, 20, HALF), REPLACE),
    (RandomizedResponseDpEvent(0.5, 4), ADD_REMOVE),
]


@pytest.mark.parametrize(("event", "relation"), REFUSED, ids=lambda value: str(value)[:60])
def test_a_refused_event_leaves_no_trace(event: DpEvent, relation: Relation) -> None:
    accountant = ProfileAccountant(relation).compose(GaussianDpEvent(3.0), 2)
    before, ledger = answers(accountant), accountant.ledger
    for nested in (event, ComposedDpEvent([HALF, event]), SelfComposedDpEvent(event, 3)):
        assert not accountant.supports(nested)
        with pytest.raises((UnsupportedEventError, ValueError, TypeError)):
            accountant.compose(nested)
    assert answers(accountant) == before
    assert accountant.ledger == ledger


@pytest.mark.parametrize("count", [-1, 1.0, 2.5, math.nan, "3", None, True])
def test_a_refused_count_leaves_no_trace(count: Any) -> None:
    accountant = ProfileAccountant(REPLACE).compose(HALF)
    with pytest.raises((ValueError, TypeError), match="count must be"):
        accountant.compose(HALF, count)
    assert accountant.ledger == HALF


def test_the_ledger_is_what_was_composed() -> None:
    accountant = ProfileAccountant(REPLACE)
    assert accountant.ledger == NoOpDpEvent()
    assert accountant.compose(HALF, 0).ledger == NoOpDpEvent()
    three: Any = np.int64(3)
    assert accountant.compose(HALF, three).ledger == SelfComposedDpEvent(HALF, 3)
    assert accountant.neighboring_relation is REPLACE
    rebuilt = ProfileAccountant(REPLACE).compose(accountant.ledger)
    assert rebuilt.get_epsilon(1e-6) == accountant.get_epsilon(1e-6)


def test_an_event_changed_later_does_not_change_the_past() -> None:
    """ComposedDpEvent is "frozen" around a list."""
    events: list[DpEvent] = [HALF]
    accountant = ProfileAccountant(REPLACE).compose(ComposedDpEvent(events))
    before = answers(accountant)
    events.append(NonPrivateDpEvent())
    assert answers(accountant) == before


@pytest.mark.parametrize("bad", [math.nan, -1e-9, 1.1, "1", None])
def test_questions_are_checked(bad: Any) -> None:
    accountant = ProfileAccountant(REPLACE).compose(HALF)
    with pytest.raises((ValueError, TypeError), match="delta must be"):
        accountant.get_epsilon(bad)
    with pytest.raises((ValueError, TypeError), match="epsilon must be"):
        accountant.get_delta(math.nan)


@pytest.mark.parametrize("relation", [None, "replace_one", 2])
def test_a_relation_is_required(relation: Any) -> None:
    with pytest.raises(ValueError, match="relation must be"):
        ProfileAccountant(relation)
    with pytest.raises(TypeError):
        ProfileAccountant()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ProfileAccountant(REPLACE).compose("gaussian")  # type: ignore[arg-type]


# --- calibration by dp-accounting


def calibrated(make: Any, epsilon: float, delta: float, relation: Relation = ADD_REMOVE, **options: Any) -> Any:
    return dp_accounting.calibrate_dp_mechanism(lambda: ProfileAccountant(relation), make, epsilon, delta, **options)


def cost(event: DpEvent, delta: float, relation: Relation = ADD_REMOVE) -> float:
    return ProfileAccountant(relation).compose(event).get_epsilon(delta)


@settings(derandomize=True, max_examples=15)
@given(st.floats(0.05, 20), st.sampled_from([1e-3, 1e-6, 1e-10]), st.sampled_from([REPLACE, ADD_REMOVE]))
def test_calibrated_gaussian_noise_never_overspends(epsilon: float, delta: float, relation: Relation) -> None:
    sigma = calibrated(GaussianDpEvent, epsilon, delta, relation)
    assert cost(GaussianDpEvent(sigma), delta, relation) <= epsilon
    mu = mp.mpf(2 if relation is REPLACE else 1) / mp.mpf(sigma)
    assert truth.gaussian_epsilon(mu, delta) <= epsilon
    assert truth.gaussian_epsilon(mu, delta) >= epsilon * (1 - 1e-3)


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 30), pytest.param(0.3, 300, marks=pytest.mark.slow)])
def test_calibrated_sampled_noise_never_overspends(epsilon: float, count: int) -> None:
    def make(sigma: float) -> DpEvent:
        return SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(sigma)), count)

    bracket = dp_accounting.mechanism_calibration.ExplicitBracketInterval(0.4, 20.0)
    sigma = calibrated(make, epsilon, 1e-6, bracket_interval=bracket, tol=1e-2)
    assert cost(make(sigma), 1e-6) <= epsilon


@settings(derandomize=True, max_examples=6)
@given(st.floats(0.5, 10))
def test_a_calibrated_number_of_rounds_never_overspends(epsilon: float) -> None:
    def make(rounds: int) -> DpEvent:
        return SelfComposedDpEvent(ApproximateDpEvent(0.1, 1e-9), rounds)

    # From 1: the stock ledger cannot write down a count of 0.
    bracket = dp_accounting.mechanism_calibration.LowerEndpointAndGuess(1, 10)
    rounds = calibrated(make, epsilon, 1e-6, bracket_interval=bracket, discrete=True)
    assert cost(make(rounds), 1e-6) <= epsilon
    # tol is 1 for whole parameters: the best number of rounds is at most one more.
    assert cost(make(rounds + 2), 1e-6) > epsilon


def test_calibration_beyond_the_usual_bracket() -> None:
    sigma = calibrated(GaussianDpEvent, 1000.0, 1e-6, tol=1e-9)
    assert sigma == pytest.approx(0.0248504, abs=1e-7)
    assert cost(GaussianDpEvent(sigma), 1e-6) <= 1000.0
