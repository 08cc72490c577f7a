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
from accounting.calibration import InfeasibleError, calibrate, largest_sampling_rate, rough_sampling_rate
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
from accounting.filters import AdaptiveChoiceError, BasicFilter, GaussianFilter, PrivacyFilter, RenyiFilter, ZCdpFilter
from accounting.ledger import Ledger
from accounting.optimal_composition import optimal_composition_delta, optimal_composition_epsilon
from accounting.paper_theorems import (
    PAPER_LABEL_BOOST_LOSS,
    PAPER_ORACLE_EPSILON,
    UNLABELLED_WIDTH,
    Algorithm2,
    algorithm_2,
    algorithm_2_records,
    labelled_width,
    paper_activations,
    paper_block,
    reservoir_privacy,
    sharp_block,
    sharp_start,
)
from accounting.profiles import PrivacyProfile
from accounting.rationals import exp_bounds, log_bounds, round_down, round_up
from accounting.report import Report, build_report
from accounting.routes import Route, RouteOrderError, all_routes, all_routes_over, closed_form, tightest
from accounting.statement import Marginal, Spending
from accounting.store import LedgerStore, Ticket
from accounting.theorems import (
    EpsilonDelta,
    advanced_composition,
    advanced_composition_epsilon,
    amplify,
    base_for_amplified,
    basic_composition,
    gaussian_delta,
    gaussian_epsilon,
    group_privacy,
    renyi_epsilon,
)

__all__ = [
    "PAPER_LABEL_BOOST_LOSS",
    "PAPER_ORACLE_EPSILON",
    "UNLABELLED_WIDTH",
    "AdaptiveChoiceError",
    "Algorithm2",
    "ApproximateDpEvent",
    "BasicFilter",
    "BoundedRangeDpEvent",
    "Budget",
    "BudgetExceeded",
    "BudgetExceededError",
    "Charge",
    "Claim",
    "Dataset",
    "DiscreteGaussianDpEvent",
    "DominatingPairDpEvent",
    "EpsilonDelta",
    "GaussianFilter",
    "GroupDpEvent",
    "InfeasibleError",
    "Ledger",
    "LedgerFileError",
    "LedgerStore",
    "Marginal",
    "PermuteAndFlipDpEvent",
    "PrivacyFilter",
    "PrivacyProfile",
    "ProfileAccountant",
    "RdpDpEvent",
    "Relation",
    "RelationMismatchError",
    "RenyiFilter",
    "Report",
    "Route",
    "RouteOrderError",
    "Spending",
    "Ticket",
    "Trust",
    "UnsupportedEventError",
    "ZCdpFilter",
    "advanced_composition",
    "advanced_composition_epsilon",
    "algorithm_2",
    "algorithm_2_records",
    "all_routes",
    "all_routes_over",
    "amplify",
    "base_for_amplified",
    "basic_composition",
    "build_report",
    "calibrate",
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
    "closed_form",
    "event_from_json",
    "event_to_json",
    "exp_bounds",
    "gaussian_delta",
    "gaussian_epsilon",
    "group_privacy",
    "labelled_width",
    "largest_sampling_rate",
    "log_bounds",
    "optimal_composition_delta",
    "optimal_composition_epsilon",
    "paper_activations",
    "paper_block",
    "relation_name",
    "renyi_epsilon",
    "reservoir_privacy",
    "rough_sampling_rate",
    "round_down",
    "round_up",
    "sharp_block",
    "sharp_start",
    "tightest",
]
