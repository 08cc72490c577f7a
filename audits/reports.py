"""A ledger in the terminal, for ``dpledger report``."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accounting import Charge, Claim, Dataset, Ledger, relation_name
from audits.figures import counted, shown, shown_lower, shown_upper
from audits.tables import WIDE


def show_ledger(console: Console, ledger: Ledger, deltas: Sequence[float]) -> None:
    """Print the totals by every route, the blocks, and the charges."""
    console.print(
        Text(f"{counted(len(ledger), 'charge')} under {relation_name(ledger.relation)}{_budget(ledger)}", style="bold")
    )
    for delta in deltas:
        console.print(f"epsilon <= {shown_upper(ledger.epsilon(delta))} at delta {shown(delta)}", highlight=False)
        for name, route in ledger.routes(delta).items():
            line = Text(f"by {name}: {shown_upper(route.epsilon)} ({route.source})", style="dim")
            console.print(Padding(line, (0, 0, 0, 2)))
    console.print()
    console.print(_blocks(ledger, deltas))
    console.print()
    if len(ledger):
        console.print(_charges(ledger, wide=console.width >= WIDE))
    promises = sorted({charge.promise for charge in ledger.charges if charge.promise})
    for promise in promises:
        console.print(f"Holds only as promised: {promise}", markup=False, highlight=False)


def _table(wide: bool) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2 if wide else 1, 0, 0))


def _blocks(ledger: Ledger, deltas: Sequence[float]) -> Table:
    table = _table(wide=True)
    table.add_column("Dataset", overflow="fold")
    table.add_column("Records", justify="right")
    table.add_column("Charges", justify="right")
    for delta in deltas:
        table.add_column(f"Epsilon at\ndelta {shown(delta)}", justify="right")
    for dataset in ledger.datasets:
        charges = sum(charge.dataset == dataset.name for charge in ledger.charges)
        totals = (shown_upper(ledger.epsilon(delta, dataset=dataset.name)) for delta in deltas)
        records = "-" if dataset.size is None else f"{dataset.size:,}"
        table.add_row(Text("  " * _depth(ledger, dataset) + dataset.name), records, str(charges), *totals)
    return table


def _charges(ledger: Ledger, *, wide: bool) -> Table:
    table = _table(wide)
    table.add_column("No.", justify="right")
    table.add_column("Dataset", overflow="fold")
    table.add_column("Release", overflow="fold")
    table.add_column("Guarantee", overflow="fold")
    table.add_column("Times", justify="right")
    if wide:
        table.add_column("Source", overflow="fold")
    for charge in ledger.charges:
        cells: list[str | Text] = [
            str(charge.number),
            Text(charge.dataset),
            Text(charge.label),
            Text(_guarantee(charge)),
            f"{charge.count:,}",
        ]
        table.add_row(*cells, *([Text(charge.source or "-")] if wide else []))
    return table


def _budget(ledger: Ledger) -> str:
    if ledger.budget is None:
        return ", no budget"
    left = ledger.remaining()
    return (
        f", budget ({shown(float(ledger.budget.epsilon))}, {shown(float(ledger.budget.delta))})"
        f", of which epsilon {shown_lower(left)} is left"
    )


def _guarantee(charge: Charge) -> str:
    """What the event guarantees, without the relation, which is the ledger's."""
    claim = Claim(charge.event, charge.relation, charge.source or "-")
    return claim.statement().removesuffix(f" under {relation_name(charge.relation)}")


def _depth(ledger: Ledger, dataset: Dataset) -> int:
    parents = {other.name: other.parent for other in ledger.datasets}
    depth, name = 0, dataset.parent
    while name is not None:
        depth, name = depth + 1, parents[name]
    return depth
