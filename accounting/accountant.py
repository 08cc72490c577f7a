"""A dp-accounting PrivacyAccountant over privacy profiles, so that dp-accounting's calibration and tools work with
them.
"""

from __future__ import annotations

from dp_accounting import DpEvent, NeighboringRelation, PrivacyAccountant, UnsupportedEventError

from accounting._checks import check_int, check_relation
from accounting.profiles import PrivacyProfile


class ProfileAccountant(PrivacyAccountant):
    """Accounts every event that ``PrivacyProfile.from_event`` knows, by dominating pairs.

    Differs from dp-accounting's own accountants where those go wrong: an event is looked at wholly before anything is
    written, so a refused event leaves the accountant and its ledger unchanged; parameters are validated; the answer
    depends only on the events and not on the questions asked before.

    relation: the neighbouring relation, required.

    Reference: Zhu, Dong and Wang (2022), Theorem 10.
    """

    def __init__(self, relation: NeighboringRelation) -> None:
        super().__init__(check_relation("relation", relation))
        self._profile = PrivacyProfile(((),), self.neighboring_relation)

    @property
    def profile(self) -> PrivacyProfile:
        """The profile of everything composed so far."""
        return self._profile

    def compose(self, event: DpEvent, count: int = 1) -> ProfileAccountant:
        """Add `count` uses of `event`; nothing changes when it is refused.

        Raises:
            dp_accounting.UnsupportedEventError: no theorem covers the event under this relation.
            TypeError, ValueError: `event` or `count` is not what it should be.
        """
        count = check_int("count", count, lo=0)
        if not isinstance(event, DpEvent):
            raise TypeError(f"event must be a dp_accounting.DpEvent, got {event!r}")
        added = PrivacyProfile.from_event(event, relation=self.neighboring_relation).self_compose(count)
        total = self._profile.compose(added)
        if count:
            self._ledger.compose(event, count)
        self._profile = total
        return self

    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> PrivacyAccountant.CompositionErrorDetails | None:
        try:
            added = PrivacyProfile.from_event(event, relation=self.neighboring_relation).self_compose(count)
        except (UnsupportedEventError, ValueError, TypeError) as error:
            return PrivacyAccountant.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose:
            self._profile = self._profile.compose(added)
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Upper bound of epsilon, in nats, at `target_delta`; see ``PrivacyProfile.epsilon``."""
        return self._profile.epsilon(target_delta)

    def get_delta(self, target_epsilon: float) -> float:
        """Upper bound of delta at `target_epsilon`; see ``PrivacyProfile.delta``."""
        return self._profile.delta(target_epsilon)
