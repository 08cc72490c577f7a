"""Which blocks each variant of the learner uses, and what their activations cost a record of the sample.

With k components, eps_LB-relabelling and oracle A, per activation and in the order in which they happen:

    variant  block      activations                what one costs
    paper    init       1                          (C, Delta)                      Lemma 6.4
             even, odd  rounds 1, 3, ... / 2, 4..  (C, Delta)                      Lemma 6.2; rounds up to k - 1
    tight    init       1                          BR(eta_L), A, BR(eta_L)         without the last one if k = 1
             even, odd  as for the paper           BR(ln 4), A, BR(eta_L)          round k - 1: without the last one
    star     labelled   1                          BR(eps_LB)
             even, odd  rounds 0, 2, ... / 1, 3..  BR(ln 4), A, BR(eps_LB)         round k - 1: without the last one

BR(eta) is eta-bounded-range. In `star` the carriers T_0, ..., T_{k-1} all come from the two unlabelled blocks; labels
are read from the first block alone. "even" is
the paper's W^(0), "odd" its W^(1).
"""

from __future__ import annotations

from dataclasses import dataclass

from dp_accounting import DpEvent

from accounting import (
    UNLABELLED_WIDTH,
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    EpsilonDelta,
    labelled_width,
    paper_block,
)
from learners.plan import Step, composed

_SHARP_BLOCK = "Lemma 6.2, with LabelBoost ln 4-bounded-range in a carrier and delta_A not multiplied"
_SHARP_START = "Lemma 6.4, with LabelBoost 2 ln(1 + e^(eps_LB/2))-bounded-range in a labelled record"
_STAR_BLOCK = "Lemma 6.2 for LB*: ln 4-bounded-range in a carrier, eps_LB-bounded-range in a labelled record"
_STAR_START = "LB* is an exponential mechanism over the carrier's traces: eps_LB-bounded-range in a labelled record"


@dataclass(frozen=True, slots=True)
class Shape:
    """A block before its size is known."""

    name: str
    steps: tuple[Step, ...]


def paper_shapes(components: int, oracle: EpsilonDelta) -> tuple[Shape, ...]:
    """The three blocks of Algorithm 2; a block may have no activation."""
    pair = paper_block(oracle)
    event = ApproximateDpEvent(pair.epsilon, pair.delta)
    return (
        Shape("init", (Step("initial block", event, 1, "Lemma 6.4"),)),
        *(Shape(name, _nonempty(Step("macro-block", event, n, "Lemma 6.2"))) for name, n, _ in _rounds(components - 1)),
    )


def tight_shapes(components: int, oracle: DpEvent, label_boost_epsilon: float) -> tuple[Shape, ...]:
    """The blocks of Algorithm 2 that are used, with sharper costs."""
    relabel = BoundedRangeDpEvent(labelled_width(label_boost_epsilon))
    start = (relabel, oracle, relabel) if components > 1 else (relabel, oracle)
    init = Shape("init", (Step("initial block", composed(*start), 1, _SHARP_START),))
    return (init, *_carriers(components - 1, oracle, relabel, _SHARP_BLOCK))


def star_shapes(components: int, oracle: DpEvent, label_boost_epsilon: float) -> tuple[Shape, ...]:
    """The blocks of the learner with LB* and two unlabelled reservoirs."""
    relabel = BoundedRangeDpEvent(label_boost_epsilon)
    labelled = Shape("labelled", (Step("first relabelling", relabel, 1, _STAR_START),))
    return (labelled, *_carriers(components, oracle, relabel, _STAR_BLOCK))


def _carriers(rounds: int, oracle: DpEvent, relabel: DpEvent, source: str) -> tuple[Shape, ...]:
    """The reservoirs that supply `rounds` carriers in turn; a carrier lives for two rounds, the last one for one."""
    carrier = BoundedRangeDpEvent(UNLABELLED_WIDTH)
    full, last = composed(carrier, oracle, relabel), composed(carrier, oracle)
    return tuple(
        Shape(
            name,
            _nonempty(
                Step("macro-block", full, count - ends, source), Step("last macro-block", last, int(ends), source)
            ),
        )
        for name, count, ends in _rounds(rounds)
        if count
    )


def _rounds(rounds: int) -> tuple[tuple[str, int, bool], ...]:
    """For each reservoir its name, how many of `rounds` carriers it supplies, and whether it supplies the last."""
    return ("even", (rounds + 1) // 2, rounds % 2 == 1), ("odd", rounds // 2, rounds > 0 and rounds % 2 == 0)


def _nonempty(*steps: Step) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.count)
