"""What can be read off a ledger: its totals, its routes, and what a further charge would do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dp_accounting import DpEvent, NeighboringRelation

from accounting._checks import check_int, check_probability, check_real, check_text
from accounting.book import Book
from accounting.claims import Claim, Trust
from accounting.decimals import Budget, decimal, decimal_down
from accounting.entries import Charge, Dataset, DatasetEntry, Entry, ReleaseEntry, Scalar, check_parameters
from accounting.errors import BudgetExceededError
from accounting.filter_costs import Spent
from accounting.filters import PrivacyFilter
from accounting.profiles import PrivacyProfile
from accounting.routes import Route, all_routes_over
from accounting.totals import FilterTotal, Total


@dataclass(frozen=True, slots=True)
class Marginal:
    """What one charge adds: the total's epsilon with every charge, and with this one left out."""

    charge: Charge
    epsilon: float
    epsilon_without: float

    @property
    def cost(self) -> float:
        """The difference, in nats; 0 where another block's total is the larger one, or where both are infinite."""
        return self.epsilon - self.epsilon_without if self.epsilon != self.epsilon_without else 0.0


@dataclass(frozen=True, slots=True)
class Spending:
    """How far a filter has come: its sums, their limits, what the amounts are. The sums alone guarantee nothing."""

    sums: Spent
    limits: Spent
    unit: str


class Statement:
    """The reading half of a ledger. Every answer is computed from the charges alone; asking changes nothing."""

    def __init__(self, book: Book, entries: tuple[Entry, ...] = ()) -> None:
        self._state = (book, entries)

    @property
    def _book(self) -> Book:
        return self._state[0]

    # Contents.

    @property
    def relation(self) -> NeighboringRelation:
        """The neighbouring relation of every charge."""
        return self._book.relation

    @property
    def budget(self) -> Budget | None:
        """The budget, exactly, or None."""
        return self._book.budget

    @property
    def filter(self) -> PrivacyFilter | None:
        """The privacy filter that admits charges chosen along the way, or None."""
        return self._book.filter

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset and block, in the order they were declared."""
        return tuple(self._book.datasets.values())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything entered so far, in order: datasets, partitions, releases."""
        return self._state[1]

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Every charge, in order; a joint release is one charge for each dataset it read, with one number."""
        return tuple(charge for entry in self.entries if isinstance(entry, ReleaseEntry) for charge in entry.charges)

    def __iter__(self) -> Iterator[Charge]:
        return iter(self.charges)

    def __len__(self) -> int:
        return len(self.charges)

    def __bool__(self) -> bool:
        return True  # a ledger without charges is a ledger all the same

    def __repr__(self) -> str:
        budget = f", budget={self.budget}" if self.budget else ""
        name = type(self).__name__
        return f"{name}(relation={self.relation.name}{budget}, {len(self)} charges on {len(self.datasets)} datasets)"

    # Totals.

    def epsilon(self, delta: float, *, dataset: str | None = None) -> float:
        """Epsilon, in nats, at delta: an upper bound for every record of `dataset` (None: of the whole ledger).

        A record of a block also bears what was charged on the datasets that contain it. Without charges 0; inf where
        some charge has no finite epsilon at this delta. With a filter it is what the filter guarantees, from the first
        charge on, however much or little was spent: see `spent`.
        """
        check_probability("delta", delta)
        return max((total.epsilon(delta) for total in _answers(self._book, self._named(dataset))), default=0.0)

    def delta(self, epsilon: float, *, dataset: str | None = None) -> float:
        """Delta at epsilon, any real number of nats; an upper bound, as `epsilon`."""
        check_real("epsilon", epsilon)
        return max((total.delta(epsilon) for total in _answers(self._book, self._named(dataset))), default=0.0)

    def profiles(self, dataset: str | None = None) -> dict[str, PrivacyProfile]:
        """The composed profile of every dataset without blocks at or below `dataset` (None: of the whole ledger)."""
        book, found = self._book, {}
        for name in self._named(dataset):
            for leaf in book.leaves(name):
                found[leaf] = next((total.profile for total in _answers(book, (leaf,))), PrivacyProfile.nothing())
        return found

    def events(self, dataset: str | None = None) -> dict[str, DpEvent]:
        """All charges that the records of a dataset without blocks bear, as one event; for each, as `profiles`."""
        book = self._book
        return {leaf: total.event for name in self._named(dataset) for leaf, total in book.totals(name).items()}

    def profile(self, dataset: str | None = None) -> PrivacyProfile:
        """The composed profile of a dataset whose records all bear the same charges.

        Raises:
            ValueError: its blocks bear different charges, so that no one composition is the total: see `profiles`.
        """
        totals = _answers(self._book, self._named(dataset))
        if len(totals) != 1:
            raise ValueError(
                f"profile needs a dataset whose records all bear the same charges, got {len(totals)} different totals; "
                "ask for one block, or for profiles()"
            )
        return totals[0].profile

    def routes(self, delta: float, *, dataset: str | None = None, second_opinion: bool = True) -> dict[str, Route]:
        """The total by every route that applies (see `accounting.routes`); `epsilon` is the smallest, up to rounding.

        second_opinion: whether to ask dp-accounting's PLD accountant too, which can take seconds. With a filter only
        "filter": the others hold for charges that were fixed in advance.

        Raises:
            RouteOrderError: two routes contradict each other.
        """
        check_probability("delta", delta)
        if self.filter is not None:
            spent = self.epsilon(delta, dataset=dataset)
            return {"filter": Route("filter", spent, self.filter.source, "parameters may depend on outputs")}
        events = [total.event for total in _totals(self._book, self._named(dataset))]
        return all_routes_over(events, delta, relation=self.relation, second_opinion=second_opinion)

    def remaining(self, dataset: str | None = None) -> float | None:
        """Budget epsilon less the total at the budget's delta; None without one. `affordable` says what still fits.

        With a filter: what is left of its limit, in the filter's unit.
        """
        if self.budget is None:
            return None
        if self.filter is not None:
            reading = self.spent(dataset)
            return decimal_down(reading.limits.amount - reading.sums.amount)
        spent = self.epsilon(decimal_down(self.budget.delta), dataset=dataset)
        if spent >= self.budget.epsilon:
            return 0.0
        return decimal_down(self.budget.epsilon - decimal("the total", spent))

    def spent(self, dataset: str | None = None) -> Spending:
        """How far a filter's sums have come, for the records of `dataset` that bear most (None: of the whole ledger).

        Raises:
            ValueError: the ledger has no filter.
        """
        book = self._book
        if book.filter is None or book.limits is None:
            raise ValueError("spent needs a ledger with a filter, got one without: its total is epsilon(delta)")
        leaves = [leaf for name in self._named(dataset) for leaf in book.leaves(name)]
        sums = max((book.spent(leaf) for leaf in leaves), key=lambda sums: (sums.amount, sums.delta), default=Spent())
        return Spending(sums, book.limits, book.filter.unit)

    def marginals(self, delta: float, *, own: bool = False) -> tuple[Marginal, ...]:
        """For every charge, the total at delta with it and without it (the others unchanged).

        own: the total of the charge's own dataset, instead of the whole ledger's. Each distinct charge is one more
        composition of all the others. With a filter, too, the totals are those of the composition, as if all charges
        had been fixed in advance: they compare charges, and guarantee nothing.
        """
        check_probability("delta", delta)
        book = self._book
        whole: dict[tuple[str, ...], float] = {}
        found: dict[tuple[str, DpEvent, int], Marginal] = {}
        for charge in self.charges:
            key = (charge.dataset, charge.event, charge.count)
            if key not in found:
                names = (charge.dataset,) if own else book.roots()
                if names not in whole:
                    whole[names] = _worst_epsilon(book, names, delta)
                without = _worst_epsilon(book.without(charge), names, delta)
                found[key] = Marginal(charge, whole[names], without)
        return tuple(replace(found[c.dataset, c.event, c.count], charge=c) for c in self.charges)

    # What if.

    def would_be(
        self,
        dataset: str | Mapping[str, DpEvent | Claim],
        event: DpEvent | Claim | None = None,
        *,
        delta: float,
        count: int = 1,
    ) -> float:
        """The ledger's total epsilon at delta if this were charged too; nothing is charged, and no budget is applied.

        With a filter: what it guarantees, or inf if it would not admit the charge.

        Raises: as `Ledger.charge`, without BudgetExceededError.
        """
        check_probability("delta", delta)
        book = self._book
        for entry in planned(book, dataset, event, label="what if", count=count):
            book = book.after(entry, enforce=False)
        if book.limits is not None and not all(
            book.spent(leaf).within(book.limits) for root in book.roots() for leaf in book.leaves(root)
        ):
            return math.inf
        return max((total.epsilon(delta) for total in _answers(book, book.roots())), default=0.0)

    def affordable(
        self,
        dataset: str | Mapping[str, DpEvent | Claim],
        event: DpEvent | Claim | None = None,
        *,
        limit: int = 10**6,
    ) -> int:
        """How many such releases the budget still allows, at most `limit`.

        Raises:
            ValueError: the ledger has no budget. Otherwise as `Ledger.charge`, without BudgetExceededError.
        """
        if self.budget is None:
            raise ValueError("affordable needs a ledger with a budget, got one without")
        check_int("limit", limit, lo=1)
        book = self._book
        if not _allows(book, dataset, event, 1):
            return 0
        fits, fails = 1, 2
        while fits < limit and _allows(book, dataset, event, min(fails, limit)):
            fits, fails = min(fails, limit), 2 * fails
        while fits < limit and fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if _allows(book, dataset, event, middle) else (fits, middle)
        return fits

    def _named(self, dataset: str | None) -> tuple[str, ...]:
        return self._book.roots() if dataset is None else (self._book.dataset(dataset).name,)


def implicit(book: Book, name: object) -> tuple[DatasetEntry, ...]:
    """The declaration of a ledger's first dataset, which it need not be told."""
    return (DatasetEntry(name, None),) if isinstance(name, str) and not book.datasets else ()


def planned(
    book: Book,
    dataset: str | Mapping[str, DpEvent | Claim],
    event: DpEvent | Claim | None,
    *,
    label: str,
    source: str | None = None,
    promise: str | None = None,
    count: int = 1,
    parameters: Mapping[str, Scalar] | None = None,
    release: str | None = None,
    adaptive: bool = False,
    time: str | None = None,
) -> tuple[*tuple[DatasetEntry, ...], ReleaseEntry]:
    """The entries that `Ledger.charge` would add with these arguments: perhaps the first dataset, then the release."""
    if isinstance(dataset, Mapping):
        if event is not None:
            raise TypeError(f"event must be left out when dataset is a mapping, got {event!r}")
        if not dataset:
            raise ValueError(f"dataset must name at least one block, got {dataset!r}")
        costs: dict[str, DpEvent | Claim] = dict(dataset)
        first: tuple[DatasetEntry, ...] = ()
    else:
        if event is None:
            raise TypeError("event must be a DpEvent or a Claim, got None")
        costs, first = {check_text("dataset", dataset): event}, implicit(book, dataset)
    number = book.length + len(first) + 1
    charges = []
    for name, cost in costs.items():
        claim = cost if isinstance(cost, Claim) else None
        charges.append(
            Charge(
                dataset=name,
                event=cost.event if isinstance(cost, Claim) else cost,
                relation=book.relation if claim is None else claim.relation,
                label=label,
                source=_both(source, None if claim is None else claim.source),
                promise=_both(promise, None if claim is None else claim.promise),
                count=count,
                parameters=check_parameters({} if parameters is None else parameters),
                trust=Trust.IDEALISED if claim is None else claim.trust,
                release=release,
                adaptive=adaptive,
                time=time,
                number=number,
            )
        )
    return (*first, ReleaseEntry(tuple(charges)))


def _both(stated: str | None, claimed: str | None) -> str | None:
    if stated is None or stated == claimed:
        return claimed
    return stated if claimed is None else f"{stated}; {claimed}"


def _totals(book: Book, names: tuple[str, ...]) -> tuple[Total, ...]:
    return tuple({total: None for name in names for total in book.totals(name).values()})


def _answers(book: Book, names: tuple[str, ...]) -> tuple[Total | FilterTotal, ...]:
    """The totals that are guaranteed: of the composition, or of the filter once anything was charged."""
    if book.filter is None or book.limits is None:
        return _totals(book, names)
    return (FilterTotal(book.filter, book.limits, book.relation, book.budget),) if book.groups else ()


def _worst_epsilon(book: Book, names: tuple[str, ...], delta: float) -> float:
    return max((total.epsilon(delta) for total in _totals(book, names)), default=0.0)


def _allows(
    book: Book, dataset: str | Mapping[str, DpEvent | Claim], event: DpEvent | Claim | None, count: int
) -> bool:
    try:
        for entry in planned(book, dataset, event, label="what if", count=count):
            book = book.after(entry)
    except BudgetExceededError:
        return False
    return True
