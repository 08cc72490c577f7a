"""Adapters for everything a user may bring, laws that are refused, and the registry's rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting import Claim, Relation
from mechanisms import (
    AddOrRemoveOne,
    AuditCase,
    Registration,
    ReplaceOne,
    as_mechanism,
    check_law,
    is_hashable,
    register,
    registered,
)


def noisy_count(dataset: Sequence[int], *, rng: np.random.Generator, scale: float, shift: int = 0) -> int:
    return round(sum(dataset) + scale * rng.standard_normal()) + shift


def plain(dataset: Sequence[int]) -> int:
    return len(dataset)


class Coin:
    """A built object with everything optional."""

    name = "coin"
    ignores_order = True

    def __init__(self, bias: Fraction = Fraction(1, 2)) -> None:
        self.bias = bias

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator | None) -> int:
        assert rng is not None
        return int(rng.random() < self.bias)

    def release_many(
        self, dataset: Sequence[int], size: int, *, rng: np.random.Generator | None
    ) -> np.ndarray[Any, Any]:
        assert rng is not None
        return (rng.random(size) < float(self.bias)).astype(int)

    def distribution(self, dataset: Sequence[int]) -> dict[int, Fraction]:
        return {1: self.bias, 0: 1 - self.bias}

    def check_dataset(self, dataset: Sequence[int]) -> None:
        if not dataset:
            raise ValueError("dataset must not be empty")


def test_a_function_with_parameters() -> None:
    mechanism = as_mechanism(noisy_count, {"scale": 2.0})
    assert (mechanism.name, mechanism.replayable, mechanism.vectorised) == ("noisy_count", True, False)
    assert not mechanism.has_distribution
    assert not mechanism.ignores_order
    assert mechanism.notes == ()
    one, again = (mechanism.release((1, 1), rng=np.random.default_rng(3)) for _ in range(2))
    assert one == again
    assert len(mechanism.release_many((1,), 5, rng=np.random.default_rng(3))) == 5
    assert as_mechanism(noisy_count, {"scale": 1.0}, name="count").name == "count"
    with pytest.raises(TypeError, match="count offers no distribution"):
        as_mechanism(noisy_count, {"scale": 1.0}, name="count").distribution((1,))


def test_a_function_with_attributes() -> None:
    def flip(dataset: Sequence[int], *, rng: np.random.Generator, bias: float) -> int:
        return int(rng.random() < bias)

    flip.distribution = lambda dataset, bias: {1: bias, 0: 1 - bias}  # type: ignore[attr-defined]
    flip.release_many = lambda dataset, size, *, rng, bias: (rng.random(size) < bias).astype(int)  # type: ignore[attr-defined]
    flip.ignores_order = True  # type: ignore[attr-defined]
    mechanism = as_mechanism(flip, {"bias": 0.25})
    assert mechanism.vectorised
    assert mechanism.ignores_order
    assert mechanism.distribution((1, 2)) == {1: 0.25, 0: 0.75}
    assert mechanism.release_many((), 7, rng=np.random.default_rng(1)).shape == (7,)


def test_a_plain_function_is_noted() -> None:
    mechanism = as_mechanism(plain)
    assert not mechanism.replayable
    assert "cannot be replayed" in mechanism.notes[0]
    assert mechanism.release((1, 2), rng=None) == 2


def test_objects_and_classes() -> None:
    for mechanism in (as_mechanism(Coin(Fraction(1, 4))), as_mechanism(Coin, {"bias": Fraction(1, 4)})):
        assert mechanism.vectorised
        assert mechanism.ignores_order
        assert mechanism.has_distribution
        assert mechanism.name == "coin"
        assert mechanism.distribution((1,)) == {1: Fraction(1, 4), 0: Fraction(3, 4)}
        assert len(mechanism.release_many((1,), 4, rng=np.random.default_rng(0))) == 4
        with pytest.raises(ValueError, match="must not be empty"):
            mechanism.check_dataset(())
        assert as_mechanism(mechanism) is mechanism
    as_mechanism(plain).check_dataset(())


def test_a_wrong_number_of_outcomes_is_refused() -> None:
    class Short(Coin):
        def release_many(self, dataset: Sequence[int], size: int, *, rng: Any) -> Any:
            return [0] * (size - 1)

    with pytest.raises(ValueError, match="release_many of coin must return 3 outcomes, got 2"):
        as_mechanism(Short()).release_many((1,), 3, rng=None)
    with pytest.raises(ValueError, match="size must be at least 0"):
        as_mechanism(Coin()).release_many((1,), -1, rng=None)


@pytest.mark.parametrize(
    ("target", "parameters", "message"),
    [
        (noisy_count, {"scal": 1.0}, r"noisy_count\(.*missing a required argument: 'scale'"),
        (noisy_count, {"scale": 1.0, "extra": 2}, "unexpected keyword argument 'extra'"),
        (noisy_count, {}, "missing a required argument: 'scale'"),
        (noisy_count, {"scale": 1.0, "rng": None}, "must not name 'rng'"),
        (plain, {"scale": 1.0}, "unexpected keyword argument 'scale'"),
        (lambda: 0, {}, "too many positional arguments"),
        (Coin(), {"bias": 0.5}, "coin is an object that is already built and takes no parameters, got bias"),
        (Coin, {"tilt": 0.5}, "unexpected keyword argument 'tilt'"),
        (dict, {}, "must have a method release"),
        (7, {}, "must be a function of a dataset or have a method release"),
    ],
)
def test_wrong_targets_and_parameters_are_named(target: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_mechanism(target, parameters)


def test_attributes_must_take_the_same_parameters() -> None:
    def flip(dataset: Sequence[int], *, rng: np.random.Generator, bias: float) -> int:
        return 0

    flip.distribution = lambda dataset: {0: 1}  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"flip\.distribution.*unexpected keyword argument 'bias'"):
        as_mechanism(flip, {"bias": 0.5})


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ([0.5, 0.5], "must be a mapping .* got list"),
        ({}, "at least one outcome"),
        ({0: math.nan, 1: 0.5}, r"law\[0\] must be in \[0, 1\], got nan"),
        ({0: -0.5, 1: 1.5}, r"law\[0\] must be in \[0, 1\]"),
        ({0: "a"}, r"law\[0\] must be a probability"),
        ({0: True}, r"law\[0\] must be a probability"),
        ({0: 0.5, 1: 0.4999}, "must sum to 1 within 1e-09"),
        ({0: Fraction(1, 3), 1: Fraction(2, 3) - Fraction(1, 10**30)}, "must sum to exactly 1"),
    ],
)
def test_what_is_no_law_is_refused(law: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        check_law("law", law)


def test_laws_of_every_kind_pass() -> None:
    for law in (
        {0: 1},
        {0: 0.1, 1: 0.9},
        {0: Fraction(1, 3), 1: Fraction(2, 3)},
        {0: np.float64(0.5), 1: Fraction(1, 2)},
    ):
        assert check_law("law", law) is law


def test_is_hashable_looks_inside() -> None:
    assert is_hashable((1, "a", frozenset()))
    assert not is_hashable((1, [2]))
    assert not is_hashable(np.zeros(2))


CLAIM = Claim.pure(1.0, relation=Relation.REPLACE_ONE, source="test")
FIELDS: dict[str, Any] = {
    "name": "a-test",
    "summary": "s",
    "guarantee": "g",
    "relation": Relation.REPLACE_ONE,
    "promise": None,
    "source": "here",
    "cases": list,
}


def test_registry_refuses_a_taken_name() -> None:
    names = [registration.name for registration in registered()]
    assert names == sorted(set(names))
    with pytest.raises(ValueError, match="name must be new, got 'macro-block'"):
        register(Registration(**{**FIELDS, "name": "macro-block"}))
    with pytest.raises(TypeError, match="must be a Registration"):
        register("macro-block")  # type: ignore[arg-type]
    assert [registration.name for registration in registered()] == names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Macro_Block"}, "name must be in kebab-case"),
        ({"summary": " "}, "summary must not be empty"),
        ({"source": ""}, "source must not be empty"),
        ({"relation": "near"}, "relation must be"),
        ({"promise": ""}, "promise must not be empty"),
        ({"cases": ()}, "cases must be callable"),
    ],
)
def test_registrations_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Registration(**{**FIELDS, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": ""}, "label must not be empty"),
        ({"mechanism": 3}, "mechanism must have a method release"),
        ({"claim": 1.0}, "claim must be a Claim"),
        ({"domain": AddOrRemoveOne("ab", 1)}, "relation replace-one, got add-remove"),
        ({"paper_epsilon": -1.0}, "paper_epsilon must be in"),
        ({"paper_delta": 2.0}, "paper_delta must be in"),
        ({"paper_source": ""}, "paper_source must not be empty"),
    ],
)
def test_audit_cases_are_checked(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"label": "l", "mechanism": Coin(), "claim": CLAIM, "domain": ReplaceOne("ab", 1)}
    AuditCase(**fields)
    with pytest.raises((TypeError, ValueError), match=message):
        AuditCase(**{**fields, **change})
