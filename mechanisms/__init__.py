"""Mechanisms: what touches data. Each is registered with its claim and can be audited exactly on small inputs."""

from mechanisms.base import (
    AdaptedMechanism,
    AuditCase,
    Dataset,
    Law,
    Mechanism,
    Registration,
    as_mechanism,
    check_law,
    is_hashable,
    register,
    registered,
)
from mechanisms.block_bound import (
    BasisBound,
    BlockBound,
    GrowthBound,
    hypergeometric_at_most,
    published_block,
    smallest_block,
    vc_growth,
)
from mechanisms.boolean_class import BooleanClass, BooleanConcept
from mechanisms.catalogue import register_all
from mechanisms.concepts import (
    Concept,
    ConceptClass,
    NotRealizableError,
    best_agreement,
    check_realizable,
    is_realizable,
)
from mechanisms.datasets import AddOrRemoveOne, Domain, ExplicitPairs, Pair, ReplaceOne, are_neighbours
from mechanisms.exponential import ExponentialMechanism, rational_base
from mechanisms.finite_class import FiniteClass
from mechanisms.halfspaces import Halfspace, Halfspaces
from mechanisms.interior_point import InteriorPoint, InteriorPointMechanism, OverDomain, RankedDomain, SortedDomain
from mechanisms.intervals import Interval, Intervals
from mechanisms.ip_concave import IPConcave, IPConcavePlan, block_maximiser, plan_ip_concave
from mechanisms.label_boost import (
    PAPER_EPSILON,
    Boosted,
    CarrierRelease,
    PublicLabelRelease,
    carrier_law,
    label_boost,
    label_boost_law,
    labelled_claim,
    unlabelled_claim,
)
from mechanisms.labelling_catalogue import register_labellings
from mechanisms.lb_star import (
    StarPublicRelease,
    StarRelease,
    best_levels,
    lb_star,
    star_labelled_claim,
    star_law,
    star_unlabelled_claim,
)
from mechanisms.macro_block import InitialBlock, MacroBlock
from mechanisms.noise import BoundedGeometricCount, RandomizedResponse
from mechanisms.oracles import ComponentOracle, ExponentialOracle
from mechanisms.quasi_concave import QuasiConcaveTreeChoose, StepSelection, TotalExtension
from mechanisms.rectangles import Rectangle, Rectangles
from mechanisms.relabel import PAPER_EPSILON_RELABEL, RelabelRelease, relabel, relabel_claim
from mechanisms.reorder_slice import ReorderSliceChoose, plan_reorder_slice
from mechanisms.reservoirs import AmplifiedReservoir, paper_amplification, partition, sample_records
from mechanisms.rounds import CarryForwardRound
from mechanisms.sampling import draw_index, draw_indices
from mechanisms.selection_catalogue import counterexamples, register_selections
from mechanisms.slice_parameters import SliceParameters
from mechanisms.step_function import LevelOracle, PointOracle, StepFunction, from_level_oracle, threshold_agreement
from mechanisms.thresholds import Thresholds
from mechanisms.tree_choose import TreeChoose, choose_interior_point

register_all()
register_labellings()
register_selections()

__all__ = [
    "PAPER_EPSILON",
    "PAPER_EPSILON_RELABEL",
    "AdaptedMechanism",
    "AddOrRemoveOne",
    "AmplifiedReservoir",
    "AuditCase",
    "BasisBound",
    "BlockBound",
    "BooleanClass",
    "BooleanConcept",
    "Boosted",
    "BoundedGeometricCount",
    "CarrierRelease",
    "CarryForwardRound",
    "ComponentOracle",
    "Concept",
    "ConceptClass",
    "Dataset",
    "Domain",
    "ExplicitPairs",
    "ExponentialMechanism",
    "ExponentialOracle",
    "FiniteClass",
    "GrowthBound",
    "Halfspace",
    "Halfspaces",
    "IPConcave",
    "IPConcavePlan",
    "InitialBlock",
    "InteriorPoint",
    "InteriorPointMechanism",
    "Interval",
    "Intervals",
    "Law",
    "LevelOracle",
    "MacroBlock",
    "Mechanism",
    "NotRealizableError",
    "OverDomain",
    "Pair",
    "PointOracle",
    "PublicLabelRelease",
    "QuasiConcaveTreeChoose",
    "RandomizedResponse",
    "RankedDomain",
    "Rectangle",
    "Rectangles",
    "Registration",
    "RelabelRelease",
    "ReorderSliceChoose",
    "ReplaceOne",
    "SliceParameters",
    "SortedDomain",
    "StarPublicRelease",
    "StarRelease",
    "StepFunction",
    "StepSelection",
    "Thresholds",
    "TotalExtension",
    "TreeChoose",
    "are_neighbours",
    "as_mechanism",
    "best_agreement",
    "best_levels",
    "block_maximiser",
    "carrier_law",
    "check_law",
    "check_realizable",
    "choose_interior_point",
    "counterexamples",
    "draw_index",
    "draw_indices",
    "from_level_oracle",
    "hypergeometric_at_most",
    "is_hashable",
    "is_realizable",
    "label_boost",
    "label_boost_law",
    "labelled_claim",
    "lb_star",
    "paper_amplification",
    "partition",
    "plan_ip_concave",
    "plan_reorder_slice",
    "published_block",
    "rational_base",
    "register",
    "registered",
    "relabel",
    "relabel_claim",
    "sample_records",
    "smallest_block",
    "star_labelled_claim",
    "star_law",
    "star_unlabelled_claim",
    "threshold_agreement",
    "unlabelled_claim",
    "vc_growth",
]
