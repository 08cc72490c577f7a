"""Partition, sampling and amplified access: laws by enumeration of samples, and why the order must be random."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting import SampledWithoutReplacementDpEvent
from hypothesis import given
from hypothesis import strategies as st

from accounting import Claim, Relation
from mechanisms import (
    AmplifiedReservoir,
    RandomizedResponse,
    ReplaceOne,
    paper_amplification,
    partition,
    sample_records,
)
from mechanisms.reservoirs import selections
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6
LN3 = math.log(3)
CLAIM = Claim.pure(LN3, relation=Relation.REPLACE_ONE, source="test")


class FirstRecord:
    """Order-sensitive: a fair coin on the rest, the first bit kept three times out of four."""

    ignores_order = False

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator | None) -> int:
        assert rng is not None
        return int(dataset[0]) ^ int(rng.random() < 0.25)

    def distribution(self, dataset: Sequence[int]) -> Mapping[int, Fraction]:
        return {dataset[0]: Fraction(3, 4), 1 - dataset[0]: Fraction(1, 4)}


class AnyRecord:
    """Ignores order: whether a one is there, told truly three times out of four."""

    ignores_order = True

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator | None) -> int:
        assert rng is not None
        return int(1 in dataset) ^ int(rng.random() < 0.25)

    def distribution(self, dataset: Sequence[int]) -> Mapping[int, Fraction]:
        return FirstRecord().distribution([int(1 in dataset)])


def amplified(mechanism: Any, size: int, sample: int, claim: Claim = CLAIM) -> AmplifiedReservoir:
    return AmplifiedReservoir(mechanism, reservoir_size=size, sample_size=sample, claim=claim)


def by_definition(mechanism: Any, reservoir: Sequence[int], count: int) -> dict[int, Fraction]:
    """Average over every ordered selection of positions."""
    mass: defaultdict[int, Fraction] = defaultdict(Fraction)
    orders = list(itertools.permutations(range(len(reservoir)), count))
    for order in orders:
        for outcome, probability in mechanism.distribution([reservoir[i] for i in order]).items():
            mass[outcome] += probability / len(orders)
    return dict(mass)


@given(st.integers(0, 30), st.lists(st.integers(0, 9), max_size=4), st.integers(0, 2**32))
def test_partition_is_disjoint_and_of_the_sizes_asked_for(spare: int, sizes: list[int], seed: int) -> None:
    size = sum(sizes) + spare
    names = [f"block {i}" for i in range(len(sizes))]
    blocks = partition(size, dict(zip(names, sizes, strict=True)), rng=np.random.default_rng(seed))
    assert [len(blocks[name]) for name in names] == sizes
    indices = [index for block in blocks.values() for index in block]
    assert len(set(indices)) == len(indices) == sum(sizes)
    assert all(0 <= index < size for index in indices)


def test_partition_puts_every_index_anywhere() -> None:
    rng = np.random.default_rng(41)
    drawn = [tuple(sorted(partition(4, {"a": 2, "b": 1}, rng=rng)["a"])) for _ in range(6000)]
    law = dict.fromkeys(itertools.combinations(range(4), 2), Fraction(1, 6))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value([(0, 1) if pair == (2, 3) else pair for pair in drawn], law) < FALSE_ALARM
    assert sorted(partition(5, {"all": 5}, rng=None)["all"]) == list(range(5))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.data())
def test_selections_are_all_the_samples(reservoir: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(reservoir)))
    ordered = dict(selections(reservoir, count, ordered=True))
    assert sum(ordered.values()) == math.perm(len(reservoir), count)
    every = list(itertools.permutations(range(len(reservoir)), count))
    for sample, times in ordered.items():
        assert times == sum(tuple(reservoir[i] for i in order) == sample for order in every)
    unordered = selections(reservoir, count, ordered=False)
    assert len({tuple(sorted(sample)) for sample, _ in unordered}) == len(unordered)
    for sample, times in unordered:
        same = [t for s, t in ordered.items() if sorted(s) == sorted(sample)]
        assert times * math.factorial(count) == sum(same)


@pytest.mark.parametrize("mechanism", [FirstRecord(), AnyRecord()])
@given(st.lists(st.integers(0, 1), min_size=2, max_size=5), st.data())
def test_distribution_averages_over_positions(mechanism: Any, reservoir: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(reservoir)))
    law = amplified(mechanism, len(reservoir), count).distribution(reservoir)
    assert law == by_definition(mechanism, reservoir, count)


def test_releases_have_the_law() -> None:
    mechanism = amplified(RandomizedResponse((0, 1), LN3), 4, 2)
    reservoir = (0, 0, 1, 1)
    law = mechanism.distribution(reservoir)
    assert sum(law.values()) == 1
    drawn = mechanism.release_many(reservoir, 20_000, rng=np.random.default_rng(42))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    rng = np.random.default_rng(43)
    one_by_one = [mechanism.release(reservoir, rng=rng) for _ in range(3000)]
    assert p_value(one_by_one, law) > FALSE_ALARM
    assert p_value(one_by_one, mechanism.distribution((0, 0, 0, 1))) < FALSE_ALARM
    for released in (drawn, one_by_one):  # (0, 1) and (1, 0) are equally likely only when the sample is shuffled
        assert p_value([outcome for outcome in released if sum(outcome) == 1], {(0, 1): 0.5, (1, 0): 0.5}) > FALSE_ALARM


def test_amplification_holds_and_is_attained() -> None:
    """ln(1 + q (e^eps - 1)) bounds every pair, and one order-sensitive mechanism reaches it."""
    size, count = 5, 2
    bound = 1 + Fraction(count, size) * (3 - 1)
    worst = Fraction(1)
    response = RandomizedResponse((0, 1), LN3)
    assert response.ratio <= 3
    for mechanism in (FirstRecord(), AnyRecord(), response):
        access = amplified(mechanism, size, count)
        for one, other in ReplaceOne((0, 1), size).pairs(ignore_order=True):
            p, q = access.distribution(one), access.distribution(other)
            worst = max(worst, *(max(Fraction(p[o]) / Fraction(q[o]), Fraction(q[o]) / Fraction(p[o])) for o in p))
    assert bound * Fraction(99, 100) < worst <= bound
    epsilon, delta = paper_amplification(LN3, 0.5, reservoir_size=size, sample_size=count)
    assert epsilon == pytest.approx(math.log(float(bound)))
    assert delta == pytest.approx(0.2)


def test_reservoir_order_would_break_it() -> None:
    """Counterexample to sampling in reservoir order: two of three records, randomized response at ln 3, (0,0,1) to
    (1,0,1).
    """

    def in_order(reservoir: Sequence[int]) -> Fraction:
        """Probability of the output (1, 0)."""
        keep, flip = Fraction(3, 4), Fraction(1, 4)
        samples = list(itertools.combinations(reservoir, 2))
        return sum(((keep if a else flip) * (flip if b else keep) for a, b in samples), Fraction(0)) / 3

    bound = 1 + Fraction(2, 3) * (3 - 1)
    assert in_order((1, 0, 1)) / in_order((0, 0, 1)) == Fraction(13, 5) > bound
    shuffled = amplified(RandomizedResponse((0, 1), LN3), 3, 2)
    assert not shuffled.mechanism.ignores_order
    for one, other in ReplaceOne((0, 1), 3).pairs():
        p, q = shuffled.distribution(one), shuffled.distribution(other)
        assert all(Fraction(p[o]) <= bound * Fraction(q[o]) and Fraction(q[o]) <= bound * Fraction(p[o]) for o in p)


def test_claim_names_the_sampling() -> None:
    claim = amplified(FirstRecord(), 10, 3).claim
    assert claim.event == SampledWithoutReplacementDpEvent(10, 3, CLAIM.event)
    assert claim.relation is Relation.REPLACE_ONE
    assert "Theorem 9" in claim.source
    assert claim.epsilon(0.0) == pytest.approx(math.log(1 + 0.3 * 2))


def test_a_mechanism_without_a_law_stays_without() -> None:
    class Blind:
        def release(self, dataset: Sequence[int], *, rng: np.random.Generator | None) -> int:
            return dataset[0]

    access = amplified(Blind(), 3, 1)
    assert not access.has_distribution
    assert access.release((4, 4, 4), rng=None) == 4


def test_sample_records_keeps_repetitions() -> None:
    rng = np.random.default_rng(44)
    drawn = [sample_records("aab", 2, rng=rng) for _ in range(6000)]
    law = {("a", "a"): Fraction(1, 3), ("a", "b"): Fraction(1, 3), ("b", "a"): Fraction(1, 3)}
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, {("a", "a"): 0.2, ("a", "b"): 0.4, ("b", "a"): 0.4}) < FALSE_ALARM


PROMISED = Claim.pure(1.0, relation=Relation.REPLACE_ONE, source="test", promise="sorted")
ADDED = Claim.pure(1.0, relation=Relation.ADD_OR_REMOVE_ONE, source="test")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: partition(3, {"a": 2, "b": 2}, rng=None), "blocks must hold at most size = 3 records, got 4"),
        (lambda: partition(3, {"a": -1}, rng=None), r"blocks\['a'\] must be at least 0"),
        (lambda: partition(3, {"": 1}, rng=None), "the name of a block must not be empty"),
        (lambda: partition(3, {"a": 1}, rng=1), "rng must be"),  # type: ignore[arg-type]
        (lambda: sample_records("ab", 3, rng=None), r"count must be in \[0, 2\], got 3"),
        (lambda: amplified(FirstRecord(), 3, 4), r"sample_size must be in \[1, 3\], got 4"),
        (lambda: amplified(FirstRecord(), 0, 1), "reservoir_size must be at least 1"),
        (lambda: amplified(FirstRecord(), 3, 1, PROMISED), "promised: sorted"),
        (lambda: amplified(FirstRecord(), 3, 1, ADDED), "claim must be under replace-one, got add-remove"),
        (lambda: amplified(FirstRecord(), 3, 1).release((1, 0), rng=None), "reservoir_size = 3 records, got 2"),
        (lambda: amplified(FirstRecord(), 3, 1).distribution((1,)), "reservoir_size = 3 records, got 1"),
        (lambda: selections(range(60), 30, ordered=False), "an exact law needs at most"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
