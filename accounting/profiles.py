"""PrivacyProfile: the curve epsilon -> delta of a mechanism, as an immutable value that composes.

A profile is kept as the dominating pairs it was built from, never as sampled numbers, so composing or sampling it later
loses nothing. Every number it returns is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting import DpEvent, NeighboringRelation

from accounting._checks import check_epsilon, check_int, check_probability, check_real, relation_name
from accounting.bracket import LowerBound
from accounting.composer import Composer
from accounting.convolution import Parts, simplify
from accounting.errors import RelationMismatchError
from accounting.leaves import BoundedRangePair, GaussianPair, LaplacePair, approximate_pair
from accounting.pairs import AtomicPair, Pair, symmetric_pair
from accounting.sampling import PoissonPair, WithoutReplacementPair

_REPLACE = NeighboringRelation.REPLACE_ONE
_ADD_REMOVE = NeighboringRelation.ADD_OR_REMOVE_ONE
# Less noise than this counts as none: its losses would leave the range of doubles.
_LEAST_NOISE = 1e-100


@dataclass(frozen=True, slots=True)
class PrivacyProfile:
    """``delta(epsilon) = sup over neighbours D, D', in both orders, of H_{e^epsilon}(M(D) || M(D'))``, or an upper
    bound of it.

    Build one with a class method: ``pure``, ``approximate``, ``bounded_range``, ``gaussian``, ``laplace``,
    ``from_distributions``, ``from_event``. Combine with ``compose``, ``self_compose``,
    ``subsample_without_replacement``, ``subsample_poisson``.

    relation: the neighbouring relation the profile is about; None means whichever one the caller has in mind. Profiles
    under two different relations refuse to compose.

    Guarantees: ``delta`` and ``epsilon`` never return less than the true value for the profile's mechanisms composed
    adaptively (Zhu, Dong and Wang 2022, Theorem 10), up to the floating-point error that is added on top (see
    ``accounting.composer``).

    >>> step = PrivacyProfile.approximate(1.0, 1e-8).compose(PrivacyProfile.bounded_range(1.0))
    >>> total = step.subsample_without_replacement(0.01).self_compose(100)
    >>> round(total.epsilon(delta=1e-6), 3)
    0.726
    """

    _directions: tuple[Parts, ...]
    relation: NeighboringRelation | None = None

    @classmethod
    def pure(cls, epsilon: float) -> PrivacyProfile:
        """epsilon-DP, epsilon in nats."""
        return cls.approximate(epsilon, 0.0)

    @classmethod
    def approximate(cls, epsilon: float, delta: float) -> PrivacyProfile:
        """(epsilon, delta)-DP. Source: Kairouz, Oh and Viswanath (2015), Theorem 3."""
        epsilon, delta = check_epsilon("epsilon", epsilon), check_probability("delta", delta)
        return cls._of(approximate_pair(epsilon, delta))

    @classmethod
    def bounded_range(cls, eta: float) -> PrivacyProfile:
        """eta-bounded-range, such as an exponential mechanism. Source: Dong, Durfee and Rogers (2020)."""
        eta = check_epsilon("eta", eta)
        return cls._of(BoundedRangePair(eta)) if eta > 0 else cls.nothing()

    @classmethod
    def gaussian(cls, noise_multiplier: float) -> PrivacyProfile:
        """Gaussian noise, noise_multiplier = sigma over the L2 distance between neighbours' values (under the relation
        meant).
        """
        sigma = check_real("noise_multiplier", noise_multiplier, lo=0.0)
        return cls._of(GaussianPair(_inverse_up(sigma))) if sigma > _LEAST_NOISE else cls.unbounded()

    @classmethod
    def laplace(cls, noise_multiplier: float) -> PrivacyProfile:
        """Laplace noise, noise_multiplier = scale over the L1 distance between neighbours' values (under the relation
        meant).
        """
        scale = check_real("noise_multiplier", noise_multiplier, lo=0.0)
        return cls._of(LaplacePair(_inverse_up(scale))) if scale > _LEAST_NOISE else cls.unbounded()

    @classmethod
    def nothing(cls) -> PrivacyProfile:
        """A mechanism whose output does not depend on the data."""
        return cls(((),))

    @classmethod
    def unbounded(cls) -> PrivacyProfile:
        """A mechanism with no guarantee: delta is 1 at every epsilon."""
        return cls._of(AtomicPair((0.0,), (0.0,), (0.0,), 1.0))

    @classmethod
    def from_distributions(
        cls, first: Mapping[Hashable, float | Fraction], second: Mapping[Hashable, float | Fraction]
    ) -> PrivacyProfile:
        """The larger, at every epsilon, of H(first||second) and H(second||first).

        first, second: outcome -> probability; outcomes any hashable, a missing one has probability 0. Fractions must
        sum to exactly 1; floats to 1 within 1e-9, and are then divided by their exact sum.

        Raises:
            ValueError: a probability is negative, NaN or infinite, or a sum is not 1.
        """
        laws = [_exact_law(name, law) for name, law in (("first", first), ("second", second))]
        outcomes = list(dict.fromkeys([*laws[0], *laws[1]]))
        upper, lower = ([law.get(outcome, Fraction(0)) for outcome in outcomes] for law in laws)
        return cls._of(symmetric_pair(upper, lower))

    @classmethod
    def from_event(cls, event: DpEvent, *, relation: NeighboringRelation) -> PrivacyProfile:
        """The profile of a DpEvent of dp-accounting or of this package, under `relation`.

        Raises:
            dp_accounting.UnsupportedEventError: no theorem gives a profile for the event under this relation; it is
            named.
            ValueError: a parameter of the event is NaN, infinite, negative or out of range.
        """
        from accounting.translate import profile_of

        return profile_of(event, relation)

    @classmethod
    def _of(cls, pair: Pair, relation: NeighboringRelation | None = None) -> PrivacyProfile:
        return cls((((pair, 1),),), relation)

    def compose(self, *others: PrivacyProfile) -> PrivacyProfile:
        """Adaptive composition, all on the same dataset.

        Raises:
            RelationMismatchError: two of the profiles name different relations.
        """
        profiles = (self, *others)
        relations = {profile.relation for profile in profiles if profile.relation is not None}
        if len(relations) > 1:
            names = ", ".join(sorted(relation_name(relation) for relation in relations))
            raise RelationMismatchError(f"profiles to compose must share one neighbouring relation, got {names}")
        width = max(len(profile._directions) for profile in profiles)
        directions = tuple(
            simplify(
                tuple(
                    part for profile in profiles for part in profile._directions[min(i, len(profile._directions) - 1)]
                )
            )
            for i in range(width)
        )
        return PrivacyProfile(directions, next(iter(relations), None))

    def self_compose(self, count: int) -> PrivacyProfile:
        """`count` uses on the same dataset; 0 uses give ``nothing()``."""
        count = check_int("count", count, lo=0)
        directions = tuple(simplify(tuple((pair, count * uses) for pair, uses in parts)) for parts in self._directions)
        return PrivacyProfile(directions, self.relation)

    def subsample_without_replacement(self, rate: float) -> PrivacyProfile:
        """The profile when the input is a uniform fixed-size sample without replacement, rate = sample size / dataset
        size.

        Needs REPLACE_ONE; the result names it. The sample must enter the mechanism in random order, or the mechanism
        must ignore order. ``h(e') = rate * delta(ln(1 + (e^{e'} - 1)/rate))`` for e' >= 0. Source: Balle, Barthe and
        Gaboardi (2018), Theorem 9.

        Raises:
            RelationMismatchError: the profile is about another relation.
        """
        rate = check_probability("rate", rate)
        self._require(_REPLACE, "sampling without replacement")
        if rate == 0:
            return PrivacyProfile(((),), _REPLACE)
        (parts,) = self._directions
        if rate == 1:
            return PrivacyProfile((parts,), _REPLACE)
        return self._of(WithoutReplacementPair(rate, parts), _REPLACE)

    def subsample_poisson(self, rate: float) -> PrivacyProfile:
        """The profile when each record enters the input independently with probability `rate`.

        Needs ADD_OR_REMOVE_ONE; the result names it. Source: Zhu, Dong and Wang (2022), Theorem 11.

        Raises:
            RelationMismatchError: the profile is about another relation.
        """
        rate = check_probability("rate", rate)
        self._require(_ADD_REMOVE, "Poisson sampling")
        if rate == 0:
            return PrivacyProfile(((),), _ADD_REMOVE)
        (parts,) = self._directions
        if rate == 1:
            return PrivacyProfile((parts,), _ADD_REMOVE)
        return PrivacyProfile(
            tuple(((PoissonPair(rate, parts, removal), 1),) for removal in (True, False)), _ADD_REMOVE
        )

    def _require(self, relation: NeighboringRelation, what: str) -> None:
        if self.relation not in (None, relation):
            raise RelationMismatchError(
                f"{what} has a theorem under {relation_name(relation)}, "
                f"got a profile under {relation_name(self.relation)}"
            )
        if len(self._directions) > 1:
            raise RelationMismatchError(
                f"{what} needs a profile that is the same in both directions, got a sampled one"
            )

    def delta(self, epsilon: float) -> float:
        """Upper bound of delta at a real epsilon in nats, negative too; in [0, 1]."""
        epsilon = check_real("epsilon", epsilon)
        if epsilon < 0:  # the two directions are each other's mirror images, so their maximum is symmetric
            return min(1.0, (-math.expm1(epsilon) + math.exp(epsilon) * self.delta(-epsilon)) * (1 + 4e-16))
        return max(_composer(parts).delta(epsilon) for parts in self._directions)

    def epsilon(self, delta: float) -> float:
        """Upper bound of the smallest epsilon >= 0, in nats, with delta(epsilon) <= delta; inf if there is none.

        At delta = 0 it is the pure total: the sum of the largest losses, exact up to one rounding.
        """
        delta = check_probability("delta", delta)
        worst = 0.0
        for composer in map(_composer, self._directions):
            if composer.quick_delta(worst) > delta and composer.delta(worst) > delta:
                worst = max(worst, composer.epsilon(delta))
        # What was read off one curve may round differently when it is asked of another.
        nudge = 1e-14
        while math.isfinite(worst) and self.delta(worst) > delta and nudge < 1e-3:
            worst, nudge = worst * (1 + nudge) + 5e-324, 4 * nudge
        return worst

    def epsilon_bracket(self, delta: float) -> tuple[float, float]:
        """(lower, upper) bounds of the smallest epsilon of the composed dominating pairs at `delta`.

        The gap is what the arithmetic gives away. The lower bound is about the pairs, which stand for the worst
        mechanism with the stated guarantees; a particular mechanism may lose less.
        """
        delta = check_probability("delta", delta)
        lower = max(LowerBound(_composer(parts)).epsilon(delta) for parts in self._directions)
        return lower, self.epsilon(delta)

    def trade_off(self, false_positive: float, *, curve: int = 256) -> float:
        """Lower bound of the smallest type-II error of any test of neighbours at type-I error `false_positive`.

        ``f(x) = sup over epsilon of max(0, 1 - delta(epsilon) - e^epsilon x, e^-epsilon (1 - delta(epsilon) - x))``,
        over `curve` values of epsilon. Source: Dong, Roth and Su (2022), Proposition 6.
        """
        x = check_probability("false_positive", false_positive)
        highest = min(self.epsilon(1e-12), 50.0)
        best = 0.0
        for epsilon in np.linspace(0.0, highest if math.isfinite(highest) else 50.0, check_int("curve", curve, lo=2)):
            delta = self.delta(float(epsilon))
            best = max(best, 1 - delta - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - delta - x))
        return best


def _inverse_up(x: float) -> float:
    """1 / x, rounded up."""
    near = 1 / x
    return near if Fraction(near) * Fraction(x) >= 1 else math.nextafter(near, math.inf)


@lru_cache(maxsize=512)
def _composer(parts: Parts) -> Composer:
    return Composer(parts)


def _exact_law(name: str, law: Mapping[Hashable, Any]) -> dict[Hashable, Fraction]:
    if not isinstance(law, Mapping):
        raise TypeError(f"{name} must be a mapping from outcomes to probabilities, got {law!r}")
    exact = {}
    for outcome, probability in law.items():
        check_probability(f"{name}[{outcome!r}]", probability)
        exact[outcome] = (
            Fraction(probability) if isinstance(probability, (int, Fraction)) else Fraction(float(probability))
        )
    total = sum(exact.values(), Fraction(0))
    if all(isinstance(probability, (int, Fraction)) for probability in law.values()):
        if total != 1:
            raise ValueError(f"{name} must sum to exactly 1, got {total}")
        return exact
    if abs(total - 1) > Fraction(1, 10**9):
        raise ValueError(f"{name} must sum to 1 within 1e-9, got {float(total)!r}")
    return {outcome: probability / total for outcome, probability in exact.items()}
