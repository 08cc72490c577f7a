"""The registry's contents, continued: LabelBoost, LB* and ARelabel over every kind of concept class."""

from __future__ import annotations

import itertools
from fractions import Fraction

from accounting import Relation
from mechanisms import extremal
from mechanisms.base import AuditCase, Registration, register
from mechanisms.boolean_class import BooleanClass
from mechanisms.catalogue import EPSILON_LB, affine_class, monotone_class, published_case, records_of
from mechanisms.datasets import ReplaceOne
from mechanisms.halfspaces import Halfspaces
from mechanisms.intervals import Intervals
from mechanisms.label_boost import PAPER_EPSILON, CarrierRelease, PublicLabelRelease
from mechanisms.lb_star import StarPublicRelease, StarRelease
from mechanisms.rectangles import Rectangles
from mechanisms.relabel import PAPER_EPSILON_RELABEL, RelabelRelease
from mechanisms.thresholds import Thresholds


def _label_boost_carrier_cases() -> list[AuditCase]:
    line = CarrierRelease(Thresholds(0, 4), (1, 3), EPSILON_LB)
    affine = CarrierRelease(affine_class(), ((0, 1), (1, 1)), EPSILON_LB)
    squares = ReplaceOne(records_of(affine_class().domain), 2)
    many, many_pair = extremal.labelled_finite(1024, EPSILON_LB)
    heavy, heavy_pair = extremal.labelled_thresholds(24, EPSILON_LB)
    source = "Lemma 3.17"
    return [
        published_case("thresholds, three records", line, ReplaceOne(records_of(range(4)), 3), PAPER_EPSILON, source),
        published_case("affine functions, two records", affine, squares, PAPER_EPSILON, source),
        published_case("1024 labellings, one split", many, many_pair, PAPER_EPSILON, source, extremal=True),
        published_case("thresholds, one gap split", heavy, heavy_pair, PAPER_EPSILON, source, extremal=True),
        *_label_boost_class_cases(),
    ]


def _label_boost_class_cases() -> list[AuditCase]:
    """LabelBoost and its variant over each kind of class, on points with repeats, on boundaries and the origin."""
    cross = ((0, 0), (1, 0), (0, -1), (1, 1))
    plane, solid = Halfspaces(2, 1), Halfspaces(3, 1).prefix((1, Fraction(1, 2)))
    corners = ((1, 1, 0), (1, 0, 1), (-1, 1, 1))
    square = Rectangles(2, 0, 2)
    wedge = BooleanClass(lambda one, other: one and other, [Thresholds(0, 4), Intervals(0, 4)])
    cases = []
    for label, concept_class, carrier, records, size in (
        ("halfspaces in the plane, two records", plane, cross[1:3], cross, 2),
        ("halfspaces in space with a fixed prefix", solid, corners[:1], corners, 2),
        ("intervals, three records", Intervals(0, 4), (1, 3), (0, 1, 4), 3),
        ("rectangles, two records", square, ((1, 1), (2, 0)), ((0, 0), (1, 2), (1, 1)), 2),
        ("thresholds and intervals composed", wedge, (1, 3), (0, 2, 3), 2),
    ):
        mechanism = CarrierRelease(concept_class, carrier, EPSILON_LB)
        cases.append(
            published_case(label, mechanism, ReplaceOne(records_of(records), size), PAPER_EPSILON, "Lemma 3.17")
        )
    return cases


def _star_carrier_cases() -> list[AuditCase]:
    affine, square = affine_class(), Rectangles(2, 0, 2)
    many, many_pair = extremal.star_labelled_finite(1024, EPSILON_LB)
    cases = [AuditCase("1024 labellings, one told apart", many, many.claim, many_pair, extremal=True)]
    for label, concept_class, carrier, records, size in (
        ("thresholds, three records", Thresholds(0, 4), (1, 3), range(4), 3),
        ("affine functions, two records", affine, ((0, 1), (1, 1)), affine.domain, 2),
        ("halfspaces in the plane, two records", Halfspaces(2, 1), ((1, 0), (0, -1)), ((0, 0), (1, 0), (1, 1)), 2),
        ("intervals, three records", Intervals(0, 4), (1, 3), (0, 1, 4), 3),
        ("rectangles, two records", square, ((1, 1), (2, 0)), ((0, 0), (1, 2), (1, 1)), 2),
    ):
        mechanism = StarRelease(concept_class, carrier, EPSILON_LB)
        cases.append(AuditCase(label, mechanism, mechanism.claim, ReplaceOne(records_of(records), size)))
    return cases


def _star_public_cases() -> list[AuditCase]:
    line = StarPublicRelease(Thresholds(0, 6), ((1, 0), (4, 1)), (2, 5), EPSILON_LB)
    sample = (((1, 1), 1), ((0, 0), 0), ((-1, 1), 0))
    plane = StarPublicRelease(Halfspaces(2, 1), sample, ((1, 0), (0, 1)), EPSILON_LB)
    grid = tuple(itertools.product((-1, 0, 1), repeat=2))
    many, many_pair = extremal.star_unlabelled_finite(1024, EPSILON_LB)
    heavy, heavy_pair = extremal.star_unlabelled_thresholds(24, EPSILON_LB)
    return [
        AuditCase("thresholds, three points", line, line.claim, ReplaceOne(range(7), 3)),
        AuditCase("halfspaces in the plane, one point of the grid", plane, plane.claim, ReplaceOne(grid, 1)),
        AuditCase("1024 labellings, one split", many, many.claim, many_pair, extremal=True),
        AuditCase("thresholds, one gap split", heavy, heavy.claim, heavy_pair, extremal=True),
    ]


def _relabel_cases() -> list[AuditCase]:
    line = Thresholds(0, 4)
    between = BooleanClass(lambda low, high: low and not high, [line, line])
    first = RelabelRelease(between, (1, 3), EPSILON_LB)
    second = RelabelRelease(between.prefix((line.levels(()).pick(0, 0),)), (1, 3), EPSILON_LB)
    odd = BooleanClass(lambda *bits: sum(bits) % 2, [monotone_class()] * 3)
    parity = RelabelRelease(odd, ((0, 1), (1, 1)), EPSILON_LB)
    corners = records_of(((0, 0), (0, 1), (1, 0)))
    xor, xor_pair = extremal.relabelled_xor(256, 4, EPSILON_LB)
    source = "Corollary 8.17"
    return [
        published_case(
            "and not of thresholds, first part",
            first,
            ReplaceOne(records_of((0, 2, 3)), 3),
            PAPER_EPSILON_RELABEL,
            source,
        ),
        published_case(
            "and not of thresholds, second part",
            second,
            ReplaceOne(records_of((0, 2, 3)), 3),
            PAPER_EPSILON_RELABEL,
            source,
        ),
        published_case(
            "odd number of three monotone functions", parity, ReplaceOne(corners, 2), PAPER_EPSILON_RELABEL, source
        ),
        published_case(
            "exclusive or, one of 256 labellings split", xor, xor_pair, PAPER_EPSILON_RELABEL, source, extremal=True
        ),
    ]


def _label_boost_public_cases() -> list[AuditCase]:
    line = PublicLabelRelease(Thresholds(0, 6), ((1, 0), (4, 1)), (2, 5), EPSILON_LB)
    square = monotone_class()
    monotone = PublicLabelRelease(square, (((1, 1), 1),), ((0, 1),), EPSILON_LB)
    many, many_pair = extremal.unlabelled_finite(1024, EPSILON_LB)
    heavy, heavy_pair = extremal.unlabelled_thresholds(24, EPSILON_LB)
    source = "Lemma 3.14"
    return [
        published_case("thresholds, three points", line, ReplaceOne(range(7), 3), PAPER_EPSILON, source),
        published_case("monotone functions, two points", monotone, ReplaceOne(square.domain, 2), PAPER_EPSILON, source),
        published_case("1024 labellings, one split", many, many_pair, PAPER_EPSILON, source, extremal=True),
        published_case("thresholds, one gap split", heavy, heavy_pair, PAPER_EPSILON, source, extremal=True),
    ]


def register_labellings() -> None:
    """Enter the labelling mechanisms."""
    replace = Relation.REPLACE_ONE
    for registration in (
        Registration(
            "label-boost-carrier",
            "LabelBoost of a private labelled sample; releases the labels of public points",
            "2 ln(1+r)-bounded-range, r^2 <= e^eps_LB (paper: ln 4e at eps_LB = 1)",
            replace,
            None,
            "Lemma 3.17, sharpened",
            _label_boost_carrier_cases,
        ),
        Registration(
            "label-boost-public",
            "LabelBoost of a public sample over private unlabelled points; releases the labels of public points",
            "ln 4-bounded-range for every eps_LB (paper: ln 4e at eps_LB = 1)",
            replace,
            None,
            "Lemma 3.14, sharpened",
            _label_boost_public_cases,
        ),
        Registration(
            "lb-star-carrier",
            "LB* of a private labelled sample: LabelBoost over the public carrier's dichotomies; releases their labels",
            "2 ln r-bounded-range <= eps_LB, r^2 <= e^eps_LB",
            replace,
            None,
            "the exponential mechanism; best extensions as score",
            _star_carrier_cases,
        ),
        Registration(
            "lb-star-public",
            "LB* with part of its carrier private; releases the labels of the public part",
            "ln 4-bounded-range for every eps_LB",
            replace,
            None,
            "best extensions as score: weights within a factor 2 either way",
            _star_public_cases,
        ),
        Registration(
            "relabel-carrier",
            "ARelabel of a private labelled sample by the next part of a Boolean composition; releases labels of "
            "public points",
            "ln(4 r^2)-bounded-range <= ln 4 + epsilon (paper: 3 at epsilon = 1)",
            replace,
            None,
            "Proposition 8.16; Alon et al. (2020), Lemma 25",
            _relabel_cases,
        ),
    ):
        register(registration)
