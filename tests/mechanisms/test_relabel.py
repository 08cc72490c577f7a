"""Boolean compositions and ARelabel against every tuple of concepts, and the window of 4 r^2."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import FiniteClass, Thresholds, boolean_class, extremal, label_boost, rational_base
from mechanisms.boolean_class import BooleanClass
from mechanisms.concepts import ConceptClass
from mechanisms.halfspaces import Halfspaces
from mechanisms.intervals import Intervals
from mechanisms.relabel import PAPER_EPSILON_RELABEL, RelabelRelease, relabel, relabel_claim
from tests.mechanisms.boxes import check_class
from tests.mechanisms.goodness import p_value, shifted
from tests.mechanisms.test_label_boost import extremal_ratio, spread

FALSE_ALARM = 1e-6
Row = tuple[int, ...]


def definition(
    function: Callable[..., int],
    candidates: Sequence[Row],
    fixed: Sequence[Row],
    completions: Sequence[tuple[Row, ...]],
    sample: Sequence[tuple[int, int]],
    carrier: Sequence[int],
    read: Sequence[int],
    base: Fraction,
) -> dict[Row, Fraction]:
    """Proposition 8.16's law of the labels on `read`: one candidate per dichotomy, weight base**-(completion score).

    Concepts are rows of labels. Candidates that agree on the points have one score.
    """
    points = [*(x for x, _ in sample), *carrier]
    scores: dict[Row, int] = {}
    for row in candidates:
        errors = [
            sum(function(*(f[x] for f in fixed), row[x], *(c[x] for c in rest)) != y for x, y in sample)
            for rest in completions
        ]
        labels = tuple(row[x] for x in points)
        assert scores.setdefault(labels, min(errors)) == min(errors)
    mass: defaultdict[Row, Fraction] = defaultdict(Fraction)
    for labels, score in scores.items():
        mass[tuple(labels[points.index(x)] for x in read)] += base**-score
    total = sum(mass.values())
    return {labels: weight / total for labels, weight in mass.items()}


def random_composition(rng: random.Random, universe: int) -> tuple[list[int], Callable[..., int], list[list[Row]]]:
    every = list(itertools.product((0, 1), repeat=universe))
    parts = [rng.sample(every, rng.randint(1, min(5, len(every)))) for _ in range(rng.randint(1, 3))]
    table = [rng.randint(0, 1) for _ in range(2 ** len(parts))]
    return table, lambda *bits: table[int("".join(map(str, bits)), 2)], parts


def test_compositions_and_relabelling() -> None:
    rng = random.Random(81)
    base = rational_base(1.0)
    for _ in range(200):
        table, function, parts = random_composition(rng, 4)
        composed = BooleanClass(table, [FiniteClass(range(4), rows) for rows in parts])
        position = rng.randrange(len(parts))
        fixed = [rng.choice(rows) for rows in parts[:position]]
        restricted = composed.prefix([FiniteClass(range(4), [row]).concept(0) for row in fixed])
        sample = [(rng.randrange(4), rng.randint(0, 1)) for _ in range(rng.randint(0, 4))]
        carrier = [rng.randrange(4) for _ in range(rng.randint(0, 3))]
        tuples = [(*fixed, *rest) for rest in itertools.product(*parts[position:])]
        concepts = [tuple(function(*(h[x] for h in hs)) for x in range(4)) for hs in tuples]
        check_class(restricted, [row.__getitem__ for row in concepts], sample, carrier)
        rest = list(itertools.product(*parts[position + 1 :]))
        law = definition(function, parts[position], fixed, rest, sample, carrier, carrier, base)
        assert RelabelRelease(restricted, carrier, 1.0).distribution(sample) == law
        levels = restricted.component_levels(sample, carrier)
        points = [*(x for x, _ in sample), *carrier]
        assert sum(levels.counts) == len({tuple(row[x] for x in points) for row in parts[position]})


@pytest.mark.parametrize("base", [Fraction(1), Fraction(3, 2), Fraction(4)], ids=float)
def test_bounds_on_random_compositions_and_their_windows(base: Fraction) -> None:
    """4 r^2 for a labelled record and 4 for an unlabelled point bound the window of ratios."""
    rng = random.Random(82)
    widest = {"labelled": Fraction(1), "unlabelled": Fraction(1)}
    for _ in range(800):
        universe = rng.randint(2, 5)
        _, function, parts = random_composition(rng, universe)
        first = rng.sample(
            every := list(itertools.product((0, 1), repeat=universe)), rng.randint(1, min(20, len(every)))
        )
        rest = list(itertools.product(*parts[1:]))
        sample = [(rng.randrange(universe), rng.randint(0, 1)) for _ in range(rng.randint(1, 4))]
        carrier = [rng.randrange(universe) for _ in range(rng.randint(1, 3))]
        other_sample = [(rng.randrange(universe), rng.randint(0, 1)), *sample[1:]]
        other_carrier = [rng.randrange(universe), *carrier[1:]]
        for kind, (s, t) in {"labelled": (other_sample, carrier), "unlabelled": (sample, other_carrier)}.items():
            shared = sorted({*(x for x, _ in sample), *carrier} & {*(x for x, _ in s), *t})
            laws = [
                definition(function, first, (), rest, one, two, shared, base)
                for one, two in ((sample, carrier), (s, t))
            ]
            widest[kind] = max(widest[kind], spread(*laws)[1])
    assert base**2 < widest["labelled"] <= 4 * base**2
    assert widest["unlabelled"] == 4


def test_the_claim_is_tight_and_the_paper_rounds_it_up() -> None:
    base = rational_base(1.0)
    ratios = [extremal_ratio(extremal.relabelled_xor, k, 4, 1.0) for k in (16, 64, 256)]
    assert ratios == sorted(ratios)
    assert (1 + base) ** 2 < ratios[0]  # LabelBoost's bound does not hold here
    assert Fraction(98, 100) * 4 * base**2 < ratios[-1] < 4 * base**2
    claimed = relabel_claim(1.0).epsilon(0.0)
    assert claimed == pytest.approx(2.386294, abs=1e-6)
    assert float(np.log(float(ratios[-1]))) > 0.99 * claimed
    assert claimed < PAPER_EPSILON_RELABEL


def test_the_extremal_family_is_proposition_8_16() -> None:
    k, base = 4, rational_base(1.0)
    rows = [(0, 0, 0, 0), (0, 0, 1, 0)] + [(z & 1, z >> 1, 0, b) for z in range(1, k) for b in (0, 1)]
    heavy = [(0, 0), (1, 0)] * 3
    xor = [(row,) for row in rows]
    one, other = (definition(lambda a, b: a ^ b, rows, (), xor, [*heavy, (x, 1)], (0, 1), (0, 1), base) for x in (2, 3))
    assert spread(one, other)[0] == extremal_ratio(extremal.relabelled_xor, k, 3, 1.0)


def test_draws_have_the_law() -> None:
    either = BooleanClass(lambda a, b: a != b, [Thresholds(0, 8), Intervals(0, 8)])
    sample, carrier = ((1, 1), (3, 0), (6, 1), (6, 1)), (2, 5)
    release = RelabelRelease(either, carrier, 1.0)
    law = release.distribution(sample)
    drawn = release.release_many(sample, 10_000, rng=np.random.default_rng(83))
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    boosted = relabel(sample, carrier, either, 1.0, rng=np.random.default_rng(84))
    assert all(boosted.concept(x) == y for x, y in (*boosted.sample, *boosted.carrier))
    whole = label_boost(sample, carrier, either, 1.0, rng=np.random.default_rng(85))
    assert all(whole.concept(x) == y for x, y in (*whole.sample, *whole.carrier))


def test_classes_of_every_kind_compose() -> None:
    line, plane = Thresholds(0, 5, radices=(2, 3)), Halfspaces(2, 2)
    majority = BooleanClass(lambda *bits: sum(bits) >= 2, [line, line, line])
    assert isinstance(majority, ConceptClass)
    assert {z for z, _ in majority.traces((1, 3))} == {z for z, _ in line.traces((1, 3))}
    assert len(majority.next_values()) == 6
    assert len(Intervals(0, 3).next_values()) == 4
    assert len(BooleanClass((0, 1), [Intervals(0, 3)]).next_values()) == 14
    wedge = BooleanClass(lambda a, b: a and b, [plane, plane])
    points = [(1, 1), (-1, 1), (-1, -1), (1, -1), (0, 0)]
    assert len(list(wedge.traces(points))) == len(
        {
            tuple(a & b for a, b in zip(one, other, strict=True))
            for one, _ in plane.traces(points)
            for other, _ in plane.traces(points)
        }
    )
    assert [z for z, _ in wedge.traces(())] == [()]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BooleanClass((0, 1), []), "parts must be 1 to 8 classes, got 0"),
        (lambda: BooleanClass((0, 1), [3]), r"parts\[0\] must be a concept class, got 3"),  # type: ignore[list-item]
        (lambda: BooleanClass((0, 1, 1), [Thresholds(0, 1)]), "function must have 2 values 0 or 1"),
        (lambda: BooleanClass((0, 2), [Thresholds(0, 1)]), "function must have 2 values 0 or 1"),
        (lambda: BooleanClass((0, 1), [Thresholds(0, 1)]).prefix((3,)), r"values\[0\] must be a concept"),
        (lambda: BooleanClass((0, 1), [Thresholds(0, 2**30)]).next_values(), "listed up to 65536 values"),
        (
            lambda: BooleanClass((0,) * 8, [Thresholds(0, 999)] * 3).levels((), range(999)),
            "999 points leave 1000 x 1000 x 1000 tuples of traces to combine",
        ),
        (
            lambda: RelabelRelease(
                BooleanClass((0, 1), [Thresholds(0, 1)]).prefix((Thresholds(0, 1).levels(()).pick(0, 0),)), (), 1.0
            ),
            "all 1 components are fixed",
        ),
        (lambda: RelabelRelease(BooleanClass((0, 1), [Thresholds(0, 1)]), (0.5,), 1.0), "points must be integers"),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()


def test_chunks_cover_every_tuple_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boolean_class, "_CHUNK", 7)
    met = [
        pair
        for one, other in boolean_class._chunks([3, 5], 2)
        for pair in zip(one.tolist(), other.tolist(), strict=True)
    ]
    assert met == list(itertools.product(range(3), range(5)))
