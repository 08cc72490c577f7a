"""What a plan is: blocks of records, what is sampled from each, what each is charged. Values only.

A plan is made by `learners.planning`; a learner that follows it charges the ledger with the events that stand here,
so the ledger's total after the run is the plan's.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from dp_accounting import ComposedDpEvent, DpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent

from accounting import Ledger, Relation, event_to_json

DATASET = "records"
"""The name of the whole dataset in a plan's ledger."""


def composed(*events: DpEvent) -> ComposedDpEvent:
    """An adaptive composition, in this order, whose parts nobody can change afterwards."""
    return ComposedDpEvent(cast("list[DpEvent]", events))


@dataclass(frozen=True, slots=True)
class Step:
    """`count` activations of a block.

    label: which. event: what one costs a record that is in the sample. source: the statement that says so.
    """

    label: str
    event: DpEvent
    count: int
    source: str


@dataclass(frozen=True, slots=True)
class Block:
    """Records that are set aside by position alone, and sampled afresh for each activation.

    name. size: records in the block. sample: records drawn for one activation, uniformly without replacement. steps:
    what the activations are. epsilon: the block's total at the plan's delta, an upper bound in nats (0 without steps).
    """

    name: str
    size: int
    sample: int
    steps: tuple[Step, ...]
    epsilon: float

    @property
    def rate(self) -> Fraction:
        """The sampling rate q, exactly."""
        return Fraction(self.sample, self.size)

    @property
    def activations(self) -> int:
        """How often the block is sampled."""
        return sum(step.count for step in self.steps)

    def charge(self, step: Step) -> DpEvent:
        """What one activation of `step` costs a record of the block: the event to charge. A block that is used whole
        is not sampled.
        """
        if self.sample == self.size:
            return step.event
        return SampledWithoutReplacementDpEvent(self.size, self.sample, step.event)

    @property
    def event(self) -> DpEvent:
        """All activations as one event."""
        return composed(*(SelfComposedDpEvent(self.charge(step), step.count) for step in self.steps))


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a CarryForwardLearner that is (epsilon, delta)-DP under REPLACE_ONE, on all inputs.

    variant: "paper", "tight" or "star"; oracle: "approximate" or "bounded-range" (see `plan_carry_forward`).
    components: k. records: n. active_sample: m. oracle_epsilon, oracle_delta: (eps_A, delta_A) of each component
    oracle, on realizable samples; delta_A is 0 for bounded-range ones. label_boost_epsilon: eps_LB. sources: what the
    guarantee rests on.
    """

    variant: str
    oracle: str
    components: int
    epsilon: float
    delta: float
    records: int
    active_sample: int
    oracle_epsilon: float
    oracle_delta: float
    label_boost_epsilon: float
    blocks: tuple[Block, ...]
    sources: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """n/m: the records needed for each active one."""
        return self.records / self.active_sample

    @property
    def total_epsilon(self) -> float:
        """The total at `delta` over all blocks: the largest, because a record is in one of them. An upper bound."""
        return max(block.epsilon for block in self.blocks)

    def block(self, name: str) -> Block:
        """The block of this name.

        Raises:
            KeyError: the plan has no such block.
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(f"the plan's blocks are {', '.join(block.name for block in self.blocks)}, got {name!r}")

    def ledger(self) -> Ledger:
        """A ledger without charges: the records, their blocks, and the plan's epsilon and delta as its budget."""
        ledger = Ledger(relation=Relation.REPLACE_ONE, budget=(self.epsilon, self.delta))
        ledger.dataset(DATASET, self.records)
        ledger.partition(DATASET, {block.name: block.size for block in self.blocks})
        return ledger

    def charge_all(self, ledger: Ledger) -> None:
        """Charge a ledger made by `ledger` with everything that a run will cost."""
        for block in self.blocks:
            for step in block.steps:
                ledger.charge(block.name, block.charge(step), label=step.label, source=step.source, count=step.count)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "learner": "carry-forward",
            "variant": self.variant,
            "oracle": self.oracle,
            "components": self.components,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "records": self.records,
            "active_sample": self.active_sample,
            "records_per_active_record": self.ratio,
            "sampling_rates": {block.name: float(block.rate) for block in self.blocks},
            "oracle_epsilon": self.oracle_epsilon,
            "oracle_delta": self.oracle_delta,
            "label_boost_epsilon": self.label_boost_epsilon,
            "total_epsilon": self.total_epsilon,
            "blocks": [_block_to_json(block) for block in self.blocks],
            "sources": list(self.sources),
        }


def _block_to_json(block: Block) -> dict[str, Any]:
    return {
        "name": block.name,
        "records": block.size,
        "sample": block.sample,
        "activations": block.activations,
        "epsilon": block.epsilon,
        "charges": [
            {
                "label": step.label,
                "count": step.count,
                "source": step.source,
                "event": event_to_json(block.charge(step)),
            }
            for step in block.steps
        ],
    }
