"""LabelBoost against Algorithm 1 read literally, its bounds on random classes, and its extremal families."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting import BoundedRangeDpEvent
from mechanisms import (
    PAPER_EPSILON,
    CarrierRelease,
    FiniteClass,
    PublicLabelRelease,
    Thresholds,
    carrier_law,
    extremal,
    label_boost,
    label_boost_law,
    labelled_claim,
    rational_base,
    unlabelled_claim,
)
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6
Rows = Sequence[tuple[int, ...]]


def algorithm_1(
    rows: Rows, sample: Sequence[tuple[int, int]], carrier: Sequence[int], read: Sequence[int], base: Fraction
) -> dict[tuple[int, ...], Fraction]:
    """The law of the labels on the points `read`, from the pseudo-code: one row per dichotomy, weight base**agreement.

    A concept is a row of labels, a point its column.
    """
    points = sorted({*(x for x, _ in sample), *carrier})
    representatives = {tuple(row[p] for p in points): row for row in rows}
    mass: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for row in representatives.values():
        mass[tuple(row[x] for x in read)] += base ** sum(row[x] == y for x, y in sample)
    total = sum(mass.values())
    return {labels: weight / total for labels, weight in mass.items()}


row_lists = st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=10)
samples = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=5)
carriers = st.lists(st.integers(0, 3), max_size=4)


@given(row_lists, samples, carriers, st.sampled_from([0.0, 0.4, 1.0, 3.0]))
def test_laws_are_algorithm_1(rows: Rows, sample: list[tuple[int, int]], carrier: list[int], epsilon: float) -> None:
    concept_class, base = FiniteClass(range(4), rows), rational_base(epsilon)
    read = [*(x for x, _ in sample), *carrier]
    both = label_boost_law(sample, carrier, concept_class, epsilon)
    assert {(*s, *t): p for (s, t), p in both.items()} == algorithm_1(rows, sample, carrier, read, base)
    assert carrier_law(sample, carrier, concept_class, epsilon) == algorithm_1(rows, sample, carrier, carrier, base)
    assert sum(both.values()) == 1


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), max_size=5), st.lists(st.integers(0, 8), max_size=4))
def test_thresholds_have_the_law_of_the_same_finite_class(sample: list[tuple[int, int]], carrier: list[int]) -> None:
    rows = [tuple(int(x >= t) for x in range(9)) for t in range(2, 8)]
    law = carrier_law(sample, carrier, Thresholds(2, 7), 1.0)
    assert law == algorithm_1(rows, sample, carrier, carrier, rational_base(1.0))


@pytest.mark.parametrize(
    "concept_class", [Thresholds(0, 6), FiniteClass(range(7), [(0,) * 7, (0, 1) * 3 + (0,)])], ids=repr
)
def test_draws_have_the_law(concept_class: Any) -> None:
    sample, carrier = ((1, 0), (4, 1), (4, 1), (2, 1)), (0, 3, 5)
    law = carrier_law(sample, carrier, concept_class, 1.0)
    drawn = CarrierRelease(concept_class, carrier, 1.0).release_many(sample, 20_000, rng=np.random.default_rng(21))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    both = label_boost_law(sample, carrier, concept_class, 1.0)
    rng = np.random.default_rng(22)
    results = [label_boost(sample, carrier, concept_class, 1.0, rng=rng) for _ in range(1500)]
    pairs = [(tuple(y for _, y in boosted.sample), tuple(y for _, y in boosted.carrier)) for boosted in results]
    assert p_value(pairs, both) > FALSE_ALARM
    assert p_value(pairs, shifted(both)) < FALSE_ALARM
    for boosted in results[:20]:
        assert [x for x, _ in boosted.sample] == [x for x, _ in sample]
        assert [x for x, _ in boosted.carrier] == list(carrier)
        assert all(boosted.concept(x) == y for x, y in (*boosted.sample, *boosted.carrier))


def test_public_labels_have_the_law() -> None:
    mechanism = PublicLabelRelease(Thresholds(0, 6), ((1, 0), (4, 1)), (2, 5), 1.0)
    rows = [tuple(int(x >= t) for x in range(8)) for t in range(7)]
    law = algorithm_1(rows, mechanism.sample, (2, 5, 3, 3, 0), (2, 5), rational_base(1.0))
    assert mechanism.distribution((3, 3, 0)) == law
    drawn = mechanism.release_many((3, 3, 0), 20_000, rng=np.random.default_rng(23))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, mechanism.distribution((5, 5, 6))) < FALSE_ALARM


def spread(p: Mapping[Any, Fraction], q: Mapping[Any, Fraction]) -> tuple[Fraction, Fraction]:
    """The largest ratio in either direction, and the width of the window of ratios."""
    assert p.keys() == q.keys()
    ratios = [p[key] / q[key] for key in p]
    return max(max(ratios), 1 / min(ratios)), max(ratios) / min(ratios)


@pytest.mark.parametrize("base", [Fraction(1), Fraction(3, 2), rational_base(1.0), Fraction(4)], ids=float)
def test_bounds_on_random_classes_and_their_windows(base: Fraction) -> None:
    """THEORY section 1 by brute force on shared points: (1+r)^2 and 4 bound the window, not only the ratio."""
    rng = random.Random(31)
    widest = {"labelled": Fraction(1), "unlabelled": Fraction(1)}
    for _ in range(1500):
        universe = rng.randint(2, 5)
        every = list(itertools.product((0, 1), repeat=universe))
        rows = rng.sample(every, rng.randint(1, min(20, len(every))))
        sample = [(rng.randrange(universe), rng.randint(0, 1)) for _ in range(rng.randint(1, 4))]
        carrier = [rng.randrange(universe) for _ in range(rng.randint(1, 3))]
        other_sample = [(rng.randrange(universe), rng.randint(0, 1)), *sample[1:]]
        other_carrier = [rng.randrange(universe), *carrier[1:]]
        for kind, (s, t) in {"labelled": (other_sample, carrier), "unlabelled": (sample, other_carrier)}.items():
            shared = sorted({*(x for x, _ in sample), *carrier} & {*(x for x, _ in s), *t})
            laws = algorithm_1(rows, sample, carrier, shared, base), algorithm_1(rows, s, t, shared, base)
            widest[kind] = max(widest[kind], spread(*laws)[1])
    assert widest["labelled"] == (1 + base) ** 2  # attained already here
    assert widest["unlabelled"] == 4


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_claims_are_the_formulas_rounded_up(epsilon: float) -> None:
    base = rational_base(epsilon)
    for claim, factor in ((labelled_claim(epsilon), (1 + base) ** 2), (unlabelled_claim(), Fraction(4))):
        assert isinstance(claim.event, BoundedRangeDpEvent)
        with mpmath.workdps(40):
            exact = mpmath.log(mpmath.mpf(factor.numerator) / factor.denominator)
            assert exact <= claim.event.eta <= exact * (1 + 1e-15)
    assert labelled_claim(1.0).epsilon(0.0) < 1.9482 < PAPER_EPSILON
    assert math.isclose(PAPER_EPSILON, math.log(4 * math.e), rel_tol=1e-15)


def extremal_ratio(family: Any, *arguments: Any) -> Fraction:
    mechanism, domain = family(*arguments)
    ((one, other),) = domain.pairs()
    return spread(mechanism.distribution(one), mechanism.distribution(other))[0]


def test_extremal_families_reach_the_figures_of_the_theory() -> None:
    base = rational_base(1.0)
    for k in (2, 64, 1024):
        labelled, unlabelled = (
            extremal_ratio(f, k, 1.0) for f in (extremal.labelled_finite, extremal.unlabelled_finite)
        )
        assert labelled == (1 + base) * (1 + (k - 1) * (1 + base)) / (k + base)
        assert unlabelled == Fraction(2 * (2 * k - 1), k + 1)
    assert float(extremal_ratio(extremal.labelled_finite, 4096, 1.0)) == pytest.approx(7.012, abs=5e-4)
    assert float(extremal_ratio(extremal.unlabelled_finite, 4096, 1.0)) == pytest.approx(3.9985, abs=5e-5)
    assert extremal_ratio(extremal.labelled_finite, 1024, 1.0) > Fraction(99, 100) * (1 + base) ** 2
    assert extremal_ratio(extremal.unlabelled_finite, 1024, 1.0) > Fraction(99, 100) * 4
    assert extremal_ratio(extremal.labelled_thresholds, 24, 1.0) > Fraction(9999, 10000) * (1 + base) ** 2
    assert extremal_ratio(extremal.unlabelled_thresholds, 24, 1.0) > Fraction(9999, 10000) * 4


def test_extremal_families_are_algorithm_1() -> None:
    """The family as stated in the theory, written down again: bits, x and x' as columns."""
    k, base = 8, rational_base(1.0)
    rows: list[tuple[int, ...]] = [(0, 0, 0, 0, 0), (0, 0, 0, 1, 0)]
    for labelling in range(1, k):
        bits = tuple(labelling >> b & 1 for b in range(3))
        rows += [(*bits, 0, 0), (*bits, 0, 1)]
    one, other = (algorithm_1(rows, [(x, 1)], (0, 1, 2), (0, 1, 2), base) for x in (3, 4))
    assert spread(one, other)[0] == extremal_ratio(extremal.labelled_finite, k, 1.0)


def test_large_finite_class() -> None:
    concept_class, common = extremal.splitting_class(4096)
    assert (len(concept_class), len(concept_class.domain)) == (8192, 14)
    start = time.process_time()
    levels = concept_class.levels([("x", 1)], common)
    assert dict(zip(levels.scores, levels.counts, strict=True)) == {1: 1, 0: 4096}
    assert time.process_time() - start < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("rng", [np.random.default_rng(24), None], ids=["replayed", "system"])
def test_a_million_records_on_a_line(rng: np.random.Generator | None) -> None:
    """Sorting, not enumeration: a million labelled and a million unlabelled points, a grid of a billion."""
    source = np.random.default_rng(25)
    points = source.integers(0, 10**9, 10**6).tolist()
    noise = (source.random(10**6) < 0.1).tolist()
    sample = [(x, int(x >= 600_000_000) ^ int(flip)) for x, flip in zip(points, noise, strict=True)]
    carrier = source.integers(0, 10**9, 10**6).tolist()
    start = time.process_time()
    boosted = label_boost(sample, carrier, Thresholds(0, 10**9), 1.0, rng=rng)
    assert time.process_time() - start < 2.0
    assert isinstance(boosted.concept, type(Thresholds(0, 1).levels(()).pick(0, 0)))
    assert abs(boosted.concept.t - 600_000_000) < 10**6  # type: ignore[attr-defined]


def test_empty_and_single_inputs() -> None:
    line = Thresholds(0, 3)
    assert carrier_law((), (), line, 1.0) == {(): 1}
    assert carrier_law((), (1,), line, 1.0) == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    assert label_boost((), (), line, 1.0, rng=None).sample == ()
    constant = FiniteClass("ab", [(1, 0)])
    assert carrier_law((("a", 0),), "bb", constant, 1.0) == {(0, 0): 1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: label_boost([(1, 2)], (), Thresholds(0, 3), 1.0, rng=None), "labels must be 0 or 1, got 2"),
        (lambda: label_boost([(1, 1)], (), Thresholds(0, 3), -1.0, rng=None), "epsilon must be in"),
        (lambda: label_boost([(1, 1)], ("a",), Thresholds(0, 3), 1.0, rng=None), "points must be integers"),
        (lambda: label_boost([(1, 1)], (), Thresholds(0, 3), 1.0, rng=5), "rng must be"),  # type: ignore[arg-type]
        (lambda: CarrierRelease(Thresholds(0, 3), (1, 0.5), 1.0), "points must be integers"),
        (lambda: CarrierRelease(Thresholds(0, 3), (1,), math.inf), "epsilon must be finite"),
        (lambda: CarrierRelease(Thresholds(0, 3), ([1],), 1.0), "points must be hashable"),
        (lambda: PublicLabelRelease(Thresholds(0, 3), ((1,),), (1,), 1.0), r"pairs \(point, label\)"),  # type: ignore[arg-type]
        (lambda: CarrierRelease(Thresholds(0, 3), (1,), 1.0).release(((1, 1),), rng="a"), "rng must be"),  # type: ignore[arg-type]
        (lambda: CarrierRelease(Thresholds(0, 3), (1,), 1.0).distribution(((1, 3),)), "labels must be 0 or 1"),
        (lambda: extremal.splitting_class(1), "k must be at least 2"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
