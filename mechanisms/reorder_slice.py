"""Interior point by Reorder-Slice-Compute: the log* idea of Cohen, Lyu, Nelson, Sarlos and Stemmer (2023), rebuilt.

This is a reconstruction with its own proof and constants, for fidelity and comparison; the published algorithm and its
constants were not available. It replaces a tree of depth D by one choice over D + 1 depths, so each level takes one
logarithm of the domain, but its constants are large: `TreeChoose` needs fewer records for every domain that fits in
a computer, and `choose_interior_point` never takes this one.

One level, on a sorted multiset Z of ranks below 2**D (r is the rational base of eps_S, s that of eps_H as ``s <=
e**eps_H``; a slice is the first m + G elements of a list, ``Pr[G >= g] = lam**g``, and is removed from Z):

1. L, R: slices of the smallest and of the largest elements, m = `border`.
2. Split test on the rest: choose a node of the tree with elements on both sides, by weight ``s**(min(n_left, n_right) -
   h_H)``, or nothing, by weight 1. A node's boundary c(u) is an interior point: return it.
3. Follow the heavier child (ties to the left) from the root. An element's depth is the level at which it leaves this
   path (D at its end). C: a slice of the deepest elements (ties by value), m = `core`.
4. The rest, as depths in 0..D, goes to the next level, or for the last to the exponential mechanism (base r). Call the
   answer y.
5. Choose a node v on level y by weight ``r**(elements of C below v - h_S)``, or give up by weight 1.
6. Among the first leaf of v, its boundary c(v) and its last leaf choose by weight ``r**min(F, G)``, F and G counting
   elements of L and R only.

Privacy. First let D' = D + {x}. Think of all slices, tests and final multisets as drawn first; steps 4 to 6 then are
computations on slices, of which each is DP with ratio ``r**2`` and delta_S = ``r**(1-h_S)`` (step 5: as in
mechanisms.tree_choose with one birth) when its slices gain one element or have one replaced.

A slice of D' that holds the extra element x at J = j is the slice of D at J = j - 1 and x, after which the states agree
("settled"), or the slice of D at J = j with x for its last element y, after which y is the extra element ("swapped");
if x comes later in the list the slices agree. Let A = `swap` be any number above 1, f_0 = 0, ``f_{g+1} = min(1, (f_g +
A - 1)/lam)``, and ``c = sum_g (1-lam) lam**g f_g``. Where J exceeds the larger of m and the place of x by g, match a
fraction f_g of the mass of D' with "settled" and the rest with "swapped". By induction over slices, for every k,

    Pr[D' in E] <= (A r**2)**k Pr[D in E] + (1-c)**k + (number of steps 5) delta_S.                              (1)

k = 0 is trivial. Mass of D at such a j meets a share 1 - f_g of D' at j, swapped, at cost ``r**2 (A r**2)**(k-1)``, and
a share f_{g+1} of D' at j + 1, settled, at cost ``r**2``; as ``1 - f_g + lam f_{g+1} <= A`` this is at most ``(A
r**2)**k``. The mass lost is ``Pr[x later] (1-c)**k + Pr[x reached] (1-c) (1-c)**(k-1)``, by memorylessness. What the
last multiset is used for is settled by one more ``r**2``. The other way, D at j matches D' at j + 1:

    Pr[D in E] <= lam**-1 r**2 Pr[D' in E] + (number of steps 5) delta_S.                                        (2)

Split tests see states that differ by at most one element: scores rise by 0 or 1 and at most one node is new, with score
1. So each multiplies either bound by s and adds delta_H = ``s**(1-h_H)``.

The list of step 3 must keep neighbours: that of Z + {x} is that of Z with x put in, as far as prefixes of at least
`core` elements go, and the depths behind it agree. The two paths agree down to a node u at which ``|n_left - n_right|``
is at most 1; what lies outside u has one depth for both, and all of u comes first. If on the path of Z the smaller
child always holds fewer than t elements, u has at most 2t - 1 (in Z + {x}, 2t), and core >= 2t suffices. If it holds t
or more somewhere on the path of Z, then so it does on that of Z + {x}, and the test returns nothing with probability at
most delta_t = ``s**(h_H-t)`` on either: a lost mass.

Replacing a record is removing one and adding one. With T levels, ``R1 = (A r**2)**k s**T``, ``R2 = lam**-1 r**2 s**T``,
``e = T (delta_S + delta_H + delta_t)``: the whole is ``(ln R1 R2, (1-c)**k + e + R1 e)``-DP.

Utility. Let y be an interior point of the depths passed on. All of C has depth at least y, so it lies below one node on
level y, and is found if core - h_S is large enough. Some element passed on has depth at most y: it lies outside v, or
below the lighter child of v (while C holds one below the heavier). So one of the three ranks has elements of Z on both
sides, and all of L and of R: its score is at least `border`. A rank that is no interior point has score 0.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from accounting import Claim, Relation, Trust, check_int, round_up
from mechanisms.base import Dataset
from mechanisms.exponential import log_width_up, rational_base
from mechanisms.interior_point import InteriorPoint, step_draws, step_law
from mechanisms.sampling import check_rng, uniform_below
from mechanisms.selection import Groups, check_inside_unit, check_positive_epsilon, smallest_exponent, tree_depth
from mechanisms.slice_parameters import SliceParameters, least_slices, longest_tail, settled_share
from mechanisms.step_function import interior_depth, sorted_ranks


class ReorderSliceChoose:
    """Interior point by Reorder-Slice-Compute; definition and proofs in the module's docstring.

    dataset: ranks, integers in 0..domain_size-1. Output: a rank; the middle rank by default. domain_size: N, at least
    1. parameters: public. levels: how often depths replace ranks, at least 1.

    Guarantee, on all inputs, for one replaced record: ``parameters.privacy(levels)``. `plan_reorder_slice` finds
    parameters for a given (epsilon, delta). The exact law lists every length of every slice, so it is for a handful of
    records.

    Raises:
        TypeError, ValueError: an empty domain, no levels, parameters with delta of 1 or more, a record outside the
        domain.
    """

    ignores_order = True

    def __init__(self, domain_size: int, parameters: SliceParameters, *, levels: int = 1) -> None:
        self.domain_size = check_int("domain_size", domain_size, lo=1)
        self.parameters = parameters
        self.levels = check_int("levels", levels, lo=1)
        self.ratio, self.delta = parameters.privacy(levels)
        if not self.delta < 1:
            raise ValueError(f"parameters must give a delta below 1, got {float(self.delta):.3g}")
        self.default = (self.domain_size - 1) // 2

    @property
    def claim(self) -> Claim:
        """``(ln R1 R2, (1-c)**k + e + R1 e)``-DP, both rounded up."""
        return Claim.approximate(
            log_width_up(self.ratio),
            min(1.0, round_up(self.delta)),
            relation=Relation.REPLACE_ONE,
            source="own proof (mechanisms.reorder_slice); after Cohen et al. (2023), for Theorem 8.9",
            trust=Trust.EXACT,
        )

    def records_needed(self, beta: float | Fraction) -> int:
        """A number of records at which the output misses with probability at most beta, for parameters that allow it.

        With b = beta/(5 levels + 1) for each slice (three on a level), step 5, step 6 and the last level: the slices
        take at most their least sizes plus ``ln(1/b)/-ln(lam)`` each, and the last level needs what `InteriorPoint`
        does.

        Raises:
            TypeError, ValueError: beta is not in (0, 1), or border or core is too small for it.
        """
        part = check_inside_unit("beta", beta) / (5 * self.levels + 1)
        given = self.parameters
        border, core = least_slices(given.weight, given.threshold, given.cut, part)
        if given.border < border or given.core < core:
            raise ValueError(f"beta must allow border >= {border} and core >= {core}, got {beta!r}")
        longest = longest_tail(given.shrink, part)
        size = self.domain_size
        for _ in range(self.levels):
            size = tree_depth(size) + 1
        return self.levels * (2 * given.border + given.core + 3 * longest) + InteriorPoint.with_base(
            size, given.weight
        ).records_needed(part)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> int:
        """One rank."""
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> list[int]:
        """`size` independent ranks."""
        check_rng(rng)
        check_int("size", size, lo=0)
        ordered = sorted_ranks(self.domain_size, dataset)
        outcomes = [self._draw(ordered, self.domain_size, self.levels, rng) for _ in range(size)]
        return [self.default if outcome is None else outcome for outcome in outcomes]

    def distribution(self, dataset: Dataset) -> Mapping[int, Fraction]:
        """The exact law; for a handful of records."""
        law: defaultdict[int, Fraction] = defaultdict(Fraction)
        ordered = sorted_ranks(self.domain_size, dataset)
        for outcome, probability in self._law(tuple(ordered), self.domain_size, self.levels).items():
            law[self.default if outcome is None else outcome] += probability
        return dict(law)

    def _draw(self, ordered: list[int], size: int, levels: int, rng: np.random.Generator | None) -> int | None:
        """One outcome for a sorted multiset of ranks below `size`; None for giving up."""
        given = self.parameters
        if levels == 0:
            return step_draws(interior_depth(size, ordered), given.weight, 1, rng)[0]
        depth = tree_depth(size)
        cut = self._slice_length(len(ordered), given.border, rng)
        left, rest = ordered[:cut], ordered[cut:]
        cut = len(rest) - self._slice_length(len(rest), given.border, rng)
        rest, right = rest[:cut], rest[cut:]
        boundaries, test = self._test(rest, depth)
        [(place, _)] = test.draw_many(1, rng)
        if place < len(boundaries):
            return boundaries[place]
        core, depths = self._core(rest, depth, self._slice_length(len(rest), given.core, rng))
        level = self._draw(depths, depth + 1, levels - 1, rng)
        if level is None:
            return None
        nodes, vote = self._vote(core, level, depth)
        [(place, _)] = vote.draw_many(1, rng)
        if place == len(nodes):
            return None
        ranks, final = self._final(nodes[place], level, depth, size, (*left, *right))
        [(place, _)] = final.draw_many(1, rng)
        return ranks[place]

    def _law(self, ordered: tuple[int, ...], size: int, levels: int) -> dict[int | None, Fraction]:
        """The law of `_draw`."""
        given = self.parameters
        if levels == 0:
            last = step_law(interior_depth(size, ordered), given.weight)
            return {rank: last[rank] for rank in last}
        depth = tree_depth(size)
        law: defaultdict[int | None, Fraction] = defaultdict(Fraction)
        for first, p_first in self._slice_lengths(len(ordered), given.border):
            for second, p_second in self._slice_lengths(len(ordered) - first, given.border):
                end = len(ordered) - second
                rest, border = ordered[first:end], (*ordered[:first], *ordered[end:])
                boundaries, test = self._test(rest, depth)
                *found, nothing = test.outcome_probabilities()
                for boundary, probability in zip(boundaries, found, strict=True):
                    law[boundary] += p_first * p_second * probability
                for third, p_third in self._slice_lengths(len(rest), given.core):
                    core, depths = self._core(rest, depth, third)
                    chance = p_first * p_second * nothing * p_third
                    for level, p_level in self._law(tuple(depths), depth + 1, levels - 1).items():
                        for rank, p_rank in self._last_steps(core, border, level, depth, size).items():
                            law[rank] += chance * p_level * p_rank
        return dict(law)

    def _last_steps(
        self, core: Sequence[int], border: Sequence[int], level: int | None, depth: int, size: int
    ) -> dict[int | None, Fraction]:
        """The law of steps 5 and 6."""
        if level is None:
            return {None: Fraction(1)}
        nodes, vote = self._vote(core, level, depth)
        *chosen, nothing = vote.outcome_probabilities()
        law: defaultdict[int | None, Fraction] = defaultdict(Fraction, {None: nothing})
        for node, p_node in zip(nodes, chosen, strict=True):
            ranks, final = self._final(node, level, depth, size, border)
            for rank, p_rank in zip(ranks, final.outcome_probabilities(), strict=True):
                law[rank] += p_node * p_rank
        return dict(law)

    def _slice_length(self, available: int, least: int, rng: np.random.Generator | None) -> int:
        """``min(available, least + G)``, by one coin of probability lam after another."""
        length = min(least, available)
        keep, whole = self.parameters.shrink.numerator, self.parameters.shrink.denominator
        while length < available and uniform_below(whole, rng) < keep:
            length += 1
        return length

    def _slice_lengths(self, available: int, least: int) -> Iterator[tuple[int, Fraction]]:
        """The law of `_slice_length`."""
        shrink = self.parameters.shrink
        for length in range(min(least, available), available):
            yield length, (1 - shrink) * shrink ** (length - least)
        yield available, shrink ** max(0, available - least)

    def _test(self, ordered: Sequence[int], depth: int) -> tuple[list[int], Groups]:
        """Step 2: the boundaries of the nodes with elements on both sides, and the choice; its last group is none."""
        boundaries, exponents = [], []
        for boundary, smaller in branchings(ordered, depth):
            boundaries.append(boundary)
            exponents.append(smaller - self.parameters.test_threshold)
        return boundaries, Groups([*exponents, 0], [1] * (len(exponents) + 1), self.parameters.test_weight)

    def _core(self, ordered: Sequence[int], depth: int, length: int) -> tuple[list[int], list[int]]:
        """Step 3: the slice, and the sorted depths of the rest."""
        listed = sorted(zip(heavy_depths(ordered, depth), ordered, strict=True), key=lambda pair: (-pair[0], pair[1]))
        return [rank for _, rank in listed[:length]], [level for level, _ in reversed(listed[length:])]

    def _vote(self, core: Sequence[int], level: int, depth: int) -> tuple[list[int], Groups]:
        """Step 5: the nodes on the level, by their prefixes, and the choice; its last group is giving up."""
        counts = Counter(rank >> (depth - level) for rank in core)
        exponents = [count - self.parameters.threshold for count in counts.values()]
        return list(counts), Groups([*exponents, 0], [1] * (len(exponents) + 1), self.parameters.weight)

    def _final(self, node: int, level: int, depth: int, size: int, border: Sequence[int]) -> tuple[list[int], Groups]:
        """Step 6: three ranks (they may coincide), and the choice."""
        width = 1 << (depth - level)
        first = node * width
        ranks = [min(rank, size - 1) for rank in (first, first + width // 2, first + width - 1)]
        scores = [min(sum(x <= rank for x in border), sum(x >= rank for x in border)) for rank in ranks]
        return ranks, Groups(scores, [1, 1, 1], self.parameters.weight)


def branchings(ordered: Sequence[int], depth: int) -> Iterator[tuple[int, int]]:
    """For each tree node with elements on both sides: its boundary, and the number of elements on the smaller side."""
    pending = [(0, len(ordered))] if ordered else []
    while pending:
        lo, hi = pending.pop()
        split = _split(ordered, lo, hi, depth)
        if split is not None:
            boundary, place, _ = split
            yield boundary, min(place - lo, hi - place)
            pending += [(lo, place), (place, hi)]


def heavy_depths(ordered: Sequence[int], depth: int) -> list[int]:
    """For each element, the level at which it leaves the path of heavier children (ties to the left); D at its end."""
    depths = [depth] * len(ordered)
    lo, hi = 0, len(ordered)
    while lo < hi:
        split = _split(ordered, lo, hi, depth)
        if split is None:
            break
        _, place, level = split
        if place - lo >= hi - place:
            depths[place:hi] = [level] * (hi - place)
            hi = place
        else:
            depths[lo:place] = [level] * (place - lo)
            lo = place
    return depths


def _split(ordered: Sequence[int], lo: int, hi: int, depth: int) -> tuple[int, int, int] | None:
    """Where the tree first parts the elements lo..hi-1: the boundary, its place among them, and the level."""
    least, greatest = ordered[lo], ordered[hi - 1]
    below = (least ^ greatest).bit_length()
    if below == 0:
        return None
    boundary = greatest >> (below - 1) << (below - 1)
    return boundary, bisect.bisect_left(ordered, boundary, lo, hi), depth - below


def plan_reorder_slice(
    domain_size: int,
    *,
    epsilon: float | Fraction,
    delta: float | Fraction,
    beta: float | Fraction,
    levels: int = 1,
) -> ReorderSliceChoose:
    """The mechanism with the fewest records on a grid of parameters, for (epsilon, delta) and failure probability beta.

    Half of delta goes to ``(1-c)**k``, a sixth of what is left to each of the three other terms. By public numbers
    only.

    Raises:
        TypeError, ValueError: a parameter out of range, or no parameters on the grid that fit.
    """
    budget, share = check_positive_epsilon(epsilon), check_inside_unit("delta", delta)
    part = check_inside_unit("beta", beta) / (5 * check_int("levels", levels, lo=1) + 1)
    best: tuple[int, ReorderSliceChoose] | None = None
    for halving, pieces, steps in itertools.product(range(3, 12), (20, 10, 6, 4), (1, 2, 3)):
        shrink = 1 - Fraction(1, max(2, round(2**halving / min(1, float(budget)))))
        swap = shrink**-steps
        settled = settled_share(shrink, swap)
        swaps = math.ceil(math.log(share / 2) / math.log(1 - settled))
        while (1 - settled) ** swaps > share / 2:
            swaps += 1
        test = budget / (pieces * levels)
        left = budget + Fraction((swaps * steps + 1) * math.log(shrink)) - 2 * levels * test
        if left <= 0:
            continue
        weight, test_weight = rational_base(left / (swaps + 1)), rational_base(2 * test)
        if weight <= 1:
            continue
        # e = levels * 3 * each, paid 1 + R1 times, R1 <= e**epsilon.
        each = share / (6 * levels * (1 + Fraction(math.exp(float(budget))) * Fraction(101, 100)))
        threshold = 1 + smallest_exponent(weight, 1 / min(each, weight - 1))
        test_threshold = 1 + smallest_exponent(test_weight, 1 / each)
        cut = test_threshold + smallest_exponent(test_weight, 1 / each)
        border, core = least_slices(weight, threshold, cut, part)
        given = SliceParameters(shrink, swap, swaps, weight, test_weight, threshold, test_threshold, cut, border, core)
        mechanism = ReorderSliceChoose(domain_size, given, levels=levels)
        claimed = mechanism.claim.event
        if mechanism.delta <= share and getattr(claimed, "epsilon", math.inf) <= budget:
            needed = mechanism.records_needed(beta)
            if best is None or needed < best[0]:
                best = (needed, mechanism)
    if best is None:
        raise ValueError(f"no parameters on the grid give epsilon = {epsilon!r}, delta = {delta!r}, beta = {beta!r}")
    return best[1]
