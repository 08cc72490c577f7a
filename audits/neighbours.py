"""Finite domains of neighbouring datasets, as a user asks for them in Python or in a claims file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accounting import Relation, check_int, check_relation, relation_name
from audits.loading import hint
from mechanisms import AddOrRemoveOne, Domain, ExplicitPairs, ReplaceOne

_KEYS = ("values", "max_size", "size", "pairs")


def add_or_remove_one(values: Sequence[Any], max_size: int) -> AddOrRemoveOne:
    """All datasets of 0 to `max_size` records from `values`; a neighbour has one record more or less.

    >>> add_or_remove_one(values=[0, 1], max_size=2).count()
    8
    """
    return AddOrRemoveOne(values, max_size)


def replace_one(values: Sequence[Any], size: int) -> ReplaceOne:
    """All datasets of `size` records from `values`; a neighbour has one record replaced.

    >>> replace_one(values=[0, 1], size=2).count()
    4
    """
    return ReplaceOne(values, size)


def explicit(pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]], relation: Relation | str) -> ExplicitPairs:
    """The given pairs, each checked to be a pair of neighbours under `relation`."""
    return ExplicitPairs(pairs, check_relation("relation", relation))


def from_config(config: object, relation: Relation | str, *, key: str = "neighbours") -> Domain:
    """The domain that a claims file or a command line describes.

    config, one of: ``{"values": [...], "max_size": n}`` under add-remove; ``{"values": [...], "size": n}`` under
    replace-one; ``{"pairs": [[dataset, dataset], ...]}`` under either. Lists inside records become tuples, for records
    must not change. key: what the caller calls this entry, for the messages.

    Raises:
        TypeError, ValueError: the message starts with the key that is wrong, e.g. ``neighbours.max_size``.

    >>> from_config({"values": [0, 1], "size": 3}, "replace-one").description
    'all datasets of 3 records from {0, 1}, one record replaced'
    """
    known = check_relation("relation", relation)
    if not isinstance(config, Mapping):
        raise TypeError(f"{key} must be a table such as {{values = [0, 1], max_size = 4}}, got {config!r}")
    for given in config:
        if given not in _KEYS:
            raise ValueError(f"{key}.{given} is not one of {', '.join(_KEYS)}{hint(str(given), _KEYS)}")
    if "pairs" in config:
        if len(config) > 1:
            raise ValueError(f"{key}.pairs stands alone, got also {', '.join(k for k in config if k != 'pairs')}")
        return _explicit(config["pairs"], known, f"{key}.pairs")
    if "values" not in config:
        raise ValueError(f"{key}.values is missing: give values with a size, or pairs")
    values = _records(config["values"], f"{key}.values")
    wanted, other = _size_keys(known)
    if other in config:
        raise ValueError(f"{key}.{other} does not fit relation {relation_name(known)}: give {wanted}, got {config!r}")
    if wanted not in config:
        raise ValueError(f"{key}.{wanted} is missing: under {relation_name(known)} give values and {wanted}")
    size = check_int(f"{key}.{wanted}", config[wanted], lo=1)
    try:
        return ReplaceOne(values, size) if known is Relation.REPLACE_ONE else AddOrRemoveOne(values, size)
    except ValueError as error:
        raise ValueError(f"{key}.{error}") from None


def _size_keys(relation: Relation) -> tuple[str, str]:
    """The key that gives the size under this relation, and the one that does not."""
    if relation is Relation.REPLACE_ONE:
        return "size", "max_size"
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return "max_size", "size"
    raise ValueError(f"relation must be replace-one or add-remove, got {relation_name(relation)}")


def _records(values: object, key: str) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise TypeError(f"{key} must be a list of records, got {values!r}")
    return tuple(map(_frozen, values))


def _explicit(pairs: object, relation: Relation, key: str) -> ExplicitPairs:
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Sequence):
        raise TypeError(f"{key} must be a list of pairs of datasets, got {pairs!r}")
    kept = []
    for position, pair in enumerate(pairs):
        here = f"{key}[{position}]"
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"{here} must hold two datasets, got {pair!r}")
        kept.append((_records(pair[0], f"{here}[0]"), _records(pair[1], f"{here}[1]")))
    try:
        return ExplicitPairs(kept, relation)
    except ValueError as error:
        raise ValueError(f"{key.removesuffix('pairs')}{error}") from None


def _frozen(record: Any) -> Any:
    return tuple(map(_frozen, record)) if isinstance(record, list) else record


__all__ = ["add_or_remove_one", "explicit", "from_config", "replace_one"]
