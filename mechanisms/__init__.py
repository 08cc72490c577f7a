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
from mechanisms.datasets import AddOrRemoveOne, Domain, ExplicitPairs, Pair, ReplaceOne, are_neighbours

__all__ = [
    "AdaptedMechanism",
    "AddOrRemoveOne",
    "AuditCase",
    "Dataset",
    "Domain",
    "ExplicitPairs",
    "Law",
    "Mechanism",
    "Pair",
    "Registration",
    "ReplaceOne",
    "are_neighbours",
    "as_mechanism",
    "check_law",
    "is_hashable",
    "register",
    "registered",
]
