"""What ``dpledger report`` shows: a saved ledger, or the ledger that a plan would fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accounting import Ledger, Report, build_report, check_probability
from audits.figures import shown, shown_upper
from learners import Plan, plan_carry_forward

PLANS = ("carry-forward",)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a report is about. deltas: where to read the total, the headline first."""

    ledger: Ledger
    deltas: tuple[float, ...]
    title: str
    chain: str
    plan: Plan | None = None

    def document(self) -> dict[str, Any]:
        """The ``--json`` file of INTERFACES."""
        return {**self._report().to_json(), **({"plan": self.plan.to_json()} if self.plan else {})}

    def html(self) -> str:
        """The ``--html`` file."""
        return self._report().to_html()

    def markdown(self) -> str:
        """The ``--markdown`` file."""
        return self._report().to_markdown()

    def _report(self) -> Report:
        return build_report(self.ledger, deltas=self.deltas, title=self.title, chain=self.chain)


def saved(path: Path, deltas: Sequence[float]) -> Subject:
    """A ledger file, its hash chain verified.

    Raises:
        LedgerFileError, OSError: the file cannot be read, or says something that cannot be.
        ValueError: a delta outside [0, 1], or none where the ledger's budget names none.
    """
    ledger = Ledger.load(path)
    wanted = tuple(check_probability("--delta", delta) for delta in deltas)
    if not wanted:
        if ledger.budget is None:
            raise ValueError(f"--delta is needed: the ledger {path} has no budget that would name one")
        wanted = (float(ledger.budget.delta),)
    entries, head = ledger.head
    chain = f"verified from the first of {entries} entries to the last, whose hash is {head}"
    return Subject(ledger, wanted, f"Privacy ledger {path.name}", chain)


def planned(plan: str, deltas: Sequence[float], **options: Any) -> Subject:
    """The ledger of a learner that was not run yet.

    Raises:
        ValueError: an unknown plan, a missing or wrong option; the message names the option of the command line.
    """
    if plan not in PLANS:
        raise ValueError(f"--plan must be one of {', '.join(PLANS)}, got {plan!r}")
    for name in ("components", "epsilon"):
        if options.get(name) is None:
            raise ValueError(f"--{name} is needed with --plan {plan}")
    if len(deltas) != 1:
        raise ValueError(f"--plan {plan} takes one --delta, got {len(deltas)}")
    given = {name: value for name, value in options.items() if value is not None}
    made = plan_carry_forward(given.pop("components"), given.pop("epsilon"), deltas[0], **given)
    ledger = made.ledger()
    made.charge_all(ledger)
    title = f"Plan of a CarryForwardLearner, variant {made.variant}, {made.components} components"
    return Subject(ledger, (made.delta,), title, "a plan: nothing was released, nothing is stored", made)


def show_plan(console: Console, plan: Plan) -> None:
    """The plan's parameters and blocks."""
    console.print(
        Text(
            f"{plan.records:,} records for an active sample of {plan.active_sample:,} "
            f"(n/m {plan.ratio:.6g}): epsilon at most {shown_upper(plan.total_epsilon)} at delta {shown(plan.delta)}",
            style="bold",
        )
    )
    console.print(
        f"eps_A {shown(plan.oracle_epsilon)}, delta_A {shown(plan.oracle_delta)}, eps_LB "
        f"{shown(plan.label_boost_epsilon)}; oracles known to be {plan.oracle}",
        highlight=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("Block", "Records", "Sample", "Rate", "Activations", "Epsilon"):
        table.add_column(name, justify="left" if name == "Block" else "right")
    for block in plan.blocks:
        table.add_row(
            block.name,
            f"{block.size:,}",
            f"{block.sample:,}",
            f"{float(block.rate):.4g}",
            str(block.activations),
            shown_upper(block.epsilon),
        )
    console.print(table)
    console.print()
