"""Privacy accounting: claims, profiles, ledgers. Values and arithmetic only; nothing here samples or touches data."""

from dp_accounting import NeighboringRelation as Relation

from accounting._checks import (
    check_epsilon,
    check_fraction,
    check_int,
    check_probability,
    check_real,
    check_relation,
    check_text,
    relation_name,
)
from accounting.accountant import ProfileAccountant
from accounting.claims import Claim, Trust
from accounting.errors import (
    BudgetExceeded,
    BudgetExceededError,
    LedgerFileError,
    RelationMismatchError,
    UnsupportedEventError,
)
from accounting.events import ApproximateDpEvent, BoundedRangeDpEvent, DominatingPairDpEvent
from accounting.profiles import PrivacyProfile
from accounting.rationals import exp_bounds, log_bounds, round_down, round_up

__all__ = [
    "ApproximateDpEvent",
    "BoundedRangeDpEvent",
    "BudgetExceeded",
    "BudgetExceededError",
    "Claim",
    "DominatingPairDpEvent",
    "LedgerFileError",
    "PrivacyProfile",
    "ProfileAccountant",
    "Relation",
    "RelationMismatchError",
    "Trust",
    "UnsupportedEventError",
    "check_epsilon",
    "check_fraction",
    "check_int",
    "check_probability",
    "check_real",
    "check_relation",
    "check_text",
    "exp_bounds",
    "log_bounds",
    "relation_name",
    "round_down",
    "round_up",
]
