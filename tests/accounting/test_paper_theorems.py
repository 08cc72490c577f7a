"""The paper's constants and parameter choices, recomputed at 60 digits, and its Lemma 6.12 followed step by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import (
    PAPER_LABEL_BOOST_LOSS,
    UNLABELLED_WIDTH,
    EpsilonDelta,
    PrivacyProfile,
    algorithm_2,
    algorithm_2_records,
    labelled_width,
    paper_activations,
    paper_block,
    reservoir_privacy,
    sharp_block,
    sharp_start,
)

mp.mp.dps = 60

targets = st.tuples(st.floats(min_value=0.01, max_value=1.0), st.floats(min_value=1e-15, max_value=0.5))
components = st.integers(1, 1001)


def denominator(delta: float, k: int) -> mp.mpf:
    return 12 * mp.e**9 * mp.sqrt(k * mp.log(2 / mp.mpf(delta)))


def test_the_constants() -> None:
    assert mp.log(4 * mp.e) <= PAPER_LABEL_BOOST_LOSS <= mp.log(4 * mp.e) + mp.mpf(2) ** -50
    assert mp.log(4) <= UNLABELLED_WIDTH <= mp.log(4) + mp.mpf(2) ** -50
    assert round(labelled_width(1.0), 3) == 1.948
    for epsilon in (0.0, 0.3, 1.0, 5.0):
        truth = 2 * mp.log(1 + mp.exp(mp.mpf(epsilon) / 2))
        assert truth <= labelled_width(epsilon) <= truth + mp.mpf(2) ** -48


def test_blocks_by_the_paper_and_sharper() -> None:
    oracle = EpsilonDelta(4.0, 1e-9)
    paper = paper_block(oracle)
    assert paper.epsilon == pytest.approx(4 + 2 * math.log(4 * math.e))
    assert paper.epsilon < 9  # the proof of Lemma 6.12 needs it
    assert paper.delta == pytest.approx(4 * math.e * 1e-9)
    for sharp in (
        sharp_block(oracle, 1.0),
        sharp_block(oracle, 1.0, star=True),
        sharp_block(oracle, 1.0, last=True),
        sharp_start(oracle, 1.0),
        sharp_start(oracle, 1.0, last=True),
    ):
        assert sharp.epsilon < paper.epsilon
        assert sharp.delta == oracle.delta
    assert sharp_block(oracle, 1.0).epsilon == pytest.approx(4 + 3.334, abs=5e-4)
    assert sharp_start(oracle, 1.0).epsilon == pytest.approx(4 + 3.896, abs=5e-4)
    assert sharp_block(oracle, 1.0, star=True).epsilon == pytest.approx(4 + 1 + math.log(4))
    assert sharp_block(oracle, 1.0, last=True).epsilon == pytest.approx(4 + math.log(4))


def test_sharp_blocks_are_the_largest_loss_of_their_profiles() -> None:
    profile = PrivacyProfile.bounded_range(UNLABELLED_WIDTH).compose(
        PrivacyProfile.approximate(0.5, 1e-8), PrivacyProfile.bounded_range(labelled_width(1.0))
    )
    block = sharp_block(EpsilonDelta(0.5, 1e-8), 1.0)
    assert profile.delta(block.epsilon) == pytest.approx(block.delta, rel=1e-9)
    assert profile.epsilon(1e-8 * (1 + 1e-9)) <= block.epsilon


@pytest.mark.parametrize(("k", "activations"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (1001, 500)])
def test_activations_are_half_the_rounds_rounded_up(k: int, activations: int) -> None:
    assert paper_activations(k) == activations == math.ceil((k - 1) / 2)


@given(targets, components, st.integers(0, 10**12))
def test_the_active_sample_is_the_floor_of_the_formula(target: tuple[float, float], k: int, records: int) -> None:
    epsilon, delta = target
    chosen = algorithm_2(records=records, components=k, epsilon=epsilon, delta=delta)
    assert chosen.active_sample == int(mp.floor(mp.mpf(epsilon) * records / denominator(delta, k)))
    assert chosen.block == records // 3
    assert chosen.oracle.epsilon == 4
    truth = mp.mpf(delta) / (16 * mp.e * k)
    assert truth * (1 - mp.mpf(2) ** -50) <= chosen.oracle.delta <= truth


@given(targets, components, st.integers(1, 10**9))
def test_records_are_the_fewest_for_an_active_sample(target: tuple[float, float], k: int, m: int) -> None:
    epsilon, delta = target
    n = algorithm_2_records(active_sample=m, components=k, epsilon=epsilon, delta=delta)
    assert algorithm_2(records=n, components=k, epsilon=epsilon, delta=delta).active_sample == m
    assert algorithm_2(records=n - 1, components=k, epsilon=epsilon, delta=delta).active_sample == m - 1


@pytest.mark.parametrize(
    ("k", "ratio"), [(2, 523_794), (3, 641_514), (5, 828_190), (11, 1_228_405), (21, 1_697_285), (101, 3_722_253)]
)
def test_records_per_active_record(k: int, ratio: int) -> None:
    n = algorithm_2_records(active_sample=10**6, components=k, epsilon=1.0, delta=1e-6)
    assert round(n / 10**6) == ratio


@given(targets, components, st.integers(1, 10**6))
def test_lemma_6_12(target: tuple[float, float], k: int, m: int) -> None:
    """With the parameters of Algorithm 2, every block is within (epsilon, delta); slack = delta/2 as in the proof."""
    epsilon, delta = target
    n = algorithm_2_records(active_sample=m, components=k, epsilon=epsilon, delta=delta)
    chosen = algorithm_2(records=n, components=k, epsilon=epsilon, delta=delta)
    block, rate = paper_block(chosen.oracle), mp.mpf(chosen.active_sample) / chosen.block
    eta, zeta = mp.log1p(rate * mp.expm1(block.epsilon)), rate * mp.mpf(block.delta)
    rounds, slack = math.ceil((k - 1) / 2), delta / 2
    truth = mp.sqrt(2 * rounds * mp.log(1 / mp.mpf(slack))) * eta + rounds * eta * mp.expm1(eta)
    found = reservoir_privacy(block, rate=float(rate), activations=rounds, slack=slack)
    assert found.epsilon == pytest.approx(float(truth), rel=1e-12)
    assert found.delta == pytest.approx(float(rounds * zeta + mp.mpf(slack)), rel=1e-12)
    assert max(found.epsilon, float(eta)) <= epsilon
    assert max(found.delta, float(zeta)) <= delta


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: algorithm_2(records=-1, components=2, epsilon=1.0, delta=1e-6), "records must be at least 0, got -1"),
        (lambda: algorithm_2(records=9, components=0, epsilon=1.0, delta=1e-6), "components must be at least 1, got 0"),
        (
            lambda: algorithm_2(records=9, components=2, epsilon=1.5, delta=1e-6),
            "epsilon must be in",
        ),
        (lambda: algorithm_2(records=9, components=2, epsilon=1.0, delta=0.0), r"delta must be in \(0, 1\), got 0.0"),
        (lambda: algorithm_2_records(active_sample=0, components=2, epsilon=1.0, delta=0.1), "active_sample must be"),
        (lambda: labelled_width(-1.0), "label_boost_epsilon must be"),
        (lambda: sharp_block(EpsilonDelta(1.0), math.nan), "label_boost_epsilon must be"),
        (lambda: paper_activations(0), "components must be at least 1, got 0"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
