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
from accounting.codec import claim_from_json, claim_to_json, event_from_json, event_to_json
from accounting.decimals import Budget
from accounting.entries import Charge, Dataset
from accounting.errors import (
    BudgetExceeded,
    BudgetExceededError,
    LedgerFileError,
    RelationMismatchError,
    UnsupportedEventError,
)
from accounting.event_table import check_event
from accounting.events import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    DiscreteGaussianDpEvent,
    DominatingPairDpEvent,
    GroupDpEvent,
    PermuteAndFlipDpEvent,
    RdpDpEvent,
)
from accounting.ledger import Ledger
from accounting.profiles import PrivacyProfile
from accounting.rationals import exp_bounds, log_bounds, round_down, round_up
from accounting.statement import Marginal, Route

__all__ = [
    "ApproximateDpEvent",
    "BoundedRangeDpEvent",
    "Budget",
    "BudgetExceeded",
    "BudgetExceededError",
    "Charge",
    "Claim",
    "Dataset",
    "DiscreteGaussianDpEvent",
    "DominatingPairDpEvent",
    "GroupDpEvent",
    "Ledger",
    "LedgerFileError",
    "Marginal",
    "PermuteAndFlipDpEvent",
    "PrivacyProfile",
    "ProfileAccountant",
    "RdpDpEvent",
    "Relation",
    "RelationMismatchError",
    "Route",
    "Trust",
    "UnsupportedEventError",
    "check_epsilon",
    "check_event",
    "check_fraction",
    "check_int",
    "check_probability",
    "check_real",
    "check_relation",
    "check_text",
    "claim_from_json",
    "claim_to_json",
    "event_from_json",
    "event_to_json",
    "exp_bounds",
    "log_bounds",
    "relation_name",
    "round_down",
    "round_up",
]
