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
from mechanisms.macro_block import InitialBlock, MacroBlock
from mechanisms.noise import BoundedGeometricCount, RandomizedResponse
from mechanisms.oracles import ComponentOracle, ExponentialOracle
from mechanisms.reservoirs import AmplifiedReservoir, paper_amplification, partition, sample_records
from mechanisms.rounds import CarryForwardRound
from mechanisms.sampling import draw_index, draw_indices
from mechanisms.thresholds import Thresholds

register_all()

__all__ = [
    "PAPER_EPSILON",
    "AdaptedMechanism",
    "AddOrRemoveOne",
    "AmplifiedReservoir",
    "AuditCase",
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
    "InitialBlock",
    "Law",
    "MacroBlock",
    "Mechanism",
    "NotRealizableError",
    "Pair",
    "PublicLabelRelease",
    "RandomizedResponse",
    "Registration",
    "ReplaceOne",
    "Thresholds",
    "are_neighbours",
    "as_mechanism",
    "best_agreement",
    "carrier_law",
    "check_law",
    "check_realizable",
    "draw_index",
    "draw_indices",
    "is_hashable",
    "is_realizable",
    "label_boost",
    "label_boost_law",
    "labelled_claim",
    "paper_amplification",
    "partition",
    "rational_base",
    "register",
    "registered",
    "sample_records",
    "unlabelled_claim",
]
