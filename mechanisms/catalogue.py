"""The registry's contents: every mechanism of this layer with its guarantee and the cases by which it is audited.

Each case is small enough for an exact audit over every pair of its domain in well under two seconds. Published bounds
are shown beside our claims only for the parameters they are stated for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from accounting import Relation
from mechanisms import extremal
from mechanisms.base import AuditCase, Registration, register
from mechanisms.concepts import is_realizable
from mechanisms.datasets import AddOrRemoveOne, Domain, ExplicitPairs, ReplaceOne
from mechanisms.exponential import ExponentialMechanism
from mechanisms.finite_class import FiniteClass
from mechanisms.label_boost import PAPER_EPSILON, CarrierRelease
from mechanisms.macro_block import InitialBlock, MacroBlock
from mechanisms.noise import BoundedGeometricCount, RandomizedResponse
from mechanisms.oracles import ExponentialOracle
from mechanisms.reservoirs import AmplifiedReservoir, paper_amplification
from mechanisms.rounds import CarryForwardRound
from mechanisms.thresholds import Thresholds

EPSILON_LB = 1.0
"""The paper's."""
_EPSILON_A = 1.0


def affine_class() -> FiniteClass:
    """All eight affine functions ``a x1 + b x2 + c mod 2`` on {0,1}^2, with components (a, b, c): any labels fit
    three points.
    """
    square = tuple(itertools.product((0, 1), repeat=2))
    components = tuple(itertools.product((0, 1), repeat=3))
    concepts = [[(a * x + b * y + c) % 2 for x, y in square] for a, b, c in components]
    return FiniteClass(square, concepts, components)


def monotone_class() -> FiniteClass:
    """The six monotone functions of two bits: 0, and, the two bits, or, 1."""
    square = tuple(itertools.product((0, 1), repeat=2))
    return FiniteClass(square, [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 1), (1, 1, 1, 1)])


def eight_thresholds() -> Thresholds:
    """The thresholds 0..7, by their three binary digits."""
    return Thresholds(0, 7, radices=(2, 2, 2))


def records_of(points: Sequence[Any]) -> tuple[tuple[Any, int], ...]:
    """Each point with either label."""
    return tuple((point, label) for point in points for label in (0, 1))


def published_case(case: str, mechanism: Any, domain: Domain, epsilon: float, source: str, **flags: bool) -> AuditCase:
    """An audit of a mechanism's claim with the published (epsilon, 0) beside it."""
    return AuditCase(case, mechanism, mechanism.claim, domain, epsilon, 0.0, source, **flags)


def _exponential_cases() -> list[AuditCase]:
    mode = ExponentialMechanism(
        "abc", lambda d, c: d.count(c), 1.0, sensitivity=1, relation=Relation.REPLACE_ONE, ignores_order=True
    )
    median = ExponentialMechanism(
        range(5),
        lambda d, c: -abs(sum(x < c for x in d) - sum(x > c for x in d)),
        0.5,
        sensitivity=2,
        relation=Relation.REPLACE_ONE,
        ignores_order=True,
    )
    # One record moves one candidate's score up and all others' down: r**2 in the limit of many candidates.
    steep = ExponentialMechanism(
        range(1000), lambda d, c: int((c == 0) == d[0]), 1.0, sensitivity=1, relation=Relation.REPLACE_ONE
    )
    return [
        AuditCase("most common of three values", mode, mode.claim, ReplaceOne("abc", 4)),
        AuditCase("median on a grid of five", median, median.claim, ReplaceOne(range(5), 4)),
        AuditCase("one against a thousand", steep, steep.claim, ReplaceOne((False, True), 1), extremal=True),
    ]


def _round_cases() -> list[AuditCase]:
    thresholds = eight_thresholds()
    oracle = ExponentialOracle(thresholds, _EPSILON_A)
    block = CarryForwardRound(thresholds, (), oracle, EPSILON_LB, carrier=(2, 4))
    everything = ReplaceOne(records_of((1, 3, 5)), 3)
    realizable = ExplicitPairs(
        [pair for pair in everything.pairs() if all(is_realizable(thresholds, side) for side in pair)],
        Relation.REPLACE_ONE,
    )
    return [
        published_case("thresholds, realizable samples", block, realizable, _EPSILON_A + PAPER_EPSILON, "Claim 6.3"),
    ]


def _initial_cases() -> list[AuditCase]:
    thresholds, affine = eight_thresholds(), affine_class()
    line = InitialBlock(thresholds, ExponentialOracle(thresholds, _EPSILON_A), EPSILON_LB, carrier=(2, 5))
    parity = InitialBlock(
        affine, ExponentialOracle(affine, _EPSILON_A), EPSILON_LB, reservoir=affine.domain[:3], carrier_size=2
    )
    epsilon, source = _EPSILON_A + 2 * PAPER_EPSILON, "Lemma 6.4"
    return [
        published_case("thresholds, three records", line, ReplaceOne(records_of((1, 3, 6)), 3), epsilon, source),
        published_case(
            "affine functions, drawn carrier", parity, ReplaceOne(records_of(affine.domain), 2), epsilon, source
        ),
    ]


def _macro_block_cases() -> list[AuditCase]:
    thresholds, affine = eight_thresholds(), affine_class()
    by_digit = (ExponentialOracle(thresholds, _EPSILON_A),) * 2
    by_coefficient = (ExponentialOracle(affine, _EPSILON_A),) * 2
    fixed = MacroBlock(thresholds, (), ((5, 1),), by_digit, EPSILON_LB, carrier_size=3, next_carrier=(0, 1, 4))
    drawn = MacroBlock(thresholds, (), ((1, 0), (6, 1)), by_digit, EPSILON_LB, carrier_size=2, next_reservoir=(1, 4, 5))
    last = MacroBlock(thresholds, (1,), ((2, 0), (6, 1), (6, 1)), by_digit, EPSILON_LB, carrier_size=2)
    state = (((0, 1), 1), ((1, 1), 0))
    parity = MacroBlock(affine, (), state, by_coefficient, EPSILON_LB, carrier_size=2, next_carrier=affine.domain[::2])
    worst_last, worst_last_pair = extremal.last_macro_block(128, 16, EPSILON_LB)
    worst_inner, worst_inner_pair = extremal.inner_macro_block(32, 12, 32, EPSILON_LB)
    epsilon, source = _EPSILON_A + 2 * PAPER_EPSILON, "Lemma 6.2"
    return [
        published_case("thresholds, fixed next carrier", fixed, ReplaceOne((2, 4, 5, 6), 3), epsilon, source),
        published_case("thresholds, drawn next carrier", drawn, ReplaceOne((1, 3, 4, 6), 2), epsilon, source),
        published_case("thresholds, last two components", last, ReplaceOne((2, 4, 5, 6, 7), 2), epsilon, source),
        published_case("affine functions", parity, ReplaceOne(affine.domain, 2), epsilon, source),
        published_case(
            "last two components, worst oracle", worst_last, worst_last_pair, epsilon, source, extremal=True
        ),
        published_case("next carrier, worst oracle", worst_inner, worst_inner_pair, epsilon, source),
    ]


def _reservoir_cases() -> list[AuditCase]:
    cases = []

    def add(
        label: str, mechanism: Any, size: int, sample: int, values: Sequence[Any], paper: float, **flags: bool
    ) -> None:
        amplified = AmplifiedReservoir(mechanism, reservoir_size=size, sample_size=sample, claim=mechanism.claim)
        epsilon, _ = paper_amplification(paper, 0.0, reservoir_size=size, sample_size=sample)
        cases.append(published_case(label, amplified, ReplaceOne(values, size), epsilon, "Theorem 3.4", **flags))

    thresholds = eight_thresholds()
    oracles = (ExponentialOracle(thresholds, _EPSILON_A),) * 2
    block = MacroBlock(thresholds, (), ((1, 0), (6, 1)), oracles, EPSILON_LB, carrier_size=2, next_carrier=(1, 4))
    add("macro-block on 2 of 4 points", block, 4, 2, (1, 3, 5), _EPSILON_A + 2 * PAPER_EPSILON)
    release = CarrierRelease(Thresholds(0, 4), (1, 3), EPSILON_LB)
    add("LabelBoost on 2 of 4 records", release, 4, 2, records_of((0, 2)), PAPER_EPSILON)
    response = RandomizedResponse((0, 1, 2), 2.0)
    add("ordered randomized response on 2 of 3 records", response, 3, 2, (0, 1, 2), 2.0, extremal=True)
    add("randomized response on 1 of 5 records", response, 5, 1, (0, 1, 2), 2.0, extremal=True)
    return cases


def _response_cases() -> list[AuditCase]:
    coin, ternary = RandomizedResponse((0, 1), math.log(3)), RandomizedResponse("abc", 1.0)
    return [
        AuditCase("two values, three records", coin, coin.claim, ReplaceOne((0, 1), 3), extremal=True),
        AuditCase("three values, two records", ternary, ternary.claim, ReplaceOne("abc", 2), extremal=True),
    ]


def _count_cases() -> list[AuditCase]:
    count = BoundedGeometricCount(bool, 0.5, maximum=6)
    return [AuditCase("up to six records", count, count.claim, AddOrRemoveOne((0, 1), 6), extremal=True)]


def register_all() -> None:
    """Enter every mechanism of this layer."""
    replace = Relation.REPLACE_ONE
    for registration in (
        Registration(
            "exponential-mechanism",
            "selects one of finitely many candidates by an integer score, sampled exactly",
            "2 s ln r-bounded-range <= epsilon, for scores of sensitivity s and r^2 <= e^(epsilon/s)",
            replace,
            None,
            "McSherry and Talwar (2007), Theorem 6; Dong, Durfee and Rogers (2020), Lemma 3.2",
            _exponential_cases,
        ),
        Registration(
            "carry-forward-round",
            "one round of the learner: the next component, and the labels carried to the next carrier",
            "eps_A's event, then 2 ln(1+r)-bounded-range (paper: (eps_A + ln 4e, delta_A))",
            replace,
            "the sample is realizable by the concepts with the fixed prefix",
            "Claim 6.3, sharpened",
            _round_cases,
        ),
        Registration(
            "initial-block",
            "the learner's start: LabelBoost of the first sample, then one round",
            "2 ln(1+r)-bounded-range, eps_A's event, 2 ln(1+r)-bounded-range (paper: (eps_A + 2 ln 4e, 4e delta_A))",
            replace,
            None,
            "Lemma 6.4, sharpened",
            _initial_cases,
        ),
        Registration(
            "macro-block",
            "the two rounds in which one carrier has all its influence",
            "ln 4-bounded-range, eps_A's event, 2 ln(1+r)-bounded-range (paper: (eps_A + 2 ln 4e, 4e delta_A))",
            replace,
            None,
            "Lemma 6.2, sharpened",
            _macro_block_cases,
        ),
        Registration(
            "amplified-reservoir",
            "runs a mechanism on a uniform fixed-size sample of a reservoir, in random order",
            "q d(ln(1 + (e^e' - 1)/q)) for a mechanism of profile d, q = sample/reservoir",
            replace,
            None,
            "Theorem 3.4; Balle, Barthe and Gaboardi (2018), Theorem 9",
            _reservoir_cases,
        ),
        Registration(
            "randomized-response",
            "keeps each record or replaces it by a random one of k values",
            "ln r-DP, r <= e^epsilon",
            replace,
            None,
            "Warner (1965); Kairouz, Oh and Viswanath (2014)",
            _response_cases,
        ),
        Registration(
            "bounded-geometric-count",
            "a count with two-sided geometric noise, clamped to a public range",
            "ln r-DP, r <= e^epsilon",
            Relation.ADD_OR_REMOVE_ONE,
            None,
            "Ghosh, Roughgarden and Sundararajan (2009)",
            _count_cases,
        ),
    ):
        register(registration)
