"""Every event a ledger may hold: its tag in files, its fields, and the rule each number obeys.

dp_accounting's events validate nothing (``GaussianDpEvent(nan)`` is a value, and costs 0 under its RDP accountant), and
a ``ComposedDpEvent`` holds a list that its maker can still change. `check_event` answers both: it returns a normalised
copy, or says which number of which sub-event breaks which rule. The same table drives the JSON of `codec`, so nothing
is ever imported by a name found in a file. A new event is one more line in the table.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from dp_accounting import DpEvent, UnsupportedEventError, dp_event

from accounting._checks import check_int, check_real
from accounting.events import (
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    DiscreteGaussianDpEvent,
    DominatingPairDpEvent,
    GroupDpEvent,
    PermuteAndFlipDpEvent,
    RdpDpEvent,
)

MAX_DEPTH = 64
"""Deepest nesting of events within events; deeper input is refused rather than left to exhaust the stack."""

_SUM_TOLERANCE = 1e-9


class Field(Protocol):
    """One field of an event. Values are checked, or read from JSON, under the full name `where`."""

    @property
    def name(self) -> str: ...

    def check(self, where: str, value: object, depth: int) -> Any:
        """The normalised value; TypeError or ValueError if it breaks the field's rule."""
        ...

    def dump(self, value: Any) -> object:
        """A checked value as JSON."""
        ...

    def read(self, where: str, value: object, depth: int) -> Any:
        """The inverse of `dump`; TypeError or ValueError for anything else."""
        ...


@dataclass(frozen=True, slots=True)
class Real:
    """A real number in [lo, hi], or (lo, hi] if `lo_open`. Infinity, where allowed, travels as the string "inf"."""

    name: str
    lo: float = -math.inf
    hi: float = math.inf
    lo_open: bool = False
    allow_infinite: bool = False

    def check(self, where: str, value: object, depth: int) -> float:
        number = check_real(
            where, value, lo=self.lo, hi=self.hi, lo_open=self.lo_open, allow_infinite=self.allow_infinite
        )
        return number + 0.0  # -0.0 and 0.0 are one value: equal events must have equal texts

    def dump(self, value: float) -> object:
        return "inf" if value == math.inf else value

    def read(self, where: str, value: object, depth: int) -> float:
        return self.check(where, math.inf if value == "inf" and self.allow_infinite else value, depth)


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer, at least lo."""

    name: str
    lo: int

    def check(self, where: str, value: object, depth: int) -> int:
        return check_int(where, value, lo=self.lo)

    def dump(self, value: int) -> object:
        return value

    def read(self, where: str, value: object, depth: int) -> int:
        return self.check(where, value, depth)


@dataclass(frozen=True, slots=True)
class Many:
    """A sequence of one kind of value, kept as a tuple; with `or_one`, also a single value, kept single."""

    item: Real | Integer | Nested
    or_one: bool = False

    @property
    def name(self) -> str:
        return self.item.name

    def _map(self, where: str, value: object, each: Callable[[str, object], object]) -> object:
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return tuple(each(f"{where}[{i}]", part) for i, part in enumerate(value))
        if self.or_one:
            return each(where, value)
        raise TypeError(f"{where} must be a sequence, got {value!r}")

    def check(self, where: str, value: object, depth: int) -> Any:
        return self._map(where, value, lambda at, part: self.item.check(at, part, depth))

    def dump(self, value: Any) -> object:
        return [self.item.dump(part) for part in value] if isinstance(value, tuple) else self.item.dump(value)

    def read(self, where: str, value: object, depth: int) -> Any:
        return self._map(where, value, lambda at, part: self.item.read(at, part, depth))


@dataclass(frozen=True, slots=True)
class Nested:
    """An event within an event."""

    name: str

    def check(self, where: str, value: object, depth: int) -> DpEvent:
        return check_event(value, where, _depth=depth + 1)

    def dump(self, value: DpEvent) -> object:
        return dump_event(value)

    def read(self, where: str, value: object, depth: int) -> DpEvent:
        return read_event(value, where, _depth=depth + 1)


def _no_rule(where: str, values: Mapping[str, Any]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class EventKind:
    """One line of the table. rule: what must hold between fields, once each is right by itself."""

    tag: str
    cls: type[DpEvent]
    fields: tuple[Field, ...] = ()
    rule: Callable[[str, Mapping[str, Any]], None] = _no_rule


def _sample_fits(where: str, values: Mapping[str, Any]) -> None:
    if not values["sample_size"] <= values["source_dataset_size"]:
        raise ValueError(
            f"{where}.sample_size must be at most source_dataset_size ({values['source_dataset_size']}), "
            f"got {values['sample_size']}"
        )


def _sums_to_one(where: str, masses: Sequence[float]) -> None:
    total = math.fsum(masses)
    if not abs(total - 1.0) <= _SUM_TOLERANCE:
        raise ValueError(f"{where} must sum to 1 within {_SUM_TOLERANCE:g}, got {total!r}")


def _same_length(where: str, values: Mapping[str, Any], one: str, other: str) -> None:
    if len(values[one]) != len(values[other]):
        raise ValueError(f"{where}.{one} must be as long as {other} ({len(values[other])}), got {len(values[one])}")


def _mixture(where: str, values: Mapping[str, Any]) -> None:
    _same_length(where, values, "sensitivities", "sampling_probs")
    _sums_to_one(f"{where}.sampling_probs", values["sampling_probs"])


def _pair(where: str, values: Mapping[str, Any]) -> None:
    _same_length(where, values, "lower", "upper")
    for name in ("upper", "lower"):
        _sums_to_one(f"{where}.{name}", values[name])


_EVENT = Nested("event")
_NOISE = Real("noise_multiplier", lo=0.0)
_SAMPLING = Real("sampling_probability", lo=0.0, hi=1.0)
_SAMPLE = (Integer("source_dataset_size", lo=1), Integer("sample_size", lo=0), _EVENT)

_TABLE: tuple[EventKind, ...] = (
    EventKind("no-op", dp_event.NoOpDpEvent),
    EventKind("non-private", dp_event.NonPrivateDpEvent),
    EventKind("gaussian", dp_event.GaussianDpEvent, (_NOISE,)),
    EventKind("laplace", dp_event.LaplaceDpEvent, (_NOISE,)),
    EventKind(
        "discrete-laplace",
        dp_event.DiscreteLaplaceDpEvent,
        (Real("noise_parameter", lo=0.0, lo_open=True), Integer("sensitivity", lo=0)),
    ),
    EventKind(
        "randomized-response",
        dp_event.RandomizedResponseDpEvent,
        (Real("noise_parameter", lo=0.0, hi=1.0), Integer("num_buckets", lo=1)),
    ),
    EventKind("self-composed", dp_event.SelfComposedDpEvent, (_EVENT, Integer("count", lo=0))),
    EventKind("composed", dp_event.ComposedDpEvent, (Many(Nested("events")),)),
    EventKind("poisson-sampled", dp_event.PoissonSampledDpEvent, (_SAMPLING, _EVENT)),
    EventKind("sampled-with-replacement", dp_event.SampledWithReplacementDpEvent, _SAMPLE),
    EventKind("sampled-without-replacement", dp_event.SampledWithoutReplacementDpEvent, _SAMPLE, _sample_fits),
    EventKind(
        "single-epoch-tree-aggregation",
        dp_event.SingleEpochTreeAggregationDpEvent,
        (_NOISE, Many(Integer("step_counts", lo=1), or_one=True)),
    ),
    EventKind(
        "repeat-and-select",
        dp_event.RepeatAndSelectDpEvent,
        (_EVENT, Real("mean", lo=0.0, lo_open=True), Real("shape", lo=0.0, allow_infinite=True)),
    ),
    EventKind(
        "mixture-of-gaussians",
        dp_event.MixtureOfGaussiansDpEvent,
        (
            Real("standard_deviation", lo=0.0),
            Many(Real("sensitivities", lo=0.0)),
            Many(Real("sampling_probs", lo=0.0, hi=1.0)),
        ),
        _mixture,
    ),
    EventKind("zcdp", dp_event.ZCDpEvent, (Real("rho", lo=0.0), Real("xi", lo=0.0))),
    EventKind(
        "truncated-subsampled-gaussian",
        dp_event.TruncatedSubsampledGaussianDpEvent,
        (Integer("dataset_size", lo=1), _SAMPLING, Integer("truncated_batch_size", lo=1), _NOISE),
    ),
    EventKind("approximate", ApproximateDpEvent, (Real("epsilon", lo=0.0), Real("delta", lo=0.0, hi=1.0))),
    EventKind("bounded-range", BoundedRangeDpEvent, (Real("eta", lo=0.0),)),
    EventKind(
        "dominating-pair",
        DominatingPairDpEvent,
        (Many(Real("upper", lo=0.0, hi=1.0)), Many(Real("lower", lo=0.0, hi=1.0))),
        _pair,
    ),
    EventKind(
        "discrete-gaussian",
        DiscreteGaussianDpEvent,
        (Real("sigma", lo=0.0, lo_open=True), Integer("sensitivity", lo=0)),
    ),
    EventKind("permute-and-flip", PermuteAndFlipDpEvent, (Real("epsilon", lo=0.0),)),
    EventKind("rdp", RdpDpEvent, (Many(Real("orders", lo=1.0, lo_open=True)), Many(Real("values", lo=0.0)))),
    EventKind("group", GroupDpEvent, (_EVENT, Integer("size", lo=1))),
)

_BY_CLASS: dict[type[DpEvent], EventKind] = {kind.cls: kind for kind in _TABLE}
_BY_TAG: dict[str, EventKind] = {kind.tag: kind for kind in _TABLE}


def event_kinds() -> tuple[EventKind, ...]:
    """Every line of the table, in its order."""
    return _TABLE


def _too_deep(where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"{where} must nest events at most {MAX_DEPTH} deep")


def check_event(event: object, name: str = "event", *, _depth: int = 0) -> DpEvent:
    """A normalised copy of `event`: every number checked, floats as floats, sequences as tuples, all the way down.

    The copy is hashable, shares nothing that can change, and equals the copy of any event that means the same numbers
    (an integer noise multiplier becomes a float, -0.0 becomes 0.0).

    Raises:
        TypeError: `event` is not a DpEvent, or a field is of the wrong kind.
        ValueError: a number is NaN, infinite or outside its range; the message names the field, the rule and the value.
        UnsupportedEventError: an event outside the table (a subclass of a known event included: it may mean anything).
    """
    _too_deep(name, _depth)
    if not isinstance(event, DpEvent):
        raise TypeError(f"{name} must be a dp_accounting.DpEvent, got {event!r}")
    kind = _BY_CLASS.get(type(event))
    if kind is None:
        raise UnsupportedEventError(f"{name}: the ledger does not know {type(event).__name__}, got {event!r}")
    values = {
        field.name: field.check(f"{name}.{field.name}", getattr(event, field.name), _depth) for field in kind.fields
    }
    return _make(kind, name, values)


def _make(kind: EventKind, where: str, values: Mapping[str, Any]) -> DpEvent:
    """The event, once the rules between its fields hold: the table's, and those its class has for itself."""
    kind.rule(where, values)
    try:
        return kind.cls(**values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from error


def dump_event(event: DpEvent) -> dict[str, object]:
    """A checked event as JSON: ``{"type": tag, field: value, ...}``."""
    kind = _BY_CLASS[type(event)]
    return {"type": kind.tag, **{field.name: field.dump(getattr(event, field.name)) for field in kind.fields}}


def read_event(value: object, where: str, *, _depth: int = 0) -> DpEvent:
    """The inverse of `dump_event`, under the rules of `check_event`.

    Raises:
        TypeError, ValueError: not an object, no tag or an unknown one, a missing or extra key, a number against its
            rule.
    """
    _too_deep(where, _depth)
    if not isinstance(value, dict):
        raise TypeError(f"{where} must be an object with a type, got {reprlib.repr(value)}")
    tag = value.get("type")
    kind = _BY_TAG.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise ValueError(f"{where}.type must be a known event tag ({', '.join(_BY_TAG)}), got {reprlib.repr(tag)}")
    check_keys(value, ["type", *(field.name for field in kind.fields)], where)
    values = {field.name: field.read(f"{where}.{field.name}", value[field.name], _depth) for field in kind.fields}
    return _make(kind, where, values)


def check_keys(value: object, keys: Sequence[str], where: str) -> dict[str, Any]:
    """`value` as a JSON object with exactly these keys.

    Raises:
        TypeError: not an object.
        ValueError: keys are missing or unknown; the message names them.
    """
    if not isinstance(value, dict):
        raise TypeError(f"{where} must be an object, got {reprlib.repr(value)}")
    missing = [key for key in keys if key not in value]
    extra = [key for key in value if key not in keys]
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] * bool(missing)
        parts += [f"has the unknown {', '.join(map(reprlib.repr, extra))}"] * bool(extra)
        raise ValueError(f"{where} must have exactly the keys {', '.join(keys)}: it {' and '.join(parts)}")
    return cast("dict[str, Any]", value)
