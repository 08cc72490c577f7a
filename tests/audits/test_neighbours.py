"""Domains as a user types them: Python calls, and tables of a claims file."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from accounting import Relation
from audits.neighbours import add_or_remove_one, explicit, from_config, replace_one
from mechanisms import AddOrRemoveOne, Domain, ExplicitPairs, ReplaceOne


def one_apart(a: tuple[Any, ...], b: tuple[Any, ...], relation: Relation) -> bool:
    """Neighbours by the definition, as multisets or as sequences: some single change turns a into b."""
    if relation is Relation.REPLACE_ONE:
        return len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return any((*longer[:i], *longer[i + 1 :]) == shorter for i in range(len(longer)))


@pytest.mark.parametrize(
    ("domain", "sizes"),
    [(add_or_remove_one([0, 1, 2], 3), range(4)), (replace_one(["a", "b", "c"], 3), [3])],
)
def test_every_pair_of_neighbours_once(domain: Domain, sizes: Any) -> None:
    values = domain.values  # type: ignore[attr-defined]
    datasets = [d for size in sizes for d in itertools.product(values, repeat=size)]
    expected = {frozenset(p) for p in itertools.combinations(datasets, 2) if one_apart(*p, domain.relation)}
    listed = [frozenset(pair) for pair in domain.pairs()]
    assert len(listed) == len(set(listed)) == domain.count()
    assert set(listed) == expected


def test_multisets_cover_every_pair_up_to_order() -> None:
    for domain in (add_or_remove_one([0, 1, 2], 3), replace_one([0, 1, 2], 3)):
        unordered = {frozenset(tuple(sorted(d)) for d in pair) for pair in domain.pairs()}
        listed = [frozenset(tuple(sorted(d)) for d in pair) for pair in domain.pairs(ignore_order=True)]
        assert len(listed) == len(set(listed)) == domain.count(ignore_order=True)
        # Two sequences that differ only in order are one multiset, so they are no pair.
        assert set(listed) == {pair for pair in unordered if len(pair) == 2}


def test_the_three_tables_of_a_claims_file() -> None:
    assert from_config({"values": [0, 1], "max_size": 4}, "add-remove") == AddOrRemoveOne([0, 1], 4)
    assert from_config({"values": [0, 1], "size": 2}, Relation.REPLACE_ONE) == ReplaceOne([0, 1], 2)
    pairs = [[[0, 1], [0, 1, 1]], [[], [5]]]
    assert from_config({"pairs": pairs}, "add-remove") == explicit([((0, 1), (0, 1, 1)), ((), (5,))], "add-remove")
    assert isinstance(from_config({"pairs": [[[0], [1]]]}, "replace-one"), ExplicitPairs)


def test_lists_inside_records_become_tuples() -> None:
    domain = from_config({"values": [[0, [1, 2]], [3, [4]]], "size": 1}, "replace-one")
    assert next(iter(domain.pairs())) == (((0, (1, 2)),), ((3, (4,)),))


@pytest.mark.parametrize(
    ("config", "relation", "message"),
    [
        ({"values": [0, 1]}, "add-remove", r"neighbours\.max_size is missing"),
        ({"values": [0, 1]}, "replace-one", r"neighbours\.size is missing"),
        (
            {"values": [0, 1], "size": 3},
            "add-remove",
            r"neighbours\.size does not fit relation add-remove: give max_size",
        ),
        ({"values": [0, 1], "max_size": 3}, "replace-one", r"neighbours\.max_size does not fit relation replace-one"),
        ({"max_size": 3}, "add-remove", r"neighbours\.values is missing"),
        ({"valeus": [0, 1], "max_size": 3}, "add-remove", r"neighbours\.valeus is not one of .*values.*did you mean"),
        ({"values": [0, 1], "max_size": 0}, "add-remove", r"neighbours\.max_size must be at least 1, got 0"),
        ({"values": [0, 1], "max_size": 2.0}, "add-remove", r"neighbours\.max_size must be an integer, got 2\.0"),
        ({"values": [0, 1], "max_size": True}, "add-remove", r"neighbours\.max_size must be an integer, got True"),
        ({"values": "01", "max_size": 2}, "add-remove", r"neighbours\.values must be a list of records, got '01'"),
        ({"values": 7, "max_size": 2}, "add-remove", r"neighbours\.values must be a list"),
        ({"values": [], "max_size": 2}, "add-remove", r"neighbours\.values must hold at least one record"),
        ({"values": [1, 1], "max_size": 2}, "add-remove", r"neighbours\.values must be distinct, got 1 twice"),
        ({"pairs": [], "values": [1]}, "add-remove", r"neighbours\.pairs stands alone, got also values"),
        ({"pairs": []}, "add-remove", r"neighbours\.pairs must hold at least one pair"),
        ({"pairs": [[[0], [1]]]}, "add-remove", r"neighbours\.pairs\[0\] must be neighbours under add-remove"),
        ({"pairs": [[[0], [0]]]}, "replace-one", r"neighbours\.pairs\[0\] must be neighbours"),
        ({"pairs": [[[0]]]}, "add-remove", r"neighbours\.pairs\[0\] must hold two datasets"),
        ({"pairs": [[[0], [0, 1]], [[0], 1]]}, "add-remove", r"neighbours\.pairs\[1\]\[1\] must be a list of records"),
        ({"pairs": "ab"}, "add-remove", r"neighbours\.pairs must be a list of pairs"),
        ([0, 1], "add-remove", r"neighbours must be a table"),
        ({"values": [0], "size": 2}, "replace-special", r"relation must be replace-one or add-remove"),
        ({"values": [0], "size": 2}, "swap", r"relation must be"),
    ],
)
def test_mistakes_are_named_by_their_key(config: object, relation: str, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        from_config(config, relation)


def test_the_key_is_the_callers() -> None:
    with pytest.raises(ValueError, match=r"claims\[2\]\.neighbours\.size is missing"):
        from_config({"values": [0, 1]}, "replace-one", key="claims[2].neighbours")
