"""Random trees of composition and sampling, each with its profile and with the finite pairs it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from accounting import PrivacyProfile
from tests.support.finite import (
    Pair,
    Real,
    extremal,
    one_way,
    pair_of,
    poisson_addition,
    poisson_removal,
    power,
    product,
    symmetric,
    without_replacement,
)


@dataclass(frozen=True)
class Tree:
    """text: how it was built. sides: the pair of each direction; one when both are alike."""

    text: str
    profile: PrivacyProfile
    sides: tuple[Pair, ...]
    steps: int = 1

    def __repr__(self) -> str:
        return self.text

    def delta(self, epsilon: float) -> Real:
        return max(one_way(side, epsilon) for side in self.sides)


@st.composite
def leaves(draw: st.DrawFn) -> Tree:
    if draw(st.booleans()):
        epsilon = draw(st.sampled_from([0.01, 0.1, 0.3, 1.0, 2.5]))
        delta = draw(st.sampled_from([0.0, 0.0, 1e-9, 1e-3, 0.2]))
        return Tree(f"({epsilon}, {delta})", PrivacyProfile.approximate(epsilon, delta), (extremal(epsilon, delta),))
    size = draw(st.integers(2, 3))
    laws: list[dict[Any, Fraction]] = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any))
        laws.append({i: Fraction(weight, sum(weights)) for i, weight in enumerate(weights)})
    text = " | ".join(",".join(str(p) for p in law.values()) for law in laws)
    return Tree(f"<{text}>", PrivacyProfile.from_distributions(*laws), (symmetric(pair_of(*laws)),))


def composed(one: Tree, two: Tree) -> Tree:
    width = max(len(one.sides), len(two.sides))
    pairs = [product([tree.sides[min(i, len(tree.sides) - 1)] for tree in (one, two)]) for i in range(width)]
    return Tree(f"{one} + {two}", one.profile.compose(two.profile), tuple(pairs), one.steps + two.steps)


def repeated(tree: Tree, count: int) -> Tree:
    sides = tuple(power(side, count) for side in tree.sides)
    return Tree(f"{count}[{tree}]", tree.profile.self_compose(count), sides, count * tree.steps)


def fixed_size(tree: Tree, rate: float) -> Tree:
    sides = tuple(without_replacement(side, rate) for side in tree.sides)
    return Tree(f"{rate} of [{tree}]", tree.profile.subsample_without_replacement(rate), sides, tree.steps)


def poisson(tree: Tree, rate: float) -> Tree:
    (side,) = tree.sides
    sides = (poisson_removal(side, rate), poisson_addition(side, rate))
    return Tree(f"Poisson({rate}) of [{tree}]", tree.profile.subsample_poisson(rate), sides, tree.steps)


@st.composite
def trees(draw: st.DrawFn, sampling: Callable[[Tree, float], Tree] | None) -> Tree:
    """Up to three leaves, each sampled or not before they are composed, and then the whole where a theorem allows."""
    rates = st.sampled_from([1e-3, 0.1, 0.5, 0.9])
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        part = draw(leaves())
        if draw(st.booleans()):
            part = repeated(part, 2)
        if sampling is not None and draw(st.booleans()):
            part = sampling(part, draw(rates))
        parts.append(part)
    total = parts[0]
    for part in parts[1:]:
        total = composed(total, part)
    if sampling is fixed_size and draw(st.booleans()):
        total = fixed_size(total, draw(rates))
    return total
