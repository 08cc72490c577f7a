"""An atom at a pair's largest loss survives rounding: it is neither dropped nor sent to an infinite loss.

Its place is computed in one direction and compared with edges computed in the other, so it may come out one unit above
its own edge; for sampled pure mechanisms that atom is a large part of the mass.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting import EpsilonDelta, PrivacyProfile, amplify, optimal_composition_epsilon
from accounting.pairs import GridPair, Lattice, discretise, node_over


@settings(max_examples=50)
@given(st.floats(0.05, 3.0), st.floats(0.001, 0.9), st.integers(2, 60), st.integers(1, 3))
def test_sampled_pure_steps_are_between_their_curve_at_0_and_their_pairs(
    epsilon: float, rate: float, count: int, inner: int
) -> None:
    base = PrivacyProfile.pure(epsilon / inner).self_compose(inner)
    total = base.subsample_without_replacement(rate).self_compose(count)
    once = base.subsample_without_replacement(rate)
    # More uses reveal more, and the extremal pure mechanism of the summed epsilon reveals more still.
    assert once.delta(0.0) * (1 - 1e-9) <= total.delta(0.0) <= 1.0
    best = optimal_composition_epsilon(amplify(EpsilonDelta(epsilon * (1 + 1e-9)), rate), count, 1e-6)
    assert total.epsilon(1e-6) <= best * (1 + 1e-5) + 1e-9
    if inner == 1 and once.delta(0.0) > 1e-3:
        assert total.epsilon(1e-6) > 0


@pytest.mark.parametrize("seed", range(20))
def test_no_mass_turns_infinite_on_a_lattice_that_holds_the_losses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    top, nodes = float(rng.uniform(0.01, 3.0)), int(rng.integers(2, 500))
    masses = np.zeros(2 * nodes + 1)
    masses[0], masses[-1] = 1 / (1 + np.exp(top)), 1 / (1 + np.exp(-top))
    grid = GridPair(Lattice(top / nodes, np.arange(-nodes, nodes + 1), masses, 0.0))
    for step in (top / nodes, top / (3 * nodes), top / 7):
        assert discretise(grid, step, 1e-30).infinite == 0.0
        assert step * node_over(grid.max_loss, step) > grid.max_loss
