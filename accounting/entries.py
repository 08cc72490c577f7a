"""What a ledger is made of: datasets, partitions and charges, as frozen values, and each as one JSON entry."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dp_accounting import DpEvent, NeighboringRelation

from accounting._checks import check_int, check_relation, check_text
from accounting.claims import Trust
from accounting.codec import check_list, optional_text, read_trust
from accounting.event_table import check_event, check_keys, dump_event, read_event

Scalar = str | int | float | bool | None
"""What a public parameter of a charge may be."""


@dataclass(frozen=True, slots=True)
class Charge:
    """An event entered for a dataset: one line of the ledger, or one block's line of a joint release.

    dataset: the dataset or block whose records the release read.
    event: what each of the `count` releases guarantees, normalised (see `check_event`). The releases draw fresh
        randomness; outputs that share random draws are one release, and one event.
    relation: the ledger's neighbouring relation.
    label: what was released, in the user's words. source: who says that the event is right, None if nobody was named.
    promise: the condition on inputs under which the event holds, None if it holds on all inputs.
    parameters: further public facts for the report, sorted by name.
    trust: what the event's guarantee rests on.
    release: the name of the release paid for, if it was given one; a ledger takes each name once.
    adaptive: whether the event, the count or the charge itself was chosen after seeing outputs about these records.
    time: when it was entered, in UTC by ISO 8601, None where nobody kept the time.
    number: the ledger entry, counted from 1; charges of one joint release share it. 0 before it is entered.

    Raises:
        TypeError, ValueError, UnsupportedEventError: a field breaks its rule; the message names it.
    """

    dataset: str
    event: DpEvent
    relation: NeighboringRelation
    label: str
    source: str | None = None
    promise: str | None = None
    count: int = 1
    parameters: tuple[tuple[str, Scalar], ...] = ()
    trust: Trust = Trust.IDEALISED
    release: str | None = None
    adaptive: bool = False
    time: str | None = None
    number: int = 0

    def __post_init__(self) -> None:
        check_text("dataset", self.dataset)
        object.__setattr__(self, "event", check_event(self.event))
        object.__setattr__(self, "relation", check_relation("relation", self.relation))
        check_text("label", self.label)
        optional_text("source", self.source)
        optional_text("promise", self.promise)
        object.__setattr__(self, "count", check_int("count", self.count, lo=1))
        object.__setattr__(self, "parameters", check_parameters(self.parameters))
        if not isinstance(self.trust, Trust):
            raise TypeError(f"trust must be a Trust, got {self.trust!r}")
        optional_text("release", self.release)
        _check_flag("adaptive", self.adaptive)
        _check_time("time", self.time)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A named dataset, or a block of one. size: number of records, None where it is not public or was not stated."""

    name: str
    size: int | None = None
    parent: str | None = None
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A dataset was declared."""

    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """A dataset was partitioned into blocks (name, size)."""

    parent: str
    blocks: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class ReleaseEntry:
    """A release was paid for: one charge for each dataset that it read."""

    charges: tuple[Charge, ...]


Entry = DatasetEntry | PartitionEntry | ReleaseEntry


def check_parameters(value: object) -> tuple[tuple[str, Scalar], ...]:
    """A mapping (or its pairs) from names to str, bool, int, finite float or None, as pairs sorted by name.

    Raises:
        TypeError, ValueError: a name is not a non-empty string or occurs twice, a value is of another kind, NaN or
            infinite.
    """
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, tuple | list) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError(f"parameters must be a mapping from names to numbers, texts or None, got {value!r}")
    found: dict[str, Scalar] = {}
    for name, item in pairs:
        if check_text("a parameter's name", name) in found:
            raise ValueError(f"parameters must name each parameter once, got {name!r} twice")
        found[name] = _scalar(f"parameters[{name!r}]", item)
    return tuple(sorted(found.items()))


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def _check_time(name: str, value: object) -> None:
    if value is not None:
        try:
            in_utc = datetime.fromisoformat(check_text(name, value)).utcoffset() == timedelta(0)
        except ValueError:
            in_utc = False
        if not in_utc:
            raise ValueError(f"{name} must be a time in UTC by ISO 8601, got {value!r}")


def _scalar(name: str, value: object) -> Scalar:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{name} must be finite, got {value!r}")
        return number
    raise TypeError(f"{name} must be a number, a text, True, False or None, got {value!r}")


def entry_to_json(entry: Entry, number: int) -> dict[str, Any]:
    """The entry as it is hashed and kept, with its number counted from 1."""
    match entry:
        case DatasetEntry(name=name, size=size):
            return {"number": number, "kind": "dataset", "name": name, "size": size}
        case PartitionEntry(parent=parent, blocks=blocks):
            rows = [{"name": name, "size": size} for name, size in blocks]
            return {"number": number, "kind": "partition", "parent": parent, "blocks": rows}
        case ReleaseEntry(charges=charges):
            first = charges[0]
            return {
                "number": number,
                "kind": "charge",
                "label": first.label,
                "count": first.count,
                "parameters": dict(first.parameters),
                "release": first.release,
                "adaptive": first.adaptive,
                "time": first.time,
                "costs": [_cost_to_json(charge) for charge in charges],
            }


def _cost_to_json(charge: Charge) -> dict[str, Any]:
    return {
        "dataset": charge.dataset,
        "event": dump_event(charge.event),
        "source": charge.source,
        "promise": charge.promise,
        "trust": charge.trust.name,
    }


def entry_from_json(value: object, number: int, relation: NeighboringRelation) -> Entry:
    """The inverse of `entry_to_json`.

    Raises:
        TypeError, ValueError: a missing or extra key, an unknown kind, a field against its rule, or another number.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    match kind:
        case "dataset":
            fields = check_keys(value, ("number", "kind", "name", "size"), "the entry")
            entry: Entry = DatasetEntry(check_text("name", fields["name"]), _size("size", fields["size"]))
        case "partition":
            fields = check_keys(value, ("number", "kind", "parent", "blocks"), "the entry")
            entry = PartitionEntry(
                check_text("parent", fields["parent"]),
                tuple(_block(f"blocks[{i}]", row) for i, row in enumerate(check_list("blocks", fields["blocks"]))),
            )
        case "charge":
            keys = ("number", "kind", "label", "count", "parameters", "release", "adaptive", "time", "costs")
            fields = check_keys(value, keys, "the entry")
            costs = check_list("costs", fields["costs"])
            if not costs:
                raise ValueError("costs must name at least one dataset, got none")
            entry = ReleaseEntry(
                tuple(_charge(f"costs[{i}]", cost, fields, relation, number) for i, cost in enumerate(costs))
            )
        case _:
            raise ValueError(f"kind must be dataset, partition or charge, got {kind!r}")
    if check_int("number", fields["number"]) != number:
        raise ValueError(f"number must be {number}, the entry's place, got {fields['number']!r}")
    return entry


def _block(where: str, value: object) -> tuple[str, int | None]:
    fields = check_keys(value, ("name", "size"), where)
    return check_text(f"{where}.name", fields["name"]), _size(f"{where}.size", fields["size"])


def _size(where: str, value: object) -> int | None:
    return None if value is None else check_int(where, value, lo=0)


def _charge(
    where: str, value: object, release: Mapping[str, Any], relation: NeighboringRelation, number: int
) -> Charge:
    fields = check_keys(value, ("dataset", "event", "source", "promise", "trust"), where)
    if not isinstance(release["parameters"], dict):
        raise TypeError(f"parameters must be an object, got {release['parameters']!r}")
    return Charge(
        dataset=check_text(f"{where}.dataset", fields["dataset"]),
        event=read_event(fields["event"], f"{where}.event"),
        relation=relation,
        label=release["label"],
        source=optional_text(f"{where}.source", fields["source"]),
        promise=optional_text(f"{where}.promise", fields["promise"]),
        count=release["count"],
        parameters=check_parameters(release["parameters"]),
        trust=read_trust(f"{where}.trust", fields["trust"]),
        release=release["release"],
        adaptive=release["adaptive"],
        time=release["time"],
        number=number,
    )
