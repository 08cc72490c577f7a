"""LB* against its definition, its bounds on random classes, and its extremal families."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import FiniteClass, Thresholds, extremal, rational_base
from mechanisms.halfspaces import Halfspaces
from mechanisms.lb_star import (
    StarPublicRelease,
    StarRelease,
    lb_star,
    star_labelled_claim,
    star_law,
    star_unlabelled_claim,
)
from tests.mechanisms.boxes import check_class
from tests.mechanisms.goodness import p_value, shifted
from tests.mechanisms.test_label_boost import extremal_ratio, row_lists, samples, spread

FALSE_ALARM = 1e-6
Rows = Sequence[tuple[int, ...]]


def definition(
    rows: Rows, sample: Sequence[tuple[int, int]], carrier: Sequence[int], read: Sequence[int], base: Fraction
) -> dict[tuple[int, ...], Fraction]:
    """The law of the labels on the points `read` of the carrier: one candidate per dichotomy of the carrier."""
    best: dict[tuple[int, ...], int] = {}
    for row in rows:
        labels = tuple(row[x] for x in carrier)
        best[labels] = max(best.get(labels, 0), sum(row[x] == y for x, y in sample))
    mass: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for labels, score in best.items():
        mass[tuple(labels[carrier.index(x)] for x in read)] += base**score
    total = sum(mass.values())
    return {labels: weight / total for labels, weight in mass.items()}


@given(row_lists, samples, st.lists(st.integers(0, 3), max_size=4), st.sampled_from([0.0, 1.0, 3.0]))
def test_laws_are_the_definition(rows: Rows, sample: Any, carrier: list[int], epsilon: float) -> None:
    concept_class = FiniteClass(range(4), rows)
    law = definition(rows, sample, carrier, carrier, rational_base(epsilon))
    assert star_law(sample, carrier, concept_class, epsilon) == law
    public = StarPublicRelease(concept_class, sample, carrier[:2], epsilon).distribution(carrier[2:])
    assert public == definition(rows, sample, carrier, carrier[:2], rational_base(epsilon))


@given(
    st.integers(-3, 4),
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(-4, 8), st.integers(0, 1)), max_size=6),
    st.lists(st.integers(-4, 8), max_size=4),
)
def test_levels_of_thresholds_and_finite_classes(lo: int, size: int, sample: Any, carrier: list[int]) -> None:
    concepts = [lambda x, t=t: int(x >= t) for t in range(lo, lo + size + 1)]
    check_class(Thresholds(lo, lo + size), concepts, sample, carrier)
    check_class(FiniteClass(range(-4, 9), concepts), concepts, sample, carrier)


@pytest.mark.parametrize("base", [Fraction(1), Fraction(3, 2), Fraction(4)], ids=float)
def test_bounds_on_random_classes_and_their_windows(base: Fraction) -> None:
    """r^2 and 4 bound the window of ratios, not only the ratio; both are attained here already."""
    rng = random.Random(71)
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
            shared = sorted({*carrier} & {*t})
            laws = definition(rows, sample, carrier, shared, base), definition(rows, s, t, shared, base)
            widest[kind] = max(widest[kind], spread(*laws)[1])
    assert widest == {"labelled": base**2, "unlabelled": 4}


def test_claims_are_tight() -> None:
    base = rational_base(1.0)
    labelled = extremal_ratio(extremal.star_labelled_finite, 1024, 1.0)
    assert labelled == base * (1 + 1023 * base) / (1023 + base)
    assert labelled > Fraction(99, 100) * base**2
    assert extremal_ratio(extremal.star_unlabelled_finite, 1024, 1.0) == Fraction(2 * 2047, 1025)
    assert extremal_ratio(extremal.star_unlabelled_thresholds, 24, 1.0) > Fraction(9999, 10000) * 4
    assert 0.9999 < star_labelled_claim(1.0).epsilon(0.0) <= 1.0
    assert star_unlabelled_claim().epsilon(0.0) == pytest.approx(1.386294361)


@pytest.mark.parametrize(
    ("concept_class", "sample", "carrier"),
    [
        (Thresholds(0, 9), ((1, 0), (4, 1), (4, 1), (7, 0)), (0, 3, 5)),
        (
            Halfspaces(2, 2),
            (((0, 0), 0), ((1, 1), 1), ((2, -1), 1), ((-1, 2), 1), ((-1, -2), 0)),
            ((1, 0), (0, 1), (-1, -1)),
        ),
    ],
    ids=["thresholds", "halfspaces"],
)
def test_draws_have_the_law(concept_class: Any, sample: Any, carrier: Any) -> None:
    law = star_law(sample, carrier, concept_class, 1.0)
    drawn = StarRelease(concept_class, carrier, 1.0).release_many(sample, 10_000, rng=np.random.default_rng(72))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    boosted = lb_star(sample, carrier, concept_class, 1.0, rng=np.random.default_rng(73))
    assert [x for x, _ in boosted.carrier] == list(carrier)
    assert all(boosted.concept(x) == y for x, y in (*boosted.sample, *boosted.carrier))


def test_empty_inputs() -> None:
    line = Thresholds(0, 3)
    assert star_law((), (), line, 1.0) == {(): 1}
    assert lb_star((), (), line, 1.0, rng=None).carrier == ()
    assert lb_star(((1, 0),), (), line, 1000.0, rng=None).sample == ((1, 0),)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lb_star([(1, 2)], (), Thresholds(0, 3), 1.0, rng=None), "labels must be 0 or 1, got 2"),
        (lambda: lb_star([(1, 1)], (), Thresholds(0, 3), -1.0, rng=None), "epsilon must be in"),
        (lambda: StarRelease(Thresholds(0, 3), (1, 0.5), 1.0), "points must be integers"),
        (lambda: StarPublicRelease(Thresholds(0, 3), ((1,),), (1,), 1.0), r"pairs \(point, label\)"),  # type: ignore[arg-type]
        (lambda: StarRelease(Thresholds(0, 3), ([1],), 1.0), "points must be hashable"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
