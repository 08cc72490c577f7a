"""Events: validated whatever attrs does, immutable, and translated with the parameters they state."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attr
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
)
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, RandomizedResponseDpEvent, ZCDpEvent

from accounting import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    DiscreteGaussianDpEvent,
    DominatingPairDpEvent,
    GroupDpEvent,
    PermuteAndFlipDpEvent,
    PrivacyProfile,
    RdpDpEvent,
    Relation,
    UnsupportedEventError,
)
from tests.support import closed_forms as truth
from tests.support.bounds import assert_tight_upper
from tests.support.finite import both_ways, extremal, pair_of, power

REPLACE, ADD_REMOVE, SPECIAL = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_SPECIAL
HALF = GaussianDpEvent(2.0)


def of(event: DpEvent, relation: Relation = ADD_REMOVE) -> PrivacyProfile:
    return PrivacyProfile.from_event(event, relation=relation)


# --- our own events


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1e-9, "1", None, True])
def test_our_events_refuse_bad_parameters(bad: Any) -> None:
    makers: list[Callable[[], Any]] = [
        lambda: ApproximateDpEvent(bad, 0.1),
        lambda: ApproximateDpEvent(1.0, bad),
        lambda: BoundedRangeDpEvent(bad),
        lambda: PermuteAndFlipDpEvent(bad),
        lambda: DiscreteGaussianDpEvent(bad),
        lambda: DiscreteGaussianDpEvent(1.0, bad),
        lambda: DominatingPairDpEvent((bad, 1.0), (0.5, 0.5)),
        lambda: DominatingPairDpEvent((0.5, 0.5), (1.0, bad)),
        lambda: RdpDpEvent((bad,), (1.0,)),
        lambda: RdpDpEvent((2.0,), (bad,)),
        lambda: GroupDpEvent(HALF, bad),
    ]
    for make in makers:
        with pytest.raises((TypeError, ValueError), match="must be"):
            make()


def test_our_events_refuse_what_makes_no_sense() -> None:
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: ApproximateDpEvent(1.0, 1.1), r"delta must be in \[0, 1\], got 1.1"),
        (lambda: DiscreteGaussianDpEvent(0.0), r"sigma must be in \(0, inf"),
        (lambda: RdpDpEvent((1.0,), (0.5,)), r"orders\[0\] must be in \(1, inf"),
        (lambda: RdpDpEvent((2.0, 2.0), (0.5, 0.5)), "orders must be increasing"),
        (lambda: RdpDpEvent((), ()), "orders must be increasing and not empty"),
        (lambda: RdpDpEvent((2.0,), (0.5, 0.6)), "as many numbers as orders"),
        (lambda: DominatingPairDpEvent((0.5, 0.4), (0.5, 0.5)), "upper must sum to 1"),
        (lambda: DominatingPairDpEvent((1.0,), (0.5, 0.5)), "as many outcomes as upper"),
        (lambda: DominatingPairDpEvent((), ()), "upper must sum to 1"),
        (lambda: GroupDpEvent(HALF, 0), "size must be at least 1"),
        (lambda: GroupDpEvent(HALF, 1.0), "size must be an integer"),  # type: ignore[arg-type]
        (lambda: GroupDpEvent("gaussian", 2), "event must be a dp_accounting.DpEvent"),  # type: ignore[arg-type]
    ]
    for make, message in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            make()


def test_validation_survives_attrs_switched_off() -> None:
    """attrs.validators can be disabled for a whole process, which silences every validator written the usual way."""
    attr.validators.set_disabled(True)
    try:
        with pytest.raises(ValueError, match="epsilon must be"):
            ApproximateDpEvent(math.nan, 0.0)
        with pytest.raises(ValueError, match="eta must be"):
            BoundedRangeDpEvent(-1.0)
    finally:
        attr.validators.set_disabled(False)


def test_our_events_are_hashable_values() -> None:
    half: Any = Fraction(1, 2)
    lists: Any = [2, 3]
    law: Any = np.array([0.25, 0.75])
    makers: list[Callable[[], Any]] = [
        lambda: ApproximateDpEvent(half, 1e-6),
        lambda: BoundedRangeDpEvent(np.float32(half)),  # type: ignore[arg-type]
        lambda: DominatingPairDpEvent(law, list(law)),  # type: ignore[arg-type]
        lambda: RdpDpEvent(lists, lists),
        lambda: GroupDpEvent(ApproximateDpEvent(1, 0), 2),
    ]
    for make in makers:
        event = make()
        assert event == make()
        assert hash(event) == hash(make())
        with pytest.raises(attr.exceptions.FrozenInstanceError):
            event.epsilon = 3
    assert type(ApproximateDpEvent(1, 0).epsilon) is float


# --- dp-accounting's events validate nothing; the translation does


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.5, "1", None, True])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_stock_events_with_bad_parameters_are_refused(bad: Any, relation: Relation) -> None:
    events = [
        GaussianDpEvent(bad),
        LaplaceDpEvent(bad),
        DiscreteLaplaceDpEvent(bad, 1),
        DiscreteLaplaceDpEvent(1.0, bad),
        ZCDpEvent(bad),
        ZCDpEvent(0.5, bad),
        SelfComposedDpEvent(HALF, bad),
        SampledWithoutReplacementDpEvent(bad, 1, HALF),
        SampledWithoutReplacementDpEvent(10, bad, HALF),
        *([RandomizedResponseDpEvent(bad, 4), RandomizedResponseDpEvent(0.5, bad)] if relation is REPLACE else []),
        *([PoissonSampledDpEvent(bad, HALF)] if relation is ADD_REMOVE else []),
    ]
    for event in events:
        for nested in (event, ComposedDpEvent([HALF, event]), SelfComposedDpEvent(event, 3)):
            with pytest.raises((TypeError, ValueError), match="must be"):
                of(nested, relation)


def test_stock_events_with_parameters_out_of_range_are_refused() -> None:
    for event, relation in [
        (PoissonSampledDpEvent(1.5, HALF), ADD_REMOVE),
        (SampledWithoutReplacementDpEvent(10, 11, HALF), REPLACE),
        (SampledWithoutReplacementDpEvent(0, 0, HALF), REPLACE),
        (SelfComposedDpEvent(HALF, 2.0), REPLACE),  # type: ignore[arg-type]
        (SelfComposedDpEvent(HALF, -1), REPLACE),
        (RandomizedResponseDpEvent(1.01, 4), REPLACE),
        (RandomizedResponseDpEvent(0.5, 0), REPLACE),
        (DiscreteLaplaceDpEvent(0.0, 1), ADD_REMOVE),
        (DiscreteLaplaceDpEvent(1.0, 1.0), ADD_REMOVE),  # type: ignore[arg-type]
    ]:
        with pytest.raises((TypeError, ValueError), match=r"DpEvent\.\w+ must be"):
            of(event, relation)


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (UnsupportedDpEvent(), REPLACE),
        (PoissonSampledDpEvent(0.1, HALF), REPLACE),
        (PoissonSampledDpEvent(0.1, HALF), SPECIAL),
        (SampledWithoutReplacementDpEvent(10, 1, HALF), ADD_REMOVE),
        (SampledWithoutReplacementDpEvent(10, 1, HALF), SPECIAL),
        (RandomizedResponseDpEvent(0.5, 4), ADD_REMOVE),
        (PoissonSampledDpEvent(0.1, PoissonSampledDpEvent(0.1, HALF)), ADD_REMOVE),
        (GroupDpEvent(PoissonSampledDpEvent(0.1, HALF), 2), ADD_REMOVE),
        (GroupDpEvent(SampledWithoutReplacementDpEvent(10, 1, HALF), 2), REPLACE),
        (GroupDpEvent(ZCDpEvent(0.5), 2), REPLACE),
        (GroupDpEvent(UnsupportedDpEvent(), 1), REPLACE),
    ],
    ids=str,
)
def test_events_without_a_theorem_are_refused_by_name(event: DpEvent, relation: Relation) -> None:
    for nested in (event, ComposedDpEvent([HALF, event]), SelfComposedDpEvent(event, 2)):
        with pytest.raises(UnsupportedEventError, match="DpEvent"):
            of(nested, relation)


def test_not_an_event() -> None:
    things: list[Any] = [None, 1.0, "gaussian", GaussianDpEvent]
    for thing in things:
        with pytest.raises(TypeError, match=r"event must be a dp_accounting\.DpEvent"):
            of(thing)
    with pytest.raises(ValueError, match="relation must be"):
        PrivacyProfile.from_event(HALF, relation=None)  # type: ignore[arg-type]


# --- parameters mean what the events say


def test_substitution_doubles_the_distance() -> None:
    for event, doubled in [
        (GaussianDpEvent(2.0), GaussianDpEvent(1.0)),
        (LaplaceDpEvent(2.0), LaplaceDpEvent(1.0)),
        (DiscreteLaplaceDpEvent(0.5, 2), DiscreteLaplaceDpEvent(0.5, 4)),
        (DiscreteGaussianDpEvent(3.0, 1), DiscreteGaussianDpEvent(3.0, 2)),
    ]:
        for epsilon in (0.0, 0.5, 1.5):
            assert of(event, REPLACE).delta(epsilon) == of(doubled, ADD_REMOVE).delta(epsilon)
            assert of(event, SPECIAL).delta(epsilon) == of(event, ADD_REMOVE).delta(epsilon)


def test_trivial_events() -> None:
    for relation in Relation:
        assert of(NoOpDpEvent(), relation).epsilon(0) == 0
        assert of(ComposedDpEvent([]), relation).epsilon(0) == 0
        assert of(SelfComposedDpEvent(NonPrivateDpEvent(), 0), relation).epsilon(0) == 0
        assert of(NonPrivateDpEvent(), relation).delta(1e9) == 1
        assert of(ComposedDpEvent([HALF, NonPrivateDpEvent()]), relation).epsilon(0.999) == math.inf
        assert of(GaussianDpEvent(0), relation).delta(3) == 1
        assert of(DiscreteLaplaceDpEvent(1.0, 0), relation).epsilon(0) == 0
        assert of(ZCDpEvent(0.0), relation).epsilon(0) == 0
        assert of(HALF, relation).relation is relation
    assert of(RandomizedResponseDpEvent(0.0, 3), REPLACE).delta(5) == 1
    assert of(RandomizedResponseDpEvent(0.0, 1), REPLACE).epsilon(0) == 0
    assert of(RandomizedResponseDpEvent(1.0, 7), REPLACE).epsilon(0) == 0
    assert of(PoissonSampledDpEvent(0.0, NonPrivateDpEvent())).epsilon(0) == 0
    assert of(SampledWithoutReplacementDpEvent(5, 0, NonPrivateDpEvent()), REPLACE).epsilon(0) == 0


@pytest.mark.parametrize(
    "leaf",
    [
        ApproximateDpEvent(0.3, 1e-6),
        BoundedRangeDpEvent(0.3),
        GaussianDpEvent(3.0),
        LaplaceDpEvent(5.0),
        DiscreteLaplaceDpEvent(0.2, 2),
        DiscreteGaussianDpEvent(4.0),
        PermuteAndFlipDpEvent(0.3),
        DominatingPairDpEvent((0.5, 0.3, 0.2), (0.4, 0.3, 0.3)),
        RandomizedResponseDpEvent(0.6, 3),
        ZCDpEvent(0.01),
        RdpDpEvent((2.0, 8.0), (0.1, 0.4)),
        SampledWithoutReplacementDpEvent(10, 3, GaussianDpEvent(2.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize(("inner", "outer"), [(2, 3), (1, 5)])
def test_a_count_is_repetition(leaf: DpEvent, inner: int, outer: int) -> None:
    nested = of(SelfComposedDpEvent(SelfComposedDpEvent(leaf, inner), outer), REPLACE)
    repeated = of(ComposedDpEvent([leaf] * (inner * outer)), REPLACE)
    counted = of(leaf, REPLACE).self_compose(inner * outer)
    for epsilon in (0.1, 1.0):
        assert nested.delta(epsilon) == pytest.approx(repeated.delta(epsilon), rel=1e-9)
        assert counted.delta(epsilon) == pytest.approx(repeated.delta(epsilon), rel=1e-9)
        assert counted.delta(epsilon) > of(leaf, REPLACE).delta(epsilon) or counted.delta(epsilon) == 0


def test_a_count_is_repetition_under_poisson_sampling() -> None:
    leaf = PoissonSampledDpEvent(0.1, ComposedDpEvent([GaussianDpEvent(2.0), ApproximateDpEvent(0.3, 1e-6)]))
    counted, repeated = of(SelfComposedDpEvent(leaf, 4)), of(ComposedDpEvent([leaf] * 4))
    for epsilon in (0.1, 1.0):
        assert counted.delta(epsilon) == repeated.delta(epsilon)


def test_whole_parameters_given_as_integers_or_floats_agree() -> None:
    for one, two, relation in [
        (GaussianDpEvent(2), GaussianDpEvent(2.0), REPLACE),
        (LaplaceDpEvent(2), LaplaceDpEvent(2.0), REPLACE),
        (GaussianDpEvent(np.float32(2)), GaussianDpEvent(2.0), REPLACE),  # type: ignore[arg-type]
        (ApproximateDpEvent(1, 0), ApproximateDpEvent(1.0, 0.0), REPLACE),
        (ZCDpEvent(1), ZCDpEvent(1.0), REPLACE),
        (PoissonSampledDpEvent(1, GaussianDpEvent(2)), PoissonSampledDpEvent(1.0, GaussianDpEvent(2.0)), ADD_REMOVE),
        (SelfComposedDpEvent(HALF, np.int64(5)), SelfComposedDpEvent(HALF, 5), REPLACE),  # type: ignore[arg-type]
    ]:
        assert of(one, relation).epsilon(1e-6) == of(two, relation).epsilon(1e-6)
        assert of(one, relation) == of(two, relation)


@pytest.mark.parametrize(("sample", "source"), [(1, 3), (1, 10), (7, 9), (3, 3), (10**6 - 1, 10**6), (1, 10**9 + 7)])
def test_the_rate_of_a_fixed_size_sample_is_not_rounded_down(sample: int, source: int) -> None:
    profile = of(SampledWithoutReplacementDpEvent(source, sample, ApproximateDpEvent(1.0)), REPLACE)
    exact = mp.mpf(sample) / source * truth.homogeneous_delta(1.0, 0.0, 1, 0.0)
    assert_tight_upper(profile.delta(0), exact, 1e-11)


# --- the events that have no one pair of laws


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("scores", [(0, 0), (0, 1), (2, 0, 1), (0, 0, 0)])
def test_permute_and_flip_against_enumeration(epsilon: float, scores: tuple[int, ...]) -> None:
    """All neighbouring scores: each moves by at most 1."""
    profile = of(PermuteAndFlipDpEvent(epsilon), REPLACE)
    for moved in itertools.product((-1, 0, 1), repeat=len(scores)):
        other = tuple(score + move for score, move in zip(scores, moved, strict=True))
        pair = pair_of(truth.permute_and_flip_law(scores, epsilon), truth.permute_and_flip_law(other, epsilon))
        for at in (0.0, 0.3 * epsilon, 0.9 * epsilon, epsilon):
            # Where a candidate's chance moves by e^epsilon exactly, 50 digits leave a remainder.
            assert profile.delta(at) >= both_ways(pair, at) - mp.mpf(10) ** -45
            assert profile.self_compose(2).delta(at) >= both_ways(power(pair, 2), at) - mp.mpf(10) ** -45


@pytest.mark.parametrize(("rho", "xi"), [(0.5, 0.0), (0.01, 0.0), (2.0, 0.3)])
def test_zcdp_is_the_best_order_of_its_curve(rho: float, xi: float) -> None:
    profile = of(ZCDpEvent(rho, xi), REPLACE)
    for epsilon in (0.5, 2.0, 6.0):
        exact = truth.renyi_delta(lambda order: xi + rho * order, epsilon)
        if exact < 1e-60:
            continue
        # The library tries 480 orders.
        assert_tight_upper(profile.delta(epsilon), exact * (1 - mp.mpf(10) ** -12), 0.05)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_zcdp_covers_gaussian_noise_and_costs_a_little_more(delta: float) -> None:
    exact = float(truth.gaussian_epsilon(1, delta))
    got = of(ZCDpEvent(0.5), REPLACE).epsilon(delta)
    assert exact <= got <= exact * 1.15


def test_zcdp_adds_up() -> None:
    ten = of(SelfComposedDpEvent(ZCDpEvent(0.05), 10), REPLACE)
    for epsilon in (0.5, 2.0, 5.0):
        assert ten.delta(epsilon) == pytest.approx(of(ZCDpEvent(0.5), REPLACE).delta(epsilon), rel=1e-9)
    mixed = of(ComposedDpEvent([ZCDpEvent(0.5), ApproximateDpEvent(0.1, 1e-9)]), REPLACE)
    assert (
        of(ZCDpEvent(0.5), REPLACE).epsilon(1e-6)
        <= mixed.epsilon(1e-6)
        <= of(ZCDpEvent(0.5), REPLACE).epsilon(9e-7) + 0.11
    )


@pytest.mark.parametrize("orders", [(2.0,), (1.5, 4.0), (2.0, 5.0, 30.0)])
def test_a_renyi_curve_covers_every_mechanism_below_it(orders: tuple[float, ...]) -> None:
    """The curve of randomised response at a few orders, composed: above the truth at every epsilon."""
    pair = extremal(1.0)
    values = tuple(float(truth.renyi_divergence(pair, order)) * (1 + 1e-14) for order in orders)
    profile = of(RdpDpEvent(orders, values), REPLACE)
    other = extremal(0.3)
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        assert profile.delta(epsilon) >= both_ways(pair, epsilon)
        assert profile.self_compose(3).delta(epsilon) >= both_ways(power(pair, 3), epsilon)
        mixed = profile.compose(PrivacyProfile.pure(0.3))
        assert mixed.delta(epsilon) >= both_ways([(p * r, q * s) for p, q in pair for r, s in other], epsilon)


def test_renyi_curves_with_different_orders_add_on_the_safe_side() -> None:
    pair = extremal(1.0)
    curves = [
        RdpDpEvent(orders, tuple(float(truth.renyi_divergence(pair, order)) * (1 + 1e-14) for order in orders))
        for orders in ((2.0, 6.0), (3.0, 9.0), (1.2, 40.0))
    ]
    total = of(ComposedDpEvent(list(curves)), REPLACE)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 2.9):
        assert total.delta(epsilon) >= both_ways(power(pair, 3), epsilon)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_groups_of_records(size: int) -> None:
    """Against the same noise with a shift `size` times as large, and against the pair of a chain of neighbours."""
    for event, grown in [
        (GaussianDpEvent(4.0), GaussianDpEvent(4.0 / size)),
        (LaplaceDpEvent(4.0), LaplaceDpEvent(4.0 / size)),
        (ComposedDpEvent([GaussianDpEvent(4.0), LaplaceDpEvent(8.0)]),) * 2,
    ]:
        if isinstance(event, ComposedDpEvent):
            grown = ComposedDpEvent([GaussianDpEvent(4.0 / size), LaplaceDpEvent(8.0 / size)])
        for epsilon in (0.0, 0.4, 1.0):
            got, exact = of(GroupDpEvent(event, size)).delta(epsilon), of(grown).delta(epsilon)
            assert got == pytest.approx(exact, rel=1e-5)
    discrete = of(GroupDpEvent(DiscreteLaplaceDpEvent(0.5, 1), size))
    for epsilon in (0.0, 0.4, 1.0):
        exact = both_ways(truth.discrete_pair(lambda k: -mp.mpf(0.5) * abs(k), size, 150), epsilon)
        assert discrete.delta(epsilon) >= exact - mp.mpf(10) ** -30


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.5, 0.0), (0.5, 1e-6), (0.0, 1e-3), (100.0, 1e-9)])
def test_groups_of_an_approximate_mechanism(epsilon0: float, delta0: float, size: int) -> None:
    """delta (1 + e^epsilon + ... + e^((size - 1) epsilon)) at size times epsilon, by adding the steps of the chain."""
    profile = of(GroupDpEvent(ApproximateDpEvent(epsilon0, delta0), size), REPLACE)
    leak = min(mp.mpf(1), mp.fsum(mp.exp(i * mp.mpf(epsilon0)) * mp.mpf(delta0) for i in range(size)))
    assert_tight_upper(profile.delta(size * epsilon0), leak, 1e-9)


def test_a_group_of_bounded_range_covers_its_chain() -> None:
    """Exponential mechanism on counts: a group of 2 moves each score by up to 2."""
    profile = of(GroupDpEvent(BoundedRangeDpEvent(0.8), 2), REPLACE)
    for scores in itertools.product(range(3), repeat=2):
        for other in itertools.product(range(3), repeat=2):
            laws = [
                {
                    i: mp.exp(mp.mpf(0.4) * s) / mp.fsum(mp.exp(mp.mpf(0.4) * t) for t in which)
                    for i, s in enumerate(which)
                }
                for which in (scores, other)
            ]
            pair = [(laws[0][i], laws[1][i]) for i in range(2)]
            for epsilon in (0.0, 0.5, 1.2):
                assert profile.delta(epsilon) >= both_ways(pair, epsilon) - mp.mpf(10) ** -45


@pytest.mark.parametrize("sigma", [0.3, 1.0, 30.0, 3000.0])
def test_discrete_gaussians_of_any_width(sigma: float) -> None:
    """Wide ones approach the Gaussian; none takes long."""
    got = of(DiscreteGaussianDpEvent(sigma)).epsilon(1e-6)
    if sigma >= 30:
        assert got == pytest.approx(float(truth.gaussian_epsilon(1 / mp.mpf(sigma), 1e-6)), rel=1e-2, abs=1e-6)
    else:
        assert 0 < got < math.inf
