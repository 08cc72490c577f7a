"""The learner's steps against Definition 6.1 read literally, their promise, and the families near their claims."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting import ComposedDpEvent

from accounting import ApproximateDpEvent, BoundedRangeDpEvent, Trust
from mechanisms import (
    CarryForwardRound,
    ComponentOracle,
    ConceptClass,
    ExponentialOracle,
    FiniteClass,
    InitialBlock,
    MacroBlock,
    NotRealizableError,
    ReplaceOne,
    Thresholds,
    extremal,
    rational_base,
)
from tests.mechanisms.goodness import p_value, shifted

FALSE_ALARM = 1e-6
LINE = Thresholds(0, 7, radices=(2, 2, 2))
SQUARE = tuple(itertools.product((0, 1), repeat=2))
AFFINE_COMPONENTS = tuple(itertools.product((0, 1), repeat=3))
AFFINE = FiniteClass(
    SQUARE, [[(a * x + b * y + c) % 2 for x, y in SQUARE] for a, b, c in AFFINE_COMPONENTS], AFFINE_COMPONENTS
)
Sample = tuple[tuple[Any, int], ...]
Table = dict[tuple[Any, ...], Any]


def table(concept_class: ConceptClass, domain: Sequence[Any]) -> Table:
    """Components to the concept as a function, by walking the tree of prefixes."""
    if len(concept_class.fixed) == concept_class.components:
        ((_, concept),) = concept_class.traces(tuple(domain))
        return {concept_class.fixed: concept}
    return {
        key: concept
        for value in concept_class.next_values()
        for key, concept in table(concept_class.prefix((value,)), domain).items()
    }


class Definition:
    """Section 6 by the book, from a table of concepts: nothing here is shared with the code under test."""

    def __init__(self, concepts: Table, oracle_epsilon: float, boost_epsilon: float) -> None:
        self.concepts = concepts
        self.oracle_base, self.boost_base = rational_base(oracle_epsilon), rational_base(boost_epsilon)

    def completions(self, prefix: tuple[Any, ...]) -> list[Any]:
        return [c for key, c in self.concepts.items() if key[: len(prefix)] == prefix]

    def oracle(self, prefix: tuple[Any, ...], sample: Sample) -> dict[Any, Fraction]:
        values = {key[len(prefix)] for key in self.concepts if key[: len(prefix)] == prefix}
        weight = {
            v: self.oracle_base ** max(sum(c(x) == y for x, y in sample) for c in self.completions((*prefix, v)))
            for v in values
        }
        return {v: w / sum(weight.values()) for v, w in weight.items()}

    def boost(
        self, sample: Sample, carrier: Sequence[Any], prefix: tuple[Any, ...]
    ) -> dict[tuple[Sample, Sample], Fraction]:
        points = list(dict.fromkeys([*(x for x, _ in sample), *carrier]))
        chosen = {tuple(c(x) for x in points): c for c in self.completions(prefix)}
        weight = {z: self.boost_base ** sum(c(x) == y for x, y in sample) for z, c in chosen.items()}
        total = sum(weight.values())
        law: defaultdict[tuple[Sample, Sample], Fraction] = defaultdict(Fraction)
        for z, c in chosen.items():
            relabelled = tuple((x, c(x)) for x, _ in sample), tuple((x, c(x)) for x in carrier)
            law[relabelled] += weight[z] / total
        return dict(law)

    def round(self, prefix: tuple[Any, ...], sample: Sample, carriers: list[tuple[Any, ...]]) -> dict[Any, Fraction]:
        law: defaultdict[Any, Fraction] = defaultdict(Fraction)
        for v, p in self.oracle(prefix, sample).items():
            if not carriers:
                law[v, ()] += p
            for carrier in carriers:
                for (_, carried), q in self.boost(sample, carrier, (*prefix, v)).items():
                    law[v, carried] += p * q / len(carriers)
        return dict(law)

    def macro_block(
        self, prefix: tuple[Any, ...], state: Sample, carrier: Sequence[Any], carriers: list[tuple[Any, ...]]
    ) -> dict[Any, Fraction]:
        law: defaultdict[Any, Fraction] = defaultdict(Fraction)
        for v, p in self.oracle(prefix, state).items():
            for (_, carried), q in self.boost(state, carrier, (*prefix, v)).items():
                for (w, nxt), s in self.round((*prefix, v), carried, carriers).items():
                    law[v, w, nxt] += p * q * s
        return dict(law)

    def initial(self, sample: Sample, carriers: list[tuple[Any, ...]]) -> dict[Any, Fraction]:
        law: defaultdict[Any, Fraction] = defaultdict(Fraction)
        for (relabelled, _), p in self.boost(sample, (), ()).items():
            for outcome, q in self.round((), relabelled, carriers).items():
                law[outcome] += p * q
        return dict(law)


BY_THE_BOOK = {
    "line": Definition(table(LINE, range(-1, 9)), 1.0, 0.5),
    "affine": Definition(table(AFFINE, SQUARE), 1.0, 0.5),
}
CLASSES: dict[str, ConceptClass] = {"line": LINE, "affine": AFFINE}
POINTS: dict[str, tuple[Any, ...]] = {"line": (1, 3, 4, 6), "affine": SQUARE}


def oracle(name: str) -> ExponentialOracle:
    return ExponentialOracle(CLASSES[name], 1.0)


def states(name: str, prefix: tuple[Any, ...]) -> list[Sample]:
    """An empty and a repeated realizable sample for the prefix."""
    concept = BY_THE_BOOK[name].completions(prefix)[-1]
    return [(), tuple((x, concept(x)) for x in (POINTS[name][0], POINTS[name][2], POINTS[name][2]))]


@pytest.mark.parametrize("name", CLASSES)
def test_macro_block_is_definition_6_1(name: str) -> None:
    points, book = POINTS[name], BY_THE_BOOK[name]
    reservoir = (points[1], points[3], points[1])
    drawn = list(itertools.permutations(reservoir, 2))
    prefixes: list[tuple[Any, ...]] = [(), (0,), (1,)]
    for prefix in prefixes:
        nexts: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [({}, [])]
        if not prefix:
            nexts = [({"next_carrier": points[:2]}, [points[:2]]), ({"next_reservoir": reservoir}, drawn)]
        for state in states(name, prefix):
            for keywords, carriers in nexts:
                block = MacroBlock(
                    CLASSES[name], prefix, state, (oracle(name), oracle(name)), 0.5, carrier_size=2, **keywords
                )
                for carrier in ((points[0], points[1]), (points[2], points[2])):
                    assert block.distribution(carrier) == book.macro_block(prefix, state, carrier, carriers)
                    assert sum(block.distribution(carrier).values()) == 1


@pytest.mark.parametrize("name", CLASSES)
def test_round_and_initial_block_are_the_book(name: str) -> None:
    points, book = POINTS[name], BY_THE_BOOK[name]
    for prefix in ((), (1,), (1, 0)):
        last = len(prefix) == 2
        carriers = [] if last else [points[1:]]
        block = CarryForwardRound(CLASSES[name], prefix, oracle(name), 0.5, carrier=None if last else points[1:])
        for state in states(name, prefix):
            assert block.distribution(state) == book.round(prefix, state, carriers)
            assert block.distribution(state[::-1]) == block.distribution(state)
    start = InitialBlock(CLASSES[name], oracle(name), 0.5, reservoir=points[:3], carrier_size=2)
    arbitrary = ((points[0], 1), (points[1], 0), (points[0], 0))
    assert start.distribution(arbitrary) == book.initial(arbitrary, list(itertools.permutations(points[:3], 2)))


def test_single_component_class() -> None:
    line = Thresholds(0, 3)
    start = InitialBlock(line, ExponentialOracle(line, 1.0), 1.0)
    law = start.distribution(((1, 0), (2, 1)))
    assert set(law) == {(t, ()) for t in range(4)}
    assert isinstance(start.claim.event, ComposedDpEvent)
    assert len(start.claim.event.events) == 2


@pytest.mark.parametrize(
    "block",
    [
        MacroBlock(LINE, (), ((5, 1),), (oracle("line"),) * 2, 1.0, carrier_size=2, next_reservoir=(1, 4, 5)),
        MacroBlock(LINE, (1,), (), (oracle("line"),) * 2, 1.0, carrier_size=2),
        CarryForwardRound(LINE, (), oracle("line"), 1.0, carrier=(2, 4)),
        InitialBlock(LINE, oracle("line"), 1.0, carrier=(2, 4)),
    ],
    ids=["macro-block", "last macro-block", "round", "initial block"],
)
def test_releases_have_the_law(block: Any) -> None:
    dataset: Any = (4, 6) if isinstance(block, MacroBlock) else ((4, 0), (6, 1))
    law = block.distribution(dataset)
    rng = np.random.default_rng(51)
    drawn = block.release_many(dataset, 20_000, rng=rng)
    assert p_value(drawn, law) > FALSE_ALARM
    assert p_value(drawn, shifted(law)) < FALSE_ALARM
    assert p_value([block.release(dataset, rng=rng) for _ in range(800)], law) > FALSE_ALARM
    assert block.release(dataset, rng=None) in law
    again = [block.release(dataset, rng=np.random.default_rng(52)) for _ in range(2)]
    assert again[0] == again[1]


class Peeking:
    """Looks at the last record only, so it depends on order; valid, and private by randomized response."""

    ignores_order = False
    trust = Trust.IDEALISED
    event = ApproximateDpEvent(math.log(3), 0.01)

    def choose(self, prefix: Sequence[Any], sample: Any, *, rng: np.random.Generator | None) -> int:
        assert rng is not None
        return int(sample[-1][1]) ^ int(rng.random() < 0.25)

    def distribution(self, prefix: Sequence[Any], sample: Any) -> Mapping[int, Fraction]:
        return {sample[-1][1]: Fraction(3, 4), 1 - sample[-1][1]: Fraction(1, 4)}


def test_order_is_declared_truthfully() -> None:
    peeking: ComponentOracle = Peeking()
    assert isinstance(peeking, ComponentOracle)
    mixed = MacroBlock(LINE, (1,), ((4, 0),), (oracle("line"), peeking), 1.0, carrier_size=2)
    assert not mixed.ignores_order
    assert mixed.distribution((4, 7)) != mixed.distribution((7, 4))
    plain = MacroBlock(LINE, (1,), ((4, 0),), (oracle("line"), oracle("line")), 1.0, carrier_size=2)
    assert plain.ignores_order
    assert plain.distribution((4, 7)) == plain.distribution((7, 4))


def test_claims_compose_the_right_events() -> None:
    labelled, unlabelled = math.log1p(math.exp(0.5)) * 2, math.log(4)
    plain, peeking = oracle("line"), Peeking()
    inner = MacroBlock(LINE, (), (), (plain, peeking), 1.0, carrier_size=1, next_carrier=(1,)).claim
    last = MacroBlock(LINE, (1,), (), (peeking, plain), 1.0, carrier_size=1).claim
    start = InitialBlock(LINE, plain, 1.0, carrier=(1,)).claim
    middle = CarryForwardRound(LINE, (), peeking, 1.0, carrier=(1,)).claim
    for claim, etas in (
        (inner, [unlabelled, None, labelled]),
        (last, [unlabelled, 1.0]),
        (start, [labelled, 1.0, labelled]),
        (middle, [None, labelled]),
    ):
        assert isinstance(claim.event, ComposedDpEvent)
        for event, eta in zip(claim.event.events, etas, strict=True):
            if eta is None:
                assert event == Peeking.event
            else:
                assert isinstance(event, BoundedRangeDpEvent)
                assert event.eta == pytest.approx(eta, abs=1e-6)
        assert hash(claim.event) is not None
    assert (inner.trust, last.trust) == (Trust.IDEALISED, Trust.EXACT)
    assert inner.promise is None
    assert middle.promise is not None
    assert "Definition 4.2" in middle.promise


def worst_ratio(mechanism: Any, domain: Any) -> Fraction:
    worst = Fraction(1)
    for one, other in domain.pairs(mechanism.ignores_order):
        p, q = mechanism.distribution(one), mechanism.distribution(other)
        assert p.keys() == q.keys()
        worst = max(worst, *(max(p[o] / q[o], q[o] / p[o]) for o in p))
    return worst


def test_extremal_last_block_comes_within_one_per_cent_of_its_claim() -> None:
    block, pair = extremal.last_macro_block(128, 16, 1.0)
    found, claimed = math.log(worst_ratio(block, pair)), block.claim.epsilon(0.0)
    assert 0.99 * claimed < found <= claimed
    assert claimed == pytest.approx(1 + math.log(4), abs=1e-6)
    assert block.ignores_order


def test_extremal_inner_block_tends_to_its_own_limit() -> None:
    """The limit is below the claim; the family approaches it from below, and no pair of it passes the claim."""
    base = math.exp(0.5)
    limit = math.log(2 * base * (1 + base) ** 2)
    found = []
    for k, copies, codes in ((8, 6, 8), (16, 8, 16), (32, 12, 32)):
        block, pair = extremal.inner_macro_block(k, copies, codes, 1.0)
        found.append(math.log(worst_ratio(block, pair)))
    assert found == sorted(found)
    assert limit - 0.15 < found[-1] < limit < block.claim.epsilon(0.0)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_adversarial_oracle_is_as_private_as_it_claims(epsilon: float) -> None:
    """Its scores have sensitivity 1: every pair of labelled samples over its points, by enumeration."""
    block, _ = extremal.last_macro_block(2, 1, epsilon)
    adversary = block.second_oracle
    records = [(point, label) for point in (0, "x", "x'") for label in (0, 1)]
    worst = Fraction(1)
    for one, other in ReplaceOne(records, 2).pairs():
        p, q = adversary.distribution((0,), one), adversary.distribution((0,), other)
        worst = max(worst, *(Fraction(p[v]) / Fraction(q[v]) for v in p))
    event = adversary.event
    assert isinstance(event, BoundedRangeDpEvent)
    assert mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator) <= event.eta


def test_the_oracle_has_sensitivity_one_on_all_inputs() -> None:
    chooser = oracle("affine")
    limit = chooser.base**2
    records = [(point, label) for point in SQUARE for label in (0, 1)]
    for prefix in ((), (0,), (1, 1)):
        for one, other in ReplaceOne(records, 2).pairs(ignore_order=True):
            p, q = chooser.distribution(prefix, one), chooser.distribution(prefix, other)
            ratios = [p[v] / q[v] for v in p]
            assert max(ratios) / min(ratios) <= limit


def test_promise_is_asserted_before_the_oracle_is_called() -> None:
    calls: list[Any] = []

    class Recording(Peeking):
        def choose(self, prefix: Sequence[Any], sample: Any, *, rng: np.random.Generator | None) -> int:
            calls.append(sample)
            return super().choose(prefix, sample, rng=rng)

    block = CarryForwardRound(LINE, (), Recording(), 1.0, carrier=(2,))
    unrealizable = ((1, 1), (5, 0))
    for act in (
        lambda: block.release(unrealizable, rng=np.random.default_rng(1)),
        lambda: block.distribution(unrealizable),
        lambda: block.check_dataset(unrealizable),
    ):
        with pytest.raises(NotRealizableError, match="labels 1 of its 2 records"):
            act()
    assert calls == []
    block.release(((1, 0), (5, 1)), rng=np.random.default_rng(1))
    assert len(calls) == 1
    with pytest.raises(NotRealizableError, match="state must be realizable"):
        MacroBlock(LINE, (1,), ((3, 1),), (oracle("line"),) * 2, 1.0, carrier_size=1)


def test_an_invalid_oracle_is_caught() -> None:
    class Invalid(Peeking):
        def choose(self, prefix: Sequence[Any], sample: Any, *, rng: np.random.Generator | None) -> int:
            return 9

    with pytest.raises(ValueError, match=r"values\[0\] must be in|leave a completion"):
        CarryForwardRound(AFFINE, (), Invalid(), 1.0, carrier=SQUARE[:1]).release((((0, 0), 1),), rng=None)


PAIR = (oracle("line"), oracle("line"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MacroBlock(LINE, (0, 0), (), PAIR, 1.0, carrier_size=1), "leave two of the 3 components"),
        (lambda: MacroBlock(LINE, (0,), (), PAIR, 1.0, carrier_size=1, next_carrier=(1,)), "none of them on the last"),
        (lambda: MacroBlock(LINE, (), (), PAIR, 1.0, carrier_size=1), "either carrier, or reservoir"),
        (
            lambda: MacroBlock(LINE, (), (), PAIR, 1.0, carrier_size=1, next_carrier=(1,), next_reservoir=(1,)),
            "either carrier, or reservoir",
        ),
        (
            lambda: MacroBlock(LINE, (), (), PAIR, 1.0, carrier_size=3, next_reservoir=(1, 2)),
            r"carrier_size must be in \[1, 2\], got 3",
        ),
        (
            lambda: MacroBlock(LINE, (), (), PAIR, 1.0, carrier_size=0, next_carrier=(1,)),
            "carrier_size must be at least 1",
        ),
        (
            lambda: MacroBlock(LINE, (), (), PAIR, -1.0, carrier_size=1, next_carrier=(1,)),
            "label_boost_epsilon must be",
        ),
        (lambda: MacroBlock(LINE, (), (), PAIR[:1], 1.0, carrier_size=1, next_carrier=(1,)), "oracles must be the two"),  # type: ignore[arg-type]
        (lambda: MacroBlock(LINE, (), (), PAIR, 1.0, carrier_size=1, next_carrier=("a",)), "points must be integers"),
        (lambda: MacroBlock(LINE, (5,), (), PAIR, 1.0, carrier_size=1), r"values\[0\] must be in"),
        (
            lambda: MacroBlock(LINE, (1,), (), PAIR, 1.0, carrier_size=2).release((1,), rng=None),
            "carrier_size = 2 points, got 1",
        ),
        (
            lambda: MacroBlock(LINE, (1,), (), PAIR, 1.0, carrier_size=2).distribution((1, 2, 3)),
            "carrier_size = 2 points, got 3",
        ),
        (lambda: CarryForwardRound(LINE, (0, 0, 0), PAIR[0], 1.0), "prefix must leave a component"),
        (lambda: CarryForwardRound(LINE.prefix((0,)), (), PAIR[0], 1.0), "must have no component fixed"),
        (lambda: CarryForwardRound(LINE, (), PAIR[0], 1.0, carrier_size=2), "carrier_size must be in"),
        (lambda: InitialBlock(LINE, PAIR[0], 1.0, carrier=(1,)).release(((1, 2),), rng=None), "labels must be 0 or 1"),
        (lambda: InitialBlock(LINE, PAIR[0], 1.0, carrier=(1,)).release(((1, 1),), rng=1), "rng must be"),  # type: ignore[arg-type]
        (lambda: ExponentialOracle(Thresholds(0, 2**80), 1.0).choose((), (), rng=None), "lists at most 1048576 values"),
        (lambda: ExponentialOracle(LINE, -1.0), "epsilon must be in"),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
