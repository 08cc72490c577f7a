"""Mechanisms of libraries that no one here wrote, OpenDP and diffprivlib, as black boxes.

Nothing here states a guarantee: ``claims.toml`` and ``broken.toml`` do. OpenDP draws from the operating system, so its
functions take no generator and cannot be replayed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import opendp.prelude as dp


def _diffprivlib_mechanisms() -> Any:
    """``diffprivlib.mechanisms`` alone: ``import diffprivlib`` 0.6.6 fails with scikit-learn 1.9, in its models."""
    if "diffprivlib" not in sys.modules:
        spec = importlib.util.find_spec("diffprivlib")
        if spec is None:
            raise ModuleNotFoundError("No module named 'diffprivlib'", name="diffprivlib")
        package = types.ModuleType("diffprivlib")
        package.__path__ = list(spec.submodule_search_locations or ())
        sys.modules["diffprivlib"] = package
    return importlib.import_module("diffprivlib.mechanisms")


ibm = _diffprivlib_mechanisms()
dp.enable_features("contrib")
_INTEGERS = dp.vector_domain(dp.atom_domain(T="i32"))


@functools.cache
def _opendp_laplace(scale: float) -> Callable[[list[int]], list[int]]:
    return dp.m.make_laplace(_INTEGERS, dp.l1_distance(T="i32"), scale=scale)


class OpendpCount:
    """How many records are 1, by OpenDP's discrete Laplace mechanism (`make_laplace` on 32-bit integers): 1/scale-DP.

    Many outputs at once are one vector in which each entry gets its own noise.
    """

    ignores_order = True
    replayable = False
    notes = ("OpenDP draws its own randomness",)

    def __init__(self, scale: float) -> None:
        self._laplace = _opendp_laplace(scale)

    def release(self, dataset: Sequence[int], *, rng: np.random.Generator | None) -> int:
        return self._laplace([sum(dataset)])[0]

    def release_many(self, dataset: Sequence[int], size: int, *, rng: np.random.Generator | None) -> list[int]:
        return self._laplace([sum(dataset)] * size)


@functools.cache
def _opendp_randomized_response(prob: float) -> Callable[[bool], bool]:
    return dp.m.make_randomized_response_bool(prob=prob)


def opendp_randomized_response(dataset: Sequence[bool], prob: float) -> tuple[bool, ...]:
    """Each record kept with probability `prob`, else flipped: ln(prob / (1 - prob))-DP when one record is replaced."""
    respond = _opendp_randomized_response(prob)
    return tuple(respond(record) for record in dataset)


@functools.cache
def _opendp_noisy_max(scale: float) -> Callable[[list[int]], int]:
    return dp.m.make_noisy_max(_INTEGERS, dp.linf_distance(T="i32", monotonic=True), dp.max_divergence(), scale=scale)


def opendp_most_common(dataset: Sequence[int], candidates: int, scale: float) -> int:
    """The most common of 0 .. candidates - 1, by report noisy max: 1/scale-DP when one record is added or removed."""
    return int(_opendp_noisy_max(scale)([list(dataset).count(candidate) for candidate in range(candidates)]))


opendp_most_common.ignores_order = True  # type: ignore[attr-defined]


class _Ibm:
    """A diffprivlib mechanism, built anew for each batch with a seed from the generator."""

    def release(self, dataset: Sequence[Any], *, rng: np.random.Generator) -> Any:
        return self.release_many(dataset, 1, rng=rng)[0]

    def release_many(self, dataset: Sequence[Any], size: int, *, rng: np.random.Generator) -> list[Any]:
        draw = self._sampler(dataset, int(rng.integers(2**31)))
        return [draw() for _ in range(size)]

    def _sampler(self, dataset: Sequence[Any], seed: int) -> Callable[[], Any]:
        raise NotImplementedError


class IbmCount(_Ibm):
    """How many records are 1, by the geometric mechanism."""

    ignores_order = True

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def _sampler(self, dataset: Sequence[int], seed: int) -> Callable[[], int]:
        mechanism = ibm.Geometric(epsilon=self.epsilon, sensitivity=1, random_state=seed)
        return functools.partial(mechanism.randomise, int(sum(dataset)))


class IbmSum(_Ibm):
    """A sum of numbers in [0, 1] by the Laplace mechanism, rounded to whole numbers."""

    ignores_order = True

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def _sampler(self, dataset: Sequence[float], seed: int) -> Callable[[], int]:
        mechanism = ibm.Laplace(epsilon=self.epsilon, sensitivity=1.0, random_state=seed)
        total = float(sum(dataset))
        return lambda: round(mechanism.randomise(total))


class IbmBinary(_Ibm):
    """One person's yes or no, by the binary mechanism (randomized response)."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def _sampler(self, dataset: Sequence[str], seed: int) -> Callable[[], str]:
        mechanism = ibm.Binary(epsilon=self.epsilon, value0="no", value1="yes", random_state=seed)
        return functools.partial(mechanism.randomise, dataset[0])


class IbmMostCommon(_Ibm):
    """The most common candidate, by the exponential mechanism, told that the utilities have sensitivity 1."""

    ignores_order = True

    def __init__(self, epsilon: float, candidates: Sequence[str]) -> None:
        self.epsilon, self.candidates = epsilon, list(candidates)

    def _sampler(self, dataset: Sequence[str], seed: int) -> Callable[[], str]:
        utility = [float(list(dataset).count(candidate)) for candidate in self.candidates]
        mechanism = ibm.Exponential(
            epsilon=self.epsilon, sensitivity=1, utility=utility, candidates=self.candidates, random_state=seed
        )
        return functools.partial(mechanism.randomise)
