"""Tiny sampled mechanisms, run in full: every subset, every output, in 50-digit arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp

from tests.support.finite import Pair, Real, number

Law = dict[Any, Real]
Mechanism = Callable[[tuple[Any, ...]], Law]


def randomised_answer(question: Callable[[tuple[Any, ...]], int], answers: int, epsilon: float) -> Mechanism:
    """k-ary randomised response to a question about the whole sample: epsilon-DP whatever the question."""

    def law(sample: tuple[Any, ...]) -> Law:
        grow = mp.exp(number(epsilon))
        true = question(sample)
        return {answer: (grow if answer == true else 1) / (grow + answers - 1) for answer in range(answers)}

    return law


def exponential_choice(values: int, epsilon: float) -> Mechanism:
    """One value, chosen with weight exp(epsilon count / 2): epsilon-DP when a record is replaced, added or removed."""

    def law(sample: tuple[Any, ...]) -> Law:
        weights = {value: mp.exp(number(epsilon) * sample.count(value) / 2) for value in range(values)}
        return {value: weight / mp.fsum(weights.values()) for value, weight in weights.items()}

    return law


def leaky(mechanism: Mechanism, delta: float) -> Mechanism:
    """The whole sample with probability delta, else `mechanism`: (epsilon, delta)-DP when it is epsilon-DP."""

    def law(sample: tuple[Any, ...]) -> Law:
        inner = {("noised", output): (1 - number(delta)) * p for output, p in mechanism(sample).items()}
        return {**inner, ("leaked", *sorted(sample)): number(delta)}

    return law


def fixed_size(mechanism: Mechanism, size: int) -> Mechanism:
    """`mechanism` on a uniform subset of `size` records."""

    def law(dataset: tuple[Any, ...]) -> Law:
        subsets = list(itertools.combinations(dataset, size))
        return _mixture([(mp.mpf(1) / len(subsets), mechanism(subset)) for subset in subsets])

    return law


def poisson(mechanism: Mechanism, rate: float) -> Mechanism:
    """`mechanism` on the records that are kept, each independently with probability `rate`."""

    def law(dataset: tuple[Any, ...]) -> Law:
        keep = number(rate)
        parts = []
        for kept in itertools.product((False, True), repeat=len(dataset)):
            chance = mp.fprod(keep if each else 1 - keep for each in kept)
            parts.append((chance, mechanism(tuple(itertools.compress(dataset, kept)))))
        return _mixture(parts)

    return law


def pair(mechanism: Mechanism, dataset: Sequence[Any], neighbour: Sequence[Any]) -> Pair:
    """The laws on two datasets."""
    first, second = mechanism(tuple(dataset)), mechanism(tuple(neighbour))
    outcomes = dict.fromkeys([*first, *second])
    return [(first.get(o, mp.mpf(0)), second.get(o, mp.mpf(0))) for o in outcomes]


def _mixture(parts: list[tuple[Real, Law]]) -> Law:
    total: Law = {}
    for chance, law in parts:
        for output, p in law.items():
            total[output] = total.get(output, mp.mpf(0)) + chance * p
    return total
