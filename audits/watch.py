"""A mechanism under watch: its calls timed, its outcomes made countable, its oddities noted.

Users' mechanisms hang, return NaN or lists, or carry a fixed seed. Audits run them through `Watched`, so that each of
these is met once, in one place. What they raise passes through: the engines tell it, with the dataset.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from itertools import islice
from typing import Any

import numpy as np

from audits.canonical import NAN, UncountableError, canonical, canonical_batch
from audits.rendering import readable
from mechanisms import AdaptedMechanism, Dataset, Domain, Law, as_mechanism

OF_MECHANISM = "mechanism: "
"""What a note on the mechanism itself starts with; other notes are on the audit."""

_CONVERTED = (list, dict, set, np.ndarray)
_REHEARSAL_BATCH = 256
_REHEARSAL_CALLS = 4
_REHEARSAL_DATASETS = 4


class CallClock:
    """What the mechanism is doing at this moment, for a second thread to read."""

    __slots__ = ("_call",)

    def __init__(self) -> None:
        self._call: tuple[float, str, Dataset | None] | None = None

    def start(self, what: str, dataset: Dataset | None) -> None:
        """A call begins."""
        self._call = (time.monotonic(), what, dataset)

    def stop(self) -> None:
        """The call has ended."""
        self._call = None

    def current(self) -> tuple[float, str] | None:
        """(seconds since the call began, the call in words), or None between calls."""
        call = self._call
        if call is None:
            return None
        began, what, dataset = call
        where = "" if dataset is None else f" on the dataset {_shown(dataset)}"
        return time.monotonic() - began, what + where


class Watched:
    """Wraps an `AdaptedMechanism`; has the same methods, so `as_mechanism` accepts it.

    Guarantees: each outcome is replaced by its `canonical` value, the same function for all datasets, so by
    post-processing whatever refutes this mechanism refutes the one inside.
    """

    def __init__(self, inner: AdaptedMechanism, clock: CallClock | None = None) -> None:
        self._inner = inner
        self._clock = clock or CallClock()
        self.name, self.ignores_order, self.replayable = inner.name, inner.ignores_order, inner.replayable
        self.notes = tuple(OF_MECHANISM + note for note in inner.notes)
        self.check_dataset = inner.check_dataset
        if inner.has_distribution:
            self.distribution = self._law
        if inner.vectorised:
            self.release_many = self._batch
        self._outcomes = 0
        self._nan = 0
        self._converted: set[str] = set()
        self._first: dict[Hashable, object] = {}
        self._varied = False

    def adapted(self) -> AdaptedMechanism:
        """The form that audits take."""
        return as_mechanism(self, name=self.name)

    def release(self, dataset: Dataset, *, rng: np.random.Generator | None) -> Hashable:
        """One outcome, canonical.

        Raises:
            UncountableError: the mechanism returned what cannot be compared by value; names the dataset.
        """
        self._clock.start("a call of the mechanism", dataset)
        try:
            outcome = self._inner.release(dataset, rng=rng)
            kept = canonical(outcome)
        except UncountableError as error:
            raise UncountableError(f"{error} (on the dataset {_shown(dataset)})") from None
        finally:
            self._clock.stop()
        self._look_at(dataset, [kept], type(outcome))
        return kept

    def _batch(self, dataset: Dataset, size: int, *, rng: np.random.Generator | None) -> Any:
        """Many outcomes, canonical; arrays of numbers stay as they are, for the engine counts them faster."""
        self._clock.start(f"a call of release_many for {size:,} outputs", dataset)
        try:
            outcomes = self._inner.release_many(dataset, size, rng=rng)
            kept = outcomes if _is_numeric(outcomes) else canonical_batch(outcomes)
        except UncountableError as error:
            raise UncountableError(f"{error} (on the dataset {_shown(dataset)})") from None
        finally:
            self._clock.stop()
        if size:
            self._look_at(dataset, kept, type(outcomes[0]))
        return kept

    def _law(self, dataset: Dataset) -> Law:
        self._clock.start("a call of distribution", dataset)
        try:
            return self._inner.distribution(dataset)
        finally:
            self._clock.stop()

    def _look_at(self, dataset: Dataset, outcomes: Any, kind: type) -> None:
        """Take note of outcomes, not none; kind: of the first, before it was made canonical."""
        self._outcomes += len(outcomes)
        if kind in _CONVERTED:
            self._converted.add(kind.__name__)
        if isinstance(outcomes, np.ndarray):
            nan = np.isnan(outcomes) if outcomes.dtype.kind == "f" else np.zeros(outcomes.shape, dtype=bool)
            self._nan += int(nan.sum()) if outcomes.ndim == 1 else 0
        else:
            nan = None
            self._nan += sum(outcome is NAN for outcome in outcomes)
        if self._varied:
            return
        try:
            first = self._first.setdefault(tuple(dataset), outcomes[0])
        except TypeError:  # records that cannot be hashed: nothing is claimed about constancy
            self._varied = True
            return
        if nan is None:
            self._varied = any(outcome is not first and outcome != first for outcome in outcomes)
        else:
            self._varied = bool(np.any((outcomes != first) & ~(nan & np.isnan(np.asarray(first, dtype=float)))))

    @property
    def returned_only_nan(self) -> bool:
        """Whether there were outcomes, and all of them were NaN."""
        return 0 < self._nan == self._outcomes

    def observations(self) -> tuple[str, ...]:
        """What a reader of the verdict should know of the outcomes seen so far, one sentence each."""
        seen = []
        if self._nan:
            seen.append(
                f"{self._nan:,} of {self._outcomes:,} outputs were NaN, treated as an ordinary outcome, equal to itself"
            )
        if self._converted:
            seen.append(f"outputs of type {', '.join(sorted(self._converted))} were compared by their contents")
        if self._outcomes > len(self._first) and not self._varied:
            seen.append(
                f"on each of the {len(self._first)} datasets run it returned one and the same output every time "
                f"({self._outcomes:,} runs): it draws no noise, or draws it from a fixed seed"
            )
        return tuple(OF_MECHANISM + note for note in seen)


def rehearse(
    mechanism: AdaptedMechanism, domain: Domain, *, rng: np.random.Generator
) -> tuple[tuple[str, ...], str | None]:
    """Run a mechanism a few times before it is audited from samples: (notes, why it cannot be audited so).

    A mechanism that takes a generator but is not determined by it is noted: the audit stays valid, but cannot be
    replayed. A `release_many` whose batches are the same whatever the generator cannot be audited from samples,
    because its outputs are not independent draws: three batches of 256 that agree without being constant. Outputs that
    are independent with most frequent probability 1 - q do so with probability about 256 q^3 exp(-768 q), below 1e-6.
    What the mechanism raises is left for the audit to find.
    """
    seeds = rng.bit_generator.seed_seq.spawn(3)  # type: ignore[attr-defined]
    size = _REHEARSAL_BATCH if mechanism.vectorised else _REHEARSAL_CALLS
    datasets = [dataset for pair in islice(domain.pairs(), _REHEARSAL_DATASETS // 2) for dataset in pair]

    def outputs(dataset: Dataset, seed: np.random.SeedSequence) -> list[Hashable]:
        return list(canonical_batch(mechanism.release_many(dataset, size, rng=np.random.default_rng(seed))))

    try:
        for dataset in datasets:
            first, again = outputs(dataset, seeds[0]), outputs(dataset, seeds[0])
            if mechanism.replayable and first != again:
                return (f"{OF_MECHANISM}equal generators gave different outputs: it cannot be replayed",), None
            if not mechanism.vectorised or all(outcome == first[0] for outcome in first):
                continue
            if all(outputs(dataset, seed) == first for seed in seeds[1:]):
                return (), (
                    f"release_many gives the same {size} outputs on the dataset {_shown(dataset)} whatever generator "
                    "it is given: with a fixed seed inside, they are not independent draws and show nothing"
                )
    except (Exception, SystemExit):
        return (), None
    return (), None


def _is_numeric(outcomes: object) -> bool:
    return isinstance(outcomes, np.ndarray) and outcomes.dtype.kind in "biuf" and outcomes.ndim in (1, 2)


def _shown(dataset: Dataset) -> str:
    """A dataset as it is written in a claims file: a list of records."""
    return readable(list(dataset))
