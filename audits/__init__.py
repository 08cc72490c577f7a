"""Audits: attempts to refute a privacy claim, exactly where the output space is finite, statistically otherwise."""

from audits import neighbours
from audits.api import audit, verify
from audits.claims_file import ClaimsFileError
from audits.exact import FinitePair
from audits.loading import LoadError
from audits.verdicts import Status, Verdict, Witness
from audits.verification import Unchecked, VerificationRun

__all__ = [
    "ClaimsFileError",
    "FinitePair",
    "LoadError",
    "Status",
    "Unchecked",
    "Verdict",
    "VerificationRun",
    "Witness",
    "audit",
    "neighbours",
    "verify",
]
