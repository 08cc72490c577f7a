"""What a mechanism is to the rest of the house, adapters for what users bring, and the registry of our own.

A mechanism is anything with ``release(dataset, *, rng)``. It may also offer, and is then checked more sharply or
faster:

- ``distribution(dataset)``: the exact law of ``release``, a mapping from outcomes to probabilities (Fractions where
  exact);
- ``release_many(dataset, size, *, rng)``: `size` independent outcomes at once;
- ``ignores_order``: True when the law does not depend on the order of the records;
- ``check_dataset(dataset)``: raises ValueError when the promise on inputs does not hold.
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from accounting import (
    Claim,
    Relation,
    check_epsilon,
    check_int,
    check_probability,
    check_relation,
    check_text,
    relation_name,
)
from mechanisms.datasets import Domain

Dataset = Sequence[Any]
"""Records, in order; passed around as tuples."""

Law = Mapping[Any, Fraction] | Mapping[Any, float]
"""An output distribution: hashable outcomes to probabilities that sum to 1 (exactly, when they are Fractions)."""

_FLOAT_SUM_TOLERANCE = 1e-9
_KEBAB_CASE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from datasets to outcomes; the optional parts are listed in the module's docstring."""

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Any:
        """One outcome. rng: None draws from system entropy; a Generator makes the outcome replayable."""
        ...


def check_law(name: str, law: object) -> Law:
    """Return `law` if it is a probability distribution over hashable outcomes.

    Fractions (and ints) must sum to exactly 1; with floats among them, to 1 within 1e-9.

    Raises:
        TypeError: not a mapping, or a probability is not a real number.
        ValueError: empty, a probability outside [0, 1] or NaN, or a wrong total.
    """
    if not isinstance(law, Mapping):
        raise TypeError(f"{name} must be a mapping from outcomes to probabilities, got {type(law).__name__}")
    if not law:
        raise ValueError(f"{name} must hold at least one outcome, got an empty mapping")
    for outcome, probability in law.items():
        if isinstance(probability, bool) or not isinstance(probability, numbers.Real):
            raise TypeError(f"{name}[{outcome!r}] must be a probability, got {probability!r}")
        if not 0 <= cast("Fraction | float", probability) <= 1:
            raise ValueError(f"{name}[{outcome!r}] must be in [0, 1], got {probability!r}")
    if all(isinstance(probability, numbers.Rational) for probability in law.values()):
        common = math.lcm(*{probability.denominator for probability in law.values()})
        total = Fraction(sum(p.numerator * (common // p.denominator) for p in law.values()), common)
        if total != 1:
            got = str(total) if Fraction(total).denominator < 10**9 else f"1 + {float(total - 1):.3g}"
            raise ValueError(f"{name} must sum to exactly 1, got {got}")
    else:
        approximate = math.fsum(float(probability) for probability in law.values())
        if not abs(approximate - 1.0) <= _FLOAT_SUM_TOLERANCE:
            raise ValueError(f"{name} must sum to 1 within {_FLOAT_SUM_TOLERANCE:g}, got {approximate!r}")
    return law


@dataclass(frozen=True, slots=True)
class AdaptedMechanism:
    """One calling convention over everything that `as_mechanism` accepts.

    name: how to speak of it. ignores_order: as declared by the target, False when it says nothing. replayable:
    whether equal generators give equal outcomes. vectorised: whether `release_many` is the target's own.
    has_distribution: whether `distribution` may be called. notes: what a reader of a verdict should know.
    """

    name: str
    ignores_order: bool
    replayable: bool
    notes: tuple[str, ...]
    _release: Callable[[Dataset, np.random.Generator | None], Any]
    _release_many: Callable[[Dataset, int, np.random.Generator | None], Any] | None
    _distribution: Callable[[Dataset], object] | None
    _check_dataset: Callable[[Dataset], object] | None

    @property
    def vectorised(self) -> bool:
        return self._release_many is not None

    @property
    def has_distribution(self) -> bool:
        return self._distribution is not None

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Any:
        """One outcome on `dataset`."""
        return self._release(dataset, rng)

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> Any:
        """`size` independent outcomes, as the target's sequence or array (first axis), else a list.

        Raises:
            ValueError: size is negative, or the target returns another number of outcomes.
        """
        check_int("size", size, lo=0)
        if self._release_many is None:
            return [self._release(dataset, rng) for _ in range(size)]
        outcomes = self._release_many(dataset, size, rng)
        if len(outcomes) != size:
            raise ValueError(f"release_many of {self.name} must return {size} outcomes, got {len(outcomes)}")
        return outcomes

    def distribution(self, dataset: Dataset) -> Law:
        """The output law on `dataset`, checked to be one (`check_law`).

        Raises:
            TypeError: the target offers none; ask `has_distribution` first.
        """
        if self._distribution is None:
            raise TypeError(f"{self.name} offers no distribution")
        return check_law(f"distribution of {self.name}", self._distribution(dataset))

    def check_dataset(self, dataset: Dataset) -> None:
        """Raise ValueError where the target's promise on inputs does not hold; silent when it declares none."""
        if self._check_dataset is not None:
            self._check_dataset(dataset)


def as_mechanism(
    target: object, parameters: Mapping[str, Any] | None = None, *, name: str | None = None
) -> AdaptedMechanism:
    """Adapt what a user brings; wrong parameters are refused here, before anything runs.

    target, one of:

    - an object with ``release(dataset, *, rng)`` (no parameters: it is already built), or a class of such objects,
      built
      with `parameters`;
    - a function ``f(dataset, *, rng, **parameters)``, whose attributes ``f.distribution(dataset, **parameters)``,
      ``f.release_many(dataset, size, *, rng, **parameters)``, ``f.check_dataset(dataset)`` and ``f.ignores_order`` are
      used when present;
    - a plain function ``f(dataset, **parameters)``, which draws its own randomness and so cannot be replayed (noted).

    name: defaults to the target's own name.

    Raises:
        TypeError: the target is none of these, or the parameters do not fit its signature.
    """
    given = dict(parameters or {})
    label = check_text("name", name) if name is not None else _name_of(target)
    if isinstance(target, AdaptedMechanism):
        _refuse_parameters(label, given)
        return target
    if isinstance(target, type):
        if not callable(getattr(target, "release", None)):
            raise TypeError(f"{label} must have a method release(dataset, *, rng), got the class {target!r}")
        _check_call(label, target, (), given)
        return _adapt_object(target(**given), label)
    if callable(getattr(target, "release", None)):
        _refuse_parameters(label, given)
        return _adapt_object(target, label)
    if callable(target):
        return _adapt_function(target, given, label)
    raise TypeError(
        f"{label} must be a function of a dataset or have a method release(dataset, *, rng), got {target!r}"
    )


def _name_of(target: object) -> str:
    for attribute in ("name", "__name__"):
        found = getattr(target, attribute, None)
        if isinstance(found, str) and found.strip():
            return found
    return type(target).__name__


def _refuse_parameters(label: str, given: Mapping[str, Any]) -> None:
    if given:
        raise TypeError(f"{label} is an object that is already built and takes no parameters, got {', '.join(given)}")


def _check_call(
    label: str, function: Callable[..., Any], positional: tuple[Any, ...], keywords: Mapping[str, Any]
) -> None:
    """Raise a TypeError naming the mechanism when the call would not fit; silent without a signature to read."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*positional, **keywords)
    except TypeError as error:
        raise TypeError(f"{label}{signature} cannot be called with the parameters given: {error}") from None


def _takes_rng(function: Callable[..., Any]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("rng")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY


def _adapt_object(target: Any, label: str) -> AdaptedMechanism:
    _check_call(f"{label}.release", target.release, ((),), {"rng": None})
    many = getattr(target, "release_many", None)
    return AdaptedMechanism(
        name=label,
        ignores_order=bool(getattr(target, "ignores_order", False)),
        replayable=bool(getattr(target, "replayable", True)),
        notes=tuple(getattr(target, "notes", ())),
        _release=lambda dataset, rng: target.release(dataset, rng=rng),
        _release_many=None if many is None else lambda dataset, size, rng: many(dataset, size, rng=rng),
        _distribution=getattr(target, "distribution", None),
        _check_dataset=getattr(target, "check_dataset", None),
    )


def _adapt_function(function: Callable[..., Any], given: dict[str, Any], label: str) -> AdaptedMechanism:
    for reserved in ("dataset", "rng", "size"):
        if reserved in given:
            raise TypeError(f"parameters of {label} must not name {reserved!r}, which the audit supplies")
    replayable = _takes_rng(function)
    _check_call(label, function, ((),), {**given, "rng": None} if replayable else given)
    many = getattr(function, "release_many", None)
    law = getattr(function, "distribution", None)
    if many is not None:
        _check_call(f"{label}.release_many", many, ((), 0), {**given, "rng": None})
    if law is not None:
        _check_call(f"{label}.distribution", law, ((),), given)

    def release(dataset: Dataset, rng: np.random.Generator | None) -> Any:
        return function(dataset, rng=rng, **given) if replayable else function(dataset, **given)

    return AdaptedMechanism(
        name=label,
        ignores_order=bool(getattr(function, "ignores_order", False)),
        replayable=replayable,
        notes=() if replayable else (f"{label} takes no rng: it draws its own randomness and cannot be replayed",),
        _release=release,
        _release_many=None if many is None else lambda dataset, size, rng: many(dataset, size, rng=rng, **given),
        _distribution=None if law is None else lambda dataset: law(dataset, **given),
        _check_dataset=getattr(function, "check_dataset", None),
    )


@dataclass(frozen=True, slots=True)
class AuditCase:
    """One instance of a registered mechanism on a domain small enough for an exact audit.

    mechanism: the built object. claim: what it guarantees. domain: the pairs of neighbours to audit. paper_epsilon,
    paper_delta, paper_source: the published bound to show beside the claim, where there is one. extremal: the family
    that the claim's tightness proof uses, so the audit must come within 1 % of the claim. thorough: left out of quick
    runs.
    """

    label: str
    mechanism: Mechanism
    claim: Claim
    domain: Domain
    paper_epsilon: float | None = None
    paper_delta: float | None = None
    paper_source: str | None = None
    extremal: bool = False
    thorough: bool = False

    def __post_init__(self) -> None:
        check_text("label", self.label)
        if not isinstance(self.mechanism, Mechanism):
            raise TypeError(f"mechanism must have a method release(dataset, *, rng), got {self.mechanism!r}")
        if not isinstance(self.claim, Claim):
            raise TypeError(f"claim must be a Claim, got {self.claim!r}")
        if self.domain.relation is not self.claim.relation:
            raise ValueError(
                f"domain must be under the claim's relation {relation_name(self.claim.relation)}, "
                f"got {relation_name(self.domain.relation)}"
            )
        if self.paper_epsilon is not None:
            check_epsilon("paper_epsilon", self.paper_epsilon)
        if self.paper_delta is not None:
            check_probability("paper_delta", self.paper_delta)
        if self.paper_source is not None:
            check_text("paper_source", self.paper_source)


@dataclass(frozen=True, slots=True)
class Registration:
    """A mechanism as listed: its guarantee in words, and the cases by which `verify` checks it.

    name: kebab-case. guarantee: the formula in words. promise: the condition on inputs, None for all inputs. cases:
    called when the cases are wanted, so that listing builds nothing.
    """

    name: str
    summary: str
    guarantee: str
    relation: Relation
    promise: str | None
    source: str
    cases: Callable[[], Sequence[AuditCase]]

    def __post_init__(self) -> None:
        if not _KEBAB_CASE.fullmatch(check_text("name", self.name)):
            raise ValueError(f"name must be in kebab-case, got {self.name!r}")
        for field in ("summary", "guarantee", "source"):
            check_text(field, getattr(self, field))
        object.__setattr__(self, "relation", check_relation("relation", self.relation))
        if self.promise is not None:
            check_text("promise", self.promise)
        if not callable(self.cases):
            raise TypeError(f"cases must be callable, got {self.cases!r}")


_REGISTRY: dict[str, Registration] = {}


def register(registration: Registration) -> None:
    """Enter a mechanism in the list of `registered`.

    Raises:
        TypeError: not a Registration.
        ValueError: the name is taken.
    """
    if not isinstance(registration, Registration):
        raise TypeError(f"registration must be a Registration, got {registration!r}")
    if registration.name in _REGISTRY:
        raise ValueError(f"name must be new, got {registration.name!r}, which is registered already")
    _REGISTRY[registration.name] = registration


def registered() -> tuple[Registration, ...]:
    """Every registered mechanism, sorted by name."""
    return tuple(_REGISTRY[name] for name in sorted(_REGISTRY))


def is_hashable(value: object) -> bool:
    """Whether `value` can be an outcome: hashable all the way down (a tuple that holds a list is not)."""
    try:
        hash(value)
    except TypeError:
        return False
    return isinstance(value, Hashable)
