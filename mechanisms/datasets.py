"""Finite domains of datasets: every pair of neighbours of a small world, enumerated once.

Three domains share one interface (`Domain`): all datasets of a fixed size under replacement of one record, all
datasets up to a size under addition or removal of one record, and an explicit list of pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from accounting import Relation, check_int, check_relation, relation_name

Pair = tuple[tuple[Any, ...], tuple[Any, ...]]
"""Two neighbouring datasets."""

_SHOWN_VALUES = 8


@runtime_checkable
class Domain(Protocol):
    """A finite set of pairs of neighbouring datasets."""

    @property
    def relation(self) -> Relation:
        """The relation that makes the two datasets of each pair neighbours."""
        ...

    @property
    def description(self) -> str:
        """What is enumerated, in words: a verdict PROVED is about exactly this."""
        ...

    def count(self, ignore_order: bool = False) -> int:
        """How many pairs `pairs` yields."""
        ...

    def pairs(self, ignore_order: bool = False) -> Iterator[Pair]:
        """Each unordered pair of neighbours once.

        With ignore_order a dataset is a multiset of records, written in the order of the values: two neighbours may
        then differ in more than one position, but not in more than one record.
        """
        ...


def _check_values(values: Sequence[Any]) -> tuple[Any, ...]:
    kept = tuple(values)
    if not kept:
        raise ValueError("values must hold at least one record, got none")
    for position, value in enumerate(kept):
        if value in kept[:position]:
            raise ValueError(f"values must be distinct, got {value!r} twice")
    return kept


def _shown(values: tuple[Any, ...]) -> str:
    head = ", ".join(repr(value) for value in values[:_SHOWN_VALUES])
    return f"{{{head}, ... ({len(values)} values)}}" if len(values) > _SHOWN_VALUES else f"{{{head}}}"


def _multisets(values: tuple[Any, ...], size: int) -> Iterator[tuple[Any, ...]]:
    return itertools.combinations_with_replacement(values, size)


def _multiset_count(values: int, size: int) -> int:
    return math.comb(values + size - 1, size)


def _with(values: tuple[Any, ...], rest: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """`rest` and `value` together, in the order of `values`, so that a multiset has one representative."""
    return tuple(sorted((*rest, value), key=values.index))


@dataclass(frozen=True, slots=True)
class ReplaceOne:
    """All datasets of `size` records from `values`; neighbours differ in one position (REPLACE_ONE).

    As sequences there are ``size * C(v, 2) * v**(size-1)`` pairs of v values; as multisets ``C(v, 2) * C(v+size-2,
    size-1)``.

    Raises:
        ValueError: no values, a value twice, or size below 1.
    """

    values: tuple[Any, ...]
    size: int

    def __init__(self, values: Sequence[Any], size: int) -> None:
        object.__setattr__(self, "values", _check_values(values))
        object.__setattr__(self, "size", check_int("size", size, lo=1))

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    @property
    def description(self) -> str:
        return (
            f"all datasets of {self.size} record{'s' * (self.size > 1)} from {_shown(self.values)}, one record replaced"
        )

    def count(self, ignore_order: bool = False) -> int:
        v, rest = len(self.values), self.size - 1
        others = _multiset_count(v, rest) if ignore_order else self.size * v**rest
        return math.comb(v, 2) * others

    def pairs(self, ignore_order: bool = False) -> Iterator[Pair]:
        if ignore_order:
            for rest in _multisets(self.values, self.size - 1):
                for one, other in itertools.combinations(self.values, 2):
                    yield _with(self.values, rest, one), _with(self.values, rest, other)
            return
        for position in range(self.size):
            for rest in itertools.product(self.values, repeat=self.size - 1):
                head, tail = rest[:position], rest[position:]
                for one, other in itertools.combinations(self.values, 2):
                    yield (*head, one, *tail), (*head, other, *tail)


@dataclass(frozen=True, slots=True)
class AddOrRemoveOne:
    """All datasets of 0 to `max_size` records from `values`; one neighbour is the other without one record.

    Every pair is (larger, smaller). Removing either of two equal adjacent records gives the same dataset, so as
    sequences there are ``v**s + (s-1)(v-1)v**(s-1)`` pairs whose larger member has s records; as multisets ``v *
    C(v+s-2, s-1)``.

    Raises:
        ValueError: no values, a value twice, or max_size below 1.
    """

    values: tuple[Any, ...]
    max_size: int

    def __init__(self, values: Sequence[Any], max_size: int) -> None:
        object.__setattr__(self, "values", _check_values(values))
        object.__setattr__(self, "max_size", check_int("max_size", max_size, lo=1))

    @property
    def relation(self) -> Relation:
        return Relation.ADD_OR_REMOVE_ONE

    @property
    def description(self) -> str:
        return f"all datasets of 0 to {self.max_size} records from {_shown(self.values)}, one record added or removed"

    def count(self, ignore_order: bool = False) -> int:
        v = len(self.values)
        sizes = range(1, self.max_size + 1)
        if ignore_order:
            return sum(v * _multiset_count(v, size - 1) for size in sizes)
        return sum(v**size + (size - 1) * (v - 1) * v ** (size - 1) for size in sizes)

    def pairs(self, ignore_order: bool = False) -> Iterator[Pair]:
        for size in range(1, self.max_size + 1):
            if ignore_order:
                for rest in _multisets(self.values, size - 1):
                    for value in self.values:
                        yield _with(self.values, rest, value), rest
                continue
            for dataset in itertools.product(self.values, repeat=size):
                for position in range(size):
                    if position == 0 or dataset[position] != dataset[position - 1]:
                        yield dataset, (*dataset[:position], *dataset[position + 1 :])


@dataclass(frozen=True, slots=True)
class ExplicitPairs:
    """The pairs given, as given; each is checked to be a pair of neighbours under `relation`.

    Raises:
        ValueError: no pairs, an unsupported relation, or a pair that is not one of neighbours (the message says which).
    """

    given: tuple[Pair, ...]
    relation: Relation

    def __init__(self, pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]], relation: Relation | str) -> None:
        checked = check_relation("relation", relation)
        if checked not in (Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE):
            raise ValueError(f"relation must be replace-one or add-remove, got {relation_name(checked)}")
        kept: list[Pair] = []
        for position, pair in enumerate(pairs):
            if len(pair) != 2:
                raise ValueError(f"pairs[{position}] must hold two datasets, got {len(pair)}")
            one, other = tuple(pair[0]), tuple(pair[1])
            if not are_neighbours(one, other, checked):
                raise ValueError(
                    f"pairs[{position}] must be neighbours under {relation_name(checked)}, got {one!r} and {other!r}"
                )
            kept.append((one, other))
        if not kept:
            raise ValueError("pairs must hold at least one pair, got none")
        object.__setattr__(self, "given", tuple(kept))
        object.__setattr__(self, "relation", checked)

    @property
    def description(self) -> str:
        pairs = "1 given pair" if len(self.given) == 1 else f"{len(self.given)} given pairs"
        return f"{pairs} of neighbours under {relation_name(self.relation)}"

    def count(self, ignore_order: bool = False) -> int:
        return len(self.given)

    def pairs(self, ignore_order: bool = False) -> Iterator[Pair]:
        return iter(self.given)


def are_neighbours(one: Sequence[Any], other: Sequence[Any], relation: Relation) -> bool:
    """Whether two different datasets are neighbours: one position replaced, or one record removed from the longer."""
    if relation is Relation.REPLACE_ONE:
        return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1
    if relation is Relation.ADD_OR_REMOVE_ONE:
        longer, shorter = (one, other) if len(one) > len(other) else (other, one)
        if len(longer) != len(shorter) + 1:
            return False
        split = next((i for i, b in enumerate(shorter) if longer[i] != b), len(shorter))
        return tuple(longer[split + 1 :]) == tuple(shorter[split:])
    raise ValueError(f"relation must be replace-one or add-remove, got {relation_name(relation)}")
