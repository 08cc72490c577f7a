"""What the ledger's tests share: a plain view of a ledger, and composition from the theorem, in many digits."""

from __future__ import annotations

import mpmath

from accounting import ApproximateDpEvent, Ledger, Relation

REPLACE = Relation.REPLACE_ONE
TENTH = ApproximateDpEvent(0.1)


def state(ledger: Ledger) -> tuple[object, ...]:
    """Everything a caller can see of a ledger without asking for a total."""
    return (ledger.relation, ledger.budget, ledger.datasets, ledger.entries, ledger.charges)


def homogeneous_delta(e0: float, d0: float, k: int, epsilon: float) -> float:
    """Delta of k-fold composition of (e0, d0)-DP, in 50 digits: Kairouz, Oh and Viswanath (2015), Theorem 3."""
    with mpmath.workdps(50):
        a, b, d = mpmath.exp(mpmath.mpf(e0)), mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(d0)
        total, ways = mpmath.mpf(0), 1
        for i in range(k + 1):
            total += ways * max(a ** (k - i) - b * a**i, mpmath.mpf(0))
            ways = ways * (k - i) // (i + 1)
        return float(1 - (1 - d) ** k * (1 - total / (1 + a) ** k))
