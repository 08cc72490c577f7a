"""Accounting against dp-accounting's own PLD accountant on the same job, and against closed forms."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator

import numpy as np
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, ProfileAccountant, Relation
from accounting.convolution import composed_pair
from accounting.profiles import _composer
from tests.benchmarks.table import Row, Section, seconds

_ADD_REMOVE, _REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


def _forget() -> None:
    """Empty the caches, so that a repeat measures the work and not the memory of it."""
    for cache in (_composer, composed_pair):
        cache.cache_clear()


def _ours(event: DpEvent, relation: Relation, delta: float) -> float:
    _forget()
    return ProfileAccountant(relation).compose(event).get_epsilon(delta)


def _stock(event: DpEvent, relation: Relation, delta: float) -> float:
    return float(PLDAccountant(relation).compose(event).get_epsilon(delta))


def _equal_charges() -> Row:
    event = SelfComposedDpEvent(ApproximateDpEvent(0.01, 1e-10), 10_000)
    took, epsilon = seconds(lambda: _ours(event, _REPLACE, 1e-5))
    return Row(
        "10^4 equal (epsilon, delta) charges",
        f"{took:.3f} s (epsilon {epsilon:.6g})",
        "no stock event",
        "-",
        "under 0.1 s",
        took < 0.1,
    )


def _distinct_gaussians() -> Row:
    event = ComposedDpEvent(
        [
            PoissonSampledDpEvent(float(q), GaussianDpEvent(float(s)))
            for q, s in zip(np.linspace(0.005, 0.02, 200), np.linspace(0.8, 2.0, 200), strict=True)
        ]
    )
    took, epsilon = seconds(lambda: _ours(event, _ADD_REMOVE, 1e-6))
    stock_took, stock = seconds(lambda: _stock(event, _ADD_REMOVE, 1e-6), repeats=1)
    ratio = took / stock_took
    return Row(
        "200 distinct Poisson-sampled Gaussians",
        f"{took:.2f} s (epsilon {epsilon:.7g})",
        f"{stock_took:.1f} s (epsilon {stock:.7g})",
        f"1/{1 / ratio:.0f} of the time",
        "1/20, no looser",
        ratio <= 1 / 20 and epsilon <= stock,
    )


def _sgd(steps: int) -> Row:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.001, GaussianDpEvent(0.7)), steps)
    took, epsilon = seconds(lambda: _ours(event, _ADD_REMOVE, 1e-6))
    stock_took, stock = seconds(lambda: _stock(event, _ADD_REMOVE, 1e-6), repeats=1)
    return Row(
        f"DP-SGD, q .001, sigma .7, {steps} steps",
        f"{epsilon:.7g} ({took:.2f} s)",
        f"{stock:.7g} ({stock_took:.2f} s)",
        f"{epsilon / stock:.6f} of epsilon",
        "no looser",
        epsilon <= stock,
    )


def _macro_blocks() -> Row:
    block = ComposedDpEvent(
        [BoundedRangeDpEvent(math.log(4)), ApproximateDpEvent(1.0, 1e-10), BoundedRangeDpEvent(1.9482)]
    )
    event = SelfComposedDpEvent(SampledWithoutReplacementDpEvent(100_000, 100, block), 1000)
    took, epsilon = seconds(lambda: _ours(event, _REPLACE, 1e-6))
    return Row(
        "1000 macro-block activations",
        f"{took:.2f} s (epsilon {epsilon:.6g})",
        "no stock event",
        "-",
        "under 1 s",
        took < 1.0,
    )


def _tiny_delta() -> Row:
    event = SelfComposedDpEvent(GaussianDpEvent(10.0), 100)
    exact = 8.4519462695820950
    epsilon = _ours(event, _ADD_REMOVE, 1e-16)
    stock = _stock(event, _ADD_REMOVE, 1e-16)
    return Row(
        "Gaussian(10) x 100 at delta 1e-16",
        f"{epsilon:.10g}",
        f"exact {exact:.10g}, stock {stock:.6g}",
        f"{epsilon / exact:.9f} of exact",
        "exact to 1e-9",
        1.0 <= epsilon / exact * (1 + 1e-12) <= 1 + 1e-9,
    )


def _memory() -> Row:
    """The largest single array, seen by the allocator's trace (numpy reports its buffers to it)."""
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.001, GaussianDpEvent(0.7)), 100_000)
    _forget()
    tracemalloc.start()
    ProfileAccountant(_ADD_REMOVE).compose(event).get_epsilon(1e-6)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return Row("memory, 10^5 steps of DP-SGD", f"{peak:.0f} MiB at the peak, all arrays together", "-", "-", "-", True)


def rows() -> Iterator[Row]:
    yield _equal_charges()
    yield _distinct_gaussians()
    yield _sgd(10_000)
    yield _sgd(100_000)
    yield _macro_blocks()
    yield _tiny_delta()
    yield _memory()


SECTION = Section(
    "Accounting",
    "The peer is dp-accounting's PLDAccountant with its default grid of 1e-4. All epsilons are upper bounds.",
    rows,
)
