"""The library's calls."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting import Relation
from audits import Status, Verdict, audit, neighbours, verify
from audits.engine import LARGEST_EXACT_DOMAIN, choose_method
from mechanisms import ReplaceOne, as_mechanism, registered
from tests.examples.noisy import ClampedCount, noisy_count
from tests.support import misbehaving

RNG = np.random.default_rng
ANY: dict[str, Any] = {
    "epsilon": 1.0,
    "relation": Relation.REPLACE_ONE,
    "neighbours": neighbours.replace_one(values=[0, 1], size=2),
    "confidence": 0.95,
    "max_runs": 2000,
    "rng": RNG(1),
}


def test_a_mechanism_with_a_distribution_is_audited_exactly() -> None:
    verdict = audit(ClampedCount("3/8", 3), **ANY, promise="two records", name="count")
    assert (verdict.verdict, verdict.method, verdict.name) == ("PROVED", "exact", "count")
    assert verdict.promise == "two records"
    # By hand: a record replaced moves the count by one, and each probability by a factor of 3/8 to 8/3, which occurs.
    assert verdict.epsilon_lower is not None
    assert verdict.epsilon_upper is not None
    assert verdict.epsilon_lower <= math.log(Fraction(8, 3)) <= verdict.epsilon_upper
    refuted = audit(ClampedCount("3/8", 3), **{**ANY, "epsilon": 0.98})
    assert refuted.verdict is Status.REFUTED
    assert refuted.witness is not None


def test_the_example_of_the_interface() -> None:
    """A false alarm has probability at most 0.05, and none at this seed; the control has 2.5 times its claim."""
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 0.0,
        "relation": Relation.ADD_OR_REMOVE_ONE,
        "neighbours": neighbours.add_or_remove_one(values=[0, 1], max_size=2),
        "confidence": 0.95,
        "max_runs": 20_000,
    }
    v = audit(noisy_count, **known, parameters={"scale": 1.0}, rng=RNG(7))
    assert v.verdict == "CONSISTENT"
    assert v.witness is None
    assert v.epsilon_lower is not None
    assert v.epsilon_detectable is not None
    assert v.epsilon_lower < 1.0 < v.epsilon_detectable
    assert 0 < v.runs <= 20_000
    control = audit(noisy_count, **known, parameters={"scale": 0.4}, rng=RNG(7))
    assert control.verdict == "REFUTED"
    assert control.witness is not None


def test_equal_generators_give_equal_verdicts() -> None:
    def found(seed: int) -> dict[str, object]:
        known = {**ANY, "epsilon": 2.0, "rng": RNG(seed)}
        return {**audit(misbehaving.good, **known).to_json(), "seconds": None}

    assert found(3) == found(3)


def test_progress_is_told_and_a_stop_is_heard() -> None:
    told: list[tuple[int, int]] = []
    audit(misbehaving.good, **{**ANY, "epsilon": 2.0}, progress=lambda done, total: told.append((done, total)))
    assert told
    assert all(0 <= done <= total for done, total in told)
    stopped = audit(misbehaving.good, **{**ANY, "epsilon": 2.0, "max_runs": 10**9}, should_stop=lambda: True)
    assert stopped.runs < 10**6
    assert stopped.reason is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": -1}, r"epsilon must be in \[0, inf\], got -1"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.5}, r"delta must be in \[0, 1\], got 1\.5"),
        ({"relation": "replace"}, "relation must be"),
        ({"relation": "add-remove"}, "neighbours must be under the claim's relation add-remove, got replace-one"),
        ({"neighbours": [(0, 1)]}, r"neighbours must be a domain such as audits\.neighbours\.replace_one"),
        ({"confidence": 1}, r"confidence must be in \(0, 1\), got 1"),
        ({"max_runs": 0}, "max_runs must be at least 1, got 0"),
        ({"rng": 3}, r"rng must be a numpy\.random\.Generator, got 3"),
        ({"method": "exakt"}, r"method must be one of auto, exact, sequential, got 'exakt'"),
        ({"method": "exact"}, "method must not be 'exact' for good, which offers no distribution"),
        ({"parameters": {"scale": 1}}, "good.*cannot be called with the parameters given"),
        ({"promise": " "}, "promise must not be empty"),
    ],
)
def test_a_wrong_argument_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        audit(misbehaving.good, **{**ANY, **change})


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (misbehaving.raises, "failed on the dataset [0, 0]: ZeroDivisionError"),
        (misbehaving.returns_nan, "returned NaN in every one of its"),
        (misbehaving.returns_opaque, "equals only itself"),
        (misbehaving.RepeatsItsBatch(), "whatever generator it is given"),
    ],
)
def test_a_mechanism_that_cannot_be_audited_gives_an_error_and_no_verdict(mechanism: object, said: str) -> None:
    verdict = audit(mechanism, **ANY, name="mine")
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.error is not None
    assert verdict.error.startswith("claim 'mine'")
    assert said in verdict.error


def test_auto_is_exact_where_that_is_feasible() -> None:
    exact, sampled = as_mechanism(ClampedCount("3/8", 3)), as_mechanism(misbehaving.good)
    small, large = ReplaceOne((0, 1), 2), ReplaceOne(range(100), 3)
    assert large.count(ignore_order=True) > LARGEST_EXACT_DOMAIN
    assert choose_method(exact, small, "auto") == "exact"
    assert choose_method(exact, large, "auto") == "sequential"
    assert choose_method(exact, large, "exact") == "exact"
    assert choose_method(exact, small, "sequential") == "sequential"
    assert choose_method(sampled, small, "auto") == "sequential"


def test_verify_without_claims_proves_every_registered_mechanism_beside_the_papers_claim() -> None:
    run = verify(jobs=2, seed=1)
    rows = [row for row in run.verdicts if isinstance(row, Verdict)]
    assert len(rows) == len(run)
    assert {row.status for row in rows} == {Status.PROVED}
    assert {row.mechanism for row in rows} == {entry.name for entry in registered()}
    assert (run.statistical, run.exit_code(strict=True)) == (0, 0)
    for name in ("label-boost-carrier", "label-boost-public", "macro-block", "amplified-reservoir"):
        mine = [row for row in rows if row.mechanism == name]
        assert mine, name
        for row in mine:
            assert row.paper_epsilon is not None
            assert row.epsilon_upper is not None
            assert row.epsilon_upper <= row.claim_epsilon * (1 + 1e-9)
            assert row.claim_epsilon <= row.paper_epsilon * (1 + 1e-9)
        if name.startswith("label-boost"):
            assert max(row.epsilon_lower / row.claim_epsilon for row in mine if row.epsilon_lower is not None) > 0.99
