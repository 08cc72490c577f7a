"""The ledger's state and its rules: what may be entered next, and what the entries so far cost whom.

A `Book` is a value. `after` returns the book with one more entry, or raises and leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from dp_accounting import DpEvent, NeighboringRelation, dp_event

from accounting._checks import check_int, check_text, relation_name
from accounting.decimals import Budget, decimal_down, decimal_text
from accounting.entries import Charge, Dataset, DatasetEntry, Entry, PartitionEntry, ReleaseEntry
from accounting.errors import BudgetExceededError, RelationMismatchError
from accounting.events import GroupDpEvent
from accounting.filter_costs import Spent
from accounting.filters import AdaptiveChoiceError, BasicFilter, PrivacyFilter, filter_cost, filter_limits
from accounting.totals import FilterTotal, Total, counts_of, total_of

Groups = Mapping[DpEvent, int]


@dataclass(frozen=True, slots=True)
class Book:
    """Datasets, and for each the events charged on it, grouped with counts."""

    relation: NeighboringRelation
    budget: Budget | None = None
    filter: PrivacyFilter | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    groups: Mapping[str, Groups] = field(default_factory=dict)
    releases: Mapping[str, int] = field(default_factory=dict)
    length: int = 0

    def __post_init__(self) -> None:
        if self.filter is not None and self.budget is None:
            raise ValueError(
                f"a ledger with a filter must have a budget for it to keep, got the {self.filter.kind} filter"
            )
        _ = self.limits

    @property
    def limits(self) -> Spent | None:
        """The largest sums that the filter allows; None without a filter."""
        if self.filter is None or self.budget is None:
            return None
        return filter_limits(self.filter, self.budget, self.relation)

    def after(self, entry: Entry, *, enforce: bool = True) -> Self:
        """The book with `entry` added.

        enforce: refuse what exceeds the budget; off while reading what was once accepted.

        Raises:
            BudgetExceededError: a charge would take some record's total past the budget.
            RelationMismatchError: a charge under another relation.
            UnsupportedEventError: a charge that no theorem covers under the relation, or that the filter cannot take.
            AdaptiveChoiceError: an adaptive charge on a ledger without a filter.
            TypeError, ValueError: an unknown dataset, a partition that does not fit, a release already paid for.
        """
        match entry:
            case DatasetEntry():
                return self._with_dataset(entry)
            case PartitionEntry():
                return self._with_partition(entry)
            case ReleaseEntry():
                return self._with_release(entry, enforce=enforce)

    # Structure.

    def dataset(self, name: str) -> Dataset:
        """The dataset of this name.

        Raises:
            ValueError: there is none; the message lists those there are.
        """
        if check_text("dataset", name) not in self.datasets:
            known = ", ".join(map(repr, self.datasets)) or "none yet"
            raise ValueError(f"dataset must be one of the ledger's ({known}), got {name!r}")
        return self.datasets[name]

    def leaves(self, name: str) -> Iterator[str]:
        """The datasets without blocks at or below `name`: a record of `name` is in at most one of them."""
        pending = [name]
        while pending:
            at = pending.pop()
            blocks = self.datasets[at].blocks
            pending.extend(reversed(blocks))
            if not blocks:
                yield at

    def ancestry(self, name: str) -> tuple[str, ...]:
        """`name`, its parent, and so on to the root."""
        found = [name]
        while (parent := self.datasets[found[-1]].parent) is not None:
            found.append(parent)
        return tuple(found)

    def roots(self) -> tuple[str, ...]:
        """The datasets that are no block of another, in the order they were declared."""
        return tuple(name for name, dataset in self.datasets.items() if dataset.parent is None)

    # Totals.

    def total(self, leaf: str) -> Total:
        """What a record of this leaf has been charged: on the leaf and on everything that contains it."""
        return self._total(leaf, self.groups)

    def _total(self, leaf: str, groups: Mapping[str, Groups]) -> Total:
        merged: dict[DpEvent, int] = {}
        for name in self.ancestry(leaf):
            for event, count in groups.get(name, {}).items():
                merged[event] = merged.get(event, 0) + count
        return total_of(counts_of(merged), self.relation)

    def totals(self, name: str) -> dict[str, Total]:
        """The total of every leaf at or below `name`. Equal totals are the same object."""
        return {leaf: self.total(leaf) for leaf in self.leaves(name)}

    def spent(self, leaf: str) -> Spent:
        """The filter's sums for a record of this leaf; zero without a filter."""
        return self._spent(leaf, self.groups)

    def _spent(self, leaf: str, groups: Mapping[str, Groups]) -> Spent:
        sums = Spent()
        if self.filter is not None:
            for name in self.ancestry(leaf):
                for event, count in groups.get(name, {}).items():
                    sums += filter_cost(self.filter, event, self.relation).times(count)
        return sums

    def without(self, charge: Charge) -> Self:
        """The book as it would stand had one entered charge never been made; for totals only."""
        inner = dict(self.groups[charge.dataset])
        inner[charge.event] -= charge.count
        return replace(self, groups={**self.groups, charge.dataset: inner})

    # Entries.

    def _with_dataset(self, entry: DatasetEntry) -> Self:
        self._new_name(entry.name)
        size = None if entry.size is None else check_int("size", entry.size, lo=0)
        if size is not None:
            self._public_size("size", size)
        datasets = {**self.datasets, entry.name: Dataset(entry.name, size)}
        return replace(self, datasets=datasets, length=self.length + 1)

    def _with_partition(self, entry: PartitionEntry) -> Self:
        parent = self.dataset(entry.parent)
        if parent.blocks:
            raise ValueError(
                f"a dataset is partitioned once: {parent.name!r} has the blocks {', '.join(map(repr, parent.blocks))}"
            )
        if not entry.blocks:
            raise ValueError(f"a partition of {parent.name!r} must have at least one block, got none")
        datasets, placed = dict(self.datasets), 0
        for name, stated in entry.blocks:
            self._new_name(name, datasets)
            size = None if stated is None else check_int(f"the size of {name!r}", stated, lo=0)
            if size is not None:
                self._public_size(f"the size of {name!r}", size)
                placed += size
            datasets[name] = Dataset(name, size, parent.name)
        if parent.size is not None and placed > parent.size:
            raise ValueError(
                f"the blocks of {parent.name!r} must have at most its {parent.size} records together, got {placed}"
            )
        datasets[parent.name] = replace(parent, blocks=tuple(name for name, _ in entry.blocks))
        return replace(self, datasets=datasets, length=self.length + 1)

    def _new_name(self, name: object, taken: Mapping[str, Dataset] | None = None) -> None:
        check_text("the name of a dataset", name)
        if name in (self.datasets if taken is None else taken):
            raise ValueError(f"the name of a dataset must be new, got {name!r} again")

    def _public_size(self, what: str, size: int) -> None:
        if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
            raise ValueError(
                f"{what} must be None under add-remove, got {size}: that relation protects the number of records, and "
                "a split by position would move many records when one comes or goes. Give None, and assign each record "
                "to its block on its own: by a draw of its own, or by an identifier that is not protected"
            )

    def _with_release(self, entry: ReleaseEntry, *, enforce: bool) -> Self:
        for charge in entry.charges:
            self._check_charge(charge)
        self._check_joint(entry)
        groups = dict(self.groups)
        for charge in entry.charges:
            inner = dict(groups.get(charge.dataset, {}))
            inner[charge.event] = inner.get(charge.event, 0) + charge.count
            groups[charge.dataset] = inner
        if enforce and self.budget is not None:
            self._check_budget(entry, groups, self.budget)
        release = entry.charges[0].release
        releases = self.releases if release is None else {**self.releases, release: self.length + 1}
        return replace(self, groups=groups, releases=releases, length=self.length + 1)

    def _check_charge(self, charge: Charge) -> None:
        dataset = self.dataset(charge.dataset)
        if charge.relation is not self.relation:
            raise RelationMismatchError(
                f"charge {charge.label!r} must be under the ledger's relation {relation_name(self.relation)}, "
                f"got {relation_name(charge.relation)}"
            )
        _check_sample_sizes(charge.event, dataset.size, f"charge {charge.label!r} on {dataset.name!r}")
        # A charge that no theorem covers would make every later total of the ledger impossible.
        _ = total_of(counts_of({charge.event: 1}), self.relation).profile
        if self.filter is not None:
            filter_cost(self.filter, charge.event, self.relation)
        elif charge.adaptive:
            raise AdaptiveChoiceError(
                f"charge {charge.label!r} was chosen after seeing outputs, and must go to a ledger with a privacy "
                "filter: totals composed from parameters that were not fixed in advance are not valid"
            )

    def _check_joint(self, entry: ReleaseEntry) -> None:
        first = entry.charges[0]
        if first.release is not None and first.release in self.releases:
            raise ValueError(
                f"release {first.release!r} is already paid for by entry {self.releases[first.release]}: outputs that "
                "share random draws are one release, to be charged at once as one joint event"
            )
        names = [charge.dataset for charge in entry.charges]
        for i, name in enumerate(names):
            others = set(names[:i]) | set(names[i + 1 :])
            overlap = others.intersection(self.ancestry(name))
            if overlap:
                raise ValueError(
                    f"the datasets of a joint release must not overlap: {name!r} lies in {min(overlap)!r}. Charge the "
                    "outer one with the guarantee of the whole release"
                )

    def _check_budget(self, entry: ReleaseEntry, groups: Mapping[str, Groups], budget: Budget) -> None:
        seen: set[Total | Spent] = set()
        for charge in entry.charges:
            for leaf in self.leaves(charge.dataset):
                if self.filter is None or self.limits is None:
                    total = self._total(leaf, groups)
                    if total not in seen and not total.fits(budget):
                        would_be = total.epsilon(decimal_down(budget.delta))
                        rule = f"epsilon within {decimal_text(budget.epsilon)} at delta {decimal_text(budget.delta)}"
                        raise _exceeded(charge, leaf, budget, rule, f"{would_be:.10g}", would_be)
                    seen.add(total)
                else:
                    sums = self._spent(leaf, groups)
                    if sums not in seen and not sums.within(self.limits):
                        rule = f"{self.filter.unit} within {float(self.limits.amount):.10g}, the limit of its filter"
                        got = f"{float(sums.amount):.10g}"
                        if sums.delta > self.limits.delta:
                            rule = f"delta within {float(self.limits.delta):.10g}, the limit of its filter"
                            got = f"{float(sums.delta):.10g}"
                        raise _exceeded(charge, leaf, budget, rule, got, self._filtered(sums, self.filter))
                    seen.add(sums)

    def _filtered(self, sums: Spent, rule: PrivacyFilter) -> float:
        """The epsilon that the budget would have to hold for the filter to admit these sums."""
        delta = decimal_down(self.budget.delta) if self.budget is not None else 0.0
        known = Budget(sums.amount, sums.delta) if isinstance(rule, BasicFilter) and sums.delta <= 1 else None
        aside = max(sums.delta, self.limits.delta) if self.limits is not None else sums.delta
        return FilterTotal(rule, Spent(sums.amount, aside), self.relation, known).epsilon(delta)


def _exceeded(charge: Charge, leaf: str, budget: Budget, rule: str, got: str, would_be: float) -> BudgetExceededError:
    return BudgetExceededError(
        f"charge {charge.label!r} on {charge.dataset!r} must keep {rule}, got {got} for the records of {leaf!r}; "
        "nothing was charged",
        dataset=charge.dataset,
        label=charge.label,
        delta=decimal_down(budget.delta),
        would_be=would_be,
        budget=decimal_down(budget.epsilon),
    )


def _check_sample_sizes(event: DpEvent, size: int | None, what: str) -> None:
    """Refuse a sample drawn from more records than there are: its amplification would be claimed for nobody."""
    match event:
        case (
            dp_event.SelfComposedDpEvent(event=inner)
            | dp_event.RepeatAndSelectDpEvent(event=inner)
            | GroupDpEvent(event=inner)
        ):
            _check_sample_sizes(inner, size, what)
        case dp_event.ComposedDpEvent(events=parts):
            for part in parts:
                _check_sample_sizes(part, size, what)
        case dp_event.PoissonSampledDpEvent(event=inner):
            _check_sample_sizes(inner, None, what)
        case (
            dp_event.SampledWithoutReplacementDpEvent(source_dataset_size=source, sample_size=drawn, event=inner)
            | dp_event.SampledWithReplacementDpEvent(source_dataset_size=source, sample_size=drawn, event=inner)
        ):
            if size is not None and source > size:
                raise ValueError(f"{what}: source_dataset_size must be at most its {size} records, got {source}")
            _check_sample_sizes(inner, drawn, what)
        case dp_event.TruncatedSubsampledGaussianDpEvent(dataset_size=source):
            if size is not None and source != size:
                raise ValueError(f"{what}: dataset_size must be its {size} records, got {source}")
        case _:
            pass
