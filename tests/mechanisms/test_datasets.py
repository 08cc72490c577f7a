"""Domains against brute force over all pairs of datasets."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from accounting import Relation
from mechanisms import AddOrRemoveOne, Domain, ExplicitPairs, ReplaceOne, are_neighbours


def all_datasets(values: str, sizes: Any) -> list[tuple[str, ...]]:
    return [dataset for size in sizes for dataset in itertools.product(values, repeat=size)]


def replaced(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1


def removed(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    longer, shorter = max(one, other, key=len), min(one, other, key=len)
    return any((*longer[:i], *longer[i + 1 :]) == shorter for i in range(len(longer)))


DOMAINS: list[tuple[Domain, list[Any], Any]] = [
    (ReplaceOne("ab", 3), all_datasets("ab", [3]), replaced),
    (ReplaceOne("abc", 2), all_datasets("abc", [2]), replaced),
    (ReplaceOne("abcd", 1), all_datasets("abcd", [1]), replaced),
    (ReplaceOne("a", 3), all_datasets("a", [3]), replaced),
    (AddOrRemoveOne("ab", 4), all_datasets("ab", range(5)), removed),
    (AddOrRemoveOne("abc", 2), all_datasets("abc", range(3)), removed),
    (AddOrRemoveOne("a", 3), all_datasets("a", range(4)), removed),
]


@pytest.mark.parametrize(("domain", "datasets", "neighbours"), DOMAINS, ids=[d[0].description for d in DOMAINS])
def test_sequences_by_brute_force(domain: Domain, datasets: list[Any], neighbours: Any) -> None:
    expected = {frozenset(pair) for pair in itertools.combinations(datasets, 2) if neighbours(*pair)}
    pairs = list(domain.pairs())
    assert {frozenset(pair) for pair in pairs} == expected
    assert len(pairs) == len(expected) == domain.count()
    assert all(are_neighbours(*pair, domain.relation) for pair in pairs)


@pytest.mark.parametrize(("domain", "datasets", "neighbours"), DOMAINS, ids=[d[0].description for d in DOMAINS])
def test_multisets_by_brute_force(domain: Domain, datasets: list[Any], neighbours: Any) -> None:
    """Two multisets are neighbours when some orders of them are."""

    def unordered(pair: Any) -> frozenset[Any]:
        return frozenset(frozenset(Counter(dataset).items()) for dataset in pair)

    expected = {unordered(pair) for pair in itertools.combinations(datasets, 2) if neighbours(*pair)}
    pairs = list(domain.pairs(ignore_order=True))
    assert {unordered(pair) for pair in pairs} == expected
    assert len(pairs) == len(expected) == domain.count(ignore_order=True)
    # One order for each multiset, so that laws can be kept by dataset.
    seen = {dataset for pair in pairs for dataset in pair}
    assert len(seen) == len({frozenset(Counter(dataset).items()) for dataset in seen})


def test_are_neighbours_is_the_definition() -> None:
    datasets = all_datasets("ab", range(4))
    for one, other in itertools.product(datasets, repeat=2):
        assert are_neighbours(one, other, Relation.REPLACE_ONE) == replaced(one, other)
        assert are_neighbours(one, other, Relation.ADD_OR_REMOVE_ONE) == (
            abs(len(one) - len(other)) == 1 and removed(one, other)
        )


def test_explicit_pairs_are_kept_as_given() -> None:
    domain = ExplicitPairs([([0, 1], [0, 1, 1]), ([2], [])], "add-remove")
    assert list(domain.pairs()) == list(domain.pairs(ignore_order=True)) == [((0, 1), (0, 1, 1)), ((2,), ())]
    assert domain.count() == 2
    assert domain.relation is Relation.ADD_OR_REMOVE_ONE
    assert ExplicitPairs([([[1]], [[2]])], Relation.REPLACE_ONE).count() == 1  # unhashable records are fine


def test_descriptions_say_what_is_enumerated() -> None:
    assert ReplaceOne("ab", 2).description == "all datasets of 2 records from {'a', 'b'}, one record replaced"
    assert ReplaceOne("ab", 1).description.startswith("all datasets of 1 record from")
    assert AddOrRemoveOne(range(20), 3).description == (
        "all datasets of 0 to 3 records from {0, 1, 2, 3, 4, 5, 6, 7, ... (20 values)}, one record added or removed"
    )
    assert ExplicitPairs([("a", "b")], "replace-one").description == "1 given pair of neighbours under replace-one"
    assert all(isinstance(domain, Domain) for domain, _, _ in DOMAINS)
    assert ReplaceOne([1, 2], 3) == ReplaceOne((1, 2), 3) != ReplaceOne((2, 1), 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ReplaceOne([], 2), "values must hold at least one record"),
        (lambda: ReplaceOne([1, True], 2), "values must be distinct, got True twice"),
        (lambda: ReplaceOne([[1], [1]], 2), r"values must be distinct, got \[1\] twice"),
        (lambda: ReplaceOne([1], 0), "size must be at least 1"),
        (lambda: ReplaceOne([1], 2.0), "size must be an integer"),  # type: ignore[arg-type]
        (lambda: AddOrRemoveOne([1], 0), "max_size must be at least 1"),
        (lambda: ExplicitPairs([], "replace-one"), "pairs must hold at least one pair"),
        (lambda: ExplicitPairs([("a", "a")], "replace-one"), r"pairs\[0\] must be neighbours under replace-one"),
        (lambda: ExplicitPairs([("a", "b"), ("a", "ab")], "replace-one"), r"pairs\[1\] must be neighbours"),
        (lambda: ExplicitPairs([("ab", "c")], "add-remove"), "must be neighbours under add-remove"),
        (lambda: ExplicitPairs([("a", "b", "c")], "replace-one"), r"pairs\[0\] must hold two datasets, got 3"),  # type: ignore[list-item]
        (lambda: ExplicitPairs([("a", "b")], "replace-special"), "relation must be replace-one or add-remove"),
        (lambda: ExplicitPairs([("a", "b")], "swap"), "relation must be"),
        (lambda: are_neighbours("a", "b", Relation.REPLACE_SPECIAL), "relation must be replace-one or add-remove"),
    ],
)
def test_bad_input_is_named(build: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()
