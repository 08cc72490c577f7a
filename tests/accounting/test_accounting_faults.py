"""Faults reported of accounting libraries, by kind: the right number, or a refusal.

Each kind is tried over a range of parameters, the reported row among them. Where the installed dp-accounting still has
the fault, a test says so; when it fails, the fault has been mended upstream.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import RandomizedResponseDpEvent, ZCDpEvent
from dp_accounting.pld import PLDAccountant, common, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant

from accounting import (
    ApproximateDpEvent,
    BudgetExceeded,
    Ledger,
    PermuteAndFlipDpEvent,
    PrivacyProfile,
    ProfileAccountant,
    Relation,
    RelationMismatchError,
)
from tests.support import closed_forms as truth
from tests.support import contour
from tests.support.bounds import assert_tight_upper
from tests.support.finite import both_ways, extremal, pair_of, power, without_replacement

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE


def total(event: DpEvent, relation: Relation, delta: float = 1e-6) -> float:
    return ProfileAccountant(relation).compose(event).get_epsilon(delta)


def stock(accountant: PLDAccountant | RdpAccountant, event: DpEvent, delta: float = 1e-6) -> float:
    """What a stock accountant answers, its warnings aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(accountant.compose(event).get_epsilon(delta))


# --- relation ignored


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("count", [1, 10])
def test_the_relation_is_not_ignored(sigma: float, count: int) -> None:
    """Substitution doubles the distance: noise multiplier 1 costs 10.9972, not 5.2215."""
    got = total(SelfComposedDpEvent(GaussianDpEvent(sigma), count), REPLACE)
    exact = truth.gaussian_epsilon(2 * mp.sqrt(count) / mp.mpf(sigma), 1e-6)
    assert_tight_upper(got, exact, 1e-9)
    if (sigma, count) == (1.0, 1):
        assert round(got, 4) == 10.9972
    laplace = total(SelfComposedDpEvent(LaplaceDpEvent(sigma), count), REPLACE, 0.0)
    assert laplace == pytest.approx(2 * count / sigma, rel=1e-14)


def test_upstream_renyi_accountant_still_ignores_the_relation() -> None:
    assert stock(RdpAccountant(neighboring_relation=REPLACE), GaussianDpEvent(1.0)) == pytest.approx(5.2215, abs=1e-3)
    assert stock(RdpAccountant(neighboring_relation=REPLACE), LaplaceDpEvent(1.0)) < 1.1  # for a true 2 - 2e-6


# --- correlated releases billed as one


@pytest.mark.parametrize("ratios", [(1, 2), (1, 1), (1, 2, 4, 8)])
def test_correlated_releases_are_all_billed(ratios: tuple[int, ...]) -> None:
    """f, f/2, ... each with noise of its own: mu adds in squares. f and f/2 at noise 1: 5.5509, not 4.8866."""
    got = PrivacyProfile.nothing().compose(*(PrivacyProfile.gaussian(ratio) for ratio in ratios)).epsilon(1e-6)
    mu = mp.sqrt(mp.fsum(mp.mpf(1) / ratio**2 for ratio in ratios))
    assert_tight_upper(got, truth.gaussian_epsilon(mu, 1e-6), 1e-9)
    if ratios == (1, 2):
        assert round(got, 4) == 5.5509


# --- negative epsilon; right, though it looks like a bug


@pytest.mark.parametrize(
    ("profile", "delta"),
    [
        (PrivacyProfile.gaussian(20.0), 0.3),
        (PrivacyProfile.gaussian(1.0).subsample_poisson(0.00105), 1e-3),
        (PrivacyProfile.from_event(ZCDpEvent(0.5), relation=REPLACE), 0.9),
        (PrivacyProfile.pure(0.1), 0.05),
        (PrivacyProfile.laplace(20.0).self_compose(3), 0.2),
    ],
    ids=["gaussian", "sampled gaussian", "zcdp", "pure", "laplace"],
)
def test_epsilon_is_zero_and_not_below_when_delta_exceeds_total_variation(
    profile: PrivacyProfile, delta: float
) -> None:
    assert profile.delta(0.0) < delta
    assert profile.epsilon(delta) == 0
    assert math.copysign(1, profile.epsilon(delta)) == 1


def test_total_variation_behind_the_two_rows() -> None:
    assert float(truth.gaussian_delta(mp.mpf(1) / 20, 0)) == pytest.approx(0.01995, abs=1e-5)
    exact = truth.poisson_gaussian_delta(1.0, 0.00105, 0.0, removal=True)
    assert float(exact) == pytest.approx(4.02e-4, abs=1e-6)


# --- overflow at small noise; less noise billed less; target above the bracket


@pytest.mark.parametrize("delta", [1e-5, 1e-12])
@pytest.mark.parametrize("sigma", [0.01, 0.05, 0.3])
def test_small_noise_is_finite(sigma: float, delta: float) -> None:
    got = PrivacyProfile.gaussian(sigma).epsilon(delta)
    assert_tight_upper(got, truth.gaussian_epsilon(1 / mp.mpf(sigma), delta), 1e-9)


def test_the_row_of_small_noise() -> None:
    assert PrivacyProfile.gaussian(0.05).epsilon(1e-5) == pytest.approx(284.392, abs=1e-3)


def test_less_noise_is_never_billed_less() -> None:
    got = [PrivacyProfile.gaussian(sigma).epsilon(1e-6) for sigma in np.geomspace(1e-3, 1e3, 60).tolist()]
    assert got == sorted(got, reverse=True)
    assert PrivacyProfile.gaussian(0.01).epsilon(1e-6) == pytest.approx(5474.4, abs=0.1)
    assert PrivacyProfile.gaussian(1.0).epsilon(1e-6) == pytest.approx(4.8866, abs=1e-4)


# --- the bracket of a search is too small


@pytest.mark.parametrize(
    ("rate", "sigma", "count", "delta", "known"), [(0.05, 0.4, 300, 1e-5, 55.176), (0.2, 0.5, 50, 1e-6, math.nan)]
)
def test_large_totals_of_sampled_noise(rate: float, sigma: float, count: int, delta: float, known: float) -> None:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count)
    got = total(event, ADD_REMOVE, delta)
    transform = contour.repeated(contour.poisson_gaussian(1 / sigma, rate, removal=True), count)
    assert contour.inverted_delta(transform, got) <= delta
    assert contour.inverted_delta(transform, got * (1 - 1e-4)) > delta
    assert math.isnan(known) or got == pytest.approx(known, abs=1e-3)


# --- fixed-size batches billed as Poisson


@pytest.mark.parametrize(("sigma", "rate", "count"), [(4.0, 0.1, 100), (2.0, 0.02, 200)])
def test_fixed_size_batches_are_not_billed_as_poisson(sigma: float, rate: float, count: int) -> None:
    """One record of value +1 or -1 among zeros attains the contour integral below; Poisson billing is far under it."""
    event = SampledWithoutReplacementDpEvent(1000, round(1000 * rate), GaussianDpEvent(sigma))
    got = total(SelfComposedDpEvent(event, count), REPLACE)
    attained = contour.repeated(contour.fixed_size_gaussian(1 / sigma, rate), count)
    assert contour.inverted_delta(attained, got) <= 1e-6
    poisson = total(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count), ADD_REMOVE)
    assert contour.inverted_delta(attained, 1.7 * poisson) > 1e-6
    if sigma == 4.0:
        assert round(poisson, 3) == 1.132
        assert contour.inverted_delta(attained, 2.250) > 1e-6 > contour.inverted_delta(attained, 2.252)
        assert got == pytest.approx(2.884, abs=1e-3)


# --- a query changes state; calibration overshoots: see test_accountant.py


def test_asking_twice_gives_the_same() -> None:
    accountant = ProfileAccountant(ADD_REMOVE).compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 100)
    assert accountant.get_epsilon(1e-6) == accountant.get_epsilon(1e-6)
    assert accountant.get_delta(0.5) == accountant.get_delta(0.5)


# --- which base was meant


@pytest.mark.parametrize(("epsilon", "delta", "rate"), [(1.0, 1e-6, 0.01), (0.5, 1e-8, 0.1)])
def test_the_base_behind_an_amplified_target(epsilon: float, delta: float, rate: float) -> None:
    """Amplification divides: base epsilon ln(1 + (e^epsilon - 1) / rate), base delta over rate."""
    base = math.log1p(math.expm1(epsilon) / rate)
    amplified = PrivacyProfile.approximate(base, delta / rate * (1 - 1e-9)).subsample_without_replacement(rate)
    assert amplified.epsilon(delta) == pytest.approx(epsilon, rel=1e-9)
    if rate == 0.01:
        assert round(base, 4) == 5.1523
        assert delta / rate == pytest.approx(1e-4)


# --- sampled Laplace


def test_sampled_laplace() -> None:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0)), 10)
    got = total(event, ADD_REMOVE, 1e-5)
    assert got == pytest.approx(1.17421, abs=2e-5)
    assert got <= 1.5857
    lower, upper = truth.poisson_laplace_bracket(1.0, 0.1, 10, got, cells=4096)
    assert lower <= 1e-5
    assert upper == pytest.approx(1e-5, rel=0.02)


# --- wrong curve for a mechanism


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_permute_and_flip_is_not_billed_as_bounded_range(epsilon: float) -> None:
    """Scores (0, 0) and (1, -1): D_2 is 1.37692 at epsilon 2, over the 1.0 that rho = epsilon^2 / 8 would give."""
    laws = [truth.permute_and_flip_law(scores, epsilon) for scores in ((0, 0), (1, -1))]
    pair = pair_of(*laws)
    divergence = max(truth.renyi_divergence(side, 2.0) for side in (pair, [(q, p) for p, q in pair]))
    assert divergence > 2 * epsilon**2 / 8
    if epsilon == 2.0:
        assert round(float(divergence), 5) == 1.37692
    profile = PrivacyProfile.from_event(PermuteAndFlipDpEvent(epsilon), relation=REPLACE)
    for at in (0.0, 0.3, 0.9 * epsilon):
        assert profile.delta(at) >= both_ways(pair, at)
        assert profile.self_compose(3).delta(at) >= both_ways(power(pair, 3), at)


# --- a missing logarithm; tiny epsilons; pure DP at delta 0


@pytest.mark.parametrize(
    ("epsilon0", "count", "known"),
    [(0.1, 100, 4.7746), (5e-5, 1000, 0.004511), (0.01, 1000, math.nan), (1e-4, 10**4, math.nan)],
)
def test_many_small_pure_claims(epsilon0: float, count: int, known: float) -> None:
    got = PrivacyProfile.pure(epsilon0).self_compose(count).epsilon(1e-6)
    assert truth.homogeneous_delta(epsilon0, 0.0, count, got) <= 1e-6
    assert truth.homogeneous_delta(epsilon0, 0.0, count, got * (1 - 1e-4)) > 1e-6
    assert math.isnan(known) or got == pytest.approx(known, rel=2e-4)


@pytest.mark.parametrize("count", [1, 10, 11, 1000])
def test_pure_claims_at_delta_zero_add_up_exactly(count: int) -> None:
    assert PrivacyProfile.pure(1.0).self_compose(count).epsilon(0.0) == count


def test_upstream_still_rounds_tiny_claims_up_and_loses_pure_totals() -> None:
    def composed(epsilon: float, count: int) -> privacy_loss_distribution.PrivacyLossDistribution:
        claim = common.DifferentialPrivacyParameters(epsilon, 0.0)
        return privacy_loss_distribution.from_privacy_parameters(
            claim, value_discretization_interval=1e-4
        ).self_compose(count)

    assert composed(5e-5, 1000).get_epsilon_for_delta(1e-6) > 10 * 0.004511
    assert composed(1.0, 10).get_epsilon_for_delta(0.0) == math.inf


# --- budgets in floats


def test_ten_tenths_fit_a_budget_of_one_and_an_eleventh_does_not() -> None:
    ledger = Ledger(relation=REPLACE, budget=(1.0, 0.0))
    ledger.partition("records", {"all": 100})
    for i in range(10):
        ledger.charge("all", ApproximateDpEvent(0.1), label=f"use {i}", source="a test")
    assert ledger.epsilon(delta=0.0) == 1.0
    before = ledger.charges
    with pytest.raises(BudgetExceeded):
        ledger.charge("all", ApproximateDpEvent(0.1), label="use 10", source="a test")
    assert ledger.charges == before


# --- relations without a shared distance


def test_relations_without_a_theorem_are_refused_not_guessed() -> None:
    with pytest.raises(RelationMismatchError, match="add-remove"):
        PrivacyProfile.gaussian(1.0).subsample_without_replacement(0.1).subsample_poisson(0.1)


# --- count dropped; integer parameters


@pytest.mark.parametrize("count", [1, 10, 100])
@pytest.mark.parametrize(("noise", "buckets"), [(0.5, 4), (0.9, 2)])
def test_randomized_response_keeps_its_count(noise: float, buckets: int, count: int) -> None:
    event = SelfComposedDpEvent(RandomizedResponseDpEvent(noise, buckets), count)
    loss = mp.log((1 - mp.mpf(noise) + mp.mpf(noise) / buckets) / (mp.mpf(noise) / buckets))
    assert total(event, REPLACE, 0.0) == pytest.approx(float(count * loss), rel=1e-12)
    if (count, buckets) == (10, 4):
        assert round(total(event, REPLACE, 0.0), 4) == 16.0944
        assert total(event, REPLACE) == pytest.approx(16.0943, abs=1e-4)


def test_upstream_still_drops_the_count_of_randomized_response() -> None:
    event = SelfComposedDpEvent(RandomizedResponseDpEvent(0.5, 4), 10)
    assert stock(PLDAccountant(REPLACE), event) == pytest.approx(1.6095, abs=1e-3)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int64, Fraction], ids=lambda kind: kind.__name__)
def test_the_kind_of_a_number_does_not_change_the_bill(kind: Callable[[int], float]) -> None:
    """Poisson .1 around 100 x Gaussian(2) is one step at mu = 5: 30.8011; by Renyi 32.7792, integer sigma .6614."""
    inner = SelfComposedDpEvent(GaussianDpEvent(kind(2)), 100)
    got = total(PoissonSampledDpEvent(0.1, inner), ADD_REMOVE)
    assert truth.poisson_gaussian_delta(5.0, 0.1, got, removal=True) <= 1e-6
    assert truth.poisson_gaussian_delta(5.0, 0.1, got * (1 - 1e-6), removal=True) > 1e-6
    assert got == pytest.approx(30.8011, abs=1e-4)


def test_upstream_still_drops_the_count_around_integer_noise() -> None:
    inner = [SelfComposedDpEvent(GaussianDpEvent(sigma), 100) for sigma in (2, 2.0)]
    whole, real = (stock(RdpAccountant(), PoissonSampledDpEvent(0.1, event)) for event in inner)
    assert whole == pytest.approx(0.6614, abs=1e-3)
    assert real == pytest.approx(32.7792, abs=1e-3)


# --- NaN


def test_upstream_still_calls_unknown_noise_private() -> None:
    """Ours refuses: test_events.py and test_accountant.py."""
    assert stock(RdpAccountant(), GaussianDpEvent(math.nan)) == 0


def test_upstream_still_keeps_a_refused_event() -> None:
    accountant = PLDAccountant(ADD_REMOVE)
    with pytest.raises(ValueError, match="positive"):
        accountant.compose(GaussianDpEvent(-1.0))
    assert accountant.ledger == GaussianDpEvent(-1.0)


# --- tiny delta


@pytest.mark.parametrize("delta", [1e-12, 1e-16, 1e-20])
@pytest.mark.parametrize(("sigma", "count"), [(10.0, 100), (3.0, 7)])
def test_tiny_delta(sigma: float, count: int, delta: float) -> None:
    got = total(SelfComposedDpEvent(GaussianDpEvent(sigma), count), ADD_REMOVE, delta)
    assert_tight_upper(got, truth.gaussian_epsilon(mp.sqrt(count) / mp.mpf(sigma), delta), 1e-9)
    if (sigma, delta) == (10.0, 1e-16):
        assert got == pytest.approx(8.4520, abs=1e-4)


@pytest.mark.parametrize("epsilon", [4.2, 5.0, 6.0])
def test_tiny_delta_of_sampled_noise(epsilon: float) -> None:
    transform = contour.repeated(contour.poisson_gaussian(1.0, 0.01, removal=True), 1000)
    exact = contour.inverted_delta(transform, epsilon)
    assert exact < 1e-12
    got = PrivacyProfile.gaussian(1.0).subsample_poisson(0.01).self_compose(1000).delta(epsilon)
    assert_tight_upper(got, exact * (1 - 1e-9), 1e-2)


def test_upstream_still_has_no_tiny_delta() -> None:
    assert stock(PLDAccountant(ADD_REMOVE), SelfComposedDpEvent(GaussianDpEvent(10.0), 100), 1e-16) == math.inf


# --- a mixture of directions


@pytest.mark.parametrize("rate", [0.1, 0.3])
@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_directions_may_mix_under_fixed_size_sampling(epsilon0: float, rate: float) -> None:
    """See test_sampling.py for the real mechanism; here the pair of "one of two values among others"."""
    grow = mp.exp(mp.mpf(epsilon0))
    right, wrong = grow / (grow + 2), 1 / (grow + 2)
    q = mp.mpf(rate)
    pair = [(q * right + (1 - q) * wrong, wrong), (wrong, q * right + (1 - q) * wrong)]
    pair.append((1 - pair[0][0] - pair[1][0],) * 2)
    profile = PrivacyProfile.pure(epsilon0).subsample_without_replacement(rate)
    for count in (1, 2, 5):
        for epsilon in (0.0, 0.1, 0.4):
            got = profile.self_compose(count).delta(epsilon)
            assert got >= both_ways(power(pair, count), epsilon)
            assert_tight_upper(
                got, both_ways(power(without_replacement(extremal(epsilon0), rate), count), epsilon), 1e-5, floor=1e-20
            )


# --- DP-SGD against the stock accountant's optimistic and pessimistic sides


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "grid"),
    [
        (1.0, 0.01, 1000, 1e-4),
        (0.4, 0.05, 300, 1e-3),
        pytest.param(0.7, 1e-3, 10**4, 1e-5, marks=pytest.mark.slow),
        pytest.param(0.7, 1e-3, 10**5, 1e-5, marks=pytest.mark.slow),
    ],
)
def test_sampled_noise_between_upstream_brackets(sigma: float, rate: float, count: int, grid: float) -> None:
    def side(pessimistic: bool) -> float:
        loss = privacy_loss_distribution.from_gaussian_mechanism(
            sigma,
            sampling_prob=rate,
            value_discretization_interval=grid,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        return float(loss.self_compose(count).get_epsilon_for_delta(1e-6))

    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count)
    got = total(event, ADD_REMOVE)
    assert side(pessimistic=False) <= got
    assert got <= side(pessimistic=True) * (1 + 1e-4)


# --- upstream has no theorem, ours has


@pytest.mark.parametrize(
    "event",
    [
        SampledWithoutReplacementDpEvent(10, 1, GaussianDpEvent(1.0)),
        SampledWithoutReplacementDpEvent(10, 1, ComposedDpEvent([ApproximateDpEvent(1.0), GaussianDpEvent(1.0)])),
        ComposedDpEvent([ApproximateDpEvent(1.0), GaussianDpEvent(1.0)]),
    ],
    ids=["fixed size", "fixed size of several", "approximate"],
)
def test_events_that_only_we_account(event: DpEvent) -> None:
    assert not PLDAccountant(REPLACE).supports(event)
    assert 0 < total(event, REPLACE) < math.inf
