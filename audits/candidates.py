"""Which pairs of datasets a statistical audit tries, and in which order."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mechanisms import AddOrRemoveOne, Domain, ExplicitPairs, Pair, ReplaceOne

CANDIDATE_LIMIT = 4096
"""Domains with at most so many pairs are tried whole; of larger ones a selection of so many at most."""
_ATTEMPTS = 4


def candidate_pairs(domain: Domain, *, ignore_order: bool, rng: np.random.Generator) -> list[Pair]:
    """Pairs to try, the most promising first; each pair of the domain once when it has at most `CANDIDATE_LIMIT`.

    Given pairs keep their order. Otherwise pairs whose unchanged records are all alike come first, and among them
    those whose changed record changes most (numbers), as the worst cases of most mechanisms do. A domain that is too
    large to list gives such extreme pairs and random ones.
    """
    if isinstance(domain, ExplicitPairs):
        return list(itertools.islice(domain.pairs(ignore_order), CANDIDATE_LIMIT))
    if domain.count(ignore_order) <= CANDIDATE_LIMIT:
        found: Iterator[Pair] = domain.pairs(ignore_order)
    elif isinstance(domain, ReplaceOne | AddOrRemoveOne):
        found = _selection(domain, rng)
    else:
        found = itertools.islice(domain.pairs(ignore_order), CANDIDATE_LIMIT)
    return sorted(found, key=_unlikeliness)


def _selection(domain: ReplaceOne | AddOrRemoveOne, rng: np.random.Generator) -> Iterator[Pair]:
    seen: set[str] = set()
    extreme = _extreme_values(domain.values)
    constant = itertools.product(_sizes(domain), itertools.product(extreme, repeat=3))
    drawn = (None for _ in range(_ATTEMPTS * CANDIDATE_LIMIT))
    for choice in itertools.chain(constant, drawn):
        if choice is None:
            pair = _random_pair(domain, rng)
        else:
            size, (common, one, other) = choice
            pair = _pair((common,) * size, one, other, 0, isinstance(domain, ReplaceOne))
        key = repr(sorted(map(repr, pair)))
        if pair[0] != pair[1] and key not in seen:
            seen.add(key)
            yield pair
        if len(seen) >= CANDIDATE_LIMIT:
            return


def _extreme_values(values: Sequence[Any]) -> list[Any]:
    """The first, the last and the middle value, in the order given; for numbers the smallest and the largest too."""
    places = {0, len(values) - 1, len(values) // 2}
    if all(isinstance(value, numbers.Real) and value == value for value in values):
        places |= {values.index(min(values)), values.index(max(values))}
    return [values[place] for place in sorted(places)]


def _sizes(domain: ReplaceOne | AddOrRemoveOne) -> list[int]:
    """Numbers of unchanged records to try first."""
    if isinstance(domain, ReplaceOne):
        return [domain.size - 1]
    return sorted({0, 1, domain.max_size // 2, domain.max_size - 1} & set(range(domain.max_size)))


def _random_pair(domain: ReplaceOne | AddOrRemoveOne, rng: np.random.Generator) -> Pair:
    replaces = isinstance(domain, ReplaceOne)
    size = domain.size - 1 if isinstance(domain, ReplaceOne) else int(rng.integers(domain.max_size))
    places = rng.integers(len(domain.values), size=size + 2)
    one, other, *rest = (domain.values[place] for place in places)
    return _pair(tuple(rest), one, other, int(rng.integers(size + 1)), replaces)


def _pair(rest: tuple[Any, ...], one: Any, other: Any, position: int, replaces: bool) -> Pair:
    head, tail = rest[:position], rest[position:]
    return (*head, one, *tail), ((*head, other, *tail) if replaces else rest)


def _unlikeliness(pair: Pair) -> tuple[int, float]:
    """Sorting key: how many different records the two share; then the change, largest first, where it is a number."""
    longer, shorter = sorted(pair, key=len, reverse=True)
    changed = next((place for place, record in enumerate(shorter) if longer[place] != record), len(shorter))
    rest = longer[:changed] + longer[changed + 1 :]
    different = len({repr(record) for record in rest})
    added = longer[changed]
    removed = shorter[changed] if len(shorter) == len(longer) else 0
    if isinstance(added, numbers.Real) and isinstance(removed, numbers.Real):
        change = abs(float(added) - float(removed))
        return max(different, 1), -change if change == change else 0.0
    return max(different, 1), 0.0
