"""The paper's own closed forms for its learner (sections 3.5 and 6), and the sharper constants beside them.

Upper bounds throughout, rounded up, except where a function says that it answers what may be spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint

from accounting._checks import check_epsilon, check_int, check_real
from accounting.balls import ball, rounded_down, rounded_up, whole
from accounting.theorems import EpsilonDelta, advanced_composition, amplify

PAPER_LABEL_BOOST_LOSS = rounded_up(lambda: 1 + ball(4).log())
"""c_LB = ln(4e): Lemmas 3.14, 3.15 and 3.17, for one changed record of either kind and eps_LB = 1."""

PAPER_ORACLE_EPSILON = 4.0
"""eps_A of Algorithm 2."""

UNLABELLED_WIDTH = rounded_up(lambda: ball(4).log())
"""eta_U = ln 4: LabelBoost and LB* when one unlabelled record changes, for every eps_LB, is eta_U-bounded-range.

Proof: the weight of a labelling z of the shared points is multiplied by g(z) in {1, 2}, so ``ln(w_1(z)/w_2(z))`` is
``ln(g_1(z)/g_2(z))``, in [-ln 2, ln 2], plus a number that does not depend on z. For LB* g(z) is the number of
extensions of z, each weighted by at most the best agreement with the sample over concepts that give z, and at least
one by exactly that.
"""


def labelled_width(label_boost_epsilon: float) -> float:
    """``eta_L = 2 ln(1 + e^{eps_LB/2})``: LabelBoost is eta_L-bounded-range in its labelled sample (1.948 at 1).

    Proof: g(z) is in {1, r, 1 + r} with ``r = e^{eps_LB/2}``, so ``ln(g_1/g_2)`` is in [-ln(1 + r), ln(1 + r)]; as for
    `UNLABELLED_WIDTH`. LB* is eps_LB-bounded-range instead: its candidates do not depend on the labelled sample.
    """
    check_epsilon("label_boost_epsilon", label_boost_epsilon)
    return rounded_up(lambda: 2 * (1 + (ball(label_boost_epsilon) / 2).exp()).log())


def paper_block(oracle: EpsilonDelta) -> EpsilonDelta:
    """One macro-block in its carrier, or the start in R_0: ``(C, Delta) = (eps_A + 2 ln(4e), 4e delta_A)``, eps_LB = 1.

    Source: Lemmas 6.2 and 6.4.
    """
    epsilon = rounded_up(lambda: ball(oracle.epsilon) + 2 + 4 * ball(2).log())
    return EpsilonDelta(epsilon, min(1.0, rounded_up(lambda: 4 * ball(1).exp() * ball(oracle.delta))))


def sharp_block(
    oracle: EpsilonDelta, label_boost_epsilon: float, *, star: bool = False, last: bool = False
) -> EpsilonDelta:
    """One macro-block in its carrier: ``(eps_A + ln 4 + eta_L, delta_A)``; with LB* eps_LB takes the place of eta_L.

    last: the learner's last macro-block, which relabels no more: ``(eps_A + ln 4, delta_A)``.

    Source: Lemma 6.2 with `UNLABELLED_WIDTH` and `labelled_width`; delta_A is not multiplied, because
    ``sum_z w_1(z) (e^eps p_2(z) + delta) = e^eps sum_z w_1(z) p_2(z) + delta`` and only the first term changes weights.
    """
    check_epsilon("label_boost_epsilon", label_boost_epsilon)
    relabelling = 0.0 if last else label_boost_epsilon if star else labelled_width(label_boost_epsilon)
    epsilon = rounded_up(lambda: ball(oracle.epsilon) + ball(4).log() + ball(relabelling))
    return EpsilonDelta(epsilon, oracle.delta)


def sharp_start(oracle: EpsilonDelta, label_boost_epsilon: float, *, last: bool = False) -> EpsilonDelta:
    """The start in R_0: ``(eps_A + 2 eta_L, delta_A)``; with one component (`last`) ``(eps_A + eta_L, delta_A)``.

    Source: Lemma 6.4 with `labelled_width`; delta_A as in `sharp_block`.
    """
    width = labelled_width(label_boost_epsilon)
    epsilon = rounded_up(lambda: ball(oracle.epsilon) + (1 if last else 2) * ball(width))
    return EpsilonDelta(epsilon, oracle.delta)


def paper_activations(components: int) -> int:
    """``l = ceil((k - 1)/2)``: how often the busier of the two reservoirs supplies a carrier (Corollary 6.11)."""
    return check_int("components", components, lo=1) // 2


def reservoir_privacy(block: EpsilonDelta, *, rate: Fraction | float, activations: int, slack: float) -> EpsilonDelta:
    """The learner in one record of a reservoir: `activations` amplified macro-blocks, by advanced composition.

    ``eta = ln(1 + q (e^C - 1))`` and ``zeta = q Delta`` give ``(sqrt(2 l ln(1/slack)) eta + l eta (e^eta - 1), l zeta +
    slack)``. block: (C, Delta). rate: q.

    Source: Corollary 6.11 (with Corollary 6.9).
    """
    return advanced_composition(amplify(block, rate), activations, slack)


@dataclass(frozen=True, slots=True)
class Algorithm2:
    """The parameters that Algorithm 2 sets for `records` records; Lemma 6.12 makes it (epsilon, delta)-DP with them.

    active_sample: m. block: floor(n/3), the size of each of the three blocks. oracle: (eps_A, delta_A), delta_A rounded
    down, because a smaller one costs less.
    """

    records: int
    active_sample: int
    block: int
    oracle: EpsilonDelta


def algorithm_2(*, records: int, components: int, epsilon: float, delta: float) -> Algorithm2:
    """``m = floor(epsilon n / (12 e^9 sqrt(k ln(2/delta))))``, eps_A = 4, delta_A = delta/(16 e k).

    components: k >= 1. epsilon: in (0, 1]. delta: in (0, 1). m = 0 (fewer than `algorithm_2_records` of 1) is no
    learner.

    Source: Algorithm 2 and Lemma 6.12.
    """
    n = check_int("records", records, lo=0)
    epsilon, delta, k = _lemma_6_12(epsilon, delta, components)
    m = whole(lambda: ball(epsilon) * n / _denominator(delta, k)) if n else 0
    oracle_delta = rounded_down(lambda: ball(delta) / (16 * ball(1).exp() * k))
    return Algorithm2(n, m, n // 3, EpsilonDelta(PAPER_ORACLE_EPSILON, oracle_delta))


def algorithm_2_records(*, active_sample: int, components: int, epsilon: float, delta: float) -> int:
    """The fewest records for which `algorithm_2` sets an active sample of at least `active_sample` >= 1."""
    m = check_int("active_sample", active_sample, lo=1)
    epsilon, delta, k = _lemma_6_12(epsilon, delta, components)
    return whole(lambda: m * _denominator(delta, k) / ball(epsilon)) + 1


def _denominator(delta: float, k: int) -> flint.arb:
    return 12 * ball(9).exp() * (k * (2 / ball(delta)).log()).sqrt()


def _lemma_6_12(epsilon: float, delta: float, components: int) -> tuple[float, float, int]:
    return (
        check_real("epsilon", epsilon, lo=0.0, hi=1.0, lo_open=True),
        check_real("delta", delta, lo=0.0, hi=1.0, lo_open=True, hi_open=True),
        check_int("components", components, lo=1),
    )
