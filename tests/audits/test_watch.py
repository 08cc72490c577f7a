"""Mechanisms under watch: failures told, outcomes canonical, oddities noted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from audits.canonical import NAN, UncountableError
from audits.watch import OF_MECHANISM, CallClock, Watched, rehearse
from mechanisms import ReplaceOne, as_mechanism
from tests.support import misbehaving

DOMAIN = ReplaceOne((0, 1), 1)
ARRAYS = {
    1: np.array([math.nan]),
    2: np.zeros((2, 3)),
    3: np.array([1, 2, 3]),
    4: np.array(["a", "b", "c", "d"], dtype=object),
    5: np.zeros((5, 2, 2)),
}


def watched(target: object, **parameters: Any) -> Watched:
    return Watched(as_mechanism(target, parameters))


def run(subject: Watched, runs: int, dataset: tuple[int, ...] = (1,)) -> list[object]:
    return list(subject.adapted().release_many(dataset, runs, rng=np.random.default_rng(1)))


@pytest.mark.parametrize(
    ("mechanism", "kind", "said"),
    [
        (misbehaving.exits, SystemExit, "3"),
        (
            misbehaving.returns_opaque,
            UncountableError,
            r"type Opaque, which equals only itself.*\(on the dataset \[1\]\)",
        ),
        (misbehaving.returns_unhashable, UncountableError, r"unhashable.*type Unhashable.*\(on the dataset \[1\]\)"),
    ],
)
def test_failures_pass_through_and_what_cannot_be_compared_names_the_dataset(
    mechanism: object, kind: type[BaseException], said: str
) -> None:
    clock = CallClock()
    with pytest.raises(kind, match=said):
        Watched(as_mechanism(mechanism), clock).release((1,), rng=np.random.default_rng(1))
    assert clock.current() is None


def test_outcomes_are_canonical() -> None:
    assert run(watched(misbehaving.returns_lists), 1) in ([(0, (("a", (1,)),))], [(1, (("a", (1,)),))])
    assert run(watched(misbehaving.returns_nan), 1)[0] is NAN


def test_arrays_of_numbers_are_passed_on_as_they_are() -> None:
    class Many:
        def release(self, dataset: object, *, rng: object) -> float:
            return 0.0

        def release_many(self, dataset: object, size: int, *, rng: object) -> object:
            return ARRAYS[size]

    for size, array in ARRAYS.items():
        kept = watched(Many()).adapted().release_many((1,), size, rng=None)
        assert (kept is array) == (size < 4)


def observed(mechanism: object, runs: int = 20) -> str:
    subject = watched(mechanism)
    for dataset in ((0,), (1,)):
        run(subject, runs, dataset)
    return " | ".join(note.removeprefix(OF_MECHANISM) for note in subject.observations())


def test_what_is_observed() -> None:
    assert observed(misbehaving.returns_nan_at_times, 50).endswith("treated as an ordinary outcome, equal to itself")
    assert observed(misbehaving.returns_lists) == "outputs of type list were compared by their contents"
    constant = "on each of the 2 datasets run it returned one and the same output every time (40 runs)"
    assert observed(misbehaving.constant).startswith(constant)
    assert observed(misbehaving.seeds_itself).startswith(constant)
    assert observed(misbehaving.good) == ""
    assert observed(misbehaving.constant, runs=1) == ""  # one run each shows nothing


def test_a_batch_is_observed_like_single_outcomes() -> None:
    class Many:
        def __init__(self, outcomes: np.ndarray[Any, Any]) -> None:
            self.outcomes = outcomes

        def release(self, dataset: object, *, rng: object) -> object:
            return self.outcomes[0]

        def release_many(self, dataset: object, size: int, *, rng: object) -> object:
            return self.outcomes[:size]

    assert observed(Many(np.zeros(20))).startswith("on each of the 2 datasets")
    assert observed(Many(np.arange(20))) == ""
    assert observed(Many(np.full(20, math.nan))).startswith("40 of 40 outputs were NaN")
    assert observed(Many(np.arange(40).reshape(20, 2))) == "outputs of type ndarray were compared by their contents"
    only_nan = watched(Many(np.full(20, math.nan)))
    run(only_nan, 20)
    assert only_nan.returned_only_nan
    some_nan = watched(Many(np.array([math.nan, 1.0])))
    run(some_nan, 2)
    assert not some_nan.returned_only_nan
    assert not watched(misbehaving.good).returned_only_nan


def rehearsed(mechanism: object) -> tuple[str, ...]:
    notes, refusal = rehearse(watched(mechanism).adapted(), DOMAIN, rng=np.random.default_rng(5))
    assert refusal is None
    return notes


def test_a_rehearsal_tells_who_can_be_replayed() -> None:
    """A false note on `ignores_its_rng` would need equal draws of 40 bits: never in practice."""
    assert rehearsed(misbehaving.good) == ()
    assert rehearsed(misbehaving.returns_nan_at_times) == ()
    assert rehearsed(misbehaving.takes_no_rng) == ()  # said by the adapter already
    assert rehearsed(misbehaving.constant) == ()
    assert rehearsed(misbehaving.ignores_its_rng) == (
        "mechanism: equal generators gave different outputs: it cannot be replayed",
    )
    assert rehearsed(misbehaving.exits) == ()  # the audit itself will tell
    assert rehearsed(misbehaving.returns_opaque) == ()


def test_a_batch_with_a_seed_of_its_own_is_refused_and_rare_outcomes_are_not() -> None:
    notes, refusal = rehearse(watched(misbehaving.RepeatsItsBatch()).adapted(), DOMAIN, rng=np.random.default_rng(5))
    assert notes == ()
    assert refusal is not None
    assert "gives the same 256 outputs on the dataset [0] whatever generator it is given" in refusal

    class Rare:
        def release(self, dataset: object, *, rng: np.random.Generator) -> int:
            return int(rng.random() < 0.004)

        def release_many(self, dataset: object, size: int, *, rng: np.random.Generator) -> np.ndarray[Any, Any]:
            return (rng.random(size) < 0.004).astype(int)

    # Chance of a refusal in 2000 rehearsals of two datasets: below 4000 * 1e-6, where 0.004 is the worst rarity.
    for seed in range(2000):
        assert rehearse(as_mechanism(Rare()), DOMAIN, rng=np.random.default_rng(seed)) == ((), None)


def test_the_clock_tells_the_call_in_progress() -> None:
    clock = CallClock()
    told: list[tuple[float, str] | None] = []

    def mechanism(dataset: tuple[int, ...]) -> int:
        told.append(clock.current())
        return 0

    Watched(as_mechanism(mechanism), clock).release((1, 2), rng=None)
    (call,) = told
    assert call is not None
    assert call[1] == "a call of the mechanism on the dataset [1, 2]"
    assert 0 <= call[0] < 5
    assert clock.current() is None


def test_what_the_mechanism_offers_is_passed_on() -> None:
    inner = as_mechanism(misbehaving.WrongDistribution())
    outer = Watched(inner).adapted()
    assert (outer.has_distribution, outer.vectorised, outer.name) == (True, False, inner.name)
    with pytest.raises(ValueError, match="must sum to 1 within"):
        outer.distribution((1,))
    assert Watched(as_mechanism(misbehaving.takes_no_rng)).adapted().notes
