"""Quasi-concave optimisers against their definitions, their privacy on all small objectives, and their promise."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting import ApproximateDpEvent, PrivacyProfile
from audits import Status
from audits.exact import audit_exact
from mechanisms import (
    NotRealizableError,
    QuasiConcaveTreeChoose,
    StepFunction,
    StepSelection,
    TotalExtension,
    as_mechanism,
    counterexamples,
    rational_base,
    threshold_agreement,
)
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6

Values = tuple[int, ...]


class Stated(tuple[Any, ...]):
    """A dataset whose objective is stated: it says how many records it stands for and carries the values of Q."""

    values: Values
    records: int

    @classmethod
    def of(cls, values: Values, records: int) -> Stated:
        stated = cls()
        stated.values, stated.records = values, records
        return stated

    def __len__(self) -> int:
        return self.records


class Constant:
    """An objective that does not look at the data."""

    def __init__(self, objective: StepFunction) -> None:
        self.objective = objective

    def __call__(self, dataset: Any) -> StepFunction:
        return self.objective


def stated(dataset: Any) -> StepFunction:
    return StepFunction.from_values(dataset.values)


def quasi_concave_functions(size: int, top: int) -> list[Values]:
    return [
        values
        for values in itertools.product(range(top + 1), repeat=size)
        if max(values) == top and all(values[j] >= min(max(values[: j + 1]), max(values[j:])) for j in range(size))
    ]


def by_definition(mechanism: QuasiConcaveTreeChoose, values: Values) -> dict[int, Fraction]:
    """The law from every node of the tree, one by one."""
    m, depth, last = max(values), mechanism.depth, len(values) - 1
    t = m - (mechanism.loss + 1)
    padded = [values[min(p, last)] for p in range(1 << depth)]
    weights: defaultdict[int, Fraction] = defaultdict(Fraction, {0: Fraction(mechanism.default_weight)})
    for level in range(depth + 1):
        width = 1 << (depth - level)
        for left in range(0, 1 << depth, width):
            neighbours = [padded[p] for p in (left - 1, left + width) if 0 <= p < len(padded)]
            room = math.inf if not neighbours else m - 1 - max(neighbours)
            if room < 1 or max(padded[left : left + width]) != m:
                continue
            middle = left + width // 2
            for p in {middle, middle - 1} if width > 1 else {left}:
                exponent = max(padded[p] - t, 0)
                if neighbours:
                    exponent = min(exponent, int(room) - mechanism.threshold)
                weights[min(p, last)] += mechanism.base**exponent
    total = sum(weights.values())
    return {p: weight / total for p, weight in weights.items()}


# beta near 1 makes e = 1, so that T = m - h - 2 lies inside the range of so small an m.
@pytest.mark.parametrize(
    ("size", "top", "epsilon", "delta", "beta"),
    [
        (1, 2, 1, 0.2, 0.1),
        (2, 5, 2, 0.4, 0.99),
        (3, 5, 4, 0.3, 0.99),
        (4, 5, 2, 0.4, 0.99),
        (4, 4, 4, 0.3, 0.99),
        (5, 4, 4, 0.6, 0.99),
        (8, 3, 1, 0.3, 0.2),
    ],
)
def test_laws_and_privacy_on_all_quasi_concave_pairs(
    size: int, top: int, epsilon: float, delta: float, beta: float
) -> None:
    """All quasi-concave Q with this maximum, all pairs at sup distance 1: the divergence is at most the exact delta."""
    mechanism = QuasiConcaveTreeChoose(stated, size, epsilon, delta, beta)
    functions = quasi_concave_functions(size, top)[:: 1 + (size == 8) * 4]
    laws = {values: dict(mechanism.distribution(Stated.of(values, top))) for values in functions}
    assert all(law == by_definition(mechanism, values) for values, law in laws.items())
    # Floats for speed; the margin below covers their rounding many times over.
    factor, worst = float(mechanism.base**2), 0.0
    floats = [(values, {p: float(x) for p, x in law.items()}) for values, law in laws.items()]
    for (q, p_law), (q2, p2_law) in itertools.permutations(floats, 2):
        if max(abs(a - b) for a, b in zip(q, q2, strict=True)) == 1:
            worst = max(worst, sum(max(0.0, x - factor * p2_law.get(p, 0.0)) for p, x in p_law.items()))
    assert worst <= float(mechanism.delta) * (1 + 1e-9)
    births = 2 * mechanism.depth - 1  # two candidates on each level but the root's, one leaf
    assert mechanism.delta == births * mechanism.base ** (1 - mechanism.threshold) / mechanism.default_weight
    assert mechanism.delta <= min(Fraction(delta), mechanism.base - 1)
    event = mechanism.claim.event
    assert isinstance(event, ApproximateDpEvent)
    assert mechanism.delta <= Fraction(event.delta)


def test_the_births_use_a_fair_part_of_delta() -> None:
    """Control of the test above: on some pair of neighbours the divergence is at least a tenth of delta."""
    mechanism = QuasiConcaveTreeChoose(stated, 4, 2, 0.4, 0.99)
    laws = {values: mechanism.distribution(Stated.of(values, 5)) for values in quasi_concave_functions(4, 5)}
    factor, worst = mechanism.base**2, Fraction(0)
    for (q, p_law), (q2, p2_law) in itertools.permutations(laws.items(), 2):
        if max(abs(a - b) for a, b in zip(q, q2, strict=True)) == 1:
            excess = (x - factor * p2_law.get(p, 0) for p, x in p_law.items())
            worst = max(worst, sum((e for e in excess if e > 0), Fraction(0)))
    assert worst > mechanism.delta / 10


@pytest.mark.parametrize("bits", [10, 39, 64, 1000])
def test_losses_are_those_of_the_specification(bits: int) -> None:
    """Section B2: epsilon = 1, delta = 1e-6, beta = 0.05; ours are at most one unit better in each case."""
    pure, tree = {10: (20, 56), 39: (60, 61), 64: (95, 62), 1000: (1393, 74)}[bits]
    pure_loss = StepSelection(stated, 1 << bits, 1).loss_bound(0.05)
    tree_loss = QuasiConcaveTreeChoose(stated, 1 << bits, 1, 1e-6, 0.05).loss
    assert pure - 1 <= pure_loss <= pure
    assert tree - 1 <= tree_loss <= tree


@pytest.mark.parametrize("bits", [6, 40])
def test_the_loss_holds_on_hard_objectives(bits: int) -> None:
    """Slopes of every width around peaks of every kind: the exact chance of a larger loss is at most beta."""
    size, beta = 1 << bits, 0.05
    records = 200
    for peak in (0, 1, size // 3, size // 2 - 1, size // 2, size - 1):
        for pace in (0, 1, 3, size // 300 + 1):
            levels = [
                (max(0, peak - (records - s) * pace), min(size - 1, peak + (records - s) * pace))
                for s in range(1, records + 1)
            ]
            objective = StepFunction.from_levels(size, levels)
            for privacy in ((1, 1e-6), (4, 1e-3)):
                mechanism = QuasiConcaveTreeChoose(Constant(objective), size, *privacy, beta)
                law = mechanism.distribution((0,) * records)
                bad = sum(p for rank, p in law.items() if objective.value(rank) < records - mechanism.loss)
                assert bad <= Fraction(beta)


def test_step_selection_is_the_exponential_mechanism_on_any_objective() -> None:
    for values in itertools.product(range(3), repeat=4):
        mechanism = StepSelection(stated, 4, 0.7)
        base = rational_base(0.7)
        law = mechanism.distribution(Stated.of(values, 2))
        assert law == {p: base**q / sum(base**v for v in values) for p, q in enumerate(values)}


def test_step_selection_loses_what_it_may_and_no_less() -> None:
    """The worst objective is one peak; at the bound it exceeds beta by less than one unit of loss."""
    for size, epsilon, beta in itertools.product((2, 30, 1000), (0.5, 3), (0.3, 0.01)):
        bound = StepSelection(stated, size, epsilon).loss_bound(beta)
        base = rational_base(epsilon)
        assert (size - 1) / (size - 1 + base ** (bound + 1)) <= beta
        assert bound == 0 or (size - 1) / (size - 1 + base**bound) > beta


def test_draws_have_the_law() -> None:
    """20000 draws each; false alarm 1e-6, and the shifted law is rejected."""
    sample = ((0, 0), (2, 0), (6, 1), (7, 1), (9, 1))

    def quality(dataset: Sequence[tuple[int, int]]) -> StepFunction:
        return threshold_agreement(11, dataset)

    for mechanism in (StepSelection(quality, 11, 1), QuasiConcaveTreeChoose(quality, 11, 3, 0.3, 0.9)):
        drawn = mechanism.release_many(sample, 20_000, rng=np.random.default_rng(31))
        law = mechanism.distribution(sample)
        assert p_value(drawn, law) > FALSE_ALARM
        assert p_value(drawn, shifted(law)) < FALSE_ALARM


class Evaluated:
    """An objective known by evaluation only, on a huge domain: minus the distance from a peak, floored at 0."""

    def __init__(self, peak: int, top: int) -> None:
        self._peak, self._top = peak, top
        self.evaluations = 0

    def peak(self) -> int:
        return self._peak

    def value(self, rank: int) -> int:
        self.evaluations += 1
        return max(0, self._top - abs(rank - self._peak).bit_length())


def test_a_huge_domain_is_searched_by_few_evaluations() -> None:
    bits = 3000
    objective = Evaluated(2**bits // 3, 3000)
    mechanism = QuasiConcaveTreeChoose(lambda _: objective, 1 << bits, 1, 1e-6, 0.05)
    outcome = mechanism.release((0,) * 3000, rng=np.random.default_rng(8))
    assert objective.evaluations <= 2 * bits + 2
    assert objective.value(outcome) >= 3000 - mechanism.loss


def test_the_promise_is_asserted() -> None:
    mechanism = QuasiConcaveTreeChoose(stated, 3, 1, 0.2, 0.1)
    for values, records, reason in (
        ((1, 1, 2), 3, "reaching the number of records 3: it reaches 2"),
        ((2, 0, 2), 2, "not quasi-concave"),
    ):
        for act in (mechanism.check_dataset, mechanism.distribution, lambda d: mechanism.release(d, rng=None)):
            with pytest.raises(NotRealizableError, match=reason):
                act(Stated.of(values, records))
    total = TotalExtension(mechanism)
    assert total.distribution(Stated.of((2, 0, 2), 2)) == {0: 1}
    assert total.release_many(Stated.of((1, 1, 2), 3), 4, rng=None) == [0] * 4
    good = Stated.of((1, 2, 2), 2)
    assert total.distribution(good) == mechanism.distribution(good)
    assert total.claim == mechanism.claim
    with pytest.raises(NotRealizableError):
        total.check_dataset(Stated.of((2, 0, 2), 2))
    with pytest.raises(TypeError, match="rng must be"):
        total.release(good, rng=3)  # type: ignore[arg-type]


def test_an_evaluated_objective_is_caught_where_it_shows() -> None:
    class Dented(Evaluated):
        def value(self, rank: int) -> int:
            return 0 if rank == 8 else super().value(rank)

    mechanism = QuasiConcaveTreeChoose(lambda _: Dented(9, 5), 16, 1, 0.2, 0.1)
    with pytest.raises(NotRealizableError, match="not quasi-concave"):
        mechanism.check_dataset((0,) * 5)


def test_outside_its_promise_it_is_refuted() -> None:
    """The counterexample row: exactly refuted, by nearly all of the mass."""
    for case in counterexamples():
        verdict = audit_exact(as_mechanism(case.mechanism), case.claim, case.domain)
        assert "outside" in case.label
        assert verdict.status is Status.REFUTED
        assert verdict.delta_found is not None
        assert verdict.delta_found > 0.99
        assert case.claim.promise is None


def test_the_sensitivity_of_the_total_extension_does_not_carry_over_to_two_steps() -> None:
    """F16: group privacy through a sample outside the promise is void; the divergence there is near 1."""
    case = counterexamples()[0]
    mechanism = as_mechanism(case.mechanism)
    inside, outside = ((1, 0),) * 3, ((1, 0), (1, 0), (1, 1))
    profile = PrivacyProfile.from_distributions(mechanism.distribution(inside), mechanism.distribution(outside))
    assert profile.delta(20.0) > 0.99


def test_bad_input_is_refused() -> None:
    for epsilon, delta, beta in ((0, 0.1, 0.1), (1, 0, 0.1), (1, 1, 0.1), (1, 0.1, 0), (1, 0.1, 1)):
        with pytest.raises(ValueError, match=r"epsilon|delta|beta"):
            QuasiConcaveTreeChoose(stated, 4, epsilon, delta, beta)
    with pytest.raises(ValueError, match="domain_size must be at least 1"):
        StepSelection(stated, 0, 1)
    with pytest.raises(ValueError, match="quality must be on domain_size = 5 ranks, got 4"):
        StepSelection(stated, 5, 1).release(Stated.of((1, 2, 1, 0), 2), rng=None)
