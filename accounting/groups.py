"""Group privacy: the profile of a mechanism for neighbours that differ in several records, pair by pair."""

from __future__ import annotations

import math

from dp_accounting import DpEvent, UnsupportedEventError

from accounting.leaves import BoundedRangePair, GaussianPair, LaplacePair, approximate_pair
from accounting.pairs import AtomicPair, Pair
from accounting.profiles import PrivacyProfile


def group_profile(profile: PrivacyProfile, size: int, event: DpEvent) -> PrivacyProfile:
    """`profile` for a group of `size` records.

    Gaussian and Laplace shifts grow by `size`; a bounded range grows by `size`, because log-ratios along a chain of
    neighbours add; an (epsilon, delta) pair becomes ``(size epsilon, delta (e^{size epsilon} - 1) / (e^epsilon - 1))``
    (Dwork and Roth 2014, Theorem 2.2, with the geometric sum written out); any other pair with bounded losses counts as
    pure. A composition's group is the composition of the groups.

    Raises:
        UnsupportedEventError: sampled mechanisms and Renyi curves, for which no theorem is implemented.
    """
    if size == 1:
        return profile
    if len(profile._directions) > 1:
        raise UnsupportedEventError(f"no theorem here covers a group of records under sampling: {event!r}")
    (parts,) = profile._directions
    grown = tuple((_group_pair(pair, size, event), count) for pair, count in parts)
    return PrivacyProfile((grown,), profile.relation)


def _group_pair(pair: Pair, size: int, event: DpEvent) -> Pair:
    match pair:
        case GaussianPair(mu=mu):
            return GaussianPair(size * mu)
        case LaplacePair(shift=shift):
            return LaplacePair(size * shift)
        case BoundedRangePair(eta=eta):
            return BoundedRangePair(size * eta)
        case AtomicPair() if math.isfinite(pair.max_loss) and len(pair.losses) <= 2:
            epsilon = max(pair.max_loss, 0.0)
            if epsilon == 0:
                return approximate_pair(0.0, min(1.0, size * pair.infinite))
            growth = math.expm1(size * epsilon) / math.expm1(epsilon) if size * epsilon < 700 else math.inf
            return approximate_pair(
                size * epsilon, min(1.0, pair.infinite * growth * (1 + 4e-15)) if pair.infinite else 0.0
            )
        case AtomicPair() if math.isfinite(pair.max_loss) and pair.infinite == 0:
            return approximate_pair(size * max(pair.max_loss, 0.0), 0.0)
        case _:
            raise UnsupportedEventError(f"no theorem here gives the profile of a group of records: {event!r}")
