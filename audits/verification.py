"""What a verification run found: the verdicts in order, and all that is needed to read and repeat it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from audits.verdicts import Status, Verdict

SCHEMA = 1
EXIT_INTERRUPTED = 130
_DISTRIBUTIONS = ("dpledger", "dp-accounting", "numpy", "scipy")


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A claim that could not be read, so that there is nothing to audit; `error` says why, in one paragraph."""

    name: str
    mechanism: str | None
    error: str

    @property
    def status(self) -> Status:
        return Status.INCONCLUSIVE

    def to_json(self) -> dict[str, Any]:
        """The same keys as a verdict's, None where nothing is known."""
        return {
            "name": self.name,
            "mechanism": self.mechanism,
            "relation": None,
            "promise": None,
            "claimed": {"epsilon": None, "delta": None},
            "verdict": self.status.value,
            "method": None,
            "epsilon_lower": None,
            "epsilon_upper": None,
            "epsilon_detectable": None,
            "runs": 0,
            "pairs_tried": 0,
            "witness": None,
            "seconds": 0.0,
            "source": None,
            "error": self.error,
            "summary": self.summary(),
        }

    def summary(self) -> str:
        """One line in plain words."""
        return f"{self.status}: the claim was not checked: {self.error}"


Row = Verdict | Unchecked


@dataclass(frozen=True, slots=True)
class VerificationRun:
    """The outcome of a verification run.

    verdicts: one a claim, in the order of the claims. confidence: of the whole run: if all claims are true, the
    probability that any of them is refuted is at most 1 - confidence. statistical: how many claims were audited from
    samples; each had the share (1 - confidence) / statistical of the error budget, or less if it asked for more
    confidence. interrupted: stopped by the user. versions: (name, version) of what was run.
    """

    verdicts: tuple[Row, ...]
    seed: int
    confidence: float
    statistical: int
    seconds: float
    interrupted: bool
    versions: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.verdicts)

    def count(self, status: Status) -> int:
        """How many claims have this status."""
        return sum(row.status is status for row in self.verdicts)

    @property
    def errors(self) -> tuple[Row, ...]:
        """The claims that could not be checked, or not to the end, because something went wrong."""
        return tuple(row for row in self.verdicts if row.error is not None)

    def exit_code(self, *, strict: bool) -> int:
        """1 if a claim is refuted; else 2 if one could not be checked; else 130 if interrupted; else 3 if one is
        inconclusive and `strict`; else 0.
        """
        refuted = self.count(Status.REFUTED) > 0
        inconclusive = strict and self.count(Status.INCONCLUSIVE) > 0
        codes = ((refuted, 1), (bool(self.errors), 2), (self.interrupted, EXIT_INTERRUPTED), (inconclusive, 3))
        return next((code for applies, code in codes if applies), 0)

    @property
    def error_budget(self) -> str:
        """How the error budget was spent, in a sentence."""
        alpha = 1.0 - self.confidence
        if self.statistical == 0:
            return "No claim was audited from samples: nothing here rests on chance."
        share = "" if self.statistical == 1 else f", {alpha / self.statistical:.3g} for each of the {self.statistical}"
        return (
            f"If every claim is true, the probability that this run refutes any is at most {alpha:.3g} over the "
            f"{_plural(self.statistical, 'claim')} audited from samples{share}."
        )

    def to_json(self) -> dict[str, Any]:
        """The ``--json`` file of INTERFACES, with further fields."""
        return {
            "schema": SCHEMA,
            "seed": self.seed,
            "confidence": self.confidence,
            "statistical_claims": self.statistical,
            "claims": [row.to_json() for row in self.verdicts],
            "counts": {status.value: self.count(status) for status in Status},
            "errors": len(self.errors),
            "interrupted": self.interrupted,
            "seconds": self.seconds,
            "versions": dict(self.versions),
        }


def versions() -> tuple[tuple[str, str], ...]:
    """(name, version) of this product, of Python and of the libraries that results depend on."""
    return (
        *((name, _tried(name)) for name in _DISTRIBUTIONS[:1]),
        ("python", platform.python_version()),
        *((name, _tried(name)) for name in _DISTRIBUTIONS[1:]),
    )


def _tried(distribution: str, version: Callable[[str], str] = importlib.metadata.version) -> str:
    try:
        return version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
