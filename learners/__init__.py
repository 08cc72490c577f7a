"""Compositions of mechanisms that charge a ledger as they run."""

from learners.plan import Block, Plan, Step
from learners.planning import plan_carry_forward

__all__ = ["Block", "Plan", "Step", "plan_carry_forward"]
