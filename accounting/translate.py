"""Events to profiles: one event, one theory, one function. Counts and nesting are expanded here and nowhere else."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, ZCDpEvent

from accounting._checks import check_int, check_probability, check_real, check_relation, relation_name
from accounting.events import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    DiscreteGaussianDpEvent,
    DominatingPairDpEvent,
    GroupDpEvent,
    PermuteAndFlipDpEvent,
    RdpDpEvent,
)
from accounting.groups import group_profile
from accounting.leaves import discrete_gaussian_pair, discrete_laplace_pair, randomized_response_pair
from accounting.profiles import PrivacyProfile
from accounting.renyi import ORDERS, RenyiPair

_REPLACE = NeighboringRelation.REPLACE_ONE
_ADD_REMOVE = NeighboringRelation.ADD_OR_REMOVE_ONE


def profile_of(event: DpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    """The profile of `event` under `relation`; see ``PrivacyProfile.from_event``."""
    if not isinstance(event, DpEvent):
        raise TypeError(f"event must be a dp_accounting.DpEvent, got {event!r}")
    relation = check_relation("relation", relation)
    profile = _profile(event, relation)
    return PrivacyProfile(profile._directions, relation)


def distance(relation: NeighboringRelation) -> int:
    """How far neighbours' values are, in units of what one record can add: 2 when a record is substituted, else 1."""
    return 2 if relation is _REPLACE else 1


@singledispatch
def _profile(event: DpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    raise UnsupportedEventError(
        f"no theorem gives the privacy profile of {type(event).__name__} under {relation_name(relation)}: {event!r}"
    )


@_profile.register
def _(event: NoOpDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.nothing()


@_profile.register
def _(event: NonPrivateDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.unbounded()


@_profile.register
def _(event: ApproximateDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.approximate(event.epsilon, event.delta)


@_profile.register
def _(event: BoundedRangeDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.bounded_range(event.eta)


@_profile.register
def _(event: DominatingPairDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.from_distributions(dict(enumerate(event.upper)), dict(enumerate(event.lower)))


@_profile.register
def _(event: GaussianDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    sigma = check_real("GaussianDpEvent.noise_multiplier", event.noise_multiplier, lo=0.0)
    return PrivacyProfile.gaussian(sigma / distance(relation))


@_profile.register
def _(event: LaplaceDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    scale = check_real("LaplaceDpEvent.noise_multiplier", event.noise_multiplier, lo=0.0)
    return PrivacyProfile.laplace(scale / distance(relation))


@_profile.register
def _(event: DiscreteLaplaceDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    rate = check_real("DiscreteLaplaceDpEvent.noise_parameter", event.noise_parameter, lo=0.0, lo_open=True)
    shift = check_int("DiscreteLaplaceDpEvent.sensitivity", event.sensitivity, lo=0) * distance(relation)
    return PrivacyProfile._of(discrete_laplace_pair(rate, shift)) if shift else PrivacyProfile.nothing()


@_profile.register
def _(event: DiscreteGaussianDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    shift = event.sensitivity * distance(relation)
    return PrivacyProfile._of(discrete_gaussian_pair(event.sigma, shift)) if shift else PrivacyProfile.nothing()


@_profile.register
def _(event: PermuteAndFlipDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.pure(event.epsilon)


@_profile.register
def _(event: RdpDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile._of(RenyiPair(event.orders, event.values))


@_profile.register
def _(event: ZCDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    rho, xi = (check_real(f"ZCDpEvent.{name}", getattr(event, name), lo=0.0) for name in ("rho", "xi"))
    if rho == 0 and xi == 0:
        return PrivacyProfile.nothing()
    return PrivacyProfile._of(RenyiPair(ORDERS, tuple(xi + rho * order for order in ORDERS)))


@_profile.register
def _(event: GroupDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return group_profile(_profile(event.event, relation), event.size, event)


@_profile.register
def _(event: RandomizedResponseDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    noise = check_probability("RandomizedResponseDpEvent.noise_parameter", event.noise_parameter)
    buckets = check_int("RandomizedResponseDpEvent.num_buckets", event.num_buckets, lo=1)
    if relation is _ADD_REMOVE:
        # A missing record has no bucket to answer with, so the event says nothing about adding or removing one.
        raise UnsupportedEventError(
            f"RandomizedResponseDpEvent is defined for replaced records, not under {relation_name(relation)}: {event!r}"
        )
    return PrivacyProfile._of(randomized_response_pair(noise, buckets)) if buckets > 1 else PrivacyProfile.nothing()


@_profile.register
def _(event: ComposedDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    return PrivacyProfile.nothing().compose(*(_profile(inner, relation) for inner in event.events))


@_profile.register
def _(event: SelfComposedDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    count = check_int("SelfComposedDpEvent.count", event.count, lo=0)
    return _profile(event.event, relation).self_compose(count)


@_profile.register
def _(event: PoissonSampledDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    rate = check_probability("PoissonSampledDpEvent.sampling_probability", event.sampling_probability)
    if relation is not _ADD_REMOVE:
        raise UnsupportedEventError(
            f"Poisson sampling has a theorem under add-remove here, not under {relation_name(relation)}: {event!r}"
        )
    return _sampled(event, relation, event.event).subsample_poisson(rate)


@_profile.register
def _(event: SampledWithoutReplacementDpEvent, relation: NeighboringRelation) -> PrivacyProfile:
    name = "SampledWithoutReplacementDpEvent"
    source = check_int(f"{name}.source_dataset_size", event.source_dataset_size, lo=1)
    sample = check_int(f"{name}.sample_size", event.sample_size, lo=0, hi=source)
    if relation is not _REPLACE:
        raise UnsupportedEventError(
            f"sampling without replacement has a theorem under replace-one here, "
            f"not under {relation_name(relation)}: {event!r}"
        )
    rate = sample / source
    if Fraction(rate) * source < sample:
        rate = min(1.0, math.nextafter(rate, 1.0))
    return _sampled(event, relation, event.event).subsample_without_replacement(rate)


def _sampled(event: DpEvent, relation: NeighboringRelation, inner: DpEvent) -> PrivacyProfile:
    profile = _profile(inner, relation)
    if len(profile._directions) > 1:
        raise UnsupportedEventError(f"no theorem here covers sampling around a sampled mechanism: {event!r}")
    return profile
