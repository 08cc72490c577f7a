"""The sequential test of one pair: what it accepts, what it reports, and that it is one process however it is fed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audits.canonical import UncountableError
from audits.pairwise import LowerBound, PairEvidence, epsilon_grid
from audits.power import detectable_epsilon
from audits.sequential import SequentialTest
from tests.support.samplers import batch_sizes, draw_from, pairs_to_refute, randomized_response


def fed(epsilon: float, seed: int, *, true: float, pairs: int, alpha: float = 0.05) -> SequentialTest:
    test = SequentialTest(epsilon, 0.0, alpha=alpha)
    draw = draw_from(randomized_response(true), np.random.default_rng(seed))
    for size in batch_sizes(pairs, 1 / 8):
        test.update(*draw(size))
    return test


def test_before_any_run_nothing_is_known() -> None:
    test = SequentialTest(1.0, 0.0, alpha=0.05)
    assert test.runs == 0
    assert test.log_wealth == 0.0
    assert not test.refuted
    assert test.epsilon_lower == 0.0
    assert test.epsilon_detectable == math.inf
    assert test.witness_event is None
    test.update([], [])
    assert test.runs == 0


def test_a_violation_is_refuted_with_its_event() -> None:
    test = SequentialTest(1.0, 0.0, alpha=0.01)
    pairs = pairs_to_refute(test, draw_from(randomized_response(3.0), np.random.default_rng(1)), 500)
    assert pairs < 60
    assert test.log_wealth >= math.log(100.0)
    assert test.epsilon_lower >= 1.0
    event = test.witness_event
    assert event is not None
    assert event.text in ("outcome in {0}", "outcome in {1}")
    assert event.runs == test.runs == pairs
    frequencies = (event.first, event.second) if event.on_first else (event.second, event.first)
    assert frequencies[0] > 2.7 * frequencies[1]


def test_a_true_claim_stands_and_the_bound_comes_near_the_truth() -> None:
    test = fed(1.0, seed=2, true=1.0, pairs=20_000)
    assert not test.refuted
    assert 0.9 <= test.epsilon_lower < 1.0
    assert 1.0 < test.epsilon_detectable < 1.1
    assert fed(1.0, seed=2, true=0.0, pairs=2000).epsilon_lower == 0.0


def test_both_directions_are_tested() -> None:
    laws = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    for pair in (laws, laws[::-1]):
        test = SequentialTest(1.0, 0.0, alpha=0.05)
        assert pairs_to_refute(test, draw_from((pair[0], pair[1]), np.random.default_rng(3)), 2000) < 2000


def test_a_support_difference_is_refuted_at_every_epsilon_in_the_end() -> None:
    """What happens on one side only needs no special treatment: the wealth on it grows at every epsilon."""
    test = SequentialTest(2.0, 0.0, alpha=0.05)
    draw = draw_from((np.array([0.8, 0.2]), np.array([1.0, 0.0])), np.random.default_rng(4))
    for size in batch_sizes(3000, 1 / 8):
        test.update(*draw(size))
    assert test.refuted
    assert test.epsilon_lower >= 4.0


def test_outcomes_of_any_kind() -> None:
    rng = np.random.default_rng(5)

    def outcome(leaks: bool) -> object:
        kinds: list[object] = [None, math.nan, "text", (1, "a"), 3, 2.5, [1, 2], {"k": 1}]
        return kinds[int(rng.integers(4))] if leaks else kinds[int(rng.integers(8))]

    test = SequentialTest(0.4, 0.0, alpha=0.05)
    for size in batch_sizes(400, 1 / 8):
        test.update([outcome(True) for _ in range(size)], [outcome(False) for _ in range(size)])
    assert test.refuted


def test_continuous_outcomes_are_cut_into_few_categories() -> None:
    rng = np.random.default_rng(6)
    test = SequentialTest(0.5, 0.0, alpha=0.05)
    assert pairs_to_refute(test, lambda n: (rng.laplace(0.0, 1.0, n), rng.laplace(1.0, 1.0, n)), 4000) < 1000
    assert test.witness_event is not None
    assert "outcome" in test.witness_event.text
    fair = SequentialTest(1.0, 0.0, alpha=0.05)
    assert pairs_to_refute(fair, lambda n: (rng.laplace(0.0, 1.0, n), rng.laplace(1.0, 1.0, n)), 4000) == math.inf
    assert fair.epsilon_lower > 0.6


def test_vectors_are_scored() -> None:
    rng = np.random.default_rng(7)
    test = SequentialTest(0.5, 0.0, alpha=0.05)
    shift = np.array([0.0, 0.0, 1.0, 0.0])
    draw = lambda n: (rng.laplace(0.0, 1.0, (n, 4)), rng.laplace(0.0, 1.0, (n, 4)) + shift)  # noqa: E731
    assert pairs_to_refute(test, draw, 6000) < 2000
    assert test.witness_event is not None
    assert "score" in test.witness_event.text


def test_numbers_beside_outcomes_that_are_none() -> None:
    """A continuous count that is withheld in a tenth of the runs on one side only."""
    rng = np.random.default_rng(8)

    def counts(size: int, withheld: float) -> list[object]:
        return [None if rng.random() < withheld else rng.laplace() for _ in range(size)]

    test = SequentialTest(1.0, 0.0, alpha=0.05)
    for size in batch_sizes(1500, 1 / 8):
        test.update(counts(size, 0.1), counts(size, 0.0))
    assert test.refuted
    assert test.witness_event is not None
    assert test.witness_event.text in ("outcome in {None}", "outcome is not a real number")


def test_wrong_updates_leave_the_test_as_it_was() -> None:
    test = fed(1.0, seed=9, true=2.0, pairs=10)
    before = test.log_wealth, test.runs
    with pytest.raises(ValueError, match="equally long, got 2 and 1"):
        test.update([1, 2], [1])
    with pytest.raises(UncountableError):
        test.update([1, object()], [1, 2])
    assert (test.log_wealth, test.runs) == before


def test_wrong_arguments_are_refused() -> None:
    for arguments, name in (((-1.0, 0.0, 0.05), "epsilon"), ((1.0, 2.0, 0.05), "delta"), ((1.0, 0.0, 1.0), "alpha")):
        epsilon, delta, alpha = arguments
        with pytest.raises(ValueError, match=name):
            SequentialTest(epsilon, delta, alpha=alpha)
    with pytest.raises(TypeError):
        SequentialTest(1.0, 0.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.0, 0.1), (1e-9, 0.0), (29.0, 0.0), (700.0, 1e-5), (1.0, 1.0)]
)
def test_extreme_claims(epsilon: float, delta: float) -> None:
    test = SequentialTest(epsilon, delta, alpha=0.05)
    draw = draw_from((np.array([0.95, 0.05]), np.array([0.0, 1.0])), np.random.default_rng(10))
    for size in batch_sizes(200, 1 / 8):
        test.update(*draw(size))
    assert math.isfinite(test.log_wealth)
    assert test.refuted == (epsilon < 1.0)


def test_the_lower_bound_needs_every_smaller_epsilon_refuted() -> None:
    bound = LowerBound(np.array([0.0, 0.5, 1.0, 2.0]), alpha=0.05)
    bound.update(np.array([3.1, 2.0, 9.0, 0.0]))
    assert bound.value == 0.0
    assert not bound.refutes(1.0)
    bound.update(np.array([0.0, 3.0, 0.0, 0.0]))
    assert bound.value == 1.0
    assert bound.refutes(1.0)
    assert not bound.refutes(2.0)
    assert bound.active.tolist() == [False, False, False, True]


def test_the_grid_holds_the_claim_and_brackets_it() -> None:
    for epsilon in (0.0, 0.1, 1.0, 8.0):
        grid = epsilon_grid(epsilon)
        assert epsilon in grid
        assert np.all(np.diff(grid) > 0.0)
        assert grid[0] == 0.0
        assert grid[-1] >= 2.0 * epsilon + 0.9


def test_wealth_falls_with_the_claimed_epsilon() -> None:
    evidence = PairEvidence(np.linspace(0.0, 3.0, 31), 0.0)
    draw = draw_from(randomized_response(2.0), np.random.default_rng(11))
    for size in batch_sizes(3000, 1 / 8):
        evidence.update(*draw(size))
    assert np.all(np.diff(evidence.log_wealth) < 1.0)
    assert evidence.log_wealth[0] > 100.0
    assert evidence.log_wealth[-1] < 0.5


def test_detectable_epsilon() -> None:
    def found(mass: float, runs: int, delta: float = 0.0) -> float:
        return detectable_epsilon(mass, runs, epsilon=1.0, delta=delta, log_level=math.log(20.0))

    assert found(1.0, 0) == found(1.0, 3) == found(0.0, 10**6) == found(2.0, 10**6) == math.inf
    assert found(0.01, 10**4, delta=0.02) == math.inf
    # More runs, a more even event, a laxer level: smaller violations.
    assert 1.0 < found(1.0, 10**5) < found(1.0, 10**4) < found(1.0, 10**3) < 2.0
    assert found(1.0, 10**4) < found(0.3, 10**4) < found(0.03, 10**4)
    assert found(0.3, 10**4) == pytest.approx(found(1.7, 10**4))
    assert found(0.3, 10**4) < found(0.3, 10**4, delta=0.05)


def test_what_is_called_detectable_is_detected() -> None:
    """Randomized response at `epsilon_detectable` must be refuted in 95 % of the tests: of 40, at least 33.

    With power 0.95 fewer have probability 2e-4. Control: halfway to the claim most tests fail.
    """
    pairs, runs = 200, 40
    detectable = detectable_epsilon(1.0, pairs, epsilon=1.0, delta=0.0, log_level=math.log(20.0))
    refuted = {
        true: sum(fed(1.0, seed, true=true, pairs=pairs).refuted for seed in range(runs))
        for true in (detectable, (1.0 + detectable) / 2.0)
    }
    assert refuted[detectable] >= 33
    assert refuted[(1.0 + detectable) / 2.0] < 33
