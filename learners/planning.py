"""Parameters of the CarryForwardLearner: the largest active sample that a privacy target allows, and its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from dp_accounting import DpEvent

from accounting import (
    PAPER_ORACLE_EPSILON,
    ApproximateDpEvent,
    BoundedRangeDpEvent,
    PrivacyProfile,
    Relation,
    algorithm_2,
    algorithm_2_records,
    check_epsilon,
    check_int,
    check_probability,
    check_real,
)
from learners.plan import Block, Plan
from learners.plan_parameters import RoughRatio, block_rates, choose_epsilons
from learners.plan_shapes import Shape, paper_shapes, star_shapes, tight_shapes

_SHAPES = {"tight": tight_shapes, "star": star_shapes}
_AMPLIFICATION = "Balle, Barthe and Gaboardi (2018), Theorem 9, read as a whole curve (the paper's Theorem 3.4)"
_COMPOSITION = "Lemma 6.10, with composition by dominating pairs: Zhu, Dong and Wang (2022), Theorem 10"
_PARALLEL = "blocks chosen by position, a record in one of them: McSherry (2009), Theorem 4"
_MARGIN = 1e-9


def plan_carry_forward(
    components: int,
    epsilon: float,
    delta: float,
    *,
    records: int | None = None,
    active_sample: int | None = None,
    oracle_epsilon: float | None = None,
    label_boost_epsilon: float | None = None,
    oracle_delta: float | None = None,
    variant: str = "star",
    oracle: str = "approximate",
) -> Plan:
    """A plan within (epsilon, delta), for given records or for a given active sample.

    components: k >= 1. epsilon: over 0 (for "paper" at most 1). delta: in [0, 1) (for "paper" over 0).
    records, active_sample: give one of the two, n or m. With n, m is the largest that its blocks allow, and the blocks
        share all n records; with m, n is the smallest.
    oracle_epsilon: eps_A of each component oracle. label_boost_epsilon: eps_LB of each relabelling. None: chosen to
        need the fewest records at a fixed error, see `choose_epsilons`.
    oracle_delta: delta_A of an approximate oracle; None: the paper's ``delta/(16 e k)``. Far larger ones cost hardly
        more, because sampling scales delta_A down.
    oracle: "approximate" if (eps_A, delta_A)-DP is all that is known of the oracles, "bounded-range" if they are
        eps_A-bounded-range, such as exponential mechanisms.
    variant:
        "paper": Algorithm 2 as it stands: its m, eps_A = 4, delta_A, eps_LB = 1, and three blocks of floor(n/3).
        "tight": the same learner, its macro-blocks accounted by their profiles, each block as small as it may be.
        "star": LB* in place of LabelBoost, and two unlabelled reservoirs; fewest records.

    The plan is checked as it stands, with whole records: each block's total epsilon at delta is at most epsilon, and
    `Plan.ledger` takes all of `Plan.charge_all`.

    Raises:
        ValueError: both or none of records and active_sample; too few records (the message says how many it takes); a
            parameter against its rule, or one that "paper" fixes to another value.

    >>> plan = plan_carry_forward(5, 1.0, 1e-6, active_sample=1000, oracle_epsilon=0.5, label_boost_epsilon=1.0)
    >>> [(block.name, block.activations) for block in plan.blocks], round(plan.ratio)
    ([('labelled', 1), ('even', 3), ('odd', 2)], 37)
    """
    k = check_int("components", components, lo=1)
    epsilon = check_real("epsilon", epsilon, lo=0.0, lo_open=True)
    delta = check_real("delta", delta, lo=0.0, hi=1.0, hi_open=True)
    _check_choice("variant", variant, ("paper", *_SHAPES))
    _check_choice("oracle", oracle, ("approximate", "bounded-range"))
    if (records is None) == (active_sample is None):
        raise ValueError(f"give records or active_sample, not both: got {records!r} and {active_sample!r}")
    if records is not None:
        check_int("records", records, lo=1)
    if active_sample is not None:
        check_int("active_sample", active_sample, lo=1)
    if variant == "paper":
        for name, setting, papers in (
            ("oracle_epsilon", oracle_epsilon, PAPER_ORACLE_EPSILON),
            ("label_boost_epsilon", label_boost_epsilon, 1.0),
            ("oracle_delta", oracle_delta, None),
            ("oracle", oracle, "approximate"),
        ):
            if setting not in (None, papers):
                raise ValueError(f"{name} must be left to Algorithm 2 in variant 'paper', got {setting!r}")
        return _paper_plan(k, epsilon, delta, records, active_sample)
    if oracle_epsilon is not None:
        oracle_epsilon = check_epsilon("oracle_epsilon", oracle_epsilon)
    if label_boost_epsilon is not None:
        label_boost_epsilon = check_epsilon("label_boost_epsilon", label_boost_epsilon)
    oracle_delta = _oracle_delta(delta, k, oracle, oracle_delta)

    def shapes(eps_a: float, eps_lb: float) -> tuple[Shape, ...]:
        event: DpEvent = (
            ApproximateDpEvent(eps_a, oracle_delta) if oracle == "approximate" else BoundedRangeDpEvent(eps_a)
        )
        return _SHAPES[variant](k, event, eps_lb)

    ratio = RoughRatio(shapes, epsilon, delta)
    eps_a, eps_lb = choose_epsilons(ratio, epsilon, oracle_epsilon, label_boost_epsilon)
    target = (epsilon * (1 - _MARGIN), delta * (1 - _MARGIN))
    chosen = shapes(eps_a, eps_lb)
    rates = block_rates(chosen, *target)
    if records is None:
        assert active_sample is not None
        m, blocks = active_sample, _blocks_for_sample(chosen, rates, active_sample, target)
        n = sum(block.size for block in blocks)
    else:
        m, blocks = _blocks_for_records(chosen, rates, records, target)
        n = records
    return Plan(
        variant=variant,
        oracle=oracle,
        components=k,
        epsilon=epsilon,
        delta=delta,
        records=n,
        active_sample=m,
        oracle_epsilon=eps_a,
        oracle_delta=oracle_delta,
        label_boost_epsilon=eps_lb,
        blocks=blocks,
        sources=(_AMPLIFICATION, _COMPOSITION, _PARALLEL),
    )


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _oracle_delta(delta: float, components: int, oracle: str, given: float | None) -> float:
    if oracle == "bounded-range":
        if given not in (None, 0):
            raise ValueError(f"oracle_delta must be left out for a bounded-range oracle, got {given!r}")
        return 0.0
    if given is not None:
        check_probability("oracle_delta", given)
        if given > 0 and delta == 0:
            raise ValueError(f"oracle_delta must be 0 where delta is, got {given!r}")
        return given
    return delta / (16 * math.e * components)


def _paper_plan(k: int, epsilon: float, delta: float, records: int | None, active_sample: int | None) -> Plan:
    fewest = algorithm_2_records(active_sample=active_sample or 1, components=k, epsilon=epsilon, delta=delta)
    n = fewest if records is None else records
    if n < fewest:
        raise ValueError(f"records must be at least {fewest}, for one active record, got {n}")
    chosen = algorithm_2(records=n, components=k, epsilon=epsilon, delta=delta)
    shapes = paper_shapes(k, chosen.oracle)
    return Plan(
        variant="paper",
        oracle="approximate",
        components=k,
        epsilon=epsilon,
        delta=delta,
        records=n,
        active_sample=chosen.active_sample,
        oracle_epsilon=chosen.oracle.epsilon,
        oracle_delta=chosen.oracle.delta,
        label_boost_epsilon=1.0,
        blocks=tuple(_block(shape, chosen.block, chosen.active_sample, delta) for shape in shapes),
        sources=("Algorithm 2 and Lemma 6.12", _AMPLIFICATION, _COMPOSITION, _PARALLEL),
    )


# Whole records.


def _blocks_for_sample(
    shapes: Sequence[Shape], rates: Sequence[float], m: int, target: tuple[float, float]
) -> tuple[Block, ...]:
    """The smallest blocks for an active sample of m."""
    return tuple(_fitting(shape, _size(m, rate), m, target) for shape, rate in zip(shapes, rates, strict=True))


def _fitting(shape: Shape, size: int, m: int, target: tuple[float, float]) -> Block:
    """The block of `size` records, or the least larger one that is within the target as a whole-record block.

    The rate is right on a lattice of its own, and bounds on two lattices differ by about 1e-6 of the rate.
    """
    step = max(1, size // 2**22)
    while (block := _block(shape, size, m, target[1])).epsilon > target[0]:
        size, step = size + step, 2 * step
    return block


def _blocks_for_records(
    shapes: Sequence[Shape], rates: Sequence[float], n: int, target: tuple[float, float]
) -> tuple[int, tuple[Block, ...]]:
    """The largest active sample for n records, and blocks that share them all."""
    fewest = sum(_size(1, rate) for rate in rates)
    if n < fewest:
        raise ValueError(f"records must be at least {fewest}, for one active record, got {n}")
    m = math.floor(n / sum(1 / rate for rate in rates)) + 1
    while m > 0:
        sizes = [_size(m, rate) for rate in rates]
        spare = n - sum(sizes)
        if spare >= 0:
            blocks = [
                _block(shape, size, m, target[1])
                for shape, size in zip(shapes, _spread(sizes, rates, spare), strict=True)
            ]
            if all(block.epsilon <= target[0] for block in blocks):
                return m, tuple(blocks)
        m -= 1
    raise ValueError(f"records must be more than {n}, for one active record")


def _size(m: int, rate: float) -> int:
    """The fewest records of which m are at most `rate`."""
    return math.ceil(Fraction(m) / Fraction(rate))


def _spread(sizes: Sequence[int], rates: Sequence[float], spare: int) -> list[int]:
    """Sizes with the spare records added to the sampled blocks, in proportion; a block used whole stays as it is."""
    grown = list(sizes)
    sampled = [i for i, rate in enumerate(rates) if rate < 1]
    total = sum(sizes[i] for i in sampled)
    for i in sampled:
        grown[i] += spare * sizes[i] // total
    if sampled:
        grown[sampled[-1]] += sum(sizes) + spare - sum(grown)
    return grown


def _block(shape: Shape, size: int, m: int, delta: float) -> Block:
    block = Block(shape.name, size, m, shape.steps, 0.0)
    if not block.steps:
        return block
    return Block(shape.name, size, m, shape.steps, _epsilon(block.event, delta))


@lru_cache(maxsize=256)
def _epsilon(event: DpEvent, delta: float) -> float:
    return PrivacyProfile.from_event(event, relation=Relation.REPLACE_ONE).epsilon(delta)
