"""A claim: what a mechanism guarantees, between which datasets, under which promise, and who says so."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dp_accounting import DpEvent, NeighboringRelation

from accounting._checks import check_relation, check_text, relation_name
from accounting.describe import describe
from accounting.events import ApproximateDpEvent, BoundedRangeDpEvent

if TYPE_CHECKING:
    from accounting.profiles import PrivacyProfile


class Trust(enum.Enum):
    """What a number rests on."""

    EXACT = "integer, rational or interval arithmetic: the guarantee holds as run"
    IDEALISED = "proved over the reals and run in floating point: rounding is not covered"
    EMPIRICAL = "a confidence statement, not a proof"


@dataclass(frozen=True, slots=True)
class Claim:
    """A privacy guarantee as a value.

    event: what is guaranteed, as a DpEvent (``ApproximateDpEvent``, ``BoundedRangeDpEvent``, a composition, ...).
    relation: the neighbouring relation the guarantee is about; there is no default.
    source: the theorem or document that gives the guarantee.
    promise: the condition on inputs under which it holds; None means on all inputs.
    trust: what the guarantee of the running code rests on.

    Raises:
        TypeError, ValueError: an argument is of the wrong kind, or source is empty.
    """

    event: DpEvent
    relation: NeighboringRelation
    source: str
    promise: str | None = None
    trust: Trust = Trust.IDEALISED

    def __post_init__(self) -> None:
        if not isinstance(self.event, DpEvent):
            raise TypeError(f"event must be a dp_accounting.DpEvent, got {self.event!r}")
        object.__setattr__(self, "relation", check_relation("relation", self.relation))
        check_text("source", self.source)
        if self.promise is not None:
            check_text("promise", self.promise)
        if not isinstance(self.trust, Trust):
            raise TypeError(f"trust must be a Trust, got {self.trust!r}")

    @classmethod
    def pure(
        cls,
        epsilon: float,
        *,
        relation: NeighboringRelation | str,
        source: str,
        promise: str | None = None,
        trust: Trust = Trust.IDEALISED,
    ) -> Claim:
        """epsilon-DP."""
        return cls.approximate(epsilon, 0.0, relation=relation, source=source, promise=promise, trust=trust)

    @classmethod
    def approximate(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: NeighboringRelation | str,
        source: str,
        promise: str | None = None,
        trust: Trust = Trust.IDEALISED,
    ) -> Claim:
        """(epsilon, delta)-DP."""
        event = ApproximateDpEvent(epsilon, delta)
        return cls(event, check_relation("relation", relation), source, promise, trust)

    @classmethod
    def bounded_range(
        cls,
        eta: float,
        *,
        relation: NeighboringRelation | str,
        source: str,
        promise: str | None = None,
        trust: Trust = Trust.IDEALISED,
    ) -> Claim:
        """eta-bounded-range, hence eta-DP."""
        return cls(BoundedRangeDpEvent(eta), check_relation("relation", relation), source, promise, trust)

    @property
    def profile(self) -> PrivacyProfile:
        """The privacy profile that the claim implies."""
        from accounting.profiles import PrivacyProfile

        return PrivacyProfile.from_event(self.event, relation=self.relation)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon, in nats, that the claim implies at this delta (an upper bound)."""
        return self.profile.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """Smallest delta that the claim implies at this epsilon (an upper bound)."""
        return self.profile.delta(epsilon)

    def statement(self) -> str:
        """The guarantee in one line, with its relation and its promise."""
        what = describe(self.event)
        condition = f", promised: {self.promise}" if self.promise else ""
        return f"{what} under {relation_name(self.relation)}{condition}"
