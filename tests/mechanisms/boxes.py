"""Brute force for concept classes: levels and best levels from the list of all concepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from mechanisms.concepts import ConceptClass
from mechanisms.lb_star import best_levels


def check_class(
    concept_class: ConceptClass, concepts: Sequence[Callable[[Any], int]], sample: Sequence[Any], carrier: Sequence[Any]
) -> None:
    """Traces, levels and LB* levels with all their members, against every concept of the class."""
    points = list(dict.fromkeys([*(x for x, _ in sample), *carrier]))
    dichotomies = {tuple(concept(x) for x in points) for concept in concepts}
    traces = list(concept_class.traces(points))
    assert len(traces) == len(dichotomies)
    assert {labels for labels, _ in traces} == dichotomies
    for labels, concept in traces:
        assert labels == concept.labels(points) == tuple(concept(x) for x in points)
    agreements: list[int] = []
    best: dict[tuple[int, ...], int] = {}
    for dichotomy in dichotomies:
        labelled = dict(zip(points, dichotomy, strict=True))
        agreements.append(sum(labelled[x] == y for x, y in sample))
        shown = tuple(labelled[x] for x in carrier)
        best[shown] = max(best.get(shown, 0), agreements[-1])
    for levels, right, read in (
        (concept_class.levels(sample, carrier), Counter(agreements), points),
        (best_levels(concept_class, sample, carrier), Counter(best.values()), carrier),
    ):
        assert dict(zip(levels.scores, levels.counts, strict=True)) == right
        assert list(levels.scores) == sorted(levels.scores, reverse=True)
        for position, (score, count) in enumerate(zip(levels.scores, levels.counts, strict=True)):
            chosen = [levels.pick(position, index) for index in range(count)]
            assert len({concept.labels(read) for concept in chosen}) == count
            assert {concept.labels(points) for concept in chosen} <= dichotomies
            assert all(sum(concept(x) == y for x, y in sample) == score for concept in chosen)
