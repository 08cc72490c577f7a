"""TreeChoose: an (epsilon, delta)-DP interior point whose sample size grows with log log of the domain.

Take the complete binary tree of depth D over the ranks 0..2**D - 1. For a node u let n_u be the number of records below
it and c(u) its candidate: the first leaf of its right child, or u itself for a leaf. With F(p) and G(p) the numbers of
records ``<= p`` and ``>= p``, an occupied node (n_u >= 1) has weight ``r**min(n_u - h, F(c(u)), G(c(u)))``, an empty
one 0, and a default outcome has weight W. One of them is chosen by weight. A candidate beyond the domain means the
domain's last rank.

Privacy. Let one record be replaced by x'; kappa = ``r**(1-h)``. For a node occupied before and after, all three terms
of the exponent move by at most 1. A node that becomes occupied lies on the path of x', is not the root, and has then
one record: at most D nodes of weight at most kappa, and likewise for those that become empty. Hence the total weight
satisfies ``Z' >= W + (Z - W - D kappa)/r >= Z/r`` as soon as ``W (r - 1) >= D kappa``, and for every event E

    Pr'[E] <= sum of r w(u) / (Z/r) + D kappa / Z' <= r**2 Pr[E] + D kappa / W.

So for ``r**2 <= e**epsilon`` and ``D kappa / W <= min(delta, r - 1)`` the choice is (epsilon, delta)-DP.

Utility. Let e be an integer with ``r**e >= (W + 2D - 1)(1 - beta)/beta``, e >= 1, and n >= h + 3e - 2. Let
theta = h + e, x the median, and u the deepest node on its path with n_u >= theta (the root has n). If u is a leaf, its
F and G are at least n/2. Otherwise its child u' towards x holds at most theta - 1 records; say it is the left one (the
right is alike), with a records left of u. Then c(u) has ``min(F, G) >= min(n/2, n - a - n_u')``, and the left end of u
is c(v) for an ancestor v, with ``min(F, G) >= min(a, n/2)`` and n_v >= theta (or u is leftmost and a = 0). As
``a + (n - a - n_u') >= n - theta + 1 >= 2e - 1``, one of the two has weight at least ``r**e``. Candidates that are no
interior points have F = 0 or G = 0, hence weight at most 1; they belong to nodes on the path of the largest record that
it leaves to the left or of the smallest that it leaves to the right, at most two on a level and one at the root. So
the output misses with probability at most ``(W + 2D - 1)/(W + 2D - 1 + r**e) <= beta``.

Drawing. The occupied nodes form a trie of at most 2n - 1 branching nodes and leaves, joined by unary chains. Along a
chain n_u is constant and F and G depend only on whether the path turns left or right, so a chain is two groups of equal
weight whose sizes are numbers of bits; one level stands apart, where c(u) is the smallest record below u.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accounting import Claim, Relation, Trust, check_int, round_up
from mechanisms.base import Dataset
from mechanisms.exponential import log_width_up, rational_base
from mechanisms.interior_point import InteriorPoint
from mechanisms.sampling import check_rng
from mechanisms.selection import (
    Groups,
    check_inside_unit,
    check_positive_epsilon,
    smallest_exponent,
    tree_depth,
)
from mechanisms.step_function import sorted_ranks


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Occupied nodes of one exponent: those on levels first..end-1 of the path of `record` that turn to `turn` there.

    turn: 0 left, 1 right, None for the single candidate `record`. apart: a level left out. below, above: the numbers
    of records at most and at least the candidates.
    """

    count: int
    occupants: int
    below: int
    above: int
    record: int
    first: int = 0
    end: int = 0
    turn: int | None = None
    apart: int | None = None

    def candidates(self, depth: int) -> list[int]:
        """c(u) for each of the nodes, from the root down."""
        return [self.candidate(level, depth) for level in self.levels(depth)]

    def levels(self, depth: int) -> list[int]:
        """Their levels, from the root down."""
        if self.turn is None:
            return [0]
        length = self.end - self.first
        path = format((self.record >> (depth - self.end)) & ((1 << length) - 1), f"0{length}b")
        wanted = str(self.turn)
        return [level for level, bit in enumerate(path, start=self.first) if bit == wanted and level != self.apart]

    def candidate(self, level: int, depth: int) -> int:
        """c(u) of the node at `level`."""
        if self.turn is None:
            return self.record
        shift = depth - 1 - level
        return (self.record >> shift | 1) << shift


class TreeChoose:
    """Interior point by choice among the nodes of a binary tree; definition and proofs in the module's docstring.

    dataset: ranks, integers in 0..domain_size-1. Output: a rank; the middle rank by default, and on an empty dataset.
    domain_size: N, at least 1; the tree has depth D = ceil(log2 N), at least 1. epsilon: in nats, positive. delta: in
    (0, 1).

    Here r is the rational base of epsilon, h the smallest integer with ``r**(1-h) <= min(delta, r - 1)``, and W the
    smallest integer that is large enough.

    Guarantee, on all inputs, for one replaced record: ``(2 ln r, D r**(1-h) / W)``-DP, hence (epsilon, delta)-DP.

    >>> TreeChoose(2**30_000, 1, 1e-6).records_needed(0.05) <= 116
    True

    Raises:
        TypeError, ValueError: an empty domain, epsilon not positive, delta not in (0, 1), a record outside the domain.
    """

    ignores_order = True

    def __init__(self, domain_size: int, epsilon: float | Fraction, delta: float | Fraction) -> None:
        self.domain_size = check_int("domain_size", domain_size, lo=1)
        self.epsilon = check_positive_epsilon(epsilon)
        self.requested_delta = check_inside_unit("delta", delta)
        self.depth = tree_depth(self.domain_size)
        self.base = rational_base(self.epsilon)
        allowed = min(self.requested_delta, self.base - 1)
        self.threshold = 1 + smallest_exponent(self.base, 1 / allowed)
        birth = self.base ** (1 - self.threshold)
        self.default_weight = -(-self.depth * birth // allowed)
        self.delta = self.depth * birth / self.default_weight
        self.default = (self.domain_size - 1) // 2

    @property
    def claim(self) -> Claim:
        """``(2 ln r, D r**(1-h) / W)``-DP, both rounded up."""
        return Claim.approximate(
            log_width_up(self.base**2),
            round_up(self.delta),
            relation=Relation.REPLACE_ONE,
            source="own proof (mechanisms.tree_choose); for the role of Cohen et al. (2023) in Theorem 8.9",
            trust=Trust.EXACT,
        )

    def records_needed(self, beta: float | Fraction) -> int:
        """``h + 3e - 2`` for the smallest e >= 1 with ``r**e >= (W + 2D - 1)(1 - beta)/beta``; by the proof above.

        Raises:
            TypeError, ValueError: beta is not in (0, 1).
        """
        chance = check_inside_unit("beta", beta)
        bad = self.default_weight + 2 * self.depth - 1
        return self.threshold + 3 * max(1, smallest_exponent(self.base, bad * (1 - chance) / chance)) - 2

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law of the ranks that can come out; about n D of them."""
        nodes = list(self._nodes(dataset))
        *each, default = self._groups(nodes).outcome_probabilities()
        law: defaultdict[int, Fraction] = defaultdict(Fraction, {self.default: default * self.default_weight})
        for group, probability in zip(nodes, each, strict=True):
            for candidate in group.candidates(self.depth):
                law[min(candidate, self.domain_size - 1)] += probability
        return dict(law)

    def failure_probability(self, dataset: Dataset) -> Fraction:
        """The exact probability that the output is no interior point of the dataset; 1 for an empty one."""
        nodes = list(self._nodes(dataset))
        last = max(dataset, default=-1)
        lucky = min(dataset, default=0) <= self.default <= last

        def misses(group: int) -> bool:
            if group == len(nodes):
                return not lucky
            # A candidate beyond the domain means its last rank, which can be the largest record.
            beyond_is_good = last == self.domain_size - 1 and nodes[group].above == 0
            return min(nodes[group].below, nodes[group].above) == 0 and not beyond_is_good

        return self._groups(nodes).probability(misses)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks."""
        check_rng(rng)
        nodes = list(self._nodes(dataset))
        levels: dict[int, list[int]] = {}
        outcomes = []
        for group, index in self._groups(nodes).draw_many(size, rng):
            if group == len(nodes):
                outcomes.append(self.default)
                continue
            if group not in levels:
                levels[group] = nodes[group].levels(self.depth)
            candidate = nodes[group].candidate(levels[group][index], self.depth)
            outcomes.append(min(candidate, self.domain_size - 1))
        return outcomes

    def _groups(self, nodes: Sequence[_Nodes]) -> Groups:
        """The nodes as groups, then the default."""
        exponents = [min(group.occupants - self.threshold, group.below, group.above) for group in nodes]
        return Groups([*exponents, 0], [*(group.count for group in nodes), self.default_weight], self.base)

    def _nodes(self, dataset: Dataset) -> Iterator[_Nodes]:
        """All occupied nodes."""
        ordered, depth = sorted_ranks(self.domain_size, dataset), self.depth
        total = len(ordered)
        pending = [(0, total, 0)] if total else []
        while pending:
            lo, hi, level = pending.pop()
            least, greatest = ordered[lo], ordered[hi - 1]
            common = depth - (least ^ greatest).bit_length()
            yield from _chain(ordered, lo, hi, level, common, depth)
            if common == depth:
                yield _Nodes(1, hi - lo, hi, total - lo, least)
                continue
            middle = (least >> (depth - 1 - common) | 1) << (depth - 1 - common)
            start = bisect.bisect_left(ordered, middle, lo, hi)
            end = bisect.bisect_right(ordered, middle, lo, hi)
            yield _Nodes(1, hi - lo, end, total - start, middle)
            pending += [(lo, start, common + 1), (start, hi, common + 1)]


def _chain(ordered: Sequence[int], lo: int, hi: int, first: int, end: int, depth: int) -> Iterator[_Nodes]:
    """The nodes on levels first..end-1 above the records ordered[lo:hi], all of which turn the same way on each."""
    if first == end:
        return
    record, total, length = ordered[lo], len(ordered), end - first
    rights = (record >> (depth - end) & ((1 << length) - 1)).bit_count()
    lefts = length - rights
    # The record is the first leaf of a right child exactly below its lowest one bit.
    apart = depth - (record & -record).bit_length()
    meets = first <= apart < end
    if meets:
        until = bisect.bisect_right(ordered, record, lo, hi)
        yield _Nodes(1, hi - lo, until, total - lo, record)
    if rights - meets:
        yield _Nodes(rights - meets, hi - lo, lo, total - lo, record, first, end, 1, apart)
    if lefts:
        yield _Nodes(lefts, hi - lo, hi, total - hi, record, first, end, 0)


def choose_interior_point(
    domain_size: int,
    *,
    epsilon: float | Fraction,
    delta: float | Fraction,
    beta: float | Fraction,
    records: int | None = None,
) -> InteriorPoint | TreeChoose:
    """The mechanism that needs fewer records to miss with probability at most beta; by public parameters only.

    delta: 0 asks for pure DP, which leaves `InteriorPoint`. records: how many there will be, when that is known.

    Guarantee: the mechanism's own, (epsilon, delta)-DP for one replaced record either way.

    >>> [type(choose_interior_point(2**bits, epsilon=1, delta=1e-6, beta=0.05)).__name__ for bits in (10, 40)]
    ['InteriorPoint', 'TreeChoose']

    Raises:
        TypeError, ValueError: a parameter out of range, or `records` too few for either mechanism.
    """
    options: list[InteriorPoint | TreeChoose] = [InteriorPoint(domain_size, epsilon)]
    if delta != 0:
        options.append(TreeChoose(domain_size, epsilon, delta))
    needed, chosen = min((option.records_needed(beta), place) for place, option in enumerate(options))
    if records is not None and check_int("records", records, lo=0) < needed:
        raise ValueError(f"records must be at least {needed} for these parameters, got {records}")
    return options[chosen]
