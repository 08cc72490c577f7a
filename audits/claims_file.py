"""Claims files: privacy claims as TOML, read strictly.

A key that is not known, a value of the wrong kind or out of range is never passed over. What concerns the whole file
refuses the file; what concerns one claim makes that claim a `BrokenClaim` and leaves the others to be checked. Every
problem is reported, not only the first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accounting import (
    Claim,
    Relation,
    check_epsilon,
    check_int,
    check_probability,
    check_real,
    check_relation,
    check_text,
)
from audits.loading import hint, one_paragraph, split_target
from audits.neighbours import from_config
from mechanisms import Domain

SCHEMA = 1
METHODS = ("auto", "exact", "sequential")
_RELATIONS = ("replace-one", "add-remove")

_FILE_KEYS = ("schema", "confidence", "max_runs", "timeout", "claims")
_CLAIM_KEYS = (
    "name",
    "mechanism",
    "parameters",
    "epsilon",
    "delta",
    "relation",
    "neighbours",
    "promise",
    "source",
    "confidence",
    "max_runs",
    "timeout",
    "method",
)
_REQUIRED = object()


class ClaimsFileError(ValueError):
    """A claims file that cannot be used at all; the message is one paragraph with every problem found."""


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """One claim about a mechanism that is named by text, as a claims file or a command line states it.

    mechanism: ``pkg.module:name`` or ``path/file.py:name``, relative to `folder`. confidence: the least confidence
    wanted for this claim; the run's error budget may ask for more. timeout: seconds allowed for one call of the
    mechanism. method: auto (exact where the mechanism offers a distribution and the domain is small enough), exact or
    sequential.
    """

    name: str
    mechanism: str
    folder: Path
    parameters: Mapping[str, Any]
    epsilon: float
    delta: float
    domain: Domain
    source: str
    promise: str | None = None
    confidence: float | None = None
    max_runs: int | None = None
    timeout: float | None = None
    method: str = "auto"

    @property
    def claim(self) -> Claim:
        return Claim.approximate(
            self.epsilon, self.delta, relation=self.domain.relation, source=self.source, promise=self.promise
        )


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """A claim that could not be read: `problems` says why, in the order of the keys."""

    name: str
    mechanism: str | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimsFile:
    """A claims file: its claims in order, and what it sets for all of them (None where it says nothing)."""

    path: Path
    claims: tuple[ClaimSpec | BrokenClaim, ...]
    confidence: float | None = None
    max_runs: int | None = None
    timeout: float | None = None


def read_claims(path: Path) -> ClaimsFile:
    """Read the claims file at `path` (the format is in the README).

    Raises:
        ClaimsFileError: the file is missing, is not TOML, has another schema, no claims, or a problem outside its
        claims.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        siblings = [other.name for other in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        raise ClaimsFileError(f"there is no claims file {path}{hint(path.name, siblings)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClaimsFileError(f"the claims file {path} cannot be read: {one_paragraph(error)}") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimsFileError(f"the claims file {path} is not valid TOML: {one_paragraph(error)}") from None
    return _parse(table, path)


def check_neighbouring(name: str, value: object) -> Relation:
    """A relation that a finite domain can be enumerated under, by its name."""
    if value not in _RELATIONS:
        near = hint(value, _RELATIONS) if isinstance(value, str) else ""
        raise ValueError(f"{name} must be {' or '.join(_RELATIONS)}, got {value!r}{near}")
    return check_relation(name, value)


def check_confidence(name: str, value: object) -> float:
    """A confidence level in (0, 1)."""
    return check_real(name, value, lo=0.0, hi=1.0, lo_open=True, hi_open=True)


def check_timeout(name: str, value: object) -> float:
    """A number of seconds above 0."""
    return check_real(name, value, lo=0.0, lo_open=True)


def check_runs(name: str, value: object) -> int:
    """A number of runs, at least 1."""
    return check_int(name, value, lo=1)


def check_method(name: str, value: object) -> str:
    """One of `METHODS`."""
    if value not in METHODS:
        raise ValueError(f"{name} must be one of {', '.join(METHODS)}, got {value!r}{hint(str(value), METHODS)}")
    return str(value)


def check_parameters(name: str, value: object) -> dict[str, Any]:
    """A table of keyword arguments."""
    if not isinstance(value, dict) or not all(isinstance(key, str) and key.isidentifier() for key in value):
        raise TypeError(f"{name} must be a table whose keys are Python names, got {value!r}")
    return value


@dataclass(slots=True)
class _Reader:
    """Takes keys out of a table, keeping every problem instead of stopping at the first."""

    table: Mapping[str, Any]
    keys: Sequence[str]
    problems: list[str] = field(default_factory=list)

    def take(self, key: str, check: Callable[[str, object], Any], default: Any = _REQUIRED) -> Any:
        if key not in self.table:
            if default is _REQUIRED and not self._mistyped(key):
                self.problems.append(f"the key {key!r} is missing")
            return None if default is _REQUIRED else default
        try:
            return check(key, self.table[key])
        except (TypeError, ValueError) as error:
            self.problems.append(one_paragraph(error))
            return None

    def refuse_unknown(self) -> None:
        unknown = [f"unknown key {key!r}{hint(key, self.keys)}" for key in self.table if key not in self.keys]
        self.problems[:0] = unknown

    def _mistyped(self, key: str) -> bool:
        """Whether the message about an unknown key will already name this one."""
        return any(f'"{key}"' in hint(other, self.keys) for other in self.table if other not in self.keys)


def _parse(table: Mapping[str, Any], path: Path) -> ClaimsFile:
    reader = _Reader(table, _FILE_KEYS)
    reader.take("schema", _check_schema)
    confidence = reader.take("confidence", check_confidence, None)
    max_runs = reader.take("max_runs", check_runs, None)
    timeout = reader.take("timeout", check_timeout, None)
    entries = reader.take("claims", _check_entries)
    reader.refuse_unknown()
    if reader.problems:
        raise ClaimsFileError(f"the claims file {path} cannot be used: {_listed(reader.problems)}")
    claims: list[ClaimSpec | BrokenClaim] = []
    taken: dict[str, int] = {}
    for number, entry in enumerate(entries, start=1):
        claim = _parse_claim(entry, number, path, taken)
        taken.setdefault(claim.name, number)
        claims.append(claim)
    return ClaimsFile(path, tuple(claims), confidence, max_runs, timeout)


def _parse_claim(
    entry: Mapping[str, Any], number: int, path: Path, taken: Mapping[str, int]
) -> ClaimSpec | BrokenClaim:
    reader = _Reader(entry, _CLAIM_KEYS)
    name = reader.take("name", check_text)
    mechanism = reader.take("mechanism", _check_target)
    relation = reader.take("relation", check_neighbouring)
    known = {
        "parameters": reader.take("parameters", check_parameters, {}),
        "epsilon": reader.take("epsilon", check_epsilon),
        "delta": reader.take("delta", check_probability, 0.0),
        "domain": reader.take("neighbours", lambda _, value: relation and from_config(value, relation)),
        "promise": reader.take("promise", check_text, None),
        "source": reader.take("source", check_text, path.name),
        "confidence": reader.take("confidence", check_confidence, None),
        "max_runs": reader.take("max_runs", check_runs, None),
        "timeout": reader.take("timeout", check_timeout, None),
        "method": reader.take("method", check_method, "auto"),
    }
    reader.refuse_unknown()
    if name in taken:
        reader.problems.append(f"the name {name!r} is already that of claim {taken[name]}")
    if reader.problems:
        named = name if isinstance(name, str) and name not in taken else f"claim {number}"
        return BrokenClaim(named, mechanism, tuple(reader.problems))
    return ClaimSpec(name=name, mechanism=mechanism, folder=path.parent, **known)


def _check_schema(name: str, value: object) -> int:
    if value != SCHEMA or isinstance(value, bool):
        raise ValueError(f"{name} must be {SCHEMA}, the only one this version reads, got {value!r}")
    return SCHEMA


def _check_entries(name: str, value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        raise ValueError(f"{name} must be one or more tables, each headed [[claims]]")
    return value


def _check_target(name: str, value: object) -> str:
    target = check_text(name, value)
    split_target(target)
    return target


def _listed(problems: Iterable[str]) -> str:
    return "; ".join(problems)
