"""A ledger as a report: the facts once, as a frozen value, then as text, JSON, Markdown and one HTML page.

Every epsilon in a report is an upper bound unless it says otherwise.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from accounting._checks import check_probability, check_text, relation_name
from accounting.statement import Statement

if TYPE_CHECKING:
    from accounting.entries import Charge
    from accounting.routes import Route

_CURVE_POINTS = 49
_SMALLEST_DELTA = 1e-12
_TEST_LEVEL = 0.05
MARGINAL_LIMIT = 40
"""Most distinct charges for which a report computes marginal costs: each takes two further compositions."""

UNITS = {
    "replace-one": "one record replaced by any other, the number of records fixed",
    "add-remove": "one record added or removed",
    "replace-special": "one record replaced by an empty one",
}


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """One dataset or block: its own charges, and what all charges its records bear add up to (an upper bound)."""

    name: str
    parent: str | None
    records: int | None
    epsilon: float
    charges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChargeSummary:
    """One charge, and what it adds to the ledger's total and to its own dataset's; None where that was not computed."""

    charge: Charge
    cost: float | None
    own_cost: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows.

    delta, epsilon: the total at the first delta asked for; totals: (delta, epsilon) for each delta asked for.
    curve: (epsilon, delta) pairs; trade_off: (type-I error, lower bound of the type-II error) pairs.
    power: the most power a test of neighbours at level 5 % can have. charges: in order.
    chain: what is known of the hash chain of the file the ledger came from.
    """

    title: str
    relation: str
    budget: tuple[str, str] | None
    delta: float
    epsilon: float
    totals: tuple[tuple[float, float], ...]
    routes: dict[str, Route]
    blocks: tuple[BlockSummary, ...]
    charges: tuple[ChargeSummary, ...]
    promises: tuple[str, ...]
    trusts: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]
    trade_off: tuple[tuple[float, float], ...]
    power: float
    chain: str
    versions: dict[str, str]
    made: str

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data; infinity is the string "inf"."""
        charges = [_charge_json(summary) for summary in self.charges]
        return {
            "schema": 1,
            "title": self.title,
            "relation": self.relation,
            "budget": self.budget and {"epsilon": self.budget[0], "delta": self.budget[1]},
            "delta": self.delta,
            "epsilon": _number(self.epsilon),
            "totals": [{"delta": delta, "epsilon": _number(epsilon)} for delta, epsilon in self.totals],
            "routes": {
                name: {"epsilon": _number(route.epsilon), "bound": route.bound, "source": route.source}
                for name, route in self.routes.items()
            },
            "blocks": [
                {
                    "name": block.name,
                    "parent": block.parent,
                    "records": block.records,
                    "epsilon": _number(block.epsilon),
                    "charges": [charges[i] for i in block.charges],
                }
                for block in self.blocks
            ],
            "promises": list(self.promises),
            "trust": list(self.trusts),
            "curve": [[epsilon, delta] for epsilon, delta in self.curve],
            "trade_off": [[x, y] for x, y in self.trade_off],
            "largest_test_power_at_level_0.05": self.power,
            "chain": self.chain,
            "versions": self.versions,
            "made": self.made,
        }

    def to_text(self) -> str:
        """The report for a terminal, plain characters."""
        from accounting.report_text import text

        return text(self)

    def to_markdown(self) -> str:
        """The report as Markdown, without plots."""
        from accounting.report_text import markdown

        return markdown(self)

    def to_html(self) -> str:
        """The report as one HTML page that needs nothing else: styles and plots are inside."""
        from accounting.report_page import page

        return page(self)

    def in_words(self) -> tuple[str, ...]:
        """What the total promises, and what it does not, a paragraph each."""
        unit = UNITS[self.relation]
        if math.isinf(self.epsilon):
            first = (
                f"No finite epsilon holds at delta {self.delta:g}: some charge gives no guarantee at so small a delta. "
                "Ask for a larger delta, or look at the charge whose cost is infinite."
            )
        else:
            first = (
                f"Take two inputs that differ in {unit}. For every set of outcomes of everything charged here, taken "
                f"together, its probability under one is at most e^{self.epsilon:.4g} = {_factor(self.epsilon)} times "
                f"its probability under the other, plus {self.delta:g}. Put as a test: anyone who tries to tell the "
                f"two apart from all the outputs, and may be wrong in 5 % of the cases where the first is true, is "
                f"right in at most {100 * self.power:.3g} % of the cases where the second is."
            )
        second = (
            "It does not promise that nothing can be learnt about a person: what the data of others reveal about that "
            "person is outside it, and so are groups of records that move together (a person with g records is g "
            "records), releases that were never charged, outputs that share random draws but were charged as if they "
            "did not, and side channels such as running times. "
            + (
                "The charges marked with a promise are private only on inputs that keep it."
                if self.promises
                else "No charge depends on a promise about the input."
            )
        )
        third = (
            "The numbers are upper bounds computed from the events entered; whether the code that ran is what its "
            "event says is for an audit to say, not for this report."
        )
        return first, second, third


def build_report(
    ledger: Statement, *, deltas: Sequence[float] = (), title: str = "Privacy ledger", chain: str = "not from a file"
) -> Report:
    """Collect the facts of a report.

    deltas: where to read the total; the first is the headline. Empty: the budget's delta, or 1e-6 without a budget.
    chain: what the caller knows of the file's hash chain.

    Raises:
        ValueError: a delta outside [0, 1].
    """
    check_text("title", title)
    wanted = tuple(check_probability("delta", delta) for delta in deltas)
    if not wanted:
        wanted = (float(ledger.budget.delta),) if ledger.budget is not None else (1e-6,)
    delta = wanted[0]
    totals = tuple((d, ledger.epsilon(d)) for d in wanted)
    charges = _charges(ledger, delta)
    curve = _curve(ledger, max(totals[0][1], ledger.epsilon(1e-9)))
    trade_off = _trade_off(curve)
    power = 1 - max(0.0, _lower_type_two(curve, _TEST_LEVEL))
    budget = None if ledger.budget is None else (str(float(ledger.budget.epsilon)), str(float(ledger.budget.delta)))
    return Report(
        title=title,
        relation=relation_name(ledger.relation),
        budget=budget,
        delta=delta,
        epsilon=totals[0][1],
        totals=totals,
        routes=dict(ledger.routes(delta)),
        blocks=_blocks(ledger, delta, charges),
        charges=charges,
        promises=tuple(dict.fromkeys(c.promise for c in ledger.charges if c.promise)),
        trusts=tuple(dict.fromkeys(f"{c.trust.name}: {c.trust.value}" for c in ledger.charges)),
        curve=curve,
        trade_off=trade_off,
        power=power,
        chain=chain,
        versions=_versions(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _charges(ledger: Statement, delta: float) -> tuple[ChargeSummary, ...]:
    distinct = {(charge.dataset, charge.event, charge.count) for charge in ledger.charges}
    if len(distinct) > MARGINAL_LIMIT:
        return tuple(ChargeSummary(charge, None, None) for charge in ledger.charges)
    costs, own = ledger.marginals(delta), ledger.marginals(delta, own=True)
    return tuple(ChargeSummary(a.charge, a.cost, b.cost) for a, b in zip(costs, own, strict=True))


def _blocks(ledger: Statement, delta: float, charges: Sequence[ChargeSummary]) -> tuple[BlockSummary, ...]:
    return tuple(
        BlockSummary(
            dataset.name,
            dataset.parent,
            dataset.size,
            ledger.epsilon(delta, dataset=dataset.name),
            tuple(i for i, summary in enumerate(charges) if summary.charge.dataset == dataset.name),
        )
        for dataset in ledger.datasets
    )


def _curve(ledger: Statement, highest: float) -> tuple[tuple[float, float], ...]:
    if not math.isfinite(highest) or highest <= 0:
        highest = 1.0
    points = []
    for epsilon in np.linspace(0.0, 1.15 * highest, _CURVE_POINTS):
        delta = ledger.delta(float(epsilon))
        points.append((float(epsilon), delta))
        if delta < _SMALLEST_DELTA:
            break
    return tuple(points)


def _lower_type_two(curve: Sequence[tuple[float, float]], x: float) -> float:
    """Lower bound of the type-II error at type-I error x. Source: Dong, Roth and Su (2022), Proposition 6."""
    return max(
        (max(1 - d - math.exp(min(e, 700.0)) * x, math.exp(-e) * (1 - d - x)) for e, d in curve),
        default=0.0,
    )


def _trade_off(curve: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    levels = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 0.01, 20)]))
    return tuple((float(x), max(0.0, _lower_type_two(curve, float(x)))) for x in levels)


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.4g}" if epsilon < 100 else f"10^{epsilon / math.log(10):.1f}"


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _charge_json(summary: ChargeSummary) -> dict[str, Any]:
    from accounting.event_table import dump_event

    charge = summary.charge
    return {
        "number": charge.number,
        "dataset": charge.dataset,
        "label": charge.label,
        "count": charge.count,
        "event": dump_event(charge.event),
        "source": charge.source,
        "promise": charge.promise,
        "trust": charge.trust.name,
        "release": charge.release,
        "parameters": dict(charge.parameters),
        "marginal_epsilon": None if summary.cost is None else _number(summary.cost),
        "marginal_epsilon_of_dataset": None if summary.own_cost is None else _number(summary.own_cost),
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("dpledger", "dp-accounting", "numpy", "scipy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
